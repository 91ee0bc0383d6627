// Flat features of a shape where it is touched: faces and edges of boxes and meshes, caps and
// side lines of cylinders, lines of capsules; and the corners of those faces.
#pragma once

enum {
  PATCH_CORNERS = 64,  // of a mesh's face; larger ones are thinned out to these
  PATCH_DEGREE = 32    // faces looked at around a vertex
};

template <class T>
struct Alignment;  // the search runs in double
template <>
struct Alignment<double> {
  // Within 5.1 degrees; below `none` a component is rounding.
  static constexpr double faces = 0.996, edge = 0.0888, none = 1e-6;
};

// The feature of one shape that the search has touched (a vertex, an edge or a face), with the
// flat faces and straight edges there. A capsule has one edge and a cylinder one edge and one
// face, whatever was touched.
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

// A vertex of a polytope by its number.
template <class T, class S>
OSTLER_FN P3<T> vertex_at(const Convex<T, S>& c, int vertex) {
  if (c.type == SHAPE_PRISM) return c.prism[vertex];
  P3<T> at;
  if (c.type == Shape::box) {
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
  } else if (c.type == Shape::box) {
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
  if (c.type == Shape::cylinder) {
    if (f.size == 1) add_normal(f, along >= T(0) ? axis : -axis, along >= T(0) ? 0 : 1);
    if (!(norm(side) > Alignment<T>::none)) {
      side = f.touched - c.pos;
      side = side - dot(axis, side) * axis;
    }
    make_unit(side);
  }
  // A capsule's line has moved out by its share of the margin, a cylinder's has not.
  if (c.type == Shape::capsule) f.puffed = T(0.5) * c.margin;
  const P3<T> middle = c.pos + (c.size[0] + f.puffed) * side, half = c.size[1] * axis;
  f.begin = middle - half;
  add_edge(f, middle + half);
}

// Fills in what is at the touched vertices.
template <class T, class S>
OSTLER_FN_BIG void describe(Feature<T>& f, const Convex<T, S>& c, const P3<T>& outward) {
  f.faces = f.edges = 0;
  f.puffed = T(0);
  if (c.type == Shape::capsule || c.type == Shape::cylinder) {
    round_feature(f, c, outward);
    return;
  }
  sort_feature(f);
  if (c.type == Shape::box) {
    box_faces(f, c, outward);
  } else {
    mesh_faces(f, c);
  }
  edges_at(f, c);
}

// A face's corners, clockwise from outside. Of a large one evenly spaced corners, the
// `touched` vertex among them: it may be the deepest.
template <class T, class S>
OSTLER_FN_BIG int face_corners(const Convex<T, S>& c, int face, int touched, P3<T>* corner) {
  if (c.type == Shape::box) {
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
  if (c.type == Shape::cylinder) {
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
  const int* list = mesh.polygon_vertex + mesh.polygon_start[face];
  const int count = size < PATCH_CORNERS ? size : PATCH_CORNERS;
  int last = size - 1;
  for (int k = 0; k < size && count < size; k++) last = list[k] == touched ? k : last;
  for (int k = 0; k < count; k++) {
    const int at = last - int((long long)k * size / count);
    corner[k] = turn(c.mat, as_p3<T>(mesh.vertex + 3 * list[at < 0 ? at + size : at])) + c.pos;
  }
  return count;
}
