// What a task's text needs (sim/src/task/emit).
#pragma once
#include "math.cuh"
#include "rng.cuh"
#include "ops.cuh"
#include "args.cuh"
#include "frames.cuh"

enum { FAULT_TASK = 32 };
// A task's expression as a function.
#define OSTLER_TERM OSTLER_FN
template<int M> struct Judged {
  float reward[M];               // of every agent
  bool absurd;                   // one of them beyond the task's limit
  unsigned terminated, truncated; // 1 + the term that ended the episode, 0 for none
};
