//! Gradient steps equal PyTorch's; the mirror loss; snapshots of a learner with a replay buffer.

mod mirror;
mod reference;
mod state;

use super::*;
use crate::learner::testing::{bits, rollout, same, spec};
use crate::learner::{Learner, UpdateFault, tensors::NamedTensors};
use ostler_sim::env::ActionSpace;
