//! How much work a run does for its steps, measured from outside and in turns with
//! a [`Yardstick`].
//!
//! The run runs for a while, is stopped (SIGSTOP) for a few rounds of the yardstick on
//! the same [`Processor`], goes on, and so forth. Its own time is the processor time of all
//! its threads and the time in which none of them wants a processor (it sleeps, or waits
//! for something that is not a processor); time in which others have the processor is
//! neither. The yardstick's time before and after a turn gives the speed of the machine during it.

use super::metrics::History;
use super::processor::Processor;
use super::verdict::{Kind, Problem};
use super::yardstick::Yardstick;
use crate::supervise::process;
use ostler_sim::files;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Own time of a turn of the run: shorter than most changes of a processor's speed.
const TURN: Duration = Duration::from_millis(30);
/// Processor time of the yardstick between two of them: as long, so that chance weighs as
/// little in it.
const BETWEEN: Duration = TURN;
/// A throughput that was measured over less of the run's own time says little (s).
const LEAST: f64 = 1.0;

/// A turn of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// The run's own time at its end (s).
    pub until: f64,
    /// Rounds of the yardstick for a second of processor time, right after it.
    pub speed: f64,
}

/// Iterations that were on record when they were first seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// How many.
    pub iterations: u64,
    /// The run's own time then (s).
    pub at: f64,
}

/// Measurements of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Its turns, in order.
    pub turns: Vec<Turn>,
    /// Its iterations, in order.
    pub marks: Vec<Mark>,
}

/// Stops and continues one training.
#[derive(Debug)]
pub struct Meter {
    processor: Processor,
    yardstick: Yardstick,
    metrics: PathBuf,
    file: Option<File>,
    iterations: u64,
    idle: f64,
    looked: Instant,
    turn_began: f64,
    measured: Measured,
}

impl Meter {
    /// For a run that is bound to `processor` and writes its iterations into the file
    /// `metrics`.
    pub fn new(metrics: &Path, processor: Processor) -> Self {
        let mut yardstick = Yardstick::new();
        // The first rounds fill caches.
        processor.run(|| yardstick.rounds(BETWEEN));
        Self {
            processor,
            yardstick,
            metrics: metrics.to_path_buf(),
            file: None,
            iterations: 0,
            idle: 0.0,
            looked: Instant::now(),
            turn_began: 0.0,
            measured: Measured::default(),
        }
    }

    /// The processor on which the run must stay.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    /// Looks at the run `pid`, the first of its process group; at the end of a turn
    /// stops it for the yardstick's. To be called every few milliseconds.
    pub fn look(&mut self, pid: i32) {
        let (now, before) = (Instant::now(), self.looked);
        self.looked = now;
        let Some(processor) = process::processor_time(pid) else {
            return;
        };
        if process::is_idle(pid) {
            self.idle += (now - before).as_secs_f64();
        }
        let own = processor.as_secs_f64() + self.idle;
        self.count(own);
        if own - self.turn_began < TURN.as_secs_f64() {
            return;
        }
        process::send(-pid, libc::SIGSTOP);
        let yardstick = &mut self.yardstick;
        let (rounds, took) = self.processor.run(|| yardstick.rounds(BETWEEN));
        process::send(-pid, libc::SIGCONT);
        self.measured.turns.push(Turn { until: own, speed: f64::from(rounds) / took });
        self.turn_began = own;
        // The pause is nobody's.
        self.looked = Instant::now();
    }

    /// Measurements at the run's end.
    pub fn done(self) -> Measured {
        self.measured
    }

    /// Counts the lines that came since the last look.
    fn count(&mut self, own: f64) {
        if self.file.is_none() {
            self.file = files::open(&self.metrics).ok();
        }
        let Some(file) = &mut self.file else { return };
        let (mut buffer, before) = ([0; 4096], self.iterations);
        // Lines that cannot be read now are read at the next look, or by the judge.
        while let Ok(n @ 1..) = file.read(&mut buffer) {
            let lines = buffer[..n].iter().filter(|&&b| b == b'\n');
            self.iterations += lines.count() as u64;
        }
        if self.iterations > before {
            self.measured.marks.push(Mark { iterations: self.iterations, at: own });
        }
    }
}

impl Measured {
    /// Environment steps for a round of the yardstick, after the first `warm_up`
    /// iterations.
    ///
    /// # Errors
    /// There is too little of it.
    pub fn steps_per_round(&self, history: &History, warm_up: usize) -> Result<f64, Problem> {
        let fail = |why: String| Err(Problem::new(Kind::MissingMetric, why));
        let steps = |mark: &Mark| {
            let row = (mark.iterations as usize).checked_sub(1)?;
            Some(history.0.get(row)?.env_steps as f64)
        };
        let mut counted = self.marks.iter().filter(|m| m.iterations > warm_up as u64);
        let (Some(first), Some(last)) = (counted.next(), counted.next_back()) else {
            return fail(format!(
                "the throughput cannot be measured: fewer than two iterations were seen after the first {warm_up}; a larger budget mends it"
            ));
        };
        let span = last.at - first.at;
        if span < LEAST {
            return fail(format!(
                "the throughput was measured over {span:.2} s of the run's own time, too little to be compared: at least {LEAST} s are needed; a larger budget mends it"
            ));
        }
        let (Some(before), Some(after)) = (steps(first), steps(last)) else {
            return fail("the metrics lack iterations that were there while it ran".into());
        };
        let rounds = self.rounds(last.at) - self.rounds(first.at);
        Ok((after - before) / rounds)
    }

    /// Rounds of the yardstick in the run's own time from its start to `at` (s).
    fn rounds(&self, at: f64) -> f64 {
        let mut sum = 0.0;
        let (mut from, mut speed) = (0.0, self.turns.first().map_or(f64::NAN, |t| t.speed));
        for turn in &self.turns {
            let to = turn.until.min(at);
            // A turn lies between two measurements.
            sum += (to - from) * (speed + turn.speed) / 2.0;
            (from, speed) = (turn.until, turn.speed);
            if turn.until >= at {
                return sum;
            }
        }
        sum + (at - from) * speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regress::metrics::Row;

    /// Iterations of ten steps.
    fn history(n: u64) -> History {
        let row = |iteration| Row { iteration, env_steps: 10 * iteration, values: [].into() };
        History((1..=n).map(row).collect())
    }

    /// Ten iterations that take `each` rounds, on a machine whose speed changes from turn
    /// to turn: a turn of t s at speed v is t * v rounds.
    fn measured(each: f64, speed: impl Fn(usize) -> f64) -> Measured {
        let mut all = Measured::default();
        let (mut at, mut done) = (0.0, 0.0);
        for k in 0..1000 {
            let (before, after) = (speed(k.max(1) - 1), speed(k));
            let rounds = 0.05 * (before + after) / 2.0;
            while all.marks.len() < 10 && done + rounds >= each * (all.marks.len() + 1) as f64 {
                let iterations = all.marks.len() as u64 + 1;
                let share = (each * iterations as f64 - done) / rounds;
                let mark = Mark { iterations, at: at + 0.05 * share };
                all.marks.push(mark);
            }
            (at, done) = (at + 0.05, done + rounds);
            all.turns.push(Turn { until: at, speed: after });
        }
        all
    }

    #[test]
    fn the_machines_speed_does_not_matter_and_the_codes_does() {
        let rate = |each: f64, speed: &dyn Fn(usize) -> f64| {
            let m = measured(each, speed);
            assert_eq!(m.marks.len(), 10);
            m.steps_per_round(&history(10), 2).unwrap()
        };
        let steady = rate(80.0, &|_| 200.0);
        assert!((steady - 10.0 / 80.0).abs() < 1e-9, "{steady}");
        for speed in [&|_| 100.0, &|k: usize| 60.0 + (k % 7) as f64 * 30.0, &|k: usize| {
            200.0 / (1.0 + k as f64 / 100.0)
        }] as [&dyn Fn(usize) -> f64; 3]
        {
            let found = rate(80.0, speed);
            assert!((found - steady).abs() < 1e-9, "{found}");
        }
        let slow = rate(96.0, &|k| 60.0 + (k % 7) as f64 * 30.0);
        assert!((steady / slow - 1.2).abs() < 1e-9, "{slow}");
    }

    #[test]
    fn what_is_too_little_is_said_to_be() {
        let why = |m: &Measured, warm_up| {
            let problem = m.steps_per_round(&history(10), warm_up).unwrap_err();
            assert_eq!(problem.kind, Kind::MissingMetric);
            problem.message
        };
        let m = measured(80.0, |_| 200.0);
        assert!(why(&m, 9).contains("fewer than two iterations"));
        assert!(why(&Measured::default(), 0).contains("fewer than two iterations"));
        let short = measured(10.0, |_| 200.0);
        assert!(why(&short, 0).contains("0.45 s of the run's own time"));
        let problem = m.steps_per_round(&history(5), 0).unwrap_err();
        assert!(problem.message.contains("lack iterations"));
    }
}
