// Planes, spheres and capsules alone, for robots that have nothing else: most of these pairs are
// tested on all lanes in candidate.cuh; only parallel capsules remain.
#pragma once

template <class T>
OSTLER_FN_BIG int collide_pair(int kind, const Solid<T>& a, const Solid<T>& b, T margin, Hit<T>* out) {
  return kind == pair_kind(Shape::capsule, Shape::capsule) ? capsule_capsule(a, b, margin, out) : 0;
}
