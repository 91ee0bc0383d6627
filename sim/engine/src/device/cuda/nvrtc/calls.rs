//! The functions of NVRTC that are used.
//!
//! Signatures: <https://docs.nvidia.com/cuda/nvrtc/index.html>; they have not changed
//! since CUDA 11.2.

use crate::physics::native::specialize::{Function, Library};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

type Code = c_int;
type Handle = *mut c_void;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code;
type Count = unsafe extern "C" fn(*mut c_int) -> Code;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;
type Destroy = unsafe extern "C" fn(*mut Handle) -> Code;
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Code;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> Code;
type Get = unsafe extern "C" fn(Handle, *mut c_char) -> Code;
type Text = unsafe extern "C" fn(Code) -> *const c_char;

const SUCCESS: Code = 0;
const OUT_OF_MEMORY: Code = 1;
const COMPILATION: Code = 6;
const BUILTIN_OPERATION_FAILURE: Code = 7;

/// How a compilation ended.
pub(crate) enum Outcome {
    /// Well.
    Done { cubin: Vec<u8>, log: String },
    /// The program has errors.
    Refused { log: String },
    /// No host memory.
    OutOfMemory,
    /// Anything else: why.
    Broken(String),
}

/// The functions, of a library that they keep loaded.
pub(crate) struct Calls {
    version: Function<Version>,
    architecture_count: Function<Count>,
    architectures: Function<Count>,
    create: Function<Create>,
    destroy: Function<Destroy>,
    compile: Function<Compile>,
    cubin_size: Function<Size>,
    cubin: Function<Get>,
    log_size: Function<Size>,
    log: Function<Get>,
    error: Function<Text>,
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calls({})", self.version.library().path().display())
    }
}

impl Calls {
    pub(crate) fn of(library: &Arc<Library>) -> Result<Self, String> {
        fn get<F: Copy>(library: &Arc<Library>, name: &str) -> Result<Function<F>, String> {
            // SAFETY: each is asked for below with its type as documented.
            unsafe { library.function(name) }.map_err(|e| e.to_string())
        }
        Ok(Self {
            version: get(library, "nvrtcVersion")?,
            architecture_count: get(library, "nvrtcGetNumSupportedArchs")?,
            architectures: get(library, "nvrtcGetSupportedArchs")?,
            create: get(library, "nvrtcCreateProgram")?,
            destroy: get(library, "nvrtcDestroyProgram")?,
            compile: get(library, "nvrtcCompileProgram")?,
            cubin_size: get(library, "nvrtcGetCUBINSize")?,
            cubin: get(library, "nvrtcGetCUBIN")?,
            log_size: get(library, "nvrtcGetProgramLogSize")?,
            log: get(library, "nvrtcGetProgramLog")?,
            error: get(library, "nvrtcGetErrorString")?,
        })
    }

    fn check(&self, call: &str, code: Code) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: takes any number.
        let text = unsafe { (self.error.get())(code) };
        if text.is_null() {
            return Err(format!("{call} ends with {code}"));
        }
        // SAFETY: a constant of the library, which stays loaded.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        Err(format!("{call} ends with {text}"))
    }

    pub(crate) fn version(&self) -> Result<(u32, u32), String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the function writes two numbers.
        let code = unsafe { (self.version.get())(&mut major, &mut minor) };
        self.check("nvrtcVersion", code)?;
        Ok((unsigned(major), unsigned(minor)))
    }

    pub(crate) fn architectures(&self) -> Result<Vec<u32>, String> {
        let mut count = 0;
        // SAFETY: the function writes one number.
        let code = unsafe { (self.architecture_count.get())(&mut count) };
        self.check("nvrtcGetNumSupportedArchs", code)?;
        let mut list = vec![0; unsigned(count) as usize];
        // SAFETY: the function writes as many numbers as it said.
        let code = unsafe { (self.architectures.get())(list.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", code)?;
        Ok(list.into_iter().map(unsigned).collect())
    }

    pub(crate) fn compile(&self, text: &str, name: &str, options: &[String]) -> Outcome {
        self.try_compile(text, name, options).unwrap_or_else(Outcome::Broken)
    }

    fn try_compile(&self, text: &str, name: &str, options: &[String]) -> Result<Outcome, String> {
        let c = |s: &str| CString::new(s).map_err(|_| "a zero byte in the program".to_string());
        let (text, name) = (c(text)?, c(name)?);
        let options = options.iter().map(|o| c(o)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(options.len()).map_err(|e| e.to_string())?;
        let mut handle = ptr::null_mut();
        // SAFETY: text and name are C strings that live until the program is destroyed;
        // there are no headers.
        let code = unsafe {
            (self.create.get())(
                &mut handle,
                text.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        };
        self.check("nvrtcCreateProgram", code)?;
        let program = Compilation { calls: self, handle };
        // SAFETY: the program is alive; so many options, each a C string, are there.
        let code = unsafe { (self.compile.get())(handle, count, options.as_ptr()) };
        match code {
            SUCCESS => Ok(Outcome::Done {
                cubin: program.bytes("nvrtcGetCUBIN", &self.cubin_size, &self.cubin)?,
                log: program.log()?,
            }),
            COMPILATION => Ok(Outcome::Refused { log: program.log()? }),
            OUT_OF_MEMORY => Ok(Outcome::OutOfMemory),
            BUILTIN_OPERATION_FAILURE => Err(format!(
                "it does not find libnvrtc-builtins, which belongs beside it; {}",
                program.log()?.trim()
            )),
            code => {
                let reason = self.check("nvrtcCompileProgram", code).err();
                let log = program.log().unwrap_or_default();
                Err(format!("{}; {}", reason.unwrap_or_default(), log.trim()))
            }
        }
    }
}

/// A program that is destroyed at the end.
struct Compilation<'a> {
    calls: &'a Calls,
    handle: Handle,
}

impl Compilation<'_> {
    fn bytes(
        &self,
        call: &str,
        size: &Function<Size>,
        get: &Function<Get>,
    ) -> Result<Vec<u8>, String> {
        let mut length = 0;
        // SAFETY: the program is alive; one number is written.
        let code = unsafe { (size.get())(self.handle, &mut length) };
        self.calls.check(call, code)?;
        let mut bytes = vec![0; length];
        // SAFETY: the program is alive; as many bytes as it said are written.
        let code = unsafe { (get.get())(self.handle, bytes.as_mut_ptr().cast()) };
        self.calls.check(call, code)?;
        Ok(bytes)
    }

    fn log(&self) -> Result<String, String> {
        let calls = self.calls;
        let bytes = self.bytes("nvrtcGetProgramLog", &calls.log_size, &calls.log)?;
        let text = bytes.split(|&b| b == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.calls.destroy.get())(&mut self.handle) };
    }
}

fn unsigned(n: c_int) -> u32 {
    u32::try_from(n).unwrap_or_default()
}
