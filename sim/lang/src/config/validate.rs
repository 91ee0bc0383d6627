//! Numbers of `[sim]` and `[env]` that cannot be used.

use super::{Auto, ConfigError, EnvConfig, SimConfig, TaskConfig};

/// More environments than this cannot be numbered by the random streams' 32 bits
/// and would not fit anywhere.
pub const MAX_ENVS: usize = 1 << 22;

/// Every mistake in the tables of a file that one can see without the robot.
pub fn check(sim: &SimConfig, env: &EnvConfig, task: &TaskConfig) -> Vec<ConfigError> {
    let mut errors = sim.check_limits();
    errors.extend(threads_possible("sim.threads", sim.threads));
    let mut refuse = |path: &str, message: String, allowed: &str| {
        errors.push(ConfigError::new(path, message).help(format!("allowed: {allowed}")));
    };
    if !(1..=MAX_ENVS).contains(&env.num_envs) {
        refuse(
            "env.num_envs",
            format!("{} environments are not possible", env.num_envs),
            &format!("1 to {MAX_ENVS}"),
        );
    }
    if !(1..=10_000).contains(&env.decimation) {
        refuse(
            "env.decimation",
            format!("{} physics steps per control step", env.decimation),
            "1 to 10000",
        );
    }
    if !(sim.dt.is_finite() && sim.dt >= 0.0) {
        refuse(
            "sim.dt",
            format!("a time step of {} s", sim.dt),
            "a number above 0 [s], or 0 for the model's own",
        );
    }
    for (path, value, most, unit) in [
        ("env.episode_length_s", env.episode_length_s, f64::MAX, "s"),
        ("sim.max_speed", sim.max_speed, f64::INFINITY, "m/s"),
        ("sim.max_position", sim.max_position, f64::INFINITY, "m"),
    ] {
        if !(value > 0.0 && value <= most) {
            refuse(path, format!("{value} cannot be used"), &format!("a number above 0 [{unit}]"));
        }
    }
    if !(1..=1000).contains(&sim.rapier.solver_iterations) {
        refuse(
            "sim.rapier.solver_iterations",
            format!("{} solver iterations", sim.rapier.solver_iterations),
            "1 to 1000",
        );
    }
    if task.robot.is_empty() {
        errors.push(
            ConfigError::new("task.robot", "no robot is given")
                .help("robot = \"robots/NAME.xml\", relative to this file"),
        );
    }
    errors
}

/// More or fewer threads than can be.
pub fn threads_possible(path: &str, threads: Auto) -> Option<ConfigError> {
    let Auto::N(n) = threads else {
        return None;
    };
    let error = ConfigError::new(path, format!("{n} threads are not possible"))
        .help("allowed: 1 to 1024, or \"auto\"");
    (!(1..=1024).contains(&n)).then_some(error)
}

fn positive(path: &str, value: f64, unit: &str) -> Result<(), ConfigError> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(ConfigError::new(path, format!("{value} is not a positive, finite number"))
        .help(format!("in {unit}")))
}

impl EnvConfig {
    /// Checks the keys that do not need the robot.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.num_envs == 0 {
            return Err(ConfigError::new("env.num_envs", "zero environments").help("1 and more"));
        }
        if self.num_envs > MAX_ENVS {
            return Err(ConfigError::new(
                "env.num_envs",
                format!("{} is more than {MAX_ENVS}", self.num_envs),
            ));
        }
        if !(1..=1_000_000).contains(&self.decimation) {
            return Err(ConfigError::new(
                "env.decimation",
                format!("{} physics steps per control step", self.decimation),
            )
            .help("1 and more; 4 is usual"));
        }
        positive("env.episode_length_s", self.episode_length_s, "seconds")
    }

    /// Control steps until the time-out, for control steps of `step_dt` seconds.
    pub fn max_episode_steps(&self, step_dt: f64) -> Result<u32, ConfigError> {
        let steps = self.episode_length_s / step_dt;
        // 40 s of 0.04 s are 1000 steps, not 1001 for the last bit's sake.
        let whole =
            if (steps - steps.round()).abs() < 1e-6 * steps { steps.round() } else { steps.ceil() };
        if steps < 1.0 - 1e-6 {
            return Err(ConfigError::new(
                "env.episode_length_s",
                format!("{} s is shorter than one control step", self.episode_length_s),
            )
            .help(format!("a control step is sim.dt * env.decimation = {step_dt} s")));
        }
        if whole > 1e9 {
            return Err(ConfigError::new(
                "env.episode_length_s",
                format!("{whole:?} control steps are too many"),
            )
            .help("at most 1e9"));
        }
        Ok(whole as u32)
    }
}
