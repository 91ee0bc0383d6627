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

// A straight line of a shape that two of the touched points span: the side of a cylinder
// or capsule, the edge of a box or mesh. `low`, `high`: its ends along `way`.
template <class T>
struct Line {
  bool found;
  P3<T> way;
  T low, high;
};

template <class T, class S>
OSTLER_FN_BIG Line<T> touched_line(const Convex<T, S>& c, const P3<T>* on, const int* vertex) {
  Line<T> line;
  line.found = false;
  if (c.type == Shape::cylinder || c.type == Shape::capsule) {
    line.way = axis_of(c.mat, 2);
    const T middle = dot(line.way, c.pos);
    bool up = false, down = false;
    for (int i = 0; i < 3; i++) (dot(line.way, on[i]) > middle ? up : down) = true;
    line.found = up && down;
    line.low = middle - c.size[1];
    line.high = middle + c.size[1];
  } else if (c.type == Shape::box) {
    const int differ = (vertex[0] ^ vertex[1]) | (vertex[0] ^ vertex[2]);
    if (differ != 1 && differ != 2 && differ != 4) return line;
    const int i = differ >> 1;  // 1, 2, 4 -> 0, 1, 2
    line.way = axis_of(c.mat, i);
    line.found = true;
    line.low = dot(line.way, c.pos) - c.size[i];
    line.high = line.low + T(2) * c.size[i];
  } else if (c.type == Shape::mesh) {
    const int other = vertex[1] != vertex[0] ? 1 : 2;
    if (vertex[other] == vertex[0]) return line;
    const int last = 3 - other;
    if (vertex[last] != vertex[0] && vertex[last] != vertex[other]) return line;
    const P3<T> from = vertex_at(c, vertex[0]);
    line.way = vertex_at(c, vertex[other]) - from;
    const T length = make_unit(line.way);
    line.low = dot(line.way, from);
    line.high = line.low + length;
    line.found = true;
  }
  return line;
}

// As settle, where one of the shapes is touched along a line: the direction turns about
// it, and the point on it lies opposite to the other shape's. False where that is beyond
// the line's ends.
template <class T, class S>
OSTLER_FN_BIG bool settle_on_line(Support<T>& s, P3<T>& n, Convex<T, S>& a, Convex<T, S>& b,
                                  const Line<T>& line, bool first) {
  const P3<T> e = line.way;
  n = n - dot(n, e) * e;
  make_unit(n);
  bool still = false;
  for (int step = 0; step < 12 && !still; step++) {
    support(s, a, b, n);
    const P3<T> t = cross(e, n);
    const T h = dot(s.at, n), slope = dot(s.at, t);
    still = mag(slope) <= T(1e-14) * norm(s.at) + Noise<T>::tiny;
    if (still) break;
    const T shift = T(1e-6);
    Support<T> near;
    P3<T> aside = n + shift * t;
    make_unit(aside);
    support(near, a, b, aside);
    const T bend = dot(near.at - s.at, t) / shift - h;
    if (!(bend > T(0))) return false;
    const T turn = -slope / bend;
    if (!(mag(turn) < T(0.2))) return false;
    n = n + turn * t;
    n = n - dot(n, e) * e;
    make_unit(n);
    still = mag(turn) < T(1e-13);
  }
  support(s, a, b, n);
  if (!(mag(dot(s.at, cross(e, n))) <= T(1e-10) * norm(s.at))) return false;
  P3<T>& on = first ? s.on1 : s.on2;
  on = on + (first ? -dot(s.at, e) : dot(s.at, e)) * e;
  s.at = s.on1 - s.on2;
  const T at = dot(on, e), slack = T(1e-12);
  return at > line.low - slack && at < line.high + slack;
}

// The exact answer near `normal`, where what three points of the search have touched
// leaves it a direction to turn.
template <class T, class S>
OSTLER_FN_BIG bool settle_touched(Support<T>& exact, P3<T>& normal, const Support<T>& s0,
                                  const Support<T>& s1, const Support<T>& s2, Convex<T, S>& a,
                                  Convex<T, S>& b) {
  const P3<T> on1[3] = {s0.on1, s1.on1, s2.on1}, on2[3] = {s0.on2, s1.on2, s2.on2};
  const int vertex1[3] = {s0.vertex1, s1.vertex1, s2.vertex1};
  const int vertex2[3] = {s0.vertex2, s1.vertex2, s2.vertex2};
  make_unit(normal);
  const Line<T> line1 = touched_line(a, on1, vertex1), line2 = touched_line(b, on2, vertex2);
  if (line1.found && line2.found) return false;  // two lines that cross: nothing turns
  if (line1.found) return settle_on_line(exact, normal, a, b, line1, true);
  if (line2.found) return settle_on_line(exact, normal, a, b, line2, false);
  return settle(exact, normal, a, b);
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
  if (first == Shape::mesh && (!sa.mesh || sa.mesh->vertices < 1)) return 0;
  if (second == Shape::mesh && (!sb.mesh || sb.mesh->vertices < 1)) return 0;
  Convex<double, S> a, b;
  init_convex(a, first, sa, double(margin));
  init_convex(b, second, sb, double(margin));
  const bool round = Shape::most(first) == 1 || Shape::most(second) == 1;
  return penetration(a, b, round ? 1 : PATCH_HITS, double(margin), out);
}
