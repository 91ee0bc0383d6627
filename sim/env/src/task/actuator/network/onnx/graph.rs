//! A graph of an ONNX file: its nodes by what they make, and its constants.

use super::super::{MOST_NUMBERS, Tensor, all_finite};
use super::MOST_BYTES;
use ostler_base::files;
use ostler_base::onnx::{
    AttributeMessage, GraphMessage, ModelFile, NodeMessage, TensorMessage, ValueMessage,
};
use prost::Message;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// Most nodes, and most constants. A long short-term memory of two layers has some sixty.
const MOST_PARTS: usize = 4096;

/// ONNX's numbers of types.
pub(super) const FLOAT: i64 = 1;
/// Likewise.
pub(super) const DOUBLE: i64 = 11;
const INT32: i32 = 6;
const INT64: i32 = 7;

/// A step of the computation.
pub(super) struct Node {
    pub op: String,
    pub input: Vec<String>,
    pub output: Vec<String>,
    name: String,
    attributes: Vec<AttributeMessage>,
}

impl Node {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let node = NodeMessage::decode(bytes).map_err(not_onnx)?;
        let name = match node.output.first() {
            Some(output) if node.name.is_empty() => output.clone(),
            _ => node.name,
        };
        let op = match node.domain.as_str() {
            "" | "ai.onnx" => node.op_type,
            // No operator of ours has a name like that.
            other => format!("{other}.{}", node.op_type),
        };
        let each = node.attribute.iter().map(|a| AttributeMessage::decode(&a[..]));
        Ok(Self {
            op,
            input: node.input,
            output: node.output,
            name,
            attributes: each.collect::<Result<_, _>>().map_err(not_onnx)?,
        })
    }

    /// A message about this node.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> String {
        format!("node \"{}\" ({}) {why}", self.name, self.op)
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&AttributeMessage> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// An integer attribute.
    pub(crate) fn int(&self, name: &str, without: i64) -> i64 {
        self.attribute(name).map_or(without, |a| a.i)
    }

    /// A number.
    pub(crate) fn float(&self, name: &str, without: f32) -> f32 {
        self.attribute(name).map_or(without, |a| a.f)
    }

    /// An input that is there: optional ones may be left out, or have an empty name.
    pub(crate) fn given(&self, index: usize) -> Option<&str> {
        let name = self.input.get(index)?.as_str();
        (!name.is_empty()).then_some(name)
    }

    /// An input that the operator needs.
    pub(crate) fn needed(&self, index: usize) -> Result<&str, String> {
        self.given(index).ok_or_else(|| self.wrong(format_args!("lacks its input {index}")))
    }
}

fn not_onnx(e: prost::DecodeError) -> String {
    format!("no ONNX file: {e}")
}

/// What comes into a graph.
pub(super) struct Input {
    pub name: String,
    /// Its dimensions, `None` for those of any size; no list where the file has none.
    pub dims: Option<Vec<Option<usize>>>,
}

/// A graph.
pub(super) struct Graph {
    nodes: Vec<Node>,
    /// The node, and which of its outputs it is.
    made: HashMap<String, (usize, usize)>,
    constants: HashMap<String, TensorMessage>,
    pub inputs: Vec<Input>,
    /// The first output.
    pub output: String,
    folder: PathBuf,
    /// The file that holds numbers beside the graph, once it is read.
    beside: RefCell<Option<(PathBuf, Vec<u8>)>>,
}

impl Graph {
    /// Reads the graph of `file`.
    pub(crate) fn read(bytes: &[u8], file: &Path) -> Result<Self, String> {
        let graph = ModelFile::decode(bytes).map_err(not_onnx)?.graph;
        let GraphMessage { node, initializer, input, output, .. } =
            graph.ok_or("no ONNX file: there is no graph in it")?;
        if node.len().max(initializer.len()).max(input.len()) > MOST_PARTS {
            return Err(format!("more than {MOST_PARTS} nodes or constants"));
        }
        let nodes = node.iter().map(|n| Node::read(n));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let mut made = HashMap::new();
        for (n, node) in nodes.iter().enumerate() {
            let named = node.output.iter().enumerate().filter(|o| !o.1.is_empty());
            for (k, output) in named {
                if made.insert(output.clone(), (n, k)).is_some() {
                    return Err(node.wrong(format_args!("makes \"{output}\", which another makes")));
                }
            }
        }
        let mut constants = HashMap::new();
        for bytes in &initializer {
            let tensor = TensorMessage::decode(&bytes[..]).map_err(not_onnx)?;
            constants.insert(tensor.name.clone(), tensor);
        }
        let mut inputs = Vec::new();
        for bytes in &input {
            let value = ValueMessage::decode(&bytes[..]).map_err(not_onnx)?;
            // Files of early versions list constants as inputs, too.
            if !constants.contains_key(&value.name) {
                inputs.push(Input::of(value));
            }
        }
        let output = output.first().ok_or("its graph has no output")?;
        Ok(Self {
            nodes,
            made,
            constants,
            inputs,
            output: ValueMessage::decode(&output[..]).map_err(not_onnx)?.name,
            folder: file.parent().unwrap_or(Path::new("")).to_path_buf(),
            beside: RefCell::new(None),
        })
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node that makes a value, and which of its outputs it is.
    pub(crate) fn maker(&self, name: &str) -> Option<(&Node, usize)> {
        let (n, k) = *self.made.get(name)?;
        Some((&self.nodes[n], k))
    }

    /// The file beside the graph that holds its numbers, if one was read.
    pub(crate) fn beside(self) -> Option<PathBuf> {
        self.beside.into_inner().map(|(file, _)| file)
    }

    /// The numbers of a value that is the same whatever comes in; none if it is not.
    pub(crate) fn constant(&self, name: &str) -> Result<Option<Tensor>, String> {
        let (mut name, mut turned) = (name, Vec::new());
        // A graph without circles is at most so deep.
        for _ in 0..=self.nodes.len() {
            let found = match self.constants.get(name) {
                Some(tensor) => Some(self.tensor(tensor, name)?),
                None => match self.maker(name) {
                    Some((node, 0)) if node.op == "Constant" => Some(self.written(node)?),
                    Some((node, 0)) if node.op == "Identity" => {
                        name = node.needed(0)?;
                        continue;
                    }
                    Some((node, 0)) if node.op == "Transpose" => {
                        turned.push(node);
                        name = node.needed(0)?;
                        continue;
                    }
                    _ => None,
                },
            };
            let Some(mut tensor) = found else {
                return Ok(None);
            };
            for node in turned.iter().rev() {
                tensor = transposed(node, tensor)?;
            }
            return Ok(Some(tensor));
        }
        Ok(None)
    }

    /// The number of a constant that has one alone.
    pub(crate) fn single(&self, name: &str) -> Result<Option<f64>, String> {
        let found = self.constant(name)?;
        Ok(found.and_then(|t| match t.data[..] {
            [x] => Some(x),
            _ => None,
        }))
    }

    /// The value of a node `Constant`.
    fn written(&self, node: &Node) -> Result<Tensor, String> {
        let list = |data: Vec<f64>| Tensor { shape: vec![data.len()], data };
        let get = |name: &str| node.attribute(name);
        if let Some(tensor) = get("value").and_then(|a| a.t.as_ref()) {
            return self.tensor(tensor, &node.name);
        }
        if let Some(a) = get("value_float") {
            return Ok(list(vec![f64::from(a.f)]));
        }
        if let Some(a) = get("value_floats") {
            return Ok(list(a.floats.iter().map(|x| f64::from(*x)).collect()));
        }
        if let Some(a) = get("value_int") {
            return Ok(list(vec![a.i as f64]));
        }
        if let Some(a) = get("value_ints") {
            return Ok(list(a.ints.iter().map(|x| *x as f64).collect()));
        }
        Err(node.wrong("has no numbers"))
    }

    /// The numbers of a message.
    fn tensor(&self, tensor: &TensorMessage, name: &str) -> Result<Tensor, String> {
        let dims = tensor.dims.iter().map(|d| usize::try_from(*d));
        let shape = dims.collect::<Result<Vec<_>, _>>();
        let shape = shape.map_err(|_| format!("\"{name}\" has a negative size"))?;
        let count = (shape.iter()).try_fold(1_usize, |n, d| n.checked_mul(*d));
        let count = count
            .filter(|n| *n <= MOST_NUMBERS)
            .ok_or_else(|| format!("\"{name}\" has more than {MOST_NUMBERS} numbers"))?;
        let (wide, beside);
        let raw = match tensor.data_location {
            0 => &tensor.raw_data[..],
            _ => {
                beside = self.elsewhere(tensor, name)?;
                &beside[..]
            }
        };
        let kind = tensor.data_type;
        let data: Vec<f64> = match i64::from(kind) {
            FLOAT => {
                wide = 4;
                let each = raw.as_chunks::<4>().0.iter();
                let own = tensor.float_data.iter().copied();
                let raw = each.map(|b| f32::from_le_bytes(*b));
                raw.chain(own).map(f64::from).collect()
            }
            DOUBLE => {
                wide = 8;
                let each = raw.as_chunks::<8>().0.iter();
                let own = tensor.double_data.iter().copied();
                each.map(|b| f64::from_le_bytes(*b)).chain(own).collect()
            }
            _ if kind == INT64 => {
                wide = 8;
                let each = raw.as_chunks::<8>().0.iter();
                let own = tensor.int64_data.iter().copied();
                let raw = each.map(|b| i64::from_le_bytes(*b));
                raw.chain(own).map(|x| x as f64).collect()
            }
            _ if kind == INT32 => {
                wide = 4;
                let each = raw.as_chunks::<4>().0.iter();
                let own = tensor.int32_data.iter().copied();
                let raw = each.map(|b| i32::from_le_bytes(*b));
                raw.chain(own).map(f64::from).collect()
            }
            _ => {
                return Err(format!(
                    "\"{name}\" has numbers of ONNX's type {kind}; float32 and float64 are read"
                ));
            }
        };
        if data.len() != count || raw.len() % wide != 0 {
            let found = data.len();
            return Err(format!("\"{name}\" of {shape:?} has {found} numbers"));
        }
        if !all_finite(&data) {
            return Err(format!("\"{name}\" has numbers that are not finite"));
        }
        Ok(Tensor { shape, data })
    }

    /// The bytes of a tensor in the file beside the graph, which PyTorch calls `NAME.onnx.data`.
    fn elsewhere(&self, tensor: &TensorMessage, name: &str) -> Result<Vec<u8>, String> {
        let entry = |key: &str| {
            let mut all = tensor.external_data.iter();
            all.find(|e| e.key == key).map(|e| e.value.as_str())
        };
        let location = entry("location").unwrap_or_default();
        let inside = Path::new(location);
        let mut parts = inside.components();
        let below = matches!(parts.next(), Some(Component::Normal(_)));
        if !below || !parts.all(|c| matches!(c, Component::Normal(_))) {
            return Err(format!("\"{name}\" is in \"{location}\", which is not beside the file"));
        }
        let file = self.folder.join(inside);
        let mut read = self.beside.borrow_mut();
        if read.is_none() {
            let bytes = files::read(&file, MOST_BYTES).map_err(|e| {
                let shown = file.display();
                format!("its numbers are in {shown}, which cannot be read: {e}")
            })?;
            *read = Some((file.clone(), bytes));
        }
        let Some((known, bytes)) = read.as_ref().filter(|(known, _)| *known == file) else {
            return Err(format!(
                "\"{name}\" is in \"{location}\", other numbers in another file; one is read"
            ));
        };
        let number = |key: &str, without: usize| match entry(key) {
            None => Some(without),
            Some(text) => text.parse::<usize>().ok(),
        };
        let start = number("offset", 0).filter(|s| *s <= bytes.len());
        let found = start.and_then(|start| {
            let end = start.checked_add(number("length", bytes.len() - start)?)?;
            bytes.get(start..end)
        });
        let found = found.map(<[u8]>::to_vec);
        found.ok_or_else(|| format!("\"{name}\" lies outside of {}", known.display()))
    }
}

impl Input {
    fn of(value: ValueMessage) -> Self {
        let shape = value.kind.and_then(|k| k.tensor).and_then(|t| t.shape);
        let size = |n: i64| usize::try_from(n).ok().filter(|n| *n > 0);
        Self {
            name: value.name,
            dims: shape.map(|s| s.dim.iter().map(|d| size(d.value)).collect()),
        }
    }
}

/// Rows as columns.
fn transposed(node: &Node, tensor: Tensor) -> Result<Tensor, String> {
    let perm = node.attribute("perm").map_or(&[1, 0][..], |a| &a.ints);
    let [rows, columns] = match tensor.shape[..] {
        [rows, columns] if perm == [1, 0] => [rows, columns],
        _ => return Err(node.wrong("turns a constant that is no matrix")),
    };
    let at = |c: usize| (0..rows).map(move |r| r * columns + c);
    let order = (0..columns).flat_map(at);
    Ok(Tensor { data: order.map(|i| tensor.data[i]).collect(), shape: vec![columns, rows] })
}
