//! Control steps per second of the environments alone: actions that stay, no policy.

use crate::place::{Rows, TestDevice, figure, gpu, task};
use ostler_collector::device::TorchMemory;
use ostler_sim::env::on_device::DeviceEnv;
use std::time::{Duration, Instant};

#[test]
fn control_steps_per_second() {
    let Some(place) = gpu() else { return };
    let cases = [
        ("cartpole", 4096),
        ("cartpole", 1 << 20),
        ("hopper", 4096),
        ("half_cheetah", 4096),
        ("half_cheetah", 16_384),
        ("ant", 4096),
        ("ant", 16_384),
        ("ant", 65_536),
        ("quadruped", 4096),
        ("quadruped", 16_384),
    ];
    for (name, n) in cases {
        let t = task(&place, name, n);
        let start = Instant::now();
        let mut env = t.on_device(&place, &TorchMemory(place.torch));
        figure(
            &format!("{name}.{n}.build_s"),
            start.elapsed().as_secs_f64(),
        );
        time(&place, &mut env, &format!("{name}.{n}"), 1500);
    }
}

/// Prints `NAME.steps_per_s`, the mean, and `NAME.best_steps_per_s`.
fn time(place: &TestDevice, env: &mut DeviceEnv, name: &str, milliseconds: u64) {
    let n = env.spec().num_envs;
    let rows = Rows::new(place, env);
    env.reset(true, rows.obs()).unwrap();
    env.begin_rollout(None).unwrap();
    let mut slice = |steps: usize| {
        let start = Instant::now();
        for _ in 0..steps {
            rows.step(env);
        }
        place.device.synchronize().unwrap();
        start.elapsed()
    };
    // Into contact; the clocks rise.
    slice(100);
    let (mut steps, mut best) = (0, 0.0_f64);
    let time = Duration::from_millis(milliseconds);
    let begin = Instant::now();
    while begin.elapsed() < time {
        let taken = slice(50).as_secs_f64();
        steps += 50;
        best = best.max((50 * n) as f64 / taken);
    }
    let mean = (steps * n) as f64 / begin.elapsed().as_secs_f64();
    assert!(mean > 0.0);
    figure(&format!("{name}.steps_per_s"), mean.round());
    figure(&format!("{name}.best_steps_per_s"), best.round());
}
