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

#include "shapes.h"
#include "ground.cuh"

// Numbers of shapes, and what the list says of them.
struct Shape {
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) name,
  enum { OSTLER_SHAPES(OSTLER_SHAPE) count };
#undef OSTLER_SHAPE
  enum { Half, Grid, Core, Curved, Corners };
  enum { no, yes };

  static OSTLER_FN constexpr int surface(int shape) {
    switch (shape) {
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) \
  case name: return surface;
      OSTLER_SHAPES(OSTLER_SHAPE)
#undef OSTLER_SHAPE
    }
    return -1;
  }
  static OSTLER_FN constexpr int most(int shape) {
    switch (shape) {
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) \
  case name: return most;
      OSTLER_SHAPES(OSTLER_SHAPE)
#undef OSTLER_SHAPE
    }
    return 0;
  }
  static OSTLER_FN constexpr bool lanes(int shape) {
    switch (shape) {
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) \
  case name: return lanes == yes;
      OSTLER_SHAPES(OSTLER_SHAPE)
#undef OSTLER_SHAPE
    }
    return false;
  }
};

// The number of a pair whose first shape is not behind its second.
OSTLER_FN constexpr int pair_kind(int first, int second) { return first * Shape::count + second; }

// Contacts that any pair can give: MuJoCo's mjMAXCONPAIR, reached by height fields.
enum { MAX_HITS = 50 };

// Contacts that a pair of this kind gives at most; 0 for pairs that never collide.
OSTLER_FN constexpr int max_hits(int kind) {
  const int first = kind / Shape::count, second = kind % Shape::count;
  if (first < 0 || first > second || Shape::surface(second) <= Shape::Grid) return 0;
  switch (kind) {
#define OSTLER_PAIR(first, second, hits, says) \
  case pair_kind(Shape::first, Shape::second): return hits;
    OSTLER_PAIRS(OSTLER_PAIR)
#undef OSTLER_PAIR
  }
  if (Shape::surface(first) == Shape::Grid) return Shape::most(first);
  return Shape::most(first) < Shape::most(second) ? Shape::most(first) : Shape::most(second);
}
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) \
  static_assert(most <= MAX_HITS, "room for the contacts of a pair");
OSTLER_SHAPES(OSTLER_SHAPE)
#undef OSTLER_SHAPE

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
  const Ground* ground;
};

template <class T>
struct Hit {
  T dist;        // negative: depth of penetration
  T pos[3];      // midway between the two surfaces
  T normal[3];   // unit, from the first solid to the second
  T tangent[3];  // what the second axis of the contact frame leans on; zeros: free
};
