//! Safetensors files with PyTorch's names.
//!
//! Fully connected layers are all tensors `NAME.weight` `[outputs][inputs]` with `NAME.bias`, in
//! the order of the numbers in their names (`0.weight`, `2.weight`, `4.weight` of an
//! `nn.Sequential`). An LSTM's layers are `weight_ih_lK`, `weight_hh_lK`, `bias_ih_lK` and
//! `bias_hh_lK` of an `nn.LSTM`, whatever stands before these names.

use super::{Parts, Tensor, all_finite};
use ostler_model::{Activation, Layer};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::BTreeMap;

/// The parts of a network, with an LSTM or without.
pub(super) fn parts(bytes: &[u8], lstm: bool, then: Activation) -> Result<Parts, String> {
    let mut tensors = tensors(bytes)?;
    let cells = match lstm {
        true => cells(&mut tensors)?,
        false => Vec::new(),
    };
    let layers = layers(tensors, then)?;
    Ok(Parts { cells, layers })
}

fn tensors(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| format!("no safetensors file: {e}"))?;
    let mut all = BTreeMap::new();
    for (name, view) in file.iter() {
        all.insert(name.to_string(), numbers(name, &view)?);
    }
    Ok(all)
}

fn numbers(name: &str, view: &TensorView<'_>) -> Result<Tensor, String> {
    let bytes = view.data();
    let data: Vec<f64> = match view.dtype() {
        Dtype::F32 => {
            let each = bytes.as_chunks::<4>().0.iter();
            each.map(|b| f64::from(f32::from_le_bytes(*b))).collect()
        }
        Dtype::F64 => {
            let each = bytes.as_chunks::<8>().0.iter();
            each.map(|b| f64::from_le_bytes(*b)).collect()
        }
        other => {
            return Err(format!("\"{name}\" is of {other:?}; write it as float32 or float64"));
        }
    };
    if !all_finite(&data) {
        return Err(format!("\"{name}\" has numbers that are not finite"));
    }
    Ok(Tensor { shape: view.shape().to_vec(), data })
}

/// Takes the layers of an LSTM.
fn cells(tensors: &mut BTreeMap<String, Tensor>) -> Result<Vec<Layer>, String> {
    let mut cells: Vec<Layer> = Vec::new();
    loop {
        let k = cells.len();
        let mut take = |part: &str| {
            let end = format!("{part}_l{k}");
            let fits = |name: &&String| {
                name.strip_suffix(&end).is_some_and(|head| head.is_empty() || head.ends_with('.'))
            };
            let mut found = tensors.keys().filter(fits).cloned();
            let (first, other) = (found.next(), found.next());
            if let (Some(a), Some(b)) = (&first, &other) {
                return Err(format!("\"{a}\" and \"{b}\" are two LSTMs; one is expected"));
            }
            Ok(first.and_then(|name| tensors.remove(&name)))
        };
        let (input, own) = (take("weight_ih")?, take("weight_hh")?);
        let biases = [take("bias_ih")?, take("bias_hh")?];
        let (Some(input), Some(own)) = (input, own) else {
            break;
        };
        let shapes =
            (<[usize; 2]>::try_from(&input.shape[..]), <[usize; 2]>::try_from(&own.shape[..]));
        let (Ok([rows, inputs]), Ok([own_rows, width])) = shapes else {
            return Err(format!("weights of LSTM layer {k} are no matrices"));
        };
        if rows != own_rows || rows != 4 * width {
            return Err(format!(
                "LSTM layer {k} has {rows} and {own_rows} rows for {width} outputs; there are 4 gates"
            ));
        }
        let mut weight = Vec::with_capacity(rows * (inputs + width));
        for row in 0..rows {
            weight.extend(&input.data[row * inputs..(row + 1) * inputs]);
            weight.extend(&own.data[row * width..(row + 1) * width]);
        }
        let mut bias = vec![0.0; rows];
        for part in biases.into_iter().flatten() {
            if part.data.len() != rows {
                return Err(format!("LSTM layer {k} has biases of another size"));
            }
            bias.iter_mut().zip(part.data).for_each(|(b, x)| *b += x);
        }
        cells.push(Layer { inputs: inputs + width, weight, bias, then: Activation::Nothing });
    }
    if let Some(other) =
        tensors.keys().find(|name| name.contains("_reverse") || name.contains("weight_hr"))
    {
        return Err(format!(
            "\"{other}\" belongs to a bidirectional or projected LSTM, which actuators do not have"
        ));
    }
    match cells.is_empty() {
        true => Err("no LSTM in it: there is no weight_ih_l0; model = \"mlp\" needs none".into()),
        false => Ok(cells),
    }
}

/// The numbers in a name, for its order: `net.10.weight` stands behind `net.2.weight`.
fn order(name: &str) -> Vec<(u64, String)> {
    let parts = name.split('.');
    parts.map(|p| (p.parse().unwrap_or(u64::MAX), p.to_string())).collect()
}

/// Fully connected layers, in the order of their names.
fn layers(mut tensors: BTreeMap<String, Tensor>, then: Activation) -> Result<Vec<Layer>, String> {
    let mut names: Vec<String> =
        tensors.keys().filter_map(|name| Some(name.strip_suffix("weight")?.to_string())).collect();
    names.sort_by_key(|name| order(name));
    let mut layers = Vec::with_capacity(names.len());
    for head in names {
        let name = format!("{head}weight");
        let Some(tensor) = tensors.remove(&name) else {
            continue;
        };
        let [outputs, inputs] = <[usize; 2]>::try_from(&tensor.shape[..])
            .map_err(|_| format!("\"{name}\" is no matrix [outputs][inputs]"))?;
        let bias = match tensors.remove(&format!("{head}bias")) {
            Some(bias) if bias.data.len() != outputs => {
                let found = bias.data.len();
                return Err(format!("\"{head}bias\" has {found} numbers for {outputs} outputs"));
            }
            Some(bias) => bias.data,
            None => vec![0.0; outputs],
        };
        layers.push(Layer { inputs, weight: tensor.data, bias, then });
    }
    if let Some(other) = tensors.keys().next() {
        return Err(format!(
            "\"{other}\" is neither a fully connected layer's nor an LSTM's; write a file without it"
        ));
    }
    match layers.last_mut() {
        Some(last) => last.then = Activation::Nothing,
        None => {
            return Err("no fully connected layer in it: there is no tensor NAME.weight".into());
        }
    }
    Ok(layers)
}
