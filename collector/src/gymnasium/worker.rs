//! One process with a part of the environments; `worker.py` is its other side.

use super::GymnasiumConfig;
use ostler_sim::env::ActionSpace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("worker.py");
/// The longest first line (bytes).
const LONGEST_LINE: u64 = 1 << 20;
/// The longest message about an exception (bytes).
const LONGEST_MESSAGE: u32 = 1 << 16;

/// How long a process may take to end.
const GRACE: Duration = Duration::from_millis(500);

/// Why there are no environments of Gymnasium.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum GymError {
    #[error(
        "cannot start {python}: {source}; gymnasium.python names the Python that has the environments"
    )]
    Start {
        python: String,
        source: std::io::Error,
    },
    /// Python says why.
    #[error("{env}: {why}")]
    Refused { env: String, why: String },
    /// A package is missing.
    #[error("{env}: {why}; install \"{package}\" there, or name another one in gymnasium.python")]
    Missing {
        env: String,
        why: String,
        package: String,
    },
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
    pub fn space(self) -> ActionSpace {
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
    Error {
        error: String,
        missing: Option<String>,
    },
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
    pub const TERMINATED: u8 = 1;
    pub const TRUNCATED: u8 = 2;
    pub const RAISED: u8 = 4;
    pub const BAD_OBS: u8 = 8;
    pub const BAD_REWARD: u8 = 16;
    /// No episode can be begun; the process ends.
    pub const GIVEN_UP: u8 = 32;
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
        Self {
            frame: vec![0; envs * (1 + 4 + 8 * obs)],
            envs,
            obs,
        }
    }

    pub fn flags(&self, i: usize) -> u8 {
        self.frame[i]
    }

    pub fn reward(&self, i: usize) -> f32 {
        let at = self.envs + 4 * i;
        f32::from_le_bytes([0, 1, 2, 3].map(|k| self.frame[at + k]))
    }

    /// What was seen after the step.
    pub fn last(&self, i: usize, into: &mut [f32]) {
        self.row(5 * self.envs, i, into);
    }

    /// What the next step starts from.
    pub fn next(&self, i: usize, into: &mut [f32]) {
        self.row((5 + 4 * self.obs) * self.envs, i, into);
    }

    fn row(&self, from: usize, i: usize, into: &mut [f32]) {
        let bytes = &self.frame[from + 4 * self.obs * i..][..4 * self.obs];
        for (x, b) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *x = f32::from_le_bytes(*b);
        }
    }
}

/// A process.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    pub envs: Range<usize>,
    pub facts: Facts,
    timeout: Duration,
    frame: Vec<u8>,
    pub answer: Answer,
    /// The last traceback that it sent, if its last answer had one.
    pub raised: String,
}

impl Worker {
    /// Starts a process; it is not waited for until [`ready`](Starting::ready).
    pub fn start(config: &GymnasiumConfig, envs: Range<usize>) -> Result<Starting, GymError> {
        let mut command = Command::new(&config.python);
        command.args(["-c", SCRIPT]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // All of them would print the same warnings.
        let stderr = if envs.start == 0 {
            Stdio::inherit()
        } else {
            Stdio::null()
        };
        command.stderr(stderr);
        // Numerical libraries of each would take all cores.
        for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(variable, "1");
        }
        ostler_sim::process::takes_signals(&mut command);
        let at = |source| GymError::Start {
            python: config.python.clone(),
            source,
        };
        let mut child = command.spawn().map_err(at)?;
        let gone = || GymError::Gone {
            envs: envs.clone(),
            why: "has no pipes".into(),
        };
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let mut starting = Starting {
            child: Some(child),
            to: Some(to.ok_or_else(gone)?),
            from: Some(BufReader::new(from.ok_or_else(gone)?)),
            envs: envs.clone(),
            env: config.env.clone(),
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
        if let Some(to) = &mut starting.to {
            let _ = to.write_all(&line).and_then(|()| to.flush());
        }
        Ok(starting)
    }

    fn gone(&self, why: impl std::fmt::Display) -> GymError {
        GymError::Gone {
            envs: self.envs.clone(),
            why: why.to_string(),
        }
    }

    /// Sends a step: an order, a seed and an action `[A]` for every environment.
    pub fn send(
        &mut self,
        orders: &[Order],
        seeds: &[u32],
        actions: &[f32],
    ) -> Result<(), GymError> {
        self.frame.clear();
        self.frame.extend(orders.iter().map(|o| *o as u8));
        self.frame
            .extend(seeds.iter().flat_map(|s| s.to_le_bytes()));
        self.frame
            .extend(actions.iter().flat_map(|a| a.to_le_bytes()));
        let Some(to) = &mut self.to else {
            return Err(self.gone("is not there"));
        };
        let sent = write(to, &self.frame, Instant::now() + self.timeout);
        sent.map_err(|e| {
            let why = said(&mut self.child, &e);
            self.gone(why)
        })
    }

    /// Waits for the answer.
    pub fn receive(&mut self) -> Result<(), GymError> {
        let until = Instant::now() + self.timeout;
        let mut answer = std::mem::take(&mut self.answer.frame);
        let done = read(&mut self.from, &mut answer, until).and_then(|()| {
            let mut length = [0; 4];
            read(&mut self.from, &mut length, until)?;
            let length = u32::from_le_bytes(length);
            if length > LONGEST_MESSAGE {
                return Err(std::io::Error::other("sent a message that is too long"));
            }
            let mut message = vec![0; length as usize];
            read(&mut self.from, &mut message, until)?;
            self.raised = String::from_utf8_lossy(&message).into_owned();
            Ok(())
        });
        self.answer.frame = answer;
        match done {
            Ok(()) if self.answer.flags(0) & flag::GIVEN_UP != 0 => {
                let raised = std::mem::take(&mut self.raised);
                Err(self.gone(format!("cannot begin an episode:\n{raised}")))
            }
            Ok(()) => Ok(()),
            Err(e) => {
                let why = said(&mut self.child, &e);
                Err(self.gone(why))
            }
        }
    }
}

/// What became of a process that gives no answer.
fn said(child: &mut Child, e: &std::io::Error) -> String {
    // One that closes its output ends, but not at once.
    let until = Instant::now() + GRACE;
    while e.kind() == ErrorKind::UnexpectedEof
        && Instant::now() < until
        && matches!(child.try_wait(), Ok(None))
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    match (child.try_wait(), e.kind()) {
        (Ok(Some(status)), _) => format!("ended: {status}"),
        (_, ErrorKind::UnexpectedEof) => "closed its output".into(),
        _ => e.to_string(),
    }
}

/// Writes all of `bytes`, by then or not at all: a process that stands still takes none.
fn write(to: &mut ChildStdin, mut bytes: &[u8], until: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => ready(to, PollFlags::OUT, until)?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Fills `into`, by then or not at all.
fn read(
    from: &mut BufReader<ChildStdout>,
    mut into: &mut [u8],
    until: Instant,
) -> std::io::Result<()> {
    while !into.is_empty() {
        if from.buffer().is_empty() {
            wait(from, until)?;
        }
        match from.read(into) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => into = &mut into[n..],
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Until there is something to read.
fn wait(from: &BufReader<ChildStdout>, until: Instant) -> std::io::Result<()> {
    ready(from.get_ref(), PollFlags::IN, until)
}

/// Until a pipe can be read or written.
fn ready(pipe: &impl AsFd, flags: PollFlags, until: Instant) -> std::io::Result<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        let mut fds = [PollFd::new(pipe, flags)];
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => {
                let why = "did not answer in time (gymnasium.timeout_s)";
                return Err(std::io::Error::new(ErrorKind::TimedOut, why));
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        end(self.to.take(), &mut self.child);
    }
}

/// Ends a process: it goes when its input does; one that hangs is killed.
fn end(to: Option<ChildStdin>, child: &mut Child) {
    drop(to);
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// A process that has not said yet what it has.
#[derive(Debug)]
pub(super) struct Starting {
    child: Option<Child>,
    to: Option<ChildStdin>,
    from: Option<BufReader<ChildStdout>>,
    envs: Range<usize>,
    env: String,
    timeout: Duration,
}

impl Starting {
    /// Waits for what it says.
    pub fn ready(mut self) -> Result<Worker, GymError> {
        let line = self.line()?;
        let facts = match serde_json::from_slice(&line) {
            Ok(Reply::Facts(facts)) => facts,
            Ok(Reply::Error {
                error: why,
                missing,
            }) => {
                let env = self.env.clone();
                return Err(match missing {
                    Some(package) => GymError::Missing { env, why, package },
                    None => GymError::Refused { env, why },
                });
            }
            Err(e) => return Err(self.gone(format!("said what makes no sense: {e}"))),
        };
        if let Some(to) = &self.to {
            // From now on nothing waits for it without end.
            let flags = fcntl_getfl(to).and_then(|f| fcntl_setfl(to, f | OFlags::NONBLOCK));
            flags.map_err(|e| self.gone(e.to_string()))?;
        }
        let (Some(child), Some(from)) = (self.child.take(), self.from.take()) else {
            return Err(self.gone("is not there".into()));
        };
        Ok(Worker {
            child,
            to: self.to.take(),
            from,
            answer: Answer::new(self.envs.len(), facts.obs),
            envs: self.envs.clone(),
            facts,
            timeout: self.timeout,
            frame: Vec::new(),
            raised: String::new(),
        })
    }

    fn line(&mut self) -> Result<Vec<u8>, GymError> {
        let mut line = Vec::new();
        let (Some(from), Some(child)) = (&mut self.from, &mut self.child) else {
            return Err(self.gone("is not there".into()));
        };
        let got = wait(from, Instant::now() + self.timeout).and_then(|()| {
            from.by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)
        });
        match got {
            Ok(_) if line.ends_with(b"\n") => Ok(line),
            Ok(_) => {
                let e = ErrorKind::UnexpectedEof.into();
                let why = said(child, &e);
                Err(self.gone(why))
            }
            Err(e) => {
                let why = said(child, &e);
                Err(self.gone(why))
            }
        }
    }

    fn gone(&self, why: String) -> GymError {
        GymError::Gone {
            envs: self.envs.clone(),
            why,
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(self.to.take(), child);
        }
    }
}
