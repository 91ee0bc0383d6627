// Random targets.
#pragma once

// The angle about the world's z axis of the x axis that this turns to.
OSTLER_FN float heading(float w, float x, float y, float z) {
  return atan2_of(2.0f * (w * z + x * y), 1.0f - 2.0f * (y * y + z * z));
}

// A component that is not uniform, from a word of its own and, where it takes another, that.
OSTLER_FN_BIG float other_command(const EnvArgs& a, unsigned chance, unsigned stream, unsigned long long clock, int c, unsigned word) {
  // The same row for all components of a term.
  if (chance == CHANCE_CHOICE) word = philox(a.seed, stream, DRAW_COMMAND, clock, a.command_first[c] | 0x20000000u).w[0];
  const unsigned second = chance < CHANCE_NORMAL ? 0u : philox(a.seed, stream, DRAW_COMMAND, clock, (unsigned)c | 0x40000000u).w[0];
  return draw_number(a, command_draw(task_of(a), c), word, second);
}

// Draws components first .. first + four - 1 of the commands of some environments, which one
// draw is good for; `due` says of which.
template<class L, class Due> OSTLER_FN void draw_commands(const EnvArgs& a, const L& lanes, unsigned long long clock, int first, int four, Due due) {
  const long n = a.n, e = lanes.first;
  const unsigned stream = a.first_env + (unsigned)e;
  unsigned word[4][L::W];
  lanes.dense([&](int j, int l) OSTLER_INLINE {
    const Words w = philox(a.seed, stream + (unsigned)l, DRAW_COMMAND, clock, (unsigned)first / 4);
    for (int k = 0; k < 4; k++) word[k][j] = w.w[k];
  });
  for (int k = 0; k < four; k++) {
    const Draw d = draw_of(a, command_draw(task_of(a), first + k));
    if (d.chance == CHANCE_NONE) continue;
    float* to = a.command + (first + k) * n + e;
    if (d.chance == CHANCE_UNIFORM) {
      lanes.each([&](int j, int l) OSTLER_INLINE {
        const float x = uniform_number(d, word[k][j]);
        to[l] = due(k, l) ? x : to[l];
      });
    } else {
      lanes.each([&](int j, int l) {
        if (due(k, l)) to[l] = other_command(a, d.chance, stream + (unsigned)l, clock, first + k, word[k][j]);
      });
    }
  }
}

// Draws how long a command holds, in whole control steps.
OSTLER_FN unsigned drawn_time(const EnvArgs& a, unsigned stream, unsigned long long clock, int k) {
  const Words w = philox(a.seed, stream, DRAW_TIMER, clock, (unsigned)k);
  const float steps = a.timer_low[k] + (a.timer_high[k] - a.timer_low[k]) * unit(w.w[0]);
  const unsigned whole = (unsigned)steps;
  const unsigned up = whole + (steps > (float)whole ? 1u : 0u);
  return up > 0 ? up : 1u;
}

// Marks of what a draw of a velocity is to be.
enum { COURSE_HEADING = 1, COURSE_STANDING = 2, COURSE_WORLD = 4 };

// A new velocity. Beside the command it has a heading, the velocity in the world's axes and
// marks. The order is that of mjlab's UniformVelocityCommand.
OSTLER_FN_BIG void draw_course(const EnvArgs& a, long e, unsigned long long clock, int k) {
  const long n = a.n;
  const unsigned stream = a.first_env + (unsigned)e;
  const Words v = philox(a.seed, stream, DRAW_COMMAND, clock, 2u * (unsigned)k | 0x80000000u);
  const Words s = philox(a.seed, stream, DRAW_COMMAND, clock, (2u * (unsigned)k + 1) | 0x80000000u);
  const float *low = a.course_low + 4 * k, *high = a.course_high + 4 * k, *share = a.course_share + 4 * k;
  float x[4];
  for (int i = 0; i < 4; i++) x[i] = low[i] + (high[i] - low[i]) * unit(v.w[i]);
  float* own = a.course + 4 * k * n + e;
  const float dead = a.course_dead[k];
  if (dead > 0.0f && sqrt_(x[0] * x[0] + x[1] * x[1]) <= dead) x[0] = x[1] = 0.0f;
  own[0] = x[3];
  own[n] = x[0];
  own[2 * n] = x[1];
  const unsigned marks = (unit(s.w[0]) < share[0] ? (unsigned)COURSE_HEADING : 0u) | (unit(s.w[1]) < share[1] ? (unsigned)COURSE_STANDING : 0u)
    | (unit(s.w[3]) < share[3] ? (unsigned)COURSE_WORLD : 0u);
  own[3 * n] = (float)marks;
  if (unit(s.w[2]) < share[2]) {
    const float ahead = magnitude(x[0]);
    x[0] = ahead < 0.3f ? 0.3f : ahead;
    x[1] = x[2] = 0.0f;
  }
  float* to = a.command + a.course_first[k] * n + e;
  for (int i = 0; i < 3; i++) to[i * n] = x[i];
}

// Velocities follow the robot: towards a heading, with a direction of the world.
template<class L> OSTLER_FN_PART void steer(const EnvArgs& a, const L& lanes) {
  const Task& t = task_of(a);
  const long n = a.n, e = lanes.first;
  OSTLER_ROLLED for (int k = 0; k < t.ncourse; k++) {
    const float* quat = a.physics.body_quat + 4l * a.course_body[k] * n + e;
    const float* own = a.course + 4 * k * n + e;
    float* to = a.command + a.course_first[k] * n + e;
    const float stiffness = a.course_stiffness[k], low = a.course_low[4 * k + 2], high = a.course_high[4 * k + 2];
    lanes.each([&](int, int l) {
      const float mark = own[3 * n + l];
      const unsigned marks = mark > 0.0f && mark < 8.0f ? (unsigned)mark : 0u;
      if (marks == 0) return;
      const float turn = heading(quat[l], quat[n + l], quat[2 * n + l], quat[3 * n + l]);
      if (marks & COURSE_HEADING) {
        const float error = own[l] - turn, tau = 6.28318531f;
        const float wrapped = error - tau * floor_((error + 3.14159265f) / tau);
        to[2 * n + l] = clamp_(stiffness * wrapped, low, high);
      }
      if (marks & COURSE_WORLD) {
        float s, c;
        sin_cos(turn, s, c);
        const float x = own[n + l], y = own[2 * n + l];
        to[l] = c * x + s * y;
        to[n + l] = c * y - s * x;
      }
      if (marks & COURSE_STANDING) to[l] = to[n + l] = to[2 * n + l] = 0.0f;
    });
  }
}

// Draws the commands that are due in environments that go on, those whose conditions hold too.
OSTLER_FN void command(const EnvArgs& a, const Block b, const Terms& terms) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  const unsigned* age = a.age + e;
  terms.resamples([&](int k, const auto& value) OSTLER_INLINE {
    unsigned* left = a.timer + a.resample_timer[k] * n + e;
    OSTLER_EACH(l) left[l] = value(0, l) != 0.0f ? 1u : left[l];
  });
  for (int k = 0; k < t.ntimer; k++) {
    unsigned* left = a.timer + k * n + e;
    OSTLER_EACH(l) left[l] -= left[l] != 0;
  }
  for (int first = 0; first < t.ncommand; first += 4) {
    unsigned due[4][Block::W], any = 0;
    const int four = t.ncommand - first < 4 ? t.ncommand - first : 4;
    for (int k = 0; k < four; k++) {
      const unsigned interval = a.command_interval[first + k], timer = a.command_timer[first + k];
      if (timer != NOWHERE) {
        const unsigned* left = a.timer + timer * n + e;
        OSTLER_EACH(l) due[k][l] = left[l] == 0;
      } else if (interval == 0) {
        OSTLER_EACH(l) due[k][l] = 0;
      } else {
        OSTLER_EACH(l) due[k][l] = age[l] % interval == 0;
      }
      OSTLER_EACH(l) any |= due[k][l];
    }
    if (any) draw_commands(a, b, a.clock, first, four, [&](int k, int l) OSTLER_INLINE { return due[k][l] != 0; });
  }
  for (int k = 0; k < t.ncourse; k++) {
    const int first = (int)a.course_first[k];
    const unsigned interval = a.command_interval[first], timer = a.command_timer[first];
    for (int l = 0; l < b.len; l++) {
      const bool due = timer != NOWHERE ? a.timer[timer * n + e + l] == 0 : interval != 0 && age[l] % interval == 0;
      if (due) draw_course(a, e + l, a.clock, k);
    }
  }
  for (int k = 0; k < t.ntimer; k++) {
    unsigned* left = a.timer + k * n + e;
    for (int l = 0; l < b.len; l++)
      if (left[l] == 0) left[l] = drawn_time(a, a.first_env + (unsigned)(e + l), a.clock, k);
  }
  if (t.ncourse > 0) steer(a, b);
}

// Draws all commands of environments that begin anew; `clock` is a try's.
OSTLER_FN void command(const EnvArgs& a, const Chosen& c, unsigned long long clock) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  for (int first = 0; first < t.ncommand; first += 4) {
    const int four = t.ncommand - first < 4 ? t.ncommand - first : 4;
    draw_commands(a, c, clock, first, four, [](int, int) OSTLER_INLINE { return true; });
  }
  for (int k = 0; k < t.ncourse; k++) c.each([&](int, int l) { draw_course(a, e + l, clock, k); });
  for (int k = 0; k < t.ntimer; k++) {
    unsigned* left = a.timer + k * n + e;
    c.each([&](int, int l) { left[l] = drawn_time(a, a.first_env + (unsigned)(e + l), clock, k); });
  }
}
