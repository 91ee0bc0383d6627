//! An environment of your own, in Rust, with the program's learner.
//!
//! A robot with two driven wheels is to park at the origin. It is no task of a TOML file:
//! there is no robot's file and no physics engine, only the twenty lines of `Robot::step`.
//! [`CustomEnvs`] makes a batch of it and does what every environment needs; see
//! `collector/src/custom`.
//!
//! ```sh
//! cargo run --release --example custom_env
//! ```

use ostler_collector::custom::{CustomEnv, CustomEnvs, Draws, Outcome, Sizes};
use ostler_collector::{Collector, SyncCollector};
use ostler_sim::env::ActionSpace;
use ostler_trainer::config::Config;
use ostler_trainer::learner::registry::LearnerArgs;
use std::error::Error;
use std::f32::consts::PI;
use tch::Device;

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

/// Trains for some iterations; the mean return of the episodes that ended in each.
fn train(iterations: usize) -> Result<Vec<Option<f64>>, Box<dyn Error>> {
    ostler_trainer::torch::init(1)?;
    let mut config = Config::default();
    config.actor.hidden_dims = vec![64, 64];
    config.critic.hidden_dims = vec![64, 64];
    config.ppo.learning_rate = 1e-3;
    let sizes = Sizes {
        obs: 3,
        action: ActionSpace::Continuous(2),
        step_dt: f64::from(STEP_S),
        episode_steps: 100,
    };
    let robots = (0..256).map(|_| Robot::default());
    let envs = CustomEnvs::new(sizes, robots, config.seed)?;
    let spec = ostler_collector::env::Environments::spec(&envs).clone();
    let mut learner = config.runner.algorithm.build(&LearnerArgs {
        config: &config,
        spec: &spec,
        seed: config.seed,
        device: Device::Cpu,
    })?;
    let steps = config.runner.num_steps_per_env;
    let policy = learner.policy();
    let mut collector = SyncCollector::new(envs, steps, policy, config.seed, true)?;
    let mut returns = Vec::new();
    for iteration in 0..iterations {
        collector.collect(learner.policy_mut())?;
        let update = learner.update(collector.rollout())?;
        let stats = collector.stats();
        let mean = (stats.episodes > 0).then(|| stats.return_sum / stats.episodes as f64);
        if iteration % 20 == 19 {
            println!(
                "iteration {:4}  episodes {:4}  mean return {:8.3}  kl {:.4}",
                iteration + 1,
                stats.episodes,
                mean.unwrap_or(f64::NAN),
                update.kl
            );
        }
        returns.push(mean);
    }
    Ok(returns)
}

fn main() -> Result<(), Box<dyn Error>> {
    train(120).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever stands still has the mean distance of a start, 1.53 m, for 10 s.
    const STANDING: f64 = -15.3;

    #[test]
    fn it_learns_to_park() {
        let returns = train(60).unwrap();
        let last: Vec<f64> = returns[50..].iter().flatten().copied().collect();
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        assert!(mean > 0.25 * STANDING, "{mean}");
    }
}
