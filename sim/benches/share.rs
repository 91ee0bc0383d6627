//! How much of a control step is physics: the share of the time in `BatchEnv::step` that is
//! spent in the engine, block by block, and steps per second of both, in one run of 1,024
//! environments on one thread: with random actions, under which the cart-pole begins an
//! episode every eight steps, and with none. Beside it the time of all the task's expressions
//! alone, over that of the physics; and how long 4,096 environments take to begin.
//!
//! `cargo bench -p ostler-sim --bench share -- [ROBOT | FILE.toml ...]`

mod task;

use ostler_sim::env::BatchEnv;
use ostler_sim::physics::native::{NativePhysics, new};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Physics, SnapshotError, State, StepArgs, Stepper};
use ostler_sim::task::expr::{BLOCK, Buffers, Scratch};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use task::{Batch, load};

const N: usize = 1024;
const MANY: usize = 4096;
const ROUNDS: usize = 9;
const STEPS: usize = 200;

/// Counts the nanoseconds in which blocks of worlds are stepped.
struct Timed(NativePhysics, Arc<AtomicU64>);

impl Stepper for Timed {
    unsafe fn step_block(&self, args: &StepArgs, first: usize, len: usize) {
        let clock = Instant::now();
        // SAFETY: the caller's promise; the arguments are the engine's.
        unsafe { self.0.step_block(args, first, len) };
        self.1.fetch_add(clock.elapsed().as_nanos() as u64, Relaxed);
    }
}

impl Physics for Timed {
    fn state(&self) -> &State {
        self.0.state()
    }
    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        self.0.step(ctrl, substeps);
    }
    fn stepper(&self) -> Option<&dyn Stepper> {
        Some(self)
    }
    fn step_args(&mut self) -> Option<StepArgs> {
        self.0.step_args()
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
        true
    }
    fn varies(&self) -> bool {
        true
    }
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.0.capture(out)
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.0.restore(bytes)
    }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let all = ["cartpole", "half_cheetah", "ant", "quadruped"].map(String::from);
    println!(
        "robot          share  simulation/s     physics/s   terms   actions (medians of {ROUNDS} rounds)"
    );
    for name in if asked.is_empty() { &all[..] } else { &asked } {
        measure(name, true);
        measure(name, false);
    }
    println!("robot          ms until {MANY} environments have their first states (median of 5)");
    for name in if asked.is_empty() { &all[..] } else { &asked } {
        println!("{name:<14} {:.1}", first_states(name));
    }
}

/// Milliseconds of the first reset, with all events of startup, and of what follows from them
/// before the first step: all of that step.
fn first_states(name: &str) -> f64 {
    let (run, model) = load(name, MANY, 1);
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let env = BatchEnv::new(Arc::clone(&model), &run.sim, &run.env, &run.task, 1);
            let env = env.expect("environments");
            let clock = Instant::now();
            let mut batch = Batch::new(env);
            let actions = batch.actions(1);
            batch.step(&actions);
            clock.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

fn measure(name: &str, random: bool) {
    let (run, model) = load(name, N, 1);
    let pool = Arc::new(Pool::new(1).expect("threads"));
    let spent = Arc::new(AtomicU64::new(0));
    let model = ostler_sim::task::robot_of(&model, &run.sim, &run.env, &run.task).expect("robot");
    let worlds = new(&model, &run.sim, N, &pool).expect("worlds");
    let timed = Box::new(Timed(worlds, Arc::clone(&spent)));
    let env = BatchEnv::with_physics(model, timed, pool, &run.env, &run.task, 1, 0);
    let mut batch = Batch::new(env.expect("environments"));
    let mut actions = batch.actions(16);
    if !random {
        actions.fill(0.0);
    }
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        let (clock, before) = (Instant::now(), spent.load(Relaxed));
        for chosen in actions.chunks(actions.len() / 16).cycle().take(STEPS) {
            batch.step(chosen);
        }
        let all = clock.elapsed().as_nanos() as f64;
        let physics = (spent.load(Relaxed) - before) as f64;
        rounds.push((physics / all, all, physics));
    }
    // The first warms up.
    let middle = |of: fn(&(f64, f64, f64)) -> f64| {
        let mut all: Vec<f64> = rounds[1..].iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    let terms = expressions(&batch.env) * STEPS as f64 / middle(|r| r.2);
    let per_second = |nanos: f64| 1e9 * (STEPS * N) as f64 / nanos;
    println!(
        "{name:<14} {:.3} {:>13.0} {:>13.0}   {terms:.3}   {}",
        middle(|r| r.0),
        per_second(middle(|r| r.1)),
        per_second(middle(|r| r.2)),
        if random { "random" } else { "none" }
    );
}

/// Nanoseconds in which all expressions are evaluated once for all environments.
fn expressions(env: &BatchEnv) -> f64 {
    let (task, n) = (env.compiled(), env.spec().num_envs);
    let numbers = |width: usize| vec![0.5_f32; width * n];
    let wide = numbers(1 << 10);
    let step = vec![17; n];
    let mut scratch = Scratch::default();
    let mut times: Vec<f64> = (0..10 * ROUNDS)
        .map(|_| {
            let clock = Instant::now();
            for first in (0..n).step_by(BLOCK) {
                let inputs = Buffers {
                    state: env.physics().state(),
                    ctrl: &wide,
                    action: &wide,
                    last_action: &wide,
                    history: &wide,
                    shown: &wide,
                    command: &wide,
                    random: &wide,
                    native: &wide,
                    scan: &wide,
                    stand: &wide,
                    motion: &wide,
                    terrain: None,
                    params: &task.params,
                    step: &step,
                    step_dt: env.spec().step_dt as f32,
                    max_steps: env.spec().max_episode_steps,
                }
                .block(first, BLOCK.min(n - first));
                task.evaluate(&inputs, &mut scratch);
            }
            clock.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
