//! What a robot's program has to know of a policy, in JSON; and mjlab's keys for ONNX files.

use super::graph::Graph;
use super::vectors::Vector;
use crate::learner::Network;
use crate::learner::network::Head;
use crate::log::errln;
use crate::run::LoadedRun;
use ostler_sim::BatchEnv;
use ostler_sim::model::JointKind;
use ostler_sim::task::deploy::{Chance, Control, Deployment, Late, Mapping, Output};
use serde_json::{Value, json};

/// Version of the manifest.
const VERSION: u32 = 1;

/// All that is said of a policy.
pub struct About<'a> {
    run: &'a LoadedRun,
    of: &'a Deployment<'a>,
    name: &'a str,
    robot: String,
    /// Hinge and slide joints.
    joints: Vec<JointRow>,
    physics_dt: f64,
    /// Hash of the checkpoint's file.
    hash: String,
}

struct JointRow {
    name: String,
    unit: &'static str,
    range: Option<[f64; 2]>,
    pose: f64,
}

/// Names with commas between them: one in a name would make two of it.
fn listed(names: &[&str]) -> String {
    if let Some(name) = names.iter().find(|n| n.contains(',')) {
        errln!(
            "warning: lists in the metadata of ONNX have commas, so \"{name}\" stands there with _; \
             the manifest has it as it is"
        );
    }
    let plain: Vec<String> = names.iter().map(|n| n.replace(',', "_")).collect();
    plain.join(",")
}

impl<'a> About<'a> {
    /// Of a run's policy.
    pub fn new(run: &'a LoadedRun, env: &BatchEnv, of: &'a Deployment<'a>, name: &'a str) -> Self {
        let (model, pose) = (env.model(), env.pose());
        let scalar = model.joints.iter().filter(|j| j.is_scalar());
        let joints = scalar.map(|j| JointRow {
            name: j.name.clone(),
            unit: match j.kind {
                JointKind::Slide => "m",
                _ => "rad",
            },
            range: j.range,
            pose: pose.qpos.get(j.qpos_adr).copied().unwrap_or_default(),
        });
        let bytes = std::fs::read(&run.file).unwrap_or_default();
        Self {
            run,
            of,
            name,
            robot: model.name.clone(),
            joints: joints.collect(),
            physics_dt: run.config.sim.timestep(model),
            hash: blake3::hash(&bytes).to_hex().to_string(),
        }
    }

    /// The first lines of a header.
    pub fn lines(&self) -> Vec<String> {
        let control = self.of.controls.iter().map(|c| c.name.as_str());
        vec![
            format!(
                "Policy \"{}\" of robot \"{}\", exported by ostler {}.",
                self.name,
                self.robot,
                env!("CARGO_PKG_VERSION")
            ),
            format!(
                "{}, iteration {}, blake3 {}",
                self.run.file.display(),
                self.run.checkpoint.meta.iteration,
                self.hash
            ),
            format!(
                "Controls, in order: {}",
                control.collect::<Vec<_>>().join(", ")
            ),
        ]
    }

    /// The metadata of an ONNX file: mjlab's keys in its formats, lists with commas, numbers
    /// with all their digits.
    pub fn metadata(&self) -> Vec<(String, String)> {
        let list = |all: Vec<String>| all.join(",");
        let names = |all: Vec<&str>| listed(&all);
        let of_joint = |joint: &str| {
            let controls = self.of.controls.iter();
            controls.clone().find(|c| c.joint.as_deref() == Some(joint))
        };
        let driven: Vec<&Control> = self
            .joints
            .iter()
            .filter_map(|j| of_joint(&j.name))
            .collect();
        let each =
            |f: &dyn Fn(&Control) -> f64| list(driven.iter().map(|c| f(c).to_string()).collect());
        let scales: Vec<f32> = driven
            .iter()
            .map(|c| match c.mapping {
                Mapping::Affine { scale, .. } if c.position => scale / c.gear as f32,
                Mapping::Affine { scale, .. } => scale,
                _ => f32::NAN,
            })
            .collect();
        let mut all = vec![("run_path", self.run.dir.display().to_string())];
        all.push((
            "joint_names",
            names(self.joints.iter().map(|j| &*j.name).collect()),
        ));
        all.push(("joint_stiffness", each(&|c| c.stiffness.unwrap_or(0.0))));
        all.push(("joint_damping", each(&|c| c.damping.unwrap_or(0.0))));
        all.push((
            "default_joint_pos",
            list(
                self.joints
                    .iter()
                    .map(|j| (j.pose as f32).to_string())
                    .collect(),
            ),
        ));
        all.push((
            "command_names",
            names(self.of.commands.iter().map(|c| &*c.name).collect()),
        ));
        all.push((
            "observation_names",
            names(self.of.terms.iter().map(|t| &*t.name).collect()),
        ));
        // A choice has none.
        if scales.iter().all(|s| s.is_finite()) {
            all.push((
                "action_scale",
                list(scales.iter().map(f32::to_string).collect()),
            ));
        }
        all.push(("control_period", self.of.step_dt.to_string()));
        all.push(("ostler_version", env!("CARGO_PKG_VERSION").to_string()));
        all.push(("checkpoint_blake3", self.hash.clone()));
        all.into_iter()
            .map(|(key, value)| (key.to_string(), value))
            .collect()
    }

    /// The manifest.
    pub fn manifest(&self, graph: &Graph, network: &Network, vectors: &[Vector]) -> Value {
        let of = self.of;
        let config = &self.run.config;
        let joints = self.joints.iter().map(|j| {
            json!({ "name": j.name, "unit": j.unit, "range": j.range, "default_pos": j.pose as f32 })
        });
        let inputs = graph
            .inputs()
            .map(|(name, width)| json!({ "name": name, "shape": ["N", width] }));
        let outputs = graph.outputs.iter();
        let outputs = outputs
            .map(|(name, id)| json!({ "name": name, "shape": ["N", graph.nodes[*id].width] }));
        json!({
            "format": "ostler-policy",
            "version": VERSION,
            "name": self.name,
            "program": { "name": "ostler", "version": env!("CARGO_PKG_VERSION") },
            "run": {
                "name": config.name,
                "folder": self.run.dir,
                "checkpoint": self.run.file,
                "checkpoint_blake3": self.hash,
                "iteration": self.run.checkpoint.meta.iteration,
                "algorithm": config.runner.algorithm.name(),
            },
            "robot": { "name": self.robot, "joints": joints.collect::<Vec<_>>() },
            "agent": of.name,
            "control": {
                "period_s": of.step_dt,
                "rate_hz": 1.0 / of.step_dt,
                "decimation": config.env.decimation,
                "physics_period_s": self.physics_dt,
            },
            "frames": "SI units, radians; world z up; quaternions w, x, y, z; angular velocities of a base in its own axes",
            "inputs": inputs.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Vec<_>>(),
            "observations": self.observations(),
            "observation_width": of.width,
            "commands": of.commands.iter().map(|c| json!({
                "name": c.name,
                "unit": c.unit,
                "range": c.range.iter().map(|r| range(*r)).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "actions": of.outputs.iter().map(output).collect::<Vec<_>>(),
            "controls": of.controls.iter().map(control).collect::<Vec<_>>(),
            "held": of.held.iter().map(|(name, value)| json!({ "name": name, "control": value })).collect::<Vec<_>>(),
            "network": {
                "hidden_dims": network.hidden.iter().map(|h| h.layer.outputs).collect::<Vec<_>>(),
                "activation": network.activation,
                "layer_norm": network.hidden.iter().any(|h| h.norm.is_some()),
                "normalised": network.norm.is_some(),
                "recurrent_state": network.state(),
                "head": match network.head {
                    Head::Mean => "mean",
                    Head::Squashed { .. } => "tanh",
                    Head::Largest => "largest",
                },
            },
            "test_vectors": {
                "says": "what ostler decides in successive steps, from an episode's first on; `first`: one begins, history and hidden states are forgotten",
                "tolerance": 1e-5,
                "steps": vectors,
            },
        })
    }

    fn observations(&self) -> Vec<Value> {
        let placed = self.of.placed();
        placed
            .map(|(at, t)| {
                json!({
                    "name": t.name,
                    "expression": t.expr,
                    "unit": t.unit,
                    "elements": t.elements,
                    "first": at,
                    "size": t.len,
                    "scale": t.scale,
                    "clip": t.clip,
                    "history": t.frames,
                    "row": { "first": t.first, "stride": t.stride },
                    "noise": t.noise.map(chance),
                    "bias": t.bias.map(chance),
                    "delay": t.delay.map(late),
                })
            })
            .collect()
    }
}

/// A range, without ends where nothing limits it: JSON has no infinity.
fn range(range: [f32; 2]) -> Value {
    let end = |x: f32| x.is_finite().then_some(x);
    json!([end(range[0]), end(range[1])])
}

fn chance(chance: Chance) -> Value {
    match chance {
        Chance::Uniform(range) => json!({ "uniform": range }),
        Chance::Normal(sigma) => json!({ "normal": sigma }),
    }
}

fn late(late: Late) -> Value {
    json!({ "control_steps": late.steps, "redraw": late.redraw, "hold": late.hold })
}

fn output(o: &Output) -> Value {
    json!({ "name": o.name, "clip": range(o.clip), "delay": o.delay.map(late) })
}

fn control(c: &Control) -> Value {
    let mapping = match &c.mapping {
        Mapping::Affine { scale, offset } => json!({ "scale": scale, "offset": offset }),
        Mapping::Choice(row) => json!({ "choices": row }),
        Mapping::Binary(row) => json!({ "below_0": row[0], "else": row[1] }),
    };
    json!({
        "name": c.name,
        "joint": c.joint,
        "action": c.output,
        "mapping": mapping,
        "range": range(c.range),
        "joint_target": c.position,
        "gear": c.gear,
        "unit": c.unit,
        "stiffness": c.stiffness,
        "damping": c.damping,
        "effort_limit": c.effort,
        "delay_physics_steps": c.delay,
    })
}
