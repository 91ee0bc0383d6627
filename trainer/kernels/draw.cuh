// Random numbers of the learner: those of the engine, with their bits.
#pragma once

#include "scalar.cuh"

// Apart from the learner's own functions of the same names, which have other bits.
namespace draws {
#include "env/math.cuh"
#include "env/rng.cuh"
}
