// The scalar narrow phase as contact.cuh uses it.
#pragma once
#include "solid.cuh"
#include "vector.cuh"
#include "round.cuh"
#ifdef OSTLER_PRIMITIVES_ONLY
#include "primitives.cuh"
#else
#include "pair.cuh"
#endif

// Meshes and height fields in the tables.
template<class M, class T> OSTLER_FN void mesh_of(const M&, int, ConvexMesh<T>&) {}
template<class M, class T> OSTLER_FN void field_of(const M& m, int f, HeightField<T>& o) {
  o.rows = m.field_rows[f], o.columns = m.field_cols[f];
  o.height = m.field_data + m.field_adr[f];
  for (int k = 0; k < 4; k++) o.size[k] = m.field_size[4 * f + k];
}
