// General convex shapes: the search's depth and direction as contacts, and the
// further contacts that MuJoCo finds for them ("multiccd").
#pragma once

// A sphere or capsule keeps its distance to the core: nothing iterative is left where
// only the round part overlaps.
template <class T, class S>
OSTLER_FN T shrink(Convex<T, S>& c) {
  if (Shape::surface(c.type) != Shape::Core) return T(0);
  c.core = true;
  return c.size[0] + T(0.5) * c.margin;
}

// Neither a ball around a core nor a polytope: where it is nearest is found by iteration.
template <class T, class S>
OSTLER_FN bool rounded(const Convex<T, S>& c) {
  return Shape::surface(c.type) == Shape::Curved;
}

template <class T, class S>
OSTLER_FN bool curved(const Convex<T, S>& c) {
  return Shape::surface(c.type) == Shape::Core || rounded(c);
}

// Contacts of two convex shapes, at most `most` (1 or PATCH_HITS); `offset` is added
// to each distance. `between`: a direction in which they may be apart; where the search
// finds that they are, the one that it found.
template <class T, class S, class H>
OSTLER_FN_BIG int penetration(Convex<T, S>& a, Convex<T, S>& b, int most, T offset, Hit<H>* out, P3<T>& between) {
  Support<T> s;
  support(s, a, b, between);
  if (dot(s.at, between) < T(0)) return 0;
  const int flat = flat_hits(a, b, most, offset, out);
  if (flat >= 0) return flat;
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
      T dist = g.dist - (around_a + around_b);
      if (!(dist < T(0))) return 0;
      P3<T> from = g.on1 + around_a * normal, to = g.on2 - around_b * normal;
      const Support<T>* s = g.simplex;
      const int last = g.size - 1;
      const bool flat = last >= 0 && last < 3;
      Support<T> exact;
      P3<T> turned = normal;
      if ((rounded(a) || rounded(b)) && flat &&
          settle_touched(exact, turned, s[0], s[last < 1 ? last : 1], s[last], a, b) &&
          dot(turned, normal) > T(0.999)) {
        normal = turned;
        from = exact.on1;
        to = exact.on2;
        dist = dot(to - from, normal);
      }
      // The cores are apart, the surfaces overlap: the normal does not turn around.
      if (most > 1 && flat) {
        const int hits = patch_hits(s[0], s[last < 1 ? last : 1], s[last], a, b, normal, offset, out);
        if (hits >= 0) return hits;
      }
      write_hit(out[0], offset + dist, T(0.5) * (from + to), normal);
      return 1;
    }
    g.on1 = centre_a;
    g.on2 = centre_b;
  }
  gjk(g, a, b, T(0), &between);
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
  // What is touched is told at MuJoCo's tolerance: an edge that lies on a cap but for rounding's
  // tilt is more than its one corner.
  const int t0 = p.face[face].point[0], t1 = p.face[face].point[1], t2 = p.face[face].point[2];
  Support<T> exact;
  P3<T> normal;
  bool settled = false;
  for (int pass = 0; pass < 2 && smooth && !settled; pass++) {
    if (pass == 1) {
      const int finer = expand(p, a, b, fine);
      face = finer >= 0 ? finer : face;
    }
    const Face<T>& near = p.face[face];
    normal = p.way;
    settled = settle_touched(exact, normal, p.point[near.point[0]], p.point[near.point[1]],
                             p.point[near.point[2]], a, b);
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
    const int hits = patch_hits(p.point[t0], p.point[t1], p.point[t2], a, b, normal, offset, out);
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
  if (first == Shape::mesh && (!sa.mesh || sa.mesh->vertices < 1)) return 0;
  if (second == Shape::mesh && (!sb.mesh || sb.mesh->vertices < 1)) return 0;
  Convex<double, S> a, b;
  init_convex(a, first, sa, double(margin));
  init_convex(b, second, sb, double(margin));
  const bool round = Shape::most(first) == 1 || Shape::most(second) == 1;
  P3<double> between = centre_of(b) - centre_of(a);
  make_unit(between);
  return penetration(a, b, round ? 1 : PATCH_HITS, double(margin), out, between);
}
