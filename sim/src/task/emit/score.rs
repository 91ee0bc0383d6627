//! Rewards and ends.

use super::{Writer, function};
use crate::task::expr::literal;

impl Writer<'_> {
    /// `judge`: the step's reward of every agent and the cause of an end; adds to the
    /// terms' sums.
    pub(super) fn judge(&mut self) {
        let task = self.task;
        self.line(format_args!(
            "  static OSTLER_FN Judged<nagent> judge(const EnvArgs& a, int e) {{\n    \
             const long n = a.n;\n    Judged<nagent> j = {{}};\n    float v;"
        ));
        for (i, term) in task.score.rewards.iter().enumerate() {
            let weight = self.numbers.text(term.weight);
            self.line(format_args!(
                "    {}(a, e, &v);\n    v = {weight} * v;\n    a.sums[{i} * n + e] += v;",
                function("reward", i)
            ));
            for agent in &term.agents {
                self.line(format_args!("    j.reward[{agent}] += v;"));
            }
        }
        let limit = match task.score.max_abs {
            x if x.is_finite() => self.numbers.text(x),
            x => literal(x),
        };
        self.line(format_args!(
            "    for (int m = 0; m < nagent; m++) j.absurd = j.absurd || magnitude(j.reward[m]) > {limit};"
        ));
        if let Some(clip) = task.score.clip {
            let [low, high] = clip.map(|x| self.numbers.text(x));
            self.line(format_args!(
                "    for (int m = 0; m < nagent; m++) j.reward[m] = clamp_(j.reward[m], {low}, {high});"
            ));
        }
        for (i, term) in task.score.terminations.iter().enumerate() {
            let which = if term.truncate {
                "truncated"
            } else {
                "terminated"
            };
            self.line(format_args!(
                "    {}(a, e, &v);\n    if (j.{which} == 0 && v != 0.0f) j.{which} = {};",
                function("end", i),
                i + 1
            ));
        }
        self.line(format_args!("    (void)n;\n    return j;\n  }}"));
    }
}
