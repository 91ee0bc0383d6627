//! A tape as C++ text.

use super::chunk::{self, Chunks};
use super::hex::literal;
use super::node::{Node, Val};
use super::order::{self, Order, Statements, Step};
use super::program::{Function, Program};
use super::sign;
use std::collections::HashMap;
use std::fmt::Write;

/// How functions are printed. The text uses `R` for the scalar type, `W` for the
/// type of the argument `w` in which the arrays' elements lie, and the functions of
/// `sim/kernels/scalar.cuh`.
#[derive(Debug, Clone)]
pub struct Style {
    /// Order of the statements.
    pub order: Order,
    /// Text before a function's name.
    pub qualifiers: String,
    /// Functions longer than one and a half times this many statements are cut into
    /// pieces; 0 leaves them whole.
    pub piece: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            order: Order::Recorded,
            qualifiers: "static OSTLER_FN_BIG void".to_owned(),
            // The ant's smooth dynamics on eight lanes (g++ 12, AVX2): 480 ns, 505 with
            // 1000, 600 whole; compiled in 5.7 s rather than 8.6. Registers are
            // allocated better within less.
            piece: 300,
        }
    }
}

/// Prints a program's functions. The same program gives the same text.
#[derive(Debug)]
pub struct Printer<'a> {
    program: &'a Program,
    style: Style,
}

impl<'a> Printer<'a> {
    /// A printer for one program.
    pub fn new(program: &'a Program, style: Style) -> Self {
        Self { program, style }
    }

    /// Every function, in order, then [`init`](Self::init) under the name given.
    pub fn all(&self, init: &str) -> String {
        let mut text = String::new();
        for function in &self.program.functions {
            text.push_str(&self.function(function));
        }
        text.push_str(&self.init(init));
        text
    }

    /// The function that writes the constants.
    pub fn init(&self, name: &str) -> String {
        let mut text = format!("{} {name}(W& w) {{\n", self.style.qualifiers);
        for init in &self.program.init {
            let element = self.program.arrays[init.array as usize].element(init.index);
            let _ = writeln!(text, "  {element} = bc<R>({});", literal(init.value));
        }
        if self.program.init.is_empty() {
            text.push_str("  (void)w;\n");
        }
        text.push_str("}\n");
        text
    }

    /// One function, behind its pieces if it is long.
    pub fn function(&self, function: &Function) -> String {
        let plan = order::plan(self.program, function, self.style.order);
        let chunks = chunk::cut(self.program, function, &plan, self.style.piece);
        let mut writer = Writer::new(self.program, function, &plan, &chunks);
        let (qualifiers, name) = (&self.style.qualifiers, &function.name);
        if let [only] = chunks.ranges.as_slice() {
            let _ = writeln!(writer.text, "{qualifiers} {name}(W& w) {{");
            writer.steps(only.clone(), 0);
            writer.text.push_str("  (void)w;\n}\n");
            return writer.text;
        }
        for (piece, range) in chunks.ranges.iter().enumerate() {
            let _ =
                writeln!(writer.text, "{qualifiers} {name}_{piece}(W& w, R* OSTLER_RESTRICT s) {{");
            writer.steps(range.clone(), piece);
            writer.text.push_str("  (void)w;\n  (void)s;\n}\n");
        }
        let _ = writeln!(writer.text, "{qualifiers} {name}(W& w) {{");
        let _ = writeln!(writer.text, "  R s[{}];", chunks.scratch.max(1));
        for piece in 0..chunks.ranges.len() {
            let _ = writeln!(writer.text, "  {name}_{piece}(w, s);");
        }
        writer.text.push_str("}\n");
        writer.text
    }

    /// The most values a function holds at a time between its statements, constants
    /// and unchanged elements not counted.
    pub fn most_alive(&self, function: &Function) -> usize {
        let plan = order::plan(self.program, function, self.style.order);
        chunk::most_alive(self.program, function, &plan)
    }
}

struct Writer<'a> {
    program: &'a Program,
    function: &'a Function,
    plan: &'a Statements,
    chunks: &'a Chunks,
    flips: Vec<bool>,
    /// Number of a node's variable and the piece it was last set in.
    names: HashMap<u32, (usize, usize)>,
    /// Number of the next variable.
    next: usize,
    text: String,
}

impl<'a> Writer<'a> {
    fn new(
        program: &'a Program,
        function: &'a Function,
        plan: &'a Statements,
        chunks: &'a Chunks,
    ) -> Self {
        Self {
            program,
            function,
            plan,
            chunks,
            flips: sign::flips(program, function, &program.live(function)),
            names: HashMap::new(),
            next: 0,
            text: String::new(),
        }
    }

    fn steps(&mut self, range: std::ops::Range<usize>, piece: usize) {
        let steps = &self.plan.steps[range];
        for step in steps {
            self.fetch(step, piece);
            match *step {
                Step::Value(node) => {
                    let expression = self.expression(node);
                    let name = self.define(node, piece);
                    let kind = if self.node(node).is_mask() { "auto" } else { "R" };
                    let _ = writeln!(self.text, "  const {kind} t{name} = {expression};");
                }
                Step::SinCos { of, sin, cos } => {
                    let of = self.value(of);
                    let mut name = |node: Option<u32>, unused: &str| match node {
                        Some(node) => format!("t{}", self.define(node, piece)),
                        None => unused.to_owned(),
                    };
                    let (s, c) = (name(sin, "s_"), name(cos, "c_"));
                    match (sin, cos) {
                        (Some(_), Some(_)) => {
                            let _ = writeln!(self.text, "  R {s}, {c}; sincos_({of}, {s}, {c});");
                        }
                        (Some(_), None) => {
                            let _ =
                                writeln!(self.text, "  R {s}; {{ R c_; sincos_({of}, {s}, c_); }}");
                        }
                        _ => {
                            let _ =
                                writeln!(self.text, "  R {c}; {{ R s_; sincos_({of}, s_, {c}); }}");
                        }
                    }
                }
                Step::Store(at) => {
                    let store = self.function.stores[at];
                    let element = self.program.arrays[store.array as usize].element(store.index);
                    let value = self.value(store.value);
                    let _ = writeln!(self.text, "  {element} = {value};");
                }
            }
            for node in step.defines() {
                let slot = self.chunks.slots.get(&node).copied();
                if let (Some(slot), Some((name, _))) = (slot, self.names.get(&node)) {
                    let _ = writeln!(self.text, "  s[{slot}] = t{name};");
                }
            }
        }
    }

    /// Brings values of earlier pieces into this one.
    fn fetch(&mut self, step: &Step, piece: usize) {
        for value in step.uses(self.program, self.function) {
            let node = value.node();
            match self.names.get(&node) {
                Some(&(name, at)) if at != piece => {
                    let slot = self.chunks.slots.get(&node).copied().unwrap_or_default();
                    let _ = writeln!(self.text, "  const R t{name} = s[{slot}];");
                    self.names.insert(node, (name, piece));
                }
                _ => {}
            }
        }
    }

    fn define(&mut self, node: u32, piece: usize) -> usize {
        let name = self.next;
        self.next += 1;
        self.names.insert(node, (name, piece));
        name
    }

    fn node(&self, node: u32) -> Node {
        self.program.graph.nodes()[node as usize]
    }

    /// Whether the variable (or literal) behind a value has the other sign.
    fn sign(&self, value: Val) -> bool {
        value.negated() ^ self.flips[value.node() as usize]
    }

    /// A value.
    fn value(&self, value: Val) -> String {
        self.signed(value.node(), self.sign(value))
    }

    /// A node's variable or literal, negated or not.
    fn signed(&self, node: u32, negated: bool) -> String {
        let atom = match self.node(node) {
            Node::Const(bits) => {
                let value = f64::from_bits(bits);
                let value = if negated { -value } else { value };
                return format!("bc<R>({})", literal(value));
            }
            Node::Load { array, index } if self.plan.inline[node as usize] => {
                self.program.arrays[array as usize].element(index)
            }
            _ => match self.names.get(&node) {
                Some((name, _)) => format!("t{name}"),
                // Not reached: operands have their statements first.
                None => format!("missing_{node}"),
            },
        };
        let mark = match (negated, self.node(node).is_mask()) {
            (false, _) => "",
            (true, false) => "-",
            (true, true) => "!",
        };
        format!("{mark}{atom}")
    }

    /// Two factors whose product is negated or not: a literal takes the sign.
    fn factors(&self, a: Val, b: Val, negated: bool) -> (String, String) {
        let negated = negated ^ self.sign(a) ^ self.sign(b);
        let second = matches!(self.node(b.node()), Node::Const(_));
        (self.signed(a.node(), negated && !second), self.signed(b.node(), negated && second))
    }

    fn sum(&self, a: Val, b: Val) -> String {
        let plain = |v: Val| self.signed(v.node(), false);
        match (self.sign(a), self.sign(b)) {
            (false, false) => format!("{} + {}", plain(a), plain(b)),
            (false, true) => format!("{} - {}", plain(a), plain(b)),
            (true, false) => format!("{} - {}", plain(b), plain(a)),
            (true, true) => format!("-{} - {}", plain(a), plain(b)),
        }
    }

    /// A product and a sum, rounded once: the processor has an instruction for each
    /// combination of signs, and literals have theirs.
    fn fused(&self, a: Val, b: Val, negated: bool, c: Val) -> String {
        let literal = |v: Val| matches!(self.node(v.node()), Node::Const(_));
        let minus_product = negated ^ self.sign(a) ^ self.sign(b) && !literal(b) && !literal(a);
        let minus_sum = self.sign(c) && !literal(c);
        let (p, q) = self.factors(a, b, negated ^ minus_product);
        let name = match (minus_product, minus_sum) {
            (false, false) => return format!("fma({p}, {q}, {})", self.value(c)),
            (true, false) => "fnma",
            (false, true) => "fms",
            (true, true) => return format!("fms(-{p}, {q}, {})", self.value(c.flip())),
        };
        let sum = self.value(c.flip_if(minus_sum));
        format!("{name}({p}, {q}, {sum})")
    }

    /// Value of a node's variable.
    fn expression(&self, node: u32) -> String {
        let flip = self.flips[node as usize];
        let v = |value: Val| self.value(value);
        match self.node(node) {
            Node::Add(a, b) => self.sum(a.flip_if(flip), b.flip_if(flip)),
            Node::Sub(a, b) => self.sum(a.flip_if(flip), b.flip_if(!flip)),
            Node::Mul(a, b) => {
                let (a, b) = self.factors(a, b, flip);
                format!("{a} * {b}")
            }
            Node::Div(a, b) => {
                let (a, b) = self.factors(a, b, flip);
                format!("{a} / {b}")
            }
            Node::Fma(a, b, c) | Node::Fnma(a, b, c) => {
                let minus = matches!(self.node(node), Node::Fnma(..));
                self.fused(a, b, flip ^ minus, c.flip_if(flip))
            }
            Node::Sqrt(a) => format!("sqrt_({})", v(a)),
            Node::Recip(a) => format!("recip_({})", v(a)),
            Node::Abs(a) => format!("abs_({})", self.signed(a.node(), false)),
            Node::Rint(a) => format!("rint_({})", v(a)),
            Node::Min(a, b) => format!("min_({}, {})", v(a), v(b)),
            Node::Max(a, b) => format!("max_({}, {})", v(a), v(b)),
            Node::Lt(a, b) => format!("{} < {}", v(a), v(b)),
            Node::Le(a, b) => format!("{} <= {}", v(a), v(b)),
            Node::And(a, b) => format!("{} & {}", v(a), v(b)),
            Node::Or(a, b) => format!("{} | {}", v(a), v(b)),
            Node::Xor(a, b) => format!("mask_xor({}, {})", v(a), v(b)),
            Node::Atan2(a, b) => format!("atan2_({}, {})", v(a), v(b)),
            Node::Sel(m, a, b) => {
                format!("sel({}, {}, {})", v(m), v(a.flip_if(flip)), v(b.flip_if(flip)))
            }
            Node::Load { array, index } => self.program.arrays[array as usize].element(index),
            // Not reached: literals stand where they are used, sines and cosines are
            // statements of their own.
            Node::Const(_) | Node::True | Node::Sin(_) | Node::Cos(_) => {
                format!("missing_{node}")
            }
        }
    }
}
