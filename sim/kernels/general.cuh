// General constraint rows: Jacobians, stiffnesses and reference accelerations of
// equality constraints, tendons and ball limits. The layout of items and the
// formulas are those of sim/engine/src/physics/native/lower/rows.rs.
#pragma once

enum { ITEM_JOINT, ITEM_TENDON, ITEM_CONNECT, ITEM_WELD, ITEM_TENDON_LIMIT, ITEM_TENDON_FRICTION, ITEM_BALL_LIMIT };

// p = c0 + c1 d + .. + c4 d^4 and its derivative.
template<class R, class T> OSTLER_FN void quartic(const T* c, R d, R* p, R* slope) {
  R v = bc<R>(c[4]), s = bc<R>(4 * c[4]);
  for (int k = 3; k >= 0; k--) v = fma(v, d, bc<R>(c[k]));
  for (int k = 3; k >= 1; k--) s = fma(s, d, bc<R>(k * c[k]));
  *p = v, *slope = s;
}

// D of a general row.
template<class R, class M> OSTLER_FN R row_stiffness(const M& m, const Work<R, M>& w, int row, R imp) {
  return m.nweigh > 0 ? stiffness(imp, weights(m, w, m.row_weight + 2 * row)) : stiffness(m.row_soft + SOFT * row, imp);
}

template<class R, class M> OSTLER_FN R row_velocity(const M& m, const Work<R, M>& w, int row) {
  R v = bc<R>(0);
  for (int e = m.row_adr[row]; e < m.row_adr[row + 1]; e++) v = fma(w.row_j[e], w.qvel[m.row_dof[e]], v);
  return v;
}

// What a joint or tendon equality asks of the first by the second, and its derivative.
template<class R, class M> OSTLER_FN void coupling(const M& m, const Work<R, M>& w, int i, R* p, R* slope) {
  const int second = m.item_int[4 * i + 1];
  const auto* c = m.item_real + 16 * i;
  const bool tendon = m.item_kind[i] == ITEM_TENDON;
  *slope = bc<R>(0), *p = bc<R>(c[0]);
  if (second < 0) return;
  const R x = tendon ? w.ten_len[second] : w.qpos[second];
  quartic(c, x - (tendon ? bc<R>(c[6]) : varied(m, w, m.vary_qpos0, second, c[6])), p, slope);
}

// Joint and tendon equalities: r = p1 - ref1 - quartic(p2 - ref2).
template<class R, class M> OSTLER_FN void scalar_equality(const M& m, Work<R, M>& w, int i) {
  const int row = m.item_row[i], adr = m.row_adr[row];
  const int* what = m.item_int + 4 * i;
  const auto* c = m.item_real + 16 * i;
  const bool tendon = m.item_kind[i] == ITEM_TENDON;
  const int a0 = m.item_path[2 * i], a1 = m.item_path[2 * i + 1], a2 = m.item_path[2 * i + 2];
  for (int e = adr; e < m.row_adr[row + 1]; e++) w.row_j[e] = bc<R>(0);
  R slope, p;
  coupling(m, w, i, &p, &slope);
  const R rest = tendon ? bc<R>(c[5]) : varied(m, w, m.vary_qpos0, what[0], c[5]);
  const R r = (tendon ? w.ten_len[what[0]] : w.qpos[what[0]]) - rest - p;
  for (int k = a0; k < a2; k++) {
    const bool first = k < a1;
    const R coef = !tendon ? bc<R>(1) : first ? w.ten_j[m.ten_adr[what[0]] + k - a0] : w.ten_j[m.ten_adr[what[1]] + k - a1];
    R* j = w.row_j + adr + m.ipath_entry[k];
    *j = first ? *j + coef : fnma(slope, coef, *j);
  }
  const auto* s = m.row_soft + SOFT * row;
  const R imp = impedance(s, r);
  w.row_d[row] = row_stiffness(m, w, row, imp);
  w.row_aref[row] = reference(s, imp, r, row_velocity(m, w, row));
}

// A point fixed to a body (or the world), its acceleration at qacc = 0; relative to
// the reference of `tree`.
template<class R, class M, class T>
OSTLER_FN void anchor(const M& m, const Work<R, M>& w, int b, int tree, const T* local, R* p, R* acc) {
  if (b < 0) {
    for (int k = 0; k < 3; k++) p[k] = bc<R>(local[k]) - w.ref[3 * tree + k], acc[k] = bc<R>(0);
    return;
  }
  R o[3];
  mat_con(w.xmat + 9 * b, local, o);
  for (int k = 0; k < 3; k++) o[k] = o[k] + w.xpos[3 * b + k];
  const R* v = w.vel + 6 * b;
  const R* a = w.acc + 6 * b;
  // The base accelerates against gravity in `acc`.
  R down[3];
  gravity(m, w, down);
  for (int k = 0; k < 3; k++) acc[k] = a[3 + k] + down[k];
  cross_add(a, o, acc);
  R u[3] = {v[3], v[4], v[5]};
  cross_add(v, o, u);
  cross_add(v, u, acc);
  const int own = m.body_tree[b];
  for (int k = 0; k < 3; k++) p[k] = own == tree ? o[k] : o[k] + (w.ref[3 * own + k] - w.ref[3 * tree + k]);
}

// vec(conj(b) * (scalar, v) * a), rotations a and b.
template<class R> OSTLER_FN void between(const R* b, const R* q, const R* a, R* o) {
  const R inv[4] = {b[0], -b[1], -b[2], -b[3]};
  R t[4];
  quat_mul(inv, q, t);
  quat_mul(t, a, t);
  o[0] = t[1], o[1] = t[2], o[2] = t[3];
}

// The orientations that a weld holds together: A of its first body, B of its second.
template<class R, class M> OSTLER_FN void welded(const M& m, const Work<R, M>& w, int i, R* A, R* B) {
  const int b1 = m.item_int[4 * i], b2 = m.item_int[4 * i + 1];
  const auto* c = m.item_real + 16 * i;
  const R fa[4] = {bc<R>(c[6]), bc<R>(c[7]), bc<R>(c[8]), bc<R>(c[9])};
  const R fb[4] = {bc<R>(c[10]), bc<R>(c[11]), bc<R>(c[12]), bc<R>(c[13])};
  for (int k = 0; k < 4; k++) A[k] = fa[k], B[k] = fb[k];
  if (b1 >= 0) quat_mul(w.xquat + 4 * b1, fa, A);
  if (b2 >= 0) quat_mul(w.xquat + 4 * b2, fb, B);
}

template<class R, class M> OSTLER_FN void connect_or_weld(const M& m, Work<R, M>& w, int i) {
  const int row = m.item_row[i];
  const int b1 = m.item_int[4 * i], b2 = m.item_int[4 * i + 1];
  const auto* c = m.item_real + 16 * i;
  const bool weld = m.item_kind[i] == ITEM_WELD;
  const int rows = weld ? 6 : 3;
  const int tree = m.body_tree[b1 < 0 ? b2 : b1];
  R p1[3], p2[3], acc1[3], acc2[3], r[6], drift[6];
  anchor(m, w, b1, tree, c, p1, acc1);
  anchor(m, w, b2, tree, c + 3, p2, acc2);
  for (int k = 0; k < 3; k++) r[k] = p1[k] - p2[k], drift[k] = acc1[k] - acc2[k];
  R A[4], B[4];
  const double half = 0.5 * c[14];
  if (weld) {
    welded(m, w, i, A, B);
    const R one[4] = {bc<R>(1), bc<R>(0), bc<R>(0), bc<R>(0)};
    between(B, one, A, r + 3);
    // d/dt of the Jacobian times v: the relative angular acceleration at qacc = 0
    // between turning frames.
    R w1[3], w2[3], a[3], d2 = bc<R>(0);
    for (int k = 0; k < 3; k++) {
      w1[k] = b1 < 0 ? bc<R>(0) : w.vel[6 * b1 + k];
      w2[k] = b2 < 0 ? bc<R>(0) : w.vel[6 * b2 + k];
      a[k] = (b1 < 0 ? bc<R>(0) : w.acc[6 * b1 + k]) - (b2 < 0 ? bc<R>(0) : w.acc[6 * b2 + k]);
      d2 = fma(w1[k] - w2[k], w1[k] - w2[k], d2);
    }
    cross_add(w1, w2, a);
    const R q[4] = {d2 * bc<R>(-0.5), a[0], a[1], a[2]};
    between(B, q, A, drift + 3);
    for (int k = 3; k < 6; k++) r[k] = r[k] * bc<R>(c[14]), drift[k] = drift[k] * bc<R>(half);
  }
  const int a0 = m.item_path[2 * i], a1 = m.item_path[2 * i + 1], a2 = m.item_path[2 * i + 2];
  for (int e = m.row_adr[row]; e < m.row_adr[row + rows]; e++) w.row_j[e] = bc<R>(0);
  for (int k = a0; k < a2; k++) {
    const bool first = k < a1;
    const int d = m.ipath_dof[k], own = m.body_tree[m.dof_body[d]];
    const R* s = w.cdof + 6 * d;
    R o[3], u[6];
    for (int j = 0; j < 3; j++) {
      o[j] = first ? p1[j] : p2[j];
      if (own != tree) o[j] = o[j] - (w.ref[3 * own + j] - w.ref[3 * tree + j]);
      u[j] = s[3 + j];
    }
    cross_add(s, o, u);
    if (weld) {
      const R q[4] = {bc<R>(0), s[0], s[1], s[2]};
      between(B, q, A, u + 3);
      for (int j = 3; j < 6; j++) u[j] = u[j] * bc<R>(half);
    }
    for (int j = 0; j < rows; j++) {
      R* e = w.row_j + m.row_adr[row + j] + m.ipath_entry[k];
      *e = first ? *e + u[j] : *e - u[j];
    }
  }
  R norm2 = bc<R>(0);
  for (int j = 0; j < rows; j++) norm2 = fma(r[j], r[j], norm2);
  const R imp = impedance(m.row_soft + SOFT * row, sqrt_(norm2));
  for (int j = 0; j < rows; j++) {
    const auto* s = m.row_soft + SOFT * (row + j);
    w.row_d[row + j] = row_stiffness(m, w, row + j, imp);
    w.row_aref[row + j] = reference(s, imp, r[j], row_velocity(m, w, row + j)) - drift[j];
  }
}

// How far a tendon's length is from its least and its greatest.
template<class R, class M> OSTLER_FN void tendon_room(const M& m, const Work<R, M>& w, int i, R* lo, R* hi) {
  const R len = w.ten_len[m.item_int[4 * i]];
  *lo = len - bc<R>(m.item_real[16 * i]), *hi = bc<R>(m.item_real[16 * i + 1]) - len;
}

template<class R, class M> OSTLER_FN void tendon_row(const M& m, Work<R, M>& w, int i) {
  const int row = m.item_row[i], adr = m.row_adr[row], t = m.item_int[4 * i];
  const auto* s = m.row_soft + SOFT * row;
  const int a0 = m.item_path[2 * i], a1 = m.item_path[2 * i + 1];
  R sign = bc<R>(1), r = bc<R>(0);
  const bool limit = m.item_kind[i] == ITEM_TENDON_LIMIT;
  if (limit) {
    R lo, hi;
    tendon_room(m, w, i, &lo, &hi);
    sign = sel(lo < hi, bc<R>(1), bc<R>(-1));
    r = min_(lo, hi) - bc<R>(s[SOFT_MARGIN]);
  }
  for (int e = adr; e < m.row_adr[row + 1]; e++) w.row_j[e] = bc<R>(0);
  for (int k = a0; k < a1; k++) {
    R* j = w.row_j + adr + m.ipath_entry[k];
    *j = fma(sign, w.ten_j[m.ten_adr[t] + k - a0], *j);
  }
  const R v = row_velocity(m, w, row);
  if (limit) {
    const R imp = impedance(s, r);
    w.row_d[row] = sel(r < bc<R>(0), row_stiffness(m, w, row, imp), bc<R>(0));
    w.row_aref[row] = reference(s, imp, r, v);
  } else {
    w.row_d[row] = m.nweigh > 0 ? row_stiffness(m, w, row, bc<R>(s[SOFT_D0])) : bc<R>(rest_stiffness<R>(s));
    w.row_aref[row] = bc<R>(-s[SOFT_B]) * v;
  }
}

template<class R, class M> OSTLER_FN void ball_limit(const M& m, Work<R, M>& w, int i) {
  const int row = m.item_row[i], adr = m.row_adr[row];
  const auto* s = m.row_soft + SOFT * row;
  R q[4];
  for (int k = 0; k < 4; k++) q[k] = w.qpos[m.item_int[4 * i] + k];
  quat_unit(q);
  const R n2 = dot3(q + 1, q + 1);
  const auto none = n2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
  const R n = sqrt_(sel(none, bc<R>(1), n2));
  const R angle = sel(none, bc<R>(0), bc<R>(2) * atan2_(n, abs_(q[0])));
  const R away = sel(q[0] < bc<R>(0), bc<R>(1), bc<R>(-1)) / n;  // J is minus the axis
  for (int k = 0; k < 3; k++) w.row_j[adr + k] = sel(none, bc<R>(k == 0 ? -1 : 0), q[1 + k] * away);
  const R r = bc<R>(m.item_real[16 * i]) - angle - bc<R>(s[SOFT_MARGIN]);
  const R imp = impedance(s, r);
  w.row_d[row] = sel(r < bc<R>(0), row_stiffness(m, w, row, imp), bc<R>(0));
  w.row_aref[row] = reference(s, imp, r, row_velocity(m, w, row));
}

// All rows but the contacts'.
template<class R, class M> OSTLER_FN_PART void constraint_rows(const M& m, Work<R, M>& w) {
  limits(m, w);
  for (int i = 0; i < m.nitem; i++) {
    switch (m.item_kind[i]) {
      case ITEM_JOINT:
      case ITEM_TENDON: scalar_equality(m, w, i); break;
      case ITEM_CONNECT:
      case ITEM_WELD: connect_or_weld(m, w, i); break;
      case ITEM_TENDON_LIMIT:
      case ITEM_TENDON_FRICTION: tendon_row(m, w, i); break;
      default: ball_limit(m, w, i);
    }
  }
}
