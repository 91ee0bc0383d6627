//! Values during checking: nodes of the graph with their units.

use super::dag::Id;
use super::unit::Unit;

/// One component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comp {
    /// Where it is computed.
    pub node: Id,
    /// Its unit.
    pub unit: Unit,
}

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Components; at least one once a whole subexpression is checked.
    pub comps: Vec<Comp>,
    /// A condition: components are 0 or 1.
    pub truth: bool,
    /// A quaternion: `.w` is the first component.
    pub quat: bool,
}

impl Value {
    /// Numbers with units of their own.
    pub fn new(comps: Vec<Comp>) -> Self {
        Self { comps, truth: false, quat: false }
    }

    /// One number.
    pub fn scalar(node: Id, unit: Unit) -> Self {
        Self::vector([node], unit)
    }

    /// Numbers of one unit.
    pub fn vector(nodes: impl IntoIterator<Item = Id>, unit: Unit) -> Self {
        Self::new(nodes.into_iter().map(|node| Comp { node, unit }).collect())
    }

    /// Conditions.
    pub fn truth(nodes: Vec<Id>) -> Self {
        Self { truth: true, ..Self::vector(nodes, Unit::NONE) }
    }

    /// Number of components.
    pub fn len(&self) -> usize {
        self.comps.len()
    }

    /// Nodes of all components.
    pub fn ids(&self) -> Vec<Id> {
        self.comps.iter().map(|c| c.node).collect()
    }

    /// The first `N` nodes; the caller has checked the length.
    pub fn array<const N: usize>(&self) -> [Id; N] {
        std::array::from_fn(|k| self.comps.get(k).map_or(0, |c| c.node))
    }

    /// Component `i`, a scalar standing for every component.
    pub fn at(&self, i: usize) -> Comp {
        self.comps[if self.comps.len() == 1 { 0 } else { i }]
    }

    /// The unit of all components if they share one, else any.
    pub fn shared_unit(&self) -> Unit {
        let units = self.comps.iter().map(|c| c.unit);
        units.reduce(Unit::mix).unwrap_or(Unit::Any)
    }

    /// For messages: `a number`, `a vector of 3`, `a condition`.
    pub fn describe(&self) -> String {
        match (self.truth, self.len()) {
            (true, 1) => "a condition".into(),
            (true, n) => format!("{n} conditions"),
            (false, 1) => "a number".into(),
            (false, n) => format!("a vector of {n}"),
        }
    }

    /// Its public type.
    pub fn ty(&self) -> Type {
        if self.truth && self.len() == 1 {
            return Type::Bool;
        }
        Type::Num { len: self.len(), unit: self.shared_unit().to_string() }
    }
}

/// Type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// True or false; 1 or 0 as a number.
    Bool,
    /// `len` numbers of one unit (1: a scalar).
    Num {
        /// Components.
        len: usize,
        /// Unit, for people: `"m/s"`, `"-"` for none, `"any"` where mixed.
        unit: String,
    },
}

impl Type {
    /// Floats per environment.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Num { len, .. } => *len,
        }
    }

    /// Never: every type has at least one component.
    pub fn is_empty(&self) -> bool {
        false
    }
}
