use super::*;
use crate::env::Environments;
use ostler_sim::{EpisodeStats, Groups, StepOut};

/// Counts its steps; the observation is `[steps, last action]`. An action above 5 ends the
/// task, 3 makes the observation infinite, 4 the reward NaN.
#[derive(Debug, Default)]
struct Counter {
    steps: f32,
    start: f32,
}

impl CustomEnv for Counter {
    fn reset(&mut self, draws: &mut Draws, obs: &mut [f32]) {
        self.steps = 0.0;
        self.start = draws.uniform(0.0, 1.0);
        obs.copy_from_slice(&[0.0, self.start]);
    }
    fn step(&mut self, action: &[f32], _: &mut Draws, obs: &mut [f32]) -> Outcome {
        self.steps += 1.0;
        let bad = action[0] == 3.0;
        obs.copy_from_slice(&[self.steps, if bad { f32::INFINITY } else { action[0] }]);
        Outcome {
            reward: if action[0] == 4.0 { f32::NAN } else { 2.0 },
            terminated: action[0] > 5.0,
        }
    }
    fn save(&self, out: &mut Vec<u8>) {
        out.extend(self.steps.to_le_bytes());
        out.extend(self.start.to_le_bytes());
    }
    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (&[steps, start], []) = bytes.as_chunks::<4>() else {
            return Err("two numbers expected".into());
        };
        (self.steps, self.start) = (f32::from_le_bytes(steps), f32::from_le_bytes(start));
        Ok(())
    }
}

const N: usize = 3;
const LIMIT: u32 = 4;

fn sizes() -> Sizes {
    Sizes { obs: 2, action: ActionSpace::Continuous(1), step_dt: 0.1, episode_steps: LIMIT }
}

fn batch(n: usize, seed: u64) -> CustomEnvs<Counter> {
    CustomEnvs::new(sizes(), (0..n).map(|_| Counter::default()), seed).unwrap()
}

/// A batch with the buffers of its steps, room for one truncation of each environment.
struct Ran {
    envs: CustomEnvs<Counter>,
    obs: Vec<f32>,
    last: Vec<f32>,
    /// Reward, terminated, truncated, valid.
    columns: [Vec<f32>; 4],
    slot: Vec<i32>,
}

impl Ran {
    fn new(envs: CustomEnvs<Counter>) -> Self {
        let n = envs.spec().num_envs;
        let mut ran = Self {
            envs,
            obs: vec![0.0; 2 * n],
            last: vec![-1.0; 2 * n],
            columns: [0; 4].map(|_| vec![9.0; n]),
            slot: vec![9; n],
        };
        let mut groups = Groups { policy: ran.obs.as_mut_slice(), critic: None };
        ran.envs.reset(false, &mut groups).unwrap();
        ran
    }

    fn step(&mut self, actions: &[f32]) {
        let [reward, terminated, truncated, valid] = &mut self.columns;
        let groups = |policy| Groups { policy, critic: None };
        let stepped = self.envs.step(
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
        );
        stepped.unwrap();
    }

    fn stats(&mut self) -> EpisodeStats {
        let mut stats = EpisodeStats::default();
        self.envs.take_stats(&mut stats);
        stats
    }
}

#[test]
fn an_end_starts_anew_in_the_same_step() {
    let mut ran = Ran::new(batch(N, 1));
    ran.step(&[1.0, 6.0, 1.0]);
    let [reward, terminated, truncated, valid] = &ran.columns;
    assert_eq!(reward, &[2.0; N]);
    assert_eq!(terminated, &[0.0, 1.0, 0.0]);
    assert_eq!(truncated, &[0.0; N]);
    assert_eq!(valid, &[1.0; N]);
    assert_eq!(ran.obs[0..2], [1.0, 1.0]);
    assert_eq!(ran.obs[2], 0.0, "the first observation of the next episode");
    let stats = ran.stats();
    assert_eq!((stats.episodes, stats.return_sum), (1, 2.0));
    assert_eq!(stats.terminations, [0, 1]);
    assert_eq!(ran.stats().episodes, 0, "they were taken");
}

#[test]
fn a_time_out_keeps_the_last_observation() {
    let mut ran = Ran::new(batch(N, 1));
    for _ in 0..LIMIT {
        ran.step(&[1.0; N]);
    }
    assert_eq!(ran.columns[1], [0.0; N]);
    assert_eq!(ran.columns[2], [1.0; N]);
    assert_eq!(ran.slot, [0; N]);
    assert_eq!(ran.last, [4.0, 1.0].repeat(N));
    // A second time in the same rollout there is no room.
    for _ in 0..LIMIT {
        ran.step(&[1.0; N]);
    }
    assert_eq!(ran.slot, [-1; N]);
    let stats = ran.stats();
    assert_eq!(stats.final_overflow, N as u64);
    assert_eq!(stats.terminations, [2 * N as u64, 0]);
    ran.envs.begin_rollout();
    for _ in 0..LIMIT {
        ran.step(&[1.0; N]);
    }
    assert_eq!(ran.slot, [0; N]);
}

#[test]
fn numbers_that_are_not_finite_mask_their_environment() {
    for (cause, action, bit) in [(0, f32::NAN, 3), (1, 3.0, 5), (2, 4.0, 5)] {
        let mut ran = Ran::new(batch(N, 1));
        ran.step(&[1.0, action, 1.0]);
        let [reward, terminated, truncated, valid] = &ran.columns;
        assert_eq!(reward, &[2.0, 0.0, 2.0]);
        assert_eq!([terminated, truncated], [&[0.0; N]; 2]);
        assert_eq!(valid, &[1.0, 0.0, 1.0]);
        assert!(ran.obs.iter().all(|x| x.is_finite()));
        assert_eq!(ran.obs[2], 0.0, "it began anew");
        let stats = ran.stats();
        assert_eq!((stats.broken(), stats.episodes), (1, 0));
        assert_eq!(stats.causes[cause], 1);
        assert_eq!(stats.faults[bit], 1);
        assert_eq!(stats.breaks[0].env, 1);
    }
}

#[test]
fn draws_depend_on_seed_and_environment_alone() {
    let starts = |n, seed| Ran::new(batch(n, seed)).obs;
    assert_eq!(starts(N, 1), starts(8, 1)[..2 * N]);
    assert_ne!(starts(N, 1), starts(N, 2));
    let all = starts(64, 1);
    let mut starts: Vec<f32> = all.chunks(2).map(|row| row[1]).collect();
    starts.sort_by(f32::total_cmp);
    starts.dedup();
    assert_eq!(starts.len(), 64);
}

#[test]
fn a_snapshot_goes_on_with_the_same_bits_in_any_number() {
    let mut ran = Ran::new(batch(N, 1));
    ran.step(&[1.0; N]);
    let mut bytes = Vec::new();
    ran.envs.capture(&mut bytes).unwrap();
    let run = |ran: &mut Ran| {
        let mut seen = Vec::new();
        for _ in 0..6 {
            ran.step(&vec![1.0; ran.envs.spec().num_envs]);
            seen.push(ran.obs[..2 * N].to_vec());
        }
        seen
    };
    let expected = run(&mut ran);
    ran.envs.restore(&bytes).unwrap();
    assert_eq!(run(&mut ran), expected);

    let mut larger = Ran::new(batch(5, 1));
    let mut obs = larger.obs.clone();
    let mut groups = Groups { policy: obs.as_mut_slice(), critic: None };
    let taken = larger.envs.restore_range(&bytes, false, &mut groups);
    assert_eq!(taken, Ok(N));
    assert_eq!(run(&mut larger), expected);
}

#[test]
fn parts_of_a_batch_are_the_batch() {
    let part = |n: usize, first: u32| {
        let mut envs = batch(n, 1);
        assert!(envs.set_first(first));
        Ran::new(envs)
    };
    let mut whole = Ran::new(batch(5, 1));
    let mut parts = [part(2, 0), part(3, 2)];
    let seen = |parts: &[Ran; 2]| parts.iter().flat_map(|p| p.obs.clone()).collect::<Vec<f32>>();
    // Starts are drawn.
    assert_eq!(seen(&parts), whole.obs);
    let actions = [0.5, 6.0, -0.5, 6.0, 0.0];
    for _ in 0..3 {
        whole.step(&actions);
        parts[0].step(&actions[..2]);
        parts[1].step(&actions[2..]);
    }
    assert_eq!(seen(&parts), whole.obs);
    let captured = |ran: &Ran| {
        let mut bytes = Vec::new();
        ran.envs.capture(&mut bytes).unwrap();
        bytes
    };
    let [all, first, second] = [&whole, &parts[0], &parts[1]].map(captured);
    let mut joined = Vec::new();
    join(&[&first, &second], &mut joined).unwrap();
    assert_eq!(joined, all);
    // Each finds its own in it; further ones begin.
    for (n, taken) in [(2, 2), (4, 3)] {
        let mut other = part(n, 2);
        let mut obs = other.obs.clone();
        let mut groups = Groups { policy: obs.as_mut_slice(), critic: None };
        assert_eq!(other.envs.restore_range(&all, false, &mut groups), Ok(taken));
        for (own, of) in other.envs.envs()[..taken].iter().zip(&whole.envs.envs()[2..]) {
            assert_eq!((own.steps, own.start), (of.steps, of.start));
        }
    }
    parts[1].step(&actions[2..]);
    assert!(join(&[&first, &captured(&parts[1])], &mut joined).is_err(), "of two moments");
}

#[test]
fn snapshots_that_do_not_fit_change_nothing() {
    let mut ran = Ran::new(batch(N, 1));
    let mut bytes = Vec::new();
    ran.envs.capture(&mut bytes).unwrap();
    let before: Vec<f32> = ran.envs.envs().iter().map(|e| e.start).collect();
    let mut other = Ran::new(batch(N, 2));
    let refused = other.envs.restore(&bytes).unwrap_err().to_string();
    assert!(refused.contains("seed 1"), "{refused}");
    let mut more = Ran::new(batch(N + 1, 1));
    let refused = more.envs.restore(&bytes).unwrap_err().to_string();
    assert!(refused.contains("3 environments, not of 4"), "{refused}");
    for end in 0..bytes.len() {
        assert!(ran.envs.restore(&bytes[..end]).is_err(), "{end}");
    }
    let after: Vec<f32> = ran.envs.envs().iter().map(|e| e.start).collect();
    assert_eq!(before, after);
}
