//! N worlds that MuJoCo steps in the user's Python, behind the interface of our own
//! engines: a policy is judged by the engine that it was not trained on.

use super::ground;
use super::mujoco::{MuJoCo, RefereeError};
use super::names::{self, known};
use crate::config::SimConfig;
use crate::physics::{Limits, Physics, SnapshotError, State, fault};
use bytemuck::{cast_slice, cast_slice_mut};
use ostler_base::files;
use ostler_base::memory::zeroed;
use ostler_model::edit::{Base, Floor, Height};
use ostler_model::{
    Actuator, ContactReading, ContactSensor, EqualityKind, Field, Given, Layer, Model, Motor,
    MotorLaw, NetworkKind, Varied,
};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Why the worlds stand still, once they do: [`Physics`] has no way to say it.
#[derive(Debug, Clone, Default)]
pub struct Failure(Arc<Mutex<Option<RefereeError>>>);

impl Failure {
    /// The first error since the worlds were made; the next call returns none.
    pub fn take(&self) -> Option<RefereeError> {
        match self.0.lock() {
            Ok(mut error) => error.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        }
    }

    fn put(&self, error: RefereeError) {
        if let Ok(mut first) = self.0.lock() {
            first.get_or_insert(error);
        }
    }
}

/// Worlds of a model, stepped by MuJoCo with the file's own options.
///
/// For judging, not for training: it has no snapshots. Numbers go through files in
/// single precision; MuJoCo keeps the worlds in double.
pub struct MuJoCoWorlds {
    mujoco: MuJoCo,
    model: Arc<Model>,
    state: State,
    timestep: f64,
    /// Speeds and distances beyond which a world is broken.
    limits: Limits,
    given: PathBuf,
    answer: PathBuf,
    /// Messages in both directions.
    buffer: Vec<f32>,
    /// Faults since the last reset that MuJoCo does not see.
    seen: Vec<u32>,
    /// Delays of actuators in the physics steps of the next control step.
    delays: Vec<f32>,
    /// Activations of the next reset.
    activations: Vec<f32>,
    kernel: String,
    failure: Failure,
}

impl MuJoCoWorlds {
    /// `num_envs` worlds in the initial pose, with the time step and the limits of
    /// `config`.
    ///
    /// # Errors
    /// MuJoCo refuses the file, reads another robot in it, or memory does not suffice.
    pub fn new(
        mut mujoco: MuJoCo,
        model: &Arc<Model>,
        num_envs: usize,
        config: &SimConfig,
    ) -> Result<Self, RefereeError> {
        let refused = |e: &dyn std::fmt::Display| RefereeError::Refused(e.to_string());
        if model.edits.base == Some(Base::Fixed) {
            let why = "reads the robot's file with its free joint, which task.base = \"fixed\" takes \
                       away; write that into the file";
            return Err(refused(&why));
        }
        let file =
            model.sources.first().ok_or_else(|| refused(&"the robot was not read from a file"))?;
        let read = mujoco.robot(file, model.naming.within.as_deref())?;
        let timestep = config.timestep(model);
        let (given, answer) = (mujoco.scratch("given.bin"), mujoco.scratch("answer.bin"));
        let measured = model.sensors.iter().enumerate();
        let sensors: Vec<usize> =
            measured.filter(|(_, s)| s.kind.measured() > 0).map(|(i, _)| i).collect();
        let geoms = known(model);
        let element = |v: &Varied| match v.field {
            Field::Friction => geoms[v.element],
            _ => v.element,
        };
        let varied = model.varied.iter();
        let varied: Vec<Value> = varied.map(|v| json!([v.field.name(), element(v)])).collect();
        let mut changes = changes(model);
        changes["terrain"] = ground::laid(model, &mujoco.scratch("terrain.bin"))?;
        let theirs = mujoco.ask(&json!({
            "op": "worlds", "what": "opened", "varied": varied, "motors": motors(model), "changes": changes,
            "contacts": contacts(model), "model": read, "count": num_envs,
            "timestep": timestep, "sensors": sensors, "skipped": model.skipped,
            "given": given, "answer": answer,
        }))?;
        names::check(model, &theirs).map_err(|why| {
            let file = file.display();
            refused(&format!("reads another robot in {file}: {why}"))
        })?;
        let state = State::new(model, num_envs).map_err(|e| refused(&e))?;
        let rows = Self::answered(&state);
        let news = model.nu() + 1 + model.nvaried() + model.nv;
        let most = rows.max((1 + model.nq + model.nv + model.na).max(news) * num_envs);
        let buffer = zeroed("MuJoCo's answers", most).map_err(|e| refused(&e))?;
        let activations = zeroed("act", model.na * num_envs).map_err(|e| refused(&e))?;
        let kernel = format!("mujoco-{}", mujoco.version);
        let mut worlds = Self {
            mujoco,
            model: Arc::clone(model),
            timestep,
            limits: Limits::of(config, model).map_err(|e| refused(&e))?,
            given,
            answer,
            buffer,
            seen: vec![0; num_envs],
            delays: Vec::new(),
            activations,
            kernel,
            failure: Failure::default(),
            state,
        };
        let columns = |row: &[f64]| -> Vec<f32> {
            row.iter().flat_map(|x| std::iter::repeat_n(*x as f32, num_envs)).collect()
        };
        let qpos = columns(&model.qpos0);
        let qvel = vec![0.0; model.nv * num_envs];
        worlds.reset(&vec![1; num_envs], &qpos, &qvel);
        match worlds.failure.take() {
            Some(error) => Err(error),
            None => Ok(worlds),
        }
    }

    /// Tells why the worlds stand still, if they do.
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }

    /// Numbers in an answer: those of the state, and which worlds broke.
    fn answered(state: &State) -> usize {
        let all = state.floats().iter().map(|b| b.len()).sum::<usize>();
        all - state.varied.len() + state.num_envs
    }

    /// Sends the first `count` numbers of the buffer, takes the answer into the state.
    /// After an error every world is broken.
    fn exchange(&mut self, request: &Value, count: usize) {
        if let Err(error) = self.ask(request, count) {
            self.failure.put(error);
            for bits in &mut self.state.fault {
                *bits |= fault::ENGINE;
            }
        }
    }

    fn ask(&mut self, request: &Value, count: usize) -> Result<(), RefereeError> {
        let out = self.buffer.get(..count).unwrap_or(&self.buffer);
        let give = || {
            let mut given = files::update(&self.given)?;
            given.set_len(0)?;
            given.write_all(cast_slice::<f32, u8>(out))
        };
        give().map_err(RefereeError::Folder)?;
        self.mujoco.ask(request)?;
        let rows = Self::answered(&self.state);
        let into = cast_slice_mut::<f32, u8>(&mut self.buffer[..rows]);
        let answer = files::read(&self.answer, into.len() as u64).map_err(RefereeError::Folder)?;
        if answer.len() != into.len() {
            let why = format!("{} bytes for {}", answer.len(), into.len());
            return Err(RefereeError::Refused(format!("answers {why}")));
        }
        into.copy_from_slice(&answer);
        self.take();
        Ok(())
    }

    /// Behind `count` numbers of a request: which worlds have new numbers or velocities, and
    /// these. Returns the length of all.
    fn new_numbers(&mut self, count: usize) -> usize {
        if self.model.varied.is_empty() && self.state.stale.iter().all(|s| *s == 0) {
            // Nothing varies, nothing is pushed: the request says so by its length.
            return count;
        }
        let state = &mut self.state;
        let stale = state.stale.iter().map(|s| *s as f32);
        let numbers = state.varied.iter().chain(&state.qvel).copied();
        let mut end = count;
        for (to, from) in self.buffer[count..].iter_mut().zip(stale.chain(numbers)) {
            *to = from;
            end += 1;
        }
        state.stale.fill(0);
        end
    }

    /// Takes the answer over, world by world: one that broke stays as it was.
    fn take(&mut self) {
        let n = self.state.num_envs;
        let state = &mut self.state;
        // What varies is not theirs to say.
        let varied = std::mem::take(&mut state.varied);
        let mut parts = state.floats_mut();
        let all = parts.iter().map(|p| p.len()).sum::<usize>();
        let broken = self.buffer.get(all..).unwrap_or_default();
        for e in 0..n {
            if broken.get(e) != Some(&0.0) {
                self.seen[e] |= fault::NON_FINITE;
            }
            let mut at = e;
            for part in &mut parts {
                for value in part.iter_mut().skip(e).step_by(n) {
                    if self.seen[e] & !fault::CONTROL == 0 {
                        *value = self.buffer[at];
                    }
                    at += n;
                }
            }
        }
        state.varied = varied;
        let beyond = |v: &[f32], e: usize, limits: &[f32]| {
            limits.iter().enumerate().any(|(b, limit)| {
                let of = |k: usize| v[(3 * b + k) * n + e];
                let sum = of(0) * of(0) + of(1) * of(1) + of(2) * of(2);
                sum.is_nan() || sum > limit * limit
            })
        };
        let l = &self.limits;
        for e in 0..n {
            let column = |of: &'_ [f32]| of.iter().skip(e).step_by(n).copied().collect::<Vec<_>>();
            let [qvel, qpos] = [column(&state.qvel), column(&state.qpos)];
            let [fast, far] = l.own_beyond(qvel.into_iter(), qpos.into_iter());
            let speed = &l.body_speed;
            if fast
                || beyond(&state.body_lin_vel, e, speed)
                || beyond(&state.body_ang_vel, e, speed)
            {
                self.seen[e] |= fault::SPEED;
            }
            if far || beyond(&state.body_pos, e, &l.body_position) {
                self.seen[e] |= fault::POSITION;
            }
        }
        state.fault.copy_from_slice(&self.seen);
    }
}

/// The contact sensors.
fn contacts(model: &Model) -> Vec<Value> {
    let known = known(model);
    let geoms = |of: &[usize]| of.iter().map(|g| known[*g]).collect::<Vec<_>>();
    let sensors = model.contact_sensors.iter();
    let sensor = |s: &ContactSensor| {
        let (reads, above) = match s.reads {
            ContactReading::Force => ("force", 0.0),
            ContactReading::Net => ("net", 0.0),
            ContactReading::Place => ("place", 0.0),
            ContactReading::Normal => ("normal", 0.0),
            ContactReading::Count(above) => ("count", above),
            ContactReading::TimeIn => ("held", 0.0),
            ContactReading::TimeOut => ("free", 0.0),
        };
        json!([geoms(&s.of), geoms(&s.with), reads, above, s.last])
    };
    sensors.map(sensor).collect()
}

/// Joints of a URDF that follow others, which MuJoCo reads from version 4: both joints' names
/// and the polynomial.
fn mimics(model: &Model) -> Vec<Value> {
    let urdf = model.sources.first().and_then(|p| p.extension());
    if !urdf.is_some_and(|e| e.eq_ignore_ascii_case("urdf")) {
        return Vec::new();
    }
    let all = model.equalities.iter().filter_map(|e| match e.kind {
        EqualityKind::Joint { joint1, joint2: Some(joint2), polycoef } => {
            let name = |j: usize| model.joints[j].name.as_str();
            Some(json!([name(joint1), name(joint2), polycoef]))
        }
        _ => None,
    });
    all.collect()
}

/// What the task changes in the file besides actuators.
fn changes(model: &Model) -> Value {
    let edits = &model.edits;
    let root = (1..model.bodies.len())
        .find(|b| model.bodies[*b].parent == 0 && model.bodies[*b].weld != 0)
        .map(|b| &model.bodies[b].name);
    let height = match edits.height {
        Some(Height::At(z)) => Some(z),
        Some(Height::OnFloor) | None => None,
    };
    let plane = |f: &Floor| json!({"height": f.height, "friction": f.friction});
    let known = known(model);
    let geom = |g: &usize| {
        let mut row = ground::touches(&model.geoms[*g]);
        row["geom"] = known[*g].into();
        row
    };
    let geoms: Vec<Value> = model.changed_geoms.iter().map(geom).collect();
    let off = |flag: &str| model.options.flags.contains(&(flag.to_string(), false));
    let convex_off = ["nativeccd", "multiccd"].map(off);
    json!({
        "balance": edits.balance, "mimics": mimics(model),
        "floor": edits.floor.as_ref().map(plane), "root": root, "height": height,
        "free": edits.base == Some(Base::Free), "geoms": geoms,
        "integrator": model.options.integrator as u32, "cone": model.options.cone as u32,
        "impratio": model.options.impratio,
        "noslip_iterations": model.options.noslip_iterations,
        "iterations": model.options.stops_early.then_some(model.options.iterations),
        "convex_off": convex_off,
    })
}

/// The actuators that the task gives, with their joints' numbers and names and what they
/// remember, for
/// `tests/referee/mujoco_motors.py`.
fn motors(model: &Model) -> Vec<Value> {
    let given = model.actuators.iter().enumerate();
    let given = given.filter(|(_, a)| a.given != Given::File);
    let motor = |(u, a): (usize, &Actuator)| {
        let joint = a.joint().map(|j| (j, &model.joints[j]));
        json!({
            "actuator": u, "name": a.name, "added": a.given == Given::Task,
            "joint": joint.map(|(j, _)| j), "target": joint.map(|(_, j)| &j.name),
            "armature": joint.map(|(_, j)| j.armature),
            "frictionloss": joint.map(|(_, j)| j.frictionloss),
            "gear": a.gear, "gain": a.gain, "bias": a.bias, "forcerange": a.forcerange,
            "motor": a.motor.as_ref().map(|motor| law(model, motor)),
        })
    };
    given.map(motor).collect()
}

fn law(model: &Model, motor: &Motor) -> Value {
    let limit = motor.law.limit();
    let layers = |layers: &[Layer]| -> Vec<Value> {
        let each = layers.iter();
        each.map(
            |l| json!({"inputs": l.inputs, "weight": l.weight, "bias": l.bias, "then": l.then}),
        )
        .collect()
    };
    let network = match &motor.law {
        MotorLaw::Network { network, .. } => {
            let n = &model.networks[*network];
            let (cells, steps, swap) = match &n.kind {
                NetworkKind::Mlp { steps, velocities_first } => {
                    (&[][..], steps.clone(), *velocities_first)
                }
                NetworkKind::Lstm { cells, .. } => (&cells[..], Vec::new(), false),
            };
            Some(json!({
                "scales": [n.position_scale, n.velocity_scale, n.effort_scale],
                "steps": steps, "velocities_first": swap,
                "cells": layers(cells), "layers": layers(&n.layers),
            }))
        }
        _ => None,
    };
    let (mujoco, gains) = match &motor.law {
        MotorLaw::MuJoCo => (true, [0.0; 2]),
        MotorLaw::Pd { stiffness, damping, .. } => (false, [*stiffness, *damping]),
        MotorLaw::Network { .. } => (false, [0.0; 2]),
    };
    let redrawn = model.redrawn();
    let redrawn = redrawn.iter().position(|m| m.group == motor.group);
    let redrawn = redrawn.filter(|_| motor.delay.redraw > 0);
    let effort = limit.map(|l| l.effort).filter(|e| e.is_finite());
    json!({
        "delay": motor.delay.least, "most_delay": motor.delay.most, "mujoco": mujoco, "redrawn": redrawn,
        "gains": gains, "effort": effort, "fall": limit.and_then(|l| l.fall),
        "network": network,
    })
}

impl Physics for MuJoCoWorlds {
    fn state(&self) -> &State {
        &self.state
    }

    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        let n = self.state.num_envs;
        let count = self.model.nu() * n;
        for (i, to) in self.buffer.iter_mut().take(count).enumerate() {
            let given = ctrl.get(i).copied().unwrap_or(f32::NAN);
            *to = if given.is_finite() { given } else { 0.0 };
            if !given.is_finite() {
                self.seen[i % n] |= fault::CONTROL;
            }
        }
        let delays = std::mem::take(&mut self.delays);
        let news = 1 + self.model.nvaried() + self.model.nv;
        let room = count + delays.len() + news * n;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0.0);
        }
        self.buffer[count..count + delays.len()].copy_from_slice(&delays);
        let rows = delays.len() / n.max(1);
        let count = self.new_numbers(count + delays.len());
        let request = json!({
            "op": "worlds", "what": "step", "substeps": substeps, "delays": rows,
        });
        self.delays = delays;
        self.delays.clear();
        self.exchange(&request, count);
    }

    fn delay(&mut self, steps: &[f32]) {
        self.delays.clear();
        self.delays.extend_from_slice(steps);
    }

    fn activate(&mut self, act: &[f32]) {
        assert_eq!(act.len(), self.activations.len(), "act is [na][N]");
        self.activations.copy_from_slice(act);
    }

    fn varies(&self) -> bool {
        true
    }

    fn columns_mut(&mut self) -> Option<&mut State> {
        Some(&mut self.state)
    }

    fn reset(&mut self, mask: &[u32], qpos: &[f32], qvel: &[f32]) {
        let n = self.state.num_envs;
        let (first, rest) = self.buffer.split_at_mut(n);
        for (e, to) in first.iter_mut().enumerate() {
            let reset = mask.get(e).is_some_and(|m| *m != 0);
            *to = f32::from(u8::from(reset));
            if reset {
                self.seen[e] = 0;
            }
        }
        let act = &mut self.activations;
        for (to, from) in rest.iter_mut().zip(qpos.iter().chain(qvel).chain(&*act)) {
            *to = *from;
        }
        act.fill(0.0);
        let request = json!({"op": "worlds", "what": "reset"});
        self.exchange(&request, (1 + self.model.nq + self.model.nv + self.model.na) * n);
    }

    fn measures(&self) -> bool {
        true
    }

    fn timestep(&self) -> f64 {
        self.timestep
    }

    fn kernel(&self) -> Option<&str> {
        Some(&self.kernel)
    }

    fn capture(&self, _: &mut Vec<u8>) -> Result<(), SnapshotError> {
        Err(SnapshotError::Unfit("MuJoCo's worlds have none".into()))
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), SnapshotError> {
        Err(SnapshotError::Unfit("MuJoCo's worlds have none".into()))
    }
}
