//! The backward pass by hand equals autograd's, for every variant.

use super::*;
use crate::learner::ppo::reference::gradient as by_autograd;

/// One variant of policy and loss.
struct Variant {
    action: ActionSpace,
    actor: ActorConfig,
    critic: CriticConfig,
    ppo: PpoConfig,
}

impl Variant {
    fn imitation(&self) -> f64 {
        self.ppo.imitation.coef_at(1.0)
    }

    /// Largest difference of the two gradients, relative to the largest entry.
    fn difference(&self, stream: u32) -> f64 {
        let taught = self.ppo.imitation.is_on();
        let mut spec = spec(5, None, self.action, 7);
        if taught {
            spec = imitation::with_group(spec, 4);
        }
        let mut ppo = Ppo::new(
            &self.ppo,
            &self.actor,
            &self.critic,
            &spec,
            6,
            u64::from(stream),
            Device::Cpu,
        )
        .unwrap();
        if taught {
            let teacher = imitation::teacher(self.action, 4);
            ppo.set_teacher(teacher).unwrap();
        }
        let rollout = rollout(ppo.policy_mut(), &spec, 6, stream);
        ppo.prepare(&rollout).unwrap();
        // Away from where ratios are 1 and values are the old ones. A standard deviation at the
        // bounds behaves differently on purpose, so stay between them.
        let theta = &mut ppo.policy.params.theta;
        let noise = normals(stream + 50, &theta.size()) * 0.05;
        *theta += &noise;

        let order = Tensor::arange(6 * 7, (Kind::Int64, Device::Cpu));
        let mb = &ppo.tensors().unwrap()[0];
        mb.gather(&ppo.samples, &order).unwrap();
        mb.forward(&ppo.policy.net).unwrap();
        let value_clip = Tensor::from(self.ppo.clip_param as f32);
        let terms = (&value_clip, self.imitation());
        device_loss(&ppo, &self.ppo, mb, terms, ppo.accumulator.losses());
        mb.backward(&ppo.policy.net).unwrap();
        let by_tensors = ppo.policy.params.grad.copy();
        let _ = ppo.policy.params.grad.fill_(f64::NAN);
        host_gradient(&mut ppo, &self.ppo, 0..6 * 7, self.ppo.clip_param as f32);
        let gradients = [by_tensors, ppo.policy.params.grad.copy()];

        let means = ppo.accumulator.losses();
        let own = means.copy();
        let params = &ppo.policy.params;
        by_autograd(
            &self.ppo,
            (&ppo.places(), params),
            mb,
            (None, None),
            (&value_clip, self.imitation()),
            means,
        )
        .unwrap();
        let reference = params.grad.copy();
        let off = (own - means).abs().max().double_value(&[]);
        assert!(off < 1e-5, "means: {off:e}");
        let errors = gradients.map(|g| (&reference - g).abs().max().double_value(&[]));
        errors[0].max(errors[1]) / reference.abs().max().double_value(&[]).max(1.0)
    }
}

#[test]
fn the_backward_pass_by_hand_equals_autograd_in_every_variant() {
    let policies = [
        (ActionSpace::Continuous(3), StdType::Scalar),
        (ActionSpace::Continuous(3), StdType::StateDependent),
        (ActionSpace::Discrete(4), StdType::Scalar),
    ];
    let mut stream = 0;
    for (action, std_type) in policies {
        for activation in [Activation::Elu, Activation::Relu, Activation::Tanh] {
            for shared in [false, true] {
                for (clipped, value_loss, norm) in [
                    (true, ValueLoss::Mse, AdvantageNorm::Batch),
                    (false, ValueLoss::Mse, AdvantageNorm::MiniBatch),
                    (true, ValueLoss::Huber, AdvantageNorm::None),
                    (false, ValueLoss::Huber, AdvantageNorm::Batch),
                ] {
                    stream += 1;
                    let (actor, critic) = small();
                    let variant = Variant {
                        action,
                        actor: ActorConfig { std_type, activation, ..actor },
                        critic: CriticConfig { shared, activation, ..critic },
                        ppo: PpoConfig {
                            num_mini_batches: 1,
                            use_clipped_value_loss: clipped,
                            value_loss,
                            normalize_advantage: norm,
                            entropy_coef: 0.1,
                            normalize_returns: stream % 2 == 0,
                            imitation: match stream % 3 {
                                0 => imitation::config(0.7, false),
                                1 => imitation::config(2.0, true),
                                _ => ImitationConfig::default(),
                            },
                            ..PpoConfig::default()
                        },
                    };
                    let difference = variant.difference(stream);
                    assert!(
                        difference < 1e-6,
                        "{action:?} {std_type:?} {activation:?} shared {shared} \
                         clipped {clipped} {value_loss:?} {norm:?}: {difference:e}"
                    );
                }
            }
        }
    }
}

/// Layers that are normalised, in networks apart and with a trunk that both share.
#[test]
fn normalised_and_residual_layers_have_autograds_gradients() {
    for (stream, (shared, activation, layer_norm, residual)) in [
        (false, Activation::Elu, true, false),
        (true, Activation::Relu, true, false),
        (false, Activation::Tanh, true, true),
        (true, Activation::Elu, true, true),
        (false, Activation::Relu, false, true),
    ]
    .into_iter()
    .enumerate()
    {
        let variant = Variant {
            action: ActionSpace::Continuous(2),
            actor: ActorConfig {
                hidden_dims: vec![16, 16, 8, 8],
                layer_norm,
                residual,
                activation,
                std_type: StdType::StateDependent,
                ..ActorConfig::default()
            },
            critic: CriticConfig {
                hidden_dims: vec![9, 16, 16],
                layer_norm: layer_norm && !shared,
                residual,
                activation,
                shared,
                ..CriticConfig::default()
            },
            ppo: PpoConfig { num_mini_batches: 1, ..PpoConfig::default() },
        };
        let difference = variant.difference(stream as u32 + 1);
        assert!(difference < 1e-6, "{shared} {activation:?} {residual}: {difference:e}");
    }
}

/// Standard deviations that depend on the state, many of them beyond their bounds: a gradient
/// that would push them farther out is left out, one that leads back is not.
#[test]
fn deviations_beyond_their_bounds_have_the_same_gradient_on_every_path() {
    for (stream, clamped) in [0.999, 0.97].into_iter().enumerate() {
        let (actor, critic) = small();
        let variant = Variant {
            action: ActionSpace::Continuous(3),
            actor: ActorConfig {
                std_type: StdType::StateDependent,
                min_std: clamped,
                max_std: 1.0 / clamped,
                ..actor
            },
            critic,
            ppo: PpoConfig { num_mini_batches: 1, entropy_coef: 0.1, ..PpoConfig::default() },
        };
        let difference = variant.difference(stream as u32 + 7);
        assert!(difference < 1e-6, "{clamped}: {difference:e}");
    }
}

/// Whole updates: automatic differentiation and what is fast, ten times. ReLU's slope
/// jumps, so that rounding may move it.
#[test]
fn ten_updates_by_the_reference_path_are_those_of_the_fast_one() {
    for (action, std_type, shared) in [
        (ActionSpace::Continuous(2), StdType::Scalar, false),
        (ActionSpace::Continuous(3), StdType::StateDependent, true),
        (ActionSpace::Discrete(4), StdType::Scalar, false),
    ] {
        let config = PpoConfig {
            num_mini_batches: 3,
            learning_rate: 1e-4,
            imitation: match shared {
                false => imitation::config(0.5, false),
                true => ImitationConfig::default(),
            },
            ..PpoConfig::default()
        };
        let (actor, critic) = small();
        let actor = ActorConfig { std_type, layer_norm: shared, obs_normalization: true, ..actor };
        let critic = CriticConfig { shared, ..critic };
        let spec = imitation::with_group(spec(5, None, action, 6), 4);
        let new = || {
            let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
            ppo.set_teacher(imitation::teacher(action, 4)).unwrap();
            ppo
        };
        let mut learners = [new(), new().by_reference().unwrap()];
        let mut other = new();
        let first = other.policy().params.theta.copy();
        for i in 0..10 {
            // By another policy: the first divergence is then not 0 but for rounding.
            let theta = &mut other.policy.params.theta;
            *theta += normals(i + 70, &theta.size()) * 0.01;
            let r = rollout(other.policy_mut(), &spec, 8, i);
            for ppo in &mut learners {
                assert_eq!(ppo.update(&r).unwrap().skipped, 0);
            }
        }
        let [fast, reference] = learners.map(|ppo| ppo.policy.params.theta.copy());
        let off = (&fast - &reference).abs().max().double_value(&[]);
        let moved = (&fast - first).abs().max().double_value(&[]);
        assert!(off < 1e-5 && moved > 1e-3, "{action:?}: {off:e} of {moved:e}");
    }
}

/// Networks without hidden layers are linear, and have gradients too.
#[test]
fn linear_networks_learn_too() {
    let variant = Variant {
        action: ActionSpace::Continuous(2),
        actor: ActorConfig { hidden_dims: Vec::new(), ..ActorConfig::default() },
        critic: CriticConfig { hidden_dims: Vec::new(), ..CriticConfig::default() },
        ppo: PpoConfig { num_mini_batches: 1, ..PpoConfig::default() },
    };
    let difference = variant.difference(1);
    assert!(difference < 1e-6, "{difference:e}");
}
