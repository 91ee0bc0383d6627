//! An environment of your own, in Rust, with all of `ostler`.
//!
//! A robot with two driven wheels is to park at the origin. It is no task of a TOML file:
//! there is no robot's file and no physics engine, only the twenty lines of `Robot::step`.
//! [`CustomEnvs`] makes a batch of it and does what every environment needs; `register` gives
//! it a name, which `[custom]` in `custom_env.toml` has, and the rest is the program `ostler`:
//! learners, guards, checkpoints, logs.
//!
//! ```sh
//! cargo run --release --example custom_env -- train examples/custom_env.toml
//! cargo run --release --example custom_env -- eval runs/custom_env/latest
//! ```

use ostler_collector::custom::{CustomEnv, CustomEnvs, Draws, Outcome, Sizes};
use ostler_sim::env::ActionSpace;
use std::f32::consts::PI;

/// Control step (s).
const STEP_S: f32 = 0.1;

/// A robot on two wheels: where it is (m) and where it looks (rad).
#[derive(Debug, Default)]
struct Robot {
    x: f32,
    y: f32,
    heading: f32,
}

impl Robot {
    /// Distance of the origin, and its direction as the robot sees it.
    fn observe(&self, obs: &mut [f32]) {
        let bearing = (-self.y).atan2(-self.x) - self.heading;
        obs.copy_from_slice(&[self.x.hypot(self.y), bearing.cos(), bearing.sin()]);
    }
}

impl CustomEnv for Robot {
    fn reset(&mut self, draws: &mut Draws, obs: &mut [f32]) {
        self.x = draws.uniform(-2.0, 2.0);
        self.y = draws.uniform(-2.0, 2.0);
        self.heading = draws.uniform(-PI, PI);
        self.observe(obs);
    }

    /// `action`: speed (1 is 1 m/s), turning (1 is 2 rad/s).
    fn step(&mut self, action: &[f32], draws: &mut Draws, obs: &mut [f32]) -> Outcome {
        let slip = 1.0 + 0.05 * draws.normal();
        let speed = slip * action[0].clamp(-1.0, 1.0);
        self.heading += STEP_S * 2.0 * action[1].clamp(-1.0, 1.0);
        self.x += STEP_S * speed * self.heading.cos();
        self.y += STEP_S * speed * self.heading.sin();
        self.observe(obs);
        let distance = obs[0];
        Outcome {
            reward: -STEP_S * distance,
            // It left the car park.
            terminated: distance > 5.0,
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        for number in [self.x, self.y, self.heading] {
            out.extend(number.to_le_bytes());
        }
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (numbers, []) = bytes.as_chunks::<4>() else {
            return Err("whole numbers expected".into());
        };
        let &[x, y, heading] = numbers else {
            return Err("three numbers expected".into());
        };
        *self = Self {
            x: f32::from_le_bytes(x),
            y: f32::from_le_bytes(y),
            heading: f32::from_le_bytes(heading),
        };
        Ok(())
    }
}

const SIZES: Sizes = Sizes {
    obs: 3,
    action: ActionSpace::Continuous(2),
    step_dt: STEP_S as f64,
    episode_steps: 100,
};

/// Makes them known as "parking".
fn register() {
    ostler_trainer::environments::register("parking", |_args, n, seed| {
        let robots = (0..n).map(|_| Robot::default());
        Ok(Box::new(CustomEnvs::new(SIZES, robots, seed)?))
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

    /// Whoever stands still has the mean distance of a start, 1.53 m, for 10 s.
    const STANDING: f64 = -15.3;

    fn options(out: Option<PathBuf>, resume: Option<PathBuf>, iterations: u32) -> Options {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        Options {
            config: resume.is_none().then(|| folder.join("custom_env.toml")),
            overrides: vec![Override::set(format!("runner.max_iterations={iterations}"))],
            out,
            resume,
            quiet: true,
            ..Options::default()
        }
    }

    fn numbers(run: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let reward = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["Train/mean_reward"].to_string()
        };
        text.lines().map(reward).collect()
    }

    #[test]
    fn it_learns_to_park_and_goes_on_with_the_same_bits() {
        register();
        let folder = tempfile::tempdir().unwrap();
        let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
        let mut run = Run::start(&options(Some(whole.clone()), None, 60)).unwrap();
        run.learn().unwrap();
        let (mean, _) = run.means();
        assert!(mean > 0.25 * STANDING, "{mean}");
        drop(run);
        let mut first = Run::start(&options(Some(parts.clone()), None, 30)).unwrap();
        first.learn().unwrap();
        drop(first);
        let mut second = Run::start(&options(None, Some(parts.clone()), 60)).unwrap();
        second.learn().unwrap();
        assert_eq!(numbers(&whole), numbers(&parts));
    }
}
