//! `ostler export`: a trained policy as a file that a robot's own program runs.
//!
//! One description of the policy, `Deployment` (what it sees and does) and [`Network`], is
//! printed as ONNX, TorchScript or C. Beside each file lies a manifest in JSON.

mod c;
pub(crate) mod error;
pub mod graph;
mod manifest;
mod onnx;
mod onnx_operators;
mod onnx_run;
mod play;
mod torchscript;
mod vectors;

pub use error::{ExportError, PolicyFileError};
pub(crate) use onnx_operators::words;
pub(crate) use onnx_run::OnnxModel;
pub use play::PolicyFile;

use crate::log::errln;
use crate::run::{LoadedRun, RunError};
use error::unwritten;
use graph::Graph;
use ostler_learn::learner::policy::Architecture;
use ostler_learn::learner::{Network, TrainedPolicy};
use ostler_sim::files;
use ostler_sim::task::deploy::{Deployment, identifier};
use std::path::{Path, PathBuf};

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// NAME.onnx, for onnxruntime and others
    Onnx,
    /// NAME.pt, for PyTorch and libtorch
    Torchscript,
    /// NAME_policy.h, C99 from measurements to controls
    C,
}

/// What to export, and where to.
#[derive(Debug)]
pub struct Request<'a> {
    /// The files.
    pub formats: &'a [Format],
    /// Names of files and functions begin with it; the run's name unless given.
    pub name: Option<&'a str>,
    /// The folder; unless given `export` in the run's, which may not be a link.
    pub out: Option<&'a Path>,
    /// Whose policy it is.
    pub agent: Option<&'a str>,
    /// Observations that are inputs of the C function.
    pub inputs: &'a [String],
    /// Control steps of test vectors.
    pub vectors: usize,
}

/// Writes the files; their paths.
///
/// # Errors
/// See [`ExportError`]; the run's environments cannot be built.
pub fn export(run: &LoadedRun, request: &Request<'_>) -> Result<Vec<PathBuf>, RunError> {
    let mut env = run.env(1, run.config.seed.wrapping_add(1000))?;
    let mut policy = run.policy(env.spec())?;
    let (spec, model) = (env.spec().clone(), env.model().clone());
    let task = env.compiled().clone();
    let deployment =
        Deployment::new(&task, &model, request.agent, spec.step_dt, spec.max_episode_steps)
            .map_err(ExportError::from)?;
    let network = network(run, &*policy, deployment.policy)?;
    let wanted = request.name.unwrap_or(&run.config.name);
    let name = match (&deployment.name, request.name) {
        (Some(agent), None) if spec.policy_names.len() > 1 => format!("{wanted}_{agent}"),
        _ => wanted.to_string(),
    };
    let name = identifier(&name);
    let out = match request.out {
        Some(out) => out.to_path_buf(),
        None => run.dir.join("export"),
    };
    let graph = Graph::new(&deployment, &network);
    // Everything that can be refused is, before a file is written.
    let mut written: Vec<(PathBuf, Content)> = Vec::new();
    let c = request.formats.contains(&Format::C);
    if let (false, Some(input)) = (c, request.inputs.first()) {
        return Err(ExportError::InputWithoutC(input.clone()).into());
    }
    let about = manifest::About::new(run, &env, &deployment, &name);
    for note in about.geared() {
        errln!("warning: {note}");
    }
    let mut metadata = Vec::new();
    if request.formats.iter().any(|f| *f != Format::C) {
        metadata = about.metadata();
        for note in about.beyond_mjlab() {
            errln!("warning: {note}");
        }
    }
    for format in request.formats {
        let content = match format {
            Format::Onnx => Content::Bytes(onnx::print(&graph, &metadata)),
            Format::Torchscript => Content::Traced,
            Format::C => {
                let measured = deployment.measured(request.inputs);
                let measured = measured.map_err(ExportError::from)?;
                let text = c::print(&measured, &network, &name, &about.lines());
                Content::Bytes(text.into_bytes())
            }
        };
        let file = match format {
            Format::Onnx => format!("{name}.onnx"),
            Format::Torchscript => format!("{name}.pt"),
            Format::C => format!("{name}_policy.h"),
        };
        written.push((out.join(file), content));
    }
    let vectors = vectors::record(&mut env, &mut *policy, &deployment, request.vectors)?;
    let manifest = about.manifest(&graph, &network, &vectors);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|e| ExportError::File {
        path: out.join(format!("{name}.json")),
        source: e.into(),
    })?;
    written.push((out.join(format!("{name}.json")), Content::Bytes(text)));
    match request.out {
        Some(_) => std::fs::create_dir_all(&out),
        None => files::own_folder(&out),
    }
    .map_err(unwritten(&out))?;
    for (path, content) in &written {
        match content {
            Content::Bytes(bytes) => {
                files::replace(path, files::SHARED, bytes).map_err(unwritten(path))?;
            }
            Content::Traced => torchscript::write(&graph, &metadata, path)?,
        }
    }
    Ok(written.into_iter().map(|(path, _)| path).collect())
}

enum Content {
    Bytes(Vec<u8>),
    Traced,
}

/// The network of policy number `of`.
fn network(run: &LoadedRun, policy: &dyn TrainedPolicy, of: usize) -> Result<Network, ExportError> {
    let none = || {
        let blocks = run.config.actor.architecture == Architecture::FlashSac;
        let algorithm = run.config.runner.algorithm.name();
        ExportError::NoNetwork(match blocks {
            true => "actor.architecture = \"flash_sac\"".into(),
            false => format!("runner.algorithm = \"{algorithm}\""),
        })
    };
    let network = policy.network(of)?.ok_or_else(none)?;
    match network.is_finite() {
        true => Ok(network),
        false => Err(ExportError::NotFinite),
    }
}
