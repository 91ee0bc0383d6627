//! One process with a part of the environments; `worker.py` is its other side.

use super::GymnasiumConfig;
use crate::pipes::Piped;
use ostler_sim::env::ActionSpace;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::ops::Range;
use std::process::Stdio;
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("worker.py");
/// The longest first line (bytes).
const LONGEST_LINE: usize = 1 << 20;
/// The longest message about an exception (bytes).
const LONGEST_MESSAGE: u32 = 1 << 16;

/// Why there are no environments of Gymnasium.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum GymError {
    #[error(
        "cannot start {python}: {source}; gymnasium.python names the Python that has the environments"
    )]
    Start { python: String, source: std::io::Error },
    /// Python says why.
    #[error("{env}: {why}")]
    Refused { env: String, why: String },
    /// A package is missing.
    #[error(
        "{env}: {why}; install \"{package}\" there, name another one in gymnasium.python, or put the folder that has it into PYTHONPATH"
    )]
    Missing { env: String, why: String, package: String },
    /// It has no time limit.
    #[error("{env} has no time limit of its own: gymnasium.max_episode_steps gives it one")]
    NoLimit { env: String },
    /// Its process is gone, or what it says makes no sense.
    #[error("the Python of environments {envs:?} {why}")]
    Gone { envs: Range<usize>, why: String },
}

/// What a worker is asked for.
#[derive(Serialize)]
struct Request<'a> {
    env: &'a str,
    kwargs: &'a toml::Table,
    max_episode_steps: Option<u32>,
    envs: usize,
}

/// What it has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Facts {
    /// Numbers of an observation.
    pub obs: usize,
    pub action: Action,
    pub max_episode_steps: Option<u32>,
    /// Control step (s).
    pub step_dt: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Continuous(usize),
    Discrete(usize),
}

impl Action {
    pub(crate) fn space(self) -> ActionSpace {
        match self {
            Self::Continuous(n) => ActionSpace::Continuous(n),
            Self::Discrete(n) => ActionSpace::Discrete(n),
        }
    }
}

/// Its first line.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reply {
    Facts(Facts),
    Error { error: String, missing: Option<String> },
}

/// What an environment is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Order {
    Step = 0,
    /// The episode is cut short after this step.
    Cut = 1,
    /// No step: a new episode.
    Anew = 2,
}

/// What became of it.
pub(super) mod flag {
    pub(crate) const TERMINATED: u8 = 1;
    pub(crate) const TRUNCATED: u8 = 2;
    pub(crate) const RAISED: u8 = 4;
    pub(crate) const BAD_OBS: u8 = 8;
    pub(crate) const BAD_REWARD: u8 = 16;
    /// No episode can be begun; the process ends.
    pub(crate) const GIVEN_UP: u8 = 32;
}

/// The answer to a step, of all environments of a worker.
#[derive(Debug)]
pub(super) struct Answer {
    /// Bytes as they came.
    frame: Vec<u8>,
    envs: usize,
    obs: usize,
}

impl Answer {
    fn new(envs: usize, obs: usize) -> Self {
        Self { frame: vec![0; envs * (1 + 4 + 8 * obs)], envs, obs }
    }

    pub(crate) fn flags(&self, i: usize) -> u8 {
        self.frame[i]
    }

    pub(crate) fn reward(&self, i: usize) -> f32 {
        let at = self.envs + 4 * i;
        f32::from_le_bytes([0, 1, 2, 3].map(|k| self.frame[at + k]))
    }

    /// What was seen after the step.
    pub(crate) fn last(&self, i: usize, into: &mut [f32]) {
        self.row(5 * self.envs, i, into);
    }

    /// What the next step starts from.
    pub(crate) fn next(&self, i: usize, into: &mut [f32]) {
        self.row((5 + 4 * self.obs) * self.envs, i, into);
    }

    fn row(&self, from: usize, i: usize, into: &mut [f32]) {
        let bytes = &self.frame[from + 4 * self.obs * i..][..4 * self.obs];
        for (x, b) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *x = f32::from_le_bytes(*b);
        }
    }
}

/// A process and its pipes; it ends with this value.
#[derive(Debug)]
pub(super) struct Process {
    piped: Piped,
    /// Its part of the batch.
    pub envs: Range<usize>,
    timeout: Duration,
}

/// A process that steps.
#[derive(Debug)]
pub(super) struct Worker {
    pub process: Process,
    pub facts: Facts,
    frame: Vec<u8>,
    pub answer: Answer,
    /// The last traceback that it sent, if its last answer had one.
    pub raised: String,
}

impl Worker {
    /// Starts a process; it is not waited for until [`ready`](Starting::ready).
    pub(crate) fn start(
        config: &GymnasiumConfig,
        envs: Range<usize>,
    ) -> Result<Starting, GymError> {
        let mut command = ostler_sim::python::text(&config.python, SCRIPT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // All of them would print the same warnings.
        let stderr = if envs.start == 0 { Stdio::inherit() } else { Stdio::null() };
        command.stderr(stderr);
        // Numerical libraries of each would take all cores.
        for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(variable, "1");
        }
        let at = |source| GymError::Start { python: config.python.clone(), source };
        let child = command.spawn().map_err(at)?;
        let mut piped = Piped::of(child)
            .map_err(|e| GymError::Gone { envs: envs.clone(), why: e.to_string() })?;
        piped.may_be_given_up = true;
        let mut process = Process {
            piped,
            envs: envs.clone(),
            timeout: Duration::from_secs_f64(config.timeout_s),
        };
        let request = Request {
            env: &config.env,
            kwargs: &config.kwargs,
            max_episode_steps: (config.max_episode_steps > 0).then_some(config.max_episode_steps),
            envs: envs.len(),
        };
        let mut line = serde_json::to_vec(&request).unwrap_or_default();
        line.push(b'\n');
        // One that has ended already says why in what it wrote.
        let _ = process.send(&line);
        Ok(Starting { process, env: config.env.clone() })
    }

    /// Sends a step: an order, a seed and an action `[A]` for every environment.
    pub(crate) fn send(
        &mut self,
        orders: &[Order],
        seeds: &[u32],
        actions: &[f32],
    ) -> Result<(), GymError> {
        self.frame.clear();
        self.frame.extend(orders.iter().map(|o| *o as u8));
        self.frame.extend(seeds.iter().flat_map(|s| s.to_le_bytes()));
        self.frame.extend(actions.iter().flat_map(|a| a.to_le_bytes()));
        self.process.send(&self.frame)
    }

    /// Waits for the answer.
    pub(crate) fn receive(&mut self) -> Result<(), GymError> {
        let process = &mut self.process;
        let until = process.until();
        process.read(&mut self.answer.frame, until)?;
        let mut length = [0; 4];
        process.read(&mut length, until)?;
        let length = u32::from_le_bytes(length);
        if length > LONGEST_MESSAGE {
            return Err(process.gone("sent a message that is too long"));
        }
        let mut message = vec![0; length as usize];
        process.read(&mut message, until)?;
        let raised = String::from_utf8_lossy(&message).into_owned();
        if self.answer.flags(0) & flag::GIVEN_UP != 0 {
            return Err(process.gone(format!("cannot begin an episode:\n{raised}")));
        }
        self.raised = raised;
        Ok(())
    }
}

impl Process {
    fn gone(&self, why: impl std::fmt::Display) -> GymError {
        GymError::Gone { envs: self.envs.clone(), why: why.to_string() }
    }

    /// The same for an error of a pipe: what became of the process.
    fn failed(&mut self, e: &std::io::Error) -> GymError {
        let mut why = self.piped.said(e);
        if e.kind() == ErrorKind::TimedOut {
            why += " (gymnasium.timeout_s)";
        }
        self.gone(why)
    }

    /// When what begins now has taken too long.
    fn until(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Writes all of `bytes`.
    fn send(&mut self, bytes: &[u8]) -> Result<(), GymError> {
        let until = self.until();
        self.piped.write(bytes, until).map_err(|e| self.failed(&e))
    }

    fn read(&mut self, into: &mut [u8], until: Instant) -> Result<(), GymError> {
        self.piped.read(into, until).map_err(|e| self.failed(&e))
    }
}

/// A process that has not said yet what it has.
#[derive(Debug)]
pub(super) struct Starting {
    process: Process,
    env: String,
}

impl Starting {
    /// Waits for what it says.
    pub(crate) fn ready(self) -> Result<Worker, GymError> {
        let Self { mut process, env } = self;
        let line = line(&mut process)?;
        let facts = match serde_json::from_slice(&line) {
            Ok(Reply::Facts(facts)) => facts,
            Ok(Reply::Error { error: why, missing }) => {
                return Err(match missing {
                    Some(package) => GymError::Missing { env, why, package },
                    None => GymError::Refused { env, why },
                });
            }
            Err(e) => return Err(process.gone(format!("said what makes no sense: {e}"))),
        };
        Ok(Worker {
            answer: Answer::new(process.envs.len(), facts.obs),
            process,
            facts,
            frame: Vec::new(),
            raised: String::new(),
        })
    }
}

/// The first line of a process.
fn line(process: &mut Process) -> Result<Vec<u8>, GymError> {
    let until = process.until();
    let line = process.piped.line(LONGEST_LINE, until);
    line.map_err(|e| process.failed(&e))
}
