// What is counted of episodes and of environments that broke: stats.h.
#pragma once

// Adds to entry k of a statistic: on a host of all environments, on a device of one.
template<class T, class X> OSTLER_FN void count(const EnvArgs& a, const long e, T* of, const int k, const X x) {
#ifdef OSTLER_BLOCK
  (void)a, (void)e;
  of[k] += (T)x;
#else
  of[k * (long)a.n + e] += (T)x;
#endif
}

// Counts the end of an environment's episode. Leaves in `metric` what the values came to, and
// in `last_ret` the episode.
OSTLER_FN_BIG void tally(const EnvArgs& a, const long e) {
  const Task& t = task_of(a);
  const StatAddresses& s = a.stats;
  const long n = a.n;
  const unsigned bits = a.bits[e];
  if (bits) {
    for (int bit = 0; bit < FAULTS; bit++)
      if (bits >> bit & 1) count(a, e, s.faults, bit, 1);
    OSTLER_ROLLED for (int k = 0; k < t.nevent; k++)
      if (a.suspect[k * n + e]) count(a, e, s.suspects, k, 1);
    return;
  }
  const bool truncated = a.truncated[e * t.nagent] != 0.0f;
  if (truncated && a.final_slot[e * t.nagent] < 0) count(a, e, s.final_overflow, 0, 1);
  if (!a.counted[e]) return;
  count(a, e, s.episodes, 0, 1);
  double sum = 0;
  for (int m = 0; m < t.nagent; m++) {
    sum = sum + (double)a.ret[m * n + e];
    if (t.nagent > 1) count(a, e, s.agent_return_sums, m, (double)a.ret[m * n + e]);
  }
  const double mean = sum / t.nagent;
  count(a, e, s.return_sum, 0, mean);
  count(a, e, s.length_sum, 0, (double)a.length[e]);
  for (int m = 0; m < t.nclipped; m++) count(a, e, s.rewards_clipped, m, a.clipped[m * n + e]);
  if (t.nground > 0) count(a, e, s.level_sum, 0, (double)a.stand[3 * n + e]);
  OSTLER_ROLLED for (int k = 0; k < t.nreward; k++) count(a, e, s.reward_sums, k, (double)a.sums[k * n + e]);
  OSTLER_ROLLED for (int k = 0; k < t.nmetric; k++) {
    float* metric = a.metric + k * n + e;
    *metric = metric_of(a.metric_over[k], *metric, a.length[e]);
    count(a, e, s.metric_sums, k, (double)*metric);
  }
  count(a, e, s.terminations, (int)(truncated ? a.cut[e] : a.ended[e]), 1);
  a.last_ret[e] = bits_of((float)mean);
  a.last_ret[n + e] = a.length[e];
  a.last_ret[2 * n + e] = a.since + 1u;
}

// Counts the draws of a start that conditions were asked of.
OSTLER_FN void tally_start(const EnvArgs& a, const long e) {
  if (task_of(a).nuntil == 0) return;
  const unsigned tries = a.tries[e];
  count(a, e, a.stats.starts, 0, 1);
  count(a, e, a.stats.start_tries, 0, tries & ~(unsigned)GAVE_UP);
  if (tries & GAVE_UP) count(a, e, a.stats.starts_gave_up, 0, 1);
}
