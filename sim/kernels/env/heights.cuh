// Heights and slopes of the ground that environments share, as expressions read them: the same
// bits on hosts and devices.
#pragma once

// The cell under a place, and where in it that is.
struct GroundPlace {
  int at;      // the cell's first corner among the heights
  float u, v;  // within the cell, 0 to 1
  int in;      // 1 on a tile, else 0
};
OSTLER_FN GroundPlace ground_place(const Ground& g, float x, float y) {
  const float by = 1.0f / g.cell, own = 1.0f / (float)g.cells;
  const float px = (x - g.x) * by, py = (y - g.y) * by;
  // What is no number is on none. Loops over environments have no branches.
  const int in = (px >= 0.0f) & (px < (float)(g.levels * g.cells)) & (py >= 0.0f) & (py < (float)(g.columns * g.cells));
  const float qx = in ? px : 0.0f, qy = in ? py : 0.0f;
  const float c = floor_(qx), r = floor_(qy);
  // Whole numbers of cells are exact, and their middles far enough from the tiles' borders.
  const float level = floor_((c + 0.5f) * own), column = floor_((r + 0.5f) * own);
  const int side = g.cells + 1, tile = (int)level * g.columns + (int)column;
  const int row = (int)r - (int)column * g.cells, first = (int)c - (int)level * g.cells;
  const int at = (tile * side + row) * side + first;
  return {at, qx - c, qy - r, in};
}

// A corner's height without the mark of a level cell: ground at 0 is not above 0.
OSTLER_FN float unmarked(float height) { return of_bits(bits_of(height) & ~1u); }

// The height at a place (m) and its slopes along x and y, from the heights at two corners of the
// cell and at the two of the next row.
OSTLER_FN float ground_height(const Ground& g, const GroundPlace& p, const float* near, const float* far, float& along_x, float& along_y) {
  const bool upper = p.v >= p.u;
  // Above the diagonal the triangle has the next corner along y, below it the one along x.
  const float first = near[0], along = near[1], across = far[0], last = far[1], middle = upper ? across : along;
  const bool flat = (p.in == 0) | is_marked(first);
  const float du = upper ? last - middle : middle - first, dv = upper ? middle - first : last - middle;
  const float by = 1.0f / g.cell, height = first + (p.u * du + p.v * dv);
  along_x = flat ? 0.0f : du * by;
  along_y = flat ? 0.0f : dv * by;
  return p.in == 0 ? 0.0f : flat ? unmarked(first) : height;
}

// The same at a place of the world.
OSTLER_FN float ground_at(const Ground& g, float x, float y, float& along_x, float& along_y) {
  const GroundPlace p = ground_place(g, x, y);
  const float* h = g.height + p.at;
  return ground_height(g, p, h, h + g.cells + 1, along_x, along_y);
}
// Two numbers side by side, in one piece.
OSTLER_FN void two_of(float* to, const float* from) {
#ifdef __CUDACC__
  to[0] = from[0], to[1] = from[1];
#else
  __builtin_memcpy(to, from, 8);
#endif
}
// f(i, height, slope along x, along y) of `count` places of V. Places and heights are computed in
// vectors; only the loads between them go one by one.
template<int V, class F> OSTLER_FN void ground_each(const Ground& g, const float (&x)[V], const float (&y)[V], int count, F f) {
  int at[V], in[V];
  float u[V], v[V], near[V][2], far[V][2];
  const float* h = g.height;
  const int side = g.cells + 1;
  OSTLER_SIDE_BY_SIDE for (int i = 0; i < count; i++) {
    const GroundPlace p = ground_place(g, x[i], y[i]);
    at[i] = p.at, u[i] = p.u, v[i] = p.v, in[i] = p.in;
  }
  for (int i = 0; i < count; i++) {
    const float* corner = h + at[i];
    two_of(near[i], corner), two_of(far[i], corner + side);
  }
  OSTLER_SIDE_BY_SIDE for (int i = 0; i < count; i++) {
    float along_x, along_y;
    const GroundPlace p = {0, u[i], v[i], in[i]};
    const float height = ground_height(g, p, near[i], far[i], along_x, along_y);
    f(i, height, along_x, along_y);
  }
}
OSTLER_FN float op_GroundHeight(const Ground& g, float x, float y) {
  float along_x, along_y;
  return ground_at(g, x, y, along_x, along_y);
}
OSTLER_FN float op_GroundSlopeX(const Ground& g, float x, float y) {
  float along_x, along_y;
  ground_at(g, x, y, along_x, along_y);
  return along_x;
}
OSTLER_FN float op_GroundSlopeY(const Ground& g, float x, float y) {
  float along_x, along_y;
  ground_at(g, x, y, along_x, along_y);
  return along_y;
}
