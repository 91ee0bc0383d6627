// The no-slip solver: after Newton's method, friction is solved once more as if it were hard,
// with the normal forces as they are. Sweeps of Gauss-Seidel over dry friction and the tangents
// of contacts, in MuJoCo's order. Source: MuJoCo, mj_solNoSlip, mju_QCQP.
#pragma once

// x = M^-1 x with the factor of M in `hess`.
template<class R, class M> OSTLER_FN void slip_solve(const M& m, const Work<R, M>& w, R* x) {
  const int* adr = m.mrow_adr;
  const int* col = m.mrow_col;
  for (int k = m.nv - 1; k >= 0; k--)
    for (int a = adr[k]; a < adr[k + 1]; a++) x[col[a]] = fnma(w.hess[tri(k) + col[a]], x[k], x[col[a]]);
  for (int k = 0; k < m.nv; k++) {
    R sum = x[k] * w.hess[tri(k) + k];
    for (int a = adr[k]; a < adr[k + 1]; a++) sum = fnma(w.hess[tri(k) + col[a]], x[col[a]], sum);
    x[k] = sum;
  }
}
template<class R, class M> OSTLER_FN R slip_dot(const M& m, const R* x, const R* y) {
  R sum = bc<R>(0);
  for (int d = 0; d < m.nv; d++) sum = fma(x[d], y[d], sum);
  return sum;
}

// First direction of a contact among slip_f; slots of contacts kept by body come first.
template<class M> OSTLER_FN int slip_first(const M& m, bool world, int k) {
  return m.nfric + m.nrow + m.nsdir * (world ? k : m.nwslot + k);
}
// A contact's cost as it is after all: with the friction that does not slip, and less what the
// contact pulls by itself. Minus its slope is the force.
template<class R, class M, int D>
OSTLER_FN void final_cost(Dim<D> dims, const M& m, const Work<R, M>& w, bool world, int k, int c, ConeCost<R>& q) {
  const R d = world ? w.wc_d[k] : w.pc_d[k];
  cone_cost(dims, rub_of(m, w, world, k, c), d, (world ? w.wc_jar : w.pc_jar) + CDIM * k, q);
  if (m.nslip > 0)
    for (int i = 1; i < m.pair_dim[c]; i++) q.g[i] = -w.slip_f[slip_first(m, world, k) + i - 1];
  if (m.sticky) q.g[0] = q.g[0] + pull_of(m, c, d);
}

// min 1/2 (v - f)'A (v - f) + miss'(v - f) over sum (v_i / mu_i)^2 <= r^2; A packed. By what
// changes: in single precision A f - miss would lose the digits of small changes.
template<class R, class Mu>
OSTLER_FN_BIG void friction_ellipsoid(int n, const R* A, const R* f, const R* miss, const Mu& mu, R r, R* v) {
  typedef typename Lane<R>::Mask B;
  const R zero = bc<R>(0), small = bc<R>(1e-10);
  // In single precision the ellipsoid is met no closer; what is left is scaled away.
  const R near = max_(small, r * r * bc<R>(Tiny<R>::value < 1e-12 ? 0 : 1e-6));
  R S[15], g[5], c[5], L[15], inv[5], x[5], y[5], root = zero, size = zero;
  for (int i = 0; i < n; i++) {
    g[i] = f[i] / mu(i);
    c[i] = miss[i] * mu(i);
    v[i] = zero;
    for (int j = 0; j <= i; j++) S[tri(i) + j] = A[tri(i) + j] * mu(i) * mu(j);
  }
  B going = mask_of<B>(true), flat = mask_of<B>(false);
  const auto back = [&](const R* from, R* to) OSTLER_INLINE {
    for (int i = 0; i < n; i++) {
      R s = from[i];
      for (int k = 0; k < i; k++) s = fnma(L[tri(i) + k], to[k], s);
      to[i] = s * inv[i];
    }
    for (int i = n - 1; i >= 0; i--) {
      R s = to[i];
      for (int k = i + 1; k < n; k++) s = fnma(L[tri(k) + i], to[k], s);
      to[i] = s * inv[i];
    }
  };
  for (int it = 0; it < 20; it++) {
    R det = bc<R>(1);
    B bad = mask_of<B>(false);
    for (int i = 0; i < n; i++)
      for (int j = 0; j <= i; j++) {
        R s = S[tri(i) + j];
        if (i == j) s = s + root;
        for (int k = 0; k < j; k++) s = fnma(L[tri(i) + k], L[tri(j) + k], s);
        if (i == j) {
          det = det * s;
          bad = bad | (s < (n > 3 ? small : zero));
          L[tri(i) + i] = sqrt_(max_(s, bc<R>(Tiny<R>::value)));
          inv[i] = recip_(L[tri(i) + i]);
        } else {
          L[tri(i) + j] = s * inv[j];
        }
      }
    if (n <= 3) bad = bad | (det < small);
    for (int i = 0; i < n; i++) y[i] = fma(root, g[i], c[i]);
    back(y, x);
    R square = zero, slope = zero;
    for (int i = 0; i < n; i++) {
      x[i] = g[i] - x[i];
      square = fma(x[i], x[i], square);
      v[i] = sel(going, x[i], v[i]);
    }
    size = sel(going, square, size);
    flat = flat | (going & bad);
    const R over = square - r * r;
    going = going & !bad & (over >= near);
    if (!any(going)) break;
    back(x, y);
    for (int i = 0; i < n; i++) slope = fma(x[i], y[i], slope);
    const R more = over / (slope + slope);
    going = going & (more >= small);
    root = sel(going, root + more, root);
  }
  const R scale = sel(flat, zero, sel(root > zero, r / sqrt_(max_(size, bc<R>(Tiny<R>::value))), bc<R>(1)));
  for (int i = 0; i < n; i++) v[i] = v[i] * mu(i) * scale;
}

// One direction whose force is within +-most; returns what the cost falls by.
template<class R, class M>
OSTLER_FN R slip_one(const M& m, Work<R, M>& w, typename Lane<R>::Mask done, const R* B, R A, R miss, R most, R& force) {
  const R old = force;
  force = sel(done, old, max_(min_(old - miss / A, most), -most));
  const R by = force - old;
  for (int d = 0; d < m.nv; d++) w.qacc[d] = fma(B[d], by, w.qacc[d]);
  return -fma(bc<R>(0.5) * by * by, A, by * miss);
}

// The directions of a contact, their products with the inverse mass matrix and forces; returns
// the sum of f^2 / D, half of which is the cost that hard friction does without.
template<class R, class M> OSTLER_FN R slip_contact(const M& m, Work<R, M>& w, bool world, int k) {
  const int c = world ? w.wc_pair[k] : w.pc_pair[k], dim = m.pair_dim[c], first = slip_first(m, world, k);
  const int own = first - m.nfric - m.nrow;
  const R zero = bc<R>(0), d = world ? w.wc_d[k] : w.pc_d[k];
  const R* x = (world ? w.wc_jar : w.pc_jar) + CDIM * k;
  const auto there = d > zero;
  R lost = zero;
  by_dim<EITHER_WAY>(m, c, [&](auto dims) OSTLER_INLINE {
    const Rub<R, M> rub = rub_of(m, w, world, k, c);
    ConeCost<R> q;
    R mu[CDIM], ratio[CDIM];
    cone_cost(dims, rub, d, x, q);
    rub.mus(dim, mu);
    if (m.elliptic) rub.ratios(dim, ratio);
    w.slip_n[world ? k : m.nwslot + k] = -q.g[0];
    const R soft = sel(there, bc<R>(1), zero) / sel(there, d, bc<R>(1));
    if (dim == 1 || m.elliptic) lost = q.g[0] * q.g[0] * soft;
    for (int i = 1; i < dim; i++) {
      w.slip_f[first + i - 1] = -q.g[i];
      if (m.elliptic) {
        lost = fma(q.g[i] * q.g[i], soft / ratio[i - 1], lost);
        continue;
      }
      const R a = mu[i - 1] * x[i], p = min_(x[0] + a, zero), e = min_(x[0] - a, zero);
      lost = fma(fma(p, p, e * e), d, lost);
      w.slip_most[own + i - 1] = -mu[i - 1] * d * (p + e);
    }
  });
  if (dim == 1) return lost;
  R* J = w.slip_j + (unsigned long)m.nv * own;
  R* B = w.slip_b + (unsigned long)m.nv * first;
  for (int e = 0; e < (dim - 1) * m.nv; e++) J[e] = zero;
  if (world) {
    const R* n = w.wc_frame + 6 * k;
    const int b = m.cg_body[m.pair_g2[c]];
    for (int e = m.body_dof[b + 1] - 1; e >= 0; e = m.dof_parent[e]) {
      const R* s = w.cdof + 6 * e;
      R u[3] = {s[3], s[4], s[5]}, v[CDIM];
      cross_add(s, w.wc_pos + 3 * k, u);
      contact_velocity(dim, n, n + 3, s, u, v);
      for (int i = 1; i < dim; i++) J[(i - 1) * m.nv + e] = sel(there, v[i], zero);
    }
  } else {
    const R* j = w.pc_j + (unsigned long)m.npdim * m.npath * k;
    for (int e = m.pair_path[c]; e < m.pair_path[c + 1]; e++, j += dim)
      for (int i = 1; i < dim; i++) J[(i - 1) * m.nv + m.path_dof[e]] = sel(there, j[i], zero);
  }
  for (int e = 0; e < (dim - 1) * m.nv; e++) B[e] = J[e];
  for (int i = 0; i < dim - 1; i++) slip_solve(m, w, B + i * m.nv);
  R* A = w.slip_a + m.nfric + m.nrow + tri(m.nsdir) * (world ? k : m.nwslot + k);
  for (int i = 0; i < dim - 1; i++)
    for (int l = 0; l <= i; l++) {
      A[tri(i) + l] = slip_dot(m, J + i * m.nv, B + l * m.nv);
      if (i == l) A[tri(i) + l] = max_(A[tri(i) + l], bc<R>(Tiny<R>::value));
    }
  return lost;
}

// A sweep over one contact.
template<class R, class M> OSTLER_FN R slip_sweep(const M& m, Work<R, M>& w, typename Lane<R>::Mask done, bool world, int k) {
  const int c = world ? w.wc_pair[k] : w.pc_pair[k], n = m.pair_dim[c] - 1, first = slip_first(m, world, k);
  const int own = first - m.nfric - m.nrow, slot = world ? k : m.nwslot + k;
  const R* J = w.slip_j + (unsigned long)m.nv * own;
  const R* B = w.slip_b + (unsigned long)m.nv * first;
  const R* A = w.slip_a + m.nfric + m.nrow + tri(m.nsdir) * slot;
  const R* aref = (world ? w.wc_aref : w.pc_aref) + CDIM * k + 1;
  R* f = w.slip_f + first;
  const R zero = bc<R>(0);
  R falls = zero;
  if (!m.elliptic) {
    for (int i = 0; i < n; i++)
      falls = falls + slip_one(m, w, done, B + i * m.nv, A[tri(i) + i], slip_dot(m, J + i * m.nv, w.qacc) - aref[i], w.slip_most[own + i], f[i]);
    return falls;
  }
  const Rub<R, M> rub = rub_of(m, w, world, k, c);
  R miss[5], v[5], mu[CDIM], change = zero;
  rub.mus(n + 1, mu);
  for (int i = 0; i < n; i++) miss[i] = slip_dot(m, J + i * m.nv, w.qacc) - aref[i];
  const auto pressed = w.slip_n[slot] > bc<R>(OSTLER_MIN_VALUE);
  friction_ellipsoid(n, A, f, miss, [&](int i) OSTLER_INLINE { return mu[i]; }, w.slip_n[slot], v);
  for (int i = 0; i < n; i++) v[i] = sel(pressed, v[i], zero) - f[i];
  for (int i = 0; i < n; i++) {
    R half = miss[i];
    for (int j = 0; j < n; j++) half = fma(bc<R>(0.5) * (j <= i ? A[tri(i) + j] : A[tri(j) + i]), v[j], half);
    change = fma(v[i], half, change);
  }
  const auto stay = done | (change > bc<R>(1e-10));
  for (int i = 0; i < n; i++) {
    v[i] = sel(stay, zero, v[i]);
    f[i] = f[i] + v[i];
    for (int d = 0; d < m.nv; d++) w.qacc[d] = fma(B[i * m.nv + d], v[i], w.qacc[d]);
  }
  return sel(stay, zero, -change);
}

// From Newton's acceleration in w.qacc to that without slip; the friction of contacts is in
// slip_f.
template<class R, class M> OSTLER_FN_BIG void no_slip(const M& m, Work<R, M>& w) {
  typedef typename Lane<R>::Mask B;
  const int n = m.nv;
  const R zero = bc<R>(0), half = bc<R>(0.5), least = bc<R>(Tiny<R>::value);
  for (int i = 0; i < n; i++) {
    w.step[i] = zero;
    w.hess[tri(i) + i] = w.mass[tri(i) + i];
    for (int a = m.mrow_adr[i]; a < m.mrow_adr[i + 1]; a++) w.hess[tri(i) + m.mrow_col[a]] = w.mass[tri(i) + m.mrow_col[a]];
  }
  factor(n, m.mrow_adr, m.mrow_col, w.hess, w.step);
  R lost = zero;
  const auto dry = [&](int row, R d, R loss, R x) OSTLER_INLINE {
    R* b = w.slip_b + (unsigned long)n * row;
    const R f = -friction_cost(d, loss, x).slope;
    w.slip_f[row] = f;
    lost = lost + f * f / d;
    slip_solve(m, w, b);
  };
  for (int f = 0; f < m.nfric; f++) {
    R* b = w.slip_b + (unsigned long)n * f;
    for (int i = 0; i < n; i++) b[i] = bc<R>(i == m.fric_dof[f] ? 1 : 0);
    dry(f, friction_stiffness(m, w, f), varied(m, w, m.vary_loss, f, m.fric_loss[f]), w.fric_jar[f]);
    w.slip_a[f] = max_(b[m.fric_dof[f]], least);
  }
  for (int r = 0; r < m.nrow; r++) {
    if (m.row_kind[r] != ROW_FRICTION) {
      lost = fma(row_cost(m, w, r, w.row_jar[r]).slope, w.row_jar[r], lost);
      continue;
    }
    R* b = w.slip_b + (unsigned long)n * (m.nfric + r);
    R* a = w.slip_a + m.nfric + r;
    for (int i = 0; i < n; i++) b[i] = zero;
    for (int e = m.row_adr[r]; e < m.row_adr[r + 1]; e++) b[m.row_dof[e]] = w.row_j[e];
    dry(m.nfric + r, w.row_d[r], bc<R>(m.row_loss[r]), w.row_jar[r]);
    *a = zero;
    for (int e = m.row_adr[r]; e < m.row_adr[r + 1]; e++) *a = fma(w.row_j[e], b[m.row_dof[e]], *a);
    *a = max_(*a, least);
  }
  for (int l = 0; l < m.nlim; l++)
    if (any(w.lim_d[l] > zero)) lost = fma(limit_cost(w.lim_d[l], w.lim_jar[l]).slope, w.lim_jar[l], lost);
  // Contacts by MuJoCo's order of their pairs.
  int count = 0;
  for (int k = 0; k < w.nwc + w.npc; k++) {
    const bool world = k < w.nwc;
    const int i = world ? k : k - w.nwc, slot = world ? k : m.nwslot + i;
    lost = lost + slip_contact(m, w, world, i);
    if (m.pair_dim[world ? w.wc_pair[i] : w.pc_pair[i]] == 1) continue;
    const auto rank = [&](int s) OSTLER_INLINE { return m.pair_rank[s < m.nwslot ? w.wc_pair[s] : w.pc_pair[s - m.nwslot]]; };
    int at = count++;
    for (; at > 0 && rank(w.slip_on[at - 1]) > rank(slot); at--) w.slip_on[at] = w.slip_on[at - 1];
    w.slip_on[at] = slot;
  }
  B done = !w.constrained;
  for (int it = 0; it < m.nslip; it++) {
    R falls = it == 0 ? half * lost : zero;
    for (int f = 0; f < m.nfric; f++)
      falls = falls + slip_one(m, w, done, w.slip_b + (unsigned long)n * f, w.slip_a[f], w.qacc[m.fric_dof[f]] - w.fric_aref[f],
                               varied(m, w, m.vary_loss, f, m.fric_loss[f]), w.slip_f[f]);
    for (int r = 0; r < m.nrow; r++) {
      if (m.row_kind[r] != ROW_FRICTION) continue;
      R miss = -w.row_aref[r];
      for (int e = m.row_adr[r]; e < m.row_adr[r + 1]; e++) miss = fma(w.row_j[e], w.qacc[m.row_dof[e]], miss);
      const int row = m.nfric + r;
      falls = falls + slip_one(m, w, done, w.slip_b + (unsigned long)n * row, w.slip_a[row], miss, bc<R>(m.row_loss[r]), w.slip_f[row]);
    }
    for (int o = 0; o < count; o++) {
      const int s = w.slip_on[o];
      falls = falls + (s < m.nwslot ? slip_sweep(m, w, done, true, s) : slip_sweep(m, w, done, false, s - m.nwslot));
    }
    done = done | (falls * bc<R>(m.scale) < bc<R>(m.slip_tolerance));
    if (!any(!done)) break;
  }
}
