// Random targets.
#pragma once

// Draws the commands that are due; `fresh`: all of environments that begin anew.
OSTLER_FN void command(const EnvArgs& a, const Block b, const bool fresh) {
  const Task& t = task_of(a);
  const long n = a.n, e = b.first;
  const unsigned *age = a.age + e, *mask = a.mask + e;
  const unsigned stream = a.first_env + (unsigned)e;
  // A draw is good for four components.
  for (int first = 0; first < t.ncommand; first += 4) {
    unsigned due[4][Block::W], any = 0;
    const int four = t.ncommand - first < 4 ? t.ncommand - first : 4;
    for (int k = 0; k < four; k++) {
      const unsigned interval = a.command_interval[first + k];
      if (fresh) {
        OSTLER_EACH(l) due[k][l] = mask[l];
      } else if (interval == 0) {
        OSTLER_EACH(l) due[k][l] = 0;
      } else {
        OSTLER_EACH(l) due[k][l] = age[l] % interval == 0;
      }
      OSTLER_EACH(l) any |= due[k][l];
    }
    if (!any) continue;
    unsigned word[4][Block::W];
    OSTLER_EACH(l) {
      const Words w = philox(a.seed, stream + (unsigned)l, DRAW_COMMAND, a.clock, (unsigned)first / 4);
      for (int k = 0; k < 4; k++) word[k][l] = w.w[k];
    }
    for (int k = 0; k < four; k++) {
      const float low = a.command_low[first + k], high = a.command_high[first + k];
      float* to = a.command + (first + k) * n + e;
      OSTLER_EACH(l) {
        const float x = low + (high - low) * unit(word[k][l]);
        to[l] = due[k][l] ? x : to[l];
      }
    }
  }
}
