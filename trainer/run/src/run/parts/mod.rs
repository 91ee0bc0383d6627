//! The parts of every iteration: environments, policy, learner, collector.
//! All of it is replaced at once when the number of environments changes.

mod fitting;
mod machine;
#[cfg(test)]
mod machine_tests;
mod teacher;

pub(crate) use fitting::{fitting, nowhere, reduce};
pub use machine::Machine;
pub(crate) use machine::release;
pub(crate) use machine::to_evaluate;
pub use teacher::check_teacher;

use super::error::RunError;
use crate::forecast::Need;
use crate::run::engine::one_env;
use crate::run::peers::{LeadCollector, LeadLearner, built, tell_to_build};
use ostler_collector::env::Environments;
use ostler_collector::peers::Group;
use ostler_collector::replay::ReplayBuffer;
use ostler_collector::{CollectError, Collector, Snapshot};
use ostler_learn::config::Loaded;
use ostler_learn::drill::Drill;
use ostler_learn::learner::{self, LearnError, Learner, Opened, Remembers, alone_only};
use ostler_sim::Model;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use ostler_sim::memory::zeroed;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use teacher::teacher;
pub(in crate::run) use teacher::{keep as keep_teacher, pin as pin_teacher};

/// Collector and learner for one number of environments.
pub struct Parts {
    pub collector: Box<dyn Collector>,
    /// A line about the collector's workers, if it has some.
    pub(super) workers: Option<String>,
    pub learner: Box<dyn Learner>,
    pub spec: EnvSpec,
    /// Differences of the physics from MuJoCo's.
    pub physics_notes: Vec<String>,
    /// The way back to the start of the present iteration.
    pub(super) start: IterationStart,
    /// Where they were built.
    pub(super) machine: Machine,
}

/// The collector's state at an iteration's start. The learner's lies beside the learner.
#[derive(Debug)]
pub(crate) struct IterationStart {
    /// Environments and collector.
    pub(super) collector: Snapshot,
    /// Whether there is one.
    pub(super) captured: bool,
    /// Whether the iteration that began there is done: then nothing of it is taken back.
    pub(super) committed: bool,
}

impl Default for IterationStart {
    fn default() -> Self {
        Self { collector: Snapshot::in_place(), captured: false, committed: true }
    }
}

impl Parts {
    /// Builds everything for `env.num_envs` environments; `spec`: of any number.
    ///
    /// # Errors
    /// The task has a mistake, or memory does not suffice.
    pub fn build(loaded: &Loaded, model: &Arc<Model>, spec: &EnvSpec) -> Result<Self, RunError> {
        let machine = Machine::of(&loaded.config)?;
        let group = Group::current();
        if !group.is_alone() {
            in_one_process(loaded)?;
        }
        tell_to_build(&group, &loaded.config, model)?;
        let build = || Self::build_on(&machine, loaded, model, spec);
        let own = ostler_machine::torch::returnable(build);
        let others = built(&group);
        let own = own?;
        others?;
        own.lead(&group)
    }

    /// Of process 0 of several: what it asks of these parts the others do, too.
    fn lead(self, group: &Group) -> Result<Self, RunError> {
        if group.is_alone() || group.rank() > 0 {
            return Ok(self);
        }
        let hidden = self.learner.policy().hidden_width();
        let collector = LeadCollector::new(self.collector, group, &self.spec, hidden)?;
        let learner = LeadLearner::new(self.learner, group);
        Ok(Self { collector: Box::new(collector), learner: Box::new(learner), ..self })
    }

    /// The same on a machine that is not as the configuration has it, for tests.
    pub fn build_on(
        machine: &Machine,
        loaded: &Loaded,
        model: &Arc<Model>,
        spec: &EnvSpec,
    ) -> Result<Self, RunError> {
        let config = &loaded.config;
        if !machine.has_gpu() {
            // The system grants more than there is and later kills whoever touches it; a
            // GPU refuses.
            let mut own = config.clone();
            own.env.num_envs = Group::current().shard(config.env.num_envs).1;
            Need::of(&own, spec).check(machine.free.host())?;
        }
        let mut envs = machine.envs(loaded, model)?;
        let (mut own, physics_notes) = match &envs {
            Some(env) => (env.spec().clone(), env.notes()),
            None => {
                let one = one_env(loaded, model)?;
                let mut spec = one.spec().clone();
                spec.num_envs = config.env.num_envs;
                (spec, one.physics().notes().to_vec())
            }
        };
        own.reflection.clone_from(&spec.reflection);
        own.demonstrations.clone_from(&spec.demonstrations);
        let spec = own;
        let mut learner =
            learner::build(config, &spec, machine.torch).map_err(|e| in_file(loaded, e))?;
        if let Some(teacher) = teacher(loaded, &spec, machine.torch)? {
            learner.set_teacher(teacher).map_err(|e| in_file(loaded, e))?;
        }
        let drills = config.fault.drills().unwrap_or_default();
        if !drills.is_empty() {
            inject(&drills, machine, envs.as_deref_mut(), learner.as_mut())
                .map_err(|e| in_fault(loaded, e))?;
        }
        let (collector, workers) = machine.collector(envs, loaded, model, learner.policy())?;
        // What a checkpoint says it is of, whoever has them.
        let spec = EnvSpec { num_envs: config.env.num_envs, ..spec };
        Ok(Self {
            collector,
            workers,
            learner,
            spec,
            physics_notes,
            start: IterationStart::default(),
            machine: machine.clone(),
        })
    }

    /// Opens what the learner remembers the past in, see [`learner::Remembers::open`].
    ///
    /// # Errors
    /// It does not fit, or the folder cannot be written to.
    pub(super) fn open(&mut self, run: &Path, again: bool) -> Result<Option<Opened>, RunError> {
        match self.learner.memory() {
            Some(memory) => Ok(memory.open(run, again, self.machine.free.as_ref())?),
            None => Ok(None),
        }
    }

    /// What the learner remembers, for a learner of another number of environments: it does not
    /// depend on that.
    pub(super) fn take_buffers(&mut self) -> Vec<Option<Box<ReplayBuffer>>> {
        let memory = self.learner.memory().map_or_else(Vec::new, Remembers::buffers);
        memory.into_iter().map(Option::take).collect()
    }

    /// What was [taken](Self::take_buffers) from the learner before.
    pub(super) fn give_buffers(&mut self, buffers: Vec<Option<Box<ReplayBuffer>>>) {
        let memory = self.learner.memory().map_or_else(Vec::new, Remembers::buffers);
        memory.into_iter().zip(buffers).for_each(|(place, buffer)| *place = buffer);
    }

    /// Captures the state, so that an iteration can be taken back.
    ///
    /// # Errors
    /// Memory does not suffice; nothing has changed.
    pub(super) fn capture(&mut self) -> Result<(), RunError> {
        self.start.captured = false;
        self.collector.capture(&mut self.start.collector)?;
        self.start.captured = true;
        Ok(self.learner.capture()?)
    }

    /// Takes the iteration back.
    ///
    /// # Errors
    /// A defect: what was captured does not fit.
    pub(super) fn restore(&mut self) -> Result<(), RunError> {
        self.collector.restore(&self.start.collector)?;
        Ok(self.learner.restore()?)
    }

    /// The collector's captured state, as a copy.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn start_for_others(&self) -> Result<Snapshot, RunError> {
        let bytes = match self.collector.bytes(&self.start.collector)? {
            Cow::Owned(bytes) => bytes,
            Cow::Borrowed(bytes) => {
                let mut copy = zeroed("a checkpoint", bytes.len()).map_err(CollectError::from)?;
                copy.copy_from_slice(bytes);
                copy
            }
        };
        Ok(bytes.into())
    }

    /// The captured state, for other parts: these are about to go.
    ///
    /// # Errors
    /// Memory does not suffice for a copy of what lies on a device.
    pub(super) fn take_start(&mut self) -> Result<IterationStart, RunError> {
        let mut start = std::mem::take(&mut self.start);
        if start.captured
            && let Cow::Owned(bytes) = self.collector.bytes(&start.collector)?
        {
            start.collector = bytes.into();
        }
        Ok(start)
    }
}

/// Refuses what several processes cannot do together.
fn in_one_process(loaded: &Loaded) -> Result<(), RunError> {
    let config = &loaded.config;
    let refused = alone_only(&[
        (config.gpu().is_some(), "device", "\"cpu\""),
        (config.is_async(), "collector.kind", "\"sync\": each process collects for itself"),
        (config.env.num_envs < Group::current().size(), "env.num_envs", "one for each process"),
    ]);
    refused.map_err(|e| loaded.places.explain(&e).into())
}

/// Gives environments and learner their faults.
fn inject(
    drills: &[Drill],
    machine: &Machine,
    envs: Option<&mut (dyn Environments + 'static)>,
    learner: &mut dyn Learner,
) -> Result<(), String> {
    let (mut of_env, mut of_update) = (Vec::new(), Vec::new());
    for drill in drills {
        match drill {
            Drill::Env(fault) => of_env.push(fault.clone()),
            Drill::Update(fault) => of_update.push(fault.clone()),
            Drill::Run(_) => {}
        }
    }
    machine.inject(envs, of_env)?;
    learner.inject(of_update).map_err(|e| e.to_string())
}

fn in_fault(loaded: &Loaded, why: String) -> RunError {
    loaded.places.explain(&ConfigError::new("fault.inject", why)).into()
}

/// Shows a learner's complaint about a key in its file.
fn in_file(loaded: &Loaded, e: LearnError) -> RunError {
    match e {
        LearnError::Config(e) => loaded.places.explain(&e).into(),
        e => e.into(),
    }
}
