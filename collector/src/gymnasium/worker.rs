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

/// A process and its pipes; it ends with this value.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Closed to end it.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
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
        let no_pipes = || GymError::Gone {
            envs: envs.clone(),
            why: "has no pipes".into(),
        };
        let to = child.stdin.take().ok_or_else(no_pipes)?;
        let from = child.stdout.take().ok_or_else(no_pipes)?;
        // Nothing waits for it without end.
        let flags = fcntl_getfl(&to).and_then(|f| fcntl_setfl(&to, f | OFlags::NONBLOCK));
        let mut process = Process {
            child,
            to: Some(to),
            from: BufReader::new(from),
            envs: envs.clone(),
            timeout: Duration::from_secs_f64(config.timeout_s),
        };
        flags.map_err(|e| process.gone(e))?;
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
        Ok(Starting {
            process,
            env: config.env.clone(),
        })
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
        self.process.send(&self.frame)
    }

    /// Waits for the answer.
    pub fn receive(&mut self) -> Result<(), GymError> {
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
        GymError::Gone {
            envs: self.envs.clone(),
            why: why.to_string(),
        }
    }

    /// The same for an error of a pipe: what became of the process.
    fn failed(&mut self, e: &std::io::Error) -> GymError {
        let why = said(&mut self.child, e);
        self.gone(why)
    }

    /// When what begins now has taken too long.
    fn until(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Writes all of `bytes`.
    fn send(&mut self, bytes: &[u8]) -> Result<(), GymError> {
        let until = self.until();
        let sent = match &mut self.to {
            Some(to) => write(to, bytes, until),
            None => Err(ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|e| self.failed(&e))
    }

    fn read(&mut self, into: &mut [u8], until: Instant) -> Result<(), GymError> {
        read(&mut self.from, into, until).map_err(|e| self.failed(&e))
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

impl Drop for Process {
    /// It goes when its input does; one that hangs is killed.
    fn drop(&mut self) {
        self.to = None;
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    pub fn ready(self) -> Result<Worker, GymError> {
        let Self { mut process, env } = self;
        let line = line(&mut process)?;
        let facts = match serde_json::from_slice(&line) {
            Ok(Reply::Facts(facts)) => facts,
            Ok(Reply::Error {
                error: why,
                missing,
            }) => {
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
    let (mut line, until) = (Vec::new(), process.until());
    let from = &mut process.from;
    let got = wait(from, until).and_then(|()| {
        from.by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
    });
    match got {
        Ok(_) if line.ends_with(b"\n") => Ok(line),
        Ok(_) => Err(process.failed(&ErrorKind::UnexpectedEof.into())),
        Err(e) => Err(process.failed(&e)),
    }
}
