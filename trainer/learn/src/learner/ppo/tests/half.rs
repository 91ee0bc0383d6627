//! `learner.precision = "bf16"`: minibatches with products of bfloat16.

use super::*;
use crate::need::Need;

/// Networks of a kind.
#[derive(Debug, Clone, Copy, Default)]
struct Case {
    layer_norm: bool,
    residual: bool,
    shared: bool,
    recurrent: bool,
}

const CASES: [Case; 4] = [
    Case { layer_norm: false, residual: false, shared: false, recurrent: false },
    Case { layer_norm: true, residual: true, shared: false, recurrent: false },
    Case { layer_norm: false, residual: true, shared: true, recurrent: false },
    Case { layer_norm: false, residual: false, shared: false, recurrent: true },
];

const STEPS: usize = 8;
const ENVS: usize = 130;

/// A learner with minibatches of all samples, before its first, and its rollout.
fn learner(case: Case, threads: usize, half: Option<Half>) -> (Ppo, PpoConfig, Rollout) {
    tch::set_num_threads(1);
    let config = PpoConfig {
        num_mini_batches: 1,
        num_learning_epochs: 2,
        kl_stop: 0.0,
        ..PpoConfig::default()
    };
    let critic_obs = if case.shared { None } else { Some(7) };
    let spec = spec(5, critic_obs, ActionSpace::Continuous(3), ENVS);
    let (layer_norm, residual) = (case.layer_norm, case.residual);
    let actor = ActorConfig {
        hidden_dims: vec![37, 37, 19],
        layer_norm,
        residual,
        rnn_type: if case.recurrent { RnnType::Gru } else { RnnType::None },
        rnn_hidden_dim: 11,
        ..ActorConfig::default()
    };
    let critic = CriticConfig {
        hidden_dims: vec![21, 21],
        layer_norm,
        residual,
        shared: case.shared,
        ..CriticConfig::default()
    };
    let ppo = Ppo::new(&config, &actor, &critic, &spec, STEPS, 3, Device::Cpu).unwrap();
    let mut ppo = ppo.on_processor(threads, half).unwrap();
    let r = rollout(ppo.policy_mut(), &spec, STEPS as i64, 1);
    // Not the policy that acted: so its ratios have gradients of all signs.
    let theta = &mut ppo.policy.params.theta;
    *theta += normals(9, &theta.size()) * 0.05;
    ppo.prepare(&r).unwrap();
    (ppo, config, r)
}

/// Gradients of the first minibatch, by the parameters' names.
fn gradients(case: Case, threads: usize, half: Option<Half>) -> NamedTensors {
    let (mut ppo, config, _) = learner(case, threads, half);
    let all = ppo.sequences.count();
    host_gradient(&mut ppo, &config, 0..all, 0.2);
    ppo.policy.params.save_grad().unwrap()
}

/// How far `x` is from `y`, relative to `y`.
fn apart(x: &Tensor, y: &Tensor) -> f64 {
    let norm = |t: &Tensor| t.norm().double_value(&[]);
    norm(&(x - y)) / norm(y)
}

#[test]
fn gradients_of_every_parameter_are_near_those_in_float32() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    for case in CASES {
        let exact = gradients(case, 1, None);
        let rounded = gradients(case, 1, Some(half));
        assert_eq!(exact.len(), rounded.len());
        for ((name, exact), (_, rounded)) in exact.iter().zip(&rounded) {
            let apart = apart(rounded, exact);
            // A product that is left out, or of other factors, is about 1.
            assert!(apart < 5e-2, "{case:?} {name}: {apart:e}");
            assert!(apart > 1e-6, "{case:?} {name}: {apart:e}, nothing was rounded");
        }
    }
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    for case in CASES {
        let once = gradients(case, 1, Some(half));
        for threads in [1, 2, 3, 5] {
            same(&gradients(case, threads, Some(half)), &once);
        }
    }
}

#[test]
fn updates_repeat_and_do_not_depend_on_threads() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    let after = |threads: usize, half: Option<Half>| {
        let (mut ppo, _, r) = learner(CASES[0], threads, half);
        for _ in 0..3 {
            assert_eq!(ppo.update(&r).unwrap().skipped, 0);
        }
        ppo.save().unwrap()
    };
    let once = after(1, Some(half));
    same(&after(1, Some(half)), &once);
    same(&after(3, Some(half)), &once);
    let exact = after(1, None);
    let theta = |state: &NamedTensors| {
        let (_, theta) = state.iter().find(|(name, _)| name == "actor.0.weight").unwrap();
        theta.copy()
    };
    assert_ne!(bits(&theta(&exact)), bits(&theta(&once)));
}
