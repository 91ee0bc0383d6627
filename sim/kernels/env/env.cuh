// One control step of one environment, and how it begins: sim/src/env/step.rs for one
// lane. `Task` is generated: sim/src/task/emit.
#pragma once

OSTLER_FN unsigned more(unsigned x) { return x + 1u == 0u ? x : x + 1u; }

// New actions to controls; true where they are not all numbers.
OSTLER_FN bool act(const EnvArgs& a, int e) {
  const long n = a.n;
  const float* raw = a.actions + (long)e * Task::nraw;
  bool bad = false;
  for (int k = 0; k < Task::naction; k++) bad = bad || !is_finite(raw[Task::raw(k)]);
  for (int k = 0; k < Task::naction; k++) {
    float x = bad ? 0.0f : raw[Task::raw(k)];
    if (Task::discrete) x = whole_(x);
    a.last_action[k * n + e] = a.action[k * n + e];
    a.action[k * n + e] = rust_min(rust_max(x, Task::low(a, k)), Task::high(a, k));
  }
  Task::drive(a, e);
  return bad;
}

// Observations into `row` (the policies', then the critics'); whether all are numbers.
OSTLER_FN_BIG bool look(const EnvArgs& a, int e, bool masked, float* row) {
  Task::observe(a, e, a.noisy != 0, 2 * a.clock + (masked ? 1 : 0), row);
  unsigned odd = 0;
  for (int i = 0; i < Task::nobs + Task::ncritic; i++) odd |= is_finite(row[i]) ? 0u : 1u;
  return odd == 0;
}

// Writes a row that is all numbers, else the last that was.
OSTLER_FN void show_group(const float* row, bool finite, float* last, float* out, int width) {
  if (finite) OSTLER_ROLLED for (int i = 0; i < width; i++) out[i] = last[i] = row[i];
  else OSTLER_ROLLED for (int i = 0; i < width; i++) out[i] = last[i];
}
OSTLER_FN void show(const EnvArgs& a, int e, const float* row, bool finite) {
  const long policy = (long)e * Task::nobs, critic = (long)e * Task::ncritic;
  show_group(row, finite, a.last_policy + policy, a.obs + policy, Task::nobs);
  if (Task::ncritic > 0) show_group(row + Task::nobs, finite, a.last_critic + critic, a.critic_obs + critic, Task::ncritic);
}

// Entry `k` of a column of `width`.
#define OSTLER_AT_real(k, width) ((k) * n + e)
#define OSTLER_AT_word(k, width) ((k) * n + e)
#define OSTLER_AT_row(k, width) ((long)e * (width) + (k))

// Zeros in what begins so.
#define OSTLER_BEGIN_zero(kind, at, width) \
  OSTLER_ROLLED for (int k = 0; k < (width); k++) (at)[OSTLER_AT_##kind(k, width)] = 0;
#define OSTLER_BEGIN_kept(kind, at, width)
#define OSTLER_BEGIN_own(kind, at, width)
#define OSTLER_BEGIN(name, kind, factor, size, begin, seen, says) \
  OSTLER_BEGIN_##begin(kind, s.name, factor * Task::size)

// A column's entries to `g`.
#define OSTLER_RECORD(name, kind, factor, size, begin, seen, says) \
  OSTLER_ROLLED for (int k = 0; k < factor * Task::size; k++) *g++ = bits_of(s.name[OSTLER_AT_##kind(k, factor * Task::size)]);

// A new episode and its first observation.
OSTLER_FN_BIG void restart(const EnvArgs& a, int e) {
  const long n = a.n;
  const unsigned stream = a.first_env + (unsigned)e;
  {
    const EnvArgs& s = a;
    OSTLER_EPISODE(OSTLER_BEGIN)
  }
  {
    const StepArgs<float>& s = a.physics;
    OSTLER_WORLD(OSTLER_BEGIN)
  }
  Task::start(a, e, stream);
  Task::command(a, e, stream, 0);
  OSTLER_ROLLED for (int k = 0; k < Task::nu; k++) a.ctrl[k * n + e] = 0.0f;
  const unsigned word = philox(a.seed, stream, DRAW_START, a.clock, 0).w[0];
  const unsigned age = a.spread ? (unsigned)((double)unit(word) * (double)Task::max_steps) : 0u;
  a.age[e] = age;
  a.counted[e] = age == 0 ? 1u : 0u;
  Task::begin_memory(a, e);
  float row[Task::nobs + Task::ncritic];
  const bool finite = look(a, e, true, row);
  a.stuck[e] = a.physics.fault[e] | (finite ? 0u : (unsigned)FAULT_TASK);
  show(a, e, row, finite);
}

// What is left of a broken environment, for the host to look at: the first GRAVES of
// them since statistics were taken. Laid out as sim/src/env/on_device/graves.rs reads it.
OSTLER_FN_BIG void bury(const EnvArgs& a, int e, unsigned bits, const float* reward, const float* row) {
#ifdef __CUDACC__
  const unsigned place = atomicAdd(a.buried, 1u);
#else
  const unsigned place = (*a.buried)++;
#endif
  if (place >= Task::GRAVES) return;
  const long n = a.n;
  unsigned* g = a.grave + (long)place * Task::GRAVE;
  g[0] = (unsigned)e;
  g[1] = a.since;
  g[2] = a.length[e];
  g[3] = bits;
  g[4] = 0;
  g[5] = (unsigned)a.clock;
  g[6] = (unsigned)(a.clock >> 32);
  g[7] = a.stuck[e];
  g += GRAVE_HEAD;
  OSTLER_ROLLED for (int k = 0; k < Task::nraw; k++) *g++ = bits_of(a.actions[(long)e * Task::nraw + k]);
  OSTLER_ROLLED for (int k = 0; k < Task::nu; k++) *g++ = bits_of(a.ctrl[k * n + e]);
  for (int m = 0; m < Task::nagent; m++) *g++ = bits_of(reward[m]);
  OSTLER_ROLLED for (int k = 0; k < Task::nobs + Task::ncritic; k++) *g++ = bits_of(row[k]);
  // As a snapshot of one environment has them.
  {
    const EnvArgs& s = a;
    OSTLER_EPISODE(OSTLER_RECORD)
  }
  {
    const StepArgs<float>& s = a.physics;
    OSTLER_WORLD(OSTLER_RECORD)
  }
}

// The order of the statistics; mirrored by sim/src/env/on_device/tally.rs.
enum { TALLY_EPISODES, TALLY_RETURN, TALLY_LENGTH, TALLY_OVERFLOW, TALLY_FAULT, TALLY_REWARD = TALLY_FAULT + 6 };
OSTLER_FN void count(const EnvArgs& a, int e, int what, double x) { a.tally[what * (long)a.n + e] += x; }

OSTLER_FN void draw_row(const EnvArgs& a, long r) {
  float* row = a.noise + r * a.noise_width;
  for (int i = 0; i < a.noise_width; i += 4) {
    const Words w = philox(a.noise_seed, (unsigned)r, DRAW_ACTION, a.noise_step, (unsigned)(i / 4));
    float x[4];
    if (a.noise_normal) {
      normal_four(w, x);
    } else {
      for (int k = 0; k < 4; k++) x[k] = unit(w.w[k]);
    }
    for (int k = 0; k < 4 && i + k < a.noise_width; k++) row[i + k] = x[k];
  }
}

OSTLER_FN void draw_noise(const EnvArgs& a, int e) {
  if (!a.noise) return;
  for (int m = 0; m < Task::nagent; m++) draw_row(a, (long)e * Task::nagent + m);
}

// A whole control step. `world` steps the physics.
template<class World> OSTLER_FN void env_step(const EnvArgs& a, int e, World& world) {
  const long n = a.n;
  unsigned bits = act(a, e) ? (unsigned)FAULT_CONTROL : 0u;
  const unsigned age = a.age[e] = more(a.age[e]);
  a.length[e] = more(a.length[e]);
  world.step(a, e);

  const Judged<Task::nagent> judged = Task::judge(a, e);
  bits |= a.physics.fault[e] | a.stuck[e];
  for (int m = 0; m < Task::nagent; m++)
    if (!is_finite(judged.reward[m])) bits |= FAULT_TASK;
  if (judged.absurd) bits |= FAULT_TASK;
  Task::command(a, e, a.first_env + (unsigned)e, age);
  float row[Task::nobs + Task::ncritic];
  const bool finite = look(a, e, false, row);
  if (!finite) bits |= FAULT_TASK;
  show(a, e, row, finite);

  const bool valid = bits == 0;
  const bool late = age >= Task::max_steps;
  const bool terminated = valid && judged.terminated != 0;
  const bool truncated = valid && !terminated && (judged.truncated != 0 || late);
  for (int m = 0; m < Task::nagent; m++) {
    const long r = (long)e * Task::nagent + m;
    const float reward = valid ? judged.reward[m] : 0.0f;
    a.reward[r] = reward;
    a.terminated[r] = truth(terminated);
    a.truncated[r] = truth(truncated);
    a.valid[r] = truth(valid);
    a.final_slot[r] = -1;
    a.ret[m * n + e] = a.ret[m * n + e] + reward;
  }
  if (!valid) {
    for (int bit = 0; bit < 6; bit++)
      if (bits >> bit & 1) count(a, e, TALLY_FAULT + bit, 1);
    bury(a, e, bits, judged.reward, row);
    restart(a, e);
  } else if (terminated || truncated) {
    if (truncated) {
      const unsigned slot = a.final_used[e];
      if (slot < (unsigned)a.slots) {
        a.final_used[e] = slot + 1;
        for (int m = 0; m < Task::nagent; m++) a.final_slot[(long)e * Task::nagent + m] = (int)slot;
        const long at = (long)slot * n + e;
        OSTLER_ROLLED for (int i = 0; i < Task::nobs; i++) a.final_obs[at * Task::nobs + i] = a.obs[(long)e * Task::nobs + i];
        OSTLER_ROLLED for (int i = 0; i < Task::ncritic; i++) a.final_critic[at * Task::ncritic + i] = a.critic_obs[(long)e * Task::ncritic + i];
      } else {
        count(a, e, TALLY_OVERFLOW, 1);
      }
    }
    if (a.counted[e]) {
      count(a, e, TALLY_EPISODES, 1);
      double sum = 0;
      for (int m = 0; m < Task::nagent; m++) {
        sum = sum + (double)a.ret[m * n + e];
        if (Task::nagent > 1) count(a, e, TALLY_REWARD + Task::nreward + Task::nend + m, (double)a.ret[m * n + e]);
      }
      const double mean = sum / Task::nagent;
      count(a, e, TALLY_RETURN, mean);
      count(a, e, TALLY_LENGTH, (double)a.length[e]);
      for (int k = 0; k < Task::nreward; k++) count(a, e, TALLY_REWARD + k, (double)a.sums[k * n + e]);
      const unsigned cause = terminated ? judged.terminated : judged.truncated;
      count(a, e, TALLY_REWARD + Task::nreward + (int)cause, 1);
      a.last_ret[e] = bits_of((float)mean);
      a.last_ret[n + e] = a.length[e];
      a.last_ret[2 * n + e] = a.since + 1u;
    }
    restart(a, e);
  }
  Task::remember(a, e);
  draw_noise(a, e);
}

// The beginning of a rollout.
OSTLER_FN void env_begin(const EnvArgs& a, int e) {
  a.final_used[e] = 0;
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
  unsigned* last = (unsigned*)(a.total + Task::TALLY + 2) + 4 * c;
  last[3] = 0;
  for (long e = c; e < n; e += a.chunks) {
    overflow += (double)a.physics.overflow[e];
    unsolved += (double)a.physics.unsolved[e];
    const unsigned when = a.last_ret[2 * n + e];
    if (when > last[3]) {
      last[0] = (unsigned)e;
      last[1] = a.last_ret[e];
      last[2] = a.last_ret[n + e];
      last[3] = when;
    }
    a.last_ret[2 * n + e] = 0;
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
