//! A policy's file as one that acts: `ostler eval RUN --policy policy.onnx`.

use super::error::PolicyFileError;
use super::onnx_operators::words;
use super::onnx_run::OnnxModel;
use super::torchscript;
use crate::log::errln;
use ostler_sim::env::{ActionSpace, BatchEnv};
use ostler_sim::files;
use ostler_sim::task::deploy::{DeployError, Deployment, Owner};
use std::path::Path;
use tch::{CModule, Device, IValue, Kind, TchError, Tensor};

/// Most bytes of a file.
const MOST: u64 = 1 << 30;

#[derive(Debug)]
enum Model {
    Onnx(OnnxModel),
    Script(CModule),
}

/// A policy of a file.
#[derive(Debug)]
pub struct PolicyFile {
    model: Model,
    /// Its inputs beside `obs`, and their columns.
    states: Vec<(String, i64)>,
    /// What it remembers `[R,columns]` of each.
    kept: Vec<Tensor>,
    /// Of every number of `obs`: its place in an agent's row, and the factor that it has there.
    places: Vec<(usize, f32)>,
    /// Columns of an agent's row.
    width: usize,
    outputs: usize,
    controls: usize,
}

impl PolicyFile {
    /// Opens a file for the environments' agents, which share it.
    ///
    /// # Errors
    /// It cannot be read, or does not fit the task.
    pub fn open(path: &Path, env: &BatchEnv, agent: Option<&str>) -> Result<Self, PolicyFileError> {
        let unusable = |why: String| PolicyFileError::Unusable { path: path.to_path_buf(), why };
        let spec = env.spec();
        let of = Deployment::new(
            env.compiled(),
            env.model(),
            agent,
            spec.step_dt,
            spec.max_episode_steps,
        );
        let of = of.map_err(|e| match e {
            DeployError::WhichAgent(names) => unusable(format!(
                "the task has several policies: --instead AGENT=FILE says whose it is, of {names}"
            )),
            e => unusable(e.to_string()),
        })?;
        let read = || {
            files::read(path, MOST)
                .map_err(|source| PolicyFileError::Read { path: path.to_path_buf(), source })
        };
        let extension = path.extension().and_then(|e| e.to_str());
        let mut states: Vec<(String, i64)> = Vec::new();
        let mut raw = true;
        let (action_names, whose);
        let model = match extension {
            Some("onnx") => {
                let model = OnnxModel::read(&read()?).map_err(unusable)?;
                let (obs, columns) = model.inputs.first().cloned().unwrap_or_default();
                let (k, o) = (of.inputs() as i64, of.width as i64);
                // Another program's file has earlier values among its observations.
                raw = columns == k || columns == 0;
                if !raw && columns != o {
                    return Err(unusable(format!(
                        "its input \"{obs}\" has {columns} numbers; the policy sees {k} in a control step{}",
                        if o == k { String::new() } else { format!(", {o} with earlier values") }
                    )));
                }
                for (name, columns) in &model.inputs[1.min(model.inputs.len())..] {
                    let known = matches!(name.as_str(), "history" | "first" | "h_in");
                    if !known || *columns < 1 {
                        return Err(unusable(format!(
                            "its input \"{name}\" is not known; an exported policy has obs, history, first and h_in"
                        )));
                    }
                    states.push((name.clone(), *columns));
                }
                if !model.outputs.iter().any(|o| o == "actions") {
                    return Err(unusable("it has no output \"actions\"".into()));
                }
                (action_names, whose) = (model.action_names.clone(), model.agent.clone());
                Model::Onnx(model)
            }
            Some("pt") => {
                let bytes = read()?;
                action_names = torchscript::extra(&bytes, "action_names");
                whose = torchscript::extra(&bytes, "agent");
                let module = CModule::load(path).map_err(|e| {
                    // What follows is a trace of calls.
                    let text = e.to_string();
                    let line = text.lines().find(|l| !l.trim().is_empty());
                    unusable(format!("libtorch: {}", line.unwrap_or_default()))
                })?;
                if of.looks_back() {
                    states.push(("history".into(), of.width as i64));
                    states.push(("first".into(), 1));
                }
                Model::Script(module)
            }
            _ => {
                return Err(PolicyFileError::Kind { path: path.to_path_buf() });
            }
        };
        let (theirs, ours): (Vec<&str>, Vec<&str>) = (
            action_names.iter().flat_map(|names| names.split(',')).collect(),
            of.outputs.iter().map(|o| o.name.as_str()).collect(),
        );
        fn sorted<'n>(names: &[&'n str]) -> Vec<&'n str> {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        }
        if theirs != ours && sorted(&theirs) == sorted(&ours) {
            return Err(unusable(format!(
                "its actions are {}, those of the task {}",
                theirs.join(", "),
                ours.join(", ")
            )));
        }
        match of.owner(whose.as_deref(), &theirs) {
            Owner::This => {}
            Owner::Other(owner) => {
                let own = of.name.as_deref().unwrap_or_default();
                return Err(unusable(format!(
                    "it is the policy of agent \"{owner}\", not of \"{own}\""
                )));
            }
            Owner::Nobody => errln!(
                "warning: {}: its actions are {}; they are taken for {}, in this order",
                path.display(),
                theirs.join(", "),
                ours.join(", ")
            ),
        }
        let places = match raw {
            true => of
                .terms
                .iter()
                .flat_map(|t| (0..t.len).map(|i| (t.newest() + i, t.scale[i])))
                .collect(),
            false => (0..of.width).map(|i| (i, 1.0)).collect(),
        };
        let mut file = Self {
            model,
            states,
            kept: Vec::new(),
            places,
            width: spec.obs.policy,
            controls: of.controls.len(),
            outputs: match spec.action {
                ActionSpace::Continuous(n) => n,
                ActionSpace::Discrete(_) => 1,
            },
        };
        file.try_out(spec.rows()).map_err(|e| unusable(words(&e)))?;
        Ok(file)
    }

    /// Acts on zeros, since what an ONNX file does not say is seen only when it runs.
    fn try_out(&mut self, rows: usize) -> Result<(), TchError> {
        if matches!(self.model, Model::Onnx(_)) {
            let size = [rows as i64, self.outputs as i64];
            let action = Tensor::f_zeros(size, (Kind::Float, Device::Cpu))?;
            self.act(&vec![0.0; rows * self.width], &action)?;
            self.forget_all();
        }
        Ok(())
    }

    /// Of a recurrent TorchScript file, which does not say it: the width of its hidden state.
    pub fn with_hidden(mut self, width: i64) -> Self {
        if matches!(self.model, Model::Script(_)) && width > 0 {
            self.states.push(("h_in".into(), width));
        }
        self
    }

    /// Actions for the rows `obs [R][O]`, into `action [R][A]`.
    ///
    /// # Errors
    /// libtorch refuses; its actions have another width.
    pub fn act(&mut self, obs: &[f32], action: &Tensor) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        let rows = obs.len() / self.width.max(1);
        let numbers: Vec<f32> = obs
            .chunks_exact(self.width.max(1))
            .flat_map(|row| {
                let each = self.places.iter();
                each.map(|&(at, scale)| if scale == 0.0 { 0.0 } else { row[at] / scale })
            })
            .collect();
        let shape = [rows as i64, self.places.len() as i64];
        let terms = Tensor::f_from_slice(&numbers)?.f_view(shape)?;
        if self.kept.is_empty() {
            for (name, columns) in &self.states {
                let size = [rows as i64, *columns];
                let kept = Tensor::f_zeros(size, (Kind::Float, Device::Cpu))?;
                let begin = if name == "first" { kept.f_add_scalar(1.0)? } else { kept };
                self.kept.push(begin);
            }
        }
        let kept: Vec<Tensor> = self.kept.iter().map(Tensor::shallow_clone).collect();
        let (out, new) = match &self.model {
            Model::Onnx(model) => {
                let obs = model.inputs.first().map_or("obs", |(name, _)| name.as_str());
                let mut inputs = vec![(obs, &terms)];
                let states = self.states.iter().zip(&kept);
                inputs.extend(states.map(|((name, _), t)| (name.as_str(), t)));
                let mut given = model.run(&inputs)?;
                let out = given.remove("actions");
                (out, [given.remove("history_out"), given.remove("h_out")])
            }
            Model::Script(module) => {
                let mut inputs = vec![terms];
                inputs.extend(kept);
                let inputs: Vec<IValue> = inputs.into_iter().map(IValue::Tensor).collect();
                let given = module.forward_is(&inputs).map_err(|e| self.refused(&e))?;
                let given = match given {
                    IValue::Tensor(one) => one,
                    _ => return Err(TchError::Torch("it gives no tensor".into())),
                };
                // Side by side: actions, controls, history, hidden state.
                let mut at = 0;
                let mut next = |columns: i64| {
                    at += columns;
                    given.f_narrow(1, at - columns, columns)
                };
                let out = next(self.outputs as i64)?;
                // Its controls are not needed.
                let _ = next(self.controls as i64)?;
                let mut state = |name: &str| {
                    let own = self.states.iter().find(|(n, _)| n == name);
                    own.map(|(_, columns)| next(*columns)).transpose()
                };
                let history = state("history")?;
                let hidden = state("h_in")?;
                (Some(out), [history, hidden])
            }
        };
        let out = out.ok_or_else(|| TchError::Torch("it gives no actions".into()))?;
        let [history, hidden] = new;
        for ((name, _), kept) in self.states.iter().zip(&mut self.kept) {
            let new = match name.as_str() {
                "history" => history.as_ref(),
                "h_in" => hidden.as_ref(),
                _ => {
                    let _ = kept.f_fill_(0.0)?;
                    continue;
                }
            };
            let new =
                new.ok_or_else(|| TchError::Torch(format!("it does not give {name} back")))?;
            kept.f_copy_(new)?;
        }
        let size = out.size();
        if size != [rows as i64, self.outputs as i64] {
            let why = format!(
                "it gives actions of shape {size:?}; {} numbers a row are wanted",
                self.outputs
            );
            return Err(TchError::Torch(why));
        }
        action.shallow_clone().f_copy_(&out)
    }

    /// A TorchScript file does not say what it takes: what it was given, and the end of the
    /// trace that it answers with.
    fn refused(&self, e: &TchError) -> TchError {
        let states: String =
            self.states.iter().map(|(name, columns)| format!(" and {columns} of {name}")).collect();
        let text = e.to_string();
        // Behind it an exception has a list of calls.
        let text = text.split("\nException raised from").next().unwrap_or_default();
        let why = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or_default();
        TchError::Torch(format!(
            "the policy file does not take this task's {} numbers of observations{states}: {why}",
            self.places.len()
        ))
    }

    /// All episodes begin anew.
    pub fn forget_all(&mut self) {
        self.kept.clear();
    }

    /// Rows whose episode ended forget.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn forget(&mut self, ended: impl Iterator<Item = bool>) -> Result<(), TchError> {
        let ended: Vec<f32> = ended.map(|e| f32::from(u8::from(e))).collect();
        if self.kept.is_empty() || ended.iter().all(|e| *e == 0.0) {
            return Ok(());
        }
        let ended = Tensor::f_from_slice(&ended)?.f_view([-1, 1])?;
        let goes_on = ended.f_ne(1.0)?.f_to_kind(Kind::Float)?;
        for ((name, _), kept) in self.states.iter().zip(&mut self.kept) {
            match name.as_str() {
                "first" => kept.f_copy_(&ended)?,
                _ => {
                    let left = kept.f_mul(&goes_on)?;
                    kept.f_copy_(&left)?;
                }
            }
        }
        Ok(())
    }
}
