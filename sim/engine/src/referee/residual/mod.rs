//! How far an engine's answers are from the referee's: quantiles by kind of state.
//!
//! The error of a state is `|a - b|_inf / max(1, |b|_inf)`, `b` the referee's; one
//! that is not finite counts as infinite. A state is excused where the referee's own
//! answer moves by a tenth of the error when positions are rounded, and for single
//! precision the model's lengths, too: where contacts are ill-posed (a flat cap on an edge,
//! axes that cross) or about to begin, it jumps. The excused are counted and their share is
//! limited.

mod gate;
mod table;

pub use gate::{Gate, Kind};
pub use table::{Quantiles, Row, Table, Worst};

use super::states::Reference;
use crate::physics::evaluate::Evaluation;
use ostler_model::{JointKind, Model};
use table::Answer;

fn error(ours: &[f64], theirs: &[f64]) -> f64 {
    let (mut gap, mut scale) = (0.0_f64, 1.0_f64);
    for (a, b) in ours.iter().zip(theirs) {
        let d = (a - b).abs();
        if !d.is_finite() {
            return f64::INFINITY;
        }
        (gap, scale) = (gap.max(d), scale.max(b.abs()));
    }
    if ours.len() == theirs.len() { gap / scale } else { f64::INFINITY }
}

fn row(data: &[f64], width: usize, i: usize) -> &[f64] {
    data.get(i * width..(i + 1) * width).unwrap_or_default()
}

/// Errors of every state: of `qacc` and of sensors, and of the next state.
pub fn errors(model: &Model, ours: &Evaluation, theirs: &Reference) -> (Vec<f64>, Vec<f64>) {
    let (nq, nv) = (model.nq, model.nv);
    let na = model.na;
    let of =
        |a: &[f64], b: &[f64], width: usize, i: usize| error(row(a, width, i), row(b, width, i));
    (0..theirs.states.count)
        .map(|i| {
            let next = of(&ours.qpos_next, &theirs.qpos_next, nq, i)
                .max(of(&ours.qvel_next, &theirs.qvel_next, nv, i))
                .max(of(&ours.act_next, &theirs.act_next, na, i));
            let sensed = match ours.sensordata.is_empty() {
                // An engine that does not measure.
                true => 0.0,
                false => of(&ours.sensordata, &theirs.sensordata, model.nmeasured(), i),
            };
            (of(&ours.qacc, &theirs.qacc, nv, i).max(sensed), next)
        })
        .unzip()
}

/// Compares an engine's answers with the referee's.
pub fn compare(
    model: &Model,
    label: &str,
    ours: &Evaluation,
    theirs: &Reference,
    gate: Gate,
) -> Table {
    let (qacc, next) = errors(model, ours, theirs);
    let noise = match gate.single {
        true => &theirs.doubt.qacc.single,
        false => &theirs.doubt.qacc.rounding,
    };
    let count = theirs.states.count;
    let largest = |of: &dyn Fn(usize) -> f64, among: &[usize]| {
        among.iter().copied().max_by(|a, b| of(*a).total_cmp(&of(*b)))
    };
    let of = |iterative: &[u32]| -> Vec<Kind> {
        (0..count).map(|i| Kind::of(theirs, iterative, i)).collect()
    };
    let (kinds, kinds_next) = (of(&theirs.iterative), of(&theirs.iterative_next));
    let rows: Vec<Row> = Kind::ALL
        .into_iter()
        .filter_map(|kind| {
            let among: Vec<usize> = (0..count).filter(|i| kinds[*i] == kind).collect();
            Some(Row {
                kind,
                worst: largest(&|i| qacc[i].max(next[i]), &among)?,
                states: among.len(),
                qacc: Quantiles::of(among.iter().map(|i| qacc[*i]).collect()),
                next: Quantiles::of(among.iter().map(|i| next[*i]).collect()),
            })
        })
        .collect();
    let all: Vec<usize> = (0..count).collect();
    let contacts = |i: usize| (ours.ncon.get(i).copied(), theirs.ncon[i]);
    let mut table = Table {
        label: label.to_string(),
        worst: largest(&|i| qacc[i], &all).map(|i| worst(model, ours, theirs, i, qacc[i])),
        rows,
        states: count,
        same_ncon: all.iter().filter(|i| contacts(**i).0 == Some(contacts(**i).1)).count(),
        faults: ours.fault.iter().filter(|f| **f != 0).count(),
        noise: noise.iter().copied().fold(0.0, f64::max),
        excused: 0,
        searched: 0,
        choices: 0,
        chosen: 0,
        gate,
        beyond: Vec::new(),
        qacc: Quantiles::of(qacc.clone()),
        next: Quantiles::of(next.clone()),
    };
    let answers = [
        Answer { what: "qacc", errors: &qacc, kinds: &kinds, moves: &theirs.doubt.qacc },
        Answer { what: "next state", errors: &next, kinds: &kinds_next, moves: &theirs.doubt.next },
    ];
    table.judge(answers, &theirs.choice, ours);
    table
}

fn worst(model: &Model, ours: &Evaluation, theirs: &Reference, i: usize, error: f64) -> Worst {
    let (a, b) = (row(&ours.qacc, model.nv, i), row(&theirs.qacc, model.nv, i));
    let gap = |d: &usize| {
        let gap = (a.get(*d).copied().unwrap_or(f64::NAN) - b[*d]).abs();
        if gap.is_nan() { f64::INFINITY } else { gap }
    };
    let dof = (0..b.len()).max_by(|x, y| gap(x).total_cmp(&gap(y))).unwrap_or(0);
    Worst {
        state: i,
        error,
        dof,
        joint: joint_of(model, dof),
        ours: a.get(dof).copied().unwrap_or(f64::NAN),
        theirs: b.get(dof).copied().unwrap_or(f64::NAN),
        ncon: ours.ncon.get(i).copied().unwrap_or(0),
        referee_ncon: theirs.ncon[i],
    }
}

/// `knee`, or `root[3]` for one of several degrees of freedom.
fn joint_of(model: &Model, dof: usize) -> String {
    let inside = |j: &&ostler_model::Joint| (j.dof_adr..j.dof_adr + j.kind.nv()).contains(&dof);
    match model.joints.iter().find(inside) {
        Some(j) if matches!(j.kind, JointKind::Free | JointKind::Ball) => {
            format!("{}[{}]", j.name, dof - j.dof_adr)
        }
        Some(j) => j.name.clone(),
        None => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_errors_and_never_below_them() {
        let q = Quantiles::of((0..1000).rev().map(f64::from).collect());
        assert_eq!([q.median, q.p99, q.p999, q.max], [500.0, 990.0, 999.0, 999.0]);
        let q = Quantiles::of(vec![f64::INFINITY, 1.0]);
        assert_eq!(q.max, f64::INFINITY);
        assert_eq!(Quantiles::of(Vec::new()).max, 0.0);
    }

    #[test]
    fn what_is_not_finite_or_missing_is_infinitely_wrong() {
        assert_eq!(error(&[1.0, f64::NAN], &[1.0, 2.0]), f64::INFINITY);
        assert_eq!(error(&[], &[1.0]), f64::INFINITY);
        assert_eq!(error(&[11.0], &[10.0]), 0.1);
        assert_eq!(error(&[0.25], &[0.0]), 0.25);
    }
}
