// One time step: forward dynamics and integration as MuJoCo's mj_step has them.
// Source: MuJoCo, Computation, "Numerical integration".
#pragma once

enum { EULER, RK4, IMPLICITFAST, IMPLICIT };

// Settings of the solver.
struct Solver {
  int iterations;     // most Newton iterations
  int trials;         // as MuJoCo, with so many trials of a step's length at most; 0: to the end
  double tolerance;   // of the scaled improvement
};

// What is not needed costs a program for a GPU stack and time to compile: there the robot decides.
template<class M> OSTLER_FN bool stops_early(const M& m, const Solver& s) {
#ifdef __CUDACC__
  return m.nstop > 0;
#else
  return s.trials > 0;
#endif
}

// Acceleration of the present state, in w.qacc (which is the warm start).
template<class R, class M> OSTLER_FN_PART void forward(const M& m, Work<R, M>& w, const Solver& s) {
  Straight<R, M>::smooth(m, w);
  collide(m, w);
  if (m.nstick + m.sticky > 0) adhere(m, w);
  Straight<R, M>::rows(m, w);
  w.constrained = w.constrained | rows_act(m, w);
  if (stops_early(m, s)) newton<true>(m, w, s.iterations, s.trials, s.tolerance);
  else newton<false>(m, w, s.iterations, s.trials, s.tolerance);
  if (m.nslip > 0) no_slip(m, w);
}

// qpos += h * v in the space of configurations.
template<class R, class M> OSTLER_FN void integrate_positions(const M& m, R* qpos, const R* v, double h) {
  const R step = bc<R>(h);
  for (int j = 0; j < m.nj; j++) {
    const int type = m.jnt_type[j];
    int q = m.jnt_qpos[j], d = m.jnt_dof[j];
    if (type == JNT_SLIDE || type == JNT_HINGE) {
      qpos[q] = fma(step, v[d], qpos[q]);
      continue;
    }
    if (type == JNT_FREE) {
      for (int k = 0; k < 3; k++) qpos[q + k] = fma(step, v[d + k], qpos[q + k]);
      q += 3, d += 3;
    }
    // quaternion times the rotation by h * angular velocity (body frame)
    const R n2 = dot3(v + d, v + d);
    const auto rest = n2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
    const R n = sqrt_(sel(rest, bc<R>(1), n2));
    R s, c;
    sincos_(n * bc<R>(0.5 * h), s, c);
    s = sel(rest, bc<R>(0), s / n);
    R turn[4] = {sel(rest, bc<R>(1), c), s * v[d], s * v[d + 1], s * v[d + 2]};
    R o[4] = {qpos[q], qpos[q + 1], qpos[q + 2], qpos[q + 3]};
    quat_mul(o, turn, o);
    quat_unit(o);
    for (int k = 0; k < 4; k++) qpos[q + k] = o[k];
  }
}

template<class R, class M> OSTLER_FN void advance_act(const M& m, Work<R, M>& w) {
  for (int u = 0; u < m.nu; u++)
    if (m.act_state[u] >= 0) {
      const R a = next_act(m, w, u);
      w.act[m.act_state[u]] = m.act_dyn[u] == DYN_INTEGRATOR ? nearest_turn(m, w, u, a) : a;
    }
}

// Acceleration with forces taken at the end of the step: (M - h D) a = M qacc. Euler
// knows of joint damping alone, implicitfast and implicit of all that depends on
// velocity. Result in w.step.
template<class R, class M> OSTLER_FN void damped_acceleration(const M& m, Work<R, M>& w) {
  const double h = m.timestep;
  mass_mul(m, w, w.qacc, w.step);
  implicit_mass(m, w);
  for (int i = 0; i < m.nv; i++) 
    w.hess[tri(i) + i] = w.hess[tri(i) + i] + (varies(m, m.vary_damping, i) ? bc<R>(h) * w.vary[m.vary_damping[i]] : bc<R>(h * m.dof_damping[i]));
  if (m.integrator >= IMPLICITFAST) {
    for (int u = 0; u < m.nu; u++) {
      if (m.act_gain[3 * u + 2] == 0 && m.act_bias[3 * u + 2] == 0 && !(m.act_muscle[u] & 1) && !varies(m, m.vary_kd, u)) continue;
      const R slope = actuator_slope(m, w, u) * bc<R>(-h);
      for (int i = m.act_adr[u]; i < m.act_adr[u + 1]; i++) {
        const int d = m.act_dof[i];
        for (int j = m.act_adr[u]; j <= i; j++) {
          const int hi = d > m.act_dof[j] ? d : m.act_dof[j], lo = d > m.act_dof[j] ? m.act_dof[j] : d;
          if (coupled(m, hi, lo))
            w.hess[tri(hi) + lo] = fma(slope * w.act_j[i], w.act_j[j], w.hess[tri(hi) + lo]);
        }
      }
    }
    for (int t = 0; t < m.nten; t++) {
      if (m.ten_damping[t] == 0) continue;
      for (int i = m.ten_adr[t]; i < m.ten_adr[t + 1]; i++)
        for (int j = m.ten_adr[t]; j <= i; j++) {
          const int d = m.ten_dof[i], e = m.ten_dof[j], hi = d > e ? d : e, lo = d > e ? e : d;
          if (coupled(m, hi, lo))
            w.hess[tri(hi) + lo] = fma(bc<R>(h * m.ten_damping[t]) * w.ten_j[i], w.ten_j[j], w.hess[tri(hi) + lo]);
        }
    }
    if (m.nfluid + m.nell > 0) implicit_fluid(m, w);
  }
  if (m.slopes == 2) {
    implicit_skew(m, w);
    solve_skew(m, w);
  } else {
    solve(m.nv, m.mrow_adr, m.mrow_col, w.hess, w.step);
  }
}

// Semi-implicit Euler, implicitfast and implicit, after `forward`.
template<class R, class M> OSTLER_FN_PART void step_euler(const M& m, Work<R, M>& w) {
  const R* a = w.qacc;
  if (m.eulerdamp || m.integrator >= IMPLICITFAST) damped_acceleration(m, w), a = w.step;
  for (int i = 0; i < m.nv; i++) w.qvel[i] = fma(bc<R>(m.timestep), a[i], w.qvel[i]);
  integrate_positions(m, w.qpos, w.qvel, m.timestep);
  advance_act(m, w);
}

// The classical Runge-Kutta method of order 4 in the coordinates of each
// quaternion's rotation vector u from the start of the step, as MuJoCo 4 has it
// (Munthe-Kaas): du/dt = w + 1/2 u x w + c u x (u x w) with angular velocity w in
// the body's frame and c = (1 - x cot x) / |u|^2, x = |u|/2. `rate` becomes du/dt of the stage
// that `u` = h `rate` led to.
template<class R> OSTLER_FN void rotation_rate(const R* w, R h, R* rate) {
  R u[3], uw[3], uuw[3];
  for (int k = 0; k < 3; k++) u[k] = rate[k] * h;
  const R x2 = dot3(u, u) * bc<R>(0.25);
  const auto small = x2 < bc<R>(sizeof(typename Lane<R>::T) == 8 ? 0.01 : 0.25);
  R series = fma(x2, bc<R>(1.0 / 187110), bc<R>(1.0 / 18900));
  series = fma(x2, series, bc<R>(1.0 / 1890));
  series = fma(x2, series, bc<R>(1.0 / 180));
  series = fma(x2, series, bc<R>(1.0 / 12));
  const R y2 = sel(small, bc<R>(1), x2);
  const R x = sqrt_(y2);
  R s, c;
  sincos_(x, s, c);
  const R closed = (bc<R>(1) - x * c / s) / (y2 * bc<R>(4));
  const R k2 = sel(small, series, closed);
  cross(u, w, uw);
  cross(u, uw, uuw);
  for (int k = 0; k < 3; k++) rate[k] = fma(k2, uuw[k], fma(bc<R>(0.5), uw[k], w[k]));
}
template<class R, class M> OSTLER_FN void stage_rates(const M& m, Work<R, M>& w, R h) {
  for (int j = 0; j < m.nj; j++) {
    const int type = m.jnt_type[j];
    int d = m.jnt_dof[j];
    if (type == JNT_SLIDE || type == JNT_HINGE) {
      w.rk_rate[d] = w.qvel[d];
      continue;
    }
    if (type == JNT_FREE)
      for (int k = 0; k < 3; k++, d++) w.rk_rate[d] = w.qvel[d];
    rotation_rate(w.qvel + d, h, w.rk_rate + d);
  }
}

// The Runge-Kutta step's beginning, its way to a stage and what the stage adds.
template<class R, class M> OSTLER_FN void rk_begin(const M& m, Work<R, M>& w) {
  const int nq = m.nq, nv = m.nv, na = m.na;
  for (int i = 0; i < nq; i++) w.rk_q[i] = w.qpos[i];
  for (int i = 0; i < na; i++) w.rk_q[nq + i] = w.act[i];
  for (int i = 0; i < nv; i++) {
    w.rk_v[i] = w.rk_rate[i] = w.qvel[i];
    w.rk_dv[i] = w.qvel[i] * bc<R>(1.0 / 6);
    w.rk_da[i] = w.qacc[i] * bc<R>(1.0 / 6);
  }
  for (int i = 0; i < na; i++) w.rk_da[nv + i] = w.act_dot[i] * bc<R>(1.0 / 6);
}
// The rate of the stage before moves the positions from the start, for a time `a`.
template<class R, class M> OSTLER_FN void rk_stage(const M& m, Work<R, M>& w, double a) {
  const int nq = m.nq, nv = m.nv, na = m.na;
  for (int i = 0; i < nq; i++) w.qpos[i] = w.rk_q[i];
  integrate_positions(m, w.qpos, w.rk_rate, a);
  for (int i = 0; i < nv; i++) w.qvel[i] = fma(bc<R>(a), w.qacc[i], w.rk_v[i]);
  for (int i = 0; i < na; i++) w.act[i] = fma(bc<R>(a), w.act_dot[i], w.rk_q[nq + i]);
  stage_rates(m, w, bc<R>(a));
}
template<class R, class M> OSTLER_FN void rk_add(const M& m, Work<R, M>& w, double weight) {
  const int nv = m.nv, na = m.na;
  const R b = bc<R>(weight);
  for (int i = 0; i < nv; i++) {
    w.rk_dv[i] = fma(b, w.rk_rate[i], w.rk_dv[i]);
    w.rk_da[i] = fma(b, w.qacc[i], w.rk_da[i]);
  }
  for (int i = 0; i < na; i++) w.rk_da[nv + i] = fma(b, w.act_dot[i], w.rk_da[nv + i]);
}
template<class R, class M> OSTLER_FN void rk_end(const M& m, Work<R, M>& w) {
  const int nq = m.nq, nv = m.nv, na = m.na;
  const double h = m.timestep;
  for (int i = 0; i < nv; i++) {
    w.qvel[i] = fma(bc<R>(h), w.rk_da[i], w.rk_v[i]);
    w.qacc[i] = w.rk_da[i];  // as MuJoCo 4 reports it
  }
  for (int i = 0; i < nq; i++) w.qpos[i] = w.rk_q[i];
  integrate_positions(m, w.qpos, w.rk_dv, h);
  for (int i = 0; i < na; i++) w.act[i] = w.rk_q[nq + i], w.act_dot[i] = w.rk_da[nv + i];
  advance_act(m, w);
}

// The step of Euler, implicitfast and implicit after `forward`. MuJoCo takes the constraints'
// forces where damping is implicit, and these are not those of the acceleration where the solver
// has stopped early.
template<class R, class M> OSTLER_FN void step_once(const M& m, Work<R, M>& w, const Solver& s) {
  const bool forces = stops_early(m, s) && m.nslip == 0 && (m.eulerdamp || m.integrator >= IMPLICITFAST);
  if (forces)
    for (int i = 0; i < m.nv; i++) w.mstep[i] = w.qacc[i], w.qacc[i] = w.qacc[i] + w.step[i];
  Straight<R, M>::euler(m, w);
  if (forces)
    for (int i = 0; i < m.nv; i++) w.qacc[i] = w.mstep[i];
}

// One step after the first `forward`.
template<class R, class M> OSTLER_FN_BIG void step_rk4(const M& m, Work<R, M>& w, const Solver& s) {
  rk_begin(m, w);
  for (int stage = 1; stage < 4; stage++) {
    rk_stage(m, w, stage == 3 ? m.timestep : 0.5 * m.timestep);
    forward(m, w, s);
    rk_add(m, w, stage == 3 ? 1.0 / 6 : 1.0 / 3);
  }
  rk_end(m, w);
}
