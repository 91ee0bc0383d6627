//! Pins: the number of workers changes nothing, and nothing else does that is not said
//! to.

use super::support::*;
use crate::common::parts::Learning;
use crate::common::state;
use ostler_collector::{Collector, Snapshot, Stepping};
use std::sync::Arc;

#[test]
fn any_number_of_workers_collects_what_one_thread_does_bit_for_bit() {
    for stepping in
        [Stepping::default(), Stepping { init_random_steps: 7, reset_at_each_iter: true }]
    {
        let (mut alone, mut policy) = (sync(N, stepping), Learning::new());
        let mut states = Vec::new();
        let expected: Vec<Seen> = (0..4)
            .map(|_| {
                let seen = iterate(&mut alone, &mut policy);
                states.push(saved(&mut alone));
                seen
            })
            .collect();
        for workers in [1, 2, 3, 7, 12] {
            let mut options = options(workers, 0);
            options.stepping = stepping;
            let (mut many, mut policy) = (collector(options, &quiet()), Learning::new());
            for (seen, state) in expected.iter().zip(&states) {
                assert_eq!(&iterate(&mut many, &mut policy), seen, "{workers} workers");
                assert_eq!(&saved(&mut many), state, "{workers} workers");
            }
            let stats = many.worker_stats().unwrap();
            assert_eq!((stats.workers, stats.staleness), (workers.min(N), 0.0));
        }
    }
}

/// A policy that counts its steps has the episode's age in every environment: hidden states go
/// from step to step and from rollout to rollout, through a saved state too, and are zero
/// where an episode begins.
#[test]
fn hidden_states_are_as_old_as_their_episodes() {
    for anew in [false, true] {
        let stepping = Stepping { reset_at_each_iter: anew, ..Stepping::default() };
        let mut options = options(3, 0);
        options.stepping = stepping;
        let collectors: [Box<dyn Collector>; 2] =
            [Box::new(sync(N, stepping)), Box::new(collector(options, &quiet()))];
        for mut c in collectors {
            let mut ages = [0.0; N];
            let mut ended_within = 0;
            for rollout in 0..6 {
                let mut snapshot = Snapshot::default();
                c.capture(&mut snapshot).unwrap();
                if rollout == 3 {
                    // Others come between, and are forgotten.
                    c.collect(&mut Learning::new()).unwrap();
                    c.restore(&snapshot).unwrap();
                }
                if anew {
                    ages = [0.0; N];
                }
                let r = c.collect(&mut Learning::new()).unwrap();
                let (hidden, ended) = (r.hidden.as_ref().unwrap(), r.ended().unwrap());
                for t in 0..=r.steps {
                    for (n, age) in ages.iter_mut().enumerate() {
                        let n = n as i64;
                        if t > 0 {
                            let ends = ended.int64_value(&[t - 1, n]) != 0;
                            ended_within += i32::from(ends);
                            *age = if ends { 0.0 } else { *age + 1.0 };
                        }
                        assert_eq!(value(hidden, &[t, n, 0]), *age, "{anew} {rollout} {t} {n}");
                    }
                }
            }
            assert!(ended_within > 5);
        }
    }
}

#[test]
fn random_actions_come_first_and_are_uniform() {
    let stepping = Stepping { init_random_steps: 3, ..Stepping::default() };
    let mut c = sync(500, stepping);
    let r = c.collect(&mut Learning::new()).unwrap();
    // Each component within its own bound.
    let bounds = tch::Tensor::from_slice(&[1.0f32, 0.25]);
    let random = &r.action.narrow(0, 0, 3) / &bounds;
    let n = random.numel() as f64;
    assert!(random.abs().max().double_value(&[]) < 1.0);
    // Of a uniform number: mean 0 and variance 1/3; five standard errors.
    let mean = random.mean(tch::Kind::Double).double_value(&[]);
    assert!(mean.abs() < 5.0 * (1.0 / 3.0 / n).sqrt(), "{mean}");
    let square = (&random * &random).mean(tch::Kind::Double).double_value(&[]);
    assert!((square - 1.0 / 3.0).abs() < 5.0 * (4.0 / 45.0 / n).sqrt());
    for (k, bound) in [(0, 1.0), (1, 0.25)] {
        assert!((value(&r.std, &[2, 0, k]) - bound / 3.0_f64.sqrt()).abs() < 1e-6);
    }
    // The policy's are those of observation plus noise.
    assert_eq!(value(&r.dist, &[3, 9, 0]), 9.0);
}

#[test]
fn ahead_by_one_the_weights_are_those_of_the_rollout_before() {
    let run = |workers| {
        let (mut c, mut policy) = (collector(options(workers, 1), &quiet()), Learning::new());
        let seen: Vec<Seen> = (0..5).map(|_| iterate(&mut c, &mut policy)).collect();
        assert_eq!(c.worker_stats().unwrap().staleness, 1.0);
        (seen, versions(c.rollout(), 0), saved(&mut c))
    };
    let (one, last, state) = run(1);
    assert_eq!(last, vec![3; T], "rollout 4, after four updates");
    for workers in [2, 7] {
        let (many, _, same) = run(workers);
        assert_eq!(many, one, "{workers} workers");
        assert_eq!(same, state);
    }
    // The environments have seen the weights that the versions name.
    let r = &one[3].tensors;
    let (dist, version) = (&r[4], &r[10]);
    for t in 0..T as i64 {
        let v = value(version, &[t, 2]);
        assert_eq!((value(dist, &[t, 2, 0]), v), (2.0 + v, 2.0));
    }
}

#[test]
fn further_ahead_more_updates_lie_between() {
    let (mut c, mut policy) = (collector(options(2, 3), &quiet()), Learning::new());
    let acted: Vec<i64> = (0..7)
        .map(|_| {
            iterate(&mut c, &mut policy);
            versions(c.rollout(), 6)[0]
        })
        .collect();
    assert_eq!(acted, [0, 0, 0, 0, 1, 2, 3]);
}

#[test]
fn a_checkpoint_goes_from_any_number_of_workers_to_any_other() {
    let (mut straight, mut policy) = (sync(N, Stepping::default()), Learning::new());
    let expected: Vec<Seen> = (0..5).map(|_| iterate(&mut straight, &mut policy)).collect();
    let mut policy = Learning::new();
    let mut first = sync(N, Stepping::default());
    let mut seen = vec![iterate(&mut first, &mut policy)];
    let mut blob = saved(&mut first);
    for workers in [3, 1, 5] {
        let mut next = collector(options(workers, 0), &quiet());
        next.restore(&state(&blob)).unwrap();
        assert_eq!(saved(&mut next), blob);
        seen.push(iterate(&mut next, &mut policy));
        blob = saved(&mut next);
    }
    let mut last = sync(N, Stepping::default());
    last.restore(&state(&blob)).unwrap();
    seen.push(iterate(&mut last, &mut policy));
    assert_eq!(seen, expected);
}

#[test]
fn what_is_saved_while_others_collect_is_where_the_next_rollout_begins() {
    let (mut ahead, mut policy) = (collector(options(2, 1), &quiet()), Learning::new());
    let (mut alone, mut steady) = (sync(N, Stepping::default()), Learning::new());
    for _ in 0..3 {
        iterate(&mut ahead, &mut policy);
        // The states of these environments do not depend on actions.
        alone.collect(&mut steady).unwrap();
    }
    let blob = saved(&mut ahead);
    alone.restore(&state(&blob)).unwrap();
    let obs = alone.collect(&mut steady).unwrap().obs.policy.copy();
    let next = &ahead.collect(&mut policy).unwrap().obs.policy;
    assert_eq!(next.narrow(2, 0, 3), obs.narrow(2, 0, 3));
}

#[test]
fn gone_back_to_what_was_noted_the_same_bits_follow() {
    let (mut c, mut policy) = (collector(options(3, 1), &quiet()), Learning::new());
    iterate(&mut c, &mut policy);
    iterate(&mut c, &mut policy);
    let mut kept = Snapshot::in_place();
    c.capture(&mut kept).unwrap();
    let again = |c: &mut dyn Collector| {
        let mut policy = policy.clone();
        c.restore(&kept).unwrap();
        [iterate(c, &mut policy), iterate(c, &mut policy)]
    };
    let once = again(&mut c);
    assert_eq!(again(&mut c), once);
    // The rollouts collected ahead are gone, so nothing is stale at first.
    let version = &once[0].tensors[10];
    assert_eq!(value(version, &[0, 0]), 2.0);
    assert_eq!(saved(&mut c).len(), kept.bytes().len());
}

#[test]
fn what_was_collected_ahead_can_be_forgotten() {
    let (mut c, mut policy) = (collector(options(2, 1), &quiet()), Learning::new());
    for _ in 0..3 {
        iterate(&mut c, &mut policy);
    }
    let before = saved(&mut c);
    c.forget_ahead().unwrap();
    assert_eq!(saved(&mut c), before);
    c.collect(&mut policy).unwrap();
    assert_eq!(versions(c.rollout(), 0), vec![3; T]);
    assert_eq!(c.worker_stats().unwrap().staleness, 0.0);
}

#[test]
fn another_number_of_environments_takes_over_those_it_has() {
    let (mut large, mut policy) = (collector(options(3, 0), &quiet()), Learning::new());
    for _ in 0..2 {
        iterate(&mut large, &mut policy);
    }
    let blob = saved(&mut large);
    let mut small = with(options(2, 0), 4, T, &quiet());
    small.collect(&mut policy).unwrap();
    assert_eq!(small.restore_range(&state(&blob), false).unwrap(), 4);
    let mut more = with(options(4, 0), 11, T, &quiet());
    more.collect(&mut policy).unwrap();
    assert_eq!(more.restore_range(&state(&blob), false).unwrap(), N);
    let next = large.collect(&mut policy).unwrap();
    let states = next.hidden.as_ref().unwrap().get(0);
    let next = next.obs.policy.copy();
    let few = small.collect(&mut policy).unwrap().obs.policy.copy();
    assert_eq!(few.narrow(2, 0, 3), next.narrow(1, 0, 4).narrow(2, 0, 3));
    let many = more.collect(&mut policy).unwrap();
    let theirs = many.hidden.as_ref().unwrap().get(0);
    assert_eq!(theirs.narrow(0, 0, 7), states);
    assert!(states.abs().max().double_value(&[]) > 0.0);
    assert_eq!(theirs.narrow(0, 7, 4).abs().max().double_value(&[]), 0.0);
    let many = &many.obs.policy;
    assert_eq!(many.narrow(1, 0, 7).narrow(2, 0, 3), next.narrow(2, 0, 3));
    assert_eq!(value(many, &[0, 10, 2]), 0.0, "a new episode");
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() {
    let (mut c, mut policy) = (collector(options(2, 1), &quiet()), Learning::new());
    iterate(&mut c, &mut policy);
    let blob = saved(&mut c);
    for len in [0, 8, 40, blob.len() - 1] {
        assert!(c.restore(&state(&blob[..len])).is_err(), "{len} bytes");
    }
    let mut other = with(options(2, 1), N + 1, T, &quiet());
    assert!(c.restore(&state(&saved(&mut other))).is_err());
    assert_eq!(saved(&mut c), blob);
    let mut copy = collector(options(3, 1), &quiet());
    copy.restore(&state(&blob)).unwrap();
    let mut same = policy.clone();
    assert_eq!(iterate(&mut c, &mut policy), iterate(&mut copy, &mut same));
}

#[test]
fn settings_change_with_the_next_rollout_that_is_ordered() {
    let (mut c, mut policy) = (collector(options(2, 1), &quiet()), Learning::new());
    let reward = |c: &mut dyn Collector, policy: &mut Learning| {
        let r = c.collect(policy).unwrap();
        (value(&r.reward, &[0, 0]), value(&r.reward, &[0, 6]))
    };
    reward(&mut c, &mut policy);
    c.change(Arc::new(|part| {
        part.bonus = 1000.0;
        Ok(())
    }));
    assert_eq!(reward(&mut c, &mut policy), (60.0, 66.0), "ordered before");
    assert_eq!(reward(&mut c, &mut policy), (1110.0, 1116.0));
}
