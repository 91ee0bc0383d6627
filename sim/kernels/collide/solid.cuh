// Narrow-phase collision, scalar: a pair of geoms and its points of contact.
//
// T is float or double. The includer opens the namespace and, on the host,
// includes <math.h> before it. Nothing here allocates, throws or loops without a
// bound; non-finite input gives hits that are not finite, or none.
#pragma once

#ifndef OSTLER_FN
#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define OSTLER_FN __device__ __forceinline__
#else
#define OSTLER_FN inline
#endif
#endif
#ifndef OSTLER_FN_BIG
#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#define OSTLER_FN_BIG __device__ __noinline__
#else
#define OSTLER_FN_BIG inline
#endif
#endif

// Geom types in MuJoCo's order (mjtGeom); a pair is ordered by it.
enum {
  SHAPE_PLANE,
  SHAPE_FIELD,
  SHAPE_SPHERE,
  SHAPE_CAPSULE,
  SHAPE_ELLIPSOID,
  SHAPE_CYLINDER,
  SHAPE_BOX,
  SHAPE_MESH,
  SHAPE_TYPES
};

// The kind of a pair whose first geom type is not above its second.
OSTLER_FN constexpr int pair_kind(int first, int second) { return first * SHAPE_TYPES + second; }

enum {
  PAIR_PLANE_SPHERE = pair_kind(SHAPE_PLANE, SHAPE_SPHERE),
  PAIR_PLANE_CAPSULE = pair_kind(SHAPE_PLANE, SHAPE_CAPSULE),
  PAIR_PLANE_ELLIPSOID = pair_kind(SHAPE_PLANE, SHAPE_ELLIPSOID),
  PAIR_PLANE_CYLINDER = pair_kind(SHAPE_PLANE, SHAPE_CYLINDER),
  PAIR_PLANE_BOX = pair_kind(SHAPE_PLANE, SHAPE_BOX),
  PAIR_PLANE_MESH = pair_kind(SHAPE_PLANE, SHAPE_MESH),
  PAIR_SPHERE_SPHERE = pair_kind(SHAPE_SPHERE, SHAPE_SPHERE),
  PAIR_SPHERE_CAPSULE = pair_kind(SHAPE_SPHERE, SHAPE_CAPSULE),
  PAIR_SPHERE_CYLINDER = pair_kind(SHAPE_SPHERE, SHAPE_CYLINDER),
  PAIR_SPHERE_BOX = pair_kind(SHAPE_SPHERE, SHAPE_BOX),
  PAIR_CAPSULE_CAPSULE = pair_kind(SHAPE_CAPSULE, SHAPE_CAPSULE),
  PAIR_CAPSULE_BOX = pair_kind(SHAPE_CAPSULE, SHAPE_BOX),
  PAIR_BOX_BOX = pair_kind(SHAPE_BOX, SHAPE_BOX)
};

// Contacts that any pair can give: MuJoCo's mjMAXCONPAIR, reached by height fields.
enum { MAX_HITS = 50 };

// Contacts that a pair of this kind gives at most; 0 for pairs that never collide.
OSTLER_FN constexpr int max_hits(int kind) {
  const int first = kind / SHAPE_TYPES, second = kind % SHAPE_TYPES;
  if (first < 0 || first > second || second <= SHAPE_FIELD) return 0;
  if (first == SHAPE_FIELD) return MAX_HITS;
  if (first == SHAPE_PLANE) {
    if (second == SHAPE_CAPSULE) return 2;
    return second == SHAPE_CYLINDER || second >= SHAPE_BOX ? 4 : 1;
  }
  if (first == SHAPE_SPHERE || first == SHAPE_ELLIPSOID || second == SHAPE_ELLIPSOID) return 1;
  if (first == SHAPE_CAPSULE) return 2;
  return kind == PAIR_BOX_BOX ? 8 : 4;
}

// A mesh's convex hull, in the geom's frame. Index tables as in MuJoCo's mjModel.
template <class T>
struct ConvexMesh {
  int vertices;             // all vertices of the mesh, hull or not
  const T* vertex;          // [vertices][3]
  T bound;                  // radius of the sphere around the geom's origin
  int hull;                 // vertices of the hull; 0: no graph, search all vertices
  const int* hull_edges;    // [hull] where a hull vertex's neighbours begin in hull_next
  const int* hull_vertex;   // [hull] index into vertex
  const int* hull_next;     // neighbours as hull indices, each list ended by -1
  const int* seed;          // [27] hull index farthest along each direction of {-1,0,1}^3
  int polygons;             // faces of the hull, coplanar triangles merged; 0: unknown
  const T* polygon_normal;  // [polygons][3]
  const int* polygon_start;    // [polygons] into polygon_vertex
  const int* polygon_size;     // [polygons]
  const int* polygon_vertex;   // indices into vertex, counter-clockwise from outside
  const int* vertex_start;     // [vertices] into vertex_polygon
  const int* vertex_degree;    // [vertices] number of polygons that meet in a vertex
  const int* vertex_polygon;   // polygons that meet in a vertex
};

// A grid of heights over [-size[0], size[0]] x [-size[1], size[1]].
template <class T>
struct HeightField {
  int rows, columns;  // along y, along x; at least 2 each
  T size[4];          // half x, half y, greatest height, depth of the base
  const T* height;    // [rows][columns] in 0..1
};

template <class T>
struct Solid {
  T pos[3];
  T mat[9];   // row-major rotation; its columns are the geom's axes
  T size[3];  // MuJoCo's geom_size
  const ConvexMesh<T>* mesh;
  const HeightField<T>* field;
};

template <class T>
struct Hit {
  T dist;        // negative: depth of penetration
  T pos[3];      // midway between the two surfaces
  T normal[3];   // unit, from the first solid to the second
  T tangent[3];  // what the second axis of the contact frame leans on; zeros: free
};
