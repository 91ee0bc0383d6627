//! N environments, stepped into arrays of the caller's.

use crate::arrays::{column, rows, take_actions};
use crate::error::Error;
use crate::make::{Made, Wanted, made};
use crate::messages;
use numpy::{PyReadonlyArrayDyn, PyReadwriteArray1, PyReadwriteArray2};
use ostler_sim::BatchEnv;
use ostler_sim::env::{ActionSpace, EnvSpec, EpisodeStats, Groups, ObsRow, StepOut};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

type Rows<'py> = PyReadwriteArray2<'py, f32>;
type Numbers<'py> = PyReadwriteArray1<'py, f32>;
type Flags<'py> = PyReadwriteArray1<'py, bool>;

/// N environments.
#[pyclass(frozen, module = "ostler._ostler")]
pub struct Batch {
    inner: Mutex<Option<Inner>>,
    spec: EnvSpec,
    process: u32,
}

struct Inner {
    made: Made,
    step: Step,
}

/// Buffers of a step that Python does not see.
struct Step {
    actions: Vec<f32>,
    terminated: Vec<f32>,
    truncated: Vec<f32>,
    valid: Vec<f32>,
    slot: Vec<i32>,
    stats: EpisodeStats,
}

impl Step {
    fn new(spec: &EnvSpec) -> Result<Self, Error> {
        use ostler_sim::memory::zeroed;
        let n = spec.num_envs;
        let numbers = || zeroed::<f32>("results", n);
        Ok(Self {
            actions: zeroed("actions", n * spec.action.width())?,
            terminated: numbers()?,
            truncated: numbers()?,
            valid: numbers()?,
            slot: zeroed("results", n)?,
            stats: EpisodeStats::with_room(spec)?,
        })
    }
}

/// The lock of an open batch.
struct Open<'a>(MutexGuard<'a, Option<Inner>>);

impl Open<'_> {
    fn get(&mut self) -> Result<&mut Inner, Error> {
        self.0.as_mut().ok_or(Error::Closed)
    }
}

impl Batch {
    /// # Errors
    /// Another process, another thread, or closed.
    fn open(&self) -> Result<Open<'_>, Error> {
        if std::process::id() != self.process {
            return Err(Error::Forked);
        }
        match self.inner.try_lock() {
            Ok(inner) => Ok(Open(inner)),
            Err(TryLockError::WouldBlock) => Err(Error::Busy),
            // A panic was in between: its environments may be half stepped.
            Err(TryLockError::Poisoned(_)) => Err(Error::Closed),
        }
    }

    fn critic_width(&self) -> Option<usize> {
        self.spec.obs.critic
    }
}

/// Rows for critics are there exactly where the task has some.
fn same(given: bool, wanted: Option<usize>) -> PyResult<()> {
    match given == wanted.is_some() {
        true => Ok(()),
        false => Err(PyValueError::new_err(
            "an array for critics is given exactly where the task has rows for them",
        )),
    }
}

#[pymethods]
impl Batch {
    /// Builds the environments of a configuration.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        overrides: Vec<String>,
        allow_native: bool,
    ) -> PyResult<Self> {
        let wanted = Wanted {
            path,
            overrides,
            allow_native,
        };
        let made = made(py, wanted)?;
        let spec = made.env.spec().clone();
        if !spec.agents.is_empty() {
            let names: Vec<&str> = spec.agents.iter().map(|a| a.name.as_str()).collect();
            let why = format!(
                "the task has the agents {}, and a gymnasium.vector.VectorEnv has one; \
                 train it with `ostler train`",
                names.join(", ")
            );
            return Err(PyValueError::new_err(why));
        }
        let step = Step::new(&spec)?;
        Ok(Self {
            inner: Mutex::new(Some(Inner { made, step })),
            spec,
            process: std::process::id(),
        })
    }

    /// Sizes, names and units.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut open = self.open()?;
        let inner = open.get()?;
        let (env, loaded) = (&inner.made.env, &inner.made.loaded);
        let (spec, facts) = (&self.spec, PyDict::new(py));
        facts.set_item("num_envs", spec.num_envs)?;
        facts.set_item("observations", spec.obs.policy)?;
        facts.set_item("rows_of_critics", spec.obs.critic)?;
        facts.set_item("critic", spec.critic)?;
        let groups = spec.groups.iter().map(|g| (&g.name, g.first, g.width));
        facts.set_item("groups", groups.collect::<Vec<_>>())?;
        let task = env.compiled();
        facts.set_item("observation_bounds", task.observation_bounds(false))?;
        facts.set_item("critic_bounds", task.observation_bounds(true))?;
        facts.set_item("action_bounds", task.action_bounds())?;
        let (kind, size) = match spec.action {
            ActionSpace::Continuous(n) => ("continuous", n),
            ActionSpace::Discrete(n) => ("discrete", n),
        };
        facts.set_item("action", (kind, size))?;
        facts.set_item("observation_table", table(py, &spec.obs_table.policy)?)?;
        let critic = spec.obs_table.critic.as_ref();
        let critic = critic.map(|rows| table(py, rows)).transpose()?;
        facts.set_item("critic_table", critic)?;
        facts.set_item("step_dt", spec.step_dt)?;
        facts.set_item("max_episode_steps", spec.max_episode_steps)?;
        facts.set_item("rewards", &spec.reward_names)?;
        facts.set_item("terminations", &spec.termination_names)?;
        let metrics = spec.metrics.iter().map(|m| m.name.as_str());
        facts.set_item("metrics", metrics.collect::<Vec<_>>())?;
        facts.set_item("file", loaded.path.display().to_string())?;
        facts.set_item("robot", &inner.made.model.name)?;
        facts.set_item("seed", loaded.config.seed)?;
        facts.set_item("kernel", env.physics().kernel())?;
        facts.set_item("kernel_note", &inner.made.kernel_note)?;
        facts.set_item("notes", env.physics().notes())?;
        Ok(facts)
    }

    /// Begins all episodes, with `seed` as if the environments were just made; `spread` gives
    /// them random ages.
    #[pyo3(signature = (obs, critic, seed=None, spread=false))]
    fn reset(
        &self,
        py: Python<'_>,
        mut obs: Rows<'_>,
        critic: Option<Rows<'_>>,
        seed: Option<u64>,
        spread: bool,
    ) -> PyResult<()> {
        same(critic.is_some(), self.critic_width())?;
        let mut open = self.open()?;
        let inner = open.get()?;
        let (n, mut critic) = (self.spec.num_envs, critic);
        let mut groups = groups(n, &self.spec, &mut obs, critic.as_mut())?;
        py.detach(|| {
            if let Some(seed) = seed {
                inner.made.again(seed)?;
            }
            inner.made.env.reset(spread, &mut groups);
            Ok::<(), Error>(())
        })?;
        Ok(())
    }

    /// A control step. Writes observations, rewards and flags; a broken environment counts as
    /// truncated. Returns how many episodes ended, and whether there are messages.
    #[allow(clippy::too_many_arguments, reason = "results of a step")]
    fn step(
        &self,
        py: Python<'_>,
        actions: PyReadonlyArrayDyn<'_, f32>,
        mut obs: Rows<'_>,
        critic: Option<Rows<'_>>,
        mut reward: Numbers<'_>,
        mut terminated: Flags<'_>,
        mut truncated: Flags<'_>,
    ) -> PyResult<(usize, bool)> {
        same(critic.is_some(), self.critic_width())?;
        let mut open = self.open()?;
        let Inner { made, step } = open.get()?;
        let (n, mut critic) = (self.spec.num_envs, critic);
        take_actions(&actions, self.spec.action, n, &mut step.actions)?;
        let obs = groups(n, &self.spec, &mut obs, critic.as_mut())?;
        let reward = column("reward", &mut reward, n)?;
        let terminated = column("terminated", &mut terminated, n)?;
        let truncated = column("truncated", &mut truncated, n)?;
        let ended = py.detach(|| {
            advance(&mut made.env, step, obs, reward);
            let results = step.terminated.iter().zip(&step.truncated).zip(&step.valid);
            let flags = terminated.iter_mut().zip(truncated.iter_mut());
            let mut ended = 0;
            for (((end, late), valid), (terminated, truncated)) in results.zip(flags) {
                *terminated = *end != 0.0;
                *truncated = (*late != 0.0) | (*valid == 0.0);
                ended += usize::from(*terminated | *truncated);
            }
            ended
        });
        Ok((ended, messages::any()))
    }

    /// Of the episodes that ended in the last step: their last observations, returns, lengths,
    /// and where environments broke; zeros for all others. Arrays come zeroed.
    fn ended(
        &self,
        mut obs: Rows<'_>,
        critic: Option<Rows<'_>>,
        mut returns: Numbers<'_>,
        mut lengths: PyReadwriteArray1<'_, i64>,
        mut broken: Flags<'_>,
    ) -> PyResult<()> {
        same(critic.is_some(), self.critic_width())?;
        let mut open = self.open()?;
        let Inner { made, step } = open.get()?;
        let (n, mut critic) = (self.spec.num_envs, critic);
        let to = groups(n, &self.spec, &mut obs, critic.as_mut())?;
        let returns = column("returns", &mut returns, n)?;
        let lengths = column("lengths", &mut lengths, n)?;
        let broken = column("broken", &mut broken, n)?;
        let last = made.env.last_obs();
        let pairs = [Some((last.policy, to.policy)), last.critic.zip(to.critic)];
        for (from, to) in pairs.into_iter().flatten() {
            let width = to.len() / n;
            for env in (0..n).filter(|&env| step.ended(env)) {
                let row = env * width..(env + 1) * width;
                to[row.clone()].copy_from_slice(&from[row]);
            }
        }
        for env in (0..n).filter(|&env| step.ended(env)) {
            let (ret, length) = made.env.last_episode(env);
            returns[env] = ret;
            lengths[env] = i64::from(length);
            broken[env] = step.valid[env] == 0.0;
        }
        Ok(())
    }

    /// Statistics of the episodes that ended since the last call.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut open = self.open()?;
        let Inner { made, step } = open.get()?;
        made.env.take_stats(&mut step.stats);
        let (stats, spec) = (&step.stats, &self.spec);
        let mean = |sum: f64| match stats.episodes {
            0 => f64::NAN,
            n => sum / n as f64,
        };
        let all = PyDict::new(py);
        all.set_item("episodes", stats.episodes)?;
        all.set_item("return", mean(stats.return_sum))?;
        all.set_item("length", mean(stats.length_sum))?;
        let named = |names: Vec<&str>, values: Vec<f64>| -> PyResult<Bound<'py, PyDict>> {
            let all = PyDict::new(py);
            for (name, value) in names.into_iter().zip(values) {
                all.set_item(name, value)?;
            }
            Ok(all)
        };
        let rewards = stats.reward_sums.iter().map(|sum| mean(*sum)).collect();
        let names = spec.reward_names.iter().map(String::as_str).collect();
        all.set_item("rewards", named(names, rewards)?)?;
        let metrics = stats.metric_sums.iter().map(|sum| mean(*sum)).collect();
        let names = spec.metrics.iter().map(|m| m.name.as_str()).collect();
        all.set_item("metrics", named(names, metrics)?)?;
        let ends = stats.terminations.iter().map(|n| *n as f64).collect();
        let names = spec.termination_names.iter().map(String::as_str).collect();
        all.set_item("terminations", named(names, ends)?)?;
        all.set_item("broken", stats.broken())?;
        let causes = PyDict::new(py);
        for (name, count) in spec.cause_names.iter().zip(&stats.causes) {
            if *count > 0 {
                causes.set_item(name, count)?;
            }
        }
        all.set_item("causes", causes)?;
        Ok(all)
    }

    /// Switches observation noise and errors off or on.
    fn set_noise(&self, on: bool) -> PyResult<()> {
        let mut open = self.open()?;
        let made = &mut open.get()?.made;
        made.noise = on;
        made.env.set_noise(on);
        Ok(())
    }

    /// All that is needed to go on with the same bits.
    fn capture<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut open = self.open()?;
        let mut bytes = Vec::new();
        let captured = open.get()?.made.env.capture(&mut bytes);
        captured.map_err(Error::Snapshot)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Goes back to a captured state.
    fn restore(&self, bytes: &[u8]) -> PyResult<()> {
        let mut open = self.open()?;
        let restored = open.get()?.made.env.restore(bytes);
        Ok(restored.map_err(Error::Snapshot)?)
    }

    /// Ends the threads and frees the memory; waits for nothing else.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if std::process::id() != self.process {
            return Ok(());
        }
        let taken = self.open()?.0.take();
        py.detach(|| drop(taken));
        Ok(())
    }
}

impl Step {
    fn ended(&self, env: usize) -> bool {
        self.terminated[env] != 0.0 || self.truncated[env] != 0.0 || self.valid[env] == 0.0
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // After a fork the threads are not there to be joined: their memory is left to the end
        // of the process.
        if std::process::id() != self.process
            && let Ok(inner) = self.inner.get_mut()
        {
            std::mem::forget(inner.take());
        }
    }
}

/// A step into `obs`, `reward` and the buffers of `step`.
fn advance(env: &mut BatchEnv, step: &mut Step, obs: Groups<&mut [f32]>, reward: &mut [f32]) {
    let Step {
        actions,
        terminated,
        truncated,
        valid,
        slot,
        ..
    } = step;
    let critic = obs.critic.as_ref().map(|_| &mut [][..]);
    let mut out = StepOut {
        obs,
        reward,
        terminated,
        truncated,
        valid,
        // All last observations are asked for afterwards, not those of truncations alone.
        final_obs: Groups {
            policy: &mut [],
            critic,
        },
        final_slot: slot,
    };
    env.step(actions, &mut out);
}

fn groups<'a>(
    num_envs: usize,
    spec: &EnvSpec,
    obs: &'a mut Rows<'_>,
    critic: Option<&'a mut Rows<'_>>,
) -> PyResult<Groups<&'a mut [f32]>> {
    let wide = spec.obs.critic.unwrap_or(0);
    Ok(Groups {
        policy: rows("observations", obs, [num_envs, spec.obs.policy])?,
        critic: critic
            .map(|critic| rows("observations of critics", critic, [num_envs, wide]))
            .transpose()?,
    })
}

/// Rows of the observation table.
fn table<'py>(py: Python<'py>, rows: &[ObsRow]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for row in rows {
        let entry = PyDict::new(py);
        entry.set_item("index", row.index)?;
        entry.set_item("len", row.len)?;
        entry.set_item("frames", row.frames)?;
        entry.set_item("stride", row.stride)?;
        entry.set_item("name", &row.name)?;
        entry.set_item("expr", &row.expr)?;
        entry.set_item("unit", &row.unit)?;
        entry.set_item("seen", &row.seen)?;
        list.append(entry)?;
    }
    Ok(list)
}
