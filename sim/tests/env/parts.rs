//! An engine that steps all worlds at once, as MuJoCo's does, begins episodes in parts. They do
//! what the whole does.

use crate::batch_env::point_mass::Out;
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::BatchEnv;
use ostler_sim::model::mjcf;
use ostler_sim::physics::native::{self, NativePhysics};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, SnapshotError, State};
use ostler_sim::task::prepare;
use std::path::Path;
use std::sync::Arc;

/// Two blocks.
const N: usize = 70;

/// The native engine without what it offers to step blocks.
pub struct Whole(pub NativePhysics);

impl Physics for Whole {
    fn state(&self) -> &State {
        self.0.state()
    }
    fn columns_mut(&mut self) -> Option<&mut State> {
        self.0.columns_mut()
    }
    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        self.0.step(ctrl, substeps);
    }
    fn activate(&mut self, act: &[f32]) {
        self.0.activate(act);
    }
    fn reset(&mut self, mask: &[u32], qpos: &[f32], qvel: &[f32]) {
        self.0.reset(mask, qpos, qvel);
    }
    fn timestep(&self) -> f64 {
        self.0.timestep()
    }
    fn measures(&self) -> bool {
        self.0.measures()
    }
    fn varies(&self) -> bool {
        self.0.varies()
    }
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.0.capture(out)
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.0.restore(bytes)
    }
}

/// Tiles, events at all times, drawn starts, commands and memory.
const TASK: &str = r#"
[[action]]
actuators = ["*"]
delay = [0, 2]
[[command]]
name = "goal"
range = [[-1.0, 1.0], [0.0, 1.0]]
resample_s = [0.1, 0.3]
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
noise = 0.1
history = 2
[[observation]]
name = "place"
expr = "concat(terrain_origin, terrain_level, terrain_height(pos(trunk)))"
[[observation]]
name = "seen"
expr = "concat(command.goal, height_scan(trunk, [0.4, 0.2], 0.2), net_contact_force(trunk).z)"
[[reward]]
name = "far"
expr = "norm(pos(trunk).xy - terrain_origin.xy)"
[[termination]]
name = "low"
expr = "pos(trunk).z - terrain_origin.z < 0.2"
[[reset]]
target = "keyframe(home)"
[[reset]]
target = "pos(trunk)"
uniform = [[-0.5, 0.5], [-0.5, 0.5], [0.0, 0.1]]
[[event]]
name = "load"
when = "startup"
set = "mass(trunk)"
operation = "scale"
range = [0.8, 1.2]
[[event]]
name = "slip"
when = "reset"
set = "friction(floor)[0]"
range = [0.3, 1.2]
[[event]]
name = "push"
when = "interval"
interval_s = [0.1, 0.4]
set = "vel(trunk)"
operation = "add"
range = [-1.0, 1.0]
[terrain]
levels = 4
columns = 5
kinds = [{ kind = "stairs", step_height = [0.02, 0.1] }, { kind = "slope", slope = [0.1, 0.4] }]
start_level = [1, 2]
up = "command.goal[1] > 0.6"
down = "command.goal[1] < 0.3"
"#;

/// Bits of all results of a step.
fn step(env: &mut BatchEnv, out: &mut Out, actions: &[f32]) -> Vec<u32> {
    out.step(env, actions);
    let flags = [&out.reward, &out.terminated, &out.truncated, &out.valid];
    let all = flags.into_iter().chain([&out.policy, &out.final_policy]).flatten();
    all.map(|x| x.to_bits()).collect()
}

#[test]
fn parts_do_what_the_whole_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    let model = Arc::new(mjcf::load(&path).unwrap());
    let task: TaskConfig = toml::from_str(TASK).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: N, decimation: 4, episode_length_s: 1.0 };
    let mut ours = BatchEnv::new(Arc::clone(&model), &sim, &env, &task, 5).unwrap();
    let (robot, _) = prepare(&model, &task, |m| sim.timestep(m) * 4.0).unwrap();
    let pool = Arc::new(Pool::new(1).unwrap());
    let worlds = Box::new(Whole(native::new(&robot, &sim, N, &pool).unwrap()));
    let mut theirs = BatchEnv::with_physics(model, worlds, pool, &env, &task, 5, 0).unwrap();
    let level = 2 * (robot.nq + robot.nv) + 3;
    let [mut a, mut b] = [&ours, &theirs].map(|env| Out::new(env.spec(), N));
    a.reset(&mut ours, true);
    b.reset(&mut theirs, true);
    let (nu, width) = (robot.nu(), ours.spec().obs.policy);
    let mut levels = [0_usize; 4];
    for k in 0..200 {
        let actions: Vec<f32> = (0..N * nu).map(|i| ((i * 7 + k * 3) as f32).sin()).collect();
        let ours = step(&mut ours, &mut a, &actions);
        assert_eq!(ours, step(&mut theirs, &mut b, &actions), "step {k}");
        a.policy.chunks(width).for_each(|row| levels[row[level] as usize] += 1);
    }
    assert!(levels.iter().all(|&count| count > 100), "{levels:?}");
}
