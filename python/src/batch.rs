//! N environments, stepped into arrays of the caller's.

use crate::arrays::{column, rows, take_actions};
use crate::error::Error;
use crate::facts::{self, About};
use crate::guarded::Guarded;
use crate::make::{Made, Wanted, made};
use crate::messages;
use numpy::{PyReadonlyArrayDyn, PyReadwriteArray1, PyReadwriteArray2};
use ostler_sim::BatchEnv;
use ostler_sim::env::{EnvSpec, EpisodeStats, Groups, StepOut};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;

type Rows<'py> = PyReadwriteArray2<'py, f32>;
type Numbers<'py> = PyReadwriteArray1<'py, f32>;
type Flags<'py> = PyReadwriteArray1<'py, bool>;

/// N environments.
#[pyclass(frozen, module = "ostler._ostler")]
pub struct Batch {
    inner: Guarded<Inner>,
    spec: EnvSpec,
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
        let rows = spec.rows();
        let numbers = || zeroed::<f32>("results", rows);
        Ok(Self {
            actions: zeroed("actions", rows * spec.action.width())?,
            terminated: numbers()?,
            truncated: numbers()?,
            valid: numbers()?,
            slot: zeroed("results", rows)?,
            stats: EpisodeStats::with_room(spec)?,
        })
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
        let wanted = Wanted { path, overrides, allow_native };
        let made = made(py, wanted)?;
        let spec = made.env.spec().clone();
        let step = Step::new(&spec)?;
        Ok(Self { inner: Guarded::new(Inner { made, step }), spec })
    }

    /// Sizes, names and units.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut open = self.inner.open()?;
        let inner = open.get()?;
        let made = &inner.made;
        facts::facts(
            py,
            &About {
                spec: &self.spec,
                task: made.env.compiled(),
                loaded: &made.loaded,
                robot: &made.model.name,
                kernel: made.env.physics().kernel(),
                kernel_note: made.kernel_note.as_deref(),
                notes: made.env.physics().notes(),
            },
        )
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
        same(critic.is_some(), self.spec.obs.critic)?;
        let mut open = self.inner.open()?;
        let inner = open.get()?;
        let mut critic = critic;
        let mut groups = groups(&self.spec, &mut obs, critic.as_mut())?;
        py.detach(|| {
            if let Some(seed) = seed {
                inner.made.again(seed)?;
            }
            inner.made.env.reset(spread, &mut groups);
            Ok::<(), Error>(())
        })?;
        Ok(())
    }

    /// A control step, with actions of every agent. Writes observations, rewards and flags in
    /// rows, those of an environment's agents one after the other; a broken environment counts
    /// as truncated. Returns in how many rows an episode ended, and whether there are messages.
    #[allow(clippy::too_many_arguments, reason = "results of a step")]
    fn step(
        &self,
        py: Python<'_>,
        actions: Vec<PyReadonlyArrayDyn<'_, f32>>,
        mut obs: Rows<'_>,
        critic: Option<Rows<'_>>,
        mut reward: Numbers<'_>,
        mut terminated: Flags<'_>,
        mut truncated: Flags<'_>,
    ) -> PyResult<(usize, bool)> {
        same(critic.is_some(), self.spec.obs.critic)?;
        let mut open = self.inner.open()?;
        let Inner { made, step } = open.get()?;
        let (rows, mut critic) = (self.spec.rows(), critic);
        take_actions(&actions, &self.spec, &mut step.actions)?;
        let obs = groups(&self.spec, &mut obs, critic.as_mut())?;
        let reward = column("reward", &mut reward, rows)?;
        let terminated = column("terminated", &mut terminated, rows)?;
        let truncated = column("truncated", &mut truncated, rows)?;
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
        same(critic.is_some(), self.spec.obs.critic)?;
        let mut open = self.inner.open()?;
        let Inner { made, step } = open.get()?;
        let (spec, mut critic) = (&self.spec, critic);
        let (rows, agents) = (spec.rows(), spec.agents_per_env());
        let to = groups(spec, &mut obs, critic.as_mut())?;
        let returns = column("returns", &mut returns, rows)?;
        let lengths = column("lengths", &mut lengths, rows)?;
        let broken = column("broken", &mut broken, rows)?;
        let last = made.env.last_obs();
        let pairs = [Some((last.policy, to.policy)), last.critic.zip(to.critic)];
        for (from, to) in pairs.into_iter().flatten() {
            let width = to.len() / rows;
            for row in (0..rows).filter(|&row| step.ended(row)) {
                let own = row * width..(row + 1) * width;
                to[own.clone()].copy_from_slice(&from[own]);
            }
        }
        for row in (0..rows).filter(|&row| step.ended(row)) {
            let (env, agent) = (row / agents, row % agents);
            returns[row] = made.env.last_return(env, agent);
            lengths[row] = i64::from(made.env.last_length(env));
            broken[row] = step.valid[row] == 0.0;
        }
        Ok(())
    }

    /// Statistics of the episodes that ended since the last call.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let mut open = self.inner.open()?;
        let Inner { made, step } = open.get()?;
        made.env.take_stats(&mut step.stats);
        facts::statistics(py, &self.spec, &step.stats)
    }

    /// Switches observation noise and errors off or on.
    fn set_noise(&self, on: bool) -> PyResult<()> {
        let mut open = self.inner.open()?;
        let made = &mut open.get()?.made;
        made.noise = on;
        made.env.set_noise(on);
        Ok(())
    }

    /// All that is needed to go on with the same bits.
    fn capture<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut open = self.inner.open()?;
        let mut bytes = Vec::new();
        let captured = open.get()?.made.env.capture(&mut bytes);
        captured.map_err(Error::Snapshot)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Goes back to a captured state.
    fn restore(&self, bytes: &[u8]) -> PyResult<()> {
        let mut open = self.inner.open()?;
        let restored = open.get()?.made.env.restore(bytes);
        Ok(restored.map_err(Error::Snapshot)?)
    }

    /// Ends the threads and frees the memory; waits for nothing else.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(self.inner.close(py)?)
    }
}

impl Step {
    fn ended(&self, row: usize) -> bool {
        self.terminated[row] != 0.0 || self.truncated[row] != 0.0 || self.valid[row] == 0.0
    }
}

/// A step into `obs`, `reward` and the buffers of `step`.
fn advance(env: &mut BatchEnv, step: &mut Step, obs: Groups<&mut [f32]>, reward: &mut [f32]) {
    let Step { actions, terminated, truncated, valid, slot, .. } = step;
    let critic = obs.critic.as_ref().map(|_| &mut [][..]);
    let mut out = StepOut {
        obs,
        reward,
        terminated,
        truncated,
        valid,
        // All last observations are asked for afterwards, not those of truncations alone.
        final_obs: Groups { policy: &mut [], critic },
        final_slot: slot,
    };
    env.step(actions, &mut out);
}

fn groups<'a>(
    spec: &EnvSpec,
    obs: &'a mut Rows<'_>,
    critic: Option<&'a mut Rows<'_>>,
) -> PyResult<Groups<&'a mut [f32]>> {
    let (count, wide) = (spec.rows(), spec.obs.critic.unwrap_or(0));
    Ok(Groups {
        policy: rows("observations", obs, [count, spec.obs.policy])?,
        critic: critic
            .map(|critic| rows("observations of critics", critic, [count, wide]))
            .transpose()?,
    })
}
