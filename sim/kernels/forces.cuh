// Passive forces (springs, dampers, the medium) and actuators: added to
// `smooth`, the generalised forces but the constraints'.
// Source: MuJoCo, Computation, "Passive forces" and "Actuation model".
#pragma once

// Torque-free rotation that takes quaternion b to a, as a rotation vector in b's
// frame (radians, length at most pi).
template<class R> OSTLER_FN void quat_sub(const R* a, const R* b, R* o) {
  const R inv[4] = {b[0], -b[1], -b[2], -b[3]};
  R d[4];
  quat_mul(inv, a, d);
  const R n2 = dot3(d + 1, d + 1);
  const R n = sqrt_(n2);
  R angle = bc<R>(2) * atan2_(n, d[0]);
  angle = sel(angle > bc<R>(3.14159265358979323846), angle - bc<R>(6.28318530717958647692), angle);
  const R s = angle / max_(n, bc<R>(Tiny<R>::value));
  for (int k = 0; k < 3; k++) o[k] = d[1 + k] * s;
}

// Drag of the medium on a body as if it were the box of its inertia.
template<class R, class M> OSTLER_FN void fluid(const M& m, Work<R, M>& w) {
  const R pi = bc<R>(3.14159265358979323846);
  for (int f = 0; f < m.nfluid; f++) {
    const int b = m.fluid_body[f];
    const R* v = w.vel + 6 * b;
    R c[3], axes[9];
    mat_con(w.xmat + 9 * b, m.fluid_pos + 3 * f, c);
    for (int k = 0; k < 3; k++) c[k] = c[k] + w.xpos[3 * b + k];
    for (int i = 0; i < 3; i++)  // axes[i] is the i-th principal axis
      for (int k = 0; k < 3; k++)
        axes[3 * i + k] = fma(w.xmat[9 * b + 3 * k + 2], bc<R>(m.fluid_mat[9 * f + 6 + i]),
                              fma(w.xmat[9 * b + 3 * k + 1], bc<R>(m.fluid_mat[9 * f + 3 + i]),
                                  w.xmat[9 * b + 3 * k] * bc<R>(m.fluid_mat[9 * f + i])));
    R lin[3] = {v[3] - bc<R>(m.wind_x), v[4] - bc<R>(m.wind_y), v[5] - bc<R>(m.wind_z)};
    cross_add(v, c, lin);
    R ang_l[3], lin_l[3], frc[3], trq[3];
    mat_vec(axes, v, ang_l);
    mat_vec(axes, lin, lin_l);
    const auto* box = m.fluid_box + 3 * f;
    const double bx = box[0], by = box[1], bz = box[2];
    const double d = (bx + by + bz) / 3, p = 3.14159265358979323846;
    const double area[3] = {by * bz, bx * bz, bx * by};
    const double bx4 = bx * bx * bx * bx, by4 = by * by * by * by, bz4 = bz * bz * bz * bz;
    const double turn[3] = {bx * (by4 + bz4), by * (bx4 + bz4), bz * (bx4 + by4)};
    for (int k = 0; k < 3; k++) {
      trq[k] = ang_l[k] * bc<R>(-p * d * d * d * m.viscosity);
      frc[k] = lin_l[k] * bc<R>(-3 * p * d * m.viscosity);
      frc[k] = frc[k] - bc<R>(0.5 * m.density * area[k]) * abs_(lin_l[k]) * lin_l[k];
      trq[k] = trq[k] - bc<R>(m.density * turn[k] / 64) * abs_(ang_l[k]) * ang_l[k];
    }
    R wrench[6];
    for (int k = 0; k < 3; k++) {
      wrench[k] = fma(axes[6 + k], trq[2], fma(axes[3 + k], trq[1], axes[k] * trq[0]));
      wrench[3 + k] = fma(axes[6 + k], frc[2], fma(axes[3 + k], frc[1], axes[k] * frc[0]));
    }
    cross_add(c, wrench + 3, wrench);
    for (int e = m.body_dof[b + 1] - 1; e >= 0; e = m.dof_parent[e])
      w.smooth[e] = w.smooth[e] + dot6(w.cdof + 6 * e, wrench);
  }
  (void)pi;
}

template<class R, class M> OSTLER_FN void passive(const M& m, Work<R, M>& w) {
  for (int d = 0; d < m.nv; d++)
    if (m.dof_damping[d] != 0) w.smooth[d] = fnma(bc<R>(m.dof_damping[d]), w.qvel[d], w.smooth[d]);
  for (int j = 0; j < m.nj; j++) {
    if (m.jnt_stiffness[j] == 0) continue;
    const R stiff = bc<R>(m.jnt_stiffness[j]);
    const int type = m.jnt_type[j];
    int q = m.jnt_qpos[j], d = m.jnt_dof[j];
    if (type == JNT_FREE)
      for (int k = 0; k < 3; k++, q++, d++)
        w.smooth[d] = fnma(stiff, w.qpos[q] - bc<R>(m.qpos_spring[q]), w.smooth[d]);
    if (type == JNT_FREE || type == JNT_BALL) {
      R rest[4], now[4], dif[3];
      for (int k = 0; k < 4; k++) rest[k] = bc<R>(m.qpos_spring[q + k]), now[k] = w.qpos[q + k];
      quat_unit(now);
      quat_sub(now, rest, dif);
      for (int k = 0; k < 3; k++) w.smooth[d + k] = fnma(stiff, dif[k], w.smooth[d + k]);
    } else {
      w.smooth[d] = fnma(stiff, w.qpos[q] - bc<R>(m.qpos_spring[q]), w.smooth[d]);
    }
  }
  for (int t = 0; t < m.nten; t++) {
    if (m.ten_stiffness[t] == 0 && m.ten_damping[t] == 0) continue;
    R len = bc<R>(0), vel = bc<R>(0);
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++) {
      len = fma(bc<R>(m.ten_coef[i]), w.qpos[m.ten_qpos[i]], len);
      vel = fma(bc<R>(m.ten_coef[i]), w.qvel[m.ten_dof[i]], vel);
    }
    const R lo = bc<R>(m.ten_lo[t]), hi = bc<R>(m.ten_hi[t]);
    const R stretch = sel(len > hi, hi - len, sel(len < lo, lo - len, bc<R>(0)));
    const R force = fnma(bc<R>(m.ten_damping[t]), vel, bc<R>(m.ten_stiffness[t]) * stretch);
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++)
      w.smooth[m.ten_dof[i]] = fma(bc<R>(m.ten_coef[i]), force, w.smooth[m.ten_dof[i]]);
  }
  if (m.nfluid > 0) fluid(m, w);
}

// Activation after one time step.
template<class R, class M> OSTLER_FN R next_act(const M& m, const Work<R, M>& w, int u) {
  const int s = m.act_state[u];
  const R a = fma(w.act_dot[s], bc<R>(m.act_step[u]), w.act[s]);
  return max_(min_(a, bc<R>(m.act_hi[u])), bc<R>(m.act_lo[u]));
}

// Unlimited ranges are +-UNLIMITED in the tables.
#define OSTLER_UNLIMITED 1e29

template<class R, class M> OSTLER_FN void actuation(const M& m, Work<R, M>& w) {
  R* sum = w.grad; // free at this stage
  for (int d = 0; d < m.nv; d++) sum[d] = bc<R>(0);
  for (int u = 0; u < m.nu; u++) {
    R input = w.ctrl[u];
    if (m.act_ctrllo[u] > -OSTLER_UNLIMITED) input = max_(input, bc<R>(m.act_ctrllo[u]));
    if (m.act_ctrlhi[u] < OSTLER_UNLIMITED) input = min_(input, bc<R>(m.act_ctrlhi[u]));
    const int s = m.act_state[u];
    if (s >= 0) {
      w.act_dot[s] = m.act_dyn[u] == 1 ? input : (input - w.act[s]) * bc<R>(1 / m.act_prm[u]);
      input = m.act_early[u] ? next_act(m, w, u) : w.act[s];
    }
    const auto* g = m.act_gain + 3 * u;
    const auto* c = m.act_bias + 3 * u;
    R len = bc<R>(0), vel = bc<R>(0);
    if (g[1] != 0 || g[2] != 0 || c[1] != 0 || c[2] != 0) {
      for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++) {
        const R k = bc<R>(m.act_coef[i]);
        if (m.act_qpos[i] >= 0) len = fma(k, w.qpos[m.act_qpos[i]], len);
        vel = fma(k, w.qvel[m.act_dof[i]], vel);
      }
    }
    const R gain = fma(bc<R>(g[2]), vel, fma(bc<R>(g[1]), len, bc<R>(g[0])));
    const R bias = fma(bc<R>(c[2]), vel, fma(bc<R>(c[1]), len, bc<R>(c[0])));
    R force = fma(gain, input, bias);
    if (m.act_forcelo[u] > -OSTLER_UNLIMITED) force = max_(force, bc<R>(m.act_forcelo[u]));
    if (m.act_forcehi[u] < OSTLER_UNLIMITED) force = min_(force, bc<R>(m.act_forcehi[u]));
    w.act_force[u] = force;
    for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++)
      sum[m.act_dof[i]] = fma(bc<R>(m.act_coef[i]), force, sum[m.act_dof[i]]);
  }
  for (int d = 0; d < m.nv; d++) {
    R q = sum[d];
    if (m.dof_actlo[d] > -OSTLER_UNLIMITED) q = max_(q, bc<R>(m.dof_actlo[d]));
    if (m.dof_acthi[d] < OSTLER_UNLIMITED) q = min_(q, bc<R>(m.dof_acthi[d]));
    w.smooth[d] = w.smooth[d] + q;
  }
}

// Everything about a state that constraints do not touch.
template<class R, class M> OSTLER_FN void smooth_dynamics(const M& m, Work<R, M>& w) {
  kinematics(m, w);
  inertia_and_bias(m, w);
  passive(m, w);
  actuation(m, w);
}
