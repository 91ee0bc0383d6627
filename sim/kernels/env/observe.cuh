// Observations of the networks.
#pragma once

// Random words of an environment's noise at places 4 index .. 4 index + 3 of its rows. Normal
// numbers, which take their words in pairs, and others share none, nor do rows of policies and
// critics.
template<class L> OSTLER_FN void noise_words(const EnvArgs& a, const L& lanes, bool normal, bool critic, unsigned long long clock, unsigned index, unsigned (&word)[4][L::W]) {
  const unsigned stream = a.first_env + (unsigned)lanes.first;
  const unsigned draw = index | (normal ? 0x80000000u : 0u) | (critic ? 0x40000000u : 0u);
  lanes.dense([&](int j, int l) OSTLER_INLINE {
    const Words w = philox(a.seed, stream + (unsigned)l, DRAW_NOISE, clock, draw);
    for (int k = 0; k < 4; k++) word[k][j] = w.w[k];
  });
}

// Delays what is seen late, and puts earlier values in front. The rows hold the present values;
// the environments' last rows have the earlier ones.
template<class L> OSTLER_FN_PART void look_back(const EnvArgs& a, const L& lanes) {
  const Task& t = task_of(a);
  const long n = a.n, e = lanes.first;
  const unsigned* length = a.length + e;
  OSTLER_ROLLED for (int k = 0; k < t.nkeep; k++) {
    const bool critic = a.keep_critic[k] != 0;
    const long wide = critic ? t.ncritic : t.nobs, stride = a.keep_stride[k];
    const int size = (int)a.keep_size[k], frames = (int)a.keep_frames[k];
    float* rows = (critic ? a.critic_obs : a.obs) + e * wide + a.keep_at[k];
    const float* last = (critic ? a.last_critic : a.last_policy) + e * wide + a.keep_at[k];
    if (a.keep_lag[k] != NOWHERE) {
      const int own = (int)a.keep_lag[k];
      const unsigned depth = a.lag_high[own], *lag = a.lag + own * n + e;
      float* way = a.delayed + begin_of(a.lag_end, own) * n + e;
      redraw_lag(a, lanes, own);
      lanes.each([&](int, int l) {
        float* row = rows + l * wide;
        const unsigned in = length[l] % depth, out = place_of(length[l], steps_of(lag[l]), depth);
        const bool now = steps_of(lag[l]) == 0;
        for (int i = 0; i < size; i++) {
          const float x = row[i];
          // Nothing was before the first step but what it has.
          if (lanes.anew) {
            for (unsigned s = 0; s < depth; s++) way[(s * size + i) * n + l] = x;
            continue;
          }
          const float late = way[(out * size + i) * n + l];
          way[(in * size + i) * n + l] = x;
          // What is no number breaks its environment at once.
          row[i] = now || !is_finite(x) ? x : late;
        }
      });
    }
    if (frames > 1) {
      lanes.each([&](int, int l) {
        float* row = rows + l * wide;
        const float* before = last + l * wide;
        for (long f = frames - 1; f > 0; f--)
          for (int i = 0; i < size; i++) row[i - f * stride] = lanes.anew ? row[i] : before[i - (f - 1) * stride];
      });
    }
  }
}

// Writes the values of term `k` to the rows that show it, with their noise.
template<class L, class V> OSTLER_FN_ONE void see(const EnvArgs& a, const L& lanes, int k, const V value) {
  const Task& t = task_of(a);
  const long n = a.n, e = lanes.first, wide = t.nobs, critic_wide = t.ncritic;
  float *rows = a.obs + e * wide, *critic_rows = a.critic_obs + e * critic_wide;
  // Two rows in one step, before and after a reset, differ in their noise.
  const unsigned long long clock = 2 * a.clock + (lanes.anew ? 1 : 0);
  const unsigned first = begin_of(a.seen_end, k);
  const int size = value.size((int)(a.seen_end[k] - first));
  const float low = a.seen_low[k], high = a.seen_high[k];
  for (unsigned s = begin_of(a.sink_end, k); s < a.sink_end[k]; s++) {
    const bool critic = a.sink_critic[s] != 0;
    const int row = sink_draw(t, (int)s);
    const unsigned chance = a.noisy ? a.draw_chance[row] : (unsigned)CHANCE_NONE;
    const bool normal = chance == CHANCE_NORMAL;
    const unsigned at = a.sink_at[s];
    const unsigned bias = a.noisy ? a.sink_bias[s] : (unsigned)NOWHERE;
    const unsigned sizes = a.noisy ? a.sink_size[s] : (unsigned)NOWHERE;
    const long width = critic ? critic_wide : wide;
    float* to = (critic ? critic_rows : rows) + at;
    unsigned drawn = NOWHERE, word[4][L::W];
    float error[L::W], other[L::W];
    for (int i = 0; i < size; i++) {
      const float scale = a.entry_scale[first + i];
      if (chance == CHANCE_NONE && bias == NOWHERE) {
        lanes.each([&](int, int l) OSTLER_INLINE { to[l * width + i] = clamp_(value(i, l) * scale, low, high); });
        continue;
      }
      if (chance == CHANCE_NONE) {
        lanes.dense([&](int j, int) OSTLER_INLINE { error[j] = 0.0f; });
      } else {
        const unsigned place = at + (unsigned)i, k = place % 4;
        const bool fresh = drawn != place / 4, second = normal && k % 2 == 1;
        if (fresh) {
          drawn = place / 4;
          noise_words(a, lanes, normal, critic, clock, drawn, word);
        }
        // The second normal number of a pair comes with the first.
        if (fresh || !second) draw_numbers(a, lanes, row, word[second ? k - 1 : k], word[second ? k : k ^ 1u], error, other);
        if (second) lanes.dense([&](int j, int) OSTLER_INLINE { error[j] = other[j]; });
        if (sizes != NOWHERE) {
          const float size = a.noise_size[sizes + i];
          lanes.dense([&](int j, int) OSTLER_INLINE { error[j] *= size; });
        }
      }
      if (bias != NOWHERE) {
        const float* own = a.bias + (bias + i) * n + e;
        lanes.each([&](int j, int l) OSTLER_INLINE { error[j] += own[l]; });
      }
      lanes.each([&](int j, int l) OSTLER_INLINE { to[l * width + i] = clamp_((value(i, l) + error[j]) * scale, low, high); });
    }
  }
}

// Writes the rows of all environments, or of those that begin anew.
template<class L> OSTLER_FN_PART void observe(const EnvArgs& a, const L& lanes, const Terms& terms) {
  const Task& t = task_of(a);
  const long e = lanes.first, wide = t.nobs, critic_wide = t.ncritic;
  float *rows = a.obs + e * wide, *critic_rows = a.critic_obs + e * critic_wide;
  terms.observations([&](int k, const auto& value) OSTLER_INLINE { see(a, lanes, k, value.row()); });
  if (t.nkeep > 0) look_back(a, lanes);
  for (int p = 0; p < t.npad; p++) {
    const bool critic = a.pad_critic[p] != 0;
    const long width = critic ? critic_wide : wide;
    for (unsigned at = a.pad_from[p]; at < a.pad_to[p]; at++) {
      float* to = (critic ? critic_rows : rows) + at;
      lanes.each([&](int, int l) OSTLER_INLINE { to[l * width] = 0.0f; });
    }
  }
  if (!lanes.anew) terms.inject(TERM_SEEN);
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
  if (L::W > 1 && !lanes.anew && !failed && all_finite(rows, lanes.len * wide) && all_finite(critic_rows, lanes.len * critic_wide)) {
    copy(last, rows, lanes.len * wide);
    copy(critic_last, critic_rows, lanes.len * critic_wide);
    return;
  }
  lanes.each([&](int, int l) {
    unsigned* bits = lanes.anew ? a.stuck + e + l : a.bits + e + l;
    if (lanes.anew) *bits = a.physics.fault[e + l];
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
