// The scalar narrow phase as candidate.cuh uses it.
#pragma once
#include "solid.cuh"
#include "vector.cuh"
#include "cells.cuh"
#include "round.cuh"
#if defined(OSTLER_PRIMITIVES_ONLY)
#include "primitives.cuh"
#elif defined(OSTLER_COLLIDE_ELSEWHERE)
#include "elsewhere.cuh"
#else
#include "pair.cuh"
#endif

// Meshes and height fields in the tables.
template<class M, class T> OSTLER_FN void mesh_of(const M& m, int i, ConvexMesh<T>& o) {
  const int v = m.mesh_vert[i], f = m.mesh_face[i];
  o.vertices = m.mesh_vert[i + 1] - v, o.vertex = m.mesh_pos + 3 * v, o.bound = m.mesh_bound[i];
  o.hull = m.mesh_graph[i], o.hull_edges = m.vert_link + v, o.hull_vertex = m.vert_own + v;
  o.hull_next = m.vert_next, o.seed = m.mesh_seed + 27 * i;
  o.polygons = m.mesh_face[i + 1] - f, o.polygon_normal = m.face_normal + 3 * f;
  o.polygon_start = m.face_adr + f, o.polygon_size = m.face_num + f, o.polygon_vertex = m.face_vert;
  o.vertex_start = m.vert_adr + v, o.vertex_degree = m.vert_num + v, o.vertex_polygon = m.vert_face;
}
template<class M, class T> OSTLER_FN void field_of(const M& m, int f, HeightField<T>& o) {
  o.rows = m.field_rows[f], o.columns = m.field_cols[f];
  o.height = m.field_data + m.field_adr[f];
  for (int k = 0; k < 4; k++) o.size[k] = m.field_size[4 * f + k];
}
