// Where the values of a task's expressions come from. On a GPU they are code, printed for the
// task (sim/env/src/task/emit); on a host an interpreter has them, one call a block and term.
#pragma once

enum { TERM_REWARD, TERM_END, TERM_SEEN, TERM_CELL, TERM_BEGIN, TERM_METRIC, TERM_START, TERM_UNTIL, TERM_CLIMB, TERM_RESAMPLE };

#ifdef OSTLER_BLOCK
typedef TaskSizes Task;
OSTLER_FN const Task& task_of(const EnvArgs& a) { return a.size; }

// The host's side.
struct Calls {
  void* context;
  // A term's values [components][OSTLER_BLOCK].
  const float* (*eval)(void* context, unsigned kind, unsigned term);
  // Overwrites rewards or observations with injected faults; null: there are none.
  void (*inject)(void* context, unsigned kind);
  // Calls a native function for the block, at a time NATIVE_* of native.cuh.
  void (*native)(void* context, unsigned function, unsigned stage);
  // Not 0 where a call panicked: the values since mean nothing.
  unsigned failed;
};
struct Values {
  const float* x;
  OSTLER_FN int size(int size) const { return size; }
  OSTLER_FN float operator()(int i, int lane) const { return x[i * OSTLER_BLOCK + lane]; }
  OSTLER_FN Values row() const { return *this; }
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
  // Of starts: `before(k)` comes before expression `k` is evaluated.
  template<class B, class F> OSTLER_FN void starts(B before, F f) const {
    for (int k = 0; k < a.size.nstart; k++) {
      before(k);
      f(k, Values{calls.eval(calls.context, TERM_START, (unsigned)k)});
    }
  }
  // Whether an episode's end leads to a higher level of the terrain, and to a lower one.
  template<class F> OSTLER_FN void climbs(F f) const { each(TERM_CLIMB, a.tile_climbs[0] ? 2 : 0, f); }
  template<class F> OSTLER_FN void untils(F f) const { each(TERM_UNTIL, a.size.nuntil, f); }
  // Whether commands are drawn anew.
  template<class F> OSTLER_FN void resamples(F f) const { each(TERM_RESAMPLE, a.size.nresample, f); }
  // Their first values: of those that read native functions, or of the others.
  template<class F> OSTLER_FN void begins(bool of_natives, F f) const {
    for (int k = 0; k < a.size.ncell; k++)
      if ((a.cell_native[k] != 0) == of_natives) f(k, Values{calls.eval(calls.context, TERM_BEGIN, (unsigned)k)});
  }
  OSTLER_FN void natives(unsigned stage) const {
    for (int k = 0; k < a.size.nfunction; k++) calls.native(calls.context, (unsigned)k, stage);
  }
  OSTLER_FN void inject(unsigned kind) const {
    if (calls.inject) calls.inject(calls.context, kind);
  }
  OSTLER_FN bool failed() const { return calls.failed != 0; }
};
#else
// Values of any number, for code that all terms share.
struct Row {
  const float* x;
  int count;
  OSTLER_FN int size(int) const { return count; }
  OSTLER_FN float operator()(int i, int) const { return x[i]; }
};
template<int N> struct Values {
  float x[N];
  OSTLER_FN int size(int) const { return N; }
  OSTLER_FN float operator()(int i, int) const { return x[i]; }
  OSTLER_FN Row row() const { return {x, N}; }
};
struct Printed {
  OSTLER_FN void inject(unsigned) const {}
  OSTLER_FN bool failed() const { return false; }
};
#endif
