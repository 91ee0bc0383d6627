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
#define N(count) m.count
#define X(name, n) sym_load(w.name, ARRAY_##name, (unsigned)(n));
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
#define STORE(name) sym_store(w.name, ARRAY_##name, length(m, ARRAY_##name))

static void trace(const M& m, W& w) {
  typedef Straight<R, M> S;
  begin(m, w, "smooth");
  S::smooth(m, w);
  STORE(ref), STORE(xpos), STORE(xquat), STORE(xmat), STORE(cdof), STORE(vel), STORE(acc);
  STORE(mass), STORE(smooth), STORE(act_force), STORE(act_dot);
  STORE(ten_len), STORE(ten_j), STORE(act_len), STORE(act_vel), STORE(act_j);
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

  begin(m, w, "velocities_qacc");
  S::velocities_qacc(m, w);
  STORE(tmp);
  ostler_sym_end();

  begin(m, w, "velocities_step");
  S::velocities_step(m, w);
  STORE(tmp);
  ostler_sym_end();

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

  for (int b = m.nb - 1; b >= 0; b--) {
    char name[24] = "load_";
    int at = 5, digits = 1;
    for (int rest = b; rest >= 10; rest /= 10) digits++;
    for (int k = digits - 1, rest = b; k >= 0; k--, rest /= 10) name[at + k] = (char)('0' + rest % 10);
    begin(m, w, name);
    load_joint_space(m, w, b);
    load_to_parent(m, w, b);
    STORE(grad), STORE(hess), STORE(wrench), STORE(stiff);
    ostler_sym_end();
  }

  begin(m, w, "solve_system");
  S::solve_system(m, w);
  STORE(step);
  ostler_sym_end();

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
