//! The passes over the host's memory, and the kernels of a device, give the numbers of
//! automatic differentiation.

use super::*;
use crate::learner::UpdateTarget as T;
use ostler_sim::env::{Value, When};

/// Blocks in the host's memory; automatic differentiation; as on a device, with the kernels on
/// the host's stand-in for a GPU.
#[derive(Clone, Copy)]
enum Way {
    Host,
    Reference,
    Kernel,
}

fn on_its_way(mut ppo: Ppo, way: Way) -> Ppo {
    match way {
        Way::Host => ppo,
        Way::Reference => ppo.by_reference().unwrap(),
        Way::Kernel => {
            on(&mut ppo, false);
            ppo
        }
    }
}

/// Parameters, optimiser and learning rate of two learners, and what they said.
fn agree(a: &Ppo, b: &Ppo, said: (UpdateStats, UpdateStats), what: &str) {
    let (x, y) = (a.save().unwrap(), b.save().unwrap());
    for ((name, x), (_, y)) in x.iter().zip(&y) {
        let x = x.to_kind(Kind::Double);
        let y = y.to_kind(Kind::Double);
        let scale = y.abs().max().double_value(&[]).max(1e-6);
        let far = (x - y).abs().max().double_value(&[]) / scale;
        assert!(far < 2e-5, "{what}: {name} differs by {far} of its largest");
    }
    let (x, y) = said;
    for (name, x, y) in [
        ("surrogate", x.surrogate, y.surrogate),
        ("value", x.value_function, y.value_function),
        ("entropy", x.entropy, y.entropy),
        ("kl", x.kl, y.kl),
        ("clip fraction", x.clip_fraction, y.clip_fraction),
        ("norm", x.grad_norm, y.grad_norm),
        ("clipped", x.grad_clipped, y.grad_clipped),
        ("rate", x.learning_rate, y.learning_rate),
        ("skipped", x.skipped as f64, y.skipped as f64),
        ("by gradient", x.skipped_gradient as f64, y.skipped_gradient as f64),
        ("by loss", x.skipped_loss as f64, y.skipped_loss as f64),
    ] {
        assert!((x - y).abs() <= 2e-5 * y.abs().max(0.1), "{what}: {name}: {x}, {y}");
    }
}

#[test]
fn passes_over_memory_and_kernels_do_what_automatic_differentiation_does() {
    let plain = PpoConfig::default();
    let configs = [
        ("defaults", plain.clone()),
        (
            "no clipping, Huber, no normalisation",
            PpoConfig {
                use_clipped_value_loss: false,
                value_loss: ValueLoss::Huber,
                normalize_advantage: AdvantageNorm::None,
                schedule: Schedule::Fixed,
                entropy_coef: 0.05,
                ..plain.clone()
            },
        ),
        (
            "advantages by minibatch, a tight norm",
            PpoConfig {
                value_loss: ValueLoss::Huber,
                normalize_advantage: AdvantageNorm::MiniBatch,
                max_grad_norm: 0.05,
                num_mini_batches: 5,
                clip_param: 0.02,
                ..plain.clone()
            },
        ),
        (
            "a teacher that counts less and less",
            PpoConfig {
                imitation: ImitationConfig { final_share: 0.5, ..imitation::config(0.8, false) },
                ..plain.clone()
            },
        ),
        (
            "samples drawn by advantage",
            PpoConfig { priority_alpha: 0.8, priority_beta: 0.4, ..plain },
        ),
    ];
    for (name, config) in configs {
        for action in [ActionSpace::Continuous(2), ActionSpace::Discrete(3)] {
            let what = format!("{name}, {action:?}");
            let kinds = [Way::Host, Way::Reference, Way::Kernel];
            let [mut host, mut reference, mut kernel] = kinds.map(|kind| {
                let (mut ppo, spec) = imitation::build(&config, action);
                ppo.set_progress(0.25).unwrap();
                ppo = on_its_way(ppo, kind);
                let fault = |what, update, value| UpdateFault {
                    when: When::At(update),
                    minibatch: 1,
                    what,
                    value: Value::Number(value),
                };
                let faults =
                    vec![fault(T::Gradient(3), 2, f64::NAN), fault(T::Loss, 3, f64::INFINITY)];
                ppo.inject(faults).unwrap();
                // By another policy: by this one, the first divergence is 0 but for
                // rounding, whose sign would decide on the learning rate.
                let (mut other, _) = build_seeded(&PpoConfig::default(), action, true, 4);
                let r = rollout(other.policy_mut(), &spec, 8, 1);
                let said: Vec<_> = (0..3).map(|_| ppo.update(&r).unwrap()).collect();
                (ppo, said)
            });
            for i in 0..3 {
                let y = reference.1.remove(0);
                assert_eq!(y.skipped, u64::from(i > 0), "{what}");
                agree(&host.0, &reference.0, (host.1.remove(0), y), &what);
                agree(&kernel.0, &reference.0, (kernel.1.remove(0), y), &what);
            }
        }
    }
}

/// With a standard deviation for each state.
#[test]
fn also_where_the_deviation_depends_on_the_state() {
    let spec = spec(5, None, ActionSpace::Continuous(2), 6);
    let (actor, critic) = small();
    let actor = ActorConfig { std_type: StdType::StateDependent, ..actor };
    let kinds = [Way::Host, Way::Reference, Way::Kernel];
    let [host, reference, kernel] = kinds.map(|kind| {
        let config = PpoConfig::default();
        let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
        ppo = on_its_way(ppo, kind);
        let mut other = Ppo::new(&config, &actor, &critic, &spec, 8, 4, Device::Cpu).unwrap();
        let r = rollout(other.policy_mut(), &spec, 8, 1);
        let said = ppo.update(&r).unwrap();
        (ppo, said)
    });
    agree(&host.0, &reference.0, (host.1, reference.1), "by state");
    agree(&kernel.0, &reference.0, (kernel.1, reference.1), "by state");
}

#[test]
fn a_rollout_without_a_valid_sample_changes_nothing_on_the_host() {
    let (mut ppo, spec) = build(&PpoConfig::default(), ActionSpace::Continuous(2), false);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    let _ = r.valid.shallow_clone().zero_();
    let before = ppo.policy().state().unwrap().weights().unwrap();
    let said = ppo.update(&r).unwrap();
    assert_eq!(said.skipped, said.skipped_no_valid);
    assert!(said.skipped > 0);
    same(&before, &ppo.policy().state().unwrap().weights().unwrap());
}
