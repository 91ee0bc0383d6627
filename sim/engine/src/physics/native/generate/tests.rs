use super::{generate, trace};
use crate::physics::native::lower::{LowerOptions, lower};
use crate::physics::native::tables::RobotTables;
use crate::physics::native::tape::{Array, Node, TapeError, Val, ffi};
use ostler_model::mjcf;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

fn generated(robot: &str) -> super::Generated {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../configs/robots/{robot}.xml"));
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
        let smooth = g.program.functions.iter().find(|f| f.name == "smooth").unwrap();
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

/// Arrays that the kernels' own loops write: the state, and the results of contacts and the
/// solver.
const WRITTEN_BY_LOOPS: [&str; 12] = [
    "w.qpos", "w.qvel", "w.act", "w.ctrl", "w.qacc", "w.step", "w.mstep", "w.grad", "w.hess",
    "w.wrench", "w.stiff", "w.tmp",
];

/// Robots of ours and a model for every feature.
fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
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

/// Bodies on bodies, each on two hinges across each other.
fn chain(bodies: usize) -> RobotTables {
    let body = "<body pos=\"0 0 1\"><joint axis=\"1 0 0\"/><joint axis=\"0 1 0\"/><geom size=\".1\" contype=\"0\" conaffinity=\"0\"/>";
    let bodies = format!("{}{}", body.repeat(bodies), "</body>".repeat(bodies));
    let text = format!("<mujoco><worldbody>{bodies}</worldbody></mujoco>");
    let model = mjcf::parse(Path::new("chain.xml"), text).unwrap();
    lower(&model, &LowerOptions::default()).unwrap()
}

/// The products of a chain's factor grow with the cube of its length: 12 kB of it would
/// be gigabytes of C++.
#[test]
fn a_long_chain_is_not_recorded() {
    assert_eq!(generate(&chain(90), 8).err(), Some(TapeError::TooLarge));
    assert!(TapeError::TooLarge.to_string().contains("262144 operations"));
    assert!(generate(&chain(8), 8).is_ok());
}

/// A robot for which no estimate warns is given up while it is recorded, and nothing that
/// comes after the limit is kept.
#[test]
fn a_recording_ends_at_its_limit() {
    let arrays = vec![Array::new("w.a", &[1])];
    let mut made = 0;
    let recorded = ffi::record(arrays, || {
        ffi::function("f", || {
            let mut sum = ffi::ostler_sym_const(1.0);
            for i in 0..Val::MAX_NODES {
                let next = ffi::ostler_sym_const(i as f64 + 0.5);
                sum = ffi::ostler_sym_op2(crate::kernels::SYM_ADD, next, ffi::ELEMENT);
                made += usize::from(sum != ffi::NO_VALUE);
            }
            ffi::ostler_sym_store(0, 0, sum);
        });
    });
    assert_eq!(recorded.err(), Some(TapeError::TooLarge));
    assert!(made < Val::MAX_NODES / 2 + 10, "{made}");
}

#[test]
fn a_large_field_is_not_written_as_text() {
    let text = "<mujoco><asset><hfield name=\"h\" size=\"1 1 1 1\" nrow=\"724\" ncol=\"725\"/></asset><worldbody><geom type=\"hfield\" hfield=\"h\"/><body><freejoint/><geom size=\".1\"/></body></worldbody></mujoco>";
    let model = mjcf::parse(Path::new("field.xml"), text.into()).unwrap();
    let plan = lower(&model, &LowerOptions::default()).unwrap();
    let error = generate(&plan, 8).err();
    assert!(matches!(error, Some(TapeError::TooManyNumbers { .. })), "{error:?}");
}

/// As the limit's comment says.
#[test]
fn our_robots_are_far_from_the_limit() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/robots");
    let files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    let most = files
        .filter(|f| f.extension().is_some_and(|e| e == "xml"))
        .map(|f| {
            let model = mjcf::load(&f).unwrap();
            let plan = lower(&model, &LowerOptions::default()).unwrap();
            let program = trace::record(&plan).unwrap();
            program.graph.nodes().len()
        })
        .max();
    assert!(most < Some(Val::MAX_NODES / 8), "{most:?}");
}
