//! Checks that every device must pass, fake or not.

use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::transfer::Reader;
use ostler_sim::device::{Block, Device, DeviceError, Memory, Program, Traffic};
use std::sync::Arc;

/// A program whose entry writes `value + i` to place `i` of `n`.
pub fn fill() -> Program {
    Program {
        text: r#"
struct Args { unsigned* out; unsigned n; unsigned value; };
#ifdef __CUDACC__
extern "C" __global__ void fill(Args a) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.n) a.out[i] = a.value + i;
}
#else
extern "C" __attribute__((visibility("default"))) const unsigned fill_bytes = sizeof(Args);
extern "C" __attribute__((visibility("default"))) void fill(const void* args, long long first, long long end) {
  const Args& a = *(const Args*)args;
  for (unsigned i = first; i < end && i < a.n; i++) a.out[i] = a.value + i;
}
#endif
"#
        .into(),
        places: Vec::new(),
        entries: vec!["fill".into()],
    }
}

/// [`fill`] with a thousand numbers on each thread's stack.
pub fn deep() -> Program {
    let text = fill().text.replace(
        "a.out[i] = a.value + i;",
        "{ unsigned all[1000]; for (unsigned k = 0; k < 1000; k++) all[k] = a.out[k] + i; \
         a.out[i] = all[all[i % 1000] % 1000]; }",
    );
    Program { text, ..fill() }
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Args {
    pub out: u64,
    pub n: u32,
    pub value: u32,
}

pub fn block(cuda: &Cuda, bytes: usize) -> Block {
    cuda.memory().zeroed("a test's numbers", bytes).unwrap()
}

pub fn read(reader: Reader, block: &Block) -> Result<Reader, DeviceError> {
    // SAFETY: every test's reader is as long as its block.
    unsafe { reader.begin(block.address()) }?.wait()
}

pub fn numbers(bytes: &[u8]) -> Vec<u32> {
    let word = |c: &[u8]| u32::from_ne_bytes(c.try_into().unwrap());
    bytes.chunks(4).map(word).collect()
}

/// Launches and copies are done in the order in which they were started.
pub fn launches_and_copies_keep_their_order(cuda: &Arc<Cuda>) {
    const N: u32 = 1000;
    let bytes = 4 * N as usize;
    let kernels = cuda.load(&fill()).unwrap();
    let numbers_on_device = block(cuda, bytes);
    let mut reader = Reader::new(cuda.staging("numbers", bytes).unwrap());
    assert_eq!(numbers(reader.bytes()), [0; N as usize]);
    reader = read(reader, &numbers_on_device).unwrap();
    assert_eq!(numbers(reader.bytes()), [0; N as usize]);
    let before = cuda.traffic();
    for round in 0..50 {
        let args = |n, value| Args { out: numbers_on_device.address(), n, value };
        // SAFETY: the block has N numbers.
        unsafe {
            let all = args(N, round);
            kernels.launch(0, N as usize, bytemuck::bytes_of(&all)).unwrap();
            // The first three are overwritten from the host, then the first by a launch.
            let mut mine = [7, 8, round + 9];
            let from = bytemuck::cast_slice(&mine);
            cuda.upload(from, numbers_on_device.address()).unwrap();
            mine.fill(u32::MAX);
            kernels.launch(0, 1, bytemuck::bytes_of(&args(1, 5))).unwrap();
            kernels.launch(0, 0, bytemuck::bytes_of(&args(0, 5))).unwrap();
        }
        reader = read(reader, &numbers_on_device).unwrap();
        let mut expected: Vec<u32> = (0..N).map(|i| round + i).collect();
        expected[..3].copy_from_slice(&[5, 8, round + 9]);
        assert_eq!(numbers(reader.bytes()), expected, "round {round}");
    }
    let traffic = cuda.traffic().since(before);
    // Nothing is waited for but what is read.
    let expected = Traffic { launches: 100, uploads: 50, downloads: 50, waits: 50 };
    assert_eq!(traffic, expected);
    cuda.fence().unwrap();
    cuda.synchronize().unwrap();
    assert_eq!(cuda.traffic().since(before).waits, 52);
}

/// The source of a copy to the device may be changed at once, however large it is.
pub fn uploads_are_independent_of_what_becomes_of_their_bytes(cuda: &Arc<Cuda>) {
    const BYTES: usize = 3_000_001;
    let there = block(cuda, BYTES);
    let mut reader = Reader::new(cuda.staging("bytes", BYTES).unwrap());
    let mut mine = vec![0_u8; BYTES];
    for round in 0..3_usize {
        let value = |i: usize| (i * 31 + i / 251 + round) as u8;
        mine.iter_mut().enumerate().for_each(|(i, b)| *b = value(i));
        // SAFETY: the block is as long.
        unsafe { cuda.upload(&mine, there.address()) }.unwrap();
        mine.fill(0xff);
        reader = read(reader, &there).unwrap();
        assert!(reader.bytes().iter().enumerate().all(|(i, &b)| b == value(i)));
    }
    // SAFETY: nothing is written.
    unsafe { cuda.upload(&[], there.address()) }.unwrap();
}

/// A struct of the wrong length is refused before the device reads beyond it.
pub fn arguments_of_another_length_are_refused(cuda: &Arc<Cuda>) {
    let kernels = cuda.load(&fill()).unwrap();
    for (entry, length, what) in [(0, 12, "16 bytes"), (1, 16, "entry 1 of 1")] {
        // SAFETY: it is refused.
        let error = unsafe { kernels.launch(entry, 1, &vec![0; length]) }.unwrap_err();
        assert!(matches!(error, DeviceError::Defect(_)), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}
