// The exact direction of least depth, from where the search has stopped: where a curved shape is
// touched, its polytope comes near the answer only.
#pragma once

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
// or capsule, the edge of a polytope. `low`, `high`: its ends along `way`.
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
  } else if (c.type == Shape::mesh || c.type == SHAPE_PRISM) {
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

// As settle, where both shapes are touched along lines: the direction is across both. False
// where they cross beyond their ends.
template <class T, class S>
OSTLER_FN_BIG bool settle_crossed(Support<T>& s, P3<T>& n, Convex<T, S>& a, Convex<T, S>& b,
                                  const Line<T>& line1, const Line<T>& line2) {
  const P3<T> across = cross(line1.way, line2.way);
  const T size2 = dot(across, across);
  if (!(size2 > T(1e-6))) return false;
  n = ((dot(across, n) < T(0) ? T(-1) : T(1)) / root(size2)) * across;
  support(s, a, b, n);
  const P3<T> gap = s.on2 - s.on1;
  s.on1 = s.on1 + (dot(cross(gap, line2.way), across) / size2) * line1.way;
  s.on2 = s.on2 + (dot(cross(gap, line1.way), across) / size2) * line2.way;
  s.at = s.on1 - s.on2;
  if (!(norm(s.at - dot(s.at, n) * n) <= T(1e-10) * norm(s.at))) return false;
  const T at1 = dot(s.on1, line1.way), at2 = dot(s.on2, line2.way), slack = T(1e-12);
  return at1 > line1.low - slack && at1 < line1.high + slack && at2 > line2.low - slack &&
         at2 < line2.high + slack;
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
  if (line1.found && line2.found) return settle_crossed(exact, normal, a, b, line1, line2);
  if (line1.found) return settle_on_line(exact, normal, a, b, line1, true);
  if (line2.found) return settle_on_line(exact, normal, a, b, line2, false);
  return settle(exact, normal, a, b);
}
