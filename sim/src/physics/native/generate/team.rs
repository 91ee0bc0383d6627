//! A robot's program for several threads per environment (`sim/kernels/team.cuh`).

use super::limbs::{Limbs, homes};
use crate::physics::native::tables::Plan;
use crate::physics::native::tape::{Printer, Program, Style};
use std::fmt::Write;

/// Threads of one environment on a device, and what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Team {
    /// Threads.
    pub size: usize,
    /// Words of four bytes that an environment's working memory takes: an odd number, so
    /// that the same element of 32 environments lies in 32 banks of the shared memory.
    pub words: usize,
    /// Length of `w.cross`.
    cross: usize,
}

impl Team {
    pub(super) fn defines(&self) -> String {
        format!(
            "#define OSTLER_TEAM {}\n#define OSTLER_TEAM_WORDS {}\n#define OSTLER_CROSS {}\n",
            self.size, self.words, self.cross
        )
    }
}

/// How many threads an environment of this robot can make use of: 4 or 2 where its limbs
/// divide the work, and 1; most first.
pub fn team_sizes(plan: &Plan) -> Vec<usize> {
    let depth = |size| Limbs::divide(plan, size).depth;
    let (alone, two, four) = (depth(1), depth(2), depth(4));
    // An eighth less to do one after the other, or it is not worth the waiting.
    let pays = |team: usize, without: usize| without > 0 && 8 * team <= 7 * without;
    if pays(four, two.min(alone)) {
        vec![4, 1]
    } else if pays(two, alone) {
        vec![2, 1]
    } else {
        vec![1]
    }
}

/// A robot's straight parts, divided.
#[derive(Debug)]
pub(super) struct Division {
    size: usize,
    limbs: Limbs,
    cross: usize,
    /// C++ of the straight parts.
    pub straight: String,
}

impl Division {
    pub fn new(plan: &Plan, program: &Program, style: Style, size: usize) -> Self {
        let limbs = Limbs::divide(plan, size);
        let homes = homes(plan, program, &limbs);
        let home = |array: u32, index: u32| homes[array as usize][index as usize];
        let printer = Printer::new(program, style);
        let (mut straight, mut cross) = (String::new(), 0);
        for function in &program.functions {
            // A body's load is one rank's.
            if function.name.starts_with("load_") {
                straight.push_str(&printer.function(function));
                continue;
            }
            let divided = printer.team_function(function, &home, size);
            straight.push_str(&divided.text);
            cross = cross.max(divided.cross);
        }
        straight.push_str(&printer.init("constants"));
        Self {
            size,
            limbs,
            cross,
            straight,
        }
    }

    /// What the program asks of a device.
    pub fn team(&self, plan: &Plan, program: &Program) -> Team {
        let arrays: usize = program.arrays.iter().map(|a| a.len().max(1)).sum();
        // As OSTLER_WORK_INT has them; the text holds that there is room.
        let lists = [
            2 * plan.nwslot,
            2 * plan.npslot,
            plan.nb,
            plan.npair.div_ceil(32),
            if plan.npslot > 0 { plan.nv + 1 } else { 0 },
            if plan.npslot > 0 { plan.nhess } else { 0 },
        ];
        // Some of them are two arrays, none has no element.
        let lists: usize = lists.iter().map(|n| n + 2).sum();
        const SCALARS: usize = 8;
        Team {
            size: self.size,
            words: (arrays + self.cross + lists + SCALARS) | 1,
            cross: self.cross,
        }
    }

    /// The body of `Straight::loads`: limbs but for their roots, whose loads go to the
    /// trunk; then these and the trunk.
    pub fn loads(&self, plan: &Plan) -> String {
        let mut text = String::new();
        if plan.nwslot == 0 {
            return "    (void)w;\n".into();
        }
        let inner = |b: usize| self.limbs.rank[b].filter(|_| !self.limbs.is_root(plan, b));
        let line = |text: &mut String, b: usize, rank: usize| {
            let _ = writeln!(
                text,
                "    if (team_rank() == {rank} && w.has_load[{b}]) straight::load_{b}(w);"
            );
        };
        for b in (0..plan.nb).rev() {
            if let Some(rank) = inner(b) {
                line(&mut text, b, rank);
            }
        }
        text.push_str("    team_sync();\n");
        for b in (0..plan.nb).rev().filter(|&b| inner(b).is_none()) {
            line(&mut text, b, 0);
        }
        text.push_str("    team_sync();\n");
        text
    }
}

/// The case of contacts that couple branches of the tree, as `super::coupled`.
pub(super) fn coupled(plan: &Plan, program: &Program) -> &'static str {
    if plan.dense == 0 || program.functions.iter().any(|f| f.name == "solve_coupled") {
        return super::coupled(plan, program);
    }
    "  static OSTLER_FN bool coupled(const Robot& m, W& w) { return couples(m, w); }
  static OSTLER_FN void start_coupled(const Robot& m, W& w) {
    if (team_leader()) copy_system(m, w, w.pat_adr, w.pat_col);
    team_sync();
  }
  static OSTLER_FN void solve_coupled(const Robot& m, W& w) {
    if (team_leader()) newton_step(m, w, w.pat_adr, w.pat_col);
    team_sync();
  }
"
}
