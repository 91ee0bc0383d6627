// A whole control step in one launch, sums of its counts, and the break records. `Task` and
// `Terms` are generated: sim/env/src/task/emit.
#pragma once
#include "phases.cuh"

// A column's entries to `to`.
#define OSTLER_RECORD(name, kind, factor, size, begin, seen, says) \
  OSTLER_ROLLED for (int k = 0; k < factor * Task::size; k++) *to++ = bits_of(s.name[OSTLER_AT_##kind(k, 0, factor * Task::size)]);

// Adds 1 to what all threads of a launch count up, and returns what it was.
OSTLER_FN unsigned count_up(unsigned* of) {
#ifdef __CUDACC__
  return atomicAdd(of, 1u);
#else
  return (*of)++;
#endif
}

// The state in which an environment broke, for the host to examine: of the first BREAKS
// since statistics were taken. Laid out as sim/env/src/env/on_device/breaks.rs reads it.
OSTLER_FN_BIG void record_break(const EnvArgs& a, const long e) {
  const unsigned place = count_up(a.broken);
  if (place >= Task::BREAKS) return;
  const long n = a.n;
  unsigned* to = a.breaks + (long)place * Task::BREAK;
  to[0] = (unsigned)e;
  to[1] = a.since;
  to[2] = a.length[e];
  to[3] = a.bits[e];
  to[4] = 0;
  to[5] = (unsigned)a.clock;
  to[6] = (unsigned)(a.clock >> 32);
  to[7] = a.stuck[e];
  to += BREAK_HEAD;
  const int l = 0;
  OSTLER_ROLLED for (int k = 0; k < Task::nraw; k++) *to++ = bits_of(a.actions[e * Task::nraw + k]);
  OSTLER_ROLLED for (int k = 0; k < Task::nu; k++) *to++ = bits_of(a.ctrl[k * n + e]);
  for (int m = 0; m < Task::nagent; m++) *to++ = bits_of(a.gain[m * n + e]);
  OSTLER_ROLLED for (int k = 0; k < Task::nhistory; k++) *to++ = bits_of(a.next_history[k * n + e]);
  // As a snapshot of one environment has them.
  {
    const EnvArgs& s = a;
    OSTLER_EPISODE(OSTLER_RECORD)
  }
  {
    const StepArgs<float>& s = a.physics;
    OSTLER_WORLD(OSTLER_RECORD)
  }
  (void)l;
}

// An episode that ended, for the host. The list is longer than one step's episodes, so that no two
// threads of a launch write the same place; within a step they come in no order.
OSTLER_FN void list_episode(const EnvArgs& a, const long e) {
  const unsigned place = count_up(a.listed);
  const long n = a.n;
  unsigned* to = a.list + 4 * (long)(place & a.list_mask);
  to[0] = (unsigned)e;
  for (int k = 0; k < 3; k++) to[1 + k] = a.last_ret[k * n + e];
}

OSTLER_FN void draw_row(const EnvArgs& a, long r) {
  float* row = a.noise + r * a.noise_width;
  for (int i = 0; i < a.noise_width; i += 4) {
    const Words w = philox(a.noise_seed, (unsigned)r, DRAW_ACTION, a.noise_step, (unsigned)(i / 4));
    float x[4];
    if (a.noise_normal) {
      normal_pair(w.w[0], w.w[1], x[0], x[1]);
      normal_pair(w.w[2], w.w[3], x[2], x[3]);
    } else {
      for (int k = 0; k < 4; k++) x[k] = unit(w.w[k]);
    }
    for (int k = 0; k < 4 && i + k < a.noise_width; k++) row[i + k] = x[k];
  }
}

OSTLER_FN void draw_noise(const EnvArgs& a, const long e) {
  if (!a.noise) return;
  for (int m = 0; m < Task::nagent; m++) draw_row(a, e * Task::nagent + m);
}

// A whole control step. `world` steps the physics.
template<class World> OSTLER_FN void env_step(const EnvArgs& a, const int e, World& world) {
  const Block b(e);
  const Terms terms = {{}, a, e};
  act(a, b);
  world.step(a, e);
  if (finish(a, b, terms) != GO_ON) {
    tally(a, e);
    if (a.bits[e]) record_break(a, e);
    else if (a.counted[e]) list_episode(a, e);
    restart(a, b, terms);
    tally_start(a, e);
  }
  draw_noise(a, e);
}

OSTLER_FN void env_restart(const EnvArgs& a, const int e) {
  const Terms terms = {{}, a, e};
  a.mask[e] = 1;
  restart(a, Block{e}, terms);
  tally_start(a, e);
}

// The beginning of a rollout.
OSTLER_FN void env_begin(const EnvArgs& a, const int e) {
  a.final_used[e] = 0;
  if (Task::nreference > 0) share_failures(a, e);
  draw_noise(a, e);
}

// Thread c sums the statistics of environments c, c + chunks, ... and starts them anew.
OSTLER_FN void env_tally(const EnvArgs& a, int c) {
  const long n = a.n;
  for (int s = 0; s < Task::TALLY; s++) {
    double sum = 0;
    for (long e = c; e < n; e += a.chunks) {
      sum += a.tally[s * n + e];
      a.tally[s * n + e] = 0;
    }
    a.partial[(long)s * a.chunks + c] = sum;
  }
  double overflow = 0, unsolved = 0;
  for (long e = c; e < n; e += a.chunks) {
    overflow += (double)a.physics.overflow[e];
    unsolved += (double)a.physics.unsolved[e];
  }
  a.partial[(long)Task::TALLY * a.chunks + c] = overflow;
  a.partial[(long)(Task::TALLY + 1) * a.chunks + c] = unsolved;
}

// Thread s sums what the chunks have of statistic s.
OSTLER_FN void env_total(const EnvArgs& a, int s) {
  double sum = 0;
  for (int c = 0; c < a.chunks; c++) sum += a.partial[(long)s * a.chunks + c];
  a.total[s] = sum;
}
