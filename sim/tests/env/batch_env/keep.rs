//! Pins: a restored snapshot has the same bits; environments that a batch of another size takes
//! over go on as they would have.

use super::point_mass::{Batch, Out, build};
use super::repeat::{BATCH, WIDTH, everything, fresh, play};
use ostler_sim::EpisodeStats;
use ostler_sim::env::{BatchEnv, Groups};
use ostler_sim::physics::SnapshotError;

fn take_over(env: &mut BatchEnv, out: &mut Out, blob: &[u8]) -> Result<usize, SnapshotError> {
    let mut obs = Groups { policy: out.policy.as_mut_slice(), critic: out.critic.as_deref_mut() };
    env.restore_range(blob, false, &mut obs)
}

#[test]
fn restored_it_goes_on_with_the_same_bits_as_often_as_asked() {
    let (mut env, mut out) = fresh(BATCH);
    play(&mut env, &mut out, BATCH, 0..10);
    let mut kept = Vec::new();
    env.capture(&mut kept).unwrap();
    let straight = play(&mut env, &mut out, BATCH, 10..40);
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    for _ in 0..2 {
        env.restore(&kept).unwrap();
        assert!(play(&mut env, &mut out, BATCH, 10..40) == straight);
        let mut again = EpisodeStats::default();
        env.take_stats(&mut again);
        assert_eq!(again, stats);
    }
    for len in [0, 7, 8, 100, kept.len() - 1] {
        assert!(env.restore(&kept[..len]).is_err(), "{len}");
    }
    let (mut other, _) = fresh(Batch { n: 8, ..BATCH });
    let refused = other.restore(&kept).unwrap_err();
    assert!(refused.to_string().contains("200 environments"), "{refused}");
}

#[test]
fn the_largest_number_anywhere_is_refused_or_harmless() {
    let b = Batch { n: 3, ..BATCH };
    let (mut env, mut out) = fresh(b);
    play(&mut env, &mut out, b, 0..10);
    let mut kept = Vec::new();
    env.capture(&mut kept).unwrap();
    let (mut taken, mut refused) = (0, Vec::new());
    for at in 8..kept.len() - 8 {
        let mut damaged = kept.clone();
        damaged[at..at + 8].fill(0xff);
        match env.restore(&damaged) {
            Ok(()) => {
                taken += 1;
                play(&mut env, &mut out, b, 10..13);
                env.take_stats(&mut EpisodeStats::default());
            }
            Err(e) => refused.push(e.to_string()),
        }
    }
    assert!(taken > 0, "states of worlds may be anything");
    for what in ["control steps", "episodes", "terminations", "faults"] {
        let counts = refused.iter().any(|e| e.contains(what));
        assert!(counts, "{what}: {refused:#?}");
    }
}

#[test]
fn environments_that_stay_go_on_as_in_the_larger_batch() {
    let (mut all, mut out) = fresh(BATCH);
    play(&mut all, &mut out, BATCH, 0..10);
    let mut kept = Vec::new();
    all.capture(&mut kept).unwrap();
    let whole = play(&mut all, &mut out, BATCH, 10..60);
    for (n, threads) in [(100, 1), (70, 3), (8, 1)] {
        let b = Batch { n, threads, ..BATCH };
        let (mut few, mut few_out) = fresh(b);
        few_out.policy.fill(5.0);
        assert_eq!(take_over(&mut few, &mut few_out, &kept).unwrap(), n);
        assert!(
            few_out.policy.iter().all(|x| *x == 5.0),
            "rows of those that stay are not touched"
        );
        assert!(play(&mut few, &mut few_out, b, 10..60) == whole[..n], "{n}");
    }
}

#[test]
fn environments_that_are_added_start_episodes_of_their_own() {
    let few = Batch { n: 70, ..BATCH };
    let (mut small, mut out) = fresh(few);
    play(&mut small, &mut out, few, 0..10);
    let mut kept = Vec::new();
    small.capture(&mut kept).unwrap();
    let straight = play(&mut small, &mut out, few, 10..60);

    let grown = |threads| {
        let b = Batch { threads, ..BATCH };
        // The larger batch's past does not matter.
        let (mut all, mut all_out) = fresh(b);
        play(&mut all, &mut all_out, b, 0..threads as u64);
        all_out.policy.fill(5.0);
        assert_eq!(take_over(&mut all, &mut all_out, &kept).unwrap(), 70);
        let (old, new) = all_out.policy.split_at(70 * WIDTH);
        assert!(old.iter().all(|x| *x == 5.0));
        // Positions differ between environments: each drew its own start.
        let starts: Vec<u32> = new.chunks(WIDTH).map(|row| row[0].to_bits()).collect();
        assert!(starts.iter().all(|x| f32::from_bits(*x).abs() < 1.0));
        assert!(starts[0] != starts[1] && starts[1] != starts[2]);
        let seen = play(&mut all, &mut all_out, b, 10..60);
        assert!(seen[..70] == straight);
        seen
    };
    assert!(grown(1) == grown(3));
}

#[test]
fn what_does_not_fit_is_not_adopted_and_changes_nothing() {
    let (mut all, mut out) = fresh(BATCH);
    play(&mut all, &mut out, BATCH, 0..5);
    let mut kept = Vec::new();
    all.capture(&mut kept).unwrap();
    let b = Batch { n: 50, ..BATCH };
    let mut other = everything();
    other.reward[0].weight = 2.0;
    for (b, task, part) in
        [(Batch { seed: 3, ..b }, &everything(), "seed is 11"), (b, &other, "task")]
    {
        let mut env = build(b, task).unwrap();
        let mut out = Out::new(env.spec(), 1);
        let refused = take_over(&mut env, &mut out, &kept).unwrap_err();
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let (part, _) = fresh(Batch { first: 4, ..b });
    let mut later = Vec::new();
    part.capture(&mut later).unwrap();
    let (mut env, mut out) = fresh(b);
    let refused = take_over(&mut env, &mut out, &later).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("first environment is 4"), "{text}");
    let mut before = Vec::new();
    env.capture(&mut before).unwrap();
    for len in [0, 8, 200, kept.len() - 1] {
        take_over(&mut env, &mut out, &kept[..len]).unwrap_err();
    }
    kept.push(0);
    take_over(&mut env, &mut out, &kept).unwrap_err();
    let mut after = Vec::new();
    env.capture(&mut after).unwrap();
    assert!(before == after);
}
