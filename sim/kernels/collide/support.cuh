// Convex shapes as the general algorithm sees them: a centre and the farthest point
// along a direction. T is the search's scalar, S the tables' and the geoms'. After MuJoCo, Computation, "Collision"; the cached vertex is
// where the last search of a mesh ended, which only decides between equals.
#pragma once

enum { SHAPE_PRISM = Shape::hfield };  // one cell's half of a height field

template <class T, class S>
struct Convex {
  int type;
  bool core;  // a sphere as its centre, a capsule as its segment
  P3<T> pos;
  T mat[9];
  P3<T> size;
  T margin;  // half of it is added all around
  const ConvexMesh<S>* mesh;
  P3<T> prism[6];  // three corners below, three above
  int vertex;      // of a box (bits) or mesh; -1: none yet
  int hull;        // the same as a hull index
};

template <class T, class S>
OSTLER_FN void init_convex(Convex<T, S>& c, int type, const Solid<S>& solid, T margin) {
  c.type = type;
  c.core = false;
  c.pos = as_p3<T>(solid.pos);
  for (int i = 0; i < 9; i++) c.mat[i] = T(solid.mat[i]);
  c.size = as_p3<T>(solid.size);
  c.margin = margin;
  c.mesh = solid.mesh;
  c.vertex = c.hull = -1;
}

// Climbs the hull's graph from vertex `at` to the one farthest along `way`.
template <class T, class S>
OSTLER_FN_BIG int climb_hull(const ConvexMesh<S>& mesh, const P3<T>& way, int at) {
  T top = dot(way, as_p3<T>(mesh.vertex + 3 * mesh.hull_vertex[at]));
  for (int step = 0; step < mesh.hull; step++) {
    const int from = at;
    const int* next = mesh.hull_next + mesh.hull_edges[from];
    for (int k = 0; k < mesh.hull && next[k] >= 0; k++) {
      const T reach = dot(way, as_p3<T>(mesh.vertex + 3 * mesh.hull_vertex[next[k]]));
      if (reach > top) {
        top = reach;
        at = next[k];
      }
    }
    if (at == from) break;
  }
  return at;
}

template <class T, class S>
OSTLER_FN_BIG P3<T> mesh_point(Convex<T, S>& c, const P3<T>& way) {
  const ConvexMesh<S>& mesh = *c.mesh;
  if (mesh.hull > 0 && mesh.vertices >= 10) {
    // The graph pays from 10 vertices on (MuJoCo's mjMESH_HILLCLIMB_MIN); start at
    // the better of the last vertex and the one of 27 directions' nearest.
    int cell = 0;
    for (int i = 0; i < 3; i++)
      cell = 3 * cell + (way[i] > T(0.4) ? 2 : (way[i] < T(-0.4) ? 0 : 1));
    int start = mesh.seed[cell];
    if (c.hull >= 0) {
      const T last = dot(way, as_p3<T>(mesh.vertex + 3 * mesh.hull_vertex[c.hull]));
      const T seed = dot(way, as_p3<T>(mesh.vertex + 3 * mesh.hull_vertex[start]));
      if (!(seed > last)) start = c.hull;
    }
    c.hull = climb_hull(mesh, way, start);
    c.vertex = mesh.hull_vertex[c.hull];
  } else {
    int best = c.vertex >= 0 ? c.vertex : 0;
    T top = c.vertex >= 0 ? dot(way, as_p3<T>(mesh.vertex + 3 * best)) : -Noise<T>::huge;
    for (int i = 0; i < mesh.vertices; i++) {
      const T reach = dot(way, as_p3<T>(mesh.vertex + 3 * i));
      if (reach > top) {
        top = reach;
        best = i;
      }
    }
    c.vertex = best;
  }
  return as_p3<T>(mesh.vertex + 3 * c.vertex);
}

// The farthest point along the unit vector `way`, in the shape's own frame.
template <class T, class S>
OSTLER_FN P3<T> sphere_support(Convex<T, S>& c, const P3<T>& way) {
  return c.size[0] * way;
}

template <class T, class S>
OSTLER_FN P3<T> capsule_support(Convex<T, S>& c, const P3<T>& way) {
  P3<T> at = c.size[0] * way;
  at[2] += way[2] >= T(0) ? c.size[1] : -c.size[1];
  return at;
}

template <class T, class S>
OSTLER_FN P3<T> ellipsoid_support(Convex<T, S>& c, const P3<T>& way) {
  P3<T> at = way;
  for (int i = 0; i < 3; i++) at[i] = way[i] * c.size[i];
  const T length2 = dot(at, at);
  if (length2 < Noise<T>::tiny * Noise<T>::tiny) return p3(c.size[0], T(0), T(0));
  const T inverse = T(1) / root(length2);
  for (int i = 0; i < 3; i++) at[i] *= inverse * c.size[i];
  return at;
}

template <class T, class S>
OSTLER_FN P3<T> cylinder_support(Convex<T, S>& c, const P3<T>& way) {
  const T length2 = way[0] * way[0] + way[1] * way[1];
  const T scale = length2 >= Noise<T>::tiny * Noise<T>::tiny ? c.size[0] / root(length2) : T(0);
  return p3(scale * way[0], scale * way[1], way[2] >= T(0) ? c.size[1] : -c.size[1]);
}

template <class T, class S>
OSTLER_FN P3<T> box_support(Convex<T, S>& c, const P3<T>& way) {
  P3<T> at = way;
  int corner = 0;
  for (int i = 0; i < 3; i++) {
    at[i] = way[i] >= T(0) ? c.size[i] : -c.size[i];
    if (at[i] > T(0)) corner |= 1 << i;
  }
  c.vertex = corner;
  return at;
}

template <class T, class S>
OSTLER_FN P3<T> mesh_support(Convex<T, S>& c, const P3<T>& way) {
  return mesh_point(c, way);
}

// The farthest point along the unit vector `dir`, without the margin.
template <class T, class S>
OSTLER_FN_BIG P3<T> support_point(Convex<T, S>& c, const P3<T>& dir) {
  if (c.type == SHAPE_PRISM) {
    const int base = dir[2] < T(0) ? 0 : 3;
    int best = base;
    T top = dot(c.prism[base], dir);
    for (int i = 1; i < 3; i++) {
      const T reach = dot(c.prism[base + i], dir);
      if (reach > top) {
        top = reach;
        best = base + i;
      }
    }
    // MuJoCo gives its vertices no numbers, and ends the search of two polytopes where the
    // other shape's vertex alone comes again: up to all of the depth too early.
    c.vertex = best;
    return c.prism[best];
  }
  if (c.type == Shape::sphere) return c.core ? c.pos : c.size[0] * dir + c.pos;
  if (c.type == Shape::capsule && c.core) {
    const P3<T> z = axis_of(c.mat, 2);
    return (dot(z, dir) >= T(0) ? c.size[1] : -c.size[1]) * z + c.pos;
  }

  const P3<T> way = turn_back(c.mat, dir);
  P3<T> at = way;
  switch (c.type) {
#define OSTLER_SUPPORT_Half(name)
#define OSTLER_SUPPORT_Grid(name)
#define OSTLER_SUPPORT_Core(name) \
  case Shape::name: at = name##_support(c, way); break;
#define OSTLER_SUPPORT_Curved OSTLER_SUPPORT_Core
#define OSTLER_SUPPORT_Corners OSTLER_SUPPORT_Core
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) OSTLER_SUPPORT_##surface(name)
    OSTLER_SHAPES(OSTLER_SHAPE)
#undef OSTLER_SHAPE
  }
  return turn(c.mat, at) + c.pos;
}

// Whether the point that support_point has found along `dir` is the only one: of a face or an
// edge across it all are.
template <class T, class S>
OSTLER_FN_BIG bool stands_out(const Convex<T, S>& c, const P3<T>& dir) {
  const P3<T> way = turn_back(c.mat, dir);
  const T least = T(1e-9);
  if (c.type == Shape::box) return mag(way[0]) > least && mag(way[1]) > least && mag(way[2]) > least;
  if (c.type == Shape::capsule) return mag(way[2]) > least;
  if (c.type == Shape::cylinder) return mag(way[2]) > least && mag(way[2]) < T(1) - least;
  if (c.type != Shape::mesh) return true;
  const ConvexMesh<S>& mesh = *c.mesh;
  const P3<T> best = as_p3<T>(mesh.vertex + 3 * c.vertex);
  const auto behind = [&](int i) {
    const P3<T> gap = best - as_p3<T>(mesh.vertex + 3 * i);
    return i == c.vertex || dot(way, gap) > least * norm(gap);
  };
  bool alone = true;
  if (c.hull >= 0) {
    const int* next = mesh.hull_next + mesh.hull_edges[c.hull];
    for (int k = 0; k < mesh.hull && next[k] >= 0; k++) alone = alone && behind(mesh.hull_vertex[next[k]]);
  } else {
    for (int i = 0; i < mesh.vertices; i++) alone = alone && behind(i);
  }
  return alone;
}

// A point of the Minkowski difference of two shapes, and where it comes from.
template <class T>
struct Support {
  P3<T> at, on1, on2;
  int vertex1, vertex2;
};

// Farthest along the unit vector `dir` for the first shape, against it for the second.
template <class T, class S>
OSTLER_FN_BIG void support(Support<T>& s, Convex<T, S>& a, Convex<T, S>& b, const P3<T>& dir) {
  s.on1 = support_point(a, dir);
  if (a.margin > T(0) && !a.core) s.on1 = s.on1 + (T(0.5) * a.margin) * dir;
  s.on2 = support_point(b, -dir);
  if (b.margin > T(0) && !b.core) s.on2 = s.on2 - (T(0.5) * b.margin) * dir;
  s.at = s.on1 - s.on2;
  s.vertex1 = a.vertex;
  s.vertex2 = b.vertex;
}

// Polytopes without a rounding margin: supports are vertices, searches are finite.
template <class T, class S>
OSTLER_FN bool both_discrete(const Convex<T, S>& a, const Convex<T, S>& b) {
  return a.margin == T(0) && b.margin == T(0) &&
         (Shape::surface(a.type) == Shape::Corners || a.type == SHAPE_PRISM) &&
         (Shape::surface(b.type) == Shape::Corners || b.type == SHAPE_PRISM);
}

template <class T, class S>
OSTLER_FN P3<T> centre_of(const Convex<T, S>& c) {
  if (c.type != SHAPE_PRISM) return c.pos;
  P3<T> sum = p3(T(0), T(0), T(0));
  for (int i = 0; i < 6; i++) sum = sum + c.prism[i];
  return (T(1) / T(6)) * sum;
}
