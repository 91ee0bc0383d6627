//! What lies between a learner's arrays and the environments' on a GPU: actions of any kind and
//! order become rows, numbers become flags.

use ostler_sim::device::{Address, Device, DeviceError, Kernels, Program};
use std::sync::Arc;

/// Works under NVRTC and as C++17, as the programs of environments do.
const TEXT: &str = r#"
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

// Actions of one agent [n][width], from one entry to the next in `row` and `column` entries, to
// its columns `first` .. of the rows [n][world].
struct TakeArgs {
  const void* from;
  float* to;
  long long row, column, n, world, first, width;
  long long kind;  // 0: float, 1: double, 2: int, 3: long long
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
  if (a.kind == 0) x = ((const float*)a.from)[at];
  if (a.kind == 1) x = (float)((const double*)a.from)[at];
  if (a.kind == 2) x = (float)((const int*)a.from)[at];
  if (a.kind == 3) x = (float)((const long long*)a.from)[at];
  a.to[e * a.world + a.first + k] = x;
})
OSTLER_PART(FlagArgs, ostler_python_flags, a.rows, {
  const bool cut = a.truncated[i] != 0.0f, broken = a.valid[i] == 0.0f;
  a.ended[i] = a.terminated[i] != 0.0f;
  a.cut[i] = cut || broken;
  a.kept[i] = cut;
  a.broken[i] = broken;
})
"#;

/// `TakeArgs` of the text.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct TakeArgs {
    pub from: Address,
    pub to: Address,
    pub row: i64,
    pub column: i64,
    pub n: i64,
    pub world: i64,
    pub first: i64,
    pub width: i64,
    pub kind: i64,
}

/// `FlagArgs` of the text.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct FlagArgs {
    pub terminated: Address,
    pub truncated: Address,
    pub valid: Address,
    pub ended: Address,
    pub cut: Address,
    pub kept: Address,
    pub broken: Address,
    pub rows: i64,
}

/// The kernels, loaded.
#[derive(Debug)]
pub struct Parts(Arc<dyn Kernels>);

impl Parts {
    /// Compiles them for a device, or takes them from its cache.
    ///
    /// # Errors
    /// The device does not take them.
    pub fn load(device: &dyn Device) -> Result<Self, DeviceError> {
        let program = Program {
            text: TEXT.into(),
            places: Vec::new(),
            entries: vec!["ostler_python_take".into(), "ostler_python_flags".into()],
        };
        Ok(Self(device.load(&program)?))
    }

    /// Starts a copy of actions.
    ///
    /// # Errors
    /// The device refuses.
    ///
    /// # Safety
    /// At the addresses are so many numbers as the arguments say.
    pub unsafe fn take(&self, args: &TakeArgs) -> Result<(), DeviceError> {
        let threads = usize::try_from(args.n * args.width).unwrap_or_default();
        // SAFETY: the struct is what the entry takes; the rest is the caller's promise.
        unsafe { self.0.launch(0, threads, bytemuck::bytes_of(args)) }
    }

    /// Starts the writing of flags.
    ///
    /// # Errors
    /// The device refuses.
    ///
    /// # Safety
    /// At every address are so many numbers, or bytes, as there are rows.
    pub unsafe fn flags(&self, args: &FlagArgs) -> Result<(), DeviceError> {
        let threads = usize::try_from(args.rows).unwrap_or_default();
        // SAFETY: the struct is what the entry takes; the rest is the caller's promise.
        unsafe { self.0.launch(1, threads, bytemuck::bytes_of(args)) }
    }
}
