//! Pins: the same bits for any threads, batch and shard; snapshots go on exactly.

use super::point_mass::{Batch, Out, build, task};
use ostler_sim::EpisodeStats;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::BatchEnv;
use ostler_sim::rng::{Purpose, fill_uniform};

/// Numbers that a policy of [`everything`] sees.
pub const WIDTH: usize = 17 + 2 * 3;

pub fn everything() -> TaskConfig {
    task(
        r#"
[names]
part = ["cart", "ball"]
[[action]]
actuators = ["push"]
kind = "normalized"
delay = { steps = [0, 2], redraw = 3 }
[[action]]
actuators = ["servo"]
kind = "normalized"
[[command]]
name = "goal"
range = [[-1.0, 1.0]]
resample_s = 0.1
[let]
"far(x)" = "abs(x) > 0.02"
[[state]]
name = "worst"
init = "abs(qpos[0])"
update = "max(state.worst, abs(qpos[0]), 0.5 * abs(previous(command.goal)))"
[[state]]
name = "{part}_sum"
init = "height({part})"
update = "0.5 * state.{part}_sum + height({part})"
[[command]]
name = "twist"
kind = "velocity"
lin_vel_x = [-1, 1]
ang_vel_z = [-1, 1]
heading = { share = 0.5 }
standing = 0.1
resample_s = [0.05, 0.15]
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
noise = 0.1
[[observation]]
name = "twist"
expr = "command.twist"
bias = { normal = 0.1 }
delay = [0, 3]
history = 2
critic = { seen = false }
[[observation]]
name = "goal"
expr = "command.goal"
group = "critic"
[[reward]]
name = "near"
expr = "exp(-norm2(joint_pos(slider) - command.goal) / 1.0)"
[[reward]]
name = "effort"
expr = "sum(action^2) + sum(last_action^2)"
weight = -0.1
[[reward]]
name = "rest"
expr = "1 * state.worst + 1 * state.ball_sum + 1 * far(1 * state.cart_sum) + since(abs(qvel[0]) > 0.1) - norm2(qpos - previous(qpos)) + previous(since(action[0] > 0.5))"
weight = 0.1
[[metric]]
name = "farthest"
expr = "abs(qpos[0])"
over = "max"
[[metric]]
name = "worst"
expr = "state.worst"
[[termination]]
name = "far"
expr = "abs(joint_pos(slider)) > 0.05"
[[reset]]
target = "qpos"
uniform = [-0.04, 0.04]
[[reset]]
target = "qvel"
normal = 0.1
"#,
    )
}

pub const BATCH: Batch = Batch { n: 200, threads: 1, seed: 11, first: 0, steps: 30 };

fn actions(b: Batch, step: u64) -> Vec<f32> {
    let mut a = vec![0.0; 2 * b.n];
    fill_uniform(5, b.first..b.first + b.n as u32, Purpose::ActionNoise, step, 2, &mut a);
    a.iter_mut().for_each(|x| *x = 2.2 * *x - 1.1);
    if step == 17 && b.first == 0 {
        a[7] = f32::NAN;
    }
    a
}

/// All that `range` of environments showed over `steps`, as bits, per environment.
pub fn play(
    env: &mut BatchEnv,
    out: &mut Out,
    b: Batch,
    steps: std::ops::Range<u64>,
) -> Vec<Vec<u32>> {
    let mut seen = vec![Vec::new(); b.n];
    for step in steps {
        out.step(env, &actions(b, step));
        let critic = out.critic.as_ref().unwrap();
        for (e, seen) in seen.iter_mut().enumerate() {
            let row = &out.policy[WIDTH * e..WIDTH * (e + 1)];
            seen.extend(row.iter().map(|x| x.to_bits()));
            seen.extend(critic[18 * e..18 * e + 18].iter().map(|x| x.to_bits()));
            seen.extend(
                [out.reward[e], out.terminated[e], out.truncated[e], out.valid[e]]
                    .map(f32::to_bits),
            );
            seen.push(out.final_slot[e] as u32);
        }
    }
    seen
}

pub fn fresh(b: Batch) -> (BatchEnv, Out) {
    let mut env = build(b, &everything()).unwrap();
    let mut out = Out::new(env.spec(), 8);
    out.reset(&mut env, true);
    (env, out)
}

fn run(b: Batch) -> Vec<Vec<u32>> {
    let (mut env, mut out) = fresh(b);
    play(&mut env, &mut out, b, 0..60)
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let one = run(BATCH);
    for threads in [2, 3, 8] {
        assert!(run(Batch { threads, ..BATCH }) == one, "{threads} threads");
    }
    assert!(run(Batch { seed: 12, ..BATCH }) != one);
}

#[test]
fn an_environment_behaves_the_same_in_any_batch_and_shard() {
    let all = run(BATCH);
    let few = run(Batch { n: 8, ..BATCH });
    assert!(few[..] == all[..8]);
    let shard = run(Batch { n: 70, first: 100, threads: 2, ..BATCH });
    assert!(shard[..] == all[100..170]);
}

#[test]
fn a_snapshot_goes_on_with_the_same_bits() {
    let (mut env, mut out) = fresh(BATCH);
    play(&mut env, &mut out, BATCH, 0..10);
    let mut early = EpisodeStats::default();
    env.take_stats(&mut early);
    assert_eq!(early.shortfalls.contact_overflow, 10);
    play(&mut env, &mut out, BATCH, 10..23);
    let mut blob = b"before".to_vec();
    env.capture(&mut blob).unwrap();
    let straight = play(&mut env, &mut out, BATCH, 23..60);
    let mut straight_stats = EpisodeStats::default();
    env.take_stats(&mut straight_stats);
    assert_eq!(straight_stats.shortfalls.contact_overflow, 50);
    assert_eq!(straight_stats.shortfalls.unsolved, 150);
    assert!(straight_stats.episodes > 50 && straight_stats.faults.iter().sum::<u64>() == 1);

    let (mut other, mut other_out) = fresh(Batch { threads: 3, ..BATCH });
    other.restore(&blob[6..]).unwrap();
    assert!(play(&mut other, &mut other_out, BATCH, 23..60) == straight);
    let mut stats = EpisodeStats::default();
    other.take_stats(&mut stats);
    assert_eq!(stats, straight_stats);
}

#[test]
fn a_snapshot_that_does_not_fit_or_is_damaged_is_refused_with_the_reason_and_changes_nothing() {
    let (mut env, mut out) = fresh(BATCH);
    play(&mut env, &mut out, BATCH, 0..5);
    let mut blob = Vec::new();
    env.capture(&mut blob).unwrap();
    let refused = |b: Batch, task: &TaskConfig, blob: &[u8]| {
        let mut env = build(b, task).unwrap();
        env.restore(blob).unwrap_err().to_string()
    };
    let mut task = everything();
    for (b, part) in [
        (Batch { n: 199, ..BATCH }, "200 environments"),
        (Batch { seed: 3, ..BATCH }, "seed is 11"),
        (Batch { first: 4, ..BATCH }, "first environment is 0"),
    ] {
        let message = refused(b, &task, &blob);
        assert!(message.contains(part), "{message}");
    }
    assert!(refused(Batch { steps: 31, ..BATCH }, &task, &blob).contains("task"));
    task.reward[0].weight = 2.0;
    assert!(refused(BATCH, &task, &blob).contains("task"));
    let before = {
        let mut b = Vec::new();
        env.capture(&mut b).unwrap();
        b
    };
    // Whose it is, the version, the seed.
    for at in [0, 9, 13, 20] {
        let mut bad = blob.clone();
        bad[at] ^= 1;
        env.restore(&bad).unwrap_err();
    }
    for len in [0, 5, 31, 32, 100, blob.len() - 1] {
        env.restore(&blob[..len]).unwrap_err();
    }
    let mut after = Vec::new();
    env.capture(&mut after).unwrap();
    assert!(before == after);
}
