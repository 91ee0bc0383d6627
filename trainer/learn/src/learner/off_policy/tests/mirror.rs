//! The mirror loss of an actor that learns from a replay buffer.

use super::reference::{Case, actor, fill, learner, recorded, take};
use super::*;
use crate::learner::symmetry::SymmetryConfig;
use crate::learner::turn::Turn;
use ostler_sim::env::mirror::{Reflection, Signed};

const WEIGHT: f64 = 0.7;

/// Of five observations and two actions.
fn reflection() -> Reflection {
    Reflection {
        policy: Signed(vec![(1, 1.0), (0, 1.0), (2, -1.0), (4, -1.0), (3, -1.0)]),
        action: Signed(vec![(1, -1.0), (0, -1.0)]),
        ..Reflection::nothing()
    }
}

fn symmetric(case: &Case, algorithm: Algorithm<'_>) -> OffPolicy {
    let config =
        SymmetryConfig { mirror_loss: WEIGHT, augmentation: false, ..SymmetryConfig::default() };
    learner(case, algorithm, &actor()).with_symmetry(&reflection(), &config, None).unwrap()
}

/// The squared distance of mean actions, a mean with the samples' weights, by libtorch's own
/// operations.
fn distance(weights: &NamedTensors, x: &Inputs, bound: f64) -> Tensor {
    let of = |name: String| &weights.iter().find(|(n, _)| *n == name).unwrap().1;
    let layer = |x: &Tensor, name: &str| {
        x.linear(of(format!("actor.{name}.weight")), Some(of(format!("actor.{name}.bias"))))
    };
    let act = |x: &Tensor| {
        let hidden = layer(&layer(x, "0").elu(), "1").elu();
        layer(&hidden, "head").tanh() * bound
    };
    let found = reflection();
    let turned = |of: &Signed, x: &Tensor| Turn::new(of, Device::Cpu).unwrap().apply(x).unwrap();
    let target = turned(&found.action, &act(&x.obs)).detach();
    let apart = act(&turned(&found.policy, &x.obs)) - target;
    let square = (&apart * &apart).mean_dim(&[1i64][..], true, Kind::Float);
    (square * &x.weight).sum(Kind::Float)
}

#[test]
fn the_mirror_loss_has_autograds_gradient() {
    for name in ["sac", "td3"] {
        let case = &recorded(name);
        let (sac, td3): (SacConfig, Td3Config);
        let (algorithm, bound) = match name {
            "sac" => {
                sac = serde_json::from_value(case.config.clone()).unwrap();
                (Algorithm::Sac(&sac), sac.action_bound)
            }
            _ => {
                td3 = serde_json::from_value(case.config.clone()).unwrap();
                (Algorithm::Td3(&td3), td3.action_bound)
            }
        };
        let mut learner = symmetric(case, algorithm);
        fill(&mut learner.inputs, &case.batches[0], false);
        let gradients = {
            let _no_grad = tch::no_grad_guard();
            let OffPolicy { method, nets, actor, inputs, mirror, .. } = &mut learner;
            method.actor_loss(nets, inputs, actor).unwrap();
            let others = nets.policy.params.save_grad().unwrap();
            let others: Vec<Tensor> = others.iter().map(|(_, g)| g.copy()).collect();
            let x = (&*inputs, method.mean());
            mirror.as_ref().unwrap().add(&nets.policy, x, actor).unwrap();
            let both = nets.policy.params.save_grad().unwrap();
            both.into_iter().zip(others).map(|((n, g), o)| (n, g - o)).collect::<NamedTensors>()
        };
        let weights: NamedTensors = case
            .params
            .iter()
            .filter(|(n, _)| n.starts_with("actor."))
            .map(|(n, t)| (n.clone(), t.tensor().set_requires_grad(true)))
            .collect();
        let loss = distance(&weights, &learner.inputs, bound);
        (&loss * WEIGHT).backward();
        let mut seen = 0;
        for (name, got) in &gradients {
            let theirs = weights.iter().find(|(n, _)| n == name).unwrap().1.grad();
            if name.contains("log_std") {
                assert!(!theirs.defined() && got.abs().max().double_value(&[]) == 0.0, "{name}");
                continue;
            }
            seen += 1;
            let apart = (got - &theirs).abs().max().double_value(&[]);
            assert!(apart < 1e-6, "{name}: {apart:e}\n{got}\n{theirs}");
            assert!(theirs.abs().max().double_value(&[]) > 1e-3, "{name}: {theirs}");
        }
        assert_eq!(seen, 6);
        if name == "sac" {
            let _no_grad = tch::no_grad_guard();
            take(&mut learner, case, &case.batches[0]);
            let said = learner.read(&learner.inputs.weight).unwrap().mirror.unwrap();
            let loss = loss.double_value(&[]);
            assert!((said - loss).abs() < 1e-6, "{said} {loss}");
        }
    }
}

#[test]
fn the_mirror_loss_brings_both_sides_together() {
    let case = &recorded("sac");
    let sac: SacConfig = serde_json::from_value(case.config.clone()).unwrap();
    let mut learner = symmetric(case, Algorithm::Sac(&sac));
    let _no_grad = tch::no_grad_guard();
    let mut loss = || {
        take(&mut learner, case, &case.batches[0]);
        learner.read(&learner.inputs.weight).unwrap().mirror.unwrap()
    };
    // The other losses pull, too.
    let first = loss();
    let last = (0..400).map(|_| loss()).last().unwrap();
    assert!(last < 0.3 * first, "{first} {last}");
}
