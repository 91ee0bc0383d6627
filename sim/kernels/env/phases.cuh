// A control step around its physics, of environments on a host and on a device:
//   act      actions to controls
//   (physics steps the worlds)
//   finish   rewards, ends, commands, observations, flags
//   start    for environments that begin anew: draws, zeros
//   (physics puts their worlds there)
//   begin    their first observations
#pragma once
#include "act.cuh"
#include "command.cuh"
#include "judge.cuh"
#include "observe.cuh"
#include "flag.cuh"
#include "start.cuh"
#include "history.cuh"

// Whether an environment begins anew: the block is then to be begun.
OSTLER_FN bool finish(const EnvArgs& a, const Block b, const Terms& terms) {
  judge(a, b, terms);
  command(a, b, false);
  observe<false>(a, b, terms);
  show<false>(a, b, terms);
  const bool any = flag(a, b);
  if (!any) remember(a, b, terms);
  return any;
}

OSTLER_FN void begin(const EnvArgs& a, const Block b, const Terms& terms) {
  begin_history(a, b, terms);
  observe<true>(a, b, terms);
  show<true>(a, b, terms);
  remember(a, b, terms);
}
