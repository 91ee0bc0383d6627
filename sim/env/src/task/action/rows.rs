//! Rows of controls: `kind = "discrete"` chooses one, `"binary"` one of two by a sign.

use super::super::elements::Chosen;
use super::{Actions, Drive, Law, UNLIMITED, limits};
use crate::config::{ActionTerm, ConfigError, OneOrMany, Ranges};
use crate::spaces::ActionSpace;
use ostler_lang::{clip_range, number};
use ostler_model::Model;

impl Actions {
    /// One of several rows.
    pub(super) fn discrete(
        &mut self,
        model: &Model,
        (t, term): (usize, &ActionTerm),
        chosen: &Chosen,
        path: &str,
    ) -> Result<ActionSpace, ConfigError> {
        if term.choices.len() < 2 {
            return Err(ConfigError::new(
                format!("{path}.choices"),
                "a discrete action needs at least two choices",
            )
            .help("choices = [[-1.0], [1.0]]: one row of controls per choice"));
        }
        only_rows(term, true, path)?;
        self.rows(model, (t, term), chosen, Law::Choice, path)?;
        let n = term.choices.len();
        self.clip.push([0.0, (n - 1) as f32]);
        Ok(ActionSpace::Discrete(n))
    }

    /// One output for all actuators of a term.
    pub(super) fn binary(
        &mut self,
        model: &Model,
        (t, term): (usize, &ActionTerm),
        chosen: &Chosen,
        path: &str,
    ) -> Result<(), ConfigError> {
        if term.choices.len() != 2 {
            let message = "a binary action has two rows of controls";
            return Err(ConfigError::new(format!("{path}.choices"), message).help(
                "choices = [[0.0, 0.0], [0.04, 0.04]]: for outputs below 0, and for all others; \
                 one number for each actuator",
            ));
        }
        only_rows(term, false, path)?;
        let clip = match &term.clip {
            None => UNLIMITED,
            Some(Ranges::One(pair)) => clip_range(*pair, &format!("{path}.clip"))?,
            Some(_) => {
                let message = "a binary action has one output";
                let error = ConfigError::new(format!("{path}.clip"), message);
                return Err(error.help("clip = [-1.0, 1.0]"));
            }
        };
        self.rows(model, (t, term), chosen, Law::Binary, path)?;
        self.clip.push(clip);
        Ok(())
    }

    /// The drives of actuators that get an entry of a row of `choices`.
    fn rows(
        &mut self,
        model: &Model,
        (t, term): (usize, &ActionTerm),
        chosen: &Chosen,
        law: fn(Vec<f32>) -> Law,
        path: &str,
    ) -> Result<(), ConfigError> {
        for (i, &actuator) in chosen.all.iter().enumerate() {
            let mut table = Vec::new();
            for (r, row) in term.choices.iter().enumerate() {
                let path = format!("{path}.choices[{r}]");
                let (found, wanted) = (row.len(), chosen.all.len());
                if found != wanted {
                    let message = format!("{found} controls for {wanted} actuators");
                    return Err(ConfigError::new(path, message));
                }
                Chosen::listed(chosen.mixed, found, "controls", &path)?;
                table.push(number(row[i], &path)?);
            }
            self.drives.push(Drive {
                actuator,
                output: self.clip.len(),
                law: law(table),
                ctrlrange: limits(&model.actuators[actuator]),
                term: t,
                encoder: None,
            });
        }
        Ok(())
    }
}

/// Refuses what has no meaning beside rows of controls.
fn only_rows(term: &ActionTerm, discrete: bool, path: &str) -> Result<(), ConfigError> {
    let kind = if discrete { "discrete" } else { "binary" };
    for (key, given) in [
        ("scale", term.scale != OneOrMany::One(1.0)),
        ("offset", term.offset != OneOrMany::One(0.0)),
        ("clip", discrete && term.clip.is_some()),
    ] {
        if given {
            let message = format!("has no meaning for kind = \"{kind}\"");
            return Err(ConfigError::new(format!("{path}.{key}"), message)
                .help("write the controls themselves into `choices`"));
        }
    }
    Ok(())
}
