//! What a batch keeps beside its environments: ages and returns of episodes, room for last
//! observations, statistics, the keys of random numbers.

use super::{Draws, Sizes};
use ostler_sim::env::{Break, EnvSpec, Finished};
use ostler_sim::memory::MemoryError;
use ostler_sim::physics::{SnapshotError, fault};
use ostler_sim::{EpisodeStats, Groups, StepOut};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Breaks that are described in statistics.
const DESCRIBED: usize = 8;
/// Names of terminations: [`End`] in its order.
const ENDS: [&str; 2] = ["time_out", "terminated"];

/// The episode of one environment.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Episode {
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

/// How an episode ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is cut short: the value of what follows counts.
    Truncated,
    /// The task is over.
    Terminated,
}

/// A kind of break.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cause {
    /// As [`EnvSpec::cause_names`] has it.
    pub name: &'static str,
    /// A bit of [`ostler_sim::physics::fault`].
    pub fault: u32,
}

/// Where a number was not finite: the first causes of every batch.
pub(crate) const NUMBERS: [Cause; 3] = [
    Cause { name: "nan/action", fault: fault::CONTROL },
    Cause { name: "nan/observation", fault: fault::TASK },
    Cause { name: "nan/reward", fault: fault::TASK },
];
pub(crate) const ACTION: usize = 0;
pub(crate) const OBSERVATION: usize = 1;
pub(crate) const REWARD: usize = 2;

/// The episodes of a batch.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub spec: EnvSpec,
    pub seed: u64,
    /// The first environment's number in the batch that these are a part of.
    pub first: u32,
    causes: &'static [Cause],
    episodes: Vec<Episode>,
    /// Truncations of each environment in the rollout.
    truncations: Vec<usize>,
    /// Control steps of the rollout.
    step: u32,
    /// Steps and resets of the batch.
    clock: u64,
    stats: EpisodeStats,
}

/// A ledger in a snapshot.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    seed: u64,
    clock: u64,
    step: u32,
    pub episodes: Vec<Episode>,
    truncations: Vec<usize>,
}

impl Record {
    /// Why it cannot be used; of so many environments, of `seed`.
    pub(crate) fn unfit(&self, seed: u64, envs: usize) -> Option<String> {
        if self.episodes.len() != envs || self.truncations.len() != envs {
            return Some("its lists differ in length".into());
        }
        (self.seed != seed).then(|| format!("it is of seed {}, not of {seed}", self.seed))
    }

    /// That of the whole batch, of its parts in their order.
    ///
    /// # Errors
    /// They are not of one batch at one time.
    pub(crate) fn join(parts: impl IntoIterator<Item = Self>) -> Result<Self, SnapshotError> {
        let unfit = |why: &str| SnapshotError::Unfit(why.into());
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or_else(|| unfit("of no environments"))?;
        for part in parts {
            if (part.seed, part.clock, part.step) != (all.seed, all.clock, all.step) {
                return Err(unfit("not parts of one batch at one time"));
            }
            all.episodes.extend(part.episodes);
            all.truncations.extend(part.truncations);
        }
        Ok(all)
    }
}

impl Ledger {
    /// Of `n` environments that break for `causes`. An episode may be truncated after
    /// `least` steps.
    pub(crate) fn new(
        sizes: Sizes,
        n: usize,
        seed: u64,
        causes: &'static [Cause],
        least: u32,
    ) -> Result<Self, MemoryError> {
        let spec = EnvSpec {
            min_truncation_steps: least.max(1),
            termination_names: ENDS.map(String::from).to_vec(),
            cause_names: causes.iter().map(|c| c.name.to_string()).collect(),
            ..EnvSpec::plain(
                n,
                Groups { policy: sizes.obs, critic: None },
                sizes.action,
                sizes.step_dt,
                sizes.episode_steps.max(1),
            )
        };
        Ok(Self {
            stats: EpisodeStats::with_room(&spec)?,
            episodes: vec![Episode::default(); n],
            truncations: vec![0; n],
            step: 0,
            clock: 0,
            spec,
            seed,
            first: 0,
            causes,
        })
    }

    /// Random numbers for the next reset or step of an environment.
    pub(crate) fn draws(&mut self, env: usize) -> Draws {
        let moment = &mut self.episodes[env].moment;
        *moment += 1;
        Draws::new(self.seed, self.first + env as u32, *moment)
    }

    /// Begins an episode, at a random age if `spread`; the draws of its start.
    pub(crate) fn begin(&mut self, env: usize, spread: bool) -> Draws {
        let mut draws = self.draws(env);
        let age = match spread {
            true => draws.below(self.spec.max_episode_steps),
            false => 0,
        };
        self.episodes[env] =
            Episode { moment: self.episodes[env].moment, age, cut: age > 0, ..Episode::default() };
        draws
    }

    /// Whether the next step is the last one before the time-out.
    pub(crate) fn is_last(&self, env: usize) -> bool {
        self.episodes[env].age + 1 >= self.spec.max_episode_steps
    }

    /// Before all environments begin anew.
    pub(crate) fn reset(&mut self) {
        self.clock += 1;
        self.begin_rollout();
    }

    pub(crate) fn begin_rollout(&mut self) {
        self.truncations.fill(0);
        self.step = 0;
    }

    /// Before a step of all environments.
    pub(crate) fn begin_step(&mut self) {
        self.clock += 1;
    }

    /// After it.
    pub(crate) fn end_step(&mut self) {
        self.step += 1;
        self.stats.forget_old();
    }

    /// A step in which nothing went wrong; what was seen after it stands in `out.obs`.
    pub(crate) fn count(
        &mut self,
        env: usize,
        reward: f32,
        end: Option<End>,
        out: &mut StepOut<'_>,
    ) {
        let episode = &mut self.episodes[env];
        episode.age += 1;
        episode.length += 1;
        episode.ret += reward;
        out.reward[env] = reward;
        out.terminated[env] = f32::from(u8::from(end == Some(End::Terminated)));
        out.truncated[env] = f32::from(u8::from(end == Some(End::Truncated)));
        out.valid[env] = 1.0;
        out.final_slot[env] = -1;
        match end {
            None => {}
            Some(End::Terminated) => self.ended(env, 1),
            Some(End::Truncated) => {
                self.keep_last(env, out);
                self.ended(env, 0);
            }
        }
    }

    /// A step of an environment that broke, for a cause of this index; `value`: the number
    /// that was wrong, if it was one.
    pub(crate) fn broke(&mut self, env: usize, cause: usize, value: f32, out: &mut StepOut<'_>) {
        for column in [&mut out.reward, &mut out.terminated, &mut out.truncated] {
            column[env] = 0.0;
        }
        out.valid[env] = 0.0;
        out.final_slot[env] = -1;
        let bit = self.causes[cause].fault.trailing_zeros() as usize;
        self.stats.faults[bit] += 1;
        self.stats.causes[cause] += 1;
        if self.stats.breaks.len() < DESCRIBED {
            self.stats.breaks.push(Break {
                env: env as u32,
                clock: self.clock,
                step: self.step,
                age: self.episodes[env].length + 1,
                cause: cause as u32,
                value,
            });
        }
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
        stats.finished.push(Finished {
            env: env as u32,
            step: self.step,
            ret: episode.ret,
            length: episode.length,
        });
    }

    /// The last observation of an episode that was cut short, for its value.
    fn keep_last(&mut self, env: usize, out: &mut StepOut<'_>) {
        let k = self.truncations[env];
        let width = self.spec.obs.policy;
        let obs = &out.obs.policy[env * width..][..width];
        let row = (k * self.spec.num_envs + env) * width;
        match out.final_obs.policy.get_mut(row..row + width) {
            Some(place) => {
                place.copy_from_slice(obs);
                out.final_slot[env] = k as i32;
                self.truncations[env] += 1;
            }
            None => self.stats.final_overflow += 1,
        }
    }

    pub(crate) fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.stats.take_into(into);
    }

    pub(crate) fn record(&self) -> Record {
        Record {
            seed: self.seed,
            clock: self.clock,
            step: self.step,
            episodes: self.episodes.clone(),
            truncations: self.truncations.clone(),
        }
    }

    /// Which environments of a record of the whole batch are these, as far as it has them.
    pub(crate) fn part(&self, record: &Record) -> Range<usize> {
        let all = record.episodes.len();
        let first = all.min(self.first as usize);
        first..all.min(first + self.episodes.len())
    }

    /// Goes on with these episodes of a record.
    pub(crate) fn take_over(&mut self, record: &Record, part: Range<usize>) {
        self.episodes[..part.len()].copy_from_slice(&record.episodes[part.clone()]);
        self.truncations[..part.len()].copy_from_slice(&record.truncations[part]);
        self.clock = record.clock;
        self.step = record.step;
    }
}
