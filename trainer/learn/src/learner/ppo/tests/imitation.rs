//! A teacher's decisions, and a policy that learns to make them.

use super::*;
use ostler_sim::Groups;
use ostler_sim::env::ObsGroup;

/// The same task with a group of `width` observations for a teacher.
pub fn with_group(spec: EnvSpec, width: usize) -> EnvSpec {
    let first = spec.critic.unwrap_or(0);
    EnvSpec {
        obs: Groups { critic: Some(first + width), ..spec.obs },
        groups: vec![ObsGroup { name: "teacher".into(), first, width, table: Vec::new() }],
        ..spec
    }
}

/// A policy that sees so many numbers and does something everywhere.
pub fn teacher(action: ActionSpace, width: usize) -> Box<dyn TrainedPolicy> {
    let (actor, critic) = small();
    let spec = spec(width, None, action, 6);
    let policy = ActorCritic::new(&actor, &critic, &spec, 77, Device::Cpu).unwrap();
    let theta = &mut policy.params.theta.shallow_clone();
    let _no_grad = tch::no_grad_guard();
    *theta += normals(78, &theta.size()) * 0.3;
    Box::new(policy)
}

pub fn config(coef: f64, alone: bool) -> ImitationConfig {
    ImitationConfig { teacher: "somebody".into(), coef, alone, ..ImitationConfig::default() }
}

/// [`super::build`] for a task with a teacher's group, and with a teacher if there is to be
/// one.
pub fn build(ppo: &PpoConfig, action: ActionSpace) -> (Ppo, EnvSpec) {
    let spec = with_group(spec(5, None, action, 6), 4);
    let (actor, critic) = small();
    let actor = ActorConfig { obs_normalization: true, ..actor };
    let critic = CriticConfig { obs_normalization: true, ..critic };
    let mut learner = Ppo::new(ppo, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
    learner.set_teacher(teacher(action, 4)).unwrap();
    (learner, spec)
}

#[test]
fn targets_are_the_teachers_decisions_in_its_own_observations() {
    for action in [ActionSpace::Continuous(2), ActionSpace::Discrete(3)] {
        // Behind what the critic sees, too.
        for critic in [None, Some(3)] {
            let config = PpoConfig { imitation: config(1.0, false), ..PpoConfig::default() };
            let spec = with_group(spec(5, critic, action, 6), 4);
            let (actor, critic_config) = small();
            let ppo = Ppo::new(&config, &actor, &critic_config, &spec, 8, 3, Device::Cpu);
            let mut ppo = ppo.unwrap();
            let r = rollout(ppo.policy_mut(), &spec, 8, 1);
            assert!(ppo.update(&r).is_err(), "nobody teaches yet");
            ppo.set_teacher(teacher(action, 4)).unwrap();
            ppo.prepare(&r).unwrap();
            let Columns { dist, std, .. } = ppo.columns;
            let first = ppo.columns.action + dist + std;
            let targets = ppo.samples.packed.narrow(1, first, dist);
            let all = r.obs.critic.as_ref().unwrap();
            let seen = all.narrow(0, 0, 8).narrow(2, critic.unwrap_or(0) as i64, 4);
            let seen = seen.contiguous().view([48, 4]);
            let mut teacher = teacher(action, 4);
            let wanted = match action {
                ActionSpace::Continuous(n) => {
                    let to = Tensor::zeros([48, n as i64], (Kind::Float, Device::Cpu));
                    teacher.act_mean(&seen, None, &to).unwrap();
                    to
                }
                ActionSpace::Discrete(n) => {
                    let float = |w| Tensor::zeros([48, w], (Kind::Float, Device::Cpu));
                    let [action, dist, std] = [float(1), float(n as i64), float(1)];
                    let noise = float(teacher.noise().0) + 0.3;
                    let out = ostler_collector::Act {
                        action: &action,
                        dist: &dist,
                        std: &std,
                        hidden: None,
                    };
                    teacher.act(&seen, &noise, &out).unwrap();
                    dist
                }
            };
            assert_eq!(bits(&targets.contiguous()), bits(&wanted), "{action:?} {critic:?}");
            // The critic sees its own columns alone.
            let width = critic.unwrap_or(5) as i64;
            let critic_inputs = ppo.samples.x_critic.as_ref();
            assert_eq!(critic_inputs.map_or(5, |x| x.size()[1]), width);
        }
    }
}

#[test]
fn a_policy_learns_what_its_teacher_does() {
    for (action, rnn_type) in [
        (ActionSpace::Continuous(2), RnnType::None),
        (ActionSpace::Discrete(3), RnnType::None),
        (ActionSpace::Continuous(2), RnnType::Gru),
    ] {
        let config = PpoConfig {
            num_mini_batches: 2,
            kl_stop: 0.0,
            schedule: Schedule::Fixed,
            entropy_coef: 0.5, // does not count
            imitation: config(5.0, true),
            ..PpoConfig::default()
        };
        let spec = with_group(spec(4, None, action, 6), 4);
        let (actor, critic) = small();
        let actor = ActorConfig { rnn_type, rnn_hidden_dim: 5, ..actor };
        let mut ppo = Ppo::new(&config, &actor, &critic, &spec, 8, 3, Device::Cpu).unwrap();
        ppo.set_teacher(teacher(action, 4)).unwrap();
        let (mut off, mut spread) = (Vec::new(), Vec::new());
        for i in 0..150 {
            let r = rollout(ppo.policy_mut(), &spec, 8, i);
            spread.push(r.std.numel().gt(&0).then(|| r.std.max().double_value(&[])));
            // The policy sees what the teacher sees.
            r.obs.critic.as_ref().unwrap().shallow_clone().copy_(&r.obs.policy);
            off.push(ppo.update(&r).unwrap().imitation.unwrap());
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&off[..3]), mean(&off[147..]));
        assert!(last < 0.1 * first, "{action:?} {rnn_type:?}: {first} to {last}");
        assert_eq!(spread[0], spread[149], "{action:?} {rnn_type:?}: nothing widens it");
    }
}

#[test]
fn how_much_the_teacher_counts_falls_evenly() {
    let config = ImitationConfig { final_share: 0.25, ..config(2.0, false) };
    let coefs = [1.0, 0.5, 0.0].map(|left| config.coef_at(left));
    assert_eq!(coefs, [2.0, 1.25, 0.5]);
    let wrong = PpoConfig {
        imitation: ImitationConfig { coef: -1.0, final_share: 1.5, ..config },
        ..PpoConfig::default()
    };
    let paths: Vec<String> = wrong.validate().into_iter().map(|e| e.path).collect();
    assert_eq!(paths, ["ppo.imitation.coef", "ppo.imitation.final_share"]);
}
