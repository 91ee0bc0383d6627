//! The graph as operations of libtorch: run, and traced into a TorchScript file.

use super::ExportError;
use super::graph::{Function, Graph, Op};
use crate::learner::nn::norm::EPS;
use std::path::Path;
use tch::{CModule, Kind, TchError, Tensor};

/// The graph's outputs for `inputs`, each `[N,width]`, in the order of [`Graph::inputs`].
///
/// # Errors
/// libtorch refuses; an input is missing.
pub fn run(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, TchError> {
    let mut given = inputs.iter();
    let row = |x: &[f32]| Tensor::f_from_slice(x)?.f_view([1, -1]);
    let mut values: Vec<Tensor> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let of = |id: &usize| &values[*id];
        let value = match &node.op {
            Op::Input(name) => match given.next() {
                Some(tensor) => tensor.shallow_clone(),
                None => return Err(TchError::Torch(format!("the input {name} is missing"))),
            },
            Op::Shift(x, by) => of(x).f_add(&row(by)?)?,
            Op::Scale(x, by) => of(x).f_mul(&row(by)?)?,
            Op::AtLeast(x, low) => of(x).f_maximum(&row(low)?)?,
            Op::AtMost(x, high) => of(x).f_minimum(&row(high)?)?,
            Op::Dense(x, layer) => {
                let size = [layer.outputs as i64, layer.inputs as i64];
                let weight = Tensor::f_from_slice(&layer.weight)?.f_view(size)?;
                let bias = Tensor::f_from_slice(&layer.bias)?;
                of(x).f_linear(&weight, Some(&bias))?
            }
            Op::Norm(x, [gain, bias]) => {
                let (gain, bias) = (Tensor::f_from_slice(gain)?, Tensor::f_from_slice(bias)?);
                let width = [node.width as i64];
                of(x).f_layer_norm(&width[..], Some(&gain), Some(&bias), EPS, false)?
            }
            Op::Function(x, Function::Elu) => of(x).f_elu()?,
            Op::Function(x, Function::Relu) => of(x).f_relu()?,
            Op::Function(x, Function::Tanh) => of(x).f_tanh()?,
            Op::Function(x, Function::Sigmoid) => of(x).f_sigmoid()?,
            Op::Sum(a, b) => of(a).f_add(of(b))?,
            Op::Difference(a, b) => of(a).f_sub(of(b))?,
            Op::Product(a, b) => of(a).f_mul(of(b))?,
            Op::Columns(x, columns) => of(x).f_index_select(1, &Tensor::f_from_slice(columns)?)?,
            Op::Beside(a, b) => Tensor::f_cat(&[of(a), of(b)], 1)?,
            Op::Where([p, a, b]) => of(a).f_where_self(&of(p).f_ne(0.0)?, of(b))?,
            Op::Largest(x) => of(x).f_argmax(1, true)?.f_to_kind(Kind::Float)?,
            Op::Table(x, rows) => {
                let numbers: Vec<f32> = rows.iter().flatten().copied().collect();
                let table = Tensor::f_from_slice(&numbers)?.f_view([rows.len() as i64, -1])?;
                let which = of(x).f_to_kind(Kind::Int64)?.f_reshape([-1])?;
                table.f_index_select(0, &which)?
            }
            Op::Below(x) => of(x).f_lt(0.0)?.f_to_kind(Kind::Float)?,
        };
        values.push(value);
    }
    Ok(graph
        .outputs
        .iter()
        .map(|(_, id)| values[*id].shallow_clone())
        .collect())
}

/// Writes a file that `torch.jit.load` reads: its `forward` takes the graph's inputs and gives
/// its outputs side by side in one tensor, as a traced function has one result.
///
/// # Errors
/// libtorch refuses, or the file cannot be written.
pub fn write(graph: &Graph, path: &Path) -> Result<(), ExportError> {
    let _no_grad = tch::no_grad_guard();
    let examples = graph
        .inputs()
        .map(|(_, width)| Tensor::f_zeros([2, width as i64], (Kind::Float, tch::Device::Cpu)));
    let examples = examples.collect::<Result<Vec<_>, _>>()?;
    let mut failed = None;
    let module = CModule::create_by_tracing(
        "policy",
        "forward",
        &examples,
        &mut |inputs| match run(graph, inputs).and_then(|all| Tensor::f_cat(&all, 1)) {
            Ok(side_by_side) => vec![side_by_side],
            Err(e) => {
                failed = Some(e);
                vec![inputs[0].shallow_clone()]
            }
        },
    )?;
    match failed {
        Some(e) => Err(e.into()),
        None => Ok(module.save(path)?),
    }
}
