// Functions on numbers beyond the engine's scalar.cuh and lanes.cuh: their bits, exponentials
// and logarithms. R is a float on a GPU and a vector of floats on a host.
//
// Bits: all but `ln_` fuse what says `fma` and nothing else, so that they are the same in
// vectors of 8 and of 16 and on a GPU.
#pragma once

#ifdef __CUDACC__
OSTLER_FN unsigned word_(float x) { return __float_as_uint(x); }
OSTLER_FN float float_(unsigned bits) { return __uint_as_float(bits); }
#else
OSTLER_FN unsigned word_(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
OSTLER_FN float float_(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
#endif
OSTLER_FN float with_sign_(float x, float sign) {
  return float_((word_(x) & 0x7fffffffu) | (word_(sign) & 0x80000000u));
}
// 2^k from the sum of a whole number k in -126..127 and 1.5 * 2^23.
OSTLER_FN float pow2_(float shifted) { return float_((word_(shifted) + 127u) << 23); }
// The exponent k of a normal number, which becomes x / 2^k in 0.71..1.42.
OSTLER_FN float split_(float& x) {
  const unsigned bits = word_(x);
  const int k = (int)(bits - 0x3f3504f3u) >> 23;
  x = float_(bits - ((unsigned)k << 23));
  return (float)k;
}
#ifndef __CUDACC__
template<int L> struct Words {
  typedef unsigned Type __attribute__((vector_size(4 * L)));
  typedef int Signed __attribute__((vector_size(4 * L)));
};
template<int L> OSTLER_FN Vec<L> with_sign_(Vec<L> x, Vec<L> sign) {
  typedef typename Words<L>::Type W;
  return {(typename Lanes<L>::Type)(((W)x.x & 0x7fffffffu) | ((W)sign.x & 0x80000000u))};
}
template<int L> OSTLER_FN Vec<L> pow2_(Vec<L> shifted) {
  typedef typename Words<L>::Type W;
  return {(typename Lanes<L>::Type)(((W)shifted.x + 127u) << 23)};
}
template<int L> OSTLER_FN Vec<L> split_(Vec<L>& x) {
  typedef typename Words<L>::Type W;
  const W bits = (W)x.x;
  const typename Words<L>::Signed k = (typename Words<L>::Signed)(bits - 0x3f3504f3u) >> 23;
  x.x = (typename Lanes<L>::Type)(bits - ((W)k << 23));
  return {__builtin_convertvector(k, typename Lanes<L>::Type)};
}
#endif

// Rounds to the nearest whole number once added (|x| < 2^22).
#define OSTLER_ROUND 12582912.0

// (e^r - 1 - r) / r^2 for |r| < 0.35: the polynomial of sim/base/src/math.rs.
template<class R> OSTLER_FN R exp_tail(R r) {
  R p = bc<R>(0.00019789262f);
  p = fma(p, r, bc<R>(0.0013945752f));
  p = fma(p, r, bc<R>(0.008333504f));
  p = fma(p, r, bc<R>(0.04166628f));
  p = fma(p, r, bc<R>(0.16666666f));
  return fma(p, r, bc<R>(0.5f));
}

// x = k ln 2 + r; returns k + 1.5 * 2^23. ln 2 is in two parts, of which the first has 12
// bits, so that its product with an exponent is exact.
template<class R> OSTLER_FN R reduce_(R x, R& r) {
  const R shifted = fma(x, bc<R>(1.44269504f), bc<R>(OSTLER_ROUND));
  const R k = shifted - bc<R>(OSTLER_ROUND);
  r = fma(k, bc<R>(-0.69311523f), x);
  r = fma(k, bc<R>(-3.1946184e-5f), r);
  return shifted;
}

// e^x - 1 for x up to 0, without cancellation: 2^k (e^r - 1) + (2^k - 1).
template<class R> OSTLER_FN R exp_m1(R x) {
  // Below, the answer is -1. NaN stays: the second of two where one is none.
  x = max_(bc<R>(-30.0), x);
  R r;
  const R scale = pow2_(reduce_(x, r));
  return fma(scale, fma(r * r, exp_tail(r), r), scale - bc<R>(1.0));
}

// e^x; infinity above 88.8, 0 below -104.
template<class R> OSTLER_FN R exp_(R x) {
  x = min_(bc<R>(90.0), max_(bc<R>(-105.0), x));
  R r;
  const R k = reduce_(x, r) - bc<R>(OSTLER_ROUND);
  const R e = bc<R>(1.0) + fma(r * r, exp_tail(r), r);
  // In two halves, each of which has an exponent.
  const R half = rint_(k * bc<R>(0.5));
  const R low = pow2_(half + bc<R>(OSTLER_ROUND)), high = pow2_((k - half) + bc<R>(OSTLER_ROUND));
  return e * low * high;
}

// The natural logarithm of a normal number above 0, of 0 (minus infinity), or infinity; NaN
// below 0. Subnormal numbers count as 0. The polynomial of sim/base/src/math.rs.
template<class R> OSTLER_FN R ln_(R x) {
  R m = x;
  const R k = split_(m);
  const R f = m - bc<R>(1.0), f2 = f * f;
  R q = bc<R>(0.0675757f);
  q = fma(q, f, bc<R>(-0.11694335f));
  q = fma(q, f, bc<R>(0.11893512f));
  q = fma(q, f, bc<R>(-0.124030836f));
  q = fma(q, f, bc<R>(0.14218554f));
  q = fma(q, f, bc<R>(-0.1666809f));
  q = fma(q, f, bc<R>(0.20002167f));
  q = fma(q, f, bc<R>(-0.2500001f));
  q = fma(q, f, bc<R>(0.3333331f));
  const R tail = fma(f2 * f, q, k * bc<R>(3.1946184e-5f));
  R y = fma(k, bc<R>(0.69311523f), f - fma(bc<R>(0.5), f2, -tail));
  const R infinity = bc<R>(1e308), nan = infinity - infinity;
  y = sel(x < bc<R>(1.17549435e-38f), -infinity, y);
  y = sel(x < bc<R>(0.0), nan, y);
  // Infinity, or not a number.
  return sel(x < infinity, y, x);
}
