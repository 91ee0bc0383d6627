//! Every function against formulas written out in f64, on random states.

use super::fixture::{MAX_STEPS, STEP_DT, World};
use super::view::{V3, View, apply, column, cross, each, flag, matrix, norm, sub, transpose};
use super::{fields, shapes};
use crate::expr::looks::LookOf;
use crate::expr::{Function, functions};
use ostler_model::ContactReading;
use std::f64::consts::PI;

pub type Formula = fn(&View<'_>) -> Vec<f64>;

// World 0, torso 1, foot_1 2, foot_2 3, tail-tip 4; geoms floor, belly, back,
// foot_1, foot_2; qpos: 7 of the free joint, hip_1, hip_2, rail; qvel: 6, then those.
const GOLDEN: &[(&str, Formula)] = &[
    ("pi * 2", |_| vec![2.0 * PI]),
    ("min(2, inf)", |_| vec![2.0]),
    ("qpos", |v| v.q(0..10)),
    ("qpos[-3:]", |v| v.q(7..10)),
    ("qvel[1:4]", |v| v.dq(1..4)),
    ("joint_pos", |v| v.q(7..10)),
    ("joint_pos(hip_2, \"hip_1\")", |v| vec![v.q(8..9)[0], v.q(7..8)[0]]),
    ("joint_pos_rel()", |v| vec![v.q(7..8)[0] - 0.25, v.q(8..9)[0], v.q(9..10)[0]]),
    ("joint_vel(\"*hip*\")", |v| v.dq(6..8)),
    ("max(joint_limit_lower() - joint_pos(), 0)", |v| {
        let q = v.q(7..10);
        vec![(-0.5 - q[0]).max(0.0), (-0.6 - q[1]).max(0.0), 0.0]
    }),
    ("max(joint_pos() - joint_limit_upper(), 0)", |v| {
        let q = v.q(7..10);
        vec![(q[0] - 0.7).max(0.0), (q[1] - 0.8).max(0.0), 0.0]
    }),
    ("joint_limit_excess(0.5)", |v| {
        let q = v.q(7..10);
        // 0.3 and 0.35 about 0.1; `rail` has no limits.
        vec![((q[0] - 0.1).abs() - 0.3).max(0.0), ((q[1] - 0.1).abs() - 0.35).max(0.0), 0.0]
    }),
    ("joint_limit_excess(0.1 * 2, hip_2)", |v| vec![((v.q(8..9)[0] - 0.1).abs() - 0.14).max(0.0)]),
    ("joint_acc([rail, hip_1])", |v| {
        let a = v.rows(&v.w.state.qacc, 6..9);
        vec![a[2], a[0]]
    }),
    ("sensor(pad, imu_acc)", |v| {
        let s = v.rows(&v.w.state.sensordata, 0..4);
        vec![s[3], s[0].clamp(-9.0, 9.0), s[1].clamp(-9.0, 9.0), s[2].clamp(-9.0, 9.0)]
    }),
    ("actuator_force([push, motor_1])", |v| {
        let f = v.rows(&v.w.state.actuator_force, 0..3);
        vec![f[2], f[0]]
    }),
    ("activation()", |v| v.rows(&v.w.state.act, 0..1)),
    ("activation(push) + 1", |v| vec![v.rows(&v.w.state.act, 0..1)[0] + 1.0]),
    ("ctrl", |v| v.rows(&v.w.ctrl, 0..3)),
    ("action", |v| v.action()),
    ("last_action[1]", |v| vec![v.last_action()[1]]),
    ("action_rate", |v| v.action().iter().zip(v.last_action()).map(|(a, b)| a - b).collect()),
    ("time", |v| vec![f64::from(v.w.step[v.e]) * f64::from(STEP_DT)]),
    ("step_count + 1", |v| vec![f64::from(v.w.step[v.e]) + 1.0]),
    ("step_dt", |_| vec![f64::from(STEP_DT)]),
    ("episode_progress", |v| vec![f64::from(v.w.step[v.e]) / f64::from(MAX_STEPS)]),
    ("gravity", |_| vec![0.0, 0.0, -9.81]),
    ("mass", |_| vec![6.5]),
    ("mass(torso, \"foot_*\")", |_| vec![4.0, 1.0, 1.0]),
    ("command.twist", |v| v.command()[..3].to_vec()),
    ("command.xy", |v| v.command()[..2].to_vec()),
    ("command.heading", |v| v.command()[3..].to_vec()),
    ("param.width - param.target", |_| vec![1.25]),
    ("pos(torso).zx", |v| vec![v.pos(1)[2], v.pos(1)[0]]),
    ("pos(\"foot_*\")", |v| [v.pos(2), v.pos(3)].concat()),
    ("pos(imu)", |v| v.point(1, [0.2, 0.1, 0.05]).to_vec()),
    ("pos(mark)", |_| vec![1.0, 2.0, 3.0]),
    // The body, the geom.
    ("pos(geom(foot_1))", |v| v.point(2, [0.0, 0.0, -0.3]).to_vec()),
    ("height([geom(\"foot_*\"), body(foot_1), site(imu)])", |v| {
        let geoms = [2, 3].map(|body| v.point(body, [0.0, 0.0, -0.3])[2]);
        vec![geoms[0], geoms[1], v.pos(2)[2], v.point(1, [0.2, 0.1, 0.05])[2]]
    }),
    ("pos(belly)", |v| v.point(1, [0.0, 0.0, -0.1]).to_vec()),
    ("height(\"tail-tip\")", |v| vec![v.pos(4)[2]]),
    ("quat(torso)", |v| v.quat(1).to_vec()),
    ("[quat(torso).w, quat(torso).x]", |v| v.quat(1)[..2].to_vec()),
    // MuJoCo's convention: world from site = world from body times body from site.
    ("rotate(quat(imu), [1, 2, 3])", |v| {
        let own = apply(matrix([0.5; 4]), [1.0, 2.0, 3.0]);
        apply(v.mat(1), own).to_vec()
    }),
    ("lin_vel(foot_1)", |v| v.vel(2).to_vec()),
    ("lin_vel(imu)", |v| v.point_vel(1, [0.2, 0.1, 0.05]).to_vec()),
    ("ang_vel(foot_2)", |v| v.omega(3).to_vec()),
    ("lin_vel_body(torso)", |v| apply(transpose(v.mat(1)), v.vel(1)).to_vec()),
    ("ang_vel_body(torso)", |v| apply(transpose(v.mat(1)), v.omega(1)).to_vec()),
    // The sensor's site is turned by 120 degrees about (1, 1, 1).
    ("sensor(imu_gyro)", |v| {
        let own = matrix([0.5; 4]);
        apply(transpose(own), apply(transpose(v.mat(1)), v.omega(1))).to_vec()
    }),
    ("sensor(encoder)", |v| v.q(7..8).into_iter().map(|q| q.clamp(-0.3, 0.3)).collect()),
    ("lin_vel_yaw(torso)", |v| {
        let (m, u) = (v.mat(1), v.vel(1));
        let yaw = m[1][0].atan2(m[0][0]);
        let (s, c) = yaw.sin_cos();
        vec![c * u[0] + s * u[1], c * u[1] - s * u[0], u[2]]
    }),
    ("projected_gravity(torso)", |v| apply(transpose(v.mat(1)), [0.0, 0.0, -1.0]).to_vec()),
    ("forward(torso)", |v| column(v.mat(1), 0)),
    ("up(torso)", |v| column(v.mat(1), 2)),
    ("upright(torso)", |v| vec![v.mat(1)[2][2]]),
    ("roll(torso)", |v| vec![v.mat(1)[2][1].atan2(v.mat(1)[2][2])]),
    ("pitch(torso)", |v| vec![(-v.mat(1)[2][0]).asin()]),
    ("yaw(torso)", |v| vec![v.mat(1)[1][0].atan2(v.mat(1)[0][0])]),
    ("com(torso)", |v| v.point(1, [0.1, 0.0, -0.2]).to_vec()),
    ("com", |v| {
        let parts = [
            (4.0, v.point(1, [0.1, 0.0, -0.2])),
            (1.0, v.point(2, [0.0, 0.05, 0.0])),
            (1.0, v.point(3, [0.0, -0.05, 0.0])),
            (0.5, v.pos(4)),
        ];
        (0..3).map(|k| parts.iter().map(|(m, p)| m * p[k]).sum::<f64>() / 6.5).collect()
    }),
    ("com_vel(torso, foot_1)", |v| {
        let (a, b) = (v.point_vel(1, [0.1, 0.0, -0.2]), v.point_vel(2, [0.0, 0.05, 0.0]));
        (0..3).map(|k| (4.0 * a[k] + b[k]) / 5.0).collect()
    }),
    ("distance(mark, torso)", |v| vec![norm(&sub([1.0, 2.0, 3.0], v.pos(1)))]),
    ("contact_force(torso)", |v| vec![v.force(1) + v.force(2)]),
    ("contact_force([belly, \"foot_*\"])", |v| vec![v.force(1), v.force(3), v.force(4)]),
    ("contact(\"foot_*\")", |v| vec![flag(v.force(3) > 0.0), flag(v.force(4) > 0.0)]),
    ("contact(\"tail-tip\")", |_| vec![0.0]),
    ("contact_force(\"foot_*\", floor)", |v| {
        let of = |g| v.sensed::<1>(&[g], &[0], ContactReading::Force)[0];
        vec![of(3), of(4)]
    }),
    ("contact_force(subtree(torso), [floor, belly])", |v| {
        v.sensed::<1>(&[1, 2, 3, 4], &[0, 1], ContactReading::Force).to_vec()
    }),
    ("contact(foot_1, subtree(torso))", |v| {
        let force: [f64; 1] = v.sensed(&[3], &[1, 2, 3, 4], ContactReading::Force);
        vec![flag(force[0] > 0.0)]
    }),
    ("net_contact_force(belly)", |v| {
        v.sensed::<3>(&[1], &[0, 1, 2, 3, 4], ContactReading::Net).to_vec()
    }),
    ("contact_pos(foot_1, floor)", |v| {
        let place: [f64; 3] = v.sensed(&[3], &[0], ContactReading::Place);
        let force: [f64; 1] = v.sensed(&[3], &[0], ContactReading::Force);
        let by = if force[0] > 0.0 { force[0] } else { 1.0 };
        place.map(|x| x / by).to_vec()
    }),
    ("contact_normal(foot_1, floor)", |v| {
        let normal: V3 = v.sensed(&[3], &[0], ContactReading::Normal);
        normal.map(|x| x / norm(&normal)).to_vec()
    }),
    ("substeps(contact_force(foot_1, floor) > 10)", |v| {
        v.sensed::<1>(&[3], &[0], ContactReading::Count(10.0)).to_vec()
    }),
    ("contact_time(\"foot_*\", floor)", |v| {
        let of = |g| v.sensed::<1>(&[g], &[0], ContactReading::TimeIn)[0];
        vec![of(3), of(4)]
    }),
    ("air_time(torso)", |v| {
        let all = [0, 1, 2, 3, 4];
        v.sensed::<1>(&[1, 2], &all, ContactReading::TimeOut).to_vec()
    }),
    ("latest(2 * net_contact_force(foot_1, floor))", |v| {
        let force: V3 = v.latest(&[3], &[0], ContactReading::Net, true);
        force.map(|x| 2.0 * x).to_vec()
    }),
    (
        "latest(contact(foot_2)) and not latest(contact_time(foot_2) > contact_force(foot_2) * 1)",
        |v| {
            let all = [0, 1, 2, 3, 4];
            let force: [f64; 1] = v.latest(&[4], &all, ContactReading::Force, true);
            let time: [f64; 1] = v.sensed(&[4], &all, ContactReading::TimeIn);
            vec![flag(force[0] > 0.0 && time[0] <= force[0])]
        },
    ),
    ("substeps([contact(foot_2), contact_force(torso) >= 2])", |v| {
        let all = [0, 1, 2, 3, 4];
        let of = |g: &[usize], above| v.sensed::<1>(g, &all, ContactReading::Count(above))[0];
        vec![of(&[4], 0.0), of(&[1, 2], f64::from(2.0_f32.next_down()))]
    }),
    ("sum(action)", |v| vec![v.action().iter().sum()]),
    ("mean(action)", |v| vec![v.action().iter().sum::<f64>() / 3.0]),
    ("prod(action)", |v| vec![v.action().iter().product()]),
    ("min(action)", |v| vec![v.action().into_iter().fold(f64::MAX, f64::min)]),
    ("max(action)", |v| vec![v.action().into_iter().fold(f64::MIN, f64::max)]),
    ("min(action, 0.1, last_action)", |v| {
        v.action().iter().zip(v.last_action()).map(|(a, b)| a.min(0.1).min(b)).collect()
    }),
    ("max(action, last_action)", |v| {
        v.action().iter().zip(v.last_action()).map(|(a, b)| a.max(b)).collect()
    }),
    ("abs(action)", |v| each(v.action(), f64::abs)),
    ("sqrt(abs(action))", |v| each(v.action(), |x| x.abs().sqrt())),
    ("square(action)", |v| each(v.action(), |x| x * x)),
    ("exp(action)", |v| each(v.action(), f64::exp)),
    ("log(1.5 + action)", |v| each(v.action(), |x| (1.5 + x).ln())),
    ("sin(3 * action)", |v| each(v.action(), |x| (3.0 * x).sin())),
    ("cos(3 * action)", |v| each(v.action(), |x| (3.0 * x).cos())),
    ("tan(action)", |v| each(v.action(), f64::tan)),
    ("asin(action)", |v| each(v.action(), f64::asin)),
    ("acos(action)", |v| each(v.action(), f64::acos)),
    ("atan2(action, last_action)", |v| {
        v.action().iter().zip(v.last_action()).map(|(a, b)| a.atan2(b)).collect()
    }),
    ("tanh(2 * action)", |v| each(v.action(), |x| (2.0 * x).tanh())),
    ("sigmoid(2 * action)", |v| each(v.action(), |x| 1.0 / (1.0 + (-2.0 * x).exp()))),
    ("floor(4 * action)", |v| each(v.action(), |x| (4.0 * x).floor())),
    ("round(4 * action)", |v| each(v.action(), |x| (4.0 * x).round_ties_even())),
    ("sign(action)", |v| each(v.action(), f64::signum)),
    ("clip(action, -0.25, 0.5)", |v| each(v.action(), |x| x.clamp(-0.25, 0.5))),
    ("wrap_angle(9 * action)", |v| each(v.action(), |x| (9.0 * x + PI).rem_euclid(2.0 * PI) - PI)),
    ("norm(qvel)", |v| vec![norm(&v.dq(0..9))]),
    ("norm2(qvel)", |v| vec![norm(&v.dq(0..9)).powi(2)]),
    ("dot(action, last_action)", |v| {
        vec![v.action().iter().zip(v.last_action()).map(|(a, b)| a * b).sum()]
    }),
    ("cross(pos(torso), lin_vel(torso))", |v| cross(v.pos(1), v.vel(1)).to_vec()),
    ("normalize(lin_vel(torso))", |v| {
        let u = v.vel(1).to_vec();
        let n = norm(&u);
        each(u, |x| x / n)
    }),
    ("normalize(0 * lin_vel(torso))", |_| vec![0.0; 3]),
    ("rotate(quat(torso), lin_vel(torso))", |v| apply(v.mat(1), v.vel(1)).to_vec()),
    ("rotate_inv(quat(torso), lin_vel(torso))", |v| apply(transpose(v.mat(1)), v.vel(1)).to_vec()),
    ("exp_kernel(command.xy - lin_vel(torso).xy, 0.5)", |v| {
        let (c, u) = (v.command(), v.vel(1));
        let square = (c[0] - u[0]).powi(2) + (c[1] - u[1]).powi(2);
        vec![(-square / 0.25).exp()]
    }),
    ("tolerance(height(torso), 0.5, 1, 0.6)", |v| {
        let z = v.pos(1)[2];
        let d = (0.5 - z).max(z - 1.0).max(0.0) / 0.6;
        vec![(-0.5 * (d * (-2.0 * 0.1f64.ln()).sqrt()).powi(2)).exp()]
    }),
    ("tolerance(height(torso), -0.5, 1)", |v| vec![flag((-0.5..=1.0).contains(&v.pos(1)[2]))]),
    ("if(action > 0, action, -1)", |v| each(v.action(), |x| if x > 0.0 { x } else { -1.0 })),
    ("contact(foot_1) ? height(torso) : -height(torso)", |v| {
        vec![if v.force(3) > 0.0 { v.pos(1)[2] } else { -v.pos(1)[2] }]
    }),
    ("between(action, -0.5, 0.5)", |v| each(v.action(), |x| flag((-0.5..=0.5).contains(&x)))),
    ("is_finite([action[0], exp(1000), log(-1)])", |_| vec![1.0, 0.0, 0.0]),
    ("all(action > -0.5)", |v| vec![flag(v.action().iter().all(|&x| x > -0.5))]),
    ("any(action > 0.5)", |v| vec![flag(v.action().iter().any(|&x| x > 0.5))]),
    ("concat(action, time)", |v| [v.action(), vec![f64::from(v.w.step[v.e]) * 0.02]].concat()),
    // Operators.
    ("-action[0]^2", |v| vec![-v.action()[0].powi(2)]),
    ("2^-1 + 2^3^2", |_| vec![512.5]),
    ("(1.5 + action)^-3", |v| each(v.action(), |x| (1.5 + x).powi(-3))),
    ("(1.5 + action)^1.7", |v| each(v.action(), |x| (1.5 + x).powf(1.7))),
    ("(1.5 + action)^last_action", |v| {
        v.action().iter().zip(v.last_action()).map(|(a, b)| (1.5 + a).powf(b)).collect()
    }),
    ("8 / 4 / 2 - 1 - 1", |_| vec![-1.0]),
    ("not action[0] > 0 and !(action[1] >= 0) || action[2] != action[2]", |v| {
        vec![flag(v.action()[0] <= 0.0 && v.action()[1] < 0.0)]
    }),
    ("true and not false ? .5 : 1e3", |_| vec![0.5]),
    // Rows of the memory in the order in which these are compiled, equal ones once.
    ("previous(qpos[:2])", |v| v.memory(0..2)),
    ("qpos[0] - previous(qpos[:2]).y", |v| vec![v.q(0..1)[0] - v.memory(1..2)[0]]),
    ("since([contact(foot_1), action[0] > 0])", |v| {
        let held = [v.force(3) > 0.0, v.action()[0] > 0.0];
        let before = v.memory(2..4).into_iter().zip(held);
        let dt = f64::from(STEP_DT);
        before.map(|(x, held)| if held { 0.0 } else { x + dt }).collect()
    }),
    ("previous(not contact(foot_1)) ? qpos[0] : 0", |v| {
        vec![flag(v.memory(4..5)[0] != 0.0) * v.q(0..1)[0]]
    }),
    // The ground, and rows of scans likewise.
    ("motion.pos(torso)", |v| v.motion(LookOf::Pos(1), 0.0)),
    ("motion.quat(torso)", |v| v.motion(LookOf::Quat(1), 0.0)),
    ("ahead(0.1, motion.lin_vel(torso))", |v| v.motion(LookOf::LinVel(1), 5.0)),
    ("ahead(0.03, ahead(0.02, 2 * motion.ang_vel(torso)))", |v| {
        v.motion(LookOf::AngVel(1), 2.5).iter().map(|x| 2.0 * x).collect()
    }),
    ("[motion.joint_pos(hip_1), ahead(0, motion.joint_vel(hip_1))]", |v| {
        let hip = v.w.model.joints.iter().find(|j| j.name == "hip_1").unwrap();
        let of = [LookOf::JointPos(hip.qpos_adr), LookOf::JointVel(hip.dof_adr)];
        of.map(|of| v.motion(of, 0.0)).concat()
    }),
    ("terrain_height(pos(torso))", |v| vec![v.ground().height(v.pos(1)[0], v.pos(1)[1])]),
    ("terrain_normal(pos(foot_1).xy)", |v| v.ground().normal(v.pos(2)[0], v.pos(2)[1]).to_vec()),
    ("terrain_origin.zx", |v| vec![v.rows(&v.w.stand, 2..3)[0], v.rows(&v.w.stand, 0..1)[0]]),
    ("terrain_level + 1", |v| each(v.rows(&v.w.stand, 3..4), |x| x + 1.0)),
    ("height_scan(torso, [0.2, 0.1], 0.1)", |v| v.rows(&v.w.scan, 0..6)),
    ("ray_scan(torso, [2, 1], [-0.5, 0.5], [0, 0])", |v| v.rows(&v.w.scan, 6..8)),
    ("height_scan(torso, [0.2, 0.1], 0.1)[1]", |v| v.rows(&v.w.scan, 1..2)),
    // Rows of the random numbers likewise.
    ("uniform([-1, 2], 3)", |v| {
        let u = v.random(0..2);
        vec![-1.0 + 4.0 * u[0], 2.0 + u[1]]
    }),
    ("log_uniform(0.1, 10)", |v| vec![0.1 * 100f64.powf(v.random(2..3)[0])]),
    ("normal(qpos[0], 0.5) - normal(0, 2)", |v| {
        let z = v.random(3..5);
        vec![v.q(0..1)[0] + 0.5 * z[0] - 2.0 * z[1]]
    }),
    ("[bernoulli([0.25, 0.75]), bernoulli(0)]", |v| {
        let u = v.random(5..7);
        vec![flag(u[0] < 0.25), flag(u[1] < 0.75), 0.0]
    }),
    ("choice([1, 2], [qpos[0], 4], 5)", |v| {
        let all = [[1.0, 2.0], [v.q(0..1)[0], 4.0], [5.0, 5.0]];
        all[(v.random(8..9)[0] * 3.0) as usize].to_vec()
    }),
    ("random_quat", |v| {
        let u = v.random(9..12);
        let [a, b] = [2.0 * PI * u[1], 2.0 * PI * u[2]];
        let [long, short] = [(1.0 - u[0]).sqrt(), u[0].sqrt()];
        vec![long * a.sin(), long * a.cos(), short * b.sin(), short * b.cos()]
    }),
    // Their parameters are in the table of draws.
    ("truncated_normal(0.5, 0.25, [0, 0.25], 1)", |v| v.random(12..14)),
    ("2 * beta(0.5, 0.25, 0, 1)", |v| vec![2.0 * v.random(14..15)[0]]),
];

#[test]
fn every_function_equals_its_formula_in_f64() {
    let world = World::new(101, 7);
    for &(text, formula) in GOLDEN.iter().chain(shapes::GOLDEN) {
        for (e, row) in world.eval(text).iter().enumerate() {
            let expected = formula(&View { w: &world, e });
            assert_eq!(row.len(), expected.len(), "{text}");
            for (got, want) in row.iter().zip(&expected) {
                let got = f64::from(*got);
                let near = (got - want).abs() <= 3e-5 * (1.0 + want.abs());
                assert!(near, "{text}, environment {e}: {row:?}, expected {expected:?}");
            }
        }
    }
}

#[test]
fn no_function_is_without_a_formula() {
    // Those of several agents need some: sim/tests/env/agents.
    let others = |f: &&Function| !["each", "others", "agent_index", "agent_id"].contains(&f.name);
    for f in functions::all().filter(others) {
        let mut all = GOLDEN.iter().chain(shapes::GOLDEN).chain(fields::GOLDEN);
        let used = all.any(|(text, _)| {
            text.match_indices(f.name).any(|(at, _)| {
                let word = |c: char| c.is_alphanumeric() || c == '_';
                !text[..at].ends_with(word) && !text[at + f.name.len()..].starts_with(word)
            })
        });
        assert!(used, "{}", f.name);
    }
}
