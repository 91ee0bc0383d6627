// Passive forces (springs, dampers, the medium): added to `smooth`, the generalised
// forces but the constraints'. Source: MuJoCo, Computation, "Passive forces".
#pragma once

template<class R, class M> OSTLER_FN_PART void passive(const M& m, Work<R, M>& w) {
  for (int d = 0; d < m.nv; d++)
    if (m.dof_damping[d] != 0 || varies(m, m.vary_damping, d))
      w.smooth[d] = fnma(varied(m, w, m.vary_damping, d, m.dof_damping[d]), w.qvel[d], w.smooth[d]);
  for (int j = 0; j < m.nj; j++) {
    if (m.jnt_stiffness[j] == 0 && !varies(m, m.vary_stiffness, j)) continue;
    const R stiff = varied(m, w, m.vary_stiffness, j, m.jnt_stiffness[j]);
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
    const R force = tendon_passive(m, w, t);
    for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++)
      w.smooth[m.ten_dof[i]] = fma(w.ten_j[i], force, w.smooth[m.ten_dof[i]]);
  }
  weight_compensation(m, w, 0, w.smooth);
  outside_forces(m, w, w.smooth);
  if (m.nfluid + m.nell > 0) fluid(m, w);
}

// Everything about a state that constraints do not touch.
template<class R, class M> OSTLER_FN void smooth_dynamics(const M& m, Work<R, M>& w) {
  kinematics(m, w);
  inertia_and_bias(m, w);
  if (m.nten > 0) tendons(m, w);
  tendon_inertia(m, w);
  if (m.nten > 0) tendon_bias(m, w);
  passive(m, w);
  actuation(m, w);
}
