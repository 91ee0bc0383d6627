//! Which entries of the mass matrix and of the solver's Hessian can be other than zero.

use super::tree::Tree;
use crate::model::Model;
use crate::model::simple::is_simple;
use crate::physics::native::tables::Plan;

/// A symmetric pattern: row i holds the columns j < i, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    rows: Vec<Vec<usize>>,
}

impl Pattern {
    /// The mass matrix: each degree of freedom couples with those that move it.
    pub fn of_tree(tree: &Tree) -> Self {
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
            rows: rows
                .map(|(i, row)| if alone(i) { Vec::new() } else { row.clone() })
                .collect(),
        }
    }

    /// Couples all of `dofs` with each other.
    pub fn couple(&mut self, dofs: &[usize]) {
        for &i in dofs {
            for &j in dofs {
                if j < i {
                    insert(&mut self.rows[i], j);
                }
            }
        }
    }

    /// Adds what the factorisation `L^T D L` fills in, which eliminates from the
    /// last row to the first: eliminating row i couples all pairs of its columns.
    pub fn fill_in(&mut self) {
        for i in (0..self.rows.len()).rev() {
            let row = self.rows[i].clone();
            self.couple(&row);
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

/// Keeps `row` sorted and without repetition.
fn insert(row: &mut Vec<usize>, j: usize) {
    if let Err(at) = row.binary_search(&j) {
        row.insert(at, j);
    }
}

/// Writes both patterns; `plan`'s general rows are complete.
pub(super) fn write(model: &Model, tree: &Tree, plan: &mut Plan) {
    let mut hessian = Pattern::of_tree(tree);
    let mass =
        hessian.diagonal_where(|dof| is_simple(model, model.joints[tree.dof_joint[dof]].body));
    for row in plan.row_adr.windows(2) {
        let dofs: Vec<usize> = plan.row_dof[row[0] as usize..row[1] as usize]
            .iter()
            .map(|d| *d as usize)
            .collect();
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

    #[test]
    fn elimination_from_the_last_row_fills_in_between_the_columns_of_each_row() {
        // An arrow whose tip is the last row fills everything above it.
        let mut p = Pattern {
            rows: vec![vec![], vec![], vec![], vec![0, 1, 2]],
        };
        p.fill_in();
        assert_eq!(p.rows, [vec![], vec![0], vec![0, 1], vec![0, 1, 2]]);
        // One whose tip is the first row fills nothing.
        let arrow = Pattern {
            rows: vec![vec![], vec![0], vec![0], vec![0]],
        };
        let mut q = arrow.clone();
        q.fill_in();
        assert_eq!(q, arrow);
        // Coupling across branches fills in towards the common root.
        q.couple(&[1, 3]);
        q.fill_in();
        assert_eq!(q.rows, [vec![], vec![0], vec![0], vec![0, 1]]);
    }
}
