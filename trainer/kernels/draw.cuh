// Random numbers of the learner: those of the engine, with their bits.
#pragma once

#include "scalar.cuh"

// Purposes of draws: `Purpose` of sim/src/rng.rs.
enum { DRAW_PERMUTATION = 5, DRAW_UPDATE_NOISE = 13 };

// Apart from the learner's own functions of the same names, which have other bits.
namespace draws {
#include "env/math.cuh"
#include "env/rng.cuh"
}
