// Random numbers by their distributions: commands, resets, events, noise, biases, and those that
// expressions of a start read. Whole numbers of steps are drawn where they are used.
#pragma once

// Distributions: `Draw` of sim/lang/src/draw.rs, which says what a row's numbers are. Those from
// the normal one on take two random words, the others one.
enum { CHANCE_NONE, CHANCE_UNIFORM, CHANCE_CENTRED, CHANCE_LOG, CHANCE_EXPONENTIAL, CHANCE_BERNOULLI, CHANCE_CHOICE, CHANCE_NORMAL, CHANCE_TRUNCATED_NORMAL, CHANCE_BETA };

// First entry of list `k` of those that lie one behind the other.
OSTLER_FN unsigned begin_of(const unsigned* ends, int k) { return k > 0 ? ends[k - 1] : 0u; }

// Rows of the draws of commands' components, then of resets' operations, of the numbers of
// expressions, of places' noise, of biases and of events' numbers.
OSTLER_FN int command_draw(const Task&, int c) { return c; }
OSTLER_FN int place_draw(const Task& t, int o) { return t.ncommand + o; }
OSTLER_FN int random_draw(const Task& t, int k) { return t.ncommand + t.nplace + k; }
OSTLER_FN int sink_draw(const Task& t, int s) { return t.ncommand + t.nplace + t.nrandom + s; }
OSTLER_FN int bias_draw(const Task& t, int k) { return t.ncommand + t.nplace + t.nrandom + t.nsink + k; }
OSTLER_FN int event_draw(const Task& t, int d) { return t.ncommand + t.nplace + t.nrandom + t.nsink + t.nbias + d; }

// A row.
struct Draw {
  unsigned chance;
  float low, high, least, most;
  unsigned begin, end; // choices
};
OSTLER_FN Draw draw_of(const EnvArgs& a, int d) {
  return {a.draw_chance[d], a.draw_low[d], a.draw_high[d], a.draw_least[d], a.draw_most[d], begin_of(a.draw_end, d), a.draw_end[d]};
}

// Block `k` of the words of a draw that takes more than its own two: these are their key.
OSTLER_FN Words more_words(unsigned first, unsigned second, unsigned k) {
  return philox((unsigned long long)second << 32 | first, 0, 0, 0, k);
}
// Proposals of a rejection at most. About half of them are taken at worst.
enum : unsigned { PROPOSALS = 64 };

// Normal within least and most. The distance from the end that is nearer to the mean is proposed:
// normally, evenly or exponentially. Source: Robert, "Simulation of truncated normal variables",
// Statistics and Computing 5, 1995.
OSTLER_FN_BIG float truncated_normal(float mean, float std, float least, float most, unsigned first, unsigned second) {
  const float width = (most - least) / std;
  const bool mirrored = most < mean;
  const float near = mirrored ? (mean - most) / std : (least - mean) / std;
  const bool tail = near > 0.0f;
  const float rate = 0.5f * (near + sqrt_(near * near + 4.0f));
  const bool even = width <= (tail ? exp_(0.5f - 0.5f * near / rate) / rate : 2.50662827f);
  float t = 0.0f;
  OSTLER_ROLLED for (unsigned k = 0; k < PROPOSALS; k++) {
    const Words w = more_words(first, second, k);
    // The logarithm of the share of such proposals that is taken.
    float log = 0.0f;
    if (even) {
      t = width * unit(w.w[0]);
      const float z = near + t;
      log = tail ? -0.5f * t * (t + 2.0f * near) : -0.5f * z * z;
    } else if (tail) {
      t = -ln_(1.0f - unit(w.w[0])) / rate;
      const float over = t - 1.0f / rate;
      log = -0.5f * over * over;
    } else {
      float x, y;
      normal_pair(w.w[0], w.w[1], x, y);
      t = x - near;
    }
    if (t >= 0.0f && t <= width && unit(w.w[2]) < exp_(log)) break;
  }
  return clamp_(mirrored ? most - std * t : least + std * t, least, most);
}

// The logarithm of a number of the gamma distribution. Source: Marsaglia and Tsang, "A simple
// method for generating gamma variables", ACM Transactions on Mathematical Software 26, 2000.
OSTLER_FN_BIG float gamma_log(float shape, unsigned first, unsigned second, unsigned from) {
  const bool small = shape < 1.0f;
  const float d = (small ? shape + 1.0f : shape) - 0.333333333f, c = 1.0f / sqrt_(9.0f * d);
  float v = 1.0f, rest = 1.0f;
  OSTLER_ROLLED for (unsigned k = from; k < from + PROPOSALS; k++) {
    const Words w = more_words(first, second, k);
    float x, y;
    normal_pair(w.w[0], w.w[1], x, y);
    const float root = 1.0f + c * x;
    v = root * root * root;
    rest = 1.0f - unit(w.w[3]);
    if (root > 0.0f && ln_(1.0f - unit(w.w[2])) < 0.5f * x * x + d * (1.0f - v + ln_(v))) break;
    v = 1.0f;
  }
  const float log = ln_(d * v);
  return small ? log + ln_(rest) / shape : log;
}

// A number of a row from two random words.
OSTLER_FN float uniform_number(const Draw& d, unsigned word) { return d.low + (d.high - d.low) * unit(word); }
OSTLER_FN float centred_number(const Draw& d, unsigned word) { return d.low + d.high * (2.0f * unit(word) - 1.0f); }
OSTLER_FN float normal_number(const Draw& d, float x) { return clamp_(d.low + d.high * x, d.least, d.most); }
OSTLER_FN_BIG float draw_number(const EnvArgs& a, int row, unsigned first, unsigned second) {
  const Draw d = draw_of(a, row);
  float x = 0.0f, y;
  switch (d.chance) {
    case CHANCE_UNIFORM: return uniform_number(d, first);
    case CHANCE_CENTRED: return centred_number(d, first);
    case CHANCE_LOG: return exp_(uniform_number(d, first));
    // 1 - unit lies in (0, 1]: its logarithm is finite.
    case CHANCE_EXPONENTIAL: return clamp_(-d.low * ln_(1.0f - unit(first)), d.least, d.most);
    case CHANCE_BERNOULLI: return unit(first) < d.low ? 1.0f : 0.0f;
    case CHANCE_CHOICE: {
      // The first one whose share, with those before, is greater; else the last.
      unsigned i = d.begin, last = d.end - 1;
      while (i < last) {
        const unsigned middle = i + (last - i) / 2;
        if (unit(first) < a.option_share[middle]) last = middle;
        else i = middle + 1;
      }
      return a.option[i];
    }
    case CHANCE_NORMAL: normal_pair(first, second, x, y); return normal_number(d, x);
    case CHANCE_TRUNCATED_NORMAL: return truncated_normal(d.low, d.high, d.least, d.most, first, second);
    case CHANCE_BETA:
      // X / (X + Y), X and Y of gamma distributions.
      x = gamma_log(d.high, first, second, PROPOSALS) - gamma_log(d.low, first, second, 0);
      return clamp_(d.least + (d.most - d.least) / (1.0f + exp_(x)), d.least, d.most);
    default: return 0.0f;
  }
}

// The same in some environments, by j: in vectors where many environments draw many of them.
// `other`, if it is not null: of normal numbers the second ones of their pairs.
template<class L> OSTLER_FN void draw_numbers(const EnvArgs& a, const L& lanes, int row, const unsigned* first, const unsigned* second, float* to, float* other = nullptr) {
  const Draw d = draw_of(a, row);
  if (L::W == 1 && d.chance != CHANCE_CENTRED && !(other && d.chance == CHANCE_NORMAL)) {
    // A GPU's thread: but for what is drawn in every step, code that is called, not copied.
    lanes.each([&](int j, int) { to[j] = draw_number(a, row, first[j], second[j]); });
  } else if (d.chance == CHANCE_UNIFORM || d.chance == CHANCE_LOG) {
    lanes.dense([&](int j, int) OSTLER_INLINE { to[j] = uniform_number(d, first[j]); });
    if (d.chance == CHANCE_LOG) lanes.dense([&](int j, int) OSTLER_INLINE { to[j] = exp_(to[j]); });
  } else if (d.chance == CHANCE_CENTRED) {
    lanes.dense([&](int j, int) OSTLER_INLINE { to[j] = centred_number(d, first[j]); });
  } else if (d.chance == CHANCE_NORMAL && other) {
    lanes.dense([&](int j, int) OSTLER_INLINE {
      float x, y;
      normal_pair(first[j], second[j], x, y);
      to[j] = normal_number(d, x);
      other[j] = normal_number(d, y);
    });
  } else if (d.chance == CHANCE_NORMAL) {
    lanes.dense([&](int j, int) OSTLER_INLINE {
      float x, y;
      normal_pair(first[j], second[j], x, y);
      to[j] = normal_number(d, x);
    });
  } else {
    lanes.each([&](int j, int) { to[j] = draw_number(a, row, first[j], second[j]); });
  }
}
