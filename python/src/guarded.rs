//! What one thread uses at a time, in the process that made it.

use crate::error::Error;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Environments until they are closed.
pub struct Guarded<T> {
    inner: Mutex<Option<T>>,
    process: u32,
}

/// The lock of what is open.
pub struct Open<'a, T>(MutexGuard<'a, Option<T>>);

impl<T> Open<'_, T> {
    /// # Errors
    /// It is closed.
    pub fn get(&mut self) -> Result<&mut T, Error> {
        self.0.as_mut().ok_or(Error::Closed)
    }
}

impl<T: Send> Guarded<T> {
    pub fn new(inner: T) -> Self {
        Self { inner: Mutex::new(Some(inner)), process: std::process::id() }
    }

    /// # Errors
    /// Another process, another thread, or closed.
    pub fn open(&self) -> Result<Open<'_, T>, Error> {
        if std::process::id() != self.process {
            return Err(Error::Forked);
        }
        match self.inner.try_lock() {
            Ok(inner) => Ok(Open(inner)),
            Err(TryLockError::WouldBlock) => Err(Error::Busy),
            // A panic was in between: its environments may be half stepped.
            Err(TryLockError::Poisoned(_)) => Err(Error::Closed),
        }
    }

    /// Drops what is inside, while other Python threads run.
    ///
    /// # Errors
    /// Another thread uses it.
    pub fn close(&self, py: Python<'_>) -> Result<(), Error> {
        if std::process::id() != self.process {
            return Ok(());
        }
        let taken = self.open()?.0.take();
        py.detach(|| drop(taken));
        Ok(())
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // After a fork threads are not there to be joined, and a GPU's driver does not work: the
        // memory is left to the end of the process.
        if std::process::id() != self.process
            && let Ok(inner) = self.inner.get_mut()
        {
            std::mem::forget(inner.take());
        }
    }
}
