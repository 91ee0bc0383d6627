// The parts of a step that know no branch on values. The generic kernel runs their
// loops; a specialised kernel replaces this struct by straight-line code that was
// recorded from the same loops for its robot (trace.cpp).
#pragma once

template<class R, class M> OSTLER_FN_PART void step_euler(const M& m, Work<R, M>& w);
template<class R, class M> OSTLER_FN bool couples(const M& m, Work<R, M>& w);

template<class R, class M> struct Straight {
  typedef Work<R, M> W;
  // qpos, qvel, act, ctrl -> poses, axes, velocities, mass matrix, smooth forces
  static OSTLER_FN void smooth(const M& m, W& w) { smooth_dynamics(m, w); }
  // -> everything of the constraints but contacts
  static OSTLER_FN void rows(const M& m, W& w) { constraint_rows(m, w); }
  // poses -> centres and axes of the geoms that can collide
  static OSTLER_FN void geoms(const M& m, W& w) { place_geoms(m, w); }
  // qpos, qvel -> poses and velocities
  static OSTLER_FN void poses(const M& m, W& w) {
    kinematics(m, w);
    body_velocities(m, w, w.qvel, w.vel);
  }
  // tmp = body velocities for qacc, for step
  static OSTLER_FN void velocities_qacc(const M& m, W& w) { body_velocities(m, w, w.qacc, w.tmp); }
  static OSTLER_FN void velocities_step(const M& m, W& w) { body_velocities(m, w, w.step, w.tmp); }
  // mstep = M qacc - smooth
  static OSTLER_FN void residual(const M& m, W& w) {
    mass_mul(m, w, w.qacc, w.mstep);
    for (int i = 0; i < m.nv; i++) w.mstep[i] = w.mstep[i] - w.smooth[i];
  }
  // grad = M step
  static OSTLER_FN void mass_step(const M& m, W& w) { mass_mul(m, w, w.step, w.grad); }
  // grad = mstep, hess = M on the static pattern
  static OSTLER_FN void start_system(const M& m, W& w) { copy_system(m, w, m.hrow_adr, m.hrow_col); }
  // Whether the contacts that push couple degrees of freedom beyond the static pattern, and
  // as start_system and solve_system for that case.
  static OSTLER_FN bool coupled(const M& m, W& w) { return m.dense && couples(m, w); }
  static OSTLER_FN void start_coupled(const M& m, W& w) { copy_system(m, w, w.pat_adr, w.pat_col); }
  static OSTLER_FN void solve_coupled(const M& m, W& w) { newton_step(m, w, w.pat_adr, w.pat_col); }
  // grad and hess += contact loads
  static OSTLER_FN void loads(const M& m, W& w) { contact_loads(m, w); }
  // step = -hess^-1 grad on the static pattern
  static OSTLER_FN void solve_system(const M& m, W& w) { newton_step(m, w, m.hrow_adr, m.hrow_col); }
  // qpos, qvel, act after a time step of Euler or implicitfast
  static OSTLER_FN void euler(const M& m, W& w) { step_euler(m, w); }
};
