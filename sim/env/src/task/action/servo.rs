//! Motors that `kind = "position"` gives gains: servos, whose law holds in every physics step.

use super::super::elements::Elements;
use super::position::{is_motor, no_servo, scalar_joint};
use super::{chosen, names_of};
use crate::config::{ActionKind, ActionTerm, ConfigError, OneOrMany, TaskConfig};
use crate::task::read::Names;
use crate::task::team::Team;
use ostler_lang::expr::Definitions;
use ostler_model::{Actuator, Given, Model};
use std::collections::BTreeSet;

/// Whether a term gives gains.
pub(in crate::task) fn has_gains(term: &ActionTerm) -> bool {
    term.stiffness.is_some() || term.damping.is_some()
}

/// Makes the motors servos to which a term gives gains; `driven`: joints with a law of
/// `[[task.actuator]]`.
///
/// # Errors
/// Gains for something else than motors; negative ones.
pub(in crate::task) fn servos(
    model: &mut Model,
    cfg: &TaskConfig,
    team: &Team,
    driven: &BTreeSet<usize>,
) -> Result<(), ConfigError> {
    if !cfg.action.iter().any(has_gains) {
        return Ok(());
    }
    let before = model.clone();
    let defined = Definitions::new(&before, cfg, team.names())?;
    for (t, term) in cfg.action.iter().enumerate().filter(|(_, term)| has_gains(term)) {
        let path = format!("task.action[{t}]");
        let key = match term.stiffness {
            Some(_) => "stiffness",
            None => "damping",
        };
        if term.kind != ActionKind::Position {
            let message = "gains are for kind = \"position\"";
            return Err(ConfigError::new(format!("{path}.{key}"), message));
        }
        let agents = team.of_term(term.agents.as_deref(), &path)?;
        for agent in agents {
            let read = Names { defined: &defined, team, agent: Some(agent) };
            let chosen = chosen(&before, term, read, &path)?;
            let names: Vec<Vec<&str>> = chosen.all.iter().map(|&a| names_of(&before, a)).collect();
            let elements = Elements { what: "actuators", names: &names, mixed: chosen.mixed, read };
            let numbers = |key: &str, values: &Option<OneOrMany>| {
                let read = |v| elements.exact(v, &format!("{path}.{key}"));
                values.as_ref().map(read).transpose()
            };
            let stiffness = numbers("stiffness", &term.stiffness)?;
            let damping = numbers("damping", &term.damping)?;
            for (i, &u) in chosen.all.iter().enumerate() {
                let gains = [&stiffness, &damping].map(|g| g.as_ref().map(|g| g[i]));
                model.actuators[u] = servo(&before, u, gains, driven, &path)?;
            }
        }
    }
    Ok(())
}

/// The servo whose joint feels `stiffness (target - q) - damping dq/dt`, within what the motor
/// can give.
fn servo(
    model: &Model,
    index: usize,
    [stiffness, damping]: [Option<f64>; 2],
    driven: &BTreeSet<usize>,
    path: &str,
) -> Result<Actuator, ConfigError> {
    let actuator = &model.actuators[index];
    let name = &actuator.name;
    scalar_joint(model, actuator, path)?;
    let key = match stiffness {
        Some(_) => "stiffness",
        None => "damping",
    };
    if actuator.is_servo() {
        // What this made before stays.
        let driven = actuator.joint().is_some_and(|j| driven.contains(&j));
        if actuator.given == Given::Law && !driven {
            return Ok(actuator.clone());
        }
        return Err(ConfigError::new(
            format!("{path}.{key}"),
            format!("\"{name}\" is a position actuator with gains of its own"),
        )
        .help("remove stiffness and damping here, or make it a motor in the robot file"));
    }
    let Some(kp) = stiffness.filter(|_| is_motor(actuator)) else {
        return Err(no_servo(actuator, path));
    };
    let kd = damping.unwrap_or(0.0);
    for (key, value) in [("stiffness", kp), ("damping", kd)] {
        if value < 0.0 {
            return Err(ConfigError::new(format!("{path}.{key}"), format!("{value} is negative")));
        }
    }
    if kp == 0.0 {
        let message = "is above 0: the control is a position";
        return Err(ConfigError::new(format!("{path}.stiffness"), message));
    }
    // Both the length and the moment arm have the gear in them.
    let gear = actuator.gear[0];
    let [kp, kd] = [kp, kd].map(|k| k / (gear * gear));
    let most = actuator.ctrlrange.map(|[low, high]| {
        let ends = [low, high].map(|c| c * actuator.gain[0]);
        [ends[0].min(ends[1]), ends[0].max(ends[1])]
    });
    let forcerange = match (most, actuator.forcerange) {
        (Some([a, b]), Some([c, d])) => Some([a.max(c), b.min(d)]),
        (one, other) => one.or(other),
    };
    Ok(Actuator {
        element: "position",
        ctrlrange: None,
        forcerange,
        gain: [kp, 0.0, 0.0],
        bias: [0.0, -kp, -kd],
        given: Given::Law,
        ..actuator.clone()
    })
}
