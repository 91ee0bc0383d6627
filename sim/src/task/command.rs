//! `[[task.command]]`: random targets.

use super::team::Team;
use super::{range, unique};
use crate::config::{CommandTerm, ConfigError};
use std::collections::HashSet;

/// The compiled command terms.
#[derive(Debug, Clone)]
pub struct Commands {
    /// Name, components, unit, for expressions.
    pub scope: Vec<(String, usize, String)>,
    pub(super) components: Vec<Component>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Component {
    pub range: [f32; 2],
    /// Control steps between draws; 0: only at reset.
    pub interval: u32,
}

impl Commands {
    /// `step_dt`: control step (s).
    pub fn compile(terms: &[CommandTerm], step_dt: f64, team: &Team) -> Result<Self, ConfigError> {
        let mut all = Self {
            scope: Vec::new(),
            components: Vec::new(),
        };
        let mut seen = HashSet::new();
        for (t, term) in terms.iter().enumerate() {
            let path = format!("task.command[{t}]");
            if term.range.is_empty() {
                return Err(ConfigError::new(format!("{path}.range"), "no components")
                    .help("range = [[-1.0, 1.0]]: one pair each"));
            }
            let interval = (term.resample_s / step_dt).round();
            if !(0.0..=f64::from(u32::MAX)).contains(&interval)
                || (term.resample_s > 0.0 && interval < 1.0)
            {
                return Err(ConfigError::new(
                    format!("{path}.resample_s"),
                    format!(
                        "{} s is not a number of control steps of {step_dt} s",
                        term.resample_s
                    ),
                )
                .help("0 draws only at reset"));
            }
            for agent in team.agents_of(&[&term.name, &term.unit]) {
                let name = team.fill(agent, &term.name);
                unique(&mut seen, &name, format!("{path}.name"))?;
                for (i, &pair) in term.range.iter().enumerate() {
                    let range = range(pair, &format!("{path}.range[{i}]"))?;
                    all.components.push(Component {
                        range,
                        interval: interval as u32,
                    });
                }
                let unit = team.fill(agent, &term.unit);
                all.scope
                    .push((name.into_owned(), term.range.len(), unit.into_owned()));
            }
        }
        Ok(all)
    }

    /// Components of all commands.
    pub fn width(&self) -> usize {
        self.components.len()
    }
}
