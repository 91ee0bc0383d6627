// Activations and their slopes.
//
// Errors in units in the last place, against double precision: ELU 1, tanh 3; ReLU and the
// slopes of ELU and ReLU have libtorch's bits. The error of SiLU is relative to its argument.
// NaN stays NaN, zeros keep their signs, subnormal numbers are not flushed.
#pragma once

enum Activation { OSTLER_ELU, OSTLER_RELU, OSTLER_TANH, OSTLER_SILU };

// tanh: (1 - e^(-2|x|)) / (1 + e^(-2|x|))
template<class R> OSTLER_FN R hyperbolic(R x) {
  const R e = exp_m1(abs_(x) * bc<R>(-2.0));
  return with_sign_(e / (e + bc<R>(2.0)), x);
}

template<class R> OSTLER_FN R logistic(R x) {
  return fma(hyperbolic(x * bc<R>(0.5f)), bc<R>(0.5f), bc<R>(0.5f));
}

template<class R> OSTLER_FN R activate(Activation a, R x) {
  if (a == OSTLER_ELU) return sel(x < bc<R>(0.0), exp_m1(x), x);
  // The second where both are zeros or one is none.
  if (a == OSTLER_RELU) return max_(bc<R>(0.0), x);
  if (a == OSTLER_SILU) return x * logistic(x);
  return hyperbolic(x);
}

// From the gradient d of the result y to that of the argument. SiLU's is no function of the
// result: its y is the argument.
template<class R> OSTLER_FN R slope(Activation a, R y, R d) {
  if (a == OSTLER_ELU) return sel(y > bc<R>(0.0), d, d * (y + bc<R>(1.0)));
  if (a == OSTLER_RELU) return sel(y <= bc<R>(0.0), bc<R>(0.0), d);
  if (a == OSTLER_SILU) {
    const R s = logistic(y);
    return d * s * fma(y, bc<R>(1.0) - s, bc<R>(1.0));
  }
  return d * (bc<R>(1.0) - y * y);
}
