//! Pins: kept, restored, taken over, cut and joined, worlds of several agents go on with
//! the same bits; threads do not matter.

use super::arena::{Batch, Out, actions, build, task};
use ostler_sim::{BatchEnv, EpisodeStats};

const TASK: &str = r#"
[agents]
names = ["red", "blue", "green"]
policies = ["runner", "runner", "hunter"]
centralized_critic = true
[task]
robot = ""
[[task.action]]
actuators = ["{agent}_*"]
[[task.command]]
name = "{agent}_goal"
range = [[-1, 1]]
resample_s = 0.06
[[task.observation]]
name = "own"
expr = "[joint_pos(\"{agent}_*\"), command.{agent}_goal]"
noise = 0.1
[[task.observation]]
name = "prey"
expr = "others(pos({other}).x)"
agents = ["green"]
[[task.reward]]
name = "x"
expr = "pos({agent}).x / 1 + norm2(action)"
[[task.reward]]
name = "all"
expr = "height(ball) / 1"
[[task.termination]]
name = "out"
expr = "pos({agent}).y > 0.16"
[[task.reset]]
target = "joint_pos(\"*\")"
uniform = [-0.2, 0.2]
"#;

const BATCH: Batch = Batch { n: 150, threads: 1, first: 0, steps: 9 };

fn fresh(b: Batch) -> (BatchEnv, Out) {
    let mut env = build(b, &task(TASK)).unwrap();
    let mut out = Out::new(env.spec());
    out.reset(&mut env, true);
    (env, out)
}

/// The bits of every step of environments `from..`.
fn play(
    env: &mut BatchEnv,
    out: &mut Out,
    b: Batch,
    steps: std::ops::Range<u64>,
    from: usize,
) -> Vec<u32> {
    let mut all = Vec::new();
    for t in steps {
        out.step(env, &actions(b.first, b.n, 6, t));
        all.extend(out.bits(b.n, from));
    }
    all
}

fn stats(env: &mut BatchEnv) -> EpisodeStats {
    let mut stats = EpisodeStats::with_room(env.spec()).unwrap();
    env.take_stats(&mut stats);
    stats
}

#[test]
fn threads_do_not_matter() {
    let (mut one, mut a) = fresh(BATCH);
    let (mut three, mut b) = fresh(Batch { threads: 3, ..BATCH });
    let of_one = play(&mut one, &mut a, BATCH, 0..30, 0);
    assert!(of_one == play(&mut three, &mut b, BATCH, 0..30, 0));
    let counted = stats(&mut one);
    assert!(counted.episodes > 200 && counted.terminations.iter().all(|&k| k > 0), "{counted:?}");
    assert_eq!(counted, stats(&mut three));
}

#[test]
fn restored_they_go_on_with_the_same_bits_and_sums() {
    let (mut env, mut out) = fresh(BATCH);
    play(&mut env, &mut out, BATCH, 0..12, 0);
    let (mut saved, mut kept) = (Vec::new(), Vec::new());
    env.capture(&mut saved).unwrap();
    env.capture(&mut kept).unwrap();
    let straight = play(&mut env, &mut out, BATCH, 12..30, 0);
    let counted = stats(&mut env);
    assert!(counted.agent_return_sums.iter().all(|s| *s != 0.0));
    let (mut other, mut out) = fresh(BATCH);
    other.restore(&saved).unwrap();
    assert!(play(&mut other, &mut out, BATCH, 12..30, 0) == straight);
    assert_eq!(stats(&mut other), counted);
    other.restore(&kept).unwrap();
    assert!(play(&mut other, &mut out, BATCH, 12..30, 0) == straight);

    // Of other agents, it is refused.
    let text = TASK.replace("\"runner\", \"runner\"", "\"hunter\", \"runner\"");
    let text = text.replace("agents = [\"green\"]\n", "");
    let mut foreign = build(BATCH, &task(&text)).unwrap();
    let refused = foreign.restore(&saved).unwrap_err().to_string();
    assert!(refused.contains("task"), "{refused}");
    let text = TASK.replace("centralized_critic = true\n", "");
    let mut foreign = build(BATCH, &task(&text)).unwrap();
    assert!(foreign.restore(&saved).is_err());
}

#[test]
fn parts_are_the_whole() {
    let (mut whole, mut out) = fresh(BATCH);
    let first = Batch { n: 70, ..BATCH };
    let rest = Batch { n: 80, first: 70, ..BATCH };
    let (mut a, mut of_a) = fresh(first);
    let (mut b, mut of_b) = fresh(rest);
    play(&mut whole, &mut out, BATCH, 0..6, 0);
    play(&mut a, &mut of_a, first, 0..6, 0);
    play(&mut b, &mut of_b, rest, 0..6, 0);
    let (mut all, mut blobs, mut joined) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
    whole.capture(&mut all).unwrap();
    a.capture(&mut blobs[0]).unwrap();
    b.capture(&mut blobs[1]).unwrap();
    BatchEnv::join(&[&blobs[0], &blobs[1]], &mut joined).unwrap();
    assert_eq!(joined.len(), all.len());
    let straight = play(&mut whole, &mut out, BATCH, 6..24, 0);
    let counted = stats(&mut whole);
    whole.restore(&joined).unwrap();
    assert!(play(&mut whole, &mut out, BATCH, 6..24, 0) == straight);
    let again = stats(&mut whole);
    assert_eq!(again.terminations, counted.terminations);
    for (x, y) in again.agent_return_sums.iter().zip(&counted.agent_return_sums) {
        assert!((x - y).abs() < 1e-6 * y.abs());
    }

    // A part takes over its environments from a snapshot of all.
    let (mut part, mut of_part) = fresh(rest);
    assert_eq!(part.restore_range(&joined, false, &mut of_part.obs()).unwrap(), 80);
    let (mut b, mut of_b) = fresh(rest);
    b.restore(&blobs[1]).unwrap();
    let expected = play(&mut b, &mut of_b, rest, 6..24, 0);
    assert!(play(&mut part, &mut of_part, rest, 6..24, 0) == expected);
}

#[test]
fn those_that_are_added_begin_and_the_others_go_on() {
    let few = Batch { n: 70, ..BATCH };
    let (mut small, mut out) = fresh(few);
    play(&mut small, &mut out, few, 0..7, 0);
    let mut kept = Vec::new();
    small.capture(&mut kept).unwrap();
    let (mut large, mut all) = fresh(BATCH);
    all.policy.fill(5.0);
    assert_eq!(large.restore_range(&kept, false, &mut all.obs()).unwrap(), 70);
    let wide = 3 * large.spec().obs.policy;
    let (old, new) = all.policy.split_at(70 * wide);
    assert!(old.iter().all(|x| *x == 5.0) && new.iter().all(|x| *x != 5.0));
    for t in 7..20 {
        let a = actions(0, BATCH.n, 6, t);
        all.step(&mut large, &a);
        out.step(&mut small, &a[..70 * 6]);
        assert!(all.policy[..70 * wide] == out.policy[..], "{t}");
        assert!(all.reward[..210] == out.reward[..], "{t}");
    }
}
