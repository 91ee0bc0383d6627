// Where episodes begin.
#pragma once

// Unit length; the identity where there is none.
OSTLER_FN void normalize(float* q, long n, int l) {
  float *qw = q, *qx = qw + n, *qy = qx + n, *qz = qy + n;
  const float w = qw[l], x = qx[l], y = qy[l], z = qz[l];
  const float norm = sqrt_(w * w + x * x + y * y + z * z);
  const bool some = norm > 1e-6f;
  qw[l] = some ? w / norm : 1.0f;
  qx[l] = some ? x / norm : 0.0f;
  qy[l] = some ? y / norm : 0.0f;
  qz[l] = some ? z / norm : 0.0f;
}

// Draws the positions and velocities of new episodes.
template<class L> OSTLER_FN void draw_pose(const EnvArgs& a, const L& lanes) {
  const Task& t = task_of(a);
  const long n = a.n, e = lanes.first;
  const unsigned stream = a.first_env + (unsigned)e;
  for (int i = 0; i < t.nq; i++) {
    float* q = a.new_qpos + i * n + e;
    const float x = a.begin_qpos[i];
    lanes.each([&](int, int l) OSTLER_INLINE { q[l] = x; });
  }
  for (int i = 0; i < t.nv; i++) {
    float* v = a.new_qvel + i * n + e;
    const float x = a.begin_qvel[i];
    lanes.each([&](int, int l) OSTLER_INLINE { v[l] = x; });
  }
  unsigned drawn = NOWHERE, word[4][L::W];
  for (int o = 0; o < t.nplace; o++) {
    const unsigned chance = a.place_chance[o], draw = a.place_draw[o], target = a.place_target[o];
    const unsigned change = a.place_change[o];
    const float nothing = change == CHANGE_SCALE ? 1.0f : 0.0f;
    float offset[L::W];
    lanes.dense([&](int j, int) OSTLER_INLINE { offset[j] = nothing; });
    const long at = a.place_index[o] * n + e;
    if (chance != CHANCE_NONE) {
      if (drawn != draw / 2) {
        drawn = draw / 2;
        lanes.dense([&](int j, int l) OSTLER_INLINE {
          const Words w = philox(a.seed, stream + (unsigned)l, DRAW_RESET, a.clock, draw / 2);
          for (int k = 0; k < 4; k++) word[k][j] = w.w[k];
        });
      }
      const unsigned *first = word[draw % 2 * 2], *second = word[draw % 2 * 2 + 1];
      const float low = a.place_low[o], high = a.place_high[o];
      if (target == PLACE_ROTATION) {
        // Four normal numbers point everywhere alike; they get their length below.
        float* q = a.new_qpos + at;
        lanes.each([&](int j, int l) OSTLER_INLINE {
          float x[4];
          normal_pair(word[0][j], word[1][j], x[0], x[1]);
          normal_pair(word[2][j], word[3][j], x[2], x[3]);
          for (int k = 0; k < 4; k++) q[k * n + l] = x[k];
          normalize(q, n, l);
        });
        continue;
      }
      if (chance == CHANCE_UNIFORM || chance == CHANCE_LOG) {
        lanes.dense([&](int j, int) OSTLER_INLINE { offset[j] = low + (high - low) * unit(first[j]); });
        if (chance == CHANCE_LOG) lanes.dense([&](int j, int) OSTLER_INLINE { offset[j] = exp_(offset[j]); });
      } else if (chance == CHANCE_NORMAL) {
        lanes.dense([&](int j, int) OSTLER_INLINE {
          float x, y;
          normal_pair(first[j], second[j], x, y);
          offset[j] = high * x;
        });
      } else {
        const unsigned from = begin_of(a.place_end, o), count = a.place_end[o] - from;
        float* to = (target == PLACE_POSITION ? a.new_qpos : a.new_qvel) + at;
        lanes.each([&](int j, int l) OSTLER_INLINE { to[l] = a.place_option[from + below(count, first[j])]; });
        continue;
      }
    }
    const bool sets = change == CHANGE_SET;
    const float value = a.place_value[o];
    if (target == PLACE_ROTATION) {
      // Without chance it stays.
    } else if (target == PLACE_YAW) {
      float *qw = a.new_qpos + at, *qx = qw + n, *qy = qx + n, *qz = qy + n;
      lanes.each([&](int j, int l) OSTLER_INLINE {
        const float w = qw[l], x = qx[l], y = qy[l], z = qz[l];
        // Where an angle is set, the heading of the x axis is taken away first.
        const float angle = sets ? value - heading(w, x, y, z) : offset[j];
        float s, c;
        sin_cos(0.5f * angle, s, c);
        qw[l] = c * w - s * z;
        qx[l] = c * x - s * y;
        qy[l] = c * y + s * x;
        qz[l] = c * z + s * w;
      });
    } else if (target >= PLACE_TURN_X) {
      const unsigned axis = target - PLACE_TURN_X;
      float* q = a.new_qpos + at;
      lanes.each([&](int j, int l) OSTLER_INLINE {
        const float w = q[l], x = q[n + l], y = q[2 * n + l], z = q[3 * n + l];
        float s, c;
        sin_cos(0.5f * (value + offset[j]), s, c);
        // Times (c, s e), with e the axis.
        const float u = axis == 0 ? s : 0.0f, v = axis == 1 ? s : 0.0f, t = axis == 2 ? s : 0.0f;
        q[l] = w * c - x * u - y * v - z * t;
        q[n + l] = x * c + w * u + y * t - z * v;
        q[2 * n + l] = y * c + w * v + z * u - x * t;
        q[3 * n + l] = z * c + w * t + x * v - y * u;
      });
    } else {
      float* to = (target == PLACE_POSITION ? a.new_qpos : a.new_qvel) + at;
      const float least = a.place_least[o], most = a.place_most[o];
      if (change == CHANGE_SCALE) {
        lanes.each([&](int j, int l) OSTLER_INLINE { to[l] = clamp_(to[l] * offset[j], least, most); });
      } else {
        lanes.each([&](int j, int l) OSTLER_INLINE { to[l] = clamp_((sets ? value : to[l]) + offset[j], least, most); });
      }
    }
  }
  for (int o = 0; o < t.nquat; o++) {
    float* q = a.new_qpos + a.quaternion[o] * n + e;
    lanes.each([&](int, int l) OSTLER_INLINE { normalize(q, n, l); });
  }
}

// Zeros in the columns that begin so, of environments that begin anew.
#define OSTLER_BEGIN_zero(kind, at, width) \
  for (int k = 0; k < (width); k++) \
    c.each([&](int, int l) OSTLER_INLINE { (at)[OSTLER_AT_##kind(k, l, width)] = 0; });
#define OSTLER_BEGIN_kept(kind, at, width)
#define OSTLER_BEGIN_own(kind, at, width)
#define OSTLER_BEGIN(name, kind, factor, size, begin, seen, says) \
  OSTLER_BEGIN_##begin(kind, s.name, factor * t.size)
// Entry `k` of an environment in a column of `width`.
#define OSTLER_AT_real(k, l, width) ((k) * n + e + l)
#define OSTLER_AT_word(k, l, width) ((k) * n + e + l)
#define OSTLER_AT_row(k, l, width) ((e + l) * (width) + (k))

// The start values of a new episode, written before its world is reset.
OSTLER_FN void start(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const unsigned stream = a.first_env + (unsigned)e;
  draw_pose(a, c);
  command(a, c);
  start_late(a, c);
  const EnvArgs& s = a;
  OSTLER_EPISODE(OSTLER_BEGIN)
  for (int k = 0; k < t.nu; k++) {
    float* ctrl = a.ctrl + k * n + e;
    c.each([&](int, int l) OSTLER_INLINE { ctrl[l] = 0.0f; });
  }
  unsigned *age = a.age + e, *counted = a.counted + e;
  if (a.spread) {
    const double most = (double)a.max_steps[0];
    c.each([&](int, int l) OSTLER_INLINE {
      const unsigned word = philox(a.seed, stream + (unsigned)l, DRAW_START, a.clock, 0).w[0];
      const unsigned drawn = (unsigned)((double)unit(word) * most);
      age[l] = drawn;
      counted[l] = drawn == 0;
    });
  } else {
    c.each([&](int, int l) OSTLER_INLINE {
      age[l] = 0;
      counted[l] = 1;
    });
  }
}
