// Vectors of 8 or 16 floats, one environment per lane (host only).
//
// Eight lanes are AVX2 where the compiler may use it, else what it makes of
// vectors of eight; sixteen lanes exist with AVX-512 alone.
#pragma once

typedef float f32x8 __attribute__((vector_size(32)));
typedef int i32x8 __attribute__((vector_size(32)));

template<int L> struct Vec;
template<int L> struct LaneMask;
template<> struct Vec<8> { f32x8 x; };
template<> struct LaneMask<8> { i32x8 x; };
template<int L> struct Lane<Vec<L>> { typedef float T; typedef LaneMask<L> Mask; enum { N = L }; };

template<> struct Broadcast<Vec<8>> {
  static OSTLER_FN Vec<8> of(double d) {
    const float f = (float)d;
    return {f32x8{f, f, f, f, f, f, f, f}};
  }
};
OSTLER_FN Vec<8> operator+(Vec<8> a, Vec<8> b) { return {a.x + b.x}; }
OSTLER_FN Vec<8> operator-(Vec<8> a, Vec<8> b) { return {a.x - b.x}; }
OSTLER_FN Vec<8> operator*(Vec<8> a, Vec<8> b) { return {a.x * b.x}; }
OSTLER_FN Vec<8> operator/(Vec<8> a, Vec<8> b) { return {a.x / b.x}; }
OSTLER_FN Vec<8> operator-(Vec<8> a) { return {-a.x}; }
OSTLER_FN LaneMask<8> operator<(Vec<8> a, Vec<8> b) { return {a.x < b.x}; }
OSTLER_FN LaneMask<8> operator>(Vec<8> a, Vec<8> b) { return {a.x > b.x}; }
OSTLER_FN LaneMask<8> operator<=(Vec<8> a, Vec<8> b) { return {a.x <= b.x}; }
OSTLER_FN LaneMask<8> operator>=(Vec<8> a, Vec<8> b) { return {a.x >= b.x}; }
OSTLER_FN LaneMask<8> operator&(LaneMask<8> a, LaneMask<8> b) { return {a.x & b.x}; }
OSTLER_FN LaneMask<8> operator|(LaneMask<8> a, LaneMask<8> b) { return {a.x | b.x}; }
OSTLER_FN LaneMask<8> operator!(LaneMask<8> a) { return {~a.x}; }
OSTLER_FN LaneMask<8> mask_xor(LaneMask<8> a, LaneMask<8> b) { return {a.x ^ b.x}; }
template<> OSTLER_FN LaneMask<8> mask_of<LaneMask<8>>(bool b) {
  const int v = b ? -1 : 0;
  return {i32x8{v, v, v, v, v, v, v, v}};
}
#ifdef __AVX2__
OSTLER_FN Vec<8> sel(LaneMask<8> m, Vec<8> a, Vec<8> b) {
  return {(f32x8)_mm256_blendv_ps((__m256)b.x, (__m256)a.x, (__m256)m.x)};
}
OSTLER_FN bool any(LaneMask<8> m) { return _mm256_movemask_ps((__m256)m.x) != 0; }
OSTLER_FN Vec<8> sqrt_(Vec<8> a) { return {(f32x8)_mm256_sqrt_ps((__m256)a.x)}; }
OSTLER_FN Vec<8> rint_(Vec<8> a) { return {(f32x8)_mm256_round_ps((__m256)a.x, 8)}; }
OSTLER_FN Vec<8> min_(Vec<8> a, Vec<8> b) { return {(f32x8)_mm256_min_ps((__m256)a.x, (__m256)b.x)}; }
OSTLER_FN Vec<8> max_(Vec<8> a, Vec<8> b) { return {(f32x8)_mm256_max_ps((__m256)a.x, (__m256)b.x)}; }
#else
OSTLER_FN Vec<8> sel(LaneMask<8> m, Vec<8> a, Vec<8> b) { return {m.x ? a.x : b.x}; }
OSTLER_FN bool any(LaneMask<8> m) {
  int r = 0;
  for (int i = 0; i < 8; i++) r |= m.x[i];
  return r != 0;
}
OSTLER_FN Vec<8> sqrt_(Vec<8> a) {
  Vec<8> r;
  for (int i = 0; i < 8; i++) r.x[i] = __builtin_sqrtf(a.x[i]);
  return r;
}
// Round to nearest even by the 1.5 * 2^23 trick; numbers beyond it are whole already.
OSTLER_FN Vec<8> rint_(Vec<8> a) {
  const Vec<8> big = Broadcast<Vec<8>>::of(12582912.0);
  const Vec<8> r = (a + big) - big;
  const Vec<8> lim = Broadcast<Vec<8>>::of(4194304.0);
  return sel((a < lim) & (a > -lim), r, a);
}
OSTLER_FN Vec<8> min_(Vec<8> a, Vec<8> b) { return sel(a < b, a, b); }
OSTLER_FN Vec<8> max_(Vec<8> a, Vec<8> b) { return sel(a > b, a, b); }
#endif
#if defined(__AVX2__) && defined(__FMA__)
OSTLER_FN Vec<8> fma(Vec<8> a, Vec<8> b, Vec<8> c) { return {(f32x8)_mm256_fmadd_ps((__m256)a.x, (__m256)b.x, (__m256)c.x)}; }
OSTLER_FN Vec<8> fms(Vec<8> a, Vec<8> b, Vec<8> c) { return {(f32x8)_mm256_fmsub_ps((__m256)a.x, (__m256)b.x, (__m256)c.x)}; }
OSTLER_FN Vec<8> fnma(Vec<8> a, Vec<8> b, Vec<8> c) { return {(f32x8)_mm256_fnmadd_ps((__m256)a.x, (__m256)b.x, (__m256)c.x)}; }
#else
OSTLER_FN Vec<8> fma(Vec<8> a, Vec<8> b, Vec<8> c) { return {a.x * b.x + c.x}; }
#endif
OSTLER_FN void load(Vec<8>& v, const float* p) { __builtin_memcpy(&v.x, p, 32); }
OSTLER_FN void store(float* p, Vec<8> v) { __builtin_memcpy(p, &v.x, 32); }
OSTLER_FN float lane_get(Vec<8> v, int i) { return v.x[i]; }
OSTLER_FN void lane_set(Vec<8>& v, int i, float f) { v.x[i] = f; }
OSTLER_FN bool lane_get(LaneMask<8> m, int i) { return m.x[i] != 0; }
OSTLER_FN void lane_set(LaneMask<8>& m, int i, bool b) { m.x[i] = b ? -1 : 0; }

#ifdef __AVX512F__
template<> struct Vec<16> { __m512 x; };
template<> struct LaneMask<16> { __mmask16 x; };
template<> struct Broadcast<Vec<16>> {
  static OSTLER_FN Vec<16> of(double d) { return {_mm512_set1_ps((float)d)}; }
};
OSTLER_FN Vec<16> operator+(Vec<16> a, Vec<16> b) { return {a.x + b.x}; }
OSTLER_FN Vec<16> operator-(Vec<16> a, Vec<16> b) { return {a.x - b.x}; }
OSTLER_FN Vec<16> operator*(Vec<16> a, Vec<16> b) { return {a.x * b.x}; }
OSTLER_FN Vec<16> operator/(Vec<16> a, Vec<16> b) { return {a.x / b.x}; }
OSTLER_FN Vec<16> operator-(Vec<16> a) { return {-a.x}; }
OSTLER_FN LaneMask<16> operator<(Vec<16> a, Vec<16> b) { return {_mm512_cmp_ps_mask(a.x, b.x, _CMP_LT_OQ)}; }
OSTLER_FN LaneMask<16> operator>(Vec<16> a, Vec<16> b) { return {_mm512_cmp_ps_mask(a.x, b.x, _CMP_GT_OQ)}; }
OSTLER_FN LaneMask<16> operator<=(Vec<16> a, Vec<16> b) { return {_mm512_cmp_ps_mask(a.x, b.x, _CMP_LE_OQ)}; }
OSTLER_FN LaneMask<16> operator>=(Vec<16> a, Vec<16> b) { return {_mm512_cmp_ps_mask(a.x, b.x, _CMP_GE_OQ)}; }
OSTLER_FN LaneMask<16> operator&(LaneMask<16> a, LaneMask<16> b) { return {(__mmask16)(a.x & b.x)}; }
OSTLER_FN LaneMask<16> operator|(LaneMask<16> a, LaneMask<16> b) { return {(__mmask16)(a.x | b.x)}; }
OSTLER_FN LaneMask<16> operator!(LaneMask<16> a) { return {(__mmask16)~a.x}; }
OSTLER_FN LaneMask<16> mask_xor(LaneMask<16> a, LaneMask<16> b) { return {(__mmask16)(a.x ^ b.x)}; }
template<> OSTLER_FN LaneMask<16> mask_of<LaneMask<16>>(bool b) { return {(__mmask16)(b ? 0xffff : 0)}; }
OSTLER_FN Vec<16> sel(LaneMask<16> m, Vec<16> a, Vec<16> b) { return {_mm512_mask_blend_ps(m.x, b.x, a.x)}; }
OSTLER_FN bool any(LaneMask<16> m) { return m.x != 0; }
OSTLER_FN Vec<16> sqrt_(Vec<16> a) { return {_mm512_sqrt_ps(a.x)}; }
OSTLER_FN Vec<16> rint_(Vec<16> a) { return {_mm512_roundscale_ps(a.x, 8)}; }
OSTLER_FN Vec<16> min_(Vec<16> a, Vec<16> b) { return {_mm512_min_ps(a.x, b.x)}; }
OSTLER_FN Vec<16> max_(Vec<16> a, Vec<16> b) { return {_mm512_max_ps(a.x, b.x)}; }
OSTLER_FN Vec<16> fma(Vec<16> a, Vec<16> b, Vec<16> c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
OSTLER_FN Vec<16> fms(Vec<16> a, Vec<16> b, Vec<16> c) { return {_mm512_fmsub_ps(a.x, b.x, c.x)}; }
OSTLER_FN Vec<16> fnma(Vec<16> a, Vec<16> b, Vec<16> c) { return {_mm512_fnmadd_ps(a.x, b.x, c.x)}; }
OSTLER_FN void load(Vec<16>& v, const float* p) { v.x = _mm512_loadu_ps(p); }
OSTLER_FN void store(float* p, Vec<16> v) { _mm512_storeu_ps(p, v.x); }
OSTLER_FN float lane_get(Vec<16> v, int i) { return v.x[i]; }
OSTLER_FN void lane_set(Vec<16>& v, int i, float f) { v.x[i] = f; }
OSTLER_FN bool lane_get(LaneMask<16> m, int i) { return (m.x >> i) & 1; }
OSTLER_FN void lane_set(LaneMask<16>& m, int i, bool b) {
  m.x = (__mmask16)(b ? m.x | (1u << i) : m.x & ~(1u << i));
}
#endif
template<int L> OSTLER_FN Vec<L> abs_(Vec<L> a) { return max_(a, -a); }
