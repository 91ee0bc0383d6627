// Points, segments, triangles and tetrahedra against the origin.
#pragma once

template <class T>
OSTLER_FN T volume(const P3<T>& a, const P3<T>& b, const P3<T>& c) {
  return dot(a, cross(b, c));
}

// Strictly the same sign.
template <class T>
OSTLER_FN bool agree(T a, T b) {
  return (a > T(0) && b > T(0)) || (a < T(0) && b < T(0));
}

// The origin's projection onto the plane of a triangle; false if it has no plane.
template <class T>
OSTLER_FN_BIG bool project_on_plane(const P3<T>& a, const P3<T>& b, const P3<T>& c, P3<T>& to) {
  const P3<T> ab = b - a, ac = c - a, bc = c - b;
  // The normal three times over, from each corner: one of them may have cancelled.
  P3<T> normal = cross(bc, ab);
  T height = dot(normal, b), length2 = dot(normal, normal);
  if (length2 == T(0)) return false;
  if (height == T(0) || !(length2 > Noise<T>::tiny)) {
    normal = cross(ab, ac);
    height = dot(normal, a);
    length2 = dot(normal, normal);
    if (length2 == T(0)) return false;
    if (height == T(0) || !(length2 > Noise<T>::tiny)) {
      normal = cross(ac, bc);
      height = dot(normal, c);
      length2 = dot(normal, normal);
    }
  }
  to = (height / length2) * normal;
  return true;
}

// Weights of a point of a triangle's plane. From differences, not from coordinates: the
// triangles of a converging search are small and far from the origin.
template <class T>
OSTLER_FN_BIG void triangle_weights(const P3<T>& a, const P3<T>& b, const P3<T>& c,
                                    const P3<T>& at, T* weight) {
  const P3<T> ab = b - a, ac = c - a, ap = at - a, normal = cross(ab, ac);
  const T length2 = dot(normal, normal);
  weight[1] = dot(cross(ap, ac), normal) / length2;
  weight[2] = dot(cross(ab, ap), normal) / length2;
  weight[0] = T(1) - weight[1] - weight[2];
}

template <class T>
OSTLER_FN_BIG void nearest_on_segment(const P3<T>& a, const P3<T>& b, T* weight) {
  const P3<T> ab = b - a;
  const T length2 = dot(ab, ab);
  const T at = length2 > T(0) ? clamped(-(dot(a, ab) / length2), T(0), T(1)) : T(0);
  weight[0] = T(1) - at;
  weight[1] = at;
}

// The best of the three sides, or the foot of the perpendicular where that is inside
// and nearer; so a triangle that is nearly a segment, whose normal is noise, still
// gives one of its own points.
template <class T>
OSTLER_FN_BIG void nearest_on_triangle(const P3<T>& a, const P3<T>& b, const P3<T>& c, T* weight) {
  const P3<T> corner[3] = {a, b, c};
  T best = Noise<T>::huge;
  weight[0] = T(1);
  weight[1] = weight[2] = T(0);
  for (int i = 0; i < 3; i++) {
    const int u = i == 0 ? 1 : 0, v = i == 2 ? 1 : 2;
    T on[2];
    nearest_on_segment(corner[u], corner[v], on);
    const P3<T> at = on[0] * corner[u] + on[1] * corner[v];
    const T dist2 = dot(at, at);
    if (dist2 < best) {
      best = dist2;
      weight[i] = T(0);
      weight[u] = on[0];
      weight[v] = on[1];
    }
  }
  T inside[3];
  triangle_weights(a, b, c, p3(T(0), T(0), T(0)), inside);
  if (!(inside[0] > T(0) && inside[1] > T(0) && inside[2] > T(0))) return;
  const P3<T> at = inside[0] * a + inside[1] * b + inside[2] * c;
  if (dot(at, at) < best)
    for (int i = 0; i < 3; i++) weight[i] = inside[i];
}

// The origin and d on the same side of the plane of a, b, c.
template <class T>
OSTLER_FN bool origin_beside(const P3<T>& a, const P3<T>& b, const P3<T>& c, const P3<T>& d) {
  const P3<T> normal = cross(b - a, c - a);
  return agree(dot(normal, d - a), dot(normal, -a));
}

// The best of the four faces, or the origin itself where it is inside; a flat
// tetrahedron around it by rounding alone gives itself away by a worse point.
template <class T>
OSTLER_FN_BIG void nearest_on_tetrahedron(const Support<T>* s, T* weight) {
  bool inside = true;
  T best = Noise<T>::huge;
  for (int i = 0; i < 4; i++) {
    const int u = i == 0 ? 1 : 0, v = i <= 1 ? 2 : 1, w = i == 3 ? 2 : 3;
    inside = inside && origin_beside(s[u].at, s[v].at, s[w].at, s[i].at);
    T on[3];
    nearest_on_triangle(s[u].at, s[v].at, s[w].at, on);
    const P3<T> at = on[0] * s[u].at + on[1] * s[v].at + on[2] * s[w].at;
    const T dist2 = dot(at, at);
    if (dist2 < best) {
      best = dist2;
      weight[i] = T(0);
      weight[u] = on[0];
      weight[v] = on[1];
      weight[w] = on[2];
    }
  }
  if (!inside) return;
  T part[4];
  part[0] = -volume(s[1].at, s[2].at, s[3].at);
  part[1] = volume(s[0].at, s[2].at, s[3].at);
  part[2] = -volume(s[0].at, s[1].at, s[3].at);
  part[3] = volume(s[0].at, s[1].at, s[2].at);
  const T whole = part[0] + part[1] + part[2] + part[3];
  P3<T> at = p3(T(0), T(0), T(0));
  for (int i = 0; i < 4; i++) {
    part[i] = part[i] / whole;
    inside = inside && part[i] > T(0);
    at = at + part[i] * s[i].at;
  }
  if (inside && dot(at, at) < best)
    for (int i = 0; i < 4; i++) weight[i] = part[i];
}

// Barycentric weights of the point nearest to the origin in a simplex of n points.
template <class T>
OSTLER_FN void nearest_on_simplex(const Support<T>* s, int n, T* weight) {
  for (int i = 0; i < 4; i++) weight[i] = T(0);
  if (n == 4) {
    nearest_on_tetrahedron(s, weight);
  } else if (n == 3) {
    nearest_on_triangle(s[0].at, s[1].at, s[2].at, weight);
  } else if (n == 2) {
    nearest_on_segment(s[0].at, s[1].at, weight);
  } else {
    weight[0] = T(1);
  }
}
