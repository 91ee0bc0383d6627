// Values that expressions keep from the step before: `previous` and `since`.
#pragma once

// Writes down the state as it is now.
OSTLER_FN void remember(const EnvArgs& a, const Block b, const Terms& terms) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  if (t.nhistory == 0) return;
  const unsigned* mask = a.mask + e;
  const float step_dt = a.step_dt[0];
  // No expression reads what another one has just written.
  terms.cells(true, [&](int k, const auto& value) OSTLER_INLINE {
    const int first = (int)begin_of(a.cell_end, k), size = value.size((int)a.cell_end[k] - first);
    const bool since = a.cell_since[k] != 0;
    for (int i = 0; i < size; i++) {
      const float* before = a.history + (first + i) * n + e;
      float* next = a.next_history + (first + i) * n + e;
      if (since) OSTLER_EACH(l) next[l] = value(i, l) == 0.0f ? before[l] + step_dt : 0.0f;
      else OSTLER_EACH(l) next[l] = value(i, l);
    }
  });
  for (int i = 0; i < t.nhistory; i++) {
    const float* next = a.next_history + i * n + e;
    float* to = a.history + i * n + e;
    if (a.only_new) OSTLER_EACH(l) to[l] = mask[l] ? next[l] : to[l];
    else OSTLER_EACH(l) to[l] = next[l];
  }
}

// The same for the first state of new episodes, in which nothing was before: a value is its
// own, and a condition held one step before the first.
OSTLER_FN void begin_history(const EnvArgs& a, const Chosen& c, const Terms& terms) {
  const Task& t = task_of(a);
  const long n = a.n, e = c.first;
  if (t.nhistory == 0) return;
  const float none = -a.step_dt[0];
  for (int k = 0; k < t.ncell; k++) {
    if (!a.cell_since[k]) continue;
    for (unsigned i = begin_of(a.cell_end, k); i < a.cell_end[k]; i++) {
      float* to = a.history + i * n + e;
      c.each([&](int, int l) OSTLER_INLINE { to[l] = none; });
    }
  }
  // A value comes after those that it reads.
  terms.cells(false, [&](int k, const auto& value) OSTLER_INLINE {
    const int first = (int)begin_of(a.cell_end, k), size = value.size((int)a.cell_end[k] - first);
    for (int i = 0; i < size; i++) {
      float* to = a.history + (first + i) * n + e;
      c.each([&](int, int l) OSTLER_INLINE { to[l] = value(i, l); });
    }
  });
}
