//! Operators of ONNX files that are run by libtorch: which attributes each may have, and what it
//! makes. "ONNX Operators" of the ONNX project says what they mean.

use super::onnx_run::{Node, numbers};
use ostler_collector::transfer::host_integers;
use std::collections::HashMap;
use tch::{Kind, TchError, Tensor};

/// An operator: its name, least and most inputs, and its attributes.
type Operator = (&'static str, usize, usize, &'static [Attribute]);

/// Names of attributes, with the numbers of `AttributeProto.AttributeType`.
type Attribute = (&'static str, i32);

const FLOAT: i32 = 1;
const INT: i32 = 2;
const TENSOR: i32 = 4;
const FLOATS: i32 = 6;
const INTS: i32 = 7;
const MANY: usize = usize::MAX;
const AXES: Attribute = ("axes", INTS);
const AXIS: Attribute = ("axis", INT);
const KEEPDIMS: Attribute = ("keepdims", INT);

const OPERATORS: [Operator; 37] = [
    ("Abs", 1, 1, &[]),
    ("Add", 2, 2, &[]),
    ("ArgMax", 1, 1, &[AXIS, KEEPDIMS, ("select_last_index", INT)]),
    ("Cast", 1, 1, &[("to", INT), ("saturate", INT)]),
    ("Clip", 1, 3, &[("min", FLOAT), ("max", FLOAT)]),
    ("Concat", 1, MANY, &[AXIS]),
    (
        "Constant",
        0,
        0,
        &[
            ("value", TENSOR),
            ("value_float", FLOAT),
            ("value_floats", FLOATS),
            ("value_int", INT),
            ("value_ints", INTS),
        ],
    ),
    ("Div", 2, 2, &[]),
    ("Elu", 1, 1, &[("alpha", FLOAT)]),
    ("Equal", 2, 2, &[]),
    ("Exp", 1, 1, &[]),
    ("Flatten", 1, 1, &[AXIS]),
    ("Gather", 2, 2, &[AXIS]),
    ("Gemm", 2, 3, &[("alpha", FLOAT), ("beta", FLOAT), ("transA", INT), ("transB", INT)]),
    ("Greater", 2, 2, &[]),
    ("Identity", 1, 1, &[]),
    ("LayerNormalization", 2, 3, &[AXIS, ("epsilon", FLOAT), ("stash_type", INT)]),
    ("LeakyRelu", 1, 1, &[("alpha", FLOAT)]),
    ("Less", 2, 2, &[]),
    ("MatMul", 2, 2, &[]),
    ("Max", 1, MANY, &[]),
    ("Min", 1, MANY, &[]),
    ("Mul", 2, 2, &[]),
    ("Neg", 1, 1, &[]),
    ("Not", 1, 1, &[]),
    ("Pow", 2, 2, &[]),
    ("ReduceMean", 1, 2, &[AXES, KEEPDIMS, ("noop_with_empty_axes", INT)]),
    ("Relu", 1, 1, &[]),
    ("Reshape", 1, 2, &[("shape", INTS), ("allowzero", INT)]),
    ("Sigmoid", 1, 1, &[]),
    ("Softplus", 1, 1, &[]),
    ("Sqrt", 1, 1, &[]),
    ("Squeeze", 1, 2, &[AXES]),
    ("Sub", 2, 2, &[]),
    ("Tanh", 1, 1, &[]),
    ("Unsqueeze", 1, 2, &[AXES]),
    ("Where", 3, 3, &[]),
];

/// Values of attributes that change what an operator means to something that is not run.
const REFUSED: [(&str, &str, i64); 2] =
    [("Reshape", "allowzero", 0), ("LayerNormalization", "stash_type", 1)];

/// Refuses a node that would not be run as it is meant. `own`: its operator is one of ONNX's;
/// `more`: outputs beside the first that have names; `opset`: the version of the operators.
///
/// # Errors
/// In words: what is not supported.
pub(super) fn check(node: &Node, own: bool, more: usize, opset: i64) -> Result<(), String> {
    let Node { op, output, .. } = node;
    let known = OPERATORS.iter().find(|(name, ..)| own && name == op);
    let Some((_, least, most, attributes)) = known else {
        let names: Vec<&str> = OPERATORS.iter().map(|(name, ..)| *name).collect();
        let names = names.join(", ");
        return Err(format!("its operator {op} is not supported; these are: {names}"));
    };
    let whose = format!("of its node {op} of \"{output}\"");
    let inputs = node.inputs.len();
    if more > 0 {
        return Err(format!("outputs {whose} beside the first are not supported"));
    }
    if inputs < *least || inputs > *most || node.inputs[..*least].iter().any(String::is_empty) {
        return Err(format!("{inputs} inputs {whose} are not what it takes"));
    }
    for attribute in &node.attributes {
        let name = attribute.name.as_str();
        let own = attributes.iter().find(|(own, _)| *own == name);
        // Since operator set 11 these are inputs.
        let old = op == "Clip" && opset >= 11;
        match own.filter(|_| !old) {
            None => return Err(format!("the attribute {name} {whose} is not supported")),
            Some((_, kind)) if attribute.kind != 0 && attribute.kind != *kind => {
                return Err(format!(
                    "the attribute {name} {whose} has another type than ONNX says"
                ));
            }
            Some(_) => {}
        }
        let meant = REFUSED.iter().find(|(of, own, _)| of == op && *own == name);
        if let Some((.., meant)) = meant.filter(|(.., meant)| *meant != attribute.i) {
            return Err(format!(
                "the attribute {name} = {} {whose} is not supported; {meant} is",
                attribute.i
            ));
        }
    }
    match op.as_str() {
        "Cast" => kind(node.int("to", 0)).map(drop),
        _ => Ok(()),
    }
}

/// The value of a node that has no inputs.
///
/// # Errors
/// In words: it has none, or one of a type that is not supported.
pub(super) fn constant(node: &Node) -> Result<Tensor, String> {
    let [attribute] = &node.attributes[..] else {
        return Err(format!("its node Constant of \"{}\" has not one value", node.output));
    };
    let value = match (attribute.name.as_str(), &attribute.t) {
        ("value", Some(t)) => return numbers(t),
        ("value_float", _) => {
            Tensor::f_from_slice(&[attribute.f]).and_then(|t| t.f_view(&[0_i64; 0][..]))
        }
        ("value_int", _) => {
            Tensor::f_from_slice(&[attribute.i]).and_then(|t| t.f_view(&[0_i64; 0][..]))
        }
        ("value_floats", _) => Tensor::f_from_slice(&attribute.floats),
        ("value_ints", _) => Tensor::f_from_slice(&attribute.ints),
        _ => return Err(format!("its node Constant of \"{}\" has no value", node.output)),
    };
    value.map_err(|e| format!("its constant \"{}\" cannot be read: {e}", node.output))
}

/// What ONNX calls a type of numbers (`TensorProto.DataType`).
pub(super) fn type_name(number: i32) -> String {
    let names = [
        "undefined",
        "float",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "double",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
    ];
    let name = usize::try_from(number).ok().and_then(|k| names.get(k));
    name.map_or_else(|| number.to_string(), ToString::to_string)
}

/// libtorch's type.
fn kind(number: i64) -> Result<Kind, String> {
    Ok(match number {
        1 => Kind::Float,
        6 => Kind::Int,
        7 => Kind::Int64,
        9 => Kind::Bool,
        11 => Kind::Double,
        other => {
            let name = type_name(i32::try_from(other).unwrap_or(i32::MAX));
            return Err(format!(
                "its operator Cast to {name} is not supported; float, double, int32, int64 and bool are"
            ));
        }
    })
}

/// What libtorch says without its list of calls.
pub(crate) fn words(e: &TchError) -> String {
    let text = match e {
        TchError::Torch(text) => text.clone(),
        other => other.to_string(),
    };
    let text = text.split("\nException raised from").next().unwrap_or_default();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next().unwrap_or_default().to_string()
}

fn wrong(why: impl Into<String>) -> TchError {
    TchError::Torch(why.into())
}

/// An axis counted from the first; negative ones count from the last.
fn axis_of(axis: i64, rank: usize) -> Result<usize, TchError> {
    let from_first = if axis < 0 { axis + rank as i64 } else { axis };
    let inside = usize::try_from(from_first).ok().filter(|k| *k < rank);
    inside.ok_or_else(|| wrong(format!("there is no axis {axis} of {rank}")))
}

/// The same of all, ascending, each once.
fn axes_of(axes: &[i64], rank: usize) -> Result<Vec<usize>, TchError> {
    let mut all: Vec<usize> = axes.iter().map(|a| axis_of(*a, rank)).collect::<Result<_, _>>()?;
    all.sort_unstable();
    match all.windows(2).all(|two| two[0] < two[1]) {
        true => Ok(all),
        false => Err(wrong(format!("its axes {axes:?} name one twice"))),
    }
}

/// What a node makes.
///
/// # Errors
/// libtorch refuses; its inputs are not what the operator takes.
pub(super) fn run(node: &Node, values: &HashMap<&str, Tensor>) -> Result<Tensor, TchError> {
    let maybe = |k: usize| -> Option<&Tensor> {
        let name = node.inputs.get(k).filter(|n| !n.is_empty())?;
        values.get(name.as_str())
    };
    let x = |k: usize| -> Result<&Tensor, TchError> {
        maybe(k).ok_or_else(|| TchError::Torch(format!("its input {k} is missing")))
    };
    // Whole numbers of an attribute, or of an input in newer operator sets.
    let whole = |name: &str, k: usize| -> Result<Vec<i64>, TchError> {
        match (node.attribute(name), maybe(k)) {
            (Some(a), _) => Ok(a.ints.clone()),
            (None, Some(t)) => host_integers(t),
            (None, None) => Ok(Vec::new()),
        }
    };
    let kept = node.int("keepdims", 1) != 0;
    match node.op.as_str() {
        "Identity" => Ok(x(0)?.shallow_clone()),
        "Abs" => x(0)?.f_abs(),
        "Neg" => x(0)?.f_neg(),
        "Exp" => x(0)?.f_exp(),
        "Sqrt" => x(0)?.f_sqrt(),
        "Add" => x(0)?.f_add(x(1)?),
        "Sub" => x(0)?.f_sub(x(1)?),
        "Mul" => x(0)?.f_mul(x(1)?),
        // Whole numbers are divided towards 0.
        "Div" => match is_whole(x(0)?) && is_whole(x(1)?) {
            true => x(0)?.f_div_tensor_mode(x(1)?, "trunc"),
            false => x(0)?.f_div(x(1)?),
        },
        // Of the type of its base.
        "Pow" => x(0)?.f_pow(x(1)?)?.f_to_kind(x(0)?.kind()),
        "Max" => (1..node.inputs.len()).try_fold(x(0)?.shallow_clone(), |y, k| y.f_maximum(x(k)?)),
        "Min" => (1..node.inputs.len()).try_fold(x(0)?.shallow_clone(), |y, k| y.f_minimum(x(k)?)),
        "MatMul" => x(0)?.f_matmul(x(1)?),
        "Equal" => x(0)?.f_eq_tensor(x(1)?),
        "Less" => x(0)?.f_lt_tensor(x(1)?),
        "Greater" => x(0)?.f_gt_tensor(x(1)?),
        "Not" => x(0)?.f_logical_not(),
        "Where" => x(1)?.f_where_self(x(0)?, x(2)?),
        "Relu" => x(0)?.f_relu(),
        "Tanh" => x(0)?.f_tanh(),
        "Sigmoid" => x(0)?.f_sigmoid(),
        "Softplus" => x(0)?.f_softplus(),
        "LeakyRelu" => {
            let (x, slope) = (x(0)?, node.float("alpha", 0.01));
            x.f_clamp_min(0.0)?.f_add(&x.f_clamp_max(0.0)?.f_mul_scalar(slope)?)
        }
        "Elu" => {
            // alpha (e^x - 1) below 0.
            let (x, alpha) = (x(0)?, node.float("alpha", 1.0));
            let below = x.f_clamp_max(0.0)?.f_expm1()?.f_mul_scalar(alpha)?;
            x.f_clamp_min(0.0)?.f_add(&below)
        }
        "Clip" => {
            let mut y = x(0)?.shallow_clone();
            if let Some(a) = node.attribute("min") {
                y = y.f_clamp_min(f64::from(a.f))?;
            }
            if let Some(low) = maybe(1) {
                y = y.f_maximum(low)?;
            }
            if let Some(a) = node.attribute("max") {
                y = y.f_clamp_max(f64::from(a.f))?;
            }
            match maybe(2) {
                Some(high) => y.f_minimum(high),
                None => Ok(y),
            }
        }
        "Gemm" => {
            let turned = |t: &Tensor, name: &str| match node.int(name, 0) {
                0 => Ok(t.shallow_clone()),
                _ => t.f_transpose(0, 1),
            };
            let y = turned(x(0)?, "transA")?.f_mm(&turned(x(1)?, "transB")?)?;
            let y = y.f_mul_scalar(node.float("alpha", 1.0))?;
            match maybe(2) {
                Some(c) => y.f_add(&c.f_mul_scalar(node.float("beta", 1.0))?),
                None => Ok(y),
            }
        }
        "Gather" => {
            let (x, at, size) = (x(0)?, x(1)?, x(0)?.size());
            let axis = axis_of(node.int("axis", 0), size.len())?;
            let flat = at.f_reshape([-1])?;
            // Negative places count from the end.
            let from_end = flat.f_add_scalar(size[axis])?;
            let flat = flat.f_where_self(&flat.f_ge(0)?, &from_end)?;
            let y = x.f_index_select(axis as i64, &flat)?;
            let mut shape = size[..axis].to_vec();
            shape.extend(at.size());
            shape.extend(&size[axis + 1..]);
            y.f_reshape(&shape[..])
        }
        "Concat" => {
            let all = (0..node.inputs.len()).map(&x);
            let all = all.collect::<Result<Vec<_>, _>>()?;
            Tensor::f_cat(&all, node.int("axis", 0))
        }
        "ArgMax" => {
            let (x, axis) = (x(0)?, axis_of(node.int("axis", 0), x(0)?.dim())?);
            match node.int("select_last_index", 0) {
                0 => x.f_argmax(axis as i64, kept),
                // The first one from the other end.
                _ => {
                    let last = x.size()[axis] - 1;
                    x.f_flip([axis as i64])?
                        .f_argmax(axis as i64, kept)?
                        .f_neg()?
                        .f_add_scalar(last)
                }
            }
        }
        "ReduceMean" => {
            let (x, axes) = (x(0)?, whole("axes", 1)?);
            match axes.is_empty() && node.int("noop_with_empty_axes", 0) != 0 {
                true => Ok(x.shallow_clone()),
                false if is_whole(x) => Err(wrong("means of whole numbers are not supported")),
                false => x.f_mean_dim(&axes[..], kept, x.kind()),
            }
        }
        "LayerNormalization" => {
            let (x, gain, size) = (x(0)?, x(1)?, x(0)?.size());
            let over = &size[axis_of(node.int("axis", -1), size.len())?..];
            if gain.size() != over || maybe(2).is_some_and(|bias| bias.size() != over) {
                return Err(wrong(format!("its scale or bias has not the shape {over:?}")));
            }
            x.f_layer_norm(over, Some(gain), maybe(2), node.float("epsilon", 1e-5), false)
        }
        "Cast" => x(0)?.f_to_kind(kind(node.int("to", 0)).map_err(TchError::Torch)?),
        "Reshape" => {
            let (x, mut shape) = (x(0)?, whole("shape", 1)?);
            for (k, n) in shape.iter_mut().enumerate() {
                if *n == 0 {
                    *n = x.size().get(k).copied().unwrap_or(1);
                }
            }
            x.f_reshape(&shape[..])
        }
        "Flatten" => {
            let (x, size, axis) = (x(0)?, x(0)?.size(), node.int("axis", 1));
            // The last one may stand behind the shape.
            let axis = match axis == size.len() as i64 {
                true => size.len(),
                false => axis_of(axis, size.len())?,
            };
            x.f_reshape([size[..axis].iter().product::<i64>(), size[axis..].iter().product()])
        }
        "Squeeze" => {
            let (mut y, size, axes) = (x(0)?.shallow_clone(), x(0)?.size(), whole("axes", 1)?);
            let axes = match axes.is_empty() {
                true => (0..size.len()).filter(|k| size[*k] == 1).collect(),
                false => axes_of(&axes, size.len())?,
            };
            for axis in axes.into_iter().rev() {
                if size[axis] != 1 {
                    return Err(wrong(format!("axis {axis} has {} places, not 1", size[axis])));
                }
                y = y.f_squeeze_dim(axis as i64)?;
            }
            Ok(y)
        }
        "Unsqueeze" => {
            let (mut y, axes) = (x(0)?.shallow_clone(), whole("axes", 1)?);
            for axis in axes_of(&axes, y.dim() + axes.len())? {
                y = y.f_unsqueeze(axis as i64)?;
            }
            Ok(y)
        }
        other => Err(TchError::Torch(format!("{other} is not supported"))),
    }
}

fn is_whole(x: &Tensor) -> bool {
    matches!(x.kind(), Kind::Int | Kind::Int64)
}
