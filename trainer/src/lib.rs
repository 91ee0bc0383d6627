//! Learners, runs, checkpoints and logs; the program `ostler`, as one crate.
//!
//! It holds nothing of its own; reading order: `ostler-tools` ([`cli`], the commands) ->
//! `ostler-run` ([`run`], a training and its files) -> `ostler-learn` ([`learner`], [`config`]) ->
//! `ostler-machine` ([`torch`], [`memory`]), and across to the collector and the simulation.

pub use ostler_draw as draw;
pub use ostler_learn::{config, drill, learner};
pub use ostler_machine::{memory, torch};
pub use ostler_run::{export, forecast, log, readers, run, stats, supervise};
pub use ostler_tools::{cli, doctor, regress, report, view};

/// Environments in the place of a robot and a task: Gymnasium's (`[gymnasium]`), and those of a
/// program that uses Ostler as a library (`[custom]`, [`register`](environments::register)).
///
/// Such a program registers its environments and hands over to the command line, so that
/// trainings have every flag, guard and checkpoint of `ostler`:
///
/// ```no_run
/// # use ostler_collector::custom::{CustomEnv, CustomEnvs, Draws, Outcome, Sizes};
/// # use ostler_sim::env::ActionSpace;
/// # #[derive(Default)]
/// # struct Line(f32);
/// # impl CustomEnv for Line {
/// #     fn reset(&mut self, draws: &mut Draws, obs: &mut [f32]) { self.0 = draws.uniform(-1.0, 1.0); obs[0] = self.0; }
/// #     fn step(&mut self, _: &[f32], _: &mut Draws, obs: &mut [f32]) -> Outcome { obs[0] = self.0; Outcome { reward: 0.0, terminated: false } }
/// #     fn save(&self, _: &mut Vec<u8>) {}
/// #     fn load(&mut self, _: &[u8]) -> Result<(), String> { Ok(()) }
/// # }
/// # const SIZES: Sizes = Sizes { obs: 1, action: ActionSpace::Continuous(1), step_dt: 0.1, episode_steps: 50 };
/// ostler_trainer::environments::register("line", |_args, n, seed| {
///     let envs = (0..n).map(|_| Line::default());
///     Ok(Box::new(CustomEnvs::new(SIZES, envs, seed)?))
/// });
/// let code = ostler_trainer::cli::run();
/// ostler_trainer::torch::exit_fast(code);
/// ```
pub mod environments {
    pub use ostler_learn::environments::*;
}
