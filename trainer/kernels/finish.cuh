// The end of a gradient step, by one thread: is it taken, how long is it, what is gathered.
#pragma once

#include "adam.cuh"

// A row of numbers about a gradient step, and what is gathered of all steps of an update.
struct Tally {
  float* row;       // [width]
  double* sum;      // [width]: rows of steps that were taken
  double* passed;   // [decisive]: steps in which this and all before it was finite
  int width;        // entries of a row
  int first;        // of the entries that have to be finite
  int decisive;     // how many of them
  int clipped;      // place of: 1 where a gradient was longer than the limit
};

// Places in the row of PPO, behind those of loss.cuh: norms of the actor's and the critic's
// gradient, whether one of them was clipped, 1 where the policy takes the step.
enum { OSTLER_GRAD_NORM = OSTLER_STATS, OSTLER_CRITIC_NORM, OSTLER_CLIPPED, OSTLER_POLICY };

OSTLER_FN bool finite_(float x) { return (word_(x) & 0x7f800000u) != 0x7f800000u; }

// Adds the row if all that decides is finite.
OSTLER_FN bool tally(const Tally& t) {
  bool ok = true;
  for (int i = 0; i < t.decisive; i++) {
    ok = ok && finite_(t.row[t.first + i]);
    t.passed[i] += ok ? 1.0 : 0.0;
  }
  for (int i = 0; ok && i < t.width; i++) t.sum[i] += (double)t.row[i];
  return ok;
}

// Whether the policy takes the step of a minibatch with this divergence. It stops for good
// where the divergence is beyond `limit`, not counting that of the first minibatch: samples
// may be an older policy's. end [3]: the divergence at last, 1 where it stopped, the first.
OSTLER_FN bool policy_goes_on(float kl, double limit, double* end) {
  if (end[1] == 0.0 && finite_(kl)) {
    if (end[2] != end[2]) end[2] = (double)kl;
    end[0] = (double)kl;
    end[1] = (double)kl - end[2] > limit ? 1.0 : 0.0;
  }
  return end[1] == 0.0;
}

// Takes in a minibatch of PPO, whose losses and gradient norms are in its row.
OSTLER_FN bool judge(const Tally& t, bool policy, double limit) {
  t.row[OSTLER_POLICY] = 1.0f;
  if (!policy) {
    // The policy's entries count nothing and decide nothing.
    const int own[] = {OSTLER_KL, OSTLER_SURROGATE, OSTLER_ENTROPY, OSTLER_IMITATION, OSTLER_GRAD_NORM, OSTLER_POLICY};
    for (int at : own) t.row[at] = 0.0f;
    // NaN stays: there was no valid sample.
    t.row[OSTLER_CLIP_FRACTION] *= 0.0f;
  }
  const float actor = t.row[OSTLER_GRAD_NORM], critic = t.row[OSTLER_CRITIC_NORM];
  t.row[t.clipped] = (double)actor > limit || (double)critic > limit ? 1.0f : 0.0f;
  return tally(t);
}
