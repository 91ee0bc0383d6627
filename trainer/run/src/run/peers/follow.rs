//! What a process other than 0 does: orders, until the end.

use super::lead::{is_cut_short, magnitude, version};
use super::{ANSWERS, Answer, Done, ORDERS, Order, written};
use crate::run::engine::{demonstrations, kernel, one_env, reflection};
use crate::run::error::{FAILED, LOST, OK, RunError};
use crate::run::find;
use crate::run::parts::Parts;
use crate::run::setup::{Options, differing, plan};
use crate::run::signals;
use crate::run::store::dir::CONFIG;
use crate::run::store::hash::hash;
use ostler_collector::peers::Group;
use ostler_collector::replay::ReplayBuffer;
use ostler_collector::transfer::host_number;
use ostler_collector::{CollectError, Rollout, Snapshot};
use ostler_learn::config::curriculum::with_files_of;
use ostler_learn::config::{Config, Gpus, Loaded};
use ostler_learn::drill::{Phase, RunDrill};
use ostler_learn::learner::{LearnError, Learner};
use ostler_sim::Model;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvSpec;
use ostler_sim::snapshot;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use toml::Value;

/// Keys in which the processes may differ: what a run decides on its way, and what a machine has.
const MAY_DIFFER: [&str; 10] = [
    "back_off.",
    "env.num_envs",
    "gymnasium.workers",
    "learner.threads",
    "log.",
    "replay.storage",
    "runner.eval",
    "sim.kernel",
    "sim.specialize",
    "sim.threads",
];

/// Does what process 0 orders; returns the exit code.
pub fn follow(options: &Options, group: &Group) -> i32 {
    let stop = match signals::noted() {
        Ok(stop) => stop,
        Err(e) => {
            eprintln!("error: process {}: cannot watch for signals: {e}", group.rank());
            return FAILED;
        }
    };
    let mut follower = Follower {
        group: group.clone(),
        options,
        stop,
        parts: None,
        start: Snapshot::in_place(),
        replay: Vec::new(),
        loaded: None,
        drill: RunDrill::default(),
        iteration: 0,
    };
    loop {
        match follower.step() {
            Ok(true) => {}
            Ok(false) => return OK,
            Err(e) => {
                let rank = group.rank();
                eprintln!("error: process {rank} ends: {e}");
                return LOST;
            }
        }
    }
}

struct Follower<'a> {
    group: Group,
    options: &'a Options,
    /// A signal asked this process to end.
    stop: Arc<AtomicBool>,
    parts: Option<Parts>,
    start: Snapshot,
    /// The replay buffer while nothing is built.
    replay: Vec<Option<Box<ReplayBuffer>>>,
    /// The configuration and the robot as this process reads them.
    loaded: Option<(Loaded, Arc<Model>)>,
    /// Faults on order for this process, and iterations since its start.
    drill: RunDrill,
    iteration: u64,
}

impl Follower<'_> {
    /// One order; whether another follows.
    fn step(&mut self) -> Result<bool, RunError> {
        let text = self.group.told()?;
        let (order, _) = snapshot::read::<Order>(ORDERS, &text).map_err(CollectError::from)?;
        let mut done = Done::default();
        let group = self.group.clone();
        let works = matches!(order, Order::Collect | Order::Update | Order::WarmUp);
        let (result, seconds) = match order {
            Order::End => return Ok(false),
            // What fails in the midst of it leaves the others waiting: it ends this process.
            Order::Share => (Ok(self.share()?), 0.0),
            order => group.timed(|| {
                let phase = self.begin(&order);
                let result = match order {
                    Order::Update => self.update().map(|number| done.number = number),
                    Order::WarmUp => self.warm_up(),
                    order => self.obey(order, &mut done),
                };
                match phase {
                    Some(phase) => self.drill.leave(phase, result),
                    None => result,
                }
            }),
        };
        done.seconds = if works { seconds } else { 0.0 };
        done.stop = self.stop.load(Relaxed);
        let answer = match result {
            Ok(()) => Answer::Done(done),
            Err(RunError::Learn(e)) if is_cut_short(&e) => Answer::CutShort,
            Err(e) => match e.out_of_memory() {
                Some(memory) => Answer::Memory { what: memory.what, bytes: memory.bytes },
                None if e.process_is_lost() => return Err(e),
                None => Answer::Failed(e.to_string()),
            },
        };
        self.group.send(&written(ANSWERS, &answer)?, 0)?;
        Ok(true)
    }

    /// The phase of the run that an order belongs to begins, with the faults that are on order
    /// for it.
    fn begin(&mut self, order: &Order) -> Option<Phase> {
        self.iteration += u64::from(matches!(order, Order::Collect));
        let phase = match order {
            Order::WarmUp => {
                // What was collected for it is no iteration.
                self.iteration = 0;
                return None;
            }
            Order::Collect => Phase::Collect,
            Order::Update => Phase::Update,
            Order::State { .. } | Order::SaveReplay => Phase::Save,
            _ => return None,
        };
        self.drill.enter(phase, self.iteration);
        Some(phase)
    }

    /// Orders without messages of their own.
    fn obey(&mut self, order: Order, done: &mut Done) -> Result<(), RunError> {
        match order {
            Order::Build { config, robot, version } => {
                return self.build(&config, &robot, &version);
            }
            Order::Drop => {
                if let Some(mut parts) = self.parts.take() {
                    self.replay = parts.take_buffers();
                }
                return Ok(());
            }
            _ => {}
        }
        let Some(Parts { collector, learner, machine, .. }) = &mut self.parts else {
            return Err(nothing_built());
        };
        match order {
            Order::Collect => {
                collector.collect(learner.policy_mut())?;
                collector.stats().write(&mut done.bytes).map_err(CollectError::from)?;
                let sums = collector.rollout().rewards().map_err(LearnError::from)?;
                for (to, sum) in done.rewards.iter_mut().zip(&sums) {
                    *to = host_number(sum).map_err(LearnError::from)?;
                }
            }
            Order::Capture { learner: false } => collector.capture(&mut self.start)?,
            Order::Capture { learner: true } => learner.capture()?,
            Order::Restore { learner: false } => collector.restore(&self.start)?,
            Order::Restore { learner: true } => learner.restore()?,
            Order::State { remembered: true } => done.bytes = self.start.bytes().to_vec(),
            Order::State { remembered: false } => {
                let mut now = Snapshot::default();
                collector.capture(&mut now)?;
                done.bytes = now.into_bytes();
            }
            Order::Place { whole, spread } => {
                let taken = collector.restore_range(&Snapshot::from(whole), spread)?;
                done.number = taken as u64;
            }
            Order::Task { task } => {
                let task: TaskConfig =
                    toml::from_str(&task).map_err(|e| CollectError::Blob(e.to_string()))?;
                let own = self.loaded.as_ref().map(|(l, _)| &l.config.task);
                let task = own.map_or(task.clone(), |own| with_files_of(task, own));
                collector.set_task(&task).map_err(RunError::Env)?;
            }
            Order::ForgetAhead => collector.forget_ahead()?,
            Order::Open { folder, again } => {
                let own = folder.join(format!("process-{}", self.group.rank()));
                if !again {
                    // What a run left that starts anew.
                    let _ = std::fs::remove_dir_all(&own);
                }
                std::fs::create_dir_all(&own).map_err(RunError::file("create", &own))?;
                if let Some(memory) = learner.memory() {
                    memory.open(&own, again, machine.free.as_ref())?;
                }
            }
            Order::SaveReplay => {
                let buffer = learner.replay_buffer().ok_or(LearnError::NoMemory)?;
                let mut saved = vec![buffer.save().map_err(LearnError::from)?];
                if let Some(memory) = learner.memory() {
                    saved.extend(memory.save_others()?);
                }
                done.bytes = written(ANSWERS, &saved)?;
            }
            Order::RestoreReplay { saved } => {
                let buffer = learner.replay_buffer().ok_or(LearnError::NoMemory)?;
                if let Some([first, others @ ..]) =
                    saved.get(self.group.rank() - 1).map(Vec::as_slice)
                {
                    let mut exact = buffer.restore(first).map_err(LearnError::from)?.exact();
                    if let Some(memory) = learner.memory() {
                        exact &= memory.restore_others(others)?;
                    }
                    if !exact {
                        done.bytes.push(1);
                    }
                }
            }
            Order::Progress { done } => learner.set_progress(done)?,
            Order::Restart { factor } => learner.restart(factor)?,
            Order::Build { .. }
            | Order::Drop
            | Order::Update
            | Order::WarmUp
            | Order::Share
            | Order::End => {}
        }
        Ok(())
    }

    /// Learns; the magnitude of the learner's state afterwards.
    fn update(&mut self) -> Result<u64, RunError> {
        let threads = self.loaded.as_ref().map_or(1, |(l, _)| l.config.learner_threads());
        self.summed(|learner, rollout| {
            ostler_machine::torch::with_threads(threads, || learner.update(rollout))?;
            magnitude(learner.state())
        })
    }

    fn warm_up(&mut self) -> Result<(), RunError> {
        self.summed(|learner, rollout| learner.warm_up(rollout))
    }

    /// Work with sums in it. Where it fails here, those who wait for a sum are told, or this
    /// process ends.
    fn summed<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Learner, &Rollout) -> Result<T, LearnError>,
    ) -> Result<T, RunError> {
        let Some(Parts { collector, learner, .. }) = &mut self.parts else {
            return Err(nothing_built());
        };
        let done = work(learner.as_mut(), collector.rollout());
        let done = done.and_then(|done| Ok(self.group.close().map(|()| done)?));
        done.map_err(|e| match is_cut_short(&e) || self.group.cut_short() {
            true => e.into(),
            false => CollectError::Lost(e.to_string()).into(),
        })
    }

    fn share(&mut self) -> Result<(), RunError> {
        if let Some(parts) = &mut self.parts {
            parts.learner.state().share(&self.group)?;
            parts.learner.renew(None)?;
        }
        Ok(())
    }

    /// Builds what process 0 builds, if it is the same here.
    fn build(&mut self, config: &str, robot: &str, theirs: &str) -> Result<(), RunError> {
        if let Some(mut parts) = self.parts.take() {
            self.replay = parts.take_buffers();
        }
        let rank = self.group.rank();
        let own = version();
        if own != theirs {
            return Err(RunError::Usage(format!("it is Ostler {own}, process 0 is {theirs}")));
        }
        let (loaded, model) = match &mut self.loaded {
            Some(read) => read,
            none => none.insert(read(self.options)?),
        };
        let theirs: Config =
            toml::from_str(config).map_err(|e| CollectError::Blob(e.to_string()))?;
        let tree = |c: &Config| Value::try_from(c).unwrap_or(Value::Boolean(false));
        let mut other = differing(&tree(&theirs), &tree(&loaded.config));
        other.retain(|line| !MAY_DIFFER.iter().any(|key| line.starts_with(key)));
        if hash(&model.sources).unwrap_or_default() != robot {
            other.push(format!("the robot in {}", loaded.robot().display()));
        }
        if !other.is_empty() {
            return Err(RunError::Usage(format!(
                "it has another configuration than process 0: {}; start all with the same command and files",
                other.join("; ")
            )));
        }
        let threads = (loaded.config.sim.threads, loaded.config.learner.threads);
        let task = with_files_of(theirs.task.clone(), &loaded.config.task);
        loaded.config = Config { task, ..theirs };
        (loaded.config.sim.threads, loaded.config.learner.threads) = threads;
        let _kernel = kernel::settle(loaded, model, true, None).map_err(|e| {
            RunError::Usage(format!("process {rank} cannot have the kernel of process 0: {e}"))
        })?;
        let mut spec: EnvSpec = match &loaded.foreign {
            Some(foreign) => foreign.facts()?.spec.clone(),
            None => one_env(loaded, model)?.spec().clone(),
        };
        spec.reflection = reflection(loaded, model)?.map(Arc::new);
        spec.demonstrations = demonstrations(loaded, model, &spec)?.map(Arc::new);
        // Who started again after a fault is spared it.
        if self.iteration == 0 && !self.options.restarted {
            let drills = loaded.config.fault.drills().unwrap_or_default();
            self.drill = RunDrill::new(drills, rank, 0);
        }
        let mut own = loaded.clone();
        own.config.replay.part(&format!("process-{rank}"));
        let mut parts = Parts::build(&own, model, &spec)?;
        parts.give_buffers(std::mem::take(&mut self.replay));
        self.parts = Some(parts);
        self.start = Snapshot::in_place();
        Ok(())
    }
}

fn nothing_built() -> RunError {
    RunError::Usage("there is nothing to do it with".into())
}

/// The configuration and the robot as the command line of this process names them.
fn read(options: &Options) -> Result<(Loaded, Arc<Model>), RunError> {
    let own = match (&options.config, &options.resume) {
        (Some(path), _) => path.clone(),
        (None, Some(run)) => find(run)?.0.join(CONFIG),
        (None, None) => return Err(RunError::Usage("which configuration?".into())),
    };
    let (loaded, model, _) = plan(&own, &options.overrides, None, Gpus::HERE)?;
    ostler_machine::torch::init(loaded.config.learner_threads())?;
    Ok((loaded, model))
}
