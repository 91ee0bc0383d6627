//! One evaluation of the dynamics at given states, for the tools around the engines and the
//! comparisons with MuJoCo.

/// Scalar type of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Single: training uses it.
    F32,
    /// Double.
    F64,
}

/// K states, row-major.
#[derive(Debug, Clone, Copy)]
pub struct States<'a> {
    /// Generalised positions `[K, nq]`.
    pub qpos: &'a [f64],
    /// Generalised velocities `[K, nv]`.
    pub qvel: &'a [f64],
    /// Controls `[K, nu]`.
    pub ctrl: &'a [f64],
    /// Activations `[K, na]`.
    pub act: &'a [f64],
    /// Numbers of the model that differ between environments `[K, nvaried]`.
    pub varied: &'a [f64],
}

/// An engine's results for K states, row-major.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluation {
    /// Accelerations `[K, nv]`.
    pub qacc: Vec<f64>,
    /// Readings of sensors that are measured while a world steps `[K, nmeasured]`; empty where
    /// an engine does not measure.
    pub sensordata: Vec<f64>,
    /// Positions after one step `[K, nq]`.
    pub qpos_next: Vec<f64>,
    /// Velocities after one step `[K, nv]`.
    pub qvel_next: Vec<f64>,
    /// Activations after one step `[K, na]`.
    pub act_next: Vec<f64>,
    /// Contacts at the state `[K]`.
    pub ncon: Vec<u32>,
    /// Bits of [`fault`](super::fault) after the step `[K]`.
    pub fault: Vec<u32>,
    /// Whether a contact found no room `[K]`; empty where an engine has no such limit.
    pub no_room: Vec<bool>,
    /// Iterations of the solver, 0 where it does not count them `[K]`.
    pub iterations: Vec<u32>,
}
