// A control step of one block of environments, and the evaluation of given states.
#pragma once
#include "state.h"

// Everything a control step reads and writes. Buffers are [k][stride], the
// environment fastest; a block starts at environment `first` of `count`.
template<class T> struct StepArgs {
  int stride;             // from an entry of a world to its next
  int substeps;           // time steps
  Solver solver;          // its settings
  const T* top_speed;     // [nv] limits of a world that is well; infinite: none
  const T* top_place;     // [nq] the same
  const T* ctrl;          // [nu]
  const T* delays;        // [substeps][nredrawn], or null
  Ground ground;          // of all environments; no height: there is none
  typedef T real;
  typedef unsigned word;
  // The worlds' columns; a broken world stays as it is.
  OSTLER_WORLD(OSTLER_POINTER)
};
enum { FAULT_NON_FINITE = 1, FAULT_SPEED = 2, FAULT_POSITION = 4, FAULT_CONTROL = 8 };

template<class R, class T> OSTLER_FN R read_lanes(const T* p, int lanes) {
  R x;
  if (lanes == (int)Lane<R>::N) {
    load(x, p);
  } else {
    T pad[Lane<R>::N];
    for (int l = 0; l < (int)Lane<R>::N; l++) pad[l] = p[l < lanes ? l : 0];
    load(x, pad);
  }
  return x;
}
template<class R, class T> OSTLER_FN void write_lanes(T* p, R x, int lanes) {
  if (lanes == (int)Lane<R>::N) {
    store(p, x);
  } else {
    T pad[Lane<R>::N];
    store(pad, x);
    for (int l = 0; l < lanes; l++) p[l] = pad[l];
  }
}

// Before the first physics step of a control step: times go on, all else begins anew.
template<class R, class M, class T> OSTLER_FN void begin_sensed(const M& m, Work<R, M>& w, const T* before, long stride, int lanes) {
  const R zero = bc<R>(0);
  for (int s = 0; s < m.ncsensor; s++)
    for (int k = m.csensor_adr[s]; k < m.csensor_adr[s + 1]; k++) {
      w.csensed[k] = zero;
      w.cread[k] = is_contact_time(m.csensor_kind[s]) ? read_lanes<R>(before + k * stride, lanes) : zero;
    }
}

// Contact forces of the last solve, added up per geom and by contact sensors.
template<class R, class M> OSTLER_FN void gather_forces(const M& m, Work<R, M>& w) {
  for (int k = 0; k < w.nwc + w.npc; k++) {
    const bool world = k < w.nwc;
    const int i = world ? k : k - w.nwc;
    const int c = world ? w.wc_pair[i] : w.pc_pair[i];
    const int g1 = m.cg_geom[m.pair_g1[c]], g2 = m.cg_geom[m.pair_g2[c]];
    ConeCost<R> q;
    by_dim<EITHER_WAY>(m, c, [&](auto dims) OSTLER_INLINE {
      final_cost(dims, m, w, world, i, c, q);
      if (m.ncsensor > 0) sense_contact(dims, m, w, world, i, c, q);
    });
    w.geom_force[g1] = w.geom_force[g1] - q.g[0];
    w.geom_force[g2] = w.geom_force[g2] - q.g[0];
  }
  if (m.ncsensor > 0) add_sensed(m, w);
}

// Poses and velocities of every frame of the model.
template<class R, class M> OSTLER_FN_PART void write_frames(const M& m, Work<R, M>& w, const StepArgs<typename Lane<R>::T>& a, int first, int lanes) {
  Straight<R, M>::poses(m, w);
  for (int f = 0; f < m.nframe; f++) {
    const int b = m.frame_body[f];
    const auto* fp = m.frame_pos + 3 * f;
    const auto* fq = m.frame_quat + 4 * f;
    R quat[4], pos[3], lin[3], ang[3];
    for (int k = 0; k < 4; k++) quat[k] = bc<R>(fq[k]);
    for (int k = 0; k < 3; k++) pos[k] = bc<R>(fp[k]), lin[k] = ang[k] = bc<R>(0);
    if (b >= 0) {
      R o[3] = {w.xpos[3 * b], w.xpos[3 * b + 1], w.xpos[3 * b + 2]};
      if (!is_zero3(fp)) {
        R v[3];
        mat_con(w.xmat + 9 * b, fp, v);
        for (int k = 0; k < 3; k++) o[k] = o[k] + v[k];
      }
      quat_mul(w.xquat + 4 * b, quat, quat);
      quat_unit(quat);
      for (int k = 0; k < 3; k++) {
        pos[k] = w.ref[3 * m.body_tree[b] + k] + o[k];
        ang[k] = w.vel[6 * b + k];
        lin[k] = w.vel[6 * b + 3 + k];
      }
      cross_add(ang, o, lin);
    }
    for (int k = 0; k < 4; k++) write_lanes(a.body_quat + (4 * f + k) * (long)a.stride + first, quat[k], lanes);
    for (int k = 0; k < 3; k++) {
      write_lanes(a.body_pos + (3 * f + k) * (long)a.stride + first, pos[k], lanes);
      write_lanes(a.body_lin_vel + (3 * f + k) * (long)a.stride + first, lin[k], lanes);
      write_lanes(a.body_ang_vel + (3 * f + k) * (long)a.stride + first, ang[k], lanes);
    }
  }
}

// The numbers of the model that differ between environments, and what follows from them where
// they are new.
template<class R, class M>
OSTLER_FN void read_varied(const M& m, Work<R, M>& w, const StepArgs<typename Lane<R>::T>& a, int first, int lanes) {
  const long s = a.stride;
  typename Lane<R>::Mask stale = mask_of<typename Lane<R>::Mask>(false);
  for (int i = 0; i < m.nvary; i++) w.vary[i] = read_lanes<R>(a.varied + i * s + first, lanes);
  if (m.nderive == 0) return;
  for (int l = 0; l < (int)Lane<R>::N; l++) lane_set(stale, l, l < lanes && (a.stale[first + l] & 1) != 0);
  if (any(stale)) {
    derive(m, w);
    for (int i = 0; i < m.nderive; i++) {
      auto* to = a.derived + i * s + first;
      write_lanes(to, sel(stale, w.vary[m.nvary + i], read_lanes<R>(to, lanes)), lanes);
    }
    for (int l = 0; l < lanes; l++) a.stale[first + l] = 0;
  }
  for (int i = 0; i < m.nderive; i++) w.vary[m.nvary + i] = read_lanes<R>(a.derived + i * s + first, lanes);
}

// Steps the environments first .. first+lanes-1 (at most the number of lanes of R).
template<class R, class M>
OSTLER_FN_BIG void control_step(const M& m, Work<R, M>& w, const StepArgs<typename Lane<R>::T>& a, int first, int lanes) {
  typedef typename Lane<R>::Mask B;
  const long s = a.stride;
  w.ground = a.ground.height ? &a.ground : nullptr;
  if (m.nvary > 0) read_varied(m, w, a, first, lanes);
  for (int i = 0; i < m.nq; i++) w.qpos[i] = read_lanes<R>(a.qpos + i * s + first, lanes);
  for (int i = 0; i < m.nv; i++) {
    w.qvel[i] = read_lanes<R>(a.qvel + i * s + first, lanes);
    w.qacc[i] = read_lanes<R>(a.qacc + i * s + first, lanes);
  }
  for (int i = 0; i < m.na; i++) w.act[i] = read_lanes<R>(a.act + i * s + first, lanes);
  const R huge = bc<R>(1e30), zero = bc<R>(0);
  B bad_ctrl = mask_of<B>(false);
  for (int i = 0; i < m.nu; i++) {
    const R u = read_lanes<R>(a.ctrl + i * s + first, lanes);
    const B ok = abs_(u) < huge;  // false for NaN too
    bad_ctrl = bad_ctrl | !ok;
    w.ctrl[i] = sel(ok, u, zero);
    if (m.nmotor > 0) w.target[i] = w.ctrl[i];
  }
  for (int i = 0; i < m.nmemory; i++) w.memory[i] = read_lanes<R>(a.memory + i * s + first, lanes);
  for (int g = 0; g < m.ngeom; g++) w.geom_force[g] = zero;
  for (int i = 0; i < m.nsense; i++) w.sense[i] = zero;
  if (m.ncsensor > 0) begin_sensed(m, w, a.contact_data + first, s, lanes);
  w.overflow = mask_of<B>(false);
  unsigned unsolved[Lane<R>::N] = {};
  for (int n = 0; n < a.substeps; n++) {
    for (int i = 0; i < m.nredrawn; i++)
      w.redrawn[i] = a.delays ? read_lanes<R>(a.delays + ((long)n * m.nredrawn + i) * s + first, lanes) : bc<R>(-1);
    if (m.nmotor > 0) motors(m, w);
    forward(m, w, a.solver);
    gather_forces(m, w);
    if (m.nmeter > 0 && n == a.substeps - 1) read_meters(m, w);
    if (any(w.unsolved))
      for (int l = 0; l < lanes; l++) unsolved[l] += lane_get(w.unsolved, l);
    if (m.integrator == RK4) step_rk4(m, w, a.solver);
    else step_once(m, w, a.solver);
  }
  // The first bad quantity decides; a comparison with NaN is false.
  B speed = mask_of<B>(false), place = speed, finite = mask_of<B>(true);
  for (int i = 0; i < m.nq; i++) {
    finite = finite & (abs_(w.qpos[i]) < huge);
    place = place | (abs_(w.qpos[i]) > bc<R>(a.top_place[i]));
  }
  for (int i = 0; i < m.nv; i++) {
    finite = finite & (abs_(w.qvel[i]) < huge);
    speed = speed | (abs_(w.qvel[i]) > bc<R>(a.top_speed[i]));
    finite = finite & (abs_(w.qacc[i]) < huge);
  }
  for (int i = 0; i < m.na; i++) finite = finite & (abs_(w.act[i]) < huge);
  for (int i = 0; i < m.nmemory; i++) finite = finite & (abs_(w.memory[i]) < huge);
  B keep = mask_of<B>(false);  // lanes that stay as they were
  bool broken[Lane<R>::N];
  for (int l = 0; l < lanes; l++) broken[l] = (a.fault[first + l] & ~(unsigned)FAULT_CONTROL) != 0;
  for (int l = 0; l < lanes; l++) {
    unsigned* fault = a.fault + first + l;
    const bool was = broken[l];
    unsigned now = lane_get(bad_ctrl, l) ? FAULT_CONTROL : 0;
    if (!lane_get(finite, l)) now |= FAULT_NON_FINITE;
    else if (lane_get(speed, l)) now |= FAULT_SPEED;
    else if (lane_get(place, l)) now |= FAULT_POSITION;
    if (!was) {
      *fault |= now;
      if (lane_get(w.overflow, l)) a.overflow[first + l]++;
      a.unsolved[first + l] += unsolved[l];
    }
    lane_set(keep, l, was || !lane_get(finite, l));
  }
  for (int l = lanes; l < (int)Lane<R>::N; l++) lane_set(keep, l, true);
  if (any(keep)) {
    for (int i = 0; i < m.nq; i++) w.qpos[i] = sel(keep, read_lanes<R>(a.qpos + i * s + first, lanes), w.qpos[i]);
    for (int i = 0; i < m.nv; i++) {
      w.qvel[i] = sel(keep, read_lanes<R>(a.qvel + i * s + first, lanes), w.qvel[i]);
      w.qacc[i] = sel(keep, read_lanes<R>(a.qacc + i * s + first, lanes), w.qacc[i]);
    }
    for (int i = 0; i < m.na; i++) w.act[i] = sel(keep, read_lanes<R>(a.act + i * s + first, lanes), w.act[i]);
    for (int i = 0; i < m.nmemory; i++) w.memory[i] = sel(keep, read_lanes<R>(a.memory + i * s + first, lanes), w.memory[i]);
    for (int g = 0; g < m.ngeom; g++) w.geom_force[g] = sel(keep, zero, w.geom_force[g]);
    for (int u = 0; u < m.nu; u++) w.act_force[u] = sel(keep, zero, w.act_force[u]);
    for (int i = 0; i < m.nsense; i++) w.sense[i] = sel(keep, zero, w.sense[i]);
    for (int i = 0; i < m.ncread; i++) w.cread[i] = sel(keep, zero, w.cread[i]);
  }
  for (int i = 0; i < m.nq; i++) write_lanes(a.qpos + i * s + first, w.qpos[i] + zero, lanes);
  for (int i = 0; i < m.nv; i++) {
    // Adding zero turns -0 into 0: bits do not tell whether a neighbour had contacts.
    w.qvel[i] = w.qvel[i] + zero;
    write_lanes(a.qvel + i * s + first, w.qvel[i], lanes);
    write_lanes(a.qacc + i * s + first, w.qacc[i] + zero, lanes);
  }
  for (int i = 0; i < m.na; i++) write_lanes(a.act + i * s + first, w.act[i], lanes);
  for (int i = 0; i < m.nmemory; i++) write_lanes(a.memory + i * s + first, w.memory[i], lanes);
  const R mean = bc<R>(1.0 / (a.substeps > 0 ? a.substeps : 1));
  for (int g = 0; g < m.ngeom; g++) write_lanes(a.contact_force + g * s + first, w.geom_force[g] * mean, lanes);
  for (int u = 0; u < m.nu; u++) write_lanes(a.actuator_force + u * s + first, w.act_force[u], lanes);
  for (int i = 0; i < m.nsense; i++) write_lanes(a.sensordata + i * s + first, w.sense[i] + zero, lanes);
  for (int s = 0; s < m.ncsensor; s++)
    for (int k = m.csensor_adr[s]; k < m.csensor_adr[s + 1]; k++)
      write_lanes(a.contact_data + k * (long)a.stride + first, sensed(m, w, s, k, mean) + zero, lanes);
  write_frames(m, w, a, first, lanes);
}

// Dynamics of given states, for comparisons: [k][stride] buffers, as above.
template<class T> struct EvalArgs {
  int stride, reserved;
  Solver solver;
  const T *qpos, *qvel, *act, *ctrl, *varied;
  Ground ground;
  T* qacc;  // the warm start before
  T *sense, *qpos_next, *qvel_next, *act_next;
  unsigned *ncon, *iterations, *flags;  // flags: 1 overflow, 2 unsolved
  unsigned* met;  // [npair] of the first state: 1 where a contact of the pair is within its margin; or null
};
template<class R, class M>
OSTLER_FN_BIG void evaluate(const M& m, Work<R, M>& w, const EvalArgs<typename Lane<R>::T>& a, int first, int lanes) {
  const long s = a.stride;
  w.ground = a.ground.height ? &a.ground : nullptr;
  for (int i = 0; i < m.nvary; i++) w.vary[i] = read_lanes<R>(a.varied + i * s + first, lanes);
  if (m.nderive > 0) derive(m, w);
  for (int i = 0; i < m.nq; i++) w.qpos[i] = read_lanes<R>(a.qpos + i * s + first, lanes);
  for (int i = 0; i < m.nv; i++) w.qvel[i] = read_lanes<R>(a.qvel + i * s + first, lanes), w.qacc[i] = read_lanes<R>(a.qacc + i * s + first, lanes);
  for (int i = 0; i < m.na; i++) w.act[i] = read_lanes<R>(a.act + i * s + first, lanes);
  for (int i = 0; i < m.nu; i++) w.ctrl[i] = read_lanes<R>(a.ctrl + i * s + first, lanes);
  if (m.nmotor > 0) {
    // As in the first step of an episode.
    for (int i = 0; i < m.nu; i++) w.target[i] = w.ctrl[i];
    for (int i = 0; i < m.nmemory; i++) w.memory[i] = bc<R>(0);
    for (int i = 0; i < m.nredrawn; i++) w.redrawn[i] = bc<R>(-1);
    motors(m, w);
  }
  w.overflow = mask_of<typename Lane<R>::Mask>(false);
  forward(m, w, a.solver);
  for (int l = 0; l < lanes; l++) {
    a.ncon[first + l] = (unsigned)lane_get(w.ncon, l);
    a.iterations[first + l] = (unsigned)lane_get(w.lane_iterations, l);
    a.flags[first + l] = (lane_get(w.overflow, l) ? 1u : 0u) | (lane_get(w.unsolved, l) ? 2u : 0u);
  }
  if (a.met && first == 0) {
    for (int k = 0; k < w.nwc; k++)
      if (lane_get(w.wc_d[k], 0) > 0) a.met[w.wc_pair[k]] = 1;
    for (int k = 0; k < w.npc; k++)
      if (lane_get(w.pc_d[k], 0) > 0) a.met[w.pc_pair[k]] = 1;
  }
  for (int i = 0; i < m.nv; i++) write_lanes(a.qacc + i * s + first, w.qacc[i], lanes);
  if (m.nmeter > 0) read_meters(m, w);
  for (int i = 0; i < m.nsense; i++) write_lanes(a.sense + i * s + first, w.sense[i], lanes);
  if (m.integrator == RK4) step_rk4(m, w, a.solver);
  else step_once(m, w, a.solver);
  for (int i = 0; i < m.nq; i++) write_lanes(a.qpos_next + i * s + first, w.qpos[i], lanes);
  for (int i = 0; i < m.nv; i++) write_lanes(a.qvel_next + i * s + first, w.qvel[i], lanes);
  for (int i = 0; i < m.na; i++) write_lanes(a.act_next + i * s + first, w.act[i], lanes);
}
