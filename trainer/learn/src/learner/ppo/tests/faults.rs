//! Faults that a drill injects are skipped, or reported.

use super::*;
use crate::learner::UpdateTarget as T;
use ostler_sim::env::Value;
use ostler_sim::env::When::{self, At, Every};

const ACTION: ActionSpace = ActionSpace::Continuous(2);
const POISONS: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// One minibatch per update, so that a skipped one is a skipped update.
fn single() -> PpoConfig {
    PpoConfig {
        num_learning_epochs: 1,
        num_mini_batches: 1,
        // Its statistics move before the first minibatch.
        normalize_returns: false,
        ..PpoConfig::default()
    }
}

fn fault(when: When, what: T, value: f64) -> UpdateFault {
    UpdateFault { when, minibatch: 0, what, value: Value::Number(value) }
}

#[test]
fn a_poisoned_gradient_or_loss_leaves_weights_and_optimiser_as_they_were() {
    for value in POISONS {
        for what in [T::Gradient(0), T::Gradient(77), T::Loss] {
            let (mut ppo, spec) = build(&single(), ACTION, false);
            let r = rollout(ppo.policy_mut(), &spec, 8, 1);
            ppo.update(&r).unwrap();
            ppo.inject(vec![fault(At(2), what.clone(), value)]).unwrap();
            let before = ppo.save().unwrap();
            let s = ppo.update(&r).unwrap();
            let after = ppo.save().unwrap();
            for ((name, x), (_, y)) in before.iter().zip(&after) {
                let same = bits(x) == bits(y);
                assert!(same || name == "ppo.updates", "{what:?} {value}: {name}");
            }
            let by_loss = u64::from(what == T::Loss);
            assert_eq!((s.skipped, s.skipped_loss), (1, by_loss));
            assert_eq!(s.skipped_gradient, 1 - by_loss);
            assert!(!s.non_finite_params);
            // And it was only this one.
            assert_eq!(ppo.update(&r).unwrap().skipped, 0);
        }
    }
}

#[test]
fn poison_in_the_state_is_reported_and_reverting_removes_it() {
    let targets = [
        T::Parameter("critic.0.bias".into()),
        T::ParameterIndex(3),
        T::LogStd,
        T::FirstMoment(5),
        T::SecondMoment(5),
        T::Normalizer,
    ];
    for what in targets {
        for value in POISONS {
            let (mut ppo, spec) = build(&PpoConfig::default(), ACTION, true);
            let r = rollout(ppo.policy_mut(), &spec, 8, 1);
            ppo.update(&r).unwrap();
            ppo.capture().unwrap();
            let kept = ppo.save().unwrap();
            ppo.inject(vec![UpdateFault { minibatch: 7, ..fault(At(2), what.clone(), value) }])
                .unwrap();
            let s = ppo.update(&r).unwrap();
            // An infinite standard deviation is brought back to its bound; that is what the
            // bound is for.
            let mended = what == T::LogStd && value.is_infinite();
            assert_eq!(s.non_finite_params, !mended, "{what:?} {value}");
            ppo.restore().unwrap();
            same(&ppo.save().unwrap(), &kept);
            // The retry does not meet it again.
            let s = ppo.update(&r).unwrap();
            assert_eq!((s.skipped, s.non_finite_params), (0, false), "{what:?}");
        }
    }
}

#[test]
fn a_finite_poison_does_what_its_size_does() {
    let (mut ppo, spec) = build(&single(), ACTION, false);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    ppo.inject(vec![fault(At(1), T::Loss, 2e10)]).unwrap();
    let s = ppo.update(&r).unwrap();
    assert_eq!((s.value_function, s.skipped), (f64::from(2e10_f32), 0));
    ppo.inject(vec![fault(At(2), T::Gradient(0), 1e6)]).unwrap();
    let s = ppo.update(&r).unwrap();
    assert!(s.grad_norm >= 1e6 && s.grad_clipped == 1.0 && s.skipped == 0);
}

#[test]
fn faults_come_at_their_updates_and_minibatches() {
    let config = PpoConfig { num_learning_epochs: 2, num_mini_batches: 3, ..PpoConfig::default() };
    let (mut ppo, spec) = build(&config, ACTION, false);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    let nan = |when, minibatch| UpdateFault { minibatch, ..fault(when, T::Gradient(0), f64::NAN) };
    // The last is beyond the last minibatch.
    let faults = vec![nan(Every(3), 0), nan(Every(3), 5), nan(At(4), 2), nan(At(1), 6)];
    ppo.inject(faults).unwrap();
    let skipped: Vec<u64> = (0..6).map(|_| ppo.update(&r).unwrap().skipped).collect();
    assert_eq!(skipped, [0, 0, 2, 1, 0, 2]);
    ppo.inject(Vec::new()).unwrap();
    assert!((0..3).all(|_| ppo.update(&r).unwrap().skipped == 0));
}

#[test]
fn places_that_are_not_there_are_refused_by_name() {
    let (mut ppo, _) = build(&single(), ACTION, false);
    let mut refused = |what: T| {
        let e = ppo.inject(vec![fault(At(0), what, 0.0)]).unwrap_err();
        e.to_string()
    };
    assert!(refused(T::Parameter("actor.9.bias".into())).contains("\"actor.9.bias\""));
    assert!(refused(T::Gradient(1 << 40)).contains("entry 1099511627776 of"));
    assert!(refused(T::Normalizer).contains("statistics"));
    let (mut discrete, _) = build(&single(), ActionSpace::Discrete(3), false);
    let e = discrete.inject(vec![fault(At(0), T::LogStd, 0.0)]);
    assert!(e.unwrap_err().to_string().contains("log_std"));
}

#[test]
fn faults_are_written_as_a_configuration_has_them() {
    #[derive(Deserialize)]
    struct File {
        update: Vec<UpdateFault>,
    }
    use serde::Deserialize;
    let text = "
[[update]]
when = { every = 20 }
what = { gradient = 3 }
value = nan
[[update]]
when = { at = 5 }
minibatch = 2
what = { parameter = \"actor.0.weight\" }
value = -inf
[[update]]
when = { at = 6 }
what = \"log_std\"
value = 1e10
";
    let file: File = toml::from_str(text).unwrap();
    let u = &file.update;
    assert!(u[0].when == Every(20) && u[0].what == T::Gradient(3) && u[0].value.number().is_nan());
    assert_eq!(u[1].what, T::Parameter("actor.0.weight".into()));
    assert_eq!((u[1].minibatch, u[1].value.number()), (2, f64::NEG_INFINITY));
    assert_eq!(u[2], fault(At(6), T::LogStd, 1e10));
    assert!(toml::from_str::<File>(&text.replace("minibatch", "mini")).is_err());
}
