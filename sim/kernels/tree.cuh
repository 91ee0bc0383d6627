// Linear algebra on the tree: matrices are packed lower triangles of which only
// the pattern's entries are used. Row i of a pattern lists its columns j < i in
// ascending order: col[adr[i]] .. col[adr[i+1]-1].
#pragma once

// y = M x
template<class R, class M> OSTLER_FN void mass_mul(const M& m, const Work<R, M>& w, const R* x, R* y) {
  const int* adr = m.mrow_adr;
  const int* col = m.mrow_col;
  const R* row = w.mass;
  for (int i = 0; i < m.nv; row += ++i) {
    const R xi = x[i];
    R sum = row[i] * xi;
    for (int a = adr[i], end = adr[i + 1]; a < end; a++) {
      const int j = col[a];
      const R mij = row[j];
      sum = fma(mij, x[j], sum);
      y[j] = fma(mij, xi, y[j]);
    }
    y[i] = sum;
  }
}

// A = L' D L in place, from the last row to the first, the diagonal becomes 1/D; and
// x = L'^-1 x on the way, while the factor waits for its divisions.
template<class R> OSTLER_FN void factor(int n, const int* adr, const int* col, R* A, R* x) {
  R* row = A + tri(n);
  for (int k = n - 1; k >= 0; k--) {
    row -= k + 1;
    const R inv = recip_(row[k]), xk = x[k];
    for (int first = adr[k], a = adr[k + 1] - 1; a >= first; a--) {
      const int i = col[a];
      R* up = A + tri(i);
      const R old = row[i], t = old * inv;
      up[i] = fnma(t, old, up[i]);
      for (int c = first; c < a; c++) {
        const int j = col[c];
        up[j] = fnma(t, row[j], up[j]);
      }
      row[i] = t;
      x[i] = fnma(t, xk, x[i]);
    }
    row[k] = inv;
  }
}

// x = A^-1 x; A becomes its factor.
template<class R> OSTLER_FN void solve(int n, const int* adr, const int* col, R* A, R* x) {
  factor(n, adr, col, A, x);
  const R* row = A;
  for (int k = 0; k < n; row += ++k) {
    R sum = x[k] * row[k];
    for (int a = adr[k], end = adr[k + 1]; a < end; a++) {
      const int j = col[a];
      sum = fnma(row[j], x[j], sum);
    }
    x[k] = sum;
  }
}

// grad += J' f and hess += J' K J for contact wrenches f (`wrench`) and contact
// inertias K (`stiff`) of the bodies: inward through the tree, both are summed
// on the way. K: 0..5 angular xx yy zz xy xz yz, 6..14 angular (row) by linear
// (column), 15..20 linear.
template<class R, class M> OSTLER_FN void load_joint_space(const M& m, Work<R, M>& w, int b) {
  const R* K = w.stiff + 21 * b;
  for (int d = m.body_dof[b]; d < m.body_dof[b + 1]; d++) {
    const R* s = w.cdof + 6 * d;
    R u[6];
    u[0] = fma(K[8], s[5], fma(K[7], s[4], fma(K[6], s[3], fma(K[4], s[2], fma(K[3], s[1], K[0] * s[0])))));
    u[1] = fma(K[11], s[5], fma(K[10], s[4], fma(K[9], s[3], fma(K[5], s[2], fma(K[1], s[1], K[3] * s[0])))));
    u[2] = fma(K[14], s[5], fma(K[13], s[4], fma(K[12], s[3], fma(K[2], s[2], fma(K[5], s[1], K[4] * s[0])))));
    u[3] = fma(K[19], s[5], fma(K[18], s[4], fma(K[15], s[3], fma(K[12], s[2], fma(K[9], s[1], K[6] * s[0])))));
    u[4] = fma(K[20], s[5], fma(K[16], s[4], fma(K[18], s[3], fma(K[13], s[2], fma(K[10], s[1], K[7] * s[0])))));
    u[5] = fma(K[17], s[5], fma(K[20], s[4], fma(K[19], s[3], fma(K[14], s[2], fma(K[11], s[1], K[8] * s[0])))));
    for (int e = d; e >= 0; e = m.dof_parent[e])
      w.hess[tri(d) + e] = w.hess[tri(d) + e] + dot6(w.cdof + 6 * e, u);
    w.grad[d] = w.grad[d] + dot6(s, w.wrench + 6 * b);
  }
}

// Of a body: no load, one to which more is added, one that its first contact is to write.
enum { LOAD_NONE, LOAD_SUM, LOAD_FIRST };

// Passes a body's load on to its parent.
template<class R, class M> OSTLER_FN void load_to_parent(const M& m, Work<R, M>& w, int b) {
  const int p = m.body_parent[b];
  if (p < 0) return;
  R *to = w.wrench + 6 * p, *stiff_to = w.stiff + 21 * p;
  const R *from = w.wrench + 6 * b, *stiff_from = w.stiff + 21 * b;
  const bool none = w.has_load[p] == LOAD_NONE;
  w.has_load[p] = LOAD_SUM;
  if (none) {
    for (int k = 0; k < 6; k++) to[k] = from[k];
    // In pieces that compilers write out.
    for (int k = 0; k < 21; k += 7)
      for (int i = 0; i < 7; i++) stiff_to[k + i] = stiff_from[k + i];
  } else {
    for (int k = 0; k < 6; k++) to[k] = to[k] + from[k];
    for (int k = 0; k < 21; k += 7)
      for (int i = 0; i < 7; i++) stiff_to[k + i] = stiff_to[k + i] + stiff_from[k + i];
  }
}
template<class R, class M> OSTLER_FN void contact_loads(const M& m, Work<R, M>& w) {
  for (int b = m.nb - 1; b >= 0; b--) {
    if (!w.has_load[b]) continue;
    load_joint_space(m, w, b);
    load_to_parent(m, w, b);
  }
}

// grad = mstep and hess = M, with zeros where a pattern has more than M.
template<class R, class M> OSTLER_FN void copy_system(const M& m, Work<R, M>& w, const int* adr, const int* col) {
  const int* from = m.mrow_adr;
  const int* mcol = m.mrow_col;
  const R* mass = w.mass;
  R* hess = w.hess;
  for (int i = 0; i < m.nv; i++) {
    w.grad[i] = w.mstep[i];
    if (adr[i + 1] - adr[i] > from[i + 1] - from[i])
      for (int a = adr[i], end = adr[i + 1]; a < end; a++) hess[col[a]] = bc<R>(0);
    for (int a = from[i], end = from[i + 1]; a < end; a++) hess[mcol[a]] = mass[mcol[a]];
    hess[i] = mass[i];
    mass += i + 1, hess += i + 1;
  }
}

// step = -hess^-1 grad; hess becomes its factor.
template<class R, class M> OSTLER_FN void newton_step(const M& m, Work<R, M>& w, const int* adr, const int* col) {
  for (int i = 0; i < m.nv; i++) w.step[i] = -w.grad[i];
  solve(m.nv, adr, col, w.hess, w.step);
}
