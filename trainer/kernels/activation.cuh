// Activations and their slopes.
//
// Errors in units in the last place, against double precision: ELU 1, tanh 3; ReLU and the
// slopes of ELU and ReLU have libtorch's bits. NaN stays NaN, zeros keep their signs,
// subnormal numbers are not flushed.
#pragma once

enum Activation { OSTLER_ELU, OSTLER_RELU, OSTLER_TANH };

template<class R> OSTLER_FN R activate(Activation a, R x) {
  if (a == OSTLER_ELU) return sel(x < bc<R>(0.0), exp_m1(x), x);
  // The second where both are zeros or one is none.
  if (a == OSTLER_RELU) return max_(bc<R>(0.0), x);
  // tanh: (1 - e^(-2|x|)) / (1 + e^(-2|x|))
  const R e = exp_m1(abs_(x) * bc<R>(-2.0));
  return with_sign_(e / (e + bc<R>(2.0)), x);
}

// From the gradient d of the result y to that of the argument.
template<class R> OSTLER_FN R slope(Activation a, R y, R d) {
  if (a == OSTLER_ELU) return sel(y > bc<R>(0.0), d, d * (y + bc<R>(1.0)));
  if (a == OSTLER_RELU) return sel(y <= bc<R>(0.0), bc<R>(0.0), d);
  return d * (bc<R>(1.0) - y * y);
}
