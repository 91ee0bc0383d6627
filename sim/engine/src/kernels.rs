//! What Rust and the kernels share, as the headers in `sim/kernels` declare it: structs, tables
//! of functions and numbers, read from there by `sim/build/mirrors.rs`.
#![allow(dead_code, reason = "Rust does not need every number")]

use crate::device::Address;
use crate::state::{EpisodeAddresses, StepBufferAddresses, TableAddresses};
use crate::state::{TaskSizes, WorldAddresses};
use crate::stats::StatAddresses;

include!(concat!(env!("OUT_DIR"), "/mirrors.rs"));
const _: () = assert!(size_of::<EnvArgs>() <= crate::device::MAX_ARGUMENTS);

#[cfg(test)]
#[path = "../../build/mirrors.rs"]
mod mirrors;

#[cfg(test)]
mod tests {
    use super::mirrors;

    fn written(text: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.h"), text).unwrap();
        let to = dir.path().join("x.rs");
        mirrors::write(dir.path(), &[("x.h", "u32", &["Args", "Calls"])], &to)?;
        Ok(std::fs::read_to_string(to).unwrap())
    }

    #[test]
    fn declarations_are_read_and_others_are_errors() {
        let text = "// Kinds.\nenum { ONE, TWO,  // the second\n  BIT = 1u << 31, NONE = ~0u, LAST = TWO + 6 };\n\n\
            // What it\n// takes.\ntemplate<class T> struct Args {\n  typedef T real;\n  Part<T> part;\n  \
            // Numbers\n  const T *a, *b[2];  // [n]\n  unsigned long long seed;\n  OSTLER_WORLD(X)\n};\n\
            struct Calls {\n  void* context;\n  float (*f)(const Args* args, int n);\n  \
            void (*g)(void* context);  // or null\n};\n";
        let rust = written(text).unwrap();
        for line in [
            "pub const ONE: u32 = 0;",
            "#[doc = \"the second\"]\npub const TWO: u32 = ONE + 1;",
            "pub const BIT: u32 = 1 << 31;",
            "pub const NONE: u32 = !0;",
            "pub const LAST: u32 = TWO + 6;",
            "#[doc = \"What it takes.\"]",
            "    pub part: Part,",
            "#[doc = \"Numbers \\\\[n]\"]\n    pub a: Address,",
            "    pub b: [Address; 2],",
            "    pub seed: u64,\n    pub world: WorldAddresses,\n}",
            "    pub context: *mut std::ffi::c_void,",
            "    pub f: unsafe extern \"C\" fn(args: *const Args, n: i32) -> f32,",
            "    pub g: Option<unsafe extern \"C\" fn(context: *mut std::ffi::c_void)>,",
        ] {
            assert!(rust.contains(line), "{line}\n{rust}");
        }
        for (from, to, what) in [
            ("struct Calls {", "struct Other {", "struct Calls {"),
            ("  void* context;", "  int it() { return 1; }", "int it() { return 1; }"),
            ("LAST = TWO + 6 };", "LAST }", "enum"),
        ] {
            let error = written(&text.replace(from, to)).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
