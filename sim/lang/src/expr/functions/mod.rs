//! Every function of the language: one table drives the checker, its messages
//! and the page `docs/task-functions.md`.

mod agents;
mod contacts;
mod fields;
mod frames;
mod geometry;
mod history;
mod logic;
mod maths;
mod quats;
mod random;
mod rays;
mod robot;
mod sensors;
mod tolerance;

pub use fields::field_unit;
pub use random::drawn_of_numbers;

use super::ExprError;
use super::check::{Call, Checker, Value};
use super::dag::{Dag, Id};
use crate::draw;

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

/// How a function becomes operations.
pub enum Body {
    /// Component by component; scalars are repeated.
    Map(fn(&mut Dag, &[Id]) -> Id),
    /// All components of the one argument.
    Fold(fn(&mut Dag, &[Id]) -> Id),
    /// Anything else.
    Special(fn(&mut Checker<'_>, &Call) -> Result<Value, ExprError>),
}

/// One function.
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Parameters.
    pub params: &'static [Param],
    /// The result, for the table: `3`, `bool`, `one per joint`, ...
    pub gives: &'static str,
    /// Units.
    pub rule: Rule,
    /// One line.
    pub doc: &'static str,
    /// Meaning.
    pub body: Body,
}

impl Function {
    /// `clip(x, lo, hi)`.
    pub fn signature(&self) -> String {
        if self.params.is_empty() {
            return self.name.to_string();
        }
        let mut text = String::new();
        let mut open = 0;
        for (i, p) in self.params.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match p.need {
                Need::One => text += &format!("{comma}{}", p.name),
                Need::Optional => {
                    text += &format!("[{comma}{}", p.name);
                    open += 1;
                }
                Need::More => text += &format!("{comma}..."),
            }
        }
        format!("{}({text}{})", self.name, "]".repeat(open))
    }

    /// Fewest and most arguments.
    pub fn counts(&self) -> (usize, usize) {
        let least = self.params.iter().filter(|p| p.need == Need::One).count();
        let many = self.params.iter().any(|p| p.need == Need::More);
        (least, if many { usize::MAX } else { self.params.len() })
    }

    /// The parameter that argument `i` is for.
    pub fn param(&self, i: usize) -> Option<&'static Param> {
        self.params.get(i).or_else(|| self.params.last())
    }
}

/// All functions by section of the page.
pub(crate) const SECTIONS: [(&str, &[Function]); 13] = [
    ("The robot", robot::TABLE),
    ("Numbers of the robot", fields::TABLE),
    ("Bodies, sites and geoms", geometry::TABLE),
    ("Contacts", contacts::TABLE),
    ("Mathematics", maths::TABLE),
    ("Shaped rewards", tolerance::TABLE),
    ("Quaternions", quats::TABLE),
    ("Conditions", logic::TABLE),
    ("Random numbers", random::TABLE),
    ("Random numbers of other distributions", draw::FUNCTIONS),
    ("Lists of parts", agents::LISTS),
    ("Earlier steps", history::TABLE),
    ("Several agents", agents::TABLE),
];

/// All functions.
pub(crate) fn all() -> impl DoubleEndedIterator<Item = &'static Function> {
    SECTIONS.iter().flat_map(|(_, table)| table.iter())
}

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    all().find(|f| f.name == name)
}

/// A parameter that must be there.
pub const fn one(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, need: Need::One }
}

/// A parameter that may be left out.
const fn optional(name: &'static str, kind: Kind) -> Param {
    Param { name, kind, need: Need::Optional }
}

/// Any number of further arguments.
const fn more(kind: Kind) -> Param {
    Param { name: "...", kind, need: Need::More }
}

/// The table of all functions in Markdown, as printed in `docs/task-functions.md`.
pub fn reference() -> String {
    let mut page = String::new();
    for (title, table) in SECTIONS {
        page +=
            &format!("### {title}\n\n| function | gives | unit | meaning |\n|---|---|---|---|\n");
        for f in table {
            page +=
                &format!("| `{}` | {} | {} | {} |\n", f.signature(), f.gives, f.rule.text(), f.doc);
        }
        page.push('\n');
    }
    page
}
