//! Tables of residuals: quantiles, judgement, printing.

use super::gate::{Gate, Kind};
use crate::physics::evaluate::Evaluation;
use crate::referee::states::Moves;
use serde::Serialize;

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
        Self { median: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
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
    /// Compared precision: "f64", "f32".
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
    /// How far the referee's own `qacc` moves under rounding, at most.
    pub noise: f64,
    /// States whose error the referee's own movement under rounding explains alone.
    pub excused: usize,
    /// States in which MuJoCo chooses between contacts by its search's path.
    pub choices: usize,
    /// Those of them that are beyond: another choice.
    pub chosen: usize,
    /// States with contacts that are searched for, whose error is within what the
    /// referee's search leaves open.
    pub searched: usize,
    /// The tolerance.
    pub gate: Gate,
    /// Residuals beyond it; empty: all within.
    pub beyond: Vec<String>,
}

/// One state of so many may be beyond [`Gate::most`].
const MANY: usize = 1000;

/// How much of MuJoCo's own movement an error may be.
const OWN: f64 = 10.0;

/// The largest error but `few`. A quantile is never below these: of 1,000 errors that of 99.9 %
/// is the largest, though one of them may be beyond.
fn largest_but(mut errors: Vec<f64>, few: usize) -> f64 {
    errors.sort_unstable_by(f64::total_cmp);
    errors.iter().rev().nth(few).copied().unwrap_or(0.0)
}

/// One of the two answers, state by state.
pub(super) struct Answer<'a> {
    pub what: &'static str,
    pub errors: &'a [f64],
    pub kinds: &'a [Kind],
    pub moves: &'a Moves,
}

impl Table {
    /// Finds the states beyond the gate.
    pub(super) fn judge(&mut self, answers: [Answer<'_>; 2], choice: &[u32], ours: &Evaluation) {
        let gate = self.gate;
        let mut beyond = Vec::new();
        let mut check = |what: &str, value: f64, allowed: f64| {
            // A gate of zero lets nothing pass, equality included.
            if value > allowed || allowed <= 0.0 {
                beyond.push(format!("{what} {value:.1e} (allowed {allowed:.0e})"));
            }
        };
        let mut excused = vec![false; self.states];
        let mut searched = vec![false; self.states];
        let mut chosen = vec![false; self.states];
        for answer in answers {
            // The errors that the referee's own doubt does not explain.
            let left: Vec<f64> = (0..self.states)
                .map(|i| {
                    let (error, kind) = (answer.errors[i], answer.kinds[i]);
                    let single = if gate.single { answer.moves.single[i] } else { 0.0 };
                    let doubt = answer.moves.rounding[i].max(single);
                    let search = doubt.max(answer.moves.search[i]);
                    if error <= gate.allows(kind) {
                        error
                    } else if kind == Kind::Iterative && error <= gate.search.min(OWN * search) {
                        searched[i] = true;
                        0.0
                    } else if error <= OWN * doubt {
                        excused[i] = true;
                        0.0
                    } else if choice[i] != 0 && error.is_finite() {
                        chosen[i] = true;
                        0.0
                    } else {
                        error
                    }
                })
                .collect();
            for kind in Kind::ALL {
                let of_kind = left.iter().zip(answer.kinds).filter(|(_, k)| **k == kind);
                let errors: Vec<f64> = of_kind.map(|(e, _)| *e).collect();
                if !errors.is_empty() {
                    let what = format!("{}, {}: max", answer.what, kind.name());
                    check(&what, Quantiles::of(errors).max, gate.allows(kind));
                }
            }
            // Of fewer states that is the maximum.
            if self.states >= MANY && !answer.kinds.contains(&Kind::Iterative) {
                let what = format!("{}: 99.9 %", answer.what);
                check(&what, largest_but(left, self.states / MANY), gate.most);
            }
        }
        let count = |flags: &[bool]| flags.iter().filter(|f| **f).count();
        (self.excused, self.searched) = (count(&excused), count(&searched));
        self.chosen = count(&chosen);
        self.choices = choice.iter().filter(|c| **c != 0).count();
        for (what, n, of, share) in [
            ("states excused", self.excused, self.states, gate.excused),
            ("choices of another contact", self.chosen, self.choices, gate.choice),
        ] {
            let most = ((of as f64 * share) as usize).max(1);
            if n > most || (gate.most <= 0.0 && n > 0) {
                beyond.push(format!("{n} of {of} {what} (at most {most})"));
            }
        }
        let no_room = |i: &usize| ours.no_room.get(*i).copied().unwrap_or(false);
        let (full, broken): (Vec<usize>, Vec<usize>) = (0..ours.fault.len())
            .filter(|i| ours.fault[*i] != 0 && excused.get(*i) != Some(&true))
            .partition(no_room);
        if !full.is_empty() {
            beyond.push(format!(
                "in {} states more contacts touch than there is room for, and some are left out \
                 (256 with the world and 256 between moving bodies, for all states that a register \
                 computes together; 50 of a pair with a height field); fewer or simpler geoms, or \
                 contype and conaffinity, leave fewer contacts",
                full.len()
            ));
        }
        if !broken.is_empty() {
            beyond.push(format!("{} states flagged as broken", broken.len()));
        }
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
        if self.excused + self.searched > 0 {
            let (excused, searched) = (self.excused, self.searched);
            write!(f, "; {excused} states excused, {searched} within its search")?;
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
    use super::largest_but;

    #[test]
    fn one_error_of_a_thousand_is_left_out() {
        let errors =
            |far: usize| -> Vec<f64> { (0..1000).map(|i| f64::from(u8::from(i < far))).collect() };
        assert_eq!(largest_but(errors(1), 1), 0.0);
        assert_eq!(largest_but(errors(2), 1), 1.0);
        assert_eq!(largest_but(Vec::new(), 0), 0.0);
    }
}
