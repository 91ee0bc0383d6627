//! `[sim]` of a run's TOML: which engine, on what, how it is limited.

use crate::physics::pool::Pool;
use ostler_base::ConfigError;
use ostler_model::Model;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[sim]`: the physics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(extend("minimum" = 1))]
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
    /// body that [`limit`](Self::limit) does not name; `inf`: at none.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JointLimit {
    /// Joints, by name, pattern with `*` or list of `[task.names]`.
    pub joints: Vec<String>,
    /// Largest speed (m/s, rad/s), above 0, `inf` for none; without it this entry leaves speeds
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_speed: Option<f64>,
    /// Largest distance from the joint's zero (m; rad of a hinge), above 0, `inf` for none; without
    /// it this entry leaves positions alone. Ball joints have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_position: Option<f64>,
}

impl SimConfig {
    /// Whether `kernel` leaves the choice to `specialize`.
    pub fn kernel_is_open(&self) -> bool {
        self.kernel == "auto" || self.kernel.starts_with("auto-")
    }

    /// The same with the kernel that is always there: a task can be checked with any.
    #[must_use]
    pub fn generic(&self) -> Self {
        Self { kernel: "auto".into(), specialize: Specialize::Off, ..self.clone() }
    }

    /// The time step (s): the model's own unless another is given.
    pub fn timestep(&self, model: &Model) -> f64 {
        if self.dt > 0.0 { self.dt } else { model.options.timestep }
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RapierConfig {
    /// Solver iterations per time step; each recomputes the mass matrix.
    pub solver_iterations: usize,
}

/// A number, or `"auto"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Auto {
    /// `"auto"`.
    Auto(AutoWord),
    /// An explicit number.
    N(usize),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
        Self { solver_iterations: 1 }
    }
}

impl SimConfig {
    /// Checks the keys that do not need the robot.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.dt != 0.0 {
            positive("sim.dt", self.dt, "seconds; 0 means the robot file's own")?;
            if self.dt > 1.0 {
                return Err(ConfigError::new(
                    "sim.dt",
                    format!("{:?} s is too long for a physics step", self.dt),
                )
                .help("typical: 0.002 to 0.02"));
            }
        }
        if self.threads == Auto::N(0) {
            return Err(
                ConfigError::new("sim.threads", "no threads").help("\"auto\", or 1 and more")
            );
        }
        if matches!(self.threads, Auto::N(n) if n > 4096) {
            return Err(ConfigError::new("sim.threads", "more than 4096 threads"));
        }
        if !(1..=1000).contains(&self.rapier.solver_iterations) {
            return Err(ConfigError::new(
                "sim.rapier.solver_iterations",
                format!("{} is not within 1..1000", self.rapier.solver_iterations),
            ));
        }
        positive("sim.max_speed", self.max_speed, "m/s and rad/s")?;
        positive("sim.max_position", self.max_position, "m")?;
        match self.check_limits().into_iter().next() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Mistakes in `[[sim.limit]]`, without looking at the robot.
    pub fn check_limits(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for (i, limit) in self.limit.iter().enumerate() {
            let path = format!("sim.limit[{i}]");
            if limit.joints.is_empty() {
                let help = "joints = [\"rotor_*\"], for example";
                errors.push(ConfigError::new(format!("{path}.joints"), "no joints").help(help));
            }
            if limit.max_speed.is_none() && limit.max_position.is_none() {
                let help = "max_speed, max_position, or both";
                errors.push(ConfigError::new(&path, "limits nothing").help(help));
            }
            let of = |key: &str, value: Option<f64>, unit| {
                value.and_then(|x| positive(&format!("{path}.{key}"), x, unit).err())
            };
            errors.extend(of("max_speed", limit.max_speed, "m/s or rad/s"));
            errors.extend(of("max_position", limit.max_position, "m or rad"));
        }
        errors
    }
}

fn positive(path: &str, value: f64, unit: &str) -> Result<(), ConfigError> {
    if value > 0.0 {
        return Ok(());
    }
    Err(ConfigError::new(path, format!("{value} is not above 0"))
        .help(format!("in {unit}; inf: no limit")))
}
