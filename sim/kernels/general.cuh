// Jacobians, distances and reference accelerations of the general rows.
#pragma once

template<class R, class M> OSTLER_FN void constraint_rows(const M& m, Work<R, M>& w) {
  limits(m, w);
}
