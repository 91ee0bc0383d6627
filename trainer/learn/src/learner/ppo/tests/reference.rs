//! Whole updates equal PyTorch's, and advantages TorchRL's.

use super::*;
use crate::learner::testing::Named;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Written by `tests/referee/ppo_reference.py`.
const UPDATES: &str = include_str!("../../../../../../tests/fixtures/ppo_update.json");

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    action: BTreeMap<String, usize>,
    seed: u64,
    obs: usize,
    steps: usize,
    envs: usize,
    ppo: PpoConfig,
    actor: ActorConfig,
    critic: CriticConfig,
    params: Named,
    rollout: Named,
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    stats: BTreeMap<String, f64>,
    params: Named,
    grad: Named,
}

fn close(what: &str, got: f64, expected: f64) {
    let error = (got - expected).abs() / expected.abs().max(1.0);
    assert!(error < 1e-5, "{what}: {got} instead of {expected}");
}

fn all_close(what: &str, got: &Tensor, expected: &Tensor) {
    let error = (got - expected).abs().max().double_value(&[]);
    let scale = expected.abs().max().double_value(&[]).max(1.0);
    assert!(error / scale < 1e-5, "{what}: off by {error:e}\n{got}\n{expected}");
}

/// A learner of a recorded case with its weights, and its rollout.
fn recorded(case: &Case, ppo: &PpoConfig, actor: &ActorConfig) -> (Ppo, Rollout) {
    let action = match case.action.iter().next().map(|(k, &n)| (k.as_str(), n)) {
        Some(("discrete", n)) => ActionSpace::Discrete(n),
        Some(("continuous", n)) => ActionSpace::Continuous(n),
        other => panic!("{other:?}"),
    };
    let spec = spec(case.obs, None, action, case.envs);
    let mut ppo =
        Ppo::new(ppo, actor, &case.critic, &spec, case.steps, case.seed, Device::Cpu).unwrap();
    let params: Vec<_> = case.params.iter().map(|(n, x)| (n.clone(), x.tensor())).collect();
    ppo.policy_mut().load(&params).unwrap();

    let width = ppo.policy().widths();
    let r = Rollout::new(&spec, case.steps as i64, width, tch::Device::Cpu).unwrap();
    for (name, to) in [
        ("obs", &r.obs.policy),
        ("final_obs", &r.final_obs.policy),
        ("action", &r.action),
        ("dist", &r.dist),
        ("std", &r.std),
        ("reward", &r.reward),
        ("terminated", &r.terminated),
        ("truncated", &r.truncated),
        ("valid", &r.valid),
        ("final_slot", &r.final_slot),
    ] {
        match case.rollout.get(name) {
            Some(from) => to.shallow_clone().copy_(&from.tensor()),
            None => assert!(name == "std" && case.action.contains_key("discrete")),
        }
    }
    (ppo, r)
}

/// The first step of `AdamW` is Adam's, after `rate * decay` was taken off the weights.
#[test]
fn weight_decay_takes_its_share_off_every_parameter() {
    const DECAY: f64 = 0.7;
    let fixture: Fixture = serde_json::from_str(UPDATES).unwrap();
    let case = fixture.cases.iter().find(|c| c.name == "gaussian, one step");
    let case = case.unwrap();
    let config = PpoConfig { weight_decay: DECAY, ..case.ppo.clone() };
    let (mut ppo, r) = recorded(case, &config, &case.actor);
    ppo.update(&r).unwrap();
    for (name, tensor) in &ppo.policy().state().unwrap().weights().unwrap() {
        let taken = case.params[name].tensor() * (config.learning_rate * DECAY);
        let expected = case.expected.params[name].tensor() - taken;
        let apart = (tensor - &expected).abs().max().double_value(&[]);
        assert!(apart < 1e-5, "{name}: {apart:e}");
    }
}

/// The step that PyTorch took leads below the bound: there it stays.
#[test]
fn a_learnt_deviation_does_not_go_below_its_bound() {
    let fixture: Fixture = serde_json::from_str(UPDATES).unwrap();
    let case = fixture.cases.iter().find(|c| c.name == "gaussian, one step");
    let case = case.unwrap();
    let (before, after) = (&case.params["actor.log_std"], &case.expected.params["actor.log_std"]);
    let (before, after) = (before.tensor(), after.tensor());
    let least = before.double_value(&[0]).exp() - 1e-4;
    assert!(after.double_value(&[0]).exp() < least);
    let actor = ActorConfig { min_std: least, ..case.actor.clone() };
    let (mut ppo, r) = recorded(case, &case.ppo, &actor);
    ppo.update(&r).unwrap();
    let all = ppo.policy().state().unwrap().weights().unwrap();
    let (_, log_std) = all.iter().find(|(name, _)| name == "actor.log_std").unwrap();
    close("held", log_std.double_value(&[0]), least.ln());
    close("free", log_std.double_value(&[1]), after.double_value(&[1]));
    assert!((log_std.double_value(&[0]) - after.double_value(&[0])).abs() > 1e-4);
}

#[test]
fn whole_updates_equal_pytorchs() {
    let fixture: Fixture = serde_json::from_str(UPDATES).unwrap();
    assert_eq!(fixture.cases.len(), 5);
    for case in &fixture.cases {
        let (mut ppo, r) = recorded(case, &case.ppo, &case.actor);
        let stats = ppo.update(&r).unwrap();
        assert_eq!((stats.skipped, stats.invalid), (0, 1), "{}", case.name);
        let got: BTreeMap<_, _> = [
            ("surrogate", stats.surrogate),
            ("value_function", stats.value_function),
            ("entropy", stats.entropy),
            ("kl", stats.kl),
            ("clip_fraction", stats.clip_fraction),
            ("grad_norm", stats.grad_norm),
            ("learning_rate", stats.learning_rate),
            ("explained_variance", stats.explained_variance),
            ("policy_share", stats.policy_share),
        ]
        .into();
        assert_eq!(got.len(), case.expected.stats.len());
        for (name, &expected) in &case.expected.stats {
            close(&format!("{}: {name}", case.name), got[name.as_str()], expected);
        }
        for (name, tensor) in &ppo.policy().state().unwrap().weights().unwrap() {
            let what = format!("{}: {name}", case.name);
            all_close(&what, tensor, &case.expected.params[name].tensor());
        }
        // The optimiser leaves the clipped gradient of the last minibatch behind; that of an
        // actor that has stopped is of a step that was not taken.
        let grads = ppo.policy.params.save_grad().unwrap();
        let stopped = stats.policy_share < 1.0;
        let taken = |name: &str| !stopped || !name.starts_with("actor");
        for (name, tensor) in grads.iter().filter(|(name, _)| taken(name)) {
            let what = format!("{}: gradient of {name}", case.name);
            all_close(&what, tensor, &case.expected.grad[name].tensor());
        }
    }
}

/// Written by `tests/referee/gae_reference.py`.
const ADVANTAGES: &str = include_str!("../../../../../../tests/fixtures/gae.json");

#[derive(Deserialize)]
struct Advantages {
    steps: i64,
    envs: i64,
    slots: i64,
    gamma: f64,
    lambda: f64,
    value: Vec<f64>,
    reward: Vec<f64>,
    final_value: Vec<f64>,
    terminated: Vec<f64>,
    truncated: Vec<f64>,
    final_slot: Vec<f64>,
    advantage: Vec<f64>,
}

#[test]
fn advantages_equal_torchrls() {
    let f: Advantages = serde_json::from_str(ADVANTAGES).unwrap();
    let t = |x: &[f64], rows: i64| Tensor::from_slice(x).to_kind(Kind::Float).view([rows, f.envs]);
    let out = t(&f.reward, f.steps).zeros_like();
    let trace = gae::Trace {
        reward: &t(&f.reward, f.steps),
        terminated: &t(&f.terminated, f.steps),
        truncated: &t(&f.truncated, f.steps),
        valid: &out.ones_like(),
        value: &t(&f.value, f.steps + 1),
        final_value: &t(&f.final_value, f.slots),
        final_slot: &t(&f.final_slot, f.steps).to_kind(Kind::Int),
    };
    gae::advantages(&trace, f.gamma, f.lambda, &out).unwrap();
    all_close("advantages", &out, &t(&f.advantage, f.steps));
}
