// Every pair of geoms: the one entry to the scalar narrow phase.
#pragma once

#include "solid.cuh"
#include "vector.cuh"
#include "cells.cuh"
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
#include "settle.cuh"
#include "flat.cuh"
#include "convex.cuh"
#include "field.cuh"

template <int KIND, class T>
OSTLER_FN int collide_kind(const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  constexpr int first = KIND / Shape::count, second = KIND % Shape::count;
  if constexpr (max_hits(KIND) == 0) return 0;
#define OSTLER_PAIR(one, other, hits, says) \
  else if constexpr (KIND == pair_kind(Shape::one, Shape::other)) return one##_##other(a, b, margin, out);
  OSTLER_PAIRS(OSTLER_PAIR)
#undef OSTLER_PAIR
  else if constexpr (Shape::surface(first) == Shape::Half) return plane_convex(second, a, b, margin, out);
  else if constexpr (Shape::surface(first) == Shape::Grid) return field_pair(second, a, b, margin, out);
  else return convex_pair(first, second, a, b, margin, out);
}
template <int... KINDS, class T>
OSTLER_FN int collide_one_of(int kind, const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  int count = 0;
  (void)((kind == KINDS && (count = collide_kind<KINDS>(a, b, margin, out), true)) || ...);
  return count;
}

#ifndef OSTLER_PAIR_KINDS
// Pairs whose first shape is FIRST; -1 is none.
template <int FIRST, class T>
OSTLER_FN int collide_first(int kind, const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) , pair_kind(FIRST, Shape::name)
  return collide_one_of<-1 OSTLER_SHAPES(OSTLER_SHAPE)>(kind, a, b, margin, out);
#undef OSTLER_SHAPE
}
#endif

// Contacts of a pair of this kind (pair_kind of its types, the first not above the
// second) as MuJoCo finds them, up to `margin` apart. `out` holds max_hits(kind).
template <class T>
OSTLER_FN_BIG int collide_pair(int kind, const Solid<T>& a, const Solid<T>& b, T margin,
                               Hit<T>* out) {
  // A robot's own kernel says which kinds it has, separated by commas, so that the others
  // cost it no compile time and no stack.
#ifdef OSTLER_PAIR_KINDS
  return collide_one_of<OSTLER_PAIR_KINDS>(kind, a, b, margin, out);
#else
  switch (kind / Shape::count) {
#define OSTLER_SHAPE(name, surface, lanes, holds, most, says) \
  case Shape::name: return collide_first<Shape::name>(kind, a, b, margin, out);
    OSTLER_SHAPES(OSTLER_SHAPE)
#undef OSTLER_SHAPE
  }
  return 0;
#endif
}
