//! Other numbers for a task that is being trained: a curriculum.

use super::{BatchEnv, EnvError};
use crate::config::{ConfigError, TaskConfig};
use crate::task::{Task, same_robot};
use serde_json::Value;

impl BatchEnv {
    /// Goes on with other numbers in the task: weights, parameters, ranges, scales,
    /// noise, clips, limits. Values that environments have drawn stay until the next draw.
    /// Snapshots are still those of the task that the environments were built with: who
    /// restores one sets the numbers, too. Takes milliseconds.
    ///
    /// # Errors
    /// Anything but a number differs, named by its key; a number that cannot be. Nothing
    /// has changed then.
    pub fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        if task.agents != self.config.agents {
            return Err(ConfigError::new("agents", "has changed")
                .help("only numbers can change while a task is trained")
                .into());
        }
        only_numbers(&plain(&self.config)?, &plain(task)?, "task")?;
        if !same_robot(&self.config, task) {
            let what = "other numbers of actuators or contacts make another robot";
            return Err(ConfigError::new("task", what)
                .help(
                    "stiffness, damping and the numbers of [[task.actuator]], [[task.contact]] and \
                     [task.option] stay as they are while a task is trained; an event can draw \
                     some of them",
                )
                .into());
        }
        let compiled = Task::compile(&self.model, task, self.spec.step_dt)?;
        compiled.fits(&self.model)?;
        if compiled.sizes(&self.model, self.decimation) != self.sizes {
            let what = "another history or delay takes other room";
            return Err(ConfigError::new("task", what)
                .help("such numbers stay as they are while a task is trained")
                .into());
        }
        for scratch in self.work.scratch.iter_mut() {
            let registers = &mut scratch.registers;
            let more = compiled.scratch_len().saturating_sub(registers.len());
            registers.try_reserve(more).map_err(|_| {
                EnvError::Memory(ostler_base::memory::MemoryError {
                    what: "expressions".into(),
                    bytes: 4 * more,
                })
            })?;
        }
        self.tables = compiled.tables(&self.model, self.spec.step_dt, self.spec.max_episode_steps);
        self.task = compiled;
        self.config.clone_from(task);
        Ok(())
    }

    /// The task with its present numbers.
    pub fn task(&self) -> &TaskConfig {
        &self.config
    }
}

fn plain(task: &TaskConfig) -> Result<Value, ConfigError> {
    serde_json::to_value(task).map_err(|e| ConfigError::new("task", e.to_string()))
}

/// Refuses any difference but between numbers.
fn only_numbers(old: &Value, new: &Value, path: &str) -> Result<(), ConfigError> {
    let refuse = |path: String, what: String| {
        Err(ConfigError::new(path, what).help("only numbers can change while a task is trained"))
    };
    match (old, new) {
        (Value::Number(_), Value::Number(_)) => Ok(()),
        // serde_json has no infinity, which clips may have.
        (Value::Number(_) | Value::Null, Value::Number(_) | Value::Null) => Ok(()),
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()) {
                let path = format!("{path}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => only_numbers(x, y, &path)?,
                    (None, _) => return refuse(path, "was not there before".into()),
                    (_, None) => return refuse(path, "is no longer there".into()),
                }
            }
            Ok(())
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                only_numbers(x, y, &format!("{path}[{i}]"))?;
            }
            Ok(())
        }
        (Value::Array(a), Value::Array(b)) => {
            refuse(path.to_string(), format!("has {} elements, not {}", b.len(), a.len()))
        }
        _ if old == new => Ok(()),
        _ => refuse(path.to_string(), format!("is {new}, was {old}")),
    }
}
