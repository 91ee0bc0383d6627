//! Recurrent policies: acting, values and gradients against libtorch's own GRU and its
//! automatic differentiation.

use super::*;
use crate::learner::ppo::reference::gradient as by_autograd;
use ostler_collector::{Act, Hidden, Rollout};

const STEPS: usize = 8;
const H: i64 = 11;

/// The differences between the learners of these tests.
#[derive(Debug, Clone, Copy)]
struct Case {
    action: ActionSpace,
    std_type: StdType,
    /// Observations of the critic's own.
    critic: Option<usize>,
    shared: bool,
    layer_norm: bool,
    /// Steps of a sequence.
    sequence: usize,
    envs: usize,
    linear: bool,
}

const CASE: Case = Case {
    action: ActionSpace::Continuous(3),
    std_type: StdType::Scalar,
    critic: Some(7),
    shared: false,
    layer_norm: false,
    sequence: 0,
    envs: 6,
    linear: false,
};

/// Networks and sizes of every kind; of the last many parts, and blocks of several sizes.
fn cases() -> [Case; 6] {
    [
        Case { sequence: 4, ..CASE },
        Case { std_type: StdType::StateDependent, layer_norm: true, sequence: 2, ..CASE },
        Case { action: ActionSpace::Discrete(5), critic: None, sequence: 1, ..CASE },
        Case { critic: None, shared: true, ..CASE },
        Case { linear: true, ..CASE },
        Case { envs: 301, layer_norm: true, ..CASE },
    ]
}

fn configs(case: &Case) -> (PpoConfig, ActorConfig, CriticConfig, EnvSpec) {
    tch::set_num_threads(1);
    let config = PpoConfig {
        num_mini_batches: 1,
        num_learning_epochs: 2,
        kl_stop: 0.0,
        sequence_length: case.sequence,
        learning_rate: 1e-4,
        ..PpoConfig::default()
    };
    let actor = ActorConfig {
        hidden_dims: if case.linear { vec![] } else { vec![13, 9] },
        std_type: case.std_type,
        layer_norm: case.layer_norm,
        obs_normalization: true,
        rnn_type: RnnType::Gru,
        rnn_hidden_dim: H,
        ..ActorConfig::default()
    };
    let critic = CriticConfig {
        hidden_dims: vec![10],
        layer_norm: case.layer_norm,
        shared: case.shared,
        obs_normalization: case.critic.is_none(),
        ..CriticConfig::default()
    };
    let spec = spec(5, case.critic, case.action, case.envs);
    (config, actor, critic, spec)
}

fn learner(case: &Case) -> (Ppo, PpoConfig, EnvSpec) {
    let (config, actor, critic, spec) = configs(case);
    let ppo = Ppo::new(&config, &actor, &critic, &spec, STEPS, 3, Device::Cpu).unwrap();
    (ppo, config, spec)
}

/// The hidden states after the steps of one environment, from zeros, by libtorch's `gru` over
/// whole episodes.
fn by_gru(ppo: &Ppo, x: &Tensor) -> Tensor {
    let [i, h] = ppo.policy.net.gru_layers().unwrap();
    let weights = [i.weight(), h.weight(), i.bias(), h.bias()].map(Tensor::shallow_clone);
    let start = Tensor::zeros([1, 1, H], (Kind::Float, Device::Cpu));
    let (steps, _) = x.unsqueeze(1).gru(&start, &weights, true, 1, 0.0, false, false, false);
    steps.squeeze_dim(1)
}

/// Episodes of environment `n`: ranges of steps.
fn episodes(r: &Rollout, n: i64) -> Vec<Range<i64>> {
    let ended = r.ended().unwrap();
    let mut all = Vec::new();
    let mut from = 0;
    for t in 0..r.steps {
        if ended.int64_value(&[t, n]) != 0 || t == r.steps - 1 {
            all.push(from..t + 1);
            from = t + 1;
        }
    }
    all
}

fn normalised(ppo: &Ppo, obs: &Tensor) -> Tensor {
    let norm = ppo.policy.norm.actor.as_ref().unwrap();
    let flat = obs.view([-1, obs.size()[obs.dim() - 1]]);
    let to = flat.empty_like();
    norm.apply(&flat, &to).unwrap();
    to.view(&obs.size()[..])
}

fn far(a: &Tensor, b: &Tensor) -> f64 {
    (a - b).abs().max().double_value(&[])
}

/// Acting, step after step with states that are zero after an end, is libtorch's GRU over
/// each episode from its beginning. The same on the host's memory and as tensors.
#[test]
fn hidden_states_are_those_of_a_gru_over_each_episode_alone() {
    for envs in [1, 6, 40] {
        let (mut ppo, _, spec) = learner(&Case { envs, ..CASE });
        // Statistics that do something.
        let first = rollout(ppo.policy_mut(), &spec, STEPS as i64, 7);
        ppo.warm_up(&first).unwrap();
        let r = rollout(ppo.policy_mut(), &spec, STEPS as i64, 1);
        let hidden = r.hidden.as_ref().unwrap();
        let x = normalised(&ppo, &r.obs.policy);
        for n in 0..envs as i64 {
            for episode in episodes(&r, n) {
                let len = episode.end - episode.start;
                let expected = by_gru(&ppo, &x.select(1, n).narrow(0, episode.start, len));
                let start = hidden.get(episode.start).get(n);
                assert_eq!(start.abs().max().double_value(&[]), 0.0);
                if len > 1 {
                    let ours = hidden.select(1, n).narrow(0, episode.start + 1, len - 1);
                    let off = far(&ours, &expected.narrow(0, 0, len - 1));
                    assert!(off < 1e-6, "{n} {episode:?}: {off:e}");
                }
            }
        }
        // Without the pass over the host's memory.
        let policy = ppo.policy_mut();
        let rows = [envs as i64, 3];
        let zeros = |width| Tensor::zeros([envs as i64, width], (Kind::Float, Device::Cpu));
        let [a, b, c, after] = [3, 3, 3, H].map(zeros);
        let gaps = r.obs.policy.get(3).repeat([1, 2]).narrow(1, 0, 5);
        let before = hidden.get(3);
        let out = Act {
            action: &a,
            dist: &b,
            std: &c,
            hidden: Some(Hidden { before: &before, after: &after }),
        };
        policy.act(&gaps, &normals(5, &rows), &out).unwrap();
        assert!(far(&b, &r.dist.get(3)) < 1e-5);
        let goes_on = r.ended().unwrap().get(3).logical_not().unsqueeze(1);
        assert!(far(&(&after * goes_on), &hidden.get(4)) < 1e-6);
    }
}

/// Values see what the actor remembers, at the end of a rollout and of truncated episodes too.
#[test]
fn values_are_those_of_observations_and_hidden_states_together() {
    for case in cases() {
        let (mut ppo, _, spec) = learner(&case);
        let first = rollout(ppo.policy_mut(), &spec, STEPS as i64, 7);
        ppo.warm_up(&first).unwrap();
        ppo.policy.norm.returns = None;
        let r = rollout(ppo.policy_mut(), &spec, STEPS as i64, 1);
        ppo.values.estimate(&ppo.policy, &r).unwrap();
        let x = normalised(&ppo, &r.obs.policy);
        let seen = |own: &Tensor, state: &Tensor| match case.critic {
            Some(_) => Tensor::cat(&[own, state], 0),
            None => Tensor::cat(&[&normalised(&ppo, own), state], 0),
        };
        let value = |own: &Tensor, state: &Tensor| {
            let space = ppo.policy.net.space(1, false, Device::Cpu).unwrap();
            let x = seen(own, state).unsqueeze(0);
            ppo.policy.net.forward_value(&x, &space).unwrap();
            space.value.double_value(&[0, 0])
        };
        let own = |g: &ostler_sim::Groups<Tensor>| match &g.critic {
            Some(critic) => critic.shallow_clone(),
            None => g.policy.shallow_clone(),
        };
        let (obs, last) = (own(&r.obs), own(&r.final_obs));
        for n in 0..(case.envs as i64).min(4) {
            for episode in episodes(&r, n) {
                let end = match episode.end == r.steps {
                    // The observation after a rollout belongs to the episode, unless it ended.
                    true if r.ended().unwrap().int64_value(&[r.steps - 1, n]) == 0 => r.steps + 1,
                    _ => episode.end,
                };
                let mut inputs = x.select(1, n).narrow(0, episode.start, end - episode.start);
                let slot = r.final_slot.int64_value(&[episode.end - 1, n]);
                if slot >= 0 {
                    let last = normalised(&ppo, &r.final_obs.policy).get(slot).get(n);
                    inputs = Tensor::cat(&[inputs, last.unsqueeze(0)], 0);
                }
                let states = by_gru(&ppo, &inputs);
                for t in episode.start..end {
                    let ours = ppo.values.value.double_value(&[t, n]);
                    let expected = value(&obs.get(t).get(n), &states.get(t - episode.start));
                    assert!((ours - expected).abs() < 1e-5, "{case:?} {t} {n}");
                }
                if slot >= 0 {
                    let ours = ppo.values.final_value.double_value(&[slot, n]);
                    let state = states.get(episode.end - episode.start);
                    let expected = value(&last.get(slot).get(n), &state);
                    assert!((ours - expected).abs() < 1e-5, "{case:?} truncated {n}");
                }
            }
        }
    }
}

/// The rollout's samples, some of which are not valid and hold no numbers.
fn prepared(case: &Case) -> (Ppo, PpoConfig) {
    let (mut ppo, config, spec) = learner(case);
    let r = rollout(ppo.policy_mut(), &spec, STEPS as i64, 1);
    ppo.prepare(&r).unwrap();
    let width = ppo.samples.packed.size()[1];
    let bad = ppo.samples.packed.narrow(1, width - 2, 1).eq(0.0);
    let mut numbers = ppo.samples.packed.narrow(1, 0, width - 2);
    let _ = numbers.masked_fill_(&bad, f64::NAN);
    (ppo, config)
}

#[test]
fn gradients_through_time_are_those_of_automatic_differentiation() {
    for case in cases() {
        let (mut ppo, config) = prepared(&case);
        let all = ppo.sequences.count();
        host_gradient(&mut ppo, &config, 0..all, 0.2);
        let ours = ppo.policy.params.grad.copy();
        let our_stats = ppo.accumulator.losses().copy();

        let mb = &ppo.tensors().unwrap()[0];
        let order = Tensor::arange(all as i64, (Kind::Int64, Device::Cpu));
        let index = ppo.sequences.index(&order).unwrap();
        mb.gather(&ppo.samples, &index).unwrap();
        let memory = ppo.samples.memory.as_ref().unwrap();
        let memory = memory.gather(&index, ppo.sequences.steps as i64).unwrap();
        let (clip, means) = (Tensor::from(0.2_f32), ppo.accumulator.losses());
        let net = (&ppo.places(), &ppo.policy.params);
        by_autograd(&config, net, mb, (Some(memory), None), (&clip, 0.0), means).unwrap();
        let size = ppo.policy.params.grad.abs().max().double_value(&[]);
        let off = far(&ours, &ppo.policy.params.grad) / size;
        assert!(off < 1e-5, "{case:?}: {off:e}");
        assert!(far(&our_stats, means) < 1e-5, "{case:?}");
        // The recurrent weights learn, but for sequences of a step, which go back to nothing.
        let recurrent = ppo.policy.params.save_grad().unwrap();
        let (_, d) = recurrent.iter().find(|(n, _)| n == "actor.gru.hidden.weight").unwrap();
        assert!(d.abs().max().double_value(&[]) > 0.0, "{case:?}");
    }
}

/// A gradient through the whole episode, by libtorch's GRU alone: nothing of it crosses an end.
#[test]
fn nothing_goes_back_beyond_the_beginning_of_an_episode() {
    let (mut ppo, config) = prepared(&CASE);
    let keep = ppo.samples.memory.as_ref().unwrap().keep.view([STEPS as i64, 6]);
    // Environment 0 ended with step 1, 1 with step 0, 2 broke in step 1.
    let starts = [(2, 0), (1, 1), (2, 2)];
    for t in 1..STEPS as i64 {
        for n in 0..6 {
            let begins = starts.contains(&(t, n));
            assert_eq!(keep.double_value(&[t, n]) == 0.0, begins, "{t} {n}");
        }
    }
    // Samples before an end do not change what those behind it say of the weights.
    let gradient = |ppo: &mut Ppo| {
        host_gradient(ppo, &config, 0..6, 0.2);
        ppo.policy.params.grad.copy()
    };
    let valid = ppo.samples.packed.size()[1] - 2;
    let _ = ppo.samples.packed.narrow(1, valid, 1).zero_();
    // Sample 4 of environment 1, which began with step 1.
    let _ = ppo.samples.packed.get(4 * 6 + 1).get(valid).fill_(1.0);
    let before = gradient(&mut ppo);
    let x = ppo.samples.x_actor.shallow_clone();
    let _ = x.get(1).fill_(2.5);
    assert_eq!(bits(&before), bits(&gradient(&mut ppo)));
    let _ = x.get(6 + 1).fill_(2.5);
    assert_ne!(bits(&before), bits(&gradient(&mut ppo)));
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    let case = Case { envs: 301, sequence: 4, ..CASE };
    let gradients = [1, 2, 3].map(|threads| {
        let (ppo, config) = prepared(&case);
        let mut ppo = ppo.on_processor(threads, None).unwrap();
        let all = ppo.sequences.count();
        host_gradient(&mut ppo, &config, 0..all, 0.2);
        bits(&ppo.policy.params.grad)
    });
    assert!(gradients.iter().all(|g| *g == gradients[0]));
}

#[test]
fn ten_updates_by_the_reference_path_are_those_of_the_fast_one() {
    for case in cases().into_iter().filter(|c| c.envs < 100) {
        let (config, actor, critic, spec) = configs(&case);
        let config = PpoConfig { num_mini_batches: 3, ..config };
        let new = || Ppo::new(&config, &actor, &critic, &spec, STEPS, 3, Device::Cpu).unwrap();
        let mut learners = [new(), new().by_reference().unwrap()];
        let mut other = new();
        let first = other.policy().params.theta.copy();
        for i in 0..10 {
            let theta = &mut other.policy.params.theta;
            *theta += normals(i + 70, &theta.size()) * 0.01;
            let r = rollout(other.policy_mut(), &spec, STEPS as i64, i);
            for ppo in &mut learners {
                assert_eq!(ppo.update(&r).unwrap().skipped, 0);
            }
        }
        let [fast, reference] = learners.map(|ppo| ppo.policy.params.theta.copy());
        let (off, moved) = (far(&fast, &reference), far(&fast, &first));
        assert!(off < 1e-5 && moved > 1e-3, "{case:?}: {off:e} of {moved:e}");
    }
}

#[test]
fn sequences_have_to_divide_rollouts_and_suffice_for_minibatches() {
    let (config, actor, critic, spec) = configs(&CASE);
    let new = |config: &PpoConfig| {
        let ppo = Ppo::new(config, &actor, &critic, &spec, STEPS, 3, Device::Cpu);
        ppo.unwrap_err().to_string()
    };
    let three = PpoConfig { sequence_length: 3, ..config.clone() };
    let why = new(&three);
    assert!(why.contains("rollouts of 8 steps are not whole sequences of 3"), "{why}");
    let many = PpoConfig { num_mini_batches: 7, ..config };
    let why = new(&many);
    assert!(why.contains("7 minibatches of only 6 sequences"), "{why}");
}

#[test]
fn a_recurrent_policy_wants_its_hidden_state() {
    let (mut ppo, _, _) = learner(&CASE);
    let (obs, action) = (normals(1, &[6, 5]), normals(2, &[6, 3]));
    let why = ppo.policy_mut().act_mean(&obs, None, &action).unwrap_err();
    assert!(why.to_string().contains("hidden state"), "{why}");
}
