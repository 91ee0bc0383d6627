//! Calls that one module alone may have: conversions that read a tensor, and what makes or
//! overwrites a file, perhaps through a link that a stranger laid.
//!
//! clippy's `disallowed-methods` cannot name methods of a trait's implementation, such as
//! `Vec::<f32>::try_from(tensor)`, nor allow tests what it refuses to the rest, so the lint step
//! looks for their text. Tests may.

use crate::SetupError;
use std::fs;
use std::path::Path;

/// Calls and the module that may have them.
struct Rule {
    calls: &'static [&'static str],
    /// The module that may.
    place: &'static str,
    /// Folders whose packages' `src` are looked through.
    parts: &'static [&'static str],
    error: fn(String, &'static str) -> SetupError,
}

const RULES: [Rule; 2] = [
    Rule {
        // Numbers are converted among one another in other ways.
        calls: &[
            "Vec::try_from(",
            "f32::try_from(",
            "f64::try_from(",
            "bool::try_from(",
            "Vec::<f32>::try_from(",
            "Vec::<f64>::try_from(",
            "Vec::<i64>::try_from(",
            "Vec::<u8>::try_from(",
            "Vec::<bool>::try_from(",
            "Vec::<i32>::try_from(",
        ],
        place: "collector/src/transfer.rs",
        parts: &["collector", "trainer"],
        error: |place, call| SetupError::TensorRead { place, call },
    },
    Rule {
        calls: &[
            "File::create",
            "File::options(",
            "OpenOptions::new(",
            "fs::write(",
            "fs::copy(",
            "NamedTempFile::new",
        ],
        place: "sim/base/src/files.rs",
        parts: &["sim", "collector", "trainer", "python"],
        error: |place, call| SetupError::FileWritten { place, call },
    },
];

/// Looks through what knows tensors, and through all that writes files for a user.
///
/// # Errors
/// The first call found; a source that cannot be read.
pub fn check(root: &Path) -> Result<(), SetupError> {
    for rule in &RULES {
        for part in rule.parts {
            walk(root, &root.join(part), rule)?;
        }
    }
    Ok(())
}

fn walk(root: &Path, folder: &Path, rule: &Rule) -> Result<(), SetupError> {
    for entry in fs::read_dir(folder).map_err(SetupError::io("read", folder))? {
        let path = entry.map_err(SetupError::io("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "tests" {
                walk(root, &path, rule)?;
            }
            continue;
        }
        let of_tests = name == "tests.rs" || name.ends_with("_tests.rs");
        let source = path.strip_prefix(root).is_ok_and(|p| p.iter().any(|part| part == "src"));
        if !source || !name.ends_with(".rs") || of_tests || path == root.join(rule.place) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(SetupError::io("read", &path))?;
        if let Some((line, call)) = first(&text, rule) {
            return Err((rule.error)(format!("{}:{line}", path.display()), call));
        }
    }
    Ok(())
}

/// The line of the first call before a file's tests.
fn first(text: &str, rule: &Rule) -> Option<(usize, &'static str)> {
    let lines = text.lines().take_while(|l| *l != "#[cfg(test)]");
    lines.enumerate().find_map(|(i, line)| {
        let code = line.split("//").next().unwrap_or_default();
        let found = rule.calls.iter().find(|c| code.contains(**c))?;
        Some((i + 1, *found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_of_tensors_are_found_before_the_tests_of_a_file() {
        let read = "let x = Vec::<f64>::try_from(t)?;";
        for (text, line) in [
            (read.to_string(), Some(1)),
            (format!("a\n\n  {read}"), Some(3)),
            ("let x: Vec<f32> = Vec::try_from(t)?;".into(), Some(1)),
            ("let x = f64::try_from(&t.sum(Kind::Float));".into(), Some(1)),
            (format!("// {read}\nlet n = usize::try_from(n);"), None),
            (format!("a\n#[cfg(test)]\nmod tests {{\n{read}"), None),
        ] {
            assert_eq!(first(&text, &RULES[0]).map(|f| f.0), line, "{text}");
        }
    }

    #[test]
    fn this_checkout_reads_tensors_and_writes_files_in_one_place_each() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().unwrap();
        if let Err(e) = check(&root) {
            panic!("{e}");
        }
    }

    #[test]
    fn one_module_may_and_the_others_are_named() {
        for (rule, call) in [
            (&RULES[0], "let x = bool::try_from(t);"),
            (&RULES[1], "std::fs::write(path, bytes)?;"),
            (&RULES[1], "let file = File::create_new(path)?;"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let write = |name: &str| {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, call).unwrap();
            };
            for part in RULES.iter().flat_map(|r| r.parts) {
                fs::create_dir_all(dir.path().join(part)).unwrap();
            }
            for name in [rule.place, "trainer/run/src/a/tests/b.rs", "trainer/run/src/a/c_tests.rs"]
            {
                write(name);
            }
            assert!(check(dir.path()).is_ok());
            write("trainer/run/src/a/b.rs");
            let e = check(dir.path()).unwrap_err().to_string();
            assert!(e.contains("trainer/run/src/a/b.rs:1") && e.contains(rule.place), "{e}");
        }
    }
}
