// Where on a terrain episodes take place, and what is read of it: heights, slopes, rays.
#pragma once
#include "frames.cuh"

// What a scan reads at each of its places: the body's height over the ground; the distance along
// a ray, -1 where it meets nothing.
enum { SCAN_HEIGHT, SCAN_RAY };

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
      const float at_begin = first + begin * rate;
      const int now = at_begin > 0.0f ? 1 : -1;
      // A wall, or it began in one.
      if (side != 0 && now != side) return begin;
      side = now;
      const float zero = rate == 0.0f ? far : -first / rate;
      if (zero > begin && zero <= stop && zero < far) return zero;
    }
    if (!(end < far)) return -1.0f;
    t = end;
    if (!in) {
      c = ground_index(g, from.x[0] + t * dx + 1e-4f * g.cell * dx, g.x);
      r = ground_index(g, from.x[1] + t * dy + 1e-4f * g.cell * dy, g.y);
    } else if (next_c <= next_r) {
      c += step_c;
    } else {
      r += step_r;
    }
    if (from.x[2] + t * dz > g.high && dz >= 0.0f) return -1.0f;
  }
  return -1.0f;
}

// Distances along rays `first` to `end - 1`, of a body in this frame.
template<class L> OSTLER_FN_PART void scan_rays(const EnvArgs& a, const L& lanes, unsigned first, unsigned end, const float* pos, const float* quat) {
  const long n = a.n, e = lanes.first;
  for (unsigned r = first; r < end; r++) {
    float* to = a.scan + r * n + e;
    const V3 from = v_at(a.ray_from + 3 * r), along = v_at(a.ray_along + 3 * r);
    lanes.each([&](int, int l) {
      const Q4 q = {{quat[l], quat[n + l], quat[2 * n + l], quat[3 * n + l]}};
      const V3 at = v_add({{pos[l], pos[n + l], pos[2 * n + l]}}, q_rotate(q, from));
      to[l] = ground_ray(a.physics.ground, at, q_rotate(q, along));
    });
  }
}

// Heights over places `first` to `end - 1`. Places and heights are computed in vectors; only the
// loads between them go one by one.
template<class L> OSTLER_FN_PART void scan_heights(const EnvArgs& a, const L& lanes, unsigned first, unsigned end, const float* pos, const float* quat) {
  const long n = a.n, e = lanes.first;
  const Ground g = a.physics.ground;
  float sine[L::W], cosine[L::W], x[L::W], y[L::W], z[L::W], corner[3][L::W], u[L::W], v[L::W];
  int at[L::W], other[L::W], in[L::W];
  lanes.each([&](int j, int l) OSTLER_INLINE {
    sin_cos(heading(quat[l], quat[n + l], quat[2 * n + l], quat[3 * n + l]), sine[j], cosine[j]);
    x[j] = pos[l], y[j] = pos[n + l], z[j] = pos[2 * n + l];
  });
  for (unsigned r = first; r < end; r++) {
    float* to = a.scan + r * n + e;
    const float dx = a.ray_from[3 * r], dy = a.ray_from[3 * r + 1], dz = a.ray_from[3 * r + 2];
    lanes.each([&](int j, int) OSTLER_INLINE {
      const GroundPlace p = ground_place(g, x[j] + (cosine[j] * dx - sine[j] * dy), y[j] + (sine[j] * dx + cosine[j] * dy));
      at[j] = p.at, other[j] = p.other, u[j] = p.u, v[j] = p.v, in[j] = p.in;
    });
    for (int j = 0; j < lanes.len; j++)
      corner[0][j] = g.height[at[j]], corner[1][j] = g.height[other[j]], corner[2][j] = g.height[at[j] + g.cells + 2];
    lanes.each([&](int j, int l) OSTLER_INLINE {
      float along_x, along_y;
      const GroundPlace p = {0, 0, u[j], v[j], in[j]};
      to[l] = (z[j] + dz) - ground_height(g, p, corner[0][j], corner[1][j], corner[2][j], along_x, along_y);
    });
  }
}

// The numbers of all scans, from the bodies' frames.
template<class L> OSTLER_FN_PART void scan(const EnvArgs& a, const L& lanes) {
  const long n = a.n, e = lanes.first;
  for (int k = 0; k < task_of(a).nscan; k++) {
    const long body = a.scan_body[k];
    const float* pos = a.physics.body_pos + 3 * body * n + e;
    const float* quat = a.physics.body_quat + 4 * body * n + e;
    const unsigned first = begin_of(a.scan_end, k), end = a.scan_end[k];
    if (a.scan_kind[k] == SCAN_RAY) scan_rays(a, lanes, first, end, pos, quat);
    else scan_heights(a, lanes, first, end, pos, quat);
  }
}

// Adds the place on the terrain to the positions `qpos` of free bodies where episodes begin.
OSTLER_FN void stand_on_tile(const EnvArgs& a, const Chosen& c, float* qpos) {
  const long n = a.n, e = c.first;
  // A pose that is drawn for itself is on none.
  if (task_of(a).nground == 0 || !a.stand) return;
  OSTLER_ROLLED for (int joint = 0; joint < task_of(a).njoint; joint++) {
    if (a.joint_kind[joint] != JOINT_FREE) continue;
    for (int k = 0; k < 3; k++) {
      float* to = qpos + (a.joint_q[joint] + k) * n + e;
      const float* from = a.stand + k * n + e;
      c.each([&](int, int l) OSTLER_INLINE { to[l] += from[l]; });
    }
  }
}

// The tile of a new episode. Levels follow from how the last episode ended: beyond the highest
// one any level comes next, as in legged_gym (`_update_terrain_curriculum`). A column stays.
// Where levels do not follow, every episode has a tile of its own.
OSTLER_FN_BIG void choose_tiles(const EnvArgs& a, const Chosen& c, const Terms& terms) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  const int columns = (int)a.tile_columns[0], levels = t.ntile / columns;
  const bool follows = a.tile_climbs[0] != 0;
  int climb[Chosen::W];
  c.each([&](int j, int) OSTLER_INLINE { climb[j] = 0; });
  terms.climbs([&](int k, const auto& value) OSTLER_INLINE {
    // Up counts where both hold.
    c.each([&](int j, int l) OSTLER_INLINE { climb[j] = value(0, l) != 0.0f && climb[j] == 0 ? (k == 0 ? 1 : -1) : climb[j]; });
  });
  c.each([&](int j, int l) {
    const Words w = philox(a.seed, a.first_env + (unsigned)(e + l), DRAW_TILE, a.clock, 0);
    const auto drawn = [&](unsigned word, int count) OSTLER_INLINE {
      const int x = (int)(unit(word) * (float)count);
      return x < count ? x : count - 1;
    };
    const int before = (int)a.tile[e + l] - 1, low = (int)a.tile_first[0], high = (int)a.tile_first[1];
    int level = low + drawn(w.w[0], high - low + 1), column = drawn(w.w[1], columns);
    if (follows && before >= 0) {
      level = before / columns, column = before % columns;
      // An environment that broke says nothing.
      const bool ended = a.length[e + l] > 0 && a.bits[e + l] == 0;
      if (ended) level = level + climb[j] < 0 ? 0 : level + climb[j];
      if (level >= levels) level = drawn(w.w[2], levels);
    }
    const int tile = level * columns + column;
    a.tile[e + l] = (unsigned)tile + 1u;
    for (int k = 0; k < 3; k++) a.stand[k * n + e + l] = a.tile_origin[3 * tile + k];
    a.stand[3 * n + e + l] = (float)level;
  });
}
