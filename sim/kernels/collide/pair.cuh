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

// A specialised kernel says which kinds it has, so that the others cost it no compile
// time and no stack: OSTLER_PAIR_KINDS, separated by commas.
#ifndef OSTLER_PAIR_KINDS
#define OSTLER_PAIR_KINDS_OF(first) \
  8 * first, 8 * first + 1, 8 * first + 2, 8 * first + 3, 8 * first + 4, 8 * first + 5, 8 * first + 6, 8 * first + 7
#define OSTLER_PAIR_KINDS \
  OSTLER_PAIR_KINDS_OF(0), OSTLER_PAIR_KINDS_OF(1), OSTLER_PAIR_KINDS_OF(2), OSTLER_PAIR_KINDS_OF(3), \
      OSTLER_PAIR_KINDS_OF(4), OSTLER_PAIR_KINDS_OF(5), OSTLER_PAIR_KINDS_OF(6), OSTLER_PAIR_KINDS_OF(7)
#endif

template <int KIND, class T>
OSTLER_FN int collide_kind(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  constexpr int first = KIND / SHAPE_TYPES, second = KIND % SHAPE_TYPES;
  if constexpr (max_hits(KIND) == 0 || first > second) return 0;
  else if constexpr (KIND == PAIR_PLANE_SPHERE) return plane_sphere(a, b, margin, out);
  else if constexpr (KIND == PAIR_PLANE_CAPSULE) return plane_capsule(a, b, margin, out);
  else if constexpr (KIND == PAIR_PLANE_ELLIPSOID) return plane_ellipsoid(a, b, margin, out);
  else if constexpr (KIND == PAIR_PLANE_CYLINDER) return plane_cylinder(a, b, margin, out);
  else if constexpr (KIND == PAIR_PLANE_BOX) return plane_box(a, b, margin, out);
  else if constexpr (KIND == PAIR_PLANE_MESH) return plane_mesh(a, b, margin, out);
  else if constexpr (KIND == PAIR_SPHERE_SPHERE) return sphere_sphere(a, b, margin, out);
  else if constexpr (KIND == PAIR_SPHERE_CAPSULE) return sphere_capsule(a, b, margin, out);
  else if constexpr (KIND == PAIR_SPHERE_CYLINDER) return sphere_cylinder(a, b, margin, out);
  else if constexpr (KIND == PAIR_SPHERE_BOX) return sphere_box(a, b, margin, out);
  else if constexpr (KIND == PAIR_CAPSULE_CAPSULE) return capsule_capsule(a, b, margin, out);
  else if constexpr (KIND == PAIR_CAPSULE_BOX) return capsule_box(a, b, margin, out);
  else if constexpr (KIND == PAIR_BOX_BOX) return box_box(a, b, margin, out);
  else if constexpr (first == SHAPE_FIELD) return field_pair(second, a, b, margin, out);
  else return convex_pair(first, second, a, b, margin, out);
}
template <int... KINDS, class T>
OSTLER_FN int collide_one_of(int kind, const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  int count = 0;
  (void)((kind == KINDS && (count = collide_kind<KINDS>(a, b, margin, out), true)) || ...);
  return count;
}

// Contacts of a pair of this kind (pair_kind of its types, the first not above the
// second) as MuJoCo finds them, up to `margin` apart. `out` holds max_hits(kind).
template <class T>
OSTLER_FN_BIG int collide_pair(int kind, const Solid<T>& a, const Solid<T>& b, T margin,
                               Hit<T>* out) {
  return collide_one_of<OSTLER_PAIR_KINDS>(kind, a, b, margin, out);
}
