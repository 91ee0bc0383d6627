// A height field, or the ground that environments share, and a convex shape: every cell under
// the shape is two prisms down to the base, each a convex shape with at most one contact.
#pragma once

template <class S>
OSTLER_FN_BIG int field_pair(int second, const Solid<S>& sa, const Solid<S>& sb, S reach,
                             Hit<S>* out) {
  typedef double T;  // as in convex_pair
  if (!sa.ground && (!sa.field || sa.field->rows < 2 || sa.field->columns < 2)) return 0;
  if (second == Shape::mesh && (!sb.mesh || sb.mesh->vertices < 1)) return 0;
  const GridCells<T, S> grid(sa.field, sa.ground);
  const T margin = T(reach);
  const P3<T> base = as_p3<T>(sa.pos);
  T frame[9];
  for (int i = 0; i < 9; i++) frame[i] = T(sa.mat[i]);
  Convex<T, S> prism, shape;
  init_convex(prism, SHAPE_PRISM, sa, T(0));
  init_convex(shape, second, sb, T(0));
  T mat[9];
  turn_between(mat, frame, shape.mat);
  for (int i = 0; i < 9; i++) shape.mat[i] = mat[i];
  shape.pos = turn_back(frame, shape.pos - base);

  // The shape's box in the field's frame.
  P3<T> low, high;
  for (int i = 0; i < 3; i++) {
    P3<T> way = p3(T(0), T(0), T(0));
    way[i] = T(1);
    high[i] = support_point(shape, way)[i];
    way[i] = T(-1);
    low[i] = support_point(shape, way)[i];
  }
  if (grid.misses(low, high, margin)) return 0;
  int c0, c1, r0, r1;
  grid.columns(low[0] - margin, high[0] + margin, c0, c1);
  grid.rows(low[1] - margin, high[1] + margin, r0, r1);
  shape.margin = prism.margin = margin;

  const T bottom = low[2] - margin;
  int hits = 0;
  for (int r = r0; r < r1; r++) {
    for (int c = c0; c < c1; c++) {
      T h[4];
      grid.corners(c, r, h);
      // Both triangles have the corners of the diagonal.
      for (int half = 0; half < 2; half++) {
        const int order[2][3] = {{2, 0, 3}, {0, 3, 1}};
        bool below = true;
        for (int i = 0; i < 3; i++) {
          const int corner = order[half][i];
          const T px = grid.dx * T(c + corner % 2) - grid.x, py = grid.dy * T(r + corner / 2) - grid.y;
          prism.prism[i] = p3(px, py, grid.low);
          prism.prism[3 + i] = p3(px, py, h[corner]);
          below = below && h[corner] < bottom;
        }
        if (below) continue;
        // Nor where all of it is above the triangle's plane; most end here.
        P3<T> down = cross(prism.prism[4] - prism.prism[3], prism.prism[5] - prism.prism[3]);
        if (down[2] > T(0)) down = -down;
        make_unit(down);
        // A little more, for rounding.
        if (dot(down, prism.prism[3] - support_point(shape, down)) > margin + T(1e-9)) continue;
        if (hits >= MAX_HITS) return hits;
        Hit<T> hit;
        if (penetration(prism, shape, 1, margin, &hit))
          write_hit(out[hits++], hit.dist, turn(frame, p3(hit.pos)) + base, turn(frame, p3(hit.normal)));
      }
    }
  }
  return hits;
}
