// The constrained acceleration: Newton's method with an exact line search on
// MuJoCo's primal problem. For pyramidal cones the cost is piecewise quadratic and
// the method ends at the exact optimum after finitely many steps.
// Source: MuJoCo, Computation, "Primal problem"; Todorov 2014.
#pragma once

// Contact-space product J x for every listed contact, x being qacc or step
// (and tmp = body velocities for x).
template<class R, class M> OSTLER_FN void contacts_mul(const M& m, Work<R, M>& w, const R* x, R* world, R* pair) {
  if (m.nwslot > 0 && w.nwon > 0) {
    if (x == w.step) Straight<R, M>::velocities_step(m, w);
    else Straight<R, M>::velocities_qacc(m, w);
    for (int o = 0; o < w.nwon; o++) {
      const int k = w.wc_on[o], c = w.wc_pair[k], b = m.cg_body[m.pair_g2[c]];
      const R* v = w.tmp + 6 * b;
      R u[3] = {v[3], v[4], v[5]};
      cross_add(v, w.wc_pos + 3 * k, u);
      by_dim<BY_BODY>(m, c, [&](auto dims) OSTLER_INLINE {
        contact_velocity(dims.of(m, c), w.wc_frame + 6 * k, w.wc_frame + 6 * k + 3, v, u, world + CDIM * k);
      });
    }
  }
  for (int o = 0; o < w.npon; o++) {
    const int k = w.pc_on[o], c = w.pc_pair[k];
    by_dim<BY_JACOBIAN>(m, c, [&](auto dims) OSTLER_INLINE {
      const int dim = dims.of(m, c);
      const R* J = w.pc_j + (unsigned long)m.npdim * m.npath * k;
      R v[CDIM];
      for (int i = 0; i < dim; i++) v[i] = bc<R>(0);
      for (int e = m.pair_path[c]; e < m.pair_path[c + 1]; e++, J += dim)
        for (int i = 0; i < dim; i++) v[i] = fma(J[i], x[m.path_dof[e]], v[i]);
      for (int i = 0; i < dim; i++) pair[CDIM * k + i] = v[i];
    });
  }
}

// What a sum begins with, or goes on with.
template<bool First, class R> OSTLER_FN void add_to(R& sum, R x) { sum = First ? x : sum + x; }

// Adds a contact's wrench and inertia to its body, or puts them there if it is the body's
// First: W g and W h W' for the contact's axes W = (p x frame, frame).
template<bool First, class R, class M, int D> OSTLER_FN void world_contact_load(Dim<D> dims, const M& m, Work<R, M>& w, int k) {
  const int c = w.wc_pair[k], b = m.cg_body[m.pair_g2[c]], dim = dims.of(m, c);
  ConeCost<R> q;
  cone_cost(dims, rub_of(m, w, true, k, c), w.wc_d[k], w.wc_jar + CDIM * k, q);
  const R* p = w.wc_pos + 3 * k;
  const R* n = w.wc_frame + 6 * k;
  const R* t1 = n + 3;
  R f[3], S[6];
  if (dim == 1) {
    R h[3];
    for (int i = 0; i < 3; i++) f[i] = n[i] * q.g[0], h[i] = n[i] * q.h[0];
    S[0] = h[0] * n[0], S[1] = h[1] * n[1], S[2] = h[2] * n[2];
    S[3] = h[0] * n[1], S[4] = h[0] * n[2], S[5] = h[1] * n[2];
  } else {
    R t2[3], x[3], y[3], z[3];
    cross(n, t1, t2);
    for (int i = 0; i < 3; i++) {
      f[i] = fma(t2[i], q.g[2], fma(t1[i], q.g[1], n[i] * q.g[0]));
      x[i] = fma(q.h[3], t2[i], fma(q.h[1], t1[i], q.h[0] * n[i]));
      y[i] = fma(q.h[4], t2[i], fma(q.h[2], t1[i], q.h[1] * n[i]));
      z[i] = fma(q.h[5], t2[i], fma(q.h[4], t1[i], q.h[3] * n[i]));
    }
    S[0] = fma(z[0], t2[0], fma(y[0], t1[0], x[0] * n[0]));
    S[1] = fma(z[1], t2[1], fma(y[1], t1[1], x[1] * n[1]));
    S[2] = fma(z[2], t2[2], fma(y[2], t1[2], x[2] * n[2]));
    S[3] = fma(z[0], t2[1], fma(y[0], t1[1], x[0] * n[1]));
    S[4] = fma(z[0], t2[2], fma(y[0], t1[2], x[0] * n[2]));
    S[5] = fma(z[1], t2[2], fma(y[1], t1[2], x[1] * n[2]));
  }
  R* F = w.wrench + 6 * b;
  R* A = w.stiff + 21 * b;
  if (First)
    for (int i = 0; i < 3; i++) F[i] = bc<R>(0);
  cross_add(p, f, F);
  for (int i = 0; i < 3; i++) add_to<First>(F[3 + i], f[i]);
  // Q = [p] S (rows: moments of S's columns), E = [p] S [p]'
  const R s0[3] = {S[0], S[3], S[4]}, s1[3] = {S[3], S[1], S[5]}, s2[3] = {S[4], S[5], S[2]};
  R w0[3], w1[3], w2[3], e0[3], e1[3], e2[3];
  cross(p, s0, w0), cross(p, s1, w1), cross(p, s2, w2);
  const R q0[3] = {w0[0], w1[0], w2[0]}, q1[3] = {w0[1], w1[1], w2[1]}, q2[3] = {w0[2], w1[2], w2[2]};
  cross(p, q0, e0), cross(p, q1, e1), cross(p, q2, e2);
  const R E[6] = {e0[0], e1[1], e2[2], e0[1], e0[2], e1[2]};
  for (int i = 0; i < 6; i++) add_to<First>(A[i], E[i]), add_to<First>(A[15 + i], S[i]);
  for (int i = 0; i < 3; i++) add_to<First>(A[6 + i], q0[i]), add_to<First>(A[9 + i], q1[i]), add_to<First>(A[12 + i], q2[i]);
  if (dim > 3) {
    // Torsion and rolling act on the angular velocity: axes (a, 0).
    R axis[CDIM][3], lin[3][3], t2[3];
    cross(n, t1, t2);
    for (int i = 0; i < 3; i++) axis[3][i] = n[i], axis[4][i] = t1[i], axis[5][i] = t2[i], lin[0][i] = n[i], lin[1][i] = t1[i], lin[2][i] = t2[i];
    for (int a = 3; a < dim; a++) {
      for (int i = 0; i < 3; i++) F[i] = fma(axis[a][i], q.g[a], F[i]);
      R ang[3], off[3];  // sum over angular, over linear directions
      for (int i = 0; i < 3; i++) {
        ang[i] = off[i] = bc<R>(0);
        for (int c2 = 3; c2 < dim; c2++)
          ang[i] = fma(c2 <= a ? q.h[tri(a) + c2] : q.h[tri(c2) + a], axis[c2][i], ang[i]);
        for (int c2 = 0; c2 < 3; c2++) off[i] = fma(q.h[tri(a) + c2], lin[c2][i], off[i]);
      }
      R mom[3];
      cross(p, off, mom);
      // angular-angular: axis ang' + axis mom' + mom axis'
      A[0] = fma(axis[a][0], ang[0] + mom[0] + mom[0], A[0]);
      A[1] = fma(axis[a][1], ang[1] + mom[1] + mom[1], A[1]);
      A[2] = fma(axis[a][2], ang[2] + mom[2] + mom[2], A[2]);
      A[3] = fma(axis[a][0], ang[1] + mom[1], fma(mom[0], axis[a][1], A[3]));
      A[4] = fma(axis[a][0], ang[2] + mom[2], fma(mom[0], axis[a][2], A[4]));
      A[5] = fma(axis[a][1], ang[2] + mom[2], fma(mom[1], axis[a][2], A[5]));
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) A[6 + 3 * i + j] = fma(axis[a][i], off[j], A[6 + 3 * i + j]);
    }
  }
}

// Marks, of the listed contacts, those that push in a lane that is not done: the others add
// nothing to gradient and Hessian.
template<class R, class M> OSTLER_FN void mark_pushing(const M& m, Work<R, M>& w, typename Lane<R>::Mask done) {
  w.nwmark = w.npmark = 0;
  for (int o = 0; o < w.nwon; o++) {
    const int k = w.wc_on[o], c = w.wc_pair[k];
    by_dim<BY_BODY>(m, c, [&](auto dims) OSTLER_INLINE {
      if (any(cone_pushes(dims, rub_of(m, w, true, k, c), w.wc_d[k], w.wc_jar + CDIM * k) & !done)) w.wc_mark[w.nwmark++] = k;
    });
  }
  for (int o = 0; o < w.npon; o++) {
    const int k = w.pc_on[o], c = w.pc_pair[k];
    by_dim<BY_JACOBIAN>(m, c, [&](auto dims) OSTLER_INLINE {
      if (any(cone_pushes(dims, rub_of(m, w, false, k, c), w.pc_d[k], w.pc_jar + CDIM * k) & !done)) w.pc_mark[w.npmark++] = k;
    });
  }
}
// Marks the listed contacts of some lanes.
template<class R, class M> OSTLER_FN void mark_lanes(Work<R, M>& w, typename Lane<R>::Mask lanes) {
  const R zero = bc<R>(0);
  w.nwmark = w.npmark = 0;
  for (int o = 0; o < w.nwon; o++)
    if (any((w.wc_d[w.wc_on[o]] > zero) & lanes)) w.wc_mark[w.nwmark++] = w.wc_on[o];
  for (int o = 0; o < w.npon; o++)
    if (any((w.pc_d[w.pc_on[o]] > zero) & lanes)) w.pc_mark[w.npmark++] = w.pc_on[o];
}

// Marks the bodies that the marked contacts push.
template<class R, class M> OSTLER_FN void mark_loads(const M& m, Work<R, M>& w) {
  for (int b = 0; b < m.nb; b++) w.has_load[b] = LOAD_NONE;
  for (int o = 0; o < w.nwmark; o++) w.has_load[m.cg_body[m.pair_g2[w.wc_pair[w.wc_mark[o]]]]] = LOAD_FIRST;
}

// Lists the contacts and limits that may push in a lane that is not done: the others do
// not bear on the rest of the solve.
template<class R, class M> OSTLER_FN void list_needed(const M& m, Work<R, M>& w, typename Lane<R>::Mask done) {
  list_limits(m, w, done);
  const R zero = bc<R>(0);
  w.nwon = w.npon = 0;
  for (int k = 0; k < w.nwc; k++)
    if (any((w.wc_d[k] > zero) & !done)) w.wc_on[w.nwon++] = k;
  for (int k = 0; k < w.npc; k++)
    if (any((w.pc_d[k] > zero) & !done)) w.pc_on[w.npon++] = k;
}

// A contact with its Jacobian: straight into gradient and Hessian.
template<class R, class M, int D> OSTLER_FN void pair_contact_load(Dim<D> dims, const M& m, Work<R, M>& w, int k) {
  const int c = w.pc_pair[k], dim = dims.of(m, c);
  ConeCost<R> q;
  cone_cost(dims, rub_of(m, w, false, k, c), w.pc_d[k], w.pc_jar + CDIM * k, q);
  const R* J = w.pc_j + (unsigned long)m.npdim * m.npath * k;
  const int e0 = m.pair_path[c], n = m.pair_path[c + 1] - e0;
  for (int e = 0; e < n; e++) {
    const int d = m.path_dof[e0 + e];
    const R* je = J + dim * e;
    R t[CDIM], g = w.grad[d];
    for (int i = 0; i < dim; i++) {
      g = fma(je[i], q.g[i], g);
      t[i] = bc<R>(0);
      for (int j = 0; j < dim; j++) t[i] = fma(q.h[j <= i ? tri(i) + j : tri(j) + i], je[j], t[i]);
    }
    w.grad[d] = g;
    R* row = w.hess + tri(d);
    for (int f = 0; f <= e; f++) {
      const int o = m.path_dof[e0 + f];
      const R* jf = J + dim * f;
      R h = row[o];
      for (int i = 0; i < dim; i++) h = fma(t[i], jf[i], h);
      row[o] = h;
    }
  }
}

// The Hessian's pattern with the couplings of pairs, and what elimination fills in; false
// where it is the static one (contacts within one branch). `pair_of(i)` is the i-th of
// `count` pairs. Words of 64 degrees of freedom; more couple fully.
template<class R, class M, class F> OSTLER_FN_BIG bool couple(const M& m, Work<R, M>& w, int count, F pair_of) {
  unsigned long long mask[64];
  const int n = m.nv;
  if (n > 64) {
    for (int i = 0, at = 0; i < n; i++) {
      w.pat_adr[i] = at;
      for (int j = 0; j < i; j++) w.pat_col[at++] = j;
      w.pat_adr[i + 1] = at;
    }
    return true;
  }
  for (int i = 0; i < n; i++) {
    mask[i] = 0;
    for (int a = m.hrow_adr[i]; a < m.hrow_adr[i + 1]; a++) mask[i] |= 1ull << m.hrow_col[a];
  }
  for (int k = 0; k < count; k++) {
    const int c = pair_of(k);
    unsigned long long path = 0;
    for (int e = m.pair_path[c]; e < m.pair_path[c + 1]; e++) {
      mask[m.path_dof[e]] |= path;
      path |= 1ull << m.path_dof[e];
    }
  }
  for (int i = n - 1; i > 0; i--)
    for (unsigned long long rest = mask[i]; rest; rest &= rest - 1) {
      const int j = ctz_(rest);
      mask[j] |= mask[i] & ((1ull << j) - 1);
    }
  int at = 0;
  for (int i = 0; i < n; i++) {
    w.pat_adr[i] = at;
    for (unsigned long long rest = mask[i]; rest; rest &= rest - 1) w.pat_col[at++] = ctz_(rest);
  }
  w.pat_adr[n] = at;
  return at != m.hrow_adr[n];
}

// As above for the marked contacts.
template<class R, class M> OSTLER_FN bool couples(const M& m, Work<R, M>& w) {
  return w.npmark > 0 && couple(m, w, w.npmark, [&](int o) OSTLER_INLINE { return w.pc_pair[w.pc_mark[o]]; });
}
// The same for a robot whose tables say which pairs couple branches of its tree.
template<class R, class M> OSTLER_FN bool joins_branches(const M& m, const Work<R, M>& w) {
  for (int o = 0; o < w.npmark; o++)
    if (m.pair_joins[w.pc_pair[w.pc_mark[o]]]) return true;
  return false;
}

// f(dimension, friction, stiffness, residuals, their change along the step) for every
// listed contact, or for those that are marked.
enum Which { LISTED, MARKED };
template<Which which, class R, class M, class F> OSTLER_FN void for_contacts(const M& m, Work<R, M>& w, F&& f) {
  const int *world = which == LISTED ? w.wc_on : w.wc_mark, *pair = which == LISTED ? w.pc_on : w.pc_mark;
  for (int o = 0, n = which == LISTED ? w.nwon : w.nwmark; o < n; o++) {
    const int k = world[o];
    by_dim<BY_BODY>(m, w.wc_pair[k], [&](auto dims) OSTLER_INLINE {
      f(dims, rub_of(m, w, true, k, w.wc_pair[k]), w.wc_d[k], w.wc_jar + CDIM * k, w.wc_js + CDIM * k);
    });
  }
  for (int o = 0, n = which == LISTED ? w.npon : w.npmark; o < n; o++) {
    const int k = pair[o];
    by_dim<BY_JACOBIAN>(m, w.pc_pair[k], [&](auto dims) OSTLER_INLINE {
      f(dims, rub_of(m, w, false, k, w.pc_pair[k]), w.pc_d[k], w.pc_jar + CDIM * k, w.pc_js + CDIM * k);
    });
  }
}

// Newton's method from w.qacc; the result is in w.qacc, the residuals are those of
// the result. Where it ends `early` it stops where MuJoCo's does: it begins at w.qacc or at the
// smooth acceleration, where the cost is less, the lengths of its steps are nearly exact, each
// after at most so many `trials`, and ending before the optimum is not counted as unsolved. Then
// w.step leads from w.qacc to the acceleration by the forces there, which are not those of w.qacc.
// Source: MuJoCo, engine_forward.c (warmstart), engine_solver.c (mj_solPrimal).
template<bool early, class R, class M> OSTLER_FN_BIG void newton(const M& m, Work<R, M>& w, int most, int trials, double tolerance) {
  typedef typename Lane<R>::Mask B;
  const int n = m.nv;
  const R zero = bc<R>(0), one = bc<R>(1);
  B done = mask_of<B>(false);
  R* Ma = w.mstep;  // M qacc - smooth, kept up to date
  for (int i = 0; i < n; i++) w.qacc[i] = sel(w.constrained, w.qacc[i], zero);
  list_needed(m, w, done);
  w.lane_iterations = zero;
  contacts_mul(m, w, w.qacc, w.wc_jar, w.pc_jar);
  rows_mul(m, w, w.qacc, w.lim_jar, w.fric_jar, w.row_jar);
  for (int o = 0; o < w.nwon; o++) {
    const int k = w.wc_on[o];
    for (int i = 0; i < m.pair_dim[w.wc_pair[k]]; i++) w.wc_jar[CDIM * k + i] = w.wc_jar[CDIM * k + i] - w.wc_aref[CDIM * k + i];
  }
  for (int o = 0; o < w.npon; o++) {
    const int k = w.pc_on[o];
    for (int i = 0; i < m.pair_dim[w.pc_pair[k]]; i++) w.pc_jar[CDIM * k + i] = w.pc_jar[CDIM * k + i] - w.pc_aref[CDIM * k + i];
  }
  for (int o = 0; o < w.nlon; o++) {
    const int l = w.lim_on[o];
    w.lim_jar[l] = w.lim_jar[l] - w.lim_aref[l];
  }
  for (int f = 0; f < m.nfric; f++) w.fric_jar[f] = w.fric_jar[f] - w.fric_aref[f];
  for (int r = 0; r < m.nrow; r++) w.row_jar[r] = w.row_jar[r] - w.row_aref[r];
  Straight<R, M>::residual(m, w);
  const int lengths = early && trials < 16 ? trials : 16;
  const R flat = bc<R>(early ? -1e-5 : -0.01);  // of the slope, where a length is exact
  for (int it = early ? -1 : 0; it < (early ? most + 2 : most); it++) {
    // The step before the first: to the smooth acceleration, taken where the cost is less there.
    // After the last ones: the gradient, and the step that it asks for without constraints.
    const bool smooth = it < 0, plain = smooth || it > most;
    if (it == most) {
      done = mask_of<B>(false);
      list_needed(m, w, done);
    }
    if (plain) {
      w.nwmark = w.npmark = 0;
    } else {
      if (it < most) w.lane_iterations = w.lane_iterations + sel(done, zero, one);
      mark_pushing(m, w, done);
    }
    const bool coupled = Straight<R, M>::coupled(m, w);
    if (coupled) Straight<R, M>::start_coupled(m, w);
    else Straight<R, M>::start_system(m, w);
    if (!plain) rows_load(m, w);
    if (m.nwslot > 0 && w.nwmark > 0) {
      mark_loads(m, w);
      for (int o = 0; o < w.nwmark; o++) {
        const int k = w.wc_mark[o], c = w.wc_pair[k], b = m.cg_body[m.pair_g2[c]];
        by_dim<BY_BODY>(m, c, [&](auto dims) OSTLER_INLINE {
          if (w.has_load[b] == LOAD_FIRST) world_contact_load<true>(dims, m, w, k);
          else world_contact_load<false>(dims, m, w, k);
        });
        w.has_load[b] = LOAD_SUM;
      }
      Straight<R, M>::loads(m, w);
    }
    for (int o = 0; o < w.npmark; o++)
      by_dim<BY_JACOBIAN>(m, w.pc_pair[w.pc_mark[o]], [&](auto dims) OSTLER_INLINE { pair_contact_load(dims, m, w, w.pc_mark[o]); });
    if (it == most) {
      for (int i = 0; i < n; i++) w.mstep[i] = w.grad[i];
      continue;
    }
    if (coupled) Straight<R, M>::solve_coupled(m, w);
    else Straight<R, M>::solve_system(m, w);
    if (it > most) break;
    contacts_mul(m, w, w.step, w.wc_js, w.pc_js);
    rows_mul(m, w, w.step, w.lim_js, w.fric_js, w.row_js);
    B change = rows_change(m, w);
    for_contacts<LISTED>(m, w, [&](auto dims, const Rub<R, M> rub, R d, const R* jar, const R* js) OSTLER_INLINE {
      change = change | cone_change(dims, rub, d, jar, js);
    });
    if (smooth) change = !done;
    const B need = change & !done;
    R slope = zero;  // of the cost along the step, at its start
    for (int i = 0; i < n; i++) slope = fma(w.step[i], w.grad[i], slope);
    R length = sel(done, zero, one);
    if (early || any(need)) {
      R* Ms = w.grad;
      R q1 = zero, q2 = zero;
      for (int i = 0; i < n; i++) q1 = fma(w.step[i], Ma[i], q1);
      Straight<R, M>::mass_step(m, w);
      for (int i = 0; i < n; i++) q2 = fma(w.step[i], Ms[i], q2);
      R lo = zero, hi = bc<R>(1e30), a = smooth ? bc<R>(1.0 / 32) : one, gain = zero;
      B found = !need;
      mark_lanes(w, need);
      for (int k = 0; k < (smooth ? 16 : lengths); k++) {
        R d1 = fma(a, q2, q1), d2 = q2;
        rows_slope(m, w, a, &d1, &d2);
        for_contacts<MARKED>(m, w, [&](auto dims, const Rub<R, M> rub, R d, const R* jar, const R* js) OSTLER_INLINE {
          cone_slope(dims, rub, d, jar, js, a, &d1, &d2);
        });
        if (smooth) {
          // The cost's change is the mean slope.
          gain = gain + d1, a = a + bc<R>(1.0 / 16);
          continue;
        }
        found = found | !(abs_(d1) > flat * slope);
        if (!any(!found)) break;
        lo = sel(d1 < zero, max_(lo, a), lo);
        hi = sel(d1 > zero, min_(hi, a), hi);
        R next = a - d1 / d2;
        const B out = !((next > lo) & (next < hi));
        const R mid = sel(hi < bc<R>(1e29), bc<R>(0.5) * (lo + hi), a + a);
        next = sel(out, mid, next);
        a = sel(found, a, next);
      }
      if (smooth) a = sel(gain < zero, one, zero);
      length = sel(need, a, length);
      for (int i = 0; i < n; i++) Ma[i] = fma(length, Ms[i], Ma[i]);
    }
    for (int i = 0; i < n; i++) w.qacc[i] = sel(done, w.qacc[i], fma(length, w.step[i], w.qacc[i]));
    for_contacts<LISTED>(m, w, [&](auto dims, const Rub<R, M> rub, R, R* jar, const R* js) OSTLER_INLINE {
      for (int i = 0; i < dims.of(m, rub.c); i++) jar[i] = fma(length, js[i], jar[i]);
    });
    rows_advance(m, w, length);
    if (smooth) continue;
    done = done | !change | !(bc<R>(-0.5 * m.scale) * slope > bc<R>(tolerance));
    if (any(!done)) list_needed(m, w, done);
    else if (early) it = most - 1;
    else break;
  }
  w.unsolved = early ? mask_of<B>(false) : !done;
}
