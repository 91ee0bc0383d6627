// The scalar type R of the kernels: a double, a float, or a vector of floats with
// one environment per lane. Code is written once over R, without branches on
// values: `sel(mask, a, b)` picks per lane, `any(mask)` asks whether a block of
// work can be left out.
//
// Bits: every product-sum that is to be fused says `fma`; the compiler may fuse
// nothing by itself (-ffp-contract=off, --fmad=false). Where the processor has no
// fused multiply-add, `fma` rounds twice, alike in all lanes.
#pragma once

#ifdef __CUDACC__
#define OSTLER_FN __device__ __forceinline__
#define OSTLER_INLINE
#define OSTLER_FN_BIG __device__ __noinline__
#define OSTLER_FN_PART OSTLER_FN_BIG
// Called from several places. One copy on GPUs, whose compilers take seconds for some.
#define OSTLER_FN_ONE OSTLER_FN_BIG
// A loop that copies: unrolled, it is long and no faster.
#define OSTLER_ROLLED _Pragma("unroll 1")
// A loop whose turns do not depend on each other.
#define OSTLER_SIDE_BY_SIDE
#else
#ifdef OSTLER_SMALL
// Compiled in half the time, for programs that run for seconds.
#define OSTLER_FN inline
#define OSTLER_INLINE
#else
#define OSTLER_FN inline __attribute__((always_inline))
#define OSTLER_INLINE __attribute__((always_inline))  // of a lambda
#endif
#define OSTLER_FN_BIG inline __attribute__((noinline))
// Called from several places, or long: in one piece, compilers take minutes.
#define OSTLER_FN_PART __attribute__((noinline))  // templates
#define OSTLER_FN_ONE OSTLER_FN
#define OSTLER_ROLLED
#define OSTLER_SIDE_BY_SIDE _Pragma("GCC ivdep")
#endif

// ---- one number ----

template<class R> struct Lane;  // T: type of one lane; N: number of lanes; Mask
template<> struct Lane<float> { typedef float T; typedef bool Mask; enum { N = 1 }; };
template<> struct Lane<double> { typedef double T; typedef bool Mask; enum { N = 1 }; };

// A constant in all lanes: `bc<R>(x)`.
template<class R> struct Broadcast;
template<> struct Broadcast<float> { static OSTLER_FN float of(double x) { return (float)x; } };
template<> struct Broadcast<double> { static OSTLER_FN double of(double x) { return x; } };
template<class R> OSTLER_FN R bc(double x) { return Broadcast<R>::of(x); }

#ifdef __CUDACC__
OSTLER_FN float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
OSTLER_FN double fma(double a, double b, double c) { return __fma_rn(a, b, c); }
OSTLER_FN float sqrt_(float x) { return __fsqrt_rn(x); }
OSTLER_FN double sqrt_(double x) { return __dsqrt_rn(x); }
OSTLER_FN float rint_(float x) { return rintf(x); }
OSTLER_FN double rint_(double x) { return rint(x); }
#else
#ifdef __FMA__
OSTLER_FN float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
OSTLER_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
OSTLER_FN float fma(float a, float b, float c) { return a * b + c; }
OSTLER_FN double fma(double a, double b, double c) { return a * b + c; }
#endif
OSTLER_FN float sqrt_(float x) { return __builtin_sqrtf(x); }
OSTLER_FN double sqrt_(double x) { return __builtin_sqrt(x); }
OSTLER_FN float rint_(float x) { return __builtin_nearbyintf(x); }
OSTLER_FN double rint_(double x) { return __builtin_nearbyint(x); }
#endif
#ifdef __CUDACC__
OSTLER_FN int ctz_(unsigned long long x) { return __ffsll((long long)x) - 1; }
#else
OSTLER_FN int ctz_(unsigned long long x) { return __builtin_ctzll(x); }
#endif
OSTLER_FN bool any(bool m) { return m; }
OSTLER_FN float sel(bool m, float a, float b) { return m ? a : b; }
OSTLER_FN double sel(bool m, double a, double b) { return m ? a : b; }
OSTLER_FN float min_(float a, float b) { return a < b ? a : b; }
OSTLER_FN double min_(double a, double b) { return a < b ? a : b; }
OSTLER_FN float max_(float a, float b) { return a > b ? a : b; }
OSTLER_FN double max_(double a, double b) { return a > b ? a : b; }
OSTLER_FN float abs_(float a) { return a < 0 ? -a : a; }
OSTLER_FN double abs_(double a) { return a < 0 ? -a : a; }
OSTLER_FN bool mask_xor(bool a, bool b) { return a != b; }
template<class M> OSTLER_FN M mask_of(bool b);
template<> OSTLER_FN bool mask_of<bool>(bool b) { return b; }
OSTLER_FN float lane_get(float x, int) { return x; }
OSTLER_FN double lane_get(double x, int) { return x; }
OSTLER_FN void lane_set(float& x, int, float v) { x = v; }
OSTLER_FN void lane_set(double& x, int, double v) { x = v; }
OSTLER_FN bool lane_get(bool m, int) { return m; }
OSTLER_FN void lane_set(bool& m, int, bool v) { m = v; }
OSTLER_FN void load(float& x, const float* p) { x = *p; }
OSTLER_FN void load(double& x, const double* p) { x = *p; }
OSTLER_FN void store(float* p, float x) { *p = x; }
OSTLER_FN void store(double* p, double x) { *p = x; }

#ifndef __CUDACC__
#include "lanes.cuh"
#endif

// a*b - c and c - a*b, rounded once.
template<class R> OSTLER_FN R fms(R a, R b, R c) { return fma(a, b, -c); }
template<class R> OSTLER_FN R fnma(R a, R b, R c) { return fma(-a, b, c); }
template<class R> OSTLER_FN R recip_(R x) { return bc<R>(1) / x; }

// Sine and cosine. Single precision: reduction by multiples of pi/2 in three
// parts, then minimax polynomials (Cephes sinf, cosf): within 2 units in the last
// place for |x| < 8000. Double: the C library's.
template<class R> OSTLER_FN void sincos_(R x, R& s, R& c) {
  const R k = rint_(x * bc<R>(0.63661977236758134));
  R r = fma(k, bc<R>(-1.5703125), x);
  r = fma(k, bc<R>(-4.83751296997070312e-4), r);
  r = fma(k, bc<R>(-7.54978995489188216e-8), r);
  const R z = r * r;
  R ps = fma(z, bc<R>(-1.9515295891e-4), bc<R>(8.3321608736e-3));
  ps = fma(z, ps, bc<R>(-1.6666654611e-1));
  const R sp = fma(r * z, ps, r);
  R pc = fma(z, bc<R>(2.443315711809948e-5), bc<R>(-1.388731625493765e-3));
  pc = fma(z, pc, bc<R>(4.166664568298827e-2));
  const R cp = fma(z * z, pc, fma(z, bc<R>(-0.5), bc<R>(1)));
  // k modulo 4, in 0..3
  const R q = fma(bc<R>(-4), rint_(fma(k, bc<R>(0.25), bc<R>(-0.375))), k);
  const auto odd = ((q > bc<R>(0.5)) & (q < bc<R>(1.5))) | (q > bc<R>(2.5));
  const R ss = sel(odd, cp, sp), cc = sel(odd, sp, cp);
  s = sel(q > bc<R>(1.5), -ss, ss);
  c = sel((q > bc<R>(0.5)) & (q < bc<R>(2.5)), -cc, cc);
}
#ifdef __CUDACC__
OSTLER_FN void sincos_(double x, double& s, double& c) { s = sin(x); c = cos(x); }
#else
OSTLER_FN void sincos_(double x, double& s, double& c) {
  s = __builtin_sin(x);
  c = __builtin_cos(x);
}
#endif

// Angle of the vector (c, s) in 0..pi, for s >= 0. Single precision: reduction to
// |x| < tan(pi/8), then a minimax polynomial (Cephes atanf).
template<class R> OSTLER_FN R atan2_(R s, R c) {
  const R ac = abs_(c);
  const R big = max_(s, ac), small = min_(s, ac);
  R x = small / max_(big, bc<R>(1e-30));
  const auto half = x > bc<R>(0.41421356237309503);
  x = sel(half, (x - bc<R>(1)) / (x + bc<R>(1)), x);
  const R z = x * x;
  R p = fma(z, bc<R>(8.05374449538e-2), bc<R>(-1.38776856032e-1));
  p = fma(z, p, bc<R>(1.99777106478e-1));
  p = fma(z, p, bc<R>(-3.33329491539e-1));
  R a = fma(x * z, p, x);
  a = sel(half, a + bc<R>(0.78539816339744831), a);
  a = sel(s > ac, bc<R>(1.57079632679489662) - a, a);
  return sel(c < bc<R>(0), bc<R>(3.14159265358979324) - a, a);
}
#ifdef __CUDACC__
OSTLER_FN double atan2_(double s, double c) { return atan2(s, c); }
#else
OSTLER_FN double atan2_(double s, double c) { return __builtin_atan2(s, c); }
#endif

// Below this a length counts as zero (MuJoCo's mjMINVAL in double).
template<class R> struct Tiny { static constexpr double value = 1e-15; };
template<> struct Tiny<float> { static constexpr double value = 1e-10; };
#ifndef __CUDACC__
template<int N> struct Tiny<Vec<N>> { static constexpr double value = 1e-10; };
#endif
