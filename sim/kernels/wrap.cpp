// A string around a geom, for what is found once per model: sim/model/src/wrap.rs.
#include <immintrin.h>
#include <math.h>

namespace {
#include "scalar.cuh"
#include "space.cuh"
#include "wrap.cuh"
}

extern "C" int ostler_wrap(const double* from, const double* to, const double* side, double radius, int cylinder, double* out) {
  double way[6];
  return wrap<double>(from, to, side, radius, cylinder != 0, 2, out, way, out + 6);
}
