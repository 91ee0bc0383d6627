//! A transform of your own between a replay buffer and a gradient step, with all of `ostler`.
//!
//! Rewards that differ by powers of ten are squashed by a symmetric logarithm (Hafner et al.,
//! "Mastering Diverse Domains through World Models", 2023): `sign(r) ln(1 + |r|)`. `register`
//! gives it a name, which `[[replay.transform]]` in `own_transform.toml` has.
//!
//! ```sh
//! cargo run --release --example own_transform -- train examples/own_transform.toml
//! ```

use ostler_collector::replay::{Batch, ReplayError, Transform, names, transform};

/// `sign(r) ln(1 + |r| / scale)`.
#[derive(Debug)]
struct Symlog {
    scale: f64,
}

impl Transform for Symlog {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let reward = batch.get(names::REWARD)?;
        let size = reward.f_abs()?.f_div_scalar(self.scale)?.f_log1p()?;
        let squashed = reward.f_sign()?.f_mul(&size)?;
        batch.insert(names::REWARD, squashed)?;
        Ok(batch)
    }
}

/// Makes it known as "symlog".
fn register() {
    transform::register("symlog", |args, _layout| {
        let scale = args.get("scale").map_or(Some(1.0), toml::Value::as_float);
        let scale = scale.filter(|s| *s > 0.0).ok_or("args.scale: a number above 0 expected")?;
        Ok(Box::new(Symlog { scale }))
    });
}

fn main() {
    register();
    let code = ostler_trainer::cli::run();
    ostler_trainer::torch::exit_fast(code);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_trainer::config::Override;
    use ostler_trainer::run::{Options, Run};
    use std::path::{Path, PathBuf};

    fn options(
        out: Option<PathBuf>,
        resume: Option<PathBuf>,
        iterations: u32,
        more: &[&str],
    ) -> Options {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let mut overrides = vec![Override::set(format!("runner.max_iterations={iterations}"))];
        overrides.push(Override::set("sac.learning_starts=500"));
        overrides.extend(more.iter().map(|text| Override::set(*text)));
        Options {
            config: resume.is_none().then(|| folder.join("own_transform.toml")),
            overrides,
            out,
            resume,
            quiet: true,
            ..Options::default()
        }
    }

    fn numbers(run: &Path, key: &str) -> Vec<f64> {
        let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let number = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line[key].as_f64()
        };
        text.lines().filter_map(number).collect()
    }

    /// It acts, a resumed run has the numbers of one never stopped, and what the file says
    /// wrongly is told with its place.
    #[test]
    fn a_run_uses_it_by_its_name() {
        register();
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let train = |name, resume, iterations, more: &[&str]| {
            let out = place(name);
            let (out, resume) = if resume { (None, Some(out)) } else { (Some(out), None) };
            Run::start(&options(out, resume, iterations, more)).unwrap().learn().unwrap();
        };
        train("whole", false, 20, &[]);
        train("parts", false, 10, &[]);
        train("parts", true, 20, &[]);
        let key = "Loss/q_mean";
        let whole = numbers(&place("whole"), key);
        assert_eq!(whole, numbers(&place("parts"), key));
        assert!(!whole.is_empty() && whole.iter().all(|q| q.is_finite()));
        let settings =
            "replay.transform=[{ kind = 'custom', name = 'symlog', args = { scale = 1e3 } }]";
        train("small", false, 20, &[settings]);
        let small = numbers(&place("small"), key);
        train("without", false, 20, &["replay.transform=[]"]);
        let without = numbers(&place("without"), key);
        assert!(whole != small && whole != without && small != without);
        for (settings, said) in [
            ("replay.transform=[{ kind = 'custom', name = 'symlgo' }]", "did you mean \"symlog\"?"),
            (
                "replay.transform=[{ kind = 'custom', name = 'symlog', args = { scale = 'x' } }]",
                "replay.transform[0]: args.scale: a number above 0 expected",
            ),
        ] {
            let e = Run::start(&options(Some(place("none")), None, 1, &[settings])).err();
            let e = e.map(|e| e.to_string()).unwrap_or_default();
            assert!(e.contains(said), "{e}");
        }
    }
}
