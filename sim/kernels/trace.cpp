// Records the kernels' straight parts for one robot: they run once with a scalar
// type that writes down what is done to it (sym.cuh). The order and names of the
// recorded functions are those of Straight in hooks.cuh.
#include <immintrin.h>
#include <math.h>

namespace ostler_trace {
#include "kernel.cuh"
#include "sym.cuh"

typedef Sym R;
typedef Tables<double> M;
typedef Work<R, M> W;

enum Array {
#define X(name, n) ARRAY_##name,
  OSTLER_WORK(X)
#undef X
};

static unsigned long head() { return (sizeof(W) + 63) & ~63ul; }

// Every array as the function that begins finds it.
static void begin(const M& m, W& w, const char* name) {
  ostler_sym_begin(name);
  unsigned first = 0;
#define N(count) m.count
#define X(name, n) sym_find(w.name, first, (unsigned)(n)), first += (unsigned)(n);
  OSTLER_WORK(X)
#undef X
#undef N
}
#define N(count) m.count
static unsigned length(const M& m, int array) {
  switch (array) {
#define X(name, n) \
  case ARRAY_##name: \
    return (unsigned)(n);
    OSTLER_WORK(X)
#undef X
  }
  return 0;
}
#undef N
static unsigned first_of(const M& m, int array) {
  unsigned first = 0;
  for (int k = 0; k < array; k++) first += length(m, k);
  return first;
}
#define STORE(name) sym_store(w.name, ARRAY_##name, first_of(m, ARRAY_##name), length(m, ARRAY_##name))

// tree.cuh's factor with the same products in the same order for each entry, but
// entry by entry: the compiler keeps in a register what is added up, where the
// loops' order has it store and load every product-sum. Chosen over the template
// because it is none.
inline void factor(int n, const int* adr, const int* col, Sym* A, Sym* x) {
  const auto has = [&](int k, int j) {
    for (int a = adr[k]; a < adr[k + 1]; a++)
      if (col[a] == j) return true;
    return false;
  };
  // Rows below i hold their entries before the division by their diagonal, which is
  // inverted already.
  for (int i = n - 1; i >= 0; i--) {
    for (int a = adr[i + 1]; a >= adr[i]; a--) {
      const int j = a == adr[i + 1] ? i : col[a];
      Sym sum = A[tri(i) + j];
      for (int k = n - 1; k > i; k--)
        if (has(k, i) && (j == i || has(k, j))) sum = fnma(A[tri(k) + i] * A[tri(k) + k], A[tri(k) + j], sum);
      A[tri(i) + j] = j == i ? recip_(sum) : sum;
    }
  }
  for (int k = 0; k < n; k++)
    for (int a = adr[k]; a < adr[k + 1]; a++) A[tri(k) + col[a]] = A[tri(k) + col[a]] * A[tri(k) + k];
  for (int k = n - 1; k >= 0; k--)
    for (int a = adr[k]; a < adr[k + 1]; a++) x[col[a]] = fnma(A[tri(k) + col[a]], x[k], x[col[a]]);
}

// The pattern with the couplings of all pairs at once, if there are any and their
// factor is short enough to be written out.
static bool couples_all(const M& m, W& w) {
  if (!m.dense || m.nv > 64 || !couple(m, w, m.npair - m.nwpair, [&](int k) { return m.nwpair + k; })) return false;
  long products = 0;
  for (int i = 0; i < m.nv; i++) {
    const long entries = w.pat_adr[i + 1] - w.pat_adr[i];
    products += entries * (entries + 1) / 2;
  }
  return products <= 5000;
}

static void trace(const M& m, W& w) {
  typedef Straight<R, M> S;
  begin(m, w, "smooth");
  S::smooth(m, w);
  STORE(ref), STORE(xpos), STORE(xquat), STORE(xmat), STORE(cdof), STORE(vel), STORE(acc);
  STORE(mass), STORE(smooth), STORE(act_force), STORE(act_dot);
  STORE(ten_len), STORE(ten_j), STORE(act_len), STORE(act_vel), STORE(act_j), STORE(act_free), STORE(act_sum);
  ostler_sym_end();

  begin(m, w, "geoms");
  S::geoms(m, w);
  STORE(gpos), STORE(gaxis), STORE(gmat), STORE(bpos);
  ostler_sym_end();

  begin(m, w, "rows");
  S::rows(m, w);
  STORE(lim_sign), STORE(lim_d), STORE(lim_aref), STORE(fric_aref);
  STORE(row_j), STORE(row_d), STORE(row_aref);
  ostler_sym_end();

  begin(m, w, "poses");
  S::poses(m, w);
  STORE(ref), STORE(xpos), STORE(xquat), STORE(xmat), STORE(vel);
  ostler_sym_end();

  if (m.nwslot > 0) {
    begin(m, w, "velocities_qacc");
    S::velocities_qacc(m, w);
    STORE(tmp);
    ostler_sym_end();

    begin(m, w, "velocities_step");
    S::velocities_step(m, w);
    STORE(tmp);
    ostler_sym_end();
  }

  begin(m, w, "residual");
  S::residual(m, w);
  STORE(mstep);
  ostler_sym_end();

  begin(m, w, "mass_step");
  S::mass_step(m, w);
  STORE(grad);
  ostler_sym_end();

  begin(m, w, "start_system");
  S::start_system(m, w);
  STORE(grad), STORE(hess);
  ostler_sym_end();

  for (int b = m.nwslot > 0 ? m.nb - 1 : -1; b >= 0; b--) {
    char name[24] = "load_";
    int at = 5, digits = 1;
    for (int rest = b; rest >= 10; rest /= 10) digits++;
    for (int k = digits - 1, rest = b; k >= 0; k--, rest /= 10) name[at + k] = (char)('0' + rest % 10);
    begin(m, w, name);
    load_joint_space(m, w, b);
    STORE(grad), STORE(hess);
    ostler_sym_end();
  }

  begin(m, w, "solve_system");
  S::solve_system(m, w);
  STORE(step);
  ostler_sym_end();

  if (couples_all(m, w)) {
    begin(m, w, "start_coupled");
    copy_system(m, w, w.pat_adr, w.pat_col);
    STORE(grad), STORE(hess);
    ostler_sym_end();

    begin(m, w, "solve_coupled");
    newton_step(m, w, w.pat_adr, w.pat_col);
    STORE(step);
    ostler_sym_end();
  }

  if (m.integrator != RK4) {
    begin(m, w, "euler");
    S::euler(m, w);
    STORE(qpos), STORE(qvel), STORE(act);
    ostler_sym_end();
  }
}
}  // namespace ostler_trace

using namespace ostler_trace;

extern "C" {
unsigned long ostler_trace_bytes(const void* tables) { return head() + work_bytes<R, M>(*(const M*)tables); }

// Length of an array; its name in *name; 0 and a null name past the last.
unsigned ostler_trace_array(const void* tables, int array, const char** name) {
  static const char* const names[] = {
#define X(name, n) #name,
      OSTLER_WORK(X)
#undef X
  };
  if (array < 0 || array >= (int)(sizeof names / sizeof *names)) {
    *name = nullptr;
    return 0;
  }
  *name = names[array];
  return length(*(const M*)tables, array);
}

// `memory`: ostler_trace_bytes, aligned to 64 and zeroed.
void ostler_trace_run(const void* tables, void* memory) {
  const M& m = *(const M*)tables;
  W& w = *(W*)memory;
  work_bind<R, M>(m, w, (char*)memory + head());
  trace(m, w);
}
}
