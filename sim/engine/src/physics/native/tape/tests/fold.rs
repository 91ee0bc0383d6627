use super::super::{Counts, Node, Val};
use super::program;

#[test]
fn zeros_and_ones_vanish() {
    let mut graph = super::Graph::new();
    let x = graph.load(0, 0);
    let y = graph.load(0, 1);
    let [zero, one, minus, two] = [0.0, 1.0, -1.0, 2.0].map(|c| graph.number(c));
    assert_eq!(graph.number(-0.0), zero);
    assert_eq!(graph.mul(x, zero), zero);
    assert_eq!(graph.add(x, zero), x);
    assert_eq!(graph.sub(x, zero), x);
    assert_eq!(graph.sub(zero, x), x.flip());
    assert_eq!(graph.mul(one, x), x);
    assert_eq!(graph.mul(x, minus), x.flip());
    assert_eq!(graph.div(x, minus), x.flip());
    assert_eq!(graph.div(zero, two), zero);
    assert_eq!(graph.fma(zero, x, y), y);
    let sum = graph.add(x, y);
    assert_eq!(graph.fma(x, one, y), sum);
    let difference = graph.sub(y, x);
    assert_eq!(graph.fma(minus, x, y), difference);
    let product = graph.mul(x, y);
    assert_eq!(graph.fma(x, y, zero), product);
    let half = graph.number(0.5);
    let halved = graph.mul(x, half);
    assert_eq!(graph.div(x, two), halved);
    let shifted = graph.add(y, one);
    assert_eq!(graph.fma(two, half, y), shifted);
}

#[test]
fn nothing_is_folded_that_would_round_differently() {
    let mut graph = super::Graph::new();
    let x = graph.load(0, 0);
    let [tenth, third] = [0.1, 1.0 / 3.0].map(|c| graph.number(c));
    let fused = graph.fma(tenth, third, x);
    assert!(matches!(graph.node(fused), Node::Fma(..)));
    let zero = graph.number(0.0);
    let difference = graph.sub(x, x);
    assert_ne!(difference, zero);
    let quotient = graph.div(x, tenth);
    assert!(matches!(graph.node(quotient), Node::Div(..)));
    let tiny = graph.number(f64::MIN_POSITIVE);
    let quotient = graph.div(x, tiny);
    assert!(matches!(graph.node(quotient), Node::Div(..)));
    let none = graph.div(zero, zero);
    assert!(graph.constant(none).is_none());
}

#[test]
fn signs_cost_no_node() {
    let mut graph = super::Graph::new();
    let [x, y, z] = [0, 1, 2].map(|i| graph.load(0, i));
    let product = graph.mul(x, y);
    assert_eq!(graph.mul(x.flip(), y), product.flip());
    assert_eq!(graph.mul(y.flip(), x.flip()), product);
    let difference = graph.sub(x, y);
    assert_eq!(graph.sub(y, x), difference.flip());
    assert_eq!(graph.add(x.flip(), y), difference.flip());
    let fused = graph.fma(x, y, z);
    assert_eq!(graph.fma(y.flip(), x, z.flip()), fused.flip());
    let minus = graph.fma(x.flip(), y, z);
    assert_eq!(graph.fma(x, y, z.flip()), minus.flip());
    let below = graph.lt(x, y);
    assert_eq!(graph.lt(y.flip(), x.flip()), below);
    let two = graph.number(2.0);
    let above = graph.lt(two.flip(), x);
    assert_eq!(graph.lt(x.flip(), two), above);
    let chosen = graph.sel(below, x, y);
    assert_eq!(graph.sel(below.flip(), y, x), chosen);
    assert_eq!(graph.sel(below, x.flip(), y.flip()), chosen.flip());
    let nodes = graph.nodes().len();
    let _ = graph.mul(x, y.flip());
    assert_eq!(graph.nodes().len(), nodes);
}

#[test]
fn masks_fold() {
    let mut graph = super::Graph::new();
    let [x, y] = [0, 1].map(|i| graph.load(0, i));
    let (yes, no) = (graph.mask(true), graph.mask(false));
    let m = graph.lt(x, y);
    assert_eq!(yes.flip(), no);
    assert_eq!(graph.lt(x, x), no);
    assert_eq!(graph.and(m, yes), m);
    assert_eq!(graph.and(m, no), no);
    assert_eq!(graph.or(m, yes), yes);
    assert_eq!(graph.or(no, m), m);
    assert_eq!(graph.xor(m, yes), m.flip());
    assert_eq!(graph.xor(m, m), no);
    assert_eq!(graph.and(m, m.flip()), no);
    assert_eq!(graph.or(m, m.flip()), yes);
    assert_eq!(graph.sel(yes, x, y), x);
    assert_eq!(graph.sel(no, x, y), y);
    assert_eq!(graph.sel(m, x, x), x);
    // Not the same where an operand is not a number.
    let n = graph.le(y, x);
    assert_ne!(n, m.flip());
}

#[test]
fn what_no_store_needs_is_not_counted() {
    let program = program(3, |g, x| {
        let unused = g.mul(x[0], x[1]);
        let _ = g.sqrt(unused);
        let a = g.fma(x[0], x[1], x[2]);
        let root = g.sqrt(a);
        vec![g.add(root, x[2]), a.flip()]
    });
    let counts = program.counts(&program.functions[0]);
    let expected = Counts { loads: 3, stores: 2, add: 1, fma: 1, sqrt: 1, ..Counts::default() };
    assert_eq!(counts, expected);
    assert_eq!(counts.flops(), 4);
}

#[test]
fn planar_rotations_leave_little() {
    // A rotation about y in a product of full 3x3 matrices: of 27 products remain
    // the eight of the plane.
    let program = program(4, |g, x| {
        let (zero, one) = (g.number(0.0), g.number(1.0));
        let rotation = |c: Val, s: Val| [c, zero, s, zero, one, zero, s.flip(), zero, c];
        let (a, b) = (rotation(x[0], x[1]), rotation(x[2], x[3]));
        let mut out = Vec::new();
        for i in 0..3 {
            for j in 0..3 {
                let mut sum = zero;
                for k in 0..3 {
                    sum = g.fma(a[3 * i + k], b[3 * k + j], sum);
                }
                out.push(sum);
            }
        }
        out
    });
    let counts = program.counts(&program.functions[0]);
    assert_eq!((counts.mul, counts.fma, counts.add), (4, 4, 0));
}
