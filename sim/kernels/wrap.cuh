// The shortest way of a string around a sphere or a cylinder.
// Source: MuJoCo, Modeling, "Tendons"; which way it goes where there are two was found by
// trial with MuJoCo 4.0.0.
#pragma once

template<class R> OSTLER_FN R dot2(const R* a, const R* b) { return fma(a[1], b[1], a[0] * b[0]); }
template<class R> OSTLER_FN R cross2(const R* a, const R* b) { return fms(a[0], b[1], a[1] * b[0]); }
// Scales to unit length; (1, 0, ..) where there is none.
template<int N, class R> OSTLER_FN R unit_(R* v) {
  R n2 = v[0] * v[0];
  for (int k = 1; k < N; k++) n2 = fma(v[k], v[k], n2);
  const auto none = n2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
  const R n = sqrt_(sel(none, bc<R>(1), n2));
  for (int k = 0; k < N; k++) v[k] = sel(none, bc<R>(k == 0 ? 1 : 0), v[k] / n);
  return sel(none, bc<R>(0), n);
}

// Whether the segments p1 p2 and p3 p4 cross.
template<class R> OSTLER_FN typename Lane<R>::Mask segments_cross(const R* p1, const R* p2, const R* p3, const R* p4) {
  const R u[2] = {p2[0] - p1[0], p2[1] - p1[1]}, v[2] = {p4[0] - p3[0], p4[1] - p3[1]};
  const R d[2] = {p1[0] - p3[0], p1[1] - p3[1]};
  const R det = cross2(u, v);
  const auto parallel = abs_(det) < bc<R>(Tiny<R>::value);
  const R s = sel(parallel, bc<R>(1), det);
  const R a = cross2(v, d) / s, b = cross2(u, d) / s;
  const R zero = bc<R>(0), one = bc<R>(1);
  return (a >= zero) & (a <= one) & (b >= zero) & (b <= one) & !parallel;
}

// Around a circle in the plane: from `end` to `end + 2`, touching it in `pnt`, `pnt + 2`;
// `side` (or null) is on the circle, where the string passes. Lanes that wrap; the
// length of the arc in *arc.
template<class R> OSTLER_FN typename Lane<R>::Mask wrap_circle(const R* end, const R* side, double radius, R* pnt, R* arc) {
  const R r = bc<R>(radius), r2 = bc<R>(radius * radius), zero = bc<R>(0), one = bc<R>(1);
  const R n0 = dot2(end, end), n1 = dot2(end + 2, end + 2);
  const R dif[2] = {end[2] - end[0], end[3] - end[1]};
  const R dd = dot2(dif, dif);
  auto wraps = (n0 >= r2) & (n1 >= r2) & (dd >= bc<R>(Tiny<R>::value));
  const R a = max_(min_(-dot2(dif, end) / max_(dd, bc<R>(Tiny<R>::value)), one), zero);
  const R near[2] = {fma(a, dif[0], end[0]), fma(a, dif[1], end[1])};
  auto passes = dot2(near, near) > r2;
  const auto left = cross2(end, end + 2) > zero;
  auto first = left;  // of the solutions
  if (side) {
    // The string never crosses the ray opposite of the side point.
    const R u0 = dot2(side, end), v0 = cross2(side, end), u1 = dot2(side, end + 2), v1 = cross2(side, end + 2);
    const R at = fms(v0, u1, u0 * v1);
    const auto down = (v0 > zero) & (v1 <= zero), up = (v0 <= zero) & (v1 > zero);
    const auto crosses = (down & (at < zero)) | (up & (at > zero));
    passes = passes & !crosses;
    first = !mask_xor(left, crosses);
  }
  wraps = wraps & !passes;
  // Lanes that do not wrap go on with numbers that mean nothing and do no harm.
  const R s0 = sqrt_(max_(n0 - r2, zero)), s1 = sqrt_(max_(n1 - r2, zero));
  const R i0 = one / max_(n0, bc<R>(Tiny<R>::value)), i1 = one / max_(n1, bc<R>(Tiny<R>::value));
  R sol[2][4], good[2];
  for (int i = 0; i < 2; i++) {
    const R t0 = i == 0 ? r * s0 : -(r * s0), t1 = i == 0 ? r * s1 : -(r * s1);
    sol[i][0] = fma(end[1], t0, end[0] * r2) * i0;
    sol[i][1] = fnma(end[0], t0, end[1] * r2) * i0;
    sol[i][2] = fnma(end[3], t1, end[2] * r2) * i1;
    sol[i][3] = fma(end[2], t1, end[3] * r2) * i1;
    const R way[2] = {sol[i][0] - sol[i][2], sol[i][1] - sol[i][3]};
    good[i] = -dot2(way, way);
    good[i] = sel(segments_cross(end, sol[i], end + 2, sol[i] + 2), bc<R>(-10000), good[i]);
  }
  if (!side) first = good[0] > good[1];
  for (int k = 0; k < 4; k++) pnt[k] = sel(first, sol[0][k], sol[1][k]);
  wraps = wraps & !segments_cross(end, pnt, end + 2, pnt + 2);
  // The angle from the second to the first point, the way round that was chosen.
  const R turn = cross2(pnt + 2, pnt);
  const R angle = atan2_(abs_(turn), dot2(pnt, pnt + 2));
  const auto back = ((turn < zero) & first) | ((turn > zero) & !first);
  *arc = r * sel(back, bc<R>(6.28318530717958647692) - angle, angle);
  return wraps;
}

// Inside a circle, as through a ring: the string touches it in one point, `pnt`.
template<class R> OSTLER_FN typename Lane<R>::Mask wrap_inside(const R* end, double radius, R* pnt) {
  const R r = bc<R>(radius), zero = bc<R>(0), one = bc<R>(1), tiny = bc<R>(Tiny<R>::value);
  const R n0 = dot2(end, end), n1 = dot2(end + 2, end + 2);
  const R len0 = sqrt_(n0), len1 = sqrt_(n1);
  const R dif[2] = {end[2] - end[0], end[3] - end[1]};
  const R dd = dot2(dif, dif);
  auto wraps = (len0 > r) & (len1 > r);
  const R a = -dot2(dif, end) / max_(dd, tiny);
  const R near[2] = {fma(a, dif[0], end[0]), fma(a, dif[1], end[1])};
  wraps = wraps & !((dd > tiny) & (a > zero) & (a < one) & (dot2(near, near) <= bc<R>(radius * radius)));
  const R A = min_(r / max_(len0, tiny), one), B = min_(r / max_(len1, tiny), one);
  const R turn = cross2(end, end + 2), across = dot2(end, end + 2);
  wraps = wraps & (across >= (bc<R>(-1) + tiny) * len0 * len1);
  // The touching point lies at an angle x from the first end, G - x from the second, where
  // both straight parts meet the circle's normal alike:
  //   sin(2 x - G) - B sin x + A sin(G - x) = 0,
  // between the angles from which the ends see it. Newton's method, by halves where it
  // leaves them.
  const R G = atan2_(abs_(turn), across);
  R sG, cG, sx, cx;
  sincos_(G, sG, cG);
  R lo = max_(G - atan2_(sqrt_(max_(fnma(B, B, one), zero)), B), zero);
  R hi = min_(atan2_(sqrt_(max_(fnma(A, A, one), zero)), A), G);
  R x = bc<R>(0.5) * (lo + hi);
  for (int k = 0; k < 16; k++) {
    sincos_(x, sx, cx);
    const R sy = fms(sG, cx, cG * sx), cy = fma(cG, cx, sG * sx);  // of G - x
    const R value = fma(A, sy, fnma(B, sx, fms(sx, cy, cx * sy)));
    const R slope = fms(bc<R>(2), fma(cx, cy, sx * sy), fma(B, cx, A * cy));
    lo = sel(value < zero, x, lo);
    hi = sel(value < zero, hi, x);
    const R next = x - value / sel(abs_(slope) < tiny, one, slope);
    x = sel((next >= lo) & (next <= hi), next, bc<R>(0.5) * (lo + hi));
  }
  R axis[2] = {end[0], end[1]};
  unit_<2>(axis);
  sincos_(x, sx, cx);
  sx = sel(turn < zero, -sx, sx);
  const R touch[2] = {fms(cx, axis[0], sx * axis[1]), fma(cx, axis[1], sx * axis[0])};
  for (int k = 0; k < 2; k++) pnt[k] = pnt[2 + k] = r * touch[k];
  return wraps;
}

// From x0 to x1 around a sphere or (along z) a cylinder at the origin; `side` is null or
// a point by which the string passes; inside: 0 never, 1 always, 2 where the side point
// lies inside. Lanes that wrap; where they touch in out[0..5], the length between in *arc.
template<class R>
OSTLER_FN typename Lane<R>::Mask wrap(const R* x0, const R* x1, const R* side, double radius, bool cylinder, int inside, R* out, R* arc) {
  const R tiny = bc<R>(Tiny<R>::value);
  R e0[3] = {bc<R>(1), bc<R>(0), bc<R>(0)}, e1[3] = {bc<R>(0), bc<R>(1), bc<R>(0)};
  auto wraps = (dot3(x0, x0) >= tiny * tiny) & (dot3(x1, x1) >= tiny * tiny);
  if (!cylinder) {
    // The plane of both points and the centre; any through x0 where they are on a line.
    R normal[3], other[3];
    for (int k = 0; k < 3; k++) e0[k] = x0[k];
    unit_<3>(e0);
    cross(x0, x1, normal);
    const auto line = unit_<3>(normal) < tiny;
    const R ax = abs_(e0[0]), ay = abs_(e0[1]), az = abs_(e0[2]);
    const auto z = (az > ax) & (az > ay);
    const auto y = (ay > ax) & (ay > az) & !z;
    const R one = bc<R>(1), zero = bc<R>(0);
    const R most[3] = {sel(y | z, one, zero), sel(y, zero, one), sel(z, zero, one)};
    cross(e0, most, other);
    unit_<3>(other);
    for (int k = 0; k < 3; k++) normal[k] = sel(line, other[k], normal[k]);
    cross(normal, e0, e1);
    unit_<3>(e1);
  }
  const R end[4] = {dot3(x0, e0), dot3(x0, e1), dot3(x1, e0), dot3(x1, e1)};
  R pnt[4];
  R length = bc<R>(0);
  if (side) {
    R at[2] = {dot3(side, e0), dot3(side, e1)};
    unit_<2>(at);
    for (int k = 0; k < 2; k++) at[k] = at[k] * bc<R>(radius);
    if (inside == 0) wraps = wraps & wrap_circle(end, at, radius, pnt, &length);
    if (inside == 1) wraps = wraps & wrap_inside(end, radius, pnt);
    if (inside == 2) {
      R in[4];
      const auto within = dot3(side, side) < bc<R>(radius * radius);
      const auto a = wrap_inside(end, radius, in);
      const auto b = wrap_circle(end, at, radius, pnt, &length);
      for (int k = 0; k < 4; k++) pnt[k] = sel(within, in[k], pnt[k]);
      length = sel(within, bc<R>(0), length);
      wraps = wraps & ((within & a) | ((!within) & b));
    }
  } else {
    wraps = wraps & wrap_circle<R>(end, nullptr, radius, pnt, &length);
  }
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 3; k++) out[3 * i + k] = fma(e1[k], pnt[2 * i + 1], e0[k] * pnt[2 * i]);
  if (cylinder) {
    // Along the axis in proportion to the way in the plane.
    const R a[2] = {x0[0] - out[0], x0[1] - out[1]}, b[2] = {x1[0] - out[3], x1[1] - out[4]};
    const R l0 = sqrt_(dot2(a, a)), l1 = sqrt_(dot2(b, b));
    const R rise = (x1[2] - x0[2]) / max_(l0 + length + l1, tiny);
    out[2] = fma(rise, l0, x0[2]);
    out[5] = fma(rise, l0 + length, x0[2]);
    const R height = out[5] - out[2];
    length = sqrt_(fma(height, height, length * length));
  }
  *arc = length;
  return wraps;
}
