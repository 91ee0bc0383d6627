// A control step around its physics, of environments on a host and on a device:
//   act      actions to controls
//   (physics steps the worlds)
//   finish   rewards, ends, commands, states of the task, observations, flags
//   restart  for environments that begin anew:
//     start    draws, zeros
//     place    their worlds go there; engines whose worlds are more than columns do it themselves
//     begin    their first observations
#pragma once
#include "late.cuh"
#include "act.cuh"
#include "command.cuh"
#include "judge.cuh"
#include "observe.cuh"
#include "flag.cuh"
#include "start.cuh"
#include "place.cuh"
#include "event.cuh"
#include "history.cuh"

OSTLER_FN Outcome finish(const EnvArgs& a, const Block b, const Terms& terms) {
  judge(a, b, terms);
  measure(a, b, terms);
  command(a, b);
  events(a, b);
  renew_states(a, b, terms);
  observe(a, b, terms);
  show(a, b, terms);
  const Outcome outcome = flag(a, b);
  // Else it is done once the new episodes have begun.
  if (outcome == GO_ON) remember(a, b, terms);
  return outcome;
}

OSTLER_FN void begin(const EnvArgs& a, const Block b, const Chosen& c, const Terms& terms) {
  if (task_of(a).ncourse > 0) steer(a, c);
  begin_history(a, c, terms);
  observe(a, c, terms);
  show(a, c, terms);
  remember(a, b, terms);
}

OSTLER_FN_BIG void restart(const EnvArgs& a, const Block b, const Terms& terms) {
  const Chosen c(b, a.mask);
  start(a, c);
  begin_events(a, b);
  place(a, c);
  begin_pushes(a, c);
  begin(a, b, c, terms);
}
