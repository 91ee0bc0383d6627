//! Minibatches of several blocks and parts, on several threads.

use super::*;
use crate::learner::ppo::reference::gradient as by_autograd;

/// A learner with minibatches of `envs * 8` samples, sizes that fill no vector, and a rollout
/// in which some samples are not valid and hold no numbers.
fn learner(
    envs: usize,
    (action, std_type): (ActionSpace, StdType),
    layer_norm: bool,
) -> (Ppo, PpoConfig) {
    let config = PpoConfig {
        num_mini_batches: 1,
        num_learning_epochs: 2,
        kl_stop: 0.0,
        ..PpoConfig::default()
    };
    let spec = spec(5, Some(7), action, envs);
    let actor =
        ActorConfig { hidden_dims: vec![37, 19], std_type, layer_norm, ..ActorConfig::default() };
    let critic = CriticConfig { hidden_dims: vec![21], layer_norm, ..CriticConfig::default() };
    tch::set_num_threads(1);
    let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    let valid = r.valid.view([8 * envs as i64]);
    for i in [0, 3 * envs as i64 + 2, 8 * envs as i64 - 1] {
        let _ = valid.get(i).zero_();
    }
    ppo.prepare(&r).unwrap();
    // Rows that are not valid may hold anything.
    let width = ppo.samples.packed.size()[1];
    let bad = ppo.samples.packed.narrow(1, width - 2, 1).eq(0.0);
    let _ = ppo.samples.packed.narrow(1, 0, width - 2).masked_fill_(&bad, f64::NAN);
    (ppo, config)
}

const KINDS: [(ActionSpace, StdType); 3] = [
    (ActionSpace::Continuous(3), StdType::Scalar),
    (ActionSpace::Continuous(2), StdType::StateDependent),
    (ActionSpace::Discrete(5), StdType::Scalar),
];

#[test]
fn gradients_of_many_blocks_are_those_of_tensors() {
    for kind in KINDS {
        // One part, less than a vector; two blocks; three parts with blocks of all sizes.
        for (envs, layer_norm) in [(1, false), (40, true), (101, false), (130, true)] {
            let (mut ppo, config) = learner(envs, kind, layer_norm);
            let samples = 8 * envs;
            host_gradient(&mut ppo, &config, 0..samples, 0.2);
            let ours = ppo.policy.params.grad.copy();
            let our_stats = ppo.accumulator.losses().copy();

            let mb = &ppo.tensors().unwrap()[0];
            let order = Tensor::arange(samples as i64, (Kind::Int64, Device::Cpu));
            mb.gather(&ppo.samples, &order).unwrap();
            mb.forward(&ppo.policy.net).unwrap();
            // The tensors' loss multiplies by validity, so that it needs numbers everywhere.
            let numbers = mb.packed.nan_to_num(0.5, None, None);
            mb.packed.shallow_clone().copy_(&numbers);
            let clip = Tensor::from(0.2_f32);
            device_loss(&ppo, &config, mb, (&clip, 0.0), ppo.accumulator.losses());
            mb.backward(&ppo.policy.net).unwrap();
            let far = (&ours - &ppo.policy.params.grad).abs().max();
            let size = ppo.policy.params.grad.abs().max().double_value(&[]);
            let far = far.double_value(&[]) / size;
            assert!(far < 1e-5, "{kind:?} {envs} {layer_norm}: {far:e}");
            let off = (our_stats - ppo.accumulator.losses()).abs().max();
            assert!(off.double_value(&[]) < 1e-5, "{kind:?} {envs}");
            on(&mut ppo, true);
        }
    }
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    for kind in KINDS {
        let gradients = [1, 2, 3, 5].map(|threads| {
            let (ppo, config) = learner(130, kind, true);
            let mut ppo = ppo.on_processor(threads, None).unwrap();
            host_gradient(&mut ppo, &config, 0..1040, 0.2);
            bits(&ppo.policy.params.grad)
        });
        assert!(gradients.iter().all(|g| *g == gradients[0]), "{kind:?}");
    }
}

/// Whole updates, with the statistics of observations and returns.
#[test]
fn updates_on_any_number_of_threads_have_the_same_bits() {
    let state = |threads: usize| {
        let (ppo, _) = learner(130, KINDS[0], false);
        let spec = spec(5, Some(7), KINDS[0].0, 130);
        let mut ppo = ppo.on_processor(threads, None).unwrap();
        let r = rollout(ppo.policy_mut(), &spec, 8, 2);
        for _ in 0..3 {
            ppo.update(&r).unwrap();
        }
        let saved = ppo.save().unwrap().into_iter();
        saved.map(|(_, t)| bits(&t.to_kind(Kind::Float))).collect::<Vec<_>>()
    };
    assert_eq!(state(1), state(3));
}

#[test]
fn the_order_of_samples_decides_which_are_learnt_from() {
    let (mut ppo, config) = learner(40, KINDS[0], false);
    host_gradient(&mut ppo, &config, 0..100, 0.2);
    let first = ppo.policy.params.grad.copy();
    let Path::Blocks(blocks) = &mut ppo.path else {
        panic!("not on the host");
    };
    blocks.draw_order(3, 0, 1);
    blocks.take(0..100);
    let mut chosen = blocks.samples().to_vec();
    host_gradient(&mut ppo, &config, 0..100, 0.2);
    assert_ne!(bits(&first), bits(&ppo.policy.params.grad));
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen.len(), 100);
}

/// Far from the policy that acted, with samples that are not valid and hold no numbers.
#[test]
fn clipped_samples_have_the_gradient_that_autograd_gives_them() {
    for kind in KINDS {
        for layer_norm in [false, true] {
            let (mut ppo, config) = learner(101, kind, layer_norm);
            let config = PpoConfig { entropy_coef: 0.0, clip_param: 0.02, ..config };
            // Away from the policy that acted.
            let theta = &mut ppo.policy.params.theta;
            *theta += normals(9, &theta.size()) * 0.05;
            host_gradient(&mut ppo, &config, 0..808, 0.2);
            let ours = ppo.policy.params.grad.copy();
            let clipped = ppo.accumulator.losses().double_value(&[1]);
            assert!(clipped > 0.3, "{clipped}");

            let mb = &ppo.tensors().unwrap()[0];
            let order = Tensor::arange(808, (Kind::Int64, Device::Cpu));
            mb.gather(&ppo.samples, &order).unwrap();
            let means = ppo.accumulator.losses();
            let clip = Tensor::from(0.2_f32);
            let params = &ppo.policy.params;
            by_autograd(&config, (&ppo.places(), params), mb, (None, None), (&clip, 0.0), means)
                .unwrap();
            let size = params.grad.abs().max().double_value(&[]);
            let far = (ours - &params.grad).abs().max().double_value(&[]) / size;
            assert!(far < 1e-5, "{kind:?} {layer_norm}: {far:e}");
        }
    }
}

/// Ratios from 0 over subnormal ones to near the largest number.
#[test]
fn ratios_of_any_size_have_the_gradient_that_autograd_gives_them() {
    for kind in KINDS {
        let (mut ppo, config) = learner(40, kind, false);
        let width = ppo.samples.packed.size()[1];
        let old = ppo.samples.packed.narrow(1, width - 6, 1);
        let far = Tensor::arange(320, (Kind::Float, Device::Cpu)).view([320, 1]) * 0.55 - 84.0;
        old.shallow_clone().copy_(&(&old + far));
        host_gradient(&mut ppo, &config, 0..320, 0.2);
        let ours = ppo.policy.params.grad.copy();
        let our_loss = ppo.accumulator.losses().double_value(&[2]);
        let mb = &ppo.tensors().unwrap()[0];
        let order = Tensor::arange(320, (Kind::Int64, Device::Cpu));
        mb.gather(&ppo.samples, &order).unwrap();
        let means = ppo.accumulator.losses();
        let (params, clip) = (&ppo.policy.params, Tensor::from(0.2_f32));
        by_autograd(&config, (&ppo.places(), params), mb, (None, None), (&clip, 0.0), means)
            .unwrap();
        let size = params.grad.abs().max().double_value(&[]);
        let far = (ours - &params.grad).abs().max().double_value(&[]) / size;
        assert!(size > 1e20 && far < 1e-5, "{kind:?}: {far:e} of {size:e}");
        let loss = means.double_value(&[2]);
        assert!((our_loss / loss - 1.0).abs() < 1e-5, "{our_loss:e} {loss:e}");
    }
}
