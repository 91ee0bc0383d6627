// Layer normalisation of one row.
//
// Source: Ba, Kiros and Hinton, "Layer normalization", 2016; libtorch's `layer_norm`.
#pragma once

// Added to the variance, as in PyTorch.
#define OSTLER_NORM_EPS 1e-5

// From the gradient d of a normalised number x (before gain and shift) to that of the
// argument; the means of d and of d * x over the row, 1 / standard deviation.
template<class R> OSTLER_FN R norm_slope(R x, R d, R mean_d, R mean_dx, R scale) {
  return (d - mean_d - x * mean_dx) * scale;
}
