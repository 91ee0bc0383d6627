//! What a program became: its machine code, read by CUDA's disassembler.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// Of all functions of a program together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sass {
    /// Bytes of machine code.
    pub code: u32,
    /// Instructions that load from local memory, each counted once wherever it stands.
    pub local_loads: u32,
    /// That store there.
    pub local_stores: u32,
    /// That call a function.
    pub calls: u32,
}

impl Sass {
    /// Of a cubin.
    pub fn of(nvdisasm: &Path, cubin: &[u8]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), cubin).unwrap();
        let out = Command::new(nvdisasm).arg(file.path()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{said}");
        let found = Self::read(&String::from_utf8_lossy(&out.stdout));
        assert!(found.code > 0, "no instruction was read");
        found
    }

    /// Lines are `/*0a40*/  @!P0 LDL.64 R4, [R1+0x8] ;`; an instruction has 16 bytes.
    fn read(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let Some((address, rest)) =
                line.trim().strip_prefix("/*").and_then(|l| l.split_once("*/"))
            else {
                continue;
            };
            if u64::from_str_radix(address, 16).is_err() {
                continue;
            }
            let mut words = rest.split_whitespace().filter(|word| !word.starts_with('@'));
            let name = words.next().unwrap_or_default();
            match name.split('.').next().unwrap_or_default() {
                "" => continue,
                "LDL" => found.local_loads += 1,
                "STL" => found.local_stores += 1,
                "CALL" => found.calls += 1,
                _ => {}
            }
            found.code += 16;
        }
        found
    }
}

#[test]
fn instructions_are_counted_by_their_names() {
    let text = "\t.section\t.text.step,\"ax\"
.text.step:
        /*0000*/                   LDC R1, c[0x0][0x37c] ;
        /*0010*/              @!P0 LDL.64 R4, [R1+0x8] ;  /* 0x0 */
        /*0020*/                   STL [R1], R4 ;
        /*0030*/                   CALL.REL.NOINC `(g) ;
.L_x_0:
        /*0040*/                   BRA `(.L_x_0);
";
    let expected = Sass { code: 80, local_loads: 1, local_stores: 1, calls: 1 };
    assert_eq!(Sass::read(text), expected);
}
