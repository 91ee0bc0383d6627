//! Gradient steps equal PyTorch's; snapshots of a learner with a replay buffer.

mod reference;
mod state;

use super::*;
use crate::learner::testing::{bits, rollout, same, spec};
use crate::learner::{Learner, UpdateFault, tensors::NamedTensors};
use ostler_sim::env::ActionSpace;
