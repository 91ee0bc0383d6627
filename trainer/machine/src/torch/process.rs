//! The process around libtorch: glibc's allocator, the floating-point mode, the
//! end.

use std::io::Write;

/// Allocations up to this size come from memory the process keeps. (bytes)
const KEEP: libc::c_int = 1 << 30;
/// Used where glibc allows no more (before 2.35: half a heap). (bytes)
const KEEP_OLD_GLIBC: libc::c_int = 32 << 20;

/// Makes glibc keep freed memory instead of returning it to the kernel: with its
/// default thresholds every minibatch maps, faults in and unmaps its tensors
/// anew. Returns whether glibc agreed.
pub(super) fn keep_freed_memory() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: mallopt takes two numbers and touches only glibc's allocator,
        // which locks itself.
        let set = |option, value| unsafe { libc::mallopt(option, value) == 1 };
        let mapped =
            set(libc::M_MMAP_THRESHOLD, KEEP) || set(libc::M_MMAP_THRESHOLD, KEEP_OLD_GLIBC);
        let trimmed = set(libc::M_TRIM_THRESHOLD, KEEP);
        mapped && trimmed
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Runs `build` so that every larger piece of memory it takes goes back to the kernel
/// at once when it is freed: for buffers that live long. In the heap a small piece above
/// them would keep all of it, and after a back-off nothing would be gained.
pub fn returnable<T>(build: impl FnOnce() -> T) -> T {
    #[cfg(target_env = "gnu")]
    {
        const FROM: libc::c_int = 1 << 18;
        // SAFETY: mallopt takes two numbers and touches only glibc's allocator,
        // which locks itself.
        let set = |bytes| unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) == 1 };
        set(FROM);
        let built = build();
        let _ = set(KEEP) || set(KEEP_OLD_GLIBC);
        built
    }
    #[cfg(not(target_env = "gnu"))]
    build()
}

/// Gives freed memory back to the kernel, which [`super::init`] made the process
/// keep. For after a back-off; costs page faults later. Returns whether any went.
pub fn release_free_memory() -> bool {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: malloc_trim takes a number and touches only free memory of
        // glibc's allocator, which locks itself.
        unsafe { libc::malloc_trim(0) == 1 }
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Bytes of the heap that were freed and are kept for later allocations.
pub fn heap_free() -> u64 {
    // SAFETY: it reads the allocator's own counters under its locks and takes nothing.
    unsafe { libc::mallinfo2() }.fordblks as u64
}

/// Whether this thread rounds subnormal numbers to zero, as results (MXCSR bit
/// 15) or as operands (bit 6). Nothing here may switch that on: a library built
/// with fast-math does when it is loaded.
#[cfg(target_arch = "x86_64")]
pub fn flush_to_zero() -> bool {
    let mut mxcsr = 0_u32;
    // SAFETY: stmxcsr writes four bytes to the address given, that of a live u32.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack)) };
    mxcsr & (1 << 15 | 1 << 6) != 0
}

/// Ends the process at once with `code`, after flushing standard output and
/// error: libtorch's destructors cost 60 ms and release nothing that the kernel
/// does not release anyway.
///
/// Nothing is dropped and no exit handler runs: files must be closed and synced,
/// threads must have nothing left to say.
pub fn exit_fast(code: i32) -> ! {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: fflush(NULL) flushes C's streams, each under its own lock.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: _exit ends the process; no code of it runs afterwards.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::{Device, Kind, Tensor};

    #[test]
    fn libtorch_leaves_subnormal_numbers_alone() {
        let product = Tensor::ones([64, 64], (Kind::Float, Device::Cpu));
        assert_eq!(f64::try_from(product.matmul(&product).sum(Kind::Float)).unwrap(), 262_144.0);
        assert!(!flush_to_zero());
        assert!(std::hint::black_box(f32::MIN_POSITIVE) / 2.0 > 0.0);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn flush_to_zero_is_seen_when_it_is_on() {
        std::thread::spawn(|| {
            let mxcsr = 0x1f80_u32 | 1 << 15;
            // SAFETY: ldmxcsr reads four bytes of a live u32 whose reserved bits
            // are zero; the mode ends with this thread.
            unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack)) };
            let seen = flush_to_zero();
            let mxcsr = 0x1f80_u32;
            // SAFETY: as above.
            unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack)) };
            assert!(seen);
        })
        .join()
        .unwrap();
    }
}
