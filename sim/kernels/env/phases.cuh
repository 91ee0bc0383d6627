// A control step around its physics, of environments on a host and on a device:
//   act      actions to controls
//   (physics steps the worlds)
//   finish   rewards, ends, commands, states of the task, observations, flags; native functions
//            before rewards and before observations
//   restart  for environments that begin anew:
//     choose   where on a terrain and in a reference motion; numbers of the robot, draws, zeros
//     place    their worlds go there; engines whose worlds are more than columns do it themselves
//     begin    their first observations
#pragma once
#include "draw.cuh"
#include "late.cuh"
#include "act.cuh"
#include "command.cuh"
#include "judge.cuh"
#include "observe.cuh"
#include "ground.cuh"
#include "motion.cuh"
#include "place.cuh"
#include "event.cuh"
#include "flag.cuh"
#include "start.cuh"
#include "history.cuh"
#include "tally.cuh"

// Calls the native functions of a task. An output, or a number that one remembers, that is not
// finite breaks its environment: its bits are in `broken`.
template<class L> OSTLER_FN_PART void call_natives(const EnvArgs& a, const L& lanes, const Terms& terms, unsigned stage, unsigned* broken) {
  const Task& t = task_of(a);
  const long n = a.n, e = lanes.first;
  terms.natives(stage);
  OSTLER_ROLLED for (int i = 0; i < t.nnative; i++) {
    const float* x = a.native + i * n + e;
    lanes.each([&](int, int l) OSTLER_INLINE { broken[l] |= is_finite(x[l]) ? 0u : (unsigned)FAULT_TASK; });
  }
  OSTLER_ROLLED for (int i = 0; i < t.nkept; i++) {
    const float* x = a.native_memory + i * n + e;
    lanes.each([&](int, int l) OSTLER_INLINE { broken[l] |= is_finite(x[l]) ? 0u : (unsigned)FAULT_TASK; });
  }
}

OSTLER_FN Outcome finish(const EnvArgs& a, const Block b, const Terms& terms) {
  if (task_of(a).nscan > 0) scan(a, b);
  if (task_of(a).nreference > 0) follow(a, b);
  const bool natives = task_of(a).nfunction > 0;
  if (natives) call_natives(a, b, terms, NATIVE_JUDGE, a.bits + b.first);
  judge(a, b, terms);
  measure(a, b, terms);
  command(a, b, terms);
  events(a, b);
  renew_states(a, b, terms);
  if (natives) call_natives(a, b, terms, NATIVE_SEE, a.bits + b.first);
  observe(a, b, terms);
  show(a, b, terms);
  const Outcome outcome = flag(a, b);
  // Else it is done once the new episodes have begun.
  if (outcome == GO_ON) remember(a, b, terms);
  return outcome;
}

OSTLER_FN void begin(const EnvArgs& a, const Block b, const Chosen& c, const Terms& terms) {
  if (task_of(a).ncourse > 0) steer(a, c);
  if (task_of(a).nscan > 0) scan(a, c);
  if (task_of(a).nreference > 0 && task_of(a).nground > 0) look_up(a, c, 1.0f);
  const bool natives = task_of(a).nfunction > 0;
  unsigned broken[Chosen::W] = {};
  begin_history(a, c, terms, false);
  if (natives) {
    call_natives(a, c, terms, NATIVE_BEGIN, broken);
    begin_history(a, c, terms, true);
  }
  observe(a, c, terms);
  show(a, c, terms);
  if (natives) c.each([&](int, int l) OSTLER_INLINE { a.stuck[c.first + l] |= broken[l]; });
  remember(a, b, terms);
}

OSTLER_FN void choose(const EnvArgs& a, const Block b, const Chosen& c, const Terms& terms) {
  if (task_of(a).nground > 0) choose_tiles(a, c, terms);
  if (task_of(a).nreference > 0) choose_frame(a, c);
  begin_events(a, b);
  start(a, b, c, terms);
}

OSTLER_FN_BIG void restart(const EnvArgs& a, const Block b, const Terms& terms) {
  const Chosen c(b, a.mask);
  choose(a, b, c, terms);
  place(a, c);
  begin_pushes(a, c);
  begin(a, b, c, terms);
}
