// Environments that a call is for: the lanes of a processor's vectors, OSTLER_BLOCK of them
// or fewer, or a GPU's one thread. Code is a plain loop over them, which compilers turn into
// vectors, or which folds away.
#pragma once

#ifdef OSTLER_BLOCK
struct Block {
  enum { W = OSTLER_BLOCK };
  int first, len;
};
// No environment's numbers depend on another's.
#define OSTLER_EACH(l) _Pragma("GCC ivdep") for (int l = 0; l < b.len; l++)
#else
struct Block {
  enum { W = 1 };
  int first;
  static constexpr int len = 1;
};
#define OSTLER_EACH(l) for (int l = 0; l < 1; l++)
#endif
