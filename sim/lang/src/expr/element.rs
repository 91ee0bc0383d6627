//! Elements of a model, and how a model calls them.

use ostler_model::Model;

/// Kind of a model's element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    Body,
    Joint,
    Geom,
    Site,
    Actuator,
    Sensor,
    /// A body and all that hangs on it.
    Subtree,
}

/// An element of the model, by its place in the model's list of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Element {
    /// Which list.
    pub kind: ElementKind,
    /// Place in it.
    pub index: usize,
}

impl ElementKind {
    pub(super) const ALL: [Self; 6] =
        [Self::Body, Self::Joint, Self::Geom, Self::Site, Self::Actuator, Self::Sensor];

    /// `"body"`, `"joint"`, ...
    pub fn noun(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Joint => "joint",
            Self::Geom => "geom",
            Self::Site => "site",
            Self::Actuator => "actuator",
            Self::Sensor => "sensor",
            Self::Subtree => "subtree",
        }
    }

    /// Names of all elements of this kind, in the model's order.
    pub fn names(self, model: &Model) -> Vec<&str> {
        match self {
            Self::Body | Self::Subtree => model.bodies.iter().map(|x| x.name.as_str()).collect(),
            Self::Joint => model.joints.iter().map(|x| x.name.as_str()).collect(),
            Self::Geom => model.geoms.iter().map(|x| x.name.as_str()).collect(),
            Self::Site => model.sites.iter().map(|x| x.name.as_str()).collect(),
            Self::Actuator => model.actuators.iter().map(|x| x.name.as_str()).collect(),
            Self::Sensor => model.sensors.iter().map(|x| x.name.as_str()).collect(),
        }
    }
}
