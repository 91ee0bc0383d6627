// Where episodes begin: commands and poses are drawn, again where conditions ask for it.
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
OSTLER_FN void normalize_all(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  for (int o = 0; o < t.nquat; o++) {
    float* q = a.new_qpos + a.quaternion[o] * n + e;
    c.each([&](int, int l) OSTLER_INLINE { normalize(q, n, l); });
  }
}

// The clock of a draw in the key of its random numbers; that of the first is the batch's own.
OSTLER_FN unsigned long long clock_of(const EnvArgs& a, unsigned draw) {
  return a.clock + ((unsigned long long)draw << 40);
}

// Random numbers that expressions of a start read.
OSTLER_FN void draw_random(const EnvArgs& a, const Chosen& c, unsigned long long clock) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const unsigned stream = a.first_env + (unsigned)e;
  OSTLER_ROLLED for (int k = 0; k < t.nrandom; k += 2) {
    const int two = t.nrandom - k < 2 ? 1 : 2;
    unsigned word[4][Chosen::W];
    c.dense([&](int j, int l) OSTLER_INLINE {
      const Words w = philox(a.seed, stream + (unsigned)l, DRAW_EXPRESSION, clock, (unsigned)k / 2);
      for (int i = 0; i < 4; i++) word[i][j] = w.w[i];
    });
    for (int i = 0; i < two; i++) {
      float *to = a.start_random + (k + i) * n + e, x[Chosen::W];
      draw_numbers(a, c, random_draw(t, k + i), word[2 * i], word[2 * i + 1], x);
      c.each([&](int j, int l) OSTLER_INLINE { to[l] = x[j]; });
    }
  }
}

// Operations `from` to `end - 1` on the positions, velocities and activations of new episodes.
OSTLER_FN void operate(const EnvArgs& a, const Chosen& c, int from, int end, unsigned long long clock) {
  const long n = a.n, e = c.first;
  const unsigned stream = a.first_env + (unsigned)e;
  unsigned drawn = NOWHERE, word[4][Chosen::W];
  for (int o = from; o < end; o++) {
    const int row = place_draw(task_of(a), o);
    const unsigned chance = a.draw_chance[row];
    const unsigned draw = a.place_word[o], target = a.place_target[o];
    const unsigned change = a.place_change[o], part = a.place_part[o];
    const float nothing = change == CHANGE_SCALE ? 1.0f : 0.0f;
    float offset[Chosen::W], value[Chosen::W];
    c.dense([&](int j, int) OSTLER_INLINE { offset[j] = nothing; });
    const long at = a.place_index[o] * n + e;
    if (chance != CHANCE_NONE) {
      if (drawn != draw / 2) {
        drawn = draw / 2;
        c.dense([&](int j, int l) OSTLER_INLINE {
          const Words w = philox(a.seed, stream + (unsigned)l, DRAW_RESET, clock, draw / 2);
          for (int k = 0; k < 4; k++) word[k][j] = w.w[k];
        });
      }
      if (target == PLACE_ROTATION) {
        // Four normal numbers point everywhere alike; they get their length below.
        float* q = a.new_qpos + at;
        c.each([&](int j, int l) OSTLER_INLINE {
          float x[4];
          normal_pair(word[0][j], word[1][j], x[0], x[1]);
          normal_pair(word[2][j], word[3][j], x[2], x[3]);
          for (int k = 0; k < 4; k++) q[k * n + l] = x[k];
          normalize(q, n, l);
        });
        continue;
      }
      draw_numbers(a, c, row, word[draw % 2 * 2], word[draw % 2 * 2 + 1], offset);
    }
    // Without chance, which poses without randomness are, the value stands for the drawn number.
    const bool drawn_alone = change == CHANGE_DRAWN && chance != CHANCE_NONE, sets = change == CHANGE_SET || change == CHANGE_DRAWN;
    if (part == NOWHERE) {
      const float own = a.place_value[o];
      c.dense([&](int j, int) OSTLER_INLINE { value[j] = own; });
    } else {
      const float* own = a.start_value + part * n + e;
      c.dense([&](int j, int l) OSTLER_INLINE { value[j] = own[l]; });
    }
    if (target == PLACE_ROTATION) {
      // Without chance it stays.
    } else if (target == PLACE_YAW) {
      float *qw = a.new_qpos + at, *qx = qw + n, *qy = qx + n, *qz = qy + n;
      c.each([&](int j, int l) OSTLER_INLINE {
        const float w = qw[l], x = qx[l], y = qy[l], z = qz[l];
        // Where an angle is set, the heading of the x axis is taken away first.
        const float angle = sets ? value[j] - heading(w, x, y, z) : offset[j];
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
      c.each([&](int j, int l) OSTLER_INLINE {
        const float w = q[l], x = q[n + l], y = q[2 * n + l], z = q[3 * n + l];
        float s, c;
        sin_cos(0.5f * (value[j] + offset[j]), s, c);
        // Times (c, s e), with e the axis.
        const float u = axis == 0 ? s : 0.0f, v = axis == 1 ? s : 0.0f, t = axis == 2 ? s : 0.0f;
        q[l] = w * c - x * u - y * v - z * t;
        q[n + l] = x * c + w * u + y * t - z * v;
        q[2 * n + l] = y * c + w * v + z * u - x * t;
        q[3 * n + l] = z * c + w * t + x * v - y * u;
      });
    } else {
      float* to = (target == PLACE_POSITION ? a.new_qpos : target == PLACE_VELOCITY ? a.new_qvel : a.new_act) + at;
      const float least = a.place_least[o], most = a.place_most[o];
      if (drawn_alone) {
        c.each([&](int j, int l) OSTLER_INLINE { to[l] = clamp_(offset[j], least, most); });
      } else if (change == CHANGE_SCALE) {
        c.each([&](int j, int l) OSTLER_INLINE { to[l] = clamp_(to[l] * offset[j], least, most); });
      } else {
        c.each([&](int j, int l) OSTLER_INLINE { to[l] = clamp_((sets ? value[j] : to[l]) + offset[j], least, most); });
      }
    }
  }
}

// Puts worlds where their episodes begin, as far as that is drawn: as much of it as an
// expression reads. What they were before is not needed any more.
OSTLER_FN void show_start(const EnvArgs& a, const Chosen& c, unsigned reads) {
  if (reads == 0) return;
  normalize_all(a, c);
  put_pose(a, c);
  stand_on_tile(a, c, a.physics.qpos);
  if (reads & READS_BODIES) place_bodies(a, c);
  if (reads & READS_STEERED) steer(a, c);
}

// Draws the positions, velocities and activations of new episodes. An expression sees what the terms before
// its own have made of them.
OSTLER_FN void draw_pose(const EnvArgs& a, const Chosen& c, const Terms& terms, unsigned long long clock) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  for (int i = 0; i < t.nq; i++) {
    float* q = a.new_qpos + i * n + e;
    const float x = a.begin_qpos[i];
    c.each([&](int, int l) OSTLER_INLINE { q[l] = x; });
  }
  for (int i = 0; i < t.nv; i++) {
    float* v = a.new_qvel + i * n + e;
    const float x = a.begin_qvel[i];
    c.each([&](int, int l) OSTLER_INLINE { v[l] = x; });
  }
  for (int i = 0; i < t.na; i++) {
    float* act = a.new_act + i * n + e;
    const float x = a.begin_act[i];
    c.each([&](int, int l) OSTLER_INLINE { act[l] = x; });
  }
  int done = 0;
  terms.starts(
    [&](int k) OSTLER_INLINE {
      operate(a, c, done, (int)a.start_place[k], clock);
      done = (int)a.start_place[k];
      show_start(a, c, a.start_reads[k]);
    },
    [&](int k, const auto& value) OSTLER_INLINE {
      const int size = value.size((int)a.start_size[k]);
      for (int i = 0; i < size; i++) {
        float* to = a.start_value + i * n + e;
        c.each([&](int, int l) OSTLER_INLINE { to[l] = value(i, l); });
      }
    });
  operate(a, c, done, t.nplace, clock);
  normalize_all(a, c);
}

OSTLER_FN void draw_start(const EnvArgs& a, const Chosen& c, const Terms& terms, unsigned long long clock) {
  command(a, c, clock);
  draw_random(a, c, clock);
  draw_pose(a, c, terms, clock);
}

// Draws starts until their conditions hold, or as often as the task says; then the last counts.
OSTLER_FN_BIG void draw_until(const EnvArgs& a, const Block b, const Terms& terms) {
  const long e = b.first;
  const unsigned most = a.most_tries[0], *mask = a.mask + e;
  unsigned again[Block::W], *tries = a.tries + e;
  OSTLER_EACH(l) again[l] = mask[l];
  for (unsigned k = 0; k < most; k++) {
    unsigned any = 0;
    OSTLER_EACH(l) any |= again[l];
    if (!any) break;
    among(b, again, [&](const Chosen& c) OSTLER_INLINE {
      draw_start(a, c, terms, clock_of(a, k));
      show_start(a, c, a.until_reads[0]);
      c.each([&](int, int l) OSTLER_INLINE {
        again[l] = 0;
        tries[l] = k + 1;
      });
      terms.untils([&](int, const auto& value) OSTLER_INLINE {
        // What is no number does not hold.
        c.each([&](int, int l) OSTLER_INLINE { again[l] |= value(0, l) != 0.0f ? 0u : 1u; });
      });
    });
  }
  OSTLER_EACH(l) tries[l] |= mask[l] && again[l] ? (unsigned)GAVE_UP : 0u;
}

// The start values of a new episode, written before its world is reset.
OSTLER_FN void start(const EnvArgs& a, const Block b, const Chosen& c, const Terms& terms) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const unsigned stream = a.first_env + (unsigned)e;
  if (t.nuntil > 0) draw_until(a, b, terms);
  else draw_start(a, c, terms, a.clock);
  stand_on_tile(a, c, a.new_qpos);
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
