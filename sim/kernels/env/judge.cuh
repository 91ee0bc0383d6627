// Rewards and causes of ends.
#pragma once

// What a metric's values come to with one more; `first` where it is the episode's first.
OSTLER_FN float with_more(unsigned over, bool first, float so_far, float x) {
  switch (over) {
    case OVER_LAST: return x;
    case OVER_MAX: return first || x > so_far || is_nan(x) ? x : so_far;
    case OVER_MIN: return first || x < so_far || is_nan(x) ? x : so_far;
    default: return so_far + x;
  }
}

// Takes the step's values into the episode's metrics.
OSTLER_FN void measure(const EnvArgs& a, const Block b, const Terms& terms) {
  const long n = a.n, e = b.first;
  const unsigned* length = a.length + e;
  terms.metrics([&](int k, const auto& value) OSTLER_INLINE {
    const unsigned over = a.metric_over[k];
    float* metric = a.metric + k * n + e;
    OSTLER_EACH(l) metric[l] = with_more(over, length[l] <= 1, metric[l], value(0, l));
  });
}

// The metric of an episode of `length` steps.
OSTLER_FN float metric_of(unsigned over, float so_far, unsigned length) {
  return over == OVER_MEAN ? so_far / (float)length : so_far;
}

// Adds the terms to their sums, and writes the step's rewards, the causes of ends and the
// faults of physics and rewards.
OSTLER_FN void judge(const EnvArgs& a, const Block b, const Terms& terms) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  unsigned *bits = a.bits + e, *ended = a.ended + e, *cut = a.cut + e;
  const unsigned *fault = a.physics.fault + e, *stuck = a.stuck + e;
  OSTLER_EACH(l) {
    bits[l] |= fault[l] | stuck[l];
    ended[l] = cut[l] = 0;
  }
  for (int m = 0; m < t.nagent; m++) {
    float* gain = a.gain + m * n + e;
    OSTLER_EACH(l) gain[l] = 0.0f;
  }
  terms.rewards([&](int k, const auto& value) OSTLER_INLINE {
    const float weight = a.weight[k];
    float term[Block::W];
    float* sum = a.sums + k * n + e;
    OSTLER_EACH(l) {
      term[l] = weight * value(0, l);
      sum[l] += term[l];
    }
    for (unsigned s = begin_of(a.share_end, k); s < a.share_end[k]; s++) {
      float* gain = a.gain + a.share_agent[s] * n + e;
      OSTLER_EACH(l) gain[l] += term[l];
    }
  });
  const float limit = a.reward_limit[0], low = a.reward_low[0], high = a.reward_high[0];
  for (int m = 0; m < t.nagent; m++) {
    float* gain = a.gain + m * n + e;
    unsigned* clipped = a.clipped + m * n + e;
    OSTLER_EACH(l) {
      const bool absurd = magnitude(gain[l]) > limit;
      if (t.nclipped > 0) clipped[l] += gain[l] < low || gain[l] > high;
      gain[l] = clamp_(gain[l], low, high);
      bits[l] |= absurd || !is_finite(gain[l]) ? (unsigned)FAULT_TASK : 0u;
    }
  }
  terms.inject(TERM_REWARD);
  terms.ends([&](int k, const auto& value) OSTLER_INLINE {
    // The first that fires is the cause.
    unsigned* cause = a.truncates[k] ? cut : ended;
    OSTLER_EACH(l) cause[l] = cause[l] == 0 && value(0, l) != 0.0f ? (unsigned)k + 1u : cause[l];
  });
}
