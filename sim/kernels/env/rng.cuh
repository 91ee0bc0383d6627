// Counter-based random numbers: sim/src/rng.rs.
#pragma once

enum { DRAW_RESET = 1, DRAW_COMMAND = 2, DRAW_NOISE = 3, DRAW_ACTION = 4, DRAW_START = 7 };

struct Words { unsigned w[4]; };
OSTLER_FN unsigned high_half(unsigned a, unsigned b) {
#ifdef __CUDACC__
  return __umulhi(a, b);
#else
  return (unsigned)(((unsigned long long)a * b) >> 32);
#endif
}
OSTLER_FN_ONE Words philox(unsigned long long seed, unsigned stream, unsigned purpose, unsigned long long step, unsigned index) {
  unsigned c0 = index, c1 = stream, c2 = (unsigned)step, c3 = ((unsigned)(step >> 32) << 8) | purpose;
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    if (round > 0) k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    const unsigned h0 = high_half(c0, 0xD2511F53u), l0 = c0 * 0xD2511F53u;
    const unsigned h1 = high_half(c2, 0xCD9E8D57u), l1 = c2 * 0xCD9E8D57u;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
  }
  return {{c0, c1, c2, c3}};
}
OSTLER_FN float unit(unsigned word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }
OSTLER_FN_ONE void normal_pair(unsigned a, unsigned b, float& x, float& y) {
  const float radius = sqrt_(-2.0f * ln_(1.0f - unit(a)));
  float s, c;
  sin_cos(6.28318531f * unit(b), s, c);
  x = radius * c;
  y = radius * s;
}
// Four numbers from -1 to 1.
OSTLER_FN void uniform_four(const Words& w, float* x) {
  for (int k = 0; k < 4; k++) x[k] = 2.0f * unit(w.w[k]) - 1.0f;
}
// Four normal numbers.
OSTLER_FN void normal_four(const Words& w, float* x) {
  normal_pair(w.w[0], w.w[1], x[0], x[1]);
  normal_pair(w.w[2], w.w[3], x[2], x[3]);
}
