//! Worlds beside each other.

use super::common::{bits, config, feature, hulls, robot, run, start, worlds};
use ostler_sim::config::SimConfig;
use ostler_sim::physics::native::InstructionSet;
use ostler_sim::physics::{Part, Physics, fault};

/// Robots with contacts within one branch, across branches, and Runge-Kutta.
const ROBOTS: [&str; 4] = ["hopper", "half_cheetah", "ant", "quadruped"];
/// Sensors of accelerations and forces, of contacts kept by body and by Jacobians.
const SENSING: [&str; 3] = ["sensor_touch", "sensor_force", "sensor_planar"];

fn generic_kernels() -> Vec<String> {
    [InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512]
        .into_iter()
        .filter(|set| set.is_available())
        .map(|set| format!("generic-{}", set.name()))
        .collect()
}

#[test]
fn a_world_has_the_same_bits_beside_any_others() {
    for kernel in generic_kernels() {
        let sensing = SENSING.map(|name| (name, feature(name)));
        // Where a search for a plane between meshes begins is kept from one world to the next.
        let hulls = [("hulls", hulls())];
        let robots = ROBOTS.map(|n| (n, robot(n)));
        for (name, model) in robots.into_iter().chain(sensing).chain(hulls) {
            let many: Vec<usize> = (0..37).collect();
            let mut batch = worlds(&model, &config(&kernel), many.len(), 2);
            start(&model, &mut batch, &many);
            run(&model, &mut batch, &many, 0..60);
            for ids in [vec![0], vec![36, 20, 3]] {
                let mut few = worlds(&model, &config(&kernel), ids.len(), 1);
                start(&model, &mut few, &ids);
                run(&model, &mut few, &ids, 0..60);
                for (e, id) in ids.iter().enumerate() {
                    assert_eq!(bits(&few, e), bits(&batch, *id), "{kernel} {name} world {id}");
                }
            }
            let moved = (0..37).filter(|e| {
                batch.state().contact_force.iter().skip(*e).step_by(37).any(|f| *f > 0.0)
            });
            assert!(moved.count() > 5, "{name}: contacts took part in this test");
        }
    }
}

#[test]
fn what_only_a_step_measures_is_zero_where_an_episode_begins() {
    let model = feature("sensor_planar");
    let ids: Vec<usize> = (0..11).collect();
    let mut batch = worlds(&model, &config("auto"), ids.len(), 1);
    start(&model, &mut batch, &ids);
    run(&model, &mut batch, &ids, 0..60);
    let measured = |batch: &dyn Physics, e: usize| {
        let s = batch.state();
        let parts = [&s.contact_force, &s.actuator_force, &s.qacc, &s.sensordata];
        parts.map(|p| p.iter().skip(e).step_by(11).any(|x| *x != 0.0))
    };
    let touching = (0..11).find(|e| measured(&batch, *e) == [true; 4]).unwrap();
    let state = batch.state();
    let (qpos, qvel) = (state.qpos.clone(), state.qvel.clone());
    let mut mask = vec![0; 11];
    mask[touching] = 1;
    let other = bits(&batch, (touching + 1) % 11);
    batch.reset(&mask, &qpos, &qvel);
    assert_eq!(measured(&batch, touching), [false; 4]);
    assert_eq!(bits(&batch, (touching + 1) % 11), other);
}

#[test]
fn worlds_have_the_same_bits_on_any_number_of_threads() {
    let model = robot("ant");
    let ids: Vec<usize> = (0..100).collect();
    let of = |threads| {
        let mut batch = worlds(&model, &config("auto"), ids.len(), threads);
        start(&model, &mut batch, &ids);
        run(&model, &mut batch, &ids, 0..40);
        ids.iter().map(|e| bits(&batch, *e)).collect::<Vec<_>>()
    };
    let one = of(1);
    assert_eq!(one, of(2));
    assert_eq!(one, of(3));
}

#[test]
fn a_broken_world_is_flagged_stays_as_it_was_and_breaks_nobody() {
    for kernel in generic_kernels() {
        let model = robot("ant");
        let ids: Vec<usize> = (0..20).collect();
        let (n, nu) = (ids.len(), model.nu());
        let mut whole = worlds(&model, &config(&kernel), n, 1);
        let mut broken = worlds(&model, &config(&kernel), n, 1);
        for physics in [&mut whole, &mut broken] {
            start(&model, physics, &ids);
        }
        let mut qvel = whole.state().qvel.clone();
        qvel[3 * n + 5] = f32::NAN;
        qvel[6] = f32::INFINITY;
        let qpos = broken.state().qpos.clone();
        let mut mask = vec![0; n];
        (mask[5], mask[6]) = (1, 1);
        broken.reset(&mask, &qpos, &qvel);
        let mut ctrl = vec![0.25; nu * n];
        whole.step(&ctrl, 4);
        // World 7 is asked for what cannot be; it counts as zero and is told.
        ctrl[2 * n + 7] = f32::NAN;
        broken.step(&ctrl, 4);
        for e in (0..n).filter(|e| ![5, 6, 7].contains(e)) {
            assert_eq!(bits(&whole, e), bits(&broken, e), "{kernel} world {e}");
        }
        let s = broken.state();
        assert_eq!(s.fault[5], fault::NON_FINITE);
        assert_eq!(s.fault[6], fault::NON_FINITE);
        assert_eq!(s.fault[7], fault::CONTROL);
        assert!(bits(&broken, 7).iter().all(|b| f32::from_bits(*b).is_finite()));
        let before = bits(&broken, 5);
        broken.step(&vec![0.1; nu * n], 4);
        assert_eq!(bits(&broken, 5), before, "a broken world waits");
    }
}

#[test]
fn absurd_states_and_controls_end_and_are_flagged() {
    let model = robot("quadruped");
    let n = 8;
    let mut physics = worlds(&model, &config("auto"), n, 1);
    for scale in [1e3_f32, 1e8, 1e20, 1e38] {
        let qpos: Vec<f32> = (0..model.nq * n).map(|i| scale * ((i % 7) as f32 - 3.0)).collect();
        let qvel: Vec<f32> = (0..model.nv * n).map(|i| scale * ((i % 5) as f32 - 2.0)).collect();
        physics.reset(&vec![1; n], &qpos, &qvel);
        physics.step(&vec![scale; model.nu() * n], 20);
        physics.step(&vec![-scale; model.nu() * n], 20);
        let s = physics.state();
        assert!(s.fault.iter().all(|f| *f != 0), "{scale:e}: {:?}", s.fault);
    }
}

#[test]
fn a_restored_snapshot_goes_on_with_the_same_bits() {
    let model = robot("hopper");
    let ids: Vec<usize> = (0..11).collect();
    let mut one = worlds(&model, &config("auto"), ids.len(), 1);
    start(&model, &mut one, &ids);
    run(&model, &mut one, &ids, 0..30);
    let mut blob = Vec::new();
    one.capture(&mut blob).unwrap();
    run(&model, &mut one, &ids, 30..60);
    let mut other = worlds(&model, &config("auto"), ids.len(), 2);
    other.restore(&blob).unwrap();
    run(&model, &mut other, &ids, 30..60);
    for e in 0..ids.len() {
        assert_eq!(bits(&one, e), bits(&other, e));
    }
    let good = bits(&other, 0);
    // Whose it is, the version, the robot.
    for at in [0, 9, 14, 45] {
        let mut damaged = blob.clone();
        damaged[at] ^= 1;
        assert!(other.restore(&damaged).is_err(), "byte {at}");
    }
    for at in [0, 9, 45, blob.len() / 2, blob.len() - 1] {
        assert!(other.restore(&blob[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(bits(&other, 0), good, "a refused snapshot changes nothing");
    let ant = robot("ant");
    assert!(worlds(&ant, &config("auto"), 11, 1).restore(&blob).is_err());
}

#[test]
fn worlds_that_another_number_takes_over_go_on_with_the_same_bits() {
    let model = robot("ant");
    for kernel in generic_kernels() {
        let ids: Vec<usize> = (0..37).collect();
        let mut whole = worlds(&model, &config(&kernel), ids.len(), 1);
        start(&model, &mut whole, &ids);
        run(&model, &mut whole, &ids, 0..20);
        let mut kept = Vec::new();
        whole.capture(&mut kept).unwrap();
        run(&model, &mut whole, &ids, 20..50);
        for n in [1, 18, 37, 53] {
            let mut other = worlds(&model, &config(&kernel), n, 2);
            // The world's past does not matter.
            other.step(&vec![0.5; model.nu() * n], 2);
            assert_eq!(other.restore_range(&kept, 0).unwrap(), n.min(37));
            let ids: Vec<usize> = (0..n).collect();
            run(&model, &mut other, &ids, 20..50);
            for e in 0..n.min(37) {
                assert_eq!(bits(&whole, e), bits(&other, e), "{kernel} {n} world {e}");
            }
        }
        let mut other = worlds(&model, &config(&kernel), 18, 1);
        let before = bits(&other, 3);
        assert!(other.restore(&kept).is_err());
        assert!(other.restore_range(&kept[..kept.len() - 1], 0).is_err());
        assert_eq!(bits(&other, 3), before, "a refused snapshot changes nothing");
    }
}

#[test]
fn the_joint_that_broke_a_world_is_found() {
    let model = robot("ant");
    let (n, nu) = (11, model.nu());
    let ids: Vec<usize> = (0..n).collect();
    for kernel in generic_kernels() {
        for dof in [0, 6, 9, 13] {
            let evidence = |value: f32, max_speed: f64| {
                let config = SimConfig { max_speed, ..config(&kernel) };
                let mut physics = worlds(&model, &config, n, 2);
                start(&model, &mut physics, &ids);
                run(&model, &mut physics, &ids, 0..3);
                physics.poke(4, Part::Qvel(dof), value);
                let ctrl = vec![0.25; nu * n];
                physics.step(&ctrl, 4);
                let broken: Vec<usize> =
                    (0..n).filter(|e| physics.state().fault[*e] != 0).collect();
                assert_eq!(broken, [4], "{kernel} {dof}");
                let found = physics.diagnose(4, &ctrl, 4).unwrap();
                (physics.state().fault[4], found)
            };
            let (bits, found) = evidence(f32::NAN, 1e9);
            assert_eq!(bits, fault::NON_FINITE);
            assert_eq!(found.part, Part::Qvel(dof));
            assert!(found.value.is_nan());
            // Finite when the step begins: the kernel leaves the world as it was, and
            // what broke shows only when the step is taken again.
            let (bits, found) = evidence(1e25, 1e9);
            assert_eq!(bits, fault::NON_FINITE);
            assert_eq!(found.part, Part::Qvel(dof), "{kernel} {found:?}");
            assert!(found.value.is_nan() || found.value.abs() >= 1e30);
            if dof == 0 {
                // A hinge would be slower again after the step.
                let (bits, found) = evidence(500.0, 100.0);
                assert_eq!(bits, fault::SPEED);
                assert_eq!(found.part, Part::Qvel(0));
                assert!(found.value > 100.0, "{found:?}");
            }
        }
    }
}
