//! Tasks written as data: expressions over the state, compiled once, evaluated
//! over blocks of environments.
//!
//! [`Task::compile`] turns `[task]` into plain tables ([`action`], [`command`],
//! [`observe`], [`score`], [`reset`], [`pose`]), which `kernels/env` runs over the batch.

pub mod action;
mod actuator;
mod bounds;
pub mod command;
mod contact;
pub mod deploy;
pub(crate) mod doubts;
mod elements;
pub mod emit;
pub mod event;
mod late;
mod limits;
pub mod metrics;
pub mod native;
pub mod observe;
pub mod pose;
mod ray_targets;
mod read;
mod reference;
pub mod reset;
pub mod score;
pub mod start;
mod states;
mod tables;
pub mod team;
mod term;
mod terrain;
#[cfg(test)]
mod tests;

use crate::config::{ConfigError, EnvConfig, SimConfig, TaskConfig};
pub use command::CommandSpec;
use expr::{
    Definitions, Draws, History, HistoryBuilder, Inputs, LetRow, List, Looks, Readings, Scope,
    Scratch,
};
pub use limits::limits;
use ostler_engine::kernels;
use ostler_engine::state::Tables;
use ostler_lang::open;
pub use ostler_lang::{draw, expr};
use ostler_model::{ContactSensor, Model};
use reference::Reference;
use std::sync::Arc;
use team::Team;
use term::{Kind, Term};

/// A compiled `[task]` table.
#[derive(Debug, Clone)]
pub struct Task {
    /// Actions to controls.
    pub actions: action::Actions,
    /// Random targets.
    pub commands: command::Commands,
    /// Observations.
    pub observations: observe::Observations,
    /// Rewards and terminations.
    pub score: score::Score,
    /// What is logged of episodes besides.
    pub metrics: metrics::Metrics,
    /// How episodes start.
    pub reset: reset::Reset,
    /// What a start fulfils.
    pub start: start::Start,
    /// Events.
    pub events: event::Events,
    /// The pose that targets and relative positions refer to.
    pub pose: pose::Pose,
    /// `param.NAME`, in the order of their names.
    pub params: Vec<f32>,
    /// History of expressions from step to step.
    pub history: History,
    /// Functions of C++ headers.
    pub natives: native::Natives,
    /// Contacts that expressions read.
    pub contacts: Vec<ContactSensor>,
    /// Lists of parts (`[task.names]`).
    pub lists: Vec<List>,
    /// Named expressions (`[task.let]`).
    pub lets: Vec<LetRow>,
    /// How episodes are spread over a terrain, and what is scanned of it.
    pub ground: terrain::Ground,
    /// The motions that episodes follow.
    pub reference: Reference,
    /// Who acts.
    pub team: Team,
}

impl Task {
    /// Checks every term of `cfg` against the robot, which [`robot`] has prepared.
    /// `step_dt` is the control step (s).
    pub fn compile(model: &Model, cfg: &TaskConfig, step_dt: f64) -> Result<Self, ConfigError> {
        let mut team = Team::new(cfg)?;
        let mut defined = Definitions::new(model, cfg, team.names())?;
        defined.natives = native::declare(cfg, &team)?;
        let mut reference = Reference::compile(model, cfg, step_dt)?;
        if reference.is_some() {
            defined.motion = Looks::with_step(step_dt);
        }
        let names = read::Names { defined: &defined, team: &team, agent: None };
        let named = pose::Pose::named(model, cfg.default_pose.as_deref(), names)?;
        let mut commands = command::Commands::compile(model, &cfg.command, names, step_dt)?;
        let mut params = Vec::with_capacity(cfg.params.len());
        for (name, &value) in &cfg.params {
            let path = format!("task.params.{name}");
            read::readable(name, &path)?;
            params.push(open(value, &path)? as f32);
        }
        let of_params: Vec<String> = cfg.params.keys().cloned().collect();
        let (none, readings) = (HistoryBuilder::default(), Readings::default());
        let draws = Draws::default();
        let drawing = Some(expr::Start { draws: &draws, of: "", drawing: true });
        let mut events = event::Events::compile(model, &cfg.event, names, step_dt)?;
        let drawn = events.values();
        let scope = Scope {
            model,
            pose: named.as_ref().map_or(&[][..], |pose| &pose.qpos[..]),
            commands: &commands.scope,
            params: &of_params,
            // Actions follow from the pose; reading one is refused.
            action_width: 1,
            agents: None,
            history: &none,
            readings: &readings,
            events: &drawn,
            defined: &defined,
            start: drawing,
        };
        let numbers = (&commands, &params[..], step_dt);
        let reset = reset::Reset::compile(&scope, &cfg.reset, named.as_ref(), numbers, &team)?;
        let pose = (named.clone()).unwrap_or_else(|| pose::Pose::of_resets(model, &reset));
        let mut actions = action::Actions::compile(model, &cfg.action, &pose, names)?;
        team.outputs.clone_from(&actions.own);
        // What a start must not read was refused: nothing of this is the task's.
        let (none, readings) = (HistoryBuilder::default(), Readings::default());
        let scope = Scope {
            pose: &pose.qpos,
            action_width: actions.outputs(),
            history: &none,
            readings: &readings,
            ..scope
        };
        let steered = !commands.courses.is_empty();
        let mut start = start::Start::compile(&scope, cfg.start.as_ref(), steered, &team)?;
        let (none, readings) = (HistoryBuilder::default(), Readings::default());
        let scope = Scope { history: &none, readings: &readings, start: None, ..scope };
        let history = states::compile(&scope, &draws, &cfg.state, &team)?;
        let scope = Scope { history: &history, ..scope };
        let mut natives = native::Natives::compile(&scope, cfg, &team)?;
        let agents = (0..team.count()).map(Some).filter(|_| team.is_several());
        let scopes: Vec<Scope<'_>> =
            (agents.chain([None])).map(|agent| team.scope(&scope, agent)).collect();
        let lets = defined.rows(&scopes)?;
        let observations =
            observe::Observations::compile(&scope, &cfg.observation, &cfg.observations, &team)?;
        actions.use_encoders(model, &cfg.action, &observations, &team)?;
        let score = score::Score::compile(&scope, cfg, step_dt, &team)?;
        let metrics = metrics::Metrics::compile(&scope, &cfg.metric, &team)?;
        let conditions = command::conditions(&scope, &cfg.command, &team)?;
        let mut ground = terrain::Ground::compile(&scope, cfg.terrain.as_ref(), &team)?;
        shared_alike(&team, &actions, &observations)?;
        start.random = draws.finish();
        let history = history.finish();
        let readers = (&score, &metrics, &conditions[..], &observations, &history);
        natives.finish(model, &commands.scope, readers)?;
        commands.conditions = conditions;
        events.show(&drawn);
        let (contacts, scans) = readings.finish();
        ground.look(model, scans);
        reference.look(defined.motion.all())?;
        Ok(Self {
            observations,
            score,
            metrics,
            actions,
            commands,
            reset,
            start,
            events,
            pose,
            params,
            history,
            natives,
            contacts,
            ground,
            reference,
            lists: defined.lists,
            lets,
            team,
        })
    }

    /// All expressions but those of the history.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &Term> {
        let steps = self.score.terms().chain(self.metrics.terms()).chain(self.observations.terms());
        let starts = self.reset.terms().chain(&self.start.conditions);
        let others = self.ground.climbs.iter().chain(&self.commands.conditions);
        steps.chain(starts).chain(self.natives.terms()).chain(others)
    }

    /// The expression that the kernels of `kernels/env` call so, by a `TERM_*` of theirs.
    pub(crate) fn code(&self, kind: u32, term: usize) -> &expr::Code {
        let cell = || &self.history.cells()[term];
        match kind {
            kernels::TERM_REWARD => self.score.rewards[term].term.code(),
            kernels::TERM_END => self.score.terminations[term].term.code(),
            kernels::TERM_SEEN => self.observations.terms[term].term.code(),
            kernels::TERM_CELL => cell().next(),
            kernels::TERM_BEGIN => cell().begin(),
            kernels::TERM_METRIC => self.metrics.terms[term].term.code(),
            kernels::TERM_START => self.reset.exprs[term].term.code(),
            kernels::TERM_UNTIL => self.start.conditions[term].code(),
            kernels::TERM_CLIMB => self.ground.climbs[term].code(),
            kernels::TERM_RESAMPLE => self.commands.conditions[term].code(),
            _ => unreachable!("no kind of terms"),
        }
    }

    /// Whether an expression reads a sensor that only some engines measure while they step
    /// ([`ostler_engine::physics::Physics::measures`]).
    pub fn reads_measured(&self) -> bool {
        let each_step = |kind| !matches!(kind, Kind::Start | Kind::Until);
        let terms = self.terms().filter(|t| each_step(t.kind)).map(Term::code);
        let cells = self.history.cells().iter();
        let cells = cells.flat_map(|cell| [cell.begin(), cell.next()]);
        terms.chain(cells).any(expr::Code::reads_measured)
    }

    /// Whether an expression reads positions or frames while a start is drawn.
    pub(crate) fn reads_starts(&self) -> bool {
        self.start.reads != 0 || self.reset.exprs.iter().any(|e| e.reads != 0)
    }

    /// Refuses a robot without the contact sensors that the expressions read.
    ///
    /// # Errors
    /// It is not the one that [`prepare`] makes.
    pub(crate) fn fits(&self, model: &Model) -> Result<(), ConfigError> {
        match self.contacts == model.contact_sensors {
            true => Ok(()),
            false => {
                let what = "its expressions read contacts that this robot does not sense";
                Err(ConfigError::new("task", what).help("task::prepare makes the robot of a task"))
            }
        }
    }

    /// Evaluates every expression once, as a control step does; for measurements.
    pub fn evaluate(&self, inputs: &Inputs<'_>, scratch: &mut Scratch) {
        let kinds = [Kind::Seen, Kind::Reward, Kind::End, Kind::Metric, Kind::Resample];
        for term in self.terms().filter(|t| kinds.contains(&t.kind)) {
            term.program.eval(inputs, scratch);
        }
        for cell in self.history.cells() {
            cell.next().eval(inputs, scratch);
        }
    }

    /// Writes tables in which the command whose first component is `first` is always `values`, or
    /// drawn as `own` has it.
    pub(crate) fn hold_command(
        &self,
        tables: &mut Tables,
        own: &Tables,
        first: usize,
        values: Option<&[f32]>,
    ) {
        self.commands.hold(tables, own, first, values);
    }

    /// Registers that the largest expression needs, in floats.
    pub fn scratch_len(&self) -> usize {
        let terms = self.terms().map(|t| t.program.scratch_len());
        terms.chain([self.history.scratch_len()]).max().unwrap_or(0)
    }
}

/// The robot as its task has it, but for contacts that are read: with the options, contacts,
/// actuators and terrain of `cfg`, and with what its events make different between environments. Applied to
/// its own result it changes nothing.
///
/// # Errors
/// A mistake in one of these terms, or something that the engine cannot vary; a file of an
/// actuator's network that cannot be read.
pub fn robot(model: &Arc<Model>, cfg: &TaskConfig) -> Result<Arc<Model>, ConfigError> {
    terrain::robot(&event::robot(&actuator::robot(model, cfg)?, cfg)?, cfg)
}

/// The [`robot`], which senses the contacts that the task's expressions read, and the task.
/// `step_dt` says the control step of the robot (s).
///
/// # Errors
/// As [`robot`]; a mistake in any other term.
pub fn prepare(
    model: &Arc<Model>,
    cfg: &TaskConfig,
    step_dt: impl FnOnce(&Model) -> f64,
) -> Result<(Arc<Model>, Task), ConfigError> {
    let made = robot(model, cfg)?;
    let task = Task::compile(&made, cfg, step_dt(&made))?;
    if task.contacts == made.contact_sensors {
        return Ok((made, task));
    }
    let mut sensing = Model::clone(&made);
    sensing.contact_sensors.clone_from(&task.contacts);
    Ok((Arc::new(sensing), task))
}

/// The robot of [`prepare`] in environments whose control step `sim` and `env` say: what an
/// engine's kernel is compiled for.
///
/// # Errors
/// As [`prepare`].
pub fn robot_of(
    model: &Arc<Model>,
    sim: &SimConfig,
    env: &EnvConfig,
    cfg: &TaskConfig,
) -> Result<Arc<Model>, ConfigError> {
    let step_dt = |model: &Model| sim.timestep(model) * env.decimation as f64;
    Ok(prepare(model, cfg, step_dt)?.0)
}

/// Whether [`robot`] makes the same of a model for both, which differ in numbers alone.
pub(crate) fn same_robot(one: &TaskConfig, other: &TaskConfig) -> bool {
    let gains = |cfg: &TaskConfig| -> Vec<_> {
        let each = cfg.action.iter();
        each.map(|term| (term.stiffness.clone(), term.damping.clone())).collect()
    };
    one.option == other.option
        && one.contact == other.contact
        && one.actuator == other.actuator
        && one.terrain == other.terrain
        && one.tile_files == other.tile_files
        && one.reference == other.reference
        && one.motion_files == other.motion_files
        && gains(one) == gains(other)
}

/// Refuses agents of one policy that are of different sizes.
fn shared_alike(
    team: &Team,
    actions: &action::Actions,
    observations: &observe::Observations,
) -> Result<(), ConfigError> {
    for agent in 0..team.count() {
        let Some(first) = team.policy[..agent].iter().position(|p| *p == team.policy[agent]) else {
            continue;
        };
        let [a, b] = [first, agent].map(|i| (&observations.agents[i].width, actions.spaces[i]));
        let differ = if a.0.policy != b.0.policy {
            format!("see {} and {} numbers", a.0.policy, b.0.policy)
        } else if a.1 != b.1 {
            let text = |space| match space {
                crate::spaces::ActionSpace::Continuous(n) => format!("{n} numbers"),
                crate::spaces::ActionSpace::Discrete(n) => format!("one of {n} choices"),
            };
            format!("decide {} and {}", text(a.1), text(b.1))
        } else if a.0.critic != b.0.critic {
            let [x, y] = [a, b].map(|i| i.0.critic.unwrap_or(0));
            format!("have critics that see {x} and {y} numbers")
        } else {
            continue;
        };
        let names = team.names();
        return Err(ConfigError::new(
            "agents.policies",
            format!("\"{}\" and \"{}\" share a policy, but {differ}", names[first], names[agent]),
        )
        .help("policies = \"separate\", or a list with a name for each kind of agent"));
    }
    Ok(())
}
