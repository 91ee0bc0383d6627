// A gated recurrent unit (Cho et al. 2014) as PyTorch computes it:
//   r = s(ir + hr), z = s(iz + hz), n = tanh(in + r hn), h' = (1 - z) n + z h
// where i. and h. are products of the input and of the hidden state with their weights, biases
// included, and s is the logistic function.
#pragma once

template<class R> struct Gates {
  R r, z, n;
};

// From the six products; h is the state before.
template<class R> OSTLER_FN R gru(R ir, R iz, R in, R hr, R hz, R hn, R h, Gates<R>& g) {
  g.r = logistic(ir + hr);
  g.z = logistic(iz + hz);
  g.n = activate(OSTLER_TANH, fma(g.r, hn, in));
  return fma(g.z, h - g.n, g.n);
}

// From the gradient d of h': g becomes the gradients of ir (and hr), iz (and hz) and in; the
// result is that of hn. That of h is z d, beside what comes through the products.
template<class R> OSTLER_FN R gru_slopes(R d, R hn, R h, Gates<R>& g) {
  const R one = bc<R>(1.0f);
  const R dn = d * (one - g.z) * (one - g.n * g.n);
  const R dz = d * (h - g.n) * g.z * (one - g.z);
  const R out = dn * g.r;
  g.r = dn * hn * g.r * (one - g.r);
  g.z = dz;
  g.n = dn;
  return out;
}
