//! Conversions that read a tensor, outside of the one module that may.
//!
//! clippy's `disallowed-methods` cannot name methods of a trait's implementation, such as
//! `Vec::<f32>::try_from(tensor)`, so the lint step looks for their text. Tests may.

use crate::SetupError;
use std::fs;
use std::path::Path;

/// Patterns: numbers are converted among one another in other ways.
const CONVERSIONS: [&str; 10] = [
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
];
/// The module that may.
const PLACE: &str = "collector/src/transfer.rs";

/// Looks through what knows tensors.
///
/// # Errors
/// The first conversion found; a source that cannot be read.
pub fn check(root: &Path) -> Result<(), SetupError> {
    for part in ["collector/src", "trainer/src"] {
        walk(root, &root.join(part))?;
    }
    Ok(())
}

fn walk(root: &Path, folder: &Path) -> Result<(), SetupError> {
    for entry in fs::read_dir(folder).map_err(SetupError::io("read", folder))? {
        let path = entry.map_err(SetupError::io("read", folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "tests" {
                walk(root, &path)?;
            }
            continue;
        }
        let of_tests = name == "tests.rs" || name.ends_with("_tests.rs");
        if !name.ends_with(".rs") || of_tests || path == root.join(PLACE) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(SetupError::io("read", &path))?;
        if let Some((line, conversion)) = first(&text) {
            return Err(SetupError::TensorRead {
                place: format!("{}:{line}", path.display()),
                conversion,
            });
        }
    }
    Ok(())
}

/// The line of the first conversion before a file's tests.
fn first(text: &str) -> Option<(usize, &'static str)> {
    let lines = text.lines().take_while(|l| *l != "#[cfg(test)]");
    lines.enumerate().find_map(|(i, line)| {
        let code = line.split("//").next().unwrap_or_default();
        let found = CONVERSIONS.into_iter().find(|c| code.contains(c))?;
        Some((i + 1, found))
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
            (
                "let x = f64::try_from(&t.sum(Kind::Float));".into(),
                Some(1),
            ),
            (format!("// {read}\nlet n = usize::try_from(n);"), None),
            (format!("a\n#[cfg(test)]\nmod tests {{\n{read}"), None),
        ] {
            assert_eq!(first(&text).map(|f| f.0), line, "{text}");
        }
    }

    #[test]
    fn this_checkout_reads_tensors_in_one_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().unwrap();
        if let Err(e) = check(&root) {
            panic!("{e}");
        }
    }

    #[test]
    fn one_module_may_and_the_others_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "let x = bool::try_from(t);").unwrap();
        };
        fs::create_dir_all(dir.path().join("trainer/src")).unwrap();
        for name in [
            PLACE,
            "trainer/src/a/tests/b.rs",
            "trainer/src/a/c_tests.rs",
        ] {
            write(name);
        }
        assert!(check(dir.path()).is_ok());
        write("trainer/src/a/b.rs");
        let e = check(dir.path()).unwrap_err().to_string();
        assert!(
            e.contains("trainer/src/a/b.rs:1") && e.contains(PLACE),
            "{e}"
        );
    }
}
