//! ONNX files of policies, run by libtorch: the operators of exported policies, ours and those
//! of other programs. What is not supported is refused by its name when the file is read.
//!
//! Operators are in `onnx_operators`.

use super::onnx_operators as operators;
use ostler_sim::onnx::{
    AttributeMessage, GraphMessage, ModelFile, NodeMessage, TensorMessage, TensorType, ValueMessage,
};
use prost::Message;
use std::collections::{HashMap, HashSet};
use tch::{Kind, TchError, Tensor};

/// Most numbers of a value: a policy of thousands of rows and columns has fewer.
const MOST: i64 = 1 << 25;

/// Most numbers of all values that nodes have made and others still need.
const MOST_ALIVE: i64 = 2 * MOST;

/// Most nodes of a graph.
const MOST_NODES: usize = 4096;

/// Most products and sums of a row of the inputs: a policy of 268 million weights has as many.
const MOST_WORK: i64 = 1 << 28;

pub(super) struct Node {
    pub op: String,
    pub inputs: Vec<String>,
    pub output: String,
    pub attributes: Vec<AttributeMessage>,
    /// Values that nobody needs after it.
    last: Vec<String>,
}

impl Node {
    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeMessage> {
        self.attributes.iter().find(|a| a.name == name)
    }

    pub(super) fn int(&self, name: &str, without: i64) -> i64 {
        self.attribute(name).map_or(without, |a| a.i)
    }

    pub(super) fn float(&self, name: &str, without: f32) -> f64 {
        f64::from(self.attribute(name).map_or(without, |a| a.f))
    }
}

/// A policy's graph.
pub(crate) struct OnnxModel {
    nodes: Vec<Node>,
    constants: HashMap<String, Tensor>,
    /// Inputs: names, and the columns of the last dimension (0: any).
    pub inputs: Vec<(String, i64)>,
    /// Types of their numbers.
    kinds: Vec<Kind>,
    /// Names of outputs.
    pub outputs: Vec<String>,
    /// What its metadata call its actions, if they do.
    pub action_names: Option<String>,
    /// Whose policy it is, if they say so.
    pub agent: Option<String>,
}

impl std::fmt::Debug for OnnxModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxModel")
            .field("inputs", &self.inputs)
            .field("outputs", &self.outputs)
            .finish_non_exhaustive()
    }
}

fn not_onnx(e: impl std::fmt::Display) -> String {
    format!("it is no ONNX file: {e}")
}

impl OnnxModel {
    /// Reads a file's bytes.
    ///
    /// # Errors
    /// In words: it is no ONNX file, or has something that is not supported.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let model = ModelFile::decode(bytes).map_err(not_onnx)?;
        let says = |key: &str| model.metadata_props.iter().find(|e| e.key == key);
        let [action_names, agent] =
            ["action_names", "agent"].map(|key| says(key).map(|e| e.value.clone()));
        let own = model.opset_import.iter().filter(|o| matches!(o.domain.as_str(), "" | "ai.onnx"));
        let opset = own.map(|o| o.version).max().unwrap_or(1);
        let GraphMessage { node, initializer, input, output, .. } =
            model.graph.ok_or("it is no ONNX file: it has no graph")?;
        let mut constants = HashMap::new();
        for bytes in initializer {
            let tensor = TensorMessage::decode(&bytes[..]).map_err(not_onnx)?;
            constants.insert(tensor.name.clone(), numbers(&tensor)?);
        }
        if node.len() > MOST_NODES {
            let n = node.len();
            return Err(format!("it has {n} nodes; a policy has at most {MOST_NODES}"));
        }
        let mut nodes = Vec::with_capacity(node.len());
        for bytes in node {
            let node = NodeMessage::decode(&bytes[..]).map_err(not_onnx)?;
            let attributes = node.attribute.iter();
            let attributes = attributes.map(|a| AttributeMessage::decode(&a[..]));
            let attributes = attributes.collect::<Result<_, _>>().map_err(not_onnx)?;
            let (mut outputs, domain) = (node.output.into_iter(), node.domain);
            let (op, output) = (node.op_type, outputs.next().unwrap_or_default());
            let node = Node { op, inputs: node.input, output, attributes, last: Vec::new() };
            let own = matches!(domain.as_str(), "" | "ai.onnx");
            operators::check(&node, own, outputs.filter(|o| !o.is_empty()).count(), opset)?;
            if node.op != "Constant" {
                nodes.push(node);
                continue;
            }
            let value = operators::constant(&node)?;
            if constants.insert(node.output.clone(), value).is_some() {
                return Err(format!(
                    "its node Constant makes \"{}\", which is there before",
                    node.output
                ));
            }
        }
        let (mut inputs, mut kinds) = (Vec::new(), Vec::new());
        for bytes in input {
            let value = ValueMessage::decode(&bytes[..]).map_err(not_onnx)?;
            if constants.contains_key(&value.name) {
                continue;
            }
            let TensorType { elem_type, shape } =
                value.kind.and_then(|k| k.tensor).unwrap_or_default();
            let columns = shape.and_then(|s| s.dim.last().map(|d| d.value));
            kinds.push(match elem_type {
                0 | 1 => Kind::Float,
                11 => Kind::Double,
                other => {
                    return Err(format!(
                        "its input \"{}\" has numbers of type {}; float and double are supported",
                        value.name,
                        operators::type_name(other)
                    ));
                }
            });
            inputs.push((value.name, columns.unwrap_or(0)));
        }
        let mut outputs = Vec::new();
        for bytes in output {
            outputs.push(ValueMessage::decode(&bytes[..]).map_err(not_onnx)?.name);
        }
        let given = inputs.iter().map(|(name, _)| name).chain(constants.keys());
        connected(&nodes, given.map(String::as_str).collect(), &outputs)?;
        forget(&mut nodes, &outputs);
        Ok(Self { nodes, constants, inputs, kinds, outputs, agent, action_names })
    }

    /// The outputs for inputs by their names.
    ///
    /// # Errors
    /// libtorch refuses; a value is missing.
    pub(crate) fn run(
        &self,
        inputs: &[(&str, &Tensor)],
    ) -> Result<HashMap<String, Tensor>, TchError> {
        let mut values: HashMap<&str, Tensor> = HashMap::new();
        for (name, tensor) in &self.constants {
            values.insert(name, tensor.shallow_clone());
        }
        for (name, tensor) in inputs {
            let own = self.inputs.iter().position(|(own, _)| own == name);
            let kind = own.and_then(|k| self.kinds.get(k).copied());
            values.insert(name, tensor.f_to_kind(kind.unwrap_or(tensor.kind()))?);
        }
        let rows = inputs.iter().filter_map(|(_, x)| x.size().first().copied()).max();
        let most = MOST_WORK.saturating_mul(rows.unwrap_or(1).max(1));
        let (mut alive, mut work) = (0_i64, 0_i64);
        for node in &self.nodes {
            let told = |e: TchError| {
                let why = operators::words(&e);
                TchError::Torch(format!("node {} of \"{}\": {why}", node.op, node.output))
            };
            work = work.saturating_add(within(node, &values).map_err(told)?);
            if work > most {
                let why = format!("it takes more than {MOST_WORK} products and sums a row");
                return Err(told(TchError::Torch(why)));
            }
            let value = operators::run(node, &values).map_err(told)?;
            alive = alive.saturating_add(value.numel() as i64);
            if alive > MOST_ALIVE {
                let why = format!("its values come to {alive} numbers; {MOST_ALIVE} are allowed");
                return Err(TchError::Torch(why));
            }
            values.insert(&node.output, value);
            for name in &node.last {
                let gone = values.remove(name.as_str());
                alive -= gone.map_or(0, |t| t.numel() as i64);
            }
        }
        let mut given = HashMap::new();
        for name in &self.outputs {
            let value = values.get(name.as_str());
            let value =
                value.ok_or_else(|| TchError::Torch(format!("nothing makes the output {name}")))?;
            given.insert(name.clone(), value.shallow_clone());
        }
        Ok(given)
    }
}

/// Refuses a graph in which a value is needed before it is made, or is made twice; `made`: those
/// that it begins with.
fn connected<'a>(
    nodes: &'a [Node],
    mut made: HashSet<&'a str>,
    outputs: &[String],
) -> Result<(), String> {
    for Node { op, inputs, output, .. } in nodes {
        if let Some(input) = inputs.iter().find(|i| !i.is_empty() && !made.contains(i.as_str())) {
            return Err(format!("nothing makes \"{input}\" before its node {op} of \"{output}\""));
        }
        if output.is_empty() || !made.insert(output) {
            return Err(format!("its node {op} makes \"{output}\", which is there before"));
        }
    }
    match outputs.iter().find(|name| !made.contains(name.as_str())) {
        Some(output) => Err(format!("nothing makes its output \"{output}\"")),
        None => Ok(()),
    }
}

/// Notes which values nobody needs after each node: neither a later one nor the outputs.
fn forget(nodes: &mut [Node], outputs: &[String]) {
    let made: HashSet<String> = nodes.iter().map(|n| n.output.clone()).collect();
    let mut seen: HashSet<String> = outputs.iter().cloned().collect();
    for node in nodes.iter_mut().rev() {
        let own = std::iter::once(&node.output).chain(&node.inputs);
        let last: Vec<String> = own.filter(|name| made.contains(*name)).cloned().collect();
        node.last = last.into_iter().filter(|name| seen.insert(name.clone())).collect();
    }
}

/// A constant.
pub(super) fn numbers(t: &TensorMessage) -> Result<Tensor, String> {
    if t.data_location != 0 || !t.external_data.is_empty() {
        return Err("its numbers are in another file: export it with its numbers inside".into());
    }
    let wrong = |e: TchError| format!("its constant \"{}\" cannot be read: {e}", t.name);
    let tensor = match t.data_type {
        1 if t.raw_data.is_empty() => Tensor::f_from_slice(&t.float_data),
        1 => Tensor::f_from_slice(&raw(&t.raw_data, f32::from_le_bytes)),
        6 if t.raw_data.is_empty() => Tensor::f_from_slice(&t.int32_data),
        6 => Tensor::f_from_slice(&raw(&t.raw_data, i32::from_le_bytes)),
        7 if t.raw_data.is_empty() => Tensor::f_from_slice(&t.int64_data),
        7 => Tensor::f_from_slice(&raw(&t.raw_data, i64::from_le_bytes)),
        9 if t.raw_data.is_empty() => {
            Tensor::f_from_slice(&t.int32_data.iter().map(|x| *x != 0).collect::<Vec<_>>())
        }
        9 => Tensor::f_from_slice(&raw(&t.raw_data, |[x]| x != 0)),
        11 if t.raw_data.is_empty() => Tensor::f_from_slice(&t.double_data),
        11 => Tensor::f_from_slice(&raw(&t.raw_data, f64::from_le_bytes)),
        other => {
            return Err(format!(
                "its constant \"{}\" has numbers of type {}; float, double, int32, int64 and bool are supported",
                t.name,
                operators::type_name(other)
            ));
        }
    };
    tensor.map_err(wrong)?.f_view(&t.dims[..]).map_err(wrong)
}

fn raw<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().map(|c| read(*c)).collect()
}

/// How many products and sums a node takes, about. Refuses what would make far more numbers than
/// it is given: files come from anywhere.
fn within(node: &Node, values: &HashMap<&str, Tensor>) -> Result<i64, TchError> {
    let sizes: Vec<Vec<i64>> = (node.inputs.iter())
        .map(|name| values.get(name.as_str()).map_or(Vec::new(), Tensor::size))
        .collect();
    let count = |size: &[i64]| size.iter().fold(1_i64, |n, &d| n.saturating_mul(d));
    let of = |k: usize| sizes.get(k).map_or(&[][..], Vec::as_slice);
    // Products of each number that is made; other nodes take what they read or make.
    let mut products = 0;
    let makes = match node.op.as_str() {
        // As many rows as the one, as many columns as the other.
        "Gemm" => {
            let dim = |k: usize, i: usize| of(k).get(i).copied().unwrap_or(1);
            let turned = |name: &str| usize::from(node.int(name, 0) != 0);
            products = dim(0, 1 - turned("transA"));
            dim(0, turned("transA")).saturating_mul(dim(1, 1 - turned("transB")))
        }
        "MatMul" => {
            let last = |k: usize| of(k).last().copied().unwrap_or(1).max(1);
            let above = of(1).iter().rev().nth(1).copied().unwrap_or(1).max(1);
            products = last(0);
            // Of many matrices, each.
            let each = count(of(1)) / last(1) / above;
            let rows = count(of(0)) / last(0);
            rows.saturating_mul(last(1)).saturating_mul(each.max(1))
        }
        "Gather" => {
            let rows = of(0).iter().copied().min().unwrap_or(1).max(1);
            count(of(1)).saturating_mul(count(of(0)) / rows)
        }
        "Concat" => sizes.iter().map(|s| count(s)).sum(),
        // Each dimension is the longest there.
        _ => {
            let longest = sizes.iter().map(Vec::len).max().unwrap_or(0);
            let dim = |k: usize| {
                let own = |s: &Vec<i64>| s.len().checked_sub(k + 1).map_or(1, |i| s[i]);
                sizes.iter().map(own).max().unwrap_or(1)
            };
            (0..longest).fold(1_i64, |n, k| n.saturating_mul(dim(k)))
        }
    };
    match makes > MOST {
        true => {
            Err(TchError::Torch(format!("it would make up to {makes} numbers; {MOST} are allowed")))
        }
        false if products > 0 => Ok(makes.saturating_mul(products)),
        false => Ok(makes.max(sizes.iter().map(|s| count(s)).sum())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Device;

    fn node(op: &str, inputs: &[&str], output: &str) -> Node {
        Node {
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            output: output.into(),
            attributes: Vec::new(),
            last: Vec::new(),
        }
    }

    fn model(mut nodes: Vec<Node>, outputs: &[&str]) -> OnnxModel {
        let outputs: Vec<String> = outputs.iter().map(|s| s.to_string()).collect();
        forget(&mut nodes, &outputs);
        OnnxModel {
            nodes,
            constants: HashMap::new(),
            inputs: vec![("x".into(), 0)],
            kinds: vec![],
            outputs,
            action_names: None,
            agent: None,
        }
    }

    #[test]
    fn values_are_dropped_after_their_last_use_and_bounded_in_all() {
        // Forty values of a sixteenth of what is allowed, each of the one before.
        let x = Tensor::zeros([MOST_ALIVE / 16], (Kind::Uint8, Device::Cpu));
        let name = |i: usize| format!("v{i}");
        let chain = |from_x: bool| {
            let all = (1..=40).map(|i| {
                let before = if from_x || i == 1 { "x".to_string() } else { name(i - 1) };
                node("Max", &[&before, "x"], &name(i))
            });
            all.collect::<Vec<_>>()
        };
        let run = |model: &OnnxModel| model.run(&[("x", &x)]);
        assert_eq!(run(&model(chain(false), &["v40"])).unwrap()["v40"].numel(), x.numel());
        // Nobody needs the others.
        assert_eq!(run(&model(chain(true), &["v7", "v40"])).unwrap().len(), 2);
        // All are needed at the end.
        let names: Vec<String> = (1..=40).map(name).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let e = run(&model(chain(true), &all)).unwrap_err().to_string();
        assert!(e.contains("numbers; 67108864 are allowed"), "{e}");
    }

    #[test]
    fn a_chain_that_takes_too_long_is_refused_before_it_has_taken_long() {
        // Products of a matrix with itself: values and nodes are as few as are allowed.
        let w = Tensor::zeros([2048, 2048], (Kind::Float, Device::Cpu));
        let name = |i: usize| if i == 0 { "x".to_string() } else { format!("v{i}") };
        let chain = (1..=200).map(|i| node("MatMul", &[&name(i - 1), "w"], &name(i))).collect();
        let mut model = model(chain, &["v200"]);
        model.constants.insert("w".into(), w);
        let run = |rows: i64| {
            let x = Tensor::zeros([rows, 2048], (Kind::Float, Device::Cpu));
            model.run(&[("x", &x)]).unwrap_err().to_string()
        };
        // 64 of them are allowed, however many rows.
        for rows in [1, 3] {
            let e = run(rows);
            assert!(e.contains("\"v65\"") && e.contains("268435456 products"), "{e}");
        }
    }

    #[test]
    fn a_graph_that_does_not_hang_together_is_refused_when_it_is_read() {
        let check = |nodes: &[Node], output: &str| {
            let made = HashSet::from(["x", "w"]);
            connected(nodes, made, &[output.to_owned()]).err().unwrap_or_default()
        };
        let add = |inputs: &[&str], output| node("Add", inputs, output);
        let whole = [add(&["x", "w"], "a"), node("Clip", &["a", "", "w"], "b")];
        assert_eq!(check(&whole, "b"), "");
        assert_eq!(check(&whole, "x"), "", "an output may be an input");
        let why = check(&[add(&["x", "b"], "a"), add(&["a", "x"], "b")], "b");
        assert_eq!(why, "nothing makes \"b\" before its node Add of \"a\"");
        for twice in ["a", "x"] {
            let why = check(&[add(&["x", "w"], "a"), add(&["x", "x"], twice)], "a");
            assert_eq!(why, format!("its node Add makes \"{twice}\", which is there before"));
        }
        assert_eq!(check(&whole, "actions"), "nothing makes its output \"actions\"");
    }
}
