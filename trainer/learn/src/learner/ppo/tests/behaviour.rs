//! The learner's guarantees.

use super::*;
use ostler_sim::rng::{Purpose, philox};

fn theta(ppo: &Ppo) -> Tensor {
    ppo.policy.params.theta.copy()
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_does_not() {
    let run = |stream: u32| {
        let (mut ppo, spec) = build(&PpoConfig::default(), ActionSpace::Continuous(2), true);
        for i in 0..3u32 {
            let r = rollout(ppo.policy_mut(), &spec, 8, stream + i);
            ppo.update(&r).unwrap();
        }
        theta(&ppo)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn saved_and_loaded_it_goes_on_with_the_same_bits() {
    let config = PpoConfig { num_mini_batches: 5, ..PpoConfig::default() };
    let (mut a, spec) = build(&config, ActionSpace::Continuous(2), true);
    let r = rollout(a.policy_mut(), &spec, 8, 1);
    a.warm_up(&r).unwrap();
    a.update(&r).unwrap();
    let saved = a.save().unwrap();
    let r = rollout(a.policy_mut(), &spec, 8, 2);
    let stats = a.update(&r).unwrap();

    let (mut b, _) = build(&config, ActionSpace::Continuous(2), true);
    b.load(&saved).unwrap();
    let again = rollout(b.policy_mut(), &spec, 8, 2);
    assert_eq!(again.action, r.action);
    let mut stats_b = b.update(&again).unwrap();
    (stats_b.gae_s, stats_b.update_s) = (stats.gae_s, stats.update_s);
    assert_eq!(stats_b, stats);
    for ((name, x), (_, y)) in a.save().unwrap().iter().zip(&b.save().unwrap()) {
        assert_eq!(x, y, "{name}");
    }
}

#[test]
fn a_checkpoint_of_another_robot_is_refused_and_changes_nothing() {
    let (a, _) = build(&PpoConfig::default(), ActionSpace::Continuous(2), false);
    let (mut b, _) = build(&PpoConfig::default(), ActionSpace::Continuous(3), false);
    let before = theta(&b);
    let message = b.load(&a.save().unwrap()).unwrap_err().to_string();
    assert!(message.contains("actor.head.weight is [2, 8], expected [3, 8]"), "{message}");
    assert_eq!(theta(&b), before);
}

#[test]
fn a_rollout_that_poisons_every_minibatch_changes_nothing() {
    let (mut ppo, spec) = build(&PpoConfig::default(), ActionSpace::Continuous(2), false);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    ppo.update(&r).unwrap();
    let before = ppo.save().unwrap();
    let _ = r.reward.get(3).fill_(f64::NAN);
    let stats = ppo.update(&r).unwrap();
    assert_eq!((stats.skipped, stats.minibatches), (12, 12));
    for ((name, x), (_, y)) in before.iter().zip(&ppo.save().unwrap()) {
        assert!(x == y || name == "ppo.updates", "{name}");
    }
}

#[test]
fn one_bad_minibatch_is_skipped_and_the_others_learn() {
    let config = PpoConfig {
        num_learning_epochs: 1,
        normalize_advantage: AdvantageNorm::None,
        schedule: Schedule::Fixed,
        ..PpoConfig::default()
    };
    let (mut ppo, spec) = build(&config, ActionSpace::Continuous(2), false);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    // So far out that its log-probability is infinite, then and now.
    let _ = r.action.get(7).get(0).fill_(1e30);
    let before = theta(&ppo);
    let stats = ppo.update(&r).unwrap();
    assert_eq!((stats.skipped, stats.minibatches), (1, 4));
    assert!(stats.surrogate.is_finite() && stats.grad_norm.is_finite());
    assert_ne!(theta(&ppo), before);
    assert!(bool::try_from(theta(&ppo).isfinite().all()).unwrap());
}

#[test]
fn what_broken_transitions_hold_does_not_matter() {
    let run = |junk: f64| {
        let (mut ppo, spec) = build(&PpoConfig::default(), ActionSpace::Continuous(2), true);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        // Step 1 of environment 2 is the broken one; its action and reward are finite.
        let _ = r.action.get(1).get(2).fill_(junk);
        let _ = r.reward.get(1).get(2).fill_(junk);
        ppo.update(&r).unwrap();
        theta(&ppo)
    };
    assert_eq!(run(0.1), run(-1.5));
}

#[test]
fn the_divergence_that_is_wanted_shrinks_to_its_final_share() {
    let config = PpoConfig { desired_kl: 0.02, final_kl_share: 0.25, ..PpoConfig::default() };
    let (actor, critic) = small();
    let spec = spec(5, None, ActionSpace::Continuous(2), 6);
    let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
    let wanted = [0.0, 0.5, 1.0].map(|done| {
        ppo.set_progress(done).unwrap();
        ppo.desired().unwrap().double_value(&[])
    });
    for (wanted, expected) in wanted.into_iter().zip([0.02, 0.0125, 0.005]) {
        assert!((wanted - expected).abs() < 1e-12, "{wanted} {expected}");
    }
}

#[test]
fn the_deviation_stays_within_its_bounds() {
    for std_type in [StdType::Scalar, StdType::StateDependent] {
        let spec = spec(5, None, ActionSpace::Continuous(2), 6);
        let (actor, critic) = small();
        let actor = ActorConfig { std_type, init_std: 0.5, max_std: 0.6, ..actor };
        // So large an entropy bonus drives the standard deviation up as fast as it can go.
        let config = PpoConfig {
            entropy_coef: 100.0,
            schedule: Schedule::Fixed,
            learning_rate: 0.1,
            ..PpoConfig::default()
        };
        let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
        let mut largest = 0.0;
        for i in 0..5 {
            let r = rollout(ppo.policy_mut(), &spec, 8, i);
            largest = r.std.max().double_value(&[]);
            assert!(largest <= 0.600_001, "{std_type:?} {largest}");
            ppo.update(&r).unwrap();
        }
        assert!(largest > 0.59, "{std_type:?} {largest}");
    }
}

#[test]
fn the_learning_rate_follows_its_schedule() {
    let rate = |config: &PpoConfig, done: f64, updates: u32| {
        let (mut ppo, spec) = build(config, ActionSpace::Continuous(2), false);
        ppo.set_progress(done).unwrap();
        let after = (0..updates).map(|i| {
            let r = rollout(ppo.policy_mut(), &spec, 8, 1 + i);
            ppo.update(&r).unwrap().learning_rate
        });
        after.last().unwrap()
    };
    let base = PpoConfig { learning_rate: 2e-3, ..PpoConfig::default() };
    let fixed = PpoConfig { schedule: Schedule::Fixed, ..base.clone() };
    assert_eq!(rate(&fixed, 0.5, 1), 2e-3);
    let linear = PpoConfig { schedule: Schedule::Linear, ..base.clone() };
    assert_eq!(rate(&linear, 0.25, 1), 1.5e-3);
    // Nothing is near so small a divergence, nothing beyond so large a one.
    let down = PpoConfig { desired_kl: 1e-12, ..base.clone() };
    assert_eq!(rate(&down, 0.0, 1), 2e-3 / 1.5);
    assert_eq!(rate(&down, 0.0, 15), 1e-5);
    let up = PpoConfig { desired_kl: 1e6, max_learning_rate: 4e-3, ..base };
    assert_eq!(rate(&up, 0.0, 1), 3e-3);
    assert_eq!(rate(&up, 0.0, 3), 4e-3);
}

#[test]
fn statistics_of_observations_change_only_after_the_update() {
    let (mut ppo, spec) = build(&PpoConfig::default(), ActionSpace::Continuous(2), true);
    assert!(ppo.wants_warm_up());
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    let count = |ppo: &Ppo| {
        let saved = ppo.save().unwrap();
        let found = saved.iter().find(|(n, _)| n == "actor.obs_normalizer.count").unwrap();
        found.1.double_value(&[0])
    };
    ppo.warm_up(&r).unwrap();
    assert_eq!(count(&ppo), 47.0); // 48 samples, one of them broken
    let before = rollout(ppo.policy_mut(), &spec, 8, 2).dist;
    assert_eq!(before, rollout(ppo.policy_mut(), &spec, 8, 2).dist);
    ppo.update(&r).unwrap();
    assert_eq!(count(&ppo), 94.0);
}

#[test]
fn a_privileged_critic_and_a_single_normaliser_have_their_own_inputs() {
    for (actor_norm, critic_norm) in [(true, true), (true, false), (false, true)] {
        for own in [None, Some(9)] {
            let spec = spec(5, own, ActionSpace::Discrete(3), 6);
            let (actor, critic) = small();
            let actor = ActorConfig { obs_normalization: actor_norm, ..actor };
            let critic = CriticConfig { obs_normalization: critic_norm, ..critic };
            let mut ppo =
                Ppo::new(&PpoConfig::default(), &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
            let r = rollout(ppo.policy_mut(), &spec, 8, 1);
            ppo.warm_up(&r).unwrap();
            let stats = ppo.update(&r).unwrap();
            assert_eq!(stats.skipped, 0);
            assert!(stats.value_function.is_finite() && stats.entropy > 1.0);
        }
    }
    let spec = spec(5, Some(9), ActionSpace::Discrete(3), 6);
    let (actor, critic) = small();
    let critic = CriticConfig { shared: true, ..critic };
    let error = Ppo::new(&PpoConfig::default(), &actor, &critic, &spec, 8, 3, Device::Cpu)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("critic.shared: "), "{error}");
}

#[test]
fn categorical_draws_follow_the_softmax() {
    let n = 20_000;
    let spec = spec(2, None, ActionSpace::Discrete(3), n);
    let (actor, critic) = small();
    let mut policy = ActorCritic::new(&actor, &critic, &spec, 1, Device::Cpu).unwrap();
    let logits = [0.0f32, 1.0, -1.0];
    let mut saved = policy.state().unwrap().weights().unwrap();
    for (name, t) in &mut saved {
        if name == "actor.head.weight" {
            let _ = t.zero_();
        } else if name == "actor.head.bias" {
            t.copy_(&Tensor::from_slice(&logits));
        }
    }
    policy.load(&saved).unwrap();
    let r = Rollout::new(&spec, 1, Widths { dist: 3, hidden: 0 }, tch::Device::Cpu).unwrap();
    let mut noise = vec![0.0f32; n * 3];
    for (i, x) in noise.iter_mut().enumerate() {
        *x = ostler_sim::rng::unit(philox(4, i as u32, Purpose::ActionNoise, 0, 0)[0]);
    }
    noise[..3].fill(0.0);
    let noise = Tensor::from_slice(&noise).view([-1, 3]);
    let out = ostler_collector::Act {
        action: &r.action.get(0),
        dist: &r.dist.get(0),
        std: &r.std.get(0),
        hidden: None,
    };
    policy.act(&r.obs.policy.get(0), &noise, &out).unwrap();
    let total: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
    for (k, &logit) in logits.iter().enumerate() {
        let share = r.action.eq(k as i64 as f64).mean(Kind::Double).double_value(&[]);
        let p = f64::from(logit).exp() / total;
        // Five standard errors.
        assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(), "{k} {share} {p}");
    }
    policy.act_mean(&r.obs.policy.get(0), None, &r.action.get(0)).unwrap();
    assert_eq!(r.action.min().double_value(&[]), 1.0);
    assert_eq!(r.action.max().double_value(&[]), 1.0);
}

#[test]
fn impossible_sizes_are_errors_that_name_the_key() {
    let spec = spec(5, None, ActionSpace::Continuous(2), 6);
    let (actor, critic) = small();
    let error = |ppo: &PpoConfig, actor: &ActorConfig| {
        Ppo::new(ppo, actor, &critic, &spec, 8, 3, Device::Cpu).unwrap_err().to_string()
    };
    let many = PpoConfig { num_mini_batches: 49, ..PpoConfig::default() };
    assert!(error(&many, &actor).starts_with("ppo.num_mini_batches: 49"));
    let negative = PpoConfig { clip_param: -0.2, ..PpoConfig::default() };
    assert!(error(&negative, &actor).starts_with("ppo.clip_param: -0.2"));
    let std = ActorConfig { init_std: -1.0, ..actor.clone() };
    assert!(error(&PpoConfig::default(), &std).starts_with("actor.init_std: -1"));
    let width = ActorConfig { hidden_dims: vec![8, 0], ..actor };
    assert!(error(&PpoConfig::default(), &width).starts_with("actor.hidden_dims[1]: 0"));
}

#[test]
fn a_rollout_of_another_size_is_refused() {
    let (mut ppo, spec) = build(&PpoConfig::default(), ActionSpace::Continuous(2), false);
    let r = rollout(ppo.policy_mut(), &spec, 7, 1);
    let error = ppo.update(&r).unwrap_err().to_string();
    assert!(error.contains("7 steps") && error.contains("8 steps"), "{error}");
}

/// Reward is minus the squared distance of the action from a target that depends on
/// the observation; any learner worth its name gets close.
#[test]
fn it_learns_to_hit_a_target() {
    let spec = spec(2, None, ActionSpace::Continuous(1), 64);
    let (actor, critic) = small();
    let config = PpoConfig { gamma: 0.0, entropy_coef: 0.0, ..PpoConfig::default() };
    let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 16, 3, Device::Cpu).unwrap();
    let (mut first, mut last) = (0.0, 0.0);
    for i in 0..60 {
        let r = rollout(ppo.policy_mut(), &spec, 16, 1000 + i);
        let obs = r.obs.policy.narrow(0, 0, 16);
        let target = obs.select(2, 0) - obs.select(2, 1) * 0.5;
        let error: Tensor = r.action.select(2, 0) - target;
        r.reward.shallow_clone().copy_(&-error.square());
        ppo.update(&r).unwrap();
        let mean = (r.dist.select(2, 0) - (r.action.select(2, 0) - error)).square();
        last = mean.mean(Kind::Float).double_value(&[]);
        if i == 0 {
            first = last;
        }
    }
    assert!(first > 1.0 && last < 0.05, "{first} {last}");
}

/// Once the divergence is beyond `kl_stop` times the desired one, only the critic learns.
#[test]
fn the_policy_stops_at_its_divergence_and_the_critic_goes_on() {
    let moved = |kl_stop: f64| {
        let config =
            PpoConfig { learning_rate: 0.1, schedule: Schedule::Fixed, kl_stop, ..plain() };
        let (mut ppo, spec) = build(&config, ActionSpace::Continuous(2), false);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        let actor = ppo.policy.params.front("actor");
        let before = theta(&ppo);
        let stats = ppo.update(&r).unwrap();
        let moved = (theta(&ppo) - before).abs();
        let most = |t: Tensor| t.max().double_value(&[]);
        let critic = moved.size()[0] - actor;
        (stats, [most(moved.narrow(0, 0, actor)), most(moved.narrow(0, actor, critic))])
    };
    let (free, [actor, critic]) = moved(0.0);
    assert_eq!(free.policy_share, 1.0);
    assert!(free.kl > 0.1, "{free:?}");
    let (held, [less, same]) = moved(1.5);
    // The minibatch that is beyond takes no step, and none after it.
    assert!(held.policy_share < 0.5 && held.kl > 1.5 * 0.03, "{held:?}");
    assert!(less < 0.7 * actor && same == critic, "{less} {actor} {same} {critic}");
}

/// Where advantages are small beside returns they are noise: steps are shorter.
#[test]
fn the_policy_steps_as_far_as_there_is_signal() {
    let moved = |advantage_floor: f64| {
        let config = PpoConfig {
            advantage_floor,
            kl_stop: 0.0,
            schedule: Schedule::Fixed,
            ..PpoConfig::default()
        };
        let (mut ppo, spec) = build(&config, ActionSpace::Continuous(2), false);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        let actor = ppo.policy.params.front("actor");
        let before = theta(&ppo);
        let stats = ppo.update(&r).unwrap();
        assert_eq!(stats.learning_rate, 1e-3);
        let moved = (theta(&ppo) - before).abs().narrow(0, 0, actor);
        moved.mean(Kind::Double).double_value(&[])
    };
    let (none, some, much) = (moved(0.0), moved(10.0), moved(100.0));
    assert!((none / some / 10.0 - 1.0).abs() < 0.3, "{none} {some}");
    assert!((some / much / 10.0 - 1.0).abs() < 0.3, "{some} {much}");
}

#[test]
fn samples_with_large_advantages_are_learnt_from_more_often() {
    for (normalize_advantage, alpha) in
        [(AdvantageNorm::Batch, 0.0), (AdvantageNorm::Batch, 1.0), (AdvantageNorm::MiniBatch, 1.0)]
    {
        let config = PpoConfig {
            priority_alpha: alpha,
            priority_beta: 0.5,
            normalize_advantage,
            num_learning_epochs: 2,
            num_mini_batches: 1,
            ..PpoConfig::default()
        };
        let (mut ppo, spec) = build(&config, ActionSpace::Continuous(2), false);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        ppo.update(&r).unwrap();
        let advantage = ppo.samples.packed.narrow(1, 7, 1).view([-1]);
        let weight = ppo.samples.packed.narrow(1, 11, 1).view([-1]);
        let valid = ppo.samples.packed.narrow(1, 10, 1).view([-1]);
        assert_eq!(valid.sum(Kind::Float).double_value(&[]), 47.0);
        let Some(drawn) = ppo.drawn_on_host(0).unwrap() else {
            assert!(alpha == 0.0 && weight == weight.ones_like());
            continue;
        };
        assert_ne!(Some(&drawn), ppo.drawn_on_host(1).unwrap().as_ref());
        let often: Vec<f64> =
            (0..48).map(|i| drawn.iter().filter(|d| **d == i).count() as f64).collect();
        let own = match normalize_advantage {
            AdvantageNorm::MiniBatch => advantage.abs(),
            // Weighed already: |A|^(1 - 1/2), times a constant.
            _ => advantage.square(),
        };
        let own = (&own * &valid / (&own * &valid).mean(Kind::Float)).to_kind(Kind::Double);
        let own = Vec::<f64>::try_from(own).unwrap();
        for (i, (often, own)) in often.iter().zip(&own).enumerate() {
            assert!((often - own).abs() < 1.01, "{i}: {often} times, relative {own}");
        }
        if normalize_advantage == AdvantageNorm::MiniBatch {
            let weight = Vec::<f64>::try_from(weight.to_kind(Kind::Double)).unwrap();
            for (own, weight) in own.iter().zip(&weight).filter(|(own, _)| **own > 0.01) {
                assert!((weight * own.sqrt() - 1.0).abs() < 1e-3);
            }
        }
    }
}
