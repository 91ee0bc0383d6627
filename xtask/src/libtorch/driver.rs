//! Is there an NVIDIA driver?

/// Whether its library can be loaded. It is not used, and put back.
pub fn is_here() -> bool {
    // SAFETY: the name is a terminated string; a driver's constructors are made to run
    // in any process.
    let handle = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY) };
    if handle.is_null() {
        return false;
    }
    // SAFETY: dlopen returned the handle, and nothing of the library is in use.
    unsafe { libc::dlclose(handle) };
    true
}
