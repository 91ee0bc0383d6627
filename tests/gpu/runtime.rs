//! Calls of libtorch to CUDA's runtime, counted.
//!
//! This program has functions by the runtime's names and exports them (`trainer/learn/build.rs`).
//! Libraries that are loaded later, as libtorch's CUDA part is, call these: the loader
//! looks in the program first. They count and pass the call on.

use crate::support::{alone, need};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// Of the runtime, since the start of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Times the host waited: for a stream, an event, the device, or a copy that waits.
    pub waits: u64,
    /// Copies between host and device.
    pub crossings: u64,
    /// Allocations, on the device or of page-locked memory.
    pub allocations: u64,
    /// Launches of kernels.
    pub launches: u64,
}

static WAITS: AtomicU64 = AtomicU64::new(0);
static CROSSINGS: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

/// Calls to the runtime that libraries make because of `work`, on this thread or any other.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, Calls) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap();
    let now = || Calls {
        waits: WAITS.load(Relaxed),
        crossings: CROSSINGS.load(Relaxed),
        allocations: ALLOCATIONS.load(Relaxed),
        launches: LAUNCHES.load(Relaxed),
    };
    let before = now();
    let result = work();
    let after = now();
    let calls = Calls {
        waits: after.waits - before.waits,
        crossings: after.crossings - before.crossings,
        allocations: after.allocations - before.allocations,
        launches: after.launches - before.launches,
    };
    (result, calls)
}

/// `cudaErrorInitializationError`: there is no runtime to pass the call on to.
const NO_RUNTIME: c_int = 3;
/// `cudaMemcpyHostToHost` and `cudaMemcpyDeviceToDevice`.
const WITHIN: [c_int; 2] = [0, 3];

/// How the file of the runtime's library begins.
static FILE: OnceLock<Cow<'static, str>> = OnceLock::new();

/// The runtime's own function, once it is loaded; 0 before.
fn real(known: &AtomicUsize, name: &CStr) -> usize {
    let address = known.load(Relaxed);
    if address != 0 {
        return address;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let runtime = paths.map(Path::new).find(|path| {
        let file = path.file_name().unwrap_or_default();
        let begins = FILE.get_or_init(|| {
            // The pretend GPU has a runtime of its own.
            std::env::var("OSTLER_GPU_RUNTIME").map_or("libcudart.so".into(), Cow::Owned)
        });
        file.as_bytes().starts_with(begins.as_bytes())
    });
    let Some(Ok(path)) = runtime.map(|path| CString::new(path.as_os_str().as_bytes())) else {
        return 0;
    };
    // SAFETY: both strings are terminated; the library is loaded already, and stays so.
    let address = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        match library.is_null() {
            true => 0,
            false => libc::dlsym(library, name.as_ptr()) as usize,
        }
    };
    known.store(address, Relaxed);
    address
}

/// A function by a name of the runtime: counts, and passes its arguments on.
macro_rules! stands_before {
    ($name:ident($($arg:ident: $type:ty),*), $count:expr) => {
        /// As CUDA's runtime has it.
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> c_int {
            static REAL: AtomicUsize = AtomicUsize::new(0);
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            $count;
            match real(&REAL, NAME) {
                0 => NO_RUNTIME,
                address => {
                    // SAFETY: the runtime's function of this name has this type.
                    let function: unsafe extern "C" fn($($type),*) -> c_int = unsafe { std::mem::transmute(address) };
                    // SAFETY: the caller's promise.
                    unsafe { function($($arg),*) }
                }
            }
        }
    };
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

fn copied(kind: c_int) {
    if !WITHIN.contains(&kind) {
        add(&CROSSINGS);
    }
}

type Pointer = *mut c_void;
/// Blocks of a grid, or threads of a block.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Dim3(c_uint, c_uint, c_uint);

stands_before!(cudaDeviceSynchronize(), add(&WAITS));
stands_before!(cudaStreamSynchronize(stream: Pointer), add(&WAITS));
stands_before!(cudaEventSynchronize(event: Pointer), add(&WAITS));
stands_before!(cudaMalloc(place: Pointer, bytes: usize), add(&ALLOCATIONS));
stands_before!(cudaMallocAsync(place: Pointer, bytes: usize, stream: Pointer), add(&ALLOCATIONS));
stands_before!(cudaHostAlloc(place: Pointer, bytes: usize, flags: c_uint), add(&ALLOCATIONS));
stands_before!(
    cudaMemcpy(to: Pointer, from: Pointer, bytes: usize, kind: c_int),
    {
        copied(kind);
        add(&WAITS);
    }
);
stands_before!(
    cudaMemcpyAsync(to: Pointer, from: Pointer, bytes: usize, kind: c_int, stream: Pointer),
    copied(kind)
);
stands_before!(
    cudaLaunchKernel(kernel: Pointer, grid: Dim3, block: Dim3, args: Pointer, shared: usize, stream: Pointer),
    add(&LAUNCHES)
);
// Functions that code compiled by CUDA 13 calls.
stands_before!(
    __cudaLaunchKernel(kernel: Pointer, grid: Dim3, block: Dim3, args: Pointer, shared: usize, stream: Pointer),
    add(&LAUNCHES)
);
stands_before!(
    cudaLaunchKernelExC(config: Pointer, kernel: Pointer, args: Pointer),
    add(&LAUNCHES)
);

/// A runtime, and a library that uses it as libtorch does.
const RUNTIME: &str = "
int cudaDeviceSynchronize(void) { return 100; }
int cudaStreamSynchronize(void* s) { return 101 + (s != 0); }
int cudaMalloc(void** p, unsigned long n) { *p = (void*)n; return 0; }
int cudaMemcpyAsync(void* to, const void* from, unsigned long n, int kind, void* s) {
  return to == (void*)1 && from == (void*)2 && n == 3 && s == (void*)5 ? 200 + kind : -1;
}
struct D { unsigned x, y, z; };
int cudaLaunchKernel(const void* f, struct D g, struct D b, void** a, unsigned long n, void* s) {
  return f == (void*)1 && a == (void*)2 && n == 3 && s == (void*)4
    ? (int)(g.x + 10 * g.y + 100 * g.z + 1000 * b.x + 10000 * b.y + 100000 * b.z) : -1;
}
";
const USER: &str = "
int cudaDeviceSynchronize(void);
int cudaStreamSynchronize(void*);
int cudaMalloc(void**, unsigned long);
int cudaMemcpyAsync(void*, const void*, unsigned long, int, void*);
struct D { unsigned x, y, z; };
int cudaLaunchKernel(const void*, struct D, struct D, void**, unsigned long, void*);
int use_all(void) {
  void* p = 0;
  struct D g = {1, 2, 3}, b = {4, 5, 6};
  if (cudaDeviceSynchronize() != 100 || cudaStreamSynchronize((void*)1) != 102) return 1;
  if (cudaMalloc(&p, 77) != 0 || p != (void*)77) return 2;
  for (int kind = 0; kind < 5; kind++)
    if (cudaMemcpyAsync((void*)1, (void*)2, 3, kind, (void*)5) != 200 + kind) return 3;
  if (cudaLaunchKernel((void*)1, g, b, (void**)2, 3, (void*)4) != 654321) return 4;
  return 0;
}
";

#[test]
fn the_loader_finds_the_programs_functions_first() {
    let ours: [(&CStr, usize); 4] = [
        (c"cudaMemcpyAsync", cudaMemcpyAsync as *const () as usize),
        (c"cudaStreamSynchronize", cudaStreamSynchronize as *const () as usize),
        (c"cudaMalloc", cudaMalloc as *const () as usize),
        (c"__cudaLaunchKernel", __cudaLaunchKernel as *const () as usize),
    ];
    for (name, address) in ours {
        // SAFETY: the name is terminated.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert_eq!(found as usize, address, "{name:?}");
    }
}

#[test]
fn calls_of_libraries_that_are_loaded_later_are_counted_and_passed_on() {
    let cc = std::env::var("CC").unwrap_or("cc".into());
    let Some(()) = need::Need::Compiler.or_skip(need::runs(&cc)) else {
        return;
    };
    // In a process without CUDA's own runtime, which other tests use on a GPU.
    let half = "runtime::a_runtime_of_our_own_is_counted_and_called";
    let out = alone::command(&[], half).env("CC", cc).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "only run by another test"]
fn a_runtime_of_our_own_is_counted_and_called() {
    // Libtorch's CPU part brings CUDA's, which does nothing without a driver.
    FILE.set("libcudart.so.99".into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let compile = |name: &str, text: &str, with: &[&str]| {
        let source = folder.path().join(format!("{name}.c"));
        std::fs::write(&source, text).unwrap();
        let library = folder.path().join(name);
        let compiler = std::env::var_os("CC").unwrap();
        let mut command = std::process::Command::new(compiler);
        command.args(["-shared", "-fPIC", "-o"]).arg(&library);
        let status = command.arg(&source).args(with).status().unwrap();
        assert!(status.success());
        CString::new(library.as_os_str().as_bytes()).unwrap()
    };
    compile("libcudart.so.99", RUNTIME, &["-Wl,-soname,libcudart.so.99"]);
    let at = format!("-L{}", folder.path().display());
    let rpath = format!("-Wl,-rpath,{}", folder.path().display());
    let user = compile("libuser.so", USER, &[&at, &rpath, "-l:libcudart.so.99"]);
    // SAFETY: a library of ours without constructors; `use_all` takes nothing.
    let use_all: extern "C" fn() -> c_int = unsafe {
        let library = libc::dlopen(user.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        assert!(!library.is_null());
        std::mem::transmute(libc::dlsym(library, c"use_all".as_ptr()))
    };
    let (result, calls) = counted(|| use_all());
    assert_eq!(result, 0);
    let expected = Calls { waits: 2, crossings: 3, allocations: 1, launches: 1 };
    assert_eq!(calls, expected);
}
