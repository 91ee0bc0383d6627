//! Where a task's numbers stand in the code.

use ostler_lang::expr::literal;

/// The task's numbers, in the order in which they were asked for.
#[derive(Debug, Clone)]
pub struct Numbers {
    baked: bool,
    values: Vec<f32>,
}

impl Numbers {
    /// In the code itself: fastest, and another program for every change.
    pub fn baked() -> Self {
        Self { baked: true, values: Vec::new() }
    }

    /// In a table that is filled anew when they change.
    pub fn table_of() -> Self {
        Self { baked: false, values: Vec::new() }
    }

    /// The text of one number of the task.
    pub(super) fn text(&mut self, value: f32) -> String {
        if self.baked {
            return literal(value);
        }
        self.values.push(value);
        format!("a.number[{}]", self.values.len() - 1)
    }

    /// The table.
    pub(super) fn table(self) -> Vec<f32> {
        self.values
    }
}
