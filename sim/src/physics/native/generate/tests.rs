use super::{generate, trace};
use crate::model::mjcf;
use crate::physics::native::lower::{LowerOptions, lower};
use crate::physics::native::tape::Node;
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
