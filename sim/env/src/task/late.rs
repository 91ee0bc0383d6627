//! Delays of observations, actions and actuators: what their environments remember of the way.

use super::number;
use crate::config::{ConfigError, Delay, DelaySteps};

/// Most steps of a delay.
const MOST_STEPS: u32 = 255;
/// Most steps between draws of a delay: half a word holds the phase.
const MOST_REDRAW: u32 = 65_535;
/// Most numbers that an environment remembers of values on their way and of values seen
/// before.
pub(super) const MOST_KEPT: usize = 1 << 20;

/// A delay that changes nothing by itself: by how many steps, and when that is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lag {
    pub low: u32,
    pub high: u32,
    /// Steps between draws; 0: only where an episode begins.
    pub redraw: u32,
    /// Probability that a draw changes nothing.
    pub hold: f32,
}

impl Lag {
    /// Of the key at `path`, in steps of a `unit`; none where there is never a delay.
    pub fn compile(
        delay: Option<&Delay>,
        unit: &str,
        path: &str,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(delay) = delay else {
            return Ok(None);
        };
        let steps = match delay {
            Delay::Steps(_) => path.to_string(),
            Delay::Table(_) => format!("{path}.steps"),
        };
        let config = delay.full();
        let [low, high] = within(config.steps, MOST_STEPS, unit, &steps)?;
        if config.redraw > MOST_REDRAW {
            let message = format!("{} {unit} steps are more than {MOST_REDRAW}", config.redraw);
            return Err(ConfigError::new(format!("{path}.redraw"), message)
                .help("0 draws the delay only where an episode begins"));
        }
        let hold = number(config.hold, &format!("{path}.hold"))?;
        if !(0.0..=1.0).contains(&hold) {
            let message = format!("{hold} is not a probability");
            return Err(ConfigError::new(format!("{path}.hold"), message).help("0 to 1"));
        }
        if hold > 0.0 && config.redraw == 0 {
            let message = "says when a draw changes nothing, but nothing is drawn anew";
            return Err(ConfigError::new(format!("{path}.hold"), message)
                .help(format!("redraw = 1 draws in every {unit} step")));
        }
        let lag = Self { low, high, redraw: config.redraw, hold };
        Ok((high > 0).then_some(lag))
    }

    /// For `ostler check`: `delay 0..2 steps`.
    pub fn text(&self) -> String {
        let steps = match self.low == self.high {
            true if self.low == 1 => "delay 1 step".to_string(),
            true => format!("delay {} steps", self.low),
            false => format!("delay {}..{} steps", self.low, self.high),
        };
        match self.redraw {
            0 => steps,
            1 => format!("{steps}, drawn in every step{}", self.hold_text()),
            n => format!("{steps}, drawn every {n} steps{}", self.hold_text()),
        }
    }

    fn hold_text(&self) -> String {
        match self.hold > 0.0 {
            true => format!(" but for a share of {}", self.hold),
            false => String::new(),
        }
    }
}

/// Least and most of `unit` steps of the key at `path`.
fn within(steps: DelaySteps, most: u32, unit: &str, path: &str) -> Result<[u32; 2], ConfigError> {
    let [low, high] = steps.range();
    if low > high {
        let message = format!("the range [{low}, {high}] is upside down");
        return Err(ConfigError::new(path, message).help(format!("write [{high}, {low}]")));
    }
    if high > most {
        let message = format!("{high} {unit} steps are more than {most}");
        return Err(ConfigError::new(path, message));
    }
    Ok([low, high])
}
