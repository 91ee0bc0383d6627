//! Bits of [`State::fault`](super::State::fault).

use crate::kernels;

/// A position or velocity is not finite.
pub const NON_FINITE: u32 = kernels::FAULT_NON_FINITE;
/// A velocity is beyond the configured limit.
pub const SPEED: u32 = kernels::FAULT_SPEED;
/// A position is beyond the configured limit.
pub const POSITION: u32 = kernels::FAULT_POSITION;
/// A control was not finite (it counted as zero).
pub const CONTROL: u32 = kernels::FAULT_CONTROL;
/// The engine itself failed (a panic was caught, a body was quarantined).
pub const ENGINE: u32 = kernels::FAULT_ENGINE;
/// An observation or reward of the task was not finite; set by the environment,
/// never by an engine.
pub const TASK: u32 = kernels::FAULT_TASK;
/// Number of bits in use.
pub const COUNT: usize = 6;
/// Names for logs, `Guard/<name>`, by bit.
pub const NAMES: [&str; COUNT] = ["non_finite", "speed", "position", "control", "engine", "task"];
