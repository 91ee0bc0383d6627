// The learner's kernels on a device, a thread for each number or sample.
#pragma once

#ifndef __CUDACC__
#include <immintrin.h>
#endif
#include "scalar.cuh"
#include "vector.cuh"
#include "loss.cuh"
#include "finish.cuh"
#include "draw.cuh"
#include "order.cuh"

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
  extern "C" __attribute__((visibility("default"))) const unsigned name##_bytes = sizeof(Args); \
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

// A step of Adam as it lies in memory.
struct Step {
  AdamStep numbers;
  float taken;  // 1 or 0
};

// The end of a minibatch of PPO. Part 0 of the parameters is the actor's, part 1 the critic's.
struct PpoFinishArgs {
  Tally tally;
  AdamConfig adam;
  const float* norms[2];  // of the parts' gradients
  const double* stop;     // the divergence at which the policy stops
  double* end;            // [3]
  const double* lr;       // [parts]
  double* powers;         // [parts][2]
  Step* steps;            // [parts]
  long long parts;
};

// The end of a gradient step of one network. The norm is in the row.
struct FinishArgs {
  Tally tally;
  AdamConfig adam;
  const double* lr;
  double* powers;  // [2]
  Step* step;
  long long norm;  // its place in the row
};

// Adam's step of `len` parameters, of which the first `front` are part 0.
struct AdamArgs {
  const Step* steps;
  float* theta;
  float* grad;
  float* m;
  float* v;
  long long front;
  long long len;
};

// The orders of `count` samples in all epochs of an update: to [epochs][count].
struct OrderArgs {
  unsigned long long seed;
  unsigned long long update;
  long long epochs;
  long long count;
  long long* to;
};

// Normal numbers of a gradient step: to [rows][width]. A thread draws four of a row.
struct NoiseArgs {
  unsigned long long seed;
  unsigned long long step;
  long long rows;
  long long width;
  float* to;
};

namespace {
OSTLER_FN void loss_of(const LossArgs& a, long long i) {
  float stats[OSTLER_STATS] = {};
  ppo_loss<float>(with_terms(a.loss), i, stats);
  // Without a valid sample no number is one.
  const float any = a.loss.in_memory && a.loss.in_memory[0] == 0.0f ? 0.0f / a.loss.in_memory[0] : 1.0f;
  for (int k = 0; k < OSTLER_STATS; k++) a.stats[k * a.rows + i] = stats[k] * any;
}

OSTLER_FN void begin(const AdamConfig& c, bool taken, double norm, const double* lr, double* powers, Step* step) {
  step->taken = taken ? 1.0f : 0.0f;
  if (taken) step->numbers = adam_begin(c, norm, *lr, powers);
}

OSTLER_FN void ppo_finish(const PpoFinishArgs& a) {
  float* row = a.tally.row;
  const bool policy = policy_goes_on(row[OSTLER_KL], *a.stop, a.end);
  row[OSTLER_GRAD_NORM] = *a.norms[0];
  row[OSTLER_CRITIC_NORM] = a.parts > 1 ? *a.norms[1] : 0.0f;
  const bool ok = judge(a.tally, policy, a.adam.limit);
  OSTLER_ROLLED for (int part = 0; part < a.parts; part++)
    begin(a.adam, ok && (part > 0 || policy), (double)*a.norms[part], a.lr + part, a.powers + 2 * part, a.steps + part);
}

OSTLER_FN void finish(const FinishArgs& a) {
  const double norm = (double)a.tally.row[a.norm];
  a.tally.row[a.tally.clipped] = norm > a.adam.limit ? 1.0f : 0.0f;
  begin(a.adam, tally(a.tally), norm, a.lr, a.powers, a.step);
}

OSTLER_FN void adam_of(const AdamArgs& a, long long i) {
  const Step& step = a.steps[i < a.front ? 0 : 1];
  if (step.taken == 0.0f) return;
  adam(step.numbers, a.theta[i], a.grad[i], a.m[i], a.v[i]);
}

OSTLER_FN void order_of_all(const OrderArgs& a, long long i) {
  const long long epoch = i / a.count;
  const Order o = order_of(a.seed, a.update, (unsigned)epoch, (unsigned)a.count);
  a.to[i] = (long long)sample_at(o, (unsigned)(i - epoch * a.count));
}

// The bits of `fill_normal` in sim/base/src/rng.rs.
OSTLER_FN void noise_of(const NoiseArgs& a, long long i) {
  const long long fours = (a.width + 3) / 4;
  const long long row = i / fours, four = i - row * fours;
  float x[4];
  draws::normal_four(draws::philox(a.seed, (unsigned)row, draws::DRAW_UPDATE_NOISE, a.step, (unsigned)four), x);
  for (int k = 0; k < 4; k++)
    if (4 * four + k < a.width) a.to[row * a.width + 4 * four + k] = x[k];
}

}  // namespace

OSTLER_LEARN(LossArgs, ostler_learn_loss, a.rows, loss_of(a, i);)
OSTLER_LEARN(PpoFinishArgs, ostler_learn_ppo_finish, 1, ppo_finish(a);)
OSTLER_LEARN(FinishArgs, ostler_learn_finish, 1, finish(a);)
OSTLER_LEARN(AdamArgs, ostler_learn_adam, a.len, adam_of(a, i);)
OSTLER_LEARN(OrderArgs, ostler_learn_order, a.epochs * a.count, order_of_all(a, i);)
OSTLER_LEARN(NoiseArgs, ostler_learn_noise, a.rows * ((a.width + 3) / 4), noise_of(a, i);)
