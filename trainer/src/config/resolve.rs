//! From what was asked to what will be: every "auto" gets its value.

use super::Config;
use ostler_sim::config::Auto;
use ostler_sim::physics::pool::Pool;

/// Where a run computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Whatever is there.
    Auto,
    /// The processor.
    Cpu,
    /// An NVIDIA GPU by number.
    Cuda(usize),
}

impl Device {
    /// Reads `auto`, `cpu`, `cuda` or `cuda:N`.
    ///
    /// # Errors
    /// A sentence about what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| format!("\"{text}\" is not a device")),
        }
    }
}

/// What was decided while resolving, for the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// One line each.
    pub notes: Vec<String>,
}

/// A GPU was asked for.
#[derive(Debug, thiserror::Error)]
#[error(
    "device \"{0}\": runs on a GPU are not available in this version yet; use --device cpu (or auto, which is cpu today)"
)]
pub struct NoGpu(pub String);

/// More threads than this do not help matrices of a policy's size.
const MOST_LEARNER_THREADS: usize = 8;

/// Multiplications of one matrix product that are worth a thread, about 0.2 ms. With
/// less, threads wait for one another longer than they compute: 64-wide layers ran 20
/// times slower on two threads of a busy machine than on one.
const WORK_PER_THREAD: usize = 8 << 20;

impl Config {
    /// Replaces every "auto" but the kernel's, which takes the robot to decide. Where a
    /// run goes on, `earlier` is what it ran with: its bits depend on the learner's
    /// threads and the kernel.
    ///
    /// # Errors
    /// A GPU was asked for.
    pub fn resolve(&mut self, earlier: Option<&Self>) -> Result<Resolution, NoGpu> {
        let mut notes = Vec::new();
        match Device::parse(&self.device) {
            Ok(Device::Auto) => {
                self.device = "cpu".into();
                notes.push("device \"auto\" is cpu: this version has no GPU runs yet".into());
            }
            Ok(Device::Cpu) | Err(_) => {}
            Ok(Device::Cuda(_)) => return Err(NoGpu(self.device.clone())),
        }
        if let Some(earlier) = earlier {
            if let Auto::Auto(_) = self.learner.threads {
                self.learner.threads = Auto::N(earlier.learner_threads());
            }
            if self.sim.kernel == "auto" {
                self.sim.kernel.clone_from(&earlier.sim.kernel);
            }
        }
        let useful = self.learner_work() / WORK_PER_THREAD;
        let cores = Pool::available().max(1);
        let most = [
            ("sim.threads", &mut self.sim.threads, usize::MAX),
            (
                "learner.threads",
                &mut self.learner.threads,
                useful.clamp(1, MOST_LEARNER_THREADS),
            ),
        ];
        for (key, threads, most) in most {
            match *threads {
                Auto::Auto(_) => *threads = Auto::N(cores.min(most)),
                Auto::N(n) if n > cores => {
                    notes.push(format!(
                        "{key} = {n} is more than the {cores} cores at hand"
                    ));
                }
                Auto::N(_) => {}
            }
        }
        Ok(Resolution { notes })
    }

    /// Multiplications of the largest matrix product of an update.
    fn learner_work(&self) -> usize {
        let widest = |dims: &[i64]| {
            let product = |w: &[i64]| w.iter().fold(1_usize, |a, &d| a.saturating_mul(d as usize));
            dims.windows(2).map(product).max().unwrap_or(1)
        };
        let layer = widest(&self.actor.hidden_dims).max(widest(&self.critic.hidden_dims));
        let rows = self.samples() as usize / self.ppo.num_mini_batches.max(1);
        rows.saturating_mul(layer)
    }

    /// Threads for libtorch; 1 before [`resolve`](Self::resolve).
    pub fn learner_threads(&self) -> usize {
        match self.learner.threads {
            Auto::N(n) => n,
            Auto::Auto(_) => 1,
        }
    }

    /// Threads for physics and tasks; 1 before [`resolve`](Self::resolve).
    pub fn sim_threads(&self) -> usize {
        match self.sim.threads {
            Auto::N(n) => n,
            Auto::Auto(_) => 1,
        }
    }

    /// The number of environments one step of back-off below `num_envs`; `None` where
    /// that is switched off, below the least, or leaves a minibatch without a sample.
    pub fn fewer_envs(&self, num_envs: usize) -> Option<usize> {
        let fewer = self.back_off.below(num_envs)?;
        let samples = fewer * self.runner.num_steps_per_env;
        let enough = self.ppo.validate_batch(samples).is_empty();
        enough.then_some(fewer)
    }

    /// Transitions per iteration.
    pub fn samples(&self) -> u64 {
        self.env.num_envs as u64 * self.runner.num_steps_per_env as u64
    }
}
