//! `ostler check` of environments in the place of a robot's.

use super::sizes::sizes;
use ostler_learn::config::Loaded;
use ostler_learn::environments::Foreign;
use ostler_run::forecast::fit::foreseen;
use ostler_run::log::outln;
use ostler_run::run::{RunError, robot};
use ostler_sim::env::ActionSpace;

/// Makes one environment, and prints what it comes to.
pub(super) fn check(loaded: &Loaded, foreign: &Foreign, quiet: bool) -> Result<i32, RunError> {
    let config = &loaded.config;
    if !quiet {
        let text = toml::to_string(config)
            .map_err(|e| RunError::Usage(format!("the configuration cannot be written: {e}")))?;
        outln!("{text}");
    }
    let spec = &foreign.facts()?.spec;
    outln!("environments: {}", foreign.name());
    outln!("observations: {} numbers", spec.obs.policy);
    match spec.action {
        ActionSpace::Continuous(n) => outln!("actions: {n} numbers"),
        ActionSpace::Discrete(n) => outln!("actions: one of {n} choices"),
    }
    outln!("control step {} s, time-out after {} steps", spec.step_dt, spec.max_episode_steps);
    if foreign.forgets() {
        outln!("their state cannot be saved: episodes begin anew after a roll-back and a resume");
    }
    sizes(loaded, spec)?;
    outln!("{}", foreseen(loaded, &robot(loaded)?)?);
    outln!("{} is sound", loaded.path.display());
    Ok(0)
}
