//! Weights & Biases: its own client, in a Python beside the run.
//!
//! A thread starts it and hands it the lines of `metrics.jsonl`; the run puts them into a queue
//! and never waits. Whatever becomes of the client, the run hears of it in one warning.

mod client;

pub(crate) use client::FOLDER;
pub use ostler_learn::config::{WandbConfig, WandbMode};

use client::{Begin, Client};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines that wait for the client; of more the newest are lost.
const QUEUE: usize = 2000;

/// What the client's thread is handed.
enum Told {
    /// A line of an iteration.
    Line(String),
    /// The run ended, and how: 0 is well.
    End(i32),
}

/// A run of Weights & Biases.
#[derive(Debug)]
pub struct Wandb {
    to: Option<SyncSender<Told>>,
    /// Comes to its end with the thread.
    over: Receiver<()>,
    /// To end the client from here.
    killer: Arc<Mutex<Killer>>,
    timeout: Duration,
    /// Lines that found no room.
    lost: u64,
}

/// The client's process, as far as another thread needs it.
#[derive(Debug, Default)]
struct Killer {
    process: Option<std::os::fd::OwnedFd>,
    /// It was ended from here.
    done: bool,
}

impl Wandb {
    /// Begins a run in `folder`, or goes on with the one that was begun there. `all`: the whole
    /// configuration.
    ///
    /// # Errors
    /// The system refuses a thread, or the file with the run's name there.
    pub fn start(
        config: &WandbConfig,
        folder: &Path,
        default_project: &str,
        all: serde_json::Value,
    ) -> std::io::Result<Self> {
        let begin = Begin::new(config, folder, default_project, all)?;
        let (to, from) = sync_channel(QUEUE);
        let (alive, over) = sync_channel::<()>(1);
        let killer = Arc::new(Mutex::new(Killer::default()));
        let own = killer.clone();
        let work = move || {
            // Dropped when the thread ends, however it does.
            let _alive = alive;
            serve(&begin, &from, &own);
        };
        std::thread::Builder::new().name("wandb".into()).spawn(work)?;
        Ok(Self {
            to: Some(to),
            over,
            killer,
            timeout: Duration::from_secs_f64(config.timeout_s),
            lost: 0,
        })
    }

    /// Hands a line of `metrics.jsonl` on; does not wait.
    pub fn write(&mut self, line: &str) {
        let Some(to) = &self.to else { return };
        match to.try_send(Told::Line(line.to_string())) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.lost += 1,
            // Its thread has said why.
            Err(TrySendError::Disconnected(_)) => self.to = None,
        }
    }

    /// The run ended with this code; waits for the client, but not longer than
    /// `log.wandb.timeout_s`.
    pub fn finish(&mut self, code: i32) {
        let Some(to) = self.to.take() else { return };
        let until = Instant::now() + self.timeout;
        let mut end = Told::End(code);
        // The queue may be full of what the client has still to take.
        while let Err(TrySendError::Full(back)) = to.try_send(end) {
            end = back;
            if Instant::now() > until {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(to);
        let left = until.saturating_duration_since(Instant::now());
        if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = self.over.recv_timeout(left) {
            tracing::warn!(
                "log.wandb: the client has not finished within log.wandb.timeout_s = {} s and is \
                 ended: what it had not taken is missing there; metrics.jsonl has everything",
                self.timeout.as_secs_f64()
            );
            lock(&self.killer).end();
            let _ = self.over.recv_timeout(Duration::from_secs(1));
        }
        if self.lost > 0 {
            let n = self.lost;
            tracing::warn!("log.wandb: {n} iterations came faster than the client took them");
        }
    }
}

impl Drop for Wandb {
    /// Of a run that failed.
    fn drop(&mut self) {
        self.finish(1);
    }
}

impl Killer {
    fn end(&mut self) {
        self.done = true;
        if let Some(process) = &self.process {
            let kill = rustix::process::Signal::KILL;
            let _ = rustix::process::pidfd_send_signal(process, kill);
        }
    }
}

fn lock(killer: &Mutex<Killer>) -> std::sync::MutexGuard<'_, Killer> {
    killer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread: starts the client, hands it lines, ends it.
fn serve(begin: &Begin, from: &Receiver<Told>, killer: &Mutex<Killer>) {
    let served = || -> Result<(), client::Fault> {
        let mut client = Client::start(begin)?;
        {
            let mut killer = lock(killer);
            killer.process = client.handle();
            if killer.done {
                killer.end();
            }
        }
        client.ready()?;
        let mut code = 1;
        for told in from {
            match told {
                Told::Line(line) => client.send(&line)?,
                Told::End(own) => {
                    code = own;
                    break;
                }
            }
        }
        client.finish(code)
    };
    match served() {
        // Who ended it has said so.
        Err(_) if lock(killer).done => {}
        Err(e) => tracing::warn!(
            "log.wandb: {e}; the training goes on without it, metrics.jsonl has everything"
        ),
        Ok(()) => {}
    }
}
