// All that the printed code of a task needs (sim/env/src/task/emit).
#pragma once
#include "math.cuh"
#include "rng.cuh"
#include "ops.cuh"
#include "heights.cuh"
#include "args.cuh"
#include "block.cuh"
#include "terms.cuh"

// With those of step.cuh so many kinds of faults.
enum { FAULT_ENGINE = 16, FAULT_TASK = 32, FAULTS = 6 };
#include "native.cuh"
// A task's expression as a function.
#define OSTLER_TERM OSTLER_FN
