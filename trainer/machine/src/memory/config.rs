//! `[memory]`: when pressure is worth a warning, and when it is acted upon.

use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[memory]`: levels and intervals of the watch over memory and disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// Share of the tightest limit in use from which on the run warns, above 0.
    pub warn: f64,
    /// Share of the tightest limit in use from which on the run backs off, `warn` to 1.
    pub act: f64,
    /// How long pressure has to stay at `act` before the run backs off, and free space
    /// below `disk_act_mib` before it ends (s).
    pub act_after_s: f64,
    /// Time between two samples (s), 0.05 to 60.
    pub interval_s: f64,
    /// Samples that are kept for the report of a failure, 1 to 100000.
    pub history: usize,
    /// Free space where the run writes below which it warns (MiB); 0: never.
    pub disk_warn_mib: u64,
    /// Free space where the run writes (MiB) below which it writes as little as it can,
    /// and ends where that is not enough; 0: never.
    pub disk_act_mib: u64,
    /// Share of the free memory that `env.num_envs = "auto"` leaves alone, 0 to 0.9.
    pub head_room: f64,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            warn: 0.85,
            act: 0.95,
            act_after_s: 5.0,
            interval_s: 0.5,
            history: 240,
            disk_warn_mib: 1024,
            disk_act_mib: 128,
            head_room: 0.1,
        }
    }
}

impl MemoryConfig {
    /// Values that cannot be used.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut refuse = |key: &str, value: String, allowed: String| {
            errors.push(
                ConfigError::new(format!("memory.{key}"), format!("{value} cannot be used"))
                    .help(format!("allowed: {allowed}")),
            );
        };
        let shares = [
            ("warn", self.warn, 0.01, 1.0),
            ("act", self.act, 0.01, 1.0),
            ("head_room", self.head_room, 0.0, 0.9),
        ];
        for (key, share, low, high) in shares {
            // A NaN is in no range.
            if !(low..=high).contains(&share) {
                refuse(key, share.to_string(), format!("a share, {low} to {high}"));
            }
        }
        if self.act < self.warn {
            let what = format!("{} below memory.warn = {}", self.act, self.warn);
            refuse("act", what, "memory.warn to 1".into());
        }
        for (key, value, low, high) in [
            ("act_after_s", self.act_after_s, 0.0, 3600.0),
            ("interval_s", self.interval_s, 0.05, 60.0),
        ] {
            if !(low..=high).contains(&value) {
                refuse(key, format!("{value} s"), format!("{low} to {high} s"));
            }
        }
        if !(1..=100_000).contains(&self.history) {
            refuse("history", self.history.to_string(), "1 to 100000".into());
        }
        let most = u64::MAX >> 20;
        for (key, mib) in
            [("disk_warn_mib", self.disk_warn_mib), ("disk_act_mib", self.disk_act_mib)]
        {
            if mib > most {
                refuse(key, format!("{mib} MiB"), format!("0 to {most}"));
            }
        }
        if self.disk_act_mib > self.disk_warn_mib && self.disk_warn_mib > 0 {
            let warn = self.disk_warn_mib;
            let what = format!("{} above memory.disk_warn_mib = {warn}", self.disk_act_mib);
            refuse("disk_act_mib", what, format!("0 to {warn}"));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_out_of_its_range_is_named() {
        assert!(MemoryConfig::default().validate().is_empty());
        let wrong = MemoryConfig {
            warn: f64::NAN,
            act: 1.5,
            act_after_s: -1.0,
            interval_s: 0.0,
            history: 0,
            disk_warn_mib: 5,
            disk_act_mib: 6,
            head_room: 1.0,
        };
        let errors = wrong.validate();
        let text: String = errors.iter().map(|e| format!("{e:?}")).collect();
        for key in
            ["warn", "act", "act_after_s", "interval_s", "history", "disk_act_mib", "head_room"]
        {
            assert!(text.contains(&format!("memory.{key}")), "{key}: {text}");
        }
        let swapped = MemoryConfig { warn: 0.9, act: 0.8, ..MemoryConfig::default() };
        assert_eq!(swapped.validate().len(), 1);
    }
}
