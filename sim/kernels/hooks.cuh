// Where a specialised kernel puts its straight-line code in place of the loops.
#pragma once

template<class R, class M> OSTLER_FN void smooth(const M& m, Work<R, M>& w) { smooth_dynamics(m, w); }
