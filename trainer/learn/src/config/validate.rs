//! Checks beyond serde's: ranges, and keys that exclude each other.

use super::collector::LONGEST_S;
use super::curriculum::{self, NUM_ENVS, Schedule};
use super::{Config, Device, Precision};
use crate::learner::registry::methods;
use ostler_sim::config::{
    Auto, Backend, ConfigError, MAX_ENVS, ObservationGroup, SimDevice, TaskConfig, check,
    threads_possible,
};
use ostler_sim::names::nearest;

impl Config {
    /// Everything in the tables that cannot be used, without looking at the robot.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        self.check_top(&mut errors);
        match self.has_robot() {
            true => self.check_simulation(&mut errors),
            false => self.check_foreign(&mut errors),
        }
        self.check_runner(&mut errors);
        self.check_collector(&mut errors);
        errors.extend(self.task.edits().err());
        errors.extend(self.actor.validate());
        errors.extend(self.critic.validate());
        errors.extend(methods().flat_map(|m| m.validate(self)));
        errors.extend(self.runner.algorithm.check(self));
        errors.extend(self.replay.validate());
        if let Some(agents) = &self.agents {
            errors.extend(agents.validate().err());
        }
        self.check_self_play(&mut errors);
        self.check_groups(&mut errors);
        errors.extend(self.symmetry.iter().flat_map(|symmetry| symmetry.validate(self)));
        errors.extend(self.amp.validate(self));
        errors.extend(self.memory.validate());
        errors.extend(self.guard.validate());
        errors.extend(self.back_off.validate(MAX_ENVS));
        errors.extend(self.check_curriculum());
        errors.extend(self.fault.drills().err().unwrap_or_default());
        if errors.is_empty() {
            let samples = self.least_samples(self.env.num_envs);
            errors.extend(self.validate_batch(samples));
        }
        errors
    }

    /// Whether a robot and a task are simulated.
    pub fn has_robot(&self) -> bool {
        self.gymnasium.is_none() && self.custom.is_none()
    }

    /// Environments in the place of a robot's.
    fn check_foreign(&self, errors: &mut Vec<ConfigError>) {
        let table = match (&self.gymnasium, &self.custom) {
            (Some(gymnasium), None) => {
                errors.extend(gymnasium.validate());
                "gymnasium"
            }
            (None, _) => "custom",
            (Some(_), Some(_)) => {
                let why = "one of [gymnasium] and [custom] says what is trained";
                errors.push(ConfigError::new("custom", why));
                return;
            }
        };
        let mut refuse = |path: &str, why: String, help: &str| {
            errors.push(ConfigError::new(path, why).help(help));
        };
        let instead = || format!("[{table}] stands in the place of a robot and its task");
        if self.task != TaskConfig::default() {
            refuse("task", instead(), "leave one of them out");
        }
        if self.agents.is_some() {
            let help = "a table [task] with [agents]";
            refuse("agents", format!("[{table}] has one agent"), help);
        }
        if self.is_async() {
            let why = format!("[{table}] is collected in turns with the learner");
            refuse("collector.kind", why, "\"sync\"");
        }
        if self.sim.device == SimDevice::Cuda {
            let why = format!("[{table}] is on the processor");
            refuse("sim.device", why, "\"auto\"");
        }
        let gpu = matches!(Device::parse(&self.device), Ok(Device::Cuda(_)));
        if gpu && self.gymnasium.is_some() {
            let why = "[gymnasium] is trained on the processor";
            refuse("device", why.into(), "\"cpu\"");
        }
        if !(1..=MAX_ENVS).contains(&self.env.num_envs) {
            let why = format!("{} environments are not possible", self.env.num_envs);
            refuse("env.num_envs", why, &format!("1 to {MAX_ENVS}"));
        }
        let task = |s: &Schedule| s.key.starts_with("task");
        if let Some(i) = self.curriculum.iter().position(task) {
            let why = format!("{}: {}", self.curriculum[i].key, instead());
            refuse(&format!("curriculum[{i}].key"), why, "env.num_envs can follow a schedule");
        }
    }

    /// A group of observations that nobody reads is a mistake in its name.
    fn check_groups(&self, errors: &mut Vec<ConfigError>) {
        let read = &self.ppo.imitation.group;
        for (i, term) in self.task.observation.iter().enumerate() {
            let ObservationGroup::Other(name) = &term.group else {
                continue;
            };
            if name == read {
                continue;
            }
            let known = ["policy", "critic", read.as_str()];
            let help = match nearest(name, known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => {
                    format!(
                        "\"policy\", \"critic\", or \"{read}\", which ppo.imitation.group names"
                    )
                }
            };
            let path = format!("task.observation[{i}].group");
            let why = format!("nobody reads the group \"{name}\"");
            errors.push(ConfigError::new(path, why).help(help));
        }
    }

    fn check_self_play(&self, errors: &mut Vec<ConfigError>) {
        errors.extend(self.self_play.validate());
        if !self.self_play.is_on() {
            return;
        }
        let method = self.runner.algorithm;
        let mut refuse = |why: String, help: &str| {
            errors.push(ConfigError::new("self_play.window", why).help(help));
        };
        if self.agents.is_none() {
            let why = "earlier versions of a policy need agents that play against each other";
            refuse(why.into(), "a table [agents], or 0");
        }
        if !method.self_play() {
            let why = format!("\"{}\" does not learn beside earlier versions", method.name());
            refuse(why, "0, or runner.algorithm = \"ppo\"");
        }
    }

    fn check_top(&self, errors: &mut Vec<ConfigError>) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.name.is_empty() || self.name.starts_with('.') || !self.name.chars().all(plain) {
            errors.push(
                ConfigError::new("name", format!("\"{}\" cannot name a folder", self.name))
                    .help("letters, digits, _ - and . are allowed, not a leading ."),
            );
        }
        if self.seed > i64::MAX as u64 {
            errors.push(ConfigError::new("seed", "larger than TOML can hold"));
        }
        if let Err(message) = Device::parse(&self.device) {
            errors.push(
                ConfigError::new("device", message).help("allowed: \"auto\", \"cpu\", \"cuda:0\""),
            );
        }
        let method = self.runner.algorithm;
        if self.actor.is_recurrent() && !method.recurrent() {
            let why = format!("\"{}\" learns no recurrent policy", method.name());
            let help = "\"none\", or runner.algorithm = \"ppo\"";
            errors.push(ConfigError::new("actor.rnn_type", why).help(help));
        }
        if self.learner.precision == Precision::Bf16 && !method.half() {
            let why = format!("\"{}\" learns with products in float32", method.name());
            let help = "\"float32\", or runner.algorithm = \"ppo\"";
            errors.push(ConfigError::new("learner.precision", why).help(help));
        }
        if self.ppo.rnd.is_on() && method.name() != "ppo" {
            let why = format!("\"{}\" learns from the task's own rewards alone", method.name());
            let help = "0, or runner.algorithm = \"ppo\"";
            errors.push(ConfigError::new("ppo.rnd.weight", why).help(help));
        }
        errors.extend(threads_possible("learner.threads", self.learner.threads));
        if let Err(e) = crate::config::filter::parse(&self.log.level) {
            errors.push(ConfigError::new("log.level", e.to_string()));
        }
        errors.extend(self.log.wandb.iter().flat_map(|w| w.validate()));
        if self.log.dir.is_empty() {
            errors.push(ConfigError::new("log.dir", "is empty").help("\"runs\" is the default"));
        }
    }

    fn check_simulation(&self, errors: &mut Vec<ConfigError>) {
        errors.extend(check(&self.sim, &self.env, &self.task));
        if self.sim.device == SimDevice::Cuda {
            let wrong = |message: &str, help: &str| {
                Some(ConfigError::new("sim.device", message).help(help))
            };
            errors.extend(match (self.sim.backend, Device::parse(&self.device)) {
                (Backend::Rapier, _) => wrong(
                    "rapier computes on the processor only",
                    "sim.device = \"cpu\" goes with a policy on a GPU, too; or sim.backend = \"native\"",
                ),
                (Backend::Native, Ok(Device::Cpu)) => wrong(
                    "\"cuda\" is the GPU of the run, and device = \"cpu\" has none",
                    "device = \"cuda:0\", or sim.device = \"auto\", which follows device",
                ),
                (Backend::Native, _) => None,
            });
        }
    }

    fn check_runner(&self, errors: &mut Vec<ConfigError>) {
        let r = &self.runner;
        let mut at_least_1 = |key: &str, value: u64, max: u64| {
            if !(1..=max).contains(&value) {
                errors.push(
                    ConfigError::new(format!("runner.{key}"), format!("{value} cannot be used"))
                        .help(format!("allowed: a whole number from 1 to {max}")),
                );
            }
        };
        at_least_1("num_steps_per_env", r.num_steps_per_env as u64, 1 << 20);
        at_least_1("max_iterations", r.max_iterations, 1 << 40);
        at_least_1("keep_checkpoints", r.keep_checkpoints as u64, 1_000_000);
        if let Auto::N(n) = r.eval_episodes {
            at_least_1("eval_episodes", n as u64, 1_000_000);
        }
        for (key, seconds) in
            [("peers_start_s", r.peers_start_s), ("peers_silence_s", r.peers_silence_s)]
        {
            if !(1.0..=LONGEST_S).contains(&seconds) {
                let why = format!("{seconds} s cannot be waited for");
                let help = format!("allowed: a number from 1 to {LONGEST_S} [s]");
                errors.push(ConfigError::new(format!("runner.{key}"), why).help(help));
            }
        }
    }

    /// The schedules of a configuration that cannot be used.
    pub(super) fn check_curriculum(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        if self.curriculum.is_empty() {
            return errors;
        }
        let task = curriculum::tree(&self.task);
        for (i, schedule) in self.curriculum.iter().enumerate() {
            let at = format!("curriculum[{i}]");
            schedule.validate(&at, &task, &mut errors);
            for (k, point) in schedule.points.iter().enumerate() {
                let samples = (point[1] as usize).saturating_mul(self.runner.num_steps_per_env);
                let too_few = !self.validate_batch(samples).is_empty();
                if schedule.key == NUM_ENVS && point[1] >= 1.0 && too_few {
                    let message = format!(
                        "{} environments give {samples} samples for {} minibatches",
                        point[1], self.ppo.num_mini_batches
                    );
                    let path = format!("{at}.points[{k}][1]");
                    errors.push(ConfigError::new(path, message));
                }
            }
            let again = self.curriculum[..i].iter().any(|s| {
                s.key == schedule.key || curriculum::same_number(&task, &s.key, &schedule.key)
            });
            if again {
                let message = format!("{} has a schedule already", schedule.key);
                errors.push(ConfigError::new(format!("{at}.key"), message));
            }
        }
        errors
    }
}
