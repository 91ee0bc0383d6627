// Events: numbers of the robot that differ between environments, forces from outside, pushes.
#pragma once

// When; the meaning of an event's numbers; how a number acts on the robot's own.
enum { EVENT_STARTUP, EVENT_RESET, EVENT_INTERVAL };
enum { FORM_FIELDS, FORM_PSEUDO, FORM_PUSH };
enum { OPERATION_ABS, OPERATION_ADD, OPERATION_SCALE };
// New numbers, and (for engines whose worlds are more than columns) a new velocity.
enum : unsigned { STALE_NUMBERS = 1, STALE_VELOCITY = 2 };
// Breaks so many control steps after an event are counted as soon after it; an environment that
// broke so often breaks again and again. An event that has not happened in the episode.
enum : unsigned { EVENT_SOON = 10, BREAKS_AGAIN = 3, EVENT_NEVER = ~0u };
// Where intervals' random numbers begin; those that an episode begins with, and durations.
enum : unsigned { EVENT_TIMER = 0x40000000u, EVENT_FIRST_TIMER = 0x60000000u, EVENT_HOLD = 0x20000000u };

OSTLER_FN float operated(unsigned operation, float own, float x) {
  return operation == OPERATION_ABS ? x : operation == OPERATION_ADD ? own + x : own * x;
}

// The number that gives `value`, which is the robot's own after a draw that was cut off.
OSTLER_FN float undone(unsigned operation, float own, float value) {
  return operation == OPERATION_ABS ? value : operation == OPERATION_ADD ? value - own : value / own;
}
OSTLER_FN void show_number(const EnvArgs& a, long e, int d, float x) {
  if (a.drawn_shown[d] != NOWHERE) a.shown[a.drawn_shown[d] * (long)a.n + e] = x;
}

// A random number of control steps between two ends, at least one.
OSTLER_FN unsigned event_steps(const EnvArgs& a, unsigned stream, unsigned index, float low, float high) {
  const unsigned word = philox(a.seed, stream, DRAW_EVENT, a.clock, index).w[0];
  const float steps = rint_(low + (high - low) * unit(word));
  return steps < 1.0f ? 1u : (unsigned)steps;
}

// The pseudo-inertia J = (S, h; h', m) of a body with S = 1/2 tr(I) 1 - I about its origin
// becomes U J U' with U = e^alpha (e^d1 s12 s13 t1; 0 e^d2 s23 t2; 0 0 e^d3 t3; 0 0 0 1): it
// stays that of a body of positive density. Source: Rucker and Wensing, "Smooth
// parameterization of rigid-body inertia", 2022.
OSTLER_FN void perturb_inertia(const EnvArgs& a, long e, int d, const float* x) {
  const long n = a.n;
  const unsigned at_mass = a.drawn_row[d], at_com = a.drawn_row[d + 1], at_tensor = a.drawn_row[d + 2];
  const float m = a.varied_base[at_mass];
  float c[3], I[6];
  for (int k = 0; k < 3; k++) c[k] = a.varied_base[at_com + k];
  for (int k = 0; k < 6; k++) I[k] = a.varied_base[at_tensor + k];
  // About the origin, then S.
  const float cc = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
  for (int k = 0; k < 3; k++) I[k] = I[k] + m * (cc - c[k] * c[k]);
  I[3] = I[3] - m * c[0] * c[1];
  I[4] = I[4] - m * c[0] * c[2];
  I[5] = I[5] - m * c[1] * c[2];
  const float half = 0.5f * (I[0] + I[1] + I[2]);
  float J[4][4] = {{half - I[0], -I[3], -I[4], m * c[0]}, {-I[3], half - I[1], -I[5], m * c[1]}, {-I[4], -I[5], half - I[2], m * c[2]}, {m * c[0], m * c[1], m * c[2], m}};
  const float by = exp_(x[0]);
  const float U[4][4] = {{by * exp_(x[1]), by * x[4], by * x[5], by * x[7]}, {0, by * exp_(x[2]), by * x[6], by * x[8]}, {0, 0, by * exp_(x[3]), by * x[9]}, {0, 0, 0, by}};
  float UJ[4][4], K[4][4];
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      UJ[i][j] = 0;
      for (int k = i; k < 4; k++) UJ[i][j] = UJ[i][j] + U[i][k] * J[k][j];
    }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      K[i][j] = 0;
      for (int k = j; k < 4; k++) K[i][j] = K[i][j] + UJ[i][k] * U[j][k];
    }
  const float mass = K[3][3];
  for (int k = 0; k < 3; k++) c[k] = K[k][3] / mass;
  const float trace = K[0][0] + K[1][1] + K[2][2];
  const float square = c[0] * c[0] + c[1] * c[1] + c[2] * c[2];
  float* to = a.physics.varied + e;
  to[at_mass * n] = mass;
  for (int k = 0; k < 3; k++) {
    to[(at_com + k) * n] = c[k];
    to[(at_tensor + k) * n] = trace - K[k][k] - mass * (square - c[k] * c[k]);
  }
  to[(at_tensor + 3) * n] = mass * c[0] * c[1] - K[0][1];
  to[(at_tensor + 4) * n] = mass * c[0] * c[2] - K[0][2];
  to[(at_tensor + 5) * n] = mass * c[1] * c[2] - K[1][2];
}

// Velocities of a free joint: linear in the world's axes, angular in the body's; a push has
// both in the world's.
OSTLER_FN void push(const EnvArgs& a, long e, int k, int first, const float* x) {
  const long n = a.n;
  float* v = a.physics.qvel + e;
  const unsigned quat = a.event_quat[k];
  const float* q = a.physics.qpos + quat * n + e;
  const Q4 turn = {{q[0], q[n], q[2 * n], q[3 * n]}};
  const unsigned dof = a.event_dof[k];
  float* ang = v + (dof + 3) * n;
  V3 w = q_rotate(turn, {{ang[0], ang[n], ang[2 * n]}});
  for (int d = first; d < (int)a.event_end[k]; d++) {
    const unsigned at = a.drawn_row[d] - dof;
    if (at < 3) {
      float* to = v + (dof + at) * n;
      *to = operated(a.drawn_operation[d], *to, x[d - first]);
    } else {
      w.x[at - 3] = operated(a.drawn_operation[d], w.x[at - 3], x[d - first]);
    }
  }
  const V3 back = q_rotate(q_conjugate(turn), w);
  for (int i = 0; i < 3; i++) ang[i * n] = back.x[i];
}

// Lets event `k` happen in an environment, with the random numbers of `clock`.
OSTLER_FN_PART void happen(const EnvArgs& a, long e, int k, unsigned long long clock) {
  const long n = a.n;
  const int first = (int)begin_of(a.event_end, k), end = (int)a.event_end[k];
  const unsigned form = a.event_form[k], stream = a.first_env + (unsigned)e;
  unsigned drawn = NOWHERE;
  Words w = {{0, 0, 0, 0}};
  float x[10];
  for (int d = first; d < end; d++) {
    const unsigned word = a.drawn_word[d];
    if (drawn != word / 2) {
      drawn = word / 2;
      w = philox(a.seed, stream, DRAW_EVENT, clock, drawn);
    }
    const float number = draw_number(a, event_draw(task_of(a), d), w.w[word % 2 * 2], w.w[word % 2 * 2 + 1]);
    if (form == FORM_FIELDS) {
      const unsigned row = a.drawn_row[d];
      const float own = a.varied_base[row], value = operated(a.drawn_operation[d], own, number);
      const float possible = clamp_(value, a.drawn_least[d], a.drawn_most[d]);
      a.physics.varied[row * n + e] = possible;
      show_number(a, e, d, possible == value ? number : undone(a.drawn_operation[d], own, possible));
    } else {
      show_number(a, e, d, number);
      x[(d - first) % 10] = number;
      if (form == FORM_PSEUDO && (d - first) % 10 == 9) perturb_inertia(a, e, d - 9, x);
    }
  }
  if (form == FORM_PUSH) push(a, e, k, first, x);
  a.physics.stale[e] |= form == FORM_PUSH ? STALE_VELOCITY : STALE_NUMBERS;
  a.event_since[k * n + e] = 0;
  if (a.event_hold_high[k] > 0.0f)
    a.event_hold[k * n + e] = event_steps(a, stream, EVENT_HOLD | (unsigned)k, a.event_hold_low[k], a.event_hold_high[k]);
}

// The model's own numbers in place of an event's.
OSTLER_FN void calm(const EnvArgs& a, long e, int k) {
  const long n = a.n;
  for (int d = (int)begin_of(a.event_end, k); d < (int)a.event_end[k]; d++) {
    if (a.drawn_shown[d] != NOWHERE) show_number(a, e, d, a.shown_base[a.drawn_shown[d]]);
    if (a.event_form[k] != FORM_PUSH) a.physics.varied[a.drawn_row[d] * n + e] = a.varied_base[a.drawn_row[d]];
  }
  if (a.event_form[k] == FORM_PUSH) return;
  a.event_hold[k * n + e] = 0;
  a.physics.stale[e] |= STALE_NUMBERS;
}

// Numbers of new episodes: the model's own and those of startup where an environment has none
// yet, then those of resets.
OSTLER_FN void begin_events(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n;
  if (t.nevent + t.nvaried == 0) return;
  for (int l = 0; l < b.len; l++) {
    const long e = b.first + l;
    if (!a.mask[e]) continue;
    if (!a.born[e]) {
      for (int i = 0; i < t.nvaried; i++) a.physics.varied[i * n + e] = a.varied_base[i];
      for (int i = 0; i < t.nshown; i++) a.shown[i * n + e] = a.shown_base[i];
      a.physics.stale[e] |= STALE_NUMBERS;
      a.born[e] = 1;
      for (int k = 0; a.events && k < t.nevent; k++)
        if (a.event_when[k] == EVENT_STARTUP) happen(a, e, k, 0);
    }
    for (int k = 0; k < t.nevent; k++) {
      const unsigned when = a.event_when[k];
      // A force of the episode before.
      if (a.event_hold[k * n + e] != 0 || when == EVENT_INTERVAL) calm(a, e, k);
      a.event_since[k * n + e] = EVENT_NEVER;
      if (when == EVENT_RESET && a.events && a.event_form[k] != FORM_PUSH) happen(a, e, k, a.clock);
      if (when == EVENT_INTERVAL)
        a.event_left[k * n + e] = event_steps(a, a.first_env + (unsigned)e, EVENT_FIRST_TIMER | (unsigned)k, a.event_low[k], a.event_high[k]);
    }
  }
}

// Pushes with which new episodes begin, once their worlds are where they begin.
OSTLER_FN void begin_pushes(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  if (!a.events) return;
  bool some = false;
  for (int k = 0; k < t.nevent; k++) {
    if (a.event_when[k] != EVENT_RESET || a.event_form[k] != FORM_PUSH) continue;
    some = true;
    c.each([&](int, int l) { happen(a, c.first + l, k, a.clock); });
  }
  if (some) place_bodies(a, c);
}

// Counts an environment's break and marks the events that may have caused it.
OSTLER_FN void suspect_events(const EnvArgs& a, const long e) {
  const long n = a.n, events = task_of(a).nevent;
  const unsigned breaks = ++a.broke[e];
  for (long k = 0; k < events; k++) {
    const bool again = a.event_when[k] == EVENT_STARTUP && a.events && breaks >= BREAKS_AGAIN;
    a.suspect[k * n + e] = again || (a.event_when[k] != EVENT_STARTUP && a.event_since[k * n + e] <= EVENT_SOON);
  }
}

// Events that are due in environments that go on.
OSTLER_FN void events(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  if (!a.events) return;
  unsigned pushed[Block::W], any_push = 0;
  OSTLER_EACH(l) pushed[l] = 0;
  const unsigned* bits = a.bits + e;
  for (int k = 0; k < t.nevent; k++) {
    unsigned* since = a.event_since + k * n + e;
    OSTLER_EACH(l) since[l] += since[l] != EVENT_NEVER;
    if (a.event_hold_high[k] > 0.0f) {
      unsigned* hold = a.event_hold + k * n + e;
      for (int l = 0; l < b.len; l++) {
        if (hold[l] == 0) continue;
        since[l] = 0;
        if (--hold[l] == 0) calm(a, e + l, k);
      }
    }
    if (a.event_when[k] != EVENT_INTERVAL) continue;
    unsigned *left = a.event_left + k * n + e, any = 0;
    OSTLER_EACH(l) {
      left[l] -= left[l] != 0;
      any |= left[l] == 0;
    }
    if (!any) continue;
    for (int l = 0; l < b.len; l++) {
      // What has broken begins anew, and did so before the event.
      if (left[l] != 0 || bits[l] != 0) continue;
      happen(a, e + l, k, a.clock);
      left[l] = event_steps(a, a.first_env + (unsigned)(e + l), EVENT_TIMER | (unsigned)k, a.event_low[k], a.event_high[k]);
      if (a.event_form[k] == FORM_PUSH) pushed[l] = any_push = 1;
    }
  }
  if (any_push) among(b, pushed, [&](const Chosen& c) OSTLER_INLINE { place_bodies(a, c); });
}
