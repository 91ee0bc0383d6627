//! Long functions in pieces, because compilers take more than twice as long for
//! twice as much.

use super::order::Statements;
use super::program::{Function, Program};
use std::collections::HashMap;
use std::ops::Range;

/// A function cut into pieces.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Ranges of the plan's steps, in order.
    pub ranges: Vec<Range<usize>>,
    /// Place in the array between the pieces of each value that a later piece uses.
    pub slots: HashMap<u32, usize>,
    /// Length of that array.
    pub scratch: usize,
}

/// When a node gets its value and when it is last used, in steps.
#[derive(Debug, Clone, Copy)]
struct Life {
    from: usize,
    to: usize,
}

/// Cuts where few values are alive and no mask is, near every `target` steps.
pub(super) fn cut(
    program: &Program,
    function: &Function,
    plan: &Statements,
    target: usize,
) -> Chunks {
    let total = plan.steps.len();
    let lives = lives(program, function, plan);
    let mut ranges = Vec::new();
    if target == 0 || total <= target + target / 2 {
        ranges.push(0..total);
        return Chunks { ranges, slots: HashMap::new(), scratch: 0 };
    }
    let cost = crossing(program, &lives, total);
    let mut start = 0;
    while total - start > target + target / 2 {
        let (low, high) = (start + target - target / 4, start + target + target / 4);
        let best = (low..=high)
            .filter_map(|at| cost[at].map(|c| (c, at)))
            .min()
            .map(|(_, at)| at)
            .or_else(|| (high..total).find(|&at| cost[at].is_some()));
        let Some(at) = best else { break };
        ranges.push(start..at);
        start = at;
    }
    ranges.push(start..total);
    let (slots, scratch) = assign(&lives, &ranges);
    Chunks { ranges, slots, scratch }
}

fn lives(program: &Program, function: &Function, plan: &Statements) -> Vec<(u32, Life)> {
    let mut at_node: HashMap<u32, usize> = HashMap::new();
    let mut lives: Vec<(u32, Life)> = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        for value in step.uses(program, function) {
            if let Some(&life) = at_node.get(&value.node()) {
                lives[life].1.to = at;
            }
        }
        for node in step.defines() {
            at_node.insert(node, lives.len());
            lives.push((node, Life { from: at, to: at }));
        }
    }
    lives
}

/// By step: how many values a cut in front of it crosses; none where a mask is among
/// them.
fn crossing(program: &Program, lives: &[(u32, Life)], total: usize) -> Vec<Option<i32>> {
    let nodes = program.graph.nodes();
    let (mut values, mut masks) = (vec![0_i32; total + 2], vec![0_i32; total + 2]);
    for (node, life) in lives {
        let count = if nodes[*node as usize].is_mask() { &mut masks } else { &mut values };
        count[life.from + 1] += 1;
        count[life.to + 1] -= 1;
    }
    let (mut alive, mut held) = (0, 0);
    (0..=total)
        .map(|at| {
            alive += values[at];
            held += masks[at];
            (held == 0).then_some(alive)
        })
        .collect()
}

fn assign(lives: &[(u32, Life)], ranges: &[Range<usize>]) -> (HashMap<u32, usize>, usize) {
    let piece = |step: usize| ranges.partition_point(|r| r.end <= step);
    let mut slots = HashMap::new();
    // The piece in which each place is last read.
    let mut busy: Vec<usize> = Vec::new();
    for (node, life) in lives {
        let (from, to) = (piece(life.from), piece(life.to));
        if from == to {
            continue;
        }
        let free = busy.iter().position(|&last| last < from);
        let slot = free.unwrap_or_else(|| {
            busy.push(0);
            busy.len() - 1
        });
        busy[slot] = to;
        slots.insert(*node, slot);
    }
    (slots, busy.len())
}

/// The most values between two steps.
pub(super) fn most_alive(program: &Program, function: &Function, plan: &Statements) -> usize {
    let total = plan.steps.len();
    let mut change = vec![0_i64; total + 2];
    for (_, life) in lives(program, function, plan) {
        change[life.from + 1] += 1;
        change[life.to + 1] -= 1;
    }
    let mut alive = 0;
    let most = change.iter().map(|c| {
        alive += c;
        alive
    });
    most.max().unwrap_or(0) as usize
}
