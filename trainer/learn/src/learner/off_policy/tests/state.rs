//! The state of a learner with a replay buffer: snapshots, and invalid states that it refuses.

use super::*;
use crate::learner::Remembers;
use crate::learner::UpdateTarget as T;
use crate::learner::off_policy::actor::noise_scale;
use crate::learner::policy::{Activation, Architecture};
use crate::learner::testing::{normals, stand_in};
use ostler_machine::memory::{Here, Told};
use ostler_machine::torch::watched;
use ostler_sim::env::Value;
use ostler_sim::env::When::At;

const STEPS: i64 = 4;

fn networks() -> (ActorConfig, CriticConfig) {
    tch::set_num_threads(1);
    let actor =
        ActorConfig { hidden_dims: vec![16, 8], obs_normalization: true, ..ActorConfig::default() };
    let critic = CriticConfig {
        hidden_dims: vec![16, 8],
        obs_normalization: true,
        ..CriticConfig::default()
    };
    (actor, critic)
}

fn sac() -> SacConfig {
    SacConfig { batch_size: 32, learning_starts: 24, ..SacConfig::default() }
}

/// As FastSAC has it.
fn fast() -> SacConfig {
    SacConfig {
        num_atoms: 21,
        v_min: -10.0,
        v_max: 10.0,
        use_cdq: false,
        alpha_with_critics: true,
        tanh_std: true,
        betas: [0.9, 0.95],
        final_lr_share: 0.5,
        ..sac()
    }
}

fn td3() -> Td3Config {
    Td3Config {
        batch_size: 32,
        learning_starts: 24,
        num_atoms: 21,
        v_min: -10.0,
        v_max: 10.0,
        ..Td3Config::default()
    }
}

/// A learner with its replay buffer open, for six environments.
fn build(algorithm: Algorithm<'_>) -> (OffPolicy, EnvSpec, tempfile::TempDir) {
    build_with(algorithm, SamplerKind::Uniform)
}

fn build_with(
    algorithm: Algorithm<'_>,
    sampler: SamplerKind,
) -> (OffPolicy, EnvSpec, tempfile::TempDir) {
    build_of(algorithm, sampler, networks())
}

fn build_of(
    algorithm: Algorithm<'_>,
    sampler: SamplerKind,
    (actor, critic): (ActorConfig, CriticConfig),
) -> (OffPolicy, EnvSpec, tempfile::TempDir) {
    let replay = ReplayConfig {
        capacity: 100,
        storage: ostler_collector::replay::StorageKind::Host,
        sampler,
        save: false,
        ..ReplayConfig::default()
    };
    let plan = OffPolicyArgs {
        algorithm,
        actor: &actor,
        critic: &critic,
        replay: &replay,
        steps: STEPS as usize,
        fresh_episodes: false,
        save_interval: 10,
        seed: 3,
        draws: 3,
    };
    let spec = spec(5, None, ActionSpace::Continuous(2), 6);
    let mut learner = OffPolicy::new(&plan, &spec, Device::Cpu).unwrap();
    let folder = tempfile::tempdir().unwrap();
    learner.open(folder.path(), false, &Here).unwrap();
    (learner, spec, folder)
}

/// The message that refuses the replay buffer of a learner on a GPU with `free` bytes: here is
/// no GPU to put it on.
fn refused_on_gpu(replay: ReplayConfig, free: Option<u64>) -> String {
    let (actor, critic) = networks();
    let plan = OffPolicyArgs {
        algorithm: Algorithm::Sac(&sac()),
        actor: &actor,
        critic: &critic,
        replay: &replay,
        steps: STEPS as usize,
        fresh_episodes: false,
        save_interval: 1,
        seed: 3,
        draws: 3,
    };
    let spec = spec(5, None, ActionSpace::Continuous(2), 6);
    let mut learner = OffPolicy::new(&plan, &spec, Device::Cpu).unwrap();
    learner.device = Device::Cuda(0);
    let folder = tempfile::tempdir().unwrap();
    let free = Told { host: Some(1 << 40), device: free };
    let opened = learner.open(folder.path(), false, &free);
    opened.err().unwrap().to_string()
}

#[test]
fn a_memory_on_a_gpu_takes_what_is_free_there() {
    let replay = |storage| ReplayConfig {
        capacity: 1_000_000,
        recent: 900_000,
        save: false,
        storage,
        ..ReplayConfig::default()
    };
    let refused = |storage, free| refused_on_gpu(replay(storage), Some(free));
    use ostler_collector::replay::StorageKind::{Auto, Device, Tiered};
    // 24 transitions of this learner's rollouts are kept to go back to.
    let each = Layout::of(&spec(5, None, ActionSpace::Continuous(2), 6));
    let all = 1_000_024 * each.bytes_per_transition() as u64;
    // A capacity that the user asked for has to fit.
    for (storage, key) in [(Device, "replay.capacity"), (Tiered, "replay.recent")] {
        let e = refused(storage, all / 2);
        assert!(e.contains("on the device") && e.contains(key), "{e}");
    }
    // More than a quarter: the newest alone are to lie there, and are refused.
    let e = refused(Auto, all / 2);
    assert!(e.contains("900024 transitions"), "{e}");
    assert!(e.contains("replay.recent = "), "{e}");
    // A quarter or less: all of them, which is tried.
    for free in [Some(4 * all), None] {
        let e = refused_on_gpu(replay(Auto), free);
        assert!(!e.contains("transitions need"), "{e}");
    }
}

fn both(test: impl Fn(Algorithm<'_>)) {
    test(Algorithm::Sac(&sac()));
    test(Algorithm::Sac(&fast()));
    test(Algorithm::Td3(&td3()));
}

fn learn(learner: &mut OffPolicy, spec: &EnvSpec, stream: u32) -> UpdateStats {
    let r = rollout(learner.policy_mut(), spec, STEPS, stream);
    learner.update(&r).unwrap()
}

#[test]
fn nothing_is_learnt_before_there_is_enough_to_learn_from() {
    let config = SacConfig { learning_starts: 48, ..sac() };
    let (mut learner, spec, _folder) = build(Algorithm::Sac(&config));
    let weights = learner.weights().unwrap();
    let first = learn(&mut learner, &spec, 1);
    assert_eq!((first.minibatches, first.skipped, first.invalid), (0, 0, 1));
    assert!(first.value_function.is_nan());
    assert_eq!(first.remembered, 24);
    let after = learner.weights().unwrap();
    for ((name, a), (_, b)) in weights.iter().zip(&after) {
        let statistics = name.contains("normalizer");
        assert_eq!(bits(a) == bits(b), !statistics, "{name}");
    }
    let second = learn(&mut learner, &spec, 2);
    // Of the critics, and of the actor.
    assert_eq!((second.minibatches, second.skipped), (8, 0));
    assert!(second.value_function.is_finite());
    assert_eq!(second.gradient_steps, 4);
}

#[test]
fn what_has_no_part_in_the_loss_is_not_drawn_for_its_error() {
    both(|algorithm| {
        let (mut learner, spec, _folder) = build_with(algorithm, SamplerKind::Prioritized);
        for stream in 1..=4 {
            let r = rollout(learner.policy_mut(), &spec, STEPS, stream);
            // Where an environment broke, a reward may be anything.
            let _ = r.reward.shallow_clone().masked_fill_(&r.valid.logical_not(), 1000.0);
            learner.update(&r).unwrap();
        }
        let buffer = learner.buffer.as_mut().unwrap();
        let valid = (0..50).map(|_| {
            let valid = buffer.next().unwrap().get("valid").unwrap();
            valid.mean(Kind::Double).double_value(&[])
        });
        let share = 1.0 - valid.sum::<f64>() / 50.0;
        // 4 of 96, each drawn at least once.
        assert!(share < 0.08, "{share}");
    });
}

#[test]
fn the_discount_decides_what_later_rewards_count() {
    let loss = |algorithm: Algorithm<'_>| {
        let (mut learner, spec, _folder) = build(algorithm);
        learn(&mut learner, &spec, 1).value_function.to_bits()
    };
    let sac = |gamma| loss(Algorithm::Sac(&SacConfig { gamma, ..sac() }));
    let td3 = |gamma| loss(Algorithm::Td3(&Td3Config { gamma, ..td3() }));
    assert_eq!((sac(0.5), td3(0.5)), (sac(0.5), td3(0.5)));
    assert!(sac(0.5) != sac(0.9) && td3(0.5) != td3(0.9));
}

/// On a GPU `tests/gpu/modes.rs` compares with what the runtime was asked for.
#[test]
fn what_an_update_would_move_is_counted_and_nothing_moves_on_a_host() {
    both(|algorithm| {
        // Priorities of each gradient step come to the host, the statistics once.
        for sampler in [SamplerKind::Uniform, SamplerKind::Prioritized] {
            let (mut learner, spec, _folder) = build_with(algorithm, sampler);
            learn(&mut learner, &spec, 1);
            let before = learner.traffic();
            let stats = learn(&mut learner, &spec, 2);
            assert_eq!(stats.traffic, Traffic::default());
            assert!(stats.minibatches >= 4);
            let fetched = match sampler {
                // Of both updates.
                SamplerKind::Prioritized => 1 + stats.gradient_steps / 2,
                _ => 1,
            };
            let expected = Traffic { downloads: fetched, waits: fetched, ..Traffic::default() };
            assert_eq!(learner.traffic().since(before), expected);
        }
    });
}

/// Reads that would make a GPU wait, seen on the host as for PPO.
#[test]
fn an_update_reads_no_element_back_on_a_device() {
    both(|algorithm| {
        let (mut learner, spec, _folder) = build(algorithm);
        learn(&mut learner, &spec, 1);
        learner = learner.with_kernels(&stand_in()).unwrap();
        let r = rollout(learner.policy_mut(), &spec, STEPS, 2);
        let (stats, operators) = watched(|| learner.update(&r)).unwrap();
        let stats = stats.unwrap();
        assert!(stats.minibatches >= 4 && stats.skipped == 0);
        assert_eq!(operators.read_back(), [""; 0], "{operators:?}");
        let steps = stats.gradient_steps / 2;
        assert!(operators.launches > 50 * steps, "{operators:?}");
        println!("{} launches of {steps} steps", operators.launches);
    });
}

#[test]
fn an_update_taken_back_is_repeated_bit_for_bit() {
    both(|algorithm| {
        let (mut learner, spec, _folder) = build(algorithm);
        learn(&mut learner, &spec, 1);
        let rollout = rollout(learner.policy_mut(), &spec, STEPS, 2);
        learner.capture().unwrap();
        let start = learner.save().unwrap();
        let once = learner.update(&rollout).unwrap();
        let end = learner.save().unwrap();
        learner.restore().unwrap();
        same(&learner.save().unwrap(), &start);
        let again = learner.update(&rollout).unwrap();
        same(&learner.save().unwrap(), &end);
        assert_eq!(once.value_function.to_bits(), again.value_function.to_bits());
        assert_eq!(once.remembered, 48);
    });
}

/// Running statistics lie among the weights: taken back, handed to copies, never not finite.
#[test]
fn flash_sacs_networks_are_taken_back_and_repeated_too() {
    let (actor, critic) = networks();
    let (architecture, activation) = (Architecture::FlashSac, Activation::Relu);
    let hidden_dims = vec![8, 8, 8];
    let actor = ActorConfig { architecture, activation, hidden_dims: hidden_dims.clone(), ..actor };
    let critic = CriticConfig { architecture, activation, hidden_dims, ..critic };
    let fast = fast();
    let build =
        || build_of(Algorithm::Sac(&fast), SamplerKind::Uniform, (actor.clone(), critic.clone()));
    let (mut learner, spec, _folder) = build();
    learn(&mut learner, &spec, 1);
    let rollout = rollout(learner.policy_mut(), &spec, STEPS, 2);
    learner.capture().unwrap();
    let start = learner.save().unwrap();
    learner.update(&rollout).unwrap();
    let end = learner.save().unwrap();
    for ((name, a), (_, b)) in start.iter().zip(&end) {
        // Slow copies follow; what no gradient reached stays.
        let fixed = name.ends_with("learning_rate") || name.ends_with("lr_scale");
        assert!(bits(a) != bits(b) || fixed, "{name} stays");
        if name.ends_with("in.weight") && !name.starts_with("target") {
            let lengths = b.norm_scalaropt_dim(2.0, [-1].as_slice(), false) - 1.0;
            assert!(lengths.abs().max().double_value(&[]) < 1e-5, "{name}");
        }
    }
    learner.restore().unwrap();
    same(&learner.save().unwrap(), &start);
    learner.update(&rollout).unwrap();
    same(&learner.save().unwrap(), &end);
    let fault =
        UpdateFault { when: At(3), minibatch: 0, what: T::Loss, value: Value::Number(f64::NAN) };
    learner.inject(vec![fault]).unwrap();
    let stats = learn(&mut learner, &spec, 3);
    assert_eq!((stats.skipped, stats.non_finite_params), (1, false));
    assert!(learner.policy().network(0).unwrap().is_none(), "no file has such a network");
}

#[test]
fn learning_rates_fall_along_half_a_cosine() {
    let config = fast();
    let (mut learner, ..) = build(Algorithm::Sac(&config));
    let rates = |learner: &OffPolicy| {
        let saved = learner.save().unwrap();
        ["actor", "critic", "alpha"].map(|part| {
            let name = format!("{part}.adam.learning_rate");
            let found = saved.iter().find(|(n, _)| *n == name).unwrap();
            found.1.double_value(&[0]) / 3e-4
        })
    };
    for (done, share) in [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)] {
        learner.set_progress(done).unwrap();
        assert!(rates(&learner).iter().all(|r| (r - share).abs() < 1e-9), "{done}");
    }
    let weights = learner.weights().unwrap();
    learner.roll_back(&weights, 0.1).unwrap();
    assert!(rates(&learner).iter().all(|r| (r - 0.05).abs() < 1e-9));
}

#[test]
fn a_learner_of_another_number_of_environments_goes_on_with_weights_and_memory() {
    both(|algorithm| {
        let (mut learner, spec, _folder) = build(algorithm);
        learn(&mut learner, &spec, 1);
        let saved = learner.save().unwrap();
        let buffer = learner.buffer.take().unwrap();
        let (mut other, mut fewer, _other) = build(algorithm);
        fewer.num_envs = 3;
        other.load(&saved).unwrap();
        other.buffer = Some(buffer);
        same(&other.save().unwrap(), &saved);
        let stats = learn(&mut other, &fewer, 2);
        assert_eq!(stats.remembered, 24 + 12);
        assert_eq!(stats.skipped, 0);
    });
}

#[test]
fn weights_go_back_and_rates_come_down_in_a_roll_back() {
    both(|algorithm| {
        let (mut learner, spec, _folder) = build(algorithm);
        learn(&mut learner, &spec, 1);
        let good = learner.weights().unwrap();
        learn(&mut learner, &spec, 2);
        let e = learner.roll_back(&good, 0.0).unwrap_err().to_string();
        assert!(e.contains("guard.roll_back_lr"), "{e}");
        learner.roll_back(&good, 0.5).unwrap();
        same(&learner.weights().unwrap(), &good);
        let saved = learner.save().unwrap();
        let of = |name: &str| {
            let found = saved.iter().find(|(n, _)| n == name).unwrap();
            found.1.double_value(&[0])
        };
        assert_eq!(of("critic.adam.learning_rate"), 1.5e-4);
        assert_eq!(of("actor.adam.learning_rate"), 1.5e-4);
        assert_eq!(learner.remembered(), 48);
        let (mut other, ..) = build(algorithm);
        other.load(&saved).unwrap();
        same(&other.save().unwrap(), &saved);
    });
}

#[test]
fn a_checkpoint_of_another_network_changes_nothing() {
    let (mut learner, spec, _folder) = build(Algorithm::Sac(&sac()));
    learn(&mut learner, &spec, 1);
    let before = learner.save().unwrap();
    let (other, ..) = build(Algorithm::Td3(&td3()));
    let e = learner.load(&other.save().unwrap()).unwrap_err();
    assert!(e.to_string().contains("does not fit"), "{e}");
    same(&learner.save().unwrap(), &before);
}

#[test]
fn poison_is_skipped_or_reported() {
    both(|algorithm| {
        for (what, skipped) in [
            (T::Gradient(3), true),
            (T::Loss, true),
            (T::Parameter("critic.2.head.bias".into()), false),
            (T::ParameterIndex(1), false),
            (T::FirstMoment(2), false),
            (T::SecondMoment(2), false),
            (T::Normalizer, false),
        ] {
            let (mut learner, spec, _folder) = build(algorithm);
            learn(&mut learner, &spec, 1);
            let fault = UpdateFault {
                when: At(2),
                minibatch: 1,
                what: what.clone(),
                value: Value::Number(f64::NAN),
            };
            learner.inject(vec![fault]).unwrap();
            let stats = learn(&mut learner, &spec, 2);
            assert_eq!(stats.non_finite_params, !skipped, "{what:?}");
            if skipped {
                assert_eq!(stats.skipped, 1, "{what:?}");
            }
        }
    });
    let (mut learner, ..) = build(Algorithm::Td3(&td3()));
    let fault =
        UpdateFault { when: At(1), minibatch: 0, what: T::LogStd, value: Value::Number(0.0) };
    let e = learner.inject(vec![fault]).unwrap_err().to_string();
    assert!(e.contains("actor.log_std_head.bias"), "{e}");
}

#[test]
fn actions_stay_within_their_bound_and_choices_are_refused() {
    let config = Td3Config { action_bound: 2.0, std_max: 3.0, ..td3() };
    let (mut learner, spec, _folder) = build(Algorithm::Td3(&config));
    let r = rollout(learner.policy_mut(), &spec, STEPS, 1);
    let largest = r.action.abs().max().double_value(&[]);
    assert!(largest <= 2.0 && largest > 1.0, "{largest}");
    // However small the largest deviation is, every environment explores with the smallest.
    let least = Td3Config { action_bound: 2.0, std_min: 3.0, std_max: 3.0, ..td3() };
    let (mut wide, ..) = build(Algorithm::Td3(&least));
    let mean = |r: Rollout| r.action.abs().mean(Kind::Double).double_value(&[]);
    let (wide, mixed) = (mean(rollout(wide.policy_mut(), &spec, STEPS, 1)), mean(r));
    assert!(wide > 1.1 * mixed, "{wide} {mixed}");
    assert_eq!(learner.policy().bounds(), [2.0, 2.0]);
    let limited = SacConfig { joint_limits: true, ..sac() };
    let bounds = |reach: Vec<Option<f32>>| {
        let (spec, (actor, critic)) = (EnvSpec { reach, ..spec.clone() }, networks());
        let algorithm = Algorithm::Sac(&limited);
        policy(algorithm, &actor, &critic, &spec, 1, Device::Cpu).map(|p| p.bounds)
    };
    assert_eq!(bounds(vec![Some(2.0), Some(0.5)]).unwrap(), [2.0, 0.5]);
    for reach in [Vec::new(), vec![Some(2.0), None]] {
        let e = bounds(reach).unwrap_err().to_string();
        assert!(e.contains("sac.joint_limits"), "{e}");
    }
    let discrete = EnvSpec { action: ActionSpace::Discrete(3), ..spec };
    let (actor, critic) = networks();
    let algorithm = Algorithm::Sac(&sac());
    let e = policy(algorithm, &actor, &critic, &discrete, 1, Device::Cpu).unwrap_err();
    assert!(e.to_string().contains("are choices"), "{e}");
}

#[test]
fn noise_is_spread_over_any_number_of_environments() {
    for n in [4_u32, 64, 1000] {
        let mut scales: Vec<f32> = (0..n).map(|e| noise_scale(e, 0.1, 0.5)).collect();
        scales.sort_by(f32::total_cmp);
        assert!(scales[0] >= 0.1 && scales[n as usize - 1] <= 0.5);
        // No gap is much wider than an even one.
        let even = 0.4 / n as f32;
        let widest = scales.windows(2).map(|w| w[1] - w[0]).fold(0.0, f32::max);
        assert!(widest < 3.0 * even, "{n}: {widest}");
    }
}

/// A row's exploration depends on its place in the whole batch, whichever collector steps it.
#[test]
fn a_copy_explores_as_its_rows_of_the_whole_batch_do() {
    both(|algorithm| {
        let (mut learner, spec, _dir) = build(algorithm);
        let n = spec.num_envs;
        let (first, len) = (n / 3, n - n / 3);
        let copied = learner.policy().replicate().unwrap();
        let mut weights = Vec::new();
        copied.weights(&mut weights, &ostler_sim::device::Counts::default()).unwrap();
        let mut copy = copied.replica(first, len).unwrap();
        copy.take(&weights).unwrap();
        let (width, _) = learner.policy().noise();
        let obs = normals(5, &[n as i64, spec.obs.policy as i64]);
        let noise = normals(6, &[n as i64, width]);
        let rows = |t: &Tensor| t.narrow(0, first as i64, len as i64);
        let out = |rows: usize| {
            [width, width, width]
                .map(|w| Tensor::zeros([rows as i64, w], (Kind::Float, Device::Cpu)))
        };
        let ([a, b, c], [x, y, z]) = (out(n), out(len));
        let act = |action, dist, std| ostler_collector::Act { action, dist, std, hidden: None };
        let _no_grad = tch::no_grad_guard();
        learner.policy_mut().act(&obs, &noise, &act(&a, &b, &c)).unwrap();
        copy.act(&rows(&obs), &rows(&noise), &act(&x, &y, &z)).unwrap();
        assert_eq!(bits(&rows(&a)), bits(&x));
    });
}
