//! Sections of pages that tests write: what stands between `<!-- NAME -->` and `<!-- /NAME -->`.

use std::path::Path;

/// The section of a page, named from the checkout's root, is `text`. `OSTLER_WRITE_DOCS=1` writes
/// it so, and `OSTLER_WRITE_NEEDS=1`, as the figures that it shows.
///
/// # Panics
/// It is another, or the page has no such section.
pub fn section(page: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    let whole = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = whole.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    let wanted = format!("{before}{begin}{text}{end}{after}");
    if ["OSTLER_WRITE_DOCS", "OSTLER_WRITE_NEEDS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        std::fs::write(&path, &wanted).unwrap();
        return;
    }
    assert!(whole == wanted, "{page}, {name}: OSTLER_WRITE_DOCS=1 writes it anew");
}
