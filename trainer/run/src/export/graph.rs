//! A policy from observations to controls as a graph of a few operations on rows, which ONNX
//! and TorchScript files are printed from.
//!
//! Values are `[N,width]`. Inputs: `obs`, the observations of one control step before scaling;
//! of a policy with earlier values `history` and `first`; of a recurrent one `h_in`. Outputs:
//! `actions`, `controls`, and `history_out` and `h_out`.

use ostler_learn::learner::network::{Gru, Head, Layer, Network};
use ostler_learn::learner::normalizer::FARTHEST;
use ostler_learn::learner::policy::Activation;
use ostler_sim::task::deploy::{Deployment, Mapping};

/// Number of a value.
pub type Id = usize;

/// How a value comes about.
#[derive(Debug, Clone)]
pub enum Op {
    /// Handed in: its name.
    Input(&'static str),
    /// Numbers added to the columns.
    Shift(Id, Vec<f32>),
    /// Factors of the columns.
    Scale(Id, Vec<f32>),
    /// Least numbers of the columns.
    AtLeast(Id, Vec<f32>),
    /// Greatest numbers of the columns.
    AtMost(Id, Vec<f32>),
    /// A fully connected layer.
    Dense(Id, Layer),
    /// Gain and bias of a layer normalisation.
    Norm(Id, [Vec<f32>; 2]),
    /// A function.
    Function(Id, Function),
    /// a + b
    Sum(Id, Id),
    /// a - b
    Difference(Id, Id),
    /// a b
    Product(Id, Id),
    /// These columns.
    Columns(Id, Vec<i64>),
    /// Side by side.
    Beside(Id, Id),
    /// The second where the first, one column, is not 0, else the third.
    Where([Id; 3]),
    /// Place of the largest column, as a number: one column.
    Largest(Id),
    /// Row number `id` of a table `[choices][width]`.
    Table(Id, Vec<Vec<f32>>),
    /// 1 where a number is below 0, else 0.
    Below(Id),
}

/// A function of single numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Elu,
    Relu,
    Tanh,
    Sigmoid,
}

/// A value.
#[derive(Debug, Clone)]
pub struct Node {
    /// How it comes about.
    pub op: Op,
    /// Its columns.
    pub width: usize,
}

/// The graph: operands come before what is made of them.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// All values.
    pub nodes: Vec<Node>,
    /// Names and values of the outputs.
    pub outputs: Vec<(&'static str, Id)>,
}

impl Graph {
    /// Of a policy.
    pub fn new(deployment: &Deployment<'_>, network: &Network) -> Self {
        let mut g = Self::default();
        let obs = g.push(Op::Input("obs"), deployment.inputs());
        let (row, history) = g.row(deployment, obs);
        let (numbers, hidden) = g.network(network, row);
        let action = match network.head {
            Head::Largest => numbers,
            _ => g.within(numbers, deployment.outputs.iter().map(|o| o.clip).collect::<Vec<_>>()),
        };
        let controls = g.controls(deployment, action);
        g.outputs = vec![("actions", action), ("controls", controls)];
        g.outputs.extend(history.map(|h| ("history_out", h)));
        g.outputs.extend(hidden.map(|h| ("h_out", h)));
        g
    }

    /// Inputs: their names and columns.
    pub fn inputs(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.nodes.iter().filter_map(|n| match n.op {
            Op::Input(name) => Some((name, n.width)),
            _ => None,
        })
    }

    fn push(&mut self, op: Op, width: usize) -> Id {
        self.nodes.push(Node { op, width });
        self.nodes.len() - 1
    }

    fn width(&self, id: Id) -> usize {
        self.nodes[id].width
    }

    /// The same width as `x`.
    fn like(&mut self, x: Id, op: Op) -> Id {
        let width = self.width(x);
        self.push(op, width)
    }

    fn within(&mut self, x: Id, ranges: Vec<[f32; 2]>) -> Id {
        let (low, high): (Vec<f32>, Vec<f32>) = ranges.iter().map(|r| (r[0], r[1])).unzip();
        let mut x = x;
        if low.iter().any(|l| *l > f32::NEG_INFINITY) {
            x = self.like(x, Op::AtLeast(x, low));
        }
        if high.iter().any(|h| *h < f32::INFINITY) {
            x = self.like(x, Op::AtMost(x, high));
        }
        x
    }

    /// The policy's row: scaled, clipped, with earlier values; and that as what is to be
    /// remembered.
    fn row(&mut self, of: &Deployment<'_>, obs: Id) -> (Id, Option<Id>) {
        let scale: Vec<f32> = of.terms.iter().flat_map(|t| t.scale.clone()).collect();
        let mut x = obs;
        if scale.iter().any(|s| *s != 1.0) {
            x = self.like(x, Op::Scale(x, scale));
        }
        let unlimited = [f32::NEG_INFINITY, f32::INFINITY];
        let ranges = of.terms.iter();
        let ranges = ranges.flat_map(|t| vec![t.clip.unwrap_or(unlimited); t.len]);
        x = self.within(x, ranges.collect());
        // Where each place of the row comes from: now, and where an episode goes on.
        let inputs = of.inputs();
        let mut now = vec![0i64; of.width];
        let mut on = vec![0i64; of.width];
        for (at, term) in of.placed() {
            for frame in 0..term.frames {
                for i in 0..term.len {
                    let place = term.first + frame * term.stride + i;
                    now[place] = (at + i) as i64;
                    on[place] = match frame + 1 == term.frames {
                        true => (at + i) as i64,
                        false => (inputs + place + term.stride) as i64,
                    };
                }
            }
        }
        if !of.looks_back() {
            let same = now.iter().enumerate().all(|(i, &n)| n == i as i64);
            let row = match same && of.width == inputs {
                true => x,
                false => self.push(Op::Columns(x, now), of.width),
            };
            return (row, None);
        }
        let history = self.push(Op::Input("history"), of.width);
        let first = self.push(Op::Input("first"), 1);
        let both = self.push(Op::Beside(x, history), inputs + of.width);
        let begun = self.push(Op::Columns(x, now), of.width);
        let gone_on = self.push(Op::Columns(both, on), of.width);
        let row = self.push(Op::Where([first, begun, gone_on]), of.width);
        (row, Some(row))
    }

    /// The network's action, and the hidden state after it.
    fn network(&mut self, network: &Network, row: Id) -> (Id, Option<Id>) {
        let mut x = row;
        if let Some([shift, scale]) = &network.norm {
            x = self.like(x, Op::Shift(x, shift.iter().map(|s| -s).collect()));
            x = self.like(x, Op::Scale(x, scale.clone()));
            let width = self.width(x);
            x = self.within(x, vec![[-FARTHEST, FARTHEST]; width]);
        }
        let mut state = None;
        if let Some(gru) = &network.gru {
            let before = self.push(Op::Input("h_in"), network.state());
            let after = self.gru(gru, x, before);
            state = Some(after);
            let width = self.width(x) + network.state();
            x = self.push(Op::Beside(x, after), width);
        }
        for hidden in &network.hidden {
            let mut y = self.dense(x, &hidden.layer);
            if let Some(norm) = &hidden.norm {
                y = self.like(y, Op::Norm(y, norm.clone()));
            }
            let function = match network.activation {
                Activation::Elu => Function::Elu,
                Activation::Relu => Function::Relu,
                Activation::Tanh => Function::Tanh,
                Activation::Silu => Function::Sigmoid,
            };
            let value = self.like(y, Op::Function(y, function));
            y = match network.activation {
                Activation::Silu => self.like(y, Op::Product(y, value)),
                _ => value,
            };
            if hidden.adds {
                y = self.like(y, Op::Sum(y, x));
            }
            x = y;
        }
        let last = self.dense(x, &network.last);
        let action = match &network.head {
            Head::Mean => last,
            Head::Squashed { bound } => {
                let squashed = self.like(last, Op::Function(last, Function::Tanh));
                self.like(last, Op::Scale(squashed, bound.clone()))
            }
            Head::Largest => self.push(Op::Largest(last), 1),
        };
        (action, state)
    }

    fn dense(&mut self, x: Id, layer: &Layer) -> Id {
        self.push(Op::Dense(x, layer.clone()), layer.outputs)
    }

    /// r = s(Wr x + Ur h), z = s(Wz x + Uz h), n = tanh(Wn x + r (Un h)), h' = n + z (h - n)
    fn gru(&mut self, gru: &Gru, x: Id, h: Id) -> Id {
        let width = gru.hidden.inputs;
        let of_x = self.dense(x, &gru.input);
        let of_h = self.dense(h, &gru.hidden);
        let part = |g: &mut Self, of: Id, k: usize| {
            let columns = (k * width..(k + 1) * width).map(|c| c as i64);
            g.push(Op::Columns(of, columns.collect()), width)
        };
        let mut gates = [0; 2];
        for (k, gate) in gates.iter_mut().enumerate() {
            let (a, b) = (part(self, of_x, k), part(self, of_h, k));
            let sum = self.push(Op::Sum(a, b), width);
            *gate = self.push(Op::Function(sum, Function::Sigmoid), width);
        }
        let [reset, update] = gates;
        let (a, b) = (part(self, of_x, 2), part(self, of_h, 2));
        let kept = self.push(Op::Product(reset, b), width);
        let sum = self.push(Op::Sum(a, kept), width);
        let new = self.push(Op::Function(sum, Function::Tanh), width);
        let apart = self.push(Op::Difference(h, new), width);
        let back = self.push(Op::Product(update, apart), width);
        self.push(Op::Sum(new, back), width)
    }

    /// Actions to controls.
    fn controls(&mut self, of: &Deployment<'_>, action: Id) -> Id {
        let width = of.controls.len();
        let choices = of.controls.iter().filter_map(|c| match &c.mapping {
            Mapping::Choice(row) => Some(row),
            _ => None,
        });
        let choices: Vec<&Vec<f32>> = choices.collect();
        let ranges: Vec<[f32; 2]> = of.controls.iter().map(|c| c.range).collect();
        if let Some(first) = choices.first() {
            let rows = (0..first.len()).map(|k| choices.iter().map(|c| c[k]).collect());
            let chosen = self.push(Op::Table(action, rows.collect()), width);
            return self.within(chosen, ranges);
        }
        let columns = of.controls.iter().map(|c| c.output as i64).collect();
        let x = self.push(Op::Columns(action, columns), width);
        let (mut scale, mut offset) = (vec![0.0; width], vec![0.0; width]);
        let mut below = vec![0.0; width];
        for (k, control) in of.controls.iter().enumerate() {
            match &control.mapping {
                Mapping::Affine { scale: s, offset: o } => (scale[k], offset[k]) = (*s, *o),
                Mapping::Binary([low, other]) => (below[k], offset[k]) = (low - other, *other),
                Mapping::Choice(_) => {}
            }
        }
        let mut value = self.push(Op::Scale(x, scale), width);
        value = self.push(Op::Shift(value, offset), width);
        if below.iter().any(|b| *b != 0.0) {
            let negative = self.push(Op::Below(x), width);
            let part = self.push(Op::Scale(negative, below), width);
            value = self.push(Op::Sum(value, part), width);
        }
        self.within(value, ranges)
    }
}
