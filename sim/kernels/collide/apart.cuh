// Pairs whose contacts are found lane by lane: a test on all lanes of which lanes may have
// any. Two shapes are apart along an axis where the distance of their centres exceeds
// their reaches along it. A shape is held by a rod (a sphere around a segment: spheres,
// capsules, cylinders) or by a brick (a box along its axes: all others).
// Source: Gottschalk, Lin, Manocha, OBBTree, 1996 (15 axes of two boxes); Ericson,
// Real-Time Collision Detection, 2005, 4.4 and 4.5.
#pragma once

// A rod's half length and radius.
template<class R, class M> OSTLER_FN typename Lane<R>::T rod_length(const M& m, int g) {
  return m.cg_type[g] == Shape::sphere ? 0 : m.cg_size[3 * g + 1];
}
OSTLER_FN bool is_rod(int type) { return type == Shape::sphere || type == Shape::capsule || type == Shape::cylinder; }

// A brick's coordinates of a vector, from its axes as columns.
template<class R> OSTLER_FN void along_axes(const R* mat, const R* v, R* o) {
  for (int i = 0; i < 3; i++) o[i] = fma(mat[6 + i], v[2], fma(mat[3 + i], v[1], mat[i] * v[0]));
}
// Third axis of a geom.
template<class R, class M> OSTLER_FN void geom_third(const M& m, const Work<R, M>& w, int g, R* o) {
  const int brick = m.cg_brick[g];
  for (int k = 0; k < 3; k++) o[k] = brick < 0 ? w.gaxis[3 * g + k] : w.gmat[9 * brick + 3 * k + 2];
}
// How far a geom reaches from its centre along a unit vector.
template<class R, class M> OSTLER_FN R reach_along(const M& m, const Work<R, M>& w, int g, const R* n) {
  if (is_rod(m.cg_type[g])) {
    R z[3];
    geom_third(m, w, g, z);
    return fma(abs_(dot3(z, n)), bc<R>(rod_length<R>(m, g)), bc<R>(m.cg_size[3 * g]));
  }
  R a[3];
  along_axes(w.gmat + 9 * m.cg_brick[g], n, a);
  R sum = bc<R>(0);
  for (int i = 0; i < 3; i++) sum = fma(abs_(a[i]), bc<R>(m.cg_half[3 * g + i]), sum);
  return sum;
}

// A brick and a rod, `dif` between their centres: the brick's faces, its edges with the
// rod's axis.
template<class R, class M>
OSTLER_FN typename Lane<R>::Mask brick_rod(const M& m, const Work<R, M>& w, int brick, int rod, const R* dif, typename Lane<R>::T reach) {
  const auto* half = m.cg_half + 3 * brick;
  const R* mat = w.gmat + 9 * m.cg_brick[brick];
  const typename Lane<R>::T length = rod_length<R>(m, rod), thick = m.cg_size[3 * rod] + reach;
  R z[3], t[3], a[3], h[3];
  along_axes(mat, dif, t);
  // The rod's bounding sphere; most end here.
  auto far = mask_of<typename Lane<R>::Mask>(false);
  for (int i = 0; i < 3; i++) far = far | (abs_(t[i]) > bc<R>(half[i] + thick + length));
  if (!any(!far)) return !far;
  geom_third(m, w, rod, z);
  along_axes(mat, z, a);
  auto apart = mask_of<typename Lane<R>::Mask>(false);
  for (int i = 0; i < 3; i++) {
    h[i] = abs_(a[i]);
    apart = apart | (abs_(t[i]) > fma(h[i], bc<R>(length), bc<R>(half[i] + thick)));
  }
  if (length <= 0 || !any(!apart)) return !apart;
  for (int i = 0; i < 3; i++) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    const R over = abs_(fms(a[j], t[k], a[k] * t[j])) - fma(h[j], bc<R>(half[k]), h[k] * bc<R>(half[j]));
    const R sine2 = fma(a[j], a[j], a[k] * a[k]);
    apart = apart | ((over > bc<R>(0)) & (over * over > sine2 * bc<R>(thick * thick)));
  }
  return !apart;
}

// Two bricks: their faces, and their edges with each other. The axes between edges are no
// unit vectors, which makes distances along them seem shorter.
template<class R, class M>
OSTLER_FN typename Lane<R>::Mask brick_brick(const M& m, const Work<R, M>& w, int g1, int g2, const R* dif, typename Lane<R>::T reach) {
  const auto* s1 = m.cg_half + 3 * g1;
  const auto* s2 = m.cg_half + 3 * g2;
  const R* mat1 = w.gmat + 9 * m.cg_brick[g1];
  const R* mat2 = w.gmat + 9 * m.cg_brick[g2];
  R t1[3], t2[3], turn[9], size[9];
  along_axes(mat1, dif, t1);
  along_axes(mat2, dif, t2);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      turn[3 * i + j] = fma(mat1[6 + i], mat2[6 + j], fma(mat1[3 + i], mat2[3 + j], mat1[i] * mat2[j]));
      size[3 * i + j] = abs_(turn[3 * i + j]);
    }
  auto apart = mask_of<typename Lane<R>::Mask>(false);
  for (int i = 0; i < 3; i++) {
    R far1 = bc<R>(s1[i] + reach), far2 = bc<R>(s2[i] + reach);
    for (int j = 0; j < 3; j++) {
      far1 = fma(size[3 * i + j], bc<R>(s2[j]), far1);
      far2 = fma(size[3 * j + i], bc<R>(s1[j]), far2);
    }
    apart = apart | (abs_(t1[i]) > far1) | (abs_(t2[i]) > far2);
  }
  if (!any(!apart)) return !apart;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
      R far = bc<R>(reach);
      far = fma(size[3 * b + j], bc<R>(s1[a]), fma(size[3 * a + j], bc<R>(s1[b]), far));
      far = fma(size[3 * i + d], bc<R>(s2[c]), fma(size[3 * i + c], bc<R>(s2[d]), far));
      apart = apart | (abs_(fms(turn[3 * a + j], t1[b], turn[3 * b + j] * t1[a])) > far);
    }
  return !apart;
}

// The point of a brick farthest along `d`, from its centre: of a mesh's vertices, of all or of
// some, beyond which it reaches by `core_over` at most; of others of the box that holds them.
template<class R, class M> OSTLER_FN_BIG void farthest(const M& m, const Work<R, M>& w, int g, bool all, const R* d, R* o) {
  const auto* half = m.cg_half + 3 * g;
  const R* mat = w.gmat + 9 * m.cg_brick[g];
  R a[3], p[3];
  along_axes(mat, d, a);
  for (int k = 0; k < 3; k++) p[k] = sel(a[k] >= bc<R>(0), bc<R>(half[k]), bc<R>(-half[k]));
  const int* range = m.cg_type[g] == Shape::mesh ? (all ? m.mesh_vert : m.mesh_core) + m.cg_data[g] : nullptr;
  if (range && range[0] < range[1]) {
    const auto* vertex = all ? m.mesh_pos : m.core_pos;
    // Two vertices at a time, whose farthest are found apart: a search waits for its last step.
    R top[2] = {bc<R>(-1e30), bc<R>(-1e30)}, best[2] = {bc<R>(range[0]), bc<R>(range[0])};
    const auto look = [&](int side, int v) OSTLER_INLINE {
      const R x = bc<R>(vertex[3 * v]), y = bc<R>(vertex[3 * v + 1]), z = bc<R>(vertex[3 * v + 2]);
      const R reach = fma(a[2], z, fma(a[1], y, a[0] * x));
      best[side] = sel(reach > top[side], bc<R>(v), best[side]);
      top[side] = max_(reach, top[side]);
    };
    int v = range[0];
    for (; v + 1 < range[1]; v += 2) look(0, v), look(1, v + 1);
    if (v < range[1]) look(0, v);
    const R farther = sel(top[1] > top[0], best[1], best[0]);
    for (int l = 0; l < (int)Lane<R>::N; l++) {
      const auto* at = vertex + 3 * (int)lane_get(farther, l);
      for (int k = 0; k < 3; k++) lane_set(p[k], l, at[k]);
    }
  }
  for (int k = 0; k < 3; k++) o[k] = fma(mat[3 * k + 2], p[2], fma(mat[3 * k + 1], p[1], mat[3 * k] * p[0]));
}

// Of the lanes `near`, those in which no plane was found between two bricks of which one is a
// mesh. A direction along which they are not apart is reflected at the line
// between their farthest points, which turns it towards one along which they are. Few vertices
// tell at first, then all of them. `kept`, if any, is where the search of an earlier step ended,
// and where this one begins: nothing but its length depends on it. Zero: there was none.
// Source: Chung, Wang, Quick collision detection of polytopes in virtual environments, 1996.
template<class R, class M>
OSTLER_FN_BIG typename Lane<R>::Mask hulls_near(const M& m, const Work<R, M>& w, int g1, int g2, const R* dif, typename Lane<R>::T reach, typename Lane<R>::Mask near, R* kept) {
  enum { FEW = 4, ALL = 4 };
  typename Lane<R>::T over = 0;
  for (int i = 0; i < 2; i++) {
    const int g = i ? g2 : g1;
    if (m.cg_type[g] == Shape::mesh) over += m.core_over[m.cg_data[g]];
  }
  R d[3];
  for (int k = 0; k < 3; k++) d[k] = dif[k];
  if (kept) {
    // Nor is what is no number.
    const auto known = dot3(kept, kept) > bc<R>(0.5);
    for (int k = 0; k < 3; k++) d[k] = sel(known, kept[k], d[k]);
  }
  for (int turn = 0; turn < (int)FEW + (int)ALL; turn++) {
    const bool all = turn >= (int)FEW || over <= 0;
    const R length2 = dot3(d, d);
    const R s = recip_(sqrt_(max_(length2, bc<R>(1e-20))));
    R back[3], p1[3], p2[3], gap[3];
    for (int k = 0; k < 3; k++) d[k] = d[k] * s, back[k] = -d[k];
    farthest(m, w, g1, all, d, p1);
    farthest(m, w, g2, all, back, p2);
    for (int k = 0; k < 3; k++) gap[k] = dif[k] + p2[k] - p1[k];
    const R apart = dot3(gap, d);
    const auto away = apart > bc<R>(reach + (all ? 0 : over));
    if (kept)
      for (int k = 0; k < 3; k++) kept[k] = sel(near, d[k], kept[k]);
    near = near & (!away);
    if (!any(near)) break;
    // What is apart by less than some vertices can tell stays where it is for all of them.
    if (!all && !any(near & (!(apart > bc<R>(0))))) turn = (int)FEW - 1;
    const R slope = min_(apart, bc<R>(0));
    const R twice = bc<R>(2) * slope * recip_(max_(dot3(gap, gap), bc<R>(1e-20)));
    for (int k = 0; k < 3; k++) d[k] = fnma(twice, gap[k], d[k]);
  }
  return near;
}

// Lanes in which the geoms of a pair may be within its reach; c1, c2 are their centres.
template<class R, class M>
OSTLER_FN typename Lane<R>::Mask may_touch(const M& m, Work<R, M>& w, int pair, int g1, int g2, const R* c1, const R* c2) {
  typedef typename Lane<R>::T T;
  T reach = m.pair_reach[pair];
  const int k1 = m.cg_type[g1], k2 = m.cg_type[g2];
  // A little more, for rounding.
  reach += T(2e-5) * (m.cg_bound[g1] + m.cg_bound[g2]);
  R dif[3];
  for (int k = 0; k < 3; k++) dif[k] = c2[k] - c1[k];
  if (k1 == Shape::plane) return dot3(w.gaxis + 3 * g1, dif) < reach_along(m, w, g2, w.gaxis + 3 * g1) + bc<R>(reach);
  if (is_rod(k1) && is_rod(k2)) return mask_of<typename Lane<R>::Mask>(true);
  const auto near = is_rod(k1) ? brick_rod(m, w, g2, g1, dif, reach)
                  : is_rod(k2) ? brick_rod(m, w, g1, g2, dif, reach)
                               : brick_brick(m, w, g1, g2, dif, reach);
  // A mesh's box says little. Spheres and capsules have no axes of their own to be seen along.
  const bool hulls = (k1 == Shape::mesh || k2 == Shape::mesh) && m.cg_brick[g1] >= 0 && m.cg_brick[g2] >= 0;
  if (!hulls || !any(near)) return near;
  return hulls_near(m, w, g1, g2, dif, reach, near, OSTLER_KEEPS_AXES ? w.pair_axis + 3 * pair : nullptr);
}
