//! How an episode starts.

use super::Writer;
use crate::task::reset::{Chance, Place};

impl Writer<'_> {
    /// `start`: draws positions and velocities and puts the world there, at rest.
    pub(super) fn start(&mut self) {
        let reset = &self.task.reset;
        self.line(format_args!(
            "  static OSTLER_FN void start(const EnvArgs& a, int e, unsigned stream) {{\n    \
             const StepArgs<float>& p = a.physics;\n    const long n = a.n;\n    \
             float q[nq > 0 ? nq : 1], v[nv > 0 ? nv : 1], x;\n    Words w;\n    \
             (void)x, (void)w, (void)stream;"
        ));
        for (name, values) in [("q", &reset.start.0), ("v", &reset.start.1)] {
            for (i, value) in values.iter().enumerate() {
                let value = crate::task::expr::literal(*value);
                self.line(format_args!("    {name}[{i}] = {value};"));
            }
        }
        let mut drawn = None;
        for op in &reset.operations {
            if !matches!(op.chance, Chance::None) && drawn != Some(op.draw / 2) {
                drawn = Some(op.draw / 2);
                self.line(format_args!(
                    "    w = philox(a.seed, stream, DRAW_RESET, a.clock, {});",
                    op.draw / 2
                ));
            }
            let first = op.draw % 2 * 2;
            let offset = match op.chance {
                Chance::None => None,
                Chance::Uniform(range) => {
                    let [low, high] = range.map(|x| self.numbers.text(x));
                    Some(format!("{low} + ({high} - {low}) * unit(w.w[{first}])"))
                }
                Chance::Normal(sigma) => {
                    let sigma = self.numbers.text(sigma);
                    Some(format!(
                        "{sigma} * first_normal(w.w[{first}], w.w[{}])",
                        first + 1
                    ))
                }
            };
            let offset = offset.unwrap_or_else(|| "0.0f".into());
            let set = op.set.map(|x| self.numbers.text(x));
            match op.place {
                Place::Position(i) | Place::Velocity(i) => {
                    let name = if matches!(op.place, Place::Position(_)) {
                        "q"
                    } else {
                        "v"
                    };
                    let from = set.unwrap_or_else(|| format!("{name}[{i}]"));
                    self.line(format_args!(
                        "    x = {offset};\n    {name}[{i}] = {from} + x;"
                    ));
                }
                Place::Yaw(i) => match set {
                    Some(angle) => {
                        self.line(format_args!(
                            "    turn(q + {i}, {angle} - heading(q + {i}));"
                        ));
                    }
                    None => self.line(format_args!("    x = {offset};\n    turn(q + {i}, x);")),
                },
            }
        }
        for i in &reset.quaternions {
            self.line(format_args!("    unit_quat(q + {i});"));
        }
        self.line(format_args!(
            "    OSTLER_ROLLED for (int i = 0; i < nq; i++) p.qpos[i * n + e] = q[i];
    OSTLER_ROLLED for (int i = 0; i < nv; i++) p.qvel[i * n + e] = v[i];
    place_bodies(a, e, q, v);
  }}"
        ));
    }
}
