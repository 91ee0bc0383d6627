//! The collector of a run, whichever it is.

use crate::run::engine::RunEnv;
use ostler_collector::device::{Bridge, KernelEnvironments};
use ostler_collector::{AsyncCollector, Collector, DeviceCollector, SyncCollector};
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvError;
use std::sync::Arc;

/// A collector whose environments a run can change.
pub trait Collecting: Collector {
    /// Goes on with other numbers in the task.
    ///
    /// # Errors
    /// Anything but a number differs; a number that cannot be. Nothing has changed then.
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError>;

    /// The name of the program in its cache, where environments are on a device.
    fn device_kernel(&self) -> Option<String> {
        None
    }
}

/// All on the host.
impl Collecting for SyncCollector<RunEnv> {
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env_mut().set_task(task)
    }
}

/// Environments on the host, in threads that collect.
impl Collecting for AsyncCollector {
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        let task = task.clone();
        self.change(Arc::new(move |env| env.set_task(&task)));
        Ok(())
    }
}

/// Environments on the host, all else on a device.
impl Collecting for DeviceCollector<Bridge<RunEnv>> {
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env_mut().env_mut().set_task(task)
    }
}

/// All on a device.
impl Collecting for DeviceCollector<KernelEnvironments> {
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env_mut().env_mut().set_task(task)
    }

    fn device_kernel(&self) -> Option<String> {
        Some(self.env().kernel())
    }
}
