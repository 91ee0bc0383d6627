// Delays, and errors that stay for an episode.
#pragma once

// The delay now, in control steps; the phase of its draws.
OSTLER_FN unsigned steps_of(unsigned lag) { return lag & 0xffffu; }
OSTLER_FN unsigned phase_of(unsigned lag) { return lag >> 16; }

// A whole number below `count`, at least 1.
OSTLER_FN unsigned below(unsigned count, unsigned word) {
  const unsigned x = (unsigned)(unit(word) * (float)count);
  return x < count ? x : count - 1;
}
OSTLER_FN unsigned drawn_steps(const EnvArgs& a, int k, unsigned word) {
  return a.lag_low[k] + below(a.lag_high[k] - a.lag_low[k] + 1, word);
}

// Biases and delays of new episodes.
OSTLER_FN void start_late(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const unsigned stream = a.first_env + (unsigned)e;
  OSTLER_ROLLED for (int k = 0; k < t.nbias; k++) {
    // The first clock of the batch is 1: one of 0 is every episode's.
    const unsigned long long when = a.bias_once[k] ? 0 : a.clock;
    float *to = a.bias + k * n + e, x[Chosen::W];
    unsigned word[2][Chosen::W];
    c.dense([&](int j, int l) OSTLER_INLINE {
      const Words w = philox(a.seed, stream + (unsigned)l, DRAW_BIAS, when, (unsigned)k);
      for (int i = 0; i < 2; i++) word[i][j] = w.w[i];
    });
    draw_numbers(a, c, bias_draw(t, k), word[0], word[1], x);
    c.each([&](int j, int l) OSTLER_INLINE { to[l] = x[j]; });
  }
  OSTLER_ROLLED for (int k = 0; k < t.nlag; k++) {
    const unsigned redraw = a.lag_redraw[k];
    unsigned* to = a.lag + k * n + e;
    c.each([&](int, int l) OSTLER_INLINE {
      const Words w = philox(a.seed, stream + (unsigned)l, DRAW_LAG, a.clock, (unsigned)k);
      const unsigned phase = redraw ? below(redraw, w.w[1]) : 0u;
      to[l] = drawn_steps(a, k, w.w[0]) | phase << 16;
    });
  }
}

// Draws delay `k` anew in the environments in which it is time to: in the `s`-th of the `times` of
// this control step, with the random words of `purpose` and `index`.
template<class L> OSTLER_FN void redraw(const EnvArgs& a, const L& b, int k, unsigned s, unsigned times, unsigned purpose, unsigned index) {
  const unsigned redraw = a.lag_redraw[k];
  if (redraw == 0) return;
  const long n = a.n, e = b.first;
  const unsigned stream = a.first_env + (unsigned)e;
  const unsigned* length = a.length + e;
  unsigned* lag = a.lag + k * n + e;
  const float hold = a.lag_hold[k];
  for (int l = 0; l < b.len; l++) {
    const unsigned long long step = (unsigned long long)length[l] * times + s;
    if ((step + phase_of(lag[l])) % redraw != 0) continue;
    const Words w = philox(a.seed, stream + (unsigned)l, purpose, a.clock, index);
    if (unit(w.w[1]) >= hold) lag[l] = drawn_steps(a, k, w.w[0]) | (lag[l] & 0xffff0000u);
  }
}

// Of what is late by control steps. Episodes that begin have drawn theirs.
template<class L> OSTLER_FN void redraw_lag(const EnvArgs& a, const L& lanes, int k) {
  if (!lanes.anew) redraw(a, lanes, k, 0, 1, DRAW_LAG, (unsigned)k | 0x80000000u);
}

// Delays of actuators in the physics steps of this control step.
OSTLER_FN_PART void redraw_steps(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  const unsigned substeps = (unsigned)a.physics.substeps;
  OSTLER_ROLLED for (int i = 0; i < t.nredrawn; i++) {
    const int k = (int)a.redrawn_lag[i];
    const unsigned least = a.lag_low[k], *lag = a.lag + k * n + e;
    OSTLER_ROLLED for (unsigned s = 0; s < substeps; s++) {
      const unsigned draw = s * (unsigned)t.nredrawn + (unsigned)i;
      float* to = a.step_lag + draw * n + e;
      redraw(a, b, k, s, substeps, DRAW_MOTOR_LAG, draw);
      // Chance in the robot is switched off with its events.
      OSTLER_EACH(l) to[l] = (float)(a.events ? steps_of(lag[l]) : least);
    }
  }
}

// The place of the value that was given `steps` control steps before step `now`, among those of
// the last `depth`.
OSTLER_FN unsigned place_of(unsigned now, unsigned steps, unsigned depth) { return (now + depth - steps) % depth; }
