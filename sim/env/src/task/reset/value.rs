//! `expr` of `[[task.reset]]`: values from an expression.

use super::super::team::{AgentIndex, Team};
use super::super::term::{Kind, Term};
use super::ResetPlace;
use crate::config::ConfigError;
use ostler_lang::expr::{Scope, Source, Start, Step, Unit};
use ostler_model::{JointKind, Model};

/// An expression whose components are values of coordinates.
#[derive(Debug, Clone)]
pub(in crate::task) struct StartExpr {
    pub term: Term,
    /// The first operation that takes its value.
    pub place: usize,
    /// Its inputs: `READS_*` of `kernels/env/args.cuh`.
    pub reads: u32,
}

impl StartExpr {
    /// Whether its value is one of the reference motion.
    pub(in crate::task) fn reads_motion(&self) -> bool {
        let mut steps = self.term.code().steps.iter();
        steps.any(|(step, _)| matches!(step, Step::Load(Source::Motion, _)))
    }
}

/// Compiles the expression at `path` for coordinates of these units, one number for all of
/// them or one each.
pub(super) fn compile(
    scope: &Scope<'_>,
    (team, agent): (&Team, AgentIndex),
    text: &str,
    units: &[Unit],
    path: &str,
) -> Result<Term, ConfigError> {
    let site = format!("{path} {agent:?}");
    let start = scope.start.map(|start| Start { of: &site, ..start });
    let scope = Scope { start, ..scope.clone() };
    let term = Term::compile(Kind::Start, &scope, (team, agent), text, path.to_string())?;
    let refused = |why: String, help: &str| Err(term.refused(text, why, help));
    if term.program.is_truth() {
        let why = "a start takes numbers, this is a condition".to_string();
        return refused(why, "if(condition, 1, 0) makes a number of it");
    }
    let (found, wanted) = (term.program.units().len(), units.len());
    if found != wanted && found != 1 {
        let why = match wanted {
            1 => format!("{found} numbers for 1 coordinate"),
            _ => format!("{found} numbers for {wanted} coordinates"),
        };
        return refused(why, &format!("one number for all, or {wanted}"));
    }
    for (i, unit) in units.iter().enumerate() {
        let own = term.program.units()[if found == 1 { 0 } else { i }];
        if !own.fits(*unit) {
            let part = if found == 1 { String::new() } else { format!(" of component {i}") };
            let why = format!("this is in [{own}], the coordinate{part} in [{unit}]");
            return refused(why, "multiply by a constant to say how they compare");
        }
    }
    Ok(term)
}

/// The unit of what a place takes.
pub(super) fn unit(model: &Model, place: &ResetPlace) -> Unit {
    let named = |text: &str| Unit::parse(text).unwrap_or(Unit::Any);
    let joint = |found: &dyn Fn(usize, usize, usize, usize) -> bool| {
        let mut joints = model.joints.iter();
        joints.find(|j| found(j.qpos_adr, j.kind.nq(), j.dof_adr, j.kind.nv()))
    };
    match *place {
        ResetPlace::Position(i) => {
            let of = joint(&|q, nq, _, _| (q..q + nq).contains(&i));
            match of.map(|j| (j.kind, i - j.qpos_adr)) {
                Some((JointKind::Free, 0..3) | (JointKind::Slide, _)) => named("m"),
                Some((JointKind::Hinge, _)) => Unit::RAD,
                _ => Unit::NONE,
            }
        }
        ResetPlace::Velocity(i) => {
            let of = joint(&|_, _, v, nv| (v..v + nv).contains(&i));
            match of.map(|j| (j.kind, i - j.dof_adr)) {
                Some((JointKind::Free, 0..3) | (JointKind::Slide, _)) => named("m/s"),
                _ => named("rad/s"),
            }
        }
        ResetPlace::Yaw(_) | ResetPlace::Turn(..) => Unit::RAD,
        ResetPlace::Rotation(_) | ResetPlace::Activation(_) => Unit::NONE,
    }
}
