// The shortest way of a string around a sphere or a cylinder.
// Source: MuJoCo, Modeling, "Tendons"; which way it goes where there are two was found by
// trial with MuJoCo 4.0.0.
#pragma once

template<class R> OSTLER_FN R dot2(const R* a, const R* b) { return fma(a[1], b[1], a[0] * b[0]); }
// Each product rounded: of a vector and a multiple of it nothing is left.
template<class R> OSTLER_FN R cross2(const R* a, const R* b) { return a[0] * b[1] - a[1] * b[0]; }
// Scales to unit length; (1, 0, ..) where there is none.
template<int N, class R> OSTLER_FN R unit_(R* v) {
  R n2 = v[0] * v[0];
  for (int k = 1; k < N; k++) n2 = fma(v[k], v[k], n2);
  const auto none = n2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
  const R n = sqrt_(sel(none, bc<R>(1), n2));
  for (int k = 0; k < N; k++) v[k] = sel(none, bc<R>(k == 0 ? 1 : 0), v[k] / n);
  return sel(none, bc<R>(0), n);
}

// A string around a circle in the plane: where it meets the circle and leaves it, its
// direction there, and its length before, on and behind the circle.
template<class R> struct Around { R touch[4], way[4], before, arc, after; };

// Around a circle from `end` to `end + 2`; `side` (or null) is a unit vector to where the
// string passes. Lanes that wrap.
//
// Whether it wraps and the arc are one number, the angle between the ends less the angles
// of the tangents: two numbers that round apart would take an arc of no length for a whole
// turn. The angles are added as complex numbers.
template<class R> OSTLER_FN typename Lane<R>::Mask wrap_circle(const R* end, const R* side, double radius, Around<R>& o) {
  const R r = bc<R>(radius), r2 = bc<R>(radius * radius), zero = bc<R>(0), tiny = bc<R>(Tiny<R>::value);
  const R n0 = dot2(end, end), n1 = dot2(end + 2, end + 2);
  const R s0 = sqrt_(max_(n0 - r2, zero)), s1 = sqrt_(max_(n1 - r2, zero));
  const R dif[2] = {end[2] - end[0], end[3] - end[1]};
  const R across = dot2(end, end + 2);
  R turn = cross2(end, end + 2);
  auto clockwise = turn < zero;
  auto far = mask_of<typename Lane<R>::Mask>(false);  // more than half a turn
  if (side) {
    // The string never crosses the ray opposite of the side point. The turn from the same
    // numbers: its sign is theirs where both ends are near the ray.
    const R u[2] = {dot2(side, end), cross2(side, end)}, v[2] = {dot2(side, end + 2), cross2(side, end + 2)};
    turn = cross2(u, v);
    const auto down = (u[1] > zero) & (v[1] <= zero), up = (u[1] <= zero) & (v[1] > zero);
    far = (down & (turn > zero)) | (up & (turn < zero));
    clockwise = down | ((turn < zero) & !up);
  }
  const R sine = sel(far, -abs_(turn), abs_(turn));
  const R c = fnma(s0, s1, r2), s = r * (s0 + s1);  // of the tangents
  const R re = fma(across, c, sine * s), im = fms(sine, c, across * s);
  const auto half = (re < zero) & (across < zero) & !far;  // may round to the other side of pi
  const R on = bc<R>(radius * radius * (1 - 1e4 * Tiny<R>::value));  // an end on the circle, rounded
  const auto wraps = (n0 >= on) & (n1 >= on) & (dot2(dif, dif) >= tiny) & (far | (im > zero) | half);
  // The tangents take less than half a turn: the fourth quarter is behind the third.
  const auto over = far & (((re > zero) & (across > zero)) | ((re <= zero) & (im < zero)));
  const R angle = atan2_(abs_(im), re);
  o.before = s0, o.after = s1;
  o.arc = r * sel(over, bc<R>(6.28318530717958647692) - angle, angle);
  // Lanes that do not wrap go on with numbers that mean nothing and do no harm.
  const R t0 = sel(clockwise, s0, -s0), t1 = sel(clockwise, -s1, s1);
  const R i0 = recip_(max_(n0, tiny)), i1 = recip_(max_(n1, tiny));
  const R out[4] = {fma(end[1], t0, end[0] * r) * i0, fnma(end[0], t0, end[1] * r) * i0,
                    fma(end[3], t1, end[2] * r) * i1, fnma(end[2], t1, end[3] * r) * i1};
  for (int k = 0; k < 4; k++) o.touch[k] = r * out[k];
  for (int k = 0; k < 4; k += 2) {
    o.way[k] = sel(clockwise, out[k + 1], -out[k + 1]);
    o.way[k + 1] = sel(clockwise, -out[k], out[k]);
  }
  return wraps;
}

// Inside a circle, as through a ring: the string touches it in one point.
template<class R> OSTLER_FN typename Lane<R>::Mask wrap_inside(const R* end, double radius, Around<R>& o) {
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
  // Tangent and normal of both straight parts: the longer one has the digits.
  R part[2] = {sx + fms(sG, cx, cG * sx), (cx - A) + (fma(cG, cx, sG * sx) - B)};
  unit_<2>(part);
  const auto back = turn < zero;
  sx = sel(back, -sx, sx);
  part[0] = sel(back, -part[0], part[0]);
  const R out[2] = {fms(cx, axis[0], sx * axis[1]), fma(cx, axis[1], sx * axis[0])};
  R d0[2], d1[2];
  for (int k = 0; k < 2; k++) {
    o.touch[k] = o.touch[2 + k] = r * out[k];
    d0[k] = o.touch[k] - end[k], d1[k] = end[2 + k] - o.touch[k];
  }
  const R along[2] = {-(part[0] * out[1]), part[0] * out[0]};
  for (int k = 0; k < 2; k++) o.way[k] = fnma(part[1], out[k], along[k]), o.way[2 + k] = fma(part[1], out[k], along[k]);
  o.before = sqrt_(dot2(d0, d0)), o.arc = zero, o.after = sqrt_(dot2(d1, d1));
  return wraps;
}

// From x0 to x1 around a sphere or (along z) a cylinder at the origin; `side` is null or
// a point by which the string passes; inside: 0 never, 1 always, 2 where the side point
// lies inside. Lanes that wrap; where the string touches and its directions there in
// touch[0..5] and way[0..5], its length in *length.
template<class R>
OSTLER_FN typename Lane<R>::Mask wrap(const R* x0, const R* x1, const R* side, double radius, bool cylinder, int inside, R* touch, R* way, R* length) {
  const R tiny = bc<R>(Tiny<R>::value);
  R e0[3] = {bc<R>(1), bc<R>(0), bc<R>(0)}, e1[3] = {bc<R>(0), bc<R>(1), bc<R>(0)};
  const R d0 = dot3(x0, x0), d1 = dot3(x1, x1);
  auto wraps = (d0 >= tiny * tiny) & (d1 >= tiny * tiny);
  auto line = mask_of<typename Lane<R>::Mask>(false);
  if (!cylinder) {
    // The plane of both points and the centre; any through x0 where they are on a line.
    R normal[3], other[3];
    for (int k = 0; k < 3; k++) e0[k] = x0[k];
    unit_<3>(e0);
    cross(x0, x1, normal);
    // Relative to both, or what rounding leaves would be the plane.
    constexpr double parallel = 1e4 * Tiny<R>::value;
    line = dot3(normal, normal) < bc<R>(parallel * parallel) * (d0 * d1);
    unit_<3>(normal);
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
  const R none = bc<R>(0);
  const R end[4] = {dot3(x0, e0), cylinder ? dot3(x0, e1) : none, dot3(x1, e0), sel(line, none, dot3(x1, e1))};
  Around<R> o;
  if (side) {
    R at[2] = {dot3(side, e0), dot3(side, e1)};
    unit_<2>(at);
    if (inside == 0) wraps = wraps & wrap_circle(end, at, radius, o);
    if (inside == 1) wraps = wraps & wrap_inside(end, radius, o);
    if (inside == 2) {
      Around<R> in;
      const auto within = dot3(side, side) < bc<R>(radius * radius);
      const auto a = wrap_inside(end, radius, in);
      const auto b = wrap_circle(end, at, radius, o);
      for (int k = 0; k < 4; k++) o.touch[k] = sel(within, in.touch[k], o.touch[k]), o.way[k] = sel(within, in.way[k], o.way[k]);
      o.before = sel(within, in.before, o.before), o.arc = sel(within, in.arc, o.arc), o.after = sel(within, in.after, o.after);
      wraps = wraps & ((within & a) | ((!within) & b));
    }
  } else {
    wraps = wraps & wrap_circle<R>(end, nullptr, radius, o);
  }
  for (int i = 0; i < 2; i++)
    for (int k = 0; k < 3; k++) {
      touch[3 * i + k] = fma(e1[k], o.touch[2 * i + 1], e0[k] * o.touch[2 * i]);
      way[3 * i + k] = fma(e1[k], o.way[2 * i + 1], e0[k] * o.way[2 * i]);
    }
  *length = o.before + o.arc + o.after;
  if (cylinder) {
    // Along the axis in proportion to the way in the plane.
    const R flat = *length, height = x1[2] - x0[2], rise = height / max_(flat, tiny);
    *length = sqrt_(fma(height, height, flat * flat));
    const R i = recip_(max_(*length, tiny));
    touch[2] = fma(rise, o.before, x0[2]);
    touch[5] = fma(rise, o.before + o.arc, x0[2]);
    for (int k = 0; k < 6; k++) way[k] = (k % 3 == 2 ? height : way[k] * flat) * i;
  }
  return wraps;
}
