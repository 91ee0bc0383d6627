//! F1: a torch operation reads a kernel's results, and the other way round, without a wait.

use crate::place::{figure, place};
use ostler_sim::device::{Address, Program};
use tch::Kind;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Args {
    written: Address,
    read: Address,
    wrong: Address,
    round: f32,
    count: i32,
}

/// Thread `i` writes `round + i`, and counts where what it reads is not `round - i`.
const TEXT: &str = r#"
struct Args { float* written; const float* read; int* wrong; float round; int count; };
#ifdef __CUDACC__
extern "C" __global__ void mark(const Args a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  a.written[i] = a.round + (float)i;
  if (a.read[i] != a.round - (float)i) a.wrong[i]++;
}
#else
extern "C" __attribute__((visibility("default"))) const unsigned mark_bytes = sizeof(Args);
extern "C" __attribute__((visibility("default"))) void mark(const void* args, long long first, long long end) {
  const Args& a = *(const Args*)args;
  for (long long i = first; i < end && i < a.count; i++) {
    a.written[i] = a.round + (float)i;
    if (a.read[i] != a.round - (float)i) a.wrong[i]++;
  }
}
#endif
"#;

#[test]
fn f1_kernels_and_torch_see_each_others_numbers_in_order() {
    let place = place();
    let rounds = place.pick(10_000, 200);
    let count = place.pick(1 << 16, 256);
    let program = Program { text: TEXT.into(), places: Vec::new(), entries: vec!["mark".into()] };
    let kernels = place.device.load(&program).unwrap();
    let floats = |kind| place.zeros(&[count], kind);
    let (written, read, wrong) = (floats(Kind::Float), floats(Kind::Float), floats(Kind::Int));
    let ramp = tch::Tensor::arange(count, (Kind::Float, place.torch));
    let mut torch_wrong = place.zeros(&[], Kind::Int64);
    let before = place.device.traffic();
    for round in 0..rounds {
        // Torch writes what the kernel reads, and reads what it writes, at once.
        let round = round as f32;
        read.shallow_clone().copy_(&(round - &ramp));
        let args = Args {
            written: written.data_ptr() as Address,
            read: read.data_ptr() as Address,
            wrong: wrong.data_ptr() as Address,
            round,
            count: count as i32,
        };
        // SAFETY: the entry takes `Args`; the tensors are as long as `count` and live.
        unsafe { kernels.launch(0, count as usize, bytemuck::bytes_of(&args)) }.unwrap();
        let differs = written.not_equal_tensor(&(&ramp + f64::from(round)));
        torch_wrong += differs.sum(Kind::Int64);
    }
    let crossed = place.device.traffic().since(before);
    assert_eq!((crossed.waits, crossed.uploads, crossed.downloads), (0, 0, 0));
    assert_eq!(crossed.launches, rounds as u64);
    assert_eq!(torch_wrong.int64_value(&[]), 0, "torch read too early");
    assert_eq!(wrong.sum(Kind::Int64).int64_value(&[]), 0, "the kernel read too early");
    figure("f1.rounds", f64::from(rounds));
}
