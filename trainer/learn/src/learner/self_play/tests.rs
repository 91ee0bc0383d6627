use super::rows::Rows;
use super::*;
use crate::config::Config;
use crate::learner::policy::RnnType;
use crate::learner::registry::methods;
use crate::learner::testing::{bits, normals, rollout, same, spec};
use crate::learner::{build, build_policy};
use ostler_collector::{Act, Hidden, Policy};
use ostler_sim::env::{ActionSpace, AgentSpec};
use tch::IndexOp;

const ENVS: usize = 13;
const STEPS: i64 = 4;
const WINDOW: usize = 3;
const H: i64 = 5;

/// Agents of the policies `of`, alike.
fn task(of: &[usize], envs: usize) -> EnvSpec {
    let own = spec(6, None, ActionSpace::Continuous(2), envs);
    let agent = |(index, &policy): (usize, &usize)| AgentSpec {
        name: format!("agent{index}"),
        index,
        of: of.len(),
        policy,
        obs: own.obs,
        critic: own.critic,
        action: own.action,
        obs_table: own.obs_table.clone(),
    };
    let policies = of.iter().max().map_or(0, |p| p + 1);
    EnvSpec {
        agents: of.iter().enumerate().map(agent).collect(),
        policy_names: (0..policies).map(|p| format!("p{p}")).collect(),
        ..own
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.runner.num_steps_per_env = STEPS as usize;
    config.actor.hidden_dims = vec![8];
    config.actor.obs_normalization = true;
    config.actor.rnn_type = RnnType::Gru;
    config.actor.rnn_hidden_dim = H;
    config.critic.hidden_dims = vec![8];
    config.ppo.num_mini_batches = 2;
    config.ppo.num_learning_epochs = 2;
    config.self_play.window = WINDOW;
    config.self_play.save_interval = 2;
    config.self_play.share = 0.7;
    config
}

fn self_play(config: &Config, spec: &EnvSpec) -> SelfPlay {
    let method = methods().next().unwrap();
    let (group, device) = (&Default::default(), Device::Cpu);
    let plan = LearnerArgs { config, spec, seed: 7, device, group, place: None };
    SelfPlay::new(&*method, &plan).unwrap()
}

/// An update with a rollout of its own, drawn by the policy.
fn update(learner: &mut dyn Learner, spec: &EnvSpec, stream: u32) -> UpdateStats {
    let r = rollout(learner.policy_mut(), spec, STEPS, stream);
    learner.update(&r).unwrap()
}

/// Which version moves each row; `None`: the present policy. From the definition, row by row.
fn movers(spec: &EnvSpec, share: f64) -> Vec<Option<usize>> {
    let all = spec.agents[0].of;
    let blocks = WINDOW * all;
    let with_past = (spec.num_envs as f64 * share).round() as usize;
    let first = |block: usize| block * with_past / blocks;
    let mut movers = Vec::new();
    for env in 0..spec.num_envs {
        let block = (0..blocks).find(|&b| (first(b)..first(b + 1)).contains(&env));
        for agent in &spec.agents {
            let moved = block.filter(|b| b % all == agent.index);
            movers.push(moved.map(|b| b / all));
        }
    }
    movers
}

fn rows_of(movers: &[Option<usize>], who: Option<usize>) -> Tensor {
    let rows = movers.iter().enumerate().filter(|(_, m)| **m == who);
    Tensor::from_slice(&rows.map(|(i, _)| i as i64).collect::<Vec<_>>())
}

#[test]
fn every_row_is_moved_by_one_policy_and_versions_share_alike() {
    for (of, envs, share) in
        [(&[0, 0][..], 64, 0.5), (&[0, 0, 0], ENVS, 0.7), (&[0, 0], 3, 1.0), (&[0, 0], 1, 0.1)]
    {
        let spec = task(of, envs);
        let rows = Rows::new(&spec, 0..envs, (WINDOW, share));
        let movers = movers(&spec, share);
        let present = movers.iter().filter(|m| m.is_none()).count();
        assert_eq!(rows.present(), present, "{of:?} {envs} {share}");
        // The present policy's rows are taken, each once.
        let all = Tensor::arange(movers.len() as i64, (Kind::Float, Device::Cpu)).unsqueeze(0);
        let own = Tensor::full([1, present as i64], -1.0, (Kind::Float, Device::Cpu));
        rows.take(&all, &own).unwrap();
        let wanted = all.index_select(1, &rows_of(&movers, None));
        assert_eq!(own.sort(1, false).0, wanted);
        let counts = (0..WINDOW).map(|v| movers.iter().filter(|m| **m == Some(v)).count());
        let (least, most) = (counts.clone().min().unwrap(), counts.max().unwrap());
        assert!(most - least <= of.len(), "{least} to {most}");
    }
    // 64 environments, half with the past: 32, each agent in 16 of them.
    let movers = movers(&task(&[0, 0], 64), 0.5);
    let past = movers.iter().enumerate().filter(|(_, m)| m.is_some());
    let agents: Vec<usize> = past.map(|(row, _)| row % 2).collect();
    assert_eq!(agents.len(), 32);
    assert_eq!(agents.iter().filter(|&&a| a == 0).count(), 16);
}

#[test]
fn policies_of_their_own_never_have_the_past_in_one_environment() {
    let whole = task(&[0, 1], 20);
    let parts = [0, 1]
        .map(|policy| EnvSpec { agents: vec![whole.agents[policy].clone()], ..whole.clone() });
    let [a, b] = parts.each_ref().map(|p| movers(p, 1.0));
    for (a, b) in a.iter().zip(&b) {
        assert!(a.is_some() != b.is_some(), "every environment has one");
    }
    for (spec, movers) in parts.iter().zip([a, b]) {
        let rows = Rows::new(spec, 0..20, (WINDOW, 1.0));
        assert_eq!(rows.present(), movers.iter().filter(|m| m.is_none()).count());
    }
}

/// Action, mean, standard deviation and hidden state of one decision.
fn decide(policy: &mut dyn Policy, [obs, noise, before]: [&Tensor; 3]) -> [Tensor; 4] {
    let n = obs.size()[0];
    let out = [2, 2, 2, H].map(|w| Tensor::zeros([n, w], (Kind::Float, Device::Cpu)));
    let [action, dist, std, after] = &out;
    let hidden = Some(Hidden { before, after });
    let act = Act { action, dist, std, hidden };
    policy.act(obs, noise, &act).unwrap();
    out
}

/// A learner whose versions differ from each other and from the policy.
fn experienced(spec: &EnvSpec) -> SelfPlay {
    let mut learner = self_play(&config(), spec);
    for stream in 0..7 {
        update(&mut learner, spec, stream);
    }
    learner
}

#[test]
fn versions_decide_for_their_rows_and_the_policy_for_all_others() {
    let spec = task(&[0, 0, 0], ENVS);
    let mut learner = experienced(&spec);
    let n = spec.rows() as i64;
    let input = [(40, 6), (41, 2), (42, H)].map(|(s, w)| normals(s, &[n, w]));
    let input = input.each_ref();
    let got = decide(learner.policy_mut(), input);
    let movers = movers(&spec, 0.7);
    for who in [None, Some(0), Some(1), Some(2)] {
        let rows = rows_of(&movers, who);
        assert!(rows.numel() > 0, "{who:?}");
        let own = input.map(|t| t.index_select(0, &rows));
        let wanted = match who {
            None => decide(learner.policy.present.policy_mut(), own.each_ref()),
            Some(v) => decide(&mut *learner.policy.versions[v], own.each_ref()),
        };
        for (got, wanted) in got.iter().zip(&wanted) {
            assert_eq!(bits(&got.index_select(0, &rows)), bits(wanted), "{who:?}");
        }
    }
    // Evaluations are of the policy as it is now.
    let action = Tensor::zeros([n, 2], (Kind::Float, Device::Cpu));
    let after = Tensor::zeros([n, H], (Kind::Float, Device::Cpu));
    let [obs, _, before] = input;
    let hidden = || Some(Hidden { before, after: &after });
    learner.policy_mut().act_mean(obs, hidden(), &action).unwrap();
    let alone = action.zeros_like();
    let present = learner.policy.present.policy_mut();
    present.act_mean(obs, hidden(), &alone).unwrap();
    assert_eq!(bits(&action), bits(&alone));
}

#[test]
fn copies_for_parts_of_the_environments_decide_the_same() {
    for of in [&[0, 0][..], &[0, 0, 0]] {
        let spec = task(of, ENVS);
        let mut learner = experienced(&spec);
        let n = spec.rows() as i64;
        let input = [(40, 6), (41, 2), (42, H)].map(|(s, w)| normals(s, &[n, w]));
        let wanted = decide(learner.policy_mut(), input.each_ref());
        let copies = learner.policy().replicate().unwrap();
        let mut weights = Vec::new();
        copies.weights(&mut weights, &Default::default()).unwrap();
        for (first, envs) in [(0, 4), (4, 1), (5, 8)] {
            let mut copy = copies.replica(first, envs).unwrap();
            copy.take(&weights).unwrap();
            let m = of.len();
            let part = |t: &Tensor| t.narrow(0, (first * m) as i64, (envs * m) as i64);
            let own = input.each_ref().map(part);
            let got = decide(&mut *copy, own.each_ref());
            for (got, wanted) in got.iter().zip(&wanted) {
                assert_eq!(bits(got), bits(&part(wanted)), "{of:?} {first}");
            }
        }
        let mut copy = copies.replica(0, ENVS).unwrap();
        assert!(copy.take(&weights[1..]).is_err());
    }
}

#[test]
fn the_learner_learns_from_its_own_rows_alone() {
    let spec = task(&[0, 0], ENVS);
    let mut learner = self_play(&config(), &spec);
    let movers = movers(&spec, 0.7);
    let present = rows_of(&movers, None).numel();
    let alone = EnvSpec { num_envs: present, agents: vec![spec.agents[0].clone()], ..spec.clone() };
    let mut without = config();
    without.self_play.window = 0;
    let mut plain =
        build(&without, &EnvSpec { policy_names: Vec::new(), ..alone }, Device::Cpu).unwrap();
    plain.load_weights(&learner.policy.present.weights().unwrap()).unwrap();
    let mut r = rollout(learner.policy_mut(), &spec, STEPS, 3);
    // Nobody learns from the versions' observations, actions and rewards.
    for version in 0..WINDOW {
        let rows = rows_of(&movers, Some(version));
        for t in [&mut r.reward, &mut r.action, &mut r.obs.policy] {
            let _ = t.index_fill_(1, &rows, f64::NAN);
        }
    }
    learner.take(&r).unwrap();
    let own = Rollout::new(&task(&[0], present), STEPS, learner.policy().widths(), Device::Cpu);
    let own = own.unwrap();
    for (to, from) in own.tensors().zip(learner.rollout.tensors()) {
        to.shallow_clone().copy_(from);
    }
    let wanted = plain.update(&own).unwrap();
    let got = learner.update(&r).unwrap();
    assert!(got.surrogate.is_finite() && got.invalid == wanted.invalid);
    // Seeds differ, and with them the order of samples: the first numbers do not.
    assert_eq!(got.mean_std, wanted.mean_std);
    assert_eq!(got.explained_variance, wanted.explained_variance);
    assert!(!got.non_finite_params);
}

#[test]
fn versions_are_the_policy_of_every_so_many_updates_in_turn() {
    let spec = task(&[0, 0], ENVS);
    let mut learner = self_play(&config(), &spec);
    let own = |l: &SelfPlay| bits(&l.policy.present.weights().unwrap()[0].1);
    let past = |l: &SelfPlay| -> Vec<Vec<u8>> {
        let each = l.policy.versions.iter();
        each.map(|v| bits(&v.state().unwrap().weights().unwrap()[0].1)).collect()
    };
    let first = own(&learner);
    let mut kept = vec![first; WINDOW];
    for done in 1..=10_u32 {
        update(&mut learner, &spec, done);
        if done % 2 == 0 {
            kept[(done as usize / 2 - 1) % WINDOW] = own(&learner);
        }
        assert_eq!(past(&learner), kept, "after {done} updates");
    }
}

#[test]
fn rewards_are_told_apart() {
    let spec = task(&[0, 0], ENVS);
    let mut learner = self_play(&config(), &spec);
    let r = rollout(learner.policy_mut(), &spec, STEPS, 3);
    let movers = movers(&spec, 0.7);
    let _ = r.reward.shallow_clone().fill_(100.0);
    let _ = r.valid.shallow_clone().fill_(1.0);
    for row in 0..movers.len() {
        let beside = movers[row ^ 1].is_some();
        let reward = match movers[row] {
            Some(_) => -2.0,
            None if beside => 3.0,
            None => continue,
        };
        let _ = r.reward.i((.., row as i64)).fill_(reward);
    }
    let stats = learner.update(&r).unwrap();
    assert_eq!((stats.past_reward, stats.present_reward), (Some(-2.0), Some(3.0)));
}

#[test]
fn checkpoints_and_captures_hold_the_versions_and_go_on_with_the_same_bits() {
    let spec = task(&[0, 0], ENVS);
    let mut learner = experienced(&spec);
    let saved = learner.save().unwrap();
    learner.capture().unwrap();
    let run = |l: &mut SelfPlay| {
        for stream in 20..24 {
            update(l, &spec, stream);
        }
        l.save().unwrap()
    };
    let wanted = run(&mut learner);
    learner.restore().unwrap();
    same(&saved, &learner.save().unwrap());
    same(&wanted, &run(&mut learner));
    let mut other = self_play(&config(), &spec);
    other.load(&saved).unwrap();
    same(&wanted, &run(&mut other));

    // A roll-back is of the policy; who acts needs no versions.
    let early = self_play(&config(), &spec).weights().unwrap();
    assert!(early.iter().all(|(name, _)| !name.starts_with("self_play/")));
    let versions = |l: &SelfPlay| {
        let all = l.save().unwrap().into_iter();
        all.filter(|(n, _)| n.starts_with("self_play/")).collect::<Vec<_>>()
    };
    let before = versions(&other);
    other.roll_back(&early, 0.5).unwrap();
    same(&before, &versions(&other));
    let mut acting = build_policy(&config(), &spec, Device::Cpu).unwrap();
    acting.load(&saved).unwrap();
}

#[test]
fn every_policy_of_several_plays_its_own_past() {
    let spec = task(&[0, 1], ENVS);
    let mut learner = build(&config(), &spec, Device::Cpu).unwrap();
    for stream in 0..3 {
        let stats = update(&mut *learner, &spec, stream);
        assert!(stats.surrogate.is_finite());
        assert!(stats.past_reward.unwrap().is_finite());
    }
    let names: Vec<String> = learner.save().unwrap().into_iter().map(|(n, _)| n).collect();
    for name in ["p0/self_play/2/actor.0.weight", "p1/self_play/0/actor.0.weight"] {
        assert!(names.iter().any(|n| n == name), "{name}: {names:?}");
    }
    let saved = learner.save().unwrap();
    let mut other = build(&config(), &spec, Device::Cpu).unwrap();
    other.load(&saved).unwrap();
    update(&mut *learner, &spec, 9);
    update(&mut *other, &spec, 9);
    same(&learner.save().unwrap(), &other.save().unwrap());
}
