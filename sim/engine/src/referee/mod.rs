//! Comparison with a referee: states in, an engine's answers out, and their distance from
//! MuJoCo's answers.
//!
//! [`states`] gives the arrays of `ostler_base::npz` the shapes
//! of a model, [`mujoco`] runs MuJoCo in the user's Python, [`names`]
//! tells whether MuJoCo reads the same robot, `ground` gives it a terrain, [`residual`] measures
//! differences and prints them, [`worlds`] steps MuJoCo for a task. Nothing of a run depends on
//! this module.

mod ground;
pub mod mujoco;
pub mod names;
pub mod residual;
pub mod states;
pub mod worlds;
