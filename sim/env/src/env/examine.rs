//! Looks at environments that broke: which number came first. Nothing here runs for an
//! environment that is well.

use super::causes::{CausePlace, Kind};
use super::stats::DESCRIBED;
use super::{BatchEnv, Break};
use ostler_engine::physics::fault;

/// Broken environments that are looked at between two calls of [`BatchEnv::take_stats`]: many at
/// once have one cause.
const EXAMINED: u64 = crate::task::emit::BREAKS as u64;

impl BatchEnv {
    /// Counts the cause of every environment in `work.broken`. Their state is still that
    /// in which they broke.
    #[cold]
    pub(super) fn examine(&mut self, actions: &[f32]) {
        let before: u64 = self.live.stats.causes.iter().sum();
        for i in 0..self.work.broken.len() {
            let env = self.work.broken[i] as usize;
            let (place, kind, value) = if before + (i as u64) < EXAMINED {
                self.first_cause(env, actions)
            } else {
                (CausePlace::Unexamined, Kind::Nan, f32::NAN)
            };
            let cause = self.causes.index(place, kind);
            let live = &mut self.live;
            live.stats.causes[cause] += 1;
            if live.stats.breaks.len() < DESCRIBED {
                live.stats.breaks.push(Break {
                    env: self.first_env.wrapping_add(env as u32),
                    clock: live.clock,
                    step: live.clock.saturating_sub(live.began + 1) as u32,
                    age: live.episodes.length[env],
                    cause: cause as u32,
                    value,
                });
            }
        }
    }

    /// The first that was wrong, in the order of a step: action, physics, native function, reward,
    /// observation.
    pub(super) fn first_cause(&mut self, env: usize, actions: &[f32]) -> (CausePlace, Kind, f32) {
        let width = self.task.actions.raw_width();
        let row = &actions[env * width..(env + 1) * width];
        if let Some((k, x)) = self.task.actions.first_bad(row) {
            return (CausePlace::Action(k), Kind::of(x), x);
        }
        let nothing = (CausePlace::Unknown, Kind::Nan, f32::NAN);
        if self.live.episodes.stuck[env] != 0 {
            let start = (CausePlace::Start, Kind::Nan, f32::NAN);
            let found = self.bad_native(env).or_else(|| self.bad_observation(env));
            return found.unwrap_or(start);
        }
        if self.physics.state().fault[env] != 0 {
            let found = self
                .physics
                .diagnose(env, &self.work.columns.ctrl, self.decimation)
                .map(|e| (CausePlace::Physics(e.part), Kind::of(e.value), e.value));
            return found.unwrap_or(nothing);
        }
        if self.work.columns.bits[env] & fault::ENGINE != 0 {
            return (CausePlace::Engine, Kind::Nan, f32::NAN);
        }
        self.bad_native(env)
            .or_else(|| self.bad_reward(env))
            .or_else(|| self.bad_observation(env))
            .unwrap_or(nothing)
    }

    /// The native function whose output, or whose memory, is not finite.
    fn bad_native(&self, env: usize) -> Option<(CausePlace, Kind, f32)> {
        let (n, natives) = (self.spec.num_envs, &self.task.natives);
        let columns = &self.live.episodes;
        let bad = |column: &[f32], rows: usize| {
            let rows = (0..rows).map(|row| (row, column[row * n + env]));
            rows.into_iter().find(|(_, x)| !x.is_finite())
        };
        let output = bad(&columns.native, natives.outputs())
            .and_then(|(row, x)| Some((natives.of_output(row)?, x)));
        let memory = || {
            let (row, x) = bad(&columns.native_memory, natives.kept())?;
            Some((natives.of_memory(row)?, x))
        };
        let (function, x) = output.or_else(memory)?;
        Some((CausePlace::Native(function), Kind::of(x), x))
    }

    /// The reward term that is not finite, or the largest of a sum beyond the limit.
    fn bad_reward(&mut self, env: usize) -> Option<(CausePlace, Kind, f32)> {
        let mut terms = std::mem::take(&mut self.work.terms);
        self.exchange_states(env);
        let (score, inputs) = (&self.task.score, self.inputs(env));
        let scratch = &self.work.scratch;
        scratch.with(|scratch| score.weighted(&inputs, scratch, &mut terms));
        self.exchange_states(env);
        let found = self.bad_term(env, &terms);
        self.work.terms = terms;
        found
    }

    /// The states of the task from the values after the step to those before it, and back.
    fn exchange_states(&mut self, env: usize) {
        let n = self.spec.num_envs;
        let (now, before) = (&mut self.live.episodes.history, &mut self.work.columns.next_history);
        let cells = self.task.history.cells().iter();
        for row in cells.filter(|c| c.kind().is_state()).flat_map(|c| c.rows()) {
            std::mem::swap(&mut now[row * n + env], &mut before[row * n + env]);
        }
    }

    fn bad_term(&self, env: usize, terms: &[f32]) -> Option<(CausePlace, Kind, f32)> {
        let (n, agents) = (self.spec.num_envs, self.spec.agents_per_env());
        let (live, columns) = (&self.live, &self.work.columns);
        // A command that was drawn anew since may hide the term; its sum has it still.
        let now = terms.iter().copied().enumerate();
        let so_far = (0..terms.len()).map(|k| (k, live.episodes.sums[k * n + env]));
        if let Some((k, x)) = now.chain(so_far).find(|(_, x)| !x.is_finite()) {
            return Some((CausePlace::Reward(k), Kind::of(x), x));
        }
        let given = (0..agents).map(|m| columns.gain[m * n + env]);
        if let Some(x) = given.into_iter().find(|x| !x.is_finite()) {
            return Some((CausePlace::Reward(terms.len()), Kind::of(x), x));
        }
        let score = &self.task.score;
        let agent = (0..agents).find(|&m| score.is_absurd(m, terms))?;
        let own = score.terms_of(agent).map(|k| terms[k]);
        let (at, value) = ostler_engine::physics::evidence::largest(own)?;
        let k = score.terms_of(agent).nth(at)?;
        Some((CausePlace::Reward(k), Kind::Beyond, value))
    }

    /// The observation term that is not finite.
    fn bad_observation(&mut self, env: usize) -> Option<(CausePlace, Kind, f32)> {
        self.look(env);
        let rows = [(&self.work.row.policy, false), (&self.work.row.critic, true)];
        rows.into_iter().find_map(|(row, critic)| {
            let (at, &x) = row.iter().enumerate().find(|(_, x)| !x.is_finite())?;
            let term = self.task.observations.term_at(at, critic)?;
            Some((CausePlace::Observation(term), Kind::of(x), x))
        })
    }
}
