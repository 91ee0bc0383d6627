//! Environment steps per second: physics, task and automatic resets, random actions.
//! Divan's items are environment steps.

mod task;

use divan::Bencher;
use divan::counter::ItemsCount;
use ostler_sim::env::BatchEnv;
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, SnapshotError, State};
use std::sync::Arc;
use task::{Batch, load};

fn main() {
    divan::main();
}

/// Physics that stands still: the rest of the time is the task's own.
struct Still(State, f64);

impl Physics for Still {
    fn state(&self) -> &State {
        &self.0
    }
    fn step(&mut self, _ctrl: &[f32], _substeps: usize) {}
    fn reset(&mut self, _mask: &[u32], qpos: &[f32], qvel: &[f32]) {
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
    let (run, model) = load(name, num_envs, threads);
    let env = if still {
        let model = ostler_sim::task::robot_of(&model, &run.sim, &run.env, &run.task);
        let model = model.expect("robot");
        let physics = Still(State::new(&model, num_envs).expect("memory"), model.options.timestep);
        let pool = Arc::new(Pool::new(threads).expect("threads"));
        BatchEnv::with_physics(model, Box::new(physics), pool, &run.env, &run.task, 1, 0)
    } else {
        BatchEnv::new(model, &run.sim, &run.env, &run.task, 1)
    };
    let mut batch = Batch::new(env.expect("environment"));
    let actions = batch.actions(1);
    let bencher = bencher.counter(ItemsCount::new(num_envs));
    bencher.bench_local(|| batch.step(&actions));
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
