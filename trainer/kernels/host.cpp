// The learner's passes over rows on a host, for one kind of vectors: OSTLER_LANES numbers.
//
// Rows lie one behind the other unless it says columns. The rest at an end goes through a whole
// vector, too, so that every number is computed by the same operations.

#include <immintrin.h>
#include <stddef.h>
#include <string.h>

#include "scalar.cuh"
#include "vector.cuh"
#include "activation.cuh"
#include "gru.cuh"
#include "norm.cuh"
#include "adam.cuh"
#include "loss.cuh"
#include "finish.cuh"
#include "order.cuh"
#include "table.h"

typedef Vec<OSTLER_LANES> V;
enum { N = OSTLER_LANES };

// Outputs of a layer that are computed together for two vectors of rows: as many as the
// registers hold.
enum { OUTPUTS = OSTLER_LANES == 16 ? 8 : 4 };

// Up to N numbers, in a vector.
struct Some {
  float x[N];
  OSTLER_FN Some(const float* from, size_t n) : x{} { memcpy(x, from, n * sizeof(float)); }
  OSTLER_FN void out(float* to, size_t n) const { memcpy(to, x, n * sizeof(float)); }
};

OSTLER_FN V get(const float* from) {
  V v;
  load(v, from);
  return v;
}
OSTLER_FN V get(const float* from, size_t n) { return n >= N ? get(from) : get(Some(from, n).x); }
OSTLER_FN void set(float* to, V v) { store(to, v); }
OSTLER_FN void set(float* to, V v, size_t n) {
  if (n >= N) return store(to, v);
  float x[N];
  store(x, v);
  memcpy(to, x, n * sizeof(float));
}
OSTLER_FN float add_up(V v) {
  float x[N];
  store(x, v);
  float sum = 0;
  for (int i = 0; i < N; i++) sum += x[i];
  return sum;
}

// One loop for each activation, without a choice in it.
#define OSTLER_EACH(activation, BODY)                 \
  switch (activation) {                               \
    case OSTLER_ELU: { BODY(OSTLER_ELU); break; }     \
    case OSTLER_RELU: { BODY(OSTLER_RELU); break; }   \
    case OSTLER_SILU: { BODY(OSTLER_SILU); break; }   \
    default: { BODY(OSTLER_TANH); break; }            \
  }

template<Activation A> OSTLER_FN void forward_all(float* x, size_t n) {
  size_t i = 0;
  for (; i + N <= n; i += N) set(x + i, activate(A, get(x + i)));
  if (i < n) set(x + i, activate(A, get(x + i, n - i)), n - i);
}

template<Activation A> OSTLER_FN void forward_rows(const float* bias, float* y, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++, y += width) {
    size_t i = 0;
    for (; i + N <= width; i += N) set(y + i, activate(A, get(y + i) + get(bias + i)));
    const size_t n = width - i;
    if (n) set(y + i, activate(A, get(y + i, n) + get(bias + i, n)), n);
  }
}

// y [rows][width] becomes the activation of y + bias [width]; without a bias, of y.
static void forward(int activation, const float* bias, float* y, size_t rows, size_t width) {
#define BODY(A) bias ? forward_rows<A>(bias, y, rows, width) : forward_all<A>(y, rows * width)
  OSTLER_EACH(activation, BODY)
#undef BODY
}

template<Activation A> OSTLER_FN void backward_all(const float* y, float* d, size_t n) {
  size_t i = 0;
  for (; i + N <= n; i += N) set(d + i, slope(A, get(y + i), get(d + i)));
  if (i < n) set(d + i, slope(A, get(y + i, n - i), get(d + i, n - i)), n - i);
}

template<Activation A> OSTLER_FN void backward_rows(const float* y, float* d, float* d_bias, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++, y += width, d += width) {
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      const V v = slope(A, get(y + i, n), get(d + i, n));
      set(d + i, v, n);
      set(d_bias + i, get(d_bias + i, n) + v, n);
    }
  }
}

// Gradients d [rows][width] of results y become those of the arguments; their sums over
// rows are added to d_bias [width], if there is one.
static void backward(int activation, const float* y, float* d, float* d_bias, size_t rows, size_t width) {
#define BODY(A) d_bias ? backward_rows<A>(y, d, d_bias, rows, width) : backward_all<A>(y, d, rows * width)
  OSTLER_EACH(activation, BODY)
#undef BODY
}

// x [rows][width] + bias, normalised in place; scale [rows] is 1 / standard deviation of each
// row. y becomes the activation of gain x + shift.
static void norm_forward(int activation, const float* bias, const float* gain, const float* shift,
                         float* x, float* scale, float* y, size_t rows, size_t width) {
  const float share = 1.0f / (float)width;
  for (size_t r = 0; r < rows; r++) {
    float* row = x + r * width;
    V sum = bc<V>(0);
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      const V v = get(row + i, n) + get(bias + i, n);
      set(row + i, v, n);
      sum = sum + (n < N ? get(row + i, n) : v);
    }
    const V mean = bc<V>(add_up(sum) * share);
    V squares = bc<V>(0);
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      set(row + i, get(row + i, n) - mean, n);
      const V v = get(row + i, n);
      squares = fma(v, v, squares);
    }
    const float s = 1.0f / __builtin_sqrtf(add_up(squares) * share + (float)OSTLER_NORM_EPS);
    scale[r] = s;
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      const V v = get(row + i, n) * bc<V>(s);
      set(row + i, v, n);
      set(y + r * width + i, fma(get(gain + i, n), v, get(shift + i, n)), n);
    }
  }
  forward(activation, nullptr, y, rows, width);
}

// Gradients d [rows][width] of norm_forward's results y become those of x before it; sums over rows
// are added to those of gain, shift and bias.
static void norm_backward(int activation, const float* y, const float* x, const float* scale, const float* gain,
                          float* d, float* d_gain, float* d_shift, float* d_bias, size_t rows, size_t width) {
  backward(activation, y, d, nullptr, rows, width);
  const float share = 1.0f / (float)width;
  for (size_t r = 0; r < rows; r++, x += width, d += width) {
    V sum = bc<V>(0), along = bc<V>(0);
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      const V v = get(x + i, n), now = get(d + i, n);
      set(d_gain + i, fma(v, now, get(d_gain + i, n)), n);
      set(d_shift + i, get(d_shift + i, n) + now, n);
      const V inner = now * get(gain + i, n);
      set(d + i, inner, n);
      sum = sum + inner;
      along = fma(v, inner, along);
    }
    const V mean_d = bc<V>(add_up(sum) * share), mean_dx = bc<V>(add_up(along) * share);
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      const V v = norm_slope(get(x + i, n), get(d + i, n), mean_d, mean_dx, bc<V>(scale[r]));
      set(d + i, v, n);
      set(d_bias + i, get(d_bias + i, n) + v, n);
    }
  }
}

// A step of a GRU for rows of `width` hidden numbers: x [rows][3 width] and y [rows][3 width]
// are products of its inputs and its hidden states h [rows][width], to which the biases
// [3 width] are added, if there are any. The new states go to `to`; x becomes the gates, and
// the last third of y what gate n saw of the state.
static void gru_forward(const float* x_bias, const float* y_bias, float* x, float* y, const float* h, float* to, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++, x += 3 * width, y += 3 * width, h += width, to += width) {
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      V in[3], of[3];
      for (int k = 0; k < 3; k++) {
        in[k] = get(x + k * width + i, n);
        of[k] = get(y + k * width + i, n);
        if (x_bias) in[k] = in[k] + get(x_bias + k * width + i, n);
        if (y_bias) of[k] = of[k] + get(y_bias + k * width + i, n);
      }
      Gates<V> g;
      set(to + i, gru(in[0], in[1], in[2], of[0], of[1], of[2], get(h + i, n), g), n);
      set(x + i, g.r, n);
      set(x + width + i, g.z, n);
      set(x + 2 * width + i, g.n, n);
      set(y + 2 * width + i, of[2], n);
    }
  }
}

// From gradients d [rows][width] of the new states, which become those of the old ones as far
// as these do not come through y: x and y as gru_forward left them become gradients.
static void gru_backward(float* x, float* y, const float* h, float* d, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++, x += 3 * width, y += 3 * width, h += width, d += width) {
    for (size_t i = 0; i < width; i += N) {
      const size_t n = width - i;
      Gates<V> g = {get(x + i, n), get(x + width + i, n), get(x + 2 * width + i, n)};
      const V now = get(d + i, n);
      const V through = now * g.z;
      const V last = gru_slopes(now, get(y + 2 * width + i, n), get(h + i, n), g);
      set(d + i, through, n);
      set(x + i, g.r, n);
      set(x + width + i, g.z, n);
      set(x + 2 * width + i, g.n, n);
      set(y + i, g.r, n);
      set(y + width + i, g.z, n);
      set(y + 2 * width + i, last, n);
    }
  }
}

// The sums of the columns of d [rows][width] are added to `to` [width].
static void sum_rows(const float* d, float* to, size_t rows, size_t width) {
  for (size_t r = 0; r < rows; r++, d += width) {
    for (size_t i = 0; i < width; i += N) set(to + i, get(to + i, width - i) + get(d + i, width - i), width - i);
  }
}

// The loss of `rows` samples, which are side by side (row 1 in all columns but those with
// row 0); columns have room for a multiple of N. Sums are added to stats.
static void loss(const PpoLoss* args, size_t rows, double* stats) {
  V sums[OSTLER_STATS];
  for (int i = 0; i < OSTLER_STATS; i++) sums[i] = bc<V>(0);
  for (size_t r = 0; r < rows; r += N) {
    V now[OSTLER_STATS];
    for (int i = 0; i < OSTLER_STATS; i++) now[i] = bc<V>(0);
    ppo_loss<V>(*args, (long long)r, now);
    for (int i = 0; i < OSTLER_STATS; i++) sums[i] = sums[i] + now[i];
  }
  for (int i = 0; i < OSTLER_STATS; i++) {
    float x[N];
    store(x, sums[i]);
    for (int lane = 0; lane < N; lane++) stats[i] += (double)x[lane];
  }
}

// One step of n parameters.
static void adam_step(const AdamStep* step, float* theta, float* g, float* m, float* v, size_t n) {
  for (size_t i = 0; i < n; i += N) {
    const size_t left = n - i;
    V t = get(theta + i, left), d = get(g + i, left), a = get(m + i, left), b = get(v + i, left);
    adam(*step, t, d, a, b);
    set(theta + i, t, left);
    set(g + i, d, left);
    set(m + i, a, left);
    set(v + i, b, left);
  }
}

// The sum of n numbers.
static float sum(const float* x, size_t n) {
  V total = bc<V>(0);
  for (size_t i = 0; i < n; i += N) total = total + get(x + i, n - i);
  return add_up(total);
}

// The sum of n squares, in double precision.
static double squares(const float* x, size_t n) {
  double sums[N] = {};
  size_t i = 0;
  for (; i + N <= n; i += N) {
    for (int lane = 0; lane < N; lane++) sums[lane] += (double)x[i + lane] * (double)x[i + lane];
  }
  double all = 0;
  for (int lane = 0; lane < N; lane++) all += sums[lane];
  for (; i < n; i++) all += (double)x[i] * (double)x[i];
  return all;
}

// adam.cuh and finish.cuh.
static void step_begin(const AdamConfig* c, double norm, double lr, double* powers, AdamStep* out) { *out = adam_begin(*c, norm, lr, powers); }
static int step_tally(const Tally* t) { return tally(*t); }
static int step_policy(float kl, double limit, double* end) { return policy_goes_on(kl, limit, end); }
static int step_judge(const Tally* t, int policy, double limit) { return judge(*t, policy != 0, limit); }

// to [n] += from [n]
static void add(float* to, const float* from, size_t n) {
  for (size_t i = 0; i < n; i += N) set(to + i, get(to + i, n - i) + get(from + i, n - i), n - i);
}

// Rows index [n] of from [M][width]. Whether all are among its `rows`.
static int gather_rows(const float* from, size_t rows, size_t width, const long long* index, size_t n, float* to) {
  for (size_t r = 0; r < n; r++) {
    if ((size_t)index[r] >= rows) return 0;
    memcpy(to + r * width, from + (size_t)index[r] * width, width * sizeof(float));
  }
  return 1;
}

// The same into columns, one every `stride`.
static int gather_columns(const float* from, size_t rows, size_t width, const long long* index, size_t n, float* to, size_t stride) {
  for (size_t r = 0; r < n; r++) {
    if ((size_t)index[r] >= rows) return 0;
    const float* row = from + (size_t)index[r] * width;
    for (size_t c = 0; c < width; c++) to[c * stride + r] = row[c];
  }
  return 1;
}

// Places of a block of an order.
enum { PLACES = 512 };

// All rounds of a block. Apart: a compiler that sees how few rows and columns there may be
// multiplies in 32 bits, at half the speed.
OSTLER_FN_BIG static void order_rounds(const Order& order, Half* __restrict row, Half* __restrict column) {
  const Order o = order;
  for (int i = 0; i < PLACES; i++) {
    Half r = row[i], c = column[i];
    OrderRounds<OSTLER_ORDER_ROUNDS>::run(o, r, c);
    row[i] = r;
    column[i] = c;
  }
}

// The order of `count` samples in an epoch of an update: order.cuh.
static void fill_order(unsigned long long seed, unsigned long long update, unsigned epoch, size_t count, long long* to) {
  const Order o = order_of(seed, update, epoch, (unsigned)count);
  Half row[PLACES], column[PLACES];
  unsigned place[PLACES];
  for (size_t from = 0; from < count; from += PLACES, to += PLACES) {
    // Places beyond the samples are computed, too, and left out.
    const size_t n = count - from < PLACES ? count - from : (size_t)PLACES;
    for (unsigned i = 0; i < PLACES; i++) {
      row[i] = row_of(o, (unsigned)from + i);
      column[i] = column_of(o, (unsigned)from + i);
    }
    order_rounds(o, row, column);
    unsigned most = 0;
    for (unsigned i = 0; i < PLACES; i++) {
      place[i] = place_of(o, row[i], column[i]);
      most = place[i] > most ? place[i] : most;
    }
    if (most >= o.count)
      for (size_t i = 0; i < n; i++) place[i] = walk(o, place[i]);
    for (size_t i = 0; i < n; i++) to[i] = (long long)place[i];
  }
}

// Outputs 0..K of a layer for two vectors of rows: y = b + w x, summed over inputs in their
// order.
template<int K> OSTLER_FN void tile(const float* w, const float* b, size_t inputs, const float* x, float* y) {
  V sums[K][2];
  for (int o = 0; o < K; o++) sums[o][0] = sums[o][1] = bc<V>(b[o]);
  for (size_t i = 0; i < inputs; i++) {
    const V low = get(x + i * ROWS), high = get(x + i * ROWS + N);
    for (int o = 0; o < K; o++) {
      const V weight = bc<V>(w[o * inputs + i]);
      sums[o][0] = fma(weight, low, sums[o][0]);
      sums[o][1] = fma(weight, high, sums[o][1]);
    }
  }
  for (int o = 0; o < K; o++) {
    set(y + o * ROWS, sums[o][0]);
    set(y + o * ROWS + N, sums[o][1]);
  }
}

// Columns x [inputs][ROWS] through a layer, weight [outputs][inputs], into y [outputs][ROWS].
static void columns_layer(const float* weight, const float* bias, size_t inputs, size_t outputs, const float* x, float* y) {
  for (int part = 0; part < ROWS; part += 2 * N) {
    size_t at = 0;
    for (; at + OUTPUTS <= outputs; at += OUTPUTS)
      tile<OUTPUTS>(weight + at * inputs, bias + at, inputs, x + part, y + at * ROWS + part);
    for (; at < outputs; at++) tile<1>(weight + at * inputs, bias + at, inputs, x + part, y + at * ROWS + part);
  }
}

// Each row of columns x [width][ROWS] normalised, with gain and shift [width].
static void columns_norm(const float* gain, const float* shift, float* x, size_t width) {
  const V share = bc<V>(1.0 / (double)width);
  for (int part = 0; part < ROWS; part += N) {
    V mean = bc<V>(0), squares = bc<V>(0);
    for (size_t i = 0; i < width; i++) mean = fma(get(x + i * ROWS + part), share, mean);
    for (size_t i = 0; i < width; i++) {
      const V off = get(x + i * ROWS + part) - mean;
      squares = fma(off * off, share, squares);
    }
    const V scale = bc<V>(1) / sqrt_(squares + bc<V>(OSTLER_NORM_EPS));
    for (size_t i = 0; i < width; i++) {
      float* at = x + i * ROWS + part;
      set(at, fma((get(at) - mean) * scale, bc<V>(gain[i]), bc<V>(shift[i])));
    }
  }
}

#define OSTLER_JOIN_(a, b) a##b
#define OSTLER_JOIN(a, b) OSTLER_JOIN_(a, b)
extern "C" const Table OSTLER_JOIN(ostler_learn_, OSTLER_NAME);
extern "C" const Table OSTLER_JOIN(ostler_learn_, OSTLER_NAME) = {
    forward, backward, norm_forward, norm_backward, gru_forward, gru_backward, sum_rows, loss, adam_step, sum, squares, step_begin, step_tally, step_policy, step_judge, add, columns_layer, columns_norm,
    gather_rows, gather_columns, fill_order,
};
