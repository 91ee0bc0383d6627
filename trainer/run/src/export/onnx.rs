//! The graph as an ONNX file.
//!
//! Operators of set 17 that every runtime has: layers of their own, such as `GRU`, are made of
//! them.

use super::graph::{Function, Graph, Id, Op};
use ostler_learn::learner::nn::norm::EPS;
use ostler_sim::onnx::{
    AttributeMessage, DimMessage, EntryMessage, GraphMessage, ModelFile, NodeMessage, OperatorSet,
    ShapeMessage, TensorMessage, TensorType, TypeMessage, ValueMessage,
};
use prost::Message;

/// `TensorProto.DataType`.
const FLOAT: i32 = 1;
/// The same of whole numbers.
const INT64: i32 = 7;
/// `AttributeType`.
const KIND_INT: i32 = 2;
/// The same of lists of them.
const KIND_INTS: i32 = 7;

/// Nodes and numbers of a file that grows.
#[derive(Default)]
struct File {
    nodes: Vec<Vec<u8>>,
    numbers: Vec<Vec<u8>>,
    constants: usize,
}

impl File {
    fn node(&mut self, op: &str, inputs: &[&str], output: &str, attributes: &[AttributeMessage]) {
        let node = NodeMessage {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.to_string()],
            name: output.to_string(),
            op_type: op.to_string(),
            attribute: attributes.iter().map(Message::encode_to_vec).collect(),
            domain: String::new(),
        };
        self.nodes.push(node.encode_to_vec());
    }

    fn tensor(&mut self, dims: &[usize], kind: i32, raw: Vec<u8>) -> String {
        self.constants += 1;
        let name = format!("c{}", self.constants);
        let tensor = TensorMessage {
            dims: dims.iter().map(|d| *d as i64).collect(),
            data_type: kind,
            name: name.clone(),
            raw_data: raw,
            ..TensorMessage::default()
        };
        self.numbers.push(tensor.encode_to_vec());
        name
    }

    fn floats(&mut self, dims: &[usize], x: &[f32]) -> String {
        let raw = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(dims, FLOAT, raw)
    }

    fn row(&mut self, x: &[f32]) -> String {
        self.floats(&[x.len()], x)
    }

    fn whole(&mut self, dims: &[usize], x: &[i64]) -> String {
        let raw = x.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensor(dims, INT64, raw)
    }
}

fn int(name: &str, i: i64) -> AttributeMessage {
    AttributeMessage { name: name.into(), i, kind: KIND_INT, ..AttributeMessage::default() }
}

fn ints(name: &str, ints: &[i64]) -> AttributeMessage {
    AttributeMessage {
        name: name.into(),
        ints: ints.to_vec(),
        kind: KIND_INTS,
        ..AttributeMessage::default()
    }
}

/// A value `[N,width]` of the file's interface.
fn value(name: &str, width: usize) -> Vec<u8> {
    let any = DimMessage { param: "N".into(), ..DimMessage::default() };
    let columns = DimMessage { value: width as i64, ..DimMessage::default() };
    let shape = ShapeMessage { dim: vec![any, columns] };
    let tensor = TensorType { elem_type: FLOAT, shape: Some(shape) };
    ValueMessage { name: name.into(), kind: Some(TypeMessage { tensor: Some(tensor) }) }
        .encode_to_vec()
}

/// The bytes of a file with these metadata.
pub(crate) fn print(graph: &Graph, metadata: &[(String, String)]) -> Vec<u8> {
    let mut file = File::default();
    let names: Vec<String> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(id, node)| match node.op {
            Op::Input(name) => name.to_string(),
            _ => format!("v{id}"),
        })
        .collect();
    for (id, node) in graph.nodes.iter().enumerate() {
        print_node(&mut file, &names, id, &node.op, node.width);
    }
    for (name, id) in &graph.outputs {
        file.node("Identity", &[&names[*id]], name, &[]);
    }
    let outputs = graph.outputs.iter();
    let graph_message = GraphMessage {
        node: file.nodes,
        name: "policy".into(),
        initializer: file.numbers,
        input: graph.inputs().map(|(name, width)| value(name, width)).collect(),
        output: outputs.map(|(name, id)| value(name, graph.nodes[*id].width)).collect(),
    };
    let entries =
        metadata.iter().map(|(key, value)| EntryMessage { key: key.clone(), value: value.clone() });
    let model = ModelFile {
        ir_version: 8,
        producer_name: "ostler".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        graph: Some(graph_message),
        opset_import: vec![OperatorSet { domain: String::new(), version: 17 }],
        metadata_props: entries.collect(),
    };
    model.encode_to_vec()
}

fn print_node(file: &mut File, names: &[String], id: Id, op: &Op, width: usize) {
    let to = names[id].as_str();
    let of = |id: &Id| names[*id].as_str();
    match op {
        Op::Input(_) => {}
        Op::Shift(x, by) => {
            let by = file.row(by);
            file.node("Add", &[of(x), &by], to, &[]);
        }
        Op::Scale(x, by) => {
            let by = file.row(by);
            file.node("Mul", &[of(x), &by], to, &[]);
        }
        Op::AtLeast(x, low) => {
            let low = file.row(low);
            file.node("Max", &[of(x), &low], to, &[]);
        }
        Op::AtMost(x, high) => {
            let high = file.row(high);
            file.node("Min", &[of(x), &high], to, &[]);
        }
        Op::Dense(x, layer) => {
            let weight = file.floats(&[layer.outputs, layer.inputs], &layer.weight);
            let bias = file.row(&layer.bias);
            file.node("Gemm", &[of(x), &weight, &bias], to, &[int("transB", 1)]);
        }
        Op::Norm(x, [gain, bias]) => {
            let part = |name: &str| format!("{to}_{name}");
            let [mean, apart, square, var, safe, root, unit, scaled] =
                ["mean", "apart", "square", "var", "safe", "root", "unit", "scaled"].map(part);
            let (eps, gain, bias) = (file.row(&[EPS as f32]), file.row(gain), file.row(bias));
            file.node("ReduceMean", &[of(x)], &mean, &[ints("axes", &[1])]);
            file.node("Sub", &[of(x), &mean], &apart, &[]);
            file.node("Mul", &[&apart, &apart], &square, &[]);
            file.node("ReduceMean", &[&square], &var, &[ints("axes", &[1])]);
            file.node("Add", &[&var, &eps], &safe, &[]);
            file.node("Sqrt", &[&safe], &root, &[]);
            file.node("Div", &[&apart, &root], &unit, &[]);
            file.node("Mul", &[&unit, &gain], &scaled, &[]);
            file.node("Add", &[&scaled, &bias], to, &[]);
        }
        Op::Function(x, function) => {
            let op = match function {
                Function::Elu => "Elu",
                Function::Relu => "Relu",
                Function::Tanh => "Tanh",
                Function::Sigmoid => "Sigmoid",
            };
            file.node(op, &[of(x)], to, &[]);
        }
        Op::Sum(a, b) => file.node("Add", &[of(a), of(b)], to, &[]),
        Op::Difference(a, b) => file.node("Sub", &[of(a), of(b)], to, &[]),
        Op::Product(a, b) => file.node("Mul", &[of(a), of(b)], to, &[]),
        Op::Columns(x, columns) => {
            let columns = file.whole(&[columns.len()], columns);
            file.node("Gather", &[of(x), &columns], to, &[int("axis", 1)]);
        }
        Op::Beside(a, b) => file.node("Concat", &[of(a), of(b)], to, &[int("axis", 1)]),
        Op::Where([p, a, b]) => {
            let zero = file.row(&[0.0]);
            let (equal, holds) = (format!("{to}_equal"), format!("{to}_holds"));
            file.node("Equal", &[of(p), &zero], &equal, &[]);
            file.node("Not", &[&equal], &holds, &[]);
            file.node("Where", &[&holds, of(a), of(b)], to, &[]);
        }
        Op::Largest(x) => {
            let place = format!("{to}_place");
            file.node("ArgMax", &[of(x)], &place, &[int("axis", 1)]);
            file.node("Cast", &[&place], to, &[int("to", i64::from(FLOAT))]);
        }
        Op::Table(x, rows) => {
            let numbers: Vec<f32> = rows.iter().flatten().copied().collect();
            let table = file.floats(&[rows.len(), width], &numbers);
            let flat = file.whole(&[1], &[-1]);
            let (whole, which) = (format!("{to}_whole"), format!("{to}_which"));
            file.node("Cast", &[of(x)], &whole, &[int("to", i64::from(INT64))]);
            file.node("Reshape", &[&whole, &flat], &which, &[]);
            file.node("Gather", &[&table, &which], to, &[]);
        }
        Op::Below(x) => {
            let zero = file.row(&[0.0]);
            let less = format!("{to}_less");
            file.node("Less", &[of(x), &zero], &less, &[]);
            file.node("Cast", &[&less], to, &[int("to", i64::from(FLOAT))]);
        }
    }
}
