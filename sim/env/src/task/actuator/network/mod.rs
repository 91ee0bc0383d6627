//! Networks of actuators, from files: safetensors with PyTorch's names, or ONNX.

mod onnx;
mod pytorch;

use crate::config::{ActuatorModel, ConfigError, InputOrder, NetworkConfig};
use ostler_base::files;
use ostler_lang::exact;
use ostler_model::{Activation, Layer, Model, Network, NetworkKind, mjcf};
use std::path::{Path, PathBuf};

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

/// The layers of a network.
struct Parts {
    /// Of the LSTM: as in [`NetworkKind::Lstm`].
    cells: Vec<Layer>,
    /// Fully connected ones, behind it.
    layers: Vec<Layer>,
}

/// The network of `config` for an actuator of `kind` of a `robot`, and the files that it is read
/// from. `path` is the configuration's.
pub(super) fn load(
    robot: &Model,
    kind: ActuatorModel,
    config: &NetworkConfig,
    path: &str,
) -> Result<(Network, Vec<PathBuf>), ConfigError> {
    let file = place(robot, config, path)?;
    let wrong = |message: String| ConfigError::new(format!("{path}.file"), message);
    let named = |message: String| wrong(format!("{}: {message}", file.display()));
    let onnx = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("onnx"));
    let bytes = files::read(&file, if onnx { onnx::MOST_BYTES } else { MOST_BYTES })
        .map_err(|e| wrong(format!("cannot read {}: {e}", file.display())))?;
    let lstm = kind == ActuatorModel::Lstm;
    let mut files = vec![file.clone()];
    let Parts { cells, layers } = match onnx {
        true => {
            if config.activation.is_some() {
                let message = "is read from the ONNX file";
                return Err(ConfigError::new(format!("{path}.activation"), message)
                    .help("leave the key out"));
            }
            let (parts, beside) = onnx::parts(&bytes, &file, lstm).map_err(named)?;
            files.extend(beside);
            parts
        }
        false => {
            let then = config.activation.unwrap_or(Activation::Softsign);
            pytorch::parts(&bytes, lstm, then).map_err(named)?
        }
    };
    let history = history(config, lstm, path)?;
    let kind = match lstm {
        true => NetworkKind::Lstm { width: cells.first().map_or(0, |c| c.bias.len() / 4), cells },
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
    Ok((network, files))
}

/// Whether all numbers are finite in single precision.
fn all_finite(data: &[f64]) -> bool {
    data.iter().all(|x| (*x as f32).is_finite())
}

/// The file, which the run keeps with the robot's.
fn place(model: &Model, config: &NetworkConfig, path: &str) -> Result<PathBuf, ConfigError> {
    let robot = model.sources.first().map_or(Path::new(""), |f| f);
    let within = model.naming.within.as_deref();
    let relative = Path::new(&config.file).is_relative();
    let file = relative.then(|| mjcf::beside(robot, within, &config.file));
    file.and_then(Result::ok).ok_or_else(|| {
        let message = format!("\"{}\" is not below the folder of the robot's file", config.file);
        ConfigError::new(format!("{path}.file"), message)
            .help("put the network beside the robot's file: a run keeps copies of both")
    })
}

/// The steps back that an MLP sees.
fn history(config: &NetworkConfig, lstm: bool, path: &str) -> Result<Vec<u32>, ConfigError> {
    for (key, given) in [("history", config.history.is_some()), ("order", config.order.is_some())] {
        if lstm && given {
            return Err(ConfigError::new(format!("{path}.{key}"), "is for model = \"mlp\"")
                .help("an LSTM sees the present error and velocity, in this order"));
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

/// Every layer takes what comes before it, and the last one gives one effort.
fn fits(network: &Network) -> Result<(), String> {
    let (mut width, mut before) = match &network.kind {
        NetworkKind::Mlp { steps, .. } => {
            (2 * steps.len(), format!("{} errors and velocities", steps.len()))
        }
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
        return Err(format!("it gives {width} numbers; an actuator has one effort"));
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
