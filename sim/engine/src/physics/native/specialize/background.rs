//! A compilation beside a run.

use super::SpecializeError;
use super::build::Job;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// A compilation in a thread of its own, for the next run. Dropping this stops it if
/// it is not done, and removes its files.
#[derive(Debug)]
pub struct Background {
    hash: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    result: OnceLock<Result<(), SpecializeError>>,
}

impl Background {
    pub(super) fn start(job: Job) -> Result<Self, SpecializeError> {
        let shared = Arc::new(Shared::default());
        let hash = job.key.clone();
        let theirs = Arc::clone(&shared);
        // The compiler is told to end with the thread that started it.
        let thread = std::thread::Builder::new()
            .name("kernel compiler".to_owned())
            .spawn(move || {
                let result = job.run(&mut |_| {
                    if theirs.stop.load(Ordering::Relaxed) {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                tell(&result);
                let _ = theirs.result.set(result);
            })
            .map_err(|error| SpecializeError::Thread(error.to_string()))?;
        Ok(Self { hash, shared, thread: Some(thread) })
    }

    /// The hash of the kernel that is being compiled.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// How it ended, once it has: `Ok` means that the next run finds the kernel.
    pub fn result(&self) -> Option<&Result<(), SpecializeError>> {
        self.shared.result.get()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The error.
    pub fn wait(mut self) -> Result<(), SpecializeError> {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let result = self.result().cloned();
        result.unwrap_or(Err(SpecializeError::Stopped))
    }
}

fn tell(result: &Result<(), SpecializeError>) {
    match result {
        Ok(()) => {
            tracing::info!(target: "ostler::kernels", "the kernel for this robot is compiled: the next run uses it");
        }
        Err(SpecializeError::Stopped) => {}
        Err(error) => {
            tracing::warn!(target: "ostler::kernels", "no kernel for the next run: {error}")
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
