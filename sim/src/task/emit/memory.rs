//! What expressions remember.

use super::{Writer, function};
use crate::task::expr::{Cell, Remembered};

impl Writer<'_> {
    /// `remember`: writes down the state after a step; `begin_memory`: an episode's first.
    pub(super) fn memory(&mut self) {
        let memory = &self.task.memory;
        self.line(format_args!(
            "  static OSTLER_FN void begin_memory(const EnvArgs& a, int e) {{\n    \
             const long n = a.n;\n    (void)n, (void)e;"
        ));
        for row in memory.times() {
            self.line(format_args!("    a.history[{row} * n + e] = -step_dt;"));
        }
        for (i, cell) in memory.cells().iter().enumerate() {
            if cell.kind() == Remembered::Previous {
                // A cell comes after those whose values it reads.
                self.values(i, cell);
                self.write(i, cell);
            }
        }
        self.line(format_args!(
            "  }}\n  static OSTLER_FN void remember(const EnvArgs& a, int e) {{\n    \
             const long n = a.n;\n    (void)n, (void)e;"
        ));
        for (i, cell) in memory.cells().iter().enumerate() {
            self.values(i, cell);
            if cell.kind() == Remembered::Since {
                let first = cell.rows().start;
                self.line(format_args!(
                    "    for (int k = 0; k < {}; k++) v{i}[k] = v{i}[k] == 0.0f ? a.history[({first} + k) * n + e] + step_dt : 0.0f;",
                    cell.rows().len()
                ));
            }
        }
        for (i, cell) in memory.cells().iter().enumerate() {
            self.write(i, cell);
        }
        self.line(format_args!("  }}"));
    }

    fn values(&mut self, i: usize, cell: &Cell) {
        let name = function("kept", i);
        let len = cell.rows().len();
        self.line(format_args!(
            "    float v{i}[{len}];\n    {name}(a, e, v{i});"
        ));
    }

    fn write(&mut self, i: usize, cell: &Cell) {
        let rows = cell.rows();
        self.line(format_args!(
            "    for (int k = 0; k < {}; k++) a.history[({} + k) * n + e] = v{i}[k];",
            rows.len(),
            rows.start
        ));
    }
}
