// Geoms on a grid of heights (collide/field.cuh): which lanes may touch it, and the contacts of
// spheres and capsules on all lanes at once. Every lane looks at the cells under its own geom;
// each cell is two prisms down to the base, with at most one contact each, as in MuJoCo.
// Source: Ericson, Real-Time Collision Detection, 2005, 5.1.5 and 5.1.9 (nearest points).
#pragma once

// Contacts of a pair, those of each lane side by side.
template<class R> struct GridHits {
  typedef typename Lane<R>::Mask B;
  R dist[MAX_HITS], pos[MAX_HITS][3], nrm[MAX_HITS][3], count = bc<R>(0);
  R place[MAX_HITS];  // along a capsule, 0 to 1
  B lost = mask_of<B>(false);
  int used = 0;

  OSTLER_FN void take(B met, R d, const R* p, const R* n, R s) {
    if (!any(met)) return;
    if (used < MAX_HITS && any(met & (count > bc<R>(used - 0.5)))) {
      dist[used] = bc<R>(1e10), place[used] = bc<R>(0);
      for (int k = 0; k < 3; k++) pos[used][k] = bc<R>(0), nrm[used][k] = bc<R>(k == 2 ? 1 : 0);
      used++;
    }
    for (int h = 0; h < used; h++) {
      const auto here = met & (count > bc<R>(h - 0.5)) & (count < bc<R>(h + 0.5));
      dist[h] = sel(here, d, dist[h]), place[h] = sel(here, s, place[h]);
      for (int k = 0; k < 3; k++) pos[h][k] = sel(here, p[k], pos[h][k]), nrm[h][k] = sel(here, n[k], nrm[h][k]);
    }
    lost = lost | (met & (count > bc<R>(MAX_HITS - 0.5)));
    count = count + sel(met, bc<R>(1), bc<R>(0));
  }

  // Leaves out a capsule's contacts that two others of one direction make up for, one on each
  // side: those that are no deeper than the line between these. On even ground the ones at its
  // ends are left.
  OSTLER_FN_BIG void thin_out() {
    for (int i = 0; i < used; i++) {
      B idle = mask_of<B>(false);
      for (int j = 0; j < used; j++)
        for (int k = j + 1; k < used; k++) {
          if (j == i || k == i) continue;
          const R apart = place[k] - place[j], way = place[i] - place[j];
          const auto between = (way * (place[k] - place[i]) >= bc<R>(0)) & (abs_(apart) > bc<R>(1e-3));
          if (!any(between)) continue;
          const R share = way * recip_(sel(between, apart, bc<R>(1)));
          const auto shallow = dist[i] + bc<R>(2e-6) >= fma(share, dist[k] - dist[j], dist[j]);
          const auto alike = (dot3(nrm[i], nrm[j]) > bc<R>(0.999)) & (dot3(nrm[i], nrm[k]) > bc<R>(0.999));
          idle = idle | (between & shallow & alike);
        }
      dist[i] = sel(idle, bc<R>(1e10), dist[i]);
    }
  }
};

// The cells under a geom, in each lane its own.
template<class R> struct GridWindow {
  typedef typename Lane<R>::T T;
  enum { N = Lane<R>::N };
  const GridCells<T, T>& grid;
  int c[N], r[N], nc[N], nr[N];
  int columns = 0, rows = 0;  // most of a lane

  // Under a box about `p` in the grid's frame.
  OSTLER_FN GridWindow(const GridCells<T, T>& cells, typename Lane<R>::Mask near, const R* p, const R* half) : grid(cells) {
    for (int l = 0; l < (int)N; l++) {
      nc[l] = nr[l] = 0;
      if (!lane_get(near, l)) continue;
      const T x = lane_get(p[0], l), y = lane_get(p[1], l), hx = lane_get(half[0], l), hy = lane_get(half[1], l);
      grid.columns(x - hx, x + hx, c[l], nc[l]);
      grid.rows(y - hy, y + hy, r[l], nr[l]);
      nc[l] -= c[l], nr[l] -= r[l];
      columns = nc[l] > columns ? nc[l] : columns;
      rows = nr[l] > rows ? nr[l] : rows;
    }
  }
  // Heights at the corners of a cell of the window, and the place of its first one, of the lanes
  // that are returned: others have smaller windows.
  OSTLER_FN typename Lane<R>::Mask cell(int column, int row, R* h, R* at) const {
    T height[4][N], place[2][N];
    auto some = mask_of<typename Lane<R>::Mask>(false);
    for (int l = 0; l < (int)N; l++) {
      T own[4] = {grid.low, grid.low, grid.low, grid.low};
      const bool in = column < nc[l] && row < nr[l];
      lane_set(some, l, in);
      if (in) grid.corners(c[l] + column, r[l] + row, own);
      for (int k = 0; k < 4; k++) height[k][l] = own[k];
      place[0][l] = in ? grid.dx * T(c[l] + column) - grid.x : T(0);
      place[1][l] = in ? grid.dy * T(r[l] + row) - grid.y : T(0);
    }
    for (int k = 0; k < 4; k++) load(h[k], height[k]);
    for (int k = 0; k < 2; k++) load(at[k], place[k]);
    return some;
  }
};

// Half of a cell as a prism: its top has the corners (0, 0), (0, ey) and (ex, ey) at the heights
// h0, hc and hd. The other half is this one with x and y exchanged.
template<class R> struct Prism {
  typedef typename Lane<R>::Mask B;
  double ex, ey;
  R low, h0, hc, hd, gx, gy, nz;  // slopes of the top, z of its normal

  OSTLER_FN Prism(double x, double y, R base, R first, R corner, R last) : ex(x), ey(y), low(base), h0(first), hc(corner), hd(last) {
    gx = (hd - hc) * bc<R>(1 / ex), gy = (hc - h0) * bc<R>(1 / ey);
    nz = recip_(sqrt_(fma(gx, gx, fma(gy, gy, bc<R>(1)))));
  }
  OSTLER_FN R top(R x, R y) const { return fma(gx, x, fma(gy, y, h0)); }
  OSTLER_FN R beyond_diagonal(R x, R y) const { return fms(x, bc<R>(ey), y * bc<R>(ex)); }
  OSTLER_FN B covers(R x, R y) const {
    const R zero = bc<R>(0);
    return (x >= zero) & (y <= bc<R>(ey)) & (beyond_diagonal(x, y) <= zero);
  }
  // The same with a little more around.
  OSTLER_FN B nearly_covers(R x, R y) const {
    const double more = 1e-4 * (ex + ey);
    return (x >= bc<R>(-more)) & (y <= bc<R>(ey + more)) & (beyond_diagonal(x, y) <= bc<R>(more * (ex + ey)));
  }
  // Edges: of the top 0 to 2, down from its corners 3 to 5.
  OSTLER_FN void edge(int i, R* from, R* along) const {
    const bool down = i >= 3;
    const int corner = i % 3;  // of the top's: first, corner, last
    const R zero = bc<R>(0), x = bc<R>(ex), y = bc<R>(ey);
    const int at = down ? corner : (corner == 1 ? 1 : 0);
    from[0] = at == 2 ? x : zero, from[1] = at == 0 ? zero : y, from[2] = at == 0 ? h0 : at == 1 ? hc : hd;
    along[0] = down || corner == 0 ? zero : x;
    along[1] = down || corner == 1 ? zero : y;
    along[2] = down ? low - from[2] : corner == 0 ? hc - h0 : corner == 1 ? hd - hc : hd - h0;
  }
};

// Where `d` is less than `best` by more than `by`, it and its direction are the best.
template<class R> OSTLER_FN void nearer(R d, R x, R y, R z, R& best, R* n, double by = 0) {
  const auto less = d + bc<R>(by) < best;
  best = sel(less, d, best);
  n[0] = sel(less, x, n[0]), n[1] = sel(less, y, n[1]), n[2] = sel(less, z, n[2]);
}

// The distance of a point from a prism, negative within, and the unit direction from the prism.
template<class R> OSTLER_FN R point_distance(const Prism<R>& f, const R* q, R* n) {
  const R zero = bc<R>(0), one = bc<R>(1), far = bc<R>(1e20);
  const double diagonal = f.ex * f.ex + f.ey * f.ey;
  const auto covered = f.covers(q[0], q[1]);
  // The nearest place of the outline, seen from above.
  const R y0 = clamp_(q[1], 0, f.ey), x1 = clamp_(q[0], 0, f.ex);
  const R t = clamp_(fma(q[0], bc<R>(f.ex / diagonal), q[1] * bc<R>(f.ey / diagonal)), 0, 1);
  R flat = far, side[3] = {zero, zero, zero};
  const R place[3][2] = {{zero, y0}, {x1, bc<R>(f.ey)}, {t * bc<R>(f.ex), t * bc<R>(f.ey)}};
  for (int i = 0; i < 3; i++) {
    const R x = q[0] - place[i][0], y = q[1] - place[i][1];
    nearer(fma(x, x, y * y), x, y, zero, flat, side);
  }
  const R over_side = q[2] - f.top(q[0] - side[0], q[1] - side[1]);
  const R over = q[2] - f.top(q[0], q[1]);
  // Above the top: its face where the foot of the perpendicular is on it, else an edge.
  const R height = over * f.nz;
  const R up[3] = {-f.gx * f.nz, -f.gy * f.nz, f.nz};
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
  const auto face = (on & (!beside)) | (!some);
  R dist = sel(face, height, length);
  for (int k = 0; k < 3; k++) n[k] = sel(face, up[k], way[k] * by);
  if (!any(within)) return dist;
  // Within: the nearest way out.
  const double along = 1 / root(diagonal);
  R deep = -height, out[3] = {up[0], up[1], up[2]};
  nearer(q[0], -one, zero, zero, deep, out);
  nearer(bc<R>(f.ey) - q[1], zero, one, zero, deep, out);
  nearer(-f.beyond_diagonal(q[0], q[1]) * bc<R>(along), bc<R>(f.ey * along), bc<R>(-f.ex * along), zero, deep, out);
  nearer(q[2] - f.low, zero, zero, -one, deep, out);
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
  const R first[4] = {-a[0], a[1] - bc<R>(f.ey), f.beyond_diagonal(a[0], a[1]), a[2] - f.top(a[0], a[1])};
  const R end[4] = {-b[0], b[1] - bc<R>(f.ey), f.beyond_diagonal(b[0], b[1]), b[2] - f.top(b[0], b[1])};
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
  for (int i = 0; i < 6; i++) {
    R from[3], along[3], r[3];
    f.edge(i, from, along);
    for (int k = 0; k < 3; k++) r[k] = a[k] - from[k];
    const R ee = max_(dot3(along, along), tiny), ad = dot3(along, d), er = dot3(along, r), dr = dot3(d, r);
    const R det = fnma(ad, ad, aa * ee);
    // Of lines that are nearly parallel the middle of the segment is taken first.
    const auto parallel = !(det > bc<R>(1e-6) * aa * ee);
    R x = sel(parallel, bc<R>(0.5), clamp_(fms(ad, er, dr * ee) / sel(parallel, one, det), 0, 1));
    const R t = clamp_(fma(ad, x, er) / ee, 0, 1);
    x = clamp_(fms(ad, t, dr) / aa, 0, 1);
    R w[3];
    for (int k = 0; k < 3; k++) w[k] = fnma(t, along[k], fma(x, d[k], r[k]));
    const R length = sqrt_(dot3(w, w)), by = recip_(max_(length, tiny));
    s = sel(length + bc<R>(more) < best, x, s);
    nearer(length, w[0] * by, w[1] * by, w[2] * by, best, n, more);
  }
  return best;
}

// The way out of the shared ground for a point under it: up, or sideways through a wall that is not
// covered by the neighbour. The distance, negative, and the unit direction. Prisms would lead out
// through their common sides, too.
template<class T> OSTLER_FN_BIG T ground_way_out(const Ground& g, const T* p, T* n) {
  const GroundFace<T> f(g, p[0], p[1]);
  const T x = p[0] - f.x0, y = p[1] - f.y0, by = T(1) / T(g.cell);
  const T scale = T(1) / root(f.gx * f.gx + f.gy * f.gy + T(1));
  T least = -(p[2] - f.at(p[0], p[1])) * scale;
  n[0] = -f.gx * scale, n[1] = -f.gy * scale, n[2] = scale;
  const int side[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
  const T away[4] = {x, T(g.cell) - x, y, T(g.cell) - y};
  for (int i = 0; i < 4; i++) {
    if (!(away[i] < least)) continue;
    T other[4];
    ground_cell(g, f.c + side[i][0], f.r + side[i][1], other);
    // The neighbour's edge, from its corner of least x or y on.
    const int from = i == 0 ? 1 : i == 2 ? 2 : 0, to = from + (i < 2 ? 2 : 1);
    const T along = (i < 2 ? y : x) * by;
    if (!(other[from] + along * (other[to] - other[from]) < p[2])) continue;
    least = away[i];
    n[0] = T(side[i][0]), n[1] = T(side[i][1]), n[2] = T(0);
  }
  return -least;
}

// The lanes of `met` in which a point `at` of the shared ground pushes beside the triangle under
// `centre`: it is above the triangle's plane, or neither on the triangle nor is the centre over its
// face. All else does not stick out: the triangle itself pushes, and an edge between two triangles
// or cells, which prisms have, is none of the ground's.
template<class R> OSTLER_FN_BIG typename Lane<R>::Mask sticks_out(const Ground& g, typename Lane<R>::Mask met, const R* centre, const R* at) {
  typedef typename Lane<R>::T T;
  auto out = mask_of<typename Lane<R>::Mask>(false);
  for (int l = 0; l < (int)Lane<R>::N; l++) {
    if (!lane_get(met, l)) continue;
    const T x = lane_get(centre[0], l), y = lane_get(centre[1], l), by = T(1) / T(g.cell);
    const GroundFace<T> f(g, x, y);
    const auto covers = [&](T px, T py, T more) OSTLER_INLINE {
      return on_triangle(f.upper, (px - f.x0) * by, (py - f.y0) * by, more);
    };
    const T px = lane_get(at[0], l), py = lane_get(at[1], l), pz = lane_get(at[2], l);
    // The foot of the perpendicular from the centre.
    const T over = (lane_get(centre[2], l) - f.at(x, y)) / (T(1) + f.gx * f.gx + f.gy * f.gy);
    const bool face = covers(x + over * f.gx, y + over * f.gy, T(0)) || covers(px, py, T(1e-3));
    lane_set(out, l, pz > f.at(px, py) + T(1e-4) || !face);
  }
  return out;
}

// Contacts of a ball whose centre is under the shared ground, or of a capsule by the ends and the
// middle of its axis that are: in the lanes that are returned, of those of `deep`.
template<class R, class M>
OSTLER_FN_BIG typename Lane<R>::Mask lead_out(Sink<R, M>& out, int geom, bool reversed, typename Lane<R>::Mask deep, const R* p, const R* a, const R* centre, double radius) {
  typedef typename Lane<R>::T T;
  const bool rod = out.m.cg_type[geom] == Shape::capsule;
  auto done = mask_of<typename Lane<R>::Mask>(false);
  for (int end = rod ? -1 : 0; end <= (rod ? 1 : 0); end++) {
    R dist = bc<R>(1e10), n[3] = {bc<R>(0), bc<R>(0), bc<R>(1)}, place[3];
    for (int l = 0; l < (int)Lane<R>::N; l++) {
      if (!lane_get(deep, l)) continue;
      T at[3], way[3];
      for (int k = 0; k < 3; k++) at[k] = lane_get(p[k], l) + T(end) * lane_get(a[k], l);
      const T by = ground_way_out(*out.w.ground, at, way);
      if (!(by < T(0))) continue;
      lane_set(done, l, true);
      lane_set(dist, l, by - T(radius));
      for (int k = 0; k < 3; k++) lane_set(n[k], l, way[k]);
    }
    const R back = sel(dist < bc<R>(1e9), fma(bc<R>(0.5), dist, bc<R>(radius)), bc<R>(0)), none[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
    for (int k = 0; k < 3; k++) {
      place[k] = fnma(back, n[k], fma(bc<R>(end), a[k], centre[k]));
      if (reversed) n[k] = -n[k];
    }
    if (any(dist < bc<R>(1e9))) out.add(dist, place, n, none);
  }
  return done;
}

// Whether a pair's first shape is a grid.
OSTLER_FN bool is_grid(int kind) { return Shape::surface(kind / Shape::count) == Shape::Grid; }

// Contacts of a grid and another geom in the lanes `near`.
template<class R, class M>
OSTLER_FN_BIG void collide_grid(Sink<R, M>& out, int grid, int geom, bool reversed, typename Lane<R>::Mask near, const R* c1, const R* c2) {
  typedef typename Lane<R>::T T;
  typedef typename Lane<R>::Mask B;
  const M& m = out.m;
  const bool shared = m.cg_type[grid] == Shape::terrain;
  HeightField<T> field;
  if (shared && !out.w.ground) return;
  if (!shared) field_of(m, m.cg_data[grid], field);
  const GridCells<T, T> cells(shared ? nullptr : &field, shared ? out.w.ground : nullptr);
  const int type = m.cg_type[geom];
  const double reach = m.pair_reach[out.pair], radius = m.cg_size[3 * geom];
  const R zero = bc<R>(0);
  // In the grid's frame: the centre, and half a box along the axes.
  R axes[9], dif[3], p[3], half[3];
  if (!shared) geom_axes(m, out.w, grid, axes);
  for (int k = 0; k < 3; k++) dif[k] = c2[k] - c1[k];
  for (int k = 0; k < 3; k++) {
    R n[3] = {bc<R>(k == 0), bc<R>(k == 1), bc<R>(k == 2)};
    if (!shared)
      for (int i = 0; i < 3; i++) n[i] = axes[3 * i + k];
    p[k] = shared ? dif[k] : dot3(n, dif);
    half[k] = reach_along(m, out.w, geom, n) + bc<R>(reach + 2e-5 * m.cg_bound[geom]);
  }
  const R bottom = p[2] - half[2];
  near = near & (bottom <= bc<R>(cells.high)) & (p[2] + half[2] >= bc<R>(shared ? -1e20 : (double)cells.low));
  if (!any(near)) return;
  const GridWindow<R> window(cells, near, p, half);
  const bool ball = type == Shape::sphere, rod = type == Shape::capsule;
  R h[4], at[2];
  if (!ball && !rod) {
    // Where a cell is as high as the box begins.
    B met = mask_of<B>(false);
    for (int row = 0; row < window.rows; row++)
      for (int column = 0; column < window.columns; column++) {
        const B in = window.cell(column, row, h, at);
        met = met | (in & (max_(max_(h[0], h[1]), max_(h[2], h[3])) >= bottom));
      }
    if (any(met & near)) collide_lanes(out, grid, geom, reversed, met & near, c1, c2);
    return;
  }
  R a[3] = {zero, zero, zero};
  if (rod) {
    const R size = bc<R>(m.cg_size[3 * geom + 1]);
    const R* axis = out.w.gaxis + 3 * geom;
    if (shared) for (int k = 0; k < 3; k++) a[k] = axis[k] * size;
    else for (int k = 0; k < 3; k++) a[k] = (axes[k] * axis[0] + axes[3 + k] * axis[1] + axes[6 + k] * axis[2]) * size;
  }
  GridHits<R> hits;
  B deep = mask_of<B>(false);
  for (int row = 0; row < window.rows; row++)
    for (int column = 0; column < window.columns; column++) {
      const B here = near & window.cell(column, row, h, at);
      if (!any(here & (max_(max_(h[0], h[1]), max_(h[2], h[3])) >= bottom))) continue;
      for (int other = 0; other < 2; other++) {
        // x and y change places for the half beyond the diagonal.
        const int ix = other, iy = 1 - other;
        const Prism<R> prism(other ? cells.dy : cells.dx, other ? cells.dx : cells.dy, bc<R>(cells.low), h[0], h[other ? 1 : 2], h[3]);
        R q[3], n[3], s = zero, d[3] = {zero, zero, zero};
        q[0] = p[ix] - at[ix], q[1] = p[iy] - at[iy], q[2] = p[2];
        R dist;
        B through = mask_of<B>(false);
        if (ball) {
          dist = point_distance(prism, q, n);
          if (shared) through = dist < zero;
        } else {
          d[0] = bc<R>(2) * a[ix], d[1] = bc<R>(2) * a[iy], d[2] = bc<R>(2) * a[2];
          q[0] = q[0] - a[ix], q[1] = q[1] - a[iy], q[2] = q[2] - a[2];
          dist = segment_distance(prism, q, d, n, s, through, shared ? Touch<R>::value : 0.0);
        }
        deep = deep | (here & through);
        B met = here & (dist - bc<R>(radius) < bc<R>(reach));
        if (!any(met)) continue;
        // Midway between the surfaces, from the geom's centre, in the grid's frame.
        const R back = bc<R>(0.5) * (dist + bc<R>(radius)), along = fma(bc<R>(2), s, bc<R>(-1));
        const R turned[3] = {other ? n[1] : n[0], other ? n[0] : n[1], n[2]};
        if (shared) {
          const B own = prism.nearly_covers(fma(s, d[0], q[0]), fma(s, d[1], q[1]));
          if (any(met & (!own))) {
            R centre[3], surface[3];
            for (int k = 0; k < 3; k++) centre[k] = fma(along, a[k], p[k]), surface[k] = fnma(dist, turned[k], centre[k]);
            met = met & (own | sticks_out(*out.w.ground, met & (!own), centre, surface));
            if (!any(met)) continue;
          }
        }
        R from[3], normal[3], place[3];
        for (int k = 0; k < 3; k++) from[k] = fnma(back, turned[k], along * a[k]);
        for (int k = 0; k < 3; k++) {
          normal[k] = shared ? turned[k] : axes[3 * k] * turned[0] + axes[3 * k + 1] * turned[1] + axes[3 * k + 2] * turned[2];
          place[k] = c2[k] + (shared ? from[k] : axes[3 * k] * from[0] + axes[3 * k + 1] * from[1] + axes[3 * k + 2] * from[2]);
        }
        if (reversed)
          for (int k = 0; k < 3; k++) normal[k] = -normal[k];
        hits.take(met, dist - bc<R>(radius), place, normal, s);
      }
    }
  out.w.overflow = out.w.overflow | (hits.lost & (!deep));
  // A height field's are MuJoCo's.
  if (shared && rod && hits.used > 2) hits.thin_out();
  const R none[3] = {zero, zero, zero};
  for (int i = 0; i < hits.used; i++) {
    const R dist = sel(deep, bc<R>(1e10), hits.dist[i]);
    if (any(dist < bc<R>(reach))) out.add(dist, hits.pos[i], hits.nrm[i], none);
  }
  if (!any(deep)) return;
  if (shared) deep = deep & (!lead_out(out, geom, reversed, deep, p, a, c2, radius));
  // A capsule whose axis is in a field, or in an edge of the ground.
  if (any(deep)) collide_lanes(out, grid, geom, reversed, deep, c1, c2);
}
