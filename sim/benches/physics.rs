//! Physics alone: steps per second of each robot on one and on two pinned threads.
//!
//! `cargo bench -p ostler-sim --bench physics [-- ROBOT...]`. Keys are dotted and
//! greppable. Times are the best of many slices: on a shared machine the best slice
//! is the one that was not disturbed.

use ostler_sim::config::SimConfig;
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::{Physics, fault, pool::Pool, rapier};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Robot, time steps per control step.
const ROBOTS: [(&str, usize); 6] = [
    ("cartpole", 2),
    ("double_pendulum", 5),
    ("hopper", 4),
    ("half_cheetah", 5),
    ("ant", 5),
    ("quadruped", 4),
];
const WORLDS: usize = 128;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let cores = cores();
    for (name, substeps) in ROBOTS {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            bench(name, substeps, &cores);
        }
    }
}

fn bench(name: &str, substeps: usize, cores: &[usize]) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots").join(format!("{name}.xml"));
    let model = match mjcf::load(&path) {
        Ok(model) => Arc::new(model),
        Err(error) => {
            eprintln!("{error}");
            return;
        }
    };
    let before = resident();
    let mut one = Bench::new(&model, 1, cores);
    let bytes = resident().saturating_sub(before) / WORLDS;
    let mut two = Bench::new(&model, 2, cores);
    // In turns, so that both meet the same machine.
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        one.slice(substeps);
        two.slice(substeps);
    }
    let rate = |b: &Bench| WORLDS as f64 / b.best;
    println!("physics.{name}.env_steps_per_s.threads_1 {:.0}", rate(&one));
    println!("physics.{name}.env_steps_per_s.threads_2 {:.0}", rate(&two));
    println!("physics.{name}.scaling {:.2}", rate(&two) / rate(&one));
    println!("physics.{name}.bytes_per_world {bytes}");
    println!("physics.{name}.resets_per_s {:.0}", WORLDS as f64 / one.reset());
}

struct Bench {
    model: Arc<Model>,
    worlds: Box<dyn Physics>,
    ctrl: Vec<f32>,
    step: usize,
    best: f64,
    start: Vec<f32>,
}

impl Bench {
    fn new(model: &Arc<Model>, threads: usize, cores: &[usize]) -> Self {
        let pool = Arc::new(Pool::new(threads).expect("threads"));
        pin(&pool, cores);
        let worlds = rapier::new(model, &SimConfig::default(), WORLDS, &pool).expect("worlds");
        let start = worlds.state().qpos.clone();
        Self {
            model: Arc::clone(model),
            worlds,
            ctrl: vec![0.0; model.nu() * WORLDS],
            step: 0,
            best: f64::MAX,
            start,
        }
    }

    /// Ten control steps of every world under pseudo-random controls.
    fn slice(&mut self, substeps: usize) {
        let mut total = 0.0;
        for _ in 0..10 {
            for (i, u) in self.ctrl.iter_mut().enumerate() {
                *u = ((i * 31 + self.step * 17) as f32 * 0.7).sin();
            }
            self.step += 1;
            let begin = Instant::now();
            self.worlds.step(&self.ctrl, substeps);
            total += begin.elapsed().as_secs_f64();
        }
        self.best = self.best.min(total / 10.0);
        let broken: Vec<u32> = (self.worlds.state().fault.iter())
            .map(|f| u32::from(f & !fault::CONTROL != 0))
            .collect();
        let qvel = vec![0.0; self.model.nv * WORLDS];
        self.worlds.reset(&broken, &self.start, &qvel);
    }

    /// Time to reset all worlds.
    fn reset(&mut self) -> f64 {
        let qvel = vec![0.0; self.model.nv * WORLDS];
        (0..20)
            .map(|_| {
                let begin = Instant::now();
                self.worlds.reset(&[1; WORLDS], &self.start, &qvel);
                begin.elapsed().as_secs_f64()
            })
            .fold(f64::MAX, f64::min)
    }
}

/// The cores this thread may use.
fn cores() -> Vec<usize> {
    // SAFETY: the set is plain data and lives through the call.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|c| libc::CPU_ISSET(*c, &set)).collect()
    }
}

/// Ties this thread to a core.
fn pin_to(core: usize) {
    // SAFETY: the set is plain data and lives through the call.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

/// Ties every thread of the pool to a core of its own: the caller to the first.
fn pin(pool: &Pool, cores: &[usize]) {
    let barrier = Barrier::new(pool.threads());
    let caller = std::thread::current().id();
    // The barrier makes sure that every part gets a thread of its own.
    let next = AtomicUsize::new(1);
    pool.run(pool.threads(), &|_| {
        barrier.wait();
        let core = if std::thread::current().id() == caller {
            0
        } else {
            next.fetch_add(1, Ordering::Relaxed)
        };
        pin_to(cores[core % cores.len()]);
    });
}

/// Resident memory of this process (bytes).
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|s| s.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()))
        .unwrap_or(0);
    pages * 4096
}
