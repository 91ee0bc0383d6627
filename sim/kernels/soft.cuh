// MuJoCo's soft constraints: impedance and reference acceleration.
// Source: MuJoCo, Computation, "Constraint model" and Modeling, "Solver parameters".
#pragma once

// x to the power p >= 1, for x >= 0. The part of p below one is a product of square
// roots of square roots: those that its binary digits name.
template<class R, class T> OSTLER_FN R power_(R x, T p) {
  const int whole = (int)p;
  R y = x;
  for (int i = 1; i < whole; i++) y = y * x;
  T part = p - (T)whole;
  R root = x;
  for (int left = Tiny<R>::value < 1e-12 ? 52 : 24; left > 0 && part > 0; left--) {
    root = sqrt_(root);
    part = part + part;
    if (part >= 1) y = y * root, part = part - 1;
  }
  return y;
}

// How a contact is kept: by body, or by its Jacobian.
enum Kept { BY_BODY = 1, BY_JACOBIAN = 2, EITHER_WAY = 3 };

// Contacts' dimension as a template constant where it is 1, 3, or the only other one of a robot
// (0 stands for others), so that loops over it unroll. A robot with a kernel of its own knows which
// there are when it is compiled.
template<int D> struct Dim {
  static constexpr int value = D;
  // The dimension itself.
  template<class M> static OSTLER_FN int of(const M& m, int pair) { return D > 0 ? D : m.pair_dim[pair]; }
};
template<class M> struct Dims {  // a bit for each
  static constexpr unsigned of(Kept kept) {
    return (kept & BY_BODY ? M::body_dims : 0u) | (kept & BY_JACOBIAN ? M::jacobian_dims : 0u);
  }
};
template<class T> struct Dims<Tables<T>> {
  static constexpr unsigned of(Kept) { return 1u << 1 | 1u << 3 | 1u << 4 | 1u << 6; }
};
template<Kept kept, class M, class F> OSTLER_FN void by_dim(const M& m, int pair, F&& f) {
  constexpr unsigned dims = Dims<M>::of(kept), one = 1u << 1, three = 1u << 3;
  constexpr unsigned rest = dims & ~(one | three);
  constexpr bool others = rest != 0;
  typedef Dim<rest == 1u << 4 ? 4 : rest == 1u << 6 ? 6 : 0> Other;
  (void)m, (void)pair, (void)f;
  if constexpr (dims == one) f(Dim<1>());
  else if constexpr (dims == three) f(Dim<3>());
  else if constexpr ((dims & (one | three)) == 0) { if constexpr (others) f(Other()); }
  else switch (m.pair_dim[pair]) {
      case 1: if constexpr ((dims & one) != 0) f(Dim<1>()); break;
      case 3: if constexpr ((dims & three) != 0) f(Dim<3>()); break;
      default: if constexpr (others) f(Other());
    }
}

// Impedance at distance r beyond the margin.
template<class R, class T> OSTLER_FN R impedance(const T* s, R r) {
  if (s[SOFT_D0] == s[SOFT_DW]) return bc<R>(s[SOFT_D0]);
  const R x = abs_(r) * bc<R>(s[SOFT_IW]);
  const R rest = bc<R>(1) - x;
  const auto p = s[SOFT_POWER];
  R y = x;
  if (p == 2) {
    y = sel(x > bc<R>(s[SOFT_MID]), fnma(bc<R>(s[SOFT_HB]) * rest, rest, bc<R>(1)), bc<R>(s[SOFT_LA]) * x * x);
  } else if (p > 1) {
    const R high = max_(rest, bc<R>(0)) * bc<R>(s[SOFT_HB]);
    y = sel(x > bc<R>(s[SOFT_MID]), fnma(bc<R>(1 - s[SOFT_MID]), power_(high, p), bc<R>(1)),
            bc<R>(s[SOFT_MID]) * power_(x * bc<R>(s[SOFT_LA]), p));
  }
  const R d = fma(y, bc<R>(s[SOFT_DW] - s[SOFT_D0]), bc<R>(s[SOFT_D0]));
  return sel(x < bc<R>(1), d, bc<R>(s[SOFT_DW]));
}

// D = 1/R of a constraint with impedance `imp`.
template<class R, class T> OSTLER_FN R stiffness(const T* s, R imp) {
  return imp / ((bc<R>(1) - imp) * bc<R>(s[SOFT_DIAG]));
}

// The same with another diagonal than the table's.
template<class R> OSTLER_FN R stiffness(R imp, R diag) { return imp / ((bc<R>(1) - imp) * diag); }

// Reference acceleration for velocity v and distance r beyond the margin.
template<class R, class T> OSTLER_FN R reference(const T* s, R imp, R r, R v) {
  return fms(bc<R>(-s[SOFT_B]), v, bc<R>(s[SOFT_K]) * imp * r);
}
