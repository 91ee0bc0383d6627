//! Which configuration a command takes.

use super::shipped;
use clap::Args;
use ostler_learn::config::Override;
use ostler_run::run::RunError;
use std::path::PathBuf;

/// Which configuration, and what differs from it.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// A TOML file, or the name of one that `ostler envs` lists, and values that replace its
    /// own: env.num_envs=512
    #[arg(value_name = "CONFIG | KEY=VALUE")]
    args: Vec<String>,
    /// Replace a value: --set ppo.gamma=0.98, --set task.reward.forward.weight=2
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Take the values of the file's table [profile.NAME]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Seed of every random draw (seed)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Where to compute: auto, cpu, cuda:0 (device)
    #[arg(long)]
    pub(super) device: Option<String>,
    /// Parallel environments, or auto (env.num_envs)
    #[arg(long, alias = "num_envs", value_name = "N", allow_negative_numbers = true)]
    num_envs: Option<String>,
}

impl ConfigArgs {
    /// The configuration's file and the overrides in the order they apply.
    ///
    /// # Errors
    /// More than one file.
    pub fn split(&self) -> Result<(Option<PathBuf>, Vec<Override>), RunError> {
        let mut file: Option<PathBuf> = None;
        let mut overrides: Vec<Override> = self.set.iter().map(Override::set).collect();
        for arg in &self.args {
            if arg.contains('=') && !std::path::Path::new(arg).exists() {
                overrides.push(Override::set(arg));
            } else if let Some(first) = &file {
                return Err(RunError::Usage(format!(
                    "two configurations, {} and {arg}: give one file; values are given as key=value",
                    first.display()
                )));
            } else {
                file = Some(shipped::find(arg));
            }
        }
        let flags = [
            ("--profile", "profile", self.profile.clone()),
            ("--seed", "seed", self.seed.map(|s| s.to_string())),
            ("--device", "device", self.device.clone()),
            ("--num-envs", "env.num_envs", self.num_envs.clone()),
        ];
        for (flag, key, value) in flags {
            if let Some(value) = value {
                overrides.push(Override::flag(flag, key, value));
            }
        }
        Ok((file, overrides))
    }

    /// The same where a file is needed.
    ///
    /// # Errors
    /// No file, or more than one.
    pub fn required(&self) -> Result<(PathBuf, Vec<Override>), RunError> {
        match self.split()? {
            (Some(file), overrides) => Ok((file, overrides)),
            (None, _) => {
                Err(RunError::Usage("which configuration? `ostler envs` lists them".into()))
            }
        }
    }
}
