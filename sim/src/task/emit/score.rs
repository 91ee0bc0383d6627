//! Rewards and ends.

use super::{Writer, function};
use crate::task::expr::literal;

impl Writer<'_> {
    /// `judge`: the step's reward and the cause of an end; adds to the terms' sums.
    pub(super) fn judge(&mut self) {
        let task = self.task;
        self.line(format_args!(
            "  static OSTLER_FN Judged judge(const EnvArgs& a, int e) {{\n    \
             const long n = a.n;\n    Judged j = {{0.0f, false, 0, 0}};\n    float v;"
        ));
        for (i, term) in task.score.rewards.iter().enumerate() {
            let weight = self.numbers.text(term.weight);
            self.line(format_args!(
                "    {}(a, e, &v);\n    v = {weight} * v;\n    j.reward += v;\n    a.sums[{i} * n + e] += v;",
                function("reward", i)
            ));
        }
        let limit = match task.score.max_abs {
            x if x.is_finite() => self.numbers.text(x),
            x => literal(x),
        };
        self.line(format_args!(
            "    j.absurd = magnitude(j.reward) > {limit};"
        ));
        if let Some(clip) = task.score.clip {
            let [low, high] = clip.map(|x| self.numbers.text(x));
            self.line(format_args!(
                "    j.reward = clamp_(j.reward, {low}, {high});"
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
