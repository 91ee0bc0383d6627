//! As many environments as fit, before a run begins.

use super::Parts;
use super::machine::release;
use crate::forecast::fit::Foreseen;
use crate::run::error::RunError;
use ostler_collector::peers::Group;
use ostler_learn::config::{Config, Loaded};
use ostler_learn::drill::Drill;
use ostler_sim::Model;
use ostler_sim::env::{EnvSpec, Injection, Which};
use std::sync::Arc;

/// Drills for environments that there are not: said, for nothing would be seen.
pub(crate) fn nowhere(drills: &[Drill], config: &Config) -> Option<String> {
    let (most, processes) = (config.most_envs(), Group::current().size());
    drills.iter().find_map(|drill| match drill {
        Drill::Env(Injection {
            env: Which::One(id),
            ..
        }) if *id as usize >= most => Some(format!(
            "DRILL: there is no environment {id}: with {most} of them the last is env={}; this fault will not come",
            most.saturating_sub(1)
        )),
        Drill::Run(fault) if fault.process >= processes => Some(format!(
            "DRILL: there is no process {}, of {processes}; this fault will not come",
            fault.process
        )),
        _ => None,
    })
}

/// Fewer environments where those that are asked for were measured not to fit: a control
/// group kills instead of failing, so it must not come to that. Says so.
pub(crate) fn reduce(config: &mut Config, foreseen: &Foreseen) -> Option<String> {
    let asked = config.env.num_envs;
    let mut n = asked;
    while !foreseen.fits(n) {
        n = config.fewer_envs(n)?;
    }
    config.env.num_envs = n;
    (n < asked).then(|| {
        let note = &foreseen.note;
        format!("{asked} environments do not fit, {n} are taken: {note}")
    })
}

/// Builds everything for as many environments as fit, `env.num_envs` at most; `spec`: of
/// any number.
///
/// # Errors
/// The task has a mistake, or memory does not suffice for any number.
pub(crate) fn fitting(
    loaded: &mut Loaded,
    model: &Arc<Model>,
    spec: &EnvSpec,
    warnings: &mut Vec<String>,
) -> Result<Parts, RunError> {
    loop {
        let config = &loaded.config;
        // With what every iteration keeps: there is no way back from the first one that
        // cannot keep its start.
        let build = || {
            let mut parts = Parts::build(loaded, model, spec)?;
            parts.capture()?;
            Ok::<_, RunError>(parts)
        };
        let e = match build() {
            Ok(parts) => return Ok(parts),
            Err(e) if e.out_of_memory().is_some() => e,
            Err(e) => return Err(e),
        };
        release(config);
        let n = config.env.num_envs;
        let Some(to) = config.fewer_envs(n) else {
            return Err(e);
        };
        warnings.push(format!("{n} environments do not fit, {to} are tried: {e}"));
        loaded.config.env.num_envs = to;
    }
}
