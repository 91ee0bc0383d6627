//! `<tendon>`: tendons that pull are refused, the others have no effect.

use super::source::{At, Element, Fault, Read};
use super::value::{LIMITED, Limited};

/// Attributes through which a tendon acts, and their places.
#[derive(Debug, Clone, Default)]
pub(super) struct TendonSpec {
    acting: Vec<(&'static str, At)>,
    range: [f64; 2],
    limited: Option<Limited>,
}

const FORCES: [&str; 4] = ["stiffness", "damping", "frictionloss", "armature"];

impl TendonSpec {
    /// Overwrites what the element says.
    pub fn read(&mut self, e: &Element) -> Read<()> {
        for name in FORCES {
            if let (Some(values), Some(attr)) = (e.numbers(name)?, e.attr(name)) {
                self.acting.retain(|(n, _)| *n != name);
                if values.iter().any(|v| *v != 0.0) {
                    self.acting.push((name, attr.at));
                }
            }
        }
        e.array("range", &mut self.range)?;
        if let Some(attr) = e.attr("limited") {
            let mut limited = Limited::Auto;
            e.keyword("limited", LIMITED, &mut limited)?;
            self.limited = Some(limited);
            self.acting.retain(|(n, _)| *n != "limited");
            if limited == Limited::Yes {
                self.acting.push(("limited", attr.at));
            }
        }
        if let Some(attr) = e.attr("range") {
            self.acting.retain(|(n, _)| *n != "range");
            if self.range != [0.0; 2] {
                self.acting.push(("range", attr.at));
            }
        }
        Ok(())
    }

    /// Refuses the tendon if it acts on the robot.
    pub fn check(&self, e: &Element) -> Read<()> {
        let off = self.limited == Some(Limited::No);
        match self.acting.iter().find(|(n, _)| !(off && *n == "range")) {
            None => Ok(()),
            Some((name, at)) => Err(Fault::new(
                *at,
                format!(
                    "{name} of a <{}> tendon is not supported; tendons that exert no force are \
                     accepted, others need joint springs, dampers or limits instead",
                    e.name
                ),
            )),
        }
    }
}
