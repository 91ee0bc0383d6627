//! A million steps: the context lives, memory stays.

use crate::place::{Rows, figure, place, task};
use ostler_collector::device::TorchMemory;
use ostler_sim::EpisodeStats;
use std::time::Instant;
use tch::Kind;

/// Resident memory (KiB).
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn soak_of_a_million_launches() {
    let place = place();
    let launches = place.pick(1_000_000, 20_000);
    let t = task(&place, "cartpole", 64);
    let mut env = t.on_device(&place, &TorchMemory(place.torch));
    let rows = Rows::new(&place, &env);
    env.reset(true, rows.obs()).unwrap();
    let mut stats = EpisodeStats::with_room(env.spec()).unwrap();
    let mut episodes = 0;
    let mut on = |launches: usize| {
        for step in 0..launches {
            if step % 1000 == 0 {
                env.take_stats(&mut stats).unwrap();
                episodes += stats.episodes;
                env.begin_rollout(None).unwrap();
            }
            rows.step(&mut env);
        }
        place.device.synchronize().unwrap();
    };
    on(launches / 20);
    let free = || place.cuda.as_ref().map(|c| c.free_memory().unwrap().0);
    let before = (free(), resident());
    let start = Instant::now();
    on(launches);
    let seconds = start.elapsed().as_secs_f64();
    let after = (free(), resident());
    assert_eq!(before.0, after.0, "free memory of the GPU");
    // Beside other tests of this program the process's memory is theirs, too; the bundle
    // runs this one alone.
    let alone = std::env::var_os("OSTLER_GPU_TESTS").is_some();
    assert!(!alone || after.1 - before.1 < 2048.0, "{} KiB, then {}", before.1, after.1);
    assert!(episodes > 0);
    assert_eq!(rows.flags[2].sum(Kind::Double).double_value(&[]), 64.0);
    figure("soak.launches", launches as f64);
    figure("soak.us_per_launch", 1e6 * seconds / launches as f64);
}
