//! The robot as its task has it: laws of actuators beside what they are copied from, delays,
//! networks, contacts, options, a floor; mistakes.

use ostler_sim::config::{Auto, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::evaluate::{Evaluation, Precision, States};
use ostler_sim::physics::native::{self, EvalOptions};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, native::NativePhysics};
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::worlds::MuJoCoWorlds;
use ostler_sim::rng::{self, Purpose};
use ostler_sim::{BatchEnv, Groups, StepOut, task};
use std::path::Path;
use std::sync::Arc;

/// Two links in a plane, a slide that hangs beside them; no actuators.
const ARM: &str = r#"<mujoco model="arm">
  <option timestep="0.002" gravity="0 0 -9.81"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04"/>
      <body name="lower" pos="0 0 -0.4">
        <joint name="elbow" axis="0 1 0" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
      </body>
    </body>
    <body name="lift" pos="1 0 0">
      <joint name="lift" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1"/>
    </body>
  </worldbody>
  ACTUATORS
</mujoco>"#;

fn arm(actuators: &str) -> Arc<Model> {
    let text = ARM.replace("ACTUATORS", actuators);
    Arc::new(mjcf::parse(Path::new("arm.xml"), text).unwrap())
}

fn cfg(text: &str) -> TaskConfig {
    toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A number in -1..1 that depends on what it is for alone.
fn draw(world: usize, step: usize, k: usize) -> f64 {
    let bits = rng::philox(29, world as u32, Purpose::Reset, step as u64, k as u32);
    f64::from(2.0 * rng::unit(bits[0]) - 1.0)
}

/// Accelerations and next states, in double precision.
struct Given {
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    ctrl: Vec<f64>,
    count: usize,
}

impl Given {
    fn new(model: &Model, count: usize) -> Self {
        let rows = |k: usize, by: f64, of: usize| -> Vec<f64> {
            let each = (0..count * k).map(|i| by * draw(i / k, of, i % k));
            each.collect()
        };
        Self {
            qpos: rows(model.nq, 1.0, 0),
            qvel: rows(model.nv, 40.0, 1),
            ctrl: rows(model.nu(), 2.0, 2),
            count,
        }
    }

    fn evaluate(&self, model: &Model) -> Evaluation {
        let states =
            States { qpos: &self.qpos, qvel: &self.qvel, ctrl: &self.ctrl, act: &[], varied: &[] };
        native::evaluate(model, &EvalOptions::default(), Precision::F64, &states).unwrap()
    }
}

const PD: &str = r#"
[[actuator]]
joints = ["shoulder", "elbow"]
stiffness = { shoulder = 40.3, elbow = 22.7 }
damping = 1.7
effort_limit = 11.1
[[actuator]]
joints = ["lift"]
stiffness = 300.1
armature = 0.3
friction = 0.2
"#;

/// The same robot with MuJoCo's own servos in its file.
const SERVOS: &str = r#"<actuator>
    <position name="shoulder" joint="shoulder" kp="40.3" kv="1.7" forcerange="-11.1 11.1"/>
    <position name="elbow" joint="elbow" kp="22.7" kv="1.7" forcerange="-11.1 11.1"/>
    <position name="lift" joint="lift" kp="300.1"/>
  </actuator>"#;

#[test]
fn a_pd_law_is_mujocos_position_servo() {
    let ours = task::robot(&arm(""), &cfg(PD)).unwrap();
    let names: Vec<&str> = ours.actuators.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["shoulder", "elbow", "lift"]);
    let mut theirs = Model::clone(&arm(SERVOS));
    (theirs.joints[2].armature, theirs.joints[2].frictionloss) = (0.3, 0.2);
    let given = Given::new(&theirs, 500);
    let (a, b) = (given.evaluate(&ours), given.evaluate(&theirs));
    assert_eq!(a.qacc, b.qacc);
    assert_eq!(a.qvel_next, b.qvel_next);
    assert!(a.qacc.iter().any(|x| x.abs() > 1.0));
}

/// A joint that the file drives keeps its actuator's name; a second pass changes nothing.
#[test]
fn a_law_takes_the_place_of_the_files_actuator() {
    let motors = r#"<actuator><motor name="m" joint="elbow" gear="5"/><motor name="s" joint="shoulder"/></actuator>"#;
    let cfg = cfg(PD);
    let once = task::robot(&arm(motors), &cfg).unwrap();
    let names: Vec<&str> = once.actuators.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["m", "s", "lift"]);
    assert_eq!(once.actuators[0].gain[0], 22.7);
    assert_eq!(once.actuators[1].gain[0], 40.3);
    assert_eq!(once.actuators[0].gear[0], 1.0);
    let twice = task::robot(&once, &cfg).unwrap();
    assert!(Arc::ptr_eq(&once, &twice));
}

#[test]
fn numbers_of_joints_that_are_named_go_in_the_order_of_the_names() {
    let law = |joints: &str, more: &str| {
        let text = format!("[[actuator]]\njoints = [{joints}]\n{more}");
        task::robot(&arm(""), &cfg(&text))
    };
    let all =
        "stiffness = [10, 20]\ndamping = [1, 2]\neffort_limit = [5, 6]\narmature = [0.1, 0.2]";
    let made = law("\"lift\", \"shoulder\"", all).unwrap();
    let names: Vec<&str> = made.actuators.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["shoulder", "lift"]);
    let [shoulder, lift] = [0, 1].map(|u| &made.actuators[u]);
    assert_eq!((shoulder.gain[0], shoulder.bias[2]), (20.0, -2.0));
    assert_eq!((lift.gain[0], lift.bias[2]), (10.0, -1.0));
    assert_eq!(lift.forcerange, Some([-5.0, 5.0]));
    assert_eq!([0, 2].map(|j| made.joints[j].armature), [0.2, 0.1]);
    let wrong = law("\"lift\", \"s*\"", "stiffness = [10, 20]").unwrap_err();
    assert!(wrong.to_string().contains("in the model's order"), "{wrong}");
    let wrong = law("\"lift\", \"lift\"", "stiffness = 10").unwrap_err();
    assert!(wrong.to_string().contains("\"lift\" is in the list twice"), "{wrong}");
    let motors =
        r#"<actuator><motor name="e" joint="elbow"/><motor name="s" joint="shoulder"/></actuator>"#;
    let text = "[[action]]\nactuators = [\"s\", \"e\"]\nkind = \"position\"\nstiffness = [10, 20]";
    let made = task::robot(&arm(motors), &cfg(text)).unwrap();
    assert_eq!([0, 1].map(|u| made.actuators[u].gain[0]), [20.0, 10.0]);
}

/// Motors to which `kind = "position"` gives gains feel them in every physics step.
#[test]
fn gains_of_an_action_make_motors_servos() {
    let motors = r#"<actuator>
      <motor name="shoulder" joint="shoulder" gear="3" ctrlrange="-2 4"/>
      <motor name="elbow" joint="elbow"/></actuator>"#;
    let text =
        "[[action]]\nactuators = [\"*\"]\nkind = \"position\"\nstiffness = 30.0\ndamping = 0.7\n";
    let ours = task::robot(&arm(motors), &cfg(text)).unwrap();
    let servos = r#"<actuator>
      <position name="shoulder" joint="shoulder" kp="30" kv="0.7" forcerange="-6 12"/>
      <position name="elbow" joint="elbow" kp="30" kv="0.7"/></actuator>"#;
    let theirs = arm(servos);
    // The control of a geared servo is the length, gear times the position.
    let mut given = Given::new(&theirs, 300);
    let b = given.evaluate(&theirs);
    given.ctrl.iter_mut().step_by(2).for_each(|c| *c *= 3.0);
    let a = given.evaluate(&ours);
    let off = a.qacc.iter().zip(&b.qacc).map(|(x, y)| (x - y).abs() / y.abs().max(1.0));
    assert!(off.fold(0.0, f64::max) < 1e-12);
    assert!(Arc::ptr_eq(&ours, &task::robot(&ours, &cfg(text)).unwrap()));
}

/// A wheel of inertia 1 alone: its acceleration is the effort.
fn wheel() -> Arc<Model> {
    let text = r#"<mujoco model="wheel"><option gravity="0 0 0"/><worldbody><body>
      <joint name="hub" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      </body></worldbody></mujoco>"#;
    Arc::new(mjcf::parse(Path::new("wheel.xml"), text.into()).unwrap())
}

/// Isaac Lab's DCMotor (actuators/actuator_pd.py): PD, then `_clip_effort`.
fn dc_motor(target: f64, q: f64, v: f64) -> f64 {
    let (kp, kd, effort_limit, saturation, speed) = (15.9, 1.01, 20.0, 23.7, 30.1);
    let effort = kp * (target - q) - kd * v;
    let vel_at_effort_lim = speed * (1.0 + effort_limit / saturation);
    let v = f64::clamp(v, -vel_at_effort_lim, vel_at_effort_lim);
    let top = (saturation * (1.0 - v / speed)).min(effort_limit);
    let bottom = (saturation * (-1.0 - v / speed)).max(-effort_limit);
    effort.max(bottom).min(top)
}

const DC: &str = r#"
[[actuator]]
joints = ["hub"]
model = "dc_motor"
stiffness = 15.9
damping = 1.01
effort_limit = 20.0
saturation_effort = 23.7
velocity_limit = 30.1
"#;

#[test]
fn a_dc_motor_has_less_effort_at_speed() {
    let model = task::robot(&wheel(), &cfg(DC)).unwrap();
    let mut given = Given::new(&model, 2000);
    given.qvel.iter_mut().for_each(|v| *v *= 2.0);
    let ours = given.evaluate(&model);
    let mut limited = 0;
    for i in 0..given.count {
        let expected = dc_motor(given.ctrl[i], given.qpos[i], given.qvel[i]);
        assert!((ours.qacc[i] - expected).abs() < 1e-12, "state {i}");
        limited += usize::from((expected.abs() - 20.0).abs() > 1e-9);
    }
    assert!((100..1900).contains(&limited), "{limited} within the limits");
}

fn worlds(model: &Arc<Model>, n: usize) -> NativePhysics {
    let config =
        SimConfig { specialize: Specialize::Off, threads: Auto::N(1), ..SimConfig::default() };
    let pool = Arc::new(Pool::new(1).unwrap());
    native::new(model, &config, n, &pool).unwrap()
}

/// Controls of three physics steps before; the first one until there is another.
#[test]
fn a_delay_counts_physics_steps() {
    let late = format!("{}delay = 3\n", DC);
    let late = task::robot(&wheel(), &cfg(&late)).unwrap();
    let now = task::robot(&wheel(), &cfg(DC)).unwrap();
    let (mut late, mut now) = (worlds(&late, 5), worlds(&now, 5));
    let ctrl = |step: usize| -> Vec<f32> { (0..5).map(|e| draw(e, step, 0) as f32).collect() };
    for step in 0..40_usize {
        // Two physics steps to a control.
        late.step(&ctrl(step), 2);
        for half in 0..2 {
            let given = (2 * step + half).saturating_sub(3) / 2;
            now.step(&ctrl(given), 1);
        }
        assert_eq!(late.state().qvel, now.state().qvel, "step {step}");
    }
    // A new episode knows nothing of the one before.
    let zero = vec![0.0; 5];
    for physics in [&mut late, &mut now] {
        physics.reset(&[1; 5], &zero, &zero);
    }
    late.step(&ctrl(77), 3);
    now.step(&ctrl(77), 3);
    assert_eq!(late.state().qvel, now.state().qvel);
}

/// The same where another delay is given for every physics step.
#[test]
fn a_delay_may_be_another_in_every_physics_step() {
    let late = format!("{}delay = {{ steps = [1, 4], redraw = 1 }}\n", DC);
    let late = task::robot(&wheel(), &cfg(&late)).unwrap();
    let now = task::robot(&wheel(), &cfg(DC)).unwrap();
    let (mut late, mut now) = (worlds(&late, 5), worlds(&now, 5));
    let ctrl = |step: usize| -> Vec<f32> { (0..5).map(|e| draw(e, step, 0) as f32).collect() };
    let lag = |at: usize, e: usize| 1 + (at * at + 3 * e) % 4;
    for step in 0..40_usize {
        let lags = (0..2).flat_map(|half| (0..5).map(move |e| lag(2 * step + half, e) as f32));
        late.delay(&lags.collect::<Vec<_>>());
        late.step(&ctrl(step), 2);
        for at in [2 * step, 2 * step + 1] {
            let given = |e: usize| ctrl(at.saturating_sub(lag(at, e)) / 2)[e];
            now.step(&(0..5).map(given).collect::<Vec<_>>(), 1);
        }
        assert_eq!(late.state().qvel, now.state().qvel, "step {step}");
    }
}

/// A body that nothing moves, whose actuator's force is the target that has come to it.
fn heavy() -> Arc<Model> {
    let text = r#"<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
      <body name="block"><joint name="rail" type="slide" axis="1 0 0"/>
        <geom type="sphere" size="0.1" mass="1e9"/></body></worldbody></mujoco>"#;
    Arc::new(mjcf::parse(Path::new("heavy.xml"), text.to_string()).unwrap())
}

/// The delay of every environment in every step.
fn lags(delay: &str, n: usize, steps: usize) -> Vec<Vec<usize>> {
    let text = format!(
        r#"
[[actuator]]
joints = ["rail"]
stiffness = 1.0
delay = {delay}
[[action]]
actuators = ["*"]
kind = "position"
[[observation]]
name = "force"
expr = "actuator_force()"
[[reward]]
name = "alive"
expr = "1"
"#
    );
    let env = EnvConfig { num_envs: n, decimation: 1, episode_length_s: 1e3 };
    let mut batch = Batch::of(&heavy(), &cfg(&text), &env, 1);
    let mut found = vec![Vec::new(); n];
    for t in 0..steps {
        batch.act(&vec![t as f32; n]);
        for (found, force) in found.iter_mut().zip(&batch.obs) {
            let target = force.round() as usize;
            assert!((force - target as f32).abs() < 1e-3 && target <= t, "{force} in {t}");
            found.push(t - target);
        }
    }
    found
}

/// mjlab's `DelayedActuator`: `update_period` 0 draws in every step.
#[test]
fn delays_are_drawn_anew_within_an_episode() {
    let all = lags("{ steps = [1, 4], redraw = 1 }", 200, 100);
    let late: Vec<usize> = all.iter().flat_map(|own| own[10..].to_vec()).collect();
    let share = |of: &dyn Fn(usize) -> bool| {
        late.iter().filter(|s| of(**s)).count() as f64 / late.len() as f64
    };
    for steps in 1..=4 {
        let found = share(&|s| s == steps);
        assert!((found - 0.25).abs() < 0.015, "{steps}: {found}");
    }
    let pairs = all.iter().flat_map(|own| own[10..].windows(2));
    let (mut same, mut count) = (0, 0);
    pairs.for_each(|w| (same, count) = (same + usize::from(w[0] == w[1]), count + 1));
    assert!((same as f64 / count as f64 - 0.25).abs() < 0.02, "{same} of {count}");

    // Every fifth step, at times of its own; three quarters of the draws change nothing.
    for (hold, expected) in [(0.0, 0.75), (0.75, 0.1875)] {
        let all = lags(&format!("{{ steps = [0, 3], redraw = 5, hold = {hold} }}"), 300, 103);
        let (mut changes, mut phases) = (0, [0; 5]);
        for own in &all {
            let at = |w: usize| own[w] != own[w - 1];
            let changed: Vec<usize> = (4..own.len()).filter(|w| at(*w)).collect();
            if let Some(first) = changed.first() {
                assert!(changed.iter().all(|w| w % 5 == first % 5), "{own:?}");
                phases[first % 5] += 1;
            }
            changes += changed.len();
        }
        let share = changes as f64 / (300.0 * 99.0 / 5.0);
        assert!((share - expected).abs() < 0.03, "{share}");
        assert!(phases.iter().all(|n| *n > 30), "{phases:?}");
    }
    // Switched off with the robot's other chance, and fixed where there is nothing to draw.
    let fixed = lags("{ steps = 2, redraw = 1 }", 3, 20);
    assert!(fixed.iter().all(|own| own[2..].iter().all(|s| *s == 2)));
}

/// A batch, its results of the last step.
struct Batch {
    env: BatchEnv,
    obs: Vec<f32>,
}

impl Batch {
    fn new(model: &Arc<Model>, task: &TaskConfig, n: usize, length: f64, threads: usize) -> Self {
        let env = EnvConfig { num_envs: n, decimation: 4, episode_length_s: length };
        Self::of(model, task, &env, threads)
    }

    fn of(model: &Arc<Model>, task: &TaskConfig, env: &EnvConfig, threads: usize) -> Self {
        let n = env.num_envs;
        let sim = SimConfig {
            specialize: Specialize::Off,
            threads: Auto::N(threads),
            ..SimConfig::default()
        };
        let env =
            BatchEnv::new(Arc::clone(model), &sim, env, task, 3).unwrap_or_else(|e| panic!("{e}"));
        let mut batch = Self { obs: vec![0.0; n * env.spec().obs.policy], env };
        let mut obs = Groups { policy: &mut batch.obs[..], critic: None };
        batch.env.reset(false, &mut obs);
        batch
    }

    fn step(&mut self, k: usize) {
        let n = self.env.spec().num_envs;
        let nu = self.env.spec().action.width();
        let actions: Vec<f32> = (0..n * nu).map(|i| draw(i / nu, k, i % nu) as f32).collect();
        self.act(&actions);
    }

    fn act(&mut self, actions: &[f32]) {
        let n = self.env.spec().num_envs;
        let (mut reward, mut slots) = (vec![0.0; n], vec![0; n]);
        let mut flags = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
        let mut none: [f32; 0] = [];
        let [terminated, truncated, valid] = &mut flags;
        self.env.step(
            actions,
            &mut StepOut {
                obs: Groups { policy: &mut self.obs[..], critic: None },
                reward: &mut reward,
                terminated,
                truncated,
                valid,
                final_obs: Groups { policy: &mut none[..], critic: None },
                final_slot: &mut slots,
            },
        );
    }
}

fn quadruped() -> Arc<Model> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    Arc::new(mjcf::load(&path).unwrap())
}

const DOG: &str = r#"
[[actuator]]
joints = ["hip_*", "thigh_*"]
model = "dc_motor"
stiffness = 20.0
damping = 0.5
effort_limit = 20.0
saturation_effort = 23.7
velocity_limit = 30.0
armature = 0.01
friction = 0.1
delay = [0, 5]
[[actuator]]
joints = ["calf_*"]
stiffness = 25.0
damping = 0.6
effort_limit = 30.0
delay = [1, 2]
[[action]]
actuators = ["*"]
kind = "position"
scale = 0.3
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
[[reward]]
name = "alive"
expr = "1"
[[reset]]
target = "keyframe(home)"
"#;

/// One delay for the joints of a term in an environment, drawn anew in each episode.
#[test]
fn delays_are_drawn_where_episodes_begin() {
    let task = cfg(DOG);
    let mut batch = Batch::new(&quadruped(), &task, 64, 0.1, 1);
    let n = 64;
    let delays = |batch: &Batch| -> Vec<Vec<f32>> {
        let rows = batch.env.physics().state().varied.chunks(n);
        rows.map(<[f32]>::to_vec).collect()
    };
    let first = delays(&batch);
    assert_eq!(first.len(), 12);
    let joints = |names: &[&str]| -> Vec<usize> {
        let model = batch.env.model();
        let each = model.actuators.iter().enumerate();
        each.filter(|(_, a)| names.iter().any(|n| a.name.starts_with(n))).map(|(u, _)| u).collect()
    };
    for (names, allowed) in [(&["hip", "thigh"][..], 0..=5), (&["calf"][..], 1..=2)] {
        let own = joints(names);
        assert!(!own.is_empty());
        for u in &own {
            assert_eq!(first[*u], first[own[0]]);
        }
        for steps in allowed.clone() {
            assert!(first[own[0]].contains(&(steps as f32)), "{steps} of {names:?}");
        }
        let inside = |x: &f32| allowed.contains(&(*x as i32)) && x.fract() == 0.0;
        assert!(first[own[0]].iter().all(inside));
    }
    for k in 0..20 {
        batch.step(k);
    }
    assert_ne!(delays(&batch), first);
}

/// Also with what is on its way in the middle of an episode.
#[test]
fn threads_and_snapshots_keep_the_bits() {
    let anew = "delay = { steps = [1, 9], redraw = 3, hold = 0.2 }";
    let task = cfg(&DOG.replace("delay = [1, 2]", anew));
    let mut one = Batch::new(&quadruped(), &task, 37, 0.5, 1);
    let mut two = Batch::new(&quadruped(), &task, 37, 0.5, 2);
    for k in 0..30 {
        one.step(k);
        two.step(k);
        assert_eq!(one.obs, two.obs, "step {k}");
    }
    let mut bytes = Vec::new();
    one.env.capture(&mut bytes).unwrap();
    let mut other = Batch::new(&quadruped(), &task, 37, 0.5, 1);
    other.env.restore(&bytes).unwrap();
    for k in 30..60 {
        one.step(k);
        other.step(k);
        assert_eq!(one.obs, other.obs, "step {k}");
    }
}

/// A curriculum cannot make another robot; numbers that are the task's alone it can change.
#[test]
fn another_robot_is_refused_while_a_task_is_trained() {
    let text =
        format!("{DOG}\n[[contact]]\ngeoms = [\"*\"]\nfriction = 0.7\n[option]\nimpratio = 2.0\n");
    let task = cfg(&text);
    let mut batch = Batch::new(&quadruped(), &task, 2, 0.5, 1);
    let mut other = task.clone();
    other.reward[0].weight = 2.0;
    batch.env.set_task(&other).unwrap();
    for (from, to) in [
        ("damping = 0.6", "damping = 0.7"),
        ("delay = [1, 2]", "delay = [1, 3]"),
        ("friction = 0.7", "friction = 0.8"),
        ("impratio = 2.0", "impratio = 3.0"),
    ] {
        let error = batch.env.set_task(&cfg(&text.replace(from, to)));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("another robot"), "{to}: {error}");
        assert_eq!(batch.env.task(), &other);
    }
}

/// MuJoCo's worlds with these actuators, computed by another program, drift no faster than
/// single precision does.
fn follows(model: &Arc<Model>, task: &TaskConfig, steps: usize, allowed: f32) {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let mut ours = Batch::new(model, task, 4, 10.0, 1);
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: 4, decimation: 4, episode_length_s: 10.0 };
    let mujoco = MuJoCo::start(Some(&python)).unwrap();
    let worlds = MuJoCoWorlds::new(mujoco, ours.env.model(), 4, &sim).unwrap();
    let failure = worlds.failure();
    let pool = Arc::new(Pool::new(1).unwrap());
    let robot = Arc::clone(ours.env.model());
    let env = BatchEnv::with_physics(robot, Box::new(worlds), pool, &env, task, 3, 0);
    let mut theirs = Batch { obs: vec![0.0; ours.obs.len()], env: env.unwrap() };
    theirs.env.reset(false, &mut Groups { policy: &mut theirs.obs[..], critic: None });
    let mut moved: f32 = 0.0;
    for k in 0..steps {
        ours.step(k);
        theirs.step(k);
        if let Some(e) = failure.take() {
            panic!("{e}");
        }
        let off = ours.obs.iter().zip(&theirs.obs).map(|(a, b)| (a - b).abs() / (1.0 + b.abs()));
        let off = off.fold(0.0, f32::max);
        moved = ours.obs.iter().fold(moved, |m, x| m.max(x.abs()));
        assert!(off < allowed, "step {k}: {off:e}");
    }
    assert!(moved > 1.0);
}

#[test]
fn motors_follow_mujocos_worlds() {
    let events = r#"
[[reset]]
target = "pos(trunk)"
value = [0, 0, 1]
[[event]]
name = "gains"
when = "startup"
set = "kp(*)"
operation = "scale"
range = [0.8, 1.2]
[[event]]
name = "dampers"
when = "reset"
set = "kd(hip_*, thigh_*)"
operation = "scale"
range = [0.5, 1.5]
[[event]]
name = "efforts"
when = "reset"
set = "effort_limit(*)"
operation = "scale"
range = [0.3, 1.0]
"#;
    let task = cfg(&format!("{DOG}{events}"));
    follows(&quadruped(), &task, 25, 2e-3);
}

/// Weights of a network that are written beside a robot's file.
fn network(folder: &Path, name: &str, tensors: &[(&str, &[usize])]) {
    let mut data = Vec::new();
    for (k, (name, shape)) in tensors.iter().enumerate() {
        let count: usize = shape.iter().product();
        let fan = *shape.last().unwrap() as f64;
        let each = (0..count).map(|i| (draw(i, 50 + k, 7) / fan.sqrt()) as f32);
        let bytes: Vec<u8> = each.flat_map(f32::to_le_bytes).collect();
        data.push((name.to_string(), shape.to_vec(), bytes));
    }
    let views = data.iter().map(|(name, shape, bytes)| {
        let view = safetensors::tensor::TensorView::new(
            safetensors::tensor::Dtype::F32,
            shape.clone(),
            bytes,
        );
        (name.clone(), view.unwrap())
    });
    let bytes = safetensors::serialize(views, None).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

const MLP: [(&str, &[usize]); 6] = [
    ("0.weight", &[32, 6]),
    ("0.bias", &[32]),
    ("2.weight", &[16, 32]),
    ("2.bias", &[16]),
    ("4.weight", &[1, 16]),
    ("4.bias", &[1]),
];
const LSTM: [(&str, &[usize]); 10] = [
    ("lstm.weight_ih_l0", &[32, 2]),
    ("lstm.weight_hh_l0", &[32, 8]),
    ("lstm.bias_ih_l0", &[32]),
    ("lstm.bias_hh_l0", &[32]),
    ("lstm.weight_ih_l1", &[32, 8]),
    ("lstm.weight_hh_l1", &[32, 8]),
    ("lstm.bias_ih_l1", &[32]),
    ("lstm.bias_hh_l1", &[32]),
    ("decoder.weight", &[1, 8]),
    ("decoder.bias", &[1]),
];

/// Networks of both kinds, of every activation, with delays, in the worlds of MuJoCo whose
/// networks NumPy computes in double precision.
#[test]
fn networks_follow_mujocos_worlds() {
    let folder = tempfile::tempdir().unwrap();
    let robot = folder.path().join("arm.xml");
    std::fs::write(&robot, ARM.replace("ACTUATORS", "")).unwrap();
    network(folder.path(), "mlp.safetensors", &MLP);
    network(folder.path(), "lstm.safetensors", &LSTM);
    let model = Arc::new(mjcf::load(&robot).unwrap());
    let activations =
        ["nothing", "relu", "elu", "tanh", "softsign", "sigmoid", "silu", "leaky_relu"];
    for (k, activation) in activations.into_iter().enumerate() {
        let order = ["position_velocity", "velocity_position"][k % 2];
        let text = format!(
            r#"
[[actuator]]
joints = ["shoulder", "lift"]
model = "mlp"
effort_limit = 6.0
delay = [0, 3]
network = {{ file = "mlp.safetensors", activation = "{activation}", history = [0, 2, 5], order = "{order}", position_scale = 1.5, velocity_scale = 0.2, effort_scale = 9.0 }}
[[actuator]]
joints = ["elbow"]
model = "lstm"
saturation_effort = 8.0
velocity_limit = 12.0
delay = {{ steps = [0, 4], redraw = 1, hold = 0.2 }}
network = {{ file = "lstm.safetensors", velocity_scale = 0.3, effort_scale = 20.0 }}
[[action]]
actuators = ["*"]
kind = "position"
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
[[reward]]
name = "alive"
expr = "1"
"#
        );
        follows(&model, &cfg(&text), 30, 1e-3);
    }
}

/// A box and a ball, and what a task changes about them.
const THINGS: &str = r#"<mujoco model="things">
  <worldbody>FLOOR
    <body name="box" pos="0 0 HEIGHT">JOINT
      <geom name="box_shell" type="box" size="0.1 0.08 0.05" SHELL/>
      <body name="ball" pos="0.2 0 0">
        <joint name="hinge" axis="0 1 0" armature="0.01" damping="0.1"/>
        <geom name="ball_shell" size="0.06" BALL/>
        <geom type="sphere" size="0.02" pos="0 0 0.1" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
</mujoco>"#;
const CHANGES: &str = r#"
floor = { height = -0.1, friction = [0.7, 0.01, 0.001] }
base = "free"
start_height = 0.05
option = { integrator = "implicitfast", cone = "elliptic", impratio = 5.0 }
[[contact]]
geoms = ["*_shell"]
condim = 1
solref = [0.01, 1.2]
[[contact]]
geoms = ["ball*"]
condim = 6
friction = [0.9, 0.02]
priority = 1
solimp = [0.8, 0.95, 0.002]
[[actuator]]
joints = ["hinge"]
stiffness = 4.0
damping = 0.3
[[action]]
actuators = ["*"]
kind = "position"
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
[[reward]]
name = "alive"
expr = "1"
"#;

fn things(floor: &str, height: &str, joint: &str, shell: &str, ball: &str) -> String {
    let parts =
        [("FLOOR", floor), ("HEIGHT", height), ("JOINT", joint), ("SHELL", shell), ("BALL", ball)];
    parts.iter().fold(THINGS.into(), |text: String, (key, by)| text.replace(key, by))
}

#[test]
fn contacts_and_options_are_as_if_the_file_had_them() {
    let task = cfg(CHANGES);
    let path = Path::new("things.xml");
    let plain = things("", "1", "", "", "");
    let edits = task.edits().unwrap();
    let reading = mjcf::Reading { text: Some(plain), edits: Some(&edits), ..Default::default() };
    let (model, _) = reading.read(path).unwrap();
    let ours = task::robot(&Arc::new(model), &task).unwrap();
    let text = things(
        r#"<geom name="floor" type="plane" size="0 0 1" pos="0 0 -0.1" contype="2147483647" conaffinity="2147483647" friction="0.7 0.01 0.001"/>"#,
        "0.05",
        r#"<freejoint name="root"/>"#,
        r#"condim="1" solref="0.01 1.2""#,
        r#"condim="6" solref="0.01 1.2" friction="0.9 0.02" priority="1" solimp="0.8 0.95 0.002""#,
    );
    let text = text.replace(
        "</worldbody>",
        r#"</worldbody><actuator><position name="hinge" joint="hinge" kp="4" kv="0.3"/></actuator>
        <option integrator="implicitfast" cone="elliptic" impratio="5"/>"#,
    );
    let theirs = mjcf::parse(path, text).unwrap();
    assert_eq!(ours.options, theirs.options);
    let felt = |model: &Model| -> Vec<_> {
        let each = model.geoms.iter().filter(|g| g.contype != 0);
        each.map(|g| {
            let soft = (g.solref, g.solimp, g.priority, g.solmix, g.margin);
            (g.name.clone(), g.condim, g.friction, soft, g.contype, g.conaffinity)
        })
        .collect()
    };
    assert_eq!(felt(&ours), felt(&theirs));
    let given = Given::new(&theirs, 200);
    assert_eq!(given.evaluate(&ours).qacc, given.evaluate(&theirs).qacc);
}

/// MuJoCo's worlds have the floor, the free base, the height and the rest.
#[test]
fn changes_follow_mujocos_worlds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("things.xml");
    std::fs::write(&file, things("", "1", "", "", "")).unwrap();
    let task = cfg(CHANGES);
    let edits = task.edits().unwrap();
    let reading = mjcf::Reading { edits: Some(&edits), ..Default::default() };
    let (model, _) = reading.read(&file).unwrap();
    follows(&Arc::new(model), &task, 25, 2e-3);
}

/// Mistakes, the key that is blamed, and a part of the message.
#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let robot = folder.path().join("arm.xml");
    std::fs::write(&robot, ARM.replace("ACTUATORS", "")).unwrap();
    network(folder.path(), "mlp.safetensors", &MLP);
    network(folder.path(), "lstm.safetensors", &LSTM);
    network(folder.path(), "odd.safetensors", &[("0.weight", &[3, 2])]);
    std::fs::write(folder.path().join("text.safetensors"), "no tensors").unwrap();
    let model = Arc::new(mjcf::load(&robot).unwrap());
    let net = |rest: &str| format!("model = \"mlp\"\nnetwork = {{ {rest} }}");
    let cases: Vec<(String, &str, &str)> = vec![
        ("joints = [\"sholder\"]\nstiffness = 1.0".into(), "joints[0]", "no joint fits"),
        ("joints = []\nstiffness = 1.0".into(), "joints", "names no hinge"),
        ("damping = 1.0".into(), "stiffness", "is needed"),
        ("stiffness = -1.0".into(), "stiffness", "negative"),
        ("stiffness = 0.0".into(), "stiffness", "above 0"),
        ("stiffness = [1.0, 2.0]".into(), "stiffness", "2 numbers for 3 joints"),
        ("stiffness = { elbow = 1.0 }".into(), "stiffness", "fits no pattern"),
        ("stiffness = 1.0\nvelocity_limit = 2.0".into(), "velocity_limit", "no meaning"),
        ("stiffness = 1.0\nnetwork = { file = \"a\" }".into(), "network", "no meaning"),
        ("stiffness = 1.0\ndelay = [3, 1]".into(), "delay", "upside down"),
        ("stiffness = 1.0\ndelay = 1000".into(), "delay", "more than"),
        (
            "stiffness = 1.0\ndelay = { steps = 300, redraw = 1 }".into(),
            "delay.steps",
            "physics steps are more",
        ),
        ("stiffness = 1.0\ndelay = { steps = 3, hold = 0.5 }".into(), "delay.hold", "drawn anew"),
        ("model = \"dc_motor\"\nstiffness = 1.0".into(), "saturation_effort", "is needed"),
        (
            "model = \"dc_motor\"\nstiffness = 1.0\nsaturation_effort = 1.0".into(),
            "velocity_limit",
            "is needed",
        ),
        (
            "model = \"dc_motor\"\nstiffness = 1.0\nsaturation_effort = 1.0\nvelocity_limit = 0.0"
                .into(),
            "velocity_limit",
            "above 0",
        ),
        ("model = \"mlp\"".into(), "network", "is needed"),
        (
            "model = \"mlp\"\nstiffness = 2.0\nnetwork = { file = \"mlp.safetensors\" }".into(),
            "stiffness",
            "no meaning",
        ),
        (net("file = \"none.safetensors\""), "network.file", "cannot read"),
        (net("file = \"../mlp.safetensors\""), "network.file", "not below"),
        (net("file = \"text.safetensors\""), "network.file", "no safetensors"),
        (net("file = \"mlp.safetensors\""), "network.file", "takes 6 inputs"),
        (net("file = \"odd.safetensors\""), "network.file", "3 numbers"),
        (
            net("file = \"lstm.safetensors\", history = [0]"),
            "network.file",
            "neither a fully connected",
        ),
        (net("file = \"mlp.safetensors\", history = [0, 999, 1]"), "network.history", "more than"),
        (
            "model = \"lstm\"\nnetwork = { file = \"mlp.safetensors\" }".into(),
            "network.file",
            "no LSTM",
        ),
        (
            "model = \"lstm\"\nnetwork = { file = \"lstm.safetensors\", history = [0] }".into(),
            "network.history",
            "mlp",
        ),
    ];
    for (text, key, words) in cases {
        let joints = if text.starts_with("joints") { "" } else { "joints = [\"*\"]\n" };
        let cfg = cfg(&format!("[[actuator]]\n{joints}{text}\n"));
        let error = task::robot(&model, &cfg).expect_err(&text);
        assert!(error.path.ends_with(key), "{text}: {}", error.path);
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    let twice = "[[actuator]]\njoints = [\"*\"]\nstiffness = 1.0\n[[actuator]]\njoints = [\"elbow\"]\nstiffness = 1.0\n";
    let error = task::robot(&model, &cfg(twice)).unwrap_err();
    assert!(error.to_string().contains("already driven"), "{error}");
    let gains = "[[actuator]]\njoints = [\"*\"]\nstiffness = 1.0\n[[action]]\nactuators = [\"*\"]\nkind = \"position\"\nstiffness = 2.0\n";
    let error = task::robot(&model, &cfg(gains)).unwrap_err();
    assert!(error.to_string().contains("gains of its own"), "{error}");
}

/// A command of 0.1 s hid the contacts from the engine, and every step panicked.
#[test]
fn contacts_are_found_whatever_the_times_of_a_task_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    let model = Arc::new(mjcf::load(&path).unwrap());
    let task = |seconds: f64| {
        cfg(&format!(
            r#"
[[action]]
actuators = ["*"]
[[observation]]
name = "touch"
expr = "contact(subtree(trunk))"
[[reward]]
name = "one"
expr = "1"
[[command]]
name = "goal"
range = [[-1, 1]]
resample_s = {seconds}
[[event]]
name = "push"
when = "interval"
interval_s = {seconds}
set = "vel(trunk)"
operation = "add"
range = [-0.1, 0.1]
"#
        ))
    };
    for seconds in [0.02, 0.1, 10.0, 1e5] {
        let (made, _) = task::prepare(&model, &task(seconds), |_| 0.02).unwrap();
        assert_eq!(made.contact_sensors.len(), 1, "{seconds} s");
    }
}

/// The formula is FastSAC's (`FastSACEnv._compute_action_boundaries` of holosoma 0.0.3).
#[test]
fn the_reach_of_an_action_is_its_joints_farther_limit() {
    let text = ARM
        .replace("damping=\"0.1\"", "damping=\"0.1\" range=\"-90 45\"")
        .replace("axis=\"0 0 1\"", "axis=\"0 0 1\" range=\"-0.1 0.2\"")
        .replace("ACTUATORS", SERVOS);
    let model = Arc::new(mjcf::parse(Path::new("arm.xml"), text).unwrap());
    let reach = |kind: &str| {
        let action = |of: &str, offset: &str| {
            format!("[[action]]\nactuators = {of}\nkind = \"{kind}\"\nscale = 0.5\n{offset}")
        };
        let text = action("[\"shoulder\", \"elbow\"]", "")
            + &action("[\"lift\"]", "offset = -0.05\n")
            + "[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n\
               [[reward]]\nname = \"r\"\nexpr = \"1\"\n";
        Batch::new(&model, &cfg(&text), 1, 1.0, 1).env.spec().reach.clone()
    };
    let found = reach("position");
    assert_eq!(found.len(), 3);
    assert!((found[0].unwrap() - std::f32::consts::PI).abs() < 1e-5, "{found:?}");
    // It has no limits.
    assert_eq!(found[1], None);
    assert!((found[2].unwrap() - 0.5).abs() < 1e-6, "{found:?}");
    assert_eq!(reach("control"), [None; 3]);
}
