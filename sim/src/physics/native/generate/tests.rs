use super::generate;
use crate::model::mjcf;
use crate::physics::native::lower::{LowerOptions, lower};
use std::path::Path;

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
