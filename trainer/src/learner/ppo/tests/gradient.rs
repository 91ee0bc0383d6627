//! The backward pass by hand equals autograd's, for every variant.

use super::*;
use std::collections::HashMap;

/// One variant of policy and loss.
struct Variant {
    action: ActionSpace,
    actor: ActorConfig,
    critic: CriticConfig,
    ppo: PpoConfig,
}

impl Variant {
    /// Loss of a gathered minibatch with parameters `p`, written as plainly as can be.
    fn loss(&self, p: &HashMap<String, Tensor>, x: &Tensor, mb: &MiniBatch) -> Tensor {
        let linear = |x: &Tensor, name: &str| {
            x.matmul(&p[&format!("{name}.weight")].tr()) + &p[&format!("{name}.bias")]
        };
        let trunk = |x: &Tensor, name: &str, dims: &[i64], activation: Activation| {
            (0..dims.len()).fold(x.shallow_clone(), |h, i| {
                let mut z = linear(&h, &format!("{name}.{i}"));
                if let Some(gain) = p.get(&format!("{name}.{i}.norm.weight")) {
                    let bias = &p[&format!("{name}.{i}.norm.bias")];
                    z = z.layer_norm(&dims[i..=i], Some(gain), Some(bias), 1e-5, false);
                }
                match activation {
                    Activation::Elu => z.elu(),
                    Activation::Relu => z.relu(),
                    Activation::Tanh => z.tanh(),
                }
            })
        };
        let features = trunk(x, "actor", &self.actor.hidden_dims, self.actor.activation);
        let value = if self.critic.shared {
            linear(&features, "critic.head")
        } else {
            let dims = &self.critic.hidden_dims;
            linear(
                &trunk(x, "critic", dims, self.critic.activation),
                "critic.head",
            )
        };
        let dist = linear(&features, "actor.head");
        let sum = |t: Tensor| t.sum_dim_intlist(1, true, Kind::Float);
        let (log_prob, entropy) = match self.action {
            ActionSpace::Discrete(_) => {
                let log_p = dist.log_softmax(1, Kind::Float);
                let choice = mb.action.to_kind(Kind::Int64);
                (log_p.gather(1, &choice, false), -sum(log_p.exp() * &log_p))
            }
            ActionSpace::Continuous(_) => {
                let log_std = match self.actor.std_type {
                    StdType::Scalar => p["actor.log_std"].expand_as(&dist),
                    StdType::StateDependent => linear(&features, "actor.log_std_head"),
                };
                let z = (&mb.action - &dist) / log_std.exp();
                let ln_tau = std::f64::consts::TAU.ln();
                (
                    sum(z.square() * -0.5 - &log_std - 0.5 * ln_tau),
                    sum(&log_std + 0.5 * (1.0 + ln_tau)),
                )
            }
        };
        let c = &self.ppo;
        let weight = &mb.valid / mb.valid.sum(Kind::Float);
        let advantage = match c.normalize_advantage {
            AdvantageNorm::MiniBatch => loss::standardize(&mb.advantage, &mb.valid).unwrap(),
            _ => mb.advantage.shallow_clone(),
        };
        let ratio = (log_prob - &mb.log_prob).exp();
        let clipped = ratio.clamp(1.0 - c.clip_param, 1.0 + c.clip_param);
        let surrogate = (-&advantage * ratio).maximum(&(-&advantage * clipped));
        let point = |e: Tensor| match c.value_loss {
            ValueLoss::Mse => e.square(),
            ValueLoss::Huber => e.huber_loss(&e.zeros_like(), tch::Reduction::None, 1.0),
        };
        let mut values = point(&value - &mb.returns);
        if c.use_clipped_value_loss {
            let moved = (&value - &mb.value).clamp(-c.clip_param, c.clip_param);
            values = values.maximum(&point(&mb.value + moved - &mb.returns));
        }
        let all = surrogate + values * c.value_loss_coef - entropy * c.entropy_coef;
        (all * weight).sum(Kind::Float)
    }

    /// Largest difference of the two gradients, relative to the largest entry.
    fn difference(&self, stream: u32) -> f64 {
        let spec = spec(5, None, self.action, 7);
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
        let rollout = rollout(ppo.policy_mut(), &spec, 6, stream);
        ppo.prepare(&rollout).unwrap();
        // Away from where ratios are 1 and values are the old ones. A deviation at the
        // bounds behaves differently on purpose, so stay between them.
        let theta = &mut ppo.policy.params.theta;
        let noise = normals(stream + 50, &theta.size()) * 0.05;
        *theta += &noise;

        let order = Tensor::arange(6 * 7, (Kind::Int64, Device::Cpu));
        let mb = &ppo.tensors().unwrap()[0];
        mb.gather(&ppo.samples, &order).unwrap();
        mb.forward(&ppo.policy.net).unwrap();
        let value_clip = Tensor::from(self.ppo.clip_param as f32);
        loss::loss(&self.ppo, mb, &value_clip, ppo.accumulator.losses()).unwrap();
        mb.backward(&ppo.policy.net).unwrap();
        let by_tensors = ppo.policy.params.grad.copy();
        let _ = ppo.policy.params.grad.fill_(f64::NAN);
        host_gradient(&ppo, &self.ppo, 0..6 * 7, self.ppo.clip_param as f32);
        let gradients = [by_tensors, ppo.policy.params.grad.copy()];

        let mut params = State::default();
        ppo.policy.params.declare(&mut params).unwrap();
        let names = params.weights().unwrap();
        let leaves: Vec<(String, Tensor)> = names
            .into_iter()
            .map(|(n, t)| (n, t.set_requires_grad(true)))
            .collect();
        let map = leaves
            .iter()
            .map(|(n, t)| (n.clone(), t.shallow_clone()))
            .collect();
        self.loss(&map, &ppo.samples.x_actor, mb).backward();
        let reference: Vec<Tensor> = leaves.iter().map(|(_, t)| t.grad().view([-1])).collect();
        let reference = Tensor::cat(&reference, 0);
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
                        actor: ActorConfig {
                            std_type,
                            activation,
                            ..actor
                        },
                        critic: CriticConfig {
                            shared,
                            activation,
                            ..critic
                        },
                        ppo: PpoConfig {
                            num_mini_batches: 1,
                            use_clipped_value_loss: clipped,
                            value_loss,
                            normalize_advantage: norm,
                            entropy_coef: 0.1,
                            normalize_returns: stream % 2 == 0,
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
fn normalised_layers_have_autograds_gradients() {
    for (stream, (shared, activation)) in [
        (false, Activation::Elu),
        (true, Activation::Relu),
        (false, Activation::Tanh),
    ]
    .into_iter()
    .enumerate()
    {
        let variant = Variant {
            action: ActionSpace::Continuous(2),
            actor: ActorConfig {
                hidden_dims: vec![16, 8],
                layer_norm: true,
                activation,
                std_type: StdType::StateDependent,
                ..ActorConfig::default()
            },
            critic: CriticConfig {
                hidden_dims: vec![16, 8],
                layer_norm: !shared,
                activation,
                shared,
                ..CriticConfig::default()
            },
            ppo: PpoConfig {
                num_mini_batches: 1,
                ..PpoConfig::default()
            },
        };
        let difference = variant.difference(stream as u32 + 1);
        assert!(difference < 1e-6, "{shared} {activation:?}: {difference:e}");
    }
}

/// Networks without hidden layers are linear, and have gradients too.
#[test]
fn linear_networks_learn_too() {
    let variant = Variant {
        action: ActionSpace::Continuous(2),
        actor: ActorConfig {
            hidden_dims: Vec::new(),
            ..ActorConfig::default()
        },
        critic: CriticConfig {
            hidden_dims: Vec::new(),
            ..CriticConfig::default()
        },
        ppo: PpoConfig {
            num_mini_batches: 1,
            ..PpoConfig::default()
        },
    };
    let difference = variant.difference(1);
    assert!(difference < 1e-6, "{difference:e}");
}
