//! Random search against its formula, and what every learner promises.

use super::*;
use crate::learner::UpdateTarget as T;
use crate::learner::testing::{bits, normals, rollout, same, spec};
use crate::learner::{ActorConfig, UpdateFault};
use ostler_collector::{Act, Policy};
use ostler_sim::env::When::At;
use ostler_sim::env::{ActionSpace, Value};

const STEPS: i64 = 8;
/// Rows; the last has no partner.
const ROWS: usize = 7;

fn actor() -> ActorConfig {
    ActorConfig { obs_normalization: true, ..ActorConfig::default() }
}

fn build(config: &ArsConfig, action: ActionSpace) -> (Ars, EnvSpec) {
    tch::set_num_threads(1);
    let spec = spec(5, None, action, ROWS);
    let ars = Ars::new(config, &actor(), &spec, 3, Device::Cpu).unwrap();
    (ars, spec)
}

fn config() -> ArsConfig {
    ArsConfig { top_directions: 2, alive_bonus: 0.25, ..ArsConfig::default() }
}

const ACTION: ActionSpace = ActionSpace::Continuous(2);

fn collect(ars: &mut Ars, spec: &EnvSpec, stream: u32) -> Rollout {
    let r = rollout(ars.policy_mut(), spec, STEPS, stream);
    for t in [&r.terminated, &r.truncated] {
        let _ = t.shallow_clone().zero_();
    }
    let _ = r.valid.shallow_clone().fill_(1.0);
    r
}

fn table(t: &Tensor) -> Vec<Vec<f64>> {
    let rows = t.size()[0];
    (0..rows).map(|i| Vec::try_from(t.get(i).to_kind(Kind::Double).view([-1])).unwrap()).collect()
}

#[test]
fn an_update_is_that_of_the_paper() {
    let (mut ars, spec) = build(&config(), ACTION);
    let r = collect(&mut ars, &spec, 1);
    // Row 0's episode ends after its third step, row 3's with its fifth by time.
    let _ = r.terminated.get(2).get(0).fill_(1.0);
    let _ = r.truncated.get(4).get(3).fill_(1.0);
    let reward = table(&r.reward);
    let sum = |row: usize, steps: usize| -> f64 { (0..steps).map(|t| reward[t][row] - 0.25).sum() };
    let returns: Vec<f64> =
        [3, 8, 8, 5, 8, 8].iter().enumerate().map(|(row, &steps)| sum(row, steps)).collect();
    let mut best: Vec<usize> = (0..3).collect();
    best.sort_by(|&a, &b| {
        let best = |d: usize| returns[2 * d].max(returns[2 * d + 1]);
        best(b).total_cmp(&best(a))
    });
    let used: Vec<f64> =
        best[..2].iter().flat_map(|&d| [returns[2 * d], returns[2 * d + 1]]).collect();
    let mean = used.iter().sum::<f64>() / 4.0;
    let spread = (used.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
    let directions = table(&ars.policy.directions_of_rows());
    let mut expected = vec![0.0; 10];
    for &d in &best[..2] {
        let weight = 0.02 / (2.0 * spread) * (returns[2 * d] - returns[2 * d + 1]);
        for (e, x) in expected.iter_mut().zip(&directions[d]) {
            *e += weight * x;
        }
    }
    let stats = ars.update(&r).unwrap();
    // The step is of the transposed matrix, which began as zeros.
    let moved = ars.policy.matrix().view([2, 5]).transpose(0, 1).contiguous();
    let got: Vec<f64> = Vec::try_from(moved.to_kind(Kind::Double).view([-1])).unwrap();
    for (got, expected) in got.iter().zip(&expected) {
        assert!((got - expected).abs() < 1e-7, "{got} {expected}");
    }
    assert!(expected.iter().any(|x| x.abs() > 1e-3), "{expected:?}");
    assert_eq!(stats.directions, 2);
    assert!((stats.search_return - mean).abs() < 1e-6);
    assert_eq!((stats.skipped, stats.non_finite_params), (0, false));
}

#[test]
fn a_direction_with_a_broken_environment_does_not_count() {
    let (mut ars, spec) = build(&ArsConfig::default(), ACTION);
    let r = collect(&mut ars, &spec, 1);
    let _ = r.valid.get(6).get(2).fill_(0.0);
    // Broken in the second episode: of no interest.
    let _ = r.terminated.get(1).get(5).fill_(1.0);
    let _ = r.valid.get(6).get(5).fill_(0.0);
    // Not a number where nothing says that it is invalid.
    let _ = r.reward.get(0).get(0).fill_(f64::NAN);
    let stats = ars.update(&r).unwrap();
    assert_eq!(stats.directions, 1);
    assert_eq!(stats.invalid, 2);
    // Without any direction the matrix stays.
    let before = bits(ars.policy.matrix());
    let _ = r.valid.shallow_clone().zero_();
    let stats = ars.update(&r).unwrap();
    assert_eq!((stats.skipped, stats.skipped_no_valid), (1, 1));
    assert_eq!(bits(ars.policy.matrix()), before);
}

fn act(policy: &mut dyn Policy, obs: &Tensor, width: i64) -> [Tensor; 3] {
    let rows = obs.size()[0];
    let dist = policy.dist_width();
    let [action, dist, std] =
        [width, dist, width].map(|w| Tensor::zeros([rows, w], (Kind::Float, Device::Cpu)));
    let noise = Tensor::zeros([rows, 1], (Kind::Float, Device::Cpu));
    let out = Act { action: &action, dist: &dist, std: &std, hidden: None };
    policy.act(obs, &noise, &out).unwrap();
    [action, dist, std]
}

#[test]
fn copies_act_as_their_rows_of_the_whole_batch_do() {
    for space in [ACTION, ActionSpace::Discrete(3)] {
        let (mut ars, spec) = build(&config(), space);
        for stream in 1..3 {
            let r = collect(&mut ars, &spec, stream);
            ars.update(&r).unwrap();
        }
        let (width, obs) = (spec.action.width() as i64, normals(8, &[ROWS as i64, 5]));
        let whole = act(ars.policy_mut(), &obs, width);
        let mut weights = Vec::new();
        let source = ars.policy().replicate().unwrap();
        source.weights(&mut weights, &Default::default()).unwrap();
        for (first, count) in [(0, 3), (3, 4), (1, 1)] {
            let mut copy = source.replica(first, count).unwrap();
            copy.take(&weights).unwrap();
            assert_eq!(copy.version(), 2);
            let (first, count) = (first as i64, count as i64);
            let own = act(&mut *copy, &obs.narrow(0, first, count), width);
            for (own, whole) in own.iter().zip(&whole) {
                assert_eq!(bits(own), bits(&whole.narrow(0, first, count).contiguous()));
            }
        }
    }
}

#[test]
fn captured_saved_and_rolled_back_it_goes_on_as_promised() {
    let (mut ars, spec) = build(&config(), ACTION);
    let learn = |ars: &mut Ars, stream: u32| {
        let r = collect(ars, &spec, stream);
        ars.update(&r).unwrap();
    };
    learn(&mut ars, 1);
    let start = ars.save().unwrap();
    let weights = ars.weights().unwrap();
    ars.capture().unwrap();
    learn(&mut ars, 2);
    let end = ars.save().unwrap();
    ars.restore().unwrap();
    same(&ars.save().unwrap(), &start);
    learn(&mut ars, 2);
    same(&ars.save().unwrap(), &end);
    // Another one from the file.
    let (mut other, _) = build(&config(), ACTION);
    other.load(&start).unwrap();
    let r = collect(&mut other, &spec, 2);
    other.update(&r).unwrap();
    same(&other.save().unwrap(), &end);
    // Back to the weights, with other directions and shorter steps.
    ars.roll_back(&weights, 0.5).unwrap();
    same(&ars.weights().unwrap(), &weights);
    assert_eq!((ars.updates.get(), ars.rate_share.get()), (2, 0.5));
    let r = collect(&mut ars, &spec, 3);
    assert_eq!(ars.update(&r).unwrap().learning_rate, 0.01);
}

#[test]
fn poison_is_skipped_or_reported() {
    for (what, skipped) in [
        (T::Gradient(3), true),
        (T::Loss, true),
        (T::Parameter("actor.head.weight".into()), false),
        (T::ParameterIndex(1), false),
        (T::Normalizer, false),
    ] {
        let (mut ars, spec) = build(&config(), ACTION);
        let r = collect(&mut ars, &spec, 1);
        let fault = UpdateFault {
            when: At(1),
            minibatch: 0,
            what: what.clone(),
            value: Value::Number(f64::NAN),
        };
        ars.inject(vec![fault]).unwrap();
        let stats = ars.update(&r).unwrap();
        assert_eq!((stats.skipped == 1, stats.non_finite_params), (skipped, !skipped), "{what:?}");
    }
    let (mut ars, _) = build(&config(), ACTION);
    let fault = UpdateFault {
        when: At(1),
        minibatch: 0,
        what: T::FirstMoment(0),
        value: Value::Number(0.0),
    };
    assert!(ars.inject(vec![fault]).is_err(), "there is no optimiser");
}
