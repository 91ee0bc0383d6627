//! A robot's specialised kernel against the generic one.

use super::common::{bits, config, feature, robot, run, start, worlds};
use crate::support::alone;
use crate::support::need::Need;
use ostler_sim::config::{SimConfig, Specialize};
use ostler_sim::model::Model;
use ostler_sim::physics::Physics;
use ostler_sim::physics::native::InstructionSet;
use std::sync::Arc;

/// Largest difference of positions after one control step, relative to 1 or their
/// size.
fn difference(a: &[f32], b: &[f32]) -> f32 {
    let pairs = a.iter().zip(b);
    pairs.map(|(x, y)| (x - y).abs() / x.abs().max(1.0)).fold(0.0, f32::max)
}

#[test]
fn a_robots_own_kernel_means_the_same_and_keeps_its_promises() {
    let test = "native_engine::kernels::a_robots_own_kernel_means_the_same_and_keeps_its_promises";
    let cache = tempfile::tempdir().unwrap();
    if !alone::here(test, &[("OSTLER_CACHE", cache.path().as_os_str())]) {
        return;
    }
    let specialises = InstructionSet::detect() != InstructionSet::Portable;
    let found = specialises.then_some(()).ok_or("the processor lacks them");
    let Some(()) = Need::Avx2.or_skip(found) else {
        return;
    };
    for (name, model) in [
        ("hopper", robot("hopper")),
        ("half_cheetah", robot("half_cheetah")),
        // Muscles, and strings around balls and drums.
        ("strings", feature("tendon_spatial_wrap")),
        // A time step's matrix that is not symmetric, both kinds of drag.
        ("implicit", feature("integrator_implicit_fluid")),
    ] {
        let ids: Vec<usize> = (0..21).collect();
        let own = SimConfig { specialize: Specialize::Wait, ..config("auto") };
        let mut special = worlds(&model, &own, ids.len(), 1);
        assert!(
            !special.kernel().starts_with("generic"),
            "{}: {:?}",
            special.kernel(),
            special.notes()
        );
        let mut generic = worlds(&model, &config("auto"), ids.len(), 1);
        for physics in [&mut special, &mut generic] {
            start(&model, physics, &ids);
            run(&model, physics, &ids, 0..5);
        }
        let apart = difference(&special.state().qpos, &generic.state().qpos);
        assert!(apart < 1e-3, "{name}: {apart}");
        // Alone, and by the kernel's name: the same bits.
        let named = config(special.kernel());
        let mut alone = worlds(&model, &named, 1, 1);
        assert_eq!(alone.kernel(), special.kernel());
        start(&model, &mut alone, &ids[13..14]);
        run(&model, &mut alone, &ids[13..14], 0..5);
        assert_eq!(bits(&alone, 0), bits(&special, 13), "{name}");
    }
    let lost = config("avx2-0000");
    let pool = std::sync::Arc::new(ostler_sim::physics::pool::Pool::new(1).unwrap());
    let error = ostler_sim::physics::native::new(&robot("hopper"), &lost, 1, &pool).unwrap_err();
    assert!(error.to_string().contains("sim.kernel = \"auto\""), "{error}");
}

#[test]
fn a_kernel_of_named_instructions_is_had_or_refused() {
    let pool = std::sync::Arc::new(ostler_sim::physics::pool::Pool::new(1).unwrap());
    let model = robot("cartpole");
    let kernel = |name: &str| {
        ostler_sim::physics::native::new(&model, &config(name), 1, &pool)
            .map(|worlds| worlds.kernel().to_string())
            .map_err(|error| error.to_string())
    };
    for set in [InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512] {
        let found = kernel(&format!("auto-{}", set.name()));
        if set.is_available() {
            assert_eq!(found, Ok(format!("generic-{}", set.name())));
        } else {
            assert!(found.unwrap_err().contains(set.name()));
        }
    }
    let error = kernel("auto-sse9").unwrap_err();
    assert!(error.contains("no instruction set"), "{error}");
}

/// Another motion than MuJoCo's with so few is not passed over in silence.
#[test]
fn iterations_that_a_file_asks_for_are_noted() {
    let noted = |iterations: u32| {
        let mut model = Model::clone(&robot("hopper"));
        model.options.iterations = iterations;
        let physics = worlds(&Arc::new(model), &config("auto"), 1, 1);
        physics.notes().iter().any(|n| n.contains(&format!("iterations=\"{iterations}\"")))
    };
    assert_eq!([1, 4, 8, 100].map(noted), [true, true, false, false]);
}

/// With the option that a task gives it is another motion, of which nothing is said, and no step
/// counts as unsolved.
#[test]
fn a_solver_stops_where_it_is_asked_to() {
    let [whole, one, many] = [None, Some(1), Some(100)].map(|iterations| {
        let mut model = Model::clone(&robot("half_cheetah"));
        model.options.stops_early = iterations.is_some();
        model.options.iterations = iterations.unwrap_or(100);
        let model = Arc::new(model);
        let ids: Vec<usize> = (0..19).collect();
        let mut physics = worlds(&model, &config("auto"), ids.len(), 1);
        assert!(physics.notes().iter().all(|n| !n.contains("iterations")));
        start(&model, &mut physics, &ids);
        run(&model, &mut physics, &ids, 0..20);
        assert!(iterations.is_none() || physics.unsolved().iter().all(|n| *n == 0));
        physics.state().qpos.clone()
    });
    let apart = [difference(&whole, &one), difference(&whole, &many)];
    assert!(apart[0] > 0.05 && apart[1] < apart[0] / 3.0, "{apart:?}");
}
