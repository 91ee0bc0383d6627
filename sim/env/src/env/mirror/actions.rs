//! The reflection of actions.

use super::Signed;
use crate::config::ConfigError;
use crate::env::BatchEnv;
use crate::task::Task;
use ostler_model::mirror::Mirror;
use ostler_model::{Delay, Model};

/// Outputs of actuators that become each other.
pub(super) fn reflection(env: &BatchEnv, mirror: &Mirror) -> Result<Signed, ConfigError> {
    let (task, model) = (env.compiled(), env.model());
    let names = task.actions.names(model, &task.team);
    let mut all = vec![None; task.actions.outputs()];
    for drive in &task.actions.drives {
        let (other, sign) = mirror.actuators[drive.actuator];
        let found = task.actions.drives.iter().find(|d| d.actuator == other);
        let law = found.and_then(|d| Some((d.output, d.law.beside(&drive.law, sign as f32)?)));
        let (from, to) = (&model.actuators[drive.actuator].name, &model.actuators[other].name);
        let Some((output, sign)) = law else {
            let what = format!(
                "what the actions make of \"{from}\" is not the reflection of what they make of \
                 \"{to}\": other scales, offsets, kinds or default positions"
            );
            let help = format!(
                "give both sides the same [[task.action]] numbers, and in the default pose \
                 ({}) positions that are each other's reflection: opposite ones where axes are not",
                env.pose().name
            );
            return Err(ConfigError::new("task.action", what).help(help));
        };
        // Reflected, this drive's output is that output.
        let entry = (drive.output as u32, sign);
        if all[output].replace(entry).is_some_and(|before| before != entry) {
            let what = format!("output \"{}\" drives both sides", names[output]);
            return Err(ConfigError::new("task.action", what).help("leave [symmetry] out"));
        }
    }
    let found: Option<Vec<(u32, f32)>> = all.into_iter().collect();
    found.map(Signed).ok_or_else(|| {
        ConfigError::new("task.action", "an output drives nothing").help("leave [symmetry] out")
    })
}

/// Refuses outputs that are clipped to other ranges on the other side, and those of the task as it
/// is written that arrive at other times. Ranges that follow from actuators differ as these do,
/// which is said.
pub(super) fn timely(
    model: &Model,
    task: &Task,
    action: &Signed,
    mirror: &Mirror,
) -> Result<(), ConfigError> {
    let actions = &task.actions;
    let names = actions.names(model, &task.team);
    let none = Delay::default();
    let late = |output: usize| {
        let mut late = actions.late.iter();
        late.find(|(range, _)| range.contains(&output)).map_or(none, |(_, delay)| *delay)
    };
    for (output, &(other, sign)) in action.0.iter().enumerate() {
        let other = other as usize;
        let both = format!("\"{}\" and \"{}\"", names[output], names[other]);
        if late(output) != late(other) {
            let what = format!("the outputs of {both} arrive by different delays");
            let help = "give [[task.action]] of both sides the same delay, or leave [symmetry] out";
            return Err(ConfigError::new("task.action", what).help(help));
        }
        let [[low, high], there] = [output, other].map(|k| actions.clip[k]);
        let wanted = if sign < 0.0 { [-high, -low] } else { [low, high] };
        let near = |a: f32, b: f32| a == b || (a - b).abs() <= 1e-3 * (high - low).abs();
        let given = actions.clipped.contains(&output) || actions.clipped.contains(&other);
        if given && !(near(there[0], wanted[0]) && near(there[1], wanted[1])) {
            let what = format!(
                "the outputs of {both} are clipped to {there:?} and {:?}: these are not each \
                 other's reflection",
                [low, high]
            );
            let help =
                format!("clip = {wanted:?} for \"{}\", or leave [symmetry] out", names[other]);
            return Err(ConfigError::new("task.action", what).help(help));
        }
    }
    for (u, &(v, _)) in mirror.actuators.iter().enumerate() {
        let delay = |u: usize| model.actuators[u].motor.as_ref().map_or(none, |m| m.delay);
        if delay(u) != delay(v) {
            let what = format!(
                "controls of \"{}\" and \"{}\" arrive by different delays",
                model.actuators[u].name, model.actuators[v].name
            );
            let help =
                "give [[task.actuator]] of both sides the same delay, or leave [symmetry] out";
            return Err(ConfigError::new("task.actuator", what).help(help));
        }
    }
    Ok(())
}
