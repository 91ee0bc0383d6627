//! A batch of custom environments.

use super::ledger::{ACTION, End, Ledger, NUMBERS, OBSERVATION, REWARD, Record};
use super::{CustomEnv, Sizes};
use crate::CollectError;
use crate::env::Environments;
use ostler_sim::env::EnvSpec;
use ostler_sim::memory::MemoryError;
use ostler_sim::physics::SnapshotError;
use ostler_sim::snapshot::{self, Bytes};
use ostler_sim::{EpisodeStats, Groups, StepOut};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Whose snapshots these are.
pub(crate) const OF: &str = "custom environments";

/// N custom environments, stepped one after the other in the caller's thread.
#[derive(Debug)]
pub struct CustomEnvs<E> {
    ledger: Ledger,
    envs: Vec<E>,
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
        let ledger = Ledger::new(sizes, envs.len(), seed, &NUMBERS, sizes.episode_steps)?;
        Ok(Self { ledger, envs })
    }

    /// The environments, in their order.
    pub fn envs(&self) -> &[E] {
        &self.envs
    }

    /// Begins an episode, at a random age if `spread`.
    fn begin(&mut self, env: usize, spread: bool, obs: &mut [f32]) {
        let mut draws = self.ledger.begin(env, spread);
        self.envs[env].reset(&mut draws, obs);
        // A start that is not finite is met at the first step; nothing that is not is written.
        obs.iter_mut().filter(|x| !x.is_finite()).for_each(|x| *x = 0.0);
    }

    /// A step of one environment; its results go to their places.
    fn step_one(&mut self, env: usize, action: &[f32], out: &mut StepOut<'_>) {
        let width = self.ledger.spec.obs.policy;
        let row = env * width..(env + 1) * width;
        let broke = match action.iter().find(|x| !x.is_finite()) {
            Some(&x) => Some((ACTION, x)),
            None => self.move_one(env, action, row.clone(), out),
        };
        let ended = match broke {
            Some((cause, value)) => {
                self.ledger.broke(env, cause, value, out);
                true
            }
            None => out.terminated[env] + out.truncated[env] > 0.0,
        };
        if ended {
            self.begin(env, false, &mut out.obs.policy[row]);
        }
    }

    /// The same with an action that can be taken; what was not finite.
    fn move_one(
        &mut self,
        env: usize,
        action: &[f32],
        row: std::ops::Range<usize>,
        out: &mut StepOut<'_>,
    ) -> Option<(usize, f32)> {
        let mut draws = self.ledger.draws(env);
        let obs = &mut out.obs.policy[row];
        let outcome = self.envs[env].step(action, &mut draws, obs);
        if let Some(&x) = obs.iter().find(|x| !x.is_finite()) {
            return Some((OBSERVATION, x));
        }
        if !outcome.reward.is_finite() {
            return Some((REWARD, outcome.reward));
        }
        let end = match (outcome.terminated, self.ledger.is_last(env)) {
            (true, _) => Some(End::Terminated),
            (false, true) => Some(End::Truncated),
            (false, false) => None,
        };
        self.ledger.count(env, outcome.reward, end, out);
        None
    }
}

/// A snapshot.
#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    ledger: Record,
    #[serde(borrow)]
    envs: Vec<Bytes<'a>>,
}

impl<E: CustomEnv> CustomEnvs<E> {
    /// What a snapshot has.
    fn read<'a>(&self, bytes: &'a [u8]) -> Result<Saved<'a>, SnapshotError> {
        let (saved, rest) = snapshot::read::<Saved<'_>>(OF, bytes)?;
        snapshot::end(rest)?;
        match saved.ledger.unfit(self.ledger.seed, saved.envs.len()) {
            Some(why) => Err(SnapshotError::Unfit(why)),
            None => Ok(saved),
        }
    }

    /// Takes over these environments of a snapshot: all or none.
    fn take_over(&mut self, saved: &Saved<'_>, part: Range<usize>) -> Result<usize, SnapshotError> {
        let mut before = Vec::new();
        let mut failed = None;
        for (env, bytes) in self.envs.iter_mut().zip(&saved.envs[part.clone()]) {
            let mut own = Vec::new();
            env.save(&mut own);
            let loaded = env.load(bytes.0);
            before.push(own);
            if let Err(why) = loaded {
                failed =
                    Some(SnapshotError::Unfit(format!("environment {}: {why}", before.len() - 1)));
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
        self.ledger.take_over(&saved.ledger, part.clone());
        Ok(part.len())
    }
}

/// See [`Environments::join`].
pub(crate) fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let (mut ledgers, mut envs) = (Vec::new(), Vec::new());
    for part in parts {
        let (saved, rest) = snapshot::read::<Saved<'_>>(OF, part)?;
        snapshot::end(rest)?;
        ledgers.push(saved.ledger);
        envs.extend(saved.envs);
    }
    let saved = Saved { ledger: Record::join(ledgers)?, envs };
    snapshot::write(OF, &saved, parts.iter().map(|part| part.len()).sum(), out)
}

impl<E: CustomEnv> Environments for CustomEnvs<E> {
    fn first(&self) -> u32 {
        self.ledger.first
    }

    fn set_first(&mut self, first: u32) -> bool {
        self.ledger.first = first;
        true
    }

    fn spec(&self) -> &EnvSpec {
        &self.ledger.spec
    }

    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        self.ledger.reset();
        let width = self.ledger.spec.obs.policy;
        for env in 0..self.envs.len() {
            self.begin(env, spread, &mut obs.policy[env * width..][..width]);
        }
        Ok(())
    }

    fn begin_rollout(&mut self) {
        self.ledger.begin_rollout();
    }

    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.ledger.begin_step();
        let width = self.ledger.spec.action.width();
        for env in 0..self.envs.len() {
            self.step_one(env, &actions[env * width..][..width], out);
        }
        self.ledger.end_step();
        Ok(())
    }

    fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.ledger.take_stats(into);
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
        let saved = Saved { ledger: self.ledger.record(), envs: envs.collect() };
        snapshot::write(OF, &saved, all.len() + 40 * self.envs.len(), out)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let saved = self.read(bytes)?;
        if saved.envs.len() != self.envs.len() {
            return Err(SnapshotError::Unfit(format!(
                "it is of {} environments, not of {}",
                saved.envs.len(),
                self.envs.len()
            )));
        }
        self.take_over(&saved, 0..saved.envs.len()).map(drop)
    }

    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        let saved = self.read(bytes)?;
        let taken = self.take_over(&saved, self.ledger.part(&saved.ledger))?;
        let width = self.ledger.spec.obs.policy;
        for env in taken..self.envs.len() {
            self.begin(env, spread, &mut obs.policy[env * width..][..width]);
        }
        Ok(taken)
    }
}
