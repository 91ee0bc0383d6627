// General convex shapes: the search's depth and direction as contacts, and the
// further contacts that MuJoCo finds for them ("multiccd").
#pragma once

// A sphere or capsule keeps its distance to the core: nothing iterative is left where
// only the round part overlaps.
template <class T, class S>
OSTLER_FN T shrink(Convex<T, S>& c) {
  if (c.type != SHAPE_SPHERE && c.type != SHAPE_CAPSULE) return T(0);
  c.core = true;
  return c.size[0] + T(0.5) * c.margin;
}

// The direction of least depth for curved shapes, by Newton from a direction near it:
// the depth along n is h(n) = n . p(n), p the support point of the difference; its
// gradient on the sphere is p - h n, its Hessian p' - h. Where the search has stopped
// before that is exact to rounding, and its polytope's face is not. False where the
// depth is not smooth there (a face, an edge): the search's answer then is exact.
template <class T, class S>
OSTLER_FN_BIG bool settle(Support<T>& s, P3<T>& n, Convex<T, S>& a, Convex<T, S>& b) {
  support(s, a, b, n);
  T h = dot(s.at, n);
  for (int step = 0; step < 12; step++) {
    const P3<T> slope = s.at - h * n;
    if (norm(slope) <= T(1e-13) * norm(s.at) + Noise<T>::tiny) return true;
    P3<T> way[2] = {p3(T(0), T(0), T(0)), p3(T(0), T(0), T(0))};
    way[0][mag(n[1]) < T(0.5) ? 1 : 2] = T(1);
    way[0] = way[0] - dot(n, way[0]) * n;
    make_unit(way[0]);
    way[1] = cross(n, way[0]);
    T hess[2][2];
    const T shift = T(1e-6);
    for (int k = 0; k < 2; k++) {
      Support<T> near;
      P3<T> aside = n + shift * way[k];
      make_unit(aside);
      support(near, a, b, aside);
      for (int i = 0; i < 2; i++)
        hess[i][k] = dot(way[i], near.at - s.at) / shift - (i == k ? h : T(0));
    }
    const T off = T(0.5) * (hess[0][1] + hess[1][0]);
    const T det = hess[0][0] * hess[1][1] - off * off;
    if (!(hess[0][0] > T(0)) || !(det > T(0))) return false;
    const T g0 = dot(way[0], slope), g1 = dot(way[1], slope);
    const T d0 = (off * g1 - hess[1][1] * g0) / det, d1 = (off * g0 - hess[0][0] * g1) / det;
    if (!(d0 * d0 + d1 * d1 < T(0.04))) return false;
    P3<T> next = n + (d0 * way[0] + d1 * way[1]);
    make_unit(next);
    Support<T> there;
    support(there, a, b, next);
    const T depth = dot(there.at, next);
    // Rounding may raise the depth by an ulp or so where it is least.
    if (!(depth <= h + T(1e-14) * norm(s.at))) return false;
    const bool still = norm(next - n) < T(1e-13);
    n = next;
    s = there;
    h = depth;
    if (still) return norm(s.at - h * n) <= T(1e-10) * norm(s.at);
  }
  return norm(s.at - h * n) <= T(1e-10) * norm(s.at);
}

template <class T, class S>
OSTLER_FN bool curved(const Convex<T, S>& c) {
  return c.type == SHAPE_SPHERE || c.type == SHAPE_CAPSULE || c.type == SHAPE_ELLIPSOID;
}

// The contacts of what three points of the search have touched; -1 where that gives
// only one.
template <class T, class S, class H>
OSTLER_FN_BIG int patch_hits(const Support<T>& s0, const Support<T>& s1, const Support<T>& s2,
                             const Convex<T, S>& a, const Convex<T, S>& b, const P3<T>& normal, T margin,
                             Hit<H>* out) {
  Feature<T> fa, fb;
  fa.vertex[0] = s0.vertex1;
  fa.vertex[1] = s1.vertex1;
  fa.vertex[2] = s2.vertex1;
  fa.touched = s0.on1;
  fb.touched = s0.on2;
  fb.vertex[0] = s0.vertex2;
  fb.vertex[1] = s1.vertex2;
  fb.vertex[2] = s2.vertex2;
  Patch<T> patch;
  make_patch(patch, fa, fb, a, b, normal, margin);
  if (patch.count == 0) return -1;
  T deepest = patch.dist[0];
  for (int k = 1; k < patch.count; k++) deepest = lesser(deepest, patch.dist[k]);
  // Rounding may have chosen a face that the shapes only graze.
  if (!(deepest < margin)) return -1;
  for (int k = 0; k < patch.count; k++)
    write_hit(out[k], patch.dist[k], patch.mid[k], patch.normal);
  return patch.count;
}

// Contacts of two convex shapes, at most `most` (1 or PATCH_HITS); `offset` is added
// to each distance.
template <class T, class S, class H>
OSTLER_FN_BIG int penetration(Convex<T, S>& a, Convex<T, S>& b, int most, T offset, Hit<H>* out) {
  Nearest<T> g;
  const P3<T> centre_a = centre_of(a), centre_b = centre_of(b);
  g.on1 = centre_a;
  g.on2 = centre_b;
  const T around_a = shrink(a), around_b = shrink(b);
  if (a.core || b.core) {
    gjk(g, a, b, around_a + around_b);
    a.core = b.core = false;
    if (g.dist > Search<T>::tolerance) {
      if (!g.on) return 0;
      P3<T> normal = g.on2 - g.on1;
      make_unit(normal);
      const T dist = g.dist - (around_a + around_b);
      if (!(dist < T(0))) return 0;
      const P3<T> from = g.on1 + around_a * normal, to = g.on2 - around_b * normal;
      // The cores are apart, the surfaces overlap: the normal does not turn around.
      const Support<T>* s = g.simplex;
      const int last = g.size - 1;
      if (most > 1 && last >= 0 && last < 3) {
        const int hits = patch_hits(s[0], s[last < 1 ? last : 1], s[last], a, b, normal, offset, out);
        if (hits >= 0) return hits;
      }
      write_hit(out[0], offset + dist, T(0.5) * (from + to), normal);
      return 1;
    }
    g.on1 = centre_a;
    g.on2 = centre_b;
  }
  gjk(g, a, b, T(0));
  if (!(g.dist <= Search<T>::tolerance) || g.apart) return 0;
  Polytope<T> p;
  bool started = false;
  if (g.size == 2) {
    started = start_segment(p, g, a, b);
  } else if (g.size == 3) {
    started = start_triangle(p, g.simplex[0], g.simplex[1], g.simplex[2], a, b);
  } else if (g.size == 4) {
    started = start_tetrahedron(p, g, a, b);
  }
  // Overlaps on round numbers put the origin on an edge of whatever is built around
  // it; a tetrahedron along skew directions does not have such edges.
  for (int attempt = 0; attempt < 3 && !started; attempt++) {
    for (int i = 0; i < 4; i++) {
      P3<T> way = p3(i & 1 ? T(1) : T(-1), i & 2 ? T(1) : T(-1), (i == 0 || i == 3) ? T(1) : T(-1));
      way = way + T(0.37 * (attempt + 1)) * p3(way[1], way[2], T(0.3) * way[0]);
      make_unit(way);
      support(g.simplex[i], a, b, way);
    }
    g.steps = 0;
    if (enclose_origin(g, a, b) == 1) started = start_tetrahedron(p, g, a, b);
  }
  if (!started) return 0;
  const bool smooth = curved(a) || curved(b);
  const T fine = both_discrete(a, b) ? Search<T>::exact : Search<T>::tolerance;
  int face = expand(p, a, b, smooth ? Search<T>::rough : fine);
  if (face < 0) return 0;
  Support<T> exact;
  P3<T> normal = p.way;
  make_unit(normal);
  const bool settled = smooth && settle(exact, normal, a, b);
  if (smooth && !settled) {
    const int finer = expand(p, a, b, fine);
    face = finer >= 0 ? finer : face;
  }
  const Face<T>& f = p.face[face];
  const Support<T>&s0 = p.point[f.point[0]], &s1 = p.point[f.point[1]], &s2 = p.point[f.point[2]];
  T dist = -root(f.dist2);
  if (settled) {
    dist = -dot(exact.at, normal);
  } else {
    T w[3];
    triangle_weights(s0.at, s1.at, s2.at, f.foot, w);
    exact.on1 = w[0] * s0.on1 + w[1] * s1.on1 + w[2] * s2.on1;
    exact.on2 = w[0] * s0.on2 + w[1] * s1.on2 + w[2] * s2.on2;
    normal = exact.on1 - exact.on2;
    make_unit(normal);
  }
  if (most > 1) {
    const int hits = patch_hits(s0, s1, s2, a, b, normal, offset, out);
    if (hits >= 0) return hits;
  }
  if (!(dist < T(0))) return 0;
  write_hit(out[0], offset + dist, T(0.5) * (exact.on1 + exact.on2), normal);
  return 1;
}

// Two convex geoms. The search runs in double for float geoms too: its result is the
// difference of nearly equal numbers, and the normal's error the root of that.
template <class S>
OSTLER_FN_BIG int convex_pair(int first, int second, const Solid<S>& sa, const Solid<S>& sb,
                              S margin, Hit<S>* out) {
  if (first == SHAPE_MESH && (!sa.mesh || sa.mesh->vertices < 1)) return 0;
  if (second == SHAPE_MESH && (!sb.mesh || sb.mesh->vertices < 1)) return 0;
  Convex<double, S> a, b;
  init_convex(a, first, sa, double(margin));
  init_convex(b, second, sb, double(margin));
  const bool round = first == SHAPE_SPHERE || first == SHAPE_ELLIPSOID || second == SHAPE_SPHERE ||
                     second == SHAPE_ELLIPSOID;
  return penetration(a, b, round ? 1 : PATCH_HITS, double(margin), out);
}
