//! Networks of actuators, from safetensors files with PyTorch's names.
//!
//! Fully connected layers are all tensors `NAME.weight` `[outputs][inputs]` with `NAME.bias`, in
//! the order of the numbers in their names (`0.weight`, `2.weight`, `4.weight` of an
//! `nn.Sequential`). An LSTM's layers are `weight_ih_lK`, `weight_hh_lK`, `bias_ih_lK` and
//! `bias_hh_lK` of an `nn.LSTM`, whatever stands before these names.

use super::super::exact;
use crate::config::{ActuatorModel, ConfigError, InputOrder, NetworkConfig};
use crate::files;
use crate::model::{Activation, Layer, Network, NetworkKind};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Bytes of a file: actuators' networks have some thousand numbers.
const MOST_BYTES: u64 = 64 << 20;
/// Most steps back.
const MOST_BACK: u32 = 255;
/// Most inputs or outputs of a layer.
const MOST_WIDTH: usize = 4096;
/// Most numbers of a network: they are part of a program.
const MOST_NUMBERS: usize = 1 << 18;

/// A matrix `[rows][columns]`, or a list.
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f64>,
}

/// The network of `config` for a robot whose file is `robot`, and its file. `path` is the
/// configuration's.
pub(super) fn load(
    robot: Option<&PathBuf>,
    model: ActuatorModel,
    config: &NetworkConfig,
    path: &str,
) -> Result<(Network, PathBuf), ConfigError> {
    let file = place(robot, config, path)?;
    let wrong = |message: String| ConfigError::new(format!("{path}.file"), message);
    let bytes = files::read(&file, MOST_BYTES)
        .map_err(|e| wrong(format!("cannot read {}: {e}", file.display())))?;
    let named = |message: String| wrong(format!("{}: {message}", file.display()));
    let mut tensors = tensors(&bytes).map_err(named)?;
    let lstm = model == ActuatorModel::Lstm;
    let cells = match lstm {
        true => cells(&mut tensors).map_err(named)?,
        false => Vec::new(),
    };
    let layers = layers(tensors, config.activation).map_err(named)?;
    let history = history(config, lstm, path)?;
    let kind = match lstm {
        true => NetworkKind::Lstm {
            width: cells.first().map_or(0, |c| c.bias.len() / 4),
            cells,
        },
        false => NetworkKind::Mlp {
            steps: history,
            velocities_first: config.order == Some(InputOrder::VelocityPosition),
        },
    };
    let scale = |key: &str, x: f64| exact(x, &format!("{path}.{key}"));
    let network = Network {
        name: config.file.clone(),
        position_scale: scale("position_scale", config.position_scale)?,
        velocity_scale: scale("velocity_scale", config.velocity_scale)?,
        effort_scale: scale("effort_scale", config.effort_scale)?,
        kind,
        layers,
    };
    fits(&network).map_err(named)?;
    Ok((network, file))
}

/// The file, which the run keeps with the robot's.
fn place(
    robot: Option<&PathBuf>,
    config: &NetworkConfig,
    path: &str,
) -> Result<PathBuf, ConfigError> {
    let inside = Path::new(&config.file);
    let below = inside
        .components()
        .all(|c| matches!(c, Component::Normal(_)));
    if !below || config.file.is_empty() {
        let message = format!(
            "\"{}\" is not below the folder of the robot's file",
            config.file
        );
        return Err(ConfigError::new(format!("{path}.file"), message)
            .help("put the network beside the robot's file: a run keeps copies of both"));
    }
    let folder = robot
        .and_then(|file| file.parent())
        .unwrap_or(Path::new(""));
    Ok(folder.join(inside))
}

/// The steps back that an MLP sees.
fn history(config: &NetworkConfig, lstm: bool, path: &str) -> Result<Vec<u32>, ConfigError> {
    for (key, given) in [
        ("history", config.history.is_some()),
        ("order", config.order.is_some()),
    ] {
        if lstm && given {
            return Err(
                ConfigError::new(format!("{path}.{key}"), "is for model = \"mlp\"")
                    .help("an LSTM sees the present error and velocity, in this order"),
            );
        }
    }
    let steps = config.history.clone().unwrap_or_else(|| vec![0]);
    let key = format!("{path}.history");
    if steps.is_empty() {
        return Err(
            ConfigError::new(key, "the list is empty").help("history = [0] sees the present step")
        );
    }
    if let Some(far) = steps.iter().find(|s| **s > MOST_BACK) {
        return Err(ConfigError::new(
            key,
            format!("{far} physics steps are more than {MOST_BACK}"),
        ));
    }
    Ok(steps)
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
            return Err(format!(
                "\"{name}\" is of {other:?}; write it as float32 or float64"
            ));
        }
    };
    if data.iter().any(|x| !(*x as f32).is_finite()) {
        return Err(format!("\"{name}\" has numbers that are not finite"));
    }
    Ok(Tensor {
        shape: view.shape().to_vec(),
        data,
    })
}

/// Takes the layers of an LSTM.
fn cells(tensors: &mut BTreeMap<String, Tensor>) -> Result<Vec<Layer>, String> {
    let mut cells: Vec<Layer> = Vec::new();
    loop {
        let k = cells.len();
        let mut take = |part: &str| {
            let end = format!("{part}_l{k}");
            let fits = |name: &&String| {
                name.strip_suffix(&end)
                    .is_some_and(|head| head.is_empty() || head.ends_with('.'))
            };
            let mut found = tensors.keys().filter(fits).cloned();
            let (first, other) = (found.next(), found.next());
            if let (Some(a), Some(b)) = (&first, &other) {
                return Err(format!(
                    "\"{a}\" and \"{b}\" are two LSTMs; one is expected"
                ));
            }
            Ok(first.and_then(|name| tensors.remove(&name)))
        };
        let (input, own) = (take("weight_ih")?, take("weight_hh")?);
        let biases = [take("bias_ih")?, take("bias_hh")?];
        let (Some(input), Some(own)) = (input, own) else {
            break;
        };
        let shapes = (
            <[usize; 2]>::try_from(&input.shape[..]),
            <[usize; 2]>::try_from(&own.shape[..]),
        );
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
        cells.push(Layer {
            inputs: inputs + width,
            weight,
            bias,
            then: Activation::Nothing,
        });
    }
    if let Some(other) = tensors
        .keys()
        .find(|name| name.contains("_reverse") || name.contains("weight_hr"))
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
    parts
        .map(|p| (p.parse().unwrap_or(u64::MAX), p.to_string()))
        .collect()
}

/// Fully connected layers, in the order of their names.
fn layers(mut tensors: BTreeMap<String, Tensor>, then: Activation) -> Result<Vec<Layer>, String> {
    let mut names: Vec<String> = tensors
        .keys()
        .filter_map(|name| Some(name.strip_suffix("weight")?.to_string()))
        .collect();
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
                return Err(format!(
                    "\"{head}bias\" has {found} numbers for {outputs} outputs"
                ));
            }
            Some(bias) => bias.data,
            None => vec![0.0; outputs],
        };
        layers.push(Layer {
            inputs,
            weight: tensor.data,
            bias,
            then,
        });
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

/// Every layer takes what comes before it, and the last one gives one effort.
fn fits(network: &Network) -> Result<(), String> {
    let (mut width, mut before) = match &network.kind {
        NetworkKind::Mlp { steps, .. } => (
            2 * steps.len(),
            format!("{} errors and velocities", steps.len()),
        ),
        NetworkKind::Lstm { cells, width } => {
            let mut inputs = 2;
            for (k, cell) in cells.iter().enumerate() {
                if cell.inputs != inputs + width || cell.bias.len() != 4 * width {
                    let own = cell.inputs.saturating_sub(cell.bias.len() / 4);
                    return Err(format!(
                        "LSTM layer {k} takes {own} inputs and there are {inputs}{}",
                        if k == 0 { " (error and velocity)" } else { "" }
                    ));
                }
                inputs = *width;
            }
            (*width, "the LSTM".to_string())
        }
    };
    for (k, layer) in network.layers.iter().enumerate() {
        if layer.inputs != width {
            return Err(format!(
                "layer {k} takes {} inputs, and {before} give {width}",
                layer.inputs
            ));
        }
        width = layer.bias.len();
        before = format!("layer {k}");
    }
    if width != 1 {
        return Err(format!(
            "it gives {width} numbers; an actuator has one effort"
        ));
    }
    if network.widest() > MOST_WIDTH || network.products() > MOST_NUMBERS {
        return Err(format!(
            "{} numbers, {} wide: more than {MOST_NUMBERS} or {MOST_WIDTH} are too many",
            network.products(),
            network.widest()
        ));
    }
    Ok(())
}
