//! The world as tasks see it, beside MuJoCo's worlds: every array of `State` after a time step
//! from the same states.

mod terrain;
mod urdf;

use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::model::{ContactReading, ContactSensor, Model, mjcf};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, State, fault, native};
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::worlds::MuJoCoWorlds;
use ostler_sim::rng::{self, Purpose};
use ostler_sim::{BatchEnv, Groups, StepOut};
use std::path::Path;
use std::sync::Arc;

const WORLDS: usize = 8;
const STEPS: usize = 30;

fn robot(name: &str) -> Arc<Model> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let ours = root.join(format!("configs/robots/{name}.xml"));
    let path = match ours.exists() {
        true => ours,
        false => root.join(format!("tests/referee/features/{name}.xml")),
    };
    let mut model = mjcf::load(&path).unwrap();
    model.contact_sensors = sensors(&model);
    Arc::new(model)
}

/// All readings of contacts between sets of geoms: of one another, and of all.
fn sensors(model: &Model) -> Vec<ContactSensor> {
    let all: Vec<usize> = (0..model.geoms.len()).collect();
    let every = |by: usize, rest: usize| -> Vec<usize> {
        all.iter().copied().filter(|g| g % by == rest).collect()
    };
    let sets = [
        (all.clone(), all.clone()),
        (all[1..].to_vec(), all.clone()),
        (all.clone(), vec![0]),
        (every(2, 0), every(2, 1)),
        (every(3, 1), every(3, 2)),
        (all[all.len() - 1..].to_vec(), all.clone()),
    ];
    let readings = [
        ContactReading::Force,
        ContactReading::Net,
        ContactReading::Place,
        ContactReading::Normal,
        ContactReading::Count(0.0),
        ContactReading::Count(3.0),
        ContactReading::TimeIn,
        ContactReading::TimeOut,
    ];
    let summed = [true, true, true, true, false, false, false, false];
    let each = |(of, with): (Vec<usize>, Vec<usize>)| {
        let sensor =
            |reads, last| ContactSensor { of: of.clone(), with: with.clone(), reads, last };
        let last = readings.into_iter().zip(summed).filter(|(_, s)| *s);
        let last = last.map(|(reads, _)| sensor(reads, true));
        let all = readings.map(|reads| sensor(reads, false));
        all.into_iter().chain(last).collect::<Vec<_>>()
    };
    sets.into_iter().flat_map(each).collect()
}

/// A number in -1..1 that depends on what it is for alone.
fn draw(world: usize, step: usize, k: usize) -> f32 {
    let bits = rng::philox(11, world as u32, Purpose::Reset, step as u64, k as u32);
    2.0 * rng::unit(bits[0]) - 1.0
}

fn pair(model: &Arc<Model>) -> Option<(native::NativePhysics, MuJoCoWorlds)> {
    let python = crate::support::referee::referee_python()?;
    let config = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let pool = Arc::new(Pool::new(1).unwrap());
    let ours = native::new(model, &config, WORLDS, &pool).unwrap();
    let mujoco = MuJoCo::start(Some(&python)).unwrap();
    let theirs = MuJoCoWorlds::new(mujoco, model, WORLDS, &config).unwrap();
    Some((ours, theirs))
}

/// The arrays by name.
fn arrays(s: &State) -> [(&'static str, &Vec<f32>); 13] {
    let names = [
        "qpos",
        "qvel",
        "body_pos",
        "body_quat",
        "body_lin_vel",
        "body_ang_vel",
        "contact_force",
        "actuator_force",
        "qacc",
        "sensordata",
        "contact_data",
        "varied",
        "act",
    ];
    let mut named = names.into_iter();
    s.floats().map(|b| (named.next().unwrap(), b))
}

fn compare(name: &str, step: usize, ours: &State, theirs: &State) -> bool {
    let mut touching = false;
    for ((array, a), (_, b)) in arrays(ours).into_iter().zip(arrays(theirs)) {
        let scale = b.iter().fold(1.0_f32, |m, x| m.max(x.abs()));
        for (i, (x, y)) in a.iter().zip(b).enumerate() {
            // A quaternion and its negative are the same orientation.
            let same = |y: f32| (x - y).abs() <= 2e-4 * scale;
            assert!(
                same(*y) || (array == "body_quat" && same(-y)),
                "{name}, step {step}: {array}[{}] of world {} is {x}, MuJoCo's {y}",
                i / WORLDS,
                i % WORLDS
            );
            touching |= array == "contact_data" && *y > 0.0;
        }
    }
    assert_eq!(ours.fault, theirs.fault, "{name}, step {step}");
    touching
}

/// Steps both from the same states; returns whether anything ever touched.
fn side_by_side(name: &str) -> Option<bool> {
    let model = robot(name);
    let (mut ours, mut theirs) = pair(&model)?;
    let n = WORLDS;
    let mut qpos = ours.state().qpos.clone();
    for (i, q) in qpos.iter_mut().enumerate() {
        *q += 0.05 * draw(i % n, 0, i / n);
    }
    let qvel: Vec<f32> = (0..model.nv * n).map(|i| 0.2 * draw(i % n, 1, i / n)).collect();
    let all = vec![1; n];
    ours.reset(&all, &qpos, &qvel);
    theirs.reset(&all, &qpos, &qvel);
    compare(name, 0, ours.state(), theirs.state());
    let mut touched = false;
    for step in 1..=STEPS {
        let ctrl: Vec<f32> =
            (0..model.nu() * n).map(|i| draw(i % n, 1 + step / 5, i / n)).collect();
        // Sensors are of the last of several time steps.
        let substeps = if step % 5 == 0 { 3 } else { 1 };
        ours.step(&ctrl, substeps);
        theirs.step(&ctrl, substeps);
        touched |= compare(name, step, ours.state(), theirs.state());
        // From the same state again: a difference does not grow.
        let (qpos, qvel) = (theirs.state().qpos.clone(), theirs.state().qvel.clone());
        ours.reset(&all, &qpos, &qvel);
        theirs.reset(&all, &qpos, &qvel);
    }
    Some(touched)
}

#[test]
fn every_array_that_tasks_see_is_mujocos() {
    for name in [
        "cartpole",
        "hopper",
        "half_cheetah",
        "ant",
        "quadruped",
        "sensor_planar",
        "sensor_force_elliptic",
        "sensor_touch",
        // What contact sensors read, of contacts of every dimension and both cones, of a robot
        // with itself, of several trees with each other and with the world on either side.
        "condim_1",
        "condim_1_elliptic",
        "condim_3",
        "condim_3_elliptic",
        "condim_4",
        "condim_4_elliptic",
        "condim_6",
        "condim_6_elliptic",
        "contact_self",
        "contact_pair_elliptic",
        "contact_filter",
        "attach_and_replicate",
        "plane_box",
        "capsule_capsule",
        "integrator_implicitfast_scene",
        "integrator_rk4",
        "muscle",
        "activation_muscle",
    ] {
        let Some(touched) = side_by_side(name) else {
            return;
        };
        let free = ["cartpole", "muscle", "activation_muscle"].contains(&name);
        assert!(touched || free, "{name} never touched anything");
    }
}

#[test]
fn a_world_that_mujoco_breaks_is_flagged_and_starts_anew() {
    let model = robot("hopper");
    let Some((_, mut worlds)) = pair(&model) else {
        return;
    };
    let n = WORLDS;
    let before = worlds.state().clone();
    let mut ctrl = vec![0.0; model.nu() * n];
    ctrl[2] = f32::NAN;
    worlds.step(&ctrl, 1);
    assert_eq!(worlds.state().fault[2], fault::CONTROL);
    assert_ne!(worlds.state().qvel[2], before.qvel[2]);
    let qpos = before.qpos.clone();
    let mut qvel = before.qvel.clone();
    qvel[3] = f32::NAN;
    let mut mask = vec![0; n];
    mask[3] = 1;
    worlds.reset(&mask, &qpos, &qvel);
    assert_eq!(worlds.state().fault[3], fault::NON_FINITE);
    assert!(worlds.state().qvel.iter().all(|v| v.is_finite()));
    qvel[3] = 2e3;
    worlds.reset(&mask, &qpos, &qvel);
    assert_eq!(worlds.state().fault[3], fault::SPEED);
    worlds.reset(&mask, &qpos, &before.qvel);
    worlds.step(&vec![0.0; ctrl.len()], 1);
    assert_eq!(worlds.state().fault[3], 0);
}

#[test]
fn another_robot_in_the_file_is_refused() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let mut model = Arc::unwrap_or_clone(robot("hopper"));
    model.sources = robot("ant").sources.clone();
    let mujoco = MuJoCo::start(Some(&python)).unwrap();
    let error = MuJoCoWorlds::new(mujoco, &Arc::new(model), 2, &SimConfig::default()).err();
    let text = error.unwrap().to_string();
    assert!(text.contains("another robot"), "{text}");
}

/// What crosses goes by number: the names behind the numbers have to be the same.
#[test]
fn another_order_in_the_file_is_refused() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let refused = |change: fn(&mut Model), words: &str| {
        let mut model = Arc::unwrap_or_clone(robot("hopper"));
        change(&mut model);
        let mujoco = MuJoCo::start(Some(&python)).unwrap();
        let error = MuJoCoWorlds::new(mujoco, &Arc::new(model), 2, &SimConfig::default()).err();
        let text = error.unwrap().to_string();
        assert!(text.contains(words), "{words}: {text}");
    };
    refused(
        |m| m.joints[0].name = "rooty".into(),
        "joint 0 is called \"root_x\"; here it is \"rooty\"",
    );
    refused(|m| m.bodies[2].name = "shin".into(), "body 2 is called");
    refused(|m| m.geoms[1].name = "sole".into(), "geom 1 is called");
    refused(|m| m.actuators.swap(0, 1), "actuator 0 is called");
    refused(|m| m.bodies[3].mass *= 1.01, "weighs");
}

/// The same draws, with MuJoCo's fields: falling, pushed and loaded robots go the same way.
#[test]
fn events_are_those_of_our_worlds() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let text = r#"
[[action]]
actuators = ["*"]
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
[[reward]]
name = "alive"
expr = "1"
[[reset]]
target = "keyframe(home)"
[[reset]]
target = "pos(trunk)"
value = [0, 0, 1]
[[event]]
name = "body"
when = "reset"
set = "pseudo_inertia(trunk, thigh_*)"
range = { alpha = [-0.3, 0.3], d = [-0.2, 0.2], s = [-0.1, 0.1], t = [-0.05, 0.05] }
[[event]]
name = "legs"
when = "startup"
set = "mass(calf_*)"
operation = "scale"
range = [0.5, 2.0]
[[event]]
name = "offset"
when = "reset"
set = "joint_offset(*)"
operation = "add"
range = [-0.2, 0.2]
[[event]]
name = "friction"
when = "startup"
set = "friction(foot_*)[0]"
range = [0.1, 1.5]
[[event]]
name = "gust"
when = "interval"
interval_s = 0.06
duration_s = 0.06
set = "wrench(trunk)"
distribution = "normal"
mean = 0.0
std = 20.0
[[event]]
name = "push"
when = "interval"
interval_s = 0.1
set = "vel(trunk)"
operation = "add"
range = [-1.0, 1.0]
"#;
    let task: TaskConfig = toml::from_str(text).unwrap();
    let model = robot("quadruped");
    let env = EnvConfig { num_envs: 4, decimation: 4, episode_length_s: 10.0 };
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let mut ours = BatchEnv::new(Arc::clone(&model), &sim, &env, &task, 3).unwrap();
    let mujoco = MuJoCo::start(Some(&python)).unwrap();
    let worlds = MuJoCoWorlds::new(mujoco, ours.model(), 4, &sim).unwrap();
    let pool = Arc::new(Pool::new(1).unwrap());
    let worlds = Box::new(worlds);
    let mut theirs = BatchEnv::with_physics(model, worlds, pool, &env, &task, 3, 0).unwrap();
    let width = ours.spec().obs.policy;
    let [mut a, mut b] = [vec![0.0_f32; 4 * width], vec![0.0_f32; 4 * width]];
    let mut rest = Rest::new(4);
    for (batch, obs) in [(&mut ours, &mut a), (&mut theirs, &mut b)] {
        let mut obs = Groups { policy: &mut obs[..], critic: None };
        batch.reset(false, &mut obs);
    }
    let actions = vec![0.3_f32; 4 * ours.model().nu()];
    for t in 0..20 {
        for (batch, obs) in [(&mut ours, &mut a), (&mut theirs, &mut b)] {
            rest.step(batch, &actions, obs);
        }
        for (i, (x, y)) in a.iter().zip(&b).enumerate() {
            let off = (x - y).abs() / y.abs().max(1.0);
            assert!(off < 2e-3, "step {t}, {}: {x} here, {y} in MuJoCo", i % width);
        }
    }
}

/// Results of a step that nobody looks at.
struct Rest {
    reward: Vec<f32>,
    flags: [Vec<f32>; 3],
    slots: Vec<i32>,
}

impl Rest {
    fn new(n: usize) -> Self {
        let zero = || vec![0.0; n];
        Self { reward: zero(), flags: [zero(), zero(), zero()], slots: vec![0; n] }
    }

    fn step(&mut self, env: &mut BatchEnv, actions: &[f32], obs: &mut [f32]) {
        let mut none: [f32; 0] = [];
        let [terminated, truncated, valid] = &mut self.flags;
        let mut out = StepOut {
            obs: Groups { policy: obs, critic: None },
            reward: &mut self.reward,
            terminated,
            truncated,
            valid,
            final_obs: Groups { policy: &mut none[..], critic: None },
            final_slot: &mut self.slots,
        };
        env.step(actions, &mut out);
    }
}
