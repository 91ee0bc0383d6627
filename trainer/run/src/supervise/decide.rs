//! Consequences of the end of a training process.

use super::process::{End, Ended, signal_name};
use crate::run::error::{CROWDED, LOST, POISONED};
use ostler_learn::config::BackOffConfig;
use std::time::Duration;

/// Deaths that a fresh start may mend. SIGTERM and the like are somebody's wish.
const RESTARTABLE: [i32; 6] =
    [libc::SIGKILL, libc::SIGABRT, libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE];
/// What a panic ends a Rust program with.
pub(super) const PANICKED: i32 = 101;
/// The pause before the first restart without progress; each one after that waits four
/// times as long.
const PAUSE: Duration = Duration::from_millis(250);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Facts about a training process that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Death {
    /// How it ended, and its largest size.
    pub ended: Ended,
    /// Its newest checkpoint, by iteration.
    pub newest: Option<u64>,
    /// Environments, as it said last.
    pub num_envs: Option<usize>,
    /// The kernel killed a process of this control group for want of memory meanwhile.
    pub oom_killed: bool,
    /// Share of the tightest limit in use, as it said last.
    pub share: f64,
    /// The least limit of memory for a process here (bytes).
    pub limit: Option<u64>,
    /// Share of a limit that counts as pressure (`memory.warn`).
    pub warn: f64,
}

/// The decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// End as it ended.
    Pass(End),
    /// It has died too often.
    GiveUp {
        /// Restarts without a new checkpoint.
        restarts: u32,
    },
    /// Once more.
    Restart {
        /// After this time.
        pause: Duration,
        /// With no more environments than this.
        max_envs: Option<usize>,
    },
}

/// Counts restarts without progress.
#[derive(Debug, Clone)]
pub(super) struct Restarts {
    most: u32,
    back_off: BackOffConfig,
    without_progress: u32,
    newest: Option<u64>,
    max_envs: Option<usize>,
}

impl Restarts {
    /// `most`: `runner.max_restarts`.
    pub(crate) fn new(most: u32, back_off: BackOffConfig) -> Self {
        Self { most, back_off, without_progress: 0, newest: None, max_envs: None }
    }

    /// Decides.
    pub(crate) fn after(&mut self, death: &Death) -> Next {
        if !death.restartable() {
            return Next::Pass(death.ended.end);
        }
        if death.newest > self.newest {
            self.newest = death.newest;
            self.without_progress = 0;
        }
        if let Some(n) = death.crowded()
            && self.max_envs.is_none_or(|before| n < before)
        {
            // Fewer every time, so this ends.
            self.max_envs = Some(n);
            return Next::Restart { pause: Duration::ZERO, max_envs: self.max_envs };
        }
        if self.without_progress >= self.most {
            return Next::GiveUp { restarts: self.without_progress };
        }
        let pause = PAUSE.saturating_mul(4_u32.saturating_pow(self.without_progress));
        self.without_progress += 1;
        if death.of_memory()
            && let Some(n) = death.num_envs
            && let Some(fewer) = self.back_off.below(n)
        {
            self.max_envs = Some(fewer);
        }
        Next::Restart { pause: pause.min(LONGEST_PAUSE), max_envs: self.max_envs }
    }
}

impl Death {
    fn restartable(&self) -> bool {
        match self.ended.end {
            End::Signal(s) => RESTARTABLE.contains(&s),
            End::Code(c) => [POISONED, CROWDED, LOST].contains(&c),
        }
    }

    /// Whether it was neither its own decision nor somebody's wish.
    pub(crate) fn is_a_fault(&self) -> bool {
        self.restartable() || self.ended.end == End::Code(PANICKED)
    }

    /// Environments for a fresh process, where the old one could not use its memory.
    fn crowded(&self) -> Option<usize> {
        let crowded = self.ended.end == End::Code(CROWDED);
        crowded.then_some(self.num_envs).flatten()
    }

    /// Whether memory was the cause: the kernel or the process itself says so, or it was
    /// killed or gave up while memory was tight, by its own last word or by its largest
    /// size.
    pub(crate) fn of_memory(&self) -> bool {
        let killed = [libc::SIGKILL, libc::SIGABRT].map(End::Signal);
        let large =
            self.limit.is_some_and(|limit| self.ended.peak as f64 >= self.warn * limit as f64);
        let tight = self.oom_killed || self.share >= self.warn || large;
        // Of several processes another may have been the one.
        let other = self.ended.end == End::Code(LOST) && self.oom_killed;
        (killed.contains(&self.ended.end) && tight) || self.ended.end == End::Code(CROWDED) || other
    }

    /// `died of SIGKILL, with memory at 97 % of its limit`.
    pub(crate) fn what(&self) -> String {
        let how = match self.ended.end {
            End::Signal(s) => format!("died of {}", signal_name(s)),
            End::Code(POISONED) => "lost its GPU".into(),
            End::Code(LOST) => "lost another of its processes".into(),
            End::Code(CROWDED) => "could not use the memory that it had freed".into(),
            End::Code(c) => format!("ended with code {c}"),
        };
        let mib = self.ended.peak >> 20;
        match () {
            () if !self.of_memory() => how,
            () if self.oom_killed => {
                let of = self.limit.map(|limit| format!(" of {} MiB allowed", limit >> 20));
                let of = of.unwrap_or_default();
                format!("{how}: the kernel had no memory left for it ({mib} MiB at the most{of})")
            }
            () => format!("{how} when memory was short ({mib} MiB at the most)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::error::DISK_FULL;

    fn death(end: End, newest: Option<u64>) -> Death {
        Death {
            ended: Ended { end, peak: 50 << 20 },
            newest,
            num_envs: Some(1000),
            oom_killed: false,
            share: 0.1,
            limit: Some(100 << 20),
            warn: 0.85,
        }
    }

    fn allowing(most: u32) -> Restarts {
        Restarts::new(most, BackOffConfig::default())
    }

    const KILLED: End = End::Signal(libc::SIGKILL);

    #[test]
    fn codes_and_other_signals_pass() {
        let mut restarts = allowing(3);
        for end in [0, 1, 2, DISK_FULL, 101, 130].map(End::Code) {
            assert_eq!(restarts.after(&death(end, None)), Next::Pass(end));
        }
        for end in [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT].map(End::Signal) {
            assert_eq!(restarts.after(&death(end, None)), Next::Pass(end));
        }
        for end in RESTARTABLE.map(End::Signal).into_iter().chain([POISONED, LOST].map(End::Code)) {
            let next = allowing(3).after(&death(end, None));
            assert!(matches!(next, Next::Restart { max_envs: None, .. }), "{next:?}");
        }
    }

    #[test]
    fn restarts_without_a_new_checkpoint_are_counted() {
        let mut restarts = allowing(2);
        let mut pause = |newest| match restarts.after(&death(KILLED, newest)) {
            Next::Restart { pause, .. } => pause.as_millis(),
            Next::GiveUp { restarts: 2 } => 0,
            other => panic!("{other:?}"),
        };
        assert_eq!((pause(None), pause(None)), (250, 1000));
        // A new checkpoint starts the count anew, the same one does not.
        assert_eq!(pause(Some(7)), 250);
        assert_eq!(pause(Some(7)), 1000);
        assert_eq!(pause(Some(9)), 250);
        assert_eq!(pause(Some(9)), 1000);
        assert_eq!(pause(Some(9)), 0);
        let never = allowing(0).after(&death(KILLED, None));
        assert_eq!(never, Next::GiveUp { restarts: 0 });
        let mut many = allowing(u32::MAX);
        for _ in 0..40 {
            let Next::Restart { pause, .. } = many.after(&death(KILLED, None)) else {
                panic!();
            };
            assert!(pause <= LONGEST_PAUSE);
        }
    }

    #[test]
    fn want_of_memory_leads_to_fewer_environments() {
        let envs = |d: &Death| match allowing(3).after(d) {
            Next::Restart { max_envs, .. } => max_envs,
            other => panic!("{other:?}"),
        };
        let plain = death(KILLED, None);
        assert_eq!(envs(&plain), None);
        let by_kernel = Death { oom_killed: true, ..plain.clone() };
        let by_word = Death { share: 0.9, ..plain.clone() };
        let mut by_size = plain.clone();
        by_size.ended.peak = 90 << 20;
        let other = Death {
            ended: Ended { end: End::Code(LOST), ..plain.ended },
            oom_killed: true,
            ..plain.clone()
        };
        for d in [&by_kernel, &by_word, &by_size, &other] {
            assert_eq!(envs(d), Some(496));
            assert!(d.what().contains("memory"), "{}", d.what());
        }
        // A defect is not cured by fewer environments.
        let defect = Death {
            ended: Ended { end: End::Signal(libc::SIGSEGV), peak: 90 << 20 },
            ..by_word.clone()
        };
        assert_eq!(envs(&defect), None);
        // Once there are fewer, a later death does not bring them back.
        let mut restarts = allowing(3);
        restarts.after(&by_word);
        let Next::Restart { max_envs, .. } = restarts.after(&plain) else {
            panic!();
        };
        assert_eq!(max_envs, Some(496));
        // By the configured step, and not at all where back-off is off.
        for (factor, max_envs) in [(0.8, Some(800)), (1.0, None)] {
            let back_off = BackOffConfig { factor, ..BackOffConfig::default() };
            let next = Restarts::new(3, back_off).after(&by_word);
            assert!(matches!(next, Next::Restart { max_envs: m, .. } if m == max_envs));
        }
    }

    #[test]
    fn a_process_that_asks_for_a_fresh_one_gets_it_while_it_asks_for_less() {
        let asks =
            |num_envs| Death { num_envs: Some(num_envs), ..death(End::Code(CROWDED), Some(3)) };
        let mut restarts = allowing(1);
        let mut next = |n| match restarts.after(&asks(n)) {
            Next::Restart { pause, max_envs } => Some((pause.as_millis(), max_envs)),
            Next::GiveUp { .. } => None,
            other => panic!("{other:?}"),
        };
        // Without a pause, and without end as long as it leads somewhere ...
        for n in [1000, 900, 800, 400] {
            assert_eq!(next(n), Some((0, Some(n))));
        }
        // ... and if it does not it is a death like any other.
        assert_eq!(next(400), Some((250, Some(192))));
        assert_eq!(next(400), None);
    }
}
