// Candidate pairs of geoms: where they touch.
//
// Pairs of planes, spheres and capsules, and boxes over planes, are tested on all lanes at
// once, spheres and capsules on grids likewise (grid.cuh); other shapes one lane at a time by
// the functions of collide/.
#pragma once

// Where a pair's contacts go: to the list by body or to the one with Jacobians.
template<class R, class M> struct Sink {
  const M& m;
  Work<R, M>& w;
  int pair, body;  // body: the moving one of a pair that is kept by body, else -1
  const R* shift;  // see add_pair_contact
  OSTLER_FN void add(R dist, const R* p, const R* n, const R* hint) {
    if (body >= 0) add_world_contact(m, w, pair, body, dist, p, n, hint);
    else add_pair_contact(m, w, pair, dist, p, shift, n, hint);
  }
};

// Two spheres (or the nearest points of two capsules' axes): p1, p2 centres.
// Below `Touch` the direction is noise and `fallback` takes its place.
template<class R> struct Touch { static constexpr double value = 2e-6; };
template<> struct Touch<double> { static constexpr double value = 1e-13; };
template<class R, class M>
OSTLER_FN void sphere_sphere(Sink<R, M>& out, const R* p1, typename Lane<R>::T r1, const R* p2, typename Lane<R>::T r2, const R* fallback) {
  typedef typename Lane<R>::T T;
  R n[3], zero[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
  for (int k = 0; k < 3; k++) n[k] = p2[k] - p1[k];
  const R len2 = dot3(n, n);
  // Most of them end here; a little more, for rounding.
  const T most = r1 + r2 + out.m.pair_reach[out.pair];
  if (!any(len2 < bc<R>(T(1.0001) * most * most))) return;
  const auto touch = len2 < bc<R>(Touch<R>::value * Touch<R>::value);
  const R len = sqrt_(len2);
  const R s = recip_(sel(touch, bc<R>(1), len));
  for (int k = 0; k < 3; k++) n[k] = n[k] * s;
  if (any(touch)) {
    const R f2 = dot3(fallback, fallback);
    const auto flat = f2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
    const R fs = recip_(sqrt_(sel(flat, bc<R>(1), f2)));
    for (int k = 0; k < 3; k++)
      n[k] = sel(touch, sel(flat, bc<R>(k == 0 ? 1 : 0), fallback[k] * fs), n[k]);
  }
  const R dist = len - bc<R>(r1 + r2);
  const R depth = fma(dist, bc<R>(0.5), bc<R>(r1));
  R p[3];
  for (int k = 0; k < 3; k++) p[k] = fma(n[k], depth, p1[k]);
  out.add(dist, p, n, zero);
}

template<class R> OSTLER_FN R clamp_(R x, double lo, double hi) {
  return max_(min_(x, bc<R>(hi)), bc<R>(lo));
}

// One lane at a time, for the shapes that have no lane-wise test: those of `near`.
template<class R, class M>
OSTLER_FN_BIG void collide_lanes(Sink<R, M>& out, int first, int second, bool reversed, typename Lane<R>::Mask near,
                                 const R* c1, const R* c2) {
  typedef typename Lane<R>::T T;
  const M& m = out.m;
  const int kind = m.pair_kind[out.pair];
  R mat1[9], mat2[9];
  geom_axes(m, out.w, first, mat1);
  geom_axes(m, out.w, second, mat2);
  R dist[MAX_HITS], pos[MAX_HITS][3], nrm[MAX_HITS][3], tan[MAX_HITS][3];
  const int most = m.pair_hits[out.pair] < MAX_HITS ? m.pair_hits[out.pair] : (int)MAX_HITS;
  for (int h = 0; h < most; h++) {
    dist[h] = bc<R>(1e10);
    for (int k = 0; k < 3; k++) pos[h][k] = tan[h][k] = bc<R>(0), nrm[h][k] = bc<R>(k == 2 ? 1 : 0);
  }
  int used = 0;
  for (int l = 0; l < (int)Lane<R>::N; l++) {
    if (!lane_get(near, l)) continue;
    Solid<T> a, b;
    for (int k = 0; k < 3; k++) {
      a.pos[k] = lane_get(c1[k], l), b.pos[k] = lane_get(c2[k], l);
      a.size[k] = m.cg_size[3 * first + k], b.size[k] = m.cg_size[3 * second + k];
    }
    for (int k = 0; k < 9; k++) a.mat[k] = lane_get(mat1[k], l), b.mat[k] = lane_get(mat2[k], l);
    ConvexMesh<T> mesh1, mesh2;
    HeightField<T> field;
    a.mesh = b.mesh = nullptr, a.field = b.field = nullptr, a.ground = b.ground = nullptr;
    if (m.cg_type[first] == Shape::mesh) mesh_of(m, m.cg_data[first], mesh1), a.mesh = &mesh1;
    if (m.cg_type[second] == Shape::mesh) mesh_of(m, m.cg_data[second], mesh2), b.mesh = &mesh2;
    if (m.cg_type[first] == Shape::hfield) field_of(m, m.cg_data[first], field), a.field = &field;
    if (m.cg_type[first] == Shape::terrain) a.ground = out.w.ground;
    Hit<T> hits[MAX_HITS];
    int n = collide_pair<T>(kind, a, b, m.pair_reach[out.pair], hits);
    if (n > most) {
      n = most;
      lane_set(out.w.overflow, l, true);
    }
    used = n > used ? n : used;
    for (int h = 0; h < n; h++) {
      lane_set(dist[h], l, hits[h].dist);
      for (int k = 0; k < 3; k++) {
        lane_set(pos[h][k], l, hits[h].pos[k]);
        lane_set(nrm[h][k], l, reversed ? -hits[h].normal[k] : hits[h].normal[k]);
        lane_set(tan[h][k], l, hits[h].tangent[k]);
      }
    }
  }
  for (int h = 0; h < used; h++) out.add(dist[h], pos[h], nrm[h], tan[h]);
}

// Capsules: the nearest points of two segments; parallel ones have two contacts
// and go lane by lane.
template<class R, class M>
OSTLER_FN void capsule_capsule(Sink<R, M>& out, int g1, int g2, bool reversed, typename Lane<R>::Mask near, const R* c1, const R* c2) {
  const M& m = out.m;
  typedef typename Lane<R>::T T;
  const T h1 = m.cg_size[3 * g1 + 1], h2 = m.cg_size[3 * g2 + 1];
  const T ma = h1 * h1, mc = h2 * h2;
  R a1[3], a2[3], dif[3];
  for (int k = 0; k < 3; k++) {
    a1[k] = out.w.gaxis[3 * g1 + k] * bc<R>(h1), a2[k] = out.w.gaxis[3 * g2 + k] * bc<R>(h2);
    dif[k] = c1[k] - c2[k];
  }
  const R mb = -dot3(a1, a2), u = -dot3(a1, dif), v = dot3(a2, dif);
  // From products of vectors: where the axes are nearly parallel, 1 - cosine^2 is all
  // rounding in single precision.
  R across[3];
  cross(a1, a2, across);
  const R det = dot3(across, across);
  // Squared sine of the angle below which MuJoCo takes them for parallel.
  const auto parallel = !(det > bc<R>(T(1e-8) * ma * mc));
  const R id = recip_(sel(parallel, bc<R>(1), det));
  // Nearest on the first line, from there on the second segment, and back: where a
  // segment's end is nearest, that is the end.
  R aside[3];
  cross(dif, a2, aside);
  R x1 = clamp_(-dot3(aside, across) * id, -1, 1);
  const R x2 = clamp_(fnma(mb, x1, v) * bc<R>(T(1) / mc), -1, 1);
  x1 = clamp_(fnma(mb, x2, u) * bc<R>(T(1) / ma), -1, 1);
  R p1[3], p2[3];
  const R lost = sel(parallel, bc<R>(1e10), bc<R>(0));
  for (int k = 0; k < 3; k++) {
    p1[k] = fma(a1[k], x1, c1[k]);
    p2[k] = fma(a2[k], x2, c2[k]) + lost;
  }
  sphere_sphere(out, p1, m.cg_size[3 * g1], p2, m.cg_size[3 * g2], across);
  if (any(parallel & near)) collide_lanes(out, reversed ? g2 : g1, reversed ? g1 : g2, reversed, parallel & near, reversed ? c2 : c1, reversed ? c1 : c2);
}

// A box over a plane: the first four corners, in MuJoCo's order, of its lower half
// (collide/plane.cuh).
template<class R, class M>
OSTLER_FN_BIG void plane_box_lanes(Sink<R, M>& out, int plane, int box, const R* c1, const R* c2) {
  const M& m = out.m;
  const R* n = out.w.gaxis + 3 * plane;
  const R* mat = out.w.gmat + 9 * m.cg_brick[box];
  const R zero = bc<R>(0), half = bc<R>(0.5), reach = bc<R>(m.pair_reach[out.pair]);
  R edge[9], d[3], dist[4], pos[12];
  for (int k = 0; k < 3; k++) {
    d[k] = c2[k] - c1[k];
    for (int i = 0; i < 3; i++) edge[3 * i + k] = mat[3 * k + i] * bc<R>(m.cg_size[3 * box + i]);
  }
  const R height = d[0] * n[0] + d[1] * n[1] + d[2] * n[2];
  for (int h = 0; h < 4; h++) {
    dist[h] = bc<R>(1e10);
    for (int k = 0; k < 3; k++) pos[3 * h + k] = zero;
  }
  R count = zero;
  for (int i = 0; i < 8; i++) {
    R corner[3];
    for (int k = 0; k < 3; k++) {
      const R x = i & 1 ? edge[k] : -edge[k], y = i & 2 ? edge[3 + k] : -edge[3 + k], z = i & 4 ? edge[6 + k] : -edge[6 + k];
      corner[k] = x + y + z;
    }
    const R drop = n[0] * corner[0] + n[1] * corner[1] + n[2] * corner[2];
    const R apart = height + drop;
    const auto met = (drop <= zero) & (apart <= reach);
    if (!any(met)) continue;
    for (int h = 0; h < 4; h++) {
      const auto here = met & (count >= bc<R>(h)) & (count <= bc<R>(h));
      dist[h] = sel(here, apart, dist[h]);
      for (int k = 0; k < 3; k++) pos[3 * h + k] = sel(here, corner[k] + c2[k] - half * apart * n[k], pos[3 * h + k]);
    }
    count = count + sel(met, bc<R>(1), zero);
  }
  const R free[3] = {zero, zero, zero};
  for (int h = 0; h < 4; h++)
    if (any(dist[h] < reach)) out.add(dist[h], pos + 3 * h, n, free);
}

#include "grid.cuh"

// Centres of a candidate pair's geoms, relative to the reference of the first one's tree.
template<class R> struct Candidate {
  const R *c1, *c2, *shift;  // shift: see add_pair_contact
  R moved[3], between[3];    // the centre that is not as the tables of geoms have it
  R dif[3];
  R height;  // of the second over the first's plane, if it is one
  typename Lane<R>::Mask near;
};
template<class R, class M> OSTLER_FN void look_at(const M& m, const Work<R, M>& w, int c, Candidate<R>& o) {
  const int g1 = m.pair_g1[c], g2 = m.pair_g2[c];
  const int b1 = m.cg_body[g1], b2 = m.cg_body[g2];
  o.c1 = centre_of(m, w, g1), o.c2 = centre_of(m, w, g2), o.shift = nullptr;
  if (b1 < 0) {
    const R* ref = tree_reference(m, w, b2);
    for (int k = 0; k < 3; k++) o.moved[k] = o.c1[k] - ref[k];
    o.c1 = o.moved;
  } else if (!same_tree(m, b1, b2)) {
    const R *ref1 = tree_reference(m, w, b1), *ref2 = tree_reference(m, w, b2);
    for (int k = 0; k < 3; k++) o.between[k] = ref2[k] - ref1[k], o.moved[k] = o.c2[k] + o.between[k];
    o.c2 = o.moved, o.shift = o.between;
  }
  for (int k = 0; k < 3; k++) o.dif[k] = o.c1[k] - o.c2[k];
  const R reach = bc<R>(m.pair_near[c]);
  if (m.cg_type[g1] == Shape::plane) {
    o.height = -dot3(w.gaxis + 3 * g1, o.dif);
    o.near = o.height < reach;
  } else {
    o.near = dot3(o.dif, o.dif) < reach;
  }
}

// Contacts of one candidate pair.
template<class R, class M> OSTLER_FN void collide_candidate(const M& m, Work<R, M>& w, int c) {
  Candidate<R> pair;
  look_at(m, w, c, pair);
  const auto near = pair.near;
  // Most pairs end here.
  if (!any(near)) return;
  const int g1 = m.pair_g1[c], g2 = m.pair_g2[c], b2 = m.cg_body[g2];
  const bool plane = m.cg_type[g1] == Shape::plane;
  const R *c1 = pair.c1, *c2 = pair.c2, *dif = pair.dif;
  const R* n = w.gaxis + 3 * g1;
  Sink<R, M> out = {m, w, c, c < m.nwpair ? b2 : -1, pair.shift};
  const typename Lane<R>::T r1 = m.cg_size[3 * g1], r2 = m.cg_size[3 * g2];
  const R zero[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
  const int kind = m.pair_kind[c];
  if (plane) {
    const R height = pair.height;
    if (kind == pair_kind(Shape::plane, Shape::sphere)) {
      const R dist = height - bc<R>(r2);
      if (!any(dist < bc<R>(m.pair_reach[c]))) return;
      const R down = fms(dist, bc<R>(-0.5), bc<R>(r2));
      R p[3];
      for (int k = 0; k < 3; k++) p[k] = fma(n[k], down, c2[k]);
      out.add(dist, p, n, zero);
    } else if (kind == pair_kind(Shape::plane, Shape::capsule)) {
      const R* axis = w.gaxis + 3 * g2;
      const R half = bc<R>(m.cg_size[3 * g2 + 1]);
      const R rise = dot3(n, axis) * half;
      for (int end = 0; end < 2; end++) {
        const R dist = (end == 0 ? height + rise : height - rise) - bc<R>(r2);
        if (!any(dist < bc<R>(m.pair_reach[c]))) continue;
        const R down = fms(dist, bc<R>(-0.5), bc<R>(r2));
        R p[3];
        for (int k = 0; k < 3; k++)
          p[k] = fma(n[k], down, fma(axis[k], end == 0 ? half : -half, c2[k]));
        out.add(dist, p, n, axis);
      }
    } else {
      const auto met = near & may_touch(m, w, c, g1, g2, c1, c2);
      if (!any(met)) return;
      if (kind == pair_kind(Shape::plane, Shape::box)) plane_box_lanes(out, g1, g2, c1, c2);
      else collide_lanes(out, g1, g2, false, met, c1, c2);
    }
    return;
  }
  const bool reversed = m.pair_flip[c] != 0;
  // The direction that is used where two centres coincide.
  R fallback[3];
  if (kind == pair_kind(Shape::sphere, Shape::sphere) || kind == pair_kind(Shape::sphere, Shape::capsule)) {
    const R* z1 = w.gaxis + 3 * (reversed ? g2 : g1);
    cross(z1, w.gaxis + 3 * (reversed ? g1 : g2), fallback);
  }
  if (kind == pair_kind(Shape::sphere, Shape::sphere)) {
    sphere_sphere(out, c1, r1, c2, r2, fallback);
  } else if (kind == pair_kind(Shape::sphere, Shape::capsule)) {
    const bool first = m.cg_type[g1] == Shape::capsule;
    const int cap = first ? g1 : g2;
    const typename Lane<R>::T half = m.cg_size[3 * cap + 1];
    const R* a = w.gaxis + 3 * cap;
    R p[3];
    const R along = first ? -dot3(a, dif) : dot3(a, dif);
    const R x = clamp_(along, -half, half);
    for (int k = 0; k < 3; k++) p[k] = fma(a[k], x, first ? c1[k] : c2[k]);
    sphere_sphere(out, first ? p : c1, r1, first ? c2 : p, r2, fallback);
  } else if (kind == pair_kind(Shape::capsule, Shape::capsule)) {
    capsule_capsule(out, g1, g2, reversed, near, c1, c2);
  } else {
    const int first = reversed ? g2 : g1, second = reversed ? g1 : g2;
    const R *p1 = reversed ? c2 : c1, *p2 = reversed ? c1 : c2;
    if (m.ngrid > 0 && is_grid(kind)) return collide_grid(out, first, second, reversed, near, p1, p2);
    const auto met = near & may_touch(m, w, c, first, second, p1, p2);
    if (any(met)) collide_lanes(out, first, second, reversed, met, p1, p2);
  }
}

// Contacts of a group of candidate pairs; `within`: see watched_within.
template<class R, class M> OSTLER_FN void collide_group(const M& m, Work<R, M>& w, int g, bool within) {
  const int first = m.group_adr[g], end = within ? m.group_live[g] : m.group_adr[g + 1];
  if (first == end || !group_near(m, w, g)) return;
  const bool quick = group_quick(m, g);
  for (int c = first; c < end; c++)
    if (!quick || centres_near(m, w, c)) collide_candidate(m, w, c);
}

template<class R, class M> OSTLER_FN_PART void collide(const M& m, Work<R, M>& w) {
  w.nwc = w.npc = 0;
  w.ncon = bc<R>(0);
  w.constrained = mask_of<typename Lane<R>::Mask>(false);
  Straight<R, M>::geoms(m, w);
  const bool within = watched_within(m, w);
  for (int knot = 0; knot < m.nknot;) {
    const int g = m.knot_group[knot];
    if (!knot_near(m, w, knot)) {
      knot = m.knot_end[knot];
      continue;
    }
    knot++;
    if (g < 0) continue;
    place_geom(m, w, m.pair_g1[m.group_adr[g]]);
    collide_group(m, w, g, within);
  }
  for (int g = m.ncrowd; g < m.ngroup; g++) collide_group(m, w, g, within);
}
