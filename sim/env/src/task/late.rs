//! Delays of observations, actions and actuators: what their environments remember of the way.

use crate::config::{self, ConfigError, DelaySteps};
use ostler_lang::number;
use ostler_model::Delay;

/// Most steps of a delay.
const MOST_STEPS: u32 = 255;
/// Most steps between draws of a delay: half a word holds the phase.
const MOST_REDRAW: u32 = 65_535;
/// Most numbers that an environment remembers of values on their way and of values seen
/// before.
pub(super) const MOST_KEPT: usize = 1 << 20;

/// The delay of the key at `path`, in steps of a `unit`; none where there is never one.
pub(super) fn compile(
    delay: Option<&config::Delay>,
    unit: &str,
    path: &str,
) -> Result<Option<Delay>, ConfigError> {
    let Some(delay) = delay else {
        return Ok(None);
    };
    let steps = match delay {
        config::Delay::Steps(_) => path.to_string(),
        config::Delay::Table(_) => format!("{path}.steps"),
    };
    let config = delay.full();
    let [least, most] = within(config.steps, MOST_STEPS, unit, &steps)?;
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
    let delay = Delay { least, most, redraw: config.redraw, hold };
    Ok((most > 0).then_some(delay))
}

/// For `ostler check`: `delay 0..2 steps`.
pub(super) fn text(delay: &Delay) -> String {
    let Delay { least, most, .. } = *delay;
    let steps = match (least, most) {
        (1, 1) => "delay 1 step".to_string(),
        (least, most) if least == most => format!("delay {least} steps"),
        (least, most) => format!("delay {least}..{most} steps"),
    };
    steps + &delay.drawn()
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
