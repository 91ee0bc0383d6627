//! Gradient steps equal PyTorch's, and those of the peers' own agents.

use super::*;
use crate::learner::policy::Activation;
use crate::learner::testing::Named;
use ostler_collector::transfer::host_number;
use serde::Deserialize;

/// Written by `tests/referee/off_policy_reference.py`.
const STEPS: &str = include_str!("../../../../../../tests/fixtures/off_policy_update.json");

/// Written by `tests/referee/off_policy_peers.py`.
const PEERS: &str = include_str!("../../../../../../tests/fixtures/off_policy_peers.json");

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(super) struct Case {
    name: String,
    own_critic_obs: bool,
    #[serde(default)]
    reach: Vec<f32>,
    pub config: serde_json::Value,
    #[serde(default = "actor")]
    actor: ActorConfig,
    #[serde(default = "network")]
    critic: CriticConfig,
    pub params: Named,
    pub batches: Vec<Named>,
    stats: Vec<Named>,
    expected: Named,
}

fn close(what: &str, got: &Tensor, expected: &Tensor) {
    let error = (got - expected).abs().max().double_value(&[]);
    let scale = expected.abs().max().double_value(&[]).max(1.0);
    assert!(error / scale < 1e-5, "{what}: off by {error:e}\n{got}\n{expected}");
}

/// Puts recorded numbers where a batch would have put them.
pub(super) fn fill(x: &mut Inputs, b: &Named, own: bool) {
    let of = |name: &str| b[name].tensor();
    let column = |name: &str| of(name).view([-1, 1]);
    x.obs.copy_(&of("obs"));
    x.next_obs.copy_(&of("next_obs"));
    let (seen, seen_next) = match own {
        true => ("critic_obs", "next_critic_obs"),
        false => ("obs", "next_obs"),
    };
    x.taken.obs.copy_(&of(seen));
    x.now.obs.copy_(&of(seen));
    x.next.obs.copy_(&of(seen_next));
    x.taken.action.copy_(&of("action"));
    x.reward = column("reward");
    x.bootstrap = (1.0 - column("terminated")) * column("discount");
    let weight = column("valid") * column("weights");
    x.weight = &weight / weight.sum(Kind::Float);
    x.total = x.weight.sum(Kind::Float);
    x.next_noise = of("next_noise");
    x.noise = of("noise");
}

fn network() -> CriticConfig {
    CriticConfig { hidden_dims: vec![8, 6], activation: Activation::Elu, ..CriticConfig::default() }
}

pub(super) fn actor() -> ActorConfig {
    ActorConfig {
        hidden_dims: vec![8, 6],
        activation: Activation::Elu,
        min_std: 1e-3,
        max_std: 1e3,
        ..ActorConfig::default()
    }
}

/// A case of PyTorch's.
pub(super) fn recorded(name: &str) -> Case {
    let fixture: Fixture = serde_json::from_str(STEPS).unwrap();
    fixture.cases.into_iter().find(|c| c.name == name).unwrap()
}

/// A learner of a recorded case, with its weights.
pub(super) fn learner(case: &Case, algorithm: Algorithm<'_>, actor: &ActorConfig) -> OffPolicy {
    let plan = OffPolicyArgs {
        algorithm,
        actor,
        critic: &case.critic,
        replay: &ReplayConfig::default(),
        steps: 1,
        fresh_episodes: false,
        save_interval: 1,
        seed: 9,
        draws: 9,
    };
    let action = ActionSpace::Continuous(2);
    let mut spec = spec(5, case.own_critic_obs.then_some(3), action, 1);
    spec.reach = case.reach.iter().copied().map(Some).collect();
    let mut learner = OffPolicy::new(&plan, &spec, Device::Cpu).unwrap();
    let start: NamedTensors =
        case.params.iter().map(|(name, n)| (name.clone(), n.tensor())).collect();
    learner.load_weights(&start).unwrap();
    learner
}

/// Takes one gradient step on a recorded batch.
pub(super) fn take(learner: &mut OffPolicy, case: &Case, batch: &Named) {
    fill(&mut learner.inputs, batch, case.own_critic_obs);
    learner.critic.begin().unwrap();
    learner.actor.begin().unwrap();
    learner.method.begin().unwrap();
    learner.take_step().unwrap();
}

/// The first step of `AdamW` is Adam's, after `rate * decay` was taken off the weights.
#[test]
fn sacs_weight_decay_takes_its_share_off_actor_and_critics() {
    const DECAY: f64 = 0.7;
    let fixture: Fixture = serde_json::from_str(STEPS).unwrap();
    let case = fixture.cases.iter().find(|c| c.name == "sac").unwrap();
    let _no_grad = tch::no_grad_guard();
    let after = |weight_decay: f64| {
        let sac: SacConfig = serde_json::from_value(case.config.clone()).unwrap();
        let sac = SacConfig { weight_decay, ..sac };
        let mut learner = learner(case, Algorithm::Sac(&sac), &actor());
        take(&mut learner, case, &case.batches[0]);
        learner.weights().unwrap()
    };
    let mut seen = 0;
    for ((name, plain), (_, decayed)) in after(0.0).iter().zip(&after(DECAY)) {
        let rate = match name.split('.').next() {
            Some("actor") => 3e-3,
            Some("critic") => 1e-3,
            _ => 0.0,
        };
        if name.starts_with("target_critic") {
            continue;
        }
        seen += 1;
        let expected = plain - case.params[name].tensor() * (rate * DECAY);
        let apart = (decayed - &expected).abs().max().double_value(&[]);
        assert!(apart < 2e-7, "{name}: {apart:e}");
    }
    assert!(seen > 12, "{seen}");
}

/// Where the network asks for less, the standard deviation is `actor.min_std`, and no gradient goes
/// through it that would ask for less again.
#[test]
fn sacs_deviation_does_not_go_below_its_bound() {
    const LEAST: f64 = 1.2;
    let fixture: Fixture = serde_json::from_str(STEPS).unwrap();
    let case = fixture.cases.iter().find(|c| c.name == "sac").unwrap();
    let sac: SacConfig = serde_json::from_value(case.config.clone()).unwrap();
    let bounded = ActorConfig { min_std: LEAST, init_std: 1.5, ..actor() };
    let obs = case.batches[0]["obs"].tensor();
    let _no_grad = tch::no_grad_guard();
    let log_std = |actor: &ActorConfig| {
        let learner = learner(case, Algorithm::Sac(&sac), actor);
        let net = &learner.nets.policy.net;
        let space = net.space(obs.size()[0], Device::Cpu).unwrap();
        net.forward(&obs, &space).unwrap();
        space.log_std.copy()
    };
    let (free, held) = (log_std(&actor()), log_std(&bounded));
    let below = free.lt(LEAST.ln()).sum(Kind::Int64).int64_value(&[]);
    assert!(below > 0 && below < free.numel() as i64, "{free}");
    assert_eq!(held, free.clamp_min(LEAST.ln()));
    assert!(held.exp().min().double_value(&[]) > LEAST - 1e-6);
}

/// Beyond a bound a gradient passes that leads back, so that the standard deviation is not stuck
/// there; one that leads farther out does not.
#[test]
fn sacs_deviation_comes_back_from_its_bound() {
    let fixture: Fixture = serde_json::from_str(STEPS).unwrap();
    let case = fixture.cases.iter().find(|c| c.name == "sac").unwrap();
    let sac: SacConfig = serde_json::from_value(case.config.clone()).unwrap();
    // All standard deviations that the network gives lie below the bound.
    let bounded = ActorConfig { min_std: 50.0, init_std: 60.0, max_std: 100.0, ..actor() };
    let obs = case.batches[0]["obs"].tensor();
    let _no_grad = tch::no_grad_guard();
    let learner = learner(case, Algorithm::Sac(&sac), &bounded);
    let (net, params) = (&learner.nets.policy.net, &learner.nets.policy.params);
    let space = net.learning_space(obs.size()[0], Device::Cpu).unwrap();
    let inputs = &learner.inputs;
    inputs.obs.shallow_clone().copy_(&obs);
    let bias = |sign: f64| {
        net.forward_now(inputs, &space).unwrap();
        let _ = space.d_mean.shallow_clone().zero_();
        let _ = space.d_log_std.shallow_clone().fill_(sign);
        net.backward(inputs, &space).unwrap();
        let gradients = params.save_grad().unwrap();
        let found = gradients.iter().find(|(n, _)| n == "actor.log_std_head.bias");
        found.unwrap().1.abs().min().double_value(&[])
    };
    // Adam steps against the gradient: a negative one raises the standard deviation.
    assert_eq!(bias(-1.0), obs.size()[0] as f64);
    assert_eq!(bias(1.0), 0.0);
}

#[test]
fn gradient_steps_equal_pytorchs() {
    steps_are_equal(STEPS, 6);
}

#[test]
fn gradient_steps_equal_those_of_fast_sac_and_flash_sac() {
    steps_are_equal(PEERS, 3);
}

fn steps_are_equal(recorded: &str, count: usize) {
    let fixture: Fixture = serde_json::from_str(recorded).unwrap();
    assert_eq!(fixture.cases.len(), count);
    for case in &fixture.cases {
        let (sac, td3): (SacConfig, Td3Config);
        let mut config = case.config.clone();
        // The programs of the papers clip nothing unless they are told to.
        let table = config.as_object_mut().unwrap();
        table.entry("max_grad_norm").or_insert_with(|| 0.0.into());
        let algorithm = match !case.name.starts_with("td3") {
            true => {
                sac = serde_json::from_value(config).unwrap();
                Algorithm::Sac(&sac)
            }
            false => {
                td3 = serde_json::from_value(config).unwrap();
                Algorithm::Td3(&td3)
            }
        };
        let mut learner = learner(case, algorithm, &case.actor);
        let _no_grad = tch::no_grad_guard();
        for (i, (batch, stats)) in case.batches.iter().zip(&case.stats).enumerate() {
            let what = |part: &str| format!("{}, step {i}, {part}", case.name);
            learner.set_progress(i as f64 / case.batches.len() as f64).unwrap();
            take(&mut learner, case, batch);
            let said = learner.read(&learner.inputs.weight).unwrap();
            let number = |name: &str| host_number(&stats[name].tensor()).unwrap();
            let near = |part: &str, got: f64, expected: f64| {
                let error = (got - expected).abs() / expected.abs().max(1.0);
                assert!(error < 1e-5, "{}: {got} {expected}", what(part));
            };
            for (name, got) in [
                ("critic_loss", said.value_function),
                ("critic_norm", said.grad_norm),
                ("q_mean", said.q_mean),
                ("actor_loss", said.actor_loss),
                ("actor_norm", said.actor_grad_norm),
                ("entropy", said.entropy),
            ] {
                if stats.contains_key(name) {
                    near(name, got, number(name));
                }
            }
            if let Some(theirs) = stats.get("td_error") {
                close(&what("td error"), learner.method.td_error(), &theirs.tensor());
            }
            let stepped = stats.contains_key("actor_loss");
            assert_eq!(!said.actor_loss.is_nan(), stepped, "{}", what("steps of the actor"));
        }
        let after = learner.weights().unwrap();
        // A temperature that stays is the configuration's, and no weight.
        let fixed = matches!(algorithm, Algorithm::Sac(c) if !c.auto_alpha);
        let learnt = case.expected.len() - usize::from(fixed);
        assert_eq!(after.len(), learnt, "{}", case.name);
        let has = after.iter().any(|(name, _)| name == "alpha.log");
        assert_eq!(has, matches!(algorithm, Algorithm::Sac(_)) && !fixed, "{}", case.name);
        for (name, got) in &after {
            // Nobody reads what a slow copy's normalisations saw.
            if name.starts_with("target") && name.contains(".running_") {
                continue;
            }
            let what = format!("{}, {name}", case.name);
            close(&what, got, &case.expected[name].tensor());
        }
    }
}
