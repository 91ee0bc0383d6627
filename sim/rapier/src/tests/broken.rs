//! Worlds whose insides are damaged on purpose.

use super::super::sets::Sets;
use super::super::step::{Shared, World};
use super::super::{build, settle};
use super::robots::walker;
use crate::kinematics::Kinematics;
use ostler_engine::config::SimConfig;
use ostler_engine::physics::{Limits, fault};

/// Damages a world, steps it, resets it, and compares it with a fresh one.
fn damage(harm: impl Fn(&mut Sets)) -> u32 {
    let model = walker();
    let (layout, mut pristine) = build::build(&model, &SimConfig::default(), 0.005).unwrap();
    settle(&layout, &mut pristine);
    let kinematics = Kinematics::new(&model);
    let shared = Shared {
        layout: &layout,
        kinematics: &kinematics,
        pristine: &pristine,
        limits: &Limits::of(&SimConfig::default(), &model).unwrap(),
    };
    let initial: Vec<f32> = model.qpos0.iter().map(|x| *x as f32).collect();
    let start = |world: &mut World, broken: bool| {
        world.scratch.qpos.copy_from_slice(&initial);
        world.scratch.qvel.fill(0.1);
        assert_eq!(world.reset(&shared, &initial, broken), 0);
    };
    let mut world = World::new(&model, &pristine);
    start(&mut world, false);
    for _ in 0..40 {
        assert_eq!(world.advance(&shared, 2), 0);
    }
    harm(&mut world.sets);
    let bits = world.advance(&shared, 2);

    let mut fresh = World::new(&model, &pristine);
    start(&mut world, true);
    start(&mut fresh, false);
    for _ in 0..40 {
        assert_eq!(world.advance(&shared, 2), 0);
        assert_eq!(fresh.advance(&shared, 2), 0);
        assert_eq!(world.scratch.qpos, fresh.scratch.qpos);
        assert_eq!(world.scratch.qvel, fresh.scratch.qvel);
        assert_eq!(world.scratch.contact, fresh.scratch.contact);
    }
    bits
}

#[test]
fn a_panic_inside_the_engine_breaks_one_world_until_its_reset() {
    // A body goes behind the engine's back: the multibody still refers to it.
    let bits = damage(|sets| {
        sets.bodies = rapier3d::prelude::RigidBodySet::new();
    });
    assert_eq!(bits, fault::ENGINE);
}

#[test]
fn a_quarantined_body_breaks_the_world_until_its_reset() {
    let bits = damage(|sets| {
        let handles: Vec<_> = sets.bodies.iter().map(|(h, _)| h).collect();
        for h in handles {
            let body = sets.bodies.get_mut(h).unwrap();
            body.set_linvel(rapier3d::math::Vector::new(f32::NAN, 0.0, 0.0), true);
        }
    });
    assert_eq!(bits, fault::ENGINE);
}

#[test]
fn a_velocity_that_is_not_finite_breaks_the_world_until_its_reset() {
    let bits = damage(|sets| {
        let handles: Vec<_> = sets.bodies.iter().map(|(h, _)| h).collect();
        for h in handles {
            let Some(id) = sets.multibody_joints.rigid_body_link(h).copied() else {
                continue;
            };
            let multibody = sets.multibody_joints.get_multibody_mut_internal(id.multibody).unwrap();
            multibody.generalized_velocity_mut().fill(f32::NAN);
        }
    });
    assert_ne!(bits & (fault::NON_FINITE | fault::ENGINE), 0);
}

#[test]
fn a_reset_to_numbers_that_are_not_finite_is_a_fault_and_leaks_nothing() {
    let model = walker();
    let mut w = super::worlds(model.clone(), 2, 1);
    let mut qpos = w.state().qpos.clone();
    qpos[3] = f32::NAN;
    w.reset(&[1, 1], &qpos, &vec![0.0; model.nv * 2]);
    assert_eq!(w.state().fault, [0, fault::NON_FINITE]);
    assert!(w.state().qpos.iter().chain(&w.state().body_pos).all(|x| x.is_finite()));
}

#[test]
fn the_coordinate_that_broke_a_world_is_found() {
    use ostler_engine::physics::Part;
    let model = walker();
    let ids: Vec<usize> = (0..4).collect();
    let fresh = || {
        let mut w = super::worlds(model.clone(), 4, 2);
        w.reset(&[1; 4], &super::poses(&model, &ids), &vec![0.0; model.nv * 4]);
        for t in 0..20 {
            w.step(&super::controls(&ids, model.nu(), t), 2);
        }
        w
    };
    let mut well = fresh();
    well.step(&vec![0.1; model.nu() * 4], 2);
    for joint in &model.joints {
        let (q, v) = (joint.qpos_adr, joint.dof_adr);
        for (part, value, want) in [
            (Part::Qvel(v), f32::NAN, fault::NON_FINITE | fault::ENGINE),
            (Part::Qvel(v), f32::INFINITY, fault::NON_FINITE | fault::ENGINE),
            (Part::Qpos(q), f32::NAN, fault::NON_FINITE | fault::ENGINE),
        ] {
            let mut w = fresh();
            w.poke(2, part, value);
            let ctrl = vec![0.1; model.nu() * 4];
            w.step(&ctrl, 2);
            assert_ne!(w.state().fault[2] & want, 0, "{} {part:?}", joint.name);
            assert_eq!(w.state().fault.iter().filter(|f| **f != 0).count(), 1);
            let found = w.diagnose(2, &ctrl, 2).unwrap();
            let of = match found.part {
                Part::Qpos(i) => (joint.qpos_adr..joint.qpos_adr + joint.kind.nq()).contains(&i),
                Part::Qvel(i) => (joint.dof_adr..joint.dof_adr + joint.kind.nv()).contains(&i),
                _ => false,
            };
            assert!(of, "{} {part:?} {value}: {found:?}", joint.name);
            for e in [0, 1, 3] {
                assert_eq!(super::bits(w.state(), e), super::bits(well.state(), e));
            }
            let before = w.state().qpos.clone();
            w.reset(&[0, 0, 1, 0], &before, &vec![0.0; model.nv * 4]);
            w.step(&ctrl, 2);
            assert_eq!(w.state().fault, [0; 4], "a reset mends it");
        }
    }
    let mut w = fresh();
    w.poke(1, Part::Qvel(0), 5e3);
    w.step(&vec![0.0; model.nu() * 4], 1);
    assert_eq!(w.state().fault[1], fault::SPEED);
    let found = w.diagnose(1, &vec![0.0; model.nu() * 4], 1).unwrap();
    assert!(matches!(found.part, Part::BodySpeed(_)) && found.value > 1e3, "{found:?}");
}

#[test]
fn a_model_that_makes_rapier_panic_is_refused() {
    let text = r#"<mujoco><worldbody>
        <geom type="cylinder" size="18446744073709551615 0.45"/>
        <body pos="0 0 0.8"><freejoint/><geom type="cylinder" size="0.2 0.15"/></body>
    </worldbody></mujoco>"#;
    let path = std::path::Path::new("r.xml");
    let model = std::sync::Arc::new(ostler_model::mjcf::parse(path, text.into()).unwrap());
    let pool = std::sync::Arc::new(ostler_engine::physics::pool::Pool::new(1).unwrap());
    let refused = super::super::new(&model, &SimConfig::default(), 1, &pool);
    let why = refused.err().unwrap().to_string();
    assert!(why.contains("it fails on its first step"), "{why}");
}
