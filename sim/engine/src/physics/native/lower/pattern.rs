//! Which entries of the mass matrix and of the solver's Hessian can be other than zero.

use super::tree::Tree;
use crate::physics::native::tables::RobotTables;
use ostler_model::Model;
use ostler_model::simple::is_simple;

/// A symmetric pattern: row i holds the columns j < i, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    rows: Vec<Vec<usize>>,
}

impl Pattern {
    /// The mass matrix: each degree of freedom couples with those that move it.
    pub(crate) fn of_tree(tree: &Tree) -> Self {
        let rows = (0..tree.dof_parent.len())
            .map(|i| {
                let mut row = Vec::new();
                let mut above = tree.dof_parent[i];
                while let Some(j) = above {
                    row.push(j);
                    above = tree.dof_parent[j];
                }
                row.reverse();
                row
            })
            .collect();
        Self { rows }
    }

    /// The same with nothing beside the diagonal in some rows.
    fn diagonal_where(&self, alone: impl Fn(usize) -> bool) -> Self {
        let rows = self.rows.iter().enumerate();
        Self {
            rows: rows.map(|(i, row)| if alone(i) { Vec::new() } else { row.clone() }).collect(),
        }
    }

    /// Couples all of `dofs` with each other, once [`fill_in`](Self::fill_in) is done: the
    /// last of them with the others, from where it spreads.
    pub(crate) fn couple(&mut self, dofs: &[usize]) {
        if let Some(last) = dofs.iter().max() {
            let others = dofs.iter().copied().filter(|d| d < last);
            merge(&mut self.rows[*last], others);
        }
    }

    /// Adds the fill-in of the factorisation `L^T D L`, which eliminates from the
    /// last row to the first: eliminating row i couples all pairs of its columns. It
    /// suffices to hand them on to the last of these columns, which is eliminated next
    /// (George, Liu, Computer solution of large sparse positive definite systems, 1981).
    pub(crate) fn fill_in(&mut self) {
        for i in (0..self.rows.len()).rev() {
            let (before, row) = self.rows.split_at_mut(i);
            if let [columns @ .., last] = &row[0][..] {
                merge(&mut before[*last], columns.iter().copied());
            }
        }
    }

    /// Start of each row, and all columns.
    fn flat(&self) -> (Vec<i32>, Vec<i32>) {
        let mut starts = vec![0];
        let mut columns = Vec::new();
        for row in &self.rows {
            columns.extend(row.iter().map(|j| *j as i32));
            starts.push(columns.len() as i32);
        }
        (starts, columns)
    }
}

/// Adds columns before the row's own to it; keeps it sorted and without repetition.
fn merge(row: &mut Vec<usize>, columns: impl Iterator<Item = usize>) {
    row.extend(columns);
    row.sort();
    row.dedup();
}

/// Writes both patterns; `plan`'s general rows are complete.
pub(super) fn write(model: &Model, tree: &Tree, plan: &mut RobotTables) {
    let mut hessian = Pattern::of_tree(tree);
    let mass =
        hessian.diagonal_where(|dof| is_simple(model, model.joints[tree.dof_joint[dof]].body));
    for row in plan.row_adr.windows(2) {
        let dofs: Vec<usize> =
            plan.row_dof[row[0] as usize..row[1] as usize].iter().map(|d| *d as usize).collect();
        hessian.couple(&dofs);
    }
    hessian.fill_in();
    plan.dof_nanc = mass.rows.iter().map(|r| r.len() as i32 + 1).collect();
    (plan.mrow_adr, plan.mrow_col) = mass.flat();
    (plan.hrow_adr, plan.hrow_col) = hessian.flat();
    plan.nhess = plan.nv * (plan.nv + 1) / 2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Eliminating row i couples all pairs of its columns.
    #[test]
    fn handing_columns_on_fills_in_as_elimination_does() {
        let mut seed = 1_u64;
        let mut random = |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            (seed >> 33) as usize % n
        };
        for n in [2, 5, 12, 30] {
            for _ in 0..50 {
                let mut rows: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
                let mut quick = Pattern { rows: vec![Vec::new(); n] };
                for _ in 0..random(n) {
                    let group: Vec<usize> = (0..1 + random(4)).map(|_| random(n)).collect();
                    quick.couple(&group);
                    for &i in &group {
                        rows[i].extend(group.iter().filter(|j| **j < i));
                    }
                }
                for i in (0..n).rev() {
                    let row = rows[i].clone();
                    for &a in &row {
                        rows[a].extend(row.iter().filter(|b| **b < a));
                    }
                }
                quick.fill_in();
                let rows: Vec<Vec<usize>> =
                    rows.into_iter().map(|r| r.into_iter().collect()).collect();
                assert_eq!(quick.rows, rows);
            }
        }
    }

    #[test]
    fn elimination_from_the_last_row_fills_in_between_the_columns_of_each_row() {
        // An arrow whose tip is the last row fills everything above it.
        let mut p = Pattern { rows: vec![vec![], vec![], vec![], vec![0, 1, 2]] };
        p.fill_in();
        assert_eq!(p.rows, [vec![], vec![0], vec![0, 1], vec![0, 1, 2]]);
        // One whose tip is the first row fills nothing.
        let arrow = Pattern { rows: vec![vec![], vec![0], vec![0], vec![0]] };
        let mut q = arrow.clone();
        q.fill_in();
        assert_eq!(q, arrow);
        // Coupling across branches fills in towards the common root.
        q.couple(&[1, 3]);
        q.fill_in();
        assert_eq!(q.rows, [vec![], vec![0], vec![0], vec![0, 1]]);
    }
}
