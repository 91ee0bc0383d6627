//! `[collector]`: values that cannot be used, and how many threads `"auto"` is.

use super::{CollectorKind, Config, Device};
use crate::learner::ppo::Staleness;
use ostler_collector::{AsyncOptions, Stepping};
use ostler_sim::config::{Auto, ConfigError, SimDevice};
use std::time::Duration;

/// More threads than this are a mistake.
const MOST_WORKERS: usize = 4096;
/// So many rollouts ahead nothing is on-policy in any sense.
const MOST_STALE: usize = 64;
/// No machine waits longer (s).
pub(super) const LONGEST_S: f64 = 1e6;

/// Why physics on a GPU and threads that collect do not go together.
pub(super) const ONE_STREAM: &str = "physics on a GPU shares one stream with the learner, so that collecting in other threads overlaps nothing";

impl Config {
    /// Whether threads collect.
    pub fn is_async(&self) -> bool {
        self.collector.kind == CollectorKind::Async
    }

    /// Threads that collect; 1 before [`resolve`](Self::resolve).
    pub fn workers(&self) -> usize {
        match self.collector.workers {
            Auto::N(n) => n.min(self.env.num_envs).max(1),
            Auto::Auto(_) => 1,
        }
    }

    /// How steps are made, whoever collects.
    pub fn stepping(&self) -> Stepping {
        Stepping {
            init_random_steps: self.collector.init_random_steps,
            reset_at_each_iter: self.collector.reset_at_each_iter,
        }
    }

    /// Whether the first episodes begin at random ages. Where each rollout begins with new episodes
    /// the first one does, too.
    pub fn spreads_ages(&self) -> bool {
        self.runner.init_at_random_ep_len && !self.collector.reset_at_each_iter
    }

    /// How threads collect into a rollout on `device`.
    pub fn async_options(&self, device: tch::Device) -> AsyncOptions {
        let c = &self.collector;
        AsyncOptions {
            workers: self.workers(),
            preemptive_threshold: c.preemptive_threshold,
            refresh_interval: c.refresh_interval,
            max_staleness: c.max_staleness,
            worker_timeout: Duration::from_secs_f64(c.worker_timeout_s),
            shutdown_timeout: Duration::from_secs_f64(c.shutdown_timeout_s),
            stepping: self.stepping(),
            storing_device: match c.storing_device.as_str() {
                "cpu" => tch::Device::Cpu,
                _ => device,
            },
        }
    }

    pub(super) fn check_collector(&self, errors: &mut Vec<ConfigError>) {
        let c = &self.collector;
        let mut refuse = |key: &str, message: String, help: &str| {
            errors.push(ConfigError::new(format!("collector.{key}"), message).help(help));
        };
        if let Auto::N(n) = c.workers {
            let most = MOST_WORKERS.min(self.env.num_envs.max(1));
            if !(1..=most).contains(&n) {
                let help = format!("allowed: \"auto\", or 1 to {most} with so many environments");
                refuse("workers", format!("{n} workers are not possible"), &help);
            }
        }
        if c.max_staleness > MOST_STALE {
            let why = format!("{} rollouts ahead", c.max_staleness);
            refuse("max_staleness", why, &format!("allowed: 0 to {MOST_STALE}"));
        }
        let share = c.preemptive_threshold;
        if !(share > 0.0 && share <= 1.0) {
            let why = format!("{share} is no share of workers to wait for");
            refuse("preemptive_threshold", why, "allowed: above 0, at most 1");
        }
        for (key, seconds) in
            [("worker_timeout_s", c.worker_timeout_s), ("shutdown_timeout_s", c.shutdown_timeout_s)]
        {
            if !(seconds > 0.0 && seconds <= LONGEST_S) {
                let why = format!("{seconds} s cannot be waited for");
                refuse(key, why, "allowed: a number above 0 [s]");
            }
        }
        self.check_places(errors);
    }

    /// Where parts and the whole may lie.
    fn check_places(&self, errors: &mut Vec<ConfigError>) {
        let wanted = self.collector.storing_device.as_str();
        let device = Device::parse(wanted);
        let fits = match (device.clone(), self.collector.kind) {
            (Ok(Device::Auto), _) => true,
            (Ok(Device::Cpu), CollectorKind::Async) => true,
            (Ok(device), _) => Ok(device) == Device::parse(&self.device),
            (Err(_), _) => false,
        };
        if !fits {
            errors.push(
                ConfigError::new(
                    "collector.storing_device",
                    format!("a rollout cannot lie on \"{wanted}\" here"),
                )
                .help(
                    "\"auto\": where the learner is; \"cpu\" goes with collector.kind = \"async\"",
                ),
            );
        }
        if self.is_async() && self.sim.device == SimDevice::Cuda {
            errors.push(ConfigError::new("collector.kind", ONE_STREAM).help(
                "collector.kind = \"sync\", or sim.device = \"cpu\", which goes with a policy on a GPU, too",
            ));
        }
    }

    /// Policy versions between the one that acted and the learner's, at most.
    pub fn max_staleness(&self) -> usize {
        match self.collector.kind {
            CollectorKind::Async => self.collector.max_staleness,
            CollectorKind::Sync => 0,
        }
    }

    /// Replaces every "auto" of collecting; `cores`: those at hand.
    pub(super) fn resolve_workers(&mut self, cores: usize, notes: &mut Vec<String>) {
        if self.ppo.staleness_correction == Staleness::Auto {
            let stale = self.max_staleness() > 0;
            // V-trace's clipped traces are shorter, which costs more than it mends where
            // policies are as near as these (docs/collectors.md).
            self.ppo.staleness_correction = match stale {
                true => Staleness::Clip,
                false => Staleness::None,
            };
        }
        if self.collector.storing_device == "auto" {
            self.collector.storing_device.clone_from(&self.device);
        }
        if !self.is_async() {
            if let Auto::Auto(_) = self.collector.workers {
                self.collector.workers = Auto::N(1);
            }
            return;
        }
        // While the learner waits, its cores are free.
        let learning = match self.collector.max_staleness {
            0 => 0,
            _ => self.learner_threads(),
        };
        let each = self.sim_threads();
        match self.collector.workers {
            Auto::Auto(_) => {
                let free = cores.saturating_sub(learning) / each;
                let n = free.clamp(1, self.env.num_envs.max(1));
                self.collector.workers = Auto::N(n);
                notes.push(format!(
                    "collector.workers = \"auto\" is {n}: {cores} cores at hand, {learning} of them for the learner meanwhile"
                ));
            }
            Auto::N(n) if n * each + learning > cores => notes.push(format!(
                "collector.workers = {n} over-subscribes the {cores} cores at hand (threads of one worker: {each}, of the learner meanwhile: {learning}); that is usually slower"
            )),
            Auto::N(_) => {}
        }
    }
}
