// How far points and segments are from half of a cell of a grid of heights.
// Source: Ericson, Real-Time Collision Detection, 2005, 5.1.5 and 5.1.9 (nearest points).
#pragma once

// Half of a cell as a prism: its top has the corners (0, 0), (0, ey) and (ex, ey) at the heights
// h0, hc and hd. The other half is this one with x and y exchanged.
template<class R> struct Prism {
  typedef typename Lane<R>::Mask B;
  R ex, ey;          // sides
  R along;           // 1 / length of the diagonal
  R more;            // see nearly_covers
  R low, h0, hc, hd, gx, gy, nz;  // slopes of the top, z of its normal

  OSTLER_FN Prism(R x, R y, R base, R first, R corner, R last) : ex(x), ey(y), low(base), h0(first), hc(corner), hd(last) {
    along = recip_(sqrt_(fma(ex, ex, ey * ey))), more = bc<R>(1e-4) * (ex + ey);
    gx = (hd - hc) / ex, gy = (hc - h0) / ey;
    nz = recip_(sqrt_(fma(gx, gx, fma(gy, gy, bc<R>(1)))));
  }
  OSTLER_FN R top(R x, R y) const { return fma(gx, x, fma(gy, y, h0)); }
  OSTLER_FN R beyond_diagonal(R x, R y) const { return fms(x, ey, y * ex); }
  OSTLER_FN B covers(R x, R y) const {
    const R zero = bc<R>(0);
    return (x >= zero) & (y <= ey) & (beyond_diagonal(x, y) <= zero);
  }
  // The same with a little more around.
  OSTLER_FN B nearly_covers(R x, R y) const {
    return (x >= -more) & (y <= ey + more) & (beyond_diagonal(x, y) <= more * (ex + ey));
  }
  // Faces: the top, those at x = 0, at y = ey and under the diagonal, the base.
  enum { FACES = 5 };
  // The unit normal of one, outward, and how deep a point is under it.
  OSTLER_FN void normal(int i, R* n) const {
    const R zero = bc<R>(0), one = bc<R>(1);
    n[0] = i == 0 ? -gx * nz : i == 1 ? -one : i == 3 ? ey * along : zero;
    n[1] = i == 0 ? -gy * nz : i == 2 ? one : i == 3 ? -(ex * along) : zero;
    n[2] = i == 0 ? nz : i == 4 ? -one : zero;
  }
  OSTLER_FN R under(int i, const R* p) const {
    if (i == 0) return (top(p[0], p[1]) - p[2]) * nz;
    if (i == 3) return -beyond_diagonal(p[0], p[1]) * along;
    return i == 1 ? p[0] : i == 2 ? ey - p[1] : p[2] - low;
  }
  // Edges: of the top 0 to 2, down from its corners 3 to 5.
  OSTLER_FN void edge(int i, R* from, R* along) const {
    const bool down = i >= 3;
    const int corner = i % 3;  // of the top's: first, corner, last
    const R zero = bc<R>(0);
    const int at = down ? corner : (corner == 1 ? 1 : 0);
    from[0] = at == 2 ? ex : zero, from[1] = at == 0 ? zero : ey, from[2] = at == 0 ? h0 : at == 1 ? hc : hd;
    along[0] = down || corner == 0 ? zero : ex;
    along[1] = down || corner == 1 ? zero : ey;
    along[2] = down ? low - from[2] : corner == 0 ? hc - h0 : corner == 1 ? hd - hc : hd - h0;
  }
};

// Whether the segment from `q` along `d` is farther than `far` from the prism under a top of the
// corners' heights: its part that is near the outline, seen from above, is above the top's plane.
// `gx`, `gy`: the top's slopes.
template<class T> OSTLER_FN bool prism_misses(T ex, T ey, T h0, T gx, T gy, const T* q, const T* d, T far) {
  const T side = ex + ey;  // no less than the diagonal
  const T first[3] = {-q[0] - far, q[1] - ey - far, q[0] * ey - q[1] * ex - far * side};
  const T change[3] = {-d[0], d[1], d[0] * ey - d[1] * ex};
  T enter = T(0), leave = T(1);
  for (int i = 0; i < 3; i++) {
    const T last = first[i] + change[i];
    const bool out = first[i] > T(0), leaves = last > T(0);
    if (out && leaves) return true;
    if (!out && !leaves) continue;
    const T at = first[i] / (first[i] - last);
    if (out) enter = at > enter ? at : enter;
    else leave = at < leave ? at : leave;
  }
  if (enter > leave + T(1e-4)) return true;
  const T over = q[2] - (h0 + gx * q[0] + gy * q[1]), rise = d[2] - (gx * d[0] + gy * d[1]);
  const T from = over + enter * rise, to = over + leave * rise, least = from < to ? from : to;
  return least > T(0) && least * least > far * far * (T(1) + gx * gx + gy * gy);
}

// Where `d` is less than `best` by more than `by`, it and its direction are the best.
template<class R> OSTLER_FN void nearer(R d, R x, R y, R z, R& best, R* n, double by = 0) {
  const auto less = d + bc<R>(by) < best;
  best = sel(less, d, best);
  n[0] = sel(less, x, n[0]), n[1] = sel(less, y, n[1]), n[2] = sel(less, z, n[2]);
}

// The distance of a point from a prism, negative within, and the unit direction from the prism.
template<class R> OSTLER_FN R point_distance(const Prism<R>& f, const R* q, R* n) {
  const R zero = bc<R>(0), one = bc<R>(1), far = bc<R>(1e20);
  const auto covered = f.covers(q[0], q[1]);
  // The nearest place of the outline, seen from above.
  const R y0 = max_(min_(q[1], f.ey), zero), x1 = max_(min_(q[0], f.ex), zero);
  const R t = clamp_(fma(q[0], f.ex * f.along, q[1] * (f.ey * f.along)) * f.along, 0, 1);
  const auto on_diagonal = (t > zero) & (t < one);
  R flat = far, side[3] = {zero, zero, zero}, outward[2] = {zero, zero};
  const R place[3][2] = {{zero, y0}, {x1, f.ey}, {t * f.ex, t * f.ey}};
  for (int i = 0; i < 3; i++) {
    R normal[3], off[2] = {q[0] - place[i][0], q[1] - place[i][1]};
    f.normal(1 + i, normal);
    // Beside the diagonal along its normal, as exactly as beside the other two.
    const R beyond = -f.under(1 + i, q);
    for (int k = 0; i == 2 && k < 2; k++) off[k] = sel(on_diagonal, beyond * normal[k], off[k]);
    const R square = fma(off[0], off[0], off[1] * off[1]);
    for (int k = 0; k < 2; k++) outward[k] = sel(square < flat, normal[k], outward[k]);
    nearer(square, off[0], off[1], zero, flat, side);
  }
  const R over_side = q[2] - f.top(q[0] - side[0], q[1] - side[1]);
  const R over = q[2] - f.top(q[0], q[1]);
  // Above the top: its face where the foot of the perpendicular is on it, else an edge.
  const R height = over * f.nz;
  R up[3];
  f.normal(0, up);
  const auto on = f.covers(fnma(height, up[0], q[0]), fnma(height, up[1], q[1]));
  R square = far, way[3] = {zero, zero, one};
  for (int i = 0; i < 3; i++) {
    R from[3], along[3], d[3];
    f.edge(i, from, along);
    for (int k = 0; k < 3; k++) d[k] = q[k] - from[k];
    const R s = clamp_(dot3(d, along) / dot3(along, along), 0, 1);
    for (int k = 0; k < 3; k++) d[k] = fnma(s, along[k], d[k]);
    nearer(dot3(d, d), d[0], d[1], d[2], square, way);
  }
  const auto within = covered & (over < zero);
  const auto beside = (!covered) & (over_side < zero);
  square = sel(beside, flat, square);
  for (int k = 0; k < 3; k++) way[k] = sel(beside, side[k], way[k]);
  const R length = sqrt_(square);
  const auto some = length > bc<R>(Touch<R>::value);
  const R by = recip_(sel(some, length, one));
  const auto face = (on | (!some)) & (!beside);
  R dist = sel(face, height, length);
  for (int k = 0; k < 3; k++) n[k] = sel(face, up[k], sel(some, way[k] * by, k < 2 ? outward[k] : zero));
  if (!any(within)) return dist;
  // Within: the nearest way out.
  R deep = far, out[3] = {zero, zero, one};
  for (int i = 0; i < Prism<R>::FACES; i++) {
    R normal[3];
    f.normal(i, normal);
    nearer(f.under(i, q), normal[0], normal[1], normal[2], deep, out);
  }
  for (int k = 0; k < 3; k++) n[k] = sel(within, out[k], n[k]);
  return sel(within, -deep, dist);
}

// The same of the segment from `a` along `d`, which is nearest at `s` in 0..1; an end that is
// farther by up to `more` is taken instead. Lanes whose segment is partly within are in `through`,
// and nothing else is said of them.
template<class R> OSTLER_FN R segment_distance(const Prism<R>& f, const R* a, const R* d, R* n, R& s, typename Lane<R>::Mask& through, double more) {
  const R zero = bc<R>(0), one = bc<R>(1), tiny = bc<R>(1e-20);
  const R b[3] = {a[0] + d[0], a[1] + d[1], a[2] + d[2]};
  R best = point_distance(f, a, n), other[3];
  s = zero;
  const R last = point_distance(f, b, other);
  s = sel(last < best, one, s);
  nearer(last, other[0], other[1], other[2], best, n);
  // Within all four planes somewhere.
  R enter = zero, leave = one;
  const R first[4] = {-a[0], a[1] - f.ey, f.beyond_diagonal(a[0], a[1]), a[2] - f.top(a[0], a[1])};
  const R end[4] = {-b[0], b[1] - f.ey, f.beyond_diagonal(b[0], b[1]), b[2] - f.top(b[0], b[1])};
  auto inside = mask_of<typename Lane<R>::Mask>(true);
  for (int i = 0; i < 4; i++) {
    const R change = end[i] - first[i];
    const auto still = abs_(change) < tiny;
    const R at = -first[i] / sel(still, one, change);
    inside = inside & (!(still & (first[i] > zero)));
    enter = sel((!still) & (change < zero), max_(enter, at), enter);
    leave = sel((!still) & (change > zero), min_(leave, at), leave);
  }
  through = inside & (enter < leave);
  const R aa = max_(dot3(d, d), tiny);
  const R within[3] = {f.ex * bc<R>(1.0 / 3), f.ey * bc<R>(2.0 / 3), f.low};
  for (int i = 0; i < 6; i++) {
    R from[3], along[3], r[3];
    f.edge(i, from, along);
    for (int k = 0; k < 3; k++) r[k] = a[k] - from[k];
    R way[3], side[3];
    cross(along, d, way), cross(r, along, side);
    const R ee = max_(dot3(along, along), tiny), ad = dot3(along, d), er = dot3(along, r), dr = dot3(d, r);
    const R det = dot3(way, way);
    // Of lines that are nearly parallel the middle of the segment is taken first.
    const auto parallel = !(det > bc<R>(1e-6) * aa * ee);
    R x = sel(parallel, bc<R>(0.5), clamp_(dot3(side, way) / sel(parallel, one, det), 0, 1));
    const R t = clamp_(fma(ad, x, er) / ee, 0, 1);
    x = clamp_(fms(ad, t, dr) / aa, 0, 1);
    R w[3];
    for (int k = 0; k < 3; k++) w[k] = fnma(t, along[k], fma(x, d[k], r[k]));
    const R square = dot3(w, w), length = sqrt_(square), by = recip_(max_(length, tiny));
    // Of lines that cross closely the normal to both, outward, is more exact.
    const auto crosses = (!parallel) & (det > aa * square) & (t > zero) & (t < one) & (x > zero) & (x < one);
    const R inward = dot3(way, within) - dot3(way, from), scale = recip_(sqrt_(sel(crosses, det, one)));
    const R out = sel(inward > zero, -scale, scale);
    for (int k = 0; k < 3; k++) way[k] = sel(crosses, way[k] * out, w[k] * by);
    s = sel(length + bc<R>(more) < best, x, s);
    nearer(length, way[0], way[1], way[2], best, n, more);
  }
  return best;
}

// Where `d` is less than `best`, it, its direction and the place `at` of a segment are the best.
template<class R> OSTLER_FN void shallower(R d, const R* way, R at, R& best, R* n, R& s) {
  s = sel(d < best, at, s);
  nearer(d, way[0], way[1], way[2], best, n);
}

// How far the segment from `a` along `d`, which is partly within the prism, has to move along the
// unit direction `n` to leave it, which is least so; its place `s` is the last to leave. The
// difference of prism and segment is a polytope: its faces are the prism's, and those that an edge
// and the segment span. A direction that is none of a face's leads no farther than a face's does.
template<class R> OSTLER_FN_BIG R segment_depth(const Prism<R>& f, const R* a, const R* d, R* n, R& s) {
  const R zero = bc<R>(0), one = bc<R>(1);
  const R b[3] = {a[0] + d[0], a[1] + d[1], a[2] + d[2]};
  R best = bc<R>(1e20);
  s = zero;
  for (int i = 0; i < Prism<R>::FACES; i++) {
    R normal[3];
    f.normal(i, normal);
    const R first = f.under(i, a), last = f.under(i, b);
    shallower(max_(first, last), normal, sel(first < last, one, zero), best, n, s);
  }
  const R dd = dot3(d, d);
  const R x[3] = {zero, zero, f.ex}, y[3] = {zero, f.ey, f.ey}, z[3] = {f.h0, f.hc, f.hd};
  // Edges' directions: of the top, of the base, down.
  for (int i = 0; i < 7; i++) {
    R from[3], e[3];
    f.edge(i < 6 ? i % 3 : 3, from, e);
    if (i >= 3 && i < 6) e[2] = zero;
    R way[3], side[3];
    cross(e, d, way);
    const R square = dot3(way, way);
    const auto some = square > bc<R>(1e-8) * dot3(e, e) * dd;
    const R by = recip_(sqrt_(sel(some, square, one)));
    for (int k = 0; k < 3; k++) way[k] = way[k] * by;
    for (int sign = 0; sign < 2; sign++) {
      if (sign) for (int k = 0; k < 3; k++) way[k] = -way[k];
      // The corner that is farthest along it.
      R most = bc<R>(-1e20), r[3] = {zero, zero, zero};
      for (int c = 0; c < 3; c++) {
        const R height = sel(way[2] > zero, z[c], f.low), at = fma(way[0], x[c], fma(way[1], y[c], way[2] * height));
        const auto more = at > most;
        most = sel(more, at, most);
        r[0] = sel(more, x[c], r[0]), r[1] = sel(more, y[c], r[1]), r[2] = sel(more, height, r[2]);
      }
      const R depth = most - min_(dot3(way, a), dot3(way, b));
      for (int k = 0; k < 3; k++) r[k] = a[k] - r[k];
      // The segment's nearest place to the edge's line.
      cross(r, e, side);
      const R at = clamp_(dot3(side, way) * (sign ? -by : by), 0, 1);
      shallower(sel(some, depth, bc<R>(1e20)), way, at, best, n, s);
    }
  }
  return best;
}
