// A height field, or the ground that environments share, and a convex shape: every cell under
// the shape is two prisms down to the base, each a convex shape with at most one contact.
#pragma once

// Whether a contact of half a cell of the shared ground, in column c and row r, is with a side or
// an edge that is within the ground: the prism has it, but where the contact's normal leaves the
// triangle the ground goes on as high or higher. `h`: heights at the cell's corners; the hit is in
// the ground's frame.
template <class T, class S>
OSTLER_FN_BIG bool is_covered(const GridCells<T, S>& grid, int c, int r, int half, const T* h, const Hit<T>& hit) {
  const T* n = hit.normal;
  const T du = half == 0 ? h[3] - h[2] : h[1] - h[0], dv = half == 0 ? h[2] - h[0] : h[3] - h[1];
  const T gx = du / grid.dx, gy = dv / grid.dx;
  // With the top itself.
  if (n[2] - gx * n[0] - gy * n[1] > T(0.999) * root(gx * gx + gy * gy + T(1))) return false;
  const T level = root(n[0] * n[0] + n[1] * n[1]);
  if (level < T(1e-3)) return false;
  const T nx = n[0] / level, ny = n[1] / level;
  // In the cell, counted in sides of it: where the contact is, and how far it is to the border.
  const auto within = [](T x) { return x > T(0) ? (x < T(1) ? x : T(1)) : T(0); };
  const T u = within((hit.pos[0] + grid.x) / grid.dx - T(c)), v = within((hit.pos[1] + grid.y) / grid.dx - T(r));
  const T far = T(10);
  T way = far;
  const auto meets = [&](T gap, T speed) {
    const T at = speed > T(1e-9) ? (gap > T(0) ? gap / speed : T(0)) : far;
    way = at < way ? at : way;
  };
  meets(half == 0 ? u : T(1) - u, half == 0 ? -nx : nx);
  meets(half == 0 ? T(1) - v : v, half == 0 ? ny : -ny);
  meets(half == 0 ? v - u : u - v, half == 0 ? nx - ny : ny - nx);
  if (!(way < far)) return false;
  const T x = T(c) + u + (way + T(1e-3)) * nx, y = T(r) + v + (way + T(1e-3)) * ny, on = T(0.05);
  const GroundFace<T> next(*grid.ground, x * grid.dx - grid.x, y * grid.dx - grid.y);
  // Of the two planes a little farther on.
  const T px = x + on * nx, py = y + on * ny;
  const T own = h[0] + (px - T(c)) * du + (py - T(r)) * dv;
  return own - next.at(px * grid.dx - grid.x, py * grid.dx - grid.y) <= T(0.02) * on * grid.dx;
}

// Whether the plane of a prism's top, whose outward normal is given, decides the depth of a
// point `gap` above it.
template <class T, class S>
OSTLER_FN_BIG bool top_decides(const Convex<T, S>& prism, const P3<T>& normal, const P3<T>& point, T gap, T margin) {
  const P3<T>* top = prism.prism + 3;
  T room = Noise<T>::huge;
  for (int i = 0; i < 3; i++) {
    P3<T> in = cross(normal, top[(i + 1) % 3] - top[i]);
    make_unit(in);
    if (dot(in, top[(i + 2) % 3] - top[i]) < T(0)) in = -in;
    room = lesser(room, dot(in, point - top[i]));
  }
  // The prism goes straight down: against the normal as far as it stays under the disc.
  const T level = root(normal[0] * normal[0] + normal[1] * normal[1]);
  T thick = (point[2] - gap * normal[2] - prism.prism[0][2]) / normal[2];
  if (level > T(0)) thick = lesser(thick, room * normal[2] / level);
  return face_decides(gap, room, thick, margin);
}

// Corners of a shape and the shared ground's faces under them, at most four, whether they touch or
// not: those that the shape has with the plane of the face under its centre.
template <class S>
OSTLER_FN_BIG int ground_corners(int second, const Solid<S>& sa, const Solid<S>& sb, Hit<S>* out) {
  const Ground& g = *sa.ground;
  const P3<S> base = p3(sa.pos);
  const GroundFace<S> face(g, sb.pos[0] - base[0], sb.pos[1] - base[1]);
  const S scale = S(1) / root(face.gx * face.gx + face.gy * face.gy + S(1)), any = S(1e6);
  Solid<S> plane = sa;
  put(plane.pos, p3(sb.pos));
  plane.mat[2] = -face.gx * scale, plane.mat[5] = -face.gy * scale, plane.mat[8] = scale;
  int corners = 0, hits = 0;
#define OSTLER_PAIR(one, other, most, says) \
  if constexpr (Shape::one == Shape::plane && Shape::surface(Shape::other) > Shape::Core) \
    if (second == Shape::other) corners = one##_##other(plane, sb, any, out);
  OSTLER_PAIRS(OSTLER_PAIR)
#undef OSTLER_PAIR
  for (int i = 0; i < corners; i++) {
    const P3<S> on = p3(out[i].pos) + (S(0.5) * out[i].dist) * p3(out[i].normal) - base;
    P3<S> n;
    S gap;
    if (on[2] < GroundFace<S>(g, on[0], on[1]).at(on[0], on[1])) {
      gap = ground_way_out(g, on.c, n.c);
      // Through a wall: the cells behind it have that contact.
      if (!(n[2] > S(0))) continue;
    } else if (!over_face(g, on.c, n.c, gap)) {
      continue;
    }
    write_hit(out[hits++], gap, on - (S(0.5) * gap) * n + base, n);
  }
  return hits;
}

// Whether corners make up for a contact: it is between them, of their direction, and no deeper
// than they are there. Three of a cylinder's stand for the cap around them.
template <class S>
OSTLER_FN_BIG bool corners_hold(const Hit<S>& hit, const Hit<S>* corner, int corners, bool cap, S near) {
  const P3<S> at = p3(hit.pos);
  const S slack = S(-0.02), around = cap ? S(-0.34) : slack, deep = hit.dist + S(4e-3) * mag(hit.dist) + S(2e-6);
  const auto alike = [&](int i) { return dot(p3(hit.normal), p3(corner[i].normal)) > S(0.999); };
  for (int i = 0; i < corners; i++) {
    if (!alike(i)) continue;
    const P3<S> a = p3(corner[i].pos);
    if (norm(at - a) < near && deep >= corner[i].dist) return true;
    for (int j = i + 1; j < corners; j++) {
      if (!alike(j)) continue;
      const P3<S> b = p3(corner[j].pos), way = b - a;
      const S t = dot(at - a, way) / dot(way, way);
      if (t >= slack && t <= S(1) - slack && norm(at - a - t * way) < near &&
          deep >= corner[i].dist + t * (corner[j].dist - corner[i].dist))
        return true;
      for (int k = j + 1; k < corners; k++) {
        if (!alike(k)) continue;
        S w[3];
        triangle_weights(a, b, p3(corner[k].pos), at, w);
        if (w[0] >= around && w[1] >= around && w[2] >= around &&
            deep >= w[0] * corner[i].dist + w[1] * corner[j].dist + w[2] * corner[k].dist)
          return true;
      }
    }
  }
  return false;
}

// Puts a shape's corners on the shared ground in the place of the contacts that they make up for.
// A cell has one contact, where the shape is deepest in its prism. Of a tilted shape that is on an
// edge between two cells, which the ground does not have; and on even ground a plane's contacts do.
// More than MAX_HITS where there was no room for all.
template <class S>
OSTLER_FN_BIG int add_corners(int second, const Solid<S>& sa, const Solid<S>& sb, S reach, Hit<S>* out, int hits) {
  Hit<S> corner[4];
  const int corners = ground_corners(second, sa, sb, corner);
  const S near = S(1e-3) * S(sa.ground->cell);
  int kept = 0;
  for (int i = 0; i < hits; i++)
    if (!corners_hold(out[i], corner, corners, second == Shape::cylinder, near)) out[kept++] = out[i];
  for (int i = 0; i < corners; i++) {
    if (!(corner[i].dist < reach)) continue;
    if (kept < MAX_HITS) out[kept] = corner[i];
    kept++;
  }
  return kept;
}

// More than MAX_HITS where there was no room for all.
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
  GridWindow<T, S> window(grid);
  grid.columns(low[0] - margin, high[0] + margin, window.c, window.end_c);
  grid.rows(low[1] - margin, high[1] + margin, window.r, window.end_r);
  window.find();
  shape.margin = prism.margin = margin;

  const T bottom = low[2] - margin;
  // Contacts, and, as long as there are none, those with sides within the ground: these count
  // where nothing else is touched.
  int hits = 0, spare = 0;
  bool full = false;
  P3<T> between = p3(T(0), T(0), T(1));  // what kept the last prism apart often does the next
  for (int r = window.r; r < window.end_r && !full; r++) {
    for (int c = window.c; c < window.end_c && !full; c++) {
      T h[4];
      window.corners(c, r, h);
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
        const P3<T> deep = support_point(shape, down);
        const T over = -dot(down, deep - prism.prism[3]);
        // A little more, for rounding.
        if (over > margin + T(1e-9)) continue;
        full = hits >= MAX_HITS;
        if (full) break;
        if (top_decides(prism, -down, deep, over, margin) && stands_out(shape, down)) {
          write_hit(out[hits++], over, turn(frame, deep + T(0.5) * over * down) + base, turn(frame, -down));
          continue;
        }
        Hit<T> hit;
        if (!penetration(prism, shape, 1, margin, &hit, between)) continue;
        bool counts = true;
        if (grid.ground && is_covered(grid, c, r, half, h, hit)) {
          // The shape's deepest point instead, if it is under this triangle.
          const T u = (deep[0] + grid.x) / grid.dx - T(c), v = (deep[1] + grid.y) / grid.dx - T(r);
          counts = over <= margin && on_triangle(half == 0, u, v, T(1e-6));
          if (counts) {
            hit.dist = over;
            for (int i = 0; i < 3; i++) hit.normal[i] = -down[i], hit.pos[i] = deep[i] + T(0.5) * over * down[i];
          }
        }
        if (!counts && (hits > 0 || spare >= MAX_HITS)) continue;
        write_hit(out[counts ? hits++ : spare++], hit.dist, turn(frame, p3(hit.pos)) + base, turn(frame, p3(hit.normal)));
      }
    }
  }
  if (sa.ground) hits = add_corners(second, sa, sb, reach, out, hits);
  return full && hits <= MAX_HITS ? MAX_HITS + 1 : hits > 0 ? hits : spare;
}
