//! The numbers of an iteration and their tags.

use super::{Done, Standing};
use crate::log::metrics::Record;
use crate::run::evaluate::Evaluation;
use crate::run::parts::Parts;
use ostler_collector::peers::Group;
use ostler_collector::transfer::host_number;
use ostler_collector::{CollectCounts, Collector};
use ostler_machine::memory::resident_mib;
use ostler_sim::EpisodeStats;
use ostler_sim::device::Traffic;
use ostler_sim::physics::fault;

/// Replaces the record's numbers by those of the iteration that is `done`.
pub(super) fn fill(r: &mut Record, run: Standing<'_>, parts: &Parts, done: &Done<'_>) {
    let counters = run.counters;
    r.begin(counters.iteration, counters.env_steps, run.wall_s());
    episodes(r, run, parts);
    starts(r, parts.collector.stats());
    for (tag, value) in done.update.scalars() {
        r.put(tag, value);
    }
    for (policy, update) in parts.learner.each() {
        for (tag, value) in update.scalars() {
            r.put_in(tag, policy, value);
        }
    }
    if let Some(e) = done.evaluation {
        evaluated(r, run, e);
    }
    for (key, value) in &run.schedules.stage {
        r.put_in("Curriculum/", key, *value);
    }
    guards(r, run, parts);
    speed(r, run, parts, done);
    r.put("Memory/rss_mib", resident_mib());
    let monitor = &run.guards.memory.monitor;
    for (tag, value) in monitor.sample().scalars() {
        r.put(tag, value);
    }
    r.put("Memory/level", monitor.latest().level as u8 as f64);
}

/// Returns, rewards and ends of episodes.
fn episodes(r: &mut Record, run: Standing<'_>, parts: &Parts) {
    let (stats, spec) = (parts.collector.stats(), &run.setup.spec);
    let (mean_return, mean_length) = run.counters.window.means();
    r.put("Train/mean_reward", mean_return);
    r.put("Train/mean_episode_length", mean_length);
    r.put("Train/early_mean", f64::from(u8::from(run.early())));
    r.put("Train/episodes", stats.episodes as f64);
    if let Some(mean) = reward_per_step(&*parts.collector) {
        r.put("Train/reward_per_step", mean);
    }
    if stats.episodes > 0 {
        let n = stats.episodes as f64;
        for (name, sum) in spec.reward_names.iter().zip(&stats.reward_sums) {
            r.put_in("Episode_Reward/", name, sum / n);
        }
        for (metric, sum) in spec.metrics.iter().zip(&stats.metric_sums) {
            r.put_in("Metrics/", &metric.name, sum / n);
        }
        for (agent, sum) in spec.agents.iter().zip(&stats.agent_return_sums) {
            r.put_in("Train/agent_reward/", &agent.name, sum / n);
        }
        if let (Some(_), Some((_, share))) =
            (run.setup.config().task.rewards.clip, stats.most_clipped())
        {
            r.put("Train/clipped_rewards", share);
        }
        if spec.levels > 0 {
            r.put("Terrain/mean_level", stats.level_sum / n);
        }
        for (name, count) in spec.termination_names.iter().zip(&stats.terminations) {
            r.put_in("Episode_Termination/", name, *count as f64 / n);
        }
    }
}

/// Draws of the starts of episodes, where they have conditions.
fn starts(r: &mut Record, stats: &EpisodeStats) {
    if stats.starts > 0 {
        let n = stats.starts as f64;
        r.put("Start/tries", stats.start_tries as f64 / n);
        r.put("Start/gave_up", stats.starts_gave_up as f64 / n);
    }
}

/// Replaces the record's numbers by those of an evaluation after the last iteration.
pub(super) fn fill_evaluated(r: &mut Record, run: Standing<'_>, e: &Evaluation) {
    let counters = run.counters;
    r.begin(counters.iteration, counters.env_steps, run.wall_s());
    evaluated(r, run, e);
}

/// Results of an evaluation.
fn evaluated(r: &mut Record, run: Standing<'_>, e: &Evaluation) {
    let names = run.setup.spec.metrics.iter().map(|m| m.name.as_str());
    for (name, value) in names.zip(&e.metrics) {
        r.put_in("Eval/Metrics/", name, *value);
    }
    r.put("Eval/mean_reward", e.returns.mean);
    r.put("Eval/ci95_reward", e.returns.ci95);
    r.put("Eval/std_reward", e.returns.std);
    r.put("Eval/quantile_5_reward", e.returns.quantile_5);
    r.put("Eval/mean_episode_length", e.mean_length);
    r.put("Perf/evaluation_time", e.seconds);
    if let Some(drop) = run.evaluations.history.record().drop() {
        r.put("Guard/return_drop", drop);
    }
}

/// Faults of environments, workers and updates.
fn guards(r: &mut Record, run: Standing<'_>, parts: &Parts) {
    let stats = parts.collector.stats();
    let broken = stats.broken();
    r.put("Guard/broken_envs", broken as f64);
    for (name, count) in fault::NAMES.iter().zip(&stats.faults) {
        if *count > 0 {
            r.put_in("Guard/", name, *count as f64);
        }
    }
    let health = run.guards.health.record();
    r.put("Guard/roll_backs", health.roll_backs_in_all as f64);
    r.put("Guard/bad_updates", f64::from(health.bad_updates));
    let causes = &parts.spec.cause_names;
    for (name, count) in causes.iter().zip(&stats.causes) {
        if *count > 0 {
            r.put_in("Guard/", name, *count as f64);
        }
    }
    for (event, count) in parts.spec.events.iter().zip(&stats.suspects) {
        if *count > 0 {
            r.put_in("Guard/event/", &event.name, *count as f64);
        }
    }
    let short = stats.shortfalls;
    r.put("Guard/contact_overflow", short.contact_overflow as f64);
    r.put("Guard/unsolved", short.unsolved as f64);
    r.put("Guard/final_obs_overflow", stats.final_overflow as f64);
    if let Some(stats) = parts.collector.worker_stats() {
        r.put("Perf/workers", stats.workers as f64);
        r.put("Perf/staleness", stats.staleness);
        r.put("Guard/worker_restarts", stats.restarts as f64);
        r.put("Guard/worker_hangs", stats.hangs as f64);
        r.put("Guard/cut_steps", stats.cut as f64);
    }
}

/// Times, speed and traffic.
fn speed(r: &mut Record, run: Standing<'_>, parts: &Parts, done: &Done<'_>) {
    let (config, update) = (run.setup.config(), done.update);
    let times = parts.collector.times();
    let samples = config.samples() as f64;
    let seconds = done.took.as_secs_f64();
    r.put("Perf/total_fps", samples / seconds);
    r.put("Perf/num_envs", config.env.num_envs as f64);
    r.put("Perf/collection_time", times.total);
    r.put("Perf/learning_time", update.update_s);
    r.put("Perf/physics_ms", times.env * 1e3);
    r.put("Perf/policy_ms", times.policy * 1e3);
    r.put("Perf/gae_ms", update.gae_s * 1e3);
    r.put("Perf/update_ms", update.update_s * 1e3);
    let work = Group::current().take_work();
    for (rank, seconds) in work.iter().enumerate() {
        r.put(&format!("Perf/work_of_process/{rank}"), *seconds);
    }
    if let Some(slowest) = (0..work.len()).max_by(|a, b| work[*a].total_cmp(&work[*b])) {
        r.put("Perf/slowest_process", slowest as f64);
    }
    if config.gpu().is_some() {
        for (tag, count) in traffic(parts.collector.counts(), update.traffic) {
            r.put(tag, count as f64);
        }
    }
}

/// Mean reward of the valid steps of a rollout, over all rows of all processes; `None` where none
/// is valid, or no memory is left to count them.
fn reward_per_step(collector: &dyn Collector) -> Option<f64> {
    let mean = || -> Result<f64, tch::TchError> {
        let ([rewards, steps], others) = (collector.rollout().rewards()?, collector.of_others());
        let [rewards, steps] = [rewards.f_add_scalar(others[0])?, steps.f_add_scalar(others[1])?];
        // The one number that comes from the device; NaN where no step is valid.
        host_number(&rewards.f_div(&steps)?)
    };
    mean().ok().filter(|mean| mean.is_finite())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_copies_are_those_of_collection_and_update() {
        let of =
            |launches, uploads, downloads, waits| Traffic { launches, uploads, downloads, waits };
        let collected = CollectCounts { in_loop: of(1000, 2, 30, 400), all: of(2000, 5, 60, 800) };
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
