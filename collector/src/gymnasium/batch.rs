//! All environments, in their processes.

use super::worker::{Order, Starting, Worker, flag};
use super::{GymError, GymnasiumConfig};
use crate::CollectError;
use crate::custom::Sizes;
use crate::custom::ledger::{ACTION, Cause, End, Ledger, NUMBERS, OBSERVATION, REWARD, Record};
use crate::env::Environments;
use ostler_sim::env::EnvSpec;
use ostler_sim::physics::{SnapshotError, fault};
use ostler_sim::snapshot;
use ostler_sim::{EpisodeStats, Groups, StepOut};
use std::ops::Range;

/// Whose snapshots these are.
pub(crate) const OF: &str = "environments of Gymnasium";
const CAUSES: [Cause; 5] = [
    NUMBERS[ACTION],
    NUMBERS[OBSERVATION],
    NUMBERS[REWARD],
    Cause { name: "python/raised", fault: fault::TASK },
    Cause { name: "python/process", fault: fault::TASK },
];
const RAISED: usize = 3;
const PROCESS: usize = 4;
/// Processes that may be started anew within so many steps of the batch.
const DEATHS: (usize, u64) = (3, 100);

/// N environments of Gymnasium.
#[derive(Debug)]
pub struct GymEnvs {
    config: GymnasiumConfig,
    ledger: Ledger,
    workers: Vec<Worker>,
    orders: Vec<Order>,
    seeds: Vec<u32>,
    steps: u64,
    /// Answers with a traceback.
    raised: u64,
    /// Steps at which processes were last started anew.
    deaths: Vec<u64>,
}

impl GymEnvs {
    /// Starts the processes. `config`: [located](GymnasiumConfig::located). `seed` keys the
    /// starts of episodes.
    ///
    /// # Errors
    /// Python is not there, or refuses; an environment that cannot be used.
    pub fn new(config: &GymnasiumConfig, n: usize, seed: u64) -> Result<Self, CollectError> {
        let n = n.max(1);
        let count = config.processes(n);
        // They start beside each other.
        let parts = (0..count).map(|w| n * w / count..n * (w + 1) / count);
        let starting: Result<Vec<Starting>, _> =
            parts.map(|part| Worker::start(config, part)).collect();
        let workers: Result<Vec<Worker>, _> = starting?.into_iter().map(Starting::ready).collect();
        let workers = workers?;
        let Some(facts) = workers.first().map(|w| &w.facts) else {
            return Err(GymError::NoLimit { env: config.env.clone() }.into());
        };
        if let Some(other) = workers.iter().find(|w| w.facts != *facts) {
            let why = format!(
                "has {} observations and other facts than its neighbours' {}: environments of one \
                 name must be alike",
                other.facts.obs, facts.obs
            );
            let envs = other.process.envs.clone();
            return Err(GymError::Gone { envs, why }.into());
        }
        let own = facts.max_episode_steps.filter(|n| *n > 0);
        let episode_steps = own.ok_or_else(|| GymError::NoLimit { env: config.env.clone() })?;
        let sizes = Sizes {
            obs: facts.obs,
            action: facts.action.space(),
            step_dt: facts.step_dt,
            episode_steps,
        };
        // They may truncate when they like.
        let ledger = Ledger::new(sizes, n, seed, &CAUSES, 1)?;
        Ok(Self {
            config: config.clone(),
            ledger,
            workers,
            orders: vec![Order::Step; n],
            seeds: vec![0; n],
            steps: 0,
            raised: 0,
            deaths: Vec::new(),
        })
    }

    /// Processes.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Sends a step to all processes and waits for them; which of them are new.
    fn exchange(&mut self, actions: &[f32]) -> Result<Vec<Range<usize>>, CollectError> {
        let width = self.ledger.spec.action.width();
        let send = |worker: &mut Worker, orders: &[Order], seeds: &[u32]| {
            let of = worker.process.envs.clone();
            worker.send(
                &orders[of.clone()],
                &seeds[of.clone()],
                &actions[of.start * width..of.end * width],
            )
        };
        let sent: Vec<_> =
            (self.workers.iter_mut()).map(|w| send(w, &self.orders, &self.seeds)).collect();
        let mut renewed = Vec::new();
        for (w, sent) in sent.into_iter().enumerate() {
            if let Err(e) = sent.and_then(|()| self.workers[w].receive()) {
                // Its process may be as good as any.
                crate::go_on()?;
                self.renew(w, &e)?;
                renewed.push(self.workers[w].process.envs.clone());
            }
            let raised = std::mem::take(&mut self.workers[w].raised);
            if !raised.is_empty() {
                self.raised += 1;
                // Some raise all the time.
                if self.raised.is_power_of_two() {
                    let n = self.raised;
                    tracing::warn!("an environment raised and begins anew (number {n}):\n{raised}");
                }
            }
        }
        Ok(renewed)
    }

    /// Another process in the place of one that is gone, with new episodes.
    fn renew(&mut self, w: usize, why: &GymError) -> Result<(), CollectError> {
        let (most, within) = DEATHS;
        let now = self.steps;
        self.deaths.retain(|at| now - at < within);
        self.deaths.push(now);
        let envs = self.workers[w].process.envs.clone();
        if self.deaths.len() > most {
            let why =
                format!("was started anew {most} times within {within} steps, and again: {why}");
            return Err(GymError::Gone { envs, why }.into());
        }
        tracing::warn!("{why}; it is started anew, and its environments with it");
        let worker = Worker::start(&self.config, envs.clone())?.ready()?;
        if worker.facts != self.workers[w].facts {
            let why = "has other observations or actions than the one before".into();
            return Err(GymError::Gone { envs, why }.into());
        }
        self.workers[w] = worker;
        let width = self.ledger.spec.action.width();
        let (orders, none) = (vec![Order::Anew; envs.len()], vec![0.0; envs.len() * width]);
        let worker = &mut self.workers[w];
        worker.send(&orders, &self.seeds[envs], &none)?;
        Ok(worker.receive()?)
    }

    /// Draws a seed for the next start of every environment.
    fn draw_seeds(&mut self) {
        for env in 0..self.seeds.len() {
            self.seeds[env] = self.ledger.draws(env).words()[0];
        }
    }

    /// Begins all episodes.
    fn begin(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        for env in 0..self.seeds.len() {
            self.ledger.begin(env, spread);
        }
        self.draw_seeds();
        self.orders.fill(Order::Anew);
        let none = vec![0.0; self.seeds.len() * self.ledger.spec.action.width()];
        self.exchange(&none)?;
        self.first_rows(obs.policy);
        Ok(())
    }

    /// What the next step starts from.
    fn first_rows(&self, obs: &mut [f32]) {
        let width = self.ledger.spec.obs.policy;
        for worker in &self.workers {
            for (i, env) in worker.process.envs.clone().enumerate() {
                worker.answer.next(i, &mut obs[env * width..][..width]);
            }
        }
    }

    /// Books what became of an environment.
    fn book(
        &mut self,
        env: usize,
        (w, i): (usize, usize),
        wrong: impl Fn(usize) -> Option<f32>,
        out: &mut StepOut<'_>,
    ) {
        let answer = &self.workers[w].answer;
        let flags = answer.flags(i);
        let (reward, mut value) = (answer.reward(i), f32::NAN);
        let broke = match self.orders[env] {
            Order::Anew => {
                value = wrong(env).unwrap_or(value);
                Some(ACTION)
            }
            _ if flags & flag::RAISED != 0 => Some(RAISED),
            _ if flags & flag::BAD_OBS != 0 => Some(OBSERVATION),
            _ if flags & flag::BAD_REWARD != 0 => Some(REWARD),
            _ => None,
        };
        let end = match flags {
            f if f & flag::TERMINATED != 0 => Some(End::Terminated),
            f if f & flag::TRUNCATED != 0 => Some(End::Truncated),
            _ => None,
        };
        match broke {
            Some(cause) => self.ledger.broke(env, cause, value, out),
            None => {
                let width = self.ledger.spec.obs.policy;
                answer.last(i, &mut out.obs.policy[env * width..][..width]);
                self.ledger.count(env, reward, end, out);
            }
        }
        if broke.is_some() || end.is_some() {
            self.ledger.begin(env, false);
        }
    }
}

/// See [`Environments::join`].
pub(crate) fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let read = |part: &&[u8]| {
        let (record, rest) = snapshot::read::<Record>(OF, part)?;
        snapshot::end(rest).map(|()| record)
    };
    let all: Vec<Record> = parts.iter().map(read).collect::<Result<_, _>>()?;
    snapshot::write(OF, &Record::join(all)?, parts.iter().map(|part| part.len()).sum(), out)
}

impl GymEnvs {
    /// What a snapshot has.
    fn read(&self, bytes: &[u8]) -> Result<Record, SnapshotError> {
        let (record, rest) = snapshot::read::<Record>(OF, bytes)?;
        snapshot::end(rest)?;
        match record.unfit(self.ledger.seed, record.episodes.len()) {
            Some(why) => Err(SnapshotError::Unfit(why)),
            None => Ok(record),
        }
    }
}

impl Environments for GymEnvs {
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
        self.begin(spread, obs)
    }

    fn begin_rollout(&mut self) {
        self.ledger.begin_rollout();
    }

    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.ledger.begin_step();
        self.steps += 1;
        self.draw_seeds();
        let width = self.ledger.spec.action.width();
        let wrong = |env: usize| {
            let row = &actions[env * width..][..width];
            row.iter().copied().find(|x| !x.is_finite())
        };
        for env in 0..self.orders.len() {
            self.orders[env] = match wrong(env) {
                Some(_) => Order::Anew,
                None if self.ledger.is_last(env) => Order::Cut,
                None => Order::Step,
            };
        }
        let renewed = self.exchange(actions)?;
        for w in 0..self.workers.len() {
            let envs = self.workers[w].process.envs.clone();
            let is_new = renewed.contains(&envs);
            for (i, env) in envs.enumerate() {
                if is_new {
                    self.ledger.broke(env, PROCESS, f32::NAN, out);
                    self.ledger.begin(env, false);
                } else {
                    self.book(env, (w, i), wrong, out);
                }
            }
        }
        self.first_rows(out.obs.policy);
        self.ledger.end_step();
        Ok(())
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.ledger.take_stats(into);
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        snapshot::write(OF, &self.ledger.record(), 64 * self.seeds.len(), out)
    }

    /// Takes over what keys the starts of episodes.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let record = self.read(bytes)?;
        let n = record.episodes.len().min(self.seeds.len());
        self.ledger.take_over(&record, 0..n);
        Ok(())
    }

    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        let record = self.read(bytes)?;
        self.ledger.take_over(&record, self.ledger.part(&record));
        let begun = self.begin(spread, obs);
        begun.map_err(|e| SnapshotError::Unfit(e.to_string()))?;
        Ok(0)
    }
}
