//! `kind = "velocity"`: where a robot is to go, and how fast.
//!
//! Source: mjlab's `UniformVelocityCommand` (1.6), whose draws and order of corrections these
//! are; Isaac Lab's of the same name lacks `forward` and `world`; `deadband` is legged_gym's.

use super::super::read::{Names, Parts, free_joint};
use super::share;
use crate::config::{CommandTerm, ConfigError, Distribution, Heading};
use ostler_lang::{number, range};
use ostler_model::Model;

/// The compiled term.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    /// Its first component of all commands.
    pub first: usize,
    /// The body whose velocity is meant.
    pub body: usize,
    /// x, y, turn, heading.
    pub ranges: [[f32; 2]; 4],
    pub stiffness: f32,
    /// Heading, standing, forward, world.
    pub shares: [f32; 4],
    pub deadband: f32,
}

impl Course {
    pub(crate) fn compile(
        (model, names): (&Model, Names<'_>),
        term: &CommandTerm,
        first: usize,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let at = |key: &str| format!("{path}.{key}");
        for (key, given) in [
            ("range", !term.range.is_empty()),
            ("distribution", term.distribution != Distribution::Uniform),
            ("mean", !term.mean.is_empty()),
            ("std", !term.std.is_empty()),
            ("probability", !term.probability.is_empty()),
            ("choices", !term.choices.is_empty()),
            ("weights", !term.weights.is_empty()),
            ("unit", !term.unit.is_empty()),
        ] {
            if given {
                return Err(ConfigError::new(at(key), "has no meaning for velocities")
                    .help("lin_vel_x = [-1.0, 1.0], lin_vel_y, ang_vel_z"));
            }
        }
        let pair = |key: &str, pair: Option<[f64; 2]>| match pair {
            Some(pair) => range(pair, &at(key)),
            None => Ok([0.0; 2]),
        };
        if [term.lin_vel_x, term.lin_vel_y, term.ang_vel_z] == [None; 3] {
            return Err(ConfigError::new(path, "no velocities")
                .help("lin_vel_x = [-1.0, 1.0], lin_vel_y, ang_vel_z"));
        }
        let none = Heading { share: 0.0, ..Heading::default() };
        let heading = term.heading.as_ref().unwrap_or(&none);
        let deadband = number(term.deadband, &at("deadband"))?;
        if deadband < 0.0 {
            let message = format!("{deadband} is negative");
            return Err(ConfigError::new(at("deadband"), message));
        }
        Ok(Self {
            first,
            body: body(model, names, term.frame.as_deref(), &at("frame"))?,
            ranges: [
                pair("lin_vel_x", term.lin_vel_x)?,
                pair("lin_vel_y", term.lin_vel_y)?,
                pair("ang_vel_z", term.ang_vel_z)?,
                range(heading.range, &at("heading.range"))?,
            ],
            stiffness: number(heading.stiffness, &at("heading.stiffness"))?,
            shares: [
                share(heading.share, &at("heading.share"))?,
                share(term.standing, &at("standing"))?,
                share(term.forward, &at("forward"))?,
                share(term.world, &at("world"))?,
            ],
            deadband,
        })
    }
}

/// The body that is named, or the one that flies freely.
fn body(
    model: &Model,
    names: Names<'_>,
    name: Option<&str>,
    path: &str,
) -> Result<usize, ConfigError> {
    if let Some(name) = name {
        return names.one(name, &Parts::bodies(model), path);
    }
    let mut bodies = (1..model.bodies.len()).filter(|b| free_joint(model, *b).is_some());
    match (bodies.next(), bodies.next()) {
        (Some(body), None) => Ok(body),
        (found, _) => {
            let message = match found {
                None => "no body has a free joint",
                Some(_) => "several bodies have a free joint",
            };
            Err(ConfigError::new(path, message).help("name the body: frame = \"trunk\""))
        }
    }
}
