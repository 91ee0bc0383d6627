//! Captured, put back, rolled back: the state as a whole.

use super::*;

const ACTION: ActionSpace = ActionSpace::Continuous(2);

fn named<'a>(all: &'a NamedTensors, name: &str) -> &'a Tensor {
    &all.iter().find(|(n, _)| n == name).unwrap().1
}

#[test]
fn reverted_it_has_the_bits_it_was_kept_with_and_goes_on_with_them() {
    let config = PpoConfig { normalize_returns: true, ..PpoConfig::default() };
    let (mut ppo, spec) = build(&config, ACTION, true);
    let (mut other, _) = build(&config, ACTION, true);
    let first = ppo.save().unwrap();
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    ppo.warm_up(&r).unwrap();
    other.warm_up(&r).unwrap();
    ppo.restore().unwrap();
    same(&ppo.save().unwrap(), &first);

    ppo.warm_up(&r).unwrap();
    ppo.update(&r).unwrap();
    other.update(&r).unwrap();
    ppo.capture().unwrap();
    let kept = ppo.save().unwrap();
    for stream in 2..5 {
        let r = rollout(ppo.policy_mut(), &spec, 8, stream);
        if stream == 3 {
            let _ = r.reward.get(3).fill_(f64::NAN);
        }
        ppo.update(&r).unwrap();
    }
    let policy = ppo.policy().state().unwrap().weights().unwrap();
    ppo.roll_back(&policy, 0.5).unwrap();
    let _ = ppo.policy.params.theta.shallow_clone().fill_(f64::NAN);
    ppo.restore().unwrap();
    same(&ppo.save().unwrap(), &kept);
    same(&other.save().unwrap(), &kept);

    let r = rollout(ppo.policy_mut(), &spec, 8, 9);
    ppo.update(&r).unwrap();
    other.update(&r).unwrap();
    same(&ppo.save().unwrap(), &other.save().unwrap());
}

/// Bounds made of it would be in the wrong order, or no numbers.
#[test]
fn a_share_of_the_learning_rate_that_is_none_is_refused() {
    let (mut ppo, _) = build(&PpoConfig::default(), ACTION, true);
    let before = ppo.save().unwrap();
    let weights = ppo.policy().state().unwrap().weights().unwrap();
    for scale in [f64::NAN, -1.0, 1.5, f64::INFINITY] {
        let forged: NamedTensors = before
            .iter()
            .map(|(name, t)| match name == "ppo.lr_scale" {
                true => (name.clone(), Tensor::from_slice(&[scale])),
                false => (name.clone(), t.shallow_clone()),
            })
            .collect();
        let e = ppo.load(&forged).unwrap_err();
        assert!(e.to_string().contains("share of the learning rate"), "{e}");
        same(&ppo.save().unwrap(), &before);
        ppo.roll_back(&weights, 0.5).unwrap();
        ppo.load(&before).unwrap();
    }
}

#[test]
fn whatever_is_not_finite_after_an_update_is_reported() {
    let clean = {
        let (mut ppo, spec) = build(&PpoConfig::default(), ACTION, true);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        ppo.update(&r).unwrap()
    };
    assert!(!clean.non_finite_params);
    let tensors = build(&PpoConfig::default(), ACTION, true).0.state.live().len();
    // Weights; one normaliser, which the networks share; returns; the optimiser; rewards.
    assert_eq!(tensors, 1 + 5 + 5 + 4 + 1);
    for at in 0..tensors {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (ppo, _) = build(&PpoConfig::default(), ACTION, true);
            let flat = ppo.state.live()[at].view([-1]);
            let size = |ppo: &Ppo| ppo.state.magnitude().unwrap().double_value(&[0]);
            assert!(size(&ppo).is_finite());
            // First, last and between: vectors and their remainders.
            for i in [0, flat.numel() as i64 / 2, flat.numel() as i64 - 1] {
                let before = flat.double_value(&[i]);
                let _ = flat.get(i).fill_(value);
                assert!(!size(&ppo).is_finite(), "tensor {at}, {value} at {i}");
                let _ = flat.get(i).fill_(before);
            }
        }
    }
    // And it reaches the numbers of the update.
    let (mut ppo, spec) = build(&PpoConfig::default(), ACTION, true);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    let moment = crate::learner::UpdateTarget::FirstMoment(5);
    let _ = ppo.state.target(&moment).unwrap().fill_(f64::NAN);
    let stats = ppo.update(&r).unwrap();
    assert!(stats.non_finite_params);
    let logged = stats.scalars();
    let mut logged = logged;
    assert!(logged.any(|l| l == ("Guard/non_finite_params", 1.0)));
}

#[test]
fn a_skipped_minibatch_has_one_cause() {
    let config = PpoConfig {
        num_learning_epochs: 1,
        normalize_advantage: AdvantageNorm::None,
        schedule: Schedule::Fixed,
        ..PpoConfig::default()
    };
    let causes = |spoil: &dyn Fn(&Rollout)| {
        let (mut ppo, spec) = build(&config, ACTION, false);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        spoil(&r);
        let s = ppo.update(&r).unwrap();
        assert_eq!(s.skipped, s.skipped_no_valid + s.skipped_loss + s.skipped_gradient);
        (s.skipped_no_valid, s.skipped_loss, s.skipped_gradient)
    };
    assert_eq!(causes(&|_| ()), (0, 0, 0));
    let nothing_valid = |r: &Rollout| {
        let _ = r.valid.shallow_clone().zero_();
    };
    assert_eq!(causes(&nothing_valid), (4, 0, 0));
    let bad_reward = |r: &Rollout| {
        let _ = r.reward.get(7).get(0).fill_(f64::INFINITY);
    };
    let (none, loss, gradient) = causes(&bad_reward);
    assert!(none == 0 && loss > 0 && gradient == 0);
    // Squares of what the layers see overflow, the losses do not: the value's error
    // is finite, its gradient times the input is not.
    let far = |r: &Rollout| {
        let _ = r.obs.policy.get(7).get(0).fill_(3e38);
        let _ = r.reward.get(7).get(0).fill_(1e19);
    };
    let (none, loss, gradient) = causes(&far);
    assert!(none == 0 && loss + gradient > 0, "{loss} {gradient}");
}

#[test]
fn a_roll_back_takes_the_policy_forgets_the_optimiser_and_lowers_the_rate() {
    for schedule in [Schedule::Fixed, Schedule::Linear, Schedule::Adaptive] {
        let config = PpoConfig {
            schedule,
            learning_rate: 2e-3,
            normalize_returns: true,
            ..PpoConfig::default()
        };
        let (mut ppo, spec) = build(&config, ACTION, true);
        ppo.set_progress(0.25).unwrap();
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        ppo.warm_up(&r).unwrap();
        ppo.update(&r).unwrap();
        let good = ppo.policy().state().unwrap().weights().unwrap();
        for stream in 2..4 {
            let r = rollout(ppo.policy_mut(), &spec, 8, stream);
            ppo.update(&r).unwrap();
        }
        let rate = |ppo: &Ppo| named(&ppo.save().unwrap(), "adam.learning_rate").double_value(&[0]);
        let before = rate(&ppo);
        ppo.roll_back(&good, 0.5).unwrap();
        let after = ppo.save().unwrap();
        same(&ppo.policy().state().unwrap().weights().unwrap(), &good);
        for (name, value) in [("adam.m", 0.0), ("adam.v", 0.0), ("adam.beta_powers", 1.0)] {
            assert!(bool::try_from(named(&after, name).eq(value).all()).unwrap(), "{name}");
        }
        assert_eq!(rate(&ppo), before * 0.5, "{schedule:?}");
        assert_eq!(named(&after, "ppo.updates").int64_value(&[0]), 3);
        // The order of samples goes on, so the same rollout gives another result.
        assert_eq!(ppo.updates.get(), 3);

        // It stays lowered, in what follows and in a checkpoint.
        let (mut resumed, _) = build(&config, ACTION, true);
        resumed.load(&after).unwrap();
        same(&resumed.save().unwrap(), &after);
        resumed.set_progress(0.5).unwrap();
        match schedule {
            Schedule::Fixed => assert_eq!(rate(&resumed), 1e-3),
            Schedule::Linear => assert_eq!(rate(&resumed), 0.5e-3),
            Schedule::Adaptive => assert_eq!(resumed.rate_bounds(), (0.5e-5, 0.5e-2)),
        }
        resumed.roll_back(&good, 0.5).unwrap();
        assert_eq!(resumed.rate_share.get(), 0.25);
    }
}

#[test]
fn the_bounds_of_an_adaptive_rate_are_lowered_too() {
    let config = PpoConfig {
        desired_kl: 1e6,
        learning_rate: 2e-3,
        max_learning_rate: 4e-3,
        ..PpoConfig::default()
    };
    let (mut ppo, spec) = build(&config, ACTION, false);
    let good = ppo.policy().state().unwrap().weights().unwrap();
    ppo.roll_back(&good, 0.1).unwrap();
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    // Nothing is near so large a divergence: the rate rises to its bound.
    let rates = [3e-4, 4e-4, 4e-4].map(|rate| (ppo.update(&r).unwrap().learning_rate, rate));
    assert!(rates.iter().all(|(is, to_be)| (is - to_be).abs() < 1e-12), "{rates:?}");
    // A rate that was destroyed starts at the configured one.
    ppo.adam.set_rate(0, f64::NAN).unwrap();
    ppo.roll_back(&good, 0.5).unwrap();
    assert!((ppo.adam.rate(0).double_value(&[]) - 2e-3 * 0.05).abs() < 1e-12);
}

#[test]
fn a_roll_back_that_cannot_be_changes_nothing() {
    let (mut ppo, _) = build(&PpoConfig::default(), ACTION, false);
    let (other, _) = build(&PpoConfig::default(), ActionSpace::Continuous(3), false);
    let (own, alien) = (
        ppo.policy().state().unwrap().weights().unwrap(),
        other.policy().state().unwrap().weights().unwrap(),
    );
    let before = ppo.save().unwrap();
    assert!(ppo.roll_back(&alien, 0.5).is_err());
    for factor in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(ppo.roll_back(&own, factor).is_err(), "{factor}");
    }
    same(&ppo.save().unwrap(), &before);
}

#[test]
fn keeping_and_reverting_allocates_no_tensor() {
    let (mut ppo, spec) = build(&PpoConfig::default(), ACTION, true);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    ppo.update(&r).unwrap();
    // Other tests run in this process: at least one try must be without any of theirs.
    ostler_machine::torch::cpu_allocations().unwrap();
    let quiet = (0..200).any(|_| {
        let before = ostler_machine::torch::cpu_allocations().unwrap();
        ppo.capture().unwrap();
        ppo.restore().unwrap();
        ostler_machine::torch::cpu_allocations().unwrap() == before
    });
    assert!(quiet);
}
