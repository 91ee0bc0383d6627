//! A small process that watches over the run and starts it again when it dies of
//! something that no program survives: SIGKILL, an abort, a crash, a lost GPU.
//!
//! libtorch is loaded before `main`, so this is no second program but a fork of this
//! one, before any thread exists and before libtorch does anything: the child trains,
//! the parent waits, and forks again from its untouched state. Reading order:
//! [`supervise`] -> `decide` (the reaction to a death) -> [`message`] (what the child
//! tells) -> `process` (fork, signals, wait).

mod decide;
pub mod message;
pub mod process;

pub use message::{Message, Reporter};

use crate::log::errln;
use crate::log::trace::{LOG, supervisors};
use crate::run::error::{FAILED, INTERRUPTED};
use decide::{Death, Next, PANICKED, Restarts};
use message::Lines;
use ostler_learn::config::{BackOffConfig, LogFormat};
use ostler_machine::memory::{Cgroups, Sources};
use ostler_sim::text::word;
use process::{End, Forked, Signals};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a run is to be started this time.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    /// Starts before this one.
    pub restarts: u32,
    /// The folder of the run that died.
    pub folder: Option<PathBuf>,
    /// It has a checkpoint to go on from.
    pub resumable: bool,
    /// No more environments than this: memory did not hold more.
    pub max_envs: Option<usize>,
    /// Since the first start.
    pub spent: Duration,
    /// Tells the supervising process.
    pub reporter: Reporter,
}

/// Its part of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// `runner.max_restarts`.
    pub max_restarts: u32,
    /// `[back_off]`.
    pub back_off: BackOffConfig,
    /// `memory.warn`.
    pub warn: f64,
    /// `log.format`.
    pub format: LogFormat,
    /// Processes that this one starts and trains with, itself among them.
    pub nproc: u32,
}

/// What the command line that goes on with a run of `n` processes has for that.
pub fn in_as_many(n: usize) -> String {
    if n > 1 { format!(" --nproc {n}") } else { String::new() }
}

/// Runs `train` in a child, as often as it takes, and returns the exit code; a death
/// that is not to be mended is died here too. In the child this does not return: it
/// ends with `train`'s code.
///
/// Where the process cannot be forked safely `train` runs in it, unsupervised.
pub fn supervise(wish: Wish, train: &dyn Fn(&Attempt) -> i32) -> i32 {
    match process::threads() {
        Some(1) => {}
        n => {
            // Something was loaded into this process that runs threads of its own.
            let n = n.map_or("an unknown number of".into(), |n| n.to_string());
            errln!("not supervised: this process has {n} threads at its start");
            return train(&Attempt::default());
        }
    }
    let signals = match Signals::take() {
        Ok(signals) => signals,
        Err(e) => {
            errln!("not supervised: {e}");
            return train(&Attempt::default());
        }
    };
    let code = Parent { signals, wish, train, began: Instant::now(), folder: None }.run();
    match code {
        Err(e) => {
            errln!("not supervised: {e}");
            train(&Attempt::default())
        }
        Ok(End::Code(code)) => code,
        Ok(End::Signal(signal)) => {
            process::die_of(signal);
            128 + signal
        }
    }
}

struct Parent<'a> {
    signals: Signals,
    wish: Wish,
    train: &'a dyn Fn(&Attempt) -> i32,
    began: Instant,
    folder: Option<PathBuf>,
}

/// A child's messages before it ended.
#[derive(Default)]
struct ChildReports {
    num_envs: Option<usize>,
    share: f64,
    /// The exit code of a run that is done.
    done: Option<i32>,
}

impl Parent<'_> {
    /// # Errors
    /// The first child cannot be had.
    fn run(mut self) -> std::io::Result<End> {
        let root = Path::new("/");
        let cgroups = Cgroups::find(root);
        let limit = memory_limit();
        let mut restarts = Restarts::new(self.wish.max_restarts, self.wish.back_off.clone());
        let mut attempt = Attempt::default();
        loop {
            let kills = cgroups.oom_kills();
            let (pid, pipe) = match self.start(&attempt) {
                Ok(started) => started,
                Err(e) if attempt.restarts == 0 => {
                    self.signals.restore();
                    return Err(e);
                }
                Err(e) => {
                    self.say(&format!("the training process cannot be started again: {e}"));
                    return Ok(End::Code(FAILED));
                }
            };
            let (ended, heard) = match self.watch(pid, pipe) {
                Ok(heard) => heard,
                Err(e) => {
                    self.say(&format!("error: the training process cannot be waited for: {e}"));
                    return Ok(End::Code(FAILED));
                }
            };
            let death = Death {
                ended,
                newest: self.newest(),
                num_envs: heard.num_envs,
                oom_killed: cgroups.oom_kills() > kills,
                share: heard.share,
                limit,
                warn: self.wish.warn,
            };
            if let Some(code) = heard.done.filter(|_| death.is_a_fault()) {
                self.done_all_the_same(&death);
                return Ok(End::Code(code));
            }
            let (pause, max_envs) = match restarts.after(&death) {
                Next::Pass(end) => return Ok(end),
                Next::GiveUp { restarts } => {
                    self.give_up(&death, restarts);
                    return Ok(End::Code(FAILED));
                }
                Next::Restart { pause, max_envs } => (pause, max_envs),
            };
            self.announce(&death, max_envs);
            if let Some(signal) = self.pause(pause) {
                let name = process::signal_name(signal);
                self.say(&format!("{name} came before the training process was started again"));
                return Ok(End::Code(INTERRUPTED));
            }
            attempt = Attempt {
                restarts: attempt.restarts + 1,
                folder: self.folder.clone(),
                resumable: death.newest.is_some(),
                max_envs,
                spent: self.began.elapsed(),
                reporter: Reporter::default(),
            };
        }
    }

    /// Forks; the child never comes back from here.
    fn start(&self, attempt: &Attempt) -> std::io::Result<(i32, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        let parent = std::process::id() as i32;
        match process::fork()? {
            Forked::Parent(pid) => Ok((pid, read)),
            Forked::Child => {
                if !process::die_with(parent) {
                    ostler_machine::torch::exit_fast(FAILED);
                }
                drop(read);
                crate::run::forwarded_from(parent);
                self.signals.restore();
                let attempt = Attempt { reporter: Reporter::new(write), ..attempt.clone() };
                // A panic must not unwind into the parent's part of the stack.
                let run = std::panic::AssertUnwindSafe(|| (self.train)(&attempt));
                let code = std::panic::catch_unwind(run).unwrap_or(PANICKED);
                ostler_machine::torch::exit_fast(code)
            }
        }
    }

    /// Passes signals on and listens until the child has ended.
    fn watch(
        &mut self,
        pid: i32,
        pipe: OwnedFd,
    ) -> std::io::Result<(process::Ended, ChildReports)> {
        let mut lines = Lines::default();
        let mut heard = ChildReports::default();
        let mut pipe = Some(pipe);
        loop {
            // Signals are taken before the child is asked for: the SIGCHLD of one that ends
            // after that is still there to wake the wait below. The other way round it would
            // be taken here, unheeded, and nothing would come any more.
            let mut came = Vec::new();
            while let Some(signal) = self.signals.next() {
                came.push(signal);
            }
            let ended = process::try_wait(pid)?;
            for signal in came {
                if signal != libc::SIGCHLD && ended.is_none() {
                    process::send(pid, signal);
                }
            }
            let mut bytes = [0; 4096];
            while let Some(open) = &pipe {
                match rustix::io::read(open, &mut bytes) {
                    Ok(0) => pipe = None,
                    Ok(n) => lines.add(&bytes[..n], |m| self.hear(m, &mut heard)),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(rustix::io::Errno::AGAIN) => break,
                    Err(_) => pipe = None,
                }
            }
            if let Some(ended) = ended {
                return Ok((ended, heard));
            }
            process::wait_for(&self.signals, pipe.as_ref().map(AsFd::as_fd), -1);
        }
    }

    fn hear(&mut self, message: Message, heard: &mut ChildReports) {
        match message {
            Message::Folder(path) => self.folder = Some(path),
            Message::NumEnvs(n) => heard.num_envs = Some(n),
            Message::Memory { share, .. } => heard.share = share,
            Message::Saved(_) => {}
            Message::Done(code) => heard.done = Some(code),
        }
    }

    /// The newest checkpoint: the disk counts, not the messages.
    fn newest(&self) -> Option<u64> {
        let folder = self.folder.as_deref()?.join("checkpoints");
        crate::run::keep::list(&folder).pop().map(|f| f.0)
    }

    /// Waits; returns the signal that ends the waiting early.
    fn pause(&self, pause: Duration) -> Option<i32> {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            while let Some(signal) = self.signals.next() {
                if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal) {
                    return Some(signal);
                }
            }
            if left.is_zero() {
                return None;
            }
            let millis = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
            process::wait_for(&self.signals, None, millis);
        }
    }

    fn announce(&self, death: &Death, max_envs: Option<usize>) {
        let from = match (death.newest, &self.folder) {
            (Some(n), _) => format!("goes on from its checkpoint of iteration {n}"),
            (None, Some(_)) => "had no checkpoint yet and starts anew".into(),
            (None, None) => "starts anew".into(),
        };
        let fewer = match (max_envs, death.of_memory()) {
            (Some(n), true) => format!(" with {n} environments at the most"),
            _ => String::new(),
        };
        self.say(&format!("the training process {}; the run {from}{fewer}", death.what()));
    }

    /// The process died of what comes after the last checkpoint.
    fn done_all_the_same(&self, death: &Death) {
        let folder = self.folder.as_deref().unwrap_or(Path::new("RUN")).display();
        self.say(&format!(
            "the run is done and saved, but the training process {} after that: its learning \
             curve may be missing, which ostler plot {folder} draws (and ostler report {folder} \
             more)",
            death.what()
        ));
    }

    fn give_up(&self, death: &Death, restarts: u32) {
        let key = "runner.max_restarts";
        let times = match restarts {
            0 => format!("{key} = 0 allows no restart"),
            1 => format!("{key} = 1 restart brought no new checkpoint"),
            n => format!("{key} = {n} restarts brought no new checkpoint"),
        };
        let what = death.what();
        let room = match (death.of_memory(), death.limit) {
            (true, Some(limit)) => format!(
                "; it may have {} MiB of memory: allow it more, or lower env.num_envs or \
                 runner.num_steps_per_env",
                limit >> 20
            ),
            _ => String::new(),
        };
        self.say(&format!(
            "error: the training process {what}, and {times}: the run is given up{room}"
        ));
        if let Some(folder) = &self.folder {
            errln!("the report is {}", folder.join(LOG).display());
            if death.newest.is_some() {
                let nproc = in_as_many(self.wish.nproc as usize);
                errln!("go on       ostler train --resume {}{nproc}", word(folder));
            }
        }
    }

    /// One line to standard error and into the run's log.
    fn say(&self, line: &str) {
        use std::io::{IsTerminal, Write};
        // The child may have left a progress bar.
        let mut out = std::io::stderr();
        if out.is_terminal() {
            let _ = out.write_all(b"\r\x1b[2K");
        }
        errln!("{line}");
        let Some(folder) = &self.folder else { return };
        let log = folder.join(LOG);
        // Only where the run made one: a folder that vanished stays away.
        if log.exists()
            && let Ok(mut log) = ostler_sim::files::append(&log)
        {
            let _ = writeln!(log, "{}", supervisors(self.wish.format, line));
        }
    }
}

/// The least limit of memory for a process here (bytes).
fn memory_limit() -> Option<u64> {
    let sample = Sources::host(None).sample();
    sample.pressures().map(|p| p.limit).min()
}
