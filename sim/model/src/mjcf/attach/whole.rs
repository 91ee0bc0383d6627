//! A model with all that it attaches.

use super::super::defaults::Classes;
use super::super::element::Element;
use crate::Options;
use std::collections::BTreeMap;

/// A model with everything that it attaches.
pub(crate) struct Whole {
    pub root: Element,
    pub classes: Classes,
    pub options: Options,
    /// Keyframes of attached models, after the model's own.
    pub pending: Vec<Pending>,
    /// Bodies were attached or replicated, so that the file's own keyframes may end early.
    pub grown: bool,
}

/// Numbers of joints or actuators, by slot.
pub(crate) type Parts = BTreeMap<u32, Vec<f64>>;

/// A keyframe that came with an attached model. Coordinates without a slot are as
/// in the initial pose at rest.
pub(crate) struct Pending {
    /// Place and name.
    pub key: Element,
    pub qpos: Parts,
    pub qvel: Parts,
    pub act: Parts,
    pub ctrl: Parts,
}
