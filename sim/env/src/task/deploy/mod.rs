//! A task without its simulation: what one agent sees and does, as a robot's own program has it.
//!
//! [`Deployment`] says in which order and how terms stand in the policy's row and how outputs
//! become controls. [`Measured`] is what a robot has to measure for that, and its terms as C.

mod c;
mod controls;
mod depend;
mod measured;
mod rows;
mod table;

pub use c::{Parts, comment, identifier};
pub use controls::{Control, DeployedJoint, Mapping};
pub use measured::{Measured, Missing, Unmeasured};
pub use rows::{Command, DeployedTerm, Output};
pub use table::{Entry, Row, aligned};

use super::Task;
use crate::spaces::ActionSpace;
use ostler_base::names::nearest;
use ostler_model::Model;

/// What one agent of a task sees and does.
#[derive(Debug, Clone)]
pub struct Deployment<'a> {
    task: &'a Task,
    model: &'a Model,
    agent: usize,
    /// Control step (s).
    pub step_dt: f64,
    /// Control steps until the time-out.
    pub max_steps: u32,
    /// The agent's name, where the task has several.
    pub name: Option<String>,
    /// The policy's number among those of the task.
    pub policy: usize,
    /// What the policy sees, in the order of its row.
    pub terms: Vec<DeployedTerm>,
    /// Numbers of its row, `O`: of all terms with their earlier values.
    pub width: usize,
    /// Its actions.
    pub space: ActionSpace,
    /// Its outputs, in order; one of a discrete policy.
    pub outputs: Vec<Output>,
    /// Controls that follow from them, in order.
    pub controls: Vec<Control>,
    /// The robot's hinge and slide joints, in the model's order.
    pub joints: Vec<DeployedJoint>,
    /// Actuators that no policy drives and that hold the task's pose, with their controls.
    pub held: Vec<(String, f32)>,
    /// Commands of the task, in order.
    pub commands: Vec<Command>,
}

/// Whose policy a file's may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// This deployment's, or nothing says whose.
    This,
    /// Another agent's, which has a policy of its own.
    Other(String),
    /// Nobody's of the task: it has other outputs.
    Nobody,
}

/// Why there is no such deployment.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// There is no agent of this name.
    #[error("no agent is called \"{name}\"; {help}")]
    Agent {
        /// The name.
        name: String,
        /// The remedy.
        help: String,
    },
    /// Several agents, and none was named.
    #[error("the task has several policies: name an agent of one with --agent: {0}")]
    WhichAgent(String),
    /// There is no term of this name.
    #[error("the policy has no observation called \"{name}\"; {help}")]
    Term {
        /// The name.
        name: String,
        /// The remedy.
        help: String,
    },
    /// Controls that are added to what the robot does.
    #[error(
        "the control of \"{0}\" is added to {1}, which C programs do not keep; --format onnx or \
         torchscript, whose manifest says what is added to what"
    )]
    Added(String, &'static str),
    /// Observations of which a robot has no measurement.
    #[error("{}", measured::explain(.0))]
    Unmeasured(Vec<Unmeasured>),
}

impl<'a> Deployment<'a> {
    /// Of the agent called `agent`, or of the only policy.
    ///
    /// `step_dt`: control step (s); `max_steps`: until the time-out.
    ///
    /// # Errors
    /// There is no such agent, or several policies and no name.
    pub fn new(
        task: &'a Task,
        model: &'a Model,
        agent: Option<&str>,
        step_dt: f64,
        max_steps: u32,
    ) -> Result<Self, DeployError> {
        let names = task.team.names();
        let agent = match agent {
            Some(name) => place(names, name)?,
            None if task.team.policy_names.len() > 1 => {
                return Err(DeployError::WhichAgent(names.join(", ")));
            }
            None => 0,
        };
        let terms = rows::terms(task, model, agent);
        Ok(Self {
            agent,
            step_dt,
            max_steps,
            name: names.get(agent).cloned(),
            policy: task.team.policy[agent],
            width: task.observations.agents[agent].width.policy,
            space: task.actions.spaces[agent],
            outputs: rows::outputs(task, model, agent),
            controls: controls::controls(task, model, agent),
            joints: controls::joints(task, model),
            held: controls::held(task, model),
            commands: rows::commands(task),
            terms,
            task,
            model,
        })
    }

    /// Whose policy it is that is said to be of agent `name` and to have these outputs (none:
    /// nothing is said).
    pub fn owner(&self, name: Option<&str>, outputs: &[&str]) -> Owner {
        let team = &self.task.team;
        let other = |k: usize| match (team.policy[k] == self.policy, team.names().get(k)) {
            (false, Some(name)) => Owner::Other(name.clone()),
            _ => Owner::This,
        };
        let named = name.and_then(|name| team.names().iter().position(|own| own == name));
        if let Some(owner @ Owner::Other(_)) = named.map(other) {
            return owner;
        }
        let own = |k: &usize| {
            let own = rows::outputs(self.task, self.model, *k);
            own.iter().map(|o| o.name.as_str()).eq(outputs.iter().copied())
        };
        let mut owners: Vec<Owner> = (0..team.policy.len()).filter(own).map(other).collect();
        match (outputs.is_empty() || owners.contains(&Owner::This), owners.pop()) {
            (true, _) => Owner::This,
            (false, Some(other)) => other,
            (false, None) => Owner::Nobody,
        }
    }

    /// Numbers of all terms of one control step, `K`.
    pub fn inputs(&self) -> usize {
        self.terms.iter().map(|t| t.len).sum()
    }

    /// Whether a term has earlier values in the row.
    pub fn looks_back(&self) -> bool {
        self.terms.iter().any(|t| t.frames > 1)
    }

    /// Terms with the place of their first number among all of one control step.
    pub fn placed(&self) -> impl Iterator<Item = (usize, &DeployedTerm)> {
        let mut at = 0;
        self.terms.iter().map(move |term| {
            at += term.len;
            (at - term.len, term)
        })
    }

    /// What the terms were before they were scaled, of a row `[O]` as environments make it,
    /// into `out [K]`: the newest values. What was clipped is at an end of its range, and a
    /// factor of 0 leaves 0.
    pub fn terms_of_row(&self, row: &[f32], out: &mut [f32]) {
        for (at, term) in self.placed() {
            for i in 0..term.len {
                let seen = row[term.newest() + i];
                let scale = term.scale[i];
                out[at + i] = if scale == 0.0 { 0.0 } else { seen / scale };
            }
        }
    }
}

/// The place of a name.
fn place(names: &[String], name: &str) -> Result<usize, DeployError> {
    if let Some(place) = names.iter().position(|n| n == name) {
        return Ok(place);
    }
    let help = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if names.is_empty() => "the task has no [agents]".to_string(),
        None => format!("there are: {}", names.join(", ")),
    };
    Err(DeployError::Agent { name: name.to_string(), help })
}

#[cfg(test)]
mod tests;
