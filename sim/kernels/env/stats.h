// What is counted of episodes and of environments that broke: one line each. tally.cuh counts,
// on hosts and devices; by sim/build/columns.rs the statistics in Rust, their sums over devices
// and workers and their part of snapshots follow.
//
// X(name, kind, size, says)
//   kind  count: a whole number; sum: a number
//   size  one, or how many of them there are (`StatSizes` in sim/env/src/env/stats.rs)
//
// The order is that of snapshots, single numbers first: changing it changes their version
// (sim/base/src/snapshot.rs).
#pragma once

#define OSTLER_STATS(X) \
  X(episodes, count, one, "Episodes that ended (broken ones are not counted).") \
  X(return_sum, sum, one, "Sum of returns; of several agents, the mean counts.") \
  X(length_sum, sum, one, "Sum of lengths in control steps.") \
  X(final_overflow, count, one, "Truncations that found no room in `final_obs`.") \
  X(starts, count, one, "Starts of episodes whose conditions were looked at: tasks with `[task.start]`.") \
  X(start_tries, count, one, "Draws that they took.") \
  X(level_sum, sum, one, "Sum of the terrain's levels on which episodes began that ended.") \
  X(starts_gave_up, count, one, "Those in which a condition failed in every try, so that the last counts.") \
  X(reward_sums, sum, nreward, "Per reward term: sum of weighted values.") \
  X(metric_sums, sum, nmetric, "Per metric: sum of the episodes' values.") \
  X(agent_return_sums, sum, nteam, "Sum of returns of every agent `[M]`; empty for tasks without `[agents]`.") \
  X(rewards_clipped, count, nclipped, "Of every agent `[M]`: how many of its rewards `task.rewards.clip` changed.") \
  X(terminations, count, nend, "Per termination cause: how many episodes it ended.") \
  X(faults, count, nfault, "Broken environments, by the bit of `State::fault`.") \
  X(causes, count, ncause, "Per cause ([`EnvSpec::cause_names`]): broken environments, each counted once, by what was wrong first. The host looks for it.") \
  X(suspects, count, nevent, "Per event ([`EnvSpec::events`]): broken environments in which it happened shortly before; of events of startup, those that had broken twice before. One break can count for several events.")

#define OSTLER_STAT(name, kind, size, says) kind* name;
