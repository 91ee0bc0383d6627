// Every pair of geoms: the one entry to the scalar narrow phase.
#pragma once

#include "solid.cuh"
#include "vector.cuh"
#include "round.cuh"
#include "support.cuh"
#include "plane.cuh"
#include "capsule_box.cuh"
#include "box_box.cuh"
#include "simplex.cuh"
#include "gjk.cuh"
#include "epa.cuh"
#include "feature.cuh"
#include "patch.cuh"
#include "convex.cuh"
#include "field.cuh"

// A robot's own kernel may say which pairs it has, so that the others cost it no
// compile time: OSTLER_PAIR_USED(kind) of the named kinds, OSTLER_CONVEX_USED of
// general convex pairs, OSTLER_FIELD_USED of height fields.
#ifndef OSTLER_PAIR_USED
#define OSTLER_PAIR_USED(kind) true
#endif
#ifndef OSTLER_CONVEX_USED
#define OSTLER_CONVEX_USED true
#endif
#ifndef OSTLER_FIELD_USED
#define OSTLER_FIELD_USED true
#endif

// Contacts of a pair of this kind (pair_kind of its types, the first not above the
// second) as MuJoCo finds them, up to `margin` apart. `out` holds max_hits(kind).
template <class T>
OSTLER_FN_BIG int collide_pair(int kind, const Solid<T>& a, const Solid<T>& b, T margin,
                               Hit<T>* out) {
  if (max_hits(kind) == 0) return 0;
  switch (kind) {
    case PAIR_PLANE_SPHERE:
      if constexpr (OSTLER_PAIR_USED(PAIR_PLANE_SPHERE)) return plane_sphere(a, b, margin, out);
      return 0;
    case PAIR_PLANE_CAPSULE:
      if constexpr (OSTLER_PAIR_USED(PAIR_PLANE_CAPSULE)) return plane_capsule(a, b, margin, out);
      return 0;
    case PAIR_PLANE_ELLIPSOID:
      if constexpr (OSTLER_PAIR_USED(PAIR_PLANE_ELLIPSOID)) return plane_ellipsoid(a, b, margin, out);
      return 0;
    case PAIR_PLANE_CYLINDER:
      if constexpr (OSTLER_PAIR_USED(PAIR_PLANE_CYLINDER)) return plane_cylinder(a, b, margin, out);
      return 0;
    case PAIR_PLANE_BOX:
      if constexpr (OSTLER_PAIR_USED(PAIR_PLANE_BOX)) return plane_box(a, b, margin, out);
      return 0;
    case PAIR_PLANE_MESH:
      if constexpr (OSTLER_PAIR_USED(PAIR_PLANE_MESH)) return plane_mesh(a, b, margin, out);
      return 0;
    case PAIR_SPHERE_SPHERE:
      if constexpr (OSTLER_PAIR_USED(PAIR_SPHERE_SPHERE)) return sphere_sphere(a, b, margin, out);
      return 0;
    case PAIR_SPHERE_CAPSULE:
      if constexpr (OSTLER_PAIR_USED(PAIR_SPHERE_CAPSULE)) return sphere_capsule(a, b, margin, out);
      return 0;
    case PAIR_SPHERE_CYLINDER:
      if constexpr (OSTLER_PAIR_USED(PAIR_SPHERE_CYLINDER)) return sphere_cylinder(a, b, margin, out);
      return 0;
    case PAIR_SPHERE_BOX:
      if constexpr (OSTLER_PAIR_USED(PAIR_SPHERE_BOX)) return sphere_box(a, b, margin, out);
      return 0;
    case PAIR_CAPSULE_CAPSULE:
      if constexpr (OSTLER_PAIR_USED(PAIR_CAPSULE_CAPSULE)) return capsule_capsule(a, b, margin, out);
      return 0;
    case PAIR_CAPSULE_BOX:
      if constexpr (OSTLER_PAIR_USED(PAIR_CAPSULE_BOX)) return capsule_box(a, b, margin, out);
      return 0;
    case PAIR_BOX_BOX:
      if constexpr (OSTLER_PAIR_USED(PAIR_BOX_BOX)) return box_box(a, b, margin, out);
      return 0;
    default:
      break;
  }
  const int first = kind / SHAPE_TYPES, second = kind % SHAPE_TYPES;
  if (first == SHAPE_FIELD) {
    if constexpr (OSTLER_FIELD_USED) return field_pair(second, a, b, margin, out);
    return 0;
  }
  if constexpr (OSTLER_CONVEX_USED) return convex_pair(first, second, a, b, margin, out);
  return 0;
}
