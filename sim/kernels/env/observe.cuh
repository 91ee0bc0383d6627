// What the networks see.
#pragma once

// Four numbers of an environment's noise, those of places 4 index .. 4 index + 3 of its rows:
// uniform in -1..1, or normal. Terms of both kinds share no words.
OSTLER_FN void draw_four(const EnvArgs& a, const Block b, bool normal, unsigned long long clock, unsigned index, float (&four)[4][Block::W]) {
  const unsigned stream = a.first_env + (unsigned)b.first;
  const unsigned draw = normal ? index | 0x80000000u : index;
  unsigned word[4][Block::W];
  OSTLER_EACH(l) {
    const Words w = philox(a.seed, stream + (unsigned)l, DRAW_NOISE, clock, draw);
    for (int k = 0; k < 4; k++) word[k][l] = w.w[k];
  }
  if (normal) {
    for (int k = 0; k < 4; k += 2) OSTLER_EACH(l) normal_pair(word[k][l], word[k + 1][l], four[k][l], four[k + 1][l]);
  } else {
    for (int k = 0; k < 4; k++) OSTLER_EACH(l) four[k][l] = 2.0f * unit(word[k][l]) - 1.0f;
  }
}

// Writes a number of every environment into its row; NEW: of those that begin anew.
template<bool NEW> OSTLER_FN void put(const Block b, const unsigned* mask, const float* x, float* rows, long width) {
  OSTLER_EACH(l) {
    if (!NEW || mask[l]) rows[l * width] = x[l];
  }
}

// Writes the rows of all environments, or of those that begin anew.
template<bool NEW> OSTLER_FN_PART void observe(const EnvArgs& a, const Block b, const Terms& terms) {
  const Task& t = task_of(a);
  const long e = b.first, wide = t.nobs, critic_wide = t.ncritic;
  const unsigned* mask = a.mask + e;
  float *rows = a.obs + e * wide, *critic_rows = a.critic_obs + e * critic_wide;
  // Two rows in one step, before and after a reset, differ in their noise.
  const unsigned long long clock = 2 * a.clock + (NEW ? 1 : 0);
  terms.observations([&](int k, const auto& value) OSTLER_INLINE {
    const unsigned first = begin_of(a.seen_end, k), privileged = begin_of(a.privileged_end, k);
    const int size = value.size((int)(a.seen_end[k] - first));
    const float low = a.seen_low[k], high = a.seen_high[k];
    const float noise = a.noisy ? a.seen_noise[k] : 0.0f;
    const unsigned at = a.seen_at[k];
    unsigned drawn = NOWHERE;
    float four[4][Block::W];
    for (int i = 0; i < size; i++) {
      const float scale = a.entry_scale[first + i];
      float x[Block::W];
      for (unsigned p = privileged; p < a.privileged_end[k]; p++) {
        OSTLER_EACH(l) x[l] = clamp_(value(i, l) * scale, low, high);
        put<NEW>(b, mask, x, critic_rows + a.privileged_at[p] + i, critic_wide);
      }
      if (at == NOWHERE) continue;
      const unsigned place = at + (unsigned)i;
      if (noise > 0.0f) {
        if (drawn != place / 4) {
          drawn = place / 4;
          draw_four(a, b, a.seen_normal[k] != 0, clock, drawn, four);
        }
        const float* own = four[place % 4];
        OSTLER_EACH(l) x[l] = clamp_((value(i, l) + noise * own[l]) * scale, low, high);
      } else {
        OSTLER_EACH(l) x[l] = clamp_(value(i, l) * scale, low, high);
      }
      put<NEW>(b, mask, x, rows + place, wide);
    }
  });
  float zero[Block::W];
  OSTLER_EACH(l) zero[l] = 0.0f;
  for (int p = 0; p < t.npad; p++) {
    const bool critic = a.pad_critic[p] != 0;
    for (unsigned at = a.pad_from[p]; at < a.pad_to[p]; at++)
      put<NEW>(b, mask, zero, (critic ? critic_rows : rows) + at, critic ? critic_wide : wide);
  }
  if (!NEW) terms.inject(TERM_SEEN);
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
template<bool NEW> OSTLER_FN void show(const EnvArgs& a, const Block b, const Terms& terms) {
  const Task& t = task_of(a);
  const long e = b.first, wide = t.nobs, critic_wide = t.ncritic;
  float *rows = a.obs + e * wide, *critic_rows = a.critic_obs + e * critic_wide;
  float *last = a.last_policy + e * wide, *critic_last = a.last_critic + e * critic_wide;
  const bool failed = terms.failed();
  if (Block::W > 1 && !NEW && !failed && all_finite(rows, b.len * wide) && all_finite(critic_rows, b.len * critic_wide)) {
    copy(last, rows, b.len * wide);
    copy(critic_last, critic_rows, b.len * critic_wide);
    return;
  }
  for (int l = 0; l < b.len; l++) {
    if (NEW && !a.mask[e + l]) continue;
    unsigned* bits = NEW ? a.stuck + e + l : a.bits + e + l;
    if (NEW) *bits = a.physics.fault[e + l];
    float *row = rows + l * wide, *critic = critic_rows + l * critic_wide;
    if (!failed && all_finite(row, wide) && all_finite(critic, critic_wide)) {
      copy(last + l * wide, row, wide);
      copy(critic_last + l * critic_wide, critic, critic_wide);
      continue;
    }
    *bits |= failed ? FAULT_ENGINE : FAULT_TASK;
    copy(row, last + l * wide, wide);
    copy(critic, critic_last + l * critic_wide, critic_wide);
  }
}
