//! The batch alone, with environments of `worlds.py`.

use crate::common::root;
use crate::support::referee::referee_python;
use ostler_collector::CollectError;
use ostler_collector::env::Environments;
use ostler_collector::gymnasium::{GymEnvs, GymnasiumConfig};
use ostler_sim::config::Auto;
use ostler_sim::env::ActionSpace;
use ostler_sim::{EpisodeStats, Groups, StepOut};

const N: usize = 4;
const LIMIT: u32 = 8;
const OBS: usize = 3;

/// Environments of a function of `worlds.py`; the keyword arguments as TOML.
fn config(function: &str, kwargs: &str) -> Option<GymnasiumConfig> {
    let python = referee_python()?;
    let config = GymnasiumConfig {
        env: format!("worlds.py:{function}"),
        kwargs: toml::from_str(kwargs).unwrap(),
        max_episode_steps: LIMIT,
        python: python.display().to_string(),
        workers: Auto::N(2),
        timeout_s: 20.0,
    };
    let folder = root().join("tests/learn/gymnasium");
    Some(config.located(&folder).unwrap())
}

/// A batch with the buffers of its steps.
struct Ran {
    envs: GymEnvs,
    obs: Vec<f32>,
    last: Vec<f32>,
    /// Reward, terminated, truncated, valid.
    columns: [Vec<f32>; 4],
    slot: Vec<i32>,
}

impl Ran {
    fn new(config: &GymnasiumConfig, seed: u64) -> Self {
        let mut ran = Self {
            envs: GymEnvs::new(config, N, seed).unwrap(),
            obs: vec![9.0; N * OBS],
            last: vec![-1.0; 2 * N * OBS],
            columns: [0; 4].map(|_| vec![9.0; N]),
            slot: vec![9; N],
        };
        ran.reset(false);
        ran
    }

    fn reset(&mut self, spread: bool) {
        let mut groups = Groups { policy: self.obs.as_mut_slice(), critic: None };
        self.envs.reset(spread, &mut groups).unwrap();
    }

    fn step(&mut self, actions: &[f32]) {
        self.try_step(actions).unwrap();
    }

    fn try_step(&mut self, actions: &[f32]) -> Result<(), CollectError> {
        let [reward, terminated, truncated, valid] = &mut self.columns;
        let groups = |policy| Groups { policy, critic: None };
        self.envs.step(
            actions,
            &mut StepOut {
                obs: groups(self.obs.as_mut_slice()),
                reward,
                terminated,
                truncated,
                valid,
                final_obs: groups(self.last.as_mut_slice()),
                final_slot: &mut self.slot,
            },
        )
    }

    fn row(&self, env: usize) -> &[f32] {
        &self.obs[env * OBS..(env + 1) * OBS]
    }

    fn stats(&mut self) -> EpisodeStats {
        let mut stats = EpisodeStats::default();
        self.envs.take_stats(&mut stats);
        stats
    }

    /// How often environments broke, by name.
    fn causes(&mut self) -> Vec<(String, u64)> {
        let stats = self.stats();
        let names = self.envs.spec().cause_names.clone();
        names.into_iter().zip(stats.causes).filter(|(_, n)| *n > 0).collect()
    }
}

#[test]
fn actions_reach_their_environment_and_episodes_end_as_gymnasium_says() {
    let Some(config) = config("make", "") else {
        return;
    };
    let mut ran = Ran::new(&config, 1);
    let spec = ran.envs.spec().clone();
    assert_eq!(ran.envs.workers(), 2);
    assert_eq!((spec.num_envs, spec.obs.policy), (N, OBS));
    assert_eq!(spec.action, ActionSpace::Continuous(1));
    assert_eq!(spec.max_episode_steps, LIMIT);
    // -1..1 is the whole range, 0..10; beyond it stands the end.
    ran.step(&[-1.0, 0.0, 0.5, 7.0]);
    for (env, action) in [0.0, 5.0, 7.5, 10.0].into_iter().enumerate() {
        assert_eq!(ran.row(env), [1.0, action, 0.0]);
    }
    for _ in 1..LIMIT - 1 {
        ran.step(&[0.0; N]);
        assert_eq!(ran.columns[2], [0.0; N]);
    }
    assert_eq!(ran.row(0), [7.0, 5.0, 1.0]);
    ran.step(&[0.0; N]);
    assert_eq!(ran.columns, [[1.0; N], [0.0; N], [1.0; N], [1.0; N]]);
    assert_eq!(ran.slot, [0; N]);
    assert_eq!(ran.last[..OBS], [8.0, 5.0, 1.0], "what the cut one saw last");
    assert_eq!(ran.row(3), [0.0; OBS], "the next episode has begun");
    let stats = ran.stats();
    assert_eq!((stats.episodes, stats.return_sum), (4, 32.0));
    assert_eq!(stats.terminations, [4, 0]);
}

#[test]
fn choices_and_ends_of_the_task() {
    let Some(config) = config("make", "discrete = true\nends = 2") else {
        return;
    };
    let mut ran = Ran::new(&config, 1);
    assert_eq!(ran.envs.spec().action, ActionSpace::Discrete(3));
    ran.step(&[0.0, 1.0, 2.0, 2.0]);
    for (env, action) in [5.0, 6.0, 7.0, 7.0].into_iter().enumerate() {
        assert_eq!(ran.row(env), [1.0, action, 0.0]);
    }
    ran.step(&[0.0; N]);
    assert_eq!(ran.columns[1], [1.0; N]);
    assert_eq!(ran.slot, [-1; N]);
    assert_eq!(ran.stats().terminations, [0, 4]);
}

#[test]
fn what_breaks_is_masked_counted_and_begins_anew() {
    for (fails, cause) in [
        ("raise", "python/raised"),
        ("leave", "python/raised"),
        ("nan", "nan/observation"),
        ("reward", "nan/reward"),
    ] {
        let Some(config) = config("make", &format!("fails = \"{fails}\"")) else {
            return;
        };
        let mut ran = Ran::new(&config, 1);
        let mut broke = 0;
        for t in 1..=20 {
            ran.step(&[0.0; N]);
            for env in 0..N {
                if ran.columns[3][env] == 0.0 {
                    broke += 1;
                    assert_eq!(ran.row(env), [0.0; OBS], "{fails} {t}");
                    assert_eq!(ran.columns[0][env], 0.0);
                }
            }
            assert!(ran.obs.iter().all(|x| x.is_finite()));
        }
        assert!(broke > 4, "{fails}: {broke}");
        assert_eq!(ran.causes(), [(cause.to_string(), broke)], "{fails}");
    }
}

#[test]
fn an_action_that_is_no_number_costs_one_environment_a_step() {
    let Some(config) = config("make", "") else {
        return;
    };
    let mut ran = Ran::new(&config, 1);
    ran.step(&[0.0; N]);
    ran.step(&[0.0, f32::NAN, 0.0, f32::INFINITY]);
    assert_eq!(ran.columns[3], [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(ran.row(0)[0], 2.0);
    assert_eq!(ran.row(1), [0.0; OBS]);
    assert_eq!(ran.causes(), [("nan/action".to_string(), 2)]);
}

#[test]
fn a_process_that_dies_or_hangs_is_started_anew() {
    for fails in ["exit", "hang"] {
        let folder = tempfile::tempdir().unwrap();
        let once = folder.path().join("once");
        let kwargs = format!("fails = \"{fails}\"\nonce = \"{}\"", once.display());
        let Some(mut config) = config("make", &kwargs) else {
            return;
        };
        config.timeout_s = if fails == "hang" { 2.0 } else { 20.0 };
        let mut ran = Ran::new(&config, 1);
        let mut broken = Vec::new();
        for _ in 0..12 {
            ran.step(&[0.0; N]);
            broken.extend((0..N).filter(|e| ran.columns[3][*e] == 0.0));
        }
        // All environments of one process, once.
        assert!(
            broken == [0, 1] || broken == [2, 3],
            "{fails}: {broken:?}; a seed that is even is needed"
        );
        assert_eq!(ran.causes(), [("python/process".to_string(), 2)]);
        let (gone, other) = (broken[0], (broken[0] + 2) % N);
        assert!(ran.row(gone)[0] > 0.0, "it goes on");
        assert!(ran.row(other)[0] > 0.0);
    }
}

#[test]
fn a_process_that_dies_again_and_again_is_given_up() {
    let Some(config) = config("make", "fails = \"exit\"\nat = 1") else {
        return;
    };
    let mut ran = Ran::new(&config, 1);
    let mut failed = None;
    for _ in 0..100 {
        if let Err(e) = ran.try_step(&[0.0; N]) {
            failed = Some(e.to_string());
            break;
        }
        ran.envs.begin_rollout();
    }
    let failed = failed.unwrap();
    assert!(failed.contains("was started anew 3 times"), "{failed}");
    assert!(failed.contains("exit status: 3"), "{failed}");
}

#[test]
fn starts_are_those_of_the_seed_and_go_on_after_a_restore() {
    // Which environments break says which seeds they got.
    let Some(config) = config("make", "fails = \"nan\"\nat = 1") else {
        return;
    };
    let valid = |ran: &mut Ran, steps: usize| -> Vec<f32> {
        let step = |_| {
            ran.envs.begin_rollout();
            ran.step(&[0.0; N]);
            ran.columns[3].clone()
        };
        (0..steps).flat_map(step).collect()
    };
    let (mut a, mut b) = (Ran::new(&config, 5), Ran::new(&config, 5));
    let first = valid(&mut a, 40);
    assert_eq!(first, valid(&mut b, 40));
    assert!(first.contains(&0.0) && first.contains(&1.0));
    assert_ne!(first, valid(&mut Ran::new(&config, 6), 40));
    let mut bytes = Vec::new();
    a.envs.capture(&mut bytes).unwrap();
    assert!(!a.envs.keeps_state());
    let begin = |ran: &mut Ran| {
        let mut obs = vec![9.0; N * OBS];
        let mut groups = Groups { policy: obs.as_mut_slice(), critic: None };
        let taken = ran.envs.restore_range(&bytes, false, &mut groups).unwrap();
        assert_eq!(taken, 0, "none goes on");
        assert_eq!(obs, [0.0; N * OBS]);
        valid(ran, 20)
    };
    let mut c = Ran::new(&config, 5);
    assert_eq!(begin(&mut a), begin(&mut c));
    assert!(a.envs.restore(&bytes[1..]).is_err());
    assert!(Ran::new(&config, 6).envs.restore(&bytes).is_err());
}

#[test]
fn what_cannot_be_used_is_named() {
    for (function, kwargs, words) in [
        ("none", "", "has no `none`"),
        ("grid", "", "neither numbers (Box) nor choices (Discrete)"),
        ("broken", "", "no licence for this engine"),
        ("make", "speed = 3", "unexpected keyword argument 'speed'"),
    ] {
        let Some(config) = config(function, kwargs) else {
            return;
        };
        let e = GymEnvs::new(&config, N, 1).unwrap_err().to_string();
        assert!(e.contains(words), "{function}: {e}");
    }
    let Some(never) = config("make", "fails = \"begin\"") else {
        return;
    };
    let mut envs = GymEnvs::new(&never, N, 1).unwrap();
    let mut obs = vec![0.0; N * OBS];
    let mut groups = Groups { policy: obs.as_mut_slice(), critic: None };
    let e = envs.reset(false, &mut groups).unwrap_err().to_string();
    assert!(e.contains("LookupError: no starting position"), "{e}");
    let Some(config) = config("make", "") else {
        return;
    };
    let endless = GymnasiumConfig { max_episode_steps: 0, ..config.clone() };
    let e = GymEnvs::new(&endless, N, 1).unwrap_err().to_string();
    assert!(e.contains("gymnasium.max_episode_steps gives it one"), "{e}");
    let nowhere = GymnasiumConfig { python: "no-such-python".into(), ..config.clone() };
    let e = GymEnvs::new(&nowhere, N, 1).unwrap_err().to_string();
    assert!(e.contains("cannot start no-such-python"), "{e}");
    // Something else than a Python.
    let talker = GymnasiumConfig { python: "echo".into(), ..config };
    let e = GymEnvs::new(&talker, N, 1).unwrap_err().to_string();
    assert!(e.contains("makes no sense") || e.contains("ended"), "{e}");
}
