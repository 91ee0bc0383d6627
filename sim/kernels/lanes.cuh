// Vectors of floats, one environment per lane (host only): 4 lanes with what every
// x86-64 has, 8 with AVX2 and FMA, 16 with AVX-512. Masks are all-ones lanes, or
// bits with AVX-512. Comparisons with a number that is not one are false.
#pragma once

template<int L> struct Vec;
template<int L> struct LaneMask;
// Not __m128 and the like, which may alias everything in GCC: behind each store the
// compiler would read all pointers and counts of the tables again.
template<int L> struct Lanes { typedef float Type __attribute__((vector_size(4 * L))); };
template<int L> struct Lane<Vec<L>> { typedef float T; typedef LaneMask<L> Mask; enum { N = L }; };

// Operators and functions of a vector type, from the compiler's intrinsics
// P##name and the three that masks are made with.
#define OSTLER_LANES_ARITHMETIC(L, P) \
  template<> struct Broadcast<Vec<L>> { \
    static OSTLER_FN Vec<L> of(double d) { return {P##_set1_ps((float)d)}; } \
  }; \
  OSTLER_FN Vec<L> operator+(Vec<L> a, Vec<L> b) { return {P##_add_ps(a.x, b.x)}; } \
  OSTLER_FN Vec<L> operator-(Vec<L> a, Vec<L> b) { return {P##_sub_ps(a.x, b.x)}; } \
  OSTLER_FN Vec<L> operator*(Vec<L> a, Vec<L> b) { return {P##_mul_ps(a.x, b.x)}; } \
  OSTLER_FN Vec<L> operator/(Vec<L> a, Vec<L> b) { return {P##_div_ps(a.x, b.x)}; } \
  OSTLER_FN Vec<L> operator-(Vec<L> a) { return {-a.x}; } \
  OSTLER_FN Vec<L> sqrt_(Vec<L> a) { return {P##_sqrt_ps(a.x)}; } \
  OSTLER_FN Vec<L> min_(Vec<L> a, Vec<L> b) { return {P##_min_ps(a.x, b.x)}; } \
  OSTLER_FN Vec<L> max_(Vec<L> a, Vec<L> b) { return {P##_max_ps(a.x, b.x)}; } \
  OSTLER_FN void load(Vec<L>& v, const float* p) { v.x = P##_loadu_ps(p); } \
  OSTLER_FN void store(float* p, Vec<L> v) { P##_storeu_ps(p, v.x); } \
  OSTLER_FN float lane_get(Vec<L> v, int i) { return v.x[i]; } \
  OSTLER_FN void lane_set(Vec<L>& v, int i, float f) { v.x[i] = f; }

#define OSTLER_LANES_FUSED(L, P) \
  OSTLER_FN Vec<L> fma(Vec<L> a, Vec<L> b, Vec<L> c) { return {P##_fmadd_ps(a.x, b.x, c.x)}; } \
  OSTLER_FN Vec<L> fms(Vec<L> a, Vec<L> b, Vec<L> c) { return {P##_fmsub_ps(a.x, b.x, c.x)}; } \
  OSTLER_FN Vec<L> fnma(Vec<L> a, Vec<L> b, Vec<L> c) { return {P##_fnmadd_ps(a.x, b.x, c.x)}; }

// Masks held as vectors whose lanes are all ones or all zeros.
#define OSTLER_LANES_WIDE_MASK(L, P, LT, LE) \
  OSTLER_FN LaneMask<L> operator<(Vec<L> a, Vec<L> b) { return {LT(a.x, b.x)}; } \
  OSTLER_FN LaneMask<L> operator>(Vec<L> a, Vec<L> b) { return {LT(b.x, a.x)}; } \
  OSTLER_FN LaneMask<L> operator<=(Vec<L> a, Vec<L> b) { return {LE(a.x, b.x)}; } \
  OSTLER_FN LaneMask<L> operator>=(Vec<L> a, Vec<L> b) { return {LE(b.x, a.x)}; } \
  OSTLER_FN LaneMask<L> operator&(LaneMask<L> a, LaneMask<L> b) { return {P##_and_ps(a.x, b.x)}; } \
  OSTLER_FN LaneMask<L> operator|(LaneMask<L> a, LaneMask<L> b) { return {P##_or_ps(a.x, b.x)}; } \
  OSTLER_FN LaneMask<L> mask_xor(LaneMask<L> a, LaneMask<L> b) { return {P##_xor_ps(a.x, b.x)}; } \
  template<> OSTLER_FN LaneMask<L> mask_of<LaneMask<L>>(bool b) { \
    const auto zero = P##_setzero_ps(); \
    return {b ? LE(zero, zero) : zero}; \
  } \
  OSTLER_FN LaneMask<L> operator!(LaneMask<L> a) { return mask_xor(a, mask_of<LaneMask<L>>(true)); } \
  OSTLER_FN bool any(LaneMask<L> m) { return P##_movemask_ps(m.x) != 0; } \
  OSTLER_FN bool lane_get(LaneMask<L> m, int i) { return (P##_movemask_ps(m.x) >> i) & 1; } \
  OSTLER_FN void lane_set(LaneMask<L>& m, int i, bool b) { \
    const unsigned v = b ? ~0u : 0u; \
    float f; \
    __builtin_memcpy(&f, &v, 4); \
    m.x[i] = f; \
  }

template<> struct Vec<4> { Lanes<4>::Type x; };
template<> struct LaneMask<4> { Lanes<4>::Type x; };
OSTLER_LANES_ARITHMETIC(4, _mm)
OSTLER_LANES_WIDE_MASK(4, _mm, _mm_cmplt_ps, _mm_cmple_ps)
OSTLER_FN Vec<4> sel(LaneMask<4> m, Vec<4> a, Vec<4> b) {
  return {_mm_or_ps(_mm_and_ps(m.x, a.x), _mm_andnot_ps(m.x, b.x))};
}
OSTLER_FN Vec<4> fma(Vec<4> a, Vec<4> b, Vec<4> c) { return {_mm_add_ps(_mm_mul_ps(a.x, b.x), c.x)}; }
// Round to nearest even by adding 1.5 * 2^23; larger numbers are whole already.
OSTLER_FN Vec<4> rint_(Vec<4> a) {
  const Vec<4> big = {_mm_set1_ps(12582912.0f)}, lim = {_mm_set1_ps(4194304.0f)};
  return sel((a < lim) & (a > -lim), (a + big) - big, a);
}

#ifdef __AVX2__
#define OSTLER_LT8(a, b) _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define OSTLER_LE8(a, b) _mm256_cmp_ps(a, b, _CMP_LE_OQ)
template<> struct Vec<8> { Lanes<8>::Type x; };
template<> struct LaneMask<8> { Lanes<8>::Type x; };
OSTLER_LANES_ARITHMETIC(8, _mm256)
OSTLER_LANES_WIDE_MASK(8, _mm256, OSTLER_LT8, OSTLER_LE8)
OSTLER_LANES_FUSED(8, _mm256)
OSTLER_FN Vec<8> sel(LaneMask<8> m, Vec<8> a, Vec<8> b) { return {_mm256_blendv_ps(b.x, a.x, m.x)}; }
OSTLER_FN Vec<8> rint_(Vec<8> a) { return {_mm256_round_ps(a.x, 8)}; }
#endif

#ifdef __AVX512F__
template<> struct Vec<16> { Lanes<16>::Type x; };
template<> struct LaneMask<16> { __mmask16 x; };
OSTLER_LANES_ARITHMETIC(16, _mm512)
OSTLER_LANES_FUSED(16, _mm512)
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
OSTLER_FN Vec<16> rint_(Vec<16> a) { return {_mm512_roundscale_ps(a.x, 8)}; }
OSTLER_FN bool lane_get(LaneMask<16> m, int i) { return (m.x >> i) & 1; }
OSTLER_FN void lane_set(LaneMask<16>& m, int i, bool b) {
  m.x = (__mmask16)(b ? m.x | (1u << i) : m.x & ~(1u << i));
}
#endif
template<int L> OSTLER_FN Vec<L> abs_(Vec<L> a) { return max_(a, -a); }
