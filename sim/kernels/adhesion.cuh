// Forces that pull bodies together where they touch: of actuators, which divide theirs between
// the contacts of a body, and of geoms that stick, each contact by itself. They are added to
// `smooth` once contacts are known. Source: MuJoCo, mj_transmission (mjTRN_BODY), mj_adhesion,
// mj_adhesionRef.
#pragma once

// Adds a force along a contact's normal, on both bodies, to what degrees of freedom feel.
template<class R, class M> OSTLER_FN void press(const M& m, const Work<R, M>& w, bool world, int k, R force, R* sum) {
  if (world) {
    const int b = m.cg_body[m.pair_g2[w.wc_pair[k]]];
    R x[6];
    for (int i = 0; i < 3; i++) x[3 + i] = w.wc_frame[6 * k + i] * force;
    cross(w.wc_pos + 3 * k, x + 3, x);
    for (int e = m.body_dof[b + 1] - 1; e >= 0; e = m.dof_parent[e]) sum[e] = sum[e] + dot6(w.cdof + 6 * e, x);
    return;
  }
  const int c = w.pc_pair[k], dim = m.pair_dim[c];
  const R* J = w.pc_j + (unsigned long)m.npdim * m.npath * k;
  for (int e = m.pair_path[c]; e < m.pair_path[c + 1]; e++, J += dim) sum[m.path_dof[e]] = fma(J[0], force, sum[m.path_dof[e]]);
}

// What a contact of stiffness d pulls by itself.
template<class R, class M> OSTLER_FN R pull_of(const M& m, int c, R d) { return sel(d > bc<R>(0), bc<R>(m.pair_pull[c]), bc<R>(0)); }

template<class R, class M> OSTLER_FN_BIG void adhere(const M& m, Work<R, M>& w) {
  const R zero = bc<R>(0), one = bc<R>(1);
  if (m.sticky)
    for (int k = 0; k < w.nwc + w.npc; k++) {
      const bool world = k < w.nwc;
      const int i = world ? k : k - w.nwc, c = world ? w.wc_pair[i] : w.pc_pair[i];
      if (m.pair_pull[c] != 0) press(m, w, world, i, -pull_of(m, c, world ? w.wc_d[i] : w.pc_d[i]), w.smooth);
    }
  if (m.nstick == 0) return;
  R* sum = w.grad;  // free at this stage
  for (int d = 0; d < m.nv; d++) sum[d] = w.act_sum[d];
  for (int s = 0; s < m.nstick; s++) {
    const auto own = [&](int c) OSTLER_INLINE {
      return m.stick_geom[s * m.ncg + m.pair_g1[c]] || m.stick_geom[s * m.ncg + m.pair_g2[c]];
    };
    R count = zero;
    for (int k = 0; k < w.nwc; k++)
      if (own(w.wc_pair[k])) count = count + w.wc_there[k];
    for (int k = 0; k < w.npc; k++)
      if (own(w.pc_pair[k])) count = count + w.pc_there[k];
    const R share = -w.act_force[m.stick_act[s]] / max_(count, one);
    for (int k = 0; k < w.nwc; k++)
      if (own(w.wc_pair[k])) press(m, w, true, k, share * w.wc_there[k], sum);
    for (int k = 0; k < w.npc; k++)
      if (own(w.pc_pair[k])) press(m, w, false, k, share * w.pc_there[k], sum);
  }
  for (int d = 0; d < m.nv; d++) w.smooth[d] = w.smooth[d] + (within_range(m, d, sum[d]) - within_range(m, d, w.act_sum[d]));
  hold_back(m, w, sum);
}
