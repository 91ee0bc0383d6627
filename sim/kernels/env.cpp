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

// Environments first .. first+len-1.
struct OstlerEnv {
  void (*act)(const EnvArgs* args, int first, int len);
  unsigned (*finish)(const EnvArgs* args, const Calls* calls, int first, int len);  // an Outcome
  void (*restart)(const EnvArgs* args, const Calls* calls, int first, int len);
  // Its parts.
  void (*start)(const EnvArgs* args, const Calls* calls, int first, int len);
  void (*place)(const EnvArgs* args, int first, int len);
  void (*begin)(const EnvArgs* args, const Calls* calls, int first, int len);
  // For one environment at a time.
  void (*observe)(const EnvArgs* args, const Calls* calls, int first, int len);
  // Counts of all environments in the mask, in their order: episodes that ended, or starts.
  void (*tally)(const EnvArgs* args, int starts);
  // Heights (0) or slopes along x (1) or y (2) of the ground at OSTLER_BLOCK places.
  void (*ground)(const Ground* ground, int what, const float* x, const float* y, float* to);
  // The pose of one environment by the tables and expressions alone.
  void (*draw_pose)(const EnvArgs* args, const Calls* calls);
};

// A full block has a length that compilers know.
template<class F> OSTLER_FN auto in_block(int first, int len, F f) {
  if (len == OSTLER_BLOCK) return f(Block{first, OSTLER_BLOCK});
  return f(Block{first, len});
}

static void act_(const EnvArgs* args, int first, int len) {
  in_block(first, len, [&](Block b) OSTLER_INLINE { act(*args, b); });
}
static unsigned finish_(const EnvArgs* args, const Calls* calls, int first, int len) {
  const Terms terms = {*args, *calls};
  return in_block(first, len, [&](Block b) OSTLER_INLINE { return finish(*args, b, terms); });
}
static void restart_(const EnvArgs* args, const Calls* calls, int first, int len) {
  restart(*args, Block{first, len}, Terms{*args, *calls});
}
static Chosen chosen(const EnvArgs* args, int first, int len) { return {Block{first, len}, args->mask}; }
static void start_(const EnvArgs* args, const Calls* calls, int first, int len) {
  choose(*args, Block{first, len}, chosen(args, first, len), Terms{*args, *calls});
}
static void place_(const EnvArgs* args, int first, int len) { place(*args, chosen(args, first, len)); }
static void begin_(const EnvArgs* args, const Calls* calls, int first, int len) {
  begin_pushes(*args, chosen(args, first, len));
  begin(*args, Block{first, len}, chosen(args, first, len), Terms{*args, *calls});
}
static void observe_(const EnvArgs* args, const Calls* calls, int first, int len) {
  observe(*args, Block{first, len}, Terms{*args, *calls});
}
static void tally_(const EnvArgs* args, int starts) {
  const EnvArgs& a = *args;
  for (long e = 0; e < a.n; e++)
    if (a.mask[e]) starts ? tally_start(a, e) : tally(a, e);
}
static void draw_pose_(const EnvArgs* args, const Calls* calls) {
  const unsigned one = 1;
  draw_pose(*args, Chosen(0, 1, &one), Terms{*args, *calls}, 0);
}

static void ground_(const Ground* ground, int what, const float* x, const float* y, float* to) {
  const Ground g = *ground;
  float px[OSTLER_BLOCK], py[OSTLER_BLOCK];
  const Block b = {0, OSTLER_BLOCK};
  OSTLER_EACH(l) px[l] = x[l], py[l] = y[l];
  ground_each<OSTLER_BLOCK>(g, px, py, OSTLER_BLOCK, [&](int l, float height, float along_x, float along_y) OSTLER_INLINE {
    to[l] = what == 0 ? height : what == 1 ? along_x : along_y;
  });
}

static const OstlerEnv functions = {act_, finish_, restart_, start_, place_, begin_, observe_, tally_, ground_, draw_pose_};
}

extern "C" const void* OSTLER_JOIN(ostler_, OSTLER_NAME)() { return &OSTLER_JOIN(on_, OSTLER_NAME)::functions; }
