// Between a learner's arrays and the environments' on a GPU. Works under NVRTC and as C++17, as
// the programs of environments do.
#ifdef __CUDACC__
#define OSTLER_PART(Args, name, count, ...) \
  extern "C" __global__ void __launch_bounds__(128) name(const __grid_constant__ Args a) { \
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= (count)) return; \
    __VA_ARGS__ \
  }
#else
#define OSTLER_PART(Args, name, count, ...) \
  extern "C" __attribute__((visibility("default"))) const unsigned name##_bytes = sizeof(Args); \
  extern "C" __attribute__((visibility("default"))) void name(const void* args, long long first, long long end) { \
    const Args& a = *(const Args*)args; \
    for (long long i = first; i < end && i < (count); i++) { __VA_ARGS__ } \
  }
#endif

// Kinds of numbers.
enum { TAKE_FLOAT, TAKE_DOUBLE, TAKE_INT, TAKE_LONG };

// Actions of one agent [n][width], from one entry to the next in `row` and `column` entries, to
// its columns `first` .. of the rows [n][world].
struct TakeArgs {
  const void* from;
  float* to;
  long long row, column, n, world, first, width;
  long long kind;  // TAKE_*
};

// Numbers of the rows to flags; a broken environment counts as truncated.
struct FlagArgs {
  const float *terminated, *truncated, *valid;
  unsigned char *ended, *cut, *kept, *broken;
  long long rows;
};

OSTLER_PART(TakeArgs, ostler_python_take, a.n * a.width, {
  const long long e = i / a.width, k = i - e * a.width, at = e * a.row + k * a.column;
  float x = 0.0f;
  if (a.kind == TAKE_FLOAT) x = ((const float*)a.from)[at];
  if (a.kind == TAKE_DOUBLE) x = (float)((const double*)a.from)[at];
  if (a.kind == TAKE_INT) x = (float)((const int*)a.from)[at];
  if (a.kind == TAKE_LONG) x = (float)((const long long*)a.from)[at];
  a.to[e * a.world + a.first + k] = x;
})
OSTLER_PART(FlagArgs, ostler_python_flags, a.rows, {
  const bool cut = a.truncated[i] != 0.0f, broken = a.valid[i] == 0.0f;
  a.ended[i] = a.terminated[i] != 0.0f;
  a.cut[i] = cut || broken;
  a.kept[i] = cut;
  a.broken[i] = broken;
})
