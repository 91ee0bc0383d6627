//! Observations of reference motions, which a learner compares a policy's with.

/// Observations of reference motions, clip after clip, one row for each control step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Demonstrations {
    /// Rows `[F][width]`, all columns of a row for the critic, or where a task has none of their
    /// own, of a row for the policy: raw, in the units of the observation terms. Columns that no
    /// learner is to compare may hold anything.
    pub rows: Vec<f32>,
    /// Columns of a row.
    pub width: usize,
    /// The row behind the last of every clip, ascending.
    pub clips: Vec<usize>,
}

impl Demonstrations {
    /// Whole rows, `F`.
    pub fn frames(&self) -> usize {
        self.rows.len() / self.width.max(1)
    }

    /// First rows of all stretches of `steps` rows, 1 or more, that lie in one clip.
    pub fn starts(&self, steps: usize) -> Vec<usize> {
        let (mut starts, mut from) = (Vec::new(), 0);
        for &end in &self.clips {
            let end = end.min(self.frames());
            starts.extend(from..(end + 1).saturating_sub(steps.max(1)).max(from));
            from = end.max(from);
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_lie_in_one_clip() {
        let d = Demonstrations { rows: vec![0.0; 14], width: 2, clips: vec![3, 4, 7] };
        assert_eq!(d.frames(), 7);
        assert_eq!(d.starts(1), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(d.starts(2), [0, 1, 4, 5]);
        assert_eq!(d.starts(3), [0, 4]);
        assert!(d.starts(4).is_empty());
        // A clip that says more rows than there are has those that are there.
        let short = Demonstrations { clips: vec![9], ..d };
        assert_eq!(short.starts(6), [0, 1]);
    }
}
