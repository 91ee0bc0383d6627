//! Which nodes are better computed negated.
//!
//! Negation costs an instruction where a value is stored, selected or compared, and
//! nothing in sums and fused multiply-adds. A difference, a fused multiply-add or a
//! selection can as well be computed with the other sign.

use super::node::{Node, Val};
use super::program::{Function, Program};

/// By node: whether its negation is computed.
pub(super) fn flips(program: &Program, function: &Function, live: &[bool]) -> Vec<bool> {
    let nodes = program.graph.nodes();
    let is_constant = |v: Val| matches!(nodes[v.node() as usize], Node::Const(_));
    let mut flips = vec![false; nodes.len()];
    // Uses that cost an instruction if negated less those that cost one if not.
    let mut gain = vec![0_i32; nodes.len()];
    let demand = |gain: &mut Vec<i32>, value: Val, flip: bool| {
        gain[value.node() as usize] += if value.negated() ^ flip { 1 } else { -1 };
    };
    for store in &function.stores {
        demand(&mut gain, store.value, false);
    }
    for at in (0..nodes.len()).rev().filter(|&at| live[at]) {
        let node = nodes[at];
        flips[at] = match node {
            Node::Sub(..) | Node::Fma(..) | Node::Fnma(..) => gain[at] > 0,
            Node::Mul(a, b) => (is_constant(a) || is_constant(b)) && gain[at] > 0,
            Node::Sel(_, a, b) => {
                let own: i32 = [a, b]
                    .iter()
                    .filter(|v| !is_constant(**v))
                    .map(|v| if v.negated() { 1 } else { -1 })
                    .sum();
                gain[at] + own > 0 && gain[at] > 0
            }
            _ => false,
        };
        match node {
            Node::Add(..) | Node::Sub(..) | Node::Fma(..) | Node::Fnma(..) | Node::Abs(_) => {}
            Node::Sel(_, a, b) => {
                demand(&mut gain, a, flips[at]);
                demand(&mut gain, b, flips[at]);
            }
            _ if node.is_mask() && !matches!(node, Node::Lt(..) | Node::Le(..)) => {}
            _ => {
                for value in node.operands().iter() {
                    demand(&mut gain, *value, false);
                }
            }
        }
    }
    flips
}
