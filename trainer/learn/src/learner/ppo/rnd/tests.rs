//! Against rsl_rl's formulas written out, and libtorch's automatic differentiation.

use super::*;
use crate::learner::ppo::{Ppo, tests::plain};
use crate::learner::testing::{bits, normals, rollout, same, spec, stand_in};
use crate::learner::{ActorConfig, CriticConfig, Learner, TrainedPolicy};
use ostler_sim::env::{ActionSpace, EnvSpec};

const STEPS: i64 = 8;
const ENVS: i64 = 6;
const OBS: i64 = 5;

fn config(weight: f64) -> PpoConfig {
    let rnd = RndConfig {
        weight,
        num_outputs: 3,
        predictor_hidden_dims: vec![16, 8],
        target_hidden_dims: vec![12],
        ..RndConfig::default()
    };
    PpoConfig { rnd, ..plain() }
}

fn rnd(config: &PpoConfig) -> Rnd {
    tch::set_num_threads(1);
    Rnd::new(config, OBS, [STEPS, ENVS], 3, Device::Cpu).unwrap()
}

/// A learner, and a rollout of it in which a transition is not valid.
fn learner(config: &PpoConfig, envs: usize) -> (Ppo, Rollout, EnvSpec) {
    tch::set_num_threads(1);
    let spec = spec(OBS as usize, None, ActionSpace::Continuous(2), envs);
    let actor = ActorConfig { hidden_dims: vec![16, 8], ..ActorConfig::default() };
    let critic = CriticConfig { hidden_dims: vec![16, 8], ..CriticConfig::default() };
    let steps = STEPS as usize;
    let mut ppo = Ppo::new(config, &actor, &critic, &spec, steps, 3, Device::Cpu).unwrap();
    let r = rollout(ppo.policy_mut(), &spec, STEPS, 1);
    (ppo, r, spec)
}

/// What a network makes of `x`, in double precision, from parameters as they lie in memory.
fn embed(theta: &Tensor, widths: &[i64], x: &Tensor) -> Tensor {
    let (mut x, mut at) = (x.to_kind(Kind::Double), 0);
    for (i, pair) in widths.windows(2).enumerate() {
        let mut take = |size: &[i64]| {
            let count = size.iter().product::<i64>();
            at += count;
            theta.narrow(0, at - count, count).view(size)
        };
        let (weight, bias) = (take(&[pair[1], pair[0]]), take(&[pair[1]]));
        x = x.matmul(&weight.tr()) + bias;
        if i + 2 < widths.len() {
            x = x.elu();
        }
    }
    assert_eq!(at, theta.size()[0]);
    x
}

fn both(rnd: &Rnd, theta: &Tensor, x: &Tensor) -> [Tensor; 2] {
    let target = rnd.target.params.theta.to_kind(Kind::Double);
    [embed(theta, &[OBS, 16, 8, 3], x), embed(&target, &[OBS, 12, 3], x)]
}

fn numbers(t: &Tensor) -> Vec<f64> {
    Vec::try_from(t.to_kind(Kind::Double).contiguous().view([-1])).unwrap()
}

/// `EmpiricalDiscountedVariationNormalization` of rsl_rl.
#[derive(Default)]
struct Theirs {
    average: Vec<f64>,
    mean: f64,
    var: f64,
    count: f64,
}

impl Theirs {
    fn normalized(&mut self, reward: &[f64]) -> Vec<f64> {
        self.average.resize(reward.len(), 0.0);
        let n = reward.len() as f64;
        self.average.iter_mut().zip(reward).for_each(|(a, r)| *a = *a * 0.99 + r);
        let mean = self.average.iter().sum::<f64>() / n;
        let var = self.average.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / n;
        self.count += n;
        let rate = n / self.count;
        let delta = mean - self.mean;
        self.mean += rate * delta;
        self.var += rate * (var - self.var + delta * (mean - self.mean));
        reward.iter().map(|r| r / self.var.sqrt()).collect()
    }
}

#[test]
fn rewards_are_rsl_rls() {
    for reward_normalization in [true, false] {
        let mut config = config(0.25);
        config.rnd.reward_normalization = reward_normalization;
        let mut rnd = rnd(&config);
        let (_, r, _) = learner(&config, ENVS as usize);
        let _ = r.valid.shallow_clone().fill_(1.0);
        let mut theirs = Theirs::default();
        for stream in 0..3 {
            let x = normals(40 + stream, &[(STEPS + 1) * ENVS, OBS]);
            let got = numbers(&rnd.reward(&x, &r).unwrap());
            let [a, b] = both(&rnd, &rnd.predictor.params.theta.to_kind(Kind::Double), &x);
            let off = numbers(&(a - b).square().sum_dim_intlist(1, false, Kind::Double).sqrt());
            let own = numbers(&r.reward);
            for t in 0..STEPS as usize {
                let behind = &off[(t + 1) * ENVS as usize..][..ENVS as usize];
                let wanted = match reward_normalization {
                    true => theirs.normalized(behind),
                    false => behind.to_vec(),
                };
                for (env, wanted) in wanted.iter().enumerate() {
                    let at = t * ENVS as usize + env;
                    let off = (got[at] - own[at] - 0.25 * wanted).abs();
                    assert!(off < 1e-5 * wanted.abs().max(1.0), "{stream} {t} {env}: {off:e}");
                }
            }
        }
    }
}

#[test]
fn gradient_and_loss_are_those_of_the_mean_square_error() {
    let mut rnd = rnd(&config(1.0));
    let x = normals(50, &[11, OBS]);
    let mut valid = Tensor::ones([11, 1], (Kind::Float, Device::Cpu));
    let _ = valid.get(4).fill_(0.0);
    rnd.gradient(&x, &valid).unwrap();
    let theta = rnd.predictor().theta.to_kind(Kind::Double).set_requires_grad(true);
    let [a, b] = both(&rnd, &theta, &x);
    let kept = |t: &Tensor| Tensor::cat(&[t.narrow(0, 0, 4), t.narrow(0, 5, 6)], 0);
    let loss = kept(&a).mse_loss(&kept(&b), tch::Reduction::Mean);
    let off = (loss.double_value(&[]) - rnd.section.loss().double_value(&[])).abs();
    assert!(off < 1e-6, "{off:e}");
    let wanted = Tensor::run_backward(&[loss], &[&theta], false, false);
    let far = (&wanted[0] - rnd.predictor().grad.to_kind(Kind::Double)).abs().max();
    let size = wanted[0].abs().max().double_value(&[]);
    assert!(far.double_value(&[]) < 1e-5 * size, "{far:?} of {size}");
    // Without a valid sample nothing is learnt.
    let before = bits(&rnd.predictor().theta);
    valid = valid.zeros_like();
    rnd.step(&x, &valid).unwrap();
    assert_eq!(bits(&rnd.predictor().theta), before);
    let said = rnd.said(&numbers(&rnd.sums().unwrap())).1;
    assert_eq!((said.tried, said.taken, said.no_valid), (1, 0, 1));
}

#[test]
fn states_that_were_seen_often_are_worth_less_than_others() {
    let mut config = config(1.0);
    config.rnd.reward_normalization = false;
    let mut rnd = rnd(&config);
    let (_, r, _) = learner(&config, ENVS as usize);
    let seen = normals(60, &[(STEPS + 1) * ENVS, OBS]) * 0.3;
    let other = normals(61, &[(STEPS + 1) * ENVS, OBS]) * 0.3 + 1.5;
    let _ = r.reward.shallow_clone().zero_();
    let mean =
        |rnd: &mut Rnd, x: &Tensor| rnd.reward(x, &r).unwrap().mean(Kind::Double).double_value(&[]);
    let before = [mean(&mut rnd, &seen), mean(&mut rnd, &other)];
    let valid = Tensor::ones([STEPS * ENVS, 1], (Kind::Float, Device::Cpu));
    for update in 0..40 {
        rnd.learn((&seen.narrow(0, 0, STEPS * ENVS), &valid), [5, 4], update).unwrap();
    }
    let after = [mean(&mut rnd, &seen), mean(&mut rnd, &other)];
    assert!(after[0] < 0.2 * before[0], "{before:?} {after:?}");
    assert!(after[1] > 3.0 * after[0], "{before:?} {after:?}");
}

#[test]
fn updates_have_the_same_bits_on_any_number_of_threads_and_after_a_checkpoint() {
    let config = config(0.5);
    let after = |threads: usize, stop: bool| {
        let (ppo, r, _) = learner(&config, 130);
        let mut ppo = ppo.on_processor(threads, None).unwrap();
        for i in 0..3 {
            if stop && i == 2 {
                let saved = ppo.save().unwrap();
                ppo = learner(&config, 130).0;
                ppo.load(&saved).unwrap();
            }
            let stats = ppo.update(&r).unwrap();
            assert_eq!(stats.skipped, 0);
            assert!(stats.rnd.unwrap() > 0.0 && stats.rnd_reward.unwrap() > 0.0);
            let tags: Vec<_> = stats.scalars().map(|s| s.0).collect();
            assert!(tags.contains(&"Loss/rnd") && tags.contains(&"Policy/rnd_reward"));
        }
        ppo.save().unwrap()
    };
    let once = after(1, false);
    same(&after(3, false), &once);
    same(&after(1, true), &once);
    // What was captured comes back whole.
    let (mut ppo, r, _) = learner(&config, 130);
    ppo.update(&r).unwrap();
    ppo.capture().unwrap();
    let before = ppo.save().unwrap();
    ppo.update(&r).unwrap();
    ppo.restore().unwrap();
    same(&ppo.save().unwrap(), &before);
}

#[test]
fn a_device_learns_what_the_host_learns() {
    let config = config(0.5);
    let (mut host, r, _) = learner(&config, 6);
    let mut device = learner(&config, 6).0.with_kernels(&stand_in()).unwrap();
    for _ in 0..3 {
        let [a, b] = [&mut host, &mut device].map(|ppo| ppo.update(&r).unwrap());
        let off = (a.rnd.unwrap() - b.rnd.unwrap()).abs() / a.rnd.unwrap();
        assert!(off < 1e-5, "{off:e}");
    }
    let (a, b) = (host.save().unwrap(), device.save().unwrap());
    for ((name, a), (_, b)) in a.iter().zip(&b).filter(|(a, _)| a.0.starts_with("rnd/")) {
        let off = (a - b).abs().max().double_value(&[]);
        assert!(off < 1e-5 * a.abs().max().double_value(&[]).max(1.0), "{name}: {off:e}");
    }
}

#[test]
fn environments_that_stay_keep_their_sums() {
    let config = config(0.5);
    let (mut many, r, _) = learner(&config, 8);
    many.update(&r).unwrap();
    let saved = many.save().unwrap();
    let sums = |ppo: &Ppo| numbers(&ppo.rnd.as_ref().unwrap().sums);
    let (mut fewer, ..) = learner(&config, 6);
    fewer.load(&saved).unwrap();
    assert_eq!(sums(&fewer), sums(&many)[..6]);
    let (mut more, ..) = learner(&config, 9);
    more.load(&saved).unwrap();
    assert_eq!(sums(&more), [sums(&many), vec![0.0]].concat());
}

#[test]
fn a_run_starts_from_weights_that_were_learnt_without_it() {
    let (without, ..) = learner(&plain(), 6);
    let (mut with, ..) = learner(&config(0.5), 6);
    let before = bits(&with.rnd.as_ref().unwrap().target.params.theta);
    with.state_mut().load_weights(&without.save().unwrap()).unwrap();
    assert_eq!(bits(&with.rnd.as_ref().unwrap().target.params.theta), before);
    same(
        &with.policy().state().unwrap().weights().unwrap(),
        &without.policy().state().unwrap().weights().unwrap(),
    );
}

#[test]
fn impossible_values_are_named() {
    let wrong = RndConfig { weight: -1.0, learning_rate: 0.0, ..RndConfig::default() };
    let errors = PpoConfig { rnd: wrong, ..PpoConfig::default() }.validate();
    let paths: Vec<_> = errors.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(paths, ["ppo.rnd.weight", "ppo.rnd.learning_rate"]);
    assert!(paths.iter().all(|path| path.starts_with("ppo.rnd.")), "{paths:?}");
}
