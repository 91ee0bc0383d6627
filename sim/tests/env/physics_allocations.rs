//! A control step allocates nothing on our side; rapier's allocations are reported.

use crate::support::alone;
use crate::support::count::of_all;
use ostler_sim::config::SimConfig;
use ostler_sim::model::mjcf;
use ostler_sim::physics::{pool::Pool, rapier};
use std::path::Path;
use std::sync::Arc;

#[test]
fn our_side_of_a_step_allocates_nothing() {
    // No thread of another test allocates meanwhile.
    if !alone::here("physics_allocations::our_side_of_a_step_allocates_nothing", &[]) {
        return;
    }
    const WORLDS: usize = 32;
    for name in ["cartpole", "half_cheetah", "ant"] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/robots/{name}.xml"));
        let model = Arc::new(mjcf::load(&path).unwrap());
        let pool = Arc::new(Pool::new(2).unwrap());
        let mut worlds = rapier::new(&model, &SimConfig::default(), WORLDS, &pool).unwrap();
        let ctrl = vec![0.1; model.nu() * WORLDS];
        for _ in 0..20 {
            worlds.step(&ctrl, 2);
        }
        // Without time steps: controls in, reading, kinematics, state out, the pool.
        let ours = of_all(|| {
            for _ in 0..100 {
                worlds.step(&ctrl, 0);
            }
        });
        assert_eq!(ours, 0, "{name}");
        // With time steps: the difference is rapier's own.
        let rapiers = of_all(|| {
            for _ in 0..10 {
                worlds.step(&ctrl, 1);
            }
        });
        println!("{name}: {} allocations per time step in rapier", rapiers / (10 * WORLDS as u64));
        let none = vec![0; WORLDS];
        let idle = of_all(|| worlds.reset(&none, &[], &[]));
        assert_eq!(idle, 0, "{name}: a reset of nobody");
    }
}
