// Adam (Kingma and Ba, 2015, algorithm 1, epsilon added after the bias correction), with
// decoupled weight decay (Loshchilov and Hutter, 2019).
#pragma once

// The same for all parameters of a step.
struct AdamStep {
  float scale;           // of the gradient
  float rate;            // learning rate over the first bias correction
  float root;            // 1 / sqrt(the second bias correction)
  float keep;            // 1 - learning rate * weight decay
  float one_less_beta1;  // 1 - beta1
  float one_less_beta2;  // 1 - beta2
  float epsilon;         // added to the root of the second moment
};

// The same for all steps.
struct AdamConfig {
  double beta1;         // decay of the first moment
  double beta2;         // decay of the second moment
  double epsilon;       // added to the root of the second moment
  double weight_decay;  // the share that a step takes off per unit of learning rate
  double limit;         // longest gradient
};

// Counts a step along a gradient of length `norm`, and works out its numbers. powers:
// beta1^t and beta2^t after t steps, in float64: the bias corrections would lose four digits
// in float32.
OSTLER_FN AdamStep adam_begin(const AdamConfig& c, double norm, double lr, double* powers) {
  powers[0] *= c.beta1;
  powers[1] *= c.beta2;
  const double scale = c.limit / (norm + 1e-6);
  AdamStep s;
  s.scale = (float)(scale < 1.0 ? scale : 1.0);
  s.rate = (float)(lr / (1.0 - powers[0]));
  s.root = (float)(1.0 / sqrt_(1.0 - powers[1]));
  // Exactly 1 without: the bits are those of plain Adam.
  s.keep = (float)(1.0 - lr * c.weight_decay);
  s.one_less_beta1 = (float)(1.0 - c.beta1);
  s.one_less_beta2 = (float)(1.0 - c.beta2);
  s.epsilon = (float)c.epsilon;
  return s;
}

// The gradient is scaled in place.
template<class R> OSTLER_FN void adam(const AdamStep& s, R& theta, R& g, R& m, R& v) {
  g = g * bc<R>(s.scale);
  m = fma(bc<R>(s.one_less_beta1), g - m, m);
  v = fma(bc<R>(s.one_less_beta2), g * g - v, v);
  const R step = m / fma(sqrt_(v), bc<R>(s.root), bc<R>(s.epsilon));
  theta = bc<R>(s.keep) * theta - bc<R>(s.rate) * step;
}
