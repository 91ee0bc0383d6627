// Passive forces (springs, dampers, the medium): added to `smooth`, the generalised
// forces but the constraints'. Source: MuJoCo, Computation, "Passive forces".
#pragma once

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
    const R len = w.ten_len[t], vel = tendon_velocity(m, w, t);
    const R lo = bc<R>(m.ten_lo[t]), hi = bc<R>(m.ten_hi[t]);
    const R stretch = sel(len > hi, hi - len, sel(len < lo, lo - len, bc<R>(0)));
    const R force = fnma(bc<R>(m.ten_damping[t]), vel, bc<R>(m.ten_stiffness[t]) * stretch);
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++)
      w.smooth[m.ten_dof[i]] = fma(w.ten_j[i], force, w.smooth[m.ten_dof[i]]);
  }
  if (m.nfluid > 0) fluid(m, w);
}

// Everything about a state that constraints do not touch.
template<class R, class M> OSTLER_FN void smooth_dynamics(const M& m, Work<R, M>& w) {
  kinematics(m, w);
  inertia_and_bias(m, w);
  tendons(m, w);
  passive(m, w);
  actuation(m, w);
}
