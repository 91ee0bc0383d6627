//! Numbers and ranges of several elements: actuators, joints, components.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One number for all, one each, or by patterns of names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// The same for all.
    One(f64),
    /// One per element.
    Many(Vec<f64>),
    /// By pattern with `*`; every element fits exactly one.
    Named(BTreeMap<String, f64>),
}

/// One range `[low, high]` for all, one each, or by patterns of names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Ranges {
    /// The same for all.
    One([f64; 2]),
    /// One per element.
    Many(Vec<[f64; 2]>),
    /// By pattern with `*`; every element fits exactly one.
    Named(BTreeMap<String, [f64; 2]>),
}

impl From<[f64; 2]> for Ranges {
    fn from(range: [f64; 2]) -> Self {
        Self::One(range)
    }
}

pub(super) fn one() -> OneOrMany {
    OneOrMany::One(1.0)
}

pub(super) fn zero() -> OneOrMany {
    OneOrMany::One(0.0)
}
