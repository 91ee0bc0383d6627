// What is launched: thread i of `count` does the statement. On a host, threads
// first .. end-1. Environments are counted in an `int`; words of their state may be more
// than it holds.
#pragma once

OSTLER_FN long long ostler_thread(unsigned block, unsigned threads, unsigned thread) {
  return (long long)block * threads + thread;
}

#ifdef __CUDACC__
#ifndef OSTLER_THREADS
#define OSTLER_THREADS 128
#endif
#define OSTLER_ENTRY(number, name, count, setup, statement) \
  extern "C" __global__ void __launch_bounds__(OSTLER_THREADS) name(const EnvArgs a) { \
    const number i = (number)ostler_thread(blockIdx.x, blockDim.x, threadIdx.x); \
    if (i >= (count)) return; \
    setup \
    statement \
  }
#else
#define OSTLER_ENTRY(number, name, count, setup, statement) \
  extern "C" __attribute__((visibility("default"))) void name(const void* args, long long first, long long end) { \
    const EnvArgs& a = *(const EnvArgs*)args; \
    setup \
    for (number i = (number)first; i < end && i < (count); i++) { statement } \
  }
#endif

#ifdef OSTLER_TEAM
// The working memories of a block's environments lie in shared memory, an odd number of
// words apart: the same element of all of them in as many banks.
static_assert(sizeof(W) <= 4 * OSTLER_TEAM_WORDS, "room for the working memory");
#endif

namespace {
struct World {
#ifdef OSTLER_TEAM
  W& w;
  OSTLER_FN explicit World(W& shared) : w(shared) {
    if (team_leader()) straight::constants(w);
  }
#else
  W w;
  OSTLER_FN World() { straight::constants(w); }
#endif
  OSTLER_FN void step(const EnvArgs& a, int e) {
    const Robot robot = {};
    control_step<R, Robot>(robot, w, a.physics, e, 1);
  }
};
}  // namespace

OSTLER_ENTRY(int, ostler_env_restart, a.n, , restart(a, i); Task::remember(a, i);)
OSTLER_ENTRY(int, ostler_env_begin, a.n, , env_begin(a, i);)
#ifndef OSTLER_TEAM
OSTLER_ENTRY(int, ostler_env_step, a.n, World world;, env_step(a, i, world);)
#elif defined(__CUDACC__)
// Warp r of a block has rank r of as many environments as the launch left room for.
extern "C" __global__ void __launch_bounds__(32 * OSTLER_TEAM) ostler_env_step(const EnvArgs a) {
  extern __shared__ float rooms[];
  unsigned bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  const int room = (int)(bytes / (4 * OSTLER_TEAM_WORDS)), lane = (int)(threadIdx.x & 31);
  const int e = (int)blockIdx.x * room + lane;
  if (lane >= room || e >= a.n) return;
  World world(*(W*)(rooms + lane * OSTLER_TEAM_WORDS));
  env_step(a, e, world);
}
#else
namespace {
struct Shift {
  const EnvArgs* a;
  int first;
  float* rooms;
};
}  // namespace
extern "C" __attribute__((visibility("default"))) void ostler_env_step(const void* args, long long from, long long to) {
  const EnvArgs& a = *(const EnvArgs*)args;
  const int first = (int)from, end = (int)to;
  static thread_local float rooms[ostler_team::LANES * OSTLER_TEAM_WORDS];
  for (int i = first; i < end; i += ostler_team::LANES) {
    Shift shift = {&a, i, rooms};
    const int lanes = end - i < (int)ostler_team::LANES ? end - i : (int)ostler_team::LANES;
    // Which rank is first may not matter.
    ostler_team::run(lanes, (a.clock & 1) != 0, [](void* of, int lane) {
      const Shift& s = *(const Shift*)of;
      World world(*(W*)(s.rooms + lane * OSTLER_TEAM_WORDS));
      env_step(*s.a, s.first + lane, world);
    }, &shift);
  }
}
#endif
OSTLER_ENTRY(int, ostler_env_tally, a.chunks, , env_tally(a, i);)
OSTLER_ENTRY(long long, ostler_env_copy, a.words, , a.to[i] = a.from[i];)
OSTLER_ENTRY(int, ostler_env_total, Task::TALLY + 2, , env_total(a, i);)
