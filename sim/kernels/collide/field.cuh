// A height field and a convex shape: every cell under the shape is two prisms down to
// the field's base, each a convex shape with at most one contact.
#pragma once

// Row or column of a height field, from a real-valued one; NaN gives 0.
template <class T>
OSTLER_FN int cell_of(T at, int last) {
  if (!(at > T(0))) return 0;
  return at < T(last) ? int(at) : last;
}

template <class S>
OSTLER_FN_BIG int field_pair(int second, const Solid<S>& sa, const Solid<S>& sb, S reach,
                             Hit<S>* out) {
  typedef double T;  // as in convex_pair
  if (!sa.field || sa.field->rows < 2 || sa.field->columns < 2) return 0;
  if (second == Shape::mesh && (!sb.mesh || sb.mesh->vertices < 1)) return 0;
  const HeightField<S>& field = *sa.field;
  const T margin = T(reach), x = T(field.size[0]), y = T(field.size[1]);
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
  for (int i = 0; i < 3; i++) {
    const T floor = T(i == 2 ? field.size[3] : field.size[i]);
    if (!(low[i] - margin <= T(field.size[i])) || !(high[i] + margin >= -floor)) return 0;
  }
  const int last_c = field.columns - 1, last_r = field.rows - 1;
  const int c0 = cell_of((low[0] - margin + x) / (T(2) * x) * T(last_c), last_c);
  const int r0 = cell_of((low[1] - margin + y) / (T(2) * y) * T(last_r), last_r);
  // Upwards: the last cell that begins below the shape's end.
  const int c1 = cell_of(-round_down(-((high[0] + margin + x) / (T(2) * x) * T(last_c))), last_c);
  const int r1 = cell_of(-round_down(-((high[1] + margin + y) / (T(2) * y) * T(last_r))), last_r);
  const T dx = T(2) * x / T(last_c), dy = T(2) * y / T(last_r);
  shape.margin = prism.margin = margin;

  int hits = 0;
  for (int r = r0; r < r1; r++) {
    int corners = 0;
    for (int k = 2 * c0; k <= 2 * c1 + 1; k++) {
      // A strip of triangles: upper row, lower row, next column.
      const int c = k / 2, row = r + 1 - k % 2;
      for (int i = 0; i < 5; i++)
        if (i != 2) prism.prism[i] = prism.prism[i + 1];
      const T px = dx * T(c) - x, py = dy * T(row) - y;
      prism.prism[2] = p3(px, py, -T(field.size[3]));
      prism.prism[5] = p3(px, py, T(field.height[row * field.columns + c]) * T(field.size[2]));
      if (++corners < 3) continue;
      const T bottom = low[2] - margin;
      if (prism.prism[3][2] < bottom && prism.prism[4][2] < bottom && prism.prism[5][2] < bottom)
        continue;
      if (hits >= MAX_HITS) return hits;
      Hit<T> hit;
      if (penetration(prism, shape, 1, margin, &hit))
        write_hit(out[hits++], hit.dist, turn(frame, p3(hit.pos)) + base, turn(frame, p3(hit.normal)));
    }
  }
  return hits;
}
