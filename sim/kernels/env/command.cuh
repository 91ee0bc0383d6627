// Random targets.
#pragma once

// Draws components first .. first + four - 1 of the commands of some environments, which one
// draw is good for; `due` says of which.
template<class L, class Due> OSTLER_FN void draw_commands(const EnvArgs& a, const L& lanes, int first, int four, Due due) {
  const long n = a.n, e = lanes.first;
  const unsigned stream = a.first_env + (unsigned)e;
  unsigned word[4][L::W];
  lanes.dense([&](int j, int l) OSTLER_INLINE {
    const Words w = philox(a.seed, stream + (unsigned)l, DRAW_COMMAND, a.clock, (unsigned)first / 4);
    for (int k = 0; k < 4; k++) word[k][j] = w.w[k];
  });
  for (int k = 0; k < four; k++) {
    const float low = a.command_low[first + k], high = a.command_high[first + k];
    float* to = a.command + (first + k) * n + e;
    lanes.each([&](int j, int l) OSTLER_INLINE {
      const float x = low + (high - low) * unit(word[k][j]);
      to[l] = due(k, l) ? x : to[l];
    });
  }
}

// Draws the commands that are due in environments that go on.
OSTLER_FN void command(const EnvArgs& a, const Block b) {
  const Task& t = task_of(a);
  const unsigned* age = a.age + b.first;
  for (int first = 0; first < t.ncommand; first += 4) {
    unsigned due[4][Block::W], any = 0;
    const int four = t.ncommand - first < 4 ? t.ncommand - first : 4;
    for (int k = 0; k < four; k++) {
      const unsigned interval = a.command_interval[first + k];
      if (interval == 0) {
        OSTLER_EACH(l) due[k][l] = 0;
      } else {
        OSTLER_EACH(l) due[k][l] = age[l] % interval == 0;
      }
      OSTLER_EACH(l) any |= due[k][l];
    }
    if (any) draw_commands(a, b, first, four, [&](int k, int l) OSTLER_INLINE { return due[k][l] != 0; });
  }
}

// Draws all commands of environments that begin anew.
OSTLER_FN void command(const EnvArgs& a, const Chosen& c) {
  const Task& t = task_of(a);
  for (int first = 0; first < t.ncommand; first += 4) {
    const int four = t.ncommand - first < 4 ? t.ncommand - first : 4;
    draw_commands(a, c, first, four, [](int, int) OSTLER_INLINE { return true; });
  }
}
