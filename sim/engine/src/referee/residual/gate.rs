//! Tolerances by precision and by the kind of a state.

use crate::physics::evaluate::Precision;
use crate::referee::states::Reference;
use serde::Serialize;

/// The tolerance; see [`Gate::of`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gate {
    /// For 999 states of 1,000.
    pub most: f64,
    /// For every state.
    pub all: f64,
    /// For every state with a contact that MuJoCo finds by iteration.
    pub iterative: f64,
    /// For those of them in which MuJoCo's own answer moves as much with the tolerance
    /// of its search: it ends where a contact's depth is exact to `ccd_tolerance` 1e-12,
    /// the normal is then to the root of that over the shapes' curvature, some 1e-5.
    pub search: f64,
    /// Share of states that may be excused (of fewer states than its inverse, one).
    pub excused: f64,
    /// Share of the states in which MuJoCo chooses between contacts by its search's path
    /// that may be beyond (of fewer states than its inverse, one).
    pub choice: f64,
    /// Whether a rounding of positions and of the model's lengths to single precision
    /// excuses.
    pub single: bool,
}

impl Gate {
    /// Residual of an engine with MuJoCo's semantics in this precision.
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self {
                most: 1e-10,
                all: 1e-10,
                iterative: 1e-6,
                search: 1e-4,
                excused: 0.005,
                choice: 0.05,
                single: false,
            },
            Precision::F32 => Self {
                most: 1e-4,
                all: 1e-3,
                iterative: 1e-3,
                search: 1e-3,
                excused: 0.005,
                choice: 0.05,
                single: true,
            },
        }
    }

    /// For every state of a kind.
    pub(super) fn allows(self, kind: Kind) -> f64 {
        match kind {
            Kind::Iterative => self.iterative,
            _ => self.all,
        }
    }

    /// The same, times a factor.
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            most: self.most * factor,
            all: self.all * factor,
            iterative: self.iterative * factor,
            search: self.search * factor,
            ..self
        }
    }
}

/// Kind of a state; each state is of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No constraint is active.
    Free,
    /// Friction losses or equalities, nothing else.
    Other,
    /// Limits, no contacts.
    Limits,
    /// Contacts by closed formulas.
    Contacts,
    /// A contact by an iterative method.
    Iterative,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Free, Self::Other, Self::Limits, Self::Contacts, Self::Iterative];

    /// Of a state, by the contacts that `iterative` says are searched for.
    pub(super) fn of(r: &Reference, iterative: &[u32], i: usize) -> Self {
        if iterative[i] != 0 {
            Self::Iterative
        } else if r.contact_rows[i] > 0 {
            Self::Contacts
        } else if r.limit_rows[i] > 0 {
            Self::Limits
        } else if r.other_rows[i] > 0 {
            Self::Other
        } else {
            Self::Free
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Other => "equality, friction loss",
            Self::Limits => "limits",
            Self::Contacts => "contacts",
            Self::Iterative => "iterative contacts",
        }
    }
}
