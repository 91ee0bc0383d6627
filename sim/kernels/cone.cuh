// The cost of one contact in contact space: residuals x[dim] (normal, tangents,
// torsion, rolling), stiffness d of the normal.
//
// Pyramidal: edges x[0] +- mu[i] x[i], each a quadratic where negative.
// Elliptic: with N = mu x[0] and T = |mu_i x_i|, zero where N >= mu T, quadratic
// in all where mu N + T <= 0, between them 1/2 Dm (N - mu T)^2.
// Source: MuJoCo, Computation, "Friction cones" and "Primal problem".
#pragma once

template<class R> struct ConeCost {
  R g[CDIM];       // slope
  R h[21];         // curvature, packed lower triangle
};

// Where residuals lie in the elliptic cone; `scale`: the pair's friction (Rub::mus).
template<class R, class M> struct Ellipse {
  R n, t, nt;      // N, T, N - mu T
  R u[CDIM];       // scaled residuals
  typename Lane<R>::Mask top, bottom;
};
template<class R, class M, int D>
OSTLER_FN Ellipse<R, M> ellipse(Dim<D> dims, const Rub<R, M> rub, const R* scale, R d, const R* x) {
  const int dim = dims.of(rub.m, rub.c);
  const R mu = rub.cone();
  Ellipse<R, M> e;
  e.n = e.u[0] = x[0] * mu;
  R t2 = bc<R>(0);
  for (int i = 1; i < dim; i++) {
    e.u[i] = x[i] * scale[i - 1];
    t2 = fma(e.u[i], e.u[i], t2);
  }
  e.t = sqrt_(t2);
  const auto point = e.t < bc<R>(Tiny<R>::value);
  e.nt = fnma(mu, e.t, e.n);
  const auto absent = !(d > bc<R>(0));
  e.top = (e.n >= mu * e.t) | (point & (e.n >= bc<R>(0))) | absent;
  e.bottom = ((fma(mu, e.n, e.t) <= bc<R>(0)) | (point & (e.n < bc<R>(0)))) & (!e.top);
  return e;
}

template<class R, class M, int D>
OSTLER_FN_ONE void cone_cost(Dim<D> dims, const Rub<R, M> rub, R d, const R* x, ConeCost<R>& o) {
  const M& m = rub.m;
  const int dim = dims.of(m, rub.c);
  const R zero = bc<R>(0);
  if (dim == 1) {
    o.h[0] = sel(x[0] < zero, d, zero);
    o.g[0] = o.h[0] * x[0];
    return;
  }
  R scale[CDIM];
  rub.mus(dim, scale);
  for (int i = 0; i < tri(dim); i++) o.h[i] = zero;
  if (!m.elliptic) {
    R g0 = zero, h0 = zero;
    for (int i = 1; i < dim; i++) {
      const R mu = scale[i - 1];
      const R a = mu * x[i];
      const R p = x[0] + a, q = x[0] - a;
      const R dp = sel(p < zero, d, zero), dq = sel(q < zero, d, zero);
      const R fp = dp * p, fq = dq * q;
      g0 = g0 + (fp + fq);
      o.g[i] = mu * (fp - fq);
      h0 = h0 + (dp + dq);
      o.h[tri(i)] = mu * (dp - dq);
      o.h[tri(i) + i] = mu * mu * (dp + dq);
    }
    o.g[0] = g0;
    o.h[0] = h0;
    return;
  }
  const R mu = rub.cone();
  const Ellipse<R, M> e = ellipse<R>(dims, rub, scale, d, x);
  const auto middle = !(e.top | e.bottom);
  const R t = sel(middle, e.t, bc<R>(1));
  const R it = recip_(t);
  const R dm = d * rub.sharp();
  R share[CDIM];
  rub.ratios(dim, share);
  // Quadratic zone.
  o.g[0] = sel(e.bottom, d * x[0], zero);
  o.h[0] = sel(e.bottom, d, zero);
  for (int i = 1; i < dim; i++) {
    const R di = d * share[i - 1];
    o.g[i] = sel(e.bottom, di * x[i], zero);
    o.h[tri(i) + i] = sel(e.bottom, di, zero);
  }
  if (!any(middle)) return;
  // Between: cost 1/2 Dm (N - mu T)^2.
  const R s = dm * e.nt;
  o.g[0] = sel(middle, s * mu, o.g[0]);
  o.h[0] = sel(middle, dm * rub.cone2(), o.h[0]);
  const R ratio = mu * e.n * it;       // mu N / T
  for (int i = 1; i < dim; i++) {
    const R fi = scale[i - 1];
    const R ui = e.u[i] * it;
    o.g[i] = sel(middle, s * -mu * ui * fi, o.g[i]);
    o.h[tri(i)] = sel(middle, dm * -mu * ui * fi * mu, o.h[tri(i)]);
    for (int j = 1; j <= i; j++) {
      const R fj = scale[j - 1];
      R v = ratio * ui * (e.u[j] * it);
      if (i == j) v = v + (rub.cone2() - ratio);
      o.h[tri(i) + j] = sel(middle, dm * v * fi * fj, o.h[tri(i) + j]);
    }
  }
}

// Lanes in which a contact pushes: its cost there is not zero.
template<class R, class M, int D>
OSTLER_FN_ONE typename Lane<R>::Mask cone_pushes(Dim<D> dims, const Rub<R, M> rub, R d, const R* x) {
  const M& m = rub.m;
  const int dim = dims.of(m, rub.c);
  R scale[CDIM];
  rub.mus(dim, scale);
  if (dim > 1 && m.elliptic) return !ellipse<R>(dims, rub, scale, d, x).top;
  // An edge x[0] +- mu[i] x[i] is negative.
  R most = bc<R>(0);
  for (int i = 1; i < dim; i++) most = max_(most, abs_(scale[i - 1] * x[i]));
  return (x[0] < most) & (d > bc<R>(0));
}

// Whether the piece of the cost differs between x and x + s, or is no quadratic.
template<class R, class M, int D>
OSTLER_FN_ONE typename Lane<R>::Mask cone_change(Dim<D> dims, const Rub<R, M> rub, R d, const R* x, const R* s) {
  const M& m = rub.m;
  const int dim = dims.of(m, rub.c);
  const R zero = bc<R>(0);
  const auto present = d > zero;
  if (dim == 1) return mask_xor(x[0] < zero, x[0] + s[0] < zero) & present;
  R scale[CDIM];
  rub.mus(dim, scale);
  if (!m.elliptic) {
    auto change = mask_of<typename Lane<R>::Mask>(false);
    for (int i = 1; i < dim; i++) {
      const R mu = scale[i - 1];
      const R a = mu * x[i], b = mu * s[i];
      const R p = x[0] + a, q = x[0] - a;
      change = change | mask_xor(p < zero, p + (s[0] + b) < zero) | mask_xor(q < zero, q + (s[0] - b) < zero);
    }
    return change & present;
  }
  R y[CDIM];
  for (int i = 0; i < dim; i++) y[i] = x[i] + s[i];
  const Ellipse<R, M> e = ellipse<R>(dims, rub, scale, d, x), f = ellipse<R>(dims, rub, scale, d, y);
  return (!((e.top & f.top) | (e.bottom & f.bottom))) & present;
}

// Adds slope and curvature of the cost along s at x + a s.
template<class R, class M, int D>
OSTLER_FN_ONE void cone_slope(Dim<D> dims, const Rub<R, M> rub, R d, const R* x, const R* s, R a, R* d1, R* d2) {
  const M& m = rub.m;
  const int dim = dims.of(m, rub.c);
  const R zero = bc<R>(0);
  R scale[CDIM];
  rub.mus(dim, scale);
  if (dim == 1 || !m.elliptic) {
    if (dim == 1) {
      const R y = fma(a, s[0], x[0]);
      const R on = sel(y < zero, d, zero) * s[0];
      *d1 = fma(on, y, *d1);
      *d2 = fma(on, s[0], *d2);
    }
    for (int i = 1; i < dim; i++) {
      const R mu = scale[i - 1];
      const R u = mu * x[i], v = mu * s[i];
      const R sp = s[0] + v, sq = s[0] - v;
      const R p = fma(a, sp, x[0] + u), q = fma(a, sq, x[0] - u);
      const R on = sel(p < zero, d, zero) * sp, oq = sel(q < zero, d, zero) * sq;
      *d1 = fma(on, p, fma(oq, q, *d1));
      *d2 = fma(on, sp, fma(oq, sq, *d2));
    }
    return;
  }
  const R mu = rub.cone();
  R y[CDIM];
  for (int i = 0; i < dim; i++) y[i] = fma(a, s[i], x[i]);
  const Ellipse<R, M> e = ellipse<R>(dims, rub, scale, d, y);
  R share[CDIM];
  rub.ratios(dim, share);
  R q1 = d * y[0] * s[0], q2 = d * s[0] * s[0], uv = zero, vv = zero;
  for (int i = 1; i < dim; i++) {
    const R di = d * share[i - 1] * s[i];
    q1 = fma(di, y[i], q1);
    q2 = fma(di, s[i], q2);
    const R v = s[i] * scale[i - 1];
    uv = fma(e.u[i], v, uv);
    vv = fma(v, v, vv);
  }
  const auto middle = !(e.top | e.bottom);
  const R it = recip_(sel(middle, e.t, bc<R>(1)));
  const R t1 = uv * it;                                // T'
  const R t2 = fnma(t1, t1, vv) * it;                  // T''
  const R n1 = s[0] * mu;
  const R k = fnma(mu, t1, n1);
  const R dm = d * rub.sharp();
  *d1 = *d1 + sel(e.bottom, q1, sel(middle, dm * e.nt * k, zero));
  *d2 = *d2 + sel(e.bottom, q2, sel(middle, dm * fnma(mu * e.nt, t2, k * k), zero));
}
