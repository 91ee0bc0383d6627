//! Where a link leads.

use super::markdown::Page;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

pub fn check(
    root: &Path,
    pages: &BTreeMap<String, Page>,
    from: &str,
    link: &str,
) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => PathBuf::from(from),
        file => plain(&Path::new(from).parent().unwrap().join(file)),
    };
    if !root.join(&target).exists() {
        return Err("no such file".into());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let page = pages.get(&*target.to_string_lossy());
    let page = page.ok_or("an anchor in a file that is no page")?;
    match page.anchors.iter().any(|a| a == anchor) {
        true => Ok(()),
        false => Err("no such heading".into()),
    }
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}
