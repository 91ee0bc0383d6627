// Constraints that are not contacts: limits and dry friction of single degrees
// of freedom, and the general rows of equality constraints, tendons and ball
// limits, whose Jacobians are stored.
#pragma once

enum { ROW_EQUALITY, ROW_FRICTION, ROW_LIMIT };

// Stiffness of a constraint that has no distance (dry friction).
template<class R, class T> OSTLER_FN double rest_stiffness(const T* s) {
  return s[SOFT_D0] / ((1 - s[SOFT_D0]) * s[SOFT_DIAG]);
}

template<class R, class M> OSTLER_FN R friction_stiffness(const M& m, const Work<R, M>& w, int f) {
  const auto* s = m.fric_soft + SOFT * f;
  if (m.nweigh == 0) return bc<R>(rest_stiffness<R>(s));
  return bc<R>(s[SOFT_D0] / (1 - s[SOFT_D0])) / max_(w.vary[m.fric_weight[f]], bc<R>(Tiny<R>::value));
}

template<class R, class M> OSTLER_FN void limits(const M& m, Work<R, M>& w) {
  for (int l = 0; l < m.nlim; l++) {
    const auto* s = m.lim_soft + SOFT * l;
    const R q = w.qpos[m.lim_qpos[l]];
    const R lo = q - bc<R>(m.lim_lo[l]), hi = bc<R>(m.lim_hi[l]) - q;
    const R r = min_(lo, hi) - bc<R>(s[SOFT_MARGIN]);
    const R sign = sel(lo < hi, bc<R>(1), bc<R>(-1));
    const R imp = impedance(s, r);
    w.lim_sign[l] = sign;
    const R d = m.nweigh > 0 ? stiffness(imp, max_(w.vary[m.lim_weight[l]], bc<R>(Tiny<R>::value))) : stiffness(s, imp);
    w.lim_d[l] = sel(r < bc<R>(0), d, bc<R>(0));
    w.lim_aref[l] = reference(s, imp, r, sign * w.qvel[m.lim_dof[l]]);
  }
  for (int f = 0; f < m.nfric; f++)
    w.fric_aref[f] = bc<R>(-m.fric_soft[SOFT * f + SOFT_B]) * w.qvel[m.fric_dof[f]];
}

// Lanes in which a constraint other than a contact acts.
template<class R, class M> OSTLER_FN typename Lane<R>::Mask rows_act(const M& m, const Work<R, M>& w) {
  typedef typename Lane<R>::Mask B;
  B act = mask_of<B>(m.nfric > 0);
  for (int l = 0; l < m.nlim; l++) act = act | (w.lim_d[l] > bc<R>(0));
  for (int r = 0; r < m.nrow; r++) act = act | (w.row_d[r] > bc<R>(0));
  return act;
}

// Lists the limits that may push in a lane that is not done.
template<class R, class M> OSTLER_FN void list_limits(const M& m, Work<R, M>& w, typename Lane<R>::Mask done) {
  w.nlon = 0;
  for (int l = 0; l < m.nlim; l++)
    if (any((w.lim_d[l] > bc<R>(0)) & !done)) w.lim_on[w.nlon++] = l;
}

// J x of these rows; of limits, the listed ones.
template<class R, class M> OSTLER_FN void rows_mul(const M& m, const Work<R, M>& w, const R* x, R* lim, R* fric, R* row) {
  for (int o = 0; o < w.nlon; o++) {
    const int l = w.lim_on[o];
    lim[l] = w.lim_sign[l] * x[m.lim_dof[l]];
  }
  for (int f = 0; f < m.nfric; f++) fric[f] = x[m.fric_dof[f]];
  for (int r = 0; r < m.nrow; r++) {
    R sum = bc<R>(0);
    for (int e = m.row_adr[r]; e < m.row_adr[r + 1]; e++) sum = fma(w.row_j[e], x[m.row_dof[e]], sum);
    row[r] = sum;
  }
}

// Slope (minus the force) and curvature of a row's cost at residual x.
// Dry friction is quadratic up to the loss and linear beyond (Huber).
template<class R> struct RowCost { R slope, curve; };
template<class R> OSTLER_FN RowCost<R> limit_cost(R d, R x) {
  const R on = sel(x < bc<R>(0), d, bc<R>(0));
  return {on * x, on};
}
template<class R> OSTLER_FN RowCost<R> friction_cost(R d, R loss, R x) {
  const R f = d * x;
  const auto stick = (f < loss) & (f > -loss);
  return {max_(min_(f, loss), -loss), sel(stick, d, bc<R>(0))};
}
template<class R, class M> OSTLER_FN RowCost<R> row_cost(const M& m, const Work<R, M>& w, int r, R x) {
  if (m.row_kind[r] == ROW_LIMIT) return limit_cost(w.row_d[r], x);
  if (m.row_kind[r] == ROW_FRICTION) return friction_cost(w.row_d[r], bc<R>(m.row_loss[r]), x);
  return {w.row_d[r] * x, w.row_d[r]};
}

// grad += J' slope, hess += J' curve J at the residuals.
template<class R, class M> OSTLER_FN void rows_load(const M& m, Work<R, M>& w) {
  for (int o = 0; o < w.nlon; o++) {
    const int l = w.lim_on[o], d = m.lim_dof[l];
    const RowCost<R> c = limit_cost(w.lim_d[l], w.lim_jar[l]);
    w.grad[d] = fma(w.lim_sign[l], c.slope, w.grad[d]);
    w.hess[tri(d) + d] = w.hess[tri(d) + d] + c.curve;
  }
  for (int f = 0; f < m.nfric; f++) {
    const int d = m.fric_dof[f];
    const RowCost<R> c = friction_cost(friction_stiffness(m, w, f), varied(m, w, m.vary_loss, f, m.fric_loss[f]), w.fric_jar[f]);
    w.grad[d] = w.grad[d] + c.slope;
    w.hess[tri(d) + d] = w.hess[tri(d) + d] + c.curve;
  }
  for (int r = 0; r < m.nrow; r++) {
    const RowCost<R> c = row_cost(m, w, r, w.row_jar[r]);
    for (int e = m.row_adr[r]; e < m.row_adr[r + 1]; e++) {
      const int d = m.row_dof[e];
      const R t = c.curve * w.row_j[e];
      w.grad[d] = fma(w.row_j[e], c.slope, w.grad[d]);
      for (int g = m.row_adr[r]; g <= e; g++) {
        const int i = tri(d) + m.row_dof[g];
        w.hess[i] = fma(t, w.row_j[g], w.hess[i]);
      }
    }
  }
}

// Whether a step of 1 leaves every row in the piece of its cost where it is.
template<class R, class M> OSTLER_FN typename Lane<R>::Mask rows_change(const M& m, const Work<R, M>& w) {
  typedef typename Lane<R>::Mask B;
  B change = mask_of<B>(false);
  const R zero = bc<R>(0);
  for (int o = 0; o < w.nlon; o++) {
    const int l = w.lim_on[o];
    const R x = w.lim_jar[l];
    change = change | (mask_xor(x < zero, x + w.lim_js[l] < zero) & (w.lim_d[l] > zero));
  }
  for (int f = 0; f < m.nfric; f++) {
    const R d = friction_stiffness(m, w, f), loss = varied(m, w, m.vary_loss, f, m.fric_loss[f]);
    const R x = d * w.fric_jar[f], y = d * (w.fric_jar[f] + w.fric_js[f]);
    change = change | mask_xor(x < loss, y < loss) | mask_xor(x > -loss, y > -loss);
  }
  for (int r = 0; r < m.nrow; r++) {
    if (m.row_kind[r] == ROW_LIMIT) {
      const R x = w.row_jar[r];
      change = change | (mask_xor(x < zero, x + w.row_js[r] < zero) & (w.row_d[r] > zero));
    } else if (m.row_kind[r] == ROW_FRICTION) {
      const R loss = bc<R>(m.row_loss[r]);
      const R x = w.row_d[r] * w.row_jar[r], y = w.row_d[r] * (w.row_jar[r] + w.row_js[r]);
      change = change | mask_xor(x < loss, y < loss) | mask_xor(x > -loss, y > -loss);
    }
  }
  return change;
}

// Slope and curvature along the step at length `a`.
template<class R, class M> OSTLER_FN void rows_slope(const M& m, const Work<R, M>& w, R a, R* d1, R* d2) {
  for (int o = 0; o < w.nlon; o++) {
    const int l = w.lim_on[o];
    const RowCost<R> c = limit_cost(w.lim_d[l], fma(a, w.lim_js[l], w.lim_jar[l]));
    *d1 = fma(c.slope, w.lim_js[l], *d1);
    *d2 = fma(c.curve * w.lim_js[l], w.lim_js[l], *d2);
  }
  for (int f = 0; f < m.nfric; f++) {
    const RowCost<R> c = friction_cost(friction_stiffness(m, w, f), varied(m, w, m.vary_loss, f, m.fric_loss[f]),
                                       fma(a, w.fric_js[f], w.fric_jar[f]));
    *d1 = fma(c.slope, w.fric_js[f], *d1);
    *d2 = fma(c.curve * w.fric_js[f], w.fric_js[f], *d2);
  }
  for (int r = 0; r < m.nrow; r++) {
    const RowCost<R> c = row_cost(m, w, r, fma(a, w.row_js[r], w.row_jar[r]));
    *d1 = fma(c.slope, w.row_js[r], *d1);
    *d2 = fma(c.curve * w.row_js[r], w.row_js[r], *d2);
  }
}

// Moves the residuals along the step.
template<class R, class M> OSTLER_FN void rows_advance(const M& m, Work<R, M>& w, R a) {
  for (int o = 0; o < w.nlon; o++) {
    const int l = w.lim_on[o];
    w.lim_jar[l] = fma(a, w.lim_js[l], w.lim_jar[l]);
  }
  for (int f = 0; f < m.nfric; f++) w.fric_jar[f] = fma(a, w.fric_js[f], w.fric_jar[f]);
  for (int r = 0; r < m.nrow; r++) w.row_jar[r] = fma(a, w.row_js[r], w.row_jar[r]);
}
