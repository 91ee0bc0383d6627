//! Environment steps per second: physics, task and automatic resets, random actions.
//! Divan's items are environment steps.

use divan::Bencher;
use divan::counter::ItemsCount;
use ostler_sim::config::{Auto, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, Groups, StepOut};
use ostler_sim::model::mjcf;
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, SnapshotError, State};
use ostler_sim::rng::{Purpose, fill_normal};
use std::path::Path;
use std::sync::Arc;

fn main() {
    divan::main();
}

#[derive(serde::Deserialize)]
struct Run {
    #[serde(default)]
    sim: SimConfig,
    env: EnvConfig,
    task: TaskConfig,
}

/// Physics that stands still: what is left is the task's own time.
struct Still(State, f64);

impl Physics for Still {
    fn state(&self) -> &State {
        &self.0
    }
    fn step(&mut self, _ctrl: &[f32], _substeps: usize) {}
    fn reset(&mut self, _mask: &[u8], qpos: &[f32], qvel: &[f32]) {
        self.0.qpos.copy_from_slice(qpos);
        self.0.qvel.copy_from_slice(qvel);
    }
    fn timestep(&self) -> f64 {
        self.1
    }
    fn capture(&self, _out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        Ok(())
    }
    fn restore(&mut self, _blob: &[u8]) -> Result<(), SnapshotError> {
        Ok(())
    }
}

fn steps(bencher: Bencher, name: &str, num_envs: usize, threads: usize, still: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("config");
    let mut run: Run = toml::from_str(&text).expect("config");
    run.env.num_envs = num_envs;
    run.sim.threads = Auto::N(threads);
    // Nothing compiles beside what is measured.
    run.sim.specialize = Specialize::Wait;
    let model = Arc::new(mjcf::load(&folder.join(&run.task.robot)).expect("robot"));
    let mut env = if still {
        let physics = Still(
            State::new(&model, num_envs).expect("memory"),
            model.options.timestep,
        );
        let pool = Arc::new(Pool::new(threads).expect("threads"));
        BatchEnv::with_physics(model, Box::new(physics), pool, &run.env, &run.task, 1, 0)
    } else {
        BatchEnv::new(model, &run.sim, &run.env, &run.task, 1)
    }
    .expect("environment");
    let spec = env.spec().clone();
    let mut obs = vec![0.0; num_envs * spec.obs.policy];
    let mut critic = spec.obs.critic.map(|c| vec![0.0; num_envs * c]);
    let (mut final_obs, mut final_critic) = (obs.clone(), critic.clone());
    let mut columns = vec![vec![0.0; num_envs]; 4];
    let mut slot = vec![0; num_envs];
    let width = spec.action.width();
    let mut actions = vec![0.0; num_envs * width];
    fill_normal(
        1,
        0..num_envs as u32,
        Purpose::ActionNoise,
        0,
        width,
        &mut actions,
    );
    env.reset(
        true,
        &mut Groups {
            policy: &mut obs,
            critic: critic.as_deref_mut(),
        },
    );
    bencher.counter(ItemsCount::new(num_envs)).bench_local(|| {
        let [reward, terminated, truncated, valid] = columns
            .get_disjoint_mut([0, 1, 2, 3])
            .expect("four columns");
        env.begin_rollout();
        env.step(
            &actions,
            &mut StepOut {
                obs: Groups {
                    policy: &mut obs,
                    critic: critic.as_deref_mut(),
                },
                reward,
                terminated,
                truncated,
                valid,
                final_obs: Groups {
                    policy: &mut final_obs,
                    critic: final_critic.as_deref_mut(),
                },
                final_slot: &mut slot,
            },
        );
    });
}

#[divan::bench(args = [1, 2])]
fn cartpole(bencher: Bencher, threads: usize) {
    steps(bencher, "cartpole", 256, threads, false);
}

#[divan::bench(args = [1, 2])]
fn half_cheetah(bencher: Bencher, threads: usize) {
    steps(bencher, "half_cheetah", 64, threads, false);
}

#[divan::bench(args = ["cartpole", "half_cheetah", "quadruped"])]
fn task_alone(bencher: Bencher, name: &str) {
    steps(bencher, name, 1024, 1, true);
}
