//! How good the policy is without chance: when it is evaluated, of what environments,
//! with what results.

mod evaluator;
pub mod history;
mod on_device;
mod rows;
pub mod stage;

pub(crate) use evaluator::GoOn;
pub use evaluator::{Evaluates, Evaluation, Evaluator};
pub(crate) use history::History;
pub(crate) use on_device::{DeviceEvaluator, STEPS as DEVICE_STEPS};
pub use rows::Rows;

use super::engine::explained;
use super::error::RunError;
use super::schedules::task_at;
use super::setup::Setup;
use ostler_collector::Policy;
use ostler_learn::config::Config;
use ostler_learn::config::curriculum::Stage;
use ostler_learn::learner::ActorConfig;
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Evaluations within `--max-time`, where iterations are too many to bring as many.
const EVALUATIONS_IN_TIME: u32 = 20;
/// How many times as long as an evaluation took a run with `--max-time` goes on without one.
const APART: f64 = 10.0;

/// The evaluations of a run.
#[derive(Debug)]
pub(crate) struct Evaluations {
    /// None where `runner.eval_interval` is 0.
    evaluator: Option<Box<dyn Evaluates>>,
    /// The curriculum's numbers in its environments; none as the file has them.
    stage: Stage,
    /// Their results.
    pub history: History,
    /// Control steps of the longest episode.
    max_episode_steps: u32,
    /// When the last one of this process was made, or the process began.
    last: Instant,
    /// Time that those of this process took, and the last of them (s).
    seconds: f64,
    took: f64,
    /// That they are worse than training was said.
    worse_said: bool,
    /// The mean return with which `runner.stop_at_return` was reached.
    pub reached: Option<f64>,
    /// The evaluation of the present iteration was cut short: whoever goes on makes it first.
    pub owed: bool,
}

impl Evaluations {
    /// None yet in this process. `max_episode_steps`: control steps of the longest episode.
    pub(crate) fn new(
        evaluator: Option<Box<dyn Evaluates>>,
        history: History,
        max_episode_steps: u32,
    ) -> Self {
        Self {
            evaluator,
            stage: Stage::new(),
            history,
            max_episode_steps,
            last: Instant::now(),
            seconds: 0.0,
            took: 0.0,
            worse_said: false,
            reached: None,
            owed: false,
        }
    }

    /// Whether the policy is evaluated at all.
    pub(crate) fn are_made(&self) -> bool {
        self.evaluator.is_some()
    }

    /// Time that those of this process took (s).
    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Whether the policy is to be evaluated after `iteration`: at every multiple of
    /// `runner.eval_interval` and after the last iteration; and in between, at a distance
    /// that keeps its share of the time small, where the training episodes' mean return
    /// (`settled`, once there are enough) has reached the goal, or where `max_time` has gone
    /// on by a twentieth and by ten times what the last one took.
    pub(crate) fn due(
        &self,
        config: &Config,
        iteration: u64,
        settled: impl FnOnce() -> Option<f64>,
        max_time: Option<Duration>,
    ) -> bool {
        let runner = &config.runner;
        if !self.are_made() {
            return false;
        }
        let interval = runner.eval_interval().max(1);
        if iteration.is_multiple_of(interval) || iteration == runner.max_iterations {
            return true;
        }
        let last = self.history.record().last.map_or(0, |s| s.iteration);
        let apart = config.eval_spacing(self.max_episode_steps);
        let goal = runner.stop_at_return;
        let in_sight = || goal != 0.0 && settled().is_some_and(|r| r >= goal);
        let part = max_time.map(|t| t / EVALUATIONS_IN_TIME);
        let rest = Duration::try_from_secs_f64(APART * self.took).unwrap_or(Duration::MAX);
        let late = part.is_some_and(|part| self.last.elapsed() >= part.max(rest));
        iteration.saturating_sub(last) >= apart && (late || in_sight())
    }

    /// Brings the environments to where the curriculum is: a policy is judged at what it is
    /// trained for. Draws and episodes begin anew with every evaluation.
    ///
    /// # Errors
    /// The task does not take a value.
    pub(crate) fn enter(&mut self, stage: &Stage, setup: &Setup) -> Result<(), RunError> {
        let Some(evaluator) = self.evaluator.as_mut().filter(|_| self.stage != *stage) else {
            return Ok(());
        };
        let mut task = task_at(stage, setup.config());
        task.begin_evenly(false);
        evaluator.set_task(&task).map_err(|e| explained(&setup.loaded, e))?;
        self.stage.clone_from(stage);
        Ok(())
    }

    /// Evaluates the policy over `episodes` episodes; `None` where none are made, or `go_on`
    /// has it cut short, which is noted and changes nothing else.
    ///
    /// # Errors
    /// libtorch refuses, or memory does not suffice.
    pub(crate) fn evaluate(
        &mut self,
        policy: &mut dyn Policy,
        episodes: usize,
        go_on: GoOn<'_>,
    ) -> Result<Option<Evaluation>, RunError> {
        let Some(evaluator) = &mut self.evaluator else {
            return Ok(None);
        };
        let evaluation = evaluator.evaluate(policy, episodes, go_on)?;
        self.owed = evaluation.is_none();
        self.last = Instant::now();
        self.took = evaluation.as_ref().map_or(0.0, |e| e.seconds);
        self.seconds += self.took;
        Ok(evaluation)
    }

    /// What to do where an evaluation's mean return is more than a third below that of the
    /// training episodes, `settled`; once.
    pub(crate) fn worse(
        &mut self,
        config: &Config,
        evaluation: &Evaluation,
        settled: Option<f64>,
    ) -> Option<String> {
        let (trained, judged) = (settled?, evaluation.returns.mean);
        let apart = trained - judged > trained.abs().max(judged.abs()) / 3.0;
        if self.worse_said || !apart {
            return None;
        }
        self.worse_said = true;
        let why: Cow<'static, str> = match config.eval_is_cleaner() {
            true => {
                "evaluations leave out the noise and bias of observations, and the policy may need \
                 them: runner.eval_noise = true keeps them, also for a run that is resumed, and \
                 `ostler eval RUN --noise on` tells"
                    .into()
            }
            false => {
                // What holds the spread up is what can let it go.
                let std = match config.actor.min_std > ActorConfig::default().min_std {
                    true => "actor.min_std",
                    false => "actor.init_std",
                };
                let ppo = config.runner.algorithm.name() == "ppo";
                let entropy =
                    if ppo && config.ppo.entropy_coef > 0.0 { " or ppo.entropy_coef" } else { "" };
                format!(
                    "evaluations take the mean action, and the policy may need its exploration: a \
                     lower {std}{entropy}"
                )
                .into()
            }
        };
        Some(format!(
            "the evaluation's mean return {judged:.4} is more than a third below {trained:.4} of the \
             training episodes; {why}"
        ))
    }

    /// Notes whether `goal` (0: none) is reached: by `evaluation` where evaluations are
    /// made, else by the training episodes' mean return, `settled`.
    pub(crate) fn judge_goal(
        &mut self,
        goal: f64,
        evaluation: Option<&Evaluation>,
        settled: impl FnOnce() -> Option<f64>,
    ) {
        if goal == 0.0 {
            return;
        }
        let value = match self.are_made() {
            true => evaluation.map(|e| e.returns.mean),
            false => settled(),
        };
        if value.is_some_and(|value| value >= goal) {
            self.reached = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Episodes;
    use ostler_sim::config::Spread;

    /// The remedy follows from what an evaluation leaves out.
    #[test]
    fn an_evaluation_that_is_a_third_worse_is_told_once_with_a_remedy() {
        let mut config = Config::default();
        let of = |mean: f64| Evaluation { returns: Episodes::of(&[mean]), ..Evaluation::default() };
        let new = || Evaluations::new(None, History::default(), 100);
        let said = |config: &Config, judged, trained| new().worse(config, &of(judged), trained);
        let exploration = said(&config, 10.0, Some(18.0)).unwrap();
        assert!(
            exploration.contains("10.0000 is more than a third below 18.0000"),
            "{exploration}"
        );
        assert!(exploration.contains("actor.init_std"), "{exploration}");
        for (judged, trained) in [(10.0, None), (13.0, Some(18.0)), (30.0, Some(18.0))] {
            assert_eq!(said(&config, judged, trained), None);
        }
        assert!(said(&config, -15.0, Some(-9.0)).is_some());
        let term = "name = \"s\"\nexpr = \"qpos\"";
        config.task.observation = vec![toml::from_str(term).unwrap()];
        config.task.observation[0].noise = Spread::Size(0.1);
        assert!(said(&config, 10.0, Some(18.0)).unwrap().contains("runner.eval_noise = true"));
        config.runner.eval_noise = true;
        assert!(said(&config, 10.0, Some(18.0)).unwrap().contains("actor.init_std"));
        let mut all = new();
        assert!(all.worse(&config, &of(10.0), Some(18.0)).is_some());
        assert_eq!(all.worse(&config, &of(10.0), Some(18.0)), None);
    }
}
