//! Faults on purpose: numbers that are not finite and panics, where they would arise,
//! so that a run can be drilled.

use super::{BatchEnv, EnvError};
use crate::config::ConfigError;
use crate::task::Task;
use ostler_base::memory::{MemoryError, zeroed};
use ostler_base::rng::{Purpose, philox, unit};
use ostler_engine::kernels::EnvArgs;
use ostler_engine::physics::{Part, fault};
use serde::{Deserialize, Serialize};

/// A fault that is put into environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injection {
    /// In which control steps.
    pub when: When,
    /// In which environments.
    pub env: Which,
    /// Into what.
    pub what: What,
    /// Which number.
    #[serde(default)]
    pub value: Value,
}

/// Control steps, counted from the run's first, which is 1; they go on through
/// checkpoints and are taken again when the environments go back to an earlier state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Once, in this step; again if the step is taken again by environments that were
    /// built anew.
    At(u64),
    /// In every step whose number is a multiple of this.
    Every(u64),
}

/// Environments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The one with this global id; none where the batch does not have it.
    One(u32),
    /// Each with this probability, drawn anew in every step.
    Share(f64),
}

/// The overwritten number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// An entry of `qpos`, before the physics.
    Qpos(usize),
    /// An entry of `qvel`, before the physics.
    Qvel(usize),
    /// An output of the policy; those of several agents are counted through.
    Action(usize),
    /// An entry of the policy's observation; those of several agents are counted through.
    Observation(usize),
    /// The sum of rewards, of all agents.
    Reward,
    /// Nothing: the thread that steps the environment panics.
    Panic,
}

/// The number that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Not a number.
    #[default]
    Nan,
    /// Infinity.
    Inf,
    /// This.
    #[serde(untagged)]
    Number(f64),
}

impl Value {
    /// The number.
    pub fn number(self) -> f64 {
        match self {
            Self::Nan => f64::NAN,
            Self::Inf => f64::INFINITY,
            Self::Number(x) => x,
        }
    }

    fn float(self) -> f32 {
        match self {
            Self::Nan => f32::NAN,
            Self::Inf => f32::INFINITY,
            Self::Number(x) => x as f32,
        }
    }
}

/// A fault of this step.
#[derive(Debug, Clone, Copy)]
struct Hit {
    env: usize,
    what: What,
    value: f32,
}

/// Faults for a batch.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Injection>,
    /// Those that are due once and were.
    fired: Vec<bool>,
    /// This step's, by environment.
    hits: Vec<Hit>,
    /// Actions with faults in them `[R][A]`, where some are to be.
    actions: Vec<f32>,
}

impl Faults {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// This step's faults of environments `first..first + len`.
    fn of(&self, first: usize, len: usize) -> &[Hit] {
        let start = self.hits.partition_point(|h| h.env < first);
        let end = self.hits.partition_point(|h| h.env < first + len);
        &self.hits[start..end]
    }

    /// Whether states of worlds are overwritten in this step.
    pub(crate) fn pokes(&self) -> bool {
        let is_state = |h: &Hit| matches!(h.what, What::Qpos(_) | What::Qvel(_));
        self.hits.iter().any(is_state)
    }

    /// Panics if one of these environments is to.
    pub(crate) fn panic(&self, first: usize, len: usize) {
        if let Some(hit) = self.of(first, len).iter().find(|h| h.what == What::Panic) {
            panic!("injected: a panic in environment {}", hit.env);
        }
    }

    /// Writes into the policies' rows of environments `first..first + len`.
    ///
    /// # Safety
    /// `args` has the addresses of a phase, whose block these environments are.
    pub(crate) unsafe fn observe(&self, args: &EnvArgs, task: &Task, first: usize, len: usize) {
        let [width, _] = task.observations.world();
        for hit in self.of(first, len) {
            if let What::Observation(i) = hit.what {
                let rows = args.obs as *mut f32;
                // SAFETY: the caller's promise; the entry is within the environment's row.
                unsafe { rows.wrapping_add(hit.env * width + i).write(hit.value) };
            }
        }
    }

    /// Writes into the rewards of environments `first..first + len`, which break where they
    /// are not finite then.
    ///
    /// # Safety
    /// As [`observe`](Self::observe).
    pub(crate) unsafe fn reward(&self, args: &EnvArgs, task: &Task, first: usize, len: usize) {
        let (gain, bits) = (args.buffers.gain as *mut f32, args.buffers.bits as *mut u32);
        for hit in self.of(first, len) {
            if hit.what != What::Reward {
                continue;
            }
            for agent in 0..task.team.count() {
                let entry = gain.wrapping_add(agent * args.n as usize + hit.env);
                // SAFETY: the caller's promise; the entry is the environment's.
                unsafe { entry.write(hit.value) };
            }
            if !hit.value.is_finite() {
                // SAFETY: as above.
                unsafe { *bits.wrapping_add(hit.env) |= fault::TASK };
            }
        }
    }

    /// The actions with faults in them, if there are any in this step; to be given back.
    pub(crate) fn take_actions(&mut self, actions: &[f32], width: usize) -> Option<Vec<f32>> {
        let is_action = |h: &&Hit| matches!(h.what, What::Action(_));
        if !self.hits.iter().any(|h| is_action(&h)) {
            return None;
        }
        let mut changed = std::mem::take(&mut self.actions);
        changed.copy_from_slice(actions);
        for hit in self.hits.iter().filter(is_action) {
            if let What::Action(k) = hit.what {
                changed[hit.env * width + k] = hit.value;
            }
        }
        Some(changed)
    }

    pub(crate) fn give_back(&mut self, actions: Vec<f32>) {
        self.actions = actions;
    }
}

impl BatchEnv {
    /// Replaces the faults that are injected from now on; none at first.
    ///
    /// # Errors
    /// An index, share or interval that cannot be, named as `fault[I].KEY`; no memory.
    pub fn inject(&mut self, mut list: Vec<Injection>) -> Result<(), EnvError> {
        let n = self.spec.num_envs;
        let (mut most, mut actions) = (0usize, 0);
        for (i, injection) in list.iter_mut().enumerate() {
            self.check_injection(i, injection)?;
            self.find(&mut injection.what);
            most = most.saturating_add(match injection.env {
                Which::One(_) => 1,
                Which::Share(_) => n,
            });
            if matches!(injection.what, What::Action(_)) {
                actions = n * self.task.actions.raw_width();
            }
        }
        let mut hits = Vec::new();
        hits.try_reserve_exact(most).map_err(|_| MemoryError {
            what: "injected faults".into(),
            bytes: most.saturating_mul(std::mem::size_of::<Hit>()),
        })?;
        self.faults = Faults {
            fired: vec![false; list.len()],
            hits,
            actions: zeroed("injected actions", actions)?,
            list,
        };
        Ok(())
    }

    /// From a number among all outputs or entries to its place in an environment's rows.
    fn find(&self, what: &mut What) {
        match what {
            What::Action(k) => *k = self.task.actions.place(*k).unwrap_or(*k),
            What::Observation(k) => *k = self.task.observations.place(*k).unwrap_or(*k),
            _ => {}
        }
    }

    fn check_injection(&self, i: usize, injection: &Injection) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, why: String| Err(ConfigError::new(format!("fault[{i}].{key}"), why));
        if let When::At(0) | When::Every(0) = injection.when {
            return refuse("when", "control steps are counted from 1".into());
        }
        if let Which::Share(p) = injection.env
            && !(0.0..=1.0).contains(&p)
        {
            return refuse("env", format!("a share of {p} is not within 0..1"));
        }
        let (index, len, of) = match injection.what {
            What::Qpos(k) => (k, self.model.nq, "positions"),
            What::Qvel(k) => (k, self.model.nv, "velocities"),
            What::Action(k) => (k, self.task.actions.outputs(), "actions"),
            What::Observation(k) => (k, self.task.observations.entries(), "observations"),
            What::Reward | What::Panic => (0, 1, ""),
        };
        if index >= len {
            return refuse("what", format!("there is no {index} among {len} {of}"));
        }
        let state = matches!(injection.what, What::Qpos(_) | What::Qvel(_));
        if state && !self.physics.can_be_poked() {
            return refuse("what", "this engine's states cannot be overwritten".into());
        }
        Ok(())
    }

    /// Draws this step's faults.
    #[cold]
    pub(super) fn draw_faults(&mut self) {
        let faults = &mut self.faults;
        faults.hits.clear();
        // The reset that began the run counts on the clock, too.
        let step = self.live.clock.saturating_sub(1);
        for (i, injection) in faults.list.iter().enumerate() {
            let due = match injection.when {
                When::At(at) => step == at && !std::mem::replace(&mut faults.fired[i], true),
                When::Every(k) => step.is_multiple_of(k),
            };
            if !due {
                continue;
            }
            let (what, value) = (injection.what, injection.value.float());
            let mut hit = |env| faults.hits.push(Hit { env, what, value });
            match injection.env {
                Which::One(id) => {
                    let env = id.wrapping_sub(self.first_env) as usize;
                    if env < self.spec.num_envs {
                        hit(env);
                    }
                }
                Which::Share(p) => {
                    for env in 0..self.spec.num_envs {
                        let stream = self.first_env.wrapping_add(env as u32);
                        let word = philox(self.seed, stream, Purpose::Injection, step, i as u32)[0];
                        if f64::from(unit(word)) < p {
                            hit(env);
                        }
                    }
                }
            }
        }
        faults.hits.sort_by_key(|h| h.env);
    }

    /// Writes this step's faults into the worlds.
    pub(super) fn poke(&mut self) {
        for hit in &self.faults.hits {
            let part = match hit.what {
                What::Qpos(k) => Part::Qpos(k),
                What::Qvel(k) => Part::Qvel(k),
                _ => continue,
            };
            self.physics.poke(hit.env, part, hit.value);
        }
    }
}
