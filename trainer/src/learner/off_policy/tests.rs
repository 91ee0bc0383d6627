//! Gradient steps equal PyTorch's; what a learner with a memory keeps and gives back.

mod reference;
mod state;

use super::*;
use crate::learner::testing::{bits, rollout, same, spec};
use crate::learner::{Learner, NamedTensors, UpdateFault};
use ostler_sim::env::ActionSpace;
