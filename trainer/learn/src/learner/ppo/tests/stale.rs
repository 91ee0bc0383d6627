//! Samples of an older policy are corrected for, and those of the present one are not
//! touched by that.

use super::*;
use serde::Deserialize;

/// Written by `tests/referee/vtrace_reference.py`.
const VTRACE: &str = include_str!("../../../../../../tests/fixtures/vtrace.json");

#[derive(Deserialize)]
struct Recorded {
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
    log_ratio: Vec<f64>,
    advantage: Vec<f64>,
    target: Vec<f64>,
    lacking_with_lambda: Vec<f64>,
}

impl Recorded {
    fn grid(&self, x: &[f64], rows: i64) -> Tensor {
        Tensor::from_slice(x).to_kind(Kind::Float).view([rows, self.envs])
    }

    /// The corrections to values, and the advantages, with these weights.
    fn vtrace(&self, weight: &Tensor, lambda: f64) -> (Tensor, Tensor) {
        let grid = |x: &[f64]| self.grid(x, self.steps);
        let (lacking, out) = (weight.zeros_like(), weight.zeros_like());
        let reward = grid(&self.reward);
        let trace = gae::Trace {
            reward: &reward,
            terminated: &grid(&self.terminated),
            truncated: &grid(&self.truncated),
            valid: &reward.ones_like(),
            value: &self.grid(&self.value, self.steps + 1),
            final_value: &self.grid(&self.final_value, self.slots),
            final_slot: &grid(&self.final_slot).to_kind(Kind::Int),
        };
        gae::vtrace(&trace, weight, self.gamma, lambda, &lacking, &out).unwrap();
        let plain = weight.zeros_like();
        gae::advantages(&trace, self.gamma, lambda, &plain).unwrap();
        let ones = weight.ones_like();
        if weight == &ones {
            assert_eq!(lacking, plain, "without staleness it is GAE, bit for bit");
            assert!((&out - &plain).abs().max().double_value(&[]) < 1e-6);
        }
        (lacking, out)
    }
}

fn close(what: &str, got: &Tensor, expected: &Tensor) {
    let error = (got - expected).abs().max().double_value(&[]);
    assert!(error < 1e-5, "{what} is off by {error:e}");
}

#[test]
fn v_trace_equals_torchrls_and_the_papers_sum() {
    let f: Recorded = serde_json::from_str(VTRACE).unwrap();
    let grid = |x: &[f64]| f.grid(x, f.steps);
    let weight = grid(&f.log_ratio).exp().clamp_max(1.0);
    let now = f.grid(&f.value, f.steps + 1).narrow(0, 0, f.steps);
    let (lacking, out) = f.vtrace(&weight, 1.0);
    close("target", &(lacking + now), &grid(&f.target));
    close("advantage", &(out * &weight), &grid(&f.advantage));
    let (lacking, _) = f.vtrace(&weight, f.lambda);
    close("with lambda", &lacking, &grid(&f.lacking_with_lambda));
}

#[test]
fn v_trace_of_ones_own_samples_is_generalised_advantage_estimation() {
    let f: Recorded = serde_json::from_str(VTRACE).unwrap();
    let ones = f.grid(&f.reward, f.steps).ones_like();
    for lambda in [0.0, f.lambda, 1.0] {
        let _ = f.vtrace(&ones, lambda);
    }
}

fn config(staleness_correction: Staleness) -> PpoConfig {
    PpoConfig {
        staleness_correction,
        num_learning_epochs: 1,
        num_mini_batches: 1,
        schedule: Schedule::Fixed,
        ..PpoConfig::default()
    }
}

const SPACES: [ActionSpace; 2] = [ActionSpace::Continuous(3), ActionSpace::Discrete(4)];

#[test]
fn an_update_on_ones_own_samples_is_the_same_with_and_without_correction() {
    for space in SPACES {
        let update = |correction| {
            let (mut ppo, spec) = build(&config(correction), space, true);
            let r = rollout(ppo.policy_mut(), &spec, 8, 1);
            let stats = ppo.update(&r).unwrap();
            (stats, ppo.policy.state().unwrap().weights().unwrap())
        };
        let (plain, weights) = update(Staleness::None);
        for correction in [Staleness::Vtrace, Staleness::Clip] {
            let (stats, corrected) = update(correction);
            assert!((stats.surrogate - plain.surrogate).abs() < 1e-5);
            assert!((stats.value_function - plain.value_function).abs() < 1e-4);
            for ((name, x), (_, y)) in corrected.iter().zip(&weights) {
                let scale = y.abs().max().double_value(&[]).max(1.0);
                let error = (x - y).abs().max().double_value(&[]) / scale;
                // One step of Adam: a gradient near 0 may point either way.
                assert!(error < 2.1e-3, "{space:?} {correction:?} {name}: {error:e}");
            }
        }
    }
}

#[test]
fn with_an_older_policys_samples_the_ratio_starts_at_one() {
    for space in SPACES {
        // Acted by another policy: of another seed, and with another standard deviation.
        let (actor, critic) = small();
        let spec = spec(5, None, space, 6);
        let other = ActorConfig { init_std: 0.5, ..actor.clone() };
        let mut older = ActorCritic::new(&other, &critic, &spec, 77, Device::Cpu).unwrap();
        let r = rollout(&mut older, &spec, 8, 1);
        let update = |correction| {
            let config = config(correction);
            let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
            ppo.update(&r).unwrap()
        };
        let none = update(Staleness::None);
        assert!(none.kl > 1e-5, "{space:?} {}", none.kl);
        for correction in [Staleness::Vtrace, Staleness::Clip] {
            let stats = update(correction);
            assert!(stats.kl.abs() < 1e-6, "{space:?} {correction:?} {}", stats.kl);
            assert_eq!(stats.clip_fraction, 0.0);
            assert_eq!(stats.skipped, 0);
            assert!(stats.surrogate.is_finite() && stats.value_function.is_finite());
        }
    }
}

/// "mini_batch" normalises the advantages and weighs them then: weights that are all alike
/// would have no effect the other way round.
#[test]
fn weights_of_older_samples_apply_to_normalised_advantages() {
    let config =
        PpoConfig { normalize_advantage: AdvantageNorm::MiniBatch, ..config(Staleness::Clip) };
    let (mut ppo, spec) = build(&config, SPACES[0], true);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    let _no_grad = tch::no_grad_guard();
    let surrogates = [1.0, 0.25].map(|weight| {
        ppo.prepare(&r).unwrap();
        let width = ppo.samples.packed.size()[1];
        let _ = ppo.samples.packed.narrow(1, width - 1, 1).fill_(weight);
        let index = Tensor::arange(48, (Kind::Int64, Device::Cpu));
        let mb = &ppo.tensors().unwrap()[0];
        mb.gather(&ppo.samples, &index).unwrap();
        mb.forward(&ppo.policy.net).unwrap();
        let stats = Tensor::zeros([loss::STATS as i64], (Kind::Float, Device::Cpu));
        device_loss(&ppo, &config, mb, (&ppo.value_clip, 0.0), &stats);
        mb.backward(&ppo.policy.net).unwrap();
        let by_tensors = ppo.policy.params.grad.copy();
        let _ = ppo.policy.params.grad.zero_();
        let clip = ppo.host_value_clip;
        host_gradient(&mut ppo, &config, 0..48, clip);
        let on_host = &ppo.policy.params.grad;
        assert!((&by_tensors - on_host).abs().max().double_value(&[]) < 1e-6);
        let off = (&stats - ppo.accumulator.losses()).abs().max();
        assert!(off.double_value(&[]) < 1e-5);
        mb.space.d_dist.copy()
    });
    let apart = &surrogates[0] * 0.25 - &surrogates[1];
    assert!(surrogates[1].abs().max().double_value(&[]) > 1e-4);
    assert!(apart.abs().max().double_value(&[]) < 1e-7);
}

#[test]
fn what_was_collected_says_how_many_updates_had_been_made() {
    let (mut ppo, spec) = build(&config(Staleness::None), SPACES[0], true);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    for updates in 0..3 {
        assert_eq!(ppo.policy().version(), updates);
        ppo.update(&r).unwrap();
    }
    let saved = ppo.save().unwrap();
    ppo.capture().unwrap();
    ppo.update(&r).unwrap();
    ppo.restore().unwrap();
    assert_eq!(ppo.policy().version(), 3);
    let (mut other, _) = build(&config(Staleness::None), SPACES[0], true);
    other.load(&saved).unwrap();
    assert_eq!(other.policy().version(), 3);
}

#[test]
fn copies_of_a_policy_decide_as_it_does_bit_for_bit() {
    for (space, std_type) in [
        (SPACES[0], StdType::Scalar),
        (SPACES[0], StdType::StateDependent),
        (SPACES[1], StdType::Scalar),
    ] {
        let (actor, critic) = small();
        let actor = ActorConfig { std_type, obs_normalization: true, ..actor };
        let spec = spec(5, Some(7), space, 6);
        let new = |ppo: &PpoConfig| Ppo::new(ppo, &actor, &critic, &spec, 8, 3, Device::Cpu);
        let mut ppo = new(&config(Staleness::None)).unwrap();
        let first = rollout(ppo.policy_mut(), &spec, 8, 1);
        let mut copy = ppo.policy().replicate().unwrap().replica(0, 6).unwrap();
        ppo.update(&first).unwrap();
        let mut weights = Vec::new();
        ppo.policy().replicate().unwrap().weights(&mut weights, &Default::default()).unwrap();
        copy.take(&weights).unwrap();
        let (width, _) = copy.noise();
        let (obs, noise) = (normals(8, &[6, 5]), normals(9, &[6, width]).sigmoid());
        let act = |policy: &mut dyn Policy| {
            let sizes =
                [spec.action.width() as i64, policy.dist_width(), spec.action.width() as i64];
            let [action, dist, std] =
                sizes.map(|w| Tensor::zeros([6, w], (Kind::Float, Device::Cpu)));
            let out =
                ostler_collector::Act { action: &action, dist: &dist, std: &std, hidden: None };
            policy.act(&obs, &noise, &out).unwrap();
            [action, dist, std].map(|t| bits(&t))
        };
        assert_eq!(act(&mut *copy), act(ppo.policy_mut()), "{space:?} {std_type:?}");
        assert!(copy.take(&weights[1..]).is_err());
    }
}
