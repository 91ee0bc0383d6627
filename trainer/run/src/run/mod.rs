//! A run: the loop, and everything that keeps it alive.
//!
//! Reading order: [`Run::learn`] (the loop, and one iteration, which counts whole or not at
//! all) -> `start` (how a run is built, fresh or from a checkpoint).
//!
//! | part | owns |
//! |---|---|
//! | `setup` | the configuration in force, the robot, the task's sizes |
//! | `parts` | collector and learner, on the devices that they compute on |
//! | `schedules` | numbers that follow the run's progress |
//! | `evaluate` | evaluations and their results |
//! | `guards` | whether the policy is believed, memory, signals, faults on order |
//! | `store` | the run's folder and its checkpoints |
//! | `report` | logs, progress line, learning curve; `failure` writes reports of failures |
//!
//! The files beside this one join them: `recover` goes back to good weights, `size` changes
//! the number of environments, `saving` writes checkpoints.

mod counters;
mod engine;
pub mod error;
mod evaluate;
pub mod failure;
mod guards;
mod load;
mod pace;
mod parts;
pub mod peers;
mod recover;
mod report;
mod saving;
mod schedules;
mod setup;
mod signals;
mod size;
mod start;
mod store;

pub use engine::{
    build_env, build_envs, demonstrations, explained, foresee as foresee_kernel, judged_env,
    no_robot, one_env, reflection, settle as settle_kernel, settle_here,
};
pub use error::RunError;
pub use evaluate::Rows;
pub use evaluate::{Evaluates, Evaluation, Evaluator, history, stage};
pub use load::{LoadedRun, load_run};
pub use load::{find, robot};
pub use parts::{Machine, Parts, check_teacher};
pub use schedules::in_vain;
pub(crate) use schedules::try_out;
pub use setup::{MAY_CHANGE, Options};
pub use setup::{Next, as_if_resumed, newest_unfinished, physics_doubt, plan};
pub use signals::forwarded_from;
pub use store::dir::METRICS;
pub use store::{checkpoint, dir, keep};

use crate::supervise::Message;
use counters::Counters;
use dir::RunDir;
use evaluate::Evaluations;
use guards::{Guards, Trouble, causes};
use ostler_learn::config::Config;
use ostler_learn::drill::Phase;
use ostler_learn::learner::UpdateStats;
use ostler_machine::memory::Pressure;
use report::{Done, Report, Standing};
use schedules::Schedules;
use setup::Setup;
use std::path::PathBuf;
use std::time::Instant;
use store::Store;

/// One run.
pub struct Run {
    setup: Setup,
    /// Taken while [`learn`](Self::learn) runs.
    parts: Option<Parts>,
    counters: Counters,
    schedules: Schedules,
    evaluations: Evaluations,
    guards: Guards,
    store: Store,
    report: Report,
}

/// Why a run ended without an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    /// All iterations are done.
    Finished,
    /// The mean return reached `runner.stop_at_return`.
    Reached(f64),
    /// `--max-time` is over.
    TimeUp,
    /// A signal came.
    Interrupted,
    /// The disk that it writes to is nearly full.
    DiskFull(Pressure),
}

impl Ended {
    /// The exit code that says so.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Interrupted => error::INTERRUPTED,
            Self::DiskFull(_) => error::DISK_FULL,
            Self::Finished | Self::Reached(_) | Self::TimeUp => error::OK,
        }
    }
}

impl Run {
    /// Trains until the end, a goal, a time limit or a signal, and saves.
    ///
    /// # Errors
    /// Something that no roll-back and no back-off mends. The last checkpoint is intact.
    pub fn learn(&mut self) -> Result<Ended, RunError> {
        let Some(mut parts) = self.parts.take() else {
            return Err(RunError::Usage("this run has ended already".into()));
        };
        let ended = loop {
            // Whatever is logged meanwhile says in which iteration it was. Of the highest
            // level, so that no filter takes it from the warnings.
            let n = self.counters.iteration + 1;
            let _within = tracing::error_span!("iteration", n).entered();
            parts = self.make_room(parts)?;
            if let Some(ended) = self.ended() {
                break ended;
            }
            match self.iterate(&mut parts) {
                Ok(()) => {}
                Err(e) if e.is_given_up() => {
                    self.give_up(&mut parts)?;
                    if let Some(ended) = self.ended() {
                        break ended;
                    }
                }
                Err(e @ RunError::Moved { .. }) => {
                    self.save(&mut parts)?;
                    return Err(e);
                }
                Err(e) => parts = self.survive(parts, e)?,
            }
        };
        self.finish(parts, ended)?;
        Ok(ended)
    }

    /// One iteration, or the warm-up before the first: whole or not at all.
    ///
    /// # Errors
    /// Out of memory, which fewer environments mend; or something that nothing does.
    fn iterate(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        if self.evaluations.owed {
            self.catch_up(parts)?;
            return Ok(());
        }
        self.begin(parts)?;
        if self.counters.env_steps == 0 && parts.learner.wants_warm_up() {
            return self.warm_up(parts);
        }
        let clock = Instant::now();
        self.collect(parts)?;
        let (update, trouble) = self.update(parts)?;
        self.commit(parts);
        // What follows writes into the run's folder.
        let mut moved = self.still_ours()?;
        let took = clock.elapsed();
        let mut believed = self.judge(parts, trouble.as_ref());
        let evaluated = self.evaluate(parts, trouble.as_ref());
        let evaluation = evaluated.as_ref().ok().and_then(Option::as_ref);
        if let Some(evaluation) = evaluation {
            believed = believed.and(self.judge_evaluation(parts, evaluation));
        }
        self.judge_goal(evaluation);
        // Evaluations take long.
        moved = moved.or(self.still_ours()?);
        // Whatever went wrong since, the iteration was done and is on record.
        let done = Done { update: &update, evaluation, took };
        self.log(parts, &done);
        believed?;
        evaluated?;
        if let Some(moved) = moved {
            return Err(moved);
        }
        self.save_if_due(parts)?;
        // It would delay the first iteration.
        self.store.ask_git(self.setup.config().log.git_diff);
        Ok(())
    }

    /// Whether the folder is still this run's. That it was moved is heeded once the iteration
    /// is logged, which goes into it wherever it is.
    ///
    /// # Errors
    /// It is another one's.
    fn still_ours(&mut self) -> Result<Option<RunError>, RunError> {
        match self.store.still_ours() {
            Ok(()) => Ok(None),
            Err(e @ RunError::Moved { .. }) => Ok(Some(e)),
            Err(e) => Err(e),
        }
    }

    /// Captures the state that the iteration starts from.
    fn begin(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        parts.start.committed = true;
        self.schedules.follow(&self.setup, &mut self.counters, parts)?;
        self.during(Phase::Keep, |_| parts.capture())?;
        parts.start.committed = false;
        Ok(())
    }

    /// Policy and environments fill a rollout.
    fn collect(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        let most = self.config().runner.max_iterations;
        let done = self.schedules.pace.done(self.counters.iteration, most);
        parts.learner.set_progress(done)?;
        self.during(Phase::Collect, |_| {
            parts.collector.collect(parts.learner.policy_mut())?;
            Ok(())
        })
    }

    /// The policy learns from the rollout, if that is believed; what is wrong with either.
    fn update(&mut self, parts: &mut Parts) -> Result<(UpdateStats, Option<Trouble>), RunError> {
        let samples = self.config().samples();
        let stats = parts.collector.stats();
        let health = &mut self.guards.health;
        let causes = || causes(&parts.spec.cause_names, &stats.causes);
        let judged = health.judge_collection(stats.broken(), &stats.faults, samples, causes);
        if judged.is_some() {
            // Nothing is learnt from what a broken policy did.
            return Ok((UpdateStats::none(), judged));
        }
        let threads = self.config().learner_threads();
        let update = self.during(Phase::Update, |_| {
            let update = || parts.learner.update(parts.collector.rollout());
            Ok(ostler_machine::torch::with_threads(threads, update)?)
        })?;
        let trouble = self.guards.health.judge_update(&update);
        Ok((update, trouble))
    }

    /// A fresh normaliser would ruin the first updates: a fresh run with one first
    /// collects a rollout for its statistics alone. Its steps count.
    fn warm_up(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        parts.collector.collect(parts.learner.policy_mut())?;
        parts.learner.warm_up(parts.collector.rollout())?;
        // Collected ahead without what was just learnt about observations.
        parts.collector.forget_ahead()?;
        self.count(parts);
        Ok(())
    }

    /// The iteration is done, and nothing of it is taken back any more.
    fn commit(&mut self, parts: &mut Parts) {
        self.counters.iteration += 1;
        self.count(parts);
    }

    /// Counts the steps and episodes of a rollout.
    fn count(&mut self, parts: &mut Parts) {
        self.counters.env_steps += self.config().samples();
        self.counters.window.add(parts.collector.stats());
        parts.start.committed = true;
    }

    /// Evaluates the policy if that is due and there is no trouble.
    fn evaluate(
        &mut self,
        parts: &mut Parts,
        trouble: Option<&Trouble>,
    ) -> Result<Option<Evaluation>, RunError> {
        let (setup, counters) = (&self.setup, &self.counters);
        let complete = self.schedules.complete(setup.config());
        let settled = || setup.settled_return(counters).filter(|_| complete);
        let (config, max_time) = (setup.config(), setup.max_time);
        let due = |of: &Evaluations| of.due(config, counters.iteration, settled, max_time);
        if trouble.is_some() || !due(&self.evaluations) {
            return Ok(None);
        }
        self.evaluate_now(parts)
    }

    /// The same now. A signal and the time limit cut it short: then it counts as none.
    fn evaluate_now(&mut self, parts: &mut Parts) -> Result<Option<Evaluation>, RunError> {
        let iteration = self.counters.iteration;
        let evaluation = self.during(Phase::Evaluate, |run| {
            let (setup, stop, report) = (&run.setup, &run.guards.stop, &mut run.report);
            let runner = &setup.config().runner;
            let mut go_on = |step, of| {
                report.evaluating((iteration, runner.max_iterations), (step, of));
                !stop.raised() && !setup.time_is_over()
            };
            let episodes = runner.eval_episodes();
            let policy = parts.learner.policy_mut();
            run.evaluations.enter(&run.schedules.stage, setup)?;
            run.evaluations.evaluate(policy, episodes, &mut go_on)
        })?;
        let settled = self.setup.settled_return(&self.counters);
        let worse = |e| self.evaluations.worse(self.setup.config(), e, settled);
        if let Some(line) = evaluation.as_ref().and_then(worse) {
            tracing::warn!("iteration {iteration}: {line}");
        }
        if self.evaluations.owed {
            tracing::info!(
                "the evaluation after iteration {iteration} was cut short and counts as none; a \
                 resume makes it first"
            );
        }
        Ok(evaluation)
    }

    /// Makes the evaluation that was cut short when the checkpoint was written, with all that
    /// would have followed from it.
    fn catch_up(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        let Some(evaluation) = self.evaluate_now(parts)? else {
            return Ok(());
        };
        self.store.outdated();
        let believed = self.judge_evaluation(parts, &evaluation);
        self.judge_goal(Some(&evaluation));
        let iteration = self.counters.iteration;
        let (standing, report) = self.standing_and_report();
        report.log_evaluation(standing, &evaluation);
        let record = &self.report.record;
        self.schedules.note(&self.setup, iteration, record);
        believed?;
        self.save_if_due(parts)
    }

    /// Back to the start of an iteration that takes too long when the end is wanted.
    fn give_up(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        parts.learner.restore()?;
        let iteration = self.counters.iteration + 1;
        tracing::warn!(
            "iteration {iteration} was given up, as it was not done in time: a resume begins with it"
        );
        Ok(())
    }

    /// Whether `runner.stop_at_return` is reached.
    fn judge_goal(&mut self, evaluation: Option<&Evaluation>) {
        if !self.schedules.complete(self.setup.config()) {
            return;
        }
        let settled = || self.setup.settled_return(&self.counters);
        let goal = self.setup.config().runner.stop_at_return;
        self.evaluations.judge_goal(goal, evaluation, settled);
    }

    /// Writes the iteration's numbers to the logs; schedules follow them.
    fn log(&mut self, parts: &Parts, done: &Done<'_>) {
        let (standing, report) = self.standing_and_report();
        report.log(standing, parts, done);
        let evaluated = self.evaluations.are_made();
        let (iteration, record) = (self.counters.iteration, &self.report.record);
        self.schedules.measure(&self.setup, iteration, record, evaluated);
    }

    /// A phase of an iteration, with the faults that are on order for it.
    fn during<T>(
        &mut self,
        phase: Phase,
        work: impl FnOnce(&mut Self) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        // These come when their iteration is counted already.
        let counted = matches!(phase, Phase::Evaluate | Phase::Save);
        let iteration = self.counters.iteration + u64::from(!counted);
        self.guards.drill.enter(phase, iteration);
        let done = work(self);
        self.guards.drill.leave(phase, done)
    }

    fn ended(&self) -> Option<Ended> {
        if self.guards.stop.raised() {
            return Some(Ended::Interrupted);
        }
        if let Some(value) = self.evaluations.reached {
            return Some(Ended::Reached(value));
        }
        let done = self.counters.iteration >= self.config().runner.max_iterations;
        if done && !self.evaluations.owed {
            return Some(Ended::Finished);
        }
        match self.store.disk_full() {
            Some(disk) => Some(Ended::DiskFull(disk)),
            None => self.setup.time_is_over().then_some(Ended::TimeUp),
        }
    }

    /// Saves, and completes the run's folder.
    fn finish(&mut self, mut parts: Parts, ended: Ended) -> Result<(), RunError> {
        while let Err(e) = self.save(&mut parts) {
            match e.out_of_memory() {
                Some(_) => parts = self.survive(parts, e)?,
                None if matches!(e, RunError::Moved { .. }) => {
                    self.save(&mut parts)?;
                    return Err(e);
                }
                None => return Err(self.rescue(&mut parts, e)),
            }
        }
        self.store.finish(self.evaluations.reached);
        // Whatever becomes of the rest, the run is done.
        let code = ended.exit_code();
        self.guards.reporter.say(&Message::Done(code));
        drop(parts);
        ostler_machine::torch::reserve::release();
        // No picture where there is no space.
        let curve = self.config().log.curve && self.store.disk_full().is_none();
        let folder = self.store.dir().path().to_path_buf();
        let (standing, report) = self.standing_and_report();
        report.finish(standing, &folder, curve);
        self.report.sinks.finish();
        Ok(())
    }
}

/// For whoever started it.
impl Run {
    /// Reports an error of [`learn`](Self::learn) in the run's folder, unless its report is
    /// there already or another process goes on.
    pub fn report_error(&mut self, e: &RunError) {
        self.report.leave();
        if e.exit_code() == error::FAILED && !matches!(e, RunError::GaveUp { .. }) {
            self.report_failure(None, "stopped", &e.to_string(), "see log.txt");
        }
    }

    /// The folder.
    pub fn dir(&self) -> &RunDir {
        self.store.dir()
    }

    /// The configuration as it is in force.
    pub fn config(&self) -> &Config {
        self.setup.config()
    }

    /// The newest checkpoint.
    pub fn checkpoint_file(&self) -> PathBuf {
        self.store.file_of(self.counters.iteration)
    }

    /// The learning curve's picture, if one was drawn.
    pub fn curve_file(&self) -> Option<&std::path::Path> {
        self.report.curve()
    }

    /// Iterations done.
    pub fn iteration(&self) -> u64 {
        self.counters.iteration
    }

    /// Environment steps done.
    pub fn env_steps(&self) -> u64 {
        self.counters.env_steps
    }

    /// Time of the run, earlier processes included (s).
    pub fn wall_s(&self) -> f64 {
        self.standing().wall_s()
    }

    /// Mean return and length of the last episodes.
    pub fn means(&self) -> (f64, f64) {
        self.counters.window.means()
    }

    /// What evaluations have brought.
    pub fn evaluated(&self) -> &history::Record {
        self.evaluations.history.record()
    }

    /// Time of this process (s), and the part of it that evaluations took.
    pub fn evaluation_time(&self) -> (f64, f64) {
        (self.setup.spent_s(), self.evaluations.seconds())
    }

    /// Faults that the run survived, in a few words each.
    /// Broken environments and skipped minibatches are those of this process.
    pub fn troubles(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut count = |n: u64, one: &str, more: &str, what: &str| match n {
            0 => {}
            1 => all.push(format!("1 {one}{what}")),
            n => all.push(format!("{n} {more}{what}")),
        };
        let (broken, skipped) = self.report.faults();
        let causes = match self.report.causes(&self.setup) {
            causes if causes.is_empty() => causes,
            causes => format!(" ({causes})"),
        };
        count(
            broken,
            "environment broke and was reset",
            "environments broke and were reset",
            &causes,
        );
        let suspects = self.report.suspects(&self.setup);
        count(skipped, "minibatch skipped", "minibatches skipped", "");
        let roll_backs = self.guards.health.record().roll_backs_in_all;
        count(roll_backs, "roll-back", "roll-backs", "");
        all.extend(suspects);
        let (now, wanted) = (self.setup.num_envs(), self.wanted_envs());
        if now < wanted {
            all.push(format!("{now} instead of {wanted} environments"));
        }
        all.extend(self.evaluations.history.fallen());
        if self.setup.restarted {
            all.push("started again after its process died".into());
        }
        all
    }

    /// Why it ended, or was to end, for want of space on its disk; nothing if it was not.
    pub fn disk_full(&self) -> Option<Pressure> {
        self.store.disk_full()
    }

    /// The newest report of a failure in the run's folder.
    pub fn newest_report(&self) -> Option<PathBuf> {
        failure::newest(self.store.dir().path())
    }

    /// Records that a log did not take.
    pub fn lost_records(&self) -> u64 {
        self.report.sinks.lost()
    }

    /// The parts that logs show, and the logs.
    fn standing_and_report(&mut self) -> (Standing<'_>, &mut Report) {
        let standing = Standing {
            setup: &self.setup,
            counters: &self.counters,
            schedules: &self.schedules,
            evaluations: &self.evaluations,
            guards: &self.guards,
        };
        (standing, &mut self.report)
    }

    /// The parts that logs and reports show.
    fn standing(&self) -> Standing<'_> {
        Standing {
            setup: &self.setup,
            counters: &self.counters,
            schedules: &self.schedules,
            evaluations: &self.evaluations,
            guards: &self.guards,
        }
    }
}
