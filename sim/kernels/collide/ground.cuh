// The ground that all environments share (sim/model/src/terrain): tiles of square cells, in
// levels along x and columns along y. Beyond the tiles it is level at z = 0.
//
// A cell is level, at the height of its corner of least x and y, or two triangles that meet on
// the diagonal from that corner. Neighbours that differ at their edge have a wall between them.
#pragma once

struct Ground {
  const float* height;  // corners' heights (m) [levels][columns][cells + 1][cells + 1], x fastest
  int levels;           // tiles along x
  int columns;          // tiles along y
  int cells;            // along a tile's side
  float cell;           // side of a cell (m)
  float x, y;           // least corner of the tiles in the world (m)
  float low, high;      // least and greatest height, 0 among them (m)
  const float* roof;    // greatest height of a block of cells and of those around it (m) [along x][along y]
  float block, per_m;   // a block's side (m), blocks along a metre
  int roof_x, roof_y;   // blocks along x and y
};

// The mark of a level cell: the lowest bit of its corner's height.
#ifdef __CUDACC__
OSTLER_FN bool is_marked(float height) { return (__float_as_uint(height) & 1u) != 0; }
#else
OSTLER_FN bool is_marked(float height) {
  unsigned bits;
  __builtin_memcpy(&bits, &height, 4);
  return (bits & 1u) != 0;
}
#endif

// The heights at the corners of the cell that begins at `at`, of `side` corners in a row.
template<class T> OSTLER_FN void corners_at(const float* at, int side, T* h) {
  const bool flat = is_marked(at[0]);
  h[0] = T(at[0]), h[1] = T(at[flat ? 0 : 1]);
  h[2] = T(at[flat ? 0 : side]), h[3] = T(at[flat ? 0 : side + 1]);
}

// The heights at the corners of the cell in column c (along x) and row r (along y) of the whole
// ground: the corner of least x and y, the next along x, the next along y, and both.
template<class T> OSTLER_FN void ground_cell(const Ground& g, int c, int r, T* h) {
  h[0] = h[1] = h[2] = h[3] = T(0);
  if (c < 0 || r < 0 || c >= g.levels * g.cells || r >= g.columns * g.cells) return;
  const int level = c / g.cells, column = r / g.cells, side = g.cells + 1;
  const long tile = (long)level * g.columns + column;
  corners_at(g.height + (tile * side + (r - column * g.cells)) * side + (c - level * g.cells), side, h);
}

// The cell that a place is in, counted from `from`; far away or without a number some cell
// beyond the tiles.
template<class T> OSTLER_FN int ground_index(const Ground& g, T at, T from) {
  const T x = (at - from) / T(g.cell), most = T(1 << 20);
  const T in = x > -most ? (x < most ? x : most) : -most;
  const int whole = (int)in;
  return whole - (T(whole) > in ? 1 : 0);
}

// A height (m) over which there is no ground within `half` of a place along x and y.
template<class T> OSTLER_FN T ground_roof(const Ground& g, T x, T y, T half) {
  const T px = (x - T(g.x)) * T(g.per_m), py = (y - T(g.y)) * T(g.per_m);
  // A little less than a block, for rounding.
  const bool told = half < T(0.999) * T(g.block) && px >= T(0) && py >= T(0) && px < T(g.roof_x) && py < T(g.roof_y);
  return T(told ? g.roof[(int)px * g.roof_y + (int)py] : g.high);
}

// Whether a place of a cell, counted in its sides, is on the triangle above the diagonal, or on
// the one below it, or beside it by no more than `more`.
template<class T> OSTLER_FN bool on_triangle(bool upper, T u, T v, T more) {
  return upper ? u >= -more && v <= T(1) + more && v >= u - more : v >= -more && u <= T(1) + more && u >= v - more;
}

// The triangle of the shared ground under a place.
template<class T> struct GroundFace {
  int c, r;      // its cell
  T x0, y0;      // the cell's least corner
  T h[4];        // heights at the cell's corners
  bool upper;    // it is the one above the diagonal
  T gx, gy;      // its slopes

  OSTLER_FN GroundFace(const Ground& g, T x, T y) {
    const T by = T(1) / T(g.cell);
    c = ground_index(g, x, T(g.x)), r = ground_index(g, y, T(g.y));
    x0 = T(g.x) + T(c) * T(g.cell), y0 = T(g.y) + T(r) * T(g.cell);
    ground_cell(g, c, r, h);
    upper = y - y0 >= x - x0;
    gx = (upper ? h[3] - h[2] : h[1] - h[0]) * by, gy = (upper ? h[2] - h[0] : h[3] - h[1]) * by;
  }
  // The height of its plane.
  OSTLER_FN T at(T x, T y) const { return h[0] + gx * (x - x0) + gy * (y - y0); }
};
