//! The tables of a run's TOML that concern simulation: `[sim]`, `[env]`, `[task]`.
//!
//! Plain data. Unknown keys are refused by serde; positions in the file are found
//! by the program's reader, so errors here name a *path* such as
//! `task.reward[2].expr`.

mod action;
mod actuator;
mod agents;
mod command;
mod contact;
mod event;
pub mod file;
mod header;
mod late;
mod native;
mod observation;
mod reference;
mod reset;
mod robot;
mod terms;
mod tiles;
mod validate;
mod values;

pub use crate::draw::{Distribution, DrawConfig};
pub use action::{ActionKind, ActionTerm};
pub use actuator::{ActuatorModel, ActuatorTerm, InputOrder, NetworkConfig};
pub use agents::{AgentsConfig, MAX_AGENTS, Policies, PoliciesWord};
pub use command::{CommandKind, CommandTerm, Heading, Resample};
pub use contact::{ConeWord, ContactTerm, FileWord, IntegratorWord, Iterations, OptionTable};
pub use event::{EventRange, EventTerm, EventTime, Operation, PseudoRange, Span};
pub use header::{Included, beside, included, read_headers};
pub use late::{Delay, DelayConfig, DelaySteps};
pub use native::{Header, Leave, NativeCode, NativeTerm, NativeUnit};
pub use observation::{
    BiasWhen, CriticCopy, GroupOptions, HalfOrRange, NoiseKind, ObservationGroup, ObservationTerm,
    Spread, SpreadConfig, Stack,
};
pub use ostler_base::ConfigError;
pub use ostler_engine::config::{
    Auto, AutoWord, Backend, JointLimit, RapierConfig, SimConfig, SimDevice, Specialize,
};
pub use ostler_model::terrain::TerrainPlan;
pub use reference::{FollowFrom, MotionFile, ReferenceTerm, read_motions};
pub use reset::{Conditions, ResetTerm, StartConfig};
pub use robot::{BaseConfig, FloorConfig, FloorTable, HeightConfig};
pub use terms::{MetricTerm, Over, StateTerm};
pub use tiles::{TileFiles, read_tiles};
pub use validate::{MAX_ENVS, check, threads_possible};
pub use values::{OneOrMany, Ranges};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[env]`: the batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnvConfig {
    /// Parallel environments: a number, or `"auto"`: as many as memory and threads have use for.
    #[schemars(with = "Auto")]
    pub num_envs: usize,
    /// Physics steps per control step.
    pub decimation: usize,
    /// Time-out of an episode (s).
    pub episode_length_s: f64,
}

impl Default for EnvConfig {
    fn default() -> Self {
        Self { num_envs: 1024, decimation: 4, episode_length_s: 20.0 }
    }
}

/// `[task]`: the robot's task. Every `expr` is in the language of
/// `docs/task-expressions.md`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfig {
    /// MJCF file, relative to the configuration's folder.
    pub robot: String,
    /// Folder in which the robot's files lie, relative to the configuration's folder, for
    /// robots that name files beside or above their own; their own folder without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot_folder: Option<String>,
    /// A floor under a robot whose file has none: `true`, or a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<FloorConfig>,
    /// Whether the robot's root is `"free"` or `"fixed"`, whatever the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseConfig>,
    /// z of the robot's root in the initial pose (m), or `"auto"`: its lowest shape stands on
    /// the floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_height: Option<HeightConfig>,
    /// Moments of inertia that no body can have become their mean, as MuJoCo's
    /// `compiler/balanceinertia`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub balance_inertia: bool,
    /// What drives the robot's joints, in the place of the file's actuators or where it has
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actuator: Vec<ActuatorTerm>,
    /// The ground, in the place of the robot's floor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terrain: Option<TerrainPlan>,
    /// Motions that episodes follow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<ReferenceTerm>,
    /// How some of the robot's geoms touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contact: Vec<ContactTerm>,
    /// Settings of the robot's file.
    #[serde(skip_serializing_if = "is_default")]
    pub option: OptionTable,
    /// The pose that position targets and `joint_pos_rel` are about: `"reset"` (where
    /// episodes start, without chance; the default), `"initial"` (the robot file's own) or
    /// `"keyframe(NAME)"`. In a pose that is named here episodes start, too, before the
    /// terms of `reset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pose: Option<String>,
    /// Named numbers that expressions can read as `param.NAME`.
    pub params: BTreeMap<String, f64>,
    /// Lists of names, or patterns with `*`, of the robot's parts: `each(LIST, expr)` says
    /// something of every entry, for which `{LIST}` stands there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, Vec<String>>,
    /// Named expressions: `NAME`, or `"NAME(x, y)"` for a function, in any order.
    #[serde(rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    pub lets: BTreeMap<String, String>,
    /// Values of the task's own, read as `state.NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<StateTerm>,
    /// Functions of C++ headers, read as `native.NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native: Vec<NativeTerm>,
    /// How the policy's output becomes controls; in order, first output first.
    pub action: Vec<ActionTerm>,
    /// Random targets, drawn at reset and at intervals, read as `command.NAME`.
    pub command: Vec<CommandTerm>,
    /// Observation terms, concatenated in order.
    pub observation: Vec<ObservationTerm>,
    /// `[task.observations.GROUP]`: what holds for all terms of a group.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub observations: BTreeMap<String, GroupOptions>,
    /// Reward terms; the reward is the sum of weight times value.
    pub reward: Vec<RewardTerm>,
    /// Numbers of episodes that are logged and evaluated, never rewarded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metric: Vec<MetricTerm>,
    /// Terminations and extra truncations. The time-out needs no term.
    pub termination: Vec<TerminationTerm>,
    /// How a new episode starts; applied in order on top of the initial pose, or of
    /// `default_pose` where that names one.
    pub reset: Vec<ResetTerm>,
    /// What the start of an episode fulfils.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartConfig>,
    /// Changes of the robot and pushes, by chance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventTerm>,
    /// Reward scaling and clipping.
    pub rewards: RewardOptions,
    /// `[agents]`, which stands beside `[task]` in the run's file: put here by who reads it.
    #[serde(skip)]
    pub agents: Option<AgentsConfig>,
    /// The headers of `native`, and leave to run them: put here by who reads them.
    #[serde(skip)]
    pub native_code: NativeCode,
    /// The files of `terrain`: put here by who reads them.
    #[serde(skip)]
    pub tile_files: TileFiles,
    /// The files of `reference`, term by term: put here by who reads them.
    #[serde(skip)]
    pub motion_files: Vec<Vec<MotionFile>>,
}

impl TaskConfig {
    /// The file of each kind of tiles, its name and what it holds.
    pub fn tiles(&self) -> impl Iterator<Item = Option<(&str, &[u8])>> {
        let kinds = self.terrain.iter().flat_map(|plan| &plan.kinds);
        kinds.map(|kind| {
            let name = kind.file.as_deref()?;
            Some((name, &self.tile_files.get(name)?[..]))
        })
    }
}

/// `[[task.reward]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewardTerm {
    /// Name, logged as `Episode_Reward/<name>`.
    pub name: String,
    /// Value: a scalar (a boolean counts as 0 or 1).
    pub expr: String,
    /// Multiplies the value.
    #[serde(default = "weight_one")]
    pub weight: f64,
    /// Agents that get it, where there are several; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

fn is_default(option: &OptionTable) -> bool {
    *option == OptionTable::default()
}

fn weight_one() -> f64 {
    1.0
}

/// `[[task.termination]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminationTerm {
    /// Name, logged as `Episode_Termination/<name>`.
    pub name: String,
    /// Value: a boolean.
    pub expr: String,
    /// True: counts as time running out (the value is bootstrapped), not as failure.
    #[serde(default)]
    pub truncate: bool,
}

/// `[task.rewards]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RewardOptions {
    /// Multiply the sum by the control step (s), so that weights are per second.
    pub scale_by_dt: bool,
    /// Clip the summed reward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// A summed reward farther from 0 than this, before clipping, is no reward: the
    /// environment counts as broken; `inf`: none is too far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_abs: Option<f64>,
}
