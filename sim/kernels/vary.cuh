// Numbers of the model that differ between environments. `vary` holds them, behind them what
// follows from them: the inertia of moving bodies that are put together of several of the
// model's, and inverse weights. Everything else is compiled in.
#pragma once

enum { MIX_TABLE, MIX_FIRST, MIX_SECOND, MIX_LARGER };

// Whether entry `i` of a table varies, and its number.
template<class M> OSTLER_FN bool varies(const M& m, const int* at, int i) { return m.nvary > 0 && at[i] >= 0; }
template<class R, class M> OSTLER_FN R varied(const M& m, const Work<R, M>& w, const int* at, int i, double constant) {
  return varies(m, at, i) ? w.vary[at[i]] : bc<R>(constant);
}

template<class R, class M> OSTLER_FN void gravity(const M& m, const Work<R, M>& w, R* g) {
  if (m.gravity_at > 0) {
    for (int k = 0; k < 3; k++) g[k] = w.vary[m.gravity_at - 1 + k];
  } else {
    g[0] = bc<R>(m.gravity_x), g[1] = bc<R>(m.gravity_y), g[2] = bc<R>(m.gravity_z);
  }
}

// Inverse weights of a row or a contact, added up.
template<class R, class M> OSTLER_FN R weights(const M&, const Work<R, M>& w, const int* at) {
  R sum = bc<R>(0);
  for (int k = 0; k < 2; k++)
    if (at[k] >= 0) sum = sum + w.vary[at[k]];
  return max_(sum, bc<R>(Tiny<R>::value));
}

// Friction of a contact: its pair's, or its own in every environment.
template<class R, class M> struct Rub {
  const M& m;
  int c;
  const R* own;  // null: the pair's
  // Coefficients of directions 1 .. dim - 1.
  OSTLER_FN void mus(int dim, R* o) const {
    if (own)
      for (int i = 1; i < dim; i++) o[i - 1] = own[i < 3 ? RUB_SLIDE : i < 4 ? RUB_TWIST : RUB_ROLL];
    else
      for (int i = 1; i < dim; i++) o[i - 1] = bc<R>(m.pair_mu[5 * c + i - 1]);
  }
  // D of those directions over D of the normal (elliptic).
  OSTLER_FN void ratios(int dim, R* o) const {
    if (own)
      for (int i = 1; i < dim; i++) o[i - 1] = i < 3 ? bc<R>(m.impratio) : own[i < 4 ? RUB_TWIST_D : RUB_ROLL_D];
    else
      for (int i = 1; i < dim; i++) o[i - 1] = bc<R>(m.pair_dfri[5 * c + i - 1]);
  }
  // Sliding friction as the elliptic cone has it, its square, and 1 / (its square (1 + it)).
  OSTLER_FN R cone() const { return own ? own[RUB_CONE] : bc<R>(m.pair_cone[3 * c]); }
  OSTLER_FN R cone2() const { return own ? own[RUB_CONE2] : bc<R>(m.pair_cone[3 * c + 1]); }
  OSTLER_FN R sharp() const { return own ? own[RUB_SHARP] : bc<R>(m.pair_cone[3 * c + 2]); }
};

// That of contact k of those kept by body, or of those with a Jacobian.
template<class R, class M> OSTLER_FN Rub<R, M> rub_of(const M& m, const Work<R, M>& w, bool world, int k, int c) {
  return {m, c, m.rubs && m.pair_mix[c] ? (world ? w.wc_mu : w.pc_mu) + RUB * k : nullptr};
}

// Friction of a geom, and of a pair of geoms as MuJoCo mixes it, with what cones make of it.
template<class R, class M> OSTLER_FN R geom_friction(const M& m, const Work<R, M>& w, int g, int k) {
  return m.vary_friction[g] >= 0 ? w.vary[m.vary_friction[g] + k] : bc<R>(m.cg_friction[3 * g + k]);
}
template<class R, class M> OSTLER_FN void mixed_friction(const M& m, const Work<R, M>& w, int c, R* own) {
  const int mix = m.pair_mix[c], g1 = m.pair_g1[c], g2 = m.pair_g2[c];
  for (int k = 0; k < 3; k++) {
    R x = geom_friction(m, w, mix == MIX_SECOND ? g2 : g1, k);
    if (mix == MIX_LARGER) x = max_(x, geom_friction(m, w, g2, k));
    own[k] = max_(x, bc<R>(1e-5));
  }
  if (!m.elliptic) return;
  for (int k = RUB_TWIST; k <= RUB_ROLL; k++) {
    const R part = own[k] / own[RUB_SLIDE];
    own[k - RUB_TWIST + RUB_TWIST_D] = bc<R>(m.impratio) * part * part;
  }
  own[RUB_CONE] = own[RUB_SLIDE] * bc<R>(m.impratio_root);
  own[RUB_CONE2] = own[RUB_CONE] * own[RUB_CONE];
  own[RUB_SHARP] = recip_(own[RUB_CONE2] * (bc<R>(1) + own[RUB_CONE2]));
}

// Centre of mass of a piece in the frame of the moving body that carries it.
template<class R, class M> OSTLER_FN void piece_centre(const M& m, const Work<R, M>& w, int p, R* at) {
  R com[3];
  for (int k = 0; k < 3; k++) com[k] = m.piece_com[p] >= 0 ? w.vary[m.piece_com[p] + k] : bc<R>(m.piece_own[10 * p + 1 + k]);
  con_vec(m.piece_mat + 9 * p, com, at);
  for (int k = 0; k < 3; k++) at[k] = at[k] + bc<R>(m.piece_pos[3 * p + k]);
}

// Forces and torques from outside at bodies' centres of mass, in the world's axes, added to f.
template<class R, class M> OSTLER_FN void outside_forces(const M& m, const Work<R, M>& w, R* f) {
  for (int i = 0; i < m.nforced; i++) {
    const int b = m.forced_body[i], p = m.forced_piece[i];
    const R* given = w.vary + m.forced_at[i];
    R at[3], wrench[6];
    if (p >= 0) piece_centre(m, w, p, at);
    else for (int k = 0; k < 3; k++) at[k] = bc<R>(m.forced_pos[3 * i + k]);
    R arm[3];
    mat_vec(w.xmat + 9 * b, at, arm);
    for (int k = 0; k < 3; k++) arm[k] = arm[k] + w.xpos[3 * b + k], wrench[k] = given[3 + k], wrench[3 + k] = given[k];
    cross_add(arm, wrench + 3, wrench);
    for (int e = m.body_dof[b + 1] - 1; e >= 0; e = m.dof_parent[e]) f[e] = f[e] + dot6(w.cdof + 6 * e, wrench);
  }
}
