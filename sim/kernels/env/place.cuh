// Worlds where episodes begin, of engines whose worlds are no more than their columns.
#pragma once
#include "frames.cuh"

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

// A body's frames while its joints act on them, of some environments.
template<int W> struct Frames {
  float x[13][W];
  OSTLER_FN Frame get(int j) const {
    return {{{x[0][j], x[1][j], x[2][j]}}, {{x[3][j], x[4][j], x[5][j], x[6][j]}}, {{x[7][j], x[8][j], x[9][j]}}, {{x[10][j], x[11][j], x[12][j]}}};
  }
  OSTLER_FN void set(int j, const Frame& f) {
    for (int k = 0; k < 3; k++) x[k][j] = f.pos.x[k], x[7 + k][j] = f.lin.x[k], x[10 + k][j] = f.ang.x[k];
    for (int k = 0; k < 4; k++) x[3 + k][j] = f.quat.x[k];
  }
};

// Does `f(frame, j)` to all frames.
template<class L, class F> OSTLER_FN void change(const L& lanes, Frames<L::W>& frames, F f) {
  lanes.dense([&](int j, int) OSTLER_INLINE {
    Frame frame = frames.get(j);
    f(frame, j);
    frames.set(j, frame);
  });
}

// `count` columns of the state from `from` on.
template<class L> OSTLER_FN void gather(const L& lanes, float (*to)[L::W], const float* from, long n, int count) {
  for (int k = 0; k < count; k++) lanes.dense([&](int j, int l) OSTLER_INLINE { to[k][j] = from[k * n + l]; });
}
template<class L> OSTLER_FN void scatter(const L& lanes, float* to, const float (*from)[L::W], long n, int count) {
  for (int k = 0; k < count; k++) lanes.each([&](int j, int l) OSTLER_INLINE { to[k * n + l] = from[k][j]; });
}

OSTLER_FN void place_joint(const EnvArgs& a, const Chosen& c, int joint, Frames<Chosen::W>& frames) {
  const long n = a.n, e = c.first;
  const unsigned kind = a.joint_kind[joint];
  float q[7][Chosen::W], v[6][Chosen::W];
  gather(c, q, a.physics.qpos + a.joint_q[joint] * n + e, n, kind == JOINT_FREE ? 7 : kind == JOINT_BALL ? 4 : 1);
  gather(c, v, a.physics.qvel + a.joint_v[joint] * n + e, n, kind == JOINT_FREE ? 6 : kind == JOINT_BALL ? 3 : 1);
  const V3 anchor = v_at(a.joint_pos + 3 * joint), axis = v_at(a.joint_axis + 3 * joint);
  const float modelled = a.joint_reference[joint];
  const unsigned own = a.joint_vary[joint];
  float reference[1][Chosen::W];
  if (own != NOWHERE) gather(c, reference, a.physics.varied + own * n + e, n, 1);
  else c.dense([&](int j, int) OSTLER_INLINE { reference[0][j] = modelled; });
  if (kind == JOINT_FREE) {
    change(c, frames, [&](Frame& f, int j) OSTLER_INLINE {
      free_joint(f, {{q[0][j], q[1][j], q[2][j]}}, {{q[3][j], q[4][j], q[5][j], q[6][j]}}, {{v[0][j], v[1][j], v[2][j]}}, {{v[3][j], v[4][j], v[5][j]}});
    });
  } else if (kind == JOINT_BALL) {
    change(c, frames, [&](Frame& f, int j) OSTLER_INLINE {
      ball_joint(f, {{q[0][j], q[1][j], q[2][j], q[3][j]}}, {{v[0][j], v[1][j], v[2][j]}}, anchor);
    });
  } else if (kind == JOINT_SLIDE) {
    change(c, frames, [&](Frame& f, int j) OSTLER_INLINE { slide_joint(f, q[0][j], v[0][j], axis, reference[0][j]); });
  } else {
    change(c, frames, [&](Frame& f, int j) OSTLER_INLINE { hinge_joint(f, q[0][j], v[0][j], anchor, axis, reference[0][j]); });
  }
}

// Frames of all bodies.
OSTLER_FN void place_bodies(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const StepArgs<float>& s = a.physics;
  Frames<Chosen::W> frames;
  OSTLER_ROLLED for (int b = 0; b < t.nbody; b++) {
    const long parent = a.body_parent[b];
    if (parent == 0) {
      const Frame world = {{{0, 0, 0}}, {{1, 0, 0, 0}}, {{0, 0, 0}}, {{0, 0, 0}}};
      c.dense([&](int j, int) OSTLER_INLINE { frames.set(j, world); });
    } else {
      gather(c, frames.x, s.body_pos + 3 * parent * n + e, n, 3);
      gather(c, frames.x + 3, s.body_quat + 4 * parent * n + e, n, 4);
      gather(c, frames.x + 7, s.body_lin_vel + 3 * parent * n + e, n, 3);
      gather(c, frames.x + 10, s.body_ang_vel + 3 * parent * n + e, n, 3);
    }
    if (b > 0) {
      const V3 pos = v_at(a.body_at + 3 * b);
      const Q4 quat = q_at(a.body_turn + 4 * b);
      change(c, frames, [&](Frame& f, int) OSTLER_INLINE { f = fixed_in(f, pos, quat); });
    }
    OSTLER_ROLLED for (int k = (int)begin_of(a.body_joints, b); k < (int)a.body_joints[b]; k++) place_joint(a, c, k, frames);
    change(c, frames, [&](Frame& f, int) OSTLER_INLINE { f.quat = q_normalized(f.quat); });
    scatter(c, s.body_pos + 3l * b * n + e, frames.x, n, 3);
    scatter(c, s.body_quat + 4l * b * n + e, frames.x + 3, n, 4);
    scatter(c, s.body_lin_vel + 3l * b * n + e, frames.x + 7, n, 3);
    scatter(c, s.body_ang_vel + 3l * b * n + e, frames.x + 10, n, 3);
  }
}

// Puts worlds at positions and velocities that were drawn.
OSTLER_FN void put_pose(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const StepArgs<float>& s = a.physics;
  OSTLER_ROLLED for (int i = 0; i < t.nq; i++) {
    const float* from = a.new_qpos + i * n + e;
    float* to = s.qpos + i * n + e;
    c.each([&](int, int l) OSTLER_INLINE { to[l] = from[l]; });
  }
  OSTLER_ROLLED for (int i = 0; i < t.nv; i++) {
    const float* from = a.new_qvel + i * n + e;
    float* to = s.qvel + i * n + e;
    c.each([&](int, int l) OSTLER_INLINE { to[l] = from[l]; });
  }
}

// Puts worlds at the positions, velocities and activations with which their episodes begin.
OSTLER_FN_PART void place(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const StepArgs<float>& s = a.physics;
  put_pose(a, c);
  OSTLER_ROLLED for (int i = 0; i < t.na; i++) {
    const float* from = a.new_act + i * n + e;
    float* to = s.act + i * n + e;
    c.each([&](int, int l) OSTLER_INLINE { to[l] = from[l]; });
  }
  OSTLER_WORLD(OSTLER_BEGIN)
  place_bodies(a, c);
}
