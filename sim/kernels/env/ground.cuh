// Where on a terrain episodes take place, and what is read of it: heights, slopes.
#pragma once
#include "rays.cuh"

// What a scan reads at each of its places: the body's height over the ground; the distance along
// a ray, -1 where it meets nothing.
enum { SCAN_HEIGHT, SCAN_RAY };

// Heights over the places of scan k.
template<class L> OSTLER_FN_PART void scan_heights(const EnvArgs& a, const L& lanes, int k, const float* pos, const float* quat) {
  const long n = a.n, e = lanes.first;
  const Ground g = a.physics.ground;
  float sine[L::W], cosine[L::W], x[L::W], y[L::W], z[L::W], px[L::W], py[L::W], height[L::W];
  lanes.each([&](int j, int l) OSTLER_INLINE {
    sin_cos(heading(quat[l], quat[n + l], quat[2 * n + l], quat[3 * n + l]), sine[j], cosine[j]);
    x[j] = pos[l], y[j] = pos[n + l], z[j] = pos[2 * n + l];
  });
  for (unsigned r = begin_of(a.scan_end, k); r < a.scan_end[k]; r++) {
    float* to = a.scan + r * n + e;
    const float dx = a.ray_from[3 * r], dy = a.ray_from[3 * r + 1], dz = a.ray_from[3 * r + 2];
    lanes.each([&](int j, int) OSTLER_INLINE {
      px[j] = x[j] + (cosine[j] * dx - sine[j] * dy), py[j] = y[j] + (sine[j] * dx + cosine[j] * dy);
    });
    ground_each<L::W>(g, px, py, lanes.len, [&](int j, float at, float, float) OSTLER_INLINE { height[j] = at; });
    lanes.each([&](int j, int l) OSTLER_INLINE { to[l] = (z[j] + dz) - height[j]; });
  }
}

// The numbers of all scans, from the bodies' frames.
template<class L> OSTLER_FN_PART void scan(const EnvArgs& a, const L& lanes) {
  const long n = a.n, e = lanes.first;
  for (int k = 0; k < task_of(a).nscan; k++) {
    const long body = a.scan_body[k];
    const float* pos = a.physics.body_pos + 3 * body * n + e;
    const float* quat = a.physics.body_quat + 4 * body * n + e;
    if (a.scan_kind[k] == SCAN_RAY) scan_rays(a, lanes, k, pos, quat);
    else scan_heights(a, lanes, k, pos, quat);
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
