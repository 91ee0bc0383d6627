//! A recurrent policy's hidden states where nothing is stored: evaluation, watching.

pub use crate::buffers::ended;
use crate::buffers::forget;
use crate::memory::{HostRows, host_zeros};
use crate::policy::Hidden;
use crate::{CollectError, Policy};
use tch::{Kind, Tensor};

/// Hidden states of a policy in a number of environments, on the host.
#[derive(Debug)]
pub struct HiddenStates {
    tensors: [Tensor; 2],
    rows: [HostRows<f32>; 2],
    /// Which of the two is the present state.
    now: usize,
}

impl HiddenStates {
    /// Zeros, for `rows` rows; none for a policy without.
    ///
    /// # Errors
    /// No memory.
    pub fn of(policy: &dyn Policy, rows: usize) -> Result<Option<Self>, CollectError> {
        let width = policy.hidden_width();
        if width == 0 {
            return Ok(None);
        }
        let zeros = || host_zeros("hidden states", &[1, rows as i64, width], Kind::Float);
        let both = [zeros()?, zeros()?];
        // SAFETY: zeros that only this value has. The policy works on them while it acts, and
        // a slice is borrowed in `advance` alone, which acts on nothing else.
        let [a, b] = both.each_ref().map(|t| unsafe { HostRows::new(t) });
        let [c, d] = both.each_ref().map(|t| t.f_get(0));
        Ok(Some(Self { rows: [a?, b?], tensors: [c?, d?], now: 0 }))
    }

    /// For a step of the policy.
    pub fn step(&self) -> Hidden<'_> {
        Hidden { before: &self.tensors[self.now], after: &self.tensors[1 - self.now] }
    }

    /// After the step: the policy's output becomes the present state, and zero in rows that
    /// `ended` an episode.
    ///
    /// # Errors
    /// The tensors were resized.
    pub fn advance(
        &mut self,
        ended: impl ExactSizeIterator<Item = bool>,
    ) -> Result<(), CollectError> {
        self.now = 1 - self.now;
        forget(self.rows[self.now].row_mut(0)?, ended);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Act;
    use crate::policy::Noise;
    use tch::TchError;

    struct Remembering;

    impl Policy for Remembering {
        fn dist_width(&self) -> i64 {
            1
        }
        fn hidden_width(&self) -> i64 {
            2
        }
        fn noise(&self) -> (i64, Noise) {
            (1, Noise::Normal)
        }
        fn act(&mut self, _: &Tensor, _: &Tensor, _: &Act<'_>) -> Result<(), TchError> {
            Ok(())
        }
        fn act_mean(
            &mut self,
            _: &Tensor,
            _: Option<Hidden<'_>>,
            _: &Tensor,
        ) -> Result<(), TchError> {
            Ok(())
        }
    }

    #[test]
    fn states_go_on_but_for_rows_that_ended() {
        let mut states = HiddenStates::of(&Remembering, 3).unwrap().unwrap();
        for (step, ended) in [[false; 3], [false, true, false], [false; 3]].into_iter().enumerate()
        {
            let Hidden { before, after } = states.step();
            after.shallow_clone().copy_(&(before + 1.0));
            states.advance(ended.into_iter()).unwrap();
            let now = states.step().before.copy();
            let expected = [[1.0; 3], [2.0, 0.0, 2.0], [3.0, 1.0, 3.0]][step];
            for (row, expected) in expected.into_iter().enumerate() {
                let row = Vec::<f64>::try_from(now.get(row as i64)).unwrap();
                assert_eq!(row, [expected; 2], "{step}");
            }
        }
    }
}
