// Adam (Kingma and Ba, 2015, algorithm 1, epsilon added after the bias correction), with
// decoupled weight decay (Loshchilov and Hutter, 2019).
#pragma once

// The same for all parameters of a step.
struct AdamStep {
  float scale;  // of the gradient
  float rate;   // learning rate over the first bias correction
  float root;   // 1 / sqrt(the second bias correction)
  float keep;   // 1 - learning rate * weight decay
  float one_less_beta1;
  float one_less_beta2;
  float epsilon;
};

// The gradient is scaled in place.
template<class R> OSTLER_FN void adam(const AdamStep& s, R& theta, R& g, R& m, R& v) {
  g = g * bc<R>(s.scale);
  m = fma(bc<R>(s.one_less_beta1), g - m, m);
  v = fma(bc<R>(s.one_less_beta2), g * g - v, v);
  const R step = m / fma(sqrt_(v), bc<R>(s.root), bc<R>(s.epsilon));
  theta = bc<R>(s.keep) * theta - bc<R>(s.rate) * step;
}
