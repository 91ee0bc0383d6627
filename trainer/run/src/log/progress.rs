//! The progress line: a bar on a terminal, plain lines elsewhere.

use crate::log::errln;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ostler_machine::memory::Level;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Time between plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(5);
/// Redraws of the bar per second.
const BAR_HZ: u8 = 8;

/// Numbers of the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot {
    /// Iterations done.
    pub iteration: u64,
    /// Iterations in all.
    pub of: u64,
    /// Environment steps per second.
    pub fps: f64,
    /// The metric `success` of the last episodes that ended, if the task has one.
    pub success: Option<f64>,
    /// Mean return of the last episodes; NaN before any ended.
    pub mean_return: f64,
    /// That mean is over fewer episodes than it is meant to be, or over short ones alone.
    pub early: bool,
    /// Mean return of the last evaluation, if there was one.
    pub evaluated: Option<f64>,
    /// Their mean length [control steps].
    pub mean_length: f64,
    /// Time left at most (s).
    pub left_s: f64,
    /// Resident memory (MiB); NaN where it is not known.
    pub rss_mib: f64,
    /// How tight memory is.
    pub memory: ostler_machine::memory::Snapshot,
}

impl std::fmt::Display for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self.of.to_string().len();
        write!(
            f,
            "iteration {:>width$}/{}  {} steps/s  ",
            self.iteration,
            self.of,
            thousands(self.fps)
        )?;
        if let Some(success) = self.success {
            write!(f, "success {success:.3}  ")?;
        }
        if self.mean_return.is_finite() {
            let early = match self.early {
                true => " (first episodes)",
                false => "",
            };
            write!(f, "return {:.2}{early}  length {:.0}  ", self.mean_return, self.mean_length)?;
        } else {
            write!(f, "no episode ended yet  ")?;
        }
        if let Some(mean) = self.evaluated {
            write!(f, "evaluated {mean:.2}  ")?;
        }
        if self.rss_mib.is_finite() {
            write!(f, "memory {} MiB", thousands(self.rss_mib))?;
            let tight = &self.memory;
            if tight.level > Level::Calm {
                let percent = 100.0 * tight.share();
                write!(f, " ({percent:.0} % of {})", tight.tightest.name())?;
            }
            write!(f, "  ")?;
        }
        write!(f, "left {}", duration(self.left_s))
    }
}

/// `12,345`.
pub fn thousands(x: f64) -> String {
    let digits = format!("{:.0}", x.max(0.0));
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Bytes with three digits: `1.25 GiB`, `512 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    // A number that would be shown as 1000 is shown as 0.977 of the next unit.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// `1h02m`, `3m20s`, `12s`.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "?".into();
    }
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        _ => format!("{}h{:02}m", s / 3600, s % 3600 / 60),
    }
}

/// Shows how far the run is, on standard error.
#[derive(Debug)]
pub enum Progress {
    /// Nothing.
    Quiet,
    /// A line now and then.
    Plain {
        /// When the last line was written.
        last: Option<Instant>,
        /// Iteration it showed.
        shown: Option<u64>,
    },
    /// One line that is redrawn.
    Bar {
        /// indicatif's bar.
        bar: ProgressBar,
        /// When it was last given a message.
        last: Option<Instant>,
    },
}

impl Progress {
    /// As standard error allows.
    pub fn new(quiet: bool, of: u64) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !can_redraw() {
            return Self::Plain { last: None, shown: None };
        }
        let bar =
            ProgressBar::with_draw_target(Some(of), ProgressDrawTarget::stderr_with_hz(BAR_HZ));
        // Cut to the terminal's width: a line that wraps cannot be redrawn.
        if let Ok(style) = ProgressStyle::with_template("{bar:8} {wide_msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Self::Bar { bar, last: None }
    }

    /// Whether a snapshot would be shown now: the caller saves itself the trouble.
    pub fn due(&self) -> bool {
        let after = |last: &Option<Instant>, every| last.is_none_or(|l| l.elapsed() >= every);
        match self {
            Self::Quiet => false,
            Self::Plain { last, .. } => after(last, PLAIN_EVERY),
            Self::Bar { last, .. } => after(last, Duration::from_millis(100)),
        }
    }

    /// Shows a snapshot.
    pub fn show(&mut self, snapshot: &Snapshot) {
        match self {
            Self::Quiet => {}
            Self::Plain { shown, .. } if *shown == Some(snapshot.iteration) => {}
            Self::Plain { last, shown } => {
                errln!("{snapshot}");
                *shown = Some(snapshot.iteration);
                *last = Some(Instant::now());
            }
            Self::Bar { bar, last } => {
                bar.set_position(snapshot.iteration);
                bar.set_message(snapshot.to_string());
                *last = Some(Instant::now());
            }
        }
    }

    /// Shows how far an evaluation after `iteration` is: so many of so many, each.
    pub fn show_evaluating(&mut self, (iteration, of): (u64, u64), step: (u64, u64)) {
        let width = of.to_string().len();
        let [step, steps] = [step.0, step.1].map(|n| thousands(n as f64));
        let text =
            format!("iteration {iteration:>width$}/{of}  evaluating, step {step} of {steps}");
        let now = Some(Instant::now());
        match self {
            Self::Quiet => {}
            Self::Plain { last, .. } => {
                // Most are done before anybody has to be told.
                if last.is_some() {
                    errln!("{text}");
                }
                *last = now;
            }
            Self::Bar { bar, last } => {
                bar.set_position(iteration);
                bar.set_message(text);
                *last = now;
            }
        }
    }

    /// Leaves the line as it is: the next output begins on a line of its own.
    pub fn leave(&mut self) {
        if let Self::Bar { bar, .. } = self {
            bar.abandon();
        }
    }

    /// Shows the last snapshot and leaves the line.
    pub fn finish(&mut self, snapshot: &Snapshot) {
        self.show(snapshot);
        self.leave();
    }
}

/// Whether standard error is a terminal that can move its cursor.
pub(crate) fn can_redraw() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|t| t.is_empty() || t == "dumb");
    std::io::stderr().is_terminal() && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1536, "1.50 KiB"),
            (10 << 20, "10.0 MiB"),
            (512 << 20, "512 MiB"),
            (5 << 30, "5.00 GiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn the_line_says_iteration_speed_return_length_and_time_left() {
        let mut s = Snapshot {
            success: None,
            iteration: 7,
            of: 100,
            fps: 1_234_567.0,
            mean_return: 12.345,
            early: false,
            evaluated: None,
            mean_length: 99.6,
            left_s: 200.0,
            rss_mib: 2345.6,
            memory: ostler_machine::memory::Snapshot::default(),
        };
        assert_eq!(
            s.to_string(),
            "iteration   7/100  1,234,567 steps/s  return 12.35  length 100  memory 2,346 MiB  left 3m20s"
        );
        s.memory.level = Level::Warn;
        (s.memory.used, s.memory.limit) = (87, 100);
        assert!(s.to_string().contains("2,346 MiB (87 % of the system)  left"));
        (s.early, s.evaluated) = (true, Some(15.5));
        assert!(
            s.to_string()
                .contains("return 12.35 (first episodes)  length 100  evaluated 15.50  memory")
        );
        s.success = Some(0.875);
        assert!(s.to_string().contains("steps/s  success 0.875  return 12.35"));
        s.rss_mib = f64::NAN;
        s.mean_return = f64::NAN;
        assert!(s.to_string().contains("no episode ended yet"));
        assert_eq!(duration(3725.0), "1h02m");
        assert_eq!(thousands(999.0), "999");
    }
}
