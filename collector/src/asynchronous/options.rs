//! How to collect in other threads, and how that goes.

use crate::Stepping;
use std::time::Duration;
use tch::Device;

/// Options of an [`AsyncCollector`](crate::AsyncCollector).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AsyncOptions {
    /// Threads, each with its part of the environments; 1 or more, and never more than
    /// there are environments.
    pub workers: usize,
    /// Share of the workers, above 0 and at most 1, that must be done before the others
    /// are cut. 1: nobody is.
    pub preemptive_threshold: f64,
    /// Control steps between two looks for newer weights; 0: a rollout keeps those that
    /// it was ordered with.
    pub refresh_interval: usize,
    /// Weights that may have been published after those that a rollout was ordered with,
    /// when it is handed out. So many rollouts are collected ahead.
    pub max_staleness: usize,
    /// A worker that makes no step for so long, while it is waited for, hangs.
    pub worker_timeout: Duration,
    /// How long the end is waited for by whoever drops the collector.
    pub shutdown_timeout: Duration,
    /// How steps are made.
    pub stepping: Stepping,
    /// Where the rollout of all lies.
    pub storing_device: Device,
}

impl Default for AsyncOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            preemptive_threshold: 1.0,
            refresh_interval: 0,
            max_staleness: 1,
            worker_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(10),
            stepping: Stepping::default(),
            storing_device: Device::Cpu,
        }
    }
}

/// How the workers are doing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkerStats {
    /// Threads that collect.
    pub workers: usize,
    /// Panics after which a worker went on, since the collector was made.
    pub restarts: u64,
    /// Workers that hung and were replaced, since the collector was made.
    pub hangs: u64,
    /// Publications of weights between those that acted and the newest, at the time the
    /// last rollout was handed out; the mean over its steps that were made.
    pub staleness: f64,
    /// Steps of the last rollout that were not made, of all environments.
    pub cut: u64,
}
