//! Learning from reflections: a rollout and its reflection teach the same, the mirror loss is the
//! squared distance that rsl_rl has, and recurrent policies remember what they would have seen.

use super::*;
use crate::learner::symmetry::SymmetryConfig;
use crate::learner::turn::Turn;
use ostler_collector::peers::Group;
use ostler_collector::{Hidden, Rollout};
use ostler_sim::env::mirror::{Reflection, Signed};

fn signed(entries: &[(u32, f32)]) -> Signed {
    Signed(entries.to_vec())
}

/// Five observations, of the critic two more; three actions.
fn reflection() -> Reflection {
    Reflection {
        policy: signed(&[(1, 1.0), (0, 1.0), (2, -1.0), (4, -1.0), (3, -1.0)]),
        critic: Some(signed(&[
            (1, 1.0),
            (0, 1.0),
            (2, -1.0),
            (4, -1.0),
            (3, -1.0),
            (6, 1.0),
            (5, 1.0),
            // A group that the critic does not see.
            (7, -1.0),
        ])),
        action: signed(&[(1, -1.0), (0, -1.0), (2, 1.0)]),
        ..Reflection::nothing()
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    recurrent: bool,
    critic: Option<usize>,
    mirror_loss: f64,
    augmentation: bool,
    sequence: usize,
}

const CASE: Case =
    Case { recurrent: false, critic: None, mirror_loss: 0.0, augmentation: true, sequence: 0 };

const STEPS: i64 = 8;

fn learner(case: Case, config: PpoConfig) -> (Ppo, EnvSpec) {
    let (actor, critic) = small();
    let spec = spec(5, case.critic, ActionSpace::Continuous(3), 6);
    let actor = ActorConfig {
        obs_normalization: true,
        rnn_type: if case.recurrent { RnnType::Gru } else { RnnType::None },
        rnn_hidden_dim: 9,
        ..actor
    };
    let critic = CriticConfig { obs_normalization: true, ..critic };
    let config = PpoConfig { sequence_length: case.sequence, ..config };
    let ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
    let symmetry = SymmetryConfig {
        mirror_loss: case.mirror_loss,
        augmentation: case.augmentation,
        ..SymmetryConfig::default()
    };
    (ppo.with_symmetry(&reflection(), &symmetry, case.critic).unwrap(), spec)
}

/// What the robot would have seen and done on its other side.
fn reflected(of: &Rollout, policy: &dyn Policy, spec: &EnvSpec) -> Rollout {
    let r = Rollout::new(spec, STEPS, policy.widths(), Device::Cpu).unwrap();
    let found = reflection();
    let turn = |of: &Signed| Turn::new(of, Device::Cpu).unwrap();
    let copy = |to: &Tensor, from: &Tensor| to.shallow_clone().copy_(from);
    let turned = |to: &Tensor, from: &Tensor, by: &Signed| copy(to, &turn(by).apply(from).unwrap());
    turned(&r.obs.policy, &of.obs.policy, &found.policy);
    turned(&r.final_obs.policy, &of.final_obs.policy, &found.policy);
    for (to, from) in [(&r.obs.critic, &of.obs.critic), (&r.final_obs.critic, &of.final_obs.critic)]
    {
        if let (Some(to), Some(from)) = (to, from) {
            turned(to, from, &found.critic.as_ref().unwrap().narrowed(7));
        }
    }
    turned(&r.action, &of.action, &found.action);
    turned(&r.dist, &of.dist, &found.action);
    copy(&r.std, &turn(&found.action).exchanged(&of.std).unwrap());
    for (to, from) in [
        (&r.reward, &of.reward),
        (&r.terminated, &of.terminated),
        (&r.truncated, &of.truncated),
        (&r.valid, &of.valid),
        (&r.final_slot, &of.final_slot),
    ] {
        copy(to, from);
    }
    r
}

/// Values are zero, so that advantages are those of the rewards on both sides.
fn without_values(ppo: &Ppo) {
    let head = ppo.policy.net.value_head();
    let _ = head.weight().shallow_clone().zero_();
    let _ = head.bias().shallow_clone().zero_();
}

fn far(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[])
}

#[test]
fn a_rollout_teaches_what_its_reflection_teaches() {
    for (critic, minibatches) in [(None, 1), (Some(7), 1), (Some(7), 4)] {
        let config = PpoConfig {
            num_mini_batches: minibatches,
            num_learning_epochs: 2,
            normalize_returns: false,
            ..PpoConfig::default()
        };
        let case = Case { critic, ..CASE };
        let [(mut one, spec), (mut other, _), (mut plain, _)] =
            [(); 3].map(|()| learner(case, config.clone()));
        plain.mirrored = None;
        plain.samples = Samples::new(plain.columns, 48, Device::Cpu).unwrap();
        plain.path = plain.in_blocks(1, None).unwrap();
        let own = rollout(one.policy_mut(), &spec, STEPS, 1);
        let there = reflected(&own, one.policy(), &spec);
        for ppo in [&one, &other, &plain] {
            without_values(ppo);
        }
        one.update(&own).unwrap();
        other.update(&there).unwrap();
        plain.update(&own).unwrap();
        let apart = |a: &Ppo, b: &Ppo| far(&a.policy.params.theta, &b.policy.params.theta);
        // Rounding through Adam's first steps, beside what the rollout alone teaches.
        let (same, moved) = (apart(&one, &other), apart(&one, &plain));
        assert!(same < 0.02 * moved && moved > 1e-4, "{critic:?}: {same:e} beside {moved:e}");
        // Statistics are of both sides.
        let norm = one.policy.norm.actor.as_ref().unwrap();
        let [shift, scale] = norm.applied();
        let turn = Turn::new(&reflection().policy, Device::Cpu).unwrap();
        assert!(far(&turn.apply(shift).unwrap(), shift) < 1e-6);
        assert!(far(&turn.exchanged(scale).unwrap(), scale) < 1e-6);
    }
}

/// rsl_rl 5: the mean square of `pi(M o) - M pi(o)`, without a gradient through the second one.
#[test]
fn the_mirror_loss_is_the_squared_distance_from_the_reflected_mean() {
    for (recurrent, augmentation) in [(false, false), (false, true), (true, false)] {
        let case = Case { recurrent, augmentation, mirror_loss: 0.7, sequence: 4, ..CASE };
        let case = if recurrent { case } else { Case { sequence: 0, ..case } };
        let config = PpoConfig {
            num_mini_batches: 1,
            num_learning_epochs: 1,
            value_loss_coef: 0.0,
            entropy_coef: 0.0,
            ..PpoConfig::default()
        };
        let (mut ppo, spec) = learner(case, config.clone());
        let mut own = rollout(ppo.policy_mut(), &spec, STEPS, 2);
        // Nothing is better than anything: the surrogate has no gradient.
        let _ = own.reward.fill_(0.0);
        without_values(&ppo);
        ppo.prepare(&own).unwrap();
        let noise = normals(70, &ppo.policy.params.theta.size()) * 0.05;
        let theta = &mut ppo.policy.params.theta;
        *theta += noise;

        let count = ppo.sequences.count();
        let coef = ppo.target_coef() as f32;
        let mut host = ppo.host().unwrap();
        if let Path::Blocks(blocks) = &mut ppo.path {
            blocks.take(0..count);
            host.run(blocks, &config, true, [1.0, coef], &Group::default()).unwrap();
        }
        let by_hand = ppo.policy.params.grad.copy();

        // By autograd over the same samples, the loss written out.
        let steps = ppo.sequences.steps as i64;
        let order = Tensor::arange(count as i64, (Kind::Int64, Device::Cpu));
        let both = Tensor::cat(&[&order, &(&order + count as i64)], 0);
        let index = ppo.sequences.index(&both).unwrap();
        let mb = &ppo.tensors().unwrap()[0];
        mb.gather(&ppo.samples, &index).unwrap();
        let memory = ppo.samples.memory.as_ref().map(|m| m.gather(&index, steps).unwrap());
        let params = &ppo.policy.params;
        let means = ppo.accumulator.losses().shallow_clone();
        let aim = ppo.mirrored.as_ref().map(|m| (m, steps));
        let clip = Tensor::from(1.0f32);
        let net = (&ppo.places(), params);
        let terms = (&clip, f64::from(coef));
        crate::learner::ppo::reference::gradient(&config, net, mb, (memory, aim), terms, &means)
            .unwrap();
        let error = far(&by_hand, &params.grad) / params.grad.abs().max().double_value(&[]);
        assert!(error < 1e-5, "{case:?}: {error:e}");
        assert!(params.grad.abs().max().double_value(&[]) > 1e-3, "{case:?}");

        if recurrent || augmentation {
            continue;
        }
        // The number itself, from what the policy decides.
        let valid = own.valid.view([-1, 1]);
        let x = own.obs.policy.narrow(0, 0, STEPS).reshape([-1, 5]);
        let turn = |of: &Signed| Turn::new(of, Device::Cpu).unwrap();
        let found = reflection();
        let there = turn(&found.policy).apply(&x).unwrap();
        let decide = |policy: &mut ActorCritic, x: &Tensor| {
            let to = Tensor::zeros([x.size()[0], 3], (Kind::Float, Device::Cpu));
            policy.act_mean(x, None, &to).unwrap();
            to
        };
        let policy = ppo.policy_mut();
        let (own, there) = (decide(policy, &x), decide(policy, &there));
        let off = there - turn(&found.action).apply(&own).unwrap();
        let square = (&off * &off * &valid).sum(Kind::Float) / (valid.sum(Kind::Float) * 3.0);
        let said = 2.0 * means.double_value(&[loss::IMITATION as i64]);
        assert!((square.double_value(&[]) - said).abs() < 1e-5 * said, "{said}");
    }
}

/// The hidden state that a recurrent policy would have on the other side goes on from rollout to
/// rollout, and is in the checkpoint.
#[test]
fn a_recurrent_policy_remembers_the_other_side() {
    let case = Case { recurrent: true, sequence: 4, critic: Some(7), ..CASE };
    let (mut ppo, spec) = learner(case, PpoConfig { num_mini_batches: 2, ..PpoConfig::default() });
    let first = rollout(ppo.policy_mut(), &spec, STEPS, 4);
    ppo.prepare(&first).unwrap();
    // By acting on the reflected observations.
    let turn = Turn::new(&reflection().policy, Device::Cpu).unwrap();
    let left = |ppo: &mut Ppo, rollout: &Rollout, mut now: Tensor| {
        let ended = rollout.ended().unwrap();
        for t in 0..STEPS {
            let (after, action) =
                (now.zeros_like(), Tensor::zeros([6, 3], (Kind::Float, Device::Cpu)));
            let x = turn.apply(&rollout.obs.policy.get(t)).unwrap();
            let hidden = Hidden { before: &now, after: &after };
            ppo.policy_mut().act_mean(&x, Some(hidden), &action).unwrap();
            now = after.masked_fill(&ended.get(t).unsqueeze(1), 0.0);
        }
        now
    };
    let kept = |ppo: &Ppo| {
        let saved = ppo.save().unwrap();
        saved.into_iter().find(|(name, _)| name == "ppo.reflected_hidden").unwrap().1
    };
    let now = left(&mut ppo, &first, Tensor::zeros([6, 9], (Kind::Float, Device::Cpu)));
    assert!(far(&kept(&ppo), &now) < 1e-6);
    assert!(now.abs().max().double_value(&[]) > 0.01);
    // The next rollout goes on with it, except where it begins with a new episode: here 3, whose
    // episode goes on to the end.
    let second = rollout(ppo.policy_mut(), &spec, STEPS, 5);
    let begins = second.hidden.as_ref().unwrap().get(0);
    let _ = begins.shallow_clone().fill_(0.1);
    let _ = begins.get(3).fill_(0.0);
    ppo.prepare(&second).unwrap();
    let _ = now.get(3).fill_(0.0);
    let now = left(&mut ppo, &second, now);
    assert!(far(&kept(&ppo), &now) < 1e-6);
    // Repeated, the same bits: the state goes back, too.
    ppo.restore().unwrap();
    let (mut again, _) = learner(case, PpoConfig { num_mini_batches: 2, ..PpoConfig::default() });
    for ppo in [&mut ppo, &mut again] {
        ppo.update(&first).unwrap();
    }
    same(&ppo.save().unwrap(), &again.save().unwrap());
}

/// The same bits on any number of threads.
#[test]
fn threads_change_nothing() {
    let config = PpoConfig { num_mini_batches: 2, ..PpoConfig::default() };
    let case = Case { mirror_loss: 0.3, critic: Some(7), ..CASE };
    let [one, three] = [1, 3].map(|threads| {
        let (ppo, spec) = learner(case, config.clone());
        let mut ppo = ppo.on_processor(threads, None).unwrap();
        let own = rollout(ppo.policy_mut(), &spec, STEPS, 5);
        let stats = ppo.update(&own).unwrap();
        assert!(stats.mirror.unwrap() > 0.0 && stats.imitation.is_none());
        ppo.save().unwrap()
    });
    same(&one, &three);
}
