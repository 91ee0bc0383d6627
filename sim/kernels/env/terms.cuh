// Where the values of a task's expressions come from. On a GPU they are code, printed for the
// task (sim/src/task/emit); on a host an interpreter has them, one call a block and term.
#pragma once

enum { TERM_REWARD, TERM_END, TERM_SEEN, TERM_CELL, TERM_BEGIN, TERM_METRIC };

#ifdef OSTLER_BLOCK
typedef TaskSizes Task;
OSTLER_FN const Task& task_of(const EnvArgs& a) { return a.size; }

// The host's side, mirrored by sim/src/env/lanes.rs.
struct Calls {
  void* context;
  // A term's values [components][OSTLER_BLOCK].
  const float* (*eval)(void* context, unsigned kind, unsigned term);
  // Overwrites rewards or observations with injected faults; null: there are none.
  void (*inject)(void* context, unsigned kind);
  // Not 0 where a call panicked: the values since mean nothing.
  unsigned failed;
};
struct Values {
  const float* x;
  OSTLER_FN int size(int size) const { return size; }
  OSTLER_FN float operator()(int i, int lane) const { return x[i * OSTLER_BLOCK + lane]; }
};
struct Terms {
  const EnvArgs& a;
  const Calls& calls;
  template<class F> OSTLER_FN void each(unsigned kind, int count, F f) const {
    for (int k = 0; k < count; k++) f(k, Values{calls.eval(calls.context, kind, (unsigned)k)});
  }
  template<class F> OSTLER_FN void rewards(F f) const { each(TERM_REWARD, a.size.nreward, f); }
  template<class F> OSTLER_FN void ends(F f) const { each(TERM_END, a.size.nterm, f); }
  template<class F> OSTLER_FN void metrics(F f) const { each(TERM_METRIC, a.size.nmetric, f); }
  template<class F> OSTLER_FN void observations(F f) const { each(TERM_SEEN, a.size.nseen, f); }
  // What is remembered: states of the task, or values of the step before.
  template<class F> OSTLER_FN void cells(bool states, F f) const {
    for (int k = 0; k < a.size.ncell; k++)
      if ((a.cell_state[k] != 0) == states) f(k, Values{calls.eval(calls.context, TERM_CELL, (unsigned)k)});
  }
  template<class F> OSTLER_FN void begins(F f) const { each(TERM_BEGIN, a.size.ncell, f); }
  OSTLER_FN void inject(unsigned kind) const {
    if (calls.inject) calls.inject(calls.context, kind);
  }
  OSTLER_FN bool failed() const { return calls.failed != 0; }
};
#else
template<int N> struct Values {
  float x[N];
  OSTLER_FN int size(int) const { return N; }
  OSTLER_FN float operator()(int i, int) const { return x[i]; }
};
struct Printed {
  OSTLER_FN void inject(unsigned) const {}
  OSTLER_FN bool failed() const { return false; }
};
#endif
