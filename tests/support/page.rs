//! Sections of pages that tests write: what stands between `<!-- NAME -->` and `<!-- /NAME -->`.

use std::path::{Path, PathBuf};

/// The section of a page, named from the checkout's root, is `text`. `OSTLER_WRITE_DOCS=1` writes
/// it so.
///
/// # Panics
/// It is another, or the page has no such section.
pub fn section(page: &str, name: &str, text: &str) {
    let (path, whole, wanted) = with_section(page, name, text);
    if std::env::var_os("OSTLER_WRITE_DOCS").is_some() {
        std::fs::write(path, wanted).unwrap();
        return;
    }
    assert!(whole == wanted, "{page}, {name}: OSTLER_WRITE_DOCS=1 writes it anew");
}

/// Writes the section.
///
/// # Panics
/// The page has no such section.
pub fn write(page: &str, name: &str, text: &str) {
    let (path, _, wanted) = with_section(page, name, text);
    std::fs::write(path, wanted).unwrap();
}

/// Where a page is, its text, and its text with this section.
fn with_section(page: &str, name: &str, text: &str) -> (PathBuf, String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let whole = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = whole.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    let wanted = format!("{before}{begin}{text}{end}{after}");
    (path, whole, wanted)
}
