// Several contacts where flat parts of two shapes meet: the face or edge of one is clipped
// against the face of the other. After MuJoCo's native convex collision, "multiccd", as
// its release 4.0 does it.
#pragma once

enum { PATCH_HITS = 4 };

// The pair of faces that look most at each other, within the tolerance.
template <class T>
OSTLER_FN bool facing_faces(const Feature<T>& a, const Feature<T>& b, int* pair) {
  T best = -Alignment<T>::faces;
  bool found = false;
  for (int i = 0; i < a.faces; i++)
    for (int j = 0; j < b.faces; j++) {
      const T along = dot(a.normal[i], b.normal[j]);
      if (along < best) {
        best = along;
        pair[0] = i;
        pair[1] = j;
        found = true;
      }
    }
  return found;
}

// First face that an edge lies along.
template <class T>
OSTLER_FN bool edge_on_face(const Feature<T>& edges, const Feature<T>& faces, int* pair) {
  for (int i = 0; i < faces.faces; i++)
    for (int j = 0; j < edges.edges; j++)
      if (mag(dot(edges.way[j], faces.normal[i])) < Alignment<T>::edge) {
        pair[0] = j;
        pair[1] = i;
        return true;
      }
  return false;
}

// Clips a polygon (or an edge: 2 points) against the sides of a face seen along its
// normal, and drops what is more than `margin` above it. In place; returns the corners
// left.
template <class T>
OSTLER_FN_BIG int clip_on_face(P3<T>* polygon, int count, const P3<T>* face, int corners,
                               const P3<T>& normal, T margin) {
  P3<T> kept[2 * PATCH_CORNERS];
  for (int e = 0; e < corners; e++) {
    const P3<T> from = face[e];
    P3<T> side = cross(face[e + 1 == corners ? 0 : e + 1] - from, normal);
    make_unit(side);
    const T level = dot(side, from), slack = -Search<T>::exact;
    int left = 0;
    bool p_in = count > 0 && dot(polygon[0] - from, side) > slack;
    for (int i = 0; i < count; i++) {
      const P3<T>&p = polygon[i], &q = polygon[i + 1 == count ? 0 : i + 1];
      const bool q_in = dot(q - from, side) > slack;
      if (p_in != q_in) {
        const T slope = dot(side, q - p);
        const T at = (level - dot(side, p)) / slope;
        if (slope != T(0) && at >= T(0) && at <= T(1) && left < 2 * PATCH_CORNERS)
          kept[left++] = p + at * (q - p);
      }
      if (q_in && left < 2 * PATCH_CORNERS) kept[left++] = q;
      p_in = q_in;
    }
    count = left;
    for (int i = 0; i < count; i++) polygon[i] = kept[i];
  }
  int left = 0;
  for (int i = 0; i < count; i++)
    if (dot(polygon[i] - face[0], normal) <= margin) polygon[left++] = polygon[i];
  return left;
}

template <class T>
OSTLER_FN T quad_area(const P3<T>& a, const P3<T>& b, const P3<T>& c, const P3<T>& d) {
  return T(0.5) * norm(cross(c - a, d - b));
}

// The quadrilateral of (nearly) the largest area in a convex polygon, by turning its
// corners forward one after another. Its first is among the polygon's first `starts`.
template <class Polygon>
OSTLER_FN_BIG void widest_quad(const Polygon& polygon, int count, int starts, int* best) {
  int a = 0, b = 1, c = 2, d = 3;
  for (int i = 0; i < 4; i++) best[i] = i;
  auto most = quad_area(polygon[a], polygon[b], polygon[c], polygon[d]);
  for (; a < starts; a++) {
    for (int guard = 0; guard < count * count; guard++) {
      bool grew = false;
      for (int which = 0; which < 3; which++) {
        for (int turns = 0; turns < count; turns++) {
          const int b1 = which == 2 ? (b + 1) % count : b, c1 = which == 1 ? (c + 1) % count : c,
                    d1 = which == 0 ? (d + 1) % count : d;
          const auto area = quad_area(polygon[a], polygon[b1], polygon[c1], polygon[d1]);
          if (!(area > most)) break;
          most = area;
          b = b1;
          c = c1;
          d = d1;
          best[0] = a;
          best[1] = b;
          best[2] = c;
          best[3] = d;
          grew = true;
          if (which == 0) break;  // one step of the last, then the others
        }
        if (which == 0 && !grew) break;
      }
      if (!grew) break;
    }
    if (b == a) {
      b = (b + 1) % count;
      if (c == b) {
        c = (c + 1) % count;
        if (d == c) d = (d + 1) % count;
      }
    }
  }
}

// Contacts of the patch: `from` on the first shape, `to` on the second, and the unit
// normal from the first to the second.
template <class T>
struct Patch {
  int count;
  T dist[PATCH_HITS];
  P3<T> mid[PATCH_HITS];
  P3<T> normal;
};

// Clips `polygon` on a face and keeps up to four corners. Each is dropped onto the face
// along its normal; a corner of a face goes back from there to the plane through it whose
// outward normal is `back`. The last way is the contact's distance.
template <class T>
OSTLER_FN_BIG void fill_patch(Patch<T>& patch, P3<T>* polygon, int count, const P3<T>* face,
                              int corners, const P3<T>& normal, const P3<T>& back, T margin,
                              T puffed = T(0)) {
  patch.count = 0;
  if (corners < 3 || count < 2) return;
  const bool edge = count == 2;
  count = clip_on_face(polygon, count, face, corners, normal, margin - puffed);
  int keep[PATCH_HITS] = {0, 1, 2, 3};
  int kept = count < PATCH_HITS ? count : PATCH_HITS;
  if (count > PATCH_HITS) {
    widest_quad(polygon, count, count, keep);
  } else if (edge && count > 2) {
    T most = T(0);
    kept = 2;
    for (int i = 0; i < count; i++)
      for (int j = i + 1; j < count; j++) {
        const P3<T> gap = polygon[j] - polygon[i];
        if (dot(gap, gap) > most) {
          most = dot(gap, gap);
          keep[0] = i;
          keep[1] = j;
        }
      }
  }
  for (int k = 0; k < kept; k++) {
    const P3<T> at = polygon[keep[k]];
    const T height = dot(at - face[0], normal);
    patch.dist[k] = height + puffed;
    patch.mid[k] = at - (height - T(0.5) * patch.dist[k]) * normal;
    if (!edge) {
      const P3<T> on = at - height * normal;
      // From the corner itself: a mesh's face is flat to its vertices' rounding only.
      patch.dist[k] = -height * dot(normal, back);
      patch.mid[k] = on - (T(0.5) * patch.dist[k]) * back;
    }
  }
  patch.count = kept;
}

// Several contacts where the touched features are flat; none where only one makes
// sense. `fa`, `fb` hold the touched vertices; `outward` points from the first shape to
// the second.
template <class T, class S>
OSTLER_FN_BIG void make_patch(Patch<T>& patch, Feature<T>& fa, Feature<T>& fb, const Convex<T, S>& a,
                              const Convex<T, S>& b, const P3<T>& outward, T margin) {
  patch.count = 0;
  if (a.type == Shape::mesh && a.mesh->polygons <= 0) return;
  if (b.type == Shape::mesh && b.mesh->polygons <= 0) return;
  describe(fa, a, outward);
  describe(fb, b, -outward);

  int pair[2];
  P3<T> polygon[2 * PATCH_CORNERS], border[PATCH_CORNERS];
  if (facing_faces(fa, fb, pair)) {
    const int count = face_corners(b, fb.face[pair[1]], fb.vertex[0], polygon);
    const int corners = face_corners(a, fa.face[pair[0]], fa.vertex[0], border);
    patch.normal = -fb.normal[pair[1]];
    fill_patch(patch, polygon, count, border, corners, fa.normal[pair[0]], fb.normal[pair[1]],
               margin);
    return;
  }
  const bool first_is_round = a.type == Shape::capsule || a.type == Shape::cylinder;
  if ((first_is_round || fa.size <= fb.size) && edge_on_face(fa, fb, pair)) {
    polygon[0] = fa.begin;
    polygon[1] = fa.end[pair[0]];
    const int corners = face_corners(b, fb.face[pair[1]], fb.vertex[0], border);
    const P3<T> normal = fb.normal[pair[1]];
    patch.normal = -normal;
    fill_patch(patch, polygon, 2, border, corners, normal, -normal, margin, fa.puffed);
  } else if (edge_on_face(fb, fa, pair)) {
    polygon[0] = fb.begin;
    polygon[1] = fb.end[pair[0]];
    const int corners = face_corners(a, fa.face[pair[1]], fa.vertex[0], border);
    const P3<T> normal = fa.normal[pair[1]];
    patch.normal = normal;
    fill_patch(patch, polygon, 2, border, corners, normal, -normal, margin, fb.puffed);
  }
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
