//! Additions that `docs/recipes.md` describes (`tests/recipes.txt`): made in a copy, tested, counted.

use crate::copy::{Copy, replaced};
use crate::place::Place;
use crate::{SetupError, checks, libtorch};
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// The list, below the checkout.
pub const LIST: &str = "tests/recipes.txt";
/// The page that has the counts.
const PAGE: &str = "docs/recipes.md";

/// An addition.
#[derive(Debug, Default, PartialEq, Eq)]
struct Recipe {
    /// The section of the page.
    section: String,
    /// The arguments of `cargo test`.
    tests: Vec<String>,
    files: Vec<Edits>,
}

/// The changes of a file: what stands there once, and what stands there then.
#[derive(Debug, Default, PartialEq, Eq)]
struct Edits {
    file: String,
    replaced: Vec<[String; 2]>,
}

/// Files by kind, as the page says them.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    source: usize,
    tests: usize,
    pages: usize,
}

impl Count {
    fn of(recipe: &Recipe) -> Self {
        let mut all = Self { source: 0, tests: 0, pages: 0 };
        for Edits { file, .. } in &recipe.files {
            let parts = || file.split('/');
            *match parts().next() {
                Some("docs") => &mut all.pages,
                _ if parts().any(|p| p == "tests") => &mut all.tests,
                _ => &mut all.source,
            } += 1;
        }
        all
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, tests, pages } = self;
        write!(f, "Counted: source files {source}, files of tests {tests}, pages {pages}.")
    }
}

/// Makes every addition of the list in a copy, runs its tests and compares its count with the page.
///
/// # Errors
/// The list or the copy cannot be read or written, an addition fits no longer or fails its tests,
/// the page has another count.
pub fn run(place: &Place) -> Result<(), SetupError> {
    let all = read(&place.root)?;
    libtorch::ensure(place)?;
    for recipe in &all {
        let (copy, began) = (Copy::new(place)?, Instant::now());
        for edits in &recipe.files {
            let path = copy.root.join(&edits.file);
            let text = fs::read_to_string(&path).map_err(SetupError::io("read", &path))?;
            let text = edits.made(&text).map_err(SetupError::Usage)?;
            fs::write(&path, text).map_err(SetupError::io("write", &path))?;
        }
        if copy.test(&recipe.tests, &[], None)? != Some(true) {
            let command = format!("test {} (in {})", recipe.tests.join(" "), copy.root.display());
            return Err(SetupError::Cargo { command, code: 101 });
        }
        let took = checks::duration(began.elapsed());
        println!("{} ({took}) {}", recipe.section, Count::of(recipe));
    }
    Ok(())
}

/// The list, whose counts are the page's.
fn read(root: &Path) -> Result<Vec<Recipe>, SetupError> {
    let text = |name: &str| {
        let path = root.join(name);
        fs::read_to_string(&path).map_err(SetupError::io("read", &path))
    };
    let all = parse(&text(LIST)?).map_err(SetupError::Usage)?;
    let page = text(PAGE)?;
    for recipe in &all {
        let (section, count) = (&recipe.section, Count::of(recipe).to_string());
        let own = page.split("\n## ").find(|part| part.lines().next() == Some(section));
        if !own.is_some_and(|own| own.lines().any(|line| line == count)) {
            let why = format!("{PAGE}: the section \"{section}\" has no line `{count}`");
            return Err(SetupError::Usage(why));
        }
    }
    Ok(all)
}

impl Edits {
    fn made(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_string();
        for [from, to] in &self.replaced {
            let wrong = |n| format!("{LIST}: {n} times in {}: {from}", self.file);
            text = replaced(&text, from, to).map_err(wrong)?;
        }
        Ok(text)
    }
}

fn parse(text: &str) -> Result<Vec<Recipe>, String> {
    let mut all: Vec<Recipe> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = || format!("{LIST}:{}: not understood: {line}", i + 1);
        let recipe = || all.last().ok_or_else(wrong);
        if let Some(section) = line.strip_prefix("## ") {
            all.push(Recipe { section: section.to_string(), ..Recipe::default() });
        } else if line.is_empty() || line.starts_with("# ") || line == "#" {
            // For people.
        } else if let Some(args) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            recipe()?;
            let tests = args.split(' ').map(str::to_owned).collect();
            all.last_mut().ok_or_else(wrong)?.tests = tests;
        } else if let Some(text) = line.strip_prefix(['-', '+']) {
            let file = all.last_mut().and_then(|r| r.files.last_mut()).ok_or_else(wrong)?;
            let new = line.starts_with('+');
            // Lines of `-` and then of `+` are one change.
            let begins = |last: Option<&[String; 2]>| last.is_none_or(|l| !l[1].is_empty());
            if !new && begins(file.replaced.last()) {
                file.replaced.push(Default::default());
            }
            let to = &mut file.replaced.last_mut().ok_or_else(wrong)?[usize::from(new)];
            if !to.is_empty() {
                to.push('\n');
            }
            to.push_str(text);
        } else {
            recipe()?;
            let file = Edits { file: line.to_string(), ..Edits::default() };
            all.last_mut().ok_or_else(wrong)?.files.push(file);
        }
    }
    match all.iter().find(|r| r.tests.is_empty() || r.files.iter().any(|f| f.replaced.is_empty())) {
        Some(r) => Err(format!("{LIST}: \"{}\" has no tests, or a file without change", r.section)),
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every addition can be made in this checkout, and the page has its count.
    #[test]
    fn the_list_fits_the_checkout_and_the_page() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let all = read(root).unwrap();
        assert!(all.len() >= 3);
        for edits in all.iter().flat_map(|r| &r.files) {
            let text = fs::read_to_string(root.join(&edits.file)).unwrap();
            assert_ne!(edits.made(&text).unwrap(), text);
        }
    }

    #[test]
    fn what_stands_there_twice_or_never_is_refused() {
        let all = parse("## A\n[-p x]\nf\n-one\n+two\n+three\n-four\n+five\n").unwrap();
        let [edits] = &all[0].files[..] else { panic!("{all:?}") };
        assert_eq!(edits.made("one four").unwrap(), "two\nthree five");
        assert!(edits.made("one one four").unwrap_err().contains("2 times"));
        assert!(edits.made("one").unwrap_err().contains("0 times"));
        for (bad, why) in [("f\n", ":1:"), ("## A\n-x\n", ":2:"), ("## A\nf\n-x\n+y\n", "no tests")]
        {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
