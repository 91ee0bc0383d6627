// The launched entries: thread i of `count` does the statement. On a host, threads first ..
// end-1 do. The arguments stay in constant memory (`__grid_constant__`): functions that are not
// inlined would have every thread copy them first.
#pragma once

OSTLER_FN long long ostler_thread(unsigned block, unsigned threads, unsigned thread) {
  return (long long)block * threads + thread;
}

#ifdef __CUDACC__
#ifndef OSTLER_THREADS
#define OSTLER_THREADS 128
#endif
#define OSTLER_ENTRY(name, count, setup, statement) \
  extern "C" __global__ void __launch_bounds__(OSTLER_THREADS) name(const __grid_constant__ EnvArgs a) { \
    const int i = (int)ostler_thread(blockIdx.x, blockDim.x, threadIdx.x); \
    if (i >= (count)) return; \
    setup \
    statement \
  }
#else
#define OSTLER_ENTRY(name, count, setup, statement) \
  extern "C" __attribute__((visibility("default"))) const unsigned name##_bytes = sizeof(EnvArgs); \
  extern "C" __attribute__((visibility("default"))) void name(const void* args, long long first, long long end) { \
    const EnvArgs& a = *(const EnvArgs*)args; \
    setup \
    for (int i = (int)first; i < end && i < (count); i++) { statement } \
  }
#endif

namespace {
struct World {
  W w;
  OSTLER_FN World() { straight::constants(w); }
  OSTLER_FN void step(const EnvArgs& a, int e) {
    const Robot robot = {};
    control_step<R, Robot>(robot, w, a.physics, e, 1);
  }
};
}  // namespace

OSTLER_ENTRY(ostler_env_restart, a.n, , env_restart(a, i);)
OSTLER_ENTRY(ostler_env_begin, a.n, , env_begin(a, i);)
OSTLER_ENTRY(ostler_env_step, a.n, World world;, env_step(a, i, world);)
OSTLER_ENTRY(ostler_env_tally, a.chunks, , env_tally(a, i);)
OSTLER_ENTRY(ostler_env_total, Task::TALLY + 2, , env_total(a, i);)
