// Contacts: from candidate pairs of geoms to contact points with frames,
// stiffnesses and reference accelerations.
//
// Pairs of planes, spheres and capsules are tested on all lanes at once; other
// shapes one lane at a time by the functions of collide/. A contact that is
// present in any lane takes a slot; lanes without it have stiffness 0 there.
#pragma once

template<class R, class M> struct Straight;  // hooks.cuh

// MuJoCo's second axis of a contact frame (mju_makeFrame).
template<class R> OSTLER_FN void contact_tangent(const R* n, const R* hint, R* t) {
  const R half = bc<R>(0.5), zero = bc<R>(0), one = bc<R>(1);
  const auto use_y = (n[1] < half) & (n[1] > -half);
  const auto none = dot3(hint, hint) < bc<R>(0.25);
  R y[3] = {sel(none, zero, hint[0]), sel(none, sel(use_y, one, zero), hint[1]),
            sel(none, sel(use_y, zero, one), hint[2])};
  const R along = dot3(n, y);
  for (int k = 0; k < 3; k++) y[k] = fnma(n[k], along, y[k]);
  const R len2 = dot3(y, y);
  const auto flat = len2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
  const R s = recip_(sqrt_(sel(flat, one, len2)));
  for (int k = 0; k < 3; k++) t[k] = sel(flat, k == 0 ? one : zero, y[k] * s);
}

// Contact-space velocity of a point that moves with (angular w, linear u at the point).
template<class R> OSTLER_FN void contact_velocity(const int dim, const R* n, const R* t1, const R* w, const R* u, R* o) {
  o[0] = dot3(n, u);
  if (dim == 1) return;
  R t2[3];
  cross(n, t1, t2);
  o[1] = dot3(t1, u);
  o[2] = dot3(t2, u);
  if (dim == 3) return;
  o[3] = dot3(n, w);
  if (dim == 4) return;
  o[4] = dot3(t1, w);
  o[5] = dot3(t2, w);
}

// Whether a contact's regularisation differs between environments, and what it is there.
template<class R, class M> OSTLER_FN bool contact_varies(const M& m, const Rub<R, M> rub) { return m.nweigh > 0 || rub.own; }
template<class R, class M, int D> OSTLER_FN R contact_diagonal(Dim<D> dims, const M& m, const Work<R, M>& w, const Rub<R, M> rub) {
  const R shift = m.nweigh > 0 ? weights(m, w, m.pair_weight + 2 * rub.c) : bc<R>(m.pair_shift[rub.c]);
  if (m.elliptic || dims.of(m, rub.c) == 1) return shift;
  // All edges of a pyramid share one, that of the elliptic cone.
  const R slide = rub.mu(0) * rub.mu(0);
  return bc<R>(2.0 / m.impratio) * slide * (bc<R>(1) + slide) * shift;
}

// Reference accelerations and stiffness of a contact with velocity v.
template<class R, class M, int D>
OSTLER_FN void contact_soft(Dim<D> dims, const M& m, const Work<R, M>& w, const Rub<R, M> rub, R dist, const R* v, R* d, R* aref) {
  const int c = rub.c;
  const auto* s = m.pair_soft + SOFT * c;
  const R r = dist - bc<R>(s[SOFT_MARGIN]);
  const R imp = impedance(s, r);
  const R hard = contact_varies(m, rub) ? stiffness(imp, contact_diagonal(dims, m, w, rub)) : stiffness(s, imp);
  *d = sel(r < bc<R>(0), hard, bc<R>(0));
  aref[0] = reference(s, imp, r, v[0]);
  const R b = bc<R>(m.elliptic ? -m.pair_fricb[c] : -s[SOFT_B]);
  for (int k = 1; k < dims.of(m, c); k++) aref[k] = b * v[k];
}

// A contact of body b with the world at p (relative to the tree's reference), kept by
// body.
template<class R, class M>
OSTLER_FN_ONE void add_world_contact(const M& m, Work<R, M>& w, int c, int b, R dist, const R* p, const R* n, const R* hint) {
  const auto present = dist < bc<R>(m.pair_reach[c]);
  if (!any(present)) return;
  if (w.nwc >= m.nwslot) {
    w.overflow = w.overflow | present;
    return;
  }
  const int k = w.nwc++;
  w.wc_pair[k] = c;
  if (m.rubs && m.pair_mix[c]) mixed_friction(m, w, c, w.wc_mu + 3 * k);
  R* frame = w.wc_frame + 6 * k;
  for (int i = 0; i < 3; i++) w.wc_pos[3 * k + i] = p[i], frame[i] = n[i];
  const R* vb = w.vel + 6 * b;
  R u[3] = {vb[3], vb[4], vb[5]};
  cross_add(vb, p, u);
  by_dim<BY_BODY>(m, c, [&](auto dims) OSTLER_INLINE {
    R v[CDIM];
    const int dim = dims.of(m, c);
    if (dim > 1) contact_tangent(n, hint, frame + 3);
    contact_velocity(dim, frame, frame + 3, vb, u, v);
    contact_soft(dims, m, w, rub_of(m, w, true, k, c), dist, v, w.wc_d + k, w.wc_aref + CDIM * k);
  });
  // Of a contact that does not push nothing else sets them.
  for (int i = 0; i < CDIM; i++) w.wc_jar[CDIM * k + i] = bc<R>(0);
  w.constrained = w.constrained | (w.wc_d[k] > bc<R>(0));
  w.ncon = w.ncon + sel(present, bc<R>(1), bc<R>(0));
}

// A contact that is kept by its Jacobian, at p (relative to the reference of g1's tree,
// of g2's if g1 is static); `shift` leads from that reference to the one of g2's tree.
template<class R, class M>
OSTLER_FN_ONE void add_pair_contact(const M& m, Work<R, M>& w, int c, R dist, const R* p, const R* shift, const R* n, const R* hint) {
  const auto present = dist < bc<R>(m.pair_reach[c]);
  if (!any(present)) return;
  if (w.npc >= m.npslot) {
    w.overflow = w.overflow | present;
    return;
  }
  const int k = w.npc++;
  w.pc_pair[k] = c;
  if (m.rubs && m.pair_mix[c]) mixed_friction(m, w, c, w.pc_mu + 3 * k);
  R p2[3];
  for (int i = 0; i < 3; i++) p2[i] = p[i] - shift[i];
  const int b1 = m.cg_body[m.pair_g1[c]];
  const int tree1 = m.body_tree[b1 < 0 ? m.cg_body[m.pair_g2[c]] : b1];
  by_dim<BY_JACOBIAN>(m, c, [&](auto dims) OSTLER_INLINE {
    const int dim = dims.of(m, c);
    R t[3], v[CDIM];
    if (dim > 1) contact_tangent(n, hint, t);
    if (m.felt) {
      R* place = w.pc_place + 9 * k;
      for (int i = 0; i < 3; i++) place[i] = p[i], place[3 + i] = n[i], place[6 + i] = dim > 1 ? t[i] : bc<R>(0);
    }
    for (int i = 0; i < dim; i++) v[i] = bc<R>(0);
    R* J = w.pc_j + (unsigned long)m.npdim * m.npath * k;
    for (int e = m.pair_path[c]; e < m.pair_path[c + 1]; e++, J += dim) {
      const int d = m.path_dof[e];
      const R* s = w.cdof + 6 * d;
      R u[3] = {s[3], s[4], s[5]};
      cross_add(s, m.body_tree[m.dof_body[d]] == tree1 ? p : p2, u);
      contact_velocity(dim, n, t, s, u, J);
      if (m.path_sign[e] < 0)
        for (int i = 0; i < dim; i++) J[i] = -J[i];
      for (int i = 0; i < dim; i++) v[i] = fma(J[i], w.qvel[d], v[i]);
    }
    contact_soft(dims, m, w, rub_of(m, w, false, k, c), dist, v, w.pc_d + k, w.pc_aref + CDIM * k);
  });
  for (int i = 0; i < CDIM; i++) w.pc_jar[CDIM * k + i] = bc<R>(0);
  w.constrained = w.constrained | (w.pc_d[k] > bc<R>(0));
  w.ncon = w.ncon + sel(present, bc<R>(1), bc<R>(0));
}

// Axes in the world of a frame that has axes `a` in moving body b (-1: in the world).
template<class R, class M, class T> OSTLER_FN void fixed_axes(const Work<R, M>& w, int b, const T* a, R* o) {
  for (int j = 0; j < 3; j++) {
    const double column[3] = {a[j], a[3 + j], a[6 + j]};
    R v[3];
    if (b < 0)
      for (int k = 0; k < 3; k++) v[k] = bc<R>(column[k]);
    else
      mat_con(w.xmat + 9 * b, column, v);
    for (int k = 0; k < 3; k++) o[3 * k + j] = v[k];
  }
}
template<class R, class M> OSTLER_FN void geom_matrix(const M& m, const Work<R, M>& w, int g, R* o) {
  fixed_axes(w, m.cg_body[g], m.cg_mat + 9 * g, o);
}
// The same once place_geoms is done.
template<class R, class M> OSTLER_FN void geom_axes(const M& m, const Work<R, M>& w, int g, R* o) {
  if (m.cg_brick[g] < 0) return geom_matrix(m, w, g, o);
  for (int k = 0; k < 9; k++) o[k] = w.gmat[9 * m.cg_brick[g] + k];
}

// Centres of the geoms that can collide, relative to their tree's reference (moving)
// or in the world (static), and their third axes or all of them.
template<class R, class M> OSTLER_FN_PART void place_geoms(const M& m, Work<R, M>& w) {
  for (int g = 0; g < m.ncg; g++) {
    const int b = m.cg_body[g];
    R* o = w.gpos + 3 * g;
    R* axis = w.gaxis + 3 * g;
    const auto* a = m.cg_mat + 9 * g;
    const decltype(a[0] + 0) z[3] = {a[2], a[5], a[8]};
    if (m.cg_brick[g] >= 0) geom_matrix(m, w, g, w.gmat + 9 * m.cg_brick[g]);
    if (b < 0) {
      for (int k = 0; k < 3; k++) o[k] = bc<R>(m.cg_pos[3 * g + k]), axis[k] = bc<R>(z[k]);
      continue;
    }
    for (int k = 0; k < 3; k++) o[k] = w.xpos[3 * b + k];
    if (!is_zero3(m.cg_pos + 3 * g)) {
      R v[3];
      mat_con(w.xmat + 9 * b, m.cg_pos + 3 * g, v);
      for (int k = 0; k < 3; k++) o[k] = o[k] + v[k];
    }
    if (m.cg_brick[g] < 0) mat_con(w.xmat + 9 * b, z, axis);
  }
  place_balls(m, w);
}
// Where a pair's contacts go: to the list by body or to the one with Jacobians.
template<class R, class M> struct Sink {
  const M& m;
  Work<R, M>& w;
  int pair, body;  // body: the moving one of a pair that is kept by body, else -1
  R shift[3];
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
OSTLER_FN void sphere_sphere(Sink<R, M>& out, const R* p1, double r1, const R* p2, double r2, const R* fallback) {
  R n[3], zero[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
  for (int k = 0; k < 3; k++) n[k] = p2[k] - p1[k];
  const R len2 = dot3(n, n);
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

// One lane at a time, for the shapes that have no lane-wise test.
template<class R, class M>
OSTLER_FN_BIG void collide_lanes(Sink<R, M>& out, int first, int second, bool reversed, typename Lane<R>::Mask near,
                                 const R* c1, const R* c2) {
  typedef typename Lane<R>::T T;
  const M& m = out.m;
  const int kind = m.pair_kind[out.pair];
  near = near & may_touch(m, out.w, first, second, c1, c2, m.pair_reach[out.pair]);
  if (!any(near)) return;
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
    a.mesh = b.mesh = nullptr, a.field = b.field = nullptr;
    if (m.cg_type[first] == Shape::mesh) mesh_of(m, m.cg_data[first], mesh1), a.mesh = &mesh1;
    if (m.cg_type[second] == Shape::mesh) mesh_of(m, m.cg_data[second], mesh2), b.mesh = &mesh2;
    if (m.cg_type[first] == Shape::hfield) field_of(m, m.cg_data[first], field), a.field = &field;
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
  const double h1 = m.cg_size[3 * g1 + 1], h2 = m.cg_size[3 * g2 + 1];
  const double ma = h1 * h1, mc = h2 * h2;
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
  const auto parallel = !(det > bc<R>(1e-8 * ma * mc));
  const R id = recip_(sel(parallel, bc<R>(1), det));
  // Nearest on the first line, from there on the second segment, and back: where a
  // segment's end is nearest, that is the end.
  R aside[3];
  cross(dif, a2, aside);
  R x1 = clamp_(-dot3(aside, across) * id, -1, 1);
  const R x2 = clamp_(fnma(mb, x1, v) * bc<R>(1 / mc), -1, 1);
  x1 = clamp_(fnma(mb, x2, u) * bc<R>(1 / ma), -1, 1);
  R p1[3], p2[3];
  const R lost = sel(parallel, bc<R>(1e10), bc<R>(0));
  for (int k = 0; k < 3; k++) {
    p1[k] = fma(a1[k], x1, c1[k]);
    p2[k] = fma(a2[k], x2, c2[k]) + lost;
  }
  sphere_sphere(out, p1, m.cg_size[3 * g1], p2, m.cg_size[3 * g2], across);
  if (any(parallel & near)) collide_lanes(out, reversed ? g2 : g1, reversed ? g1 : g2, reversed, parallel & near, reversed ? c2 : c1, reversed ? c1 : c2);
}

// Centres of a candidate pair's geoms, relative to the reference of the first one's tree.
template<class R> struct Candidate {
  R c1[3], c2[3], dif[3], shift[3];
  R height;  // of the second over the first's plane, if it is one
  typename Lane<R>::Mask near;
};
template<class R, class M> OSTLER_FN void look_at(const M& m, const Work<R, M>& w, int c, Candidate<R>& o) {
  const int g1 = m.pair_g1[c], g2 = m.pair_g2[c];
  const int b1 = m.cg_body[g1], b2 = m.cg_body[g2];
  const R *p1 = centre_of(m, w, g1), *p2 = centre_of(m, w, g2);
  for (int k = 0; k < 3; k++) o.c1[k] = p1[k], o.c2[k] = p2[k], o.shift[k] = bc<R>(0);
  if (b1 < 0) {
    const R* ref = tree_reference(m, w, b2);
    for (int k = 0; k < 3; k++) o.c1[k] = o.c1[k] - ref[k];
  } else if (!same_tree(m, b1, b2)) {
    const R *ref1 = tree_reference(m, w, b1), *ref2 = tree_reference(m, w, b2);
    for (int k = 0; k < 3; k++) o.shift[k] = ref2[k] - ref1[k], o.c2[k] = o.c2[k] + o.shift[k];
  }
  for (int k = 0; k < 3; k++) o.dif[k] = o.c1[k] - o.c2[k];
  const R reach = bc<R>(m.pair_near[c]);
  if (m.cg_type[g1] == Shape::plane) {
    o.height = -dot3(w.gaxis + 3 * g1, o.dif);
    o.near = o.height < reach;
  } else {
    o.height = bc<R>(0);
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
  const R *c1 = pair.c1, *c2 = pair.c2, *dif = pair.dif, *shift = pair.shift;
  const R* n = w.gaxis + 3 * g1;
  const R height = pair.height;
  Sink<R, M> out = {m, w, c, c < m.nwpair ? b2 : -1, {shift[0], shift[1], shift[2]}};
  const double r1 = m.cg_size[3 * g1], r2 = m.cg_size[3 * g2];
  const R zero[3] = {bc<R>(0), bc<R>(0), bc<R>(0)};
  const int kind = m.pair_kind[c];
  if (plane) {
    if (kind == pair_kind(Shape::plane, Shape::sphere)) {
      const R dist = height - bc<R>(r2);
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
        const R down = fms(dist, bc<R>(-0.5), bc<R>(r2));
        R p[3];
        for (int k = 0; k < 3; k++)
          p[k] = fma(n[k], down, fma(axis[k], end == 0 ? half : -half, c2[k]));
        out.add(dist, p, n, axis);
      }
    } else {
      collide_lanes(out, g1, g2, false, near, c1, c2);
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
    const double half = m.cg_size[3 * cap + 1];
    const R* a = w.gaxis + 3 * cap;
    R p[3];
    const R along = first ? -dot3(a, dif) : dot3(a, dif);
    const R x = clamp_(along, -half, half);
    for (int k = 0; k < 3; k++) p[k] = fma(a[k], x, first ? c1[k] : c2[k]);
    sphere_sphere(out, first ? p : c1, r1, first ? c2 : p, r2, fallback);
  } else if (kind == pair_kind(Shape::capsule, Shape::capsule)) {
    capsule_capsule(out, g1, g2, reversed, near, c1, c2);
  } else if (reversed) {
    collide_lanes(out, g2, g1, true, near, c2, c1);
  } else {
    collide_lanes(out, g1, g2, false, near, c1, c2);
  }
}

template<class R, class M> OSTLER_FN_PART void collide(const M& m, Work<R, M>& w) {
  w.nwc = w.npc = 0;
  w.ncon = bc<R>(0);
  w.constrained = mask_of<typename Lane<R>::Mask>(false);
  Straight<R, M>::geoms(m, w);
  for (int g = 0; g < m.ngroup; g++) {
    if (!group_near(m, w, g)) continue;
    const bool quick = group_quick(m, g);
    for (int c = m.group_adr[g], end = m.group_adr[g + 1]; c < end; c++)
      if (!quick || centres_near(m, w, c)) collide_candidate(m, w, c);
  }
}
