//! What a robot's program has to know of a policy, in JSON; and mjlab's keys for ONNX files.

use super::graph::Graph;
use super::vectors::Vector;
use crate::log::errln;
use crate::run::LoadedRun;
use ostler_learn::learner::Network;
use ostler_learn::learner::network::Head;
use ostler_sim::BatchEnv;
use ostler_sim::model::Delay;
use ostler_sim::task::deploy::{
    Control, DeployedJoint, Deployment, Entry, Mapping, Output, aligned,
};
use ostler_sim::task::draw::Draw;
use serde_json::{Value, json};

/// Version of the manifest.
const VERSION: u32 = 1;

/// All that is said of a policy.
pub(crate) struct About<'a> {
    run: &'a LoadedRun,
    of: &'a Deployment<'a>,
    name: &'a str,
    robot: String,
    /// What outputs drive, and what none does, in columns.
    table: Vec<String>,
    physics_dt: f64,
    /// Hash of the checkpoint's file.
    hash: String,
}

impl<'a> About<'a> {
    /// Of a run's policy.
    pub(crate) fn new(
        run: &'a LoadedRun,
        env: &BatchEnv,
        of: &'a Deployment<'a>,
        name: &'a str,
    ) -> Self {
        let model = env.model();
        let rows = [of.rows(), Deployment::idle(env.compiled(), model)].concat();
        let bytes = std::fs::read(&run.file).unwrap_or_default();
        Self {
            run,
            of,
            name,
            robot: model.name.clone(),
            table: aligned(&rows, None),
            physics_dt: run.config.sim.timestep(model),
            hash: blake3::hash(&bytes).to_hex().to_string(),
        }
    }

    /// The first lines of a header.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
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
            "Controls, in order: those of outputs 0, 1, ...; control = offset + scale * output."
                .to_string(),
        ];
        lines.extend(self.geared());
        lines.extend(self.table.iter().cloned());
        lines
    }

    /// Which controls are targets of joints times a gear: a motor that takes radians or metres and
    /// the joint's gains goes wrong with them.
    pub(crate) fn geared(&self) -> Vec<String> {
        let geared = self.of.controls.iter().enumerate();
        let geared = geared.filter(|(_, c)| c.position && c.gear != 1.0);
        geared
            .map(|(k, c)| {
                let joint = c.joint.as_ref().map_or("", |j| j.name.as_str());
                format!(
                    "control {k} (\"{}\") is {} times the target of joint \"{joint}\", the gear of its \
                     actuator: a motor that takes the target itself ({}), with this kp and kd, gets \
                     control[{k}] / {}",
                    c.name, c.gear, c.unit, c.gear
                )
            })
            .collect()
    }

    /// The metadata of ONNX and TorchScript files: mjlab's keys in its formats, lists with commas,
    /// numbers with all their digits. Lists about outputs have one entry for each, in the order of
    /// `actions`; joints that are none of theirs alone have lists of their own.
    ///
    /// A list with a name that has a comma is left out, since nobody could read it.
    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        let (entries, others) = (self.of.entries(), self.of.others());
        let numbers = |each: &dyn Fn(&Entry<'_>) -> f64| {
            entries.iter().map(|e| each(e).to_string()).collect::<Vec<_>>()
        };
        // Where no joint is meant, no number of one is.
        let of_joint = |entry: &Entry<'_>, x: f64| if entry.joint.is_some() { x } else { f64::NAN };
        let gain = |entry: &Entry<'_>, of: fn(&Control) -> Option<f64>| {
            of_joint(entry, entry.control.and_then(of).unwrap_or(0.0))
        };
        let affine = |k: usize| {
            let each = move |e: &Entry<'_>| e.affine().map_or(f32::NAN, |a| a[k]);
            entries.iter().map(|e| each(e).to_string()).collect::<Vec<_>>()
        };
        let joint = |e: &Entry<'_>| match &e.joint {
            Some(joint) => joint.name.clone(),
            None => format!("({})", e.drives),
        };
        let pose = |j: &DeployedJoint| (j.pose as f32).to_string();
        let default = |e: &Entry<'_>| e.joint.map_or("NaN".into(), pose);
        let other = |of: fn(&Control) -> Option<f64>| {
            let gain = |u: &Option<Control>| u.as_ref().and_then(of).unwrap_or(0.0).to_string();
            others.iter().map(|(_, u)| gain(u)).collect::<Vec<_>>()
        };
        let lists: [(&str, Vec<String>); 13] = [
            ("action_names", entries.iter().map(|e| e.name.to_string()).collect()),
            ("joint_names", entries.iter().map(joint).collect()),
            ("joint_stiffness", numbers(&|e| gain(e, |c| c.stiffness))),
            ("joint_damping", numbers(&|e| gain(e, |c| c.damping))),
            ("default_joint_pos", entries.iter().map(default).collect()),
            ("action_scale", affine(0)),
            ("action_offset", affine(1)),
            ("other_joint_names", others.iter().map(|(j, _)| j.name.clone()).collect()),
            ("other_joint_stiffness", other(|c| c.stiffness)),
            ("other_joint_damping", other(|c| c.damping)),
            ("other_default_joint_pos", others.iter().map(|(j, _)| pose(j)).collect()),
            ("command_names", self.of.commands.iter().map(|c| c.name.clone()).collect()),
            ("observation_names", self.of.terms.iter().map(|t| t.name.clone()).collect()),
        ];
        let mut all = vec![("run_path".to_string(), self.run.dir.display().to_string())];
        for (key, list) in lists {
            match list.iter().find(|entry| entry.contains(',')) {
                None => all.push((key.to_string(), list.join(","))),
                Some(name) => errln!(
                    "warning: the file gets no metadata {key}: entries are parted by commas, and \"{name}\" \
                     has one; rename it, or read the manifest"
                ),
            }
        }
        all.extend(self.of.name.iter().map(|agent| ("agent".to_string(), agent.clone())));
        for (key, value) in [
            ("control_period", self.of.step_dt.to_string()),
            ("ostler_version", env!("CARGO_PKG_VERSION").to_string()),
            ("checkpoint_blake3", self.hash.clone()),
        ] {
            all.push((key.to_string(), value));
        }
        all
    }

    /// Where a program that knows mjlab's keys alone would go wrong: one line each.
    pub(crate) fn beyond_mjlab(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let entries = self.of.entries();
        // A joint of two actuators is seen once.
        let mut names: Vec<&str> = Vec::new();
        for joint in entries.iter().filter_map(|e| e.joint) {
            if !names.contains(&joint.name.as_str()) {
                names.push(&joint.name);
            }
        }
        for term in &self.of.terms {
            let both = |of: &[&str], with: &[&str]| -> Vec<String> {
                let both = of.iter().filter(|name| with.contains(name));
                both.map(ToString::to_string).collect()
            };
            let seen: Vec<&str> = term.elements.iter().map(String::as_str).collect();
            let (theirs, ours) = (both(&seen, &names), both(&names, &seen));
            if seen.len() == term.len && theirs != ours {
                notes.push(format!(
                    "observation \"{}\" has joints in another order than joint_names, which is that \
                     of the actions: a program has to fill it as the manifest says, or write the \
                     actuators of [[task.action]] and the joints of the observation in one order",
                    term.name
                ));
            }
        }
        let shifted = entries.iter().find(|e| {
            let target = e.control.is_some_and(|c| c.position);
            let offset = e.affine().map(|a| a[1]);
            let apart = offset.zip(e.joint).map(|(o, j)| (o - j.pose as f32).abs());
            target && apart.is_some_and(|apart| apart > 1e-5)
        });
        if let Some(entry) = shifted {
            notes.push(format!(
                "targets of \"{}\" are about action_offset, not about default_joint_pos: a program \
                 that adds the latter to scaled actions goes wrong",
                entry.name
            ));
        }
        notes
    }

    /// The manifest.
    pub(crate) fn manifest(&self, graph: &Graph, network: &Network, vectors: &[Vector]) -> Value {
        let of = self.of;
        let config = &self.run.config;
        let joints = of.joints.iter().map(|j| {
            json!({
                "name": j.name,
                "unit": j.unit,
                "qpos": j.qpos,
                "range": j.range,
                "default_pos": j.pose as f32,
            })
        });
        let others = of.others();
        let inputs =
            graph.inputs().map(|(name, width)| json!({ "name": name, "shape": ["N", width] }));
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
            "actions": of.outputs.iter().zip(of.entries()).map(output).collect::<Vec<_>>(),
            "controls": of.controls.iter().map(control).collect::<Vec<_>>(),
            "other_joints": others.iter().map(|(j, _)| &j.name).collect::<Vec<_>>(),
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
                "says": "what ostler decides in successive steps, from an episode's first on; `first`: one begins, history and hidden states are forgotten; `obs`: before scale, as the scaled and clipped numbers have it: what was clipped is at an end of its range, what has the scale 0 is 0",
                "tolerance": 1e-5,
                "relative_tolerance": 1e-5,
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
                    "clip": t.clip.map(range),
                    "history": t.frames,
                    "row": { "first": t.first, "stride": t.stride },
                    "noise": t.noise.as_ref().map(|draw| noise(draw, &t.noise_sizes)),
                    "bias": t.bias.as_ref().map(Draw::json),
                    "delay": t.delay.map(late),
                })
            })
            .collect()
    }
}

/// Noise, of each component where it differs.
fn noise(draw: &Draw, sizes: &[f32]) -> Value {
    match sizes {
        [] => draw.json(),
        each => each.iter().map(|size| draw.scaled(*size).json()).collect(),
    }
}

/// A range, without ends where nothing limits it: JSON has no infinity.
fn range(range: [f32; 2]) -> Value {
    let end = |x: f32| x.is_finite().then_some(x);
    json!([end(range[0]), end(range[1])])
}

fn late(late: Delay) -> Value {
    json!({ "control_steps": [late.least, late.most], "redraw": late.redraw, "hold": late.hold })
}

fn output((o, entry): (&Output, Entry<'_>)) -> Value {
    json!({
        "name": o.name,
        "joint": entry.joint.map(|j| &j.name),
        "drives": entry.drives,
        "clip": range(o.clip),
        "delay": o.delay.map(late),
    })
}

fn control(c: &Control) -> Value {
    let mapping = match &c.mapping {
        Mapping::Affine { scale, offset } => json!({ "scale": scale, "offset": offset }),
        Mapping::Choice(row) => json!({ "choices": row }),
        Mapping::Binary(row) => json!({ "below_0": row[0], "else": row[1] }),
    };
    // What a motor takes that follows the joint with these gains.
    let target = match &c.mapping {
        Mapping::Affine { scale, offset } if c.position => {
            let by = c.gear as f32;
            json!({ "scale": scale / by, "offset": offset / by, "unit": c.unit })
        }
        _ => Value::Null,
    };
    let added_to = c.added_to.map(|(what, ends)| json!({ "what": what, "range": range(ends) }));
    json!({
        "name": c.name,
        "added_to": added_to,
        "joint": c.joint.as_ref().map(|j| &j.name),
        "drives": c.drives,
        "action": c.output,
        "mapping": mapping,
        "range": range(c.range),
        "joint_target": c.position,
        "gear": c.gear,
        "unit": match c.position && c.gear != 1.0 {
            true => format!("{} x gear", c.unit),
            false => c.unit.to_string(),
        },
        "target": target,
        "stiffness": c.stiffness,
        "damping": c.damping,
        "effort_limit": c.effort,
        "delay_physics_steps": c.delay,
    })
}
