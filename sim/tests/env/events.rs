//! `[[task.event]]`: what is drawn, when, and what follows from it.

use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, EnvError, StepOut};
use ostler_sim::model::{Field, Model, mjcf};
use ostler_sim::{EpisodeStats, Groups};
use std::path::Path;
use std::sync::Arc;

const BASE: &str = r#"
[[action]]
actuators = ["*"]
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
[[observation]]
name = "frame"
expr = "concat(lin_vel(trunk), ang_vel(trunk))"
[[reward]]
name = "alive"
expr = "1"
[[reset]]
target = "keyframe(home)"
"#;

fn robot() -> Arc<Model> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    Arc::new(mjcf::load(&path).unwrap())
}

/// A batch, its results of the last step.
struct Batch {
    env: BatchEnv,
    obs: Vec<f32>,
    reward: Vec<f32>,
    flags: [Vec<f32>; 3],
    slots: Vec<i32>,
}

impl Batch {
    fn try_new(n: usize, events: &str, length: f64, threads: usize) -> Result<Self, EnvError> {
        let task: TaskConfig = toml::from_str(&format!("{BASE}{events}")).unwrap();
        let sim = SimConfig {
            specialize: Specialize::Off,
            threads: ostler_sim::config::Auto::N(threads),
            ..SimConfig::default()
        };
        let env = EnvConfig { num_envs: n, decimation: 4, episode_length_s: length };
        let env = BatchEnv::new(robot(), &sim, &env, &task, 5)?;
        let width = env.spec().obs.policy;
        Ok(Self {
            obs: vec![0.0; n * width],
            reward: vec![0.0; n],
            flags: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
            slots: vec![0; n],
            env,
        })
    }

    fn new(n: usize, events: &str, length: f64) -> Self {
        Self::try_new(n, events, length, 1).unwrap_or_else(|e| panic!("{e}"))
    }

    fn reset(&mut self) {
        let mut obs = Groups { policy: &mut self.obs[..], critic: None };
        self.env.reset(false, &mut obs);
    }

    fn step(&mut self) {
        let n = self.reward.len();
        let nu = self.env.model().nu();
        let actions = vec![0.0; n * nu];
        let mut none: [f32; 0] = [];
        let [terminated, truncated, valid] = &mut self.flags;
        let mut out = StepOut {
            obs: Groups { policy: &mut self.obs[..], critic: None },
            reward: &mut self.reward,
            terminated,
            truncated,
            valid,
            final_obs: Groups { policy: &mut none[..], critic: None },
            final_slot: &mut self.slots,
        };
        self.env.step(&actions, &mut out);
    }

    /// Observations of the components `from..to`, environment by environment.
    fn seen(&self, from: usize, to: usize) -> Vec<Vec<f32>> {
        let width = self.env.spec().obs.policy;
        let rows = self.obs.chunks(width);
        rows.map(|row| row[from..to].to_vec()).collect()
    }

    /// Numbers of a field of an element, environment by environment.
    fn field(&self, field: Field, element: usize) -> Vec<Vec<f32>> {
        let n = self.reward.len();
        let row = self.env.model().varied_row(field, element).unwrap();
        let varied = &self.env.physics().state().varied;
        let entry = |e: usize| move |k: usize| varied[(row + k) * n + e];
        (0..n).map(|e| (0..field.width()).map(entry(e)).collect()).collect()
    }

    fn bits(&self) -> Vec<u32> {
        self.obs.iter().map(|x| x.to_bits()).collect()
    }
}

fn event(name: &str, rest: &str) -> String {
    format!("[[event]]\nname = \"{name}\"\n{rest}\n")
}

fn trunk() -> usize {
    robot().body("trunk").unwrap()
}

#[test]
fn startup_draws_once_and_resets_draw_again() {
    let events = [
        event("load", "when = \"startup\"\nset = \"mass(trunk)\"\noperation = \"scale\"\nrange = [0.8, 1.2]"),
        event("shift", "when = \"reset\"\nset = \"com(trunk)\"\noperation = \"add\"\nrange = [[-0.02, 0.02], [0.0, 0.0], [0.01, 0.01]]"),
    ]
    .concat();
    // Episodes of five control steps.
    let mut batch = Batch::new(100, &events, 0.1);
    batch.reset();
    let own = robot().bodies[trunk()].clone();
    let (mass, com) = (batch.field(Field::Mass, trunk()), batch.field(Field::Com, trunk()));
    let share: Vec<f64> = mass.iter().map(|m| f64::from(m[0]) / own.mass).collect();
    assert!(share.iter().all(|s| (0.7999..1.2001).contains(s)), "{share:?}");
    let mean = share.iter().sum::<f64>() / 100.0;
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
    for c in &com {
        let off = [0, 1, 2].map(|k| f64::from(c[k]) - own.ipos[k]);
        assert!(off[0].abs() <= 0.02001 && off[1].abs() < 1e-7 && (off[2] - 0.01).abs() < 1e-6);
    }
    for _ in 0..30 {
        batch.step();
    }
    assert_eq!(batch.field(Field::Mass, trunk()), mass);
    let later = batch.field(Field::Com, trunk());
    assert!(com.iter().zip(&later).all(|(a, b)| a != b));
}

#[test]
fn shared_draws_are_one_for_all_and_others_one_each() {
    let friction = |shared: bool| {
        let set = "set = \"friction(foot_*)[0]\"\nwhen = \"startup\"\nrange = [0.3, 1.5]";
        Batch::new(20, &event("ice", &format!("{set}\nshared = {shared}")), 1.0)
    };
    let model = robot();
    let feet: Vec<usize> =
        (0..model.geoms.len()).filter(|g| model.geoms[*g].name.starts_with("foot_")).collect();
    assert_eq!(feet.len(), 4, "the robot's feet");
    for shared in [true, false] {
        let mut batch = friction(shared);
        batch.reset();
        let all: Vec<Vec<Vec<f32>>> =
            feet.iter().map(|g| batch.field(Field::Friction, *g)).collect();
        for e in 0..20 {
            let alike = all.iter().all(|f| f[e][0] == all[0][e][0]);
            assert_eq!(alike, shared, "environment {e}");
            // The others are the model's own.
            for (f, g) in all.iter().zip(&feet) {
                assert_eq!(f64::from(f[e][2]) as f32, model.geoms[*g].friction[2] as f32);
            }
        }
    }
}

#[test]
fn distributions_have_their_moments() {
    let draws = |rest: &str| -> Vec<f64> {
        let text = event("gain", &format!("when = \"startup\"\nset = \"damping(*)\"\n{rest}"));
        let mut batch = Batch::new(500, &text, 1.0);
        batch.reset();
        let joint = batch.env.model().joints.iter().position(|j| j.is_scalar()).unwrap();
        let all = batch.field(Field::Damping, joint);
        all.iter().map(|x| f64::from(x[0])).collect()
    };
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let log = draws("distribution = \"log_uniform\"\nrange = [0.01, 1.0]");
    let logs: Vec<f64> = log.iter().map(|x| x.ln()).collect();
    assert!((mean(&logs) - 0.1_f64.ln()).abs() < 0.2, "{}", mean(&logs));
    let normal = draws("distribution = \"normal\"\nmean = 2.0\nstd = 0.1");
    let spread = normal.iter().map(|x| (x - 2.0).powi(2)).sum::<f64>() / 500.0;
    assert!((mean(&normal) - 2.0).abs() < 0.02 && (spread.sqrt() - 0.1).abs() < 0.015);
    let choice = draws("distribution = \"choice\"\nchoices = [0.5, 2.0, 3.0]");
    for of in [0.5, 2.0, 3.0] {
        let share = choice.iter().filter(|x| **x == of).count();
        assert!((120..220).contains(&share), "{of}: {share}");
    }
    // Negative draws are cut off.
    let cut = draws("distribution = \"normal\"\nmean = 0.0\nstd = 0.1");
    assert!(cut.iter().all(|x| *x >= 0.0) && cut.contains(&0.0));
}

/// A push shows in the observation that follows, in the world's axes.
/// A servo, a motor that pulls the other way, and a velocity servo.
const ACTUATORS: &str = r#"<mujoco><worldbody>
<body><joint name="a" type="slide"/><geom size="0.1"/></body>
<body><joint name="b" type="slide"/><geom size="0.1"/></body>
<body><joint name="c" type="slide"/><geom size="0.1"/></body></worldbody><actuator>
<position name="servo" joint="a" kp="40" kv="3"/><motor name="motor" joint="b"/>
<general name="back" joint="b" gainprm="-2"/><velocity name="speed" joint="c" kv="1"/>
</actuator></mujoco>"#;

#[test]
fn strength_scales_all_gains_of_an_actuator_by_one_factor() {
    let model = Arc::new(mjcf::parse(Path::new("actuators.xml"), ACTUATORS.into()).unwrap());
    let task = |event: &str| -> TaskConfig {
        let see = "[event.power, kp(servo), kd(servo), gain(motor), gain(back)]";
        let terms = "[[action]]\nactuators = [\"*\"]\n[[reward]]\nname = \"r\"\nexpr = \"1\"";
        let see = format!("[[observation]]\nname = \"see\"\nexpr = \"{see}\"");
        let event = format!("[[event]]\nname = \"power\"\nwhen = \"reset\"\n{event}");
        toml::from_str(&format!("{terms}\n{see}\n{event}")).unwrap()
    };
    let made = |event: &str| {
        let (sim, env) = (SimConfig::default(), EnvConfig { num_envs: 64, ..EnvConfig::default() });
        BatchEnv::new(Arc::clone(&model), &sim, &env, &task(event), 5)
    };
    let seen = |event: &str| {
        let mut env = made(event).unwrap_or_else(|e| panic!("{e}"));
        let mut obs = vec![0.0; 64 * env.spec().obs.policy];
        env.reset(false, &mut Groups { policy: &mut obs[..], critic: None });
        let width = env.spec().obs.policy;
        obs.chunks(width).map(<[f32]>::to_vec).collect::<Vec<_>>()
    };
    // A pattern means those that can be scaled: one factor for each.
    for row in seen("set = \"strength(*)\"\noperation = \"scale\"\nrange = [0.5, 1.5]") {
        let [servo, motor, back, kp, kd, own, other] = row[..] else { panic!("{row:?}") };
        assert_eq!([kp, kd, own, other], [40.0 * servo, 3.0 * servo, motor, -2.0 * back]);
        assert!(servo != motor && motor != back, "{row:?}");
    }
    // Normal draws stop at no force, whichever way it acts.
    let normal = "operation = \"scale\"\ndistribution = \"normal\"\nmean = 0.0\nstd = 1.0";
    let rows = seen(&format!("set = \"strength(servo, back)\"\nshared = true\n{normal}"));
    let none = rows.iter().filter(|row| row[1] == 0.0).count();
    assert!((16..48).contains(&none), "{none} of 64");
    for row in rows {
        let [factor, kp, kd, motor, back] = row[..] else { panic!("{row:?}") };
        assert_eq!([kp, kd, motor, back], [40.0 * factor, 3.0 * factor, 1.0, -2.0 * factor]);
        assert!(factor >= 0.0, "{factor}");
    }
    for (event, what) in [
        ("set = \"strength(speed)\"\noperation = \"scale\"\nrange = [0.5, 1]", "is a <velocity>"),
        ("set = \"strength(servo)\"\nrange = [0.5, 1]", "strength is scaled"),
        (
            "set = \"strength(back)\"\noperation = \"scale\"\nrange = [-1, 1]",
            "the strength of \"back\" could become -2.000, which is below 0",
        ),
    ] {
        let error = made(event).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn pushes_come_when_they_are_due() {
    let text = event(
        "push",
        "when = \"interval\"\ninterval_s = 0.06\nset = \"vel(trunk)[1:2]\"\noperation = \"add\"\nrange = [[3.0, 3.0]]",
    );
    let (mut pushed, mut calm) = (Batch::new(3, &text, 5.0), Batch::new(3, "", 5.0));
    calm.reset();
    pushed.reset();
    let dt = calm.env.spec().step_dt;
    let every = (0.06 / dt).round() as usize;
    let width = calm.env.spec().obs.policy;
    let (nq, nv) = (robot().nq, robot().nv);
    for t in 1..=every {
        calm.step();
        pushed.step();
        for e in 0..3 {
            let off = |k: usize| pushed.obs[e * width + k] - calm.obs[e * width + k];
            let wants = if t == every { 3.0 } else { 0.0 };
            assert!((off(nq + 1) - wants).abs() < 1e-5, "step {t}: {}", off(nq + 1));
            // The body's frame moves as the joint does.
            assert!((off(nq + nv + 1) - wants).abs() < 1e-4, "step {t}");
        }
    }
}

#[test]
fn forces_act_for_their_time_and_then_no_more() {
    let text = event(
        "gust",
        "when = \"interval\"\ninterval_s = 0.2\nduration_s = 0.06\nset = \"force(trunk)[0]\"\nrange = [40.0, 40.0]",
    );
    let mut batch = Batch::new(2, &text, 50.0);
    batch.reset();
    let dt = batch.env.spec().step_dt;
    let (every, hold) = ((0.2 / dt).round() as usize, (0.06 / dt).round() as usize);
    for t in 1..=3 * every {
        batch.step();
        let phase = t % every;
        let on = t >= every && phase < hold;
        for x in batch.field(Field::Wrench, trunk()) {
            assert_eq!(x, [if on { 40.0 } else { 0.0 }, 0.0, 0.0, 0.0, 0.0, 0.0], "step {t}");
        }
    }
}

/// The perturbed body is one of positive density, and the least perturbation is none.
#[test]
fn pseudo_inertia_stays_physical() {
    let text = event(
        "body",
        "when = \"reset\"\nset = \"pseudo_inertia(trunk)\"\nrange = { alpha = [-0.3, 0.3], d = [-0.3, 0.3], s = [-0.2, 0.2], t = [-0.05, 0.05] }",
    );
    let mut batch = Batch::new(300, &text, 1.0);
    batch.reset();
    let own = robot().bodies[trunk()].clone();
    let masses = batch.field(Field::Mass, trunk());
    let mut spread = 0.0_f64;
    for (m, tensor) in masses.iter().zip(batch.field(Field::Tensor, trunk())) {
        let [xx, yy, zz, xy, xz, yz] = [0, 1, 2, 3, 4, 5].map(|k| f64::from(tensor[k]));
        let matrix = nalgebra::Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz);
        let moments = matrix.symmetric_eigenvalues();
        let (least, most) = (moments.min(), moments.max());
        assert!(m[0] > 0.0 && least > 0.0, "{moments}");
        // No principal moment exceeds the sum of the others.
        assert!(most <= moments.sum() - most + 1e-6 * most, "{moments}");
        spread = spread.max((f64::from(m[0]) / own.mass).ln().abs());
    }
    assert!((0.4..0.6001).contains(&spread), "{spread}");

    let none = event("body", "when = \"reset\"\nset = \"pseudo_inertia(trunk)\"\nrange = {}");
    let (mut same, mut plain) = (Batch::new(2, &none, 1.0), Batch::new(2, "", 1.0));
    same.reset();
    plain.reset();
    for _ in 0..20 {
        same.step();
        plain.step();
    }
    for (a, b) in same.obs.iter().zip(&plain.obs) {
        assert!((a - b).abs() < 1e-3 * b.abs().max(1.0), "{a} {b}");
    }
}

const MANY: &str = r#"
[[event]]
name = "friction"
when = "startup"
set = "friction(foot_*)"
range = [[0.3, 1.5], [0.005, 0.05], [1e-4, 1e-3]]
distribution = "log_uniform"
shared = true
[[event]]
name = "mass"
when = "reset"
set = "density(*)"
operation = "scale"
range = [0.8, 1.2]
[[event]]
name = "offset"
when = "reset"
set = "joint_offset(*)"
operation = "add"
range = [-0.05, 0.05]
[[event]]
name = "joints"
when = "startup"
set = "armature(*)"
operation = "scale"
range = [0.5, 2.0]
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
interval_s = [0.1, 0.4]
set = "vel(trunk)"
operation = "add"
range = [-0.4, 0.4]
[[event]]
name = "tilt"
when = "reset"
set = "gravity[0:2]"
operation = "add"
range = [-0.5, 0.5]
"#;

#[test]
fn bits_do_not_depend_on_threads_or_neighbours_and_survive_a_snapshot() {
    let mut one = Batch::new(70, MANY, 0.3);
    let mut two = Batch::try_new(70, MANY, 0.3, 2).unwrap();
    one.reset();
    two.reset();
    let mut saved = Vec::new();
    for t in 0..60 {
        if t == 31 {
            one.env.capture(&mut saved).unwrap();
        }
        one.step();
        two.step();
        assert_eq!(one.bits(), two.bits(), "step {t}");
    }
    let last = one.bits();
    let mut again = Batch::new(70, MANY, 0.3);
    again.env.restore(&saved).unwrap();
    for _ in 31..60 {
        again.step();
    }
    assert_eq!(again.bits(), last);
    // Environments of a smaller batch are the first ones.
    let mut few = Batch::new(3, MANY, 0.3);
    few.reset();
    for _ in 0..60 {
        few.step();
    }
    let width = few.env.spec().obs.policy;
    assert_eq!(few.bits(), last[..3 * width]);
}

#[test]
fn without_events_the_robot_is_that_of_its_file() {
    let mut batch = Batch::new(4, MANY, 0.3);
    batch.env.set_events(false);
    batch.reset();
    for _ in 0..40 {
        batch.step();
    }
    let model = batch.env.model().clone();
    let base = model.varied_numbers();
    let varied = &batch.env.physics().state().varied;
    for (row, own) in varied.chunks(4).zip(base) {
        assert!(row.iter().all(|x| *x == own as f32), "{row:?} {own}");
    }
}

#[test]
fn mistakes_are_named_with_their_remedies() {
    for (rest, path, words) in [
        (
            "when = \"startup\"\nset = \"masss(trunk)\"\nrange = [1, 2]",
            "set",
            "did you mean \"mass\"?",
        ),
        (
            "when = \"startup\"\nset = \"mass(trnk)\"\nrange = [1, 2]",
            "set",
            "did you mean \"trunk\"?",
        ),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\noperation = \"add\"\nrange = [-100, 2]",
            "range",
            "not above 0",
        ),
        (
            "when = \"startup\"\nset = \"friction(foot_*)[3]\"\nrange = [1, 2]",
            "set",
            "no component [3]",
        ),
        ("when = \"startup\"\nset = \"friction(foot_*)\"\nrange = [-1, 2]", "range", "below 0"),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\nrange = [1e-12, 1]",
            "range",
            "could become 1.0e-12, which is below 1e-9",
        ),
        (
            "when = \"startup\"\nset = \"com(trunk)\"\nrange = [[0, 1], [0, 1]]",
            "range",
            "2 ranges for 3 components",
        ),
        ("when = \"startup\"\nset = \"com(trunk)\"\nrange = [1, 0]", "range", "upside down"),
        ("when = \"interval\"\nset = \"com(trunk)\"\nrange = [0, 1]", "interval_s", "is needed"),
        (
            "when = \"reset\"\ninterval_s = 1\nset = \"com(trunk)\"\nrange = [0, 1]",
            "interval_s",
            "is for when",
        ),
        (
            "when = \"startup\"\nset = \"vel(trunk)\"\nrange = [0, 1]",
            "when",
            "no part of the robot",
        ),
        (
            "when = \"reset\"\nset = \"mass(world)\"\nrange = [0, 1]",
            "set",
            "\"world\" does not move",
        ),
        ("when = \"reset\"\nset = \"mass(trunk)\"", "range", "is missing"),
        (
            "when = \"reset\"\nset = \"mass(trunk)\"\ndistribution = \"normal\"\nmean = 1",
            "std",
            "is needed",
        ),
        (
            "when = \"reset\"\nset = \"mass(trunk)\"\ndistribution = \"choice\"",
            "choices",
            "nothing to choose",
        ),
        (
            "when = \"reset\"\nset = \"mass(trunk)\"\ndistribution = \"log_uniform\"\nrange = [0, 1]",
            "range",
            "no logarithm",
        ),
        (
            "when = \"reset\"\nset = \"mass(trunk)\"\nduration_s = 1\nrange = [1, 2]",
            "duration_s",
            "no meaning",
        ),
        (
            "when = \"reset\"\nset = \"pseudo_inertia(trunk)\"\nrange = [1, 2]",
            "range",
            "table of ranges",
        ),
        ("when = \"reset\"\nset = \"gravity(trunk)\"\nrange = [1, 2]", "set", "takes no name"),
        ("when = \"reset\"\nset = \"mass\"\nrange = [1, 2]", "set", "needs the name of a body"),
        ("when = \"reset\"\nset = \"mass(trunk\"\nrange = [1, 2]", "set", "not closed"),
        (
            "when = \"reset\"\nset = \"inertia(trunk)\"\noperation = \"scale\"\nrange = [0.2, 2.0]",
            "range",
            "no body",
        ),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\noperation = \"scale\"\nrange = [0.0, 1.0]",
            "range",
            "not above 0",
        ),
        (
            "when = \"startup\"\nset = \"density(trunk)\"\noperation = \"scale\"\nrange = [-1.0, 1.0]",
            "range",
            "not above 0",
        ),
        (
            "when = \"startup\"\nset = \"density(trunk)\"\nrange = [1.0, 2.0]",
            "operation",
            "density is scaled",
        ),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\ndistribution = \"choice\"\nchoices = [1.0, -2.0]",
            "choices",
            "could become -2",
        ),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\noperation = \"scale\"\nrange = [1.0, 1e38]",
            "range",
            "infinite",
        ),
        ("when = \"startup\"\nset = \"mass(trunk)\"\nrange = [1.0, 1e39]", "range", "finite"),
        (
            "when = \"startup\"\nset = \"pseudo_inertia(trunk)\"\nrange = { alpha = [0.0, 50.0] }",
            "range.alpha",
            "no body",
        ),
        (
            "when = \"startup\"\nset = \"pseudo_inertia(trunk)\"\nrange = { t = [0.1, 0.0] }",
            "range.t",
            "upside down",
        ),
        (
            "when = \"startup\"\nset = \"pseudo_inertia(trunk)\"\nmean = 0.0\nrange = { t = [0.0, 0.1] }",
            "mean",
            "uniform draws alone",
        ),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\ndistribution = \"normal\"\nmean = 5.0\nstd = 1.0\nrange = [1, 2]",
            "range",
            "no meaning",
        ),
        (
            "when = \"startup\"\nset = \"mass(trunk)\"\ndistribution = \"normal\"\nmean = 5.0\nstd = -1.0",
            "std",
            "negative",
        ),
        ("when = \"startup\"\nset = \"armature(leg_*)\"\nrange = [0, 1]", "set", "fits \"leg_*\""),
        (
            "when = \"startup\"\nset = \"armature(root*)\"\nrange = [0, 1]",
            "set",
            "no hinge or slide joint fits",
        ),
        ("when = \"startup\"\nset = \"joint_offset(root)\"\nrange = [0, 1]", "set", "ball or free"),
        ("when = \"startup\"\nset = \"kd(hip)\"\nrange = [0, 1]", "set", "no actuator fits"),
        ("when = \"startup\"\nset = \"effort_limit(*)\"\nrange = [-1, 1]", "range", "below 0"),
        ("when = \"startup\"\nset = \"gain(hip_fl)\"\nrange = [0, 1]", "set", "is no motor"),
        ("when = \"startup\"\nset = \"gain(hip_*)\"\nrange = [0, 1]", "set", "no motor fits"),
        (
            "when = \"startup\"\nset = \"damping(*)\"\noperation = \"add\"\nrange = [-1.0, 0.0]",
            "range",
            "its own is 0.1",
        ),
        ("when = \"startup\"\nset = \"frictionloss(*)\"\nrange = [-0.1, 0.1]", "range", "below 0"),
        ("when = \"startup\"\nset = \"stiffness(*)\"\nrange = [-0.1, 0.1]", "range", "below 0"),
        (
            "when = \"reset\"\nset = \"force(trunk)\"\noperation = \"scale\"\nrange = [1, 2]",
            "operation",
            "nothing to be scaled",
        ),
        (
            "when = \"startup\"\nduration_s = 1.0\nset = \"force(trunk)\"\nrange = [1, 2]",
            "duration_s",
            "startup",
        ),
        (
            "when = \"interval\"\ninterval_s = [2.0, 1.0]\nset = \"vel(trunk)\"\nrange = [1, 2]",
            "interval_s",
            "upside down",
        ),
        (
            "when = \"interval\"\ninterval_s = 1e-3\nset = \"vel(trunk)\"\nrange = [1, 2]",
            "interval_s",
            "less than the control step",
        ),
        (
            "when = \"interval\"\ninterval_s = 1.0\nduration_s = [1.0, 0.5]\nset = \"force(trunk)\"\nrange = [1, 2]",
            "duration_s",
            "upside down",
        ),
        (
            "when = \"interval\"\ninterval_s = 1.0\nset = \"vel(thigh_fl)\"\nrange = [1, 2]",
            "set",
            "no free joint",
        ),
        (
            "when = \"interval\"\ninterval_s = 1.0\nset = \"vel(thigh_*)\"\nrange = [1, 2]",
            "set",
            "thigh_*",
        ),
    ] {
        let error = Batch::try_new(1, &event("e", rest), 1.0, 1).err().map(|e| e.to_string());
        let error = error.unwrap_or_else(|| panic!("accepted: {rest}"));
        assert!(
            error.contains(&format!("task.event[0].{path}")) && error.contains(words),
            "{rest}\n{error}"
        );
    }
    let twice = [
        event("a", "when = \"startup\"\nset = \"mass(trunk)\"\nrange = [1, 2]"),
        event(
            "b",
            "when = \"reset\"\nset = \"density(trunk)\"\noperation = \"scale\"\nrange = [1, 2]",
        ),
    ]
    .concat();
    let error = Batch::try_new(1, &twice, 1.0, 1).err().unwrap().to_string();
    assert!(error.contains("the event \"a\" sets already"), "{error}");
    // Principal moments and the pseudo-inertia are one inertia.
    let both = [
        event(
            "a",
            "when = \"startup\"\nset = \"inertia(trunk)[1]\"\noperation = \"scale\"\nrange = [1.0, 1.01]",
        ),
        event("b", "when = \"reset\"\nset = \"pseudo_inertia(*)\"\nrange = { alpha = [0.0, 0.1] }"),
    ];
    for text in [both.concat(), format!("{}{}", both[1], both[0])] {
        let error = Batch::try_new(1, &text, 1.0, 1).err().unwrap().to_string();
        assert!(error.contains("sets already"), "{error}");
    }
}

/// What the engine cannot vary is a mistake of the event that asks for it, not of the first one.
#[test]
fn what_cannot_vary_is_told_of_its_own_event() {
    let events = [
        event("a", "when = \"reset\"\nset = \"force(trunk)\"\nrange = [-1.0, 1.0]"),
        event("b", "when = \"startup\"\nset = \"mass(trunk)\"\nrange = [1.0, 2.0]"),
    ];
    let cfg: TaskConfig = toml::from_str(&format!("{BASE}{}", events.concat())).unwrap();
    let mut model = (*robot()).clone();
    model.options.density = 1.2;
    let said = ostler_sim::task::robot(&Arc::new(model), &cfg).unwrap_err().to_string();
    assert!(said.contains("task.event[1].set") && said.contains("in a medium"), "{said}");
}

/// Appends what is seen of events to the observations.
fn see(expr: &str) -> String {
    format!("[[observation]]\nname = \"privileged\"\nexpr = '{expr}'\n")
}

/// Numbers of the observations before those that [`see`] adds.
fn before() -> usize {
    let model = robot();
    model.nq + model.nv + 6
}

#[test]
fn numbers_of_parts_that_are_named_go_in_the_order_of_the_names() {
    for set in ["mass([thigh_fr, thigh_fl])", "mass(thigh_fr, thigh_fl)"] {
        let keys = format!("when = \"reset\"\nset = \"{set}\"\nrange = [0.5, 1.5]");
        let seen = see("event.own - mass([thigh_fr, thigh_fl])");
        let mut batch = Batch::new(20, &[event("own", &keys), seen].concat(), 0.1);
        batch.reset();
        for row in batch.seen(before(), before() + 2) {
            assert!(row.iter().all(|x| x.abs() < 1e-6), "{set}: {row:?}");
        }
    }
    let twice = event("own", "when = \"reset\"\nset = \"mass(trunk, trunk)\"\nrange = [1, 2]");
    let error = Batch::try_new(1, &twice, 1.0, 1).err().unwrap().to_string();
    assert!(error.contains("\"trunk\" is in the list twice"), "{error}");
}

#[test]
fn expressions_read_what_events_drew() {
    let text = [
        event(
            "ice",
            "when = \"startup\"\nset = \"friction(foot_*)[0]\"\nrange = [0.3, 1.5]",
        ),
        event(
            "rub",
            "when = \"startup\"\nset = \"friction(foot_*)[1:3]\"\nshared = true\nrange = [[0.01, 0.02], [0.001, 0.002]]",
        ),
        event(
            "load",
            "when = \"reset\"\nset = \"mass(trunk)\"\noperation = \"add\"\nrange = [-1.0, 3.0]",
        ),
        event(
            "heavy",
            "when = \"reset\"\nset = \"density(thigh_*)\"\noperation = \"scale\"\nrange = [0.8, 1.2]",
        ),
        event(
            "twist",
            "when = \"reset\"\nset = \"pseudo_inertia(calf_fl)\"\nrange = { alpha = [-0.1, 0.1], t = [-0.01, 0.01] }",
        ),
        see("concat(event.ice, event.rub, event.load, event.heavy, event.twist, mass(trunk), friction(\"foot_*\"))"),
    ]
    .concat();
    let mut batch = Batch::new(50, &text, 0.1);
    batch.reset();
    let (start, trunk) = (before(), trunk());
    let model = robot();
    let geoms = model.geoms.iter().enumerate();
    let feet: Vec<usize> =
        geoms.filter(|(_, g)| g.name.starts_with("foot_")).map(|(i, _)| i).collect();
    let thighs: Vec<usize> =
        (0..model.bodies.len()).filter(|b| model.bodies[*b].name.starts_with("thigh_")).collect();
    let mut last = Vec::new();
    for step in 0..12 {
        let seen = batch.seen(start, start + 4 + 2 + 1 + 4 + 4 + 1 + 12);
        for (e, row) in seen.iter().enumerate() {
            for (f, foot) in feet.iter().enumerate() {
                let own = &batch.field(Field::Friction, *foot)[e];
                assert_eq!([row[f], row[4], row[5]], own[..], "{e}");
                assert_eq!(row[16 + 3 * f..][..3], own[..], "{e}");
            }
            let mass = batch.field(Field::Mass, trunk)[e][0];
            assert_eq!(model.bodies[trunk].mass as f32 + row[6], mass);
            assert_eq!(row[15], mass);
            for (i, &b) in thighs.iter().enumerate() {
                let mass = batch.field(Field::Mass, b)[e][0];
                assert_eq!(model.bodies[b].mass as f32 * row[7 + i], mass);
            }
            assert!(row[11].abs() <= 0.1 && row[12..15].iter().all(|t| t.abs() <= 0.01));
        }
        // Episodes of five steps: those of resets are drawn anew, those of startup stay.
        if step == 0 {
            last = seen;
        } else if step == 11 {
            for (a, b) in last.iter().zip(&seen) {
                assert!(a[..6] == b[..6] && a[6..15].iter().zip(&b[6..15]).all(|(x, y)| x != y));
            }
        }
        batch.step();
    }
}

#[test]
fn an_event_that_has_not_happened_reads_as_what_changes_nothing() {
    let text = [
        event(
            "push",
            "when = \"interval\"\ninterval_s = 0.1\nset = \"vel(trunk)[0:2]\"\noperation = \"add\"\nrange = [0.5, 1.0]",
        ),
        event(
            "gust",
            "when = \"interval\"\ninterval_s = 0.1\nduration_s = 0.04\nset = \"force(trunk)[2]\"\nrange = [3.0, 5.0]",
        ),
        event(
            "wear",
            "when = \"interval\"\ninterval_s = 0.1\nset = \"damping(*)\"\nshared = true\noperation = \"scale\"\nrange = [2.0, 3.0]",
        ),
        event(
            "warp",
            "when = \"interval\"\ninterval_s = 0.1\nset = \"pseudo_inertia(trunk)\"\nrange = { alpha = [0.1, 0.2] }",
        ),
        see("concat(event.push, event.gust, event.wear, event.warp, mass(trunk))"),
    ]
    .concat();
    for events in [true, false] {
        let mut batch = Batch::new(3, &text, 0.28);
        batch.env.set_events(events);
        batch.reset();
        let dt = batch.env.spec().step_dt;
        let [every, hold, length] = [0.1, 0.04, 0.28].map(|s| (s / dt).round() as usize);
        let own = robot().bodies[trunk()].mass as f32;
        for t in 0..3 * length {
            let start = before();
            // Of an episode: the first draw comes after so many steps.
            let age = t % length;
            for row in batch.seen(start, start + 6) {
                let [px, py, gust, wear, warp, mass] = row[..] else {
                    panic!("{row:?}");
                };
                if events && age >= every {
                    let on = age % every < hold;
                    assert!((0.5..=1.0).contains(&px) && (0.5..=1.0).contains(&py), "{t}");
                    assert_eq!(gust != 0.0, on, "step {t}");
                    assert!((2.0..=3.0).contains(&wear) && (0.1..=0.2).contains(&warp));
                    assert!((mass / own - (2.0 * warp).exp()).abs() < 1e-5);
                } else {
                    assert_eq!(
                        [px, py, gust, wear, warp, mass],
                        [0.0, 0.0, 0.0, 1.0, 0.0, own],
                        "step {t}"
                    );
                }
            }
            batch.step();
        }
    }
}

/// Normal draws that were cut off are seen as they act.
#[test]
fn draws_that_are_cut_off_are_seen_as_they_act() {
    let text = [
        event(
            "slack",
            "when = \"startup\"\nset = \"damping(*)\"\nshared = true\noperation = \"add\"\ndistribution = \"normal\"\nmean = -1.0\nstd = 1.0",
        ),
        see("concat(event.slack, damping)"),
    ]
    .concat();
    let mut batch = Batch::new(200, &text, 1.0);
    batch.reset();
    let start = before();
    let own = {
        let model = robot();
        let joint = model.joints.iter().find(|j| j.is_scalar()).unwrap();
        joint.damping as f32
    };
    let mut cut = 0;
    for row in batch.seen(start, start + 2) {
        let [drawn, damping] = row[..] else {
            panic!("{row:?}");
        };
        assert!((own + drawn - damping).abs() < 1e-6 && damping >= 0.0, "{row:?}");
        cut += usize::from(damping == 0.0);
    }
    assert!((20..200).contains(&cut), "{cut}");
}

const EXPLOSIVE: &str = r#"
[[event]]
name = "heavy"
when = "startup"
set = "gravity[2]"
distribution = "choice"
choices = [-9.7, -9.8, -9.9, -1e7]
[[event]]
name = "blow"
when = "interval"
interval_s = 0.6
set = "vel(trunk)[2]"
distribution = "choice"
choices = [0.0, 0.0, 0.0, 1e6]
[[event]]
name = "calm"
when = "interval"
interval_s = 2.0
set = "force(trunk)"
range = [0.0, 0.1]
"#;

/// Statistics of so many steps.
fn statistics(batch: &mut Batch, steps: usize) -> EpisodeStats {
    let mut stats = EpisodeStats::with_room(batch.env.spec()).unwrap();
    let mut sum = EpisodeStats::with_room(batch.env.spec()).unwrap();
    for _ in 0..steps {
        batch.step();
        batch.env.take_stats(&mut stats);
        for (a, b) in sum.suspects.iter_mut().zip(&stats.suspects) {
            *a += b;
        }
        for (a, b) in sum.causes.iter_mut().zip(&stats.causes) {
            *a += b;
        }
    }
    sum
}

/// A push that nothing withstands breaks the environment in the step after it, or in its own;
/// an environment with a gravity that nothing withstands breaks again and again.
#[test]
fn breaks_are_counted_by_the_event_before_them() {
    let only = |name: &str| {
        let part = EXPLOSIVE.split("[[event]]").find(|p| p.contains(name));
        format!("[[event]]{}", part.unwrap())
    };
    // The push alone: every break is soon after it.
    let mut batch = Batch::new(40, &(only("blow") + &only("calm")), 1e3);
    batch.reset();
    let stats = statistics(&mut batch, 200);
    assert!(stats.broken() > 20, "{}", stats.broken());
    assert_eq!(stats.suspects[0], stats.broken());
    assert!(stats.suspects[1] < stats.broken() / 4, "{:?}", stats.suspects);
    // What chance would have counted.
    let spec = batch.env.spec().events.clone();
    assert_eq!(spec[0].name, "blow");
    let chance = spec[0].by_chance(stats.broken(), 200 * 40, 40 + stats.broken(), 40);
    let every = 0.6 / batch.env.spec().step_dt;
    assert!((chance - stats.broken() as f64 * 10.0 / every).abs() < 1e-3, "{chance}");

    let mut batch = Batch::new(40, &only("heavy"), 1e3);
    batch.reset();
    let gravity = batch.field(Field::Gravity, 0);
    let count = gravity.iter().filter(|g| g[2] < -1e6).count() as u64;
    let stats = statistics(&mut batch, 400);
    assert!(count > 3 && stats.broken() > 4 * count, "{count} {}", stats.broken());
    assert_eq!(stats.suspects[0], stats.broken() - 2 * count);
}

#[test]
fn suspects_are_the_same_for_any_number_of_threads_and_after_a_snapshot() {
    let text = format!("{EXPLOSIVE}{}", see("concat(event.heavy, event.blow)"));
    let mut one = Batch::new(150, &text, 2.0);
    let mut three = Batch::try_new(150, &text, 2.0, 3).unwrap();
    one.reset();
    three.reset();
    let mut saved = Vec::new();
    statistics(&mut one, 90);
    one.env.capture(&mut saved).unwrap();
    let rest = statistics(&mut one, 150);
    statistics(&mut three, 90);
    let mut again = Batch::new(150, &text, 2.0);
    again.env.restore(&saved).unwrap();
    for other in [&mut three, &mut again] {
        let stats = statistics(other, 150);
        assert_eq!(stats.suspects, rest.suspects);
        assert_eq!(other.bits(), one.bits());
    }
    assert!(rest.suspects[..2].iter().all(|n| *n > 10), "{:?}", rest.suspects);
}

#[test]
fn numbers_that_are_not_as_they_seem_are_said() {
    let text = [
        event(
            "slack",
            "when = \"startup\"\nset = \"damping(*)\"\ndistribution = \"normal\"\nmean = 0.1\nstd = 0.1",
        ),
        event(
            "spring",
            "when = \"startup\"\nset = \"stiffness(*)\"\noperation = \"scale\"\nrange = [0.8, 1.2]",
        ),
        event(
            "fine",
            "when = \"startup\"\nset = \"mass(trunk)\"\nrange = [4.0, 6.0]",
        ),
    ]
    .concat();
    let batch = Batch::new(1, &text, 1.0);
    let (lines, warnings) = batch.env.events();
    assert_eq!(lines.len(), 3);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let says = |k: usize, words: &[&str]| {
        let line: &String = &warnings[k];
        assert!(words.iter().all(|w| line.contains(w)), "{line}");
    };
    says(0, &["\"slack\"", "15.87 % of the draws", "below 0", "become 0"]);
    says(1, &["\"spring\"", "and 11 more", "is 0 in the robot's file"]);
}
