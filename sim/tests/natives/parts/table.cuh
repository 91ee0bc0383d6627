// A table with four entries, repeated.
OSTLER_NATIVE float lookup(float x) {
  const float table[4] = {0.0f, 0.1f, 0.3f, -0.2f};
  const float whole = floor(x), share = x - whole;
  const int i = (int)whole;
  return table[i & 3] * (1.0f - share) + table[i + 1 & 3] * share;
}
