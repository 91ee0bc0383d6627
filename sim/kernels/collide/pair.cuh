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
#include "patch.cuh"
#include "convex.cuh"
#include "field.cuh"

// Contacts of a pair of this kind (pair_kind of its types, the first not above the
// second) as MuJoCo finds them, up to `margin` apart. `out` holds max_hits(kind).
template <class T>
OSTLER_FN_BIG int collide_pair(int kind, const Solid<T>& a, const Solid<T>& b, T margin,
                               Hit<T>* out) {
  if (max_hits(kind) == 0) return 0;
  switch (kind) {
    case PAIR_PLANE_SPHERE:
      return plane_sphere(a, b, margin, out);
    case PAIR_PLANE_CAPSULE:
      return plane_capsule(a, b, margin, out);
    case PAIR_PLANE_ELLIPSOID:
      return plane_ellipsoid(a, b, margin, out);
    case PAIR_PLANE_CYLINDER:
      return plane_cylinder(a, b, margin, out);
    case PAIR_PLANE_BOX:
      return plane_box(a, b, margin, out);
    case PAIR_PLANE_MESH:
      return plane_mesh(a, b, margin, out);
    case PAIR_SPHERE_SPHERE:
      return sphere_sphere(a, b, margin, out);
    case PAIR_SPHERE_CAPSULE:
      return sphere_capsule(a, b, margin, out);
    case PAIR_SPHERE_CYLINDER:
      return sphere_cylinder(a, b, margin, out);
    case PAIR_SPHERE_BOX:
      return sphere_box(a, b, margin, out);
    case PAIR_CAPSULE_CAPSULE:
      return capsule_capsule(a, b, margin, out);
    case PAIR_CAPSULE_BOX:
      return capsule_box(a, b, margin, out);
    case PAIR_BOX_BOX:
      return box_box(a, b, margin, out);
    default:
      break;
  }
  const int first = kind / SHAPE_TYPES, second = kind % SHAPE_TYPES;
  if (first == SHAPE_FIELD) return field_pair(second, a, b, margin, out);
  return convex_pair(first, second, a, b, margin, out);
}
