//! The log of an iteration: numbers and their tags.

use super::parts::Parts;
use super::{Evaluation, Run};
use crate::learner::UpdateStats;
use crate::log::progress::Snapshot;
use ostler_collector::{CollectCounts, Collector};
use ostler_sim::device::Traffic;
use ostler_sim::physics::fault;
use std::time::Duration;

impl Run {
    /// Writes the iteration's numbers to all logs and the progress line.
    pub(super) fn log(
        &mut self,
        parts: &Parts,
        update: &UpdateStats,
        took: Duration,
        evaluation: Option<&Evaluation>,
        reward_per_step: Option<f64>,
    ) {
        let stats = parts.collector.stats();
        let times = parts.collector.times();
        let wall = self.wall_s();
        let drop = self.evaluations.record().drop();
        let short = self.short_episodes_only() || !self.counters.window.full();
        let r = &mut self.record;
        r.begin(self.counters.iteration, self.counters.env_steps, wall);
        let (mean_return, mean_length) = self.counters.window.means();
        r.put("Train/mean_reward", mean_return);
        r.put("Train/mean_episode_length", mean_length);
        r.put("Train/early_mean", f64::from(u8::from(short)));
        r.put("Train/episodes", stats.episodes as f64);
        if let Some(mean) = reward_per_step {
            r.put("Train/reward_per_step", mean);
        }
        if stats.episodes > 0 {
            let n = stats.episodes as f64;
            for (name, sum) in self.spec.reward_names.iter().zip(&stats.reward_sums) {
                r.put_in("Episode_Reward/", name, sum / n);
            }
            for (agent, sum) in self.spec.agents.iter().zip(&stats.agent_return_sums) {
                r.put_in("Train/agent_reward/", &agent.name, sum / n);
            }
            for (name, count) in self.spec.termination_names.iter().zip(&stats.terminations) {
                r.put_in("Episode_Termination/", name, *count as f64 / n);
            }
        }
        for (tag, value) in update.scalars() {
            r.put(tag, value);
        }
        for (policy, update) in parts.learner.each() {
            for (tag, value) in update.scalars() {
                r.put_in(tag, policy, value);
            }
        }
        if let Some(e) = evaluation {
            r.put("Eval/mean_reward", e.returns.mean);
            r.put("Eval/ci95_reward", e.returns.ci95);
            r.put("Eval/std_reward", e.returns.std);
            r.put("Eval/quantile_5_reward", e.returns.quantile_5);
            r.put("Eval/mean_episode_length", e.mean_length);
            r.put("Perf/evaluation_time", e.seconds);
            if let Some(drop) = drop {
                r.put("Guard/return_drop", drop);
            }
        }
        let broken = stats.broken();
        r.put("Guard/broken_envs", broken as f64);
        for (name, count) in fault::NAMES.iter().zip(&stats.faults) {
            if *count > 0 {
                r.put_in("Guard/", name, *count as f64);
            }
        }
        for (key, value) in &self.scheduled {
            r.put_in("Curriculum/", key, *value);
        }
        if let Some(stats) = parts.collector.worker_stats() {
            r.put("Perf/workers", stats.workers as f64);
            r.put("Perf/staleness", stats.staleness);
            r.put("Guard/worker_restarts", stats.restarts as f64);
            r.put("Guard/worker_hangs", stats.hangs as f64);
            r.put("Guard/cut_steps", stats.cut as f64);
        }
        let health = self.health.record();
        r.put("Guard/roll_backs", health.roll_backs_in_all as f64);
        r.put("Guard/bad_updates", f64::from(health.bad_updates));
        let causes = &parts.spec.cause_names;
        for (name, count) in causes.iter().zip(&stats.causes) {
            if *count > 0 {
                r.put_in("Guard/", name, *count as f64);
            }
        }
        let short = stats.shortfalls;
        r.put("Guard/contact_overflow", short.contact_overflow as f64);
        r.put("Guard/unsolved", short.unsolved as f64);
        r.put("Guard/final_obs_overflow", stats.final_overflow as f64);
        r.put("Guard/lost_log_records", self.sinks.lost as f64);
        let samples = self.loaded.config.samples() as f64;
        let seconds = took.as_secs_f64();
        r.put("Perf/total_fps", samples / seconds);
        r.put("Perf/num_envs", self.loaded.config.env.num_envs as f64);
        r.put("Perf/collection_time", times.total);
        r.put("Perf/learning_time", update.update_s);
        r.put("Perf/physics_ms", times.env * 1e3);
        r.put("Perf/policy_ms", times.policy * 1e3);
        r.put("Perf/gae_ms", update.gae_s * 1e3);
        r.put("Perf/update_ms", update.update_s * 1e3);
        if self.loaded.config.gpu().is_some() {
            for (tag, count) in traffic(parts.collector.counts(), update.traffic) {
                r.put(tag, count as f64);
            }
        }
        r.put("Memory/rss_mib", resident_mib());
        for (tag, value) in self.monitor.sample().scalars() {
            r.put(tag, value);
        }
        r.put("Memory/level", self.monitor.latest().level as u8 as f64);
        self.sinks.write(r);
        if broken > 0 {
            tracing::info!(
                iteration = self.counters.iteration,
                broken,
                "environments reset"
            );
        }
        if self.progress.due() {
            self.progress.show(&self.snapshot());
        }
    }

    /// The progress line's present text.
    pub(super) fn snapshot(&self) -> Snapshot {
        let (mean_return, mean_length) = self.counters.window.means();
        let early = self.short_episodes_only() || !self.counters.window.full();
        let evaluated = self.evaluations.record().last.map(|s| s.mean);
        let of = self.loaded.config.runner.max_iterations;
        let done = self.counters.iteration.saturating_sub(self.first_iteration);
        let spent = self.started.elapsed().as_secs_f64();
        let per_iteration = spent / done as f64;
        let mut left_s = per_iteration * of.saturating_sub(self.counters.iteration) as f64;
        if let Some(max) = self.max_time {
            left_s = left_s.min(max.as_secs_f64() - spent);
        }
        Snapshot {
            iteration: self.counters.iteration,
            of,
            fps: self.record.get("Perf/total_fps").unwrap_or(0.0),
            mean_return,
            early,
            evaluated,
            mean_length,
            left_s,
            rss_mib: self.record.get("Memory/rss_mib").unwrap_or(f64::NAN),
            memory: self.monitor.latest(),
        }
    }
}

/// Waits and copies of an iteration on a GPU, by tag.
fn traffic(collected: CollectCounts, update: Traffic) -> [(&'static str, u64); 4] {
    let all = collected.all + update;
    let in_loop = collected.in_loop;
    [
        ("Perf/cuda_syncs", all.waits),
        ("Perf/cuda_syncs_in_loop", in_loop.waits),
        ("Perf/host_copies", all.copies()),
        ("Perf/host_copies_in_loop", in_loop.copies()),
    ]
}

/// Resident memory of this process (MiB); NaN where the system does not say.
pub fn resident_mib() -> f64 {
    let pages = || {
        let text = std::fs::read_to_string("/proc/self/statm").ok()?;
        text.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    // SAFETY: sysconf reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64;
    pages().map_or(f64::NAN, |p| p * page / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_copies_are_those_of_collection_and_update() {
        let of = |launches, uploads, downloads, waits| Traffic {
            launches,
            uploads,
            downloads,
            waits,
        };
        let collected = CollectCounts {
            in_loop: of(1000, 2, 30, 400),
            all: of(2000, 5, 60, 800),
        };
        let tags = traffic(collected, of(0, 7, 8, 9));
        let expected = [
            ("Perf/cuda_syncs", 809),
            ("Perf/cuda_syncs_in_loop", 400),
            ("Perf/host_copies", 80),
            ("Perf/host_copies_in_loop", 32),
        ];
        assert_eq!(tags, expected);
    }
}
