// The point of a simplex nearest to the origin, by signed volumes.
// Source: Montanari, Petrinic, Barbieri, "Improving the GJK algorithm for faster and
// more reliable distance queries between convex objects", ACM ToG 36 (2017).
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

// Which coordinate to leave out so that the triangle's shadow on the other two, whose
// signed doubled area is `area`, is the largest.
template <class T>
OSTLER_FN_BIG int largest_shadow(const P3<T>& a, const P3<T>& b, const P3<T>& c, T& area) {
  T best[3];
  for (int i = 0; i < 3; i++) {
    const int u = i == 0 ? 1 : 0, v = i == 2 ? 1 : 2;
    best[i] = b[u] * c[v] - b[v] * c[u] - a[u] * c[v] + a[v] * c[u] + a[u] * b[v] - a[v] * b[u];
  }
  const int drop = mag(best[0]) >= mag(best[1]) && mag(best[0]) >= mag(best[2])
                       ? 0
                       : (mag(best[1]) >= mag(best[2]) ? 1 : 2);
  area = best[drop];
  return drop;
}

// Doubled signed areas of the triangles p makes with each side, in coordinates u, v.
template <class T>
OSTLER_FN void part_areas(const P3<T>& a, const P3<T>& b, const P3<T>& c, const P3<T>& p, int u,
                          int v, T* area) {
  area[0] = p[u] * b[v] + p[v] * c[u] + b[u] * c[v] - p[u] * c[v] - p[v] * b[u] - c[u] * b[v];
  area[1] = p[u] * c[v] + p[v] * a[u] + c[u] * a[v] - p[u] * a[v] - p[v] * c[u] - a[u] * c[v];
  area[2] = p[u] * a[v] + p[v] * b[u] + a[u] * b[v] - p[u] * b[v] - p[v] * a[u] - b[u] * a[v];
}

template <class T>
OSTLER_FN_BIG void nearest_on_segment(const P3<T>& a, const P3<T>& b, T* weight) {
  const P3<T> ab = b - a;
  const P3<T> foot = b + (-(dot(b, ab) / dot(ab, ab))) * ab;
  int i = 0;
  T span = a[0] - b[0];
  for (int k = 1; k < 3; k++) {
    if (mag(a[k] - b[k]) >= mag(span)) {
      span = a[k] - b[k];
      i = k;
    }
  }
  const T wa = foot[i] - b[i], wb = a[i] - foot[i];
  const bool inside = agree(span, wa) && agree(span, wb);
  weight[0] = inside ? wa / span : T(0);
  weight[1] = inside ? wb / span : T(1);
}

template <class T>
OSTLER_FN_BIG void nearest_on_triangle(const P3<T>& a, const P3<T>& b, const P3<T>& c, T* weight) {
  P3<T> foot;
  if (!project_on_plane(a, b, c, foot)) {
    nearest_on_segment(a, b, weight);
    weight[2] = T(0);
    return;
  }
  T whole, part[3];
  const int drop = largest_shadow(a, b, c, whole);
  part_areas(a, b, c, foot, drop == 0 ? 1 : 0, drop == 2 ? 1 : 2, part);
  if (agree(whole, part[0]) && agree(whole, part[1]) && agree(whole, part[2])) {
    for (int i = 0; i < 3; i++) weight[i] = part[i] / whole;
    return;
  }
  const P3<T> corner[3] = {a, b, c};
  T best = Noise<T>::huge;
  for (int i = 0; i < 3; i++) {
    if (agree(whole, part[i])) continue;
    const int u = i == 0 ? 1 : 0, v = i == 2 ? 1 : 2;
    T w[2];
    nearest_on_segment(corner[u], corner[v], w);
    const P3<T> at = w[0] * corner[u] + w[1] * corner[v];
    const T dist2 = dot(at, at);
    if (dist2 < best) {
      best = dist2;
      weight[i] = T(0);
      weight[u] = w[0];
      weight[v] = w[1];
    }
  }
}

template <class T>
OSTLER_FN_BIG void nearest_on_tetrahedron(const Support<T>* s, T* weight) {
  T part[4];
  part[0] = -volume(s[1].at, s[2].at, s[3].at);
  part[1] = volume(s[0].at, s[2].at, s[3].at);
  part[2] = -volume(s[0].at, s[1].at, s[3].at);
  part[3] = volume(s[0].at, s[1].at, s[2].at);
  const T whole = part[0] + part[1] + part[2] + part[3];
  bool inside = true;
  for (int i = 0; i < 4; i++) inside = inside && agree(whole, part[i]);
  if (inside) {
    for (int i = 0; i < 4; i++) weight[i] = part[i] / whole;
    return;
  }
  T best = Noise<T>::huge;
  for (int i = 0; i < 4; i++) {
    if (agree(whole, part[i])) continue;
    const int u = i == 0 ? 1 : 0, v = i <= 1 ? 2 : 1, w = i == 3 ? 2 : 3;
    T on[3] = {T(0), T(0), T(0)};
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
