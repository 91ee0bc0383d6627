//! What a robot's reflection makes of what a policy sees and does, found out by trying: the task
//! runs twice, once reflected, and numbers are compared.
//!
//! The second batch has the first one's draws. Its states are the reflections of the first one's,
//! its commands and actions too; so its observations have to be those of the first with entries
//! exchanged and signs turned over, and its rewards the same. Expressions need no rules for this,
//! native code and sensors neither.

mod actions;
mod alike;
mod events;
mod identify;
mod pair;
mod told;

use super::{BatchEnv, EnvError};
use crate::config::file::Simulation;
use crate::config::{Backend, ConfigError, RewardTerm, SimConfig, TaskConfig};
use crate::config::{HalfOrRange, ObservationTerm, Spread, SpreadConfig};
pub use crate::reflection::{Reflection, Signed};
use crate::spaces::{ActionSpace, ObsRow};
use crate::task::doubts::INSIDE;
use alike::Entry;
use ostler_base::names::nearest;
use ostler_engine::physics::mirror::{ground_alone, grounds, prove, without_contacts};
use ostler_model::Model;
use ostler_model::mirror::{Mirror, MirrorError, Pairs};
use pair::Pair;
use std::sync::Arc;

/// Environments of each side.
const ENVS: usize = 64;
/// States of the robot alone.
const STATES: u32 = 1000;
/// How far accelerations may be from their reflections in the median state: beyond, the two sides
/// are different robots.
const MOST: f64 = 0.05;

/// What is to be reflected.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sides {
    /// Normal of the plane: 0 is x, 1 is y.
    pub axis: usize,
    /// Names of the two sides.
    pub pairs: Pairs,
    /// Observation terms of which the nearest reflection will do.
    pub approximate: Vec<String>,
}

/// Where a mistake about a robot's reflection lies.
fn refused(e: &MirrorError) -> ConfigError {
    let key = match e {
        MirrorError::HalfPattern { .. }
        | MirrorError::Stars(_)
        | MirrorError::Unused(_)
        | MirrorError::NoCounterpart { .. } => "symmetry.pairs",
        _ => "symmetry",
    };
    let help = match e {
        MirrorError::HalfPattern { .. } | MirrorError::Stars(_) | MirrorError::Unused(_) => {
            "symmetry.pairs = [[\"left_*\", \"right_*\"]]: names of bodies, joints and actuators"
        }
        MirrorError::Nothing => {
            "symmetry.plane names the plane: \"xz\" exchanges left and right of a robot that looks \
             along x; \"yz\" forwards and backwards"
        }
        _ => {
            "symmetry.plane and symmetry.pairs say what is reflected; a robot that is not \
             symmetric has no [symmetry]"
        }
    };
    ConfigError::new(key, e.to_string()).help(help)
}

impl Reflection {
    /// Finds the reflection of a configuration's task.
    ///
    /// # Errors
    /// The robot or a term of the task has none, with the name of what is in the way; what
    /// [`BatchEnv::of`] refuses.
    pub fn find(config: &Simulation, model: Arc<Model>, sides: &Sides) -> Result<Self, EnvError> {
        if config.agents.is_some() || config.task.agents.is_some() {
            let what = "reflections of several agents are not found";
            return Err(ConfigError::new("symmetry", what).help("leave [symmetry] out").into());
        }
        let mut config = config.clone();
        let idle = config.task.reward.iter().filter(|r| r.weight == 0.0);
        let idle: Vec<String> = idle.map(|r| r.name.clone()).collect();
        let (sim, decimation) = (config.sim.clone(), config.env.decimation as f64);
        let step_dt = |model: &Model| sim.timestep(model) * decimation;
        let (whole, task) = crate::task::prepare(&model, &config.task, step_dt)?;
        let judged = quiet(&mut config.task);
        config.env.num_envs = ENVS;
        config.sim = SimConfig { backend: Backend::Native, ..config.sim.generic() };
        let first = BatchEnv::of(&config, model)?;
        let model = Arc::clone(first.model());
        if first.spec().action != ActionSpace::Continuous(first.spec().action.width()) {
            let what = "a discrete action has no reflection";
            return Err(ConfigError::new("symmetry", what).help("leave [symmetry] out").into());
        }
        let (mirror, differences) =
            Mirror::find(&model, sides.axis, &sides.pairs).map_err(|e| refused(&e))?;
        let about = &first.pose().qpos;
        // Shapes that are inside each other would hide what moves alike.
        let apart = Arc::new(ground_alone(&model));
        let proof = prove(&apart, &mirror, about, STATES)?;
        let even = match differences.is_empty() {
            true => Arc::clone(&model),
            false => Arc::new(mirror.even(&model)),
        };
        let touching = prove(&even, &mirror, about, STATES)?;
        let free = match touching.holds() {
            true => touching.clone(),
            false => prove(&Arc::new(without_contacts(&even)), &mirror, about, STATES)?,
        };
        if proof.typical > MOST {
            let joint = proof.joint.as_deref().unwrap_or("none");
            let most = differences.first().map_or_else(
                || "no number of the two sides differs: an equality or a tendon may".to_owned(),
                |d| d.to_string(),
            );
            let what = format!(
                "the two sides move differently: accelerations of reflected states differ by {:.1} \
                 % in the median state, most at joint \"{joint}\"; {most}",
                100.0 * proof.typical
            );
            let help = "make the two sides alike, or leave [symmetry] out";
            return Err(ConfigError::new("symmetry", what).help(help).into());
        }
        let action = actions::reflection(&first, &mirror)?;
        actions::timely(&whole, &task, &action, &mirror)?;
        // Parts that are inside each other in the default pose do not touch where the task runs,
        // nor do their counterparts.
        let pose = about.iter().map(|x| *x as f32).collect();
        let overlaps = first.physics().inside(&[pose], INSIDE);
        let mut parted = Model::clone(&model);
        for pair in overlaps.iter().flatten() {
            let own = pair.geoms.map(|g| model.geoms[g].body);
            for [a, b] in [own, own.map(|b| mirror.bodies[b])] {
                parted.excludes.extend((a.min(b) > 0).then_some((a.min(b), a.max(b))));
            }
        }
        drop(first);
        let models = grounds(&Arc::new(parted), sides.axis, 0.05);
        let mut pair = Pair::new(&config, models, &mirror, &action)?;
        let command = pair.commands(&sides.pairs)?;
        let commands = pair.one_sided(&command);
        let seen = pair.watch(&command)?;
        let spec = pair.spec().clone();
        if seen.policy.rows() < ENVS {
            let what = "the task breaks in nearly all random states: nothing is left to compare";
            let help = "`ostler check` without [symmetry], then a short training, says what breaks";
            return Err(ConfigError::new("symmetry", what).help(help).into());
        }
        for (k, name) in sides.approximate.iter().enumerate() {
            if !config.task.observation.iter().any(|term| term.name == *name) {
                let names = config.task.observation.iter().map(|term| term.name.as_str());
                let what = format!("no observation is called \"{name}\"");
                let error = ConfigError::new(format!("symmetry.approximate[{k}]"), what);
                return Err(match nearest(name, names) {
                    Some(near) => error.help(format!("did you mean \"{near}\"?")),
                    None => error,
                }
                .into());
            }
        }
        let drawn = events::Numbers::new(&whole, &mirror, &task);
        let reader = told::Reader {
            model: &whole,
            task: &task,
            mirror: &mirror,
            action: &action,
            command: &command,
            events: &drawn,
        };
        let mut terms = identify::Terms::new(&reader, &sides.approximate);
        let policy = terms.rows(&seen.policy, &spec.obs_table.policy, false)?;
        let critic = match &spec.obs_table.critic {
            None => None,
            Some(table) => {
                let mut rows = table.clone();
                for group in &spec.groups {
                    let own = group.table.iter().cloned();
                    rows.extend(own.map(|r| ObsRow { index: r.index + group.first, ..r }));
                }
                Some(terms.rows(&seen.critic, &rows, true)?)
            }
        };
        let events = drawn.one_sided();
        let identify::Terms { worst: mut terms, untold, .. } = terms;
        let mut rewards = Vec::new();
        for (k, name) in spec.reward_names.iter().enumerate() {
            let share = seen.rewards.apart(k, Entry { index: k, sign: 1.0 });
            let of = judged.iter().find(|(own, _)| own == name);
            let kind = of.map_or("task.reward", |(_, kind)| *kind);
            let idle = idle.contains(name);
            if share > alike::MOST && !idle {
                let what = format!(
                    "\"{name}\" of [[{kind}]] is not the same in reflected states: it differs by \
                     {:.0} % of its spread",
                    100.0 * share
                );
                let help = "a reward or condition that prefers a side stands in the way: write it \
                            for both sides alike, or leave [symmetry] out";
                return Err(ConfigError::new("symmetry", what).help(help).into());
            }
            let weight = if idle { ", whose weight is 0," } else { "" };
            rewards.push((format!("\"{name}\" of [[{kind}]]{weight}"), share));
        }
        rewards.sort_by(|a, b| b.1.total_cmp(&a.1));
        terms.sort_by(|a, b| b.1.total_cmp(&a.1));
        terms.dedup_by(|a, b| a.0 == b.0);
        Ok(Self {
            policy,
            critic,
            action,
            command,
            mirror,
            proof,
            touching,
            free,
            differences,
            terms,
            untold,
            commands,
            events,
            rewards,
        })
    }
}

/// Without what is drawn for each environment: biases and delays. Conditions of ends and of new
/// commands become rewards, so that no episode ends and commands stay; rewards without a weight get
/// one, so that they are seen. Returns the names of those conditions, and their tables.
fn quiet(task: &mut TaskConfig) -> Vec<(String, &'static str)> {
    let still = |bias: &mut Option<Spread>| {
        if let Some(bias) = bias {
            let when = match bias {
                Spread::Named(own) => own.when,
                _ => None,
            };
            let uniform = Some(HalfOrRange::Half(0.0));
            *bias = Spread::Named(SpreadConfig { uniform, when, ..SpreadConfig::default() });
        }
    };
    for ObservationTerm { bias, delay, critic, .. } in &mut task.observation {
        still(bias);
        *delay = None;
        if let Some(critic) = critic {
            still(&mut critic.bias);
            critic.delay = None;
        }
    }
    task.action.iter_mut().for_each(|term| term.delay = None);
    task.actuator.iter_mut().for_each(|term| term.delay = None);
    let mut judged = Vec::new();
    let ends = std::mem::take(&mut task.termination);
    let ends = ends.into_iter().map(|end| (end.name, end.expr, "task.termination"));
    let commands = task.command.iter_mut().filter_map(|command| {
        let name = format!("resample_when of {}", command.name);
        Some((name, command.resample_when.take()?, "task.command"))
    });
    for (name, expr, kind) in ends.chain(commands) {
        judged.push((name.clone(), kind));
        if !task.reward.iter().any(|r| r.name == name) {
            task.reward.push(RewardTerm { name, expr, weight: 1.0, agents: None });
        }
    }
    task.reward.iter_mut().filter(|r| r.weight == 0.0).for_each(|r| r.weight = 1.0);
    task.rewards.clip = None;
    judged
}
