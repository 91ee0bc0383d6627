// The scalar narrow phase, compiled once for each scalar type (OSTLER_REAL,
// OSTLER_NAME) and shared by the generic kernels of all instruction sets.
#include <immintrin.h>
#include <math.h>

namespace {
#include "scalar.cuh"
#include "collide/all.cuh"
}

#define OSTLER_JOIN_(a, b) a##b
#define OSTLER_JOIN(a, b) OSTLER_JOIN_(a, b)

extern "C" int OSTLER_JOIN(ostler_collide_, OSTLER_NAME)(int kind, const void* a, const void* b, OSTLER_REAL margin, void* hits) {
  return collide_pair<OSTLER_REAL>(kind, *(const Solid<OSTLER_REAL>*)a, *(const Solid<OSTLER_REAL>*)b, margin, (Hit<OSTLER_REAL>*)hits);
}

// Shapes, and contacts that a pair of shapes has at most: Rust counts them by the same list,
// and compares.
extern "C" int OSTLER_JOIN(ostler_most_hits_, OSTLER_NAME)(int kind) {
  return kind < 0 ? (int)Shape::count : max_hits(kind);
}
