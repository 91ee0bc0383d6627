//! Actions to controls, commands, observations.

use super::{Writer, function};
use crate::config::NoiseKind;
use crate::task::action::Law;
use crate::task::expr::literal;
use crate::task::observe::NORMAL_DRAWS;

impl Writer<'_> {
    /// `low`, `high`: the range of an output, `raw`: its place in an environment's rows of
    /// actions; `drive`: clipped actions to controls.
    pub(super) fn actions(&mut self) {
        let task = self.task;
        self.line(format_args!("  static OSTLER_FN int raw(int k) {{"));
        let moved = task
            .actions
            .raw
            .iter()
            .enumerate()
            .filter(|(k, at)| k != *at);
        for (k, at) in moved {
            self.line(format_args!("    if (k == {k}) return {at};"));
        }
        self.line(format_args!("    return k;\n  }}"));
        for (name, side) in [("low", 0), ("high", 1)] {
            self.line(format_args!(
                "  static OSTLER_FN float {name}(const EnvArgs& a, int k) {{\n    (void)a;\n    switch (k) {{"
            ));
            for (k, clip) in task.actions.clip.iter().enumerate() {
                let x = self.numbers.text(clip[side]);
                self.line(format_args!("      case {k}: return {x};"));
            }
            self.line(format_args!("    }}\n    return 0.0f;\n  }}"));
        }
        self.line(format_args!(
            "  static OSTLER_FN void drive(const EnvArgs& a, int e) {{\n    const long n = a.n;"
        ));
        for &(actuator, control) in &task.actions.held {
            let control = self.numbers.text(control);
            self.line(format_args!("    a.ctrl[{actuator} * n + e] = {control};"));
        }
        for drive in &task.actions.drives {
            let x = format!("a.action[{} * n + e]", drive.output);
            let control = match &drive.law {
                Law::Affine { scale, offset } => {
                    let [offset, scale] = [offset, scale].map(|v| self.numbers.text(*v));
                    format!("{offset} + {scale} * {x}")
                }
                Law::Pd {
                    scale,
                    offset,
                    kp,
                    kd,
                    gear,
                    q,
                    v,
                } => {
                    let [offset, scale, kp, kd, gear] =
                        [offset, scale, kp, kd, gear].map(|v| self.numbers.text(*v));
                    format!(
                        "({kp} * ({offset} + {scale} * {x} - a.physics.qpos[{q} * n + e]) - \
                         {kd} * a.physics.qvel[{v} * n + e]) / {gear}"
                    )
                }
                Law::Choice(table) => {
                    let rows: Vec<String> = table.iter().map(|v| self.numbers.text(*v)).collect();
                    let (last, rest) = rows
                        .split_last()
                        .map_or(("0.0f".into(), &[][..]), |(l, r)| (l.clone(), r));
                    let mut chosen = last;
                    for (i, row) in rest.iter().enumerate().rev() {
                        chosen = format!("({x} == {i}.0f ? {row} : {chosen})");
                    }
                    chosen
                }
            };
            let [low, high] = drive.ctrlrange.map(literal);
            self.line(format_args!(
                "    a.ctrl[{} * n + e] = rust_min(rust_max({control}, {low}), {high});",
                drive.actuator
            ));
        }
        self.line(format_args!("    (void)n;\n  }}"));
    }

    /// `command`: draws what is due at an age, everything at age 0.
    pub(super) fn commands(&mut self) {
        self.line(format_args!(
            "  static OSTLER_FN void command(const EnvArgs& a, int e, unsigned stream, unsigned age) {{\n    \
             (void)a, (void)e, (void)stream, (void)age;"
        ));
        let components = &self.task.commands.components;
        for (block, four) in components.chunks(4).enumerate() {
            let due: Vec<String> = four
                .iter()
                .map(|c| match c.interval {
                    0 => "age == 0".to_string(),
                    k => format!("(age == 0 || age % {k}u == 0)"),
                })
                .collect();
            self.line(format_args!("    if ({}) {{", due.join(" || ")));
            self.line(format_args!(
                "      const Words w = philox(a.seed, stream, DRAW_COMMAND, a.clock, {block});"
            ));
            for (i, (c, due)) in four.iter().zip(&due).enumerate() {
                let at = 4 * block + i;
                let [low, high] = c.range.map(|x| self.numbers.text(x));
                self.line(format_args!(
                    "      if ({due}) a.command[{at} * (long)a.n + e] = {low} + ({high} - {low}) * unit(w.w[{i}]);"
                ));
            }
            self.line(format_args!("    }}"));
        }
        self.line(format_args!("  }}"));
    }

    /// `observe`: the policies' rows, then the critics'.
    pub(super) fn observe(&mut self) {
        let task = self.task;
        let [wide, _] = task.observations.world();
        self.line(format_args!(
            "  static OSTLER_FN void observe(const EnvArgs& a, int e, bool noisy, unsigned long long clock, float* row) {{\n    \
             float x[4];\n    (void)x, (void)noisy, (void)clock;"
        ));
        for (t, term) in task.observations.terms.iter().enumerate() {
            self.line(format_args!(
                "    {{\n      float v[{}];\n      {}(a, e, v);",
                term.scale.len(),
                function("seen", t)
            ));
            let [low, high] = term
                .clip
                .unwrap_or([f32::NEG_INFINITY, f32::INFINITY])
                .map(|x| self.numbers.text(x));
            // Whether there is noise, and of which kind, is part of the code, even where its
            // size is not.
            let noisy = term.noise > 0.0 && !term.is_privileged();
            let noise = self.numbers.text(term.noise);
            let mut drawn = usize::MAX;
            for (i, &scale) in term.scale.iter().enumerate() {
                let scale = self.numbers.text(scale);
                for at in &term.critic_at {
                    self.line(format_args!(
                        "      row[{}] = clamp_(v[{i}] * {scale}, {low}, {high});",
                        wide + at + i
                    ));
                }
                let Some(at) = term.policy_at else {
                    continue;
                };
                let at = at + i;
                if noisy {
                    if drawn != at / 4 {
                        drawn = at / 4;
                        let normal = term.noise_kind == NoiseKind::Normal;
                        let (draw, four) = match normal {
                            true => (NORMAL_DRAWS | drawn as u32, "normal_four"),
                            false => (drawn as u32, "uniform_four"),
                        };
                        self.line(format_args!(
                            "      if (noisy) {four}(philox(a.seed, a.first_env + (unsigned)e, DRAW_NOISE, clock, {draw}u), x);"
                        ));
                    }
                    self.line(format_args!(
                        "      if (noisy) v[{i}] += {noise} * x[{}];",
                        at % 4
                    ));
                }
                self.line(format_args!(
                    "      row[{at}] = clamp_(v[{i}] * {scale}, {low}, {high});"
                ));
            }
            self.line(format_args!("    }}"));
        }
        let padding = &task.observations.padding;
        let critics = padding.critic.iter().flatten().map(|r| (wide, r));
        for (from, range) in padding.policy.iter().map(|r| (0, r)).chain(critics) {
            self.line(format_args!(
                "    for (int i = {}; i < {}; i++) row[i] = 0.0f;",
                from + range.start,
                from + range.end
            ));
        }
        self.line(format_args!("  }}"));
    }
}
