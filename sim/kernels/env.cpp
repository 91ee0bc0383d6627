// Environments on a host, for one instruction set: compiled once for each with OSTLER_NAME.
// Numbers are the same with all of them.
#include <immintrin.h>
#include <math.h>

#define OSTLER_JOIN_(a, b) a##b
#define OSTLER_JOIN(a, b) OSTLER_JOIN_(a, b)
#define OSTLER_BLOCK 64
#define OSTLER_RESTRICT __restrict__

namespace OSTLER_JOIN(on_, OSTLER_NAME) {
#include "kernel.cuh"
#include "env/all.cuh"
#include "env/phases.cuh"

// Mirrored by sim/src/env/lanes.rs.
struct OstlerEnv {
  unsigned long args_bytes, calls_bytes;
  void (*act)(const void* args, int first, int len);
  int (*finish)(const void* args, const void* calls, int first, int len);
  void (*restart)(const void* args, const void* calls, int first, int len);
  // Its parts.
  void (*start)(const void* args, const void* calls, int first, int len);
  void (*place)(const void* args, int first, int len);
  void (*begin)(const void* args, const void* calls, int first, int len);
  // For one environment at a time.
  void (*observe)(const void* args, const void* calls, int first, int len);
  // Counts of all environments in the mask, in their order: episodes that ended, or starts.
  void (*tally)(const void* args, int starts);
  // The pose of one environment by the tables and expressions alone.
  void (*draw_pose)(const void* args, const void* calls);
};

static const EnvArgs& args_of(const void* args) { return *(const EnvArgs*)args; }
static Terms terms_of(const void* args, const void* calls) { return {args_of(args), *(const Calls*)calls}; }

// A full block has a length that compilers know.
template<class F> OSTLER_FN auto in_block(int first, int len, F f) {
  if (len == OSTLER_BLOCK) return f(Block{first, OSTLER_BLOCK});
  return f(Block{first, len});
}

static void act_(const void* args, int first, int len) {
  in_block(first, len, [&](Block b) OSTLER_INLINE { act(args_of(args), b); });
}
static int finish_(const void* args, const void* calls, int first, int len) {
  const Terms terms = terms_of(args, calls);
  return in_block(first, len, [&](Block b) OSTLER_INLINE { return finish(args_of(args), b, terms); });
}
static void restart_(const void* args, const void* calls, int first, int len) {
  restart(args_of(args), Block{first, len}, terms_of(args, calls));
}
static Chosen chosen(const void* args, int first, int len) { return {Block{first, len}, args_of(args).mask}; }
static void start_(const void* args, const void* calls, int first, int len) {
  begin_events(args_of(args), Block{first, len});
  start(args_of(args), Block{first, len}, chosen(args, first, len), terms_of(args, calls));
}
static void place_(const void* args, int first, int len) { place(args_of(args), chosen(args, first, len)); }
static void begin_(const void* args, const void* calls, int first, int len) {
  begin_pushes(args_of(args), chosen(args, first, len));
  begin(args_of(args), Block{first, len}, chosen(args, first, len), terms_of(args, calls));
}
static void observe_(const void* args, const void* calls, int first, int len) {
  observe(args_of(args), Block{first, len}, terms_of(args, calls));
}
static void tally_(const void* args, int starts) {
  const EnvArgs& a = args_of(args);
  for (long e = 0; e < a.n; e++)
    if (a.mask[e]) starts ? tally_start(a, e) : tally(a, e);
}
static void draw_pose_(const void* args, const void* calls) {
  const unsigned one = 1;
  draw_pose(args_of(args), Chosen(0, 1, &one), terms_of(args, calls), 0);
}

static const OstlerEnv functions = {sizeof(EnvArgs), sizeof(Calls), act_, finish_, restart_, start_, place_, begin_, observe_, tally_, draw_pose_};
}

extern "C" const void* OSTLER_JOIN(ostler_, OSTLER_NAME)() { return &OSTLER_JOIN(on_, OSTLER_NAME)::functions; }
