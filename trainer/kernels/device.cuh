// The learner's kernel on a device, a thread for each sample.
#pragma once

#ifndef __CUDACC__
#include <immintrin.h>
#endif
#include "scalar.cuh"
#include "vector.cuh"
#include "loss.cuh"

// Thread i of `count` does the statement. On a host, threads first .. end-1.
#ifdef __CUDACC__
#define OSTLER_LEARN(Args, name, count, statement) \
  extern "C" __global__ void __launch_bounds__(128) name(const __grid_constant__ Args a) { \
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= (count)) return; \
    statement \
  }
#else
#define OSTLER_LEARN(Args, name, count, statement) \
  extern "C" __attribute__((visibility("default"))) void name(const void* args, long long first, long long end) { \
    const Args& a = *(const Args*)args; \
    for (long long i = first; i < end && i < (count); i++) { statement } \
  }
#endif

// The loss of `rows` samples; each one's statistics go to stats [OSTLER_STATS][rows].
struct LossArgs {
  PpoLoss loss;
  float* stats;
  long long rows;
};

namespace {
OSTLER_FN void loss_of(const LossArgs& a, long long i) {
  float stats[OSTLER_STATS] = {};
  ppo_loss<float>(with_terms(a.loss), i, stats);
  // Without a valid sample no number is one.
  const float any = a.loss.terms && a.loss.terms[0] == 0.0f ? 0.0f / a.loss.terms[0] : 1.0f;
  for (int k = 0; k < OSTLER_STATS; k++) a.stats[k * a.rows + i] = stats[k] * any;
}

}  // namespace

OSTLER_LEARN(LossArgs, ostler_learn_loss, a.rows, loss_of(a, i);)
