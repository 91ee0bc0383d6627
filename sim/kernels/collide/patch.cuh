// Several contacts where flat faces of boxes and meshes meet: the face or edge of
// one is clipped against the face of the other. After MuJoCo's native convex
// collision, "multiccd".
#pragma once

enum {
  PATCH_CORNERS = 64,  // of a mesh's face; larger faces keep their single contact
  PATCH_DEGREE = 32,   // faces looked at around a vertex
  PATCH_HITS = 4
};

template <class T>
struct Alignment;  // within 5.1 degrees
template <>
struct Alignment<double> {
  static constexpr double faces = 0.996, edge = 0.0888, none = 1e-6;
};
template <>
struct Alignment<float> {
  static constexpr float faces = 0.996f, edge = 0.0888f, none = 1e-5f;
};

// What the search has touched of one shape, a vertex, an edge or a face, and the flat
// faces and straight edges there. A capsule has one edge and a cylinder one edge and
// one face, whatever was touched.
template <class T>
struct Feature {
  int size;  // 1, 2, 3 different vertices
  int vertex[3];
  P3<T> touched;  // the first of them
  T puffed;       // how much the edge lies outside the surface
  int faces;
  P3<T> normal[PATCH_DEGREE];
  int face[PATCH_DEGREE];
  int edges;
  P3<T> way[PATCH_DEGREE], begin, end[PATCH_DEGREE];
};

template <class T>
OSTLER_FN void add_normal(Feature<T>& f, const P3<T>& normal, int face) {
  if (f.faces >= PATCH_DEGREE) return;
  f.normal[f.faces] = normal;
  f.face[f.faces++] = face;
}

template <class T>
OSTLER_FN void add_edge(Feature<T>& f, const P3<T>& end) {
  if (f.edges >= PATCH_DEGREE) return;
  P3<T> way = end - f.begin;
  make_unit(way);
  f.way[f.edges] = way;
  f.end[f.edges++] = end;
}

// Sorts the face's three vertices: how many differ, those first.
template <class T>
OSTLER_FN void sort_feature(Feature<T>& f) {
  int* v = f.vertex;
  if (v[0] == v[1]) {
    f.size = v[0] == v[2] ? 1 : 2;
    v[1] = v[2];
  } else {
    f.size = v[2] == v[0] || v[2] == v[1] ? 2 : 3;
  }
}

// Faces of a box that hold the feature; face 2 i is at the positive end of axis i.
template <class T, class S>
OSTLER_FN_BIG void box_faces(Feature<T>& f, const Convex<T, S>& box, const P3<T>& outward) {
  f.faces = 0;
  for (int i = 0; i < 3; i++) {
    int up = 0;
    for (int k = 0; k < f.size; k++) up += (f.vertex[k] >> i) & 1;
    if (up != 0 && up != f.size) continue;
    const P3<T> axis = axis_of(box.mat, i);
    add_normal(f, up ? axis : -axis, 2 * i + (up ? 0 : 1));
  }
  if (f.faces == 4 - f.size) return;
  // Vertices that share no such face: take the one that the contact's normal is close to.
  f.faces = 0;
  P3<T> way = turn_back(box.mat, outward);
  const T inverse = T(1) / norm(way);
  for (int i = 0; i < 6; i++) {
    const T along = (i % 2 ? -way[i / 2] : way[i / 2]) * inverse;
    if (along > Alignment<T>::faces) {
      const P3<T> axis = axis_of(box.mat, i / 2);
      add_normal(f, i % 2 ? -axis : axis, i);
      return;
    }
  }
}

template <class S>
OSTLER_FN bool face_holds(const ConvexMesh<S>& mesh, int face, int vertex) {
  const int* list = mesh.vertex_polygon + mesh.vertex_start[vertex];
  for (int k = 0; k < mesh.vertex_degree[vertex]; k++)
    if (list[k] == face) return true;
  return false;
}

// Faces of a mesh that hold the feature.
template <class T, class S>
OSTLER_FN_BIG void mesh_faces(Feature<T>& f, const Convex<T, S>& c) {
  const ConvexMesh<S>& mesh = *c.mesh;
  const int v = f.vertex[0];
  const int* list = mesh.vertex_polygon + mesh.vertex_start[v];
  // An edge has two faces; of the first two, three vertices choose one.
  const int most = f.size == 1 ? PATCH_DEGREE : 2;
  int shared = 0;
  f.faces = 0;
  for (int k = 0; k < mesh.vertex_degree[v] && shared < most; k++) {
    if (f.size > 1 && !face_holds(mesh, list[k], f.vertex[1])) continue;
    shared++;
    if (f.size > 2 && (f.faces > 0 || !face_holds(mesh, list[k], f.vertex[2]))) continue;
    add_normal(f, turn(c.mat, as_p3<T>(mesh.polygon_normal + 3 * list[k])), list[k]);
  }
}

// A vertex of a box or mesh by its number.
template <class T, class S>
OSTLER_FN P3<T> vertex_at(const Convex<T, S>& c, int vertex) {
  P3<T> at;
  if (c.type == SHAPE_BOX) {
    for (int i = 0; i < 3; i++) at[i] = (vertex >> i) & 1 ? c.size[i] : -c.size[i];
  } else {
    at = as_p3<T>(c.mesh->vertex + 3 * vertex);
  }
  return turn(c.mat, at) + c.pos;
}

// The edge that a touched edge is, or those that end in a touched vertex.
template <class T, class S>
OSTLER_FN_BIG void edges_at(Feature<T>& f, const Convex<T, S>& c) {
  f.edges = 0;
  if (f.size > 2) return;
  // From the vertices: the search's own points have moved out by the margin.
  f.begin = vertex_at(c, f.vertex[0]);
  const int v = f.vertex[0];
  if (f.size == 2) {
    add_edge(f, vertex_at(c, f.vertex[1]));
  } else if (c.type == SHAPE_BOX) {
    for (int i = 0; i < 3; i++) add_edge(f, vertex_at(c, v ^ (1 << i)));
  } else {
    const ConvexMesh<S>& mesh = *c.mesh;
    for (int k = 0; k < mesh.vertex_degree[v]; k++) {
      const int face = mesh.vertex_polygon[mesh.vertex_start[v] + k];
      const int* corner = mesh.polygon_vertex + mesh.polygon_start[face];
      const int size = mesh.polygon_size[face];
      for (int j = 0; j < size; j++) {
        if (corner[j] != v) continue;
        add_edge(f, vertex_at(c, corner[j == 0 ? size - 1 : j - 1]));
        break;
      }
    }
  }
}

// The line of a capsule's or cylinder's side that looks along `outward`, and the cap
// that does. A cylinder touched on its side alone has no cap here; touched on a cap
// alone its line is through a point of the rim that the search went by.
template <class T, class S>
OSTLER_FN_BIG void round_feature(Feature<T>& f, const Convex<T, S>& c, const P3<T>& outward) {
  const P3<T> axis = axis_of(c.mat, 2);
  const T along = dot(axis, outward);
  P3<T> side = outward - along * axis;
  f.size = mag(along) > Alignment<T>::none ? 1 : 2;
  if (c.type == SHAPE_CYLINDER) {
    if (f.size == 1) add_normal(f, along >= T(0) ? axis : -axis, along >= T(0) ? 0 : 1);
    if (!(norm(side) > Alignment<T>::none)) {
      side = f.touched - c.pos;
      side = side - dot(axis, side) * axis;
    }
    make_unit(side);
  }
  // A capsule's line has moved out by its share of the margin, a cylinder's has not.
  if (c.type == SHAPE_CAPSULE) f.puffed = T(0.5) * c.margin;
  const P3<T> middle = c.pos + (c.size[0] + f.puffed) * side, half = c.size[1] * axis;
  f.begin = middle - half;
  add_edge(f, middle + half);
}

// Fills in what is at the touched vertices.
template <class T, class S>
OSTLER_FN_BIG void describe(Feature<T>& f, const Convex<T, S>& c, const P3<T>& outward) {
  f.faces = f.edges = 0;
  f.puffed = T(0);
  if (c.type == SHAPE_CAPSULE || c.type == SHAPE_CYLINDER) {
    round_feature(f, c, outward);
    return;
  }
  sort_feature(f);
  if (c.type == SHAPE_BOX) {
    box_faces(f, c, outward);
  } else {
    mesh_faces(f, c);
  }
  edges_at(f, c);
}

// A face's corners, clockwise from outside; 0 where there are too many.
template <class T, class S>
OSTLER_FN_BIG int face_corners(const Convex<T, S>& c, int face, P3<T>* corner) {
  if (c.type == SHAPE_BOX) {
    // Which of its four corners lie at the positive end of each of the two other axes,
    // as bits; MuJoCo's first corner, since the widest quadrilateral depends on it.
    const int ups_u[6] = {3, 3, 6, 6, 6, 9}, ups_v[6] = {9, 6, 12, 3, 3, 3};
    const int z = face / 2, u = z == 0 ? 1 : 0, v = z == 2 ? 1 : 2;
    for (int k = 0; k < 4; k++) {
      P3<T> at;
      at[z] = face % 2 ? -c.size[z] : c.size[z];
      at[u] = (ups_u[face] >> k) & 1 ? c.size[u] : -c.size[u];
      at[v] = (ups_v[face] >> k) & 1 ? c.size[v] : -c.size[v];
      corner[k] = turn(c.mat, at) + c.pos;
    }
    return 4;
  }
  if (c.type == SHAPE_CYLINDER) {
    // A polygon of 16 corners in the cap's circle.
    const T cosine[5] = {T(1), T(0.92387953251128675613), T(0.70710678118654752440),
                         T(0.38268343236508977173), T(0)};
    for (int k = 0; k < 16; k++) {
      const int turns = face == 0 ? (16 - k) % 16 : k;  // in 16ths of a circle
      const int q = turns / 4, r = turns % 4;
      const T near = cosine[r], far = cosine[4 - r];
      const T x = q == 0 ? near : (q == 1 ? -far : (q == 2 ? -near : far));
      const T y = q == 0 ? far : (q == 1 ? near : (q == 2 ? -far : -near));
      corner[k] = turn(c.mat, p3(c.size[0] * x, c.size[0] * y, face == 0 ? c.size[1] : -c.size[1])) +
                  c.pos;
    }
    return 16;
  }
  const ConvexMesh<S>& mesh = *c.mesh;
  const int size = mesh.polygon_size[face];
  if (size > PATCH_CORNERS) return 0;
  const int* list = mesh.polygon_vertex + mesh.polygon_start[face];
  for (int k = 0; k < size; k++)
    corner[k] = turn(c.mat, as_p3<T>(mesh.vertex + 3 * list[size - 1 - k])) + c.pos;
  return size;
}

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
    for (int i = 0; i < count; i++) {
      const P3<T> p = polygon[i], q = polygon[i + 1 == count ? 0 : i + 1];
      const bool p_in = dot(p - from, side) > slack, q_in = dot(q - from, side) > slack;
      if (p_in != q_in) {
        const T slope = dot(side, q - p);
        const T at = (level - dot(side, p)) / slope;
        if (slope != T(0) && at >= T(0) && at <= T(1) && left < 2 * PATCH_CORNERS)
          kept[left++] = p + at * (q - p);
      }
      if (q_in && left < 2 * PATCH_CORNERS) kept[left++] = q;
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
// corners forward one after another.
template <class T>
OSTLER_FN_BIG void widest_quad(const P3<T>* polygon, int count, int* best) {
  int a = 0, b = 1, c = 2, d = 3;
  for (int i = 0; i < 4; i++) best[i] = i;
  T most = quad_area(polygon[a], polygon[b], polygon[c], polygon[d]);
  for (; a < count; a++) {
    for (int guard = 0; guard < count * count; guard++) {
      bool grew = false;
      for (int which = 0; which < 3; which++) {
        for (int turns = 0; turns < count; turns++) {
          const int b1 = which == 2 ? (b + 1) % count : b, c1 = which == 1 ? (c + 1) % count : c,
                    d1 = which == 0 ? (d + 1) % count : d;
          const T area = quad_area(polygon[a], polygon[b1], polygon[c1], polygon[d1]);
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
// along its normal; a corner of a face goes back from there to that face's plane, whose
// outward normal is `back`. The last way is the contact's distance.
template <class T>
OSTLER_FN_BIG void fill_patch(Patch<T>& patch, P3<T>* polygon, int count, const P3<T>* face,
                              int corners, const P3<T>& normal, const P3<T>& back, T margin,
                              T puffed = T(0)) {
  patch.count = 0;
  if (corners < 3 || count < 2) return;
  const bool edge = count == 2;
  const P3<T> there = polygon[0];
  count = clip_on_face(polygon, count, face, corners, normal, margin - puffed);
  int keep[PATCH_HITS] = {0, 1, 2, 3};
  int kept = count < PATCH_HITS ? count : PATCH_HITS;
  if (count > PATCH_HITS) {
    widest_quad(polygon, count, keep);
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
      patch.dist[k] = dot(on - there, back);
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
  if (a.type == SHAPE_MESH && a.mesh->polygons <= 0) return;
  if (b.type == SHAPE_MESH && b.mesh->polygons <= 0) return;
  describe(fa, a, outward);
  describe(fb, b, -outward);

  int pair[2];
  P3<T> polygon[2 * PATCH_CORNERS], border[PATCH_CORNERS];
  if (facing_faces(fa, fb, pair)) {
    const int count = face_corners(b, fb.face[pair[1]], polygon);
    const int corners = face_corners(a, fa.face[pair[0]], border);
    patch.normal = -fb.normal[pair[1]];
    fill_patch(patch, polygon, count, border, corners, fa.normal[pair[0]], fb.normal[pair[1]],
               margin);
    return;
  }
  const bool first_is_round = a.type == SHAPE_CAPSULE || a.type == SHAPE_CYLINDER;
  if ((first_is_round || fa.size <= fb.size) && edge_on_face(fa, fb, pair)) {
    polygon[0] = fa.begin;
    polygon[1] = fa.end[pair[0]];
    const int corners = face_corners(b, fb.face[pair[1]], border);
    const P3<T> normal = fb.normal[pair[1]];
    patch.normal = -normal;
    fill_patch(patch, polygon, 2, border, corners, normal, -normal, margin, fa.puffed);
  } else if (edge_on_face(fb, fa, pair)) {
    polygon[0] = fb.begin;
    polygon[1] = fb.end[pair[0]];
    const int corners = face_corners(a, fa.face[pair[1]], border);
    const P3<T> normal = fa.normal[pair[1]];
    patch.normal = normal;
    fill_patch(patch, polygon, 2, border, corners, normal, -normal, margin, fb.puffed);
  }
}
