// Frames of bodies: sim/src/physics/kinematics.rs, operation by operation.
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
OSTLER_FN Q4 q_normalized(Q4 q) {
  const float norm = sqrt_(q.x[0] * q.x[0] + q.x[1] * q.x[1] + q.x[2] * q.x[2] + q.x[3] * q.x[3]);
  if (norm > 0.0f) return {{q.x[0] / norm, q.x[1] / norm, q.x[2] / norm, q.x[3] / norm}};
  return {{1.0f + norm, q.x[1], q.x[2], q.x[3]}};
}

OSTLER_FN Frame world_frame() { return {{{0, 0, 0}}, {{1, 0, 0, 0}}, {{0, 0, 0}}, {{0, 0, 0}}}; }
OSTLER_FN_ONE Frame fixed_in(const Frame& p, V3 pos, Q4 quat) {
  const V3 offset = q_rotate(p.quat, pos);
  return {v_add(p.pos, offset), q_mul(p.quat, quat), v_add(p.lin, v_cross(p.ang, offset)), p.ang};
}
OSTLER_FN_ONE void free_joint(Frame& f, const float* q, const float* v) {
  f.pos = {{q[0], q[1], q[2]}};
  f.quat = q_normalized({{q[3], q[4], q[5], q[6]}});
  f.lin = {{v[0], v[1], v[2]}};
  f.ang = q_rotate(f.quat, {{v[3], v[4], v[5]}});
}
OSTLER_FN_ONE void slide_joint(Frame& f, const float* q, const float* v, V3 own_axis, float reference) {
  const V3 axis = q_rotate(f.quat, own_axis);
  const V3 shift = v_scale(axis, q[0] - reference);
  f.pos = v_add(f.pos, shift);
  f.lin = v_add(v_add(f.lin, v_cross(f.ang, shift)), v_scale(axis, v[0]));
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
OSTLER_FN_ONE void hinge_joint(Frame& f, const float* q, const float* v, V3 anchor, V3 axis, float reference) {
  float s, c;
  sin_cos(0.5f * (q[0] - reference), s, c);
  const Q4 turn = {{c, s * axis.x[0], s * axis.x[1], s * axis.x[2]}};
  turn_about(f, anchor, turn, v_scale(q_rotate(f.quat, axis), v[0]));
}
OSTLER_FN_ONE void ball_joint(Frame& f, const float* q, const float* v, V3 anchor) {
  const Q4 turn = q_normalized({{q[0], q[1], q[2], q[3]}});
  turn_about(f, anchor, turn, q_rotate(q_mul(f.quat, turn), {{v[0], v[1], v[2]}}));
}
OSTLER_FN_ONE void write_frame(const EnvArgs& a, int e, int body, const Frame& f) {
  const StepArgs<float>& p = a.physics;
  const long n = a.n;
  for (int k = 0; k < 4; k++) p.body_quat[(4 * body + k) * n + e] = f.quat.x[k];
  for (int k = 0; k < 3; k++) {
    p.body_pos[(3 * body + k) * n + e] = f.pos.x[k];
    p.body_lin_vel[(3 * body + k) * n + e] = f.lin.x[k];
    p.body_ang_vel[(3 * body + k) * n + e] = f.ang.x[k];
  }
}
