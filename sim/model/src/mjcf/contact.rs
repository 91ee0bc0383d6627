//! `<contact>`: pairs and exclusions.

use super::element::{Element, Fault, Read};
use super::names::find;
use crate::{Model, Pair};

/// Attributes of a pair.
#[derive(Debug, Clone)]
pub(super) struct PairSpec {
    condim: i32,
    friction: [f64; 5],
    solref: [f64; 2],
    solreffriction: [f64; 2],
    solimp: [f64; 5],
    margin: f64,
    gap: f64,
    adhesion: f64,
}

impl Default for PairSpec {
    fn default() -> Self {
        Self {
            condim: 3,
            friction: [1.0, 1.0, 0.005, 0.0001, 0.0001],
            solref: super::joint::SOLREF,
            solreffriction: [0.0; 2],
            solimp: super::joint::SOLIMP,
            margin: 0.0,
            gap: 0.0,
            adhesion: 0.0,
        }
    }
}

impl PairSpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.integer("condim", &mut self.condim)?;
        e.fill("friction", 1, &mut self.friction)?;
        e.fill("solref", 1, &mut self.solref)?;
        e.fill("solreffriction", 1, &mut self.solreffriction)?;
        e.fill("solimp", 1, &mut self.solimp)?;
        e.scalar("margin", &mut self.margin)?;
        e.scalar("gap", &mut self.gap)?;
        e.scalar("adhesion", &mut self.adhesion)?;
        if ![1, 3, 4, 6].contains(&self.condim) {
            let at = e.attr("condim").map_or(e.at, |a| a.value_at(0));
            let why = format!("condim {} is not one of 1, 3, 4, 6", self.condim);
            return Err(Fault::new(at, why));
        }
        Ok(())
    }
}

/// Reads one `<contact>` into `model`, whose geoms and bodies are complete. `class`: what a pair
/// starts from.
pub(super) fn read(
    e: &Element,
    class: impl Fn(&Element) -> Read<PairSpec>,
    model: &mut Model,
) -> Read<()> {
    for child in &e.children {
        let index = |attr: &str, kind: &'static str, names: &[&str]| {
            child.required(attr)?;
            let attr = child.attr(attr).ok_or_else(|| Fault::new(child.at, "missing attribute"))?;
            find(attr, kind, names.iter().copied())
        };
        if child.name == "exclude" {
            let names: Vec<_> = model.bodies.iter().map(|b| b.name.as_str()).collect();
            let (a, b) = (index("body1", "body", &names)?, index("body2", "body", &names)?);
            let pair = (a.min(b), a.max(b));
            if !model.excludes.contains(&pair) {
                model.excludes.push(pair);
            }
        } else {
            let names: Vec<_> = model.geoms.iter().map(|g| g.name.as_str()).collect();
            let (a, b) = (index("geom1", "geom", &names)?, index("geom2", "geom", &names)?);
            let mut spec = class(child)?;
            spec.read(child)?;
            let swap = model.geoms[a].body > model.geoms[b].body;
            model.pairs.push(Pair {
                geom1: if swap { b } else { a },
                geom2: if swap { a } else { b },
                condim: spec.condim as u32,
                friction: spec.friction,
                solref: spec.solref,
                solref_friction: spec.solreffriction,
                solimp: spec.solimp,
                margin: spec.margin,
                gap: spec.gap,
                adhesion: spec.adhesion,
            });
        }
    }
    Ok(())
}
