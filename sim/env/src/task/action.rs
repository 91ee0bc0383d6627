//! `[[task.action]]`: policy outputs to controls.

mod encoders;
mod position;
mod rows;
mod servo;

use super::elements::{Chosen, Elements};
use super::late;
use super::pose::Pose;
use super::read::{Names, Parts};
use super::team::Team;
use crate::config::{ActionKind, ActionTerm, ConfigError, OneOrMany};
use crate::spaces::ActionSpace;
use ostler_model::{Actuator, Delay, Model};
use position::{origin, position};
pub(super) use servo::{has_gains, servos};
use std::ops::Range;

/// The compiled action terms.
#[derive(Debug, Clone)]
pub struct Actions {
    /// Actions of a row: the widest agent's.
    pub space: ActionSpace,
    /// Actions of every agent `[M]`.
    pub spaces: Vec<ActionSpace>,
    /// Which of all outputs are whose `[M]`.
    pub own: Vec<Range<usize>>,
    /// Where every output stands in an environment's rows `[M][A]` of actions; the rest is
    /// padding.
    pub(super) raw: Vec<usize>,
    /// Range each output of all agents is clipped to.
    pub(crate) clip: Vec<[f32; 2]>,
    pub(crate) drives: Vec<Drive>,
    /// Outputs that reach their actuators late.
    pub(crate) late: Vec<(Range<usize>, Delay)>,
    /// Outputs whose clip is written; those of all others follow from their actuators.
    pub(crate) clipped: Vec<usize>,
    /// Controls of actuators that no action drives and that hold the task's pose; those
    /// of all others stay zero.
    pub held: Vec<(usize, f32)>,
}

/// How one actuator gets its control.
#[derive(Debug, Clone)]
pub(crate) struct Drive {
    pub actuator: usize,
    /// Output that decides it.
    pub output: usize,
    pub law: Law,
    /// Controls are clipped to this.
    pub ctrlrange: [f32; 2],
    /// The term's place in the configuration.
    term: usize,
    /// The encoder of its joint, if that may be off.
    pub encoder: Option<Encoder>,
}

/// An encoder that has the bias of an observation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoder {
    /// The observation's place among all.
    pub observation: usize,
    /// Its component.
    pub component: usize,
    /// Control per position.
    pub gear: f32,
}

#[derive(Debug, Clone)]
pub(crate) enum Law {
    /// `offset + scale * output`.
    Affine {
        scale: f32,
        offset: f32,
        /// It is a position of the actuator's joint, times its gear.
        position: bool,
    },
    /// `to + offset + scale * output`.
    Added { scale: f32, offset: f32, to: Origin },
    /// A row's entry per choice.
    Choice(Vec<f32>),
    /// Controls for outputs below 0, and for all others.
    Binary(Vec<f32>),
}

/// What an output is added to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Origin {
    /// To the control of the step before; else to the joint's position.
    pub control: bool,
    /// The joint's place in `qpos`: an episode's first control begins with its position.
    pub qpos: Option<usize>,
    /// Control per position; without a joint, what the first control begins with.
    pub gear: f32,
}

impl Law {
    /// The outputs whose controls lie in `ctrlrange`.
    fn reach(&self, ctrlrange: [f32; 2]) -> [f32; 2] {
        match self {
            Self::Affine { scale, offset, .. } if *scale != 0.0 => {
                let ends = ctrlrange.map(|c| (c - offset) / scale);
                [ends[0].min(ends[1]), ends[0].max(ends[1])]
            }
            _ => UNLIMITED,
        }
    }

    /// The factor of an output, 1 or -1, with which this law gives `sign` times the control that
    /// `other` gives for the output itself; none where there is no such factor.
    pub(crate) fn beside(&self, other: &Self, sign: f32) -> Option<f32> {
        let near = |a: f32, b: f32, size: f32| (a - b).abs() <= 1e-3 * size.abs();
        match (self, other) {
            (Self::Affine { scale, offset, .. }, Self::Affine { scale: s, offset: o, .. }) => {
                let size = scale.abs().max(s.abs());
                let alike = near(scale.abs(), s.abs(), size) && near(*offset, sign * o, size);
                alike.then_some(sign * (scale * s).signum())
            }
            (Self::Added { scale, offset, to }, Self::Added { scale: s, offset: o, to: other }) => {
                let size = scale.abs().max(s.abs());
                let alike = near(scale.abs(), s.abs(), size) && near(*offset, sign * o, size);
                // Positions turn their signs as joints do; a first control has to be turned itself.
                let begins = match (to.qpos, other.qpos) {
                    (Some(_), Some(_)) => near(to.gear.abs(), other.gear.abs(), to.gear),
                    (None, None) => near(to.gear, sign * other.gear, to.gear),
                    _ => false,
                };
                (alike && begins && to.control == other.control)
                    .then_some(sign * (scale * s).signum())
            }
            (Self::Choice(own), Self::Choice(theirs))
            | (Self::Binary(own), Self::Binary(theirs)) => {
                let mut both = own.iter().zip(theirs);
                both.all(|(a, b)| near(*a, sign * b, *a)).then_some(1.0)
            }
            _ => None,
        }
    }
}

pub(super) const UNLIMITED: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

impl Actions {
    /// `pose`: position targets are relative to it, and actuators that no action drives hold it.
    pub fn compile(
        model: &Model,
        terms: &[ActionTerm],
        pose: &Pose,
        read: Names<'_>,
    ) -> Result<Self, ConfigError> {
        let team = read.team;
        let mut all = Self {
            space: ActionSpace::Continuous(0),
            spaces: Vec::new(),
            own: Vec::new(),
            raw: Vec::new(),
            clip: Vec::new(),
            clipped: Vec::new(),
            drives: Vec::new(),
            late: Vec::new(),
            held: Vec::new(),
        };
        let mut agents = Vec::with_capacity(terms.len());
        for (t, term) in terms.iter().enumerate() {
            agents.push(team.of_term(term.agents.as_deref(), &format!("task.action[{t}]"))?);
        }
        let mut owner: Vec<Option<usize>> = vec![None; model.nu()];
        for agent in 0..team.count() {
            let own = terms.iter().enumerate().zip(&agents);
            let own: Vec<(usize, &ActionTerm)> =
                own.filter(|(_, agents)| agents.contains(&agent)).map(|(term, _)| term).collect();
            let first = all.clip.len();
            let names = Names { agent: Some(agent), ..read };
            let space = all.agent(model, &own, pose, (names, agent), &mut owner)?;
            all.spaces.push(space);
            all.own.push(first..all.clip.len());
        }
        for (u, actuator) in model.actuators.iter().enumerate() {
            if let (None, Some(ctrl)) = (owner[u], pose.ctrl[u]) {
                let [low, high] = limits(actuator);
                all.held.push((u, (ctrl as f32).max(low).min(high)));
            }
        }
        all.space = row(&all.spaces, team)?;
        let width = all.space.width();
        for (agent, own) in all.own.iter().enumerate() {
            all.raw.extend((0..own.len()).map(|k| agent * width + k));
        }
        Ok(all)
    }

    /// The outputs of one agent: `terms` with their places in the configuration.
    fn agent(
        &mut self,
        model: &Model,
        terms: &[(usize, &ActionTerm)],
        pose: &Pose,
        (read, agent): (Names<'_>, usize),
        owner: &mut [Option<usize>],
    ) -> Result<ActionSpace, ConfigError> {
        let (first, team) = (self.clip.len(), read.team);
        if terms.is_empty() {
            let why = format!("{} moves nothing", team.subject(agent));
            if model.actuators.is_empty() {
                let mocap = match model.bodies.iter().any(|body| body.mocap) {
                    true => "; no action moves a mocap body",
                    false => "",
                };
                let why = format!("{why}: the robot has no actuators{mocap}");
                return Err(ConfigError::new("task.action", why).help(
                    "give its joints some, with [[task.actuator]] or in <actuator> of its file, and \
                     add [[task.action]]",
                ));
            }
            return Err(ConfigError::new("task.action", why)
                .help("add [[task.action]] with actuators = [\"*\"]"));
        }
        for &(t, term) in terms {
            let path = format!("task.action[{t}]");
            let chosen = chosen(model, term, read, &path)?;
            if chosen.all.is_empty() {
                return Err(ConfigError::new(format!("{path}.actuators"), "the list is empty"));
            }
            for &a in &chosen.all {
                if let Some(other) = owner[a].replace(t) {
                    let error = ConfigError::new(
                        format!("{path}.actuators"),
                        format!(
                            "\"{}\" is already driven by task.action[{other}]",
                            model.actuators[a].name
                        ),
                    );
                    return Err(match team.is_several() {
                        true => error.help(
                            "every agent drives actuators of its own: write {agent} in their \
                             names, or agents = [...] beside them",
                        ),
                        false => error,
                    });
                }
            }
            let begin = self.clip.len();
            if term.kind == ActionKind::Discrete {
                if terms.len() > 1 {
                    return Err(ConfigError::new(
                        format!("{path}.kind"),
                        "a discrete action must be the only one",
                    )
                    .help("list every combination of controls as a row of `choices`"));
                }
                let space = self.discrete(model, (t, term), &chosen, &path)?;
                self.delay(term, begin, &path)?;
                return Ok(space);
            }
            if term.kind == ActionKind::Binary {
                self.binary(model, (t, term), &chosen, &path)?;
            } else {
                self.continuous(model, (t, term), &chosen, pose, read, &path)?;
            }
            self.delay(term, begin, &path)?;
        }
        Ok(ActionSpace::Continuous(self.clip.len() - first))
    }

    /// The delay of the term's outputs, which are those from `first` on.
    fn delay(&mut self, term: &ActionTerm, first: usize, path: &str) -> Result<(), ConfigError> {
        let lag = late::compile(term.delay.as_ref(), "control", &format!("{path}.delay"))?;
        self.late.extend(lag.map(|lag| (first..self.clip.len(), lag)));
        Ok(())
    }

    fn continuous(
        &mut self,
        model: &Model,
        (t, term): (usize, &ActionTerm),
        chosen: &Chosen,
        pose: &Pose,
        read: Names<'_>,
        path: &str,
    ) -> Result<(), ConfigError> {
        if !term.choices.is_empty() {
            return Err(ConfigError::new(
                format!("{path}.choices"),
                "is for kind = \"discrete\" and \"binary\"",
            ));
        }
        let names: Vec<Vec<&str>> = chosen.all.iter().map(|&a| names_of(model, a)).collect();
        let elements = Elements { what: "actuators", names: &names, mixed: chosen.mixed, read };
        let numbers =
            |key: &str, values: &OneOrMany| elements.numbers(values, &format!("{path}.{key}"));
        let (scale, offset) = (numbers("scale", &term.scale)?, numbers("offset", &term.offset)?);
        let clips = term.clip.as_ref();
        let clips = clips.map(|c| elements.clips(c, &format!("{path}.clip")));
        let clips = clips.transpose()?;
        for (i, &index) in chosen.all.iter().enumerate() {
            let actuator = &model.actuators[index];
            let ctrlrange = limits(actuator);
            let (scale, offset) = (scale[i], offset[i]);
            let law = match term.kind {
                ActionKind::Control | ActionKind::Discrete | ActionKind::Binary => {
                    Law::Affine { scale, offset, position: false }
                }
                ActionKind::Normalized => {
                    let Some([low, high]) = actuator.ctrlrange else {
                        return Err(ConfigError::new(
                            format!("{path}.kind"),
                            format!("\"{}\" has no control range to map -1..1 onto", actuator.name),
                        )
                        .help(
                            "give the actuator a ctrlrange, or use kind = \"control\" with `scale`",
                        ));
                    };
                    let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0);
                    Law::Affine {
                        scale: (half * f64::from(scale)) as f32,
                        offset: (middle + half * f64::from(offset)) as f32,
                        position: false,
                    }
                }
                ActionKind::Position => {
                    position(model, actuator, [scale, offset], &pose.qpos, path)?
                }
                ActionKind::Relative | ActionKind::Increment => {
                    let to = origin(model, (index, term.kind), pose, path)?;
                    // Of a joint's position, like a target of it.
                    let by = to.qpos.map_or(1.0, |_| to.gear);
                    Law::Added { scale: by * scale, offset: by * offset, to }
                }
            };
            // Without a range of its own an output is clipped to what the actuator can
            // follow: outputs beyond it would all mean the same control.
            let clip = clips.as_ref().map_or_else(|| law.reach(ctrlrange), |c| c[i]);
            self.drives.push(Drive {
                actuator: index,
                output: self.clip.len(),
                law,
                ctrlrange,
                term: t,
                encoder: None,
            });
            self.clipped.extend(clips.is_some().then_some(self.clip.len()));
            self.clip.push(clip);
        }
        Ok(())
    }

    /// Ranges that the outputs of the configuration's term `term` are clipped to.
    pub fn clips(&self, term: usize) -> impl Iterator<Item = [f32; 2]> {
        let own = self.drives.iter().filter(move |drive| drive.term == term);
        own.filter_map(|drive| self.clip.get(drive.output).copied())
    }

    /// Outputs of all agents.
    pub fn outputs(&self) -> usize {
        self.clip.len()
    }

    /// Floats of an environment's rows of actions, `M A`.
    pub fn raw_width(&self) -> usize {
        self.spaces.len() * self.space.width()
    }

    /// A name for each output of all agents: that of the actuator it drives.
    pub fn names(&self, model: &Model, team: &Team) -> Vec<String> {
        match self.space {
            ActionSpace::Discrete(_) => {
                (0..team.count()).map(|agent| team.prefixed(agent, "choice")).collect()
            }
            // Of an output for several actuators, the first one's.
            ActionSpace::Continuous(_) => (0..self.outputs())
                .filter_map(|k| self.drives.iter().find(|d| d.output == k))
                .map(|d| model.actuators[d.actuator].name.clone())
                .collect(),
        }
    }

    /// Where output `k` of all agents stands in an environment's rows of actions.
    pub fn place(&self, k: usize) -> Option<usize> {
        self.raw.get(k).copied()
    }

    /// The first output of an environment's rows of actions that is not finite.
    pub fn first_bad(&self, row: &[f32]) -> Option<(usize, f32)> {
        let outputs = self.raw.iter().map(|&at| row[at]).enumerate();
        outputs.into_iter().find(|(_, x)| !x.is_finite())
    }
}

/// Meaning of a row of actions in which each of these agents finds its own.
fn row(spaces: &[ActionSpace], team: &Team) -> Result<ActionSpace, ConfigError> {
    let kind = |space: &ActionSpace| matches!(space, ActionSpace::Discrete(_));
    let widest = |of: &dyn Fn(&ActionSpace) -> usize| spaces.iter().map(of).max().unwrap_or(0);
    let differs = spaces.iter().position(|s| kind(s) != kind(&spaces[0]));
    if let Some(other) = differs {
        let (names, discrete) = (team.names(), kind(&spaces[0]));
        let (a, b) = if discrete { (0, other) } else { (other, 0) };
        return Err(ConfigError::new(
            "task.action",
            format!("\"{}\" chooses, \"{}\" decides continuous numbers", names[a], names[b]),
        )
        .help("the agents of one task are all discrete or all continuous"));
    }
    Ok(match spaces[0] {
        ActionSpace::Continuous(_) => ActionSpace::Continuous(widest(&|s| s.width())),
        ActionSpace::Discrete(_) => ActionSpace::Discrete(widest(&|s| match s {
            ActionSpace::Continuous(n) | ActionSpace::Discrete(n) => *n,
        })),
    })
}

/// The actuators of a term for an agent.
fn chosen(
    model: &Model,
    term: &ActionTerm,
    read: Names<'_>,
    path: &str,
) -> Result<Chosen, ConfigError> {
    let path = format!("{path}.actuators");
    let found = read.parts(&term.actuators, &Parts::actuators(model), &path);
    found.map_err(|e| {
        let mut bodies = model.bodies.iter().filter(|body| body.mocap);
        let meant = |name: &str| {
            term.actuators
                .iter()
                .enumerate()
                .any(|(i, written)| written == name && e.path == format!("{path}[{i}]"))
        };
        match bodies.find(|body| meant(&body.name)) {
            Some(body) => e.help(format!(
                "\"{}\" is a mocap body: it stays where its <body> is, and no action moves it; a \
                 body with a joint and an actuator can be moved",
                body.name
            )),
            None => e,
        }
    })
}

/// Names by which patterns find an actuator: its own, and its joint's.
fn names_of(model: &Model, actuator: usize) -> Vec<&str> {
    let actuator = &model.actuators[actuator];
    let joint = actuator.joint().map(|j| model.joints[j].name.as_str());
    [actuator.name.as_str()].into_iter().chain(joint).collect()
}

pub(super) fn limits(actuator: &Actuator) -> [f32; 2] {
    actuator.ctrlrange.map_or(UNLIMITED, |r| r.map(|x| x as f32))
}
