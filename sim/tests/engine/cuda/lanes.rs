//! Lanes that work together: barriers, shuffles, votes and shared memory, executed as NVIDIA's
//! compiler writes them (`tests/pretend/ptx`) under two schedules. A kernel that is right has
//! the same numbers under both; one that is wrong is told what is wrong, and where.

use super::fake::Fake;
use super::work::{block, numbers, read};
use crate::support::nvrtc::nvrtc_folder;
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::transfer::Reader;
use ostler_sim::device::{Device, Program};
use std::path::Path;

/// Each block's sum of `7 i mod 1000` over its threads, and how many of these are odd.
const SUMS: &str = r#"
struct Args { unsigned* sums; unsigned* odd; };
extern "C" __global__ void sums(Args a) {
  __shared__ unsigned part[32], count;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = 7 * i % 1000;
  unsigned x = mine;
  for (unsigned by = 16; by > 0; by /= 2) x += __shfl_xor_sync(0xffffffffu, x, by);
  const unsigned odd = __popc(__ballot_sync(0xffffffffu, mine & 1));
  if (lane == 0) part[warp] = x;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (lane == 0) atomicAdd(&count, odd);
  __syncthreads();
  if (warp == 0) {
    unsigned all = lane < blockDim.x / 32 ? part[lane] : 0;
    for (unsigned by = 16; by > 0; by /= 2) all += __shfl_down_sync(0xffffffffu, all, by);
    if (lane == 0) {
      a.sums[blockIdx.x] = all;
      a.odd[blockIdx.x] = count;
    }
  }
}
"#;
const THREADS: usize = 1024;
/// What is wrong, the words that become others, what is said under both schedules.
const MISTAKES: [(&str, &str, &str, &str); 5] = [
    (
        "a barrier is missing",
        "__syncthreads();\n  if (warp == 0)",
        "if (warp == 0)",
        "a race on shared memory",
    ),
    (
        "a mask names lanes that do not come",
        "if (warp == 0) {",
        "if (threadIdx.x < 16) {",
        "lanes of mask 0xffffffff do not come",
    ),
    ("lanes write one word", "atomicAdd(&count, odd)", "count += odd", "a race on shared memory"),
    (
        "a shuffle from a lane that is not in it",
        "unsigned all = ",
        "if (lane < 8) x = __shfl_sync(0xffu, x, 9); unsigned all = x * 0 + ",
        "a shuffle from lane 9, which takes no part (mask 0x000000ff)",
    ),
    (
        "a barrier in a branch",
        "if (lane == 0) {",
        "if (lane < 16) __syncthreads();\n    if (lane == 0) {",
        "a barrier that not all lanes reach",
    ),
];

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Args {
    sums: u64,
    odd: u64,
}

#[test]
#[ignore = "only run by another test"]
fn sums() {
    let text = std::env::var("TEST_PROGRAM").unwrap();
    let cuda = Cuda::open(0).unwrap();
    let program = Program { text, places: Vec::new(), entries: vec!["sums".into()] };
    let kernels = cuda.load(&program).unwrap();
    let bytes = 4 * THREADS / 32;
    let (sums, odd) = (block(&cuda, bytes), block(&cuda, bytes));
    let args = Args { sums: sums.address(), odd: odd.address() };
    // SAFETY: the blocks are as long as there are blocks of threads at most.
    unsafe { kernels.launch(0, THREADS, bytemuck::bytes_of(&args)) }.unwrap();
    let reader = Reader::new(cuda.staging("numbers", bytes).unwrap());
    let reader = read(reader, &sums).unwrap();
    let all: Vec<u32> = (0..THREADS as u32).map(|i| 7 * i % 1000).collect();
    let found = numbers(reader.bytes());
    let blocks = found.iter().filter(|&&sum| sum > 0).count();
    assert!([8, 16, 32].contains(&blocks), "{found:?}");
    let each = all.chunks(THREADS / blocks);
    let expected: Vec<u32> = each.clone().map(|c| c.iter().sum()).collect();
    assert_eq!(found[..blocks], expected);
    let reader = read(reader, &odd).unwrap();
    let expected: Vec<u32> = each.map(|c| c.iter().map(|x| x & 1).sum()).collect();
    assert_eq!(numbers(reader.bytes())[..blocks], expected);
}

/// `cache`: for both schedules, which have the same code.
fn under(schedule: &str, program: &str, cache: &Path) -> Option<(bool, String)> {
    let fake = Fake::of("lanes::sums")?.with_ptx(&nvrtc_folder()?).env("OSTLER_CACHE", cache);
    // Blocks of 128 threads.
    let fake = fake.env("FAKE_MULTIPROCESSORS", "1").env("FAKE_SCHEDULE", schedule);
    Some(fake.env("TEST_PROGRAM", program).end())
}

#[test]
fn lanes_meet_and_mistakes_are_found_under_both_schedules() {
    let cache = tempfile::tempdir().unwrap();
    for schedule in ["lockstep", "alone"] {
        let Some((succeeded, text)) = under(schedule, SUMS, cache.path()) else { return };
        assert!(succeeded && text.contains("1 passed"), "{schedule}: {text}");
        for (what, from, to, says) in MISTAKES {
            assert_eq!(SUMS.matches(from).count(), 1, "{what}");
            let program = SUMS.replace(from, to);
            let (succeeded, text) = under(schedule, &program, cache.path()).unwrap();
            assert!(!succeeded, "{schedule}: {what}: nothing was found");
            assert!(text.contains(says) && text.contains("line "), "{schedule}: {what}: {text}");
        }
    }
}
