//! ONNX files of actuators' networks: fully connected layers (`Gemm`, or `MatMul` with `Add`),
//! activations, and layers of `LSTM` in front, as PyTorch's two exporters write them.
//!
//! The graph is walked from its first output back to its input. A node that is none of these,
//! and not one that only gives the same numbers another shape, is an error.
//!
//! Source of the operators' meaning: ONNX Operators, `Gemm`, `LSTM` and the others.

mod graph;
mod lstm;

use super::{Parts, Tensor};
use graph::{DOUBLE, FLOAT, Graph, Node};
use ostler_model::{Activation, Layer};
use std::path::{Path, PathBuf};

/// Most bytes of a file, and of one with its numbers beside it.
pub(super) const MOST_BYTES: u64 = 8 << 20;

/// The parts of a network, and the file beside `file` that holds its numbers, if there is one.
pub(super) fn parts(
    bytes: &[u8],
    file: &Path,
    lstm: bool,
) -> Result<(Parts, Option<PathBuf>), String> {
    let graph = Graph::read(bytes, file)?;
    let mut walk = Walk {
        graph: &graph,
        cells: Vec::new(),
        layers: Vec::new(),
        then: None,
        bias: None,
        shaped: None,
        cut: None,
    };
    walk.back()?;
    let (mut cells, mut layers) = (walk.cells, walk.layers);
    cells.reverse();
    layers.reverse();
    match (lstm, cells.is_empty()) {
        (true, true) => Err("no LSTM in it; model = \"mlp\" needs none".into()),
        (false, false) => Err("an LSTM is in it; model = \"lstm\" has one".into()),
        _ => Ok((Parts { cells, layers }, graph.beside())),
    }
}

/// What was met on the way back from the output.
struct Walk<'g> {
    graph: &'g Graph,
    /// The last one first, as below.
    cells: Vec<Layer>,
    layers: Vec<Layer>,
    /// An activation whose layer is still to come.
    then: Option<(Activation, &'g Node)>,
    /// Numbers that are added to what a layer gives, which is still to come.
    bias: Option<(Vec<f64>, &'g Node)>,
    /// Something gives numbers another shape.
    shaped: Option<&'g Node>,
    /// Something takes a part of them: the last step of an LSTM's.
    cut: Option<&'g Node>,
}

impl<'g> Walk<'g> {
    fn back(&mut self) -> Result<(), String> {
        let graph = self.graph;
        let mut name = graph.output.as_str();
        for _ in 0..=graph.len() {
            if let Some(input) = graph.inputs.iter().find(|i| i.name == name) {
                return self.begin(input);
            }
            let (node, output) =
                graph.maker(name).ok_or_else(|| format!("nothing in it makes \"{name}\""))?;
            if output > 0 && !(node.op == "LSTM" && output == 1) {
                return Err(node.wrong(format_args!("gives \"{name}\", its output {output}")));
            }
            name = self.step(node)?;
        }
        Err("its graph goes round in a circle".into())
    }

    /// The network begins here: everything before it has found its layer.
    fn begin(&self, input: &graph::Input) -> Result<(), String> {
        self.no_cut()?;
        self.settled("is not behind a layer")?;
        let first = match (self.cells.last(), self.layers.last()) {
            (Some(cell), _) => cell.inputs - cell.bias.len() / 4,
            (None, Some(layer)) => layer.inputs,
            (None, None) => return Err("no fully connected layer in it".into()),
        };
        let Some(dims) = &input.dims else {
            return Ok(());
        };
        // Numbers keep their order under a new shape where all other dimensions are 1.
        let alone = self.shaped.is_some() || !self.cells.is_empty();
        let known: Vec<usize> = dims.iter().flatten().copied().collect();
        let rows = known.iter().filter(|d| **d != 1).count();
        let fits = match alone {
            true => rows <= 1 && known.iter().all(|d| *d == 1 || *d == first),
            false => dims.last().is_none_or(|d| d.is_none_or(|d| d == first)),
        };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "its input \"{}\" is {known:?} and its first layer takes {first} numbers; \
                 export it for one motor and one step",
                input.name
            )),
        }
    }

    /// One node back; the value that it takes.
    fn step(&mut self, node: &'g Node) -> Result<&'g str, String> {
        let known = |then, alpha: f32| match (node.float("alpha", alpha) - alpha).abs() < 1e-6 {
            true => Ok(then),
            false => Err(node.wrong(format_args!(
                "has an alpha of {}; actuators have {alpha}",
                node.float("alpha", alpha)
            ))),
        };
        match node.op.as_str() {
            "Gemm" => self.gemm(node),
            "MatMul" => {
                let weight = self.weight(node, true)?;
                self.layer(node, weight, None)
            }
            "Add" => self.add(node),
            "LSTM" => self.lstm(node),
            "Relu" => self.activation(node, Activation::Relu),
            "Tanh" => self.activation(node, Activation::Tanh),
            "Sigmoid" => self.activation(node, Activation::Sigmoid),
            "Softsign" => self.activation(node, Activation::Softsign),
            "Elu" => self.activation(node, known(Activation::Elu, 1.0)?),
            "LeakyRelu" => self.activation(node, known(Activation::LeakyRelu, 0.01)?),
            "Swish" => self.activation(node, known(Activation::Silu, 1.0)?),
            "Mul" => {
                let of = self.silu(node)?;
                self.activation(node, Activation::Silu)?;
                Ok(of)
            }
            "Div" => {
                let of = self.softsign(node)?;
                self.activation(node, Activation::Softsign)?;
                Ok(of)
            }
            "Identity" => node.needed(0),
            "Dropout" => match node.given(2).map(|name| self.graph.single(name)) {
                None | Some(Ok(Some(0.0))) => node.needed(0),
                _ => Err(node.wrong("drops numbers; export the network in evaluation mode")),
            },
            "Cast" => match node.int("to", 0) {
                FLOAT | DOUBLE => node.needed(0),
                other => Err(node.wrong(format_args!("makes numbers of ONNX's type {other}"))),
            },
            "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" | "Transpose" => {
                self.shaped = Some(node);
                node.needed(0)
            }
            "Gather" | "Slice" => {
                self.part(node)?;
                self.cut = Some(node);
                node.needed(0)
            }
            _ => Err(node.wrong(
                "is no part of an actuator's network: fully connected layers and activations, \
                 behind an LSTM or alone",
            )),
        }
    }

    /// Nothing waits for a layer.
    fn settled(&self, why: &str) -> Result<(), String> {
        let bias = self.bias.as_ref().map(|b| b.1);
        match bias.or(self.then.map(|t| t.1)) {
            Some(node) => Err(node.wrong(why)),
            None => Ok(()),
        }
    }

    fn no_cut(&self) -> Result<(), String> {
        match self.cut {
            Some(node) => Err(node.wrong("takes a part of the numbers; all are wanted")),
            None => Ok(()),
        }
    }

    fn activation(&mut self, node: &'g Node, then: Activation) -> Result<&'g str, String> {
        if let Some((_, add)) = &self.bias {
            return Err(add.wrong("adds to what is no layer's output"));
        }
        if let Some((_, other)) = self.then {
            return Err(other.wrong("is a second activation behind a layer"));
        }
        self.then = Some((then, node));
        node.needed(0)
    }

    /// x * sigmoid(x): what x is.
    fn silu(&self, node: &'g Node) -> Result<&'g str, String> {
        let [a, b] = [node.needed(0)?, node.needed(1)?];
        let gate = |gate: &str, of: &str| match self.graph.maker(gate) {
            Some((sigmoid, 0)) => sigmoid.op == "Sigmoid" && sigmoid.given(0) == Some(of),
            _ => false,
        };
        match (gate(b, a), gate(a, b)) {
            (true, _) => Ok(a),
            (_, true) => Ok(b),
            _ => Err(node.wrong(
                "multiplies; factors of inputs and of the output are position_scale, \
                 velocity_scale and effort_scale",
            )),
        }
    }

    /// x / (|x| + 1), as PyTorch writes it: what x is.
    fn softsign(&self, node: &'g Node) -> Result<&'g str, String> {
        let of = node.needed(0)?;
        let made = |name: &str, op: &str| match self.graph.maker(name) {
            Some((node, 0)) if node.op == op => Some(node),
            _ => None,
        };
        let fits = || {
            let sum = made(node.given(1)?, "Add")?;
            let [a, b] = [sum.given(0)?, sum.given(1)?];
            let (size, one) = match made(a, "Abs") {
                Some(size) => (size, b),
                None => (made(b, "Abs")?, a),
            };
            let one = self.graph.single(one).ok()??;
            (size.given(0)? == of && one == 1.0).then_some(())
        };
        match fits() {
            Some(()) => Ok(of),
            None => Err(node.wrong("divides; only x / (|x| + 1), the softsign, is known")),
        }
    }

    /// A part along an axis that has one step: its only number.
    fn part(&self, node: &Node) -> Result<(), String> {
        let index = |k: usize| match node.given(k) {
            Some(name) => self.graph.constant(name),
            None => Ok(None),
        };
        let fits = match node.op.as_str() {
            "Gather" => index(1)?.is_some_and(|t| t.data.len() == 1),
            _ => index(4)?.is_none_or(|t| t.data.iter().all(|x| *x == 1.0)),
        };
        match fits {
            true => Ok(()),
            false => Err(node.wrong("does not take one step")),
        }
    }

    fn gemm(&mut self, node: &'g Node) -> Result<&'g str, String> {
        if node.int("transA", 0) != 0 {
            return Err(node.wrong("turns its input (transA)"));
        }
        let [alpha, beta] = ["alpha", "beta"].map(|key| f64::from(node.float(key, 1.0)));
        let mut weight = self.weight(node, node.int("transB", 0) == 0)?;
        weight.data.iter_mut().for_each(|w| *w *= alpha);
        let bias = match node.given(2) {
            None => None,
            Some(name) => {
                let bias = self.numbers(node, name)?;
                Some(bias.data.into_iter().map(|b| b * beta).collect())
            }
        };
        self.layer(node, weight, bias)
    }

    /// A constant that the node needs.
    fn numbers(&self, node: &Node, name: &str) -> Result<Tensor, String> {
        let found = self.graph.constant(name)?;
        found.ok_or_else(|| node.wrong(format_args!("wants constant numbers for \"{name}\"")))
    }

    /// The matrix of a layer `[outputs][inputs]`, of the node's second input; `turn`: it is the
    /// other way round there.
    fn weight(&self, node: &Node, turn: bool) -> Result<Tensor, String> {
        let weight = self.numbers(node, node.needed(1)?)?;
        let [rows, columns] = weight.shape[..] else {
            return Err(node.wrong(format_args!("has weights of {:?}", weight.shape)));
        };
        if !turn {
            return Ok(weight);
        }
        let column = |c: usize| (0..rows).map(move |r| r * columns + c);
        let order = (0..columns).flat_map(column);
        Ok(Tensor { data: order.map(|i| weight.data[i]).collect(), shape: vec![columns, rows] })
    }

    /// A fully connected layer, with what was met behind it.
    fn layer(
        &mut self,
        node: &'g Node,
        weight: Tensor,
        own: Option<Vec<f64>>,
    ) -> Result<&'g str, String> {
        self.no_cut()?;
        if !self.cells.is_empty() {
            return Err(node.wrong("is in front of an LSTM, which comes first"));
        }
        let [outputs, inputs] = weight.shape[..] else {
            return Err(node.wrong("has no matrix"));
        };
        let mut bias = vec![0.0; outputs];
        let added = self.bias.take().map(|b| b.0);
        for part in [own, added].into_iter().flatten() {
            match part[..] {
                [x] => bias.iter_mut().for_each(|b| *b += x),
                _ if part.len() == outputs => bias.iter_mut().zip(part).for_each(|(b, x)| *b += x),
                _ => {
                    let found = part.len();
                    return Err(node.wrong(format_args!(
                        "has {outputs} outputs, and {found} numbers are added to them"
                    )));
                }
            }
        }
        let then = self.then.take().map_or(Activation::Nothing, |t| t.0);
        self.layers.push(Layer { inputs, weight: weight.data, bias, then });
        node.needed(0)
    }

    /// Numbers that are added to a layer's outputs.
    fn add(&mut self, node: &'g Node) -> Result<&'g str, String> {
        let [a, b] = [node.needed(0)?, node.needed(1)?];
        let (of, numbers) = match (self.graph.constant(a)?, self.graph.constant(b)?) {
            (None, Some(numbers)) => (a, numbers),
            (Some(numbers), None) => (b, numbers),
            _ => return Err(node.wrong("does not add constant numbers to a layer's outputs")),
        };
        let wide = numbers.shape.last().copied().unwrap_or(1);
        if wide != numbers.data.len() {
            return Err(node.wrong(format_args!("adds numbers of {:?}", numbers.shape)));
        }
        if self.bias.is_some() {
            return Err(node.wrong("adds a second time"));
        }
        self.bias = Some((numbers.data, node));
        Ok(of)
    }
}

#[cfg(test)]
mod tests;
