//! Every number of every step is the same, bit for bit: the device's program has one
//! environment where the host's kernels have a vector of them.

use super::support::{
    Device_, Host_, NOISE, SEED, Setup, actions, agents, due, feature, heap, natives, setup,
};
use crate::support::share;
use ostler_sim::config::{
    ActionKind, CriticCopy, Delay, DelayConfig, DelaySteps, GroupOptions, Iterations, JointLimit,
    MotionFile, NoiseKind, ObservationGroup, ObservationTerm, Spread, Stack, TaskConfig,
};
use ostler_sim::env::on_device::program;
use ostler_sim::model::{Keyframe, Model};
use ostler_sim::rng::{Purpose, fill_normal, normal_pair, philox};
use std::sync::Arc;

/// Steps both and compares all they write, and then their statistics. Returns how many
/// episodes ended and how many environments broke; nothing of a program that is proved.
fn compare(
    name: &str,
    s: &Setup,
    steps: u64,
    spread: bool,
    edit: impl Fn(u64, &mut [f32]),
) -> Option<(u64, u64)> {
    if !due(name, s, false) {
        return None;
    }
    let mut counted = (0, 0);
    let (mut host, mut device) = (Host_::new(s), Device_::new(s, false));
    host.reset(spread);
    device.reset(spread);
    let width = host.env.spec().action.width();
    for t in 0..steps {
        let mut a = actions(host.env.spec().rows(), width, t, 0.7);
        edit(t, &mut a);
        if t % 50 == 0 {
            host.env.begin_rollout();
            device.env.begin_rollout(None).unwrap();
        }
        host.step(&a);
        device.step(&mut a, None);
        for ((what, x), (_, y)) in host.rows.all().iter().zip(device.rows.all()) {
            let wrong = x.iter().zip(y).position(|(x, y)| x.to_bits() != y.to_bits());
            assert_eq!(wrong, None, "{name}: {what} in step {t}");
        }
        assert_eq!(host.rows.final_slot, device.rows.final_slot, "{name}, {t}");
        if t % 50 == 49 {
            let (a, b) = (host.stats(), device.stats());
            counted = (counted.0 + a.episodes, counted.1 + a.broken());
            let counts = |s: &ostler_sim::EpisodeStats| {
                let faults = (s.faults.clone(), s.causes.clone(), s.breaks.clone());
                let ends = (s.episodes, s.terminations.clone(), s.final_overflow);
                (faults, ends, s.shortfalls, [s.starts, s.start_tries, s.starts_gave_up])
            };
            assert_eq!(counts(&a), counts(&b), "{name}, after step {t}");
            assert_eq!(a.suspects, b.suspects, "{name}, after step {t}");
            let sums = |s: &ostler_sim::EpisodeStats| {
                let mut all = vec![s.return_sum, s.length_sum];
                all.extend(&s.reward_sums);
                all.extend(&s.metric_sums);
                all.extend(&s.agent_return_sums);
                all
            };
            for (x, y) in sums(&a).into_iter().zip(sums(&b)) {
                assert!((x - y).abs() <= 1e-9 * x.abs().max(1.0), "{name}: {x} {y}");
            }
            assert_eq!(a.finished, b.finished, "{name}, after step {t}");
        }
    }
    Some(counted)
}

#[test]
fn every_shipped_task_has_the_hosts_bits() {
    for (name, envs) in SHIPPED {
        let steps = if envs < 33 { 50 } else { 300 };
        compare(name, &setup(name, envs), steps, true, |_, _| {});
    }
}

/// Shipped tasks, each with as many environments as are compared.
const SHIPPED: [(&str, usize); 9] = [
    ("cartpole", 33),
    ("double_pendulum", 33),
    ("hopper", 33),
    ("half_cheetah", 33),
    ("half_cheetah_legs", 33),
    ("spread", 33),
    ("ant", 33),
    ("quadruped", 33),
    ("ant_sumo", 9),
];

/// Sensors of forces and several agents; rows of constraints, ball joints with friction,
/// elliptic cones, activations in Runge-Kutta steps, trees that touch each other, shapes
/// that are tested one by one.
#[test]
fn the_bits_are_the_hosts_whatever_a_robot_has() {
    let mut all = vec![("agents".to_string(), agents(7, true))];
    let features = [
        "sensor_force_elliptic",
        "integrator_implicitfast_scene",
        "disable_gravity",
        "integrator_implicit_joints",
        "sensor_force",
        "tendon_spatial_sites",
    ];
    // Each is a program to be compiled.
    let part = share::of(features.len(), "features", 2);
    for (i, name) in features.iter().enumerate() {
        let s = feature(name, 7);
        if due(name, &s, false) && i < part {
            all.push((name.to_string(), s));
        }
    }
    let mut keys = feature("activation_early", 7);
    let model = Arc::make_mut(&mut keys.model);
    model.keyframes = [0.75, -0.5].map(|act| key(model, act)).into();
    let target = toml::from_str("target = \"keyframe([\\\"*\\\"])\"");
    keys.task.reset.push(target.unwrap());
    all.push(("activations of keyframes".to_string(), keys));
    for (name, s) in all {
        compare(&name, &s, 50, true, |_, _| {});
    }
}

/// A keyframe in the initial pose that has this activation in all actuators.
fn key(model: &Model, act: f64) -> Keyframe {
    Keyframe {
        name: act.to_string(),
        qpos: model.qpos0.clone(),
        qvel: vec![0.0; model.nv],
        act: vec![act; model.na],
        ctrl: vec![0.0; model.nu()],
        moves_mocap: false,
    }
}

/// Numbers of the robot that differ between environments, what follows from them, pushes and
/// forces.
#[test]
fn events_have_the_hosts_bits() {
    let mut s = setup("quadruped", 33);
    s.env.episode_length_s = 0.4;
    let text = r#"
[[event]]
name = "friction"
when = "startup"
set = "friction(foot_*)"
range = [[0.3, 1.5], [0.005, 0.05], [1e-4, 1e-3]]
distribution = "log_uniform"
[[event]]
name = "body"
when = "reset"
set = "pseudo_inertia(trunk, thigh_*)"
range = { alpha = [-0.1, 0.1], d = [-0.1, 0.1], s = [-0.05, 0.05], t = [-0.02, 0.02] }
[[event]]
name = "offset"
when = "reset"
set = "joint_offset(*)"
operation = "add"
range = [-0.05, 0.05]
[[event]]
name = "joints"
when = "startup"
set = "damping(*)"
distribution = "choice"
choices = [0.1, 0.5]
[[event]]
name = "gust"
when = "interval"
interval_s = [0.05, 0.3]
duration_s = [0.02, 0.1]
set = "wrench(trunk)"
distribution = "normal"
mean = 0.0
std = 5.0
[[event]]
name = "push"
when = "interval"
interval_s = [0.1, 0.2]
set = "vel(trunk)"
operation = "add"
range = [-0.4, 0.4]
[[event]]
name = "start"
when = "reset"
set = "vel(trunk)[0:2]"
operation = "add"
range = [-0.4, 0.4]
"#;
    let events: ostler_sim::config::TaskConfig = toml::from_str(text).unwrap();
    s.task.event = events.event;
    see(
        &mut s.task,
        "concat(event.friction, event.body, event.push, event.gust, mass, com_offset(trunk), \
         inertia(trunk), friction(\"foot_*\"), damping, joint_offset, external_force(trunk), com, \
         com_vel)",
    );
    let counted = compare("events", &s, 100, true, |_, _| {});
    assert!(counted.is_none_or(|(episodes, _)| episodes > 33), "{counted:?}");
}

/// Ground in levels, what is scanned of it, starts that read it.
#[test]
fn terrains_have_the_hosts_bits() {
    let mut s = setup("quadruped", 33);
    s.env.episode_length_s = 0.4;
    let text = r#"
robot = ""
[terrain]
levels = 4
columns = 5
up = "norm(lin_vel(trunk)) > 0.4"
down = "norm(lin_vel(trunk)) < 0.3"
kinds = [{ kind = "stairs" }, { kind = "rough" }, { kind = "wave" }, { kind = "boxes" }, { kind = "slope" }]
[[observation]]
name = "ground"
expr = "concat(height_scan(trunk, [0.8, 0.4], 0.1), ray_scan(trunk, [3, 2], [-1, 1], [-1, 0.2]), terrain_height(pos(foot_fl)), terrain_normal(pos(trunk)), terrain_origin, terrain_level)"
noise = 0.1
delay = [0, 2]
history = 2
[[reset]]
target = "pos(trunk)"
expr = "[uniform(-3, 3), uniform(-3, 3), pos(trunk).z]"
[[reset]]
target = "pos(trunk)"
expr = "[pos(trunk).xy - terrain_origin.xy, terrain_height(pos(trunk)) - terrain_origin.z + 0.35]"
"#;
    let more: TaskConfig = toml::from_str(text).unwrap();
    s.task.terrain = more.terrain;
    s.task.observation.extend(more.observation);
    s.task.reset.extend(more.reset);
    let counted = compare("terrain", &s, 100, true, |_, _| {});
    assert!(counted.is_none_or(|(episodes, _)| episodes > 33), "{counted:?}");
}

/// Clips that are followed on ground with levels, one of which goes round; starts where others
/// failed.
#[test]
fn references_have_the_hosts_bits() {
    let mut s = setup("quadruped", 33);
    s.env.episode_length_s = 0.8;
    let text = r#"
robot = ""
terrain = { levels = 2, columns = 2, kinds = [{ kind = "rough" }] }
[[reference]]
files = ["a.csv"]
fps = 30
start = "adaptive"
[[reference]]
files = ["b.csv"]
weight = 3
fps = 40
start = "adaptive"
loop = true
[[observation]]
name = "reference"
expr = "[motion.joint_pos, ahead(0.07, motion.joint_vel), motion.pos(trunk), ahead(0.013, motion.quat(trunk)), motion.lin_vel(foot_body), motion.ang_vel(trunk)]"
history = 2
[[termination]]
name = "far"
expr = "norm(motion.joint_pos - joint_pos()) > 1.5"
[[reset]]
target = "joint_pos(*)"
expr = "motion.joint_pos"
[[reset]]
target = "pos(trunk)"
expr = "motion.pos(trunk)"
[[reset]]
target = "quat(trunk)"
expr = "motion.quat(trunk)"
"#;
    let more: TaskConfig = toml::from_str(&text.replace("foot_body", "calf_fl")).unwrap();
    let clip = |name: &str, frames: usize| {
        let frame = |k: usize| {
            let (t, half) = (k as f64 * 0.03, k as f64 * 0.02);
            let joints: Vec<String> = (0..12)
                .map(|j| {
                    let middle = [0.0, 0.9, -1.8][j % 3];
                    (middle + 0.1 * (6.0 * t + j as f64).sin()).to_string()
                })
                .collect();
            format!("{t},0,0.3,0,0,{},{},{}\n", half.sin(), half.cos(), joints.join(","))
        };
        let text: String = (0..frames).map(frame).collect();
        vec![MotionFile::new(name, text.into_bytes())]
    };
    s.task.terrain = more.terrain;
    s.task.reference = more.reference;
    s.task.motion_files = vec![clip("a.csv", 40), clip("b.csv", 20)];
    s.task.observation.extend(more.observation);
    s.task.termination.extend(more.termination);
    s.task.reset.extend(more.reset);
    let counted = compare("reference", &s, 150, true, |_, _| {});
    assert!(counted.is_none_or(|(episodes, _)| episodes > 33), "{counted:?}");
}

/// Readings of contacts: of a robot with itself and with the floor, of subtrees, counted over
/// physics steps.
#[test]
fn contacts_have_the_hosts_bits() {
    let mut s = setup("quadruped", 33);
    s.env.episode_length_s = 0.6;
    let text = r#"
[[contact]]
geoms = ["foot_*", "calf_*", "thigh_*"]
conaffinity = 1
[[observation]]
name = "contacts"
group = "critic"
expr = """
[contact_force(subtree(trunk), subtree(trunk)), net_contact_force("foot_*", floor), contact_pos("foot_*", floor),
 contact_normal("calf_*"), substeps(contact_force("foot_*", floor) > 5), 1 * contact_force(subtree(hip_fl), [floor, subtree(hip_fr)]),
 substeps(contact(trunk, world))]"""
[[event]]
name = "push"
when = "interval"
interval_s = [0.1, 0.3]
set = "vel(trunk)"
operation = "add"
range = [-0.3, 0.3]
"#;
    let more: TaskConfig = toml::from_str(text).unwrap();
    s.task.contact = more.contact;
    s.task.event = more.event;
    s.task.observation.extend(more.observation);
    let counted = compare("contacts", &s, 100, true, |_, _| {});
    assert!(counted.is_none_or(|(episodes, _)| episodes > 33), "{counted:?}");
}

/// Another observation.
fn see(task: &mut TaskConfig, expr: &str) {
    let text = format!("[[observation]]\nname = \"privileged\"\nexpr = '{expr}'");
    let more: TaskConfig = toml::from_str(&format!("robot = \"\"\n{text}")).unwrap();
    task.observation.extend(more.observation);
}

/// Environments that events break, and the events that are suspected of it; fewer than are
/// examined between two looks at the statistics.
#[test]
fn breaks_after_events_are_counted_as_on_the_host() {
    let mut s = setup("quadruped", 33);
    let text = r#"
robot = ""
[[event]]
name = "heavy"
when = "startup"
set = "gravity[2]"
distribution = "choice"
choices = [-9.0, -9.1, -9.2, -9.3, -9.4, -9.5, -9.6, -9.7, -9.8, -9.9, -10.0, 2e5]
[[event]]
name = "blow"
when = "interval"
interval_s = [0.2, 0.6]
set = "vel(trunk)[2]"
distribution = "choice"
choices = [0.0, 0.1, 5e3]
[[event]]
name = "twist"
when = "reset"
set = "vel(trunk)[3]"
distribution = "choice"
choices = [0.0, 0.0, 0.0, 3e3]
"#;
    let events: TaskConfig = toml::from_str(text).unwrap();
    s.task.event = events.event;
    see(&mut s.task, "concat(event.heavy, event.blow, event.twist)");
    let counted = compare("explosive events", &s, 150, false, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken > 100), "{counted:?}");
}

/// Motors of all laws, late by a number of physics steps that every episode draws.
#[test]
fn motors_have_the_hosts_bits() {
    let folder = tempfile::tempdir().unwrap();
    let mut s = setup("quadruped", 33);
    s.env.episode_length_s = 0.4;
    for (name, tensors) in [
        ("mlp", &[("0.weight", [16, 6]), ("2.weight", [1, 16])][..]),
        ("lstm", &[("weight_ih_l0", [32, 2]), ("weight_hh_l0", [32, 8]), ("out.weight", [1, 8])]),
    ] {
        let numbers = |count: usize| -> Vec<u8> {
            let each = (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 120.0);
            each.flat_map(f32::to_le_bytes).collect()
        };
        let data: Vec<_> = tensors
            .iter()
            .map(|(name, shape)| (*name, shape.to_vec(), numbers(shape[0] * shape[1])))
            .collect();
        let views = data.iter().map(|(name, shape, bytes)| {
            let kind = safetensors::tensor::Dtype::F32;
            let view = safetensors::tensor::TensorView::new(kind, shape.clone(), bytes);
            (*name, view.unwrap())
        });
        let bytes = safetensors::serialize(views, None).unwrap();
        std::fs::write(folder.path().join(format!("{name}.safetensors")), bytes).unwrap();
    }
    let text = r#"
[[actuator]]
joints = ["hip_*"]
model = "mlp"
delay = [0, 3]
effort_limit = 20.0
network = { file = "mlp.safetensors", activation = "elu", history = [0, 1, 4], effort_scale = 10.0 }
[[actuator]]
joints = ["thigh_*"]
model = "lstm"
delay = { steps = [1, 2], redraw = 1 }
saturation_effort = 30.0
velocity_limit = 20.0
network = { file = "lstm.safetensors", effort_scale = 20.0 }
[[actuator]]
joints = ["calf_*"]
model = "dc_motor"
stiffness = 25.0
damping = 0.6
saturation_effort = 30.0
velocity_limit = 20.0
delay = { steps = [0, 6], redraw = 3, hold = 0.3 }
[[event]]
name = "gains"
when = "reset"
set = "kp(calf_*)"
operation = "scale"
range = [0.7, 1.3]
"#;
    let task: ostler_sim::config::TaskConfig = toml::from_str(text).unwrap();
    // Networks lie beside the robot's file.
    let model = Arc::make_mut(&mut s.model);
    model.sources[0] = folder.path().join("quadruped.xml");
    s.task.actuator = task.actuator;
    s.task.event = task.event;
    let counted = compare("motors", &s, 100, true, |_, _| {});
    assert!(counted.is_none_or(|(episodes, _)| episodes > 33), "{counted:?}");
}

/// Where contacts couple more than can be written out, it is factored in loops.
#[test]
fn what_is_too_long_to_be_written_out_is_solved_in_loops() {
    let s = heap(7);
    let program = program(&s.model, &s.sim, &s.env, &s.task, false).unwrap();
    assert!(!program.text.contains("straight::solve_coupled"));
    let counted = compare("heap", &s, 100, true, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken == 0), "{counted:?}");
}

#[test]
fn the_policys_random_numbers_are_the_collectors() {
    let s = setup("cartpole", 5);
    let mut device = Device_::new(&s, false);
    device.reset(false);
    device.step(&mut [0.0; 5], Some(7));
    for (env, row) in device.rows.noise.chunks(NOISE).enumerate() {
        for (block, four) in row.chunks(4).enumerate() {
            let w = philox(SEED, env as u32, Purpose::ActionNoise, 7, block as u32);
            let (a, b) = normal_pair(w[0], w[1]);
            let (c, d) = normal_pair(w[2], w[3]);
            assert_eq!(four, &[a, b, c, d][..four.len()]);
        }
    }
}

/// `[[sim.limit]]`, one entry each: joints, `max_speed`, `max_position`.
fn limits(of: &[(&str, Option<f64>, Option<f64>)]) -> Vec<JointLimit> {
    let limit = of.iter().map(|&(joints, max_speed, max_position)| JointLimit {
        joints: vec![joints.into()],
        max_speed,
        max_position,
    });
    limit.collect()
}

#[test]
fn normal_noise_has_the_hosts_bits() {
    for (name, several) in [("ant", false), ("agents", true)] {
        let mut s = match several {
            true => agents(9, true),
            false => setup(name, 9),
        };
        // A number for each component, and a solver that stops early.
        let sized =
            "name = \"sized\"\nexpr = \"[1, 2, 3]\"\ncritic = { noise = { each = [0, 1, 2] } }";
        s.task.observation.push(toml::from_str(sized).unwrap());
        s.task.option.iterations = Some(Iterations::N(1));
        // Both kinds in one row, and an entry that does not begin a draw of four.
        for (i, term) in s.task.observation.iter_mut().enumerate() {
            if term.group == ObservationGroup::Policy {
                term.noise = 0.1.into();
                term.noise_kind = [NoiseKind::Normal, NoiseKind::Uniform][i % 2];
            }
        }
        let last = s.task.observation.last_mut().unwrap();
        last.noise = Spread::Each(vec![0.5, 0.0, 0.25]);
        last.noise_kind = NoiseKind::Normal;
        assert!(s.task.observation.len() > 1);
        compare(name, &s, 60, true, |_, _| {});
    }
}

/// Noise, biases, delays and histories of policies, critics and other groups.
#[test]
fn what_is_seen_late_and_with_errors_has_the_hosts_bits() {
    let sight = |i: usize| -> ObservationTerm {
        let keys = [
            "noise = { uniform = [-0.1, 0.3] }\nbias = [-0.1, 0.2]\nhistory = 3",
            "noise = { normal = 0.1 }\ndelay = { steps = [0, 3], redraw = 2, hold = 0.3 }",
            "bias = { normal = 0.2 }\ndelay = [1, 2]\nhistory = 2",
            "noise = { draw = { distribution = \"beta\", range = [-0.1, 0.2], mean = 0, std = 0.05 } }\nbias = { draw = { distribution = \"truncated_normal\", range = [0.1, 0.2], std = 0.05 } }",
        ];
        toml::from_str(&format!("name = \"s\"\nexpr = \"1\"\n{}", keys[i % 4])).unwrap()
    };
    for (name, several) in [("cartpole", false), ("agents", true)] {
        let mut s = match several {
            true => agents(9, true),
            false => setup(name, 9),
        };
        if !several {
            let one = s.task.observation[0].clone();
            let more = ["policy", "policy", "critic"].iter().zip(["a", "b", "c"]);
            s.task.observation.extend(more.map(|(group, name)| ObservationTerm {
                name: name.into(),
                group: ObservationGroup::from(group.to_string()),
                ..one.clone()
            }));
        }
        for (i, term) in s.task.action.iter_mut().enumerate() {
            let steps = DelaySteps::Range([0, 3]);
            term.delay =
                Some(Delay::Table(DelayConfig { steps, redraw: i as u32, hold: 0.2 * i as f64 }));
        }
        for (i, term) in s.task.observation.iter_mut().enumerate() {
            let seen = sight(i);
            (term.noise, term.bias) = (seen.noise, seen.bias);
            (term.delay, term.history) = (seen.delay, seen.history);
            if term.group == ObservationGroup::Policy {
                let copy = sight(i + 1);
                term.critic = Some(CriticCopy {
                    noise: Some(copy.noise),
                    bias: copy.bias,
                    delay: copy.delay,
                    history: copy.history,
                    ..CriticCopy::default()
                });
            }
        }
        compare(name, &s, 60, true, |_, _| {});
        // Step by step.
        s.task.observation.iter_mut().for_each(|t| {
            t.history = None;
            t.critic = None;
        });
        for group in ["policy", "critic"] {
            let options = GroupOptions { history: Some(4), stack: Stack::Time };
            s.task.observations.insert(group.into(), options);
        }
        compare(&format!("{name}, by steps"), &s, 60, true, |_, _| {});
    }
}

/// Every distribution of commands, velocities, and ways to start.
#[test]
fn commands_and_starts_have_the_hosts_bits() {
    let commands = r#"
[[command]]
name = "log"
range = [[0.5, 2], [1, 3]]
distribution = "log_uniform"
resample_s = [0.05, 0.2]
resample_when = "norm(action_rate) > 2.5"
[[command]]
name = "normal"
mean = [1, 2, 3]
std = [0.5, 0.1, 0]
range = [[0.8, 1.2], [-9, 9], [0, 9]]
distribution = "normal"
resample_s = 0.1
[[command]]
name = "exponential"
mean = [0.5]
distribution = "exponential"
resample_when = "command.exponential > 1"
[[command]]
name = "cut"
range = [[0.2, 1], [3, 4]]
mean = [0.3, 0]
std = [0.2, 1]
distribution = "truncated_normal"
resample_s = 0.05
[[command]]
name = "hump"
range = [[0, 1], [-1, 1]]
mean = [0.3, 0.1]
std = [0.4, 0.1]
distribution = "beta"
resample_s = [0.03, 0.1]
[[command]]
name = "flag"
probability = [0.3, 0.7]
distribution = "bernoulli"
resample_s = 0.05
[[command]]
name = "gait"
choices = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
weights = [1, 2, 0.5]
distribution = "choice"
resample_s = [0.05, 0.1]
[[command]]
name = "twist"
kind = "velocity"
lin_vel_x = [-1, 1]
lin_vel_y = [-0.5, 0.5]
ang_vel_z = [-0.7, 0.7]
heading = { share = 0.6, stiffness = 0.5 }
standing = 0.1
forward = 0.2
world = 0.3
deadband = 0.2
resample_s = 0.2
resample_when = "norm(1 * command.twist.xy - lin_vel_body(torso).xy) > 0.8"
[[command]]
name = "slow"
kind = "velocity"
ang_vel_z = [-0.1, 0.1]
resample_s = 0.07
[[reset]]
target = "quat(torso)"
[[reset]]
target = "rpy(torso)"
uniform = [[-0.1, 0.1], [-0.2, 0.2], [-3, 3]]
[[reset]]
target = "pitch(torso)"
normal = 0.1
[[reset]]
target = "pos(torso)"
log_uniform = [[0.1, 0.2], [0.1, 1], [0.5, 0.6]]
[[reset]]
target = "joint_pos(hip_1)"
choice = [[0.1], [0.2], [-0.3]]
[[reset]]
target = "joint_pos(hip_*)"
scale = [0.5, 1.5]
[[reset]]
target = "joint_pos(ankle_*)"
within_limits = 0.8
[[reset]]
target = "joint_pos(hip_*)"
uniform = [-2, 2]
within_limits = 0.9
[[reset]]
target = "lin_vel(torso)"
normal = [0.1, 0.2, 0]
[let]
side = "uniform(-1, 1)"
"from(x)" = "x * uniform(0.5, 1)"
[[state]]
name = "side"
init = "[side, previous(height(torso)) * normal(1, 0.1)]"
update = "0.9 * state.side"
[[reset]]
target = "lin_vel(torso)"
expr = "rotate(quat_yaw(quat(torso)), [command.twist.xy, 0]) + from(lin_vel(torso))"
uniform = [-0.1, 0.1]
[[reset]]
target = "joint_vel(hip_*)"
expr = "1 * side * joint_pos(\"hip_*\") + choice(1, -1) * from(1 * command.slow.z)"
[[reset]]
target = "pos(torso)"
expr = "[from(1 * side), 0.1 * com.y, 0.8 - 0.1 * min(height(\"*\"))]"
normal = [0, 0.01, 0.02]
[[reset]]
target = "yaw(torso)"
expr = "bernoulli(0.3) ? side : atan2(qvel[1], qvel[0])"
[start]
until = ["upright(torso) > 0.2", "norm(command.twist.xy - lin_vel(torso).xy) < log_uniform(0.2, 2)"]
tries = 5
[[event]]
name = "strength"
when = "reset"
set = "gain(*)"
operation = "scale"
range = [0.5, 1.5]
"#;
    let mut s = setup("ant", 9);
    let keys: TaskConfig = toml::from_str(&format!("robot = \"\"\n{commands}")).unwrap();
    (s.task.command, s.task.reset) = (keys.command, keys.reset);
    (s.task.lets, s.task.state, s.task.start) = (keys.lets, keys.state, keys.start);
    s.task.event = keys.event;
    s.task.action[0].kind = ActionKind::Increment;
    let seen = &mut s.task.observation[0].expr;
    *seen = format!("[{seen}, command, state.side, gain(), ctrl]");
    s.env.episode_length_s = 0.5;
    let counted = compare("commands", &s, 150, true, |_, _| {});
    assert!(counted.is_none_or(|(episodes, _)| episodes > 30), "{counted:?}");
}

#[test]
fn environments_break_for_the_same_causes() {
    // The policy's outputs are no numbers now and then.
    let holes = |t: u64, a: &mut [f32]| {
        if t.is_multiple_of(17) {
            a[(t as usize * 7) % 20] = f32::NAN;
        }
        if t.is_multiple_of(23) {
            a[(t as usize * 3) % 20] = f32::INFINITY;
        }
    };
    compare("actions", &setup("hopper", 9), 200, true, holes);

    // Limits of the physics.
    let mut s = setup("hopper", 9);
    s.sim.max_speed = 8.0;
    compare("speed", &s, 200, true, |_, _| {});
    let mut s = setup("cartpole", 9);
    s.sim.max_position = 0.02;
    compare("position", &s, 100, true, |_, _| {});

    // Limits of single joints: lower than the robot's, and higher.
    let mut s = setup("hopper", 9);
    s.sim.limit = limits(&[("leg*", Some(3.0), None), ("foot", None, Some(0.3))]);
    let counted = compare("a joint's limit", &s, 200, true, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken > 0), "{counted:?}");
    let mut s = setup("hopper", 9);
    s.sim.max_speed = 8.0;
    s.sim.limit = limits(&[("*", Some(1e3), None)]);
    let counted = compare("limits above the robot's", &s, 200, true, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken == 0), "{counted:?}");

    // Terms of the task.
    let mut s = setup("cartpole", 9);
    s.task.reward[0].expr = "log((0.05 - abs(joint_pos(slider))) / 0.05)".into();
    compare("reward", &s, 150, false, |_, _| {});
    let mut s = setup("cartpole", 9);
    s.task.rewards.max_abs = Some(0.99);
    s.task.reward[0].expr = "1 - abs(joint_vel(slider)) / 2".into();
    compare("absurd reward", &s, 150, false, |_, _| {});
    let mut s = setup("cartpole", 9);
    s.task.observation[0].expr = "sqrt(0.1 - joint_vel(slider) / 1)".into();
    compare("observation", &s, 150, false, |_, _| {});
    // A state whose value before the step broke the reward, and is another one after it.
    let mut s = setup("cartpole", 9);
    s.task.state = vec![
        toml::from_str("name = \"n\"\ninit = \"0\"\nupdate = \"state.n > 19 ? 0 : state.n + 1\"")
            .unwrap(),
    ];
    s.task.reward[0].expr = "1 / (12 - state.n)".into();
    let counted = compare("a state", &s, 150, false, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken > 0), "{counted:?}");
}

#[test]
fn several_agents_have_the_hosts_bits() {
    for centralized in [false, true] {
        let s = agents(33, centralized);
        let counted = compare(&format!("agents, {centralized}"), &s, 300, true, |_, _| {});
        assert!(counted.is_none_or(|(ended, broken)| ended > 100 && broken == 0), "{counted:?}");
    }
    // Padding of blue's rows may be anything; a number of its own may not.
    let s = agents(9, true);
    let holes = |t: u64, a: &mut [f32]| {
        a.chunks_mut(6).for_each(|world| world[3] = f32::NAN);
        if t.is_multiple_of(17) {
            a[(t as usize * 6 + 2) % 54] = f32::NAN;
        }
    };
    let counted = compare("an agent's actions", &s, 200, true, holes);
    assert!(counted.is_none_or(|(_, broken)| broken > 0), "{counted:?}");
    let mut s = agents(9, false);
    s.task.reward[0].expr = "log((0.25 - joint_pos({agent}_x)) / 0.25)".into();
    let counted = compare("an agent's reward", &s, 150, false, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken > 0), "{counted:?}");
    let mut s = agents(9, false);
    s.task.rewards.max_abs = Some(0.6);
    let counted = compare("an agent's sum", &s, 150, false, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken > 0), "{counted:?}");
    let mut s = agents(9, true);
    s.task.observation[1].expr = "sqrt(others(joint_pos({other}_x)) + 0.25)".into();
    let counted = compare("an agent's observation", &s, 150, false, |_, _| {});
    assert!(counted.is_none_or(|(_, broken)| broken > 0), "{counted:?}");
}

#[test]
fn the_policys_random_numbers_are_those_of_rows() {
    let s = agents(5, false);
    let mut device = Device_::new(&s, false);
    device.reset(false);
    device.step(&mut [0.0; 30], Some(7));
    let mut expected = vec![0.0; 15 * NOISE];
    fill_normal(SEED, 0..15, Purpose::ActionNoise, 7, NOISE, &mut expected);
    assert_eq!(device.rows.noise, expected);
}

/// Functions of a header: what they see, draw, remember and break, and what begins with them.
#[test]
fn native_functions_have_the_hosts_bits() {
    let s = natives(70);
    let counted = compare("natives", &s, 150, true, |_, _| {});
    assert!(counted.is_none_or(|(ended, broken)| ended > 20 && broken > 5), "{counted:?}");
}
