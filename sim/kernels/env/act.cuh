// Actions to controls.
#pragma once

// The controls that follow from the clipped actions.
OSTLER_FN void drive(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  for (int d = 0; d < t.ndrive; d++) {
    float* ctrl = a.ctrl + a.drive_actuator[d] * n + e;
    const unsigned late = a.drive_late[d];
    const float* x = (late == NOWHERE ? a.action + a.drive_output[d] * n : a.late + late * n) + e;
    const float offset = a.drive_offset[d], scale = a.drive_scale[d];
    const float low = a.drive_low[d], high = a.drive_high[d];
    const unsigned law = a.drive_law[d];
    if (law == DRIVE_HELD) {
      OSTLER_EACH(l) ctrl[l] = offset;
    } else if (law == DRIVE_AFFINE) {
      const unsigned own = a.noisy ? a.drive_encoder[d] : (unsigned)NOWHERE;
      if (own == NOWHERE) {
        OSTLER_EACH(l) ctrl[l] = rust_min(rust_max(offset + scale * x[l], low), high);
      } else {
        // The encoder says `bias` more than there is.
        const float* bias = a.bias + own * n + e;
        const float gear = a.drive_gear[d];
        OSTLER_EACH(l) ctrl[l] = rust_min(rust_max(offset + scale * x[l] - gear * bias[l], low), high);
      }
    } else if (law == DRIVE_RELATIVE || law == DRIVE_INCREMENT) {
      // From the joint's position, or the control before; an episode's first from the position, too.
      const unsigned own = a.drive_choice[d];
      const float gear = a.drive_gear[d];
      const unsigned* length = a.length + e;
      float* before = law == DRIVE_INCREMENT ? a.increment + a.drive_encoder[d] * n + e : nullptr;
      OSTLER_EACH(l) {
        const float at = own == NOWHERE ? gear : gear * (float)a.physics.qpos[own * n + e + l];
        const float base = before && length[l] != 0 ? before[l] : at;
        ctrl[l] = rust_min(rust_max(base + offset + scale * x[l], low), high);
        if (before) before[l] = ctrl[l];
      }
    } else {
      const float* choice = a.choice + a.drive_choice[d];
      if (law == DRIVE_BINARY) {
        // Not `choice[x < 0 ? 0 : 1]`: as vectors, g++ 12 reads at -1 what is to be read at 1.
        const float below = choice[0], above = choice[1];
        OSTLER_EACH(l) ctrl[l] = rust_min(rust_max(x[l] < 0.0f ? below : above, low), high);
      } else {
        OSTLER_EACH(l) ctrl[l] = rust_min(rust_max(choice[(int)x[l]], low), high);
      }
    }
  }
}

// Late outputs as their actuators get them: before the first one has come, that.
OSTLER_FN_PART void hold_back(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  const unsigned* length = a.length + e;
  OSTLER_ROLLED for (int j = 0; j < t.nlate; j++) {
    const int own = (int)a.late_lag[j], output = (int)a.late_output[j];
    const unsigned depth = a.lag_high[own], size = a.late_size[j], place = a.late_place[j];
    // Outputs of one delay lie side by side.
    if (place == 0) redraw_lag(a, b, own);
    const unsigned* lag = a.lag + own * n + e;
    const float low = a.clip_low[output], high = a.clip_high[output];
    const float* x = a.action + output * n + e;
    float *to = a.late + j * n + e, *way = a.delayed + (begin_of(a.lag_end, own) + place) * n + e;
    for (int l = 0; l < b.len; l++) {
      const float now = x[l];
      if (length[l] == 0)
        for (unsigned s = 0; s < depth; s++) way[s * size * n + l] = now;
      const unsigned in = length[l] % depth, out = place_of(length[l], steps_of(lag[l]), depth);
      // Also where a snapshot has anything there, it chooses one of the choices.
      const float late = rust_min(rust_max(way[out * size * n + l], low), high);
      to[l] = steps_of(lag[l]) == 0 ? now : late;
      way[in * size * n + l] = now;
    }
  }
}

// New actions, clipped, and their controls; episodes grow older by a step. An environment
// whose actions are not all numbers is broken and gets zeros.
OSTLER_FN void act(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first, width = t.nraw;
  const float* rows = a.actions + e * width;
  unsigned* bits = a.bits + e;
  float x[Block::W];
  OSTLER_EACH(l) bits[l] = 0;
  for (int k = 0; k < t.naction; k++) {
    take(b, x, rows + a.raw[k], width);
    OSTLER_EACH(l) bits[l] |= is_finite(x[l]) ? 0u : (unsigned)FAULT_CONTROL;
  }
  const bool discrete = a.discrete[0] != 0;
  for (int k = 0; k < t.naction; k++) {
    take(b, x, rows + a.raw[k], width);
    const float low = a.clip_low[k], high = a.clip_high[k];
    float *action = a.action + k * n + e, *last = a.last_action + k * n + e;
    if (discrete) {
      OSTLER_EACH(l) {
        last[l] = action[l];
        action[l] = rust_min(rust_max(bits[l] ? 0.0f : whole_(x[l]), low), high);
      }
    } else {
      OSTLER_EACH(l) {
        last[l] = action[l];
        action[l] = rust_min(rust_max(bits[l] ? 0.0f : x[l], low), high);
      }
    }
  }
  if (t.nlate > 0) hold_back(a, b);
  if (t.nredrawn > 0) redraw_steps(a, b);
  drive(a, b);
  unsigned *age = a.age + e, *length = a.length + e;
  OSTLER_EACH(l) {
    age[l] += age[l] != ~0u;
    length[l] += length[l] != ~0u;
  }
}
