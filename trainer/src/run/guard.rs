//! What goes wrong without an error: said once, and fatal when nothing is learnt.

use super::error::RunError;
use crate::learner::UpdateStats;
use ostler_sim::physics::fault;

/// So many updates in a row without one usable minibatch end the training.
const FRUITLESS: u32 = 10;
/// Share of steps with broken environments that is worth a warning.
const BROKEN: f64 = 0.01;

/// Watches updates and environments.
#[derive(Debug, Default)]
pub struct Watch {
    skips_said: bool,
    broken_said: bool,
    fruitless: u32,
}

impl Watch {
    /// Looks at one iteration: its update, its faults by kind, its number of steps.
    ///
    /// # Errors
    /// No minibatch could be used in ten updates in a row.
    pub fn look(
        &mut self,
        iteration: u64,
        update: &UpdateStats,
        faults: &[u64],
        steps: u64,
    ) -> Result<(), RunError> {
        let broken: u64 = faults.iter().sum();
        let share = broken as f64 / steps.max(1) as f64;
        if share > BROKEN && !self.broken_said {
            self.broken_said = true;
            tracing::warn!(
                "iteration {iteration}: environments broke in {:.1} % of the steps ({}) and were reset; \
                 Guard/broken_envs counts on. A smaller sim.dt, weaker actions or a gentler reset may help",
                100.0 * share,
                kinds(faults)
            );
        }
        let skipped = update.skipped;
        if skipped > 0 && !self.skips_said {
            self.skips_said = true;
            tracing::warn!(
                "iteration {iteration}: {skipped} of {} minibatches were skipped: their losses or \
                 gradients were not finite; Guard/skipped_minibatches counts on",
                update.minibatches
            );
        }
        self.fruitless = match skipped >= update.minibatches {
            true => self.fruitless + 1,
            false => 0,
        };
        if self.fruitless < FRUITLESS {
            return Ok(());
        }
        Err(RunError::NothingLearnt {
            updates: FRUITLESS,
            invalid: update.invalid,
            steps,
        })
    }
}

/// `speed 12, position 3`.
fn kinds(faults: &[u64]) -> String {
    let seen = fault::NAMES.iter().zip(faults).filter(|f| *f.1 > 0);
    seen.map(|(name, n)| format!("{name} {n}"))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_updates_without_a_usable_minibatch_end_the_training() {
        let of = |skipped| UpdateStats {
            skipped,
            minibatches: 4,
            ..UpdateStats::default()
        };
        let mut watch = Watch::default();
        let mut look = |n| watch.look(1, &of(n), &[0, 3], 100);
        for _ in 0..9 {
            look(4).unwrap();
        }
        // One that works starts the count anew.
        look(3).unwrap();
        for _ in 0..9 {
            look(4).unwrap();
        }
        let e = look(4).unwrap_err();
        assert_eq!(e.exit_code(), super::super::error::FAILED);
        assert!(e.to_string().contains("ppo.learning_rate"), "{e}");
        assert_eq!(kinds(&[0, 3, 1]), "speed 3, position 1");
    }
}
