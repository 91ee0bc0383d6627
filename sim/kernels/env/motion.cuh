// The reference motion that an episode follows: its clip and frame, and what expressions read.
#pragma once

// What is read: a number, a position, a quaternion, a velocity.
enum { LOOK_NUMBER, LOOK_PLACE, LOOK_TURN, LOOK_VELOCITY };
// Where episodes begin: anywhere; where others failed; with the clip.
enum { FOLLOW_ANYWHERE, FOLLOW_FAILURES, FOLLOW_BEGIN };
// Of these, how many control steps a failure counts, the share of episodes that begin anywhere all
// the same, and how many environments are asked for a failure. mjlab's mean of failures forgets
// as fast (`adaptive_alpha` 0.001), and its share is as large (`adaptive_uniform_ratio` 0.1).
enum : unsigned { FAILURE_LASTS = 1000, FAILURES_ASKED = 8 };
#define OSTLER_BEGIN_ANYWHERE 0.1f

struct MotionPlace {
  int row, next;  // frames before and behind, in the table
  float lap;      // rounds of a clip that goes round
};

// `ahead` whole frames after an environment's own. A clip that goes round has its first pose in
// its last frame; others stay there.
OSTLER_FN MotionPlace motion_place(const EnvArgs& a, long e, unsigned ahead) {
  const unsigned clip = a.follow[e] > 0 ? a.follow[e] - 1 : 0, last = a.clip_frames[clip] - 1;
  unsigned frame = a.follow[a.n + e] + ahead, lap = 0;
  if (a.clip_loops[clip]) lap = frame / last, frame = frame % last;
  else frame = frame < last ? frame : last;
  const int row = (int)(a.clip_first[clip] + frame);
  return {row, frame < last ? row + 1 : row, (float)lap};
}

// Goes on from where the rounds of a clip have led: each turns and shifts what is in the next one,
// x -> R x + t with R about z. After m rounds that is R^m x + (1 + R + ... + R^(m - 1)) t.
OSTLER_FN void go_round(const EnvArgs& a, unsigned clip, float laps, unsigned kind, float* to) {
  const float *t = a.clip_shift + 3 * clip, turn = t[2];
  float sine, cosine;
  if (kind == LOOK_TURN) {
    sin_cos(0.5f * (laps * turn), sine, cosine);
    const float w = to[0], x = to[1], y = to[2], z = to[3];
    to[0] = cosine * w - sine * z, to[1] = cosine * x - sine * y;
    to[2] = cosine * y + sine * x, to[3] = cosine * z + sine * w;
    return;
  }
  sin_cos(laps * turn, sine, cosine);
  const float x = to[0], y = to[1];
  to[0] = cosine * x - sine * y, to[1] = sine * x + cosine * y;
  if (kind != LOOK_PLACE) return;
  // The sum of rotations: sin(m turn / 2) / sin(turn / 2), at the angle (m - 1) turn / 2.
  float half, own, unused;
  sin_cos(0.5f * (laps * turn), half, unused), sin_cos(0.5f * turn, own, unused);
  const float length = own != 0.0f ? half / own : laps;
  sin_cos(0.5f * ((laps - 1.0f) * turn), sine, cosine);
  to[0] += length * (cosine * t[0] - sine * t[1]), to[1] += length * (sine * t[0] + cosine * t[1]);
}

// What expressions read of the reference. `placed`: 1 where positions of the terrain are added, 0
// where an episode's start is still drawn, which adds them later.
template<class L> OSTLER_FN_PART void look_up(const EnvArgs& a, const L& lanes, float placed) {
  const Task& t = task_of(a);
  const long n = a.n, e = lanes.first, width = a.motion_width[0];
  OSTLER_ROLLED for (int k = 0; k < t.nlook; k++) {
    const unsigned kind = a.look_kind[k], first = begin_of(a.look_end, k), size = a.look_end[k] - first;
    const float ahead = a.look_ahead[k], part = ahead - (float)(unsigned)ahead;
    const float* from = a.motion + a.look_at[k];
    lanes.each([&](int, int l) {
      const MotionPlace p = motion_place(a, e + l, (unsigned)ahead);
      const float *x = from + p.row * width, *y = from + p.next * width;
      float to[4], sign = 1.0f;
      if (kind == LOOK_TURN) {
        float dot = 0;
        for (int i = 0; i < 4; i++) dot += x[i] * y[i];
        sign = dot < 0 ? -1.0f : 1.0f;
      }
      for (unsigned i = 0; i < size; i++) to[i] = part > 0 ? x[i] + part * (sign * y[i] - x[i]) : x[i];
      if (kind == LOOK_TURN && part > 0) {
        const float norm = sqrt_(to[0] * to[0] + to[1] * to[1] + to[2] * to[2] + to[3] * to[3]);
        for (int i = 0; i < 4; i++) to[i] /= norm;
      }
      if (kind != LOOK_NUMBER && p.lap > 0) go_round(a, a.follow[e + l] > 0 ? a.follow[e + l] - 1 : 0, p.lap, kind, to);
      if (kind == LOOK_PLACE && t.nground > 0)
        for (int i = 0; i < 3; i++) to[i] += placed * a.stand[i * n + e + l];
      for (unsigned i = 0; i < size; i++) a.motion_now[(first + i) * n + e + l] = to[i];
    });
  }
}

// The next frame.
OSTLER_FN void follow(const EnvArgs& a, const Block b) {
  unsigned* frame = a.follow + a.n + b.first;
  OSTLER_EACH(l) frame[l] += 1;
  look_up(a, b, 1.0f);
}

// Whether an environment's clip is over.
OSTLER_FN bool is_over(const EnvArgs& a, long e) {
  const unsigned clip = a.follow[e] > 0 ? a.follow[e] - 1 : 0;
  return !a.clip_loops[clip] && a.follow[a.n + e] + 1 >= a.clip_frames[clip];
}

// A failure is remembered by its clip, its second of the clip, and the clock. Others read what
// was known when the rollout began, so that nothing depends on the order of environments.
OSTLER_FN void remember_failure(const EnvArgs& a, long e) {
  const long n = a.n;
  if (a.length[e] == 0 || a.ended[e] == 0) return;
  a.failure[e] = a.follow[e];
  a.failure[n + e] = a.follow[a.n + e] / a.motion_second[0];
  a.failure[2 * n + e] = (unsigned)a.clock;
}
OSTLER_FN void share_failures(const EnvArgs& a, long e) {
  for (int k = 0; k < 3; k++) a.failure[(3 + k) * (long)a.n + e] = a.failure[k * (long)a.n + e];
}

// The clip and the frame with which new episodes begin, and what is read of them.
OSTLER_FN_BIG void choose_frame(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const unsigned how = a.follow_how[0], second = a.motion_second[0];
  c.each([&](int, int l) {
    remember_failure(a, e + l);
    const unsigned stream = a.first_env + (unsigned)(e + l);
    const Words w = philox(a.seed, stream, DRAW_FRAME, a.clock, 0);
    int clip = 0;
    while (clip + 1 < t.nclip && unit(w.w[0]) >= a.clip_share[clip]) clip++;
    // Frames to choose from; behind the last there is nothing to follow.
    unsigned low = 0, high = a.clip_frames[clip] - 1;
    if (how == FOLLOW_BEGIN) high = 1;
    if (how == FOLLOW_FAILURES && unit(w.w[1]) >= OSTLER_BEGIN_ANYWHERE) {
      const unsigned *of = a.failure + 3 * n, *at = of + n, *when = at + n;
      for (unsigned k = 0; k < FAILURES_ASKED; k++) {
        const long other = (long)(unit(philox(a.seed, stream, DRAW_FRAME, a.clock, 1 + k).w[0]) * (float)n);
        const long o = other < n ? other : n - 1;
        if (of[o] == 0 || (unsigned)a.clock - when[o] > FAILURE_LASTS) continue;
        clip = (int)of[o] - 1;
        const unsigned last = a.clip_frames[clip] - 1;
        low = at[o] * second < last ? at[o] * second : last - 1;
        high = low + second < last ? low + second : last;
        break;
      }
    }
    const unsigned drawn = low + (unsigned)(unit(w.w[2]) * (float)(high - low));
    a.follow[e + l] = (unsigned)clip + 1u;
    a.follow[n + e + l] = drawn < high ? drawn : high - 1;
  });
  look_up(a, c, 0.0f);
}
