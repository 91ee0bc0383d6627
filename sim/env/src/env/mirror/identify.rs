//! The reflection of observations, term by term.

use super::Signed;
use super::alike::{self, Columns, Entry, Unlike};
use super::told::{Reader, Told};
use crate::config::ConfigError;
use crate::spaces::ObsRow;
use ostler_engine::kernels;

/// What was found of the terms.
pub(super) struct Terms<'a> {
    reader: &'a Reader<'a>,
    /// Terms of which the nearest reflection will do.
    approximate: &'a [String],
    /// How far terms are from their reflections.
    pub worst: Vec<(String, f64)>,
    /// Terms with components that neither numbers nor names tell anything of.
    pub untold: Vec<(String, Vec<usize>)>,
}

impl<'a> Terms<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, approximate: &'a [String]) -> Self {
        Self { reader, approximate, worst: Vec::new(), untold: Vec::new() }
    }

    /// The reflection of rows with these terms, the policy's or the critics': within a term entries
    /// are exchanged and signs turned over.
    pub(super) fn rows(
        &mut self,
        rows: &Columns,
        table: &[ObsRow],
        critic: bool,
    ) -> Result<Signed, ConfigError> {
        let mut all = vec![(0, 1.0); rows.width()];
        for term in table {
            let near = self.approximate.contains(&term.name);
            let most = if near { f64::INFINITY } else { alike::MOST };
            let told = self.told(rows, term, critic, near)?;
            for frame in 0..term.frames {
                let first = term.index + frame * term.stride;
                match rows.exchanged(first..first + term.len, most, &told) {
                    Ok((found, share)) => {
                        for (k, entry) in found.iter().enumerate() {
                            all[first + k] = (entry.index as u32, entry.sign);
                        }
                        self.worst.push((term.name.clone(), share));
                    }
                    Err(Unlike { entry, share }) => {
                        let why =
                            format!("the nearest differs by {:.0} % of the spread", 100.0 * share);
                        return Err(without(term, entry, &why));
                    }
                }
            }
        }
        Ok(Signed(all))
    }

    /// What the names in a term tell of its components. Of one that stays the same in all states
    /// numbers do not tell anything.
    fn told(
        &mut self,
        rows: &Columns,
        term: &ObsRow,
        critic: bool,
        near: bool,
    ) -> Result<Vec<Option<Entry>>, ConfigError> {
        let stays = |k: usize| rows.stays(term.index + k);
        let task = self.reader.task;
        let place = task.observations.term_at(term.index, critic);
        let (Some(place), true) = (place, (0..term.len).any(stays)) else {
            return Ok(Vec::new());
        };
        let told = self.reader.columns(task.code(kernels::TERM_SEEN, place));
        let mut unknown = Vec::new();
        for (k, told) in told.iter().enumerate().filter(|(k, _)| stays(*k)) {
            match told {
                Told::As(_) => {}
                Told::Undrawn(place) if !near => {
                    let event = self.reader.events.event_at(*place).unwrap_or_default();
                    let why = format!("the event \"{event}\" draws nothing for the other side");
                    return Err(without(term, k, &why));
                }
                Told::Nothing if !near => {
                    let why = "what it names has no counterpart in the term";
                    return Err(without(term, k, why));
                }
                Told::Nothing | Told::Unknown | Told::Undrawn(_) => unknown.push(k),
            }
        }
        if !unknown.is_empty() && !self.untold.iter().any(|(name, _)| *name == term.name) {
            self.untold.push((term.name.clone(), unknown));
        }
        let entry = |told: &Told| match told {
            Told::As(entry) => Some(*entry),
            _ => None,
        };
        Ok(told.iter().map(entry).collect())
    }
}

/// A term without a reflection.
fn without(term: &ObsRow, entry: usize, why: &str) -> ConfigError {
    let what = format!(
        "observation \"{}\" ({}) has no reflection: its component {entry} in reflected states is no \
         component of it under either sign ({why})",
        term.name, term.expr
    );
    let help = format!(
        "a sensor beside the plane: symmetry.approximate = [\"{}\"] takes the nearest; a clock of a \
         gait, a sum of both sides with different weights, or a number of one side alone has none: \
         leave the term or [symmetry] out, or add the other side",
        term.name
    );
    ConfigError::new("symmetry", what).help(help)
}
