//! How far an engine's answers are from the referee's: quantiles by kind of state.
//!
//! The error of a state is `|a - b|_inf / max(1, |b|_inf)`, `b` the referee's; one
//! that is not finite counts as infinite. A state whose error is below ten times the
//! referee's own uncertainty is within every gate: where contacts are ill-posed (a flat
//! cap on an edge, axes that cross), MuJoCo's answer jumps when a position changes by
//! rounding.

use super::states::Reference;
use crate::model::{JointKind, Model};
use crate::physics::evaluate::{Evaluation, Precision};
use serde::Serialize;

/// What is allowed; see [`Gate::of`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gate {
    /// For 999 states of 1,000.
    pub most: f64,
    /// For every state.
    pub all: f64,
    /// For every state with a contact that MuJoCo finds by iteration: its own answer
    /// moves with its tolerance.
    pub iterative: f64,
    /// Whether the uncertainty that counts is that of positions in single precision.
    pub single: bool,
}

impl Gate {
    /// What an engine with MuJoCo's semantics reaches in this precision.
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self {
                most: 1e-10,
                all: 1e-10,
                iterative: 1e-6,
                single: false,
            },
            Precision::F32 => Self {
                most: 1e-4,
                all: 1e-3,
                iterative: 1e-3,
                single: true,
            },
        }
    }

    /// For every state of a kind.
    fn allows(self, kind: Kind) -> f64 {
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
            single: self.single,
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
    const ALL: [Self; 5] = [
        Self::Free,
        Self::Other,
        Self::Limits,
        Self::Contacts,
        Self::Iterative,
    ];

    fn of(r: &Reference, i: usize) -> Self {
        if r.iterative[i] != 0 {
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

    fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Other => "equality, friction loss",
            Self::Limits => "limits",
            Self::Contacts => "contacts",
            Self::Iterative => "iterative contacts",
        }
    }
}

/// Quantiles of an error over some states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half of the states are below.
    pub median: f64,
    /// 99 % are below.
    pub p99: f64,
    /// 99.9 % are below.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

impl Quantiles {
    /// Of `errors`, which need no order; zeros where there are none.
    pub fn of(mut errors: Vec<f64>) -> Self {
        errors.sort_unstable_by(f64::total_cmp);
        // The next larger one: no interpolation, so that infinity stays infinity.
        let at = |q: f64| {
            let i = (q * errors.len().saturating_sub(1) as f64).ceil() as usize;
            errors.get(i).copied().unwrap_or(0.0)
        };
        Self {
            median: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

/// The state with the largest error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worst {
    /// Its index.
    pub state: usize,
    /// Its error.
    pub error: f64,
    /// The degree of freedom that differs most.
    pub dof: usize,
    /// The joint it belongs to.
    pub joint: String,
    /// The engine's acceleration there.
    pub ours: f64,
    /// The referee's.
    pub theirs: f64,
    /// Contacts by the engine.
    pub ncon: u32,
    /// Contacts by the referee.
    pub referee_ncon: u32,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which states.
    pub kind: Kind,
    /// How many.
    pub states: usize,
    /// Errors of `qacc`.
    pub qacc: Quantiles,
    /// Errors of the next state: the largest of positions', velocities', activations'.
    pub next: Quantiles,
    /// The state with the largest error of `qacc` or of the next state.
    pub worst: usize,
}

/// Residuals of one model in one precision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// What was compared: "f64", "f32".
    pub label: String,
    /// One line per kind of state there is.
    pub rows: Vec<Row>,
    /// All states.
    pub states: usize,
    /// Errors of `qacc` over all states.
    pub qacc: Quantiles,
    /// Errors of the next state over all states.
    pub next: Quantiles,
    /// The state with the largest error of `qacc`.
    pub worst: Option<Worst>,
    /// States with as many contacts as the referee's.
    pub same_ncon: usize,
    /// States that the engine flagged as broken.
    pub faults: usize,
    /// How far the referee's own `qacc` moves with its solver's start, at most.
    pub noise: f64,
    /// States whose error is explained by the referee's own uncertainty alone.
    pub excused: usize,
    /// What is allowed.
    pub gate: Gate,
    /// What is beyond it; empty: all within.
    pub beyond: Vec<String>,
}

fn error(ours: &[f64], theirs: &[f64]) -> f64 {
    let (mut gap, mut scale) = (0.0_f64, 1.0_f64);
    for (a, b) in ours.iter().zip(theirs) {
        let d = (a - b).abs();
        if !d.is_finite() {
            return f64::INFINITY;
        }
        (gap, scale) = (gap.max(d), scale.max(b.abs()));
    }
    if ours.len() == theirs.len() {
        gap / scale
    } else {
        f64::INFINITY
    }
}

fn row(data: &[f64], width: usize, i: usize) -> &[f64] {
    data.get(i * width..(i + 1) * width).unwrap_or_default()
}

/// Errors of every state: of `qacc`, and of the next state.
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
            (of(&ours.qacc, &theirs.qacc, nv, i), next)
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
    let noise = if gate.single {
        &theirs.noise_single
    } else {
        &theirs.noise
    };
    let count = theirs.states.count;
    let largest = |of: &dyn Fn(usize) -> f64, among: &[usize]| {
        among
            .iter()
            .copied()
            .max_by(|a, b| of(*a).total_cmp(&of(*b)))
    };
    let rows: Vec<Row> = Kind::ALL
        .into_iter()
        .filter_map(|kind| {
            let among: Vec<usize> = (0..count)
                .filter(|i| Kind::of(theirs, *i) == kind)
                .collect();
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
        same_ncon: all
            .iter()
            .filter(|i| contacts(**i).0 == Some(contacts(**i).1))
            .count(),
        faults: ours.fault.iter().filter(|f| **f != 0).count(),
        noise: noise.iter().copied().fold(0.0, f64::max),
        excused: 0,
        gate,
        beyond: Vec::new(),
        qacc: Quantiles::of(qacc.clone()),
        next: Quantiles::of(next.clone()),
    };
    let kinds: Vec<Kind> = all.iter().map(|i| Kind::of(theirs, *i)).collect();
    table.judge(
        &kinds,
        [("qacc", &qacc), ("next state", &next)],
        &theirs.noise,
    );
    table
}

fn worst(model: &Model, ours: &Evaluation, theirs: &Reference, i: usize, error: f64) -> Worst {
    let (a, b) = (row(&ours.qacc, model.nv, i), row(&theirs.qacc, model.nv, i));
    let gap = |d: &usize| {
        let gap = (a.get(*d).copied().unwrap_or(f64::NAN) - b[*d]).abs();
        if gap.is_nan() { f64::INFINITY } else { gap }
    };
    let dof = (0..b.len())
        .max_by(|x, y| gap(x).total_cmp(&gap(y)))
        .unwrap_or(0);
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
    let inside = |j: &&crate::model::Joint| (j.dof_adr..j.dof_adr + j.kind.nv()).contains(&dof);
    match model.joints.iter().find(inside) {
        Some(j) if matches!(j.kind, JointKind::Free | JointKind::Ball) => {
            format!("{}[{}]", j.name, dof - j.dof_adr)
        }
        Some(j) => j.name.clone(),
        None => "?".into(),
    }
}

impl Table {
    /// Finds what is beyond the gate.
    fn judge(&mut self, kinds: &[Kind], errors: [(&str, &[f64]); 2], noise: &[f64]) {
        let gate = self.gate;
        let mut beyond = Vec::new();
        let mut check = |what: &str, value: f64, allowed: f64| {
            // A gate of zero lets nothing pass, equality included.
            if value > allowed || allowed <= 0.0 {
                beyond.push(format!("{what} {value:.1e} (allowed {allowed:.0e})"));
            }
        };
        let mut excused = vec![false; kinds.len()];
        for (what, errors) in errors {
            // What is left of the errors that the referee's own uncertainty explains.
            let left: Vec<f64> = (errors.iter().zip(noise).zip(kinds).zip(&mut excused))
                .map(|(((error, noise), kind), excused)| {
                    let own = *error <= 10.0 * noise;
                    *excused |= own && *error > gate.allows(*kind);
                    if own { 0.0 } else { *error }
                })
                .collect();
            for row in &self.rows {
                let of_kind = left.iter().zip(kinds).filter(|(_, k)| **k == row.kind);
                let max = of_kind.map(|(e, _)| *e).fold(0.0, f64::max);
                let what = format!("{what}, {}: max", row.kind.name());
                check(&what, max, gate.allows(row.kind));
            }
            // Of fewer states that is the maximum.
            if kinds.len() >= 1000 && !kinds.contains(&Kind::Iterative) {
                let what = format!("{what}: 99.9 %");
                check(&what, Quantiles::of(left).p999, gate.most);
            }
        }
        if self.faults > 0 {
            beyond.push(format!("{} states flagged as broken", self.faults));
        }
        self.excused = excused.iter().filter(|e| **e).count();
        self.beyond = beyond;
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{:<5} {:24} {:>7}  {:>8} {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8} {:>8}",
            self.label,
            "",
            "states",
            "median",
            "99 %",
            "99.9 %",
            "max",
            "median",
            "99 %",
            "99.9 %",
            "max"
        )?;
        let mut line = |name: &str, n: usize, a: &Quantiles, b: &Quantiles| {
            writeln!(
                f,
                "      {name:24} {n:>7}  {:8.1e} {:8.1e} {:8.1e} {:8.1e}   {:8.1e} {:8.1e} {:8.1e} {:8.1e}",
                a.median, a.p99, a.p999, a.max, b.median, b.p99, b.p999, b.max
            )
        };
        for r in &self.rows {
            line(r.kind.name(), r.states, &r.qacc, &r.next)?;
        }
        if self.rows.len() != 1 {
            line("all", self.states, &self.qacc, &self.next)?;
        }
        write!(
            f,
            "      contacts counted alike in {} of {} states; MuJoCo's own qacc moves by {:.1e}",
            self.same_ncon, self.states, self.noise
        )?;
        if self.excused > 0 {
            write!(f, " (in {} states more than is allowed here)", self.excused)?;
        }
        if let Some(w) = &self.worst {
            write!(
                f,
                "\n      largest: state {}, dof {} ({}): {:.6e} here, {:.6e} in MuJoCo; contacts {} here, {} there",
                w.state, w.dof, w.joint, w.ours, w.theirs, w.ncon, w.referee_ncon
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_errors_and_never_below_them() {
        let q = Quantiles::of((0..1000).rev().map(f64::from).collect());
        assert_eq!(
            [q.median, q.p99, q.p999, q.max],
            [500.0, 990.0, 999.0, 999.0]
        );
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
