// Elementary functions with the bits of sim/base/src/math.rs: the same operations in the
// same order, single precision unless it says double, nothing fused (the compiler is
// told so). Formulae and their sources stand there.
#pragma once

#ifdef __CUDACC__
OSTLER_FN unsigned bits_of(unsigned x) { return x; }
OSTLER_FN unsigned bits_of(float x) { return __float_as_uint(x); }
OSTLER_FN float of_bits(unsigned x) { return __uint_as_float(x); }
OSTLER_FN long long bits_of(double x) { return __double_as_longlong(x); }
OSTLER_FN double of_bits(long long x) { return __longlong_as_double(x); }
OSTLER_FN float floor_(float x) { return floorf(x); }
OSTLER_FN float trunc_(float x) { return truncf(x); }
OSTLER_FN float whole_(float x) { return roundf(x); }
#else
OSTLER_FN unsigned bits_of(unsigned x) { return x; }
OSTLER_FN unsigned bits_of(float x) {
  unsigned b;
  __builtin_memcpy(&b, &x, 4);
  return b;
}
OSTLER_FN float of_bits(unsigned b) {
  float x;
  __builtin_memcpy(&x, &b, 4);
  return x;
}
OSTLER_FN long long bits_of(double x) {
  long long b;
  __builtin_memcpy(&b, &x, 8);
  return b;
}
OSTLER_FN double of_bits(long long b) {
  double x;
  __builtin_memcpy(&x, &b, 8);
  return x;
}
OSTLER_FN float floor_(float x) { return __builtin_floorf(x); }
OSTLER_FN float trunc_(float x) { return __builtin_truncf(x); }
OSTLER_FN float whole_(float x) { return __builtin_roundf(x); }
#endif

#define OSTLER_NAN of_bits(0x7fc00000u)
#define OSTLER_INF of_bits(0x7f800000u)
OSTLER_FN bool is_nan(float x) { return x != x; }
OSTLER_FN bool is_finite(float x) { return (bits_of(x) & 0x7f800000u) != 0x7f800000u; }
OSTLER_FN bool is_negative(float x) { return (bits_of(x) & 0x80000000u) != 0; }
OSTLER_FN float magnitude(float x) { return of_bits(bits_of(x) & 0x7fffffffu); }
// |x| with the sign of s.
OSTLER_FN float with_sign(float x, float s) { return of_bits((bits_of(x) & 0x7fffffffu) | (bits_of(s) & 0x80000000u)); }
// Rust's max and min: the number where the other is NaN.
OSTLER_FN float rust_max(float a, float b) { return is_nan(a) ? b : is_nan(b) ? a : (a < b ? b : a); }
OSTLER_FN float rust_min(float a, float b) { return is_nan(a) ? b : is_nan(b) ? a : (b < a ? b : a); }
// NaN stays.
OSTLER_FN float clamp_(float x, float low, float high) {
  if (x < low) x = low;
  if (x > high) x = high;
  return x;
}

template<int K> OSTLER_FN float poly(float x, const float (&c)[K]) {
  float sum = c[K - 1];
  for (int i = K - 2; i >= 0; i--) sum = sum * x + c[i];
  return sum;
}
OSTLER_FN float pow2(int k) { return of_bits((unsigned)(k + 127) << 23); }

OSTLER_FN float exp_(float x) {
  const float round = 12582912.0f;
  x = x > 90.0f ? 90.0f : x;
  x = x < -105.0f ? -105.0f : x;
  const float shifted = x * 1.44269504f + round;
  const int k = (int)(bits_of(shifted) - bits_of(round));
  const float kf = shifted - round;
  const float r = (x - kf * 0.69311523f) - kf * 3.1946184e-5f;
  const float c[] = {0.5f, 0.16666666f, 0.04166628f, 0.008333504f, 0.0013945752f, 0.00019789262f};
  const float p = poly(r, c);
  const float e = 1.0f + (r + r * r * p);
  // Any bits where x is NaN, and then e is NaN too.
  const int half = k >> 1;
  return e * pow2(half) * pow2((int)((unsigned)k - (unsigned)half));
}

OSTLER_FN float ln_(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const float scaled = subnormal ? x * 8388608.0f : x;
  const int e0 = subnormal ? -23 : 0;
  const int bits = (int)bits_of(scaled);
  const int e = (int)((unsigned)bits - 0x3f3504f3u) >> 23;
  const float m = of_bits((unsigned)bits - ((unsigned)e << 23));
  const float k = (float)(e + e0);
  const float f = m - 1.0f;
  const float c[] = {0.3333331f, -0.2500001f, 0.20002167f, -0.1666809f, 0.14218554f, -0.124030836f, 0.11893512f, -0.11694335f, 0.0675757f};
  const float q = poly(f, c);
  const float f2 = f * f;
  const float tail = f2 * f * q + k * 3.1946184e-5f;
  float y = k * 0.69311523f + (f - (0.5f * f2 - tail));
  y = x == 0.0f ? -OSTLER_INF : y;
  y = x < 0.0f ? OSTLER_NAN : y;
  return x < OSTLER_INF ? y : x;
}

OSTLER_FN void sin_cos(float x, float& sin, float& cos) {
  const float round = 12582912.0f;
  const float shifted = x * 0.636619772f + round;
  const unsigned quadrant = bits_of(shifted);
  const float k = shifted - round;
  const float r = (((x - k * 1.5703125f) - k * 0.0004825592f) - k * 1.2665987e-6f) - k * 9.920935e-10f;
  const float z = r * r;
  const float cs[] = {-0.16666667f, 0.008333329f, -0.00019839233f, 2.7173667e-6f};
  const float s = r + r * (z * poly(z, cs));
  const float cc[] = {0.041666646f, -0.0013887251f, 2.442568e-5f};
  const float c = (1.0f - 0.5f * z) + z * z * poly(z, cc);
  const bool swap = (quadrant & 1) != 0;
  sin = swap ? c : s;
  cos = swap ? s : c;
  sin = of_bits(bits_of(sin) ^ ((quadrant & 2) << 30));
  cos = of_bits(bits_of(cos) ^ (((quadrant + 1) & 2) << 30));
  const bool good = magnitude(x) <= 1e5f;
  sin = good ? sin : OSTLER_NAN;
  cos = good ? cos : OSTLER_NAN;
}
OSTLER_FN float sin_(float x) {
  float s, c;
  sin_cos(x, s, c);
  return s;
}
OSTLER_FN float cos_(float x) {
  float s, c;
  sin_cos(x, s, c);
  return c;
}
OSTLER_FN float tan_(float x) {
  float s, c;
  sin_cos(x, s, c);
  return s / c;
}

OSTLER_FN float tanh_(float x) {
  const float a = magnitude(x);
  const float z = x * x;
  const float c[] = {-0.3333333f, 0.133332f, -0.053945996f, 0.02169635f, -0.008166304f, 0.0021325254f};
  const float near = x + x * (z * poly(z, c));
  const float far = with_sign(1.0f - 2.0f / (exp_(a + a) + 1.0f), x);
  return a < 0.625f ? near : far;
}

OSTLER_FN float atan_unit(float a) {
  const bool high = a > 0.41421357f;
  const float b = high ? (a - 1.0f) / (a + 1.0f) : a;
  const float z = b * b;
  const float c[] = {-0.33333313f, 0.19998416f, -0.14242415f, 0.105851226f, -0.06055222f};
  const float t = b + b * (z * poly(z, c));
  return high ? 0.785398163f + t : t;
}
OSTLER_FN float atan2_of(float y, float x) {
  const float pi = 3.14159265f, half_pi = 1.57079633f;
  const float ay = magnitude(y), ax = magnitude(x);
  const bool steep = ay > ax;
  const float low = steep ? ax : ay, high = steep ? ay : ax;
  float ratio = low / high;
  ratio = low == high ? 1.0f : ratio;
  ratio = high == 0.0f ? 0.0f : ratio;
  float t = atan_unit(ratio);
  t = steep ? half_pi - t : t;
  t = is_negative(x) ? pi - t : t;
  t = with_sign(t, y);
  return is_nan(x) || is_nan(y) ? OSTLER_NAN : t;
}

OSTLER_FN float asin_half(float a) {
  const float z = a * a;
  const float c[] = {0.1666666f, 0.075005345f, 0.04451067f, 0.031863287f, 0.014217615f, 0.037840880f};
  return a + a * (z * poly(z, c));
}
OSTLER_FN float asin_(float x) {
  const float a = magnitude(x);
  const bool large = a > 0.5f;
  const float t = asin_half(large ? sqrt_(0.5f * (1.0f - a)) : a);
  return with_sign(large ? 1.57079633f - (t + t) : t, x);
}
OSTLER_FN float acos_(float x) {
  const float a = magnitude(x);
  const bool large = a > 0.5f;
  const float t = asin_half(large ? sqrt_(0.5f * (1.0f - a)) : a);
  const bool negative = x < 0.0f;
  const float outer = negative ? 3.14159265f - (t + t) : t + t;
  const float inner = negative ? 1.57079633f + t : 1.57079633f - t;
  return large ? outer : inner;
}

OSTLER_FN double exp_double(double x) {
  const double round = 6755399441055744.0;
  x = x > 200.0 ? 200.0 : x;
  x = x < -200.0 ? -200.0 : x;
  const double shifted = x * 1.4426950408889634074 + round;
  const long long k = bits_of(shifted) - bits_of(round);
  const double r = x - (shifted - round) * 0.69314718055994530942;
  double sum = 1.0;
  for (int n = 12; n >= 1; n--) sum = 1.0 + sum * r / (double)n;
  return sum * of_bits((k + 1023) << 52);
}
OSTLER_FN float pow_(float x, float y) {
  const double inf = of_bits(0x7ff0000000000000ll);
  const double a = (double)magnitude(x);
  const long long bits = bits_of(a);
  const long long k = (bits - 0x3fe6a09e667f3bcdll) >> 52;
  const double m = of_bits((long long)((unsigned long long)bits - ((unsigned long long)k << 52)));
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 1.0 / 17.0;
  for (int odd = 15; odd >= 1; odd -= 2) series = series * z + 1.0 / (double)odd;
  double log = (double)k * 0.69314718055994530942 + 2.0 * s * series;
  log = a == 0.0 ? -inf : log;
  log = a < inf ? log : a;
  float value = (float)exp_double((double)y * log);
  const float half = y * 0.5f;
  const bool whole = y == trunc_(y);
  const bool odd = whole && half != trunc_(half);
  value = is_negative(x) && odd ? -value : value;
  value = x < 0.0f && !whole && x > -OSTLER_INF ? OSTLER_NAN : value;
  value = x == 1.0f || y == 0.0f || (x == -1.0f && magnitude(y) == OSTLER_INF) ? 1.0f : value;
  return is_nan(x) && y != 0.0f ? OSTLER_NAN : value;
}
