//! Signatures of functions: kinds of arguments, rules of units.

use super::element::ElementKind;

/// Kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number or vector.
    Value,
    /// A vector of three.
    Vec3,
    /// A quaternion (w, x, y, z).
    Quat,
    /// A condition.
    Bool,
    /// A word that the function knows.
    Word,
    /// Name of a body, site or geom.
    Frame,
    /// Name of a body.
    Body,
    /// Name of a site.
    Site,
    /// Name of a hinge or slide joint.
    Joint,
    /// Name of an actuator.
    Actuator,
    /// Name of a geom.
    Geom,
    /// Name of a sensor.
    Sensor,
    /// Name of a geom or body, or a subtree.
    Touch,
    /// A condition that is counted in every physics step.
    Counted,
    /// A value of the last physics step.
    Latest,
    /// A value of the reference later on.
    Ahead,
}

/// How often an argument is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Exactly once.
    One,
    /// Once or not at all (only at the end).
    Optional,
    /// Any number of times, also none (only at the end).
    More,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Param {
    /// Name in the signature.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// How often.
    pub need: Need,
}

/// How units go through a function.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// The result, for any argument.
    Fixed(&'static str),
    /// The unit of the first argument.
    Keep,
    /// Arguments must have one unit; it comes out.
    Same,
    /// Arguments must have one unit; this one comes out.
    Compare(&'static str),
    /// The argument is a pure number (or an angle); a pure number comes out.
    Plain,
    /// The argument is a pure number; an angle comes out.
    Angle,
    /// The argument's unit to this power.
    Power(f64),
    /// The product of all units.
    Product,
    /// The unit of all components if they share one, else any.
    Shared,
    /// A unit for each component, as said here.
    Each(&'static str),
}

impl Rule {
    /// For the table of functions.
    pub fn text(self) -> String {
        match self {
            Self::Fixed(unit) => unit.to_string(),
            Self::Keep => "that of the argument".into(),
            Self::Same => "that of the arguments, which must agree".into(),
            Self::Compare(unit) => format!("{unit}; the arguments must agree"),
            Self::Plain => "-; takes - or rad".into(),
            Self::Angle => "rad; takes -".into(),
            Self::Power(0.5) => "root of the argument's".into(),
            Self::Power(_) => "square of the argument's".into(),
            Self::Product => "product of the arguments'".into(),
            Self::Shared => "that of the components; any if they differ".into(),
            Self::Each(text) => text.into(),
        }
    }
}

impl Kind {
    /// The kind that `word(name)` means where a name is wanted, of names that several kinds share.
    pub(super) fn called(word: &str) -> Option<Self> {
        [Self::Body, Self::Site, Self::Geom].into_iter().find(|kind| kind.noun() == word)
    }

    /// Kinds of elements a name can mean, the preferred first.
    pub fn elements(self) -> &'static [ElementKind] {
        match self {
            Self::Frame => &[ElementKind::Body, ElementKind::Site, ElementKind::Geom],
            Self::Body => &[ElementKind::Body],
            Self::Site => &[ElementKind::Site],
            Self::Joint => &[ElementKind::Joint],
            Self::Actuator => &[ElementKind::Actuator],
            Self::Geom => &[ElementKind::Geom],
            Self::Sensor => &[ElementKind::Sensor],
            Self::Touch => &[ElementKind::Body, ElementKind::Geom],
            Self::Value
            | Self::Vec3
            | Self::Quat
            | Self::Bool
            | Self::Counted
            | Self::Latest
            | Self::Ahead
            | Self::Word => &[],
        }
    }

    /// For messages: "body, site or geom".
    pub fn noun(self) -> &'static str {
        match self {
            Self::Frame => "body, site or geom",
            Self::Body => "body",
            Self::Site => "site",
            Self::Joint => "joint",
            Self::Actuator => "actuator",
            Self::Geom => "geom",
            Self::Sensor => "sensor",
            Self::Touch => "body or geom",
            Self::Value | Self::Latest | Self::Ahead => "number or vector",
            Self::Vec3 => "vector of 3",
            Self::Quat => "quaternion",
            Self::Bool | Self::Counted => "condition",
            Self::Word => "word",
        }
    }
}

/// A parameter that must be there.
pub const fn one(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, need: Need::One }
}

/// A parameter that may be left out.
pub(super) const fn optional(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, need: Need::Optional }
}

/// Any number of further arguments.
pub(super) const fn more(kind: Kind) -> Param {
    Param { name: "...", kind, need: Need::More }
}
