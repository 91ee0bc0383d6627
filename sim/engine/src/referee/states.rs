//! States of a model, an engine's answers, a referee's answers; as files.

use crate::physics::evaluate::States;
use ostler_base::npz::{Expected, Npz, NpzError};
use ostler_model::Model;
use std::path::Path;

/// K states of a model, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateTable {
    /// K.
    pub count: usize,
    /// Generalised positions `[K, nq]`.
    pub qpos: Vec<f64>,
    /// Generalised velocities `[K, nv]`.
    pub qvel: Vec<f64>,
    /// Controls `[K, nu]`.
    pub ctrl: Vec<f64>,
    /// Activations `[K, na]`.
    pub act: Vec<f64>,
    /// Numbers of the model that differ between environments `[K, nvaried]`.
    pub varied: Vec<f64>,
}

impl StateTable {
    /// Borrows the arrays.
    pub fn view(&self) -> States<'_> {
        States {
            qpos: &self.qpos,
            qvel: &self.qvel,
            ctrl: &self.ctrl,
            act: &self.act,
            varied: &self.varied,
        }
    }
}

fn expected(rows: Option<usize>, columns: usize, label: &str) -> Expected<'_> {
    Expected { rows, columns: Some(columns), label }
}

/// `qpos`, `qvel`, `ctrl` (if the model has actuators), `act` (if it has activations).
fn read_states(file: &mut Npz, model: &Model) -> Result<StateTable, NpzError> {
    let (qpos, count) = file.finite("qpos", expected(None, model.nq, "nq"))?;
    let (qvel, _) = file.finite("qvel", expected(Some(count), model.nv, "nv"))?;
    let mut optional = |name: &str, columns: usize, label: &str| {
        if columns == 0 && !file.has(name) {
            return Ok(Vec::new());
        }
        let (values, _) = file.finite(name, expected(Some(count), columns, label))?;
        Ok(values)
    };
    Ok(StateTable {
        ctrl: optional("ctrl", model.nu(), "nu")?,
        act: optional("act", model.na, "na")?,
        varied: optional("varied", model.nvaried(), "nvaried")?,
        count,
        qpos,
        qvel,
    })
}

/// States and MuJoCo's answers, as `tests/referee/mujoco_states.py` writes them.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    /// The states.
    pub states: StateTable,
    /// Accelerations `[K, nv]`.
    pub qacc: Vec<f64>,
    /// Readings of sensors that are measured while a world steps `[K, nmeasured]`.
    pub sensordata: Vec<f64>,
    /// Positions after one step `[K, nq]`.
    pub qpos_next: Vec<f64>,
    /// Velocities after one step `[K, nv]`.
    pub qvel_next: Vec<f64>,
    /// Activations after one step `[K, na]`.
    pub act_next: Vec<f64>,
    /// Contacts `[K]`.
    pub ncon: Vec<u32>,
    /// Constraint rows of contacts `[K]`.
    pub contact_rows: Vec<u32>,
    /// Constraint rows of joint and tendon limits `[K]`.
    pub limit_rows: Vec<u32>,
    /// Constraint rows of equalities and friction losses `[K]`.
    pub other_rows: Vec<u32>,
    /// 1 where MuJoCo found a contact by an iterative method `[K]`.
    pub iterative: Vec<u32>,
    /// 1 where a stage of the step has such a contact `[K]`.
    pub iterative_next: Vec<u32>,
    /// 1 where a contact is of a pair for which MuJoCo chooses between contacts by the
    /// path of its search or by rounding `[K]`.
    pub choice: Vec<u32>,
    /// How far MuJoCo's own answers move.
    pub doubt: Doubt,
    /// Where its solver began, if it does not go to the end `[K, nv]`; else empty.
    pub warmstart: Vec<f64>,
}

/// How far an answer of MuJoCo's moves, relative to its largest entry `[K]`.
#[derive(Debug, Clone, Default)]
pub struct Moves {
    /// When its solver starts elsewhere or positions change by 1e-13.
    pub rounding: Vec<f64>,
    /// When positions and the model's lengths change by a float32 ulp.
    pub single: Vec<f64>,
    /// When its collision search ends at a hundred times the tolerance, or a tenth, or
    /// positions change by 1e-9; 0 without contacts that are searched for.
    pub search: Vec<f64>,
}

/// The same for both answers.
#[derive(Debug, Clone, Default)]
pub struct Doubt {
    /// Accelerations.
    pub qacc: Moves,
    /// The next state.
    pub next: Moves,
}

impl Reference {
    /// Reads a reference file of `model`.
    ///
    /// # Errors
    /// An array is missing, of another shape or type, or holds a number that is not finite.
    pub fn read(path: &Path, model: &Model) -> Result<Self, NpzError> {
        let mut file = Npz::open(path)?;
        let states = read_states(&mut file, model)?;
        let rows = Some(states.count);
        let mut floats = |name: &str, columns: usize, label: &str| {
            Ok(file.finite(name, expected(rows, columns, label))?.0)
        };
        let (nq, nv, na) = (model.nq, model.nv, model.na);
        let qacc = floats("qacc", nv, "nv")?;
        let sensordata = match model.nmeasured() {
            0 => Vec::new(),
            n => floats("sensordata", n, "measured sensors")?,
        };
        let qpos_next = floats("qpos_next", nq, "nq")?;
        let qvel_next = floats("qvel_next", nv, "nv")?;
        let act_next = floats("act_next", na, "na")?;
        let warmstart = match file.has("warmstart") {
            true => file.finite("warmstart", expected(rows, nv, "nv"))?.0,
            false => Vec::new(),
        };
        let scalar = Expected { rows, columns: None, label: "" };
        let mut moves = |end: &str| -> Result<Moves, NpzError> {
            let mut of = |name: &str| Ok(file.finite(&format!("{name}{end}"), scalar)?.0);
            Ok(Moves { rounding: of("noise")?, single: of("noise_single")?, search: of("search")? })
        };
        let doubt = Doubt { qacc: moves("")?, next: moves("_next")? };
        let mut counts = |name: &str| file.counts(name, states.count);
        Ok(Self {
            ncon: counts("ncon")?,
            contact_rows: counts("contact_rows")?,
            limit_rows: counts("limit_rows")?,
            other_rows: counts("other_rows")?,
            iterative: counts("iterative")?,
            iterative_next: counts("iterative_next")?,
            choice: counts("choice")?,
            states,
            qacc,
            sensordata,
            qpos_next,
            qvel_next,
            act_next,
            doubt,
            warmstart,
        })
    }
}
