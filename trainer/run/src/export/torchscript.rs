//! The graph as operations of libtorch: run, and traced into a TorchScript file.

use super::error::{ExportError, unwritten};
use super::graph::{Function, Graph, Node, Op};
use ostler_learn::learner::nn::norm::EPS;
use ostler_sim::files;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use tch::{CModule, Kind, TchError, Tensor};
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Most bytes that are read of an extra file.
const MOST_EXTRA: u64 = 1 << 20;

/// The numbers of a graph as tensors. They are made before anything is traced: a tensor that is
/// made in a trace is recorded as an operation without its numbers.
#[derive(Debug)]
pub(crate) struct Constants(Vec<Vec<Tensor>>);

impl Constants {
    /// Of a graph, node by node.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn new(graph: &Graph) -> Result<Self, TchError> {
        let row = |x: &[f32]| Tensor::f_from_slice(x)?.f_view([1, -1]);
        let of = |node: &Node| -> Result<Vec<Tensor>, TchError> {
            Ok(match &node.op {
                Op::Shift(_, x) | Op::Scale(_, x) | Op::AtLeast(_, x) | Op::AtMost(_, x) => {
                    vec![row(x)?]
                }
                Op::Dense(_, layer) => {
                    let size = [layer.outputs as i64, layer.inputs as i64];
                    let weight = Tensor::f_from_slice(&layer.weight)?.f_view(size)?;
                    vec![weight, Tensor::f_from_slice(&layer.bias)?]
                }
                Op::Norm(_, [gain, bias]) => {
                    vec![Tensor::f_from_slice(gain)?, Tensor::f_from_slice(bias)?]
                }
                Op::Columns(_, columns) => vec![Tensor::f_from_slice(columns)?],
                Op::Table(_, rows) => {
                    let numbers: Vec<f32> = rows.iter().flatten().copied().collect();
                    vec![Tensor::f_from_slice(&numbers)?.f_view([rows.len() as i64, -1])?]
                }
                _ => Vec::new(),
            })
        };
        let all: Result<_, TchError> = graph.nodes.iter().map(of).collect();
        all.map(Self)
    }
}

/// The graph's outputs for `inputs`, each `[N,width]`, in the order of [`Graph::inputs`].
///
/// # Errors
/// libtorch refuses; an input is missing; `constants` are not the graph's.
pub(crate) fn run(
    graph: &Graph,
    constants: &Constants,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, TchError> {
    let mut given = inputs.iter();
    let foreign = || TchError::Torch("constants of another graph".into());
    let mut values: Vec<Tensor> = Vec::with_capacity(graph.nodes.len());
    for (node, constants) in graph.nodes.iter().zip(&constants.0) {
        let of = |id: &usize| &values[*id];
        let constant = |k: usize| constants.get(k).ok_or_else(foreign);
        let value = match &node.op {
            Op::Input(name) => match given.next() {
                Some(tensor) => tensor.shallow_clone(),
                None => return Err(TchError::Torch(format!("the input {name} is missing"))),
            },
            Op::Shift(x, _) => of(x).f_add(constant(0)?)?,
            Op::Scale(x, _) => of(x).f_mul(constant(0)?)?,
            Op::AtLeast(x, _) => of(x).f_maximum(constant(0)?)?,
            Op::AtMost(x, _) => of(x).f_minimum(constant(0)?)?,
            Op::Dense(x, _) => of(x).f_linear(constant(0)?, Some(constant(1)?))?,
            Op::Norm(x, _) => {
                let width = [node.width as i64];
                let (gain, bias) = (constant(0)?, constant(1)?);
                of(x).f_layer_norm(&width[..], Some(gain), Some(bias), EPS, false)?
            }
            Op::Function(x, Function::Elu) => of(x).f_elu()?,
            Op::Function(x, Function::Relu) => of(x).f_relu()?,
            Op::Function(x, Function::Tanh) => of(x).f_tanh()?,
            Op::Function(x, Function::Sigmoid) => of(x).f_sigmoid()?,
            Op::Sum(a, b) => of(a).f_add(of(b))?,
            Op::Difference(a, b) => of(a).f_sub(of(b))?,
            Op::Product(a, b) => of(a).f_mul(of(b))?,
            Op::Columns(x, _) => of(x).f_index_select(1, constant(0)?)?,
            Op::Beside(a, b) => Tensor::f_cat(&[of(a), of(b)], 1)?,
            Op::Where([p, a, b]) => of(a).f_where_self(&of(p).f_ne(0.0)?, of(b))?,
            Op::Largest(x) => of(x).f_argmax(1, true)?.f_to_kind(Kind::Float)?,
            Op::Table(x, _) => {
                let which = of(x).f_to_kind(Kind::Int64)?.f_reshape([-1])?;
                constant(0)?.f_index_select(0, &which)?
            }
            Op::Below(x) => of(x).f_lt(0.0)?.f_to_kind(Kind::Float)?,
        };
        values.push(value);
    }
    Ok(graph.outputs.iter().map(|(_, id)| values[*id].shallow_clone()).collect())
}

/// Writes a file that `torch.jit.load` reads: its `forward` takes the graph's inputs and gives
/// its outputs side by side in one tensor, as a traced function has one result. The metadata are
/// what libtorch calls extra files, `_extra_files` of `torch.jit.load`.
///
/// # Errors
/// libtorch refuses, or the file cannot be written.
pub(crate) fn write(
    graph: &Graph,
    metadata: &[(String, String)],
    path: &Path,
) -> Result<(), ExportError> {
    let _no_grad = tch::no_grad_guard();
    let examples = graph
        .inputs()
        .map(|(_, width)| Tensor::f_zeros([2, width as i64], (Kind::Float, tch::Device::Cpu)));
    let examples = examples.collect::<Result<Vec<_>, _>>()?;
    let constants = Constants::new(graph)?;
    let mut failed = None;
    let module = CModule::create_by_tracing(
        "policy",
        "forward",
        &examples,
        &mut |inputs| match run(graph, &constants, inputs).and_then(|all| Tensor::f_cat(&all, 1)) {
            Ok(side_by_side) => vec![side_by_side],
            Err(e) => {
                failed = Some(e);
                vec![inputs[0].shallow_clone()]
            }
        },
    )?;
    match failed {
        Some(e) => Err(e.into()),
        None => {
            // libtorch follows links: its file is written where there are none.
            let folder = files::scratch("export").map_err(unwritten(path))?;
            let aside = folder.path().join("policy.pt");
            module.save(&aside)?;
            describe(&aside, metadata).map_err(unwritten(path))?;
            files::replace_with(path, files::SHARED, |to| {
                std::io::copy(&mut files::open(&aside)?, to).map(drop)
            })
            .map_err(unwritten(path))
        }
    }
}

/// Adds extra files to a TorchScript file, which is a zip archive: what is in it stays where it is.
fn describe(path: &Path, metadata: &[(String, String)]) -> std::io::Result<()> {
    let file = files::update(path)?;
    let archive = ZipArchive::new(file)?;
    let first = archive.file_names().next().unwrap_or_default();
    let root = first.split('/').next().unwrap_or_default().to_string();
    let mut archive = ZipWriter::new_append(archive.into_inner())?;
    let stored = FileOptions::default().compression_method(CompressionMethod::Stored);
    for (key, value) in metadata {
        archive.start_file(format!("{root}/extra/{key}"), stored)?;
        archive.write_all(value.as_bytes())?;
    }
    archive.finish()?.sync_all()
}

/// An extra file of a TorchScript file's bytes, if it has it.
pub(crate) fn extra(bytes: &[u8], key: &str) -> Option<String> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let end = format!("/extra/{key}");
    let name = archive.file_names().find(|n| n.ends_with(&end))?.to_string();
    let mut text = String::new();
    let file = archive.by_name(&name).ok()?;
    file.take(MOST_EXTRA).read_to_string(&mut text).ok()?;
    Some(text)
}
