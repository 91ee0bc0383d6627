// The loss of one PPO sample, or of a vector of them, and its gradient with respect to the
// networks' outputs.
//
// Sources: Schulman et al., "Proximal policy optimization algorithms", 2017, equations 7
// and 9; the clipped value loss is that of the authors' code.
#pragma once

// Sums over samples, in order.
enum {
  OSTLER_KL,
  OSTLER_CLIP_FRACTION,  // finite unless no sample was valid
  OSTLER_SURROGATE,
  OSTLER_VALUE,
  OSTLER_ENTROPY,
  OSTLER_IMITATION,
  OSTLER_STATS,  // how many there are
};
enum ValueLoss { OSTLER_MSE, OSTLER_HUBER };

// Columns of samples: number `c` of sample `r` is p[c * column + r * row].
struct Columns {
  float* p;          // number 0 of sample 0
  long long column;  // numbers from a column to the next
  long long row;     // numbers from a sample to the next; 0: all have the same
};

// The numbers of a minibatch's loss.
struct LossTerms {
  float clip;             // `ppo.clip_param`
  float value_clip;       // how far a value may move
  float value_coef;       // `ppo.value_loss_coef`
  float entropy_coef;     // `ppo.entropy_coef`
  float imitation_coef;   // how much the distance from a teacher counts
  float samples;          // valid samples of the minibatch
  float advantage_mean;   // a number that is subtracted from advantages,
  float advantage_scale;  // which are then multiplied by this
};

// The loss of samples.
struct PpoLoss {
  // Columns: action, mean or logits, standard deviation, a teacher's mean or logits,
  // log-probability, advantage, return, value, validity, weight of the advantage.
  Columns packed;
  Columns dist;       // means or logits
  Columns log_std;    // logarithms of standard deviations; row 0: the same for all samples
  Columns value;      // values
  Columns d_dist;     // gradients of `dist`
  Columns d_log_std;  // gradients of `log_std`
  Columns d_value;    // gradients of `value`
  int actions;        // numbers of an action
  int dists;          // means or logits
  int stds;           // standard deviations; 0: a categorical policy
  int targets;        // a teacher's means or logits; 0: no teacher
  int value_loss;     // a ValueLoss
  int clip_value;     // whether the value's loss is clipped
  int policy;         // 0: values alone
  LossTerms terms;    // the numbers of the minibatch
  int unused;         // padding
  // Where a device has four of the terms: samples, mean, scale, `value_clip`; or 0.
  const float* in_memory;
};

// With the terms that are in memory.
OSTLER_FN PpoLoss with_terms(PpoLoss a) {
  if (a.in_memory) {
    a.terms.samples = a.in_memory[0];
    a.terms.advantage_mean = a.in_memory[1];
    a.terms.advantage_scale = a.in_memory[2];
    a.terms.value_clip = a.in_memory[3];
  }
  return a;
}

template<class R> OSTLER_FN R column(const Columns& c, long long i, long long r) {
  if (c.row == 0) return bc<R>(c.p[i * c.column]);
  R x;
  load(x, c.p + i * c.column + r * c.row);
  return x;
}
template<class R> OSTLER_FN void put(const Columns& c, long long i, long long r, R x) {
  store(c.p + i * c.column + r * c.row, x);
}

// Loss of an error and its slope.
template<class R> OSTLER_FN R point_loss(int kind, R error, R& slope) {
  if (kind == OSTLER_HUBER) {
    slope = min_(bc<R>(1.0), max_(bc<R>(-1.0), error));
    return fnma(bc<R>(0.5), slope, error) * slope;
  }
  slope = bc<R>(2.0) * error;
  return error * error;
}

template<class R> OSTLER_FN R value_loss(const PpoLoss& a, R now, R before, R target, R& slope) {
  const R loss = point_loss(a.value_loss, now - target, slope);
  if (!a.clip_value) return loss;
  const R moved = now - before, most = bc<R>(a.terms.value_clip);
  const R held = min_(most, max_(-most, moved));
  R other;
  const R held_loss = point_loss(a.value_loss, before + held - target, other);
  // Within the range both are the same; beyond it the held one has no slope.
  const auto free = loss >= held_loss;
  const auto within = (moved >= held) & (moved <= held);
  slope = sel(free | within, slope, bc<R>(0.0));
  return sel(free, loss, held_loss);
}

template<class R> struct Judged {
  R log_prob, entropy, kl;
};

// Leaves z / std in d_dist and z^2 - 1 in d_log_std.
template<class R> OSTLER_FN Judged<R> gaussian(const PpoLoss& a, long long r) {
  const R half_ln_tau = bc<R>(0.918938533204672742), half = bc<R>(0.5);
  Judged<R> j = {bc<R>(0.0), bc<R>(0.0), bc<R>(0.0)};
  for (int k = 0; k < a.actions; k++) {
    const R mean = column<R>(a.dist, k, r), log_std = column<R>(a.log_std, k, r);
    const R inv_std = exp_(-log_std);
    const R z = (column<R>(a.packed, k, r) - mean) * inv_std, z2 = z * z;
    j.log_prob = j.log_prob - (half * z2 + log_std + half_ln_tau);
    j.entropy = j.entropy + (log_std + half + half_ln_tau);
    // KL(old || new).
    const R shift = (column<R>(a.packed, a.actions + k, r) - mean) * inv_std;
    const R shrink = column<R>(a.packed, a.actions + a.dists + k, r) * inv_std;
    j.kl = j.kl + (half * (shift * shift + shrink * shrink) - ln_(shrink) - half);
    put(a.d_dist, k, r, z * inv_std);
    put(a.d_log_std, k, r, z2 - bc<R>(1.0));
  }
  return j;
}

template<class R> OSTLER_FN R log_sum_exp(const Columns& x, long long first, int n, long long r) {
  R most = column<R>(x, first, r);
  for (int k = 1; k < n; k++) most = max_(most, column<R>(x, first + k, r));
  R sum = bc<R>(0.0);
  for (int k = 0; k < n; k++) sum = sum + exp_(column<R>(x, first + k, r) - most);
  return most + ln_(sum);
}

// Where the choice is k.
template<class R> OSTLER_FN typename Lane<R>::Mask chosen(R choice, int k) {
  const R off = abs_(choice - bc<R>(k));
  return off < bc<R>(0.5);
}

// Leaves the log-probabilities in d_dist.
template<class R> OSTLER_FN Judged<R> categorical(const PpoLoss& a, long long r) {
  const R norm = log_sum_exp<R>(a.dist, 0, a.dists, r);
  const R old_norm = log_sum_exp<R>(a.packed, a.actions, a.dists, r);
  const R choice = column<R>(a.packed, 0, r);
  // A choice that is none of them stays without a number.
  const R none = bc<R>(1e308) - bc<R>(1e308);
  Judged<R> j = {none, bc<R>(0.0), bc<R>(0.0)};
  for (int k = 0; k < a.dists; k++) {
    const R log_p = column<R>(a.dist, k, r) - norm;
    const R old = column<R>(a.packed, a.actions + k, r) - old_norm;
    j.entropy = j.entropy - exp_(log_p) * log_p;
    j.kl = j.kl + (old - log_p) * exp_(old);
    j.log_prob = sel(chosen(choice, k), log_p, j.log_prob);
    put(a.d_dist, k, r, log_p);
  }
  return j;
}

// Gradients and statistics, weighted, of sample r. Samples that are not valid have none,
// whatever they hold.
template<class R> OSTLER_FN void ppo_loss(const PpoLoss& a, long long r, R (&stats)[OSTLER_STATS]) {
  const int taught = a.actions + a.dists + a.stds, tail = taught + a.targets;
  const R zero = bc<R>(0.0);
  const R valid = column<R>(a.packed, tail + 4, r);
  const R weight = valid / bc<R>(a.terms.samples);
  const auto on = valid > zero;

  R slope;
  const R value = value_loss(a, column<R>(a.value, 0, r), column<R>(a.packed, tail + 3, r),
                             column<R>(a.packed, tail + 2, r), slope);
  put(a.d_value, 0, r, sel(on, slope * bc<R>(a.terms.value_coef) * weight, zero));
  stats[OSTLER_VALUE] = sel(on, value * weight, zero);
  if (!a.policy) return;

  const Judged<R> j = a.stds > 0 ? gaussian<R>(a, r) : categorical<R>(a, r);
  const R advantage = (column<R>(a.packed, tail + 1, r) - bc<R>(a.terms.advantage_mean)) *
                      bc<R>(a.terms.advantage_scale) * column<R>(a.packed, tail + 5, r);
  // Surrogate: the larger of the two losses; the clipped one has no slope.
  const R ratio = exp_(j.log_prob - column<R>(a.packed, tail, r));
  const R low = bc<R>(1.0 - (double)a.terms.clip), high = bc<R>(1.0 + (double)a.terms.clip);
  const R clipped = min_(high, max_(low, ratio));
  const R free = -advantage * ratio, bound = -advantage * clipped;
  const auto moves = free >= bound;
  // d(-A ratio) / d(log prob) is -A ratio itself. NaN stays NaN.
  const R d_log_prob = sel(bound > free, zero, free) * weight;
  const R d_entropy = bc<R>(-a.terms.entropy_coef) * weight;
  // How far the policy is from a teacher: the squares' mean, or KL(teacher || policy).
  R apart = zero;
  const R imitated = bc<R>(a.terms.imitation_coef) * weight;
  if (a.stds > 0) {
    const R each = bc<R>(1.0 / a.dists);
    for (int k = 0; k < a.actions; k++) {
      R d_mean = column<R>(a.d_dist, k, r) * d_log_prob;
      if (a.targets > 0) {
        const R off = column<R>(a.dist, k, r) - column<R>(a.packed, taught + k, r);
        apart = apart + off * off * each;
        d_mean = d_mean + bc<R>(2.0) * each * off * imitated;
      }
      put(a.d_dist, k, r, sel(on, d_mean, zero));
      // d(entropy) / d(log std) = 1.
      const R d = fma(column<R>(a.d_log_std, k, r), d_log_prob, d_entropy);
      put(a.d_log_std, k, r, sel(on, d, zero));
    }
  } else {
    const R choice = column<R>(a.packed, 0, r);
    const R taught_norm = a.targets > 0 ? log_sum_exp<R>(a.packed, taught, a.dists, r) : zero;
    for (int k = 0; k < a.dists; k++) {
      const R log_p = column<R>(a.d_dist, k, r), p = exp_(log_p);
      const R pull = sel(chosen(choice, k), bc<R>(1.0), zero) - p;
      // d(entropy) / d(logit k) = -p (log p + entropy).
      R d = pull * d_log_prob - p * (log_p + j.entropy) * d_entropy;
      if (a.targets > 0) {
        const R log_q = column<R>(a.packed, taught + k, r) - taught_norm, q = exp_(log_q);
        apart = apart + q * (log_q - log_p);
        d = d + (p - q) * imitated;
      }
      put(a.d_dist, k, r, sel(on, d, zero));
    }
  }
  const auto inside = (ratio >= low) & (ratio <= high);
  stats[OSTLER_KL] = sel(on, j.kl * weight, zero);
  stats[OSTLER_CLIP_FRACTION] = sel(on & !inside, weight, zero);
  stats[OSTLER_SURROGATE] = sel(on, sel(moves, free, bound) * weight, zero);
  stats[OSTLER_ENTROPY] = sel(on, j.entropy * weight, zero);
  stats[OSTLER_IMITATION] = sel(on, apart * weight, zero);
}
