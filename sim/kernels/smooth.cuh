// Smooth dynamics: where bodies are, the mass matrix, and every force but the
// constraints'. Written as loops over tables without branches on values, so that
// the same code runs on lanes and records the specialised kernel's straight line.
//
// Source: Featherstone, Rigid Body Dynamics Algorithms (2008), chapters 5 and 6;
// meaning of the tables: MuJoCo, Computation.
#pragma once

enum { JNT_FREE, JNT_BALL, JNT_SLIDE, JNT_HINGE };

template<class T> OSTLER_FN bool is_zero3(const T* v) { return v[0] == 0 && v[1] == 0 && v[2] == 0; }
template<class T> OSTLER_FN bool is_identity(const T* q) { return q[1] == 0 && q[2] == 0 && q[3] == 0; }

// Poses of the bodies and motion axes of the degrees of freedom; `in`: Space or Plane.
template<class S, class R, class M> OSTLER_FN_PART void kinematics(const S& in, const M& m, Work<R, M>& w) {
  for (int b = 0; b < m.nb; b++) {
    const int p = m.body_parent[b];
    R* x = w.xpos + 3 * b;
    R* quat = w.xquat + 4 * b;
    R* mat = w.xmat + 9 * b;
    // A root's origin is far + x: far holds what can be large (positions of free
    // and slide joints), x the small remainder, so that nothing below loses digits.
    R far[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
    const auto* c = m.body_quat + 4 * b;
    const R fixed[4] = {bc<R>(c[0]), bc<R>(c[1]), bc<R>(c[2]), bc<R>(c[3])};
    if (p < 0) {
      for (int k = 0; k < 3; k++) far[k] = bc<R>(m.body_pos[3 * b + k]), x[k] = bc<R>(0);
      for (int k = 0; k < 4; k++) quat[k] = fixed[k];
    } else {
      in.turn(w.xmat + 9 * p, m.body_pos + 3 * b, x);
      for (int k = 0; k < 3; k++) x[k] = x[k] + w.xpos[3 * p + k];
      if (is_identity(c)) {
        for (int k = 0; k < 4; k++) quat[k] = w.xquat[4 * p + k];
      } else {
        in.mul(w.xquat + 4 * p, fixed, quat);
      }
    }
    bool stale = true; // mat is not yet that of quat
    const int j0 = m.body_jnt[b], j1 = m.body_jnt[b + 1];
    for (int j = j0; j < j1; j++) {
      const int type = m.jnt_type[j], q = m.jnt_qpos[j], d = m.jnt_dof[j];
      const auto* axis = m.jnt_axis + 3 * j;
      const auto* anchor = m.jnt_pos + 3 * j;
      // Until the body's pose is known, cdof holds (axis, anchor) of each joint.
      if (type == JNT_FREE) {
        for (int k = 0; k < 3; k++) far[k] = w.qpos[q + k], x[k] = bc<R>(0);
        for (int k = 0; k < 4; k++) quat[k] = w.qpos[q + 3 + k];
        quat_unit(quat);
        stale = true;
        for (int k = 0; k < 3; k++) w.cdof[6 * (d + 3) + 3 + k] = x[k];
      } else if (type == JNT_SLIDE) {
        if (stale) in.mat(quat, mat), stale = false;
        R a[3];
        in.turn(mat, axis, a);
        const R dq = w.qpos[q] - varied(m, w, m.vary_qpos0, q, m.qpos0[q]);
        for (int k = 0; k < 3; k++) {
          w.cdof[6 * d + k] = a[k];
          if (p < 0) {
            far[k] = fma(a[k], dq, far[k]);
            for (int i = j0; i < j; i++) {
              if (m.jnt_type[i] == JNT_SLIDE) continue;
              const int e = m.jnt_dof[i] + (m.jnt_type[i] == JNT_FREE ? 3 : 0);
              w.cdof[6 * e + 3 + k] = fnma(a[k], dq, w.cdof[6 * e + 3 + k]);
            }
          } else {
            x[k] = fma(a[k], dq, x[k]);
          }
        }
      } else {
        const bool off = !is_zero3(anchor);
        R o[3];
        for (int k = 0; k < 3; k++) o[k] = x[k];
        if (off) {
          if (stale) in.mat(quat, mat);
          R v[3];
          in.turn(mat, anchor, v);
          for (int k = 0; k < 3; k++) o[k] = x[k] + v[k];
        }
        R turn[4];
        if (type == JNT_HINGE) {
          R s, co;
          sincos_(bc<R>(0.5) * (w.qpos[q] - varied(m, w, m.vary_qpos0, q, m.qpos0[q])), s, co);
          turn[0] = co;
          for (int k = 0; k < 3; k++) turn[1 + k] = s * bc<R>(axis[k]);
        } else {
          for (int k = 0; k < 4; k++) turn[k] = w.qpos[q + k];
          quat_unit(turn);
        }
        in.mul(quat, turn, quat);
        in.mat(quat, mat);
        stale = false;
        if (type == JNT_HINGE) in.axis(mat, axis, w.cdof + 6 * d);
        for (int k = 0; k < 3; k++) w.cdof[6 * d + 3 + k] = o[k];
        if (off) {
          R v[3];
          in.turn(mat, anchor, v);
          for (int k = 0; k < 3; k++) x[k] = o[k] - v[k];
        }
      }
    }
    if (stale) in.mat(quat, mat);
    // The root's origin becomes the tree's reference point.
    R shift[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
    if (p < 0) {
      for (int k = 0; k < 3; k++) {
        shift[k] = x[k];
        w.ref[3 * m.body_tree[b] + k] = far[k] + x[k];
        x[k] = bc<R>(0);
      }
    }
    for (int j = j0; j < j1; j++) {
      const int type = m.jnt_type[j];
      int d = m.jnt_dof[j];
      if (type == JNT_SLIDE) {
        for (int k = 0; k < 3; k++) {
          w.cdof[6 * d + 3 + k] = w.cdof[6 * d + k];
          w.cdof[6 * d + k] = bc<R>(0);
        }
      } else if (type == JNT_HINGE) {
        R o[3];
        for (int k = 0; k < 3; k++) o[k] = w.cdof[6 * d + 3 + k] - shift[k];
        in.moment(o, w.cdof + 6 * d, w.cdof + 6 * d + 3);
      } else {
        if (type == JNT_FREE) {
          for (int i = 0; i < 3; i++)
            for (int k = 0; k < 6; k++) w.cdof[6 * (d + i) + k] = bc<R>(k == 3 + i ? 1 : 0);
          d += 3;
        }
        R o[3];
        for (int k = 0; k < 3; k++) o[k] = w.cdof[6 * d + 3 + k] - shift[k];
        for (int i = 0; i < 3; i++) {
          for (int k = 0; k < 3; k++) w.cdof[6 * (d + i) + k] = mat[3 * k + i];
          cross(o, w.cdof + 6 * (d + i), w.cdof + 6 * (d + i) + 3);
        }
      }
    }
  }
}

template<class R, class M> OSTLER_FN void kinematics(const M& m, Work<R, M>& w) {
  where_it_moves(m, [&](const auto& in) OSTLER_INLINE { kinematics(in, m, w); });
}

// The part of a body's spatial inertia that motion in a plane meets.
template<int Axis, class R, class M, class Real>
OSTLER_FN void spatial_inertia(const Plane<Axis>& in, const Work<R, M>& w, int b, Real of, const Real* mcom, const Real* c, R* I) {
  constexpr int r = Plane<Axis>::r, lo = Plane<Axis>::lo, hi = Plane<Axis>::hi;
  const R mass = in_lanes<R>(of);
  const R* x = w.xpos + 3 * b;
  R h[3], g[3];
  in.turn(w.xmat + 9 * b, mcom, h);
  g[lo] = fma(mass, x[lo], h[lo]), g[hi] = fma(mass, x[hi], h[hi]);
  const R rr = fma(x[hi], g[hi], x[lo] * g[lo]) + fma(x[hi], h[hi], x[lo] * h[lo]);
  I[r] = in_lanes<R>(c[r]) + rr;
  I[6 + lo] = g[lo], I[6 + hi] = g[hi], I[9] = mass;
}
// Spatial inertia of what moves with body b, world axes, about its tree's reference;
// mass, mcom and c as body_mass, body_mcom and body_inertia.
template<class R, class M, class Real>
OSTLER_FN void spatial_inertia(const Space&, const Work<R, M>& w, int b, Real of, const Real* mcom, const Real* c, R* I) {
  const R* Q = w.xmat + 9 * b;
  const R s[6] = {in_lanes<R>(c[0]), in_lanes<R>(c[1]), in_lanes<R>(c[2]), in_lanes<R>(c[3]), in_lanes<R>(c[4]), in_lanes<R>(c[5])};
  const R rows[9] = {s[0], s[3], s[4], s[3], s[1], s[5], s[4], s[5], s[2]};
  R T[9];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) T[3 * i + j] = dot3(rows + 3 * j, Q + 3 * i);
  I[0] = dot3(T, Q), I[1] = dot3(T + 3, Q + 3), I[2] = dot3(T + 6, Q + 6);
  I[3] = dot3(T, Q + 3), I[4] = dot3(T, Q + 6), I[5] = dot3(T + 3, Q + 6);
  R h0[3], g[3];
  mat_con(Q, mcom, h0);
  const R mass = in_lanes<R>(of);
  const R* r = w.xpos + 3 * b;
  for (int k = 0; k < 3; k++) g[k] = fma(mass, r[k], h0[k]);
  // Parallel axes: I + (2 r.h0 + m r.r) 1 - (r g' + h0 r')
  const R rr = dot3(r, g) + dot3(r, h0);
  I[0] = I[0] + (rr - fma(r[0], g[0], h0[0] * r[0]));
  I[1] = I[1] + (rr - fma(r[1], g[1], h0[1] * r[1]));
  I[2] = I[2] + (rr - fma(r[2], g[2], h0[2] * r[2]));
  I[3] = I[3] - fma(r[0], g[1], h0[0] * r[1]);
  I[4] = I[4] - fma(r[0], g[2], h0[0] * r[2]);
  I[5] = I[5] - fma(r[1], g[2], h0[1] * r[2]);
  for (int k = 0; k < 3; k++) I[6 + k] = g[k];
  I[9] = mass;
}
template<class S, class R, class M> OSTLER_FN void body_inertia(const S& in, const M& m, const Work<R, M>& w, int b, R* I) {
  if (varies(m, m.vary_body, b)) {
    const R* own = w.vary + m.vary_body[b];
    spatial_inertia(in, w, b, own[0], own + 1, own + 4, I);
  } else {
    spatial_inertia(in, w, b, m.body_mass[b], m.body_mcom + 3 * b, m.body_inertia + 6 * b, I);
  }
}

// Velocities of the bodies, their accelerations at qacc = 0 (gravity as the
// world's), the forces these need; then inward: bias forces and the mass matrix.
template<class S, class R, class M> OSTLER_FN_PART void inertia_and_bias(const S& in, const M& m, Work<R, M>& w) {
  R down[3];
  gravity(m, w, down);
  for (int b = 0; b < m.nb; b++) {
    const int p = m.body_parent[b];
    R* v = w.vel + 6 * b;
    R* a = w.acc + 6 * b;
    R* I = w.inertia + 10 * b;
    body_inertia(in, m, w, b, I);
    if (p < 0) {
      for (int k = 0; k < 6; k++) v[k] = a[k] = bc<R>(0);
      for (int k = 0; k < 3; k++) a[3 + k] = -down[k];
    } else {
      for (int k = 0; k < 6; k++) v[k] = w.vel[6 * p + k], a[k] = w.acc[6 * p + k];
    }
    for (int j = m.body_jnt[b]; j < m.body_jnt[b + 1]; j++) {
      const int type = m.jnt_type[j];
      int d = m.jnt_dof[j], n = 1;
      if (type == JNT_FREE) {
        for (int k = 0; k < 3; k++) v[3 + k] = v[3 + k] + w.qvel[d + k];
        d += 3, n = 3;
      } else if (type == JNT_BALL) {
        n = 3;
      }
      R u[6];
      in.each([&](int k) OSTLER_INLINE { u[k] = w.cdof[6 * d + k] * w.qvel[d]; });
      for (int i = 1; i < n; i++)
        in.each([&](int k) OSTLER_INLINE { u[k] = fma(w.cdof[6 * (d + i) + k], w.qvel[d + i], u[k]); });
      // The first joint of a root turns about axes at rest.
      if (!(p < 0 && j == m.body_jnt[b] && type != JNT_FREE)) in.motion(v, u, a);
      in.each([&](int k) OSTLER_INLINE { v[k] = v[k] + u[k]; });
    }
    R Iv[6];
    in.inertia(I, v, Iv);
    in.inertia(I, a, w.frc + 6 * b);
    in.force(v, Iv, w.frc + 6 * b);
  }
  for (int b = m.nb - 1; b >= 0; b--) {
    const R* I = w.inertia + 10 * b;
    for (int d = m.body_dof[b]; d < m.body_dof[b + 1]; d++) {
      const R* s = w.cdof + 6 * d;
      w.smooth[d] = -in.dot(s, w.frc + 6 * b);
      R u[6];
      in.inertia(I, s, u);
      for (int e = d; e >= 0; e = m.dof_parent[e]) w.mass[tri(d) + e] = in.dot(w.cdof + 6 * e, u);
      w.mass[tri(d) + d] = w.mass[tri(d) + d] + varied(m, w, m.vary_armature, d, m.dof_armature[d]);
    }
    const int p = m.body_parent[b];
    if (p >= 0) {
      in.each([&](int k) OSTLER_INLINE { w.frc[6 * p + k] = w.frc[6 * p + k] + w.frc[6 * b + k]; });
      in.each_inertia([&](int k) OSTLER_INLINE { w.inertia[10 * p + k] = w.inertia[10 * p + k] + I[k]; });
    }
  }
}
template<class R, class M> OSTLER_FN void inertia_and_bias(const M& m, Work<R, M>& w) {
  where_it_moves(m, [&](const auto& in) OSTLER_INLINE { inertia_and_bias(in, m, w); });
}

// Inertia of tendons: couples only degrees of freedom of which one moves the other,
// as in MuJoCo.
template<class R, class M> OSTLER_FN void tendon_inertia(const M& m, Work<R, M>& w) {
  for (int t = 0; t < m.nten; t++) {
    if (m.ten_armature[t] == 0) continue;
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++) {
      const int d = m.ten_dof[i];
      for (int j = m.ten_adr[t]; j < m.ten_adr[t + 1]; j++) {
        const int e = m.ten_dof[j];
        bool kept = d == e;
        for (int a = m.mrow_adr[d]; a < m.mrow_adr[d + 1]; a++) kept |= m.mrow_col[a] == e;
        if (kept) w.mass[tri(d) + e] = fma(bc<R>(m.ten_armature[t]) * w.ten_j[i], w.ten_j[j], w.mass[tri(d) + e]);
      }
    }
  }
}

// Forces that carry the weight of bodies with `gravcomp`, added to f: those of kind
// `who` of dof_grav.
template<class R, class M> OSTLER_FN void weight_compensation(const M& m, const Work<R, M>& w, int who, R* f) {
  for (int g = 0; g < m.ngrav; g++) {
    const int b = m.grav_body[g];
    const double mass = m.grav_mass[g];
    R down[3], at[3], wrench[6];  // at: mass times its centre
    gravity(m, w, down);
    mat_con(w.xmat + 9 * b, m.grav_mcom + 3 * g, at);
    for (int k = 0; k < 3; k++) {
      at[k] = fma(bc<R>(mass), w.xpos[3 * b + k], at[k]);
      wrench[3 + k] = -down[k];
    }
    cross(at, wrench + 3, wrench);
    for (int k = 0; k < 3; k++) wrench[3 + k] = bc<R>(-mass) * down[k];
    for (int e = m.body_dof[b + 1] - 1; e >= 0; e = m.dof_parent[e])
      if (m.dof_grav[e] == who) f[e] = f[e] + dot6(w.cdof + 6 * e, wrench);
  }
}

// Body velocities for generalised velocities x.
template<class S, class R, class M> OSTLER_FN_PART void body_velocities(const S& in, const M& m, const Work<R, M>& w, const R* x, R* out) {
  for (int b = 0; b < m.nb; b++) {
    const int p = m.body_parent[b];
    R v[6];
    for (int k = 0; k < 6; k++) v[k] = p < 0 ? bc<R>(0) : out[6 * p + k];
    for (int d = m.body_dof[b]; d < m.body_dof[b + 1]; d++)
      in.each([&](int k) OSTLER_INLINE { v[k] = fma(w.cdof[6 * d + k], x[d], v[k]); });
    for (int k = 0; k < 6; k++) out[6 * b + k] = v[k];
  }
}
template<class R, class M> OSTLER_FN void body_velocities(const M& m, const Work<R, M>& w, const R* x, R* out) {
  where_it_moves(m, [&](const auto& in) OSTLER_INLINE { body_velocities(in, m, w, x, out); });
}
