// Frames of bodies from positions and velocities, by MuJoCo's `mj_kinematics` (Computation,
// "Forward kinematics"): the joints of a body act in order, each on the frame that the ones
// before left. rapier's worlds, which are stepped one by one, have the same in
// sim/rapier/src/kinematics.rs.
#pragma once

struct V3 { float x[3]; };
struct Q4 { float x[4]; };
struct Frame { V3 pos; Q4 quat; V3 lin, ang; };

OSTLER_FN V3 v_add(V3 a, V3 b) { return {{a.x[0] + b.x[0], a.x[1] + b.x[1], a.x[2] + b.x[2]}}; }
OSTLER_FN V3 v_scale(V3 a, float s) { return {{a.x[0] * s, a.x[1] * s, a.x[2] * s}}; }
OSTLER_FN V3 v_cross(V3 a, V3 b) {
  return {{a.x[1] * b.x[2] - a.x[2] * b.x[1], a.x[2] * b.x[0] - a.x[0] * b.x[2], a.x[0] * b.x[1] - a.x[1] * b.x[0]}};
}
OSTLER_FN Q4 q_mul(Q4 a, Q4 b) {
  return {{a.x[0] * b.x[0] - a.x[1] * b.x[1] - a.x[2] * b.x[2] - a.x[3] * b.x[3],
           a.x[0] * b.x[1] + a.x[1] * b.x[0] + a.x[2] * b.x[3] - a.x[3] * b.x[2],
           a.x[0] * b.x[2] - a.x[1] * b.x[3] + a.x[2] * b.x[0] + a.x[3] * b.x[1],
           a.x[0] * b.x[3] + a.x[1] * b.x[2] - a.x[2] * b.x[1] + a.x[3] * b.x[0]}};
}
OSTLER_FN V3 q_rotate(Q4 q, V3 v) {
  const V3 u = {{q.x[1], q.x[2], q.x[3]}};
  const V3 t = v_scale(v_cross(u, v), 2.0f);
  return v_add(v, v_add(v_scale(t, q.x[0]), v_cross(u, t)));
}
OSTLER_FN Q4 q_conjugate(Q4 q) { return {{q.x[0], -q.x[1], -q.x[2], -q.x[3]}}; }
OSTLER_FN Q4 q_normalized(Q4 q) {
  const float norm = sqrt_(q.x[0] * q.x[0] + q.x[1] * q.x[1] + q.x[2] * q.x[2] + q.x[3] * q.x[3]);
  const bool some = norm > 0.0f;
  // NaN comes through, so that it is noticed.
  return {{some ? q.x[0] / norm : 1.0f + norm, some ? q.x[1] / norm : q.x[1], some ? q.x[2] / norm : q.x[2], some ? q.x[3] / norm : q.x[3]}};
}

OSTLER_FN Frame fixed_in(const Frame& p, V3 pos, Q4 quat) {
  const V3 offset = q_rotate(p.quat, pos);
  return {v_add(p.pos, offset), q_mul(p.quat, quat), v_add(p.lin, v_cross(p.ang, offset)), p.ang};
}
OSTLER_FN void slide_joint(Frame& f, float q, float v, V3 own_axis, float reference) {
  const V3 axis = q_rotate(f.quat, own_axis);
  const V3 shift = v_scale(axis, q - reference);
  f.pos = v_add(f.pos, shift);
  f.lin = v_add(v_add(f.lin, v_cross(f.ang, shift)), v_scale(axis, v));
}
OSTLER_FN void turn_about(Frame& f, V3 anchor, Q4 turn, V3 rate) {
  const V3 to_anchor = q_rotate(f.quat, anchor);
  const V3 anchor_vel = v_add(f.lin, v_cross(f.ang, to_anchor));
  f.ang = v_add(f.ang, rate);
  f.quat = q_mul(f.quat, turn);
  const V3 back = v_scale(q_rotate(f.quat, anchor), -1.0f);
  f.pos = v_add(v_add(f.pos, to_anchor), back);
  f.lin = v_add(anchor_vel, v_cross(f.ang, back));
}
OSTLER_FN void hinge_joint(Frame& f, float q, float v, V3 anchor, V3 axis, float reference) {
  float s, c;
  sin_cos(0.5f * (q - reference), s, c);
  const Q4 turn = {{c, s * axis.x[0], s * axis.x[1], s * axis.x[2]}};
  turn_about(f, anchor, turn, v_scale(q_rotate(f.quat, axis), v));
}

OSTLER_FN void free_joint(Frame& f, V3 pos, Q4 quat, V3 lin, V3 ang) {
  f.pos = pos;
  f.quat = q_normalized(quat);
  f.lin = lin;
  f.ang = q_rotate(f.quat, ang);
}
OSTLER_FN void ball_joint(Frame& f, Q4 q, V3 v, V3 anchor) {
  const Q4 turn = q_normalized(q);
  turn_about(f, anchor, turn, q_rotate(q_mul(f.quat, turn), v));
}

OSTLER_FN V3 v_at(const float* x) { return {{x[0], x[1], x[2]}}; }
OSTLER_FN Q4 q_at(const float* x) { return {{x[0], x[1], x[2], x[3]}}; }
