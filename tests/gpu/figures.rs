//! Control steps per second of the environments alone, with actions that stay and without a
//! policy; and updates.

use crate::place::{Rows, TestDevice, figure, gpu, task};
use ostler_collector::device::TorchMemory;
use ostler_collector::{Collector, CudaSync};
use ostler_sim::device::cuda::{Cuda, CudaOptions};
use ostler_sim::env::on_device::DeviceEnv;
use ostler_trainer::learner::Learner;
use ostler_trainer::torch::{MatmulPrecision, set_matmul_precision};
use std::time::{Duration, Instant};

#[test]
fn control_steps_per_second() {
    let Some(place) = gpu() else { return };
    let most = |name: &str| if name == "cartpole" { 1 << 20 } else { 1 << 18 };
    let all = ["cartpole", "ant", "half_cheetah", "quadruped"];
    for name in &all[..place.pick(4, 2)] {
        let all = [1024, 4096, 16_384, 65_536, 262_144, 1 << 20];
        let sizes = place.pick(&all[..], &[64]);
        for &n in sizes.iter().filter(|n| **n <= most(name)) {
            let t = task(&place, name, n);
            let start = Instant::now();
            let mut env = t.on_device(&place, &TorchMemory(place.torch));
            let seconds = start.elapsed().as_secs_f64();
            figure(&format!("{name}.{n}.build_s"), seconds);
            let milliseconds = place.pick(1000, 20);
            time(&place, &mut env, &format!("{name}.{n}"), milliseconds);
        }
    }
}

/// With so many threads in a block, at most: few fill all schedulers of a GPU with few
/// environments, many share what its caches hold.
#[test]
fn threads_of_a_block() {
    let Some(place) = gpu() else { return };
    let tch::Device::Cuda(index) = place.torch else { return };
    // Packed with the bundle, and not beside the tests.
    let go1 = "../examples/go1_flat";
    let there = crate::place::configs().join("../examples/mjlab").is_dir();
    let all = ["ant", "quadruped"].into_iter().chain(there.then_some(go1));
    for name in all.take(place.pick(3, 1)) {
        let short = name.rsplit('/').next().unwrap();
        for n in place.pick([4096, 16_384], [64, 96]) {
            for threads in place.pick(&[128, 32, 16, 8, 4][..], &[8]) {
                let options = CudaOptions { threads_per_block: Some(*threads) };
                let cuda = Cuda::with(index, &options).unwrap();
                let place = TestDevice { device: cuda.clone(), cuda: Some(cuda), ..place };
                let t = task(&place, name, n);
                let mut env = t.on_device(&place, &TorchMemory(place.torch));
                let name = format!("{short}.{n}.threads_{threads}");
                time(&place, &mut env, &name, place.pick(400, 20));
            }
        }
    }
}

/// PPO's update of rollouts of 24 steps, 5 epochs of 4 minibatches, two networks of
/// [512, 256, 128]: by the host's clock, and by events in the device's own order.
#[test]
fn updates_by_events() {
    let Some(place) = gpu() else { return };
    let medium = place.pick(4096, 16);
    let large = place.pick(16_384, 32);
    for (size, n) in [("medium", medium), ("large", large)] {
        for (precision, name) in
            [(MatmulPrecision::Highest, "float32"), (MatmulPrecision::High, "tf32")]
        {
            set_matmul_precision(precision).unwrap();
            let t = task(&place, "ant", n).learns_by(|ppo, actor, critic| {
                ppo.num_learning_epochs = 5;
                ppo.num_mini_batches = 4;
                ppo.kl_stop = 0.0;
                actor.hidden_dims = place.pick(vec![512, 256, 128], vec![16, 16]);
                critic.hidden_dims = actor.hidden_dims.clone();
            });
            let mut ppo = t.learner(&place, 24);
            let mut c = t.collector_for(&place, 24, CudaSync::Off, ppo.policy());
            c.collect(ppo.policy_mut()).unwrap();
            let (mut seconds, mut by_events) = (f64::MAX, f64::MAX);
            for round in 0..place.pick(8, 2) {
                place.device.synchronize().unwrap();
                let start = Instant::now();
                let (done, gpu) = place.timed(|| ppo.update(c.rollout()));
                let taken = start.elapsed().as_secs_f64();
                assert_eq!(done.unwrap().skipped, 0);
                if round > 0 {
                    (seconds, by_events) = (seconds.min(taken), by_events.min(gpu));
                }
            }
            let of = |what: &str| format!("update.{size}.{name}.{what}");
            figure(&of("ms"), 1e3 * seconds);
            figure(&of("gpu_ms"), 1e3 * by_events);
            figure(&of("minibatch_gpu_ms"), 1e3 * by_events / 20.0);
        }
    }
    set_matmul_precision(MatmulPrecision::Highest).unwrap();
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
    slice(place.pick(100, 2));
    let many = place.pick(50, 5);
    let (mut steps, mut best) = (0, 0.0_f64);
    let time = Duration::from_millis(milliseconds);
    let begin = Instant::now();
    while begin.elapsed() < time {
        let taken = slice(many).as_secs_f64();
        steps += many;
        best = best.max((many * n) as f64 / taken);
    }
    let mean = (steps * n) as f64 / begin.elapsed().as_secs_f64();
    assert!(mean > 0.0);
    figure(&format!("{name}.steps_per_s"), mean.round());
    figure(&format!("{name}.best_steps_per_s"), best.round());
}
