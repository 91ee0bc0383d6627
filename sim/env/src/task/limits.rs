//! `[[sim.limit]]` with the names of its task.

use super::read::{Names, Parts};
use super::team::Team;
use crate::config::{ConfigError, SimConfig, TaskConfig};
use ostler_engine::config::JointLimit;
use ostler_engine::physics::Limits;
use ostler_lang::expr::Definitions;
use ostler_model::Model;

/// `sim` as engines read it: names and patterns of joints alone in `[[sim.limit]]`, in the places
/// of lists of `task` and of agents.
///
/// # Errors
/// Something there fits no joint, or limits nothing of it.
pub fn limits(model: &Model, sim: &SimConfig, task: &TaskConfig) -> Result<SimConfig, ConfigError> {
    let mut sim = sim.clone();
    if sim.limit.is_empty() {
        return Ok(sim);
    }
    let team = Team::new(task)?;
    let defined = Definitions::new(model, task, team.names())?;
    let names = Names { defined: &defined, team: &team, agent: None };
    let joints = Parts::joints(model);
    for (i, limit) in sim.limit.iter_mut().enumerate() {
        for (p, text) in std::mem::take(&mut limit.joints).into_iter().enumerate() {
            let path = format!("sim.limit[{i}].joints[{p}]");
            let own =
                JointLimit { joints: names.patterns(&text, &joints, &path)?, ..limit.clone() };
            let alone = SimConfig { limit: vec![own.clone()], ..SimConfig::default() };
            Limits::of(&alone, model).map_err(|e| ConfigError { path, ..e })?;
            limit.joints.extend(own.joints);
        }
    }
    Ok(sim)
}
