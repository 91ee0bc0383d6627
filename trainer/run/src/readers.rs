//! Doors to readers that are nobody's business but the tests' (`tests/tools/fuzz`, `tests/tools/export`).

use crate::export::{OnnxModel, words};
use crate::run::RunError;
use crate::run::checkpoint::{self, Checkpoint};
use crate::run::failure::Replay;
use crate::run::{as_if_resumed, load_run};
use crate::supervise::message::Lines;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// Reads a checkpoint's bytes.
///
/// # Errors
/// A sentence about the mistake.
pub fn checkpoint(bytes: &[u8]) -> Result<Checkpoint, String> {
    checkpoint::parse(bytes).map_err(|e| e.to_string())
}

/// Opens a run's folder as `ostler eval` does: its checkpoint, its robot, an environment,
/// its policy.
///
/// # Errors
/// As `ostler eval`.
pub fn watch(run: &Path) -> Result<(), RunError> {
    let mut run = load_run(run)?;
    run.settle(None)?;
    let env = run.env(1, 1)?;
    run.policy(env.spec()).map(drop)
}

/// Opens a run's folder as `ostler train --resume` does, up to its first draw from what its
/// learner remembers.
///
/// # Errors
/// As `ostler train --resume`.
pub fn resume(run: &Path) -> Result<(), RunError> {
    as_if_resumed(run)
}

/// Reads an ONNX file of a policy and lets it act once for two rows of zeros; how many numbers
/// it gives.
///
/// # Errors
/// A sentence about the mistake.
pub fn policy(bytes: &[u8]) -> Result<usize, String> {
    let model = OnnxModel::read(bytes)?;
    let zeros = |(name, columns): &(String, i64)| {
        let columns = (*columns).clamp(1, 1000);
        let zeros = Tensor::f_zeros([2, columns], (Kind::Float, Device::Cpu));
        zeros.map(|t| (name.clone(), t)).map_err(|e| e.to_string())
    };
    let inputs: Vec<(String, Tensor)> = model.inputs.iter().map(zeros).collect::<Result<_, _>>()?;
    let given: Vec<(&str, &Tensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let _no_grad = tch::no_grad_guard();
    let outputs = model.run(&given).map_err(|e| e.to_string())?;
    Ok(outputs.values().map(Tensor::numel).sum())
}

/// The actions of an ONNX file of a policy for `rows` of observations.
///
/// # Errors
/// A sentence about the mistake.
pub fn actions(bytes: &[u8], rows: &[Vec<f32>]) -> Result<Vec<f32>, String> {
    let model = OnnxModel::read(bytes)?;
    let columns = rows.first().map_or(0, Vec::len) as i64;
    let obs = Tensor::f_from_slice(&rows.concat()).and_then(|t| t.f_view([-1, columns]));
    let obs = obs.map_err(|e| e.to_string())?;
    let _no_grad = tch::no_grad_guard();
    let mut given = model.run(&[("obs", &obs)]).map_err(|e| words(&e))?;
    let actions = given.remove("actions").ok_or("it gives no actions")?;
    ostler_collector::transfer::host_numbers(&actions).map_err(|e| e.to_string())
}

/// Reads the bytes of the supervising process's pipe, in pieces of `size` bytes;
/// returns the number of messages.
pub fn messages(bytes: &[u8], size: usize) -> usize {
    let (mut lines, mut found) = (Lines::default(), 0);
    for piece in bytes.chunks(size.max(1)) {
        lines.add(piece, |_| found += 1);
    }
    found
}

/// Opens the report of a failure and goes through its first steps, as `ostler replay`
/// does; returns the number of environments that broke.
///
/// # Errors
/// As `ostler replay`.
pub fn replay(folder: &Path, steps: usize) -> Result<usize, RunError> {
    let mut replay = Replay::open(folder)?;
    let mut broken = 0;
    for _ in 0..steps {
        let Some(seen) = replay.step()? else { break };
        broken += seen.len();
        if let Some(first) = seen.first() {
            replay.state(first.env as usize);
        }
    }
    Ok(broken)
}
