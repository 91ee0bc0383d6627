// Distances along rays to shapes, as MuJoCo's (engine_ray.c): to where a ray first goes through
// the surface of one, from either side.
#pragma once
#include "frames.cuh"

// A ray in the frame of what it may meet.
struct Ray { V3 from, along; };

OSTLER_FN float v_dot(V3 a, V3 b) { return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2]; }
OSTLER_FN V3 v_sub(V3 a, V3 b) { return {{a.x[0] - b.x[0], a.x[1] - b.x[1], a.x[2] - b.x[2]}}; }
OSTLER_FN float ray_at(const Ray& ray, float t, int k) { return ray.from.x[k] + t * ray.along.x[k]; }
// The nearer one of two distances of which a negative one is none.
OSTLER_FN float first_met(float a, float b) { return b >= 0.0f && (a < 0.0f || b < a) ? b : a; }

// Both solutions of a x^2 + 2 b x + c = 0, of which b^2 - a c is given, the lesser first;
// negative where there are none.
OSTLER_FN void ray_roots(float a, float b, float discriminant, float* x) {
  x[0] = x[1] = -1.0f;
  if (!(discriminant >= 1e-15f)) return;
  const float root = sqrt_(discriminant);
  x[0] = (-b - root) / a, x[1] = (-b + root) / a;
}
// Where it goes through a sphere about the origin. The discriminant comes from the distance of
// the line, which keeps its digits far away.
OSTLER_FN void ray_ball(const Ray& ray, float radius, float* x) {
  const float a = v_dot(ray.along, ray.along);
  const V3 off = v_cross(ray.from, ray.along);
  ray_roots(a, v_dot(ray.along, ray.from), a * radius * radius - v_dot(off, off), x);
}
OSTLER_FN float ray_plane(const Ray& ray, const float* size) {
  if (!(ray.along.x[2] < -1e-15f)) return -1.0f;
  const float t = -ray.from.x[2] / ray.along.x[2];
  const bool in = (size[0] <= 0.0f || magnitude(ray_at(ray, t, 0)) <= size[0]) && (size[1] <= 0.0f || magnitude(ray_at(ray, t, 1)) <= size[1]);
  return in ? t : -1.0f;
}
OSTLER_FN float ray_ellipsoid(const Ray& ray, const float* size) {
  Ray unit;
  for (int k = 0; k < 3; k++) unit.from.x[k] = ray.from.x[k] / size[k], unit.along.x[k] = ray.along.x[k] / size[k];
  float x[2];
  ray_ball(unit, 1.0f, x);
  return first_met(x[1], x[0]);
}
// The side of a cylinder: the first crossing counts, and is none beyond the ends.
OSTLER_FN float ray_side(const Ray& ray, float radius, float half) {
  const float dx = ray.along.x[0], dy = ray.along.x[1], px = ray.from.x[0], py = ray.from.x[1];
  const float a = dx * dx + dy * dy, off = px * dy - py * dx;
  float x[2];
  ray_roots(a, dx * px + dy * py, a * radius * radius - off * off, x);
  const float t = first_met(x[1], x[0]);
  return magnitude(ray_at(ray, t, 2)) <= half ? t : -1.0f;
}
OSTLER_FN float ray_capsule(const Ray& ray, const float* size) {
  float best = ray_side(ray, size[0], size[1]);
  for (int end = -1; end <= 1; end += 2) {
    Ray moved = ray;
    moved.from.x[2] -= (float)end * size[1];
    float x[2];
    ray_ball(moved, size[0], x);
    // Of the ball only the half beyond the cylinder.
    for (int i = 0; i < 2; i++)
      if ((float)end * ray_at(ray, x[i], 2) >= size[1]) best = first_met(best, x[i]);
  }
  return best;
}
OSTLER_FN float ray_cylinder(const Ray& ray, const float* size) {
  float best = ray_side(ray, size[0], size[1]);
  for (int end = -1; end <= 1; end += 2) {
    const float t = ((float)end * size[1] - ray.from.x[2]) / ray.along.x[2];
    const float x = ray_at(ray, t, 0), y = ray_at(ray, t, 1);
    if (x * x + y * y <= size[0] * size[0]) best = first_met(best, t);
  }
  return best;
}
OSTLER_FN float ray_box(const Ray& ray, const float* size) {
  float best = -1.0f;
  for (int k = 0; k < 3; k++)
    for (int end = -1; end <= 1; end += 2) {
      const float t = ((float)end * size[k] - ray.from.x[k]) / ray.along.x[k];
      const int i = (k + 1) % 3, j = (k + 2) % 3;
      if (magnitude(ray_at(ray, t, i)) <= size[i] && magnitude(ray_at(ray, t, j)) <= size[j]) best = first_met(best, t);
    }
  return best;
}
// Moller, Trumbore, Fast, minimum storage ray/triangle intersection, 1997; from both sides. A
// ray between two triangles meets one of them.
OSTLER_FN float ray_triangle(const Ray& ray, const float* corner) {
  const V3 origin = v_at(corner), e1 = v_sub(v_at(corner + 3), origin), e2 = v_sub(v_at(corner + 6), origin);
  const V3 p = v_cross(ray.along, e2), s = v_sub(ray.from, origin), q = v_cross(s, e1);
  const float det = v_dot(e1, p), edge = 1e-6f;
  const float u = v_dot(s, p) / det, v = v_dot(ray.along, q) / det;
  return u >= -edge && v >= -edge && u + v <= 1.0f + edge ? v_dot(e2, q) / det : -1.0f;
}
// Whether it comes to a box before `best`, a distance of -1 being none.
OSTLER_FN bool ray_enters(const Ray& ray, const float* box, float best) {
  float enter = 0.0f, leave = best < 0.0f ? 1e30f : best;
  for (int k = 0; k < 3; k++) {
    const float d = ray.along.x[k], o = ray.from.x[k];
    if (d == 0.0f) {
      if (o < box[k] || o > box[3 + k]) return false;
      continue;
    }
    const float one = (box[k] - o) / d, two = (box[3 + k] - o) / d;
    enter = rust_max(enter, d > 0.0f ? one : two), leave = rust_min(leave, d > 0.0f ? two : one);
  }
  return enter <= leave * 1.0001f + 1e-6f;
}
// A surface of triangles, by its tree of boxes from node `first` to `end - 1`.
OSTLER_FN_BIG float ray_surface(const EnvArgs& a, const Ray& ray, unsigned first, unsigned end) {
  float best = -1.0f;
  for (unsigned node = first; node < end;) {
    if (!ray_enters(ray, a.surface_box + 6 * node, best)) {
      node = a.surface_next[node];
      continue;
    }
    for (unsigned t = a.surface_first[node]; t < a.surface_end[node]; t++) best = first_met(best, ray_triangle(ray, a.triangle + 9 * t));
    node++;
  }
  return best;
}

// The distance along a unit ray to where it goes through the ground, walls between cells
// included; -1 if it never does. From cell to cell: Amanatides, Woo, A fast voxel traversal
// algorithm for ray tracing, 1987.
OSTLER_FN_BIG float ground_ray(const Ground& g, V3 from, V3 along) {
  const float far = 1e9f;
  const int columns = g.levels * g.cells, rows = g.columns * g.cells;
  const float dx = along.x[0], dy = along.x[1], dz = along.x[2];
  if (!(magnitude(from.x[0]) < far) || !(magnitude(from.x[1]) < far) || !(magnitude(from.x[2]) < far)) return -1.0f;
  float t = 0.0f;
  int side = 0;  // of the surface: 1 above, -1 below, 0 not known yet
  // Nothing is higher.
  if (from.x[2] > g.high) {
    if (dz >= 0.0f) return -1.0f;
    t = (g.high - from.x[2]) / dz;
    side = 1;
  }
  const int step_c = dx > 0.0f ? 1 : -1, step_r = dy > 0.0f ? 1 : -1;
  int c = ground_index(g, from.x[0] + t * dx, g.x), r = ground_index(g, from.x[1] + t * dy, g.y);
  // More cells than any ray crosses.
  for (int k = 0; k < columns + rows + 4; k++) {
    const bool in = c >= 0 && r >= 0 && c < columns && r < rows;
    // Where the ray leaves the cell, or, beyond the tiles, where it comes to one.
    float next_c = far, next_r = far;
    if (in) {
      if (dx != 0.0f) next_c = (g.x + (float)(c + (dx > 0.0f)) * g.cell - from.x[0]) / dx;
      if (dy != 0.0f) next_r = (g.y + (float)(r + (dy > 0.0f)) * g.cell - from.x[1]) / dy;
    } else {
      const float low[2] = {g.x, g.y}, high[2] = {g.x + (float)columns * g.cell, g.y + (float)rows * g.cell};
      float enter = t, leave = far;
      for (int i = 0; i < 2; i++) {
        const float d = along.x[i], o = from.x[i];
        if (d == 0.0f) {
          if (o < low[i] || o >= high[i]) enter = far;
          continue;
        }
        const float one = (low[i] - o) / d, two = (high[i] - o) / d;
        enter = rust_max(enter, d > 0.0f ? one : two), leave = rust_min(leave, d > 0.0f ? two : one);
      }
      next_c = next_r = enter < leave ? enter : far;
    }
    const float end = rust_max(rust_min(next_c, next_r), t);
    // In each of the two triangles the height over them changes evenly.
    float h[4];
    ground_cell(g, in ? c : -1, in ? r : -1, h);
    const float x0 = g.x + (float)c * g.cell, y0 = g.y + (float)r * g.cell, by = 1.0f / g.cell;
    const float diagonal = dx - dy;
    float cut = diagonal == 0.0f ? far : ((from.x[1] - y0) - (from.x[0] - x0)) / diagonal;
    cut = in && cut > t && cut < end ? cut : end;
    for (int half = 0; half < 2; half++) {
      const float begin = half == 0 ? t : cut, stop = half == 0 ? cut : end;
      if (half == 1 && !(stop > begin)) break;
      const float middle = begin + 0.5f * (rust_min(stop, begin + 1e4f) - begin);
      const float u = (from.x[0] + middle * dx - x0) * by, v = (from.x[1] + middle * dy - y0) * by;
      const bool upper = v >= u;
      const float du = upper ? h[3] - h[2] : h[1] - h[0], dv = upper ? h[2] - h[0] : h[3] - h[1];
      // over(s) = first + s * rate
      const float rate = dz - (dx * du + dy * dv) * by;
      const float first = from.x[2] - (h[0] + ((from.x[0] - x0) * du + (from.x[1] - y0) * dv) * by);
      const bool above = first + begin * rate > 0.0f;
      const int now = above ? 1 : -1;
      // A wall, or it began in one.
      if (side != 0 && now != side) return begin;
      side = now;
      // Where it comes to the other side, whatever rounding says of the place.
      if (above != (first + stop * rate > 0.0f)) return rust_min(rust_max(-first / rate, begin), stop);
    }
    if (!(end < far)) return -1.0f;
    t = end;
    if (!in) {
      // It comes to the tiles: their outermost cell, on whichever side rounding leaves the place.
      const int last_c = g.levels * g.cells - 1, last_r = g.columns * g.cells - 1;
      c = ground_index(g, from.x[0] + t * dx, g.x), r = ground_index(g, from.x[1] + t * dy, g.y);
      c = c < 0 ? 0 : c > last_c ? last_c : c, r = r < 0 ? 0 : r > last_r ? last_r : r;
    } else if (next_c <= next_r) {
      c += step_c;
    } else {
      r += step_r;
    }
    if (from.x[2] + t * dz > g.high && dz >= 0.0f) return -1.0f;
  }
  return -1.0f;
}

// The same to what a scan may meet, in its frame.
OSTLER_FN_BIG float ray_met(const EnvArgs& a, unsigned m, const Ray& ray) {
  const float* size = a.met_size + 3 * m;
  switch ((int)a.met_kind[m]) {
    case Shape::plane: return ray_plane(ray, size);
    case Shape::terrain: return ground_ray(a.physics.ground, ray.from, ray.along);
    case Shape::sphere: {
      const float axes[3] = {size[0], size[0], size[0]};
      return ray_ellipsoid(ray, axes);
    }
    case Shape::capsule: return ray_capsule(ray, size);
    case Shape::ellipsoid: return ray_ellipsoid(ray, size);
    case Shape::cylinder: return ray_cylinder(ray, size);
    case Shape::box: return ray_box(ray, size);
    default: return ray_surface(a, ray, a.met_first[m], a.met_end[m]);
  }
}

// Distances along the rays of scan k, of a body in this frame, to all that it may meet.
template<class L> OSTLER_FN_PART void scan_rays(const EnvArgs& a, const L& lanes, int k, const float* pos, const float* quat) {
  const long n = a.n, e = lanes.first;
  const unsigned first = begin_of(a.scan_end, k), end = a.scan_end[k];
  for (unsigned r = first; r < end; r++)
    lanes.each([&](int, int l) OSTLER_INLINE { a.scan[r * n + e + l] = -1.0f; });
  for (unsigned m = begin_of(a.scan_met, k); m < a.scan_met[k]; m++) {
    const float* met_pos = a.physics.body_pos + 3 * (long)a.met_body[m] * n + e;
    const float* met_quat = a.physics.body_quat + 4 * (long)a.met_body[m] * n + e;
    lanes.each([&](int, int l) {
      const Q4 q = {{quat[l], quat[n + l], quat[2 * n + l], quat[3 * n + l]}};
      const V3 p = {{pos[l], pos[n + l], pos[2 * n + l]}};
      const Q4 body = {{met_quat[l], met_quat[n + l], met_quat[2 * n + l], met_quat[3 * n + l]}};
      const V3 base = v_add({{met_pos[l], met_pos[n + l], met_pos[2 * n + l]}}, q_rotate(body, v_at(a.met_at + 3 * m)));
      const Q4 own = q_mul(body, {{a.met_turn[4 * m], a.met_turn[4 * m + 1], a.met_turn[4 * m + 2], a.met_turn[4 * m + 3]}});
      const Q4 back = q_conjugate(own), turn = q_mul(back, q);
      const V3 offset = q_rotate(back, v_sub(p, base));
      for (unsigned r = first; r < end; r++) {
        const Ray ray = {v_add(offset, q_rotate(turn, v_at(a.ray_from + 3 * r))), q_rotate(turn, v_at(a.ray_along + 3 * r))};
        float* to = a.scan + r * n + e + l;
        *to = first_met(*to, ray_met(a, m, ray));
      }
    });
  }
}
