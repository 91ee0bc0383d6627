// Actuators with laws beyond MuJoCo's, of motors at hinges and slides: the control is the target
// of the joint's position (m, rad), and once in every physics step it becomes the motor's effort
// (N, N m), which MuJoCo's own motor then applies. Delays are in physics steps.
//
// Sources: DC motor and networks: Isaac Lab, "Actuators" (DCMotor, ActuatorNetMLP,
// ActuatorNetLSTM); long short-term memory: PyTorch, torch.nn.LSTM.
#pragma once

// motor_law.
enum { MOTOR_DELAYED, MOTOR_PD, MOTOR_MLP, MOTOR_LSTM };
// motor_int of a motor: actuator, position, velocity, law, network, first number remembered,
// most steps of delay; where `vary` has delay, kp, kd and effort, -1: motor_real has; the delay
// that is drawn anew between steps, -1: none.
enum { MOTOR_ACT, MOTOR_QPOS, MOTOR_DOF, MOTOR_LAW, MOTOR_NET, MOTOR_AT, MOTOR_DEPTH, MOTOR_DELAY_AT,
       MOTOR_KP_AT, MOTOR_KD_AT, MOTOR_EFFORT_AT, MOTOR_REDRAWN, MOTOR_INT };
// motor_real: delay in steps, kp, kd, most effort, effort at rest that falls to 0 at the speed
// behind it (0: it does not fall).
enum { MOTOR_DELAY, MOTOR_KP, MOTOR_KD, MOTOR_EFFORT, MOTOR_STALL, MOTOR_SPEED, MOTOR_REAL };
// net_int of a network: first layer and their end; of an MLP the first of the steps that it
// sees and their end, 1 if velocities come first, the most steps back; of an LSTM its layers,
// their width.
enum { NET_LAYER, NET_END, NET_SEEN, NET_SEEN_END, NET_SWAP, NET_BACK, NET_CELLS, NET_WIDTH, NET_INT };
// net_real: factors of the position's error, of the velocity, of the output.
enum { NET_POSITION, NET_VELOCITY, NET_EFFORT, NET_REAL };
// layer_int: inputs, outputs, first weight (row by row, then biases), activation of what follows.
// A layer of an LSTM has 4 outputs for each of its own, and its inputs are the layer's and its own.
enum { LAYER_IN, LAYER_OUT, LAYER_AT, LAYER_THEN, LAYER_INT };
enum { THEN_NOTHING, THEN_RELU, THEN_ELU, THEN_TANH, THEN_SOFTSIGN, THEN_SIGMOID, THEN_SILU, THEN_LEAKY_RELU };

// e^x: reduction to |r| < ln 2 / 2, a polynomial (Cephes expf), and 2^k as a product of powers
// of 2 that are picked one by one, for lanes have no bits. Single precision.
template<class R> OSTLER_FN R exp_of(R x) {
  x = max_(min_(x, bc<R>(87)), bc<R>(-87));
  R k = rint_(x * bc<R>(1.4426950408889634));
  R r = fma(k, bc<R>(-0.693359375), x);
  r = fma(k, bc<R>(2.12194440e-4), r);
  R p = fma(r, bc<R>(1.9875691500e-4), bc<R>(1.3981999507e-3));
  p = fma(r, p, bc<R>(8.3334519073e-3));
  p = fma(r, p, bc<R>(4.1665795894e-2));
  p = fma(r, p, bc<R>(1.6666665459e-1));
  p = fma(r, p, bc<R>(5.0000001201e-1));
  R e = fma(r * r, p, r + bc<R>(1));
  k = k + bc<R>(128);  // 2 to 254
  const double up[] = {1.8446744073709552e19, 4294967296.0, 65536.0, 256.0, 16.0, 4.0, 2.0};
  const double part[] = {64, 32, 16, 8, 4, 2, 1};
  R scale = bc<R>(1.0 / 1.8446744073709552e19);
  e = e * scale * scale;  // 2^-128
  const auto high = k >= bc<R>(128);
  k = sel(high, k - bc<R>(128), k);
  e = sel(high, e * bc<R>(up[0]) * bc<R>(up[0]), e);
  for (int i = 0; i < 7; i++) {
    const auto has = k >= bc<R>(part[i]);
    e = sel(has, e * bc<R>(up[i]), e);
    k = sel(has, k - bc<R>(part[i]), k);
  }
  return e;
}
OSTLER_FN double exp_of(double x) {
#ifdef __CUDACC__
  return exp(x);
#else
  return __builtin_exp(x);
#endif
}
template<class R> OSTLER_FN R sigmoid_of(R x) { return bc<R>(1) / (bc<R>(1) + exp_of(-x)); }
// 1 - 2 / (e^2x + 1), and its series where that would cancel.
template<class R> OSTLER_FN R tanh_of(R x) {
  const R z = x * x;
  R p = fma(z, bc<R>(0.0021325254), bc<R>(-0.008166304));
  p = fma(z, p, bc<R>(0.02169635));
  p = fma(z, p, bc<R>(-0.053945996));
  p = fma(z, p, bc<R>(0.133332));
  p = fma(z, p, bc<R>(-0.3333333));
  const R near = fma(x * z, p, x);
  const R far = bc<R>(1) - bc<R>(2) / (exp_of(x + x) + bc<R>(1));
  return sel(abs_(x) < bc<R>(0.625), near, far);
}
OSTLER_FN double tanh_of(double x) {
#ifdef __CUDACC__
  return tanh(x);
#else
  return __builtin_tanh(x);
#endif
}
template<class R> OSTLER_FN R activated(int then, R x) {
  const R zero = bc<R>(0), one = bc<R>(1);
  switch (then) {
    case THEN_RELU: return max_(x, zero);
    case THEN_ELU: return sel(x > zero, x, exp_of(min_(x, zero)) - one);
    case THEN_TANH: return tanh_of(x);
    case THEN_SOFTSIGN: return x / (one + abs_(x));
    case THEN_SIGMOID: return sigmoid_of(x);
    case THEN_SILU: return x * sigmoid_of(x);
    case THEN_LEAKY_RELU: return sel(x > zero, x, x * bc<R>(0.01));
    default: return x;
  }
}

// Layer l of `in`, before what follows it.
template<class R, class M> OSTLER_FN void layer_of(const M& m, int l, const R* in, R* out) {
  const int* what = m.layer_int + LAYER_INT * l;
  const int n = what[LAYER_IN], outputs = what[LAYER_OUT];
  const auto* weight = m.net_weight + what[LAYER_AT];
  const auto* bias = weight + n * outputs;
  OSTLER_ROLLED for (int o = 0; o < outputs; o++) {
    R sum = bc<R>(bias[o]);
    for (int i = 0; i < n; i++) sum = fma(bc<R>(weight[o * n + i]), in[i], sum);
    out[o] = sum;
  }
}
// The layers from `l` to `end` of net_a, which has their inputs; the first output.
template<class R, class M> OSTLER_FN R layers_of(const M& m, Work<R, M>& w, int l, int end) {
  R *in = w.net_a, *out = w.net_b;
  for (; l < end; l++) {
    const int* what = m.layer_int + LAYER_INT * l;
    layer_of(m, l, in, out);
    for (int o = 0; o < what[LAYER_OUT]; o++) out[o] = activated(what[LAYER_THEN], out[o]);
    R* swap = in;
    in = out, out = swap;
  }
  return in[0];
}

// A network of the last errors and velocities; `past` has them, the latest first.
template<class R, class M> OSTLER_FN_BIG R mlp_effort(const M& m, Work<R, M>& w, int net, R* past, R error, R vel) {
  const int* what = m.net_int + NET_INT * net;
  const auto* by = m.net_real + NET_REAL * net;
  const int back = what[NET_BACK], seen = what[NET_SEEN_END] - what[NET_SEEN];
  for (int i = back; i > 0; i--) past[2 * i] = past[2 * i - 2], past[2 * i + 1] = past[2 * i - 1];
  past[0] = error, past[1] = vel;
  for (int i = 0; i < seen; i++) {
    const int step = m.net_seen[what[NET_SEEN] + i], first = what[NET_SWAP] ? seen : 0;
    w.net_a[first + i] = past[2 * step] * bc<R>(by[NET_POSITION]);
    w.net_a[(seen - first) + i] = past[2 * step + 1] * bc<R>(by[NET_VELOCITY]);
  }
  return layers_of(m, w, what[NET_LAYER], what[NET_END]) * bc<R>(by[NET_EFFORT]);
}

// Cells of a long short-term memory, layer by layer, then a network of the last one's outputs;
// `past` has outputs and cells of each.
template<class R, class M> OSTLER_FN_BIG R lstm_effort(const M& m, Work<R, M>& w, int net, R* past, R error, R vel) {
  const int* what = m.net_int + NET_INT * net;
  const auto* by = m.net_real + NET_REAL * net;
  const int cells = what[NET_CELLS], width = what[NET_WIDTH];
  R *in = w.net_a, *gates = w.net_b;
  in[0] = error * bc<R>(by[NET_POSITION]), in[1] = vel * bc<R>(by[NET_VELOCITY]);
  for (int c = 0; c < cells; c++) {
    R *h = past + 2 * width * c, *cell = h + width;
    const int inputs = c > 0 ? width : 2;
    for (int i = 0; i < width; i++) in[inputs + i] = h[i];
    layer_of(m, what[NET_LAYER] + c, in, gates);  // input, forget, cell, output
    for (int i = 0; i < width; i++) {
      const R keep = sigmoid_of(gates[width + i]) * cell[i];
      cell[i] = fma(sigmoid_of(gates[i]), tanh_of(gates[2 * width + i]), keep);
      h[i] = sigmoid_of(gates[3 * width + i]) * tanh_of(cell[i]);
      in[i] = h[i];
    }
  }
  return layers_of(m, w, what[NET_LAYER] + cells, what[NET_END]) * bc<R>(by[NET_EFFORT]);
}

// The control that a motor gets in this step: that of `delay` steps before, and where there was
// none yet the first one.
template<class R, class M> OSTLER_FN R delayed(const M& m, Work<R, M>& w, int i, R now, typename Lane<R>::Mask fresh) {
  const int* what = m.motor_int + MOTOR_INT * i;
  const int depth = what[MOTOR_DEPTH];
  if (depth == 0) return now;
  R* way = w.memory + what[MOTOR_AT];
  R steps = what[MOTOR_DELAY_AT] >= 0 ? w.vary[what[MOTOR_DELAY_AT]] : bc<R>(m.motor_real[MOTOR_REAL * i + MOTOR_DELAY]);
  if (what[MOTOR_REDRAWN] >= 0) {
    // Below 0 where nobody draws.
    const R drawn = w.redrawn[what[MOTOR_REDRAWN]];
    steps = sel(drawn < bc<R>(0), steps, drawn);
  }
  R out = now;
  for (int k = 0; k < depth; k++) {
    way[k] = sel(fresh, now, way[k]);
    out = sel(steps >= bc<R>(k + 1), way[k], out);
  }
  for (int k = depth - 1; k > 0; k--) way[k] = way[k - 1];
  way[0] = now;
  return out;
}

// Efforts of all motors in this physics step, as their controls; `target` has those that were
// given.
template<class R, class M> OSTLER_FN_PART void motors(const M& m, Work<R, M>& w) {
  const R zero = bc<R>(0), one = bc<R>(1);
  const auto fresh = w.memory[0] < bc<R>(0.5);
  w.memory[0] = one;
  for (int i = 0; i < m.nmotor; i++) {
    const int* what = m.motor_int + MOTOR_INT * i;
    const auto* own = m.motor_real + MOTOR_REAL * i;
    auto number = [&](int at, double constant) OSTLER_INLINE {
      return what[at] >= 0 ? w.vary[what[at]] : bc<R>(constant);
    };
    const int law = what[MOTOR_LAW];
    const R target = delayed(m, w, i, w.target[what[MOTOR_ACT]], fresh);
    if (law == MOTOR_DELAYED) {
      w.ctrl[what[MOTOR_ACT]] = target;
      continue;
    }
    const R error = target - w.qpos[what[MOTOR_QPOS]], vel = w.qvel[what[MOTOR_DOF]];
    R* past = w.memory + what[MOTOR_AT] + what[MOTOR_DEPTH];
    R effort;
    if (law == MOTOR_PD) effort = fnma(number(MOTOR_KD_AT, own[MOTOR_KD]), vel, number(MOTOR_KP_AT, own[MOTOR_KP]) * error);
    else if (law == MOTOR_MLP) effort = mlp_effort(m, w, what[MOTOR_NET], past, error, vel);
    else effort = lstm_effort(m, w, what[MOTOR_NET], past, error, vel);
    const R most = number(MOTOR_EFFORT_AT, own[MOTOR_EFFORT]);
    R high = most, low = -most;
    if (own[MOTOR_SPEED] > 0) {
      // Four quadrants: less effort the faster the motor turns its way.
      const R stall = bc<R>(own[MOTOR_STALL]), speed = bc<R>(own[MOTOR_SPEED]);
      const R end = speed * (one + most / stall);
      const R v = max_(min_(vel, end), -end) / speed;
      high = min_(stall * (one - v), most);
      low = max_(stall * (-one - v), -most);
    }
    w.ctrl[what[MOTOR_ACT]] = max_(min_(effort, high), low) + zero;
  }
}
