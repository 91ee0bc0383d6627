// Motion in space, and motion in one plane with what is zero left out.
//
// Robots whose joints all move in one plane (most of the classic tasks) need a third of
// the numbers. Both structs below have the same functions over the same arrays, so that
// smooth.cuh is written once; components that a plane leaves out are zero
// and stay written as such for code that reads all of them. Specialised kernels leave out zeros
// by themselves.
#pragma once

struct Space {
  template<class R> OSTLER_FN void mul(const R* a, const R* b, R* o) const { quat_mul(a, b, o); }
  template<class R> OSTLER_FN void mat(const R* q, R* m) const { quat_mat(q, m); }
  template<class R, class T> OSTLER_FN void turn(const R* m, const T* c, R* o) const { mat_con(m, c, o); }
  // A hinge's axis in the world, and its motion about a point o from it.
  template<class R, class T> OSTLER_FN void axis(const R* m, const T* c, R* o) const { mat_con(m, c, o); }
  template<class R> OSTLER_FN void moment(const R* o, const R* s, R* l) const { cross(o, s, l); }
  // f(index) for the numbers of a motion or force that may differ from zero.
  template<class F> OSTLER_FN void each(F&& f) const {
    for (int k = 0; k < 6; k++) f(k);
  }
  // The same of an inertia, as inward sums need it.
  template<class F> OSTLER_FN void each_inertia(F&& f) const {
    for (int k = 0; k < 10; k++) f(k);
  }
  template<class R> OSTLER_FN R dot(const R* a, const R* b) const { return dot6(a, b); }
  template<class R> OSTLER_FN void inertia(const R* I, const R* v, R* f) const { inertia_mul(I, v, f); }
  template<class R> OSTLER_FN void motion(const R* v, const R* u, R* o) const { motion_cross_add(v, u, o); }
  template<class R> OSTLER_FN void force(const R* v, const R* f, R* o) const { force_cross_add(v, f, o); }
};

// Rotation about axis r of the world, motion along the two others: lo < hi, and in
// cyclic order (r, a, b). Sums run in the order in which Space has them: for y and z both
// give the same bits where what is left out is zero.
template<int Axis> struct Plane {
  enum { r = Axis, a = (r + 1) % 3, b = (r + 2) % 3, lo = r == 0 ? 1 : 0, hi = r == 2 ? 1 : 2 };

  template<class R> OSTLER_FN void mul(const R* p, const R* q, R* o) const {
    const R w = fnma(p[1 + r], q[1 + r], p[0] * q[0]);
    const R x = fma(p[1 + r], q[0], p[0] * q[1 + r]);
    o[0] = w, o[1 + r] = x, o[1 + lo] = o[1 + hi] = bc<R>(0);
  }
  template<class R> OSTLER_FN void mat(const R* q, R* m) const {
    const R twice = q[1 + r] + q[1 + r], zero = bc<R>(0);
    const R c = bc<R>(1) - q[1 + r] * twice, s = q[0] * twice;
    m[4 * a] = m[4 * b] = c, m[3 * b + a] = s, m[3 * a + b] = -s;
    m[4 * r] = bc<R>(1);
    m[3 * r + a] = m[3 * r + b] = m[3 * a + r] = m[3 * b + r] = zero;
  }
  template<class R, class T> OSTLER_FN void turn(const R* m, const T* c, R* o) const {
    const R x = in_lanes<R>(c[lo]), y = in_lanes<R>(c[hi]);
    o[lo] = fma(m[3 * lo + hi], y, m[4 * lo] * x);
    o[hi] = fma(m[4 * hi], y, m[3 * hi + lo] * x);
    o[r] = in_lanes<R>(c[r]);
  }
  template<class R, class T> OSTLER_FN void axis(const R*, const T* c, R* o) const {
    o[lo] = o[hi] = bc<R>(0), o[r] = bc<R>(c[r]);
  }
  template<class R> OSTLER_FN void moment(const R* o, const R* s, R* l) const {
    l[a] = o[b] * s[r], l[b] = -o[a] * s[r], l[r] = bc<R>(0);
  }
  template<class F> OSTLER_FN void each(F&& f) const { f(r), f(3 + lo), f(3 + hi); }
  template<class F> OSTLER_FN void each_inertia(F&& f) const { f(r), f(6 + lo), f(6 + hi), f(9); }
  template<class R> OSTLER_FN R dot(const R* x, const R* y) const {
    return fma(x[3 + hi], y[3 + hi], fma(x[3 + lo], y[3 + lo], x[r] * y[r]));
  }
  template<class R> OSTLER_FN void inertia(const R* I, const R* v, R* f) const {
    f[r] = fnma(I[6 + b], v[3 + a], fma(I[6 + a], v[3 + b], I[r] * v[r]));
    f[3 + a] = fnma(I[6 + b], v[r], I[9] * v[3 + a]);
    f[3 + b] = fma(I[6 + a], v[r], I[9] * v[3 + b]);
  }
  template<class R> OSTLER_FN void motion(const R* v, const R* u, R* o) const {
    o[3 + a] = fma(v[3 + b], u[r], fnma(v[r], u[3 + b], o[3 + a]));
    o[3 + b] = fnma(v[3 + a], u[r], fma(v[r], u[3 + a], o[3 + b]));
  }
  template<class R> OSTLER_FN void force(const R* v, const R* f, R* o) const {
    o[r] = fma(v[3 + a], f[3 + b], fnma(v[3 + b], f[3 + a], o[r]));
    o[3 + a] = fnma(v[r], f[3 + b], o[3 + a]);
    o[3 + b] = fma(v[r], f[3 + a], o[3 + b]);
  }
};

// f(Space or Plane), as the robot has it.
template<class M, class F> OSTLER_FN void where_it_moves(const M& m, F&& f) {
  switch (m.planar) {
    case 1: f(Plane<0>()); break;
    case 2: f(Plane<1>()); break;
    case 3: f(Plane<2>()); break;
    default: f(Space());
  }
}
