//! Process 0's collector and learner, which have the others do the same.

use super::{ANSWERS, Answer, Done, ORDERS, Order, written};
use crate::run::error::RunError;
use crate::run::signals;
use crate::run::store::hash::hash;
use ostler_collector::peers::Group;
use ostler_collector::replay::{ReplayBuffer, Saved};
use ostler_collector::snapshot::join as snapshot_of_all;
use ostler_collector::{
    CollectCounts, CollectError, CollectTimes, Collector, Policy, Rollout, Snapshot, WorkerStats,
};
use ostler_learn::config::Config;
use ostler_learn::learner::fault::Faults;
use ostler_learn::learner::{
    LearnError, Learner, NamedTensors, Opened, Remembers, State, TrainedPolicy, UpdateStats,
};
use ostler_machine::memory::FreeMemory;
use ostler_sim::config::{ConfigError, TaskConfig};
use ostler_sim::env::{EnvError, EnvSpec};
use ostler_sim::{EpisodeStats, Model, snapshot};
use std::borrow::Cow;
use std::path::Path;
use tch::Tensor;

/// Tells all others what to do.
pub(super) fn order(group: &Group, order: &Order) -> Result<(), CollectError> {
    group.tell(&written(ORDERS, order)?)
}

/// Waits until all others have done it; what each says, or the first that went wrong.
fn answers(group: &Group) -> Result<Vec<Done>, CollectError> {
    let mut failed = None;
    let mut all = Vec::with_capacity(group.size());
    for rank in 1..group.size() {
        let bytes = match group.receive(rank) {
            Ok(bytes) => bytes,
            Err(e @ CollectError::Lost(_)) => return Err(e),
            // It was taken in, and what the others say is still to come.
            Err(e) => {
                failed.get_or_insert(e);
                continue;
            }
        };
        let (answer, _) = snapshot::read::<Answer>(ANSWERS, &bytes)?;
        match answer.of(rank) {
            Ok(done) => {
                group.count_work(rank, done.seconds);
                if done.stop {
                    signals::pass_on();
                }
                all.push(done);
            }
            // Whoever was cut short does not know why.
            Err(e) if matches!(failed, None | Some(CollectError::CutShort)) => failed = Some(e),
            Err(_) => {}
        }
    }
    failed.map_or(Ok(all), Err)
}

/// Has the others do what `work` does here, and waits for all.
fn all<T, E: From<CollectError>>(
    group: &Group,
    what: &Order,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<(T, Vec<Done>), E> {
    order(group, what)?;
    let own = work();
    let others = answers(group);
    Ok((own?, others?))
}

/// The same for work with sums in it. Where it fails here, those who wait for a sum are told.
fn summed<T>(
    group: &Group,
    what: &Order,
    work: impl FnOnce() -> Result<T, LearnError>,
) -> Result<(T, Vec<Done>), LearnError> {
    order(group, what)?;
    let work = || {
        let done = work()?;
        group.close()?;
        Ok(done)
    };
    match counted(group, work) {
        Ok(done) => Ok((done, answers(group)?)),
        Err(e @ LearnError::Host(CollectError::Lost(_))) => Err(e),
        Err(e) if is_cut_short(&e) => Err(answers(group).err().map_or(e, Into::into)),
        Err(e) if group.cut_short() => {
            // Theirs is that this one failed.
            let _ = answers(group);
            Err(e)
        }
        // Nobody can tell them: all begin again.
        Err(e) => Err(CollectError::Lost(format!("they wait for this one: {e}")).into()),
    }
}

/// This process's own work.
fn counted<T>(group: &Group, work: impl FnOnce() -> T) -> T {
    let (done, seconds) = group.timed(work);
    group.count_work(0, seconds);
    done
}

/// Whether another process has failed in the midst of sums.
pub(super) fn is_cut_short(e: &LearnError) -> bool {
    matches!(e, LearnError::Host(CollectError::CutShort))
}

/// Has the others build their parts of `config`'s environments, beside this process.
///
/// # Errors
/// Another process is gone.
pub(in crate::run) fn tell_to_build(
    group: &Group,
    config: &Config,
    model: &Model,
) -> Result<(), RunError> {
    if group.is_alone() || group.rank() > 0 {
        return Ok(());
    }
    let text = toml::to_string(config).map_err(|e| CollectError::Blob(e.to_string()))?;
    let build = Order::Build {
        config: text,
        robot: hash(&model.sources).unwrap_or_default(),
        version: version(),
    };
    Ok(order(group, &build)?)
}

/// The program's.
pub(super) fn version() -> String {
    format!("{} with libtorch {}", env!("CARGO_PKG_VERSION"), ostler_machine::torch::version())
}

/// Has the others give up what they have, where this process does.
pub(in crate::run) fn tell_to_drop(group: &Group) {
    if !group.is_alone() && group.rank() == 0 {
        let _ = all(group, &Order::Drop, || Ok::<_, CollectError>(()));
    }
}

/// Waits until all others have built.
///
/// # Errors
/// One cannot, with the reason.
pub(in crate::run) fn built(group: &Group) -> Result<(), RunError> {
    match group.is_alone() || group.rank() > 0 {
        true => Ok(()),
        false => Ok(answers(group).map(drop)?),
    }
}

/// This process's environments, and by their processes all others'.
pub(in crate::run) struct LeadCollector {
    own: Box<dyn Collector>,
    group: Group,
    /// Of all environments.
    spec: EnvSpec,
    /// Hidden states of the policy.
    hidden: i64,
    stats: EpisodeStats,
    /// [`Collector::of_others`].
    rewards: [f64; 2],
    /// The last [`capture`](Collector::capture) in place.
    start: Snapshot,
}

impl LeadCollector {
    /// `spec`: of all environments.
    ///
    /// # Errors
    /// There is no memory.
    pub(in crate::run) fn new(
        own: Box<dyn Collector>,
        group: &Group,
        spec: &EnvSpec,
        hidden: i64,
    ) -> Result<Self, CollectError> {
        Ok(Self {
            own,
            group: group.clone(),
            spec: spec.clone(),
            hidden,
            stats: EpisodeStats::with_room(spec)?,
            rewards: [0.0; 2],
            start: Snapshot::in_place(),
        })
    }

    /// Episodes of all environments, of which the others say these.
    fn gather(&mut self, others: &[Done]) -> Result<(), CollectError> {
        let mut bytes = Vec::new();
        self.own.stats().write(&mut bytes)?;
        let n = self.spec.num_envs;
        self.stats.clear();
        let all = std::iter::once(&bytes).chain(others.iter().map(|done| &done.bytes));
        for (rank, bytes) in all.enumerate() {
            self.stats.add_written(bytes, self.group.first(n, rank) as u32, n)?;
        }
        self.stats.as_one();
        Ok(())
    }

    /// The state of all environments, of which `own` are this process's.
    fn joined(&self, own: &[u8], remembered: bool) -> Result<Vec<u8>, CollectError> {
        let ((), others) =
            all(&self.group, &Order::State { remembered }, || Ok::<_, CollectError>(()))?;
        let others = others.iter().map(|done| done.bytes.as_slice());
        let parts: Vec<&[u8]> = std::iter::once(own).chain(others).collect();
        snapshot_of_all(&parts, &self.spec.obs, self.hidden)
    }
}

impl Collector for LeadCollector {
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError> {
        let (own, group) = (&mut self.own, &self.group);
        let collect = || counted(group, || own.collect(policy).map(drop));
        let ((), others) = all(&self.group, &Order::Collect, collect)?;
        self.gather(&others)?;
        self.rewards = [0, 1].map(|k| others.iter().map(|done| done.rewards[k]).sum());
        Ok(self.own.rollout())
    }

    fn rollout(&self) -> &Rollout {
        self.own.rollout()
    }

    fn stats(&self) -> &EpisodeStats {
        &self.stats
    }

    fn times(&self) -> CollectTimes {
        self.own.times()
    }

    fn counts(&self) -> CollectCounts {
        self.own.counts()
    }

    fn worker_stats(&self) -> Option<WorkerStats> {
        self.own.worker_stats()
    }

    fn of_others(&self) -> [f64; 2] {
        self.rewards
    }

    fn forget_ahead(&mut self) -> Result<(), CollectError> {
        let own = &mut self.own;
        all(&self.group, &Order::ForgetAhead, || own.forget_ahead()).map(|_| ())
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        let failed = |e: &dyn std::fmt::Display| {
            EnvError::Config(ConfigError::new("task", format!("in several processes: {e}")))
        };
        let text = toml::to_string(task).map_err(|e| failed(&e))?;
        order(&self.group, &Order::Task { task: text }).map_err(|e| failed(&e))?;
        let done = self.own.set_task(task);
        answers(&self.group).map_err(|e| failed(&e))?;
        done
    }

    fn device_kernel(&self) -> Option<String> {
        self.own.device_kernel()
    }

    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError> {
        let (own, start) = (&mut self.own, &mut self.start);
        if into.stays() {
            let capture = Order::Capture { learner: false };
            all(&self.group, &capture, || own.capture(start))?;
            into.stay();
            return Ok(());
        }
        let mut here = Snapshot::default();
        own.capture(&mut here)?;
        *into = self.joined(here.bytes(), false)?.into();
        Ok(())
    }

    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError> {
        if !from.stayed() {
            return self.restore_range(from, false).map(|_| ());
        }
        let (own, start) = (&mut self.own, &self.start);
        let restore = Order::Restore { learner: false };
        all(&self.group, &restore, || own.restore(start)).map(|_| ())
    }

    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError> {
        let whole = self.bytes(from)?.into_owned();
        let place = Order::Place { whole: whole.clone(), spread };
        let whole = Snapshot::from(whole);
        let (taken, others) = all(&self.group, &place, || self.own.restore_range(&whole, spread))?;
        Ok(taken + others.iter().map(|done| done.number as usize).sum::<usize>())
    }

    fn bytes<'a>(&self, of: &'a Snapshot) -> Result<Cow<'a, [u8]>, CollectError> {
        match of.stayed() {
            false => Ok(Cow::Borrowed(of.bytes())),
            true => self.joined(self.start.bytes(), true).map(Cow::Owned),
        }
    }
}

/// This process's learner, and by their processes all others'.
#[derive(Debug)]
pub(in crate::run) struct LeadLearner {
    own: Box<dyn Learner>,
    group: Group,
}

impl LeadLearner {
    pub(in crate::run) fn new(own: Box<dyn Learner>, group: &Group) -> Self {
        Self { own, group: group.clone() }
    }

    /// All others take the numbers that this process has now.
    fn share(&self) -> Result<(), LearnError> {
        let own = &self.own;
        let share = || Ok::<_, LearnError>(own.state().share(&self.group)?);
        all(&self.group, &Order::Share, share).map(|_| ())
    }
}

impl Learner for LeadLearner {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        let waited = self.group.waited();
        let own = &mut self.own;
        let (mut stats, others) = summed(&self.group, &Order::Update, || own.update(rollout))?;
        stats.waited_s = Some(self.group.waited() - waited);
        let own = magnitude(self.own.state())?;
        // It cannot be; if it is, nobody shall train on for days without knowing.
        if let Some(rank) = others.iter().position(|done| done.number != own) {
            let why = "its weights are no longer those of process 0".into();
            return Err(CollectError::Peer { rank: rank + 1, why }.into());
        }
        Ok(stats)
    }

    fn each(&self) -> &[(String, UpdateStats)] {
        self.own.each()
    }

    fn policy(&self) -> &dyn TrainedPolicy {
        self.own.policy()
    }

    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy {
        self.own.policy_mut()
    }

    fn wants_warm_up(&self) -> bool {
        self.own.wants_warm_up()
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        let own = &mut self.own;
        summed(&self.group, &Order::WarmUp, || own.warm_up(rollout)).map(|_| ())
    }

    fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        let own = &mut self.own;
        all(&self.group, &Order::Progress { done }, || own.set_progress(done)).map(|_| ())
    }

    fn state(&self) -> &State {
        self.own.state()
    }

    fn state_mut(&mut self) -> &mut State {
        self.own.state_mut()
    }

    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError> {
        self.own.renew(loaded)
    }

    fn restart(&mut self, factor: f64) -> Result<(), LearnError> {
        let own = &mut self.own;
        all(&self.group, &Order::Restart { factor }, || own.restart(factor))?;
        self.share()
    }

    fn faults(&mut self) -> &mut Faults {
        self.own.faults()
    }

    fn memory(&mut self) -> Option<&mut dyn Remembers> {
        match self.own.memory() {
            Some(_) => Some(self),
            None => None,
        }
    }

    fn capture(&mut self) -> Result<(), LearnError> {
        let own = &mut self.own;
        all(&self.group, &Order::Capture { learner: true }, || own.capture()).map(|_| ())
    }

    fn restore(&mut self) -> Result<(), LearnError> {
        let own = &mut self.own;
        all(&self.group, &Order::Restore { learner: true }, || own.restore()).map(|_| ())
    }

    fn load_weights(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.own.load_weights(tensors)?;
        self.share()
    }

    fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.own.load(tensors)?;
        self.share()
    }

    fn save(&self) -> Result<NamedTensors, LearnError> {
        self.own.save()
    }
}

impl Remembers for LeadLearner {
    fn open(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError> {
        let open = Order::Open { folder: folder.to_path_buf(), again };
        let own = &mut self.own;
        let here = || match own.memory() {
            Some(memory) => memory.open(folder, again, free),
            None => Ok(None),
        };
        all(&self.group, &open, here).map(|(opened, _)| opened)
    }

    fn buffers(&mut self) -> Vec<&mut Option<Box<ReplayBuffer>>> {
        self.own.memory().map_or_else(Vec::new, Remembers::buffers)
    }

    fn save_others(&mut self) -> Result<Vec<Saved>, LearnError> {
        let own = &mut self.own;
        let here = || own.memory().map_or(Ok(Vec::new()), Remembers::save_others);
        let (mut saved, others) = all(&self.group, &Order::SaveReplay, here)?;
        for done in &others {
            let (of_one, _) =
                snapshot::read::<Vec<Saved>>(ANSWERS, &done.bytes).map_err(CollectError::from)?;
            saved.extend(of_one);
        }
        Ok(saved)
    }

    fn restore_others(&mut self, saved: &[Saved]) -> Result<bool, LearnError> {
        let policies = self.buffers().len();
        if saved.len() + 1 != policies * self.group.size() {
            return Ok(false);
        }
        let (ours, theirs) = saved.split_at(policies - 1);
        let saved = theirs.chunks(policies).map(<[Saved]>::to_vec).collect();
        let own = &mut self.own;
        let here = || own.memory().map_or(Ok(true), |memory| memory.restore_others(ours));
        let (exact, others) = all(&self.group, &Order::RestoreReplay { saved }, here)?;
        Ok(exact && others.iter().all(|done| done.bytes.is_empty()))
    }
}

/// The bits of a state's magnitude.
pub(super) fn magnitude(state: &State) -> Result<u64, LearnError> {
    let sum = state.magnitude()?;
    Ok(ostler_collector::transfer::host_number(&sum)?.to_bits())
}
