use super::limbs::{Limbs, homes};
use super::{generate, team_sizes, trace};
use crate::model::mjcf;
use crate::physics::native::lower::{LowerOptions, lower};
use crate::physics::native::tables::Plan;
use crate::physics::native::tape::{Node, Printer, Style};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn generated(robot: &str) -> super::Generated {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/robots/{robot}.xml"));
    let model = mjcf::load(&path).unwrap();
    let plan = lower(&model, &LowerOptions::default()).unwrap();
    generate(&plan, 8).unwrap()
}

#[test]
fn the_same_robot_gives_the_same_text() {
    assert_eq!(generated("hopper").source, generated("hopper").source);
}

#[test]
fn a_planar_robots_zeros_vanish() {
    let flops = |robot: &str| {
        let g = generated(robot);
        let smooth = g
            .program
            .functions
            .iter()
            .find(|f| f.name == "smooth")
            .unwrap();
        g.program.counts(smooth).flops()
    };
    // The quadruped has twice the half-cheetah's degrees of freedom, in space.
    assert!(
        flops("quadruped") > 4 * flops("half_cheetah"),
        "{} {}",
        flops("quadruped"),
        flops("half_cheetah")
    );
}

/// What the kernels' own loops write: the state, and what contacts and the solver do.
const WRITTEN_BY_LOOPS: [&str; 12] = [
    "w.qpos", "w.qvel", "w.act", "w.ctrl", "w.qacc", "w.step", "w.mstep", "w.grad", "w.hess",
    "w.wrench", "w.stiff", "w.tmp",
];

/// Robots of ours and a model for every feature.
fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["configs/robots", "tests/referee/features"].map(|f| root.join(f));
    let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let mut files: Vec<PathBuf> = files.map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "xml"));
    files.sort();
    assert!(files.len() > 100, "{}", files.len());
    files
}

/// A part that reads what no other leaves for it reads what was there before: zeros.
#[test]
fn what_straight_parts_read_is_written_by_one_of_them_or_by_the_loops() {
    for path in models() {
        let Ok(model) = mjcf::load(&path) else {
            continue;
        };
        let Ok(plan) = lower(&model, &LowerOptions::default()) else {
            continue;
        };
        let program = trace::record(&plan).unwrap();
        let stores = program.functions.iter().flat_map(|f| &f.stores);
        let mut written: HashSet<_> = stores.map(|s| (s.array, s.index)).collect();
        written.extend(program.init.iter().map(|i| (i.array, i.index)));
        for function in &program.functions {
            let live = program.live(function);
            for (node, _) in program.graph.nodes().iter().zip(live).filter(|(_, l)| *l) {
                let Node::Load { array, index } = *node else {
                    continue;
                };
                let of = &program.arrays[array as usize];
                let known = WRITTEN_BY_LOOPS.contains(&of.name.as_str());
                assert!(
                    known || written.contains(&(array, index)),
                    "{}: `{}` reads {}, which nobody writes",
                    path.display(),
                    function.name,
                    of.element(index)
                );
            }
        }
    }
}

fn plan(robot: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/robots/{robot}.xml"));
    lower(&mjcf::load(&path).unwrap(), &LowerOptions::default()).unwrap()
}

#[test]
fn a_robot_has_as_many_threads_as_it_has_limbs() {
    let sizes = |robot| team_sizes(&plan(robot));
    assert_eq!(sizes("cartpole"), [1]);
    assert_eq!(sizes("hopper"), [1]);
    assert_eq!(sizes("half_cheetah"), [2, 1]);
    assert_eq!(sizes("ant"), [4, 1]);
    assert_eq!(sizes("quadruped"), [4, 1]);
    // Two ants: one to a rank. Their legs among four would make a trunk of two torsos.
    assert_eq!(sizes("ant_sumo"), [2, 1]);
    let limbs = Limbs::divide(&plan("quadruped"), 4);
    let of = |rank| limbs.rank.iter().filter(|r| **r == rank).count();
    assert_eq!(
        [None, Some(0), Some(1), Some(2), Some(3)].map(of),
        [1, 3, 3, 3, 3]
    );
}

/// What is done one after the other by a team, of what one thread does.
#[test]
fn a_team_has_less_to_do_one_after_the_other() {
    for (robot, size, most) in [
        ("half_cheetah", 2, 0.8),
        ("ant", 4, 0.6),
        ("quadruped", 4, 0.6),
    ] {
        let plan = plan(robot);
        let program = trace::record(&plan).unwrap();
        let printer = Printer::new(&program, Style::default());
        let (mut alone, mut team) = (0, 0);
        for f in program
            .functions
            .iter()
            .filter(|f| !f.name.starts_with("load_"))
        {
            let homes = homes(&plan, &program, &Limbs::divide(&plan, size));
            let home = |array: u32, index: u32| homes[array as usize][index as usize];
            let (one, many) = (
                printer.team_function(f, &|_, _| None, 1),
                printer.team_function(f, &home, size),
            );
            println!(
                "{robot} {}: {} of {}, {} waits",
                f.name, many.depth, one.depth, many.stages
            );
            alone += one.depth;
            team += many.depth;
        }
        let share = team as f64 / alone as f64;
        assert!(share < most, "{robot}: {share}");
    }
}
