// What follows from the numbers that vary: MuJoCo's mj_setConst. It runs where they were drawn,
// not in every step. The mean inertia, which only scales the solver's tolerance, stays that of
// the model.
#pragma once

template<class R, class M> struct Straight;  // hooks.cuh

enum { WEIGH_SHIFT, WEIGH_TURN, WEIGH_DOF, WEIGH_TENDON, WEIGH_MASS };

// Mass, first moments and inertia (about the moving body's origin) of a piece, added to `lump`.
template<class R, class M> OSTLER_FN void add_piece(const M& m, const Work<R, M>& w, int p, R* lump) {
  const R mass = m.piece_mass[p] >= 0 ? w.vary[m.piece_mass[p]] : bc<R>(m.piece_own[10 * p]);
  R own[6], at[3];
  piece_centre(m, w, p, at);
  for (int k = 0; k < 6; k++) own[k] = m.piece_tensor[p] >= 0 ? w.vary[m.piece_tensor[p] + k] : bc<R>(m.piece_own[10 * p + 4 + k]);
  if (m.piece_moments[p] >= 0) {
    const auto* a = m.piece_axes + 9 * p;
    const R* moment = w.vary + m.piece_moments[p];
    const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
    for (int k = 0; k < 6; k++) {
      own[k] = bc<R>(0);
      for (int i = 0; i < 3; i++) own[k] = fma(moment[i], bc<R>((double)a[3 * row[k] + i] * a[3 * col[k] + i]), own[k]);
    }
  }
  // Q own Q'
  const auto* q = m.piece_mat + 9 * p;
  const R full[9] = {own[0], own[3], own[4], own[3], own[1], own[5], own[4], own[5], own[2]};
  R half[9], turned[9];
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      R sum = bc<R>(0);
      for (int k = 0; k < 3; k++) sum = fma(bc<R>(q[3 * i + k]), full[3 * k + j], sum);
      half[3 * i + j] = sum;
    }
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      R sum = bc<R>(0);
      for (int k = 0; k < 3; k++) sum = fma(half[3 * i + k], bc<R>(q[3 * j + k]), sum);
      turned[3 * i + j] = sum;
    }
  const R square = dot3(at, at);
  lump[0] = lump[0] + mass;
  for (int k = 0; k < 3; k++) {
    lump[1 + k] = fma(mass, at[k], lump[1 + k]);
    lump[4 + k] = lump[4 + k] + fma(mass, fnma(at[k], at[k], square), turned[4 * k]);
  }
  lump[7] = lump[7] + fnma(mass, at[0] * at[1], turned[1]);
  lump[8] = lump[8] + fnma(mass, at[0] * at[2], turned[2]);
  lump[9] = lump[9] + fnma(mass, at[1] * at[2], turned[5]);
}

// J M^-1 J' of the row in `step`, with the factor of M in `hess`.
template<class R, class M> OSTLER_FN R inverse_weight(const M& m, Work<R, M>& w) {
  R sum = bc<R>(0);
  for (int k = m.nv - 1; k >= 0; k--) {
    const R x = w.step[k];
    const R* row = w.hess + tri(k);
    for (int a = m.mrow_adr[k]; a < m.mrow_adr[k + 1]; a++) w.step[m.mrow_col[a]] = fnma(row[m.mrow_col[a]], x, w.step[m.mrow_col[a]]);
    sum = fma(x * x, row[k], sum);
  }
  return sum;
}

template<class R, class M> OSTLER_FN R weigh(const M& m, Work<R, M>& w, int i) {
  const int kind = m.weigh_kind[i], what = m.weigh_what[i];
  const R zero = bc<R>(0);
  if (kind == WEIGH_MASS) return recip_(max_(w.vary[m.nvary + 10 * what], bc<R>(Tiny<R>::value)));
  R at[3] = {zero, zero, zero}, sum = zero;
  if (kind == WEIGH_SHIFT) {
    R centre[3];
    if (m.weigh_piece[i] >= 0) piece_centre(m, w, m.weigh_piece[i], centre);
    else for (int k = 0; k < 3; k++) centre[k] = bc<R>(m.weigh_pos[3 * i + k]);
    mat_vec(w.xmat + 9 * what, centre, at);
    for (int k = 0; k < 3; k++) at[k] = at[k] + w.xpos[3 * what + k];
  }
  const int count = m.weigh_count[i];
  for (int k = 0; k < count; k++) {
    for (int d = 0; d < m.nv; d++) w.step[d] = zero;
    if (kind == WEIGH_DOF) {
      w.step[what + k] = bc<R>(1);
    } else if (kind == WEIGH_TENDON) {
      for (int e = m.ten_adr[what]; e < m.ten_adr[what + 1]; e++) w.step[m.ten_dof[e]] = w.ten_j[e];
    } else {
      for (int e = m.body_dof[what + 1] - 1; e >= 0; e = m.dof_parent[e]) {
        const R* s = w.cdof + 6 * e;
        R u[3] = {s[3], s[4], s[5]};
        cross_add(s, at, u);
        w.step[e] = kind == WEIGH_SHIFT ? u[k] : s[k];
      }
    }
    sum = sum + inverse_weight(m, w);
  }
  return sum * bc<R>(1.0 / count);
}

// What follows from the numbers that vary: replaces the state in `w`.
template<class R, class M> OSTLER_FN_PART void derive(const M& m, Work<R, M>& w) {
  R* lumps = w.vary + m.nvary;
  for (int i = 0; i < 10 * m.nlump; i++) lumps[i] = bc<R>(m.lump_rest[i]);
  for (int p = 0; p < m.npiece; p++)
    if (m.piece_lump[p] >= 0) add_piece(m, w, p, lumps + 10 * m.piece_lump[p]);
  if (m.nweigh == 0) return;
  for (int i = 0; i < m.nq; i++) w.qpos[i] = varied(m, w, m.vary_qpos0, i, m.qpos0[i]);
  for (int i = 0; i < m.nv; i++) w.qvel[i] = bc<R>(0);
  for (int i = 0; i < m.na; i++) w.act[i] = bc<R>(0);
  for (int i = 0; i < m.nu; i++) w.ctrl[i] = bc<R>(0);
  Straight<R, M>::smooth(m, w);
  for (int i = 0; i < m.nv; i++) {
    w.step[i] = bc<R>(0);
    w.hess[tri(i) + i] = w.mass[tri(i) + i];
    for (int a = m.mrow_adr[i]; a < m.mrow_adr[i + 1]; a++) w.hess[tri(i) + m.mrow_col[a]] = w.mass[tri(i) + m.mrow_col[a]];
  }
  factor(m.nv, m.mrow_adr, m.mrow_col, w.hess, w.step);
  R* out = lumps + 10 * m.nlump;
  for (int i = 0; i < m.nweigh; i++) out[i] = weigh(m, w, i);
}
