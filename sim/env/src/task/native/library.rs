//! A task's native functions compiled by the host's compiler, with the cache, the flags and the
//! loader of specialised kernels.

use super::Natives;
use crate::config::ConfigError;
use ostler_engine::kernels::{EnvArgs, OSTLER_NATIVE_VERSION, OstlerNative};
use ostler_engine::physics::native::generate::native_text;
use ostler_engine::physics::native::specialize::{Function, SpecializeError, Specializer};
use std::fmt::Write;
use std::os::raw::{c_int, c_long};

/// The entry of the library.
type Entry = unsafe extern "C" fn() -> *const OstlerNative;

/// The compiled functions of a task.
#[derive(Debug)]
pub struct Library {
    api: OstlerNative,
    /// Keeps the code loaded.
    _entry: Function<Entry>,
}

impl Library {
    /// Compiles the functions, or takes them from the cache; none where there is nothing that
    /// may be compiled.
    ///
    /// # Errors
    /// There is no leave, or no compiler; the text does not compile.
    pub fn load(natives: &Natives) -> Result<Option<Self>, ConfigError> {
        natives.allowed()?;
        if natives.is_empty() || !natives.runs() {
            return Ok(None);
        }
        let failed = |e: SpecializeError| explain(natives, e);
        let specializer = Specializer::from_environment().map_err(failed)?;
        let kernel = specializer.load_text(text(natives)).map_err(failed)?;
        // SAFETY: the text below defines it with this signature.
        let entry = unsafe { kernel.library.function::<Entry>("ostler_native") }.map_err(failed)?;
        // SAFETY: it returns the address of a constant of the library, laid out as `OstlerNative`.
        let api = unsafe { &*(entry.get())() };
        let fits = api.version == OSTLER_NATIVE_VERSION
            && api.args_bytes as usize == size_of::<EnvArgs>()
            && api.functions as usize == natives.functions.len();
        if !fits {
            let why = "the compiled functions are of another version".to_string();
            return Err(ConfigError::new("task.native[0].file", why)
                .help("remove the cache of compiled kernels (`ostler doctor` names it)"));
        }
        Ok(Some(Self { api: *api, _entry: entry }))
    }

    /// Calls a function for environments `first..first + len`.
    ///
    /// # Safety
    /// The addresses in `args` are of buffers of the sizes that it has, for environments of
    /// the task that the functions are of, and no other thread reads or writes entries of these
    /// environments meanwhile. `inputs` are the function's `[inputs][64]`, and `len` is at
    /// most 64.
    pub unsafe fn call(
        &self,
        args: &EnvArgs,
        (function, stage): (u32, u32),
        (first, len): (usize, usize),
        inputs: &[f32],
    ) {
        assert!(function < self.api.functions, "a function of another task");
        // SAFETY: the caller's promise; `args` is laid out as the library has it (its size was
        // compared).
        unsafe {
            (self.api.call)(args, function, stage, first as c_long, len as c_int, inputs.as_ptr());
        }
    }
}

/// The functions' text with an entry that calls them for blocks of environments.
fn text(natives: &Natives) -> String {
    let mut text = native_text(&natives.text);
    let _ = writeln!(
        text,
        "#line 1 \"calls of native functions\"\n\
         template<class F> static inline void of_block(const EnvArgs& a, unsigned stage, long first, int len, F f) {{\n  \
         for (int l = 0; l < len; l++)\n    \
         if (stage != NATIVE_BEGIN || a.mask[first + l]) f(first + l, l);\n}}\n\
         static void call_block(const EnvArgs* args, unsigned function, unsigned stage, long first, int len, const float* in) {{\n  \
         const EnvArgs& a = *args;\n  (void)in;\n  switch (function) {{"
    );
    for (k, native) in natives.functions.iter().enumerate() {
        let width = native.width();
        let _ = writeln!(
            text,
            "    case {k}: return of_block(a, stage, first, len, [&](long e, int l) {{\n      \
             float x[{}] = {{}};\n      \
             for (int i = 0; i < {width}; i++) x[i] = in[i * 64 + l];\n      \
             (void)l;\n      native_{k}(a, e, stage, x);\n    }});",
            width.max(1)
        );
    }
    let _ = writeln!(
        text,
        "  }}\n}}\n\
         static_assert(sizeof(EnvArgs) == {}, \"as Rust has it\");\n\
         static const OstlerNative functions = {{OSTLER_NATIVE_VERSION, {}, sizeof(EnvArgs), call_block}};\n\
         }}  // namespace\n\
         extern \"C\" __attribute__((visibility(\"default\"))) const OstlerNative* ostler_native() {{ return &functions; }}",
        size_of::<EnvArgs>(),
        natives.functions.len()
    );
    text
}

/// Why there are no compiled functions, at the key that it is about.
fn explain(natives: &Natives, e: SpecializeError) -> ConfigError {
    let key = natives.places().next().map(|(_, key)| key);
    let key = key.unwrap_or_else(|| "task.native[0].file".to_string());
    let SpecializeError::Failed { message, .. } = &e else {
        let why = format!("the header has to be compiled: {e}");
        return ConfigError::new(key, why);
    };
    // The compiler names files as `#line` does.
    let first = message.lines().find(|line| line.contains("error"));
    let first = first.unwrap_or(message);
    let of_header = natives.places().find(|(name, _)| first.contains(&format!("{name}:")));
    if let Some((_, key)) = of_header {
        let why = format!("does not compile:\n{}", quoted(message));
        return ConfigError::new(key, why);
    }
    for native in &natives.functions {
        let key = format!("task.native[{}].function", native.row.index);
        if first.contains(&key) {
            let why = format!("cannot be called:\n{}", quoted(message));
            let key = format!("task.native[{}]", native.row.index);
            return ConfigError::new(key, why)
                .help(format!("declare it as {}", native.declaration()));
        }
    }
    ConfigError::new(key, format!("does not compile:\n{}", quoted(message)))
}

/// A compiler's lines, set off.
fn quoted(message: &str) -> String {
    let lines: Vec<String> = message.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
