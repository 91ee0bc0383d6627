//! Layers of a long short-term memory in an ONNX file.

use super::Walk;
use super::graph::Node;
use crate::task::actuator::network::Tensor;
use ostler_model::{Activation, Layer};

impl<'g> Walk<'g> {
    /// A layer of a long short-term memory. ONNX: gates in the order input, output, forget, cell.
    pub(super) fn lstm(&mut self, node: &'g Node) -> Result<&'g str, String> {
        self.settled("follows an LSTM; a fully connected layer has to stand between them")?;
        self.cut = None;
        usual(node)?;
        for (k, what) in [(4, "lengths of sequences"), (7, "peepholes")] {
            if node.given(k).is_some() {
                return Err(node.wrong(format_args!("has {what}, which actuators do not have")));
            }
        }
        for k in [5, 6] {
            if let Some(name) = node.given(k) {
                self.zero_or_given(node, name)?;
            }
        }
        let input = self.numbers(node, node.needed(1)?)?;
        let own = self.numbers(node, node.needed(2)?)?;
        let wrong = |t: &Tensor| Err(node.wrong(format_args!("has weights of {:?}", t.shape)));
        let [1, rows, inputs] = input.shape[..] else {
            return wrong(&input);
        };
        let [1, own_rows, width] = own.shape[..] else {
            return wrong(&own);
        };
        if rows != own_rows || width.checked_mul(4) != Some(rows) || width == 0 {
            return wrong(&own);
        }
        let biases = match node.given(3) {
            Some(name) => self.numbers(node, name)?.data,
            None => vec![0.0; 2 * rows],
        };
        if biases.len() != 2 * rows {
            return Err(node.wrong(format_args!("has {} biases for {rows} rows", biases.len())));
        }
        let mut weight = Vec::with_capacity(rows * (inputs + width));
        let mut bias = Vec::with_capacity(rows);
        // PyTorch's order: input, forget, cell, output.
        for gate in [0, 2, 3, 1] {
            for row in gate * width..(gate + 1) * width {
                weight.extend(&input.data[row * inputs..(row + 1) * inputs]);
                weight.extend(&own.data[row * width..(row + 1) * width]);
                bias.push(biases[row] + biases[rows + row]);
            }
        }
        self.cells.push(Layer { inputs: inputs + width, weight, bias, then: Activation::Nothing });
        node.needed(0)
    }

    /// The state in which an LSTM begins is zero, or comes in with the step before.
    fn zero_or_given(&self, lstm: &Node, name: &str) -> Result<(), String> {
        let graph = self.graph;
        let mut name = name;
        for _ in 0..=graph.len() {
            if graph.inputs.iter().any(|i| i.name == name) {
                return Ok(());
            }
            if let Some(numbers) = graph.constant(name)? {
                return match numbers.data.iter().all(|x| *x == 0.0) {
                    true => Ok(()),
                    false => Err(lstm.wrong("does not begin at zero")),
                };
            }
            let Some((node, _)) = graph.maker(name) else {
                return Err(lstm.wrong(format_args!("begins at \"{name}\", which nothing makes")));
            };
            match node.op.as_str() {
                "ConstantOfShape" => {
                    let value = node.attribute("value").and_then(|a| a.t.as_ref());
                    let raw = value.is_none_or(|t| t.raw_data.iter().all(|b| *b == 0));
                    let own = value.is_none_or(|t| t.float_data.iter().all(|x| *x == 0.0));
                    return match raw && own {
                        true => Ok(()),
                        false => Err(node.wrong("makes a state that is not zero")),
                    };
                }
                "Expand" | "Identity" | "Slice" | "Gather" | "Split" | "Squeeze" | "Unsqueeze"
                | "Reshape" | "Transpose" | "Tile" | "Cast" => name = node.needed(0)?,
                _ => return Err(node.wrong("makes the state in which an LSTM begins")),
            }
        }
        Err("its graph goes round in a circle".into())
    }
}

/// Refuses what an LSTM of PyTorch does not have.
fn usual(node: &Node) -> Result<(), String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase();
    let direction = node.attribute("direction").map(|a| text(&a.s));
    if direction.is_some_and(|d| d != "forward") {
        return Err(node.wrong("does not go forward alone"));
    }
    let functions = node.attribute("activations").map(|a| &a.strings[..]);
    let functions = functions.unwrap_or_default().iter().map(|s| text(s));
    let functions: Vec<String> = functions.collect();
    if !functions.is_empty() && functions != ["sigmoid", "tanh", "tanh"] {
        return Err(node.wrong(format_args!("has activations {functions:?}")));
    }
    if node.int("input_forget", 0) != 0 || node.attribute("clip").is_some() {
        return Err(node.wrong("has coupled gates or clips its cells"));
    }
    Ok(())
}
