//! Two geoms that may touch, and by which rules.

use ostler_model::Pair;

/// Two geoms that may touch, in MuJoCo's order, and their parameters.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub geoms: [usize; 2],
    pub rules: Rules,
    /// Its friction: the rules' own, or one geom's or the larger of both.
    pub mix: Mix,
}

/// Whose friction a contact has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mix {
    /// Its own, of `<pair>`.
    Own,
    /// That of the geom of higher priority.
    Of(usize),
    Larger,
}

/// Parameters of a contact.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rules {
    pub condim: u32,
    pub friction: [f64; 5],
    pub solref: [f64; 2],
    pub solref_friction: [f64; 2],
    pub solimp: [f64; 5],
    pub margin: f64,
    pub gap: f64,
    pub adhesion: f64,
}

impl From<&Pair> for Rules {
    fn from(pair: &Pair) -> Self {
        Self {
            condim: pair.condim,
            friction: pair.friction,
            solref: pair.solref,
            solref_friction: pair.solref_friction,
            solimp: pair.solimp,
            margin: pair.margin,
            gap: pair.gap,
            adhesion: pair.adhesion,
        }
    }
}
