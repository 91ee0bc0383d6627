//! Libraries that are loaded at run time, because not every machine has them.

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::{Path, PathBuf};

/// A library that stays loaded for the life of the process.
#[derive(Debug)]
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Loads a library by name or path; `flags` as of `dlopen`.
    ///
    /// # Errors
    /// The loader's words, in one line.
    pub(crate) fn open(name: &CStr, flags: c_int) -> Result<Self, String> {
        // SAFETY: the name is a terminated string. The libraries are the driver's and libtorch's
        // own, whose constructors may run at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        match handle.is_null() {
            false => Ok(Self(handle)),
            true => Err(last_error()),
        }
    }

    /// The same for a path.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn open_path(path: &Path, flags: c_int) -> Result<Self, String> {
        use std::os::unix::ffi::OsStrExt;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        Self::open(&name, flags)
    }

    /// One of its functions.
    ///
    /// # Safety
    /// `F` is the type of a pointer to the function of that name.
    ///
    /// # Errors
    /// The loader's words: it has no such function.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the handle is of a library that stays loaded, the name terminated.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        match address.is_null() {
            true => Err(last_error()),
            // SAFETY: of the same size, and the caller vouches for the type.
            false => Ok(unsafe { std::mem::transmute_copy(&address) }),
        }
    }
}

/// The file that defines a symbol of this process, as the loader opened it.
pub(crate) fn file_of(symbol: &CStr) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the name is terminated; RTLD_DEFAULT looks through all that is loaded.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    // SAFETY: all-zero bytes are a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked about, and `info` is live and written only.
    let found = !address.is_null() && unsafe { libc::dladdr(address, &mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own string, which lives as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

/// The loader's message for the last failure in this thread.
fn last_error() -> String {
    // SAFETY: dlerror returns null or a terminated string that lives until the next
    // call of this thread.
    let said = unsafe { libc::dlerror() };
    if said.is_null() {
        return "the loader does not say why".into();
    }
    // SAFETY: as above.
    let said = unsafe { CStr::from_ptr(said) };
    said.to_string_lossy().replace('\n', " ")
}
