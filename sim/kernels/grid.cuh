// Geoms on a grid of heights (collide/field.cuh): which lanes may touch it, and the contacts of
// spheres and capsules, many at a time. Each lane lists the halves of cells that its geom may
// touch, each a prism down to the base with at most one contact, as in MuJoCo; those of all lanes
// are looked at side by side.
#pragma once
#include "prism.cuh"

// Contacts of a pair, those of each lane side by side.
template<class R> struct GridHits {
  typedef typename Lane<R>::T T;
  typedef typename Lane<R>::Mask B;
  R dist[MAX_HITS], nrm[MAX_HITS][3];  // of the grid's frame
  R place[MAX_HITS];                   // along a capsule, 0 to 1
  int count[Lane<R>::N];
  int used = 0;

  OSTLER_FN GridHits() {
    for (int l = 0; l < (int)Lane<R>::N; l++) count[l] = 0;
  }
  // Whether there was room.
  OSTLER_FN bool take(int l, T d, const T* n, T s) {
    const int h = count[l];
    if (h == MAX_HITS) return false;
    if (h == used) {
      dist[h] = bc<R>(1e10), place[h] = bc<R>(0);
      for (int k = 0; k < 3; k++) nrm[h][k] = bc<R>(k == 2 ? 1 : 0);
      used++;
    }
    lane_set(dist[h], l, d), lane_set(place[h], l, s);
    for (int k = 0; k < 3; k++) lane_set(nrm[h][k], l, n[k]);
    count[l]++;
    return true;
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

// Halves of cells that lanes have to look at, of any lanes.
template<class R> struct GridList {
  typedef typename Lane<R>::T T;
  enum { N = Lane<R>::N };
  int lane[N], count = 0;
  bool other[N];                   // the half beyond the diagonal
  T at[2][N], h[4][N];             // the cell's least corner, heights at its corners
  T centre[3][N], axis[3][N];      // of the lane's geom

  OSTLER_FN void add(int l, bool half, const T* place, const T* height, const T* p, const T* a) {
    lane[count] = l, other[count] = half;
    for (int k = 0; k < 2; k++) at[k][count] = place[k];
    for (int k = 0; k < 4; k++) h[k][count] = height[k];
    for (int k = 0; k < 3; k++) centre[k][count] = p[k], axis[k][count] = a[k];
    count++;
  }
};

// Whether a point `at` of the shared ground pushes beside the triangle under
// `centre`: it is above the triangle's plane, or neither on the triangle nor is the centre over its
// face. All else does not stick out: the triangle itself pushes, and an edge between two triangles
// or cells, which prisms have, is none of the ground's.
template<class T> OSTLER_FN_BIG bool sticks_out(const Ground& g, const T* centre, const T* at) {
  const T x = centre[0], y = centre[1], by = T(1) / T(g.cell);
  const GroundFace<T> f(g, x, y);
  const auto covers = [&](T px, T py, T more) OSTLER_INLINE {
    return on_triangle(f.upper, (px - f.x0) * by, (py - f.y0) * by, more);
  };
  // The foot of the perpendicular from the centre.
  const T over = (centre[2] - f.at(x, y)) / (T(1) + f.gx * f.gx + f.gy * f.gy);
  const bool face = covers(x + over * f.gx, y + over * f.gy, T(0)) || covers(at[0], at[1], T(1e-3));
  return at[2] > f.at(at[0], at[1]) + T(1e-4) || !face;
}

// Contacts of a ball whose centre is under the shared ground, or of a capsule by the ends and the
// middle of its axis that are: in the lanes that are returned, of those of `deep`.
template<class R, class M>
OSTLER_FN_BIG typename Lane<R>::Mask lead_out(Sink<R, M>& out, int geom, bool reversed, typename Lane<R>::Mask deep, const R* p, const R* a, const R* centre, typename Lane<R>::T radius) {
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
      lane_set(dist, l, by - radius);
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

// Contacts of a capsule's ends with the faces of the shared ground under them. The point of its
// axis that is nearest to a cell lies a little beyond the cell where the capsule is tilted, on an
// edge that the ground does not have. Whether there was room.
template<class R>
OSTLER_FN_BIG bool add_ends(GridHits<R>& hits, const Ground& g, int l, const typename Lane<R>::T* centre, const typename Lane<R>::T* axis, typename Lane<R>::T within) {
  typedef typename Lane<R>::T T;
  bool room = true;
  for (int end = -1; end <= 1; end += 2) {
    const T place = T(end > 0);
    bool known = false;
    for (int i = 0; i < hits.count[l]; i++) known = known || mag(lane_get(hits.place[i], l) - place) < T(1e-3);
    const T at[3] = {centre[0] + T(end) * axis[0], centre[1] + T(end) * axis[1], centre[2] + T(end) * axis[2]};
    T n[3], over;
    if (known || !over_face(g, at, n, over) || !(over < within)) continue;
    room = hits.take(l, over, n, place) && room;
  }
  return room;
}

// Whether a pair's first shape is a grid.
OSTLER_FN bool is_grid(int kind) { return Shape::surface(kind / Shape::count) == Shape::Grid; }

// Looks at the halves of cells that are listed, and empties the list. `deep`: lanes of which all is
// found elsewhere; `lost`: for want of room.
template<class R>
OSTLER_FN_BIG void look_at_halves(const GridCells<typename Lane<R>::T, typename Lane<R>::T>& cells, GridList<R>& list, bool ball, typename Lane<R>::T radius, typename Lane<R>::T reach,
                                  GridHits<R>& hits, typename Lane<R>::Mask& deep, typename Lane<R>::Mask& lost) {
  typedef typename Lane<R>::T T;
  enum { N = Lane<R>::N };
  const bool shared = cells.ground != nullptr;
  const int count = list.count;
  list.count = 0;
  // What is beyond the list's end is looked at for nothing.
  for (int i = count; i < (int)N; i++) {
    list.other[i] = false;
    for (int k = 0; k < 2; k++) list.at[k][i] = T(0);
    for (int k = 0; k < 4; k++) list.h[k][i] = T(0);
    for (int k = 0; k < 3; k++) list.centre[k][i] = list.axis[k][i] = T(0);
  }
  R h[4], at[2], p[3], a[3];
  for (int k = 0; k < 2; k++) load(at[k], list.at[k]);
  for (int k = 0; k < 4; k++) load(h[k], list.h[k]);
  for (int k = 0; k < 3; k++) load(p[k], list.centre[k]), load(a[k], list.axis[k]);
  auto other = mask_of<typename Lane<R>::Mask>(false);
  for (int i = 0; i < (int)N; i++) lane_set(other, i, list.other[i]);
  // x and y change places for the half beyond the diagonal.
  const R dx = bc<R>(cells.dx), dy = bc<R>(cells.dy);
  const Prism<R> prism(sel(other, dy, dx), sel(other, dx, dy), bc<R>(cells.low), h[0], sel(other, h[1], h[2]), h[3]);
  const R along[2] = {sel(other, a[1], a[0]), sel(other, a[0], a[1])};
  R q[3] = {sel(other, p[1] - at[1], p[0] - at[0]), sel(other, p[0] - at[0], p[1] - at[1]), p[2]};
  R n[3], s = bc<R>(0), d[3] = {bc<R>(0), bc<R>(0), bc<R>(0)}, dist;
  auto through = mask_of<typename Lane<R>::Mask>(false);
  if (ball) {
    dist = point_distance(prism, q, n);
    if (shared) through = dist < bc<R>(0);
  } else {
    d[0] = bc<R>(2) * along[0], d[1] = bc<R>(2) * along[1], d[2] = bc<R>(2) * a[2];
    q[0] = q[0] - along[0], q[1] = q[1] - along[1], q[2] = q[2] - a[2];
    dist = segment_distance(prism, q, d, n, s, through, shared ? Touch<R>::value : 0.0);
    // As MuJoCo's field; the ground leads out of all cells.
    if (!shared && any(through)) {
      R out[3], last;
      const R depth = segment_depth(prism, q, d, out, last);
      dist = sel(through, -depth, dist), s = sel(through, last, s);
      for (int k = 0; k < 3; k++) n[k] = sel(through, out[k], n[k]);
    }
  }
  const auto met = dist - bc<R>(radius) < bc<R>(reach);
  const auto own = prism.nearly_covers(fma(s, d[0], q[0]), fma(s, d[1], q[1]));
  const R turned[3] = {sel(other, n[1], n[0]), sel(other, n[0], n[1]), n[2]};
  // The nearest point of the axis.
  R centre[3];
  for (int k = 0; k < 3; k++) centre[k] = fma(fma(bc<R>(2), s, bc<R>(-1)), a[k], p[k]);
  T found[8][N];
  store(found[0], dist), store(found[1], s);
  for (int k = 0; k < 3; k++) store(found[2 + k], turned[k]), store(found[5 + k], centre[k]);
  for (int i = 0; i < count; i++) {
    const int l = list.lane[i];
    if (shared && lane_get(through, i)) lane_set(deep, l, true);
    if (!lane_get(met, i)) continue;
    const T way[3] = {found[2][i], found[3][i], found[4][i]};
    if (shared && !lane_get(own, i)) {
      const T from[3] = {found[5][i], found[6][i], found[7][i]};
      const T to[3] = {from[0] - found[0][i] * way[0], from[1] - found[0][i] * way[1], from[2] - found[0][i] * way[2]};
      if (!sticks_out(*cells.ground, from, to)) continue;
    }
    if (!hits.take(l, found[0][i], way, found[1][i])) lane_set(lost, l, true);
  }
}

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
  const T reach = m.pair_reach[out.pair], radius = m.cg_size[3 * geom];
  const R zero = bc<R>(0);
  // A little more, for rounding.
  const T within = reach + T(2e-5) * m.cg_bound[geom];
  // In the grid's frame: the centre, and half a box along the axes.
  R axes[9], dif[3], p[3], half[3];
  if (!shared) geom_axes(m, out.w, grid, axes);
  for (int k = 0; k < 3; k++) dif[k] = c2[k] - c1[k];
  for (int k = 0; k < 3; k++) {
    R n[3] = {bc<R>(k == 0), bc<R>(k == 1), bc<R>(k == 2)};
    if (!shared)
      for (int i = 0; i < 3; i++) n[i] = axes[3 * i + k];
    p[k] = shared ? dif[k] : dot3(n, dif);
    half[k] = reach_along(m, out.w, geom, n) + bc<R>(within);
  }
  const R bottom = p[2] - half[2];
  near = near & (bottom <= bc<R>(cells.high)) & (p[2] + half[2] >= bc<R>(shared ? T(-1e20) : cells.low));
  if (!any(near)) return;
  const bool ball = type == Shape::sphere, rod = type == Shape::capsule;
  R a[3] = {zero, zero, zero};
  if (rod) {
    const R size = bc<R>(m.cg_size[3 * geom + 1]);
    const R* axis = out.w.gaxis + 3 * geom;
    if (shared) for (int k = 0; k < 3; k++) a[k] = axis[k] * size;
    else for (int k = 0; k < 3; k++) a[k] = (axes[k] * axis[0] + axes[3 + k] * axis[1] + axes[6 + k] * axis[2]) * size;
  }
  GridHits<R> hits;
  GridList<R> list;
  B deep = mask_of<B>(false), lost = deep, met = deep;
  const T far = radius + within + T(1e-6) * (cells.dx + cells.dy);
  const T by_x = T(1) / cells.dx, by_y = T(1) / cells.dy;
  T own[3][3][Lane<R>::N];
  for (int k = 0; k < 3; k++) store(own[0][k], p[k]), store(own[1][k], a[k]), store(own[2][k], half[k]);
  // Below the base of a field a ball or capsule is looked at as any other shape.
  if ((ball || rod) && !shared) deep = near & (p[2] - abs_(a[2]) - bc<R>(radius) < bc<R>(cells.low));
  for (int l = 0; l < (int)Lane<R>::N; l++) {
    if (!lane_get(near, l) || lane_get(deep, l)) continue;
    const T at[3] = {own[0][0][l], own[0][1][l], own[0][2][l]}, way[3] = {own[1][0][l], own[1][1][l], own[1][2][l]};
    const T size[2] = {own[2][0][l], own[2][1][l]}, least = at[2] - own[2][2][l];
    if (shared && least > ground_roof(*out.w.ground, at[0], at[1], max_(size[0], size[1]))) continue;
    GridWindow<T, T> window(cells);
    cells.columns(at[0] - size[0], at[0] + size[0], window.c, window.end_c);
    cells.rows(at[1] - size[1], at[1] + size[1], window.r, window.end_r);
    window.find();
    for (int row = window.r; row < window.end_r; row++)
      for (int column = window.c; column < window.end_c; column++) {
        T h[4];
        window.corners(column, row, h);
        if (!(max_(max_(h[0], h[1]), max_(h[2], h[3])) >= least)) continue;
        if (!ball && !rod) {
          // A cell is as high as the box begins.
          lane_set(met, l, true);
          row = window.end_r;
          break;
        }
        const T corner[2] = {cells.dx * T(column) - cells.x, cells.dy * T(row) - cells.y};
        const T x = at[0] - corner[0] - way[0], y = at[1] - corner[1] - way[1], z = at[2] - way[2];
        for (int other = 0; other < 2; other++) {
          const T q[3] = {other ? y : x, other ? x : y, z};
          const T d[3] = {T(2) * way[other], T(2) * way[1 - other], T(2) * way[2]};
          const T ex = other ? cells.dy : cells.dx, ey = other ? cells.dx : cells.dy, middle = h[other ? 1 : 2];
          const T gx = (h[3] - middle) * (other ? by_y : by_x), gy = (middle - h[0]) * (other ? by_x : by_y);
          if (prism_misses(ex, ey, h[0], gx, gy, q, d, far)) continue;
          list.add(l, other != 0, corner, h, at, way);
          if (list.count == (int)Lane<R>::N) look_at_halves(cells, list, ball, radius, reach, hits, deep, lost);
        }
      }
  }
  if (!ball && !rod) {
    if (any(met)) collide_lanes(out, grid, geom, reversed, met, c1, c2);
    return;
  }
  if (list.count > 0) look_at_halves(cells, list, ball, radius, reach, hits, deep, lost);
  for (int l = 0; shared && rod && l < (int)Lane<R>::N; l++) {
    if (hits.count[l] == 0) continue;
    const T at[3] = {own[0][0][l], own[0][1][l], own[0][2][l]}, way[3] = {own[1][0][l], own[1][1][l], own[1][2][l]};
    if (!add_ends(hits, *out.w.ground, l, at, way, radius + reach)) lane_set(lost, l, true);
  }
  out.w.overflow = out.w.overflow | (lost & (!deep));
  // A height field's are MuJoCo's.
  if (shared && rod && hits.used > 2) hits.thin_out();
  const R none[3] = {zero, zero, zero};
  for (int i = 0; i < hits.used; i++) {
    const R dist = sel(deep, bc<R>(1e10), hits.dist[i]) - bc<R>(radius);
    if (!any(dist < bc<R>(reach))) continue;
    // Midway between the surfaces, from the geom's centre, in the grid's frame.
    const R back = fma(bc<R>(0.5), dist, bc<R>(radius)), along = fma(bc<R>(2), hits.place[i], bc<R>(-1));
    const R* n = hits.nrm[i];
    R from[3], normal[3], place[3];
    for (int k = 0; k < 3; k++) from[k] = fnma(back, n[k], along * a[k]);
    for (int k = 0; k < 3; k++) {
      normal[k] = shared ? n[k] : axes[3 * k] * n[0] + axes[3 * k + 1] * n[1] + axes[3 * k + 2] * n[2];
      place[k] = c2[k] + (shared ? from[k] : axes[3 * k] * from[0] + axes[3 * k + 1] * from[1] + axes[3 * k + 2] * from[2]);
    }
    if (reversed)
      for (int k = 0; k < 3; k++) normal[k] = -normal[k];
    out.add(dist, place, normal, none);
  }
  if (!any(deep)) return;
  if (shared) deep = deep & (!lead_out(out, geom, reversed, deep, p, a, c2, radius));
  // A ball or capsule under a field, or a capsule whose axis is in an edge of the ground.
  if (any(deep)) collide_lanes(out, grid, geom, reversed, deep, c1, c2);
}
