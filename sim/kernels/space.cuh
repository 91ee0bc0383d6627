// Vectors of three, quaternions and spatial vectors over R.
//
// Spatial motion (angular, linear) and force (moment, force) are taken about one
// reference point per kinematic tree, in world axes. A spatial inertia is
//   0..5 rotational part xx yy zz xy xz yz, 6..8 mass times centre of mass, 9 mass.
#pragma once

template<class R> OSTLER_FN R dot3(const R* a, const R* b) {
  return fma(a[2], b[2], fma(a[1], b[1], a[0] * b[0]));
}
template<class R> OSTLER_FN R dot6(const R* a, const R* b) {
  return fma(a[5], b[5], fma(a[4], b[4], fma(a[3], b[3], fma(a[2], b[2], fma(a[1], b[1], a[0] * b[0])))));
}
template<class R> OSTLER_FN void cross(const R* a, const R* b, R* o) {
  const R x = fms(a[1], b[2], a[2] * b[1]);
  const R y = fms(a[2], b[0], a[0] * b[2]);
  const R z = fms(a[0], b[1], a[1] * b[0]);
  o[0] = x, o[1] = y, o[2] = z;
}
// o += a x b
template<class R> OSTLER_FN void cross_add(const R* a, const R* b, R* o) {
  const R x = fma(a[1], b[2], fnma(a[2], b[1], o[0]));
  const R y = fma(a[2], b[0], fnma(a[0], b[2], o[1]));
  const R z = fma(a[0], b[1], fnma(a[1], b[0], o[2]));
  o[0] = x, o[1] = y, o[2] = z;
}
template<class R> OSTLER_FN void quat_mul(const R* a, const R* b, R* o) {
  const R w = fnma(a[3], b[3], fnma(a[2], b[2], fms(a[0], b[0], a[1] * b[1])));
  const R x = fnma(a[3], b[2], fma(a[2], b[3], fma(a[1], b[0], a[0] * b[1])));
  const R y = fma(a[3], b[1], fma(a[2], b[0], fnma(a[1], b[3], a[0] * b[2])));
  const R z = fma(a[3], b[0], fnma(a[2], b[1], fma(a[1], b[2], a[0] * b[3])));
  o[0] = w, o[1] = x, o[2] = y, o[3] = z;
}
// Rotation matrix of a quaternion of unit length.
template<class R> OSTLER_FN void quat_mat(const R* q, R* m) {
  const R x2 = q[1] + q[1], y2 = q[2] + q[2], z2 = q[3] + q[3];
  const R xx = q[1] * x2, yy = q[2] * y2, zz = q[3] * z2;
  const R xy = q[1] * y2, xz = q[1] * z2, yz = q[2] * z2;
  const R one = bc<R>(1);
  m[0] = one - (yy + zz), m[1] = fnma(q[0], z2, xy), m[2] = fma(q[0], y2, xz);
  m[3] = fma(q[0], z2, xy), m[4] = one - (xx + zz), m[5] = fnma(q[0], x2, yz);
  m[6] = fnma(q[0], y2, xz), m[7] = fma(q[0], x2, yz), m[8] = one - (xx + yy);
}
template<class R> OSTLER_FN void quat_unit(R* q) {
  const R n2 = fma(q[3], q[3], fma(q[2], q[2], fma(q[1], q[1], q[0] * q[0])));
  // A zero quaternion becomes the identity, as MuJoCo's mju_normalize4 has it.
  const auto none = n2 < bc<R>(Tiny<R>::value * Tiny<R>::value);
  const R s = recip_(sqrt_(sel(none, bc<R>(1), n2)));
  q[0] = sel(none, bc<R>(1), q[0] * s);
  for (int k = 1; k < 4; k++) q[k] = sel(none, bc<R>(0), q[k] * s);
}
template<class R> OSTLER_FN void mat_vec(const R* m, const R* v, R* o) {
  const R x = dot3(m, v), y = dot3(m + 3, v), z = dot3(m + 6, v);
  o[0] = x, o[1] = y, o[2] = z;
}
// A number of a table, or one of every lane, in all lanes: `in_lanes<R>(x)`.
template<class R, class T> struct InLanes { static OSTLER_FN R of(T x) { return bc<R>(x); } };
template<class R> struct InLanes<R, R> { static OSTLER_FN R of(const R& x) { return x; } };
template<class R, class T> OSTLER_FN R in_lanes(const T& x) { return InLanes<R, T>::of(x); }
// Matrix times a vector, of a table mostly.
template<class R, class T> OSTLER_FN void mat_con(const R* m, const T* c, R* o) {
  const R v[3] = {in_lanes<R>(c[0]), in_lanes<R>(c[1]), in_lanes<R>(c[2])};
  mat_vec(m, v, o);
}
// A table's matrix times a vector.
template<class R, class T> OSTLER_FN void con_vec(const T* m, const R* v, R* o) {
  for (int i = 0; i < 3; i++) o[i] = fma(bc<R>(m[3 * i + 2]), v[2], fma(bc<R>(m[3 * i + 1]), v[1], bc<R>(m[3 * i]) * v[0]));
}
// f = I v
template<class R> OSTLER_FN void inertia_mul(const R* I, const R* v, R* f) {
  f[0] = fnma(I[8], v[4], fma(I[7], v[5], fma(I[4], v[2], fma(I[3], v[1], I[0] * v[0]))));
  f[1] = fnma(I[6], v[5], fma(I[8], v[3], fma(I[5], v[2], fma(I[1], v[1], I[3] * v[0]))));
  f[2] = fnma(I[7], v[3], fma(I[6], v[4], fma(I[2], v[2], fma(I[5], v[1], I[4] * v[0]))));
  f[3] = fma(I[8], v[1], fnma(I[7], v[2], I[9] * v[3]));
  f[4] = fma(I[6], v[2], fnma(I[8], v[0], I[9] * v[4]));
  f[5] = fma(I[7], v[0], fnma(I[6], v[1], I[9] * v[5]));
}
// a += v x* f: motion crossed with motion (Featherstone's crm).
template<class R> OSTLER_FN void motion_cross_add(const R* v, const R* u, R* o) {
  cross_add(v, u, o);
  cross_add(v, u + 3, o + 3);
  cross_add(v + 3, u, o + 3);
}
// Motion crossed with force (Featherstone's crf).
template<class R> OSTLER_FN void force_cross_add(const R* v, const R* f, R* o) {
  cross_add(v, f, o);
  cross_add(v + 3, f + 3, o);
  cross_add(v, f + 3, o + 3);
}
