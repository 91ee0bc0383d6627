//! A phase that takes longer than it needs, for what judges speed (`ostler regress`).

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How time is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// A processor is kept busy, as by code that does more.
    Work,
    /// The run sleeps, as by code that waits for nothing.
    Waiting,
}

/// A phase that goes on and is to take longer.
#[derive(Debug)]
pub(super) struct Slow {
    percent: u32,
    by: Delay,
    began: Duration,
}

impl Slow {
    /// At the phase's start.
    pub(super) fn begin(percent: u32, by: Delay) -> Self {
        Self { percent, by, began: processor_time() }
    }

    /// At its end: loses the share of the processor time that the phase took. Other
    /// programs on the machine make no difference.
    pub(super) fn end(self) {
        let took = processor_time().saturating_sub(self.began);
        let more = took.mul_f64(f64::from(self.percent) / 100.0);
        match self.by {
            Delay::Waiting => std::thread::sleep(more),
            Delay::Work => {
                let until = processor_time() + more;
                while processor_time() < until {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// Processor time of all threads of this process so far.
fn processor_time() -> Duration {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    let (s, ns) = (u64::try_from(t.tv_sec), u32::try_from(t.tv_nsec));
    Duration::new(s.unwrap_or_default(), ns.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Additional time of a busy phase of 30 ms: time of the clock, of the processor.
    fn more(percent: u32, by: Delay) -> (Duration, Duration) {
        let slow = Slow::begin(percent, by);
        let until = processor_time() + Duration::from_millis(30);
        while processor_time() < until {
            std::hint::spin_loop();
        }
        let (clock, busy) = (Instant::now(), processor_time());
        slow.end();
        (clock.elapsed(), processor_time() - busy)
    }

    #[test]
    fn a_slow_phase_takes_so_much_longer() {
        // Other tests of the process may need its time meanwhile: it can only be longer.
        let ms = Duration::from_millis;
        assert!(more(100, Delay::Work).1 >= ms(30));
        assert!(more(200, Delay::Waiting).0 >= ms(60));
    }
}
