use super::*;
use crate::learner::policy::RnnType;
use crate::learner::testing::{bits, normals, same, spec};
use crate::learner::{ActorConfig, ActorCritic, CriticConfig, Learner, Ppo, PpoConfig};
use crate::learner::{UpdateFault, tensors::NamedTensors};
use ostler_collector::Rollout;
use ostler_sim::Groups;
use ostler_sim::env::{ActionSpace, AgentSpec};
use tch::{Device, IndexOp, Kind};

const WORLDS: i64 = 5;
const STEPS: i64 = 4;
const M: i64 = 3;
const O: i64 = 6;
const A: i64 = 3;
const H: i64 = 5;

/// Agents a0, b, a1: the policy "a" has two that see 6 and do 3, "b" one that sees 4
/// and does 2.
fn three() -> EnvSpec {
    let agent = |name: &str, index, policy, obs, critic, action| AgentSpec {
        name: name.into(),
        index,
        of: 3,
        policy,
        obs: Groups { policy: obs, critic: Some(critic) },
        critic: Some(critic),
        action: ActionSpace::Continuous(action),
        obs_table: Groups { policy: Vec::new(), critic: None },
    };
    EnvSpec {
        agents: vec![
            agent("a0", 0, 0, 6, 8, 3),
            agent("b", 1, 1, 4, 7, 2),
            agent("a1", 2, 0, 6, 8, 3),
        ],
        policy_names: vec!["a".into(), "b".into()],
        ..spec(6, Some(8), ActionSpace::Continuous(3), WORLDS as usize)
    }
}

fn networks() -> (ActorConfig, CriticConfig) {
    let actor = ActorConfig {
        hidden_dims: vec![8],
        obs_normalization: true,
        rnn_type: RnnType::Gru,
        rnn_hidden_dim: H,
        ..ActorConfig::default()
    };
    let critic =
        CriticConfig { hidden_dims: vec![8], obs_normalization: true, ..CriticConfig::default() };
    (actor, critic)
}

fn ppo(spec: &EnvSpec, seed: u64) -> Ppo {
    let (actor, critic) = networks();
    let config = PpoConfig { num_mini_batches: 2, num_learning_epochs: 2, ..PpoConfig::default() };
    Ppo::new(&config, &actor, &critic, spec, STEPS as usize, seed, Device::Cpu).unwrap()
}

fn learner() -> TeamLearner {
    TeamLearner::new(&three(), STEPS as usize, Device::Cpu, |i, own| {
        Ok(Box::new(ppo(own, seed(7, i))))
    })
    .unwrap()
}

fn policies() -> Team<Vec<Box<dyn TrainedPolicy>>> {
    let (actor, critic) = networks();
    Team::new(&three(), |i, own| -> Result<Box<dyn TrainedPolicy>, LearnError> {
        let seed = seed(7, i);
        Ok(Box::new(ActorCritic::new(&actor, &critic, own, seed, Device::Cpu)?))
    })
    .unwrap()
}

fn zeros(size: &[i64]) -> Tensor {
    Tensor::zeros(size, (Kind::Float, Device::Cpu))
}

/// Rows of some agents of `[.., N*M, w]`, written out.
fn rows(t: &Tensor, dim: i64, agents: &[i64]) -> Tensor {
    let index: Vec<i64> = (0..WORLDS).flat_map(|e| agents.iter().map(move |i| e * M + i)).collect();
    t.index_select(dim, &Tensor::from_slice(&index))
}

/// One decision: action, mean, standard deviation, hidden state.
fn decide(
    policy: &mut dyn Policy,
    [obs, noise, before]: [&Tensor; 3],
    a: i64,
) -> ([Tensor; 3], Tensor) {
    let n = obs.size()[0];
    let [action, dist, std] = [(); 3].map(|()| zeros(&[n, a]));
    let after = zeros(&[n, H]);
    let out = Act {
        action: &action,
        dist: &dist,
        std: &std,
        hidden: Some(Hidden { before, after: &after }),
    };
    policy.act(obs, noise, &out).unwrap();
    ([action, dist, std], after)
}

/// The agents of each policy, their observations' and actions' widths.
const PARTS: [(&[i64], i64, i64); 2] = [(&[0, 2], O, A), (&[1], 4, 2)];

#[test]
fn every_policy_decides_for_its_agents_as_it_would_alone() {
    let mut team = policies();
    assert_eq!((team.dist_width(), team.noise().0), (A, A));
    let (obs, noise) = (normals(1, &[WORLDS * M, O]), normals(2, &[WORLDS * M, A]));
    let before = normals(3, &[WORLDS * M, H]);
    let (all, states) = decide(&mut team, [&obs, &noise, &before], A);
    let mean = zeros(&[WORLDS * M, A]);
    let after = zeros(&[WORLDS * M, H]);
    let hidden = Hidden { before: &before, after: &after };
    team.act_mean(&obs, Some(hidden), &mean).unwrap();
    assert_eq!(bits(&after), bits(&states));
    for (i, (agents, o, a)) in PARTS.into_iter().enumerate() {
        let part = &agents::PolicyAgents::of(&three())[i];
        let mut alone = ppo(&part.spec, seed(7, i));
        let obs = rows(&obs, 0, agents).i((.., ..o)).contiguous();
        let noise = rows(&noise, 0, agents).i((.., ..a)).contiguous();
        let before = rows(&before, 0, agents);
        let (own, state) = decide(alone.policy_mut(), [&obs, &noise, &before], a);
        assert_eq!(bits(&rows(&states, 0, agents)), bits(&state));
        for (all, own) in all.iter().zip(&own) {
            let all = rows(all, 0, agents);
            assert_eq!(bits(&all.i((.., ..a)).contiguous()), bits(own));
            // Nobody writes the padding.
            assert_eq!(all.i((.., a..)).abs().sum(Kind::Float).double_value(&[]), 0.0);
        }
        let own = zeros(&[obs.size()[0], a]);
        let hidden = Hidden { before: &before, after: &state };
        Policy::act_mean(alone.policy_mut(), &obs, Some(hidden), &own).unwrap();
        assert_eq!(bits(&rows(&mean, 0, agents).i((.., ..a)).contiguous()), bits(&own));
    }
}

/// Of all agents, acted on by the team.
fn rollout(team: &mut dyn Policy) -> Rollout {
    let spec = three();
    let r = Rollout::new(&spec, STEPS, team.widths(), Device::Cpu).unwrap();
    let critic = [&r.obs.critic, &r.final_obs.critic].map(|c| c.as_ref().unwrap());
    let filled = [&r.obs.policy, &r.final_obs.policy, critic[0], critic[1], &r.reward];
    for (i, t) in filled.into_iter().enumerate() {
        t.shallow_clone().copy_(&normals(10 + i as u32, &t.size()));
    }
    let _ = r.valid.shallow_clone().fill_(1.0);
    // World 1 runs out of time in step 0, world 2 ends in step 1, world 3 breaks in step 2.
    for (t, step, world, x) in [
        (&r.truncated, 0, 1, 1.0),
        (&r.final_slot, 0, 1, 0.0),
        (&r.terminated, 1, 2, 1.0),
        (&r.valid, 2, 3, 0.0),
        (&r.reward, 2, 3, 0.0),
    ] {
        let _ = t.get(step).narrow(0, world * M, M).fill_(x);
    }
    let hidden = r.hidden.as_ref().unwrap();
    let ended = r.ended().unwrap();
    for t in 0..STEPS {
        let out = Act {
            action: &r.action.get(t),
            dist: &r.dist.get(t),
            std: &r.std.get(t),
            hidden: Some(Hidden { before: &hidden.get(t), after: &hidden.get(t + 1) }),
        };
        let noise = normals(30 + t as u32, &[WORLDS * M, A]);
        team.act(&r.obs.policy.get(t), &noise, &out).unwrap();
        let ended = ended.get(t).unsqueeze(1);
        let _ = hidden.get(t + 1).masked_fill_(&ended, 0.0);
    }
    r
}

#[test]
fn every_policy_learns_from_its_agents_as_it_would_alone() {
    let mut team = learner();
    let all = rollout(team.policy_mut());
    team.warm_up(&all).unwrap();
    let stats = team.update(&all).unwrap();
    let saved = team.save().unwrap();
    let mut losses = Vec::new();
    for (i, (agents, o, a)) in PARTS.into_iter().enumerate() {
        let part = &agents::PolicyAgents::of(&three())[i];
        let mut alone = ppo(&part.spec, seed(7, i));
        let widths = alone.policy().widths();
        let own = Rollout::new(&part.spec, STEPS, widths, Device::Cpu).unwrap();
        let critic = part.spec.obs.critic.unwrap() as i64;
        for (all, own) in all.tensors().zip(own.tensors()) {
            let part = rows(all, 1, agents);
            let width = own.size().get(2).copied();
            assert!(width.is_none_or(|w| [o, critic, a, H].contains(&w)));
            let part = width.map_or(part.shallow_clone(), |w| part.narrow(2, 0, w));
            own.shallow_clone().copy_(&part);
        }
        alone.warm_up(&own).unwrap();
        let update = alone.update(&own).unwrap();
        losses.push(update.surrogate);
        assert_eq!(team.each()[i].0, ["/a", "/b"][i]);
        assert_eq!(team.each()[i].1.surrogate, update.surrogate);
        assert_eq!(update.invalid as usize, agents.len());
        same(&alone.save().unwrap(), &below(&part.name, &saved));
    }
    assert_ne!(losses[0], losses[1]);
    assert_eq!(stats.surrogate, (losses[0] + losses[1]) / 2.0);
    assert_eq!((stats.minibatches, stats.invalid), (8, M as u64));
}

#[test]
fn a_checkpoint_holds_every_policy_and_one_that_lacks_something_changes_nothing() {
    let mut first = learner();
    let all = rollout(first.policy_mut());
    first.update(&all).unwrap();
    let saved = first.save().unwrap();
    let mut second = learner();
    let before = second.save().unwrap();
    for lost in ["b/actor.0.weight", "b/ppo.updates", "a/critic.head.bias"] {
        let part: NamedTensors = saved
            .iter()
            .filter(|(name, _)| name != lost)
            .map(|(name, t)| (name.clone(), t.shallow_clone()))
            .collect();
        assert_eq!(part.len() + 1, saved.len(), "{lost}");
        let refused = second.load(&part).unwrap_err().to_string();
        let own = lost.split_once('/').unwrap().1;
        assert!(refused.contains(own), "{refused}");
        same(&second.save().unwrap(), &before);
    }
    second.load(&saved).unwrap();
    same(&second.save().unwrap(), &saved);
    // To act with: weights alone.
    let mut acting = policies();
    assert!(acting.load(&before[1..]).is_err());
    acting.load(&saved).unwrap();
    let (obs, noise) = (normals(1, &[WORLDS * M, O]), normals(2, &[WORLDS * M, A]));
    let hidden = normals(3, &[WORLDS * M, H]);
    let one = decide(&mut acting, [&obs, &noise, &hidden], A).0;
    let other = decide(second.policy_mut(), [&obs, &noise, &hidden], A).0;
    assert!(one.iter().zip(&other).all(|(a, b)| bits(a) == bits(b)));
}

#[test]
fn what_was_kept_comes_back_and_a_roll_back_starts_from_earlier_weights() {
    let mut team = learner();
    let all = rollout(team.policy_mut());
    team.update(&all).unwrap();
    let good = team.weights().unwrap();
    team.capture().unwrap();
    let before = team.save().unwrap();
    team.update(&all).unwrap();
    let after = team.save().unwrap();
    team.restore().unwrap();
    same(&team.save().unwrap(), &before);
    team.update(&all).unwrap();
    same(&team.save().unwrap(), &after);
    team.roll_back(&good, 0.5).unwrap();
    same(&team.weights().unwrap(), &good);
}

#[test]
fn copies_decide_as_the_team_does() {
    let mut team = learner();
    let all = rollout(team.policy_mut());
    team.warm_up(&all).unwrap();
    team.update(&all).unwrap();
    let policy = team.policy_mut();
    let copied = policy.replicate().unwrap();
    let mut copy = copied.replica(0, 2).unwrap();
    let mut weights = Vec::new();
    copied.weights(&mut weights, &Default::default()).unwrap();
    assert!(copy.take(&weights[1..]).is_err());
    copy.take(&weights).unwrap();
    let (obs, noise) = (normals(1, &[2 * M, O]), normals(2, &[2 * M, A]));
    let hidden = normals(3, &[2 * M, H]);
    let (theirs, their_states) = decide(&mut *copy, [&obs, &noise, &hidden], A);
    let (ours, our_states) = decide(policy, [&obs, &noise, &hidden], A);
    assert_eq!(bits(&their_states), bits(&our_states));
    assert!(theirs.iter().zip(&ours).all(|(a, b)| bits(a) == bits(b)));
}

#[test]
fn a_fault_meets_the_policy_that_it_names() {
    let mut team = learner();
    let all = rollout(team.policy_mut());
    let fault = |name: &str| -> UpdateFault {
        UpdateFault {
            when: ostler_sim::env::When::At(1),
            minibatch: 0,
            what: crate::learner::UpdateTarget::Parameter(name.into()),
            value: ostler_sim::env::Value::default(),
        }
    };
    assert!(team.inject(vec![fault("c/actor.0.weight")]).is_err());
    team.inject(vec![fault("b/actor.0.weight")]).unwrap();
    let stats = team.update(&all).unwrap();
    assert!(stats.skipped > 0);
    let [a, b] = team.each() else { panic!() };
    assert_eq!(a.1.skipped, 0);
    assert_eq!(b.1.skipped, stats.skipped);
}
