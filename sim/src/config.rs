//! The tables of a run's TOML that concern simulation: `[sim]`, `[env]`, `[task]`.
//!
//! Plain data. Unknown keys are refused by serde; positions in the file are found
//! by the program's reader, so errors here name a *path* such as
//! `task.reward[2].expr`.

mod agents;
mod validate;

pub use agents::{AgentsConfig, MAX_AGENTS, Policies, PoliciesWord};

use crate::model::Model;
use crate::physics::pool::Pool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[sim]`: the physics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimConfig {
    /// Physics engine: `"native"` unless a part of the robot needs `"rapier"`.
    pub backend: Backend,
    /// Where the physics and the task compute: `"auto"`, `"cpu"` or `"cuda"`, which is
    /// the GPU of the run's `device`. `"auto"`: as `device` has it with the native
    /// engine, the processor with rapier.
    pub device: SimDevice,
    /// Time step (s); 0 means the model's own.
    pub dt: f64,
    /// Threads for physics and tasks: `"auto"` (the cores this process may use) or a number.
    pub threads: Auto,
    /// `[sim.rapier]`.
    pub rapier: RapierConfig,
    /// When the native engine's kernels are compiled for the robot.
    pub specialize: Specialize,
    /// The native engine's kernel: `"auto"`, `"auto-avx2"` (the best with these
    /// instructions), or the name of exactly one, as logs and resolved configurations
    /// have it; then `specialize` decides nothing any more.
    pub kernel: String,
    /// A world is broken beyond this linear (m/s) or angular (rad/s) speed, of any joint or
    /// body that [`limit`](Self::limit) does not name.
    pub max_speed: f64,
    /// A world is broken when a body is farther than this from the origin (m); likewise.
    pub max_position: f64,
    /// `[[sim.limit]]`: other limits for some joints. Of several that name a joint the last
    /// one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limit: Vec<JointLimit>,
}

/// `[[sim.limit]]`: speeds and positions beyond which joints have broken their world,
/// instead of `sim.max_speed` and `sim.max_position`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointLimit {
    /// Joints, by name or pattern with `*`.
    pub joints: Vec<String>,
    /// Largest speed (m/s, rad/s), above 0; without it this entry leaves speeds alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_speed: Option<f64>,
    /// Largest distance from the joint's zero (m; rad of a hinge), above 0; without it this
    /// entry leaves positions alone. Ball joints have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_position: Option<f64>,
}

impl SimConfig {
    /// Whether `kernel` leaves the choice to `specialize`.
    pub fn kernel_is_open(&self) -> bool {
        self.kernel == "auto" || self.kernel.starts_with("auto-")
    }

    /// The time step (s): the model's own unless another is given.
    pub fn timestep(&self, model: &Model) -> f64 {
        if self.dt > 0.0 {
            self.dt
        } else {
            model.options.timestep
        }
    }

    /// Threads for physics and tasks.
    pub fn thread_count(&self) -> usize {
        match self.threads {
            Auto::Auto(_) => Pool::available(),
            Auto::N(n) => n,
        }
    }
}

/// `sim.backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// MuJoCo's semantics, batched: one environment per lane of a vector.
    Native,
    /// rapier3d multibodies on the CPU.
    Rapier,
}

impl Backend {
    /// As it is written in `sim.backend`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Rapier => "rapier",
        }
    }
}

/// `sim.device`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimDevice {
    /// Where policy and learner compute, if the engine can.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The GPU that policy and learner compute on.
    Cuda,
}

/// `sim.specialize`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Specialize {
    /// A kernel that is in the cache is used; one that is not is compiled in the
    /// background, for the next run.
    #[default]
    Auto,
    /// Compiled before the run starts.
    Wait,
    /// Never: the generic kernel.
    Off,
}

/// `[sim.rapier]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RapierConfig {
    /// Solver iterations per time step; each recomputes the mass matrix.
    pub solver_iterations: usize,
}

/// A number, or `"auto"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected \"auto\" or a whole number")]
pub enum Auto {
    /// `"auto"`.
    Auto(AutoWord),
    /// An explicit number.
    N(usize),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoWord {
    /// `"auto"`.
    Auto,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            backend: Backend::Native,
            device: SimDevice::default(),
            dt: 0.0,
            threads: Auto::Auto(AutoWord::Auto),
            rapier: RapierConfig::default(),
            specialize: Specialize::default(),
            kernel: "auto".into(),
            max_speed: 1e3,
            max_position: 1e4,
            limit: Vec::new(),
        }
    }
}

impl Default for RapierConfig {
    fn default() -> Self {
        Self {
            solver_iterations: 1,
        }
    }
}

/// `[env]`: the batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnvConfig {
    /// Parallel environments.
    pub num_envs: usize,
    /// Physics steps per control step.
    pub decimation: usize,
    /// Time-out of an episode (s).
    pub episode_length_s: f64,
}

impl Default for EnvConfig {
    fn default() -> Self {
        Self {
            num_envs: 1024,
            decimation: 4,
            episode_length_s: 20.0,
        }
    }
}

/// `[task]`: the robot's task. Every `expr` is in the language of
/// `docs/task-language.md`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfig {
    /// MJCF file, relative to the configuration's folder.
    pub robot: String,
    /// Folder in which the robot's files lie, relative to the configuration's folder, for
    /// robots that name files beside or above their own; their own folder without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot_folder: Option<String>,
    /// The pose that position targets and `joint_pos_rel` are about: `"reset"` (where
    /// episodes start, without chance; the default), `"initial"` (the robot file's own) or
    /// `"keyframe(NAME)"`. In a pose that is named here episodes start, too, before the
    /// terms of `reset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_pose: Option<String>,
    /// Named numbers that expressions can read as `param.NAME`.
    pub params: BTreeMap<String, f64>,
    /// How the policy's output becomes controls; in order, first output first.
    pub action: Vec<ActionTerm>,
    /// Random targets, drawn at reset and at intervals, read as `command.NAME`.
    pub command: Vec<CommandTerm>,
    /// Observation terms, concatenated in order.
    pub observation: Vec<ObservationTerm>,
    /// Reward terms; the reward is the sum of weight times value.
    pub reward: Vec<RewardTerm>,
    /// Terminations and extra truncations. The time-out needs no term.
    pub termination: Vec<TerminationTerm>,
    /// How a new episode starts; applied in order on top of the initial pose, or of
    /// `default_pose` where that names one.
    pub reset: Vec<ResetTerm>,
    /// Reward scaling and clipping.
    pub rewards: RewardOptions,
    /// `[agents]`, which stands beside `[task]` in the run's file: put here by who reads it.
    #[serde(skip)]
    pub agents: Option<AgentsConfig>,
}

/// `[[task.action]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionTerm {
    /// Actuators driven, by name or pattern with `*`; one output each, in the model's order.
    pub actuators: Vec<String>,
    /// How an output becomes a control.
    #[serde(default)]
    pub kind: ActionKind,
    /// Multiplies the policy's output: one number for all, or one per actuator.
    #[serde(default = "one")]
    pub scale: OneOrMany,
    /// Added after scaling: one number for all, or one per actuator.
    #[serde(default = "zero")]
    pub offset: OneOrMany,
    /// Clip the policy's output to this range before scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// For `kind = "discrete"`: one row of controls per choice, `[choices][actuators]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Vec<f64>>,
    /// Gains for `kind = "position"` on motor actuators: stiffness (N/m or N m/rad).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stiffness: Option<f64>,
    /// Damping for `kind = "position"` on motor actuators (N s/m or N m s/rad).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// Agents that have it, where there are several; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// Meaning of an action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// `ctrl = offset + scale * output`.
    #[default]
    Control,
    /// The same with outputs -1..1 mapped onto the actuator's control range.
    Normalized,
    /// A joint position target: `target = default pose + offset + scale * output`.
    /// Position actuators take the target; motors get a PD law with `stiffness` and
    /// `damping`, evaluated once per control step.
    Position,
    /// The policy chooses one row of `choices`.
    Discrete,
}

/// One number for all, or one each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub enum OneOrMany {
    /// The same for all.
    One(f64),
    /// One per element.
    Many(Vec<f64>),
}

fn one() -> OneOrMany {
    OneOrMany::One(1.0)
}

fn zero() -> OneOrMany {
    OneOrMany::One(0.0)
}

/// `[[task.command]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandTerm {
    /// Name, read as `command.NAME`.
    pub name: String,
    /// One `[low, high]` per component; uniform.
    pub range: Vec<[f64; 2]>,
    /// Unit of the components, such as `"m/s"`; empty: any.
    #[serde(default)]
    pub unit: String,
    /// Time between draws (s); 0: only at reset.
    #[serde(default)]
    pub resample_s: f64,
}

/// `[[task.observation]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservationTerm {
    /// Name, unique in its group.
    pub name: String,
    /// Value: a scalar or vector.
    pub expr: String,
    /// Who sees it: `"policy"`, `"critic"`, or a group of another name.
    #[serde(default)]
    pub group: ObservationGroup,
    /// Multiplies the value.
    #[serde(default = "one")]
    pub scale: OneOrMany,
    /// Clip after scaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Size of the noise that is added before scaling (policy's copy only), in the value's
    /// unit, 0 or more: the half-width of uniform noise, the standard deviation of normal
    /// noise.
    #[serde(default)]
    pub noise: f64,
    /// How the noise is distributed.
    #[serde(default, skip_serializing_if = "NoiseKind::is_uniform")]
    pub noise_kind: NoiseKind,
    /// Agents that see it, where there are several; all without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// How an observation's noise is distributed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseKind {
    /// Evenly from `-noise` to `noise`.
    #[default]
    Uniform,
    /// Normally, with mean 0 and standard deviation `noise`.
    Normal,
}

impl NoiseKind {
    /// Whether it is the default, which resolved configurations leave out.
    fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

/// Who sees an observation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ObservationGroup {
    /// Actor and critic.
    #[default]
    Policy,
    /// Only the critic (privileged). The critic then sees policy terms, without
    /// noise, followed by these.
    Critic,
    /// Neither: a group of that name, which something else of a learner reads.
    Other(String),
}

impl From<String> for ObservationGroup {
    fn from(name: String) -> Self {
        match name.as_str() {
            "policy" => Self::Policy,
            "critic" => Self::Critic,
            _ => Self::Other(name),
        }
    }
}

impl From<ObservationGroup> for String {
    fn from(group: ObservationGroup) -> Self {
        match group {
            ObservationGroup::Policy => "policy".into(),
            ObservationGroup::Critic => "critic".into(),
            ObservationGroup::Other(name) => name,
        }
    }
}

/// `[[task.reward]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

fn weight_one() -> f64 {
    1.0
}

/// `[[task.termination]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// `[[task.reset]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetTerm {
    /// `qpos`, `qvel`, `joint_pos("pattern*")`, `joint_vel("pattern*")`,
    /// `pos(body)`, `lin_vel(body)`, `ang_vel(body)` (bodies with a free joint),
    /// `yaw(body)`, or `keyframe("name")`.
    pub target: String,
    /// Uniform offset from the pose so far: `[low, high]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uniform: Option<[f64; 2]>,
    /// Standard deviation of a normal offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<f64>,
    /// Replaces the value instead of adding to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<OneOrMany>,
}

/// `[task.rewards]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardOptions {
    /// Multiply the sum by the control step (s), so that weights are per second.
    pub scale_by_dt: bool,
    /// Clip the summed reward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// A summed reward farther from 0 than this, before clipping, is no reward: the
    /// environment counts as broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_abs: Option<f64>,
}

/// A value of `[sim]`, `[env]` or `[task]` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}{}", .help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ConfigError {
    /// Where: `task.reward[2].expr`.
    pub path: String,
    /// Bytes of the string value that are meant, for expressions.
    pub span: Option<std::ops::Range<usize>>,
    /// The mistake.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl ConfigError {
    /// An error about the whole value at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            span: None,
            message: message.into(),
            help: None,
        }
    }

    /// Adds the right value.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
