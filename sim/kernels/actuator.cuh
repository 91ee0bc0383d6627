// Actuators: their transmissions (length and moment arms), how control becomes force, and
// how activations follow. Source: MuJoCo, Computation, "Actuation model".
#pragma once

// act_arms and what act_int holds for it.
enum {
  ARMS_CONSTANT,  // arms are act_coef: scalar joints, fixed tendons
  ARMS_TENDON,    // 0: spatial tendon; arms are gear times its own
  ARMS_BALL,      // 0: first position, 1: 1 if the gear is in the parent's frame
  ARMS_FREE,      // as ARMS_BALL
  ARMS_SITE,      // 0: spot, 1: reference spot or -1, 2: tree about whose reference points are
  ARMS_CRANK,     // 0: spot of the crank, 1: of the slider, 2: as ARMS_SITE
  ARMS_BODY,      // those of contacts: see adhesion.cuh
};

// act_dyn: how activations follow.
enum { DYN_NONE, DYN_INTEGRATOR, DYN_FILTER, DYN_FILTER_EXACT, DYN_MUSCLE, DYN_CURRENT };

// A muscle's curves: the first 8 are the gain's, the others the bias's.
//   RANGE0 start of the operating range, LENGTH0 actuator length there, SCALE 1 over the
//   optimal length, PEAK minus the peak force, LMIN LMAX ends of the force-length curve,
//   VSCALE 1 over the greatest shortening velocity, FVMAX most force when lengthening
enum { MUSCLE_RANGE0, MUSCLE_LENGTH0, MUSCLE_SCALE, MUSCLE_PEAK, MUSCLE_LMIN, MUSCLE_LMAX, MUSCLE_VSCALE,
       MUSCLE_FVMAX, MUSCLE_BIAS_RANGE0, MUSCLE_BIAS_SCALE, MUSCLE_BIAS_PEAK, MUSCLE_BIAS_LMAX, MUSCLE_BIAS_FPMAX, MUSCLE };

// Unlimited ranges are +-UNLIMITED in the tables.
#define OSTLER_UNLIMITED 1e29
#define OSTLER_MIN_VALUE 1e-15

// Torque-free rotation that takes quaternion b to a, as a rotation vector in b's
// frame (radians, length at most pi).
template<class R> OSTLER_FN void quat_sub(const R* a, const R* b, R* o) {
  const R inv[4] = {b[0], -b[1], -b[2], -b[3]};
  R d[4];
  quat_mul(inv, a, d);
  const R n2 = dot3(d + 1, d + 1);
  const R n = sqrt_(n2);
  R angle = bc<R>(2) * atan2_(n, d[0]);
  angle = sel(angle > bc<R>(3.14159265358979323846), angle - bc<R>(6.28318530717958647692), angle);
  const R s = angle / max_(n, bc<R>(Tiny<R>::value));
  for (int k = 0; k < 3; k++) o[k] = d[1 + k] * s;
}

// A constant vector turned by a matrix's inverse.
template<class R, class T> OSTLER_FN void turn_back(const R* mat, const T* c, R* o) {
  for (int k = 0; k < 3; k++) o[k] = fma(mat[6 + k], bc<R>(c[2]), fma(mat[3 + k], bc<R>(c[1]), mat[k] * bc<R>(c[0])));
}

// Features that few robots have are kept out of line, so that the others' code stays small.

// Ball and free joints: the gear is an axis, or a force and an axis.
template<class R, class M> OSTLER_FN_BIG R turning_arms(const M& m, Work<R, M>& w, int u) {
  const bool free = m.act_arms[u] == ARMS_FREE;
  const auto* gear = m.act_gear + 6 * u;
  const auto* axis = free ? gear + 3 : gear;
  R* J = w.act_j + m.act_adr[u];
  R q[4], a[3] = {bc<R>(axis[0]), bc<R>(axis[1]), bc<R>(axis[2])};
  for (int k = 0; k < 4; k++) q[k] = w.qpos[m.act_int[4 * u] + (free ? 3 : 0) + k];
  quat_unit(q);
  if (m.act_int[4 * u + 1]) {
    R mat[9];
    quat_mat(q, mat);
    turn_back(mat, axis, a);
  }
  if (free)
    for (int k = 0; k < 3; k++) J[k] = bc<R>(gear[k]);
  for (int k = 0; k < 3; k++) J[(free ? 3 : 0) + k] = a[k];
  if (free) return bc<R>(0);  // it has no length
  const R one[4] = {bc<R>(1), bc<R>(0), bc<R>(0), bc<R>(0)};
  R turn[3];
  quat_sub(q, one, turn);
  return dot3(turn, a);
}

// A site, alone (a force and a torque in its frame) or relative to another.
template<class R, class M> OSTLER_FN_BIG R site_arms(const M& m, Work<R, M>& w, int u) {
  const int* what = m.act_int + 4 * u;
  const int tree = what[2], reference = what[1];
  const auto* gear = m.act_gear + 6 * u;
  R p[3], q[3], turn[4], mat[9], f[3], t[3];
  spot_point(m, w, what[0], tree, p);
  spot_turn(m, w, reference < 0 ? what[0] : reference, turn);
  quat_mat(turn, mat);
  mat_con(mat, gear, f);
  mat_con(mat, gear + 3, t);
  R length = bc<R>(0);
  if (reference >= 0) {
    R apart[3];
    spot_point(m, w, reference, tree, q);
    for (int k = 0; k < 3; k++) apart[k] = p[k] - q[k];
    length = dot3(apart, f);
    if (!is_zero3(gear + 3)) {
      R own[4], angle[3];
      spot_turn(m, w, what[0], own);
      quat_sub(own, turn, angle);
      for (int k = 0; k < 3; k++) length = fma(angle[k], bc<R>(gear[3 + k]), length);
    }
  }
  for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++) {
    const int d = m.act_dof[i];
    w.act_j[i] = m.act_moves[i] == 1 ? felt<R>(m, w, d, tree, p, f, t) : -felt<R>(m, w, d, tree, q, f, t);
  }
  return length;
}

// A rod from a crank's pin to a point that slides along an axis.
template<class R, class M> OSTLER_FN_BIG R crank_arms(const M& m, Work<R, M>& w, int u) {
  const int* what = m.act_int + 4 * u;
  const int tree = what[2];
  const double rod = m.act_rod[u];
  R p[3], q[3], turn[4], mat[9], axis[3], vec[3];
  spot_point(m, w, what[0], tree, p);
  spot_point(m, w, what[1], tree, q);
  spot_turn(m, w, what[1], turn);
  quat_mat(turn, mat);
  for (int k = 0; k < 3; k++) axis[k] = mat[3 * k + 2], vec[k] = p[k] - q[k];
  const R av = dot3(vec, axis), zero = bc<R>(0);
  const R det = fma(av, av, bc<R>(rod * rod) - dot3(vec, vec));
  const auto reaches = det > zero;
  const R s = sqrt_(sel(reaches, det, bc<R>(1)));
  const R away = bc<R>(1) - av / s;
  R by_axis[3], by_vec[3], moment[3];
  for (int k = 0; k < 3; k++) {
    by_axis[k] = sel(reaches, vec[k] * away, vec[k]);
    by_vec[k] = sel(reaches, fma(axis[k], away, vec[k] / s), axis[k]);
  }
  cross(axis, by_axis, moment);  // (w x axis) . by_axis = w . (axis x by_axis)
  const R gear = bc<R>(m.act_gear[6 * u]);
  for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++) {
    const int d = m.act_dof[i];
    R sum = zero;
    if (m.act_moves[i] & 1) sum = sum + felt<R>(m, w, d, tree, p, by_vec, nullptr);
    if (m.act_moves[i] & 2) sum = sum + (dot3(w.cdof + 6 * d, moment) - felt<R>(m, w, d, tree, q, by_vec, nullptr));
    w.act_j[i] = sum * gear;
  }
  return sel(reaches, av - s, av) * gear;
}

// Moment arms of actuator u in act_j; its length if something reads it.
template<class R, class M> OSTLER_FN R transmission(const M& m, Work<R, M>& w, int u, bool read) {
  R len = bc<R>(0);
  const int a0 = m.act_adr[u], a1 = m.act_adr[u + 1];
  switch (m.act_arms[u]) {
    case ARMS_CONSTANT:
      for (int i = a0; i < a1; i++) {
        const R k = bc<R>(m.act_coef[i]);
        w.act_j[i] = k;
        if (read && m.act_qpos[i] >= 0) len = fma(k, w.qpos[m.act_qpos[i]], len);
      }
      return len;
    case ARMS_TENDON: {
      const int t = m.act_int[4 * u];
      const R gear = bc<R>(m.act_gear[6 * u]);
      for (int i = a0; i < a1; i++) w.act_j[i] = gear * w.ten_j[m.ten_adr[t] + i - a0];
      return gear * w.ten_len[t];
    }
    case ARMS_BALL:
    case ARMS_FREE: return turning_arms(m, w, u);
    case ARMS_SITE: return site_arms(m, w, u);
    case ARMS_BODY: return bc<R>(0);
    default: return crank_arms(m, w, u);
  }
}

// A muscle's force over its length (1: optimal).
template<class R, class T> OSTLER_FN R force_length(const T* c, R l) {
  const double lmin = c[MUSCLE_LMIN], lmax = c[MUSCLE_LMAX], a = 0.5 * (lmin + 1), b = 0.5 * (1 + lmax);
  auto part = [](double x) { return 1 / (x > OSTLER_MIN_VALUE ? x : OSTLER_MIN_VALUE); };
  const R one = bc<R>(1), half = bc<R>(0.5);
  const R x0 = (l - bc<R>(lmin)) * bc<R>(part(a - lmin)), x1 = (one - l) * bc<R>(part(1 - a));
  const R x2 = (l - one) * bc<R>(part(b - 1)), x3 = (bc<R>(lmax) - l) * bc<R>(part(lmax - b));
  R f = sel(l <= bc<R>(b), fnma(half * x2, x2, one), half * x3 * x3);
  f = sel(l <= one, fnma(half * x1, x1, one), f);
  f = sel(l <= bc<R>(a), half * x0 * x0, f);
  return sel((l >= bc<R>(lmin)) & (l <= bc<R>(lmax)), f, bc<R>(0));
}
// Over its velocity (1: the greatest shortening velocity), and the derivative by it.
template<class R, class T> OSTLER_FN void force_velocity(const T* c, R v, R* f, R* slope) {
  const double y = c[MUSCLE_FVMAX] - 1, iy = 1 / (y > OSTLER_MIN_VALUE ? y : OSTLER_MIN_VALUE);
  const R one = bc<R>(1), zero = bc<R>(0), two = bc<R>(2), left = bc<R>(y) - v, up = v + one;
  const auto fast = v <= -one, short_ = v <= zero, long_ = v <= bc<R>(y);
  *f = sel(fast, zero, sel(short_, up * up, sel(long_, fnma(left * left, bc<R>(iy), bc<R>(c[MUSCLE_FVMAX])), bc<R>(c[MUSCLE_FVMAX]))));
  *slope = sel(fast, zero, sel(short_, two * up, sel(long_, two * left * bc<R>(iy), zero)));
}
template<class R, class M> OSTLER_FN_BIG R muscle_gain(const M& m, int u, R len, R vel, R* slope) {
  const auto* c = m.act_curve + MUSCLE * u;
  const R l = fma(len - bc<R>(c[MUSCLE_LENGTH0]), bc<R>(c[MUSCLE_SCALE]), bc<R>(c[MUSCLE_RANGE0]));
  R fv, dv;
  force_velocity(c, vel * bc<R>(c[MUSCLE_VSCALE]), &fv, &dv);
  const R active = force_length(c, l) * bc<R>(c[MUSCLE_PEAK]);
  *slope = active * dv * bc<R>(c[MUSCLE_VSCALE]);
  return active * fv;
}
template<class R, class M> OSTLER_FN_BIG R muscle_bias(const M& m, int u, R len) {
  const auto* c = m.act_curve + MUSCLE * u;
  const R l = fma(len - bc<R>(c[MUSCLE_LENGTH0]), bc<R>(c[MUSCLE_BIAS_SCALE]), bc<R>(c[MUSCLE_BIAS_RANGE0]));
  const double b = 0.5 * (1 + c[MUSCLE_BIAS_LMAX]), width = b - 1, i = 1 / (width > OSTLER_MIN_VALUE ? width : OSTLER_MIN_VALUE);
  const R x = (l - bc<R>(1)) * bc<R>(i), y = (l - bc<R>(b)) * bc<R>(i);
  const R f = sel(l <= bc<R>(1), bc<R>(0), sel(l <= bc<R>(b), bc<R>(0.5) * x * x, bc<R>(0.5) + y));
  return f * bc<R>(c[MUSCLE_BIAS_PEAK] * c[MUSCLE_BIAS_FPMAX]);
}
// Rate of a muscle's activation: slower to rest than to act (Millard et al. 2013).
template<class R, class M> OSTLER_FN_BIG R muscle_rate(const M& m, int u, R ctrl, R act) {
  const auto* p = m.act_prm + 3 * u;
  const R zero = bc<R>(0), one = bc<R>(1);
  const R excess = max_(min_(ctrl, one), zero) - act;
  const R level = fma(bc<R>(1.5), max_(min_(act, one), zero), bc<R>(0.5));
  const R up = bc<R>(p[0]) * level, down = bc<R>(p[1]) / level;
  R tau;
  if (p[2] < OSTLER_MIN_VALUE) {
    tau = sel(excess > zero, up, down);
  } else {
    const R x = max_(min_(fma(excess, bc<R>(1.0 / p[2]), bc<R>(0.5)), one), zero);
    const R s = x * x * x * fma(bc<R>(3) * x, fma(bc<R>(2), x, bc<R>(-5)), bc<R>(10));
    tau = fma(up - down, s, down);
  }
  return excess / max_(tau, bc<R>(Tiny<R>::value));
}

// A rotation's setpoint nearest to where the rotation is.
template<class R, class M> OSTLER_FN R nearest_turn(const M& m, const Work<R, M>& w, int u, R setpoint) {
  const double period = m.act_period[u];
  if (period == 0) return setpoint;
  const R apart = setpoint - w.act_len[u];
  return fnma(bc<R>(period), rint_(apart * bc<R>(1 / period)), setpoint);
}

// Activation after one time step.
template<class R, class M> OSTLER_FN R next_act(const M& m, const Work<R, M>& w, int u) {
  const int s = m.act_state[u];
  const R a = fma(w.act_dot[s], bc<R>(m.act_step[u]), w.act[s]);
  return max_(min_(a, bc<R>(m.act_hi[u])), bc<R>(m.act_lo[u]));
}

// Gain and bias at the actuator's length and velocity, but for muscles.
template<class R, class M> OSTLER_FN R affine_gain(const M& m, const Work<R, M>& w, int u) {
  const auto* g = m.act_gain + 3 * u;
  return fma(bc<R>(g[2]), w.act_vel[u], fma(bc<R>(g[1]), w.act_len[u], gain_of(m, w, u)));
}
template<class R, class M> OSTLER_FN R affine_bias(const M& m, const Work<R, M>& w, int u) {
  return fma(bias_of(m, w, u, 2), w.act_vel[u], fma(bias_of(m, w, u, 1), w.act_len[u], bc<R>(m.act_bias[3 * u])));
}

// The control within its range, and rates of activation from it; what the force is in
// proportion to.
template<class R, class M> OSTLER_FN R actuator_input(const M& m, Work<R, M>& w, int u) {
  R input = w.ctrl[u];
  if (m.act_ctrllo[u] > -OSTLER_UNLIMITED) input = max_(input, bc<R>(m.act_ctrllo[u]));
  if (m.act_ctrlhi[u] < OSTLER_UNLIMITED) input = min_(input, bc<R>(m.act_ctrlhi[u]));
  const int s = m.act_state[u];
  if (s >= 0) {
    if (m.act_dyn[u] == DYN_MUSCLE) w.act_dot[s] = muscle_rate(m, u, input, w.act[s]);
    else if (m.act_dyn[u] == DYN_CURRENT)
      w.act_dot[s] = fms(fma(affine_gain(m, w, u), input, affine_bias(m, w, u)), bc<R>(m.act_prm[3 * u + 1]), w.act[s]) * bc<R>(1 / m.act_prm[3 * u]);
    else w.act_dot[s] = m.act_dyn[u] == DYN_INTEGRATOR ? input : (input - w.act[s]) * bc<R>(1 / m.act_prm[3 * u]);
    input = m.act_early[u] ? next_act(m, w, u) : w.act[s];
  }
  return nearest_turn(m, w, u, input);
}

// Gain and bias; where kp and kd vary they are those of a servo: kp, and -kp of the length, -kd
// of the velocity.
template<class R, class M> OSTLER_FN R gain_of(const M& m, const Work<R, M>& w, int u) {
  if (varies(m, m.vary_gain, u)) return w.vary[m.vary_gain[u]];
  return varied(m, w, m.vary_kp, u, m.act_gain[3 * u]);
}
template<class R, class M> OSTLER_FN R bias_of(const M& m, const Work<R, M>& w, int u, int k) {
  if (k == 1 && varies(m, m.vary_kp, u)) return -w.vary[m.vary_kp[u]];
  if (k == 2 && varies(m, m.vary_kd, u)) return -w.vary[m.vary_kd[u]];
  return bc<R>(m.act_bias[3 * u + k]);
}
template<class R, class M> OSTLER_FN void force_range(const M& m, const Work<R, M>& w, int u, R& lo, R& hi) {
  const bool own = varies(m, m.vary_effort, u);
  hi = own ? w.vary[m.vary_effort[u]] : bc<R>(m.act_forcehi[u]);
  lo = own ? -hi : bc<R>(m.act_forcelo[u]);
}

// The force's derivative by the actuator's velocity, at the last `actuation`; 0 where the
// force is at its limit.
template<class R, class M> OSTLER_FN R actuator_slope(const M& m, Work<R, M>& w, int u) {
  const double g = m.act_gain[3 * u + 2];
  R slope = bias_of(m, w, u, 2);
  if (g != 0 || (m.act_muscle[u] & 1)) {
    const R input = actuator_input(m, w, u);
    R by = bc<R>(g);
    if (m.act_muscle[u] & 1) muscle_gain(m, u, w.act_len[u], w.act_vel[u], &by);
    slope = fma(by, input, slope);
  }
  // Of the current that there will be only a part follows.
  if (m.act_dyn[u] == DYN_CURRENT) slope = slope * bc<R>(m.act_step[u] / m.act_prm[3 * u]);
  const R f = w.act_force[u];
  R lo, hi;
  force_range(m, w, u, lo, hi);
  const auto held = (f <= lo) | (f >= hi);
  slope = sel(held, bc<R>(0), slope);
  return m.nheld > 0 ? slope * w.act_free[u] : slope;
}

// The sum of the actuators at a degree of freedom within its range.
template<class R, class M> OSTLER_FN R within_range(const M& m, int d, R q) {
  if (m.dof_actlo[d] > -OSTLER_UNLIMITED) q = max_(q, bc<R>(m.dof_actlo[d]));
  if (m.dof_acthi[d] < OSTLER_UNLIMITED) q = min_(q, bc<R>(m.dof_acthi[d]));
  return q;
}
// Marks the actuators whose joints bear no more than `sum`.
template<class R, class M> OSTLER_FN void hold_back(const M& m, Work<R, M>& w, const R* sum) {
  for (int u = 0; u < m.nheld; u++) {
    const int d = m.act_int[4 * u] - 1;
    if (m.act_arms[u] != 0 || d < 0) continue;
    const auto reached = (sum[d] <= bc<R>(m.dof_actlo[d])) | (sum[d] >= bc<R>(m.dof_acthi[d]));
    w.act_free[u] = sel(reached, bc<R>(0), bc<R>(1));
  }
}

template<class R, class M> OSTLER_FN_PART void actuation(const M& m, Work<R, M>& w) {
  R* sum = w.grad; // free at this stage
  for (int d = 0; d < m.nv; d++) sum[d] = bc<R>(0);
  for (int u = 0; u < m.nu; u++) {
    const auto *g = m.act_gain + 3 * u, *c = m.act_bias + 3 * u;
    const bool muscle = m.act_muscle[u] != 0;
    const bool kp = varies(m, m.vary_kp, u), kd = varies(m, m.vary_kd, u);
    const R len = transmission(m, w, u, g[1] != 0 || c[1] != 0 || muscle || kp);
    R vel = bc<R>(0);
    if (g[2] != 0 || c[2] != 0 || muscle || kd)
      for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++) vel = fma(w.act_j[i], w.qvel[m.act_dof[i]], vel);
    w.act_len[u] = len;
    w.act_vel[u] = vel;
    const R input = actuator_input(m, w, u);
    if (m.act_dyn[u] == DYN_CURRENT) {
      w.act_force[u] = input * bc<R>(m.act_prm[3 * u + 2]);
      continue;
    }
    R gain = affine_gain(m, w, u), bias = affine_bias(m, w, u), slope;
    if (m.act_muscle[u] & 1) gain = muscle_gain(m, u, len, vel, &slope);
    if (m.act_muscle[u] & 2) bias = muscle_bias(m, u, len);
    w.act_force[u] = fma(gain, input, bias);
  }
  for (int u = 0; u < m.nheld; u++) w.act_free[u] = bc<R>(1);
  // Tendons that bear no more than so much from all their actuators.
  for (int t = 0; t < m.nshare; t++) {
    R total = bc<R>(0);
    for (int i = m.share_adr[t]; i < m.share_adr[t + 1]; i++) total = total + w.act_force[m.share_act[i]];
    const R lo = bc<R>(m.share_lo[t]), hi = bc<R>(m.share_hi[t]);
    const auto below = total < lo, above = total > hi;
    const R part = sel(below, lo, hi) / sel(below | above, total, bc<R>(1));
    for (int i = m.share_adr[t]; i < m.share_adr[t + 1]; i++) {
      const int u = m.share_act[i];
      w.act_force[u] = sel(below | above, w.act_force[u] * part, w.act_force[u]);
      if (m.nheld > 0) w.act_free[u] = sel(below | above, bc<R>(0), w.act_free[u]);
    }
  }
  for (int u = 0; u < m.nu; u++) {
    R force = w.act_force[u];
    R lo, hi;
    force_range(m, w, u, lo, hi);
    const bool own = varies(m, m.vary_effort, u);
    if (own || m.act_forcelo[u] > -OSTLER_UNLIMITED) force = max_(force, lo);
    if (own || m.act_forcehi[u] < OSTLER_UNLIMITED) force = min_(force, hi);
    w.act_force[u] = force;
    for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++)
      sum[m.act_dof[i]] = fma(w.act_j[i], force, sum[m.act_dof[i]]);
  }
  weight_compensation(m, w, 1, sum);
  hold_back(m, w, sum);
  for (int d = 0; d < m.nv; d++) {
    if (m.nstick > 0) w.act_sum[d] = sum[d];
    w.smooth[d] = w.smooth[d] + within_range(m, d, sum[d]);
  }
}
