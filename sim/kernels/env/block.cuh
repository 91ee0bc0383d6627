// Environments that a call is for: the lanes of a processor's vectors, OSTLER_BLOCK of them
// or fewer, or a GPU's one thread. Code is a plain loop over them, which compilers turn into
// vectors, or which folds away.
//
// `Chosen` is a list of lanes of a block. `each(f)` calls f(j, l) for lane l of a block or a
// list, its j-th. `dense(f)` does so for what is computed on the way and stored by j, so
// that vectors are full where few lanes are chosen; it goes on to the end of a vector.
#pragma once

#ifdef OSTLER_BLOCK
// No environment's numbers depend on another's.
#define OSTLER_EACH(l) _Pragma("GCC ivdep") for (int l = 0; l < b.len; l++)
struct Block {
  enum { W = OSTLER_BLOCK };
  static constexpr bool anew = false;
  int first, len;
  template<class F> OSTLER_FN void each(F f) const {
    _Pragma("GCC ivdep") for (int l = 0; l < len; l++) f(l, l);
  }
  template<class F> OSTLER_FN void dense(F f) const { each(f); }
};
struct Chosen {
  enum { W = OSTLER_BLOCK, VECTOR = 16 };
  static constexpr bool anew = true;
  int first, len, lane[W + VECTOR];
  // Those of a block whose mask, of all environments, is set.
  OSTLER_FN Chosen(const Block b, const unsigned* mask) : Chosen(b.first, b.len, mask + b.first) {}
  OSTLER_FN Chosen(int block, int count, const unsigned* own) : first(block), len(0) {
    for (int l = 0; l < count; l++) {
      lane[len] = l;
      len += own[l] != 0;
    }
    // Lanes that only `dense` reads.
    for (int j = len; j < len + VECTOR; j++) lane[j] = 0;
  }
  template<class F> OSTLER_FN void each(F f) const {
    _Pragma("GCC ivdep") for (int j = 0; j < len; j++) f(j, lane[j]);
  }
  template<class F> OSTLER_FN void dense(F f) const {
    for (int start = 0; start < len; start += VECTOR) {
      _Pragma("GCC ivdep") for (int j = start; j < start + VECTOR; j++) f(j, lane[j]);
    }
  }
};
// f(those lanes of a block that are marked), if there are some.
template<class F> OSTLER_FN void among(const Block b, const unsigned* marked, F f) {
  const Chosen c(b.first, b.len, marked);
  if (c.len > 0) f(c);
}
#else
#define OSTLER_EACH(l) for (int l = 0; l < 1; l++)
// A thread's environment, which goes on or begins anew: one type, so that what both do is
// compiled once. A thread whose environment goes on does not ask.
struct Block {
  enum { W = 1 };
  int first;
  bool anew;
  static constexpr int len = 1;
  OSTLER_FN explicit Block(int e) : first(e), anew(false) {}
  OSTLER_FN Block(const Block b, const unsigned*) : first(b.first), anew(true) {}
  template<class F> OSTLER_FN void each(F f) const { f(0, 0); }
  template<class F> OSTLER_FN void dense(F f) const { f(0, 0); }
};
typedef Block Chosen;
template<class F> OSTLER_FN void among(const Block b, const unsigned* marked, F f) {
  if (marked[0]) f(Chosen(b, marked));
}
#endif

// Numbers of a block from and to rows that lie `stride` apart. Compilers make vectors of those
// that lie side by side only.
OSTLER_FN void take(const Block b, float (&x)[Block::W], const float* rows, long stride) {
  if (stride == 1) OSTLER_EACH(l) x[l] = rows[l];
  else OSTLER_EACH(l) x[l] = rows[l * stride];
}
template<class T, class F> OSTLER_FN void put(const Block b, T* rows, long stride, F value) {
  if (stride == 1) OSTLER_EACH(l) rows[l] = value(l);
  else OSTLER_EACH(l) rows[l * stride] = value(l);
}
