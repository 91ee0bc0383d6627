//! Loading compiled kernels.

use super::SpecializeError;
use ostler_base::files;
use std::ffi::{CStr, CString, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

/// A loaded shared library, unloaded when the last [`Function`] of it is gone.
#[derive(Debug)]
pub struct Library {
    handle: NonNull<c_void>,
    path: PathBuf,
    /// The loader knows a library by its name, here a descriptor's number, which must not
    /// become another file's while this is loaded.
    _file: Option<File>,
}

// SAFETY: the handle is a number to the system's loader, whose functions may be
// called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a library by its path, or by its name from where the system looks.
    ///
    /// # Errors
    /// The loader refuses; loading changes how this thread computes (flush to zero,
    /// rounding), which code compiled for speed without regard to results does: the
    /// change is undone.
    ///
    /// # Safety
    /// The library's initialisers run here, with all that this process may do: it is one
    /// of the system's, or one that the caller trusts.
    pub unsafe fn open(path: &Path) -> Result<Arc<Self>, SpecializeError> {
        Self::load(path, path, None)
    }

    /// Loads a library from memory: the checked bytes run, whichever file lies at `path` by
    /// then.
    ///
    /// # Errors
    /// As [`open`](Self::open); there is no memory for a copy.
    ///
    /// # Safety
    /// As [`open`](Self::open).
    pub unsafe fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Arc<Self>, SpecializeError> {
        let file = sealed(bytes).map_err(|e| SpecializeError::Load {
            path: path.to_path_buf(),
            reason: e.to_string(),
        })?;
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        Self::load(path, Path::new(&name), Some(file))
    }

    /// Loads `from`; messages name `path`.
    fn load(path: &Path, from: &Path, file: Option<File>) -> Result<Arc<Self>, SpecializeError> {
        let failed = |reason: String| SpecializeError::Load { path: path.to_path_buf(), reason };
        let name = CString::new(from.as_os_str().as_bytes())
            .map_err(|_| failed("its path contains a zero byte".to_owned()))?;
        let before = float_mode::get();
        // SAFETY: the name is a C string. That its initialisers may run is what the callers
        // of the functions above vouch for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let handle = NonNull::new(handle).ok_or_else(|| failed(last_error()))?;
        let library = Self { handle, path: path.to_path_buf(), _file: file };
        if float_mode::get() != before {
            drop(library);
            float_mode::set(before);
            return Err(failed("it changes the processor's floating-point mode".to_owned()));
        }
        Ok(Arc::new(library))
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A function by its name.
    ///
    /// # Errors
    /// There is none of that name.
    ///
    /// # Safety
    /// `F` is a function pointer type, `extern "C"`, with exactly the signature that
    /// the library's source gives that name.
    pub unsafe fn function<F: Copy>(
        self: &Arc<Self>,
        name: &str,
    ) -> Result<Function<F>, SpecializeError> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let failed = |reason: String| SpecializeError::Load { path: self.path.clone(), reason };
        let symbol =
            CString::new(name).map_err(|_| failed(format!("`{name}` contains a zero byte")))?;
        // SAFETY: the handle is of an open library, the name a C string.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), symbol.as_ptr()) };
        if address.is_null() {
            return Err(failed(format!("it has no function `{name}`")));
        }
        // SAFETY: a function pointer's bits, of the type the caller vouches for.
        let function = unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) };
        Ok(Function { function, library: Arc::clone(self) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; functions keep the library alive.
        unsafe { libc::dlclose(self.handle.as_ptr()) };
    }
}

/// A function of a library, which stays loaded as long.
#[derive(Debug, Clone)]
pub struct Function<F: Copy> {
    function: F,
    library: Arc<Library>,
}

impl<F: Copy> Function<F> {
    /// The pointer, valid while this lives.
    pub fn get(&self) -> F {
        self.function
    }

    /// Its library.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }
}

/// A file in memory that nobody can change any more.
fn sealed(bytes: &[u8]) -> std::io::Result<File> {
    let mut file = files::unnamed(libc::MFD_ALLOW_SEALING)?;
    file.write_all(bytes)?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open; the call takes numbers alone.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(file),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn last_error() -> String {
    // SAFETY: the message is this thread's and valid until the next call of the
    // loader's functions, of which there is none before it is copied.
    unsafe {
        let message = libc::dlerror();
        if message.is_null() {
            return "no reason given".to_owned();
        }
        CStr::from_ptr(message).to_string_lossy().into_owned()
    }
}

/// How this thread rounds and whether it flushes small numbers to zero.
pub(super) mod float_mode {
    /// The control bits of MXCSR.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn get() -> u32 {
        let mut register = 0_u32;
        // SAFETY: the instruction writes four bytes to a variable of that size.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut register, options(nostack));
        }
        // The lowest six bits tell of exceptions that have happened.
        register & !0x3f
    }

    /// Sets them again.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn set(mode: u32) {
        // SAFETY: the value was read from the register, hence has no reserved bit.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, readonly));
        }
    }

    /// Other processors are not supported.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn get() -> u32 {
        0
    }

    /// Other processors are not supported.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn set(_: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_sealed_file_holds_what_it_was_made_with_for_good() {
        let file = sealed(b"code").unwrap();
        assert!(file.write_all_at(b"evil", 0).is_err());
        assert!(file.set_len(1).is_err() && file.set_len(9).is_err());
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"code");
        // Nor can it be opened anew and changed.
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let again = File::options().write(true).open(name);
        assert!(again.and_then(|f| f.write_all_at(b"evil", 0)).is_err());
    }
}
