//! How episodes went by the motion that they followed: `ostler eval` of a task with a reference.

use ostler_sim::BatchEnv;
use ostler_sim::env::EnvSpec;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Motions that the table has; JSON has all.
const SHOWN: usize = 10;

/// Episodes of one motion.
#[derive(Debug, Default, Clone)]
struct Clip {
    episodes: u64,
    /// Those that no termination ended.
    whole: u64,
    /// Sums of the task's metrics.
    metrics: Vec<f64>,
}

/// Episodes by motion.
#[derive(Debug)]
pub(super) struct Clips {
    names: Vec<String>,
    metrics: Vec<String>,
    clips: Vec<Clip>,
    /// The motion that each environment follows.
    now: Vec<usize>,
}

impl Clips {
    /// Of environments of a robot; without a reference there is nothing to count.
    pub(super) fn new(env: Option<&BatchEnv>, spec: &EnvSpec) -> Self {
        let clips = env.map_or(&[][..], |env| &env.compiled().reference.clips);
        Self {
            names: clips.iter().map(|clip| clip.motion.name.clone()).collect(),
            metrics: spec.metrics.iter().map(|m| m.name.clone()).collect(),
            clips: vec![Clip::default(); clips.len()],
            now: Vec::new(),
        }
    }

    /// Call before a step: an episode that ends in it is of the motion that is followed now.
    pub(super) fn before(&mut self, env: Option<&BatchEnv>) {
        self.now.clear();
        if let (Some(env), false) = (env, self.clips.is_empty()) {
            self.now.extend((0..env.spec().num_envs).map(|e| env.clip(e).unwrap_or(0)));
        }
    }

    /// The episode of environment `e` that ended in the step counts.
    pub(super) fn end(&mut self, env: Option<&BatchEnv>, e: usize, metrics: &[f32]) {
        let clip = self.now.get(e).and_then(|clip| self.clips.get_mut(*clip));
        let (Some(clip), Some(env)) = (clip, env) else {
            return;
        };
        clip.episodes += 1;
        clip.whole += u64::from(!env.failed(e));
        clip.metrics.resize(metrics.len(), 0.0);
        clip.metrics.iter_mut().zip(metrics).for_each(|(sum, x)| *sum += f64::from(*x));
    }

    /// Motions with episodes, the hardest first: the share of episodes that went to the end, and
    /// the means of metrics.
    fn rows(&self) -> Vec<(&str, u64, f64, Vec<f64>)> {
        let names = self.names.iter().map(String::as_str);
        let played = names.zip(&self.clips).filter(|(_, clip)| clip.episodes > 0);
        let row = |(name, clip): (_, &Clip)| {
            let n = clip.episodes as f64;
            let means = clip.metrics.iter().map(|sum| sum / n).collect();
            (name, clip.episodes, clip.whole as f64 / n, means)
        };
        let mut rows: Vec<_> = played.map(row).collect();
        rows.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(b.0)));
        rows
    }

    /// All motions, the hardest first.
    pub(super) fn json(&self) -> Value {
        let row = |(name, episodes, whole, means): (&str, u64, f64, Vec<f64>)| {
            let metrics = self.metrics.iter().zip(means);
            let metrics = metrics.map(|(name, mean)| (name.clone(), json!(mean)));
            json!({
                "file": name,
                "episodes": episodes,
                "success": whole,
                "metrics": metrics.collect::<serde_json::Map<_, _>>(),
            })
        };
        self.rows().into_iter().map(row).collect()
    }

    /// The hardest, a line each; nothing without a reference.
    pub(super) fn text(&self) -> String {
        let rows = self.rows();
        let mut text = String::new();
        for (i, (name, episodes, whole, means)) in rows.iter().take(SHOWN).enumerate() {
            if i == 0 {
                text += "motions, the hardest first\n";
            }
            let _ = write!(text, "  {name}: {:.1} % of {episodes} to the end", 100.0 * whole);
            for (metric, mean) in self.metrics.iter().zip(means) {
                let _ = write!(text, ", {metric} {mean:.3}");
            }
            text.push('\n');
        }
        if rows.len() > SHOWN {
            let _ = writeln!(text, "  and {} easier ones: --json has them all", rows.len() - SHOWN);
        }
        text
    }
}
