// The scalar narrow phase behind a C interface, for its comparison with MuJoCo.
#include <math.h>

#include <chrono>

#define OSTLER_EXPORT extern "C" __attribute__((visibility("default")))

namespace collide {
#include "../collide/pair.cuh"

// Layout of the arrays: pos 3, mat 9, size 3 per solid; dist, pos 3, normal 3,
// tangent 3 per hit.
template <class T>
Solid<T> solid(const T* data, const ConvexMesh<T>* mesh, const HeightField<T>* field) {
  Solid<T> s;
  for (int i = 0; i < 3; i++) s.pos[i] = data[i];
  for (int i = 0; i < 9; i++) s.mat[i] = data[3 + i];
  for (int i = 0; i < 3; i++) s.size[i] = data[12 + i];
  s.mesh = mesh;
  s.field = field;
  s.ground = nullptr;
  return s;
}

template <class T>
void run(int kind, int count, const T* a, const T* b, const ConvexMesh<T>* mesh_a,
         const ConvexMesh<T>* mesh_b, const HeightField<T>* field, const T* margin, int* hits,
         T* out) {
  const int most = MAX_HITS;
  for (int i = 0; i < count; i++) {
    const Solid<T> sa = solid(a + 15 * i, mesh_a, field), sb = solid(b + 15 * i, mesh_b, field);
    Hit<T> list[MAX_HITS];
    hits[i] = collide_pair(kind, sa, sb, margin[i], list);
    for (int k = 0; k < hits[i] && k < most; k++) {
      T* to = out + (i * most + k) * 10;
      to[0] = list[k].dist;
      for (int c = 0; c < 3; c++) {
        to[1 + c] = list[k].pos[c];
        to[4 + c] = list[k].normal[c];
        to[7 + c] = list[k].tangent[c];
      }
    }
  }
}

// Seconds that `rounds` passes over the pairs take; `sum` keeps them from vanishing.
template <class T>
double time_pairs(int kind, int count, int rounds, const T* a, const T* b, T* sum) {
  Hit<T> list[MAX_HITS];
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < count; i++) {
      const int hits = collide_pair(kind, solid<T>(a + 15 * i, nullptr, nullptr),
                                    solid<T>(b + 15 * i, nullptr, nullptr), T(0), list);
      *sum += T(hits) + (hits > 0 ? list[0].dist : T(0));
    }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
}  // namespace collide

#define OSTLER_CHECK(T)                                                                        \
  OSTLER_EXPORT void collide_##T(int kind, int count, const T* a, const T* b,                  \
                                 const collide::ConvexMesh<T>* mesh_a,                         \
                                 const collide::ConvexMesh<T>* mesh_b,                         \
                                 const collide::HeightField<T>* field, const T* margin,        \
                                 int* hits, T* out) {                                          \
    collide::run<T>(kind, count, a, b, mesh_a, mesh_b, field, margin, hits, out);              \
  }                                                                                            \
  OSTLER_EXPORT double time_##T(int kind, int count, int rounds, const T* a, const T* b,       \
                                T* sum) {                                                      \
    return collide::time_pairs<T>(kind, count, rounds, a, b, sum);                             \
  }
OSTLER_CHECK(double)
OSTLER_CHECK(float)

OSTLER_EXPORT int most_hits(int kind) { return collide::max_hits(kind); }
