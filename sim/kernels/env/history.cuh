// Values that are kept from one step to the next: `previous`, `since` and the states of a task.
// Each has an expression for the first state of an episode, and one for its next value.
#pragma once

// The next values of the states of the task, or of all others. No expression reads what another
// one has just written: the next values of all come first.
OSTLER_FN void renew(const EnvArgs& a, const Block b, const Terms& terms, const bool states) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  const unsigned* mask = a.mask + e;
  terms.cells(states, [&](int k, const auto& value) OSTLER_INLINE {
    const int first = (int)begin_of(a.cell_end, k), size = value.size((int)a.cell_end[k] - first);
    for (int i = 0; i < size; i++) {
      float* next = a.next_history + (first + i) * n + e;
      OSTLER_EACH(l) next[l] = value(i, l);
    }
  });
  for (int k = 0; k < t.ncell; k++) {
    if ((a.cell_state[k] != 0) != states) continue;
    for (unsigned i = begin_of(a.cell_end, k); i < a.cell_end[k]; i++) {
      float* next = a.next_history + i * n + e;
      float* to = a.history + i * n + e;
      if (states) {
        // Where the reward broke an environment, it is examined with the states that it saw.
        OSTLER_EACH(l) {
          const float before = to[l];
          to[l] = next[l];
          next[l] = before;
        }
      } else if (a.only_new) {
        OSTLER_EACH(l) to[l] = mask[l] ? next[l] : to[l];
      } else {
        OSTLER_EACH(l) to[l] = next[l];
      }
    }
  }
}

// At a step's end, before observations: rewards and terminations saw the states before.
OSTLER_FN void renew_states(const EnvArgs& a, const Block b, const Terms& terms) {
  if (task_of(a).nhistory > 0) renew(a, b, terms, true);
}

// Writes down the state as it is now, for the next step.
OSTLER_FN void remember(const EnvArgs& a, const Block b, const Terms& terms) {
  if (task_of(a).nhistory > 0) renew(a, b, terms, false);
}

// The values in the first state of new episodes, of those that native functions have a part in
// or of all others. A value comes after those that it reads.
OSTLER_FN void begin_history(const EnvArgs& a, const Chosen& c, const Terms& terms, const bool of_natives) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  if (t.nhistory == 0) return;
  terms.begins(of_natives, [&](int k, const auto& value) OSTLER_INLINE {
    const int first = (int)begin_of(a.cell_end, k), size = value.size((int)a.cell_end[k] - first);
    for (int i = 0; i < size; i++) {
      float* to = a.history + (first + i) * n + e;
      c.each([&](int, int l) OSTLER_INLINE { to[l] = value(i, l); });
    }
  });
}
