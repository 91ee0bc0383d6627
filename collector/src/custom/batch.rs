//! A batch of custom environments.

use super::{CustomEnv, Draws, Sizes};
use crate::env::Environments;
use ostler_sim::env::{Break, EnvSpec, Finished};
use ostler_sim::memory::MemoryError;
use ostler_sim::physics::{SnapshotError, fault};
use ostler_sim::snapshot::{self, Bytes};
use ostler_sim::{EpisodeStats, Groups, StepOut};
use serde::{Deserialize, Serialize};

/// Whose snapshots these are.
const OF: &str = "custom environments";
/// Causes of breaks, in the order of [`Cause`].
const CAUSES: [&str; 3] = ["nan/action", "nan/observation", "nan/reward"];
/// Breaks that are described in statistics.
const DESCRIBED: usize = 8;

/// Where a number was not finite.
#[derive(Clone, Copy)]
enum Cause {
    Action,
    Observation,
    Reward,
}

/// The episode of one environment.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Episode {
    /// Resets and steps so far: keys the draws.
    moment: u64,
    /// Control steps of the episode, as the time-out counts them.
    age: u32,
    /// Control steps that were made: fewer, where it began at a random age.
    length: u32,
    /// Sum of rewards.
    ret: f32,
    /// It began at an age above 0, so that its return says nothing.
    cut: bool,
}

/// N custom environments, stepped one after the other in the caller's thread.
#[derive(Debug)]
pub struct CustomEnvs<E> {
    spec: EnvSpec,
    seed: u64,
    envs: Vec<E>,
    episodes: Vec<Episode>,
    /// Truncations of each environment in the rollout.
    truncations: Vec<usize>,
    /// Control steps of the rollout.
    step: u32,
    /// Steps and resets of the batch.
    clock: u64,
    stats: EpisodeStats,
}

impl<E: CustomEnv> CustomEnvs<E> {
    /// A batch of these environments. `seed` keys the draws.
    ///
    /// # Errors
    /// There is no memory for its statistics.
    pub fn new(
        sizes: Sizes,
        envs: impl IntoIterator<Item = E>,
        seed: u64,
    ) -> Result<Self, MemoryError> {
        let envs: Vec<E> = envs.into_iter().collect();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let spec = EnvSpec {
            num_envs: envs.len(),
            obs: Groups {
                policy: sizes.obs,
                critic: None,
            },
            critic: None,
            groups: Vec::new(),
            obs_table: Groups {
                policy: Vec::new(),
                critic: None,
            },
            action: sizes.action,
            step_dt: sizes.step_dt,
            max_episode_steps: sizes.episode_steps.max(1),
            min_truncation_steps: sizes.episode_steps.max(1),
            reward_names: Vec::new(),
            metrics: Vec::new(),
            termination_names: names(&["time_out", "terminated"]),
            cause_names: names(&CAUSES),
            events: Vec::new(),
            agents: Vec::new(),
            policy_names: Vec::new(),
        };
        Ok(Self {
            stats: EpisodeStats::with_room(&spec)?,
            episodes: vec![Episode::default(); envs.len()],
            truncations: vec![0; envs.len()],
            step: 0,
            clock: 0,
            spec,
            seed,
            envs,
        })
    }

    /// The environments, in their order.
    pub fn envs(&self) -> &[E] {
        &self.envs
    }

    /// Random numbers for the next reset or step of an environment.
    fn draws(&mut self, env: usize) -> Draws {
        let moment = &mut self.episodes[env].moment;
        *moment += 1;
        Draws::new(self.seed, env as u32, *moment)
    }

    /// Begins an episode, at a random age if `spread`.
    fn begin(&mut self, env: usize, spread: bool, obs: &mut [f32]) {
        let mut draws = self.draws(env);
        let age = match spread {
            true => draws.below(self.spec.max_episode_steps),
            false => 0,
        };
        self.episodes[env] = Episode {
            moment: self.episodes[env].moment,
            age,
            cut: age > 0,
            ..Episode::default()
        };
        self.envs[env].reset(&mut draws, obs);
        // A start that is not finite is met at the first step; nothing that is not is written.
        obs.iter_mut()
            .filter(|x| !x.is_finite())
            .for_each(|x| *x = 0.0);
    }

    /// Counts a break of an environment and begins its next episode.
    fn broken(&mut self, env: usize, cause: Cause, value: f32, obs: &mut [f32]) {
        let (bit, index) = match cause {
            Cause::Action => (fault::CONTROL, 0),
            Cause::Observation => (fault::TASK, 1),
            Cause::Reward => (fault::TASK, 2),
        };
        self.stats.faults[bit.trailing_zeros() as usize] += 1;
        self.stats.causes[index] += 1;
        if self.stats.breaks.len() < DESCRIBED {
            self.stats.breaks.push(Break {
                env: env as u32,
                clock: self.clock,
                step: self.step,
                age: self.episodes[env].length + 1,
                cause: index as u32,
                value,
            });
        }
        self.begin(env, false, obs);
    }

    /// Counts an episode that ended.
    fn ended(&mut self, env: usize, termination: usize) {
        let episode = self.episodes[env];
        if episode.cut {
            return;
        }
        let stats = &mut self.stats;
        stats.episodes += 1;
        stats.return_sum += f64::from(episode.ret);
        stats.length_sum += f64::from(episode.length);
        stats.terminations[termination] += 1;
        if stats.finished.len() < self.spec.num_envs {
            stats.finished.push(Finished {
                env: env as u32,
                step: self.step,
                ret: episode.ret,
                length: episode.length,
            });
        }
    }

    /// A step of one environment; its results go to their places.
    fn step_one(&mut self, env: usize, action: &[f32], out: &mut StepOut<'_>) {
        let width = self.spec.obs.policy;
        let obs = &mut out.obs.policy[env * width..][..width];
        out.reward[env] = 0.0;
        out.terminated[env] = 0.0;
        out.truncated[env] = 0.0;
        out.valid[env] = 0.0;
        out.final_slot[env] = -1;
        if let Some(&x) = action.iter().find(|x| !x.is_finite()) {
            return self.broken(env, Cause::Action, x, obs);
        }
        let mut draws = self.draws(env);
        let outcome = self.envs[env].step(action, &mut draws, obs);
        if let Some(&x) = obs.iter().find(|x| !x.is_finite()) {
            return self.broken(env, Cause::Observation, x, obs);
        }
        if !outcome.reward.is_finite() {
            return self.broken(env, Cause::Reward, outcome.reward, obs);
        }
        let episode = &mut self.episodes[env];
        episode.age += 1;
        episode.length += 1;
        episode.ret += outcome.reward;
        let timed_out = episode.age >= self.spec.max_episode_steps;
        out.reward[env] = outcome.reward;
        out.valid[env] = 1.0;
        if outcome.terminated {
            out.terminated[env] = 1.0;
            self.ended(env, 1);
        } else if timed_out {
            out.truncated[env] = 1.0;
            self.keep_last(env, obs, out.final_obs.policy, &mut out.final_slot[env]);
            self.ended(env, 0);
        }
        if outcome.terminated || timed_out {
            self.begin(env, false, obs);
        }
    }

    /// The last observation of an episode that was cut short, for its value.
    fn keep_last(&mut self, env: usize, obs: &[f32], rows: &mut [f32], slot: &mut i32) {
        let k = self.truncations[env];
        let width = obs.len();
        let row = (k * self.spec.num_envs + env) * width;
        match rows.get_mut(row..row + width) {
            Some(place) => {
                place.copy_from_slice(obs);
                *slot = k as i32;
                self.truncations[env] += 1;
            }
            None => self.stats.final_overflow += 1,
        }
    }
}

/// A snapshot.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    seed: u64,
    clock: u64,
    step: u32,
    episodes: Vec<Episode>,
    truncations: Vec<usize>,
    #[serde(borrow)]
    envs: Vec<Bytes<'a>>,
}

impl<E: CustomEnv> CustomEnvs<E> {
    /// The record of a snapshot of `least` environments or more.
    fn read<'a>(&self, bytes: &'a [u8]) -> Result<Record<'a>, SnapshotError> {
        let (record, rest) = snapshot::read::<Record<'_>>(OF, bytes)?;
        snapshot::end(rest)?;
        let n = record.envs.len();
        if record.episodes.len() != n || record.truncations.len() != n {
            return Err(SnapshotError::Unfit("its lists differ in length".into()));
        }
        if record.seed != self.seed {
            return Err(SnapshotError::Unfit(format!(
                "it is of seed {}, not of {}",
                record.seed, self.seed
            )));
        }
        Ok(record)
    }

    /// Takes over the first environments of a record: all or none.
    fn take_over(&mut self, record: &Record<'_>) -> Result<usize, SnapshotError> {
        let n = record.envs.len().min(self.envs.len());
        let mut before = Vec::new();
        let mut failed = None;
        for (env, bytes) in self.envs.iter_mut().zip(&record.envs) {
            let mut own = Vec::new();
            env.save(&mut own);
            let loaded = env.load(bytes.0);
            before.push(own);
            if let Err(why) = loaded {
                failed = Some(SnapshotError::Unfit(format!(
                    "environment {}: {why}",
                    before.len() - 1
                )));
                break;
            }
        }
        if let Some(e) = failed {
            for (env, own) in self.envs.iter_mut().zip(&before) {
                // What it has just written.
                let _ = env.load(own);
            }
            return Err(e);
        }
        self.episodes[..n].copy_from_slice(&record.episodes[..n]);
        self.truncations[..n].copy_from_slice(&record.truncations[..n]);
        self.clock = record.clock;
        self.step = record.step;
        Ok(n)
    }
}

impl<E: CustomEnv> Environments for CustomEnvs<E> {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) {
        self.clock += 1;
        self.begin_rollout();
        let width = self.spec.obs.policy;
        for env in 0..self.envs.len() {
            self.begin(env, spread, &mut obs.policy[env * width..][..width]);
        }
    }

    fn begin_rollout(&mut self) {
        self.truncations.fill(0);
        self.step = 0;
    }

    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) {
        self.clock += 1;
        let width = self.spec.action.width();
        for env in 0..self.envs.len() {
            self.step_one(env, &actions[env * width..][..width], out);
        }
        self.step += 1;
    }

    fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.stats.take_into(into);
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let mut all = Vec::new();
        let ends: Vec<usize> = self
            .envs
            .iter()
            .map(|env| {
                env.save(&mut all);
                all.len()
            })
            .collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let envs = starts.zip(&ends).map(|(a, &b)| Bytes(&all[a..b]));
        let record = Record {
            seed: self.seed,
            clock: self.clock,
            step: self.step,
            episodes: self.episodes.clone(),
            truncations: self.truncations.clone(),
            envs: envs.collect(),
        };
        snapshot::write(OF, &record, all.len() + 40 * self.envs.len(), out)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let record = self.read(bytes)?;
        if record.envs.len() != self.envs.len() {
            return Err(SnapshotError::Unfit(format!(
                "it is of {} environments, not of {}",
                record.envs.len(),
                self.envs.len()
            )));
        }
        self.take_over(&record).map(drop)
    }

    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        let record = self.read(bytes)?;
        let taken = self.take_over(&record)?;
        let width = self.spec.obs.policy;
        for env in taken..self.envs.len() {
            self.begin(env, spread, &mut obs.policy[env * width..][..width]);
        }
        Ok(taken)
    }
}
