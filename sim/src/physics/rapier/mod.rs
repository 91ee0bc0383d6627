//! rapier3d multibodies behind [`Physics`](super::Physics).

use super::pool::Pool;
use super::{Physics, PhysicsError};
use crate::config::SimConfig;
use crate::model::Model;
use std::sync::Arc;

/// N rapier worlds of `model`.
pub fn new(
    _model: &Arc<Model>,
    _config: &SimConfig,
    _num_envs: usize,
    _pool: &Arc<Pool>,
) -> Result<Box<dyn Physics>, PhysicsError> {
    todo!()
}
