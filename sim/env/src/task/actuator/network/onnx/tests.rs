//! Graphs that no actuator's network is, and files that are damaged or want too much.

#![allow(clippy::unwrap_used)]

use super::{Parts, parts};
use ostler_base::onnx::*;
use ostler_model::Activation;
use prost::Message;
use std::path::Path;

fn tensor(name: &str, dims: &[i64]) -> TensorMessage {
    let count = dims.iter().product::<i64>();
    TensorMessage {
        dims: dims.to_vec(),
        data_type: 1,
        float_data: (0..count).map(|i| 0.1 * i as f32 - 0.3).collect(),
        name: name.into(),
        ..TensorMessage::default()
    }
}

fn whole(key: &str, i: i64) -> AttributeMessage {
    AttributeMessage { name: key.into(), i, ..AttributeMessage::default() }
}

fn real(key: &str, f: f32) -> AttributeMessage {
    AttributeMessage { name: key.into(), f, ..AttributeMessage::default() }
}

/// `op: inputs -> output`, such as `Gemm first: x w b -> y`.
fn node(text: &str, attributes: &[AttributeMessage]) -> NodeMessage {
    let (head, rest) = text.split_once(": ").unwrap();
    let (input, output) = rest.split_once(" -> ").unwrap();
    let (op, name) = head.split_once(' ').unwrap_or((head, ""));
    let names = |list: &str| {
        let each = list.split(' ').map(|n| n.replace('_', ""));
        each.collect::<Vec<_>>()
    };
    NodeMessage {
        input: names(input),
        output: names(output),
        name: name.into(),
        op_type: op.into(),
        attribute: attributes.iter().map(Message::encode_to_vec).collect(),
        domain: String::new(),
    }
}

fn value(name: &str, dims: &[i64]) -> Vec<u8> {
    let size = |n: &i64| DimMessage { value: *n, ..DimMessage::default() };
    let shape = Some(ShapeMessage { dim: dims.iter().map(size).collect() });
    ValueMessage {
        name: name.into(),
        kind: Some(TypeMessage { tensor: Some(TensorType { shape, ..TensorType::default() }) }),
    }
    .encode_to_vec()
}

/// A file whose graph takes `x` of these dimensions, and `h`, and gives `y`.
fn file(dims: &[i64], nodes: &[NodeMessage], tensors: &[TensorMessage]) -> Vec<u8> {
    ModelFile {
        graph: Some(GraphMessage {
            node: nodes.iter().map(Message::encode_to_vec).collect(),
            initializer: tensors.iter().map(Message::encode_to_vec).collect(),
            input: vec![value("x", dims), value("h", &[1, 1, 2])],
            output: vec![value("y", &[1, 1])],
            ..GraphMessage::default()
        }),
        ..ModelFile::default()
    }
    .encode_to_vec()
}

/// Layers [2][4] and [1][2], an LSTM of 2, numbers for other things.
fn numbers() -> Vec<TensorMessage> {
    let mut one = tensor("one", &[1]);
    one.float_data = vec![1.0];
    let mut index = TensorMessage {
        data_type: 7,
        raw_data: (-1_i64).to_le_bytes().to_vec(),
        ..tensor("index", &[])
    };
    index.float_data.clear();
    vec![
        tensor("w", &[2, 4]),
        tensor("b", &[2]),
        tensor("v", &[1, 2]),
        tensor("c", &[1]),
        tensor("W", &[1, 8, 4]),
        tensor("R", &[1, 8, 2]),
        tensor("B", &[1, 16]),
        tensor("s", &[1, 1, 2]),
        one,
        index,
    ]
}

fn read(dims: &[i64], nodes: &[NodeMessage], lstm: bool) -> Result<Parts, String> {
    let bytes = file(dims, nodes, &numbers());
    parts(&bytes, Path::new("motor.onnx"), lstm).map(|p| p.0)
}

/// The reason for which a graph is refused.
fn refused(dims: &[i64], nodes: &[NodeMessage], lstm: bool) -> String {
    read(dims, nodes, lstm).err().unwrap()
}

/// Two layers, what stands between them.
fn two(between: &[NodeMessage]) -> Vec<NodeMessage> {
    let right = [whole("transB", 1)];
    let mut all = vec![node("Gemm first: x w b -> p", &right)];
    all.extend_from_slice(between);
    all.push(node("Gemm second: q v c -> y", &right));
    all
}

#[test]
fn layers_are_read_whatever_order_the_nodes_have() {
    let mut nodes = two(&[node("Elu: p -> e", &[]), node("Identity: e -> q", &[])]);
    nodes.reverse();
    let found = read(&[0, 4], &nodes, false).unwrap();
    assert!(found.cells.is_empty());
    let [first, second] = &found.layers[..] else {
        panic!("{} layers", found.layers.len());
    };
    assert_eq!((first.inputs, first.bias.len()), (4, 2));
    assert_eq!(first.then, Activation::Elu);
    assert_eq!((second.inputs, second.bias.len()), (2, 1));
    assert_eq!(second.then, Activation::Nothing);
    let expected = |i: usize| f64::from(0.1 * i as f32 - 0.3);
    assert_eq!(first.weight, (0..8).map(expected).collect::<Vec<_>>());
}

#[test]
fn a_matrix_that_is_not_turned_and_factors_of_gemm_count() {
    let by = [real("alpha", 2.0), real("beta", -1.0)];
    let nodes = [
        node("MatMul: x W2 -> p", &[]),
        node("Add: b p -> q", &[]),
        node("Gemm: q V2 c -> y", &by),
    ];
    let mut tensors = numbers();
    tensors.push(tensor("W2", &[4, 2]));
    tensors.push(tensor("V2", &[2, 1]));
    let bytes = file(&[5, 0, 4], &nodes, &tensors);
    let (found, beside) = parts(&bytes, Path::new("m.onnx"), false).unwrap();
    assert_eq!(beside, None);
    let at = |i: usize| f64::from(0.1 * i as f32 - 0.3);
    let turned: Vec<f64> = [0, 2, 4, 6, 1, 3, 5, 7].map(at).to_vec();
    assert_eq!(found.layers[0].weight, turned);
    assert_eq!(found.layers[0].bias, [at(0), at(1)]);
    assert_eq!(found.layers[1].weight, [2.0 * at(0), 2.0 * at(1)]);
    assert_eq!(found.layers[1].bias, [-at(0)]);
}

#[test]
fn any_other_graph_is_refused_with_the_node_that_does_not_fit() {
    let x = [1, 4];
    let only = |text: &str, a: &[AttributeMessage]| two(&[node(text, a)]);
    let cases: Vec<(Vec<NodeMessage>, &str)> = vec![
        (only("Conv odd: p w -> q", &[]), "node \"odd\" (Conv) is no part of"),
        (only("Softmax: p -> q", &[]), "node \"q\" (Softmax) is no part of"),
        (only("Add sum: p p -> q", &[]), "node \"sum\" (Add) does not add constant"),
        (only("Mul by: p one -> q", &[]), "node \"by\" (Mul) multiplies; factors"),
        (only("Div by: p one -> q", &[]), "node \"by\" (Div) divides"),
        (only("Elu e: p -> q", &[real("alpha", 2.0)]), "node \"e\" (Elu) has an alpha of 2"),
        (only("Gather g: p index -> q", &[]), "node \"g\" (Gather) takes a part"),
        (
            two(&[node("Tanh a: p -> t", &[]), node("Relu b: t -> q", &[])]),
            "node \"b\" (Relu) is a second activation",
        ),
        (
            two(&[node("Tanh a: p -> t", &[]), node("Add b: t b -> q", &[])]),
            "node \"b\" (Add) adds to what is no layer's output",
        ),
        (
            vec![node("Gemm g: x h c -> y", &[])],
            "node \"g\" (Gemm) wants constant numbers for \"h\"",
        ),
        (
            vec![node("Gemm g: x w b -> y", &[whole("transA", 1)])],
            "node \"g\" (Gemm) turns its input",
        ),
        (
            vec![node("Gemm g: x w v -> y", &[whole("transB", 0)])],
            "node \"g\" (Gemm) has 4 outputs, and 2 numbers are added",
        ),
        (vec![node("Gemm g: x W b -> y", &[])], "has weights of [1, 8, 4]"),
        (vec![node("Gemm g: x -> y", &[])], "node \"g\" (Gemm) lacks its input 1"),
        (vec![node("Tanh t: x -> y", &[])], "node \"t\" (Tanh) is not behind a layer"),
        (vec![node("Identity: x -> y", &[])], "no fully connected layer"),
        (vec![node("Identity: z -> y", &[])], "nothing in it makes \"z\""),
        (vec![node("Identity: z -> y", &[]), node("Relu: y -> z", &[])], "goes round in a circle"),
        (
            vec![node("Tanh a: x -> y", &[]), node("Relu b: x -> y", &[])],
            "node \"b\" (Relu) makes \"y\", which another makes",
        ),
        (two(&[node("Split s: p -> z q", &[])]), "node \"s\" (Split) gives \"q\", its output 1"),
        (
            two(&[node("Cast c: p -> q", &[whole("to", 7)])]),
            "node \"c\" (Cast) makes numbers of ONNX's type 7",
        ),
    ];
    for (nodes, why) in cases {
        let said = refused(&x, &nodes, false);
        assert!(said.contains(why), "{said}\n{why}");
    }
    let mut other = two(&[node("Relu r: p -> q", &[])]);
    other[1].domain = "com.microsoft".into();
    let said = refused(&x, &other, false);
    assert!(said.contains("node \"r\" (com.microsoft.Relu)"), "{said}");
}

#[test]
fn inputs_that_are_several_rows_are_refused() {
    let fine = two(&[node("Relu: p -> q", &[])]);
    let mut flat = fine.clone();
    flat[0].input[0] = "f".into();
    flat.push(node("Flatten: x -> f", &[]));
    for (dims, nodes, ok) in [
        (&[1, 4][..], &fine, true),
        (&[12, 4], &fine, true),
        (&[0, 0, 4], &fine, true),
        (&[1, 5], &fine, false),
        (&[1, 1, 4], &flat, true),
        (&[0, 4], &flat, true),
        (&[1, 2, 2], &flat, false),
        (&[12, 4], &flat, false),
    ] {
        let found = read(dims, nodes, false);
        assert_eq!(found.is_ok(), ok, "{dims:?}");
        if let Err(why) = found {
            assert!(why.contains("export it for one motor and one step"), "{why}");
        }
    }
}

#[test]
fn lstms_of_another_kind_are_refused() {
    let with = |lstm: &str, a: &[AttributeMessage], behind: &[NodeMessage]| {
        let mut all = vec![node(lstm, a)];
        all.extend_from_slice(behind);
        all.push(node("Gemm out: q v c -> y", &[whole("transB", 1)]));
        all
    };
    let squeeze = [node("Squeeze: p -> q", &[])];
    let words = |key: &str, words: &[&str]| AttributeMessage {
        name: key.into(),
        s: words[0].into(),
        strings: words.iter().map(|w| w.as_bytes().to_vec()).collect(),
        ..AttributeMessage::default()
    };
    let x = [1, 1, 4];
    let found = read(&x, &with("LSTM l: x W R B _ h h -> p", &[], &squeeze), true).unwrap();
    // Rows of ONNX's gates input, output, forget, cell; PyTorch's: input, forget, cell, output.
    let row = |gate: usize| f64::from(0.1 * (4 * 2 * gate) as f32 - 0.3);
    for (ours, theirs) in [(0, 0), (1, 2), (2, 3), (3, 1)] {
        assert_eq!(found.cells[0].weight[ours * 2 * 6], row(theirs));
    }
    let cases = [
        (
            with("LSTM l: x W R B -> p", &[words("direction", &["reverse"])], &squeeze),
            "node \"l\" (LSTM) does not go forward alone",
        ),
        (
            with(
                "LSTM l: x W R B -> p",
                &[words("activations", &["Relu", "Tanh", "Tanh"])],
                &squeeze,
            ),
            "node \"l\" (LSTM) has activations",
        ),
        (with("LSTM l: x W R B -> p", &[whole("input_forget", 1)], &squeeze), "has coupled gates"),
        (with("LSTM l: x W R B s -> p", &[], &squeeze), "has lengths of sequences"),
        (with("LSTM l: x W R B _ h h s -> p", &[], &squeeze), "has peepholes"),
        (
            with("LSTM l: x W R B _ s h -> p", &[], &squeeze),
            "node \"l\" (LSTM) does not begin at zero",
        ),
        (with("LSTM l: x W R b -> p", &[], &squeeze), "has 2 biases for 8 rows"),
        (with("LSTM l: x W W B -> p", &[], &squeeze), "has weights of [1, 8, 4]"),
        (
            with("LSTM l: x W R B -> p", &[], &[node("Tanh t: p -> q", &[])]),
            "node \"t\" (Tanh) follows an LSTM",
        ),
        (with("LSTM l: x W R B -> p z q", &[], &[]), "node \"l\" (LSTM) gives \"q\", its output 2"),
        (
            vec![
                node("Gemm g: x w b -> p", &[whole("transB", 1)]),
                node("LSTM l: p W R B -> q", &[]),
                node("Gemm out: q v c -> y", &[whole("transB", 1)]),
            ],
            "node \"g\" (Gemm) is in front of an LSTM",
        ),
    ];
    for (nodes, why) in cases {
        let said = refused(&x, &nodes, true);
        assert!(said.contains(why), "{said}\n{why}");
    }
    let lstm = with("LSTM l: x W R B -> p", &[], &squeeze);
    let said = refused(&[1, 10, 4], &lstm, true);
    assert!(said.contains("one step"), "{said}");
    assert!(refused(&x, &lstm, false).contains("model = \"lstm\" has one"));
    let mlp = two(&[node("Relu: p -> q", &[])]);
    assert!(refused(&[1, 4], &mlp, true).contains("model = \"mlp\" needs none"));
}

#[test]
fn numbers_that_are_not_there_or_too_many_are_refused() {
    let nodes = [node("Gemm: x w c -> y", &[whole("transB", 1)])];
    let with = |change: &dyn Fn(&mut TensorMessage)| {
        let mut tensors = numbers();
        change(&mut tensors[0]);
        parts(&file(&[1, 4], &nodes, &tensors), Path::new("m.onnx"), false).err().unwrap()
    };
    type Change = fn(&mut TensorMessage);
    let beside = |key: &str, at: &str| EntryMessage { key: key.into(), value: at.into() };
    let cases: [(Change, &str); 7] = [
        (|t| t.dims = vec![i64::MAX, 4], "more than 262144 numbers"),
        (|t| t.dims = vec![1 << 40, 1 << 40], "more than 262144 numbers"),
        (|t| t.dims = vec![-2, 4], "negative size"),
        (|t| t.float_data.truncate(3), "has 3 numbers"),
        (|t| t.raw_data = vec![0; 7], "numbers"),
        (|t| t.float_data[0] = f32::NAN, "not finite"),
        (|t| t.data_type = 10, "ONNX's type 10; float32 and float64"),
    ];
    for (change, why) in cases {
        let said = with(&change);
        assert!(said.contains(why), "{said}\n{why}");
    }
    for (at, why) in [
        ("../w.data", "not beside the file"),
        ("/etc/passwd", "not beside the file"),
        ("", "not beside the file"),
        ("none.data", "cannot be read"),
    ] {
        let said = with(&|t| {
            t.data_location = 1;
            t.external_data = vec![beside("location", at)];
        });
        assert!(said.contains(why), "{said}\n{why}");
    }
    for bytes in [&b""[..], b"no message", &[0x0a, 0xff, 0xff]] {
        let said = parts(bytes, Path::new("m.onnx"), false).err().unwrap();
        assert!(said.contains("no ONNX file"), "{said}");
    }
    let crowd = vec![NodeMessage::default(); 5000];
    assert!(refused(&[1, 4], &crowd, false).contains("more than 4096"));
}

#[test]
fn numbers_beside_the_file_are_read_within_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let at = |i: usize| 0.25 * i as f32;
    let bytes: Vec<u8> = (0..10).flat_map(|i| at(i).to_le_bytes()).collect();
    std::fs::write(folder.path().join("w.data"), bytes).unwrap();
    let nodes = [node("Gemm: x w c -> y", &[whole("transB", 1)])];
    let with = |offset: &str, length: &str| {
        let mut tensors = numbers();
        let entry = |key: &str, value: &str| EntryMessage { key: key.into(), value: value.into() };
        tensors[0].float_data.clear();
        tensors[0].data_location = 1;
        tensors[0].external_data =
            vec![entry("location", "w.data"), entry("offset", offset), entry("length", length)];
        let place = folder.path().join("m.onnx");
        parts(&file(&[1, 4], &nodes, &tensors), &place, false)
    };
    let (found, beside) = with("8", "32").unwrap();
    let expected: Vec<f64> = (2..10).map(|i| f64::from(at(i))).collect();
    assert_eq!(found.layers[0].weight, expected);
    assert_eq!(beside, Some(folder.path().join("w.data")));
    for (offset, length) in [("12", "32"), ("8", "18446744073709551615"), ("41", "0"), ("-1", "32")]
    {
        let said = with(offset, length).err().unwrap();
        assert!(said.contains("lies outside of"), "{said}");
    }
}
