//! Operations that make a GPU wait, and the number of launches, seen on the host: the learner as
//! it works on a device, with libtorch's operators counted.

use super::*;
use crate::learner::policy::StdType;
use ostler_machine::torch::{Operators, watched};
use ostler_sim::device::Traffic;

/// A learner as on a device; its rollouts have 8 steps of 6 environments.
fn learner(config: &PpoConfig, action: ActionSpace, std_type: StdType) -> (Ppo, Rollout) {
    let spec = spec(5, Some(7), action, 6);
    let (actor, critic) = small();
    let actor = ActorConfig { obs_normalization: true, std_type, ..actor };
    let critic = CriticConfig { obs_normalization: true, ..critic };
    let mut ppo = Ppo::new(config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
    on(&mut ppo, false);
    let r = rollout(ppo.policy_mut(), &spec, 8, 1);
    (ppo, r)
}

fn update(ppo: &mut Ppo, r: &Rollout) -> Operators {
    let (stats, operators) = watched(|| ppo.update(r)).unwrap();
    let stats = stats.unwrap();
    assert_eq!(stats.skipped, 0);
    operators
}

fn configs() -> Vec<PpoConfig> {
    let plain = PpoConfig { num_learning_epochs: 5, ..plain() };
    vec![
        plain.clone(),
        PpoConfig {
            normalize_returns: true,
            normalize_advantage: AdvantageNorm::MiniBatch,
            value_loss: ValueLoss::Huber,
            ..plain
        },
    ]
}

const KINDS: [(ActionSpace, StdType); 3] = [
    (ActionSpace::Continuous(2), StdType::Scalar),
    (ActionSpace::Continuous(2), StdType::StateDependent),
    (ActionSpace::Discrete(3), StdType::Scalar),
];

#[test]
fn an_update_reads_nothing_back_but_its_statistics_at_the_end() {
    for config in configs() {
        for (action, std_type) in KINDS {
            let (mut ppo, r) = learner(&config, action, std_type);
            let operators = update(&mut ppo, &r);
            // Its end copies one tensor to the host as a whole: no element is read.
            assert_eq!(operators.read_back(), [""; 0], "{operators:?}");
            assert!(operators.of("aten::addmm") > 100, "{operators:?}");
        }
    }
}

#[test]
fn nothing_crosses_in_an_update_but_its_statistics_back() {
    let expected = Traffic { uploads: 0, downloads: 1, waits: 1, launches: 0 };
    for (action, std_type) in KINDS {
        let (mut ppo, r) = learner(&configs()[1], action, std_type);
        for _ in 0..3 {
            assert_eq!(ppo.update(&r).unwrap().traffic, expected);
        }
        on(&mut ppo, true);
        assert_eq!(ppo.update(&r).unwrap().traffic, Traffic::default());
    }
}

#[test]
fn a_step_and_a_minibatch_are_so_many_launches_whatever_their_size() {
    // Bounds that a change has to move on purpose. The kernels of ours, three a minibatch, are
    // not among libtorch's operators.
    for ((action, std_type), (most_per_step, most_per_minibatch)) in
        KINDS.into_iter().zip([(11, 32), (13, 43), (15, 30)])
    {
        let (mut ppo, r) = learner(&PpoConfig::default(), action, std_type);
        let (width, _) = ppo.policy().noise();
        let noise = Tensor::full([6, width], 0.3, (Kind::Float, Device::Cpu));
        let act = ostler_collector::Act {
            action: &r.action.get(0),
            dist: &r.dist.get(0),
            std: &r.std.get(0),
            hidden: None,
        };
        let obs = r.obs.policy.get(0);
        let policy = ppo.policy_mut();
        let (acted, step) = watched(|| policy.act(&obs, &noise, &act)).unwrap();
        acted.unwrap();
        assert_eq!(step.read_back(), [""; 0], "{step:?}");

        let of = |epochs: usize| {
            let config = PpoConfig { num_learning_epochs: epochs, ..PpoConfig::default() };
            let (mut ppo, r) = learner(&config, action, std_type);
            update(&mut ppo, &r).launches
        };
        let parts = PpoConfig::default().num_mini_batches as u64;
        let (one, two, three) = (of(1), of(2), of(3));
        assert_eq!(two - one, three - two);
        assert_eq!((two - one) % parts, 0);
        let (step, minibatch) = (step.launches, (two - one) / parts);
        println!(
            "{action:?}, {std_type:?}: {step} launches per step, {minibatch} per minibatch, {} around them per update",
            one - minibatch * parts
        );
        assert!(step <= most_per_step, "{step} launches per step");
        assert!(minibatch <= most_per_minibatch, "{minibatch} launches per minibatch");
    }
}
