//! A look at what episodes begin with, before a run learns from it.

use super::results::Results;
use super::{BatchEnv, EpisodeStats};
use crate::task::doubts;
use ostler_base::names::few;

/// Starts that are drawn at the least.
const STARTS: usize = 16;
/// Causes of one line.
const MOST: usize = 4;

/// What [`BatchEnv::rehearse`] met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// What no task wants, a line a kind.
    pub notes: Vec<String>,
    /// Every environment broke in its first step: nothing can be learnt.
    pub hopeless: bool,
}

impl BatchEnv {
    /// Draws some starts, makes one step with outputs of 0 from each, and says in lines what no
    /// task wants: shapes inside each other, joints far beyond their limits, episodes that are
    /// over after that step, numbers that are none, starts that fulfil no `until`. The environments
    /// stand at the last of them then. It takes some steps' time.
    pub fn rehearse(&mut self) -> Rehearsal {
        let natives = &self.task.natives;
        if !natives.is_empty() && !natives.runs() {
            // Described alone, they give no numbers.
            return Rehearsal::default();
        }
        let (nq, n) = (self.model.nq, self.spec.num_envs);
        let actions = vec![0.0; n * self.task.actions.raw_width()];
        let mut results = Results::new(&self.spec);
        let mut starts: Vec<Vec<f32>> = Vec::new();
        let mut ended = vec![0; self.spec.termination_names.len()];
        let (mut over, mut all) = (0, EpisodeStats::default());
        self.take_stats(&mut all);
        while starts.len() < STARTS {
            self.reset(false, &mut results.out().obs);
            let qpos = &self.physics.state().qpos;
            starts.extend((0..n).map(|e| (0..nq).map(|k| qpos[k * n + e]).collect()));
            self.step(&actions, &mut results.out());
            let columns = &self.work.columns;
            let ends = (0..n).filter(|&e| columns.ended[e] != 0).filter_map(|e| self.ended_by(e));
            for end in ends {
                over += 1;
                ended[end] += 1;
            }
        }
        self.take_stats(&mut all);
        let ends = self.spec.termination_names.iter().zip(&ended);
        let ends: Vec<_> = ends.filter(|(_, n)| **n > 0).map(|(name, n)| told(name, *n)).collect();
        let over = (2 * over > starts.len()).then(|| {
            format!(
                "of {} episodes {over} end in their first step, with outputs of 0: {}; \
                 [[task.termination]], or where episodes start, is not what is meant",
                starts.len(),
                few(&ends, MOST)
            )
        });
        let causes = self.causes.names.iter().zip(&all.causes).filter(|(_, n)| **n > 0);
        let causes: Vec<_> = causes.map(|(name, n)| told(name, *n as usize)).collect();
        let broken = (!causes.is_empty()).then(|| {
            format!(
                "of {} episodes {} break in their first step, with outputs of 0: {}; an \
                 environment that breaks teaches nothing and starts anew",
                starts.len(),
                all.broken(),
                few(&causes, MOST)
            )
        });
        let beyond = doubts::starts_beyond(&self.model, &starts);
        let inside = doubts::overlaps(&self.model, &*self.physics, &starts);
        let vain = (all.starts > 0 && all.starts_gave_up == all.starts).then(|| {
            format!(
                "none of {} starts fulfils task.start.until, for it failed in every try: a weaker \
                 condition, wider [[task.reset]] terms or more `tries`",
                all.starts
            )
        });
        let notes = [inside, beyond, vain, over, broken].into_iter().flatten().collect();
        Rehearsal { notes, hopeless: all.broken() as usize >= starts.len() }
    }
}

fn told(name: &str, times: usize) -> String {
    format!("{name} ({times})")
}
