// Counter-based random numbers: sim/base/src/rng.rs.
#pragma once

enum { DRAW_RESET = 1, DRAW_COMMAND = 2, DRAW_NOISE = 3, DRAW_ACTION = 4, DRAW_PERMUTATION = 5, DRAW_START = 7, DRAW_EVENT = 8, DRAW_UPDATE_NOISE = 13, DRAW_BIAS = 32, DRAW_LAG = 33, DRAW_TIMER = 34, DRAW_EXPRESSION = 35, DRAW_MOTOR_LAG = 36, DRAW_NATIVE = 37, DRAW_TILE = 38, DRAW_FRAME = 39 };

struct Words { unsigned w[4]; };
OSTLER_FN unsigned high_half(unsigned a, unsigned b) {
#ifdef __CUDACC__
  return __umulhi(a, b);
#else
  return (unsigned)(((unsigned long long)a * b) >> 32);
#endif
}
// Philox 4x32 with ten rounds, as far as `ROUND` of them; written out, so that a loop over
// environments has no loop in it.
template<int ROUND> struct Philox {
  static OSTLER_FN void rounds(Words& c, unsigned k0, unsigned k1) {
    const unsigned h0 = high_half(c.w[0], 0xD2511F53u), l0 = c.w[0] * 0xD2511F53u;
    const unsigned h1 = high_half(c.w[2], 0xCD9E8D57u), l1 = c.w[2] * 0xCD9E8D57u;
    c.w[0] = h1 ^ c.w[1] ^ k0;
    c.w[1] = l1;
    c.w[2] = h0 ^ c.w[3] ^ k1;
    c.w[3] = l0;
    Philox<ROUND - 1>::rounds(c, k0 + 0x9E3779B9u, k1 + 0xBB67AE85u);
  }
};
template<> struct Philox<0> {
  static OSTLER_FN void rounds(Words&, unsigned, unsigned) {}
};
OSTLER_FN_ONE Words philox(unsigned long long seed, unsigned stream, unsigned purpose, unsigned long long step, unsigned index) {
  Words c = {{index, stream, (unsigned)step, ((unsigned)(step >> 32) << 8) | purpose}};
  Philox<10>::rounds(c, (unsigned)seed, (unsigned)(seed >> 32));
  return c;
}
OSTLER_FN float unit(unsigned word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }
OSTLER_FN_ONE void normal_pair(unsigned a, unsigned b, float& x, float& y) {
  const float radius = sqrt_(-2.0f * ln_(1.0f - unit(a)));
  float s, c;
  sin_cos(6.28318531f * unit(b), s, c);
  x = radius * c;
  y = radius * s;
}
// Four normal numbers.
OSTLER_FN void normal_four(const Words& w, float* x) {
  normal_pair(w.w[0], w.w[1], x[0], x[1]);
  normal_pair(w.w[2], w.w[3], x[2], x[3]);
}
