//! Memory that the present thread holds, in all languages: the program's `malloc` and
//! its like, which count and hand on to glibc's.

use std::cell::Cell;
use std::ffi::c_void;

thread_local! {
    /// Bytes held; allocations of another thread are counted there.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// Most of them since [`start`].
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Nothing gets more than this (bytes): a case ends with a finding, not the machine with
/// its memory.
const MOST: isize = 4 << 30;

/// Counts anew from here.
pub fn start() -> isize {
    let live = LIVE.get();
    PEAK.set(live);
    live
}

/// Most bytes held at once since [`start`], beyond those held then.
pub fn peak_since(start: isize) -> usize {
    usize::try_from(PEAK.get() - start).unwrap_or(0)
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(block: *mut c_void);
}

fn size_of(block: *mut c_void) -> isize {
    // SAFETY: the block is null or came from glibc's allocator: all functions here hand
    // on to it.
    unsafe { libc::malloc_usable_size(block) as isize }
}

/// Notes a block that was just handed out.
fn taken(block: *mut c_void) -> *mut c_void {
    let live = LIVE.get() + size_of(block);
    LIVE.set(live);
    if live > PEAK.get() {
        PEAK.set(live);
    }
    block
}

fn refused(size: usize) -> bool {
    let size = isize::try_from(size).unwrap_or(isize::MAX);
    if LIVE.get().saturating_add(size) <= MOST {
        return false;
    }
    PEAK.set(LIVE.get().saturating_add(size));
    true
}

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    if refused(size) {
        return std::ptr::null_mut();
    }
    // SAFETY: glibc's own, under its other name.
    taken(unsafe { __libc_malloc(size) })
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if refused(count.saturating_mul(size)) {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    taken(unsafe { __libc_calloc(count, size) })
}

#[unsafe(no_mangle)]
extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if refused(size) {
        return std::ptr::null_mut();
    }
    let before = size_of(block);
    // SAFETY: as above; the caller keeps `realloc`'s contract.
    let new = unsafe { __libc_realloc(block, size) };
    if !new.is_null() || size == 0 {
        LIVE.set(LIVE.get() - before);
    }
    taken(new)
}

#[unsafe(no_mangle)]
extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    if refused(size) {
        return std::ptr::null_mut();
    }
    // SAFETY: as above.
    taken(unsafe { __libc_memalign(align, size) })
}

#[unsafe(no_mangle)]
extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

/// # Safety
/// As C's `posix_memalign`.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> i32 {
    let block = memalign(align, size);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller hands over a place for the result.
    unsafe { *out = block };
    0
}

/// # Safety
/// As C's `free`.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(block: *mut c_void) {
    LIVE.set(LIVE.get() - size_of(block));
    // SAFETY: the caller keeps `free`'s contract; every block is glibc's.
    unsafe { __libc_free(block) };
}
