//! Against formulas that can be written down.

use super::robots::{body, cartpole, empty, free_ball, geom, joint, motor, walker};
use super::{worlds, worlds_with};
use ostler_engine::config::SimConfig;
use ostler_engine::physics::{Part, fault};
use ostler_model::{GeomKind, JointKind};

/// Accelerations of a cart (mass M) with a point mass m at distance l on a pole,
/// angle from upright, force F: the textbook's equations.
fn cartpole_accelerations(theta: f64, omega: f64, force: f64) -> [f64; 2] {
    let (m_cart, m, l, g) = (1.0, 0.2, 0.5, 9.81);
    let (s, c) = theta.sin_cos();
    let x = (force + m * l * omega * omega * s - m * g * s * c) / (m_cart + m * s * s);
    [x, (g * s - x * c) / l]
}

#[test]
fn cartpole_accelerates_as_the_textbook_says() {
    let config = SimConfig { dt: 1e-4, ..SimConfig::default() };
    let mut w = worlds_with(cartpole(), 1, 1, &config);
    for (theta, omega, force) in
        [(0.1, 0.0, 0.0), (0.0, 0.0, 3.0), (2.0, -1.5, 1.0), (-0.7, 3.0, -5.0)]
    {
        w.reset(&[1], &[0.3, theta], &[0.2, omega]);
        w.step(&[force], 1);
        let a = [0.2, omega].map(f64::from);
        let want = cartpole_accelerations(theta.into(), omega.into(), force.into());
        for i in 0..2 {
            let got = (f64::from(w.state().qvel[i]) - a[i]) / 1e-4;
            assert!(
                (got - want[i]).abs() < 0.02 * (1.0 + want[i].abs()),
                "{theta} {omega} {force}: {i}: {got} {want:?}"
            );
        }
        assert_eq!(w.state().fault[0], 0);
    }
}

#[test]
fn a_control_that_is_not_finite_counts_as_zero_and_is_reported() {
    let mut w = worlds(cartpole(), 4, 1);
    let start = w.state().qpos.clone();
    w.step(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0], 3);
    let state = w.state();
    for e in 0..3 {
        assert_eq!(state.fault[e], fault::CONTROL);
        assert_eq!(state.qpos[e].to_bits(), state.qpos[3].to_bits());
    }
    assert_eq!(state.fault[3], 0);
    assert_eq!(start.len(), state.qpos.len());
    w.reset(&[1, 0, 0, 0], &start, &[0.0; 8]);
    assert_eq!(w.state().fault, [0, fault::CONTROL, fault::CONTROL, 0]);
}

#[test]
fn controls_and_forces_are_clamped() {
    let mut m = cartpole();
    m.actuators[0].ctrlrange = Some([-2.0, 2.0]);
    m.actuators[0].gain = [3.0, 0.0, 0.0];
    m.actuators[0].gear[0] = 10.0;
    m.actuators[0].forcerange = Some([-100.0, 4.5]);
    let mut w = worlds(m.clone(), 3, 1);
    w.step(&[1e9, 1.0, -1e9], 1);
    assert_eq!(w.state().actuator_force, [4.5, 3.0, -6.0]);
    // actfrcrange limits what reaches the joint, not what is reported.
    m.joints[0].actfrcrange = Some([-1.0, 1.0]);
    let mut clamped = worlds(m, 1, 1);
    let mut weak = worlds(cartpole(), 1, 1);
    clamped.step(&[2.0], 1);
    weak.step(&[1.0], 1);
    assert_eq!(clamped.state().actuator_force, [4.5]);
    assert_eq!(clamped.state().qvel, weak.state().qvel);
}

#[test]
fn a_free_body_falls_and_turns_about_its_centre_of_mass() {
    let mut m = free_ball([0.05, 0.0, 0.02]);
    m.options.gravity = [0.0; 3];
    let mut w = worlds(m, 1, 1);
    // Spinning about z through the centre of mass, which rests.
    let (quat, spin) = ([1.0, 0.0, 0.0, 0.0], 3.0);
    let q = [0.0, 0.0, 1.0, quat[0], quat[1], quat[2], quat[3]];
    w.reset(&[1], &q, &[0.0, -spin * 0.05, 0.0, 0.0, 0.0, spin]);
    for _ in 0..500 {
        w.step(&[], 1);
    }
    let s = w.state();
    assert_eq!(s.fault[0], 0);
    let (angle, half) = (spin, spin / 2.0);
    assert!((s.qpos[3].abs() - half.cos().abs()).abs() < 1e-3);
    // com = origin + R ipos stays at (0.05, 0, 1.02).
    let com_x = s.qpos[0] + 0.05 * angle.cos();
    let com_y = s.qpos[1] + 0.05 * angle.sin();
    assert!((com_x - 0.05).abs() < 1e-3, "{com_x}");
    assert!(com_y.abs() < 1e-3, "{com_y}");
    assert!((s.qpos[2] - 1.0).abs() < 1e-4);
    // Velocities: of the origin in the world, of the body in its own frame.
    assert!((s.qvel[5] - spin).abs() < 1e-3);
    assert!((s.qvel[0] - spin * 0.05 * angle.sin()).abs() < 1e-3);
    assert_eq!(s.body_lin_vel[3..6], s.qvel[0..3]);
}

#[test]
fn a_resting_ball_presses_with_its_weight_and_does_not_sink() {
    let mut w = worlds(free_ball([0.0; 3]), 1, 1);
    w.reset(&[1], &[0.0, 0.0, 0.12, 1.0, 0.0, 0.0, 0.0], &[0.0; 6]);
    for _ in 0..1000 {
        w.step(&[], 1);
    }
    w.step(&[], 8);
    let s = w.state();
    assert!((s.qpos[2] - 0.1).abs() < 1e-3, "height {}", s.qpos[2]);
    for g in 0..2 {
        assert!((s.contact_force[g] - 9.81).abs() < 0.05, "{:?}", s.contact_force);
    }
}

#[test]
fn friction_holds_on_a_gentle_incline_and_slides_on_a_steep_one() {
    // A box that cannot turn, on a floor that is tilted by tilting gravity.
    let slide = |mu: f64, angle: f64| {
        let mut m = empty(0.002);
        geom(&mut m, GeomKind::Plane, [0.0; 3]);
        m.options.gravity = [9.81 * angle.sin(), 0.0, -9.81 * angle.cos()];
        body(&mut m, 0, [0.0, 0.0, 0.1], 1.0, 0.01);
        joint(&mut m, JointKind::Slide, [0.0; 3], [1.0, 0.0, 0.0]);
        joint(&mut m, JointKind::Slide, [0.0; 3], [0.0, 0.0, 1.0]);
        geom(&mut m, GeomKind::Box, [0.1, 0.1, 0.1]);
        // The larger of the two counts.
        m.geoms[0].friction[0] = 0.01;
        m.geoms[1].friction[0] = mu;
        let mut w = worlds(m, 1, 1);
        for _ in 0..500 {
            w.step(&[], 1);
        }
        f64::from(w.state().qpos[0])
    };
    let angle = 0.3_f64;
    assert!(slide(0.5, angle).abs() < 0.01);
    let want = 0.5 * 9.81 * (angle.sin() - 0.1 * angle.cos());
    let got = slide(0.1, angle);
    assert!((got - want).abs() < 0.05 * want, "{got} {want}");
}

#[test]
fn no_damping_is_added_and_gravity_can_be_held() {
    // A pendulum's hinge: rapier would damp it with 0.1 N m s.
    let mut m = empty(0.001);
    body(&mut m, 0, [0.0; 3], 0.01, 1e-4);
    joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 1.0, 0.0]);
    m.options.gravity = [0.0; 3];
    let mut w = worlds(m, 1, 1);
    w.reset(&[1], &[0.0], &[1.0]);
    for _ in 0..1000 {
        w.step(&[], 1);
    }
    assert!((w.state().qvel[0] - 1.0).abs() < 1e-4, "{:?}", w.state().qvel);
    // A motor that holds 1 kg at 0.5 m.
    let mut m = empty(0.002);
    body(&mut m, 0, [0.0; 3], 1.0, 0.01);
    m.bodies[1].ipos = [0.5, 0.0, 0.0];
    let j = joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 1.0, 0.0]);
    motor(&mut m, j, 1.0);
    let mut w = worlds(m, 1, 1);
    for _ in 0..500 {
        w.step(&[-9.81 * 0.5], 1);
    }
    assert!(w.state().qpos[0].abs() < 1e-3, "{:?}", w.state().qpos);
}

#[test]
fn a_stiff_position_servo_is_stable_at_a_coarse_step() {
    let mut m = empty(0.02);
    body(&mut m, 0, [0.0; 3], 0.1, 1e-4);
    let j = joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 0.0, 1.0]);
    motor(&mut m, j, 1.0);
    // kp 100, kv 1 on 1e-4 kg m^2: an explicit servo explodes at 20 ms.
    m.actuators[0].gain = [100.0, 0.0, 0.0];
    m.actuators[0].bias = [0.0, -100.0, -1.0];
    let mut w = worlds(m, 1, 1);
    for _ in 0..50 {
        w.step(&[0.7], 1);
    }
    assert!((w.state().qpos[0] - 0.7).abs() < 1e-3, "{:?}", w.state().qpos);
    assert_eq!(w.state().fault[0], 0);
}

#[test]
fn springs_have_the_right_period_and_rest() {
    let mut m = empty(0.001);
    body(&mut m, 0, [0.0; 3], 1.0, 0.01);
    let j = joint(&mut m, JointKind::Slide, [0.0; 3], [0.0, 1.0, 0.0]);
    m.options.gravity = [0.0; 3];
    m.joints[j].stiffness = 40.0;
    m.joints[j].springref = 0.2;
    m.joints[j].reference = 0.1;
    m.joints[j].armature = 0.5;
    m.qpos0[0] = 0.1;
    let mut w = worlds(m, 1, 1);
    let steps = 300;
    for _ in 0..steps {
        w.step(&[], 1);
    }
    let omega = (40.0_f64 / 1.5).sqrt();
    let want = 0.2 - 0.1 * (omega * 0.001 * f64::from(steps)).cos();
    let got = f64::from(w.state().qpos[0]);
    assert!((got - want).abs() < 2e-3, "{got} {want}");
}

#[test]
fn a_joint_outside_its_range_is_pushed_back_not_teleported() {
    let mut m = empty(0.01);
    m.options.gravity = [0.0; 3];
    body(&mut m, 0, [0.0; 3], 1.0, 0.1);
    let j = joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 1.0, 0.0]);
    m.joints[j].range = Some([-0.5, 0.5]);
    let mut w = worlds(m, 1, 1);
    w.reset(&[1], &[0.8], &[0.0]);
    w.step(&[], 1);
    let first = w.state().qpos[0];
    assert!((0.7..0.8).contains(&first), "{first}");
    for _ in 0..100 {
        w.step(&[], 1);
    }
    assert!(w.state().qpos[0] < 0.51, "{:?}", w.state().qpos);
    // And it holds against a push.
    w.reset(&[1], &[0.4], &[5.0]);
    let mut most = 0.0_f32;
    for _ in 0..100 {
        w.step(&[], 1);
        most = most.max(w.state().qpos[0]);
    }
    assert!(most < 0.6, "{most}");
}

#[test]
fn frictionloss_holds_below_its_limit() {
    let run = |force: f32| {
        let mut m = empty(0.002);
        body(&mut m, 0, [0.0; 3], 1.0, 0.1);
        let j = joint(&mut m, JointKind::Slide, [0.0; 3], [1.0, 0.0, 0.0]);
        m.joints[j].frictionloss = 2.0;
        motor(&mut m, j, 1.0);
        let mut w = worlds(m, 1, 1);
        for _ in 0..500 {
            w.step(&[force], 1);
        }
        w.state().qvel[0]
    };
    assert!(run(1.5).abs() < 0.05, "{}", run(1.5));
    assert!((run(4.0) - 2.0).abs() < 0.1, "{}", run(4.0));
}

#[test]
fn a_planar_root_needs_one_link_and_moves_like_its_joints() {
    // slide x, slide z, hinge y on one body, as in the hopper: gravity pulls along
    // z only, a motor on the hinge turns in place.
    let mut m = empty(0.002);
    body(&mut m, 0, [0.0, 0.0, 1.0], 2.0, 0.1);
    joint(&mut m, JointKind::Slide, [0.0; 3], [1.0, 0.0, 0.0]);
    joint(&mut m, JointKind::Slide, [0.0; 3], [0.0, 0.0, 1.0]);
    let hinge = joint(&mut m, JointKind::Hinge, [0.0; 3], [0.0, 1.0, 0.0]);
    m.joints[1].reference = 1.0;
    m.qpos0[1] = 1.0;
    motor(&mut m, hinge, 1.0);
    let plan = crate::joints::plan(&m).unwrap();
    assert_eq!(plan.links.len(), 1);
    let mut w = worlds(m, 1, 1);
    for _ in 0..100 {
        w.step(&[0.5], 1);
    }
    let s = w.state();
    let t = 0.2_f32;
    assert!(s.qpos[0].abs() < 1e-6);
    assert!((s.qvel[1] + 9.81 * t).abs() < 1e-3, "{:?}", s.qvel);
    assert!((s.qvel[2] - 0.5 / 0.1 * t).abs() < 1e-3, "{:?}", s.qvel);
    assert!((s.body_pos[3 + 2] - s.qpos[1]).abs() < 1e-6);
}

#[test]
fn too_fast_and_too_far_are_reported() {
    let config = SimConfig { max_speed: 20.0, max_position: 30.0, ..SimConfig::default() };
    let mut w = worlds_with(cartpole(), 2, 1, &config);
    w.reset(&[1, 1], &[29.9, 0.0, 0.0, 0.0], &[15.0, 19.0, 0.0, 0.0]);
    assert_eq!(w.state().fault, [0, 0]);
    let before = w.state().qvel[1];
    w.step(&[0.0, 500.0], 1);
    assert_eq!(w.state().fault, [fault::POSITION, fault::SPEED]);
    // The state stays as it was.
    assert_eq!(w.state().qvel[1], before);
    assert_eq!(w.state().qpos[0], 29.9);
}

#[test]
fn a_joint_has_its_own_limit_and_a_body_that_of_what_carries_it() {
    let names: Vec<_> = cartpole().joints.iter().map(|j| j.name.clone()).collect();
    let limit = |joint: usize, max_speed, max_position| ostler_engine::config::JointLimit {
        joints: vec![names[joint].clone()],
        max_speed: Some(max_speed),
        max_position,
    };
    let config = SimConfig {
        max_speed: 20.0,
        limit: vec![limit(0, 5.0, Some(1.0)), limit(1, 1e4, None)],
        ..SimConfig::default()
    };
    let mut w = worlds_with(cartpole(), 3, 1, &config);
    // The pole turns faster than the robot may: it alone is allowed to.
    let qvel = [0.0, 6.0, 0.0, 100.0, 0.0, 0.0];
    w.reset(&[1; 3], &[0.0, 0.0, 1.5, 0.0, 0.0, 0.0], &qvel);
    assert_eq!(w.state().fault, [0, fault::SPEED, fault::POSITION]);
    let found = |env| w.diagnose(env, &[0.0; 3], 1).unwrap().part;
    assert_eq!((found(1), found(2)), (Part::Qvel(0), Part::Qpos(0)));
}

#[test]
fn what_is_not_simulated_is_refused_by_name() {
    let refused = |m: ostler_model::Model| {
        let pool = std::sync::Arc::new(ostler_engine::physics::pool::Pool::new(1).unwrap());
        let made = super::super::new(&std::sync::Arc::new(m), &SimConfig::default(), 1, &pool);
        made.err().unwrap().to_string()
    };
    let mut m = walker();
    m.options.density = 1000.0;
    assert!(refused(m).contains("density"));
    let mut m = cartpole();
    m.bodies[2].mass = 0.0;
    assert!(refused(m).contains("\"body2\" without mass"));
    let mut m = cartpole();
    m.options.timestep = f64::NAN;
    assert!(refused(m).contains("time step"));
}

#[test]
fn contacts_act_from_the_first_step_after_a_reset() {
    let mut w = worlds(free_ball([0.0; 3]), 1, 1);
    // The pristine pose is 1 m up; then again where the pristine pose touches.
    for _ in 0..2 {
        w.reset(&[1], &[0.0, 0.0, 0.0999, 1.0, 0.0, 0.0, 0.0], &[0.0, 0.0, -1.0, 0.0, 0.0, 0.0]);
        w.step(&[], 1);
        assert!(w.state().qvel[2].abs() < 0.05, "{:?}", w.state().qvel);
        assert!(w.state().contact_force[0] > 100.0);
        w.step(&[], 100);
    }
    let mut m = free_ball([0.0; 3]);
    m.bodies[1].pos[2] = 0.0999;
    m.qpos0[2] = 0.0999;
    let mut w = worlds(m, 1, 1);
    w.reset(&[1], &[0.0, 0.0, 0.0999, 1.0, 0.0, 0.0, 0.0], &[0.0, 0.0, -1.0, 0.0, 0.0, 0.0]);
    w.step(&[], 1);
    assert!(w.state().qvel[2].abs() < 0.05, "{:?}", w.state().qvel);
}

/// Kinetic energy that a free chain of four links keeps over ten seconds.
fn energy_kept(dt: f64, iterations: usize) -> f64 {
    let mut m = empty(dt);
    m.options.gravity = [0.0; 3];
    let mut parent = body(&mut m, 0, [0.0, 0.0, 1.0], 1.0, 0.01);
    joint(&mut m, JointKind::Free, [0.0; 3], [0.0, 0.0, 1.0]);
    for axis in [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] {
        parent = body(&mut m, parent, [0.3, 0.0, 0.0], 1.0, 0.01);
        joint(&mut m, JointKind::Hinge, [-0.15, 0.0, 0.0], axis);
    }
    let bodies = m.bodies.clone();
    let mut config = SimConfig::default();
    config.rapier.solver_iterations = iterations;
    let mut w = worlds_with(m, 1, 1, &config);
    // Centres of mass are at the body frames here.
    let energy = |s: &ostler_engine::physics::State| -> f64 {
        (1..bodies.len())
            .map(|b| {
                let square = |v: &[f32]| v.iter().map(|x| f64::from(x * x)).sum::<f64>();
                0.5 * bodies[b].mass * square(&s.body_lin_vel[3 * b..3 * b + 3])
                    + 0.5 * bodies[b].inertia[0] * square(&s.body_ang_vel[3 * b..3 * b + 3])
            })
            .sum()
    };
    let qpos = w.state().qpos.clone();
    w.reset(&[1], &qpos, &[0.3, 0.0, 0.1, 0.5, 1.0, -0.5, 1.5, -1.0, 0.5]);
    let before = energy(w.state());
    for _ in 0..(10.0 / dt) as usize {
        w.step(&[], 1);
    }
    assert_eq!(w.state().fault, [0]);
    energy(w.state()) / before
}

#[test]
fn energy_is_lost_never_made_and_less_with_smaller_steps() {
    let coarse = energy_kept(0.01, 1);
    let fine = energy_kept(0.002, 4);
    println!("kept {coarse} at 10 ms, {fine} at 2 ms with 4 iterations");
    assert!((0.3..1.02).contains(&coarse), "{coarse}");
    assert!((0.9..1.02).contains(&fine), "{fine}");
    assert!(fine > coarse);
}
