// The matrix of a time step that takes forces at the step's end: M - h D with
// D = d force / d velocity, and the accelerations that solve it.
//
// Its rows are of two kinds. Where `body_skew` is 0 they have the mass matrix's
// pattern and D is symmetric, in the packed lower triangle `hess`. Where it is 1
// (integrator implicit, and free bodies by themselves under implicitfast) D also
// has the derivatives of Coriolis and gyroscopic forces, which are not: such a row
// couples with every degree of freedom that moves it, its column is in `upper`.
//
// Source: MuJoCo, Computation, "Numerical integration"; the derivatives are those of
// the recursion in `inertia_and_bias`, about the same reference.
#pragma once

// Whether the matrix has an entry for degrees of freedom hi >= lo; pairs without
// one are left out of D, as in MuJoCo.
template<class M> OSTLER_FN bool coupled(const M& m, int hi, int lo) {
  bool kept = hi == lo;
  if (m.body_skew[m.dof_body[hi]]) {
    for (int e = m.dof_parent[hi]; e >= 0; e = m.dof_parent[e]) kept |= e == lo;
  } else {
    for (int a = m.mrow_adr[hi]; a < m.mrow_adr[hi + 1]; a++) kept |= m.mrow_col[a] == lo;
  }
  return kept;
}

// hess = M
template<class R, class M> OSTLER_FN void implicit_mass(const M& m, Work<R, M>& w) {
  for (int i = 0; i < m.nv; i++) {
    if (m.slopes == 2) {
      const bool skew = m.body_skew[m.dof_body[i]];
      for (int e = m.dof_parent[i]; e >= 0; e = m.dof_parent[e]) w.hess[tri(i) + e] = skew ? w.mass[tri(i) + e] : bc<R>(0);
    }
    for (int a = m.mrow_adr[i]; a < m.mrow_adr[i + 1]; a++) w.hess[tri(i) + m.mrow_col[a]] = w.mass[tri(i) + m.mrow_col[a]];
    w.hess[tri(i) + i] = w.mass[tri(i) + i];
  }
}

// hess -= h J' W J for the medium, in rows that are symmetric.
template<class R, class M> OSTLER_FN void implicit_fluid(const M& m, Work<R, M>& w) {
  fluid_slopes(m, w);
  const R h = bc<R>(m.timestep);
  for (int d = 0; d < m.nv; d++) {
    const int b = m.dof_body[d];
    if (m.body_skew[b]) continue;
    R u[6];
    for (int i = 0; i < 6; i++) u[i] = dot6(w.wet + 36 * b + 6 * i, w.cdof + 6 * d);
    for (int e = d; e >= 0; e = m.dof_parent[e])
      if (coupled(m, d, e)) w.hess[tri(d) + e] = fnma(h, dot6(w.cdof + 6 * e, u), w.hess[tri(d) + e]);
  }
}

// How axes turn: axis_dot of a degree of freedom is the derivative with respect to
// its velocity of the acceleration (at qacc = 0) of whatever it moves, but for
// -v x axis with that body's own velocity v.
template<class R, class M> OSTLER_FN void axis_rates(const M& m, Work<R, M>& w, int b) {
  const int p = m.body_parent[b];
  R v[6];
  for (int k = 0; k < 6; k++) v[k] = p < 0 ? bc<R>(0) : w.vel[6 * p + k];
  for (int j = m.body_jnt[b]; j < m.body_jnt[b + 1]; j++) {
    const int type = m.jnt_type[j];
    int d = m.jnt_dof[j], n = 1;
    if (type == JNT_FREE) {
      for (int k = 0; k < 3; k++) v[3 + k] = v[3 + k] + w.qvel[d + k];
      for (int k = 0; k < 18; k++) w.axis_dot[6 * d + k] = bc<R>(0);
      d += 3, n = 3;
    } else if (type == JNT_BALL) {
      n = 3;
    }
    for (int i = 6 * d; i < 6 * (d + n); i++) w.axis_dot[i] = bc<R>(0);
    for (int i = d; i < d + n; i++) motion_cross_add(v, w.cdof + 6 * i, w.axis_dot + 6 * i);
    for (int i = d; i < d + n; i++)
      for (int k = 0; k < 6; k++) v[k] = fma(w.cdof[6 * i + k], w.qvel[i], v[k]);
    for (int i = d; i < d + n; i++) motion_cross_add(v, w.cdof + 6 * i, w.axis_dot + 6 * i);
  }
}

// The change of the force that a body needs with its velocity: for a unit axis (s, o) the moment
// Y s - n x s and the force -2 l x s, with its momentum (n, l). spin: Y as xx yy zz xy xz yz, n,
// l.
template<class R, class M> OSTLER_FN void spin_slopes(const M& m, Work<R, M>& w, int b) {
  R* I = w.inertia + 10 * b;
  body_inertia(Space(), m, w, b, I);
  const R* v = w.vel + 6 * b;
  const R* g = I + 6;
  R* Y = w.spin + 12 * b;
  inertia_mul(I, v, Y + 6);
  // [w] J - J [w] - [v][g] - [g][v]
  R P[9];  // column j of [w] J
  const R J[9] = {I[0], I[3], I[4], I[3], I[1], I[5], I[4], I[5], I[2]};
  for (int j = 0; j < 3; j++) cross(v, J + 3 * j, P + 3 * j);
  const R vg = dot3(v + 3, g);
  for (int k = 0; k < 3; k++) Y[k] = bc<R>(2) * (fnma(v[3 + k], g[k], P[4 * k]) + vg);
  for (int k = 0; k < 3; k++) {
    const int i = k < 2 ? 0 : 1, j = k < 1 ? 1 : 2;
    Y[3 + k] = fnma(v[3 + i], g[j], fnma(v[3 + j], g[i], P[3 * i + j] + P[3 * j + i]));
  }
}

// Entries of skew rows and of their columns; `upper` of the others.
template<class R, class M> OSTLER_FN void implicit_skew(const M& m, Work<R, M>& w) {
  const R h = bc<R>(m.timestep);
  const bool wet = m.nfluid + m.nell > 0;
  for (int d = 0; d < m.nv; d++)
    for (int e = m.dof_parent[d]; e >= 0; e = m.dof_parent[e]) w.upper[tri(d) + e] = w.hess[tri(d) + e];
  for (int b = 0; b < m.nb; b++)
    if (m.body_skew[b]) axis_rates(m, w, b), spin_slopes(m, w, b);
  for (int b = m.nb - 1; b >= 0; b--) {
    if (!m.body_skew[b]) continue;
    const R* I = w.inertia + 10 * b;
    const R* Y = w.spin + 12 * b;
    for (int d = m.body_dof[b + 1] - 1; d >= m.body_dof[b]; d--) {
      const R* s = w.cdof + 6 * d;
      // The effect of this axis on the forces of all bodies that it moves ...
      R u[6], Ys[3], ns[3];
      inertia_mul(I, w.axis_dot + 6 * d, u);
      Ys[0] = fma(Y[4], s[2], fma(Y[3], s[1], Y[0] * s[0]));
      Ys[1] = fma(Y[5], s[2], fma(Y[1], s[1], Y[3] * s[0]));
      Ys[2] = fma(Y[2], s[2], fma(Y[5], s[1], Y[4] * s[0]));
      cross(Y + 6, s, ns);
      for (int k = 0; k < 3; k++) u[k] = u[k] + (Ys[k] - ns[k]);
      R ls[3];
      cross(Y + 9, s, ls);
      for (int k = 0; k < 3; k++) u[3 + k] = fnma(bc<R>(2), ls[k], u[3 + k]);
      // ... and what is felt along it when an axis below it turns.
      R z[6], y[6];
      inertia_mul(I, s, z);
      cross(Y + 9, s + 3, y);
      for (int k = 0; k < 3; k++) y[k] = fma(bc<R>(2), y[k], Ys[k] + ns[k]), y[3 + k] = bc<R>(0);
      if (wet) {
        const R* W = w.wet + 36 * b;
        for (int k = 0; k < 6; k++) {
          u[k] = u[k] - dot6(W + 6 * k, s);
          R sum = W[k] * s[0];
          for (int i = 1; i < 6; i++) sum = fma(W[6 * i + k], s[i], sum);
          y[k] = y[k] - sum;
        }
      }
      w.hess[tri(d) + d] = fma(h, dot6(s, u), w.hess[tri(d) + d]);
      for (int e = m.dof_parent[d]; e >= 0; e = m.dof_parent[e]) {
        const R* t = w.cdof + 6 * e;
        w.upper[tri(d) + e] = fma(h, dot6(t, u), w.upper[tri(d) + e]);
        w.hess[tri(d) + e] = fma(h, dot6(w.axis_dot + 6 * e, z) + dot6(t, y), w.hess[tri(d) + e]);
      }
    }
    const int p = m.body_parent[b];
    if (p < 0) continue;
    for (int k = 0; k < 10; k++) w.inertia[10 * p + k] = w.inertia[10 * p + k] + I[k];
    for (int k = 0; k < 12; k++) w.spin[12 * p + k] = w.spin[12 * p + k] + Y[k];
  }
}

// step = A^-1 step for the matrix A of `hess` and `upper`, which are used up:
// elimination from the last row to the first fills in nothing.
template<class R, class M> OSTLER_FN void solve_skew(const M& m, Work<R, M>& w) {
  R* x = w.step;
  for (int k = m.nv - 1; k >= 0; k--) {
    R* row = w.hess + tri(k);
    const R inv = recip_(row[k]);
    for (int i = m.dof_parent[k]; i >= 0; i = m.dof_parent[i]) {
      const R t = w.upper[tri(k) + i] * inv;
      x[i] = fnma(t, x[k], x[i]);
      for (int e = m.dof_parent[k]; e >= 0; e = m.dof_parent[e]) {
        R& at = e <= i ? w.hess[tri(i) + e] : w.upper[tri(e) + i];
        at = fnma(t, row[e], at);
      }
    }
    row[k] = inv;
  }
  for (int k = 0; k < m.nv; k++) {
    const R* row = w.hess + tri(k);
    R sum = x[k];
    for (int e = m.dof_parent[k]; e >= 0; e = m.dof_parent[e]) sum = fnma(row[e], x[e], sum);
    x[k] = sum * row[k];
  }
}
