//! One processor for a run and the reference workload it takes turns with.
//!
//! Two processors of one machine have different neighbours: another virtual machine's
//! thread on the same core, another clock. Measured on two of them, the same code had 0.79
//! to 1.05 of its baseline; on one, 0.96 to 1.09 (docs/regress.md).

use rustix::io::Result;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A processor that this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor(usize);

impl Processor {
    /// That of the `job`-th run at the same time: jobs share processors only where there
    /// are fewer.
    ///
    /// # Errors
    /// The system does not tell which processors there are.
    pub fn of_job(job: usize) -> Result<Self> {
        let all = sched_getaffinity(None)?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&p| all.is_set(p)).collect();
        let one = allowed.get(job % allowed.len().max(1));
        one.map(|&p| Self(p)).ok_or(rustix::io::Errno::INVAL)
    }

    /// Binds the calling thread, and threads that it starts from now on, to this processor. One
    /// system call and no memory: it may be called between fork and exec.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(self) -> Result<()> {
        let mut one = CpuSet::new();
        one.set(self.0);
        sched_setaffinity(None, &one)
    }

    /// Does `work` on this processor; the calling thread is where it was, afterwards.
    /// Where the system refuses, it is done wherever the thread is.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let before = sched_getaffinity(None);
        let bound = self.bind();
        let done = work();
        if let (Ok(before), Ok(())) = (before, bound) {
            // The processors that it had a moment ago.
            let _ = sched_setaffinity(None, &before);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        let all = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).filter(|&p| all.is_set(p)).collect()
    }

    #[test]
    fn jobs_have_processors_of_their_own_as_long_as_there_are_some() {
        let all = allowed();
        let jobs: Vec<usize> =
            (0..all.len()).map(|job| Processor::of_job(job).unwrap().0).collect();
        assert_eq!(jobs, all);
        assert_eq!(Processor::of_job(all.len()), Processor::of_job(0));
    }

    #[test]
    fn work_is_done_on_it_and_the_thread_goes_back() {
        let before = allowed();
        for job in 0..before.len() {
            let one = Processor::of_job(job).unwrap();
            assert_eq!(one.run(allowed), [one.0]);
            assert_eq!(allowed(), before);
        }
    }
}
