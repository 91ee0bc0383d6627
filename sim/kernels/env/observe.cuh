// Observations of the networks.
#pragma once

// Four numbers of an environment's noise, those of places 4 index .. 4 index + 3 of its rows:
// uniform in -1..1, or normal. Terms of both kinds share no words.
template<class L> OSTLER_FN void draw_four(const EnvArgs& a, const L& lanes, bool normal, unsigned long long clock, unsigned index, float (&four)[4][L::W]) {
  const unsigned stream = a.first_env + (unsigned)lanes.first;
  const unsigned draw = normal ? index | 0x80000000u : index;
  unsigned word[4][L::W];
  lanes.dense([&](int j, int l) OSTLER_INLINE {
    const Words w = philox(a.seed, stream + (unsigned)l, DRAW_NOISE, clock, draw);
    for (int k = 0; k < 4; k++) word[k][j] = w.w[k];
  });
  if (normal) {
    for (int k = 0; k < 4; k += 2)
      lanes.dense([&](int j, int) OSTLER_INLINE { normal_pair(word[k][j], word[k + 1][j], four[k][j], four[k + 1][j]); });
  } else {
    for (int k = 0; k < 4; k++) lanes.dense([&](int j, int) OSTLER_INLINE { four[k][j] = 2.0f * unit(word[k][j]) - 1.0f; });
  }
}

// Writes the rows of all environments, or of those that begin anew.
template<class L> OSTLER_FN_PART void observe(const EnvArgs& a, const L& lanes, const Terms& terms) {
  const Task& t = task_of(a);
  const long e = lanes.first, wide = t.nobs, critic_wide = t.ncritic;
  float *rows = a.obs + e * wide, *critic_rows = a.critic_obs + e * critic_wide;
  // Two rows in one step, before and after a reset, differ in their noise.
  const unsigned long long clock = 2 * a.clock + (L::anew ? 1 : 0);
  terms.observations([&](int k, const auto& value) OSTLER_INLINE {
    const unsigned first = begin_of(a.seen_end, k), privileged = begin_of(a.privileged_end, k);
    const int size = value.size((int)(a.seen_end[k] - first));
    const float low = a.seen_low[k], high = a.seen_high[k];
    const float noise = a.noisy ? a.seen_noise[k] : 0.0f;
    const unsigned at = a.seen_at[k];
    unsigned drawn = NOWHERE;
    float four[4][L::W];
    for (int i = 0; i < size; i++) {
      const float scale = a.entry_scale[first + i];
      for (unsigned p = privileged; p < a.privileged_end[k]; p++) {
        float* to = critic_rows + a.privileged_at[p] + i;
        lanes.each([&](int, int l) OSTLER_INLINE { to[l * critic_wide] = clamp_(value(i, l) * scale, low, high); });
      }
      if (at == NOWHERE) continue;
      const unsigned place = at + (unsigned)i;
      float* to = rows + place;
      if (noise > 0.0f) {
        if (drawn != place / 4) {
          drawn = place / 4;
          draw_four(a, lanes, a.seen_normal[k] != 0, clock, drawn, four);
        }
        const float* own = four[place % 4];
        lanes.each([&](int j, int l) OSTLER_INLINE { to[l * wide] = clamp_((value(i, l) + noise * own[j]) * scale, low, high); });
      } else {
        lanes.each([&](int, int l) OSTLER_INLINE { to[l * wide] = clamp_(value(i, l) * scale, low, high); });
      }
    }
  });
  for (int p = 0; p < t.npad; p++) {
    const bool critic = a.pad_critic[p] != 0;
    const long width = critic ? critic_wide : wide;
    for (unsigned at = a.pad_from[p]; at < a.pad_to[p]; at++) {
      float* to = (critic ? critic_rows : rows) + at;
      lanes.each([&](int, int l) OSTLER_INLINE { to[l * width] = 0.0f; });
    }
  }
  if (!L::anew) terms.inject(TERM_SEEN);
}

OSTLER_FN bool all_finite(const float* row, long count) {
  unsigned odd = 0;
  OSTLER_ROLLED for (long i = 0; i < count; i++) odd |= is_finite(row[i]) ? 0u : 1u;
  return odd == 0;
}
OSTLER_FN void copy(float* OSTLER_RESTRICT to, const float* OSTLER_RESTRICT from, long count) {
  OSTLER_ROLLED for (long i = 0; i < count; i++) to[i] = from[i];
}

// Keeps rows that are all numbers. A row that is not is a fault of its environment, and the
// last that was stands in its place.
template<class L> OSTLER_FN void show(const EnvArgs& a, const L& lanes, const Terms& terms) {
  const Task& t = task_of(a);
  const long e = lanes.first, wide = t.nobs, critic_wide = t.ncritic;
  float *rows = a.obs + e * wide, *critic_rows = a.critic_obs + e * critic_wide;
  float *last = a.last_policy + e * wide, *critic_last = a.last_critic + e * critic_wide;
  const bool failed = terms.failed();
  if (L::W > 1 && !L::anew && !failed && all_finite(rows, lanes.len * wide) && all_finite(critic_rows, lanes.len * critic_wide)) {
    copy(last, rows, lanes.len * wide);
    copy(critic_last, critic_rows, lanes.len * critic_wide);
    return;
  }
  lanes.each([&](int, int l) {
    unsigned* bits = L::anew ? a.stuck + e + l : a.bits + e + l;
    if (L::anew) *bits = a.physics.fault[e + l];
    float *row = rows + l * wide, *critic = critic_rows + l * critic_wide;
    if (!failed && all_finite(row, wide) && all_finite(critic, critic_wide)) {
      copy(last + l * wide, row, wide);
      copy(critic_last + l * critic_wide, critic, critic_wide);
      return;
    }
    *bits |= failed ? FAULT_ENGINE : FAULT_TASK;
    copy(row, last + l * wide, wide);
    copy(critic, critic_last + l * critic_wide, critic_wide);
  });
}
