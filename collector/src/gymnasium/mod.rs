//! Environments of Python's Gymnasium, in processes of their own.
//!
//! [`GymEnvs`] is an [`Environments`](crate::env::Environments): every learner takes it. Each worker is a Python that
//! steps its part of the batch one after the other (`worker.py`), so that it is slow beside a
//! robot's kernel: tens of thousands of steps a second for simple environments on a core. What
//! breaks there stays there: an environment that raises, or gives numbers that are not finite,
//! is reset, masked and counted; a worker that dies or hangs is started anew.
//!
//! The state of a Python environment cannot be saved: after a roll-back and in a resumed run
//! episodes begin anew.

mod batch;
mod config;
mod worker;

pub use batch::GymEnvs;
pub(crate) use batch::{OF, join};
pub use config::GymnasiumConfig;
pub use worker::GymError;
