//! N environments on a GPU, over arrays that stay there.
//!
//! Reading order: [`DeviceBatch`] -> `kernels` (between the arrays and the environments') ->
//! [`pool`] (memory) -> [`DeviceArray`] and [`dlpack`] (how other libraries take it).
//!
//! All work goes to the device's default stream, on which PyTorch works, too: the host waits for
//! nothing in a step. `unsafe` is in `dlpack` and where work is started.

mod actions;
mod array;
mod dlpack;
mod kernels;
mod pool;

pub use array::DeviceArray;

use crate::error::Error;
use crate::facts::{self, About};
use crate::guarded::Guarded;
use crate::make::{Configured, Wanted, configured, explained, in_thread};
use crate::messages;
use dlpack::{Kind, Taken};
use kernels::{FlagArgs, Parts};
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::{Address, Device};
use ostler_sim::env::{DeviceEnv, EnvSpec, EpisodeStats, Groups, PolicyNoise, StepAddresses};
use ostler_sim::memory::MemoryError;
use pool::{Lease, Pool};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// N environments on a GPU.
#[pyclass(frozen, module = "ostler._ostler")]
pub struct DeviceBatch {
    inner: Guarded<Inner>,
    spec: EnvSpec,
    device: Arc<Cuda>,
    number: i32,
    pool: Arc<Pool>,
}

struct Inner {
    env: DeviceEnv,
    configured: Configured,
    parts: Parts,
    step: Step,
    noise: bool,
    stats: EpisodeStats,
}

/// Memory of a step that Python does not see, on the device.
struct Step {
    actions: Arc<Lease>,
    terminated: Arc<Lease>,
    truncated: Arc<Lease>,
    valid: Arc<Lease>,
    slot: Arc<Lease>,
    /// What the last step reads: it may not have begun.
    given: Vec<Taken>,
}

/// Memory for the results of a step, on the device.
#[pyclass(frozen, module = "ostler._ostler")]
pub struct DeviceSet {
    obs: Groups<Arc<Lease>>,
    final_obs: Groups<Arc<Lease>>,
    reward: Arc<Lease>,
    /// Terminated, truncated, whether `final_obs` has a row, broken.
    flags: [Arc<Lease>; 4],
}

/// The last observations of a step's truncations: there is one for every environment.
const SLOTS: usize = 1;

impl DeviceBatch {
    fn lease(&self, what: &str, bytes: usize) -> Result<Arc<Lease>, MemoryError> {
        self.pool.lease(what, bytes)
    }

    fn observations(&self, what: &str) -> Result<Groups<Arc<Lease>>, MemoryError> {
        let rows = |width: usize| self.lease(what, 4 * self.spec.rows() * width);
        Ok(Groups {
            policy: rows(self.spec.obs.policy)?,
            critic: self.spec.obs.critic.map(rows).transpose()?,
        })
    }

    fn of_this(&self, set: &DeviceSet) -> PyResult<()> {
        match set.reward.is_of(&self.pool) {
            true => Ok(()),
            false => Err(PyValueError::new_err("these arrays are other environments'")),
        }
    }
}

fn built(configured: &Configured, device: &Arc<Cuda>) -> Result<DeviceEnv, Error> {
    let config = &configured.loaded.config;
    let none = PolicyNoise { seed: 0, width: 0, normal: false };
    let env = DeviceEnv::new(
        Arc::clone(&configured.model),
        &config.sim,
        &config.env,
        &config.task,
        config.seed,
        0,
        Arc::clone(device) as Arc<dyn Device>,
        &device.memory(),
        none,
        false,
    );
    env.map_err(|e| explained(&configured.loaded, e))
}

#[pymethods]
impl DeviceBatch {
    /// Builds the environments of a configuration on GPU `number`.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        overrides: Vec<String>,
        allow_native: bool,
        number: i32,
    ) -> PyResult<Self> {
        let wanted = Wanted { path, overrides, allow_native };
        let ordinal = usize::try_from(number).unwrap_or(usize::MAX);
        let (device, configured, env, parts) = in_thread(py, move |_| {
            let configured = configured(&wanted, true)?;
            let device = Cuda::open(ordinal).map_err(Error::Gpu)?;
            let env = built(&configured, &device)?;
            let parts = Parts::load(&*device).map_err(Error::Device)?;
            Ok((device, configured, env, parts))
        })?;
        let (spec, pool) = (env.spec().clone(), Pool::new(device.memory()));
        let numbers = |what: &str, count: usize| pool.lease(what, 4 * count).map_err(Error::Memory);
        let rows = spec.rows();
        let step = Step {
            actions: numbers("actions", rows * spec.action.width())?,
            terminated: numbers("results", rows)?,
            truncated: numbers("results", rows)?,
            valid: numbers("results", rows)?,
            slot: numbers("results", rows)?,
            given: Vec::new(),
        };
        let inner = Inner {
            env,
            configured,
            parts,
            step,
            noise: true,
            stats: EpisodeStats::with_room(&spec).map_err(Error::Memory)?,
        };
        Ok(Self { inner: Guarded::new(inner), spec, device, number, pool })
    }

    /// Sizes, names and units.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut open = self.inner.open()?;
        let inner = open.get()?;
        let facts = facts::facts(
            py,
            &About {
                spec: &self.spec,
                task: inner.env.compiled(),
                loaded: &inner.configured.loaded,
                robot: &inner.configured.model.name,
                kernel: Some(inner.env.kernel()),
                kernel_note: None,
                notes: &[],
            },
        )?;
        facts.set_item("device", self.device.name())?;
        Ok(facts)
    }

    /// Memory for the results of a reset or a step.
    fn arrays(&self) -> PyResult<DeviceSet> {
        let made = || -> Result<DeviceSet, MemoryError> {
            let rows = self.spec.rows();
            let flag = || self.lease("results", rows);
            Ok(DeviceSet {
                obs: self.observations("observations")?,
                final_obs: self.observations("last observations")?,
                reward: self.lease("results", 4 * rows)?,
                flags: [flag()?, flag()?, flag()?, flag()?],
            })
        };
        Ok(made().map_err(Error::Memory)?)
    }

    /// One of the arrays of a set: `obs`, `critic`, `final_obs`, `final_critic`, `reward`,
    /// `terminated`, `truncated`, `kept`, `broken`; `None` where the task has none.
    fn array(&self, set: &DeviceSet, name: &str) -> PyResult<Option<DeviceArray>> {
        self.of_this(set)?;
        let (rows, spec) = (self.spec.rows(), &self.spec);
        let wide = |width: Option<usize>| vec![rows, width.unwrap_or(0)];
        let policy = || wide(Some(spec.obs.policy));
        let critic = || wide(spec.obs.critic);
        let (memory, kind, shape) = match name {
            "obs" => (Some(&set.obs.policy), Kind::Float(32), policy()),
            "critic" => (set.obs.critic.as_ref(), Kind::Float(32), critic()),
            "final_obs" => (Some(&set.final_obs.policy), Kind::Float(32), policy()),
            "final_critic" => (set.final_obs.critic.as_ref(), Kind::Float(32), critic()),
            "reward" => (Some(&set.reward), Kind::Float(32), vec![rows]),
            "terminated" => (Some(&set.flags[0]), Kind::Bool, vec![rows]),
            "truncated" => (Some(&set.flags[1]), Kind::Bool, vec![rows]),
            "kept" => (Some(&set.flags[2]), Kind::Bool, vec![rows]),
            "broken" => (Some(&set.flags[3]), Kind::Bool, vec![rows]),
            other => return Err(PyValueError::new_err(format!("there is no array {other}"))),
        };
        let array = |memory| DeviceArray::new(memory, &self.device, self.number, kind, &shape);
        Ok(memory.map(array))
    }

    /// Begins all episodes, as `Batch.reset`. Waits for nothing, but with a seed.
    #[pyo3(signature = (set, seed=None, spread=false))]
    fn reset(
        &self,
        py: Python<'_>,
        set: &DeviceSet,
        seed: Option<u64>,
        spread: bool,
    ) -> PyResult<()> {
        self.of_this(set)?;
        let mut open = self.inner.open()?;
        let inner = open.get()?;
        py.detach(|| {
            if let Some(seed) = seed {
                inner.configured.loaded.config.seed = seed;
                inner.env = built(&inner.configured, &self.device)?;
                inner.env.set_noise(inner.noise);
            }
            let started = inner.env.reset(spread, addresses(&set.obs));
            started.map_err(Error::Device)
        })?;
        Ok(())
    }

    /// A control step, with actions of every agent. Writes the set's arrays, or rather: has them
    /// written after all that was started on the device before. Returns whether there are
    /// messages.
    fn step(
        &self,
        py: Python<'_>,
        actions: Vec<Bound<'_, PyAny>>,
        set: &DeviceSet,
    ) -> PyResult<bool> {
        self.of_this(set)?;
        let mut open = self.inner.open()?;
        let Inner { env, parts, step, .. } = open.get()?;
        let given = actions::taken(&actions, &self.spec, self.number)?;
        let rows = self.spec.rows();
        py.detach(|| {
            let actions = actions::placed(&given, &self.spec, parts, &step.actions)?;
            // Room for the last observations of this step's truncations.
            env.begin_rollout(None)?;
            env.step(
                actions,
                &StepAddresses {
                    obs: addresses(&set.obs),
                    reward: set.reward.address(),
                    terminated: step.terminated.address(),
                    truncated: step.truncated.address(),
                    valid: step.valid.address(),
                    final_obs: addresses(&set.final_obs),
                    final_slots: SLOTS,
                    final_slot: step.slot.address(),
                    noise: None,
                },
            )?;
            let [ended, cut, kept, broken] = set.flags.each_ref().map(|flag| flag.address());
            let args = FlagArgs {
                terminated: step.terminated.address(),
                truncated: step.truncated.address(),
                valid: step.valid.address(),
                ended,
                cut,
                kept,
                broken,
                rows: rows as i64,
            };
            // SAFETY: numbers and flags of all rows, in blocks of this pool.
            unsafe { parts.flags(&args) }
        })
        .map_err(Error::Device)?;
        // Those of the step before are read by now, or their owner's next work waits for it.
        step.given = given;
        Ok(messages::any())
    }

    /// Statistics of the episodes that ended since the last call. Waits for the device.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut open = self.inner.open()?;
        let Inner { env, stats, .. } = open.get()?;
        py.detach(|| env.take_stats(stats)).map_err(Error::Device)?;
        facts::statistics(py, &self.spec, stats)
    }

    /// Launches of kernels, copies between host and device, and waits so far.
    fn traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (all, counts) = (PyDict::new(py), self.device.traffic());
        all.set_item("launches", counts.launches)?;
        all.set_item("uploads", counts.uploads)?;
        all.set_item("downloads", counts.downloads)?;
        all.set_item("waits", counts.waits)?;
        Ok(all)
    }

    /// Switches observation noise and errors off or on.
    fn set_noise(&self, on: bool) -> PyResult<()> {
        let mut open = self.inner.open()?;
        let inner = open.get()?;
        inner.noise = on;
        inner.env.set_noise(on);
        Ok(())
    }

    /// As `Batch.capture`, for either kind of environments. Waits for the device.
    fn capture<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut open = self.inner.open()?;
        let inner = open.get()?;
        let mut bytes = Vec::new();
        let captured = py.detach(|| inner.env.capture(&mut bytes));
        captured.map_err(Error::Snapshot)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Goes back to a captured state, of either kind of environments.
    fn restore(&self, bytes: &[u8]) -> PyResult<()> {
        let mut open = self.inner.open()?;
        let restored = open.get()?.env.restore(bytes);
        Ok(restored.map_err(Error::Snapshot)?)
    }

    /// Frees the memory, but for arrays that somebody still has.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.pool.close();
        Ok(self.inner.close(py)?)
    }
}

impl Drop for DeviceBatch {
    fn drop(&mut self) {
        self.pool.close();
    }
}

fn addresses(of: &Groups<Arc<Lease>>) -> Groups<Address> {
    Groups { policy: of.policy.address(), critic: of.critic.as_ref().map(|rows| rows.address()) }
}
