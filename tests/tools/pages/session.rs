//! A page's blocks, tried in their order in a folder of their own: `<!-- file: NAME -->` above
//! a block writes it, a `console` block runs its commands and compares what they say.
//! `...` stands for any lines, `[..]` for anything within a line.

use super::markdown::Page;
use assert_cmd::Command;
use std::path::Path;

pub fn run(root: &Path, name: &str, page: &Page) {
    let folder = tempfile::tempdir().unwrap();
    copy(&root.join("configs"), &folder.path().join("configs"));
    let mut ran = 0;
    for block in &page.blocks {
        if let Some(file) = &block.file {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &block.text).unwrap();
        }
        if block.kind == "console" {
            for (command, shown) in commands(&block.text) {
                let said = say(folder.path(), command);
                if let Err(line) = compare(&shown, &said) {
                    panic!("{name}: {command}\ndoes not say: {line}\nbut:\n{said}");
                }
                ran += 1;
            }
        }
    }
    assert!(ran > 0, "{name} runs nothing");
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// Commands of a block, each with the lines that it shows.
fn commands(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("a console block that does not begin with a command"),
        }
    }
    all
}

/// Runs a command with the program in the place of `ostler`; all that it says.
fn say(folder: &Path, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_ostler"));
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{{ {command}; }} 2>&1")]).current_dir(folder);
    shell.env("PATH", path);
    String::from_utf8(shell.output().unwrap().stdout).unwrap()
}

/// The first shown line that was not said in its place.
fn compare<'a>(shown: &[&'a str], said: &str) -> Result<(), &'a str> {
    let mut said = said.lines();
    let mut skip = false;
    for line in shown {
        if *line == "..." {
            skip = true;
            continue;
        }
        let found = match skip {
            true => said.any(|s| fits(line, s)),
            false => said.next().is_some_and(|s| fits(line, s)),
        };
        if !found {
            return Err(line);
        }
        skip = false;
    }
    match skip || said.next().is_none() {
        true => Ok(()),
        false => Err("(the end)"),
    }
}

/// Whether a line is as shown.
fn fits(shown: &str, said: &str) -> bool {
    let mut parts = shown.trim_end().split("[..]");
    let said = said.trim_end();
    let first = parts.next().unwrap();
    let Some(mut rest) = said.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn lines_are_compared_with_their_gaps() {
    assert!(fits("a [..] b", "a 1.5 b"));
    assert!(fits("a", "a"));
    assert!(!fits("a", "ab"));
    assert!(!fits("a [..] b", "a 1.5 c"));
    assert_eq!(compare(&["a", "...", "c"], "a\nb\nc\n"), Ok(()));
    assert_eq!(compare(&["a", "c"], "a\nb\nc\n"), Err("c"));
    assert_eq!(compare(&["a"], "a\nb\n"), Err("(the end)"));
    assert_eq!(compare(&["..."], "a\nb\n"), Ok(()));
}
