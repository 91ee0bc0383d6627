// How the step ended for every environment.
#pragma once

// Observations before the reset of an environment whose episode is cut short.
OSTLER_FN void keep_final(const EnvArgs& a, const long e) {
  const Task& t = task_of(a);
  const unsigned slot = a.final_used[e];
  if (slot >= (unsigned)a.slots) return;
  a.final_used[e] = slot + 1;
  for (int m = 0; m < t.nagent; m++) a.final_slot[e * t.nagent + m] = (int)slot;
  const long at = slot * (long)a.n + e;
  copy(a.final_obs + at * t.nobs, a.obs + e * t.nobs, t.nobs);
  copy(a.final_critic + at * t.ncritic, a.critic_obs + e * t.ncritic, t.ncritic);
}

// Whether environments of a block begin anew, and whether some of these broke.
enum Outcome { GO_ON, BEGIN_ANEW, BROKEN };

// Writes rewards and flags and marks environments that begin anew.
OSTLER_FN Outcome flag(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first, agents = t.nagent;
  const unsigned most = a.max_steps[0];
  const unsigned *bits = a.bits + e, *ended = a.ended + e, *cut = a.cut + e, *age = a.age + e;
  unsigned *mask = a.mask + e, late[Block::W], any = 0, any_late = 0, any_broken = 0;
  unsigned over[Block::W];
  OSTLER_EACH(l) over[l] = t.nreference > 0 && is_over(a, e + l);
  OSTLER_EACH(l) {
    const unsigned well = bits[l] == 0, end = well & (ended[l] != 0);
    late[l] = well & (end ^ 1u) & ((cut[l] != 0) | (age[l] >= most) | over[l]);
    mask[l] = (well ^ 1u) | end | late[l];
    any |= mask[l];
    any_broken |= well ^ 1u;
    any_late |= late[l];
  }
  for (int m = 0; m < agents; m++) {
    const float* gain = a.gain + m * n + e;
    float* sum = a.ret + m * n + e;
    const long row = e * agents + m;
    float x[Block::W];
    OSTLER_EACH(l) {
      x[l] = bits[l] == 0 ? gain[l] : 0.0f;
      sum[l] += x[l];
    }
    put(b, a.reward + row, agents, [&](int l) OSTLER_INLINE { return x[l]; });
    put(b, a.valid + row, agents, [&](int l) OSTLER_INLINE { return truth(bits[l] == 0); });
    put(b, a.truncated + row, agents, [&](int l) OSTLER_INLINE { return truth(late[l] != 0); });
    put(b, a.terminated + row, agents, [&](int l) OSTLER_INLINE {
      return truth((bits[l] == 0) & (mask[l] != 0) & (late[l] == 0));
    });
    put(b, a.final_slot + row, agents, [&](int) OSTLER_INLINE { return -1; });
  }
  if (any_late)
    for (int l = 0; l < b.len; l++)
      if (late[l]) keep_final(a, e + l);
  if (any_broken)
    for (int l = 0; l < b.len; l++)
      if (bits[l]) suspect_events(a, e + l);
  return any_broken ? BROKEN : any ? BEGIN_ANEW : GO_ON;
}
