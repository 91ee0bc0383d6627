// Expanding polytope: from a simplex around the origin outwards to the face of the
// Minkowski difference nearest to it, the depth of penetration.
// After MuJoCo's native convex collision.
#pragma once

enum {
  EPA_POINTS = EPA_STEPS + 5,
  // A closed polytope of V points has 2 V - 4 faces; faces that went are used again.
  EPA_FACES = 2 * EPA_POINTS,
  EPA_RIM = 64
};

template <class T>
struct Face {
  P3<T> foot;  // the origin's projection, outward: the face's normal
  T dist2;
  short point[3];
  short beside[3];  // the neighbours over the edges 01, 12, 20
  short slot;       // in the list of candidates; -1: not a candidate, -2: gone
};

template <class T>
struct Polytope {
  Support<T> point[EPA_POINTS];
  Face<T> face[EPA_FACES];
  P3<T> centre;
  P3<T> way;  // the direction of the least depth met
  short list[EPA_FACES];  // candidates for the nearest face
  short unused[EPA_FACES];
  short rim_face[EPA_RIM], rim_edge[EPA_RIM];
  int points, faces, candidates, spare, rim;
  int held;  // the face that went first last time: may still be the answer
};

template <class T>
OSTLER_FN int add_point(Polytope<T>& p, const Support<T>& s) {
  p.point[p.points] = s;
  return p.points++;
}

template <class T, class S>
OSTLER_FN int add_support(Polytope<T>& p, Convex<T, S>& a, Convex<T, S>& b, const P3<T>& way, T length) {
  const P3<T> dir = length > Noise<T>::tiny ? p3(way[0] / length, way[1] / length, way[2] / length)
                                            : p3(T(1), T(0), T(0));
  support(p.point[p.points], a, b, dir);
  return p.points++;
}

// Fills in a face; returns its squared distance to the origin, 0 if it is degenerate.
template <class T>
OSTLER_FN_BIG T set_face(Polytope<T>& p, int at, int a, int b, int c, int ab, int bc, int ca) {
  Face<T>& f = p.face[at];
  f.point[0] = short(a);
  f.point[1] = short(b);
  f.point[2] = short(c);
  f.beside[0] = short(ab);
  f.beside[1] = short(bc);
  f.beside[2] = short(ca);
  f.slot = -1;
  f.dist2 = T(0);
  if (!project_on_plane(p.point[c].at, p.point[b].at, p.point[a].at, f.foot)) return T(0);
  if (dot(f.foot, p.point[a].at - p.centre) < T(0)) f.foot = -f.foot;
  f.dist2 = dot(f.foot, f.foot);
  return f.dist2;
}

template <class T>
OSTLER_FN void list_face(Polytope<T>& p, int at) {
  p.face[at].slot = short(p.candidates);
  p.list[p.candidates++] = short(at);
}

template <class T>
OSTLER_FN void drop_face(Polytope<T>& p, int at) {
  const int slot = p.face[at].slot;
  if (slot >= 0) {
    p.list[slot] = p.list[--p.candidates];
    p.face[p.list[slot]].slot = short(slot);
  }
  p.face[at].slot = -2;
  if (at != p.held) p.unused[p.spare++] = short(at);
}

template <class T>
OSTLER_FN int edge_from(const Face<T>& f, int point) {
  return f.point[0] == point ? 0 : (f.point[1] == point ? 1 : 2);
}

// Deletes the faces that `eye` sees, from `first` on, depth first; the edges around
// them, in order, are the rim. False where the rim does not fit.
template <class T>
OSTLER_FN_BIG bool open_polytope(Polytope<T>& p, int first, const P3<T>& eye) {
  // One entry per open face: the face, the edge it was entered by, edges still to visit.
  short face[EPA_FACES], edge[EPA_FACES], next[EPA_FACES];
  int depth = 1;
  p.rim = 0;
  if (p.held >= 0) p.unused[p.spare++] = short(p.held);
  p.held = first;
  face[0] = short(first);
  edge[0] = 0;
  next[0] = 0;
  drop_face(p, first);
  bool fits = true;
  while (depth > 0) {
    const int top = depth - 1;
    if (next[top] > 2) {
      depth--;
      continue;
    }
    const int here = face[top], e = (edge[top] + next[top]) % 3;
    next[top]++;
    const int other = p.face[here].beside[e];
    Face<T>& f = p.face[other];
    // A face that went already is no rim (the first neighbour cannot have).
    if (f.slot == -2) continue;
    const int entry = edge_from(f, p.face[here].point[(e + 1) % 3]);
    const T seen = dot(f.foot, eye);
    const T noise = Noise<T>::parallel * (mag(seen) + f.dist2);
    if (seen - f.dist2 > (noise > Noise<T>::tiny ? noise : Noise<T>::tiny)) {
      drop_face(p, other);
      if (depth < EPA_FACES) {
        face[depth] = short(other);
        edge[depth] = short(entry);
        next[depth++] = 1;  // not back over the edge it was entered by
      }
    } else if (p.rim < EPA_RIM) {
      p.rim_face[p.rim] = short(other);
      p.rim_edge[p.rim++] = short(entry);
    } else {
      fits = false;
    }
  }
  return fits;
}

template <class T>
OSTLER_FN bool origin_within(const P3<T>& a, const P3<T>& b, const P3<T>& c, const P3<T>& d) {
  return origin_beside(a, b, c, d) && origin_beside(b, c, d, a) && origin_beside(c, d, a, b) &&
         origin_beside(d, a, b, c);
}

template <class T>
OSTLER_FN_BIG bool on_triangle(const P3<T>& a, const P3<T>& b, const P3<T>& c, const P3<T>& at) {
  T w[3];
  triangle_weights(a, b, c, at, w);
  if (w[0] < T(0) || w[1] < T(0) || w[2] < T(0)) return false;
  return norm(w[0] * a + w[1] * b + w[2] * c - at) < Search<T>::exact;
}

template <class T>
OSTLER_FN void restart(Polytope<T>& p) {
  p.points = p.faces = p.candidates = p.spare = p.rim = 0;
  p.held = -1;
  p.way = p3(T(0), T(0), T(0));
}

template <class T>
OSTLER_FN bool list_faces(Polytope<T>& p, int count) {  // always true
  p.faces = count;
  for (int i = 0; i < count; i++) list_face(p, i);
  return true;
}

// Two tetrahedra over a triangle of the difference.
template <class T, class S>
OSTLER_FN_BIG bool start_triangle(Polytope<T>& p, const Support<T>& sa, const Support<T>& sb,
                                  const Support<T>& sc, Convex<T, S>& a, Convex<T, S>& b) {
  restart(p);
  p.centre = (T(1) / T(3)) * (sa.at + sb.at + sc.at);
  const P3<T> normal = cross(sb.at - sa.at, sc.at - sa.at);
  const T length = norm(normal);
  if (!(length >= Noise<T>::tiny)) return false;
  const int i = add_point(p, sa), j = add_point(p, sb), k = add_point(p, sc);
  const int low = add_support(p, a, b, -normal, length);
  const int high = add_support(p, a, b, normal, length);
  const P3<T>&pi = p.point[i].at, &pj = p.point[j].at, &pk = p.point[k].at;
  const P3<T>&ph = p.point[high].at, &pl = p.point[low].at;
  if (on_triangle(pi, pj, pk, ph) || on_triangle(pi, pj, pk, pl)) return false;
  const T least = Search<T>::contained2;
  if (set_face(p, 0, high, i, j, 1, 3, 2) < least) return false;
  if (set_face(p, 1, high, k, i, 2, 4, 0) < least) return false;
  if (set_face(p, 2, high, j, k, 0, 5, 1) < least) return false;
  if (set_face(p, 3, low, j, i, 5, 0, 4) < least) return false;
  if (set_face(p, 4, low, i, k, 3, 1, 5) < least) return false;
  if (set_face(p, 5, low, k, j, 4, 2, 3) < least) return false;
  return list_faces(p, 6);
}

// A triangle's two-sided start from three points of the polytope.
template <class T, class S>
OSTLER_FN_BIG bool restart_from(Polytope<T>& p, const int* face, Convex<T, S>& a, Convex<T, S>& b) {
  const Support<T> sa = p.point[face[0]], sb = p.point[face[1]], sc = p.point[face[2]];
  return start_triangle(p, sa, sb, sc, a, b);
}

// Two tetrahedra about a segment of the difference: points of each face, neighbours.
template <class T, class S>
OSTLER_FN_BIG bool start_segment(Polytope<T>& p, const Nearest<T>& g, Convex<T, S>& a, Convex<T, S>& b) {
  restart(p);
  const P3<T> from = g.simplex[0].at, to = g.simplex[1].at;
  p.centre = T(0.5) * (from + to);
  const P3<T> along = to - from;
  int thin = 0;
  for (int i = 1; i < 3; i++)
    if (mag(along[i]) < mag(along[thin])) thin = i;
  P3<T> e = p3(T(0), T(0), T(0));
  e[thin] = T(1);
  P3<T> way = cross(e, along);

  // A turn by 120 degrees about the segment.
  const T length = norm(along), sine = T(0.86602540378), cosine = T(-0.5);
  const P3<T> u = p3(along[0] / length, along[1] / length, along[2] / length);
  const T rest = T(1) - cosine;
  const T spin[9] = {cosine + u[0] * u[0] * rest,      u[0] * u[1] * rest - u[2] * sine,
                     u[0] * u[2] * rest + u[1] * sine, u[1] * u[0] * rest + u[2] * sine,
                     cosine + u[1] * u[1] * rest,      u[1] * u[2] * rest - u[0] * sine,
                     u[0] * u[2] * rest - u[1] * sine, u[1] * u[2] * rest + u[0] * sine,
                     cosine + u[2] * u[2] * rest};
  const int i = add_point(p, g.simplex[0]), j = add_point(p, g.simplex[1]);
  int ring[3];
  for (int k = 0; k < 3; k++) {
    ring[k] = add_support(p, a, b, way, norm(way));
    way = turn(spin, way);
  }
  const int table[6][6] = {{i, ring[0], ring[1], 1, 3, 2}, {i, ring[2], ring[0], 2, 4, 0},
                           {i, ring[1], ring[2], 0, 5, 1}, {j, ring[1], ring[0], 5, 0, 4},
                           {j, ring[0], ring[2], 3, 1, 5}, {j, ring[2], ring[1], 4, 2, 3}};
  for (int k = 0; k < 6; k++) {
    const int* f = table[k];
    if (set_face(p, k, f[0], f[1], f[2], f[3], f[4], f[5]) < Search<T>::contained2)
      return restart_from(p, f, a, b);
  }
  // The segment has to pass through the ring, or the hexahedron is not convex.
  const P3<T> r0 = p.point[ring[0]].at - from, r1 = p.point[ring[1]].at - from,
              r2 = p.point[ring[2]].at - from;
  const T v0 = volume(r0, r1, along), v1 = volume(r1, r2, along), v2 = volume(r2, r0, along);
  const bool pierces = (v0 >= T(0) && v1 >= T(0) && v2 >= T(0)) ||
                       (v0 <= T(0) && v1 <= T(0) && v2 <= T(0));
  return pierces && list_faces(p, 6);
}

template <class T, class S>
OSTLER_FN_BIG bool start_tetrahedron(Polytope<T>& p, const Nearest<T>& g, Convex<T, S>& a,
                                     Convex<T, S>& b) {
  restart(p);
  for (int i = 0; i < 4; i++) add_point(p, g.simplex[i]);
  p.centre = T(0.25) * (p.point[0].at + p.point[1].at + p.point[2].at + p.point[3].at);
  const int table[4][6] = {
      {0, 1, 2, 1, 3, 2}, {0, 3, 1, 2, 3, 0}, {0, 2, 3, 0, 3, 1}, {3, 2, 1, 2, 0, 1}};
  for (int k = 0; k < 4; k++) {
    const int* f = table[k];
    if (set_face(p, k, f[0], f[1], f[2], f[3], f[4], f[5]) < Search<T>::in_corner2)
      return restart_from(p, f, a, b);
  }
  return origin_within(p.point[0].at, p.point[1].at, p.point[2].at, p.point[3].at) &&
         list_faces(p, 4);
}

// Closes the polytope over the rim with faces around the new point; false where that
// fails. `lower2`, `upper2` bound what may be the nearest face.
template <class T>
OSTLER_FN_BIG bool close_polytope(Polytope<T>& p, int point, T lower2, T upper2, bool& room) {
  int fresh[EPA_RIM];
  room = true;
  for (int i = 0; i < p.rim; i++) {
    if (p.spare > 0) {
      fresh[i] = p.unused[--p.spare];
    } else if (p.faces < EPA_FACES) {
      fresh[i] = p.faces++;
    } else {
      room = false;
      return true;
    }
  }
  for (int i = 0; i < p.rim; i++) {
    const int edge = p.rim_edge[i];
    Face<T>& outer = p.face[p.rim_face[i]];
    const int v1 = outer.point[edge], v2 = outer.point[(edge + 1) % 3];
    outer.beside[edge] = short(fresh[i]);
    const T dist2 = set_face(p, fresh[i], point, v2, v1, fresh[(i + p.rim - 1) % p.rim],
                             p.rim_face[i], fresh[(i + 1) % p.rim]);
    if (!(dist2 > T(0))) return false;
    if (dist2 >= lower2 && dist2 <= upper2) list_face(p, fresh[i]);
  }
  return true;
}

// The nearest face of the difference to within the tolerance, or -1; its points are the
// contact's. May be called again for a finer answer.
template <class T, class S>
OSTLER_FN_BIG int expand(Polytope<T>& p, Convex<T, S>& a, Convex<T, S>& b, T tolerance) {
  const bool discrete = both_discrete(a, b);
  T upper = Noise<T>::huge, upper2 = Noise<T>::huge;
  int face = -1;
  for (int step = 0; p.points < EPA_POINTS; step++) {
    const int before = face;
    T lower2 = Noise<T>::huge;
    for (int i = 0; i < p.candidates; i++) {
      const Face<T>& f = p.face[p.list[i]];
      if (f.dist2 < lower2) {
        lower2 = f.dist2;
        face = p.list[i];
      }
    }
    if (lower2 > upper2 || face < 0) return before;
    if (!(lower2 > T(0))) return face;
    const T lower = root(lower2);
    const int point = add_support(p, a, b, p.face[face].foot, lower);
    const Support<T>& s = p.point[point];
    const T reach = dot(p.face[face].foot, s.at) / lower;
    if (reach < upper) {
      p.way = p.face[face].foot;
      upper = reach;
      upper2 = upper * upper;
    }
    if (!(upper - lower >= tolerance)) {
      return step == 0 && upper < lower - Search<T>::inverted ? -1 : face;
    }
    if (discrete)
      for (int i = 0; i < point; i++)
        if (p.point[i].vertex1 == s.vertex1 && p.point[i].vertex2 == s.vertex2) return face;

    if (!open_polytope(p, face, s.at)) return face;
    if (p.rim < 3) return -1;
    bool room;
    if (!close_polytope(p, point, lower2, upper2, room)) return -1;
    if (!room || p.candidates == 0) return face;
  }
  return face;
}
