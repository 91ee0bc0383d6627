// The cells of a height field, or of the ground that environments share, and points beside that.
#pragma once

// Row or column of a height field, from a real-valued one; NaN gives 0.
template <class T>
OSTLER_FN int cell_of(T at, int last) {
  if (!(at > T(0))) return 0;
  return at < T(last) ? int(at) : last;
}

// The cells of a height field or of the shared ground, in its frame. Of the ground, which has no
// end, they are counted from its least corner.
template <class T, class S>
struct GridCells {
  const HeightField<S>* field;  // or null: the ground
  const Ground* ground;
  T x, y, dx, dy;  // least corner's distance before the origin, sizes of cells
  T low, high;     // z of the base and of the greatest height
  int last_c, last_r;

  OSTLER_FN GridCells(const HeightField<S>* f, const Ground* g) : field(f), ground(g) {
    if (g) {
      x = -T(g->x), y = -T(g->y), dx = dy = T(g->cell);
      low = T(g->low) - T(1), high = T(g->high);
      last_c = last_r = 1 << 20;
    } else {
      x = T(f->size[0]), y = T(f->size[1]);
      last_c = f->columns - 1, last_r = f->rows - 1;
      dx = T(2) * x / T(last_c), dy = T(2) * y / T(last_r);
      low = -T(f->size[3]), high = T(f->size[2]);
    }
  }
  // Whether a box along the axes misses them.
  OSTLER_FN bool misses(const P3<T>& from, const P3<T>& to, T margin) const {
    if (!(from[2] - margin <= high) || !(to[2] + margin >= low)) return true;
    if (ground) return false;
    return !(from[0] - margin <= x) || !(to[0] + margin >= -x) || !(from[1] - margin <= y) || !(to[1] + margin >= -y);
  }
  // The columns of cells between two places, the second one behind the last; rows likewise.
  OSTLER_FN void columns(T from, T to, int& first, int& end) const { along(from, to, x, last_c, first, end); }
  OSTLER_FN void rows(T from, T to, int& first, int& end) const { along(from, to, y, last_r, first, end); }
  OSTLER_FN void along(T from, T to, T half, int last, int& first, int& end) const {
    if (ground) {
      // As many as no shape of a robot reaches over.
      const int most = 512;
      first = ground_index(*ground, from, -half), end = ground_index(*ground, to, -half) + 1;
      if (end > first + most) end = first + most;
      return;
    }
    first = cell_of((from + half) / (T(2) * half) * T(last), last);
    // Upwards: the last cell that begins below the shape's end.
    end = cell_of(-round_down(-((to + half) / (T(2) * half) * T(last))), last);
  }
};

// Cells from column `c` to before `end_c` and row `r` to before `end_r`.
template <class T, class S>
struct GridWindow {
  const GridCells<T, S>& cells;
  int c, r, end_c, end_r;
  const S* field = nullptr;       // heights from the first corner on, of a height field
  const float* ground = nullptr;  // of the shared ground, where all cells are of one tile
  int side = 0;                   // corners in a row

  OSTLER_FN explicit GridWindow(const GridCells<T, S>& grid) : cells(grid) {}
  // Where the heights are.
  OSTLER_FN void find() {
    if (const Ground* g = cells.ground) {
      if (c < 0 || r < 0 || end_c > g->levels * g->cells || end_r > g->columns * g->cells) return;
      const int level = c / g->cells, column = r / g->cells, first_c = c - level * g->cells, first_r = r - column * g->cells;
      if (first_c + (end_c - c) > g->cells || first_r + (end_r - r) > g->cells) return;
      side = g->cells + 1;
      ground = g->height + (((long)level * g->columns + column) * side + first_r) * side + first_c;
    } else {
      side = cells.field->columns;
      field = cells.field->height + (r * side + c);
    }
  }
  // Heights at a cell's corners: least x and y, the next along x, the next along y, both.
  OSTLER_FN void corners(int column, int row, T* h) const {
    const int first = (row - r) * side + (column - c);
    if (ground) {
      corners_at(ground + first, side, h);
    } else if (field) {
      const S* at = field + first;
      h[0] = T(at[0]) * cells.high, h[1] = T(at[1]) * cells.high;
      h[2] = T(at[side]) * cells.high, h[3] = T(at[side + 1]) * cells.high;
    } else {
      ground_cell(*cells.ground, column, row, h);
    }
  }
};

// How far a point above the ground is from the face under it, along the face's unit normal; false
// where the foot of the perpendicular is beside that face, or the point below it.
template<class T> OSTLER_FN_BIG bool over_face(const Ground& g, const T* p, T* n, T& over) {
  T x = p[0], y = p[1];
  for (int pass = 0; pass < 2; pass++) {
    const GroundFace<T> f(g, x, y);
    const T scale = T(1) / root(f.gx * f.gx + f.gy * f.gy + T(1)), by = T(1) / T(g.cell);
    n[0] = -f.gx * scale, n[1] = -f.gy * scale, n[2] = scale;
    over = (p[2] - f.at(p[0], p[1])) * scale;
    x = p[0] - over * n[0], y = p[1] - over * n[1];
    if (on_triangle(f.upper, (x - f.x0) * by, (y - f.y0) * by, T(1e-3))) return over >= T(0);
  }
  return false;
}

// The way out of the shared ground for a point under it: up, or sideways through a wall that is not
// covered by the neighbour. The distance, negative, and the unit direction. Prisms would lead out
// through their common sides, too.
template<class T> OSTLER_FN_BIG T ground_way_out(const Ground& g, const T* p, T* n) {
  const GroundFace<T> f(g, p[0], p[1]);
  const T x = p[0] - f.x0, y = p[1] - f.y0, by = T(1) / T(g.cell);
  const T scale = T(1) / root(f.gx * f.gx + f.gy * f.gy + T(1));
  T least = -(p[2] - f.at(p[0], p[1])) * scale;
  n[0] = -f.gx * scale, n[1] = -f.gy * scale, n[2] = scale;
  const int side[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
  const T away[4] = {x, T(g.cell) - x, y, T(g.cell) - y};
  for (int i = 0; i < 4; i++) {
    if (!(away[i] < least)) continue;
    T other[4];
    ground_cell(g, f.c + side[i][0], f.r + side[i][1], other);
    // The neighbour's edge, from its corner of least x or y on.
    const int from = i == 0 ? 1 : i == 2 ? 2 : 0, to = from + (i < 2 ? 2 : 1);
    const T along = (i < 2 ? y : x) * by;
    if (!(other[from] + along * (other[to] - other[from]) < p[2])) continue;
    least = away[i];
    n[0] = T(side[i][0]), n[1] = T(side[i][1]), n[2] = T(0);
  }
  return -least;
}
