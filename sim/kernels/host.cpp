// The generic kernel for one instruction set: compiled once for each with
// OSTLER_NAME, and OSTLER_LANES (8, 16) or OSTLER_DOUBLE.
#include <immintrin.h>
#include <math.h>
#include "api.h"

#define OSTLER_JOIN_(a, b) a##b
#define OSTLER_JOIN(a, b) OSTLER_JOIN_(a, b)

namespace OSTLER_JOIN(ostler_, OSTLER_NAME) {
#include "kernel.cuh"

#ifdef OSTLER_DOUBLE
typedef double R;
#else
typedef Vec<OSTLER_LANES> R;
#endif
typedef Lane<R>::T T;
typedef Tables<T> M;
typedef Work<R, M> W;

static unsigned long head() { return (sizeof(W) + 63) & ~63ul; }
static unsigned long bytes(const void* tables) { return head() + work_bytes<R, M>(*(const M*)tables); }
static void init(const void* tables, void* work) { work_bind<R, M>(*(const M*)tables, *(W*)work, (char*)work + head()); }
static void run(const void* tables, void* work, const void* args, int first, int lanes) {
  control_step<R, M>(*(const M*)tables, *(W*)work, *(const StepArgs<T>*)args, first, lanes);
}
static void eval(const void* tables, void* work, const void* args, int first, int lanes) {
  evaluate<R, M>(*(const M*)tables, *(W*)work, *(const EvalArgs<T>*)args, first, lanes);
}
static const OstlerKernel kernel = {OSTLER_KERNEL_VERSION, (int)Lane<R>::N, (int)sizeof(T), 0, bytes, init, run, eval};
}

extern "C" const OstlerKernel* OSTLER_JOIN(ostler_kernel_, OSTLER_NAME)() {
  return &OSTLER_JOIN(ostler_, OSTLER_NAME)::kernel;
}
