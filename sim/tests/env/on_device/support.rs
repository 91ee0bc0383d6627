//! A batch on the host and one on the stand-in, side by side.

use crate::support::share;
use ostler_sim::config::{AgentsConfig, EnvConfig, Leave, Policies, SimConfig, TaskConfig};
use ostler_sim::device::host::Host;
use ostler_sim::device::{Address, HostMemory};
use ostler_sim::env::on_device::program;
use ostler_sim::env::{DeviceEnv, EnvSpec, PolicyNoise, StepAddresses};
use ostler_sim::physics::native::generate::program_hash;
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use ostler_sim::rng::{Purpose, fill_normal};
use ostler_sim::{BatchEnv, EpisodeStats, Groups, Model, StepOut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Setup {
    pub model: Arc<Model>,
    pub sim: SimConfig,
    pub env: EnvConfig,
    pub task: TaskConfig,
}

/// Whether the program of this setup, which the test calls `name`, is to be compared with the
/// host: not where it was in full. `changing`: as a curriculum's.
pub fn due(name: &str, s: &Setup, changing: bool) -> bool {
    let dt = |model: &Model| s.sim.timestep(model) * s.env.decimation as f64;
    let (model, _) = ostler_sim::task::prepare(&s.model, &s.task, dt).unwrap();
    let plan = lower(&model, &LowerOptions::default()).unwrap();
    let text = program(&model, &s.sim, &s.env, &s.task, changing).unwrap().text;
    share::due(name, &program_hash(&plan, &text))
}

pub fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// A shipped configuration with `n` environments.
pub fn setup(name: &str, n: usize) -> Setup {
    let path = configs().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut table: toml::Table = toml::from_str(&text).unwrap();
    let mut part = |key: &str| table.remove(key).unwrap_or(toml::Value::Table(toml::Table::new()));
    let mut sim: SimConfig = part("sim").try_into().unwrap();
    let mut env: EnvConfig = part("env").try_into().unwrap();
    let mut task: TaskConfig = part("task").try_into().unwrap();
    task.agents = table.remove("agents").map(|a| a.try_into().unwrap());
    env.num_envs = n;
    sim.specialize = ostler_sim::config::Specialize::Wait;
    let model = ostler_sim::model::mjcf::load(&configs().join(&task.robot)).unwrap();
    Setup { model: Arc::new(model), sim, env, task }
}

/// A model of the referee's features that has actuators, with a task that reads its state.
pub fn feature(name: &str, n: usize) -> Setup {
    let path = configs().join(format!("../tests/referee/features/{name}.xml"));
    reads_state(ostler_sim::model::mjcf::load(&path).unwrap(), n)
}

/// Six balls in a trough that is pushed about: contacts of one with another couple all of
/// 37 degrees of freedom, more than a written-out factor has.
pub fn heap(n: usize) -> Setup {
    let balls: String = (0..6)
        .map(|i| {
            let (x, z) = (0.11 * f64::from(i % 3) - 0.11, 0.2 + 0.09 * f64::from(i / 3));
            format!(
                r#"<body pos="{x} {} {z}"><freejoint/><geom size="0.06" mass="0.2"/></body>"#,
                0.01 * f64::from(i % 2)
            )
        })
        .collect();
    let text = format!(
        r#"<mujoco><option timestep="0.005"/><worldbody>
             <body name="trough"><joint name="push" type="slide" axis="1 0 0" range="-0.2 0.2" limited="true"/>
               <geom type="box" size="0.4 0.3 0.02" pos="0 0 0.05" mass="3"/>
               <geom type="capsule" size="0.05 0.3" pos="0.25 0 0.1" euler="90 0 0" mass="0.5"/>
               <geom type="capsule" size="0.05 0.3" pos="-0.25 0 0.1" euler="90 0 0" mass="0.5"/></body>
             {balls}</worldbody>
           <actuator><motor joint="push" gear="60" ctrlrange="-1 1"/></actuator></mujoco>"#
    );
    let model = ostler_sim::model::mjcf::parse(Path::new("heap.xml"), text);
    reads_state(model.unwrap(), n)
}

fn reads_state(model: Model, n: usize) -> Setup {
    let task = toml::from_str(
        r#"
robot = ""
[[action]]
actuators = ["*"]
[[observation]]
name = "state"
expr = "[qpos / 10, qvel / 100]"
[[reward]]
name = "moves"
expr = "sum(abs(qvel)) / 100"
"#,
    );
    let mut s = Setup {
        model: Arc::new(model),
        sim: SimConfig::default(),
        env: EnvConfig::default(),
        task: task.unwrap(),
    };
    s.env.num_envs = n;
    s.sim.specialize = ostler_sim::config::Specialize::Wait;
    s
}

/// Three carts of unequal agents on a plane, with `n` worlds.
pub fn agents(n: usize, centralized: bool) -> Setup {
    let (mut bodies, mut motors) = (String::new(), String::new());
    for (i, name) in ["red", "blue", "green"].iter().enumerate() {
        bodies += &format!(
            r#"<body name="{name}" pos="{i} 0 0.1">
                 <joint name="{name}_x" type="slide" axis="1 0 0" damping="0.3"/>
                 <joint name="{name}_y" type="slide" axis="0 1 0" damping="0.2"/>
                 <geom name="{name}" size="0.3" mass="1"/>
                 <site name="{name}" type="box" size="0.2 0.3 0.3" pos="0.1 0 0"/></body>"#
        );
        motors += &format!(
            r#"<motor name="{name}_x" joint="{name}_x" gear="6" ctrlrange="-1 1"/>
               <motor name="{name}_y" joint="{name}_y" gear="4" ctrlrange="-1 1"/>"#
        );
    }
    let robot = format!(
        r#"<mujoco><option timestep="0.01"/><worldbody>{bodies}</worldbody>
             <actuator>{motors}</actuator>
             <sensor><touch name="felt" site="red"/><accelerometer name="moved" site="blue"/>
               <force name="held" site="green"/><torque name="turned" site="green"/></sensor></mujoco>"#
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("robot.xml");
    std::fs::write(&path, robot).unwrap();
    let mut task: TaskConfig = toml::from_str(
        r#"
robot = ""
[names]
cart = ["red", "blue", "green"]
[let]
swing = "state.{agent}_far - 0.1 * abs(joint_vel({agent}_x))"
lowest = "min(each(cart, state.{cart}_low))"
[[state]]
name = "{agent}_far"
init = "0"
unit = "m"
update = "max(0.99 * state.{agent}_far, abs(joint_pos({agent}_x)))"
[[state]]
name = "{cart}_low"
init = "norm(pos({cart})) + previous(height({cart}))"
update = "min(state.{cart}_low, previous(norm(pos({cart}))), 1 * time + 0.1 * state.steps.y)"
[[state]]
name = "steps"
init = "[0, 1]"
update = "[state.steps.y, state.steps.x + 2]"
[[action]]
actuators = ["{agent}_*"]
agents = ["red", "green"]
[[action]]
actuators = ["blue_y"]
agents = ["blue"]
[[command]]
name = "{agent}_goal"
range = [[-1, 1], [-1, 1]]
resample_s = 0.1
resample_when = "norm(command.{agent}_goal) < 0.5"
[[observation]]
name = "own"
expr = "[joint_pos(\"{agent}_*\"), joint_vel(\"{agent}_*\"), command.{agent}_goal, action]"
noise = 0.05
clip = [-3, 3]
[[observation]]
name = "others"
expr = "[others(pos({other}).xy - pos({agent}).xy), agent_id]"
agents = ["red", "green"]
[[observation]]
name = "close"
expr = "[min(each(contact_force({each}))), state.steps, swing, each(state.{each}_far)]"
group = "critic"
[[observation]]
name = "measured"
expr = "[sensor(felt, moved, held, turned) / 100, joint_acc(\"{agent}_*\") / 50]"
group = "critic"
[[observation]]
name = "known"
expr = "[pos({agent}), agent_index]"
group = "teacher"
agents = ["blue", "green"]
[[observation]]
name = "all"
expr = "each(joint_vel({each}_x))"
group = "expert"
[[reward]]
name = "goal"
expr = "exp(-norm2(command.{agent}_goal - joint_pos(\"{agent}_*\")) / 1)"
[[reward]]
name = "touch"
expr = "sum(contact([red, blue, green]))"
weight = -0.1
agents = ["red", "blue"]
[[reward]]
name = "effort"
expr = "norm2(action_rate)"
weight = -0.01
[[reward]]
name = "apart"
expr = "since(contact({agent})) - previous(since(each(contact({each})))).x + 0.1 * sum(abs(qpos - previous(qpos)))"
weight = -0.1
[[reward]]
name = "swing"
expr = "swing + 0.1 * lowest - 0.001 * sum(state.steps)"
[[metric]]
name = "reach"
expr = "state.{agent}_far"
over = "last"
[[metric]]
name = "low"
expr = "lowest"
over = "min"
[[metric]]
name = "touched"
expr = "any(contact([red, blue, green]))"
over = "any"
[[metric]]
name = "speed"
expr = "norm(qvel)"
[[metric]]
name = "work"
expr = "norm2(action)"
over = "sum"
agents = ["red"]
[[termination]]
name = "gone"
expr = "abs(joint_pos({agent}_x)) > 1.1"
[[termination]]
name = "apart"
expr = "max(each(joint_pos({each}_y))) > 0.9"
truncate = true
[[reset]]
target = "joint_pos(\"{agent}_*\")"
uniform = [-0.2, 0.2]
[[reset]]
target = "joint_vel(\"{agent}_*\")"
expr = "[each(cart, uniform(-0.3, 0.3)).x * 1, 0.1 * command.{agent}_goal.y]"
[[reset]]
target = "joint_pos({agent}_y)"
expr = "0.5 * joint_pos({agent}_y) + 0.1 * min(each(distance({each}, blue))) + 0.05 * agent_index"
[start]
until = ["norm(command.{agent}_goal) > 0.4", "max(each(abs(pos({each}).y))) < 0.25"]
tries = 3
[rewards]
clip = [-0.8, 0.95]
"#,
    )
    .unwrap();
    task.agents = Some(AgentsConfig {
        names: ["red", "blue", "green"].map(String::from).to_vec(),
        policies: Policies::List(["a", "b", "a"].map(String::from).to_vec()),
        centralized_critic: centralized,
    });
    Setup {
        model: Arc::new(ostler_sim::model::mjcf::load(&path).unwrap()),
        sim: SimConfig { specialize: ostler_sim::config::Specialize::Wait, ..SimConfig::default() },
        env: EnvConfig { num_envs: n, decimation: 2, episode_length_s: 0.8 },
        task,
    }
}

/// The cart-pole with functions of a header.
pub fn natives(n: usize) -> Setup {
    let mut s = setup("cartpole", n);
    s.env.episode_length_s = 0.5;
    let folder = configs().join("../sim/tests/natives");
    let more = std::fs::read_to_string(folder.join("terms.toml")).unwrap();
    let more: TaskConfig = toml::from_str(&more).unwrap();
    s.task.native = more.native;
    s.task.state = more.state;
    s.task.command.extend(more.command);
    s.task.observation.extend(more.observation);
    s.task.reward.extend(more.reward);
    s.task.metric.extend(more.metric);
    s.task.termination.extend(more.termination);
    let within = [folder.clone()];
    ostler_sim::config::read_headers(&mut s.task, &folder, &within, Leave::Run).unwrap();
    s
}

/// Rows of one batch.
pub struct Rows {
    pub obs: Vec<f32>,
    pub critic: Vec<f32>,
    pub reward: Vec<f32>,
    pub terminated: Vec<f32>,
    pub truncated: Vec<f32>,
    pub valid: Vec<f32>,
    pub final_obs: Vec<f32>,
    pub final_critic: Vec<f32>,
    pub final_slot: Vec<i32>,
    pub noise: Vec<f32>,
}

pub const SLOTS: usize = 2;
pub const NOISE: usize = 6;

impl Rows {
    fn new(spec: &EnvSpec) -> Self {
        let (n, obs) = (spec.rows(), spec.obs);
        let (o, c) = (obs.policy, obs.critic.unwrap_or(0));
        Self {
            obs: vec![0.0; n * o],
            critic: vec![0.0; n * c],
            reward: vec![0.0; n],
            terminated: vec![0.0; n],
            truncated: vec![0.0; n],
            valid: vec![0.0; n],
            final_obs: vec![0.0; SLOTS * n * o],
            final_critic: vec![0.0; SLOTS * n * c],
            final_slot: vec![0; n],
            noise: vec![0.0; n * NOISE],
        }
    }

    /// Every number of a step, by name.
    pub fn all(&self) -> [(&'static str, &[f32]); 8] {
        [
            ("obs", &self.obs),
            ("critic", &self.critic),
            ("reward", &self.reward),
            ("terminated", &self.terminated),
            ("truncated", &self.truncated),
            ("valid", &self.valid),
            ("final_obs", &self.final_obs),
            ("final_critic", &self.final_critic),
        ]
    }
}

fn address<T>(x: &mut [T]) -> Address {
    x.as_mut_ptr() as Address
}

/// On the host.
pub struct Host_ {
    pub env: BatchEnv,
    pub rows: Rows,
}

/// On the stand-in.
pub struct Device_ {
    pub env: DeviceEnv,
    pub rows: Rows,
}

pub const SEED: u64 = 11;

impl Host_ {
    pub fn new(s: &Setup) -> Self {
        let env = BatchEnv::new(Arc::clone(&s.model), &s.sim, &s.env, &s.task, SEED).unwrap();
        let rows = Rows::new(env.spec());
        Self { env, rows }
    }

    pub fn reset(&mut self, spread: bool) {
        let critic = self.env.spec().obs.critic.is_some();
        let mut obs = Groups {
            policy: &mut self.rows.obs[..],
            critic: critic.then_some(&mut self.rows.critic[..]),
        };
        self.env.reset(spread, &mut obs);
    }

    pub fn step(&mut self, actions: &[f32]) {
        let critic = self.env.spec().obs.critic.is_some();
        let r = &mut self.rows;
        let mut out = StepOut {
            obs: Groups { policy: &mut r.obs, critic: critic.then_some(&mut r.critic[..]) },
            reward: &mut r.reward,
            terminated: &mut r.terminated,
            truncated: &mut r.truncated,
            valid: &mut r.valid,
            final_obs: Groups {
                policy: &mut r.final_obs,
                critic: critic.then_some(&mut r.final_critic[..]),
            },
            final_slot: &mut r.final_slot,
        };
        self.env.step(actions, &mut out);
    }

    pub fn stats(&mut self) -> EpisodeStats {
        let mut stats = EpisodeStats::with_room(self.env.spec()).unwrap();
        self.env.take_stats(&mut stats);
        stats
    }
}

impl Device_ {
    pub fn new(s: &Setup, changing: bool) -> Self {
        Self::on(s, Arc::new(Host::default()), changing)
    }

    pub fn on(s: &Setup, device: Arc<Host>, changing: bool) -> Self {
        let noise = PolicyNoise { seed: SEED, width: NOISE, normal: true };
        let env = DeviceEnv::new(
            Arc::clone(&s.model),
            &s.sim,
            &s.env,
            &s.task,
            SEED,
            0,
            device,
            &HostMemory,
            noise,
            changing,
        );
        let env = env.unwrap();
        let rows = Rows::new(env.spec());
        Self { env, rows }
    }

    pub fn obs(&mut self) -> Groups<Address> {
        let critic = self.env.spec().obs.critic.is_some();
        Groups {
            policy: address(&mut self.rows.obs),
            critic: critic.then_some(address(&mut self.rows.critic)),
        }
    }

    pub fn reset(&mut self, spread: bool) {
        let obs = self.obs();
        self.env.reset(spread, obs).unwrap();
    }

    pub fn step(&mut self, actions: &mut [f32], noise_step: Option<u64>) {
        let obs = self.obs();
        let r = &mut self.rows;
        let out = StepAddresses {
            obs,
            reward: address(&mut r.reward),
            terminated: address(&mut r.terminated),
            truncated: address(&mut r.truncated),
            valid: address(&mut r.valid),
            final_obs: Groups {
                policy: address(&mut r.final_obs),
                critic: obs.critic.map(|_| address(&mut r.final_critic)),
            },
            final_slots: SLOTS,
            final_slot: address(&mut r.final_slot),
            noise: noise_step.map(|step| (address(&mut r.noise), step)),
        };
        self.env.step(address(actions), &out).unwrap();
    }

    pub fn stats(&mut self) -> EpisodeStats {
        let mut stats = EpisodeStats::with_room(self.env.spec()).unwrap();
        self.env.take_stats(&mut stats).unwrap();
        stats
    }
}

/// Actions of step `t`, normal with standard deviation `scale`.
pub fn actions(n: usize, width: usize, t: u64, scale: f32) -> Vec<f32> {
    let mut out = vec![0.0; n * width];
    fill_normal(5, 0..n as u32, Purpose::ActionNoise, t, width, &mut out);
    out.iter_mut().for_each(|x| *x *= scale);
    out
}
