//! The pages of the documentation: links lead somewhere, commands have the flags that they
//! are given, and what a page shows of a command is what the command says.

mod links;
mod markdown;
mod session;
mod sweep;

use crate::common::forked::Forked as _;
use crate::common::root;
use markdown::Page;
use std::collections::BTreeMap;
use std::path::Path;

/// All pages, by their names from the repository's folder.
fn pages() -> BTreeMap<String, Page> {
    let folders = ["", "docs", "examples", "tests/pretend"];
    let mut pages = BTreeMap::new();
    for folder in folders {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "md") {
                let name = Path::new(folder).join(path.file_name().unwrap());
                let text = std::fs::read_to_string(&path).unwrap();
                pages.insert(name.to_string_lossy().into_owned(), Page::read(&text));
            }
        }
    }
    assert!(pages.len() > 20, "{}", pages.len());
    pages
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let pages = pages();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (name, page) in &pages {
        for link in &page.links {
            seen += 1;
            if let Err(why) = links::check(&root(), &pages, name, link) {
                wrong.push(format!("{name}: {link}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150, "{seen}");
}

#[test]
fn the_books_contents_name_every_page() {
    let pages = pages();
    let listed = &pages["docs/SUMMARY.md"].links;
    let missing = pages.keys().filter_map(|name| {
        let page = name.strip_prefix("docs/").filter(|p| *p != "SUMMARY.md")?;
        (!listed.iter().any(|l| l == page)).then_some(page)
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

#[test]
fn commands_of_all_pages_have_the_flags_that_they_are_given() {
    let mut help: BTreeMap<String, String> = BTreeMap::new();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (name, page) in pages().iter().filter(|(name, _)| *name != "CHANGELOG.md") {
        for command in page.commands() {
            let words: Vec<&str> = command.split_whitespace().collect();
            let sub = match words.as_slice() {
                ["ostler", "bench", next, ..] if ["physics", "device"].contains(next) => {
                    format!("bench {next}")
                }
                ["ostler", sub, ..] if !sub.starts_with('-') => (*sub).to_string(),
                _ => continue,
            };
            let help = help.entry(sub.clone()).or_insert_with(|| {
                let mut ostler = crate::common::ostler();
                let out = ostler.args(sub.split(' ')).arg("--help").forked().unwrap();
                String::from_utf8_lossy(&out.stdout).into_owned()
            });
            if help.is_empty() {
                wrong.push(format!("{name}: {command}: no such command"));
            }
            for flag in words.iter().filter(|w| w.starts_with("--") && w.len() > 2) {
                let flag = flag.split('=').next().unwrap();
                seen += 1;
                let known = |end: &str| help.contains(&format!("{flag}{end}"));
                if ![" ", "\n", ",", "="].into_iter().any(known) {
                    wrong.push(format!("{name}: {command}: no {flag}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 60, "{seen}");
}

/// The image is built with a Rust that the crates take, from files that are there, and the
/// context has what the build reads.
#[test]
fn the_image_is_made_of_what_is_there() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (dockerfile, ignored) = (read("Dockerfile"), read(".dockerignore"));
    let minor = |text: &str| -> u32 {
        let digits = text.split_once("1.").unwrap().1;
        let end = digits.find(|c: char| !c.is_ascii_digit());
        digits[..end.unwrap_or(digits.len())].parse().unwrap()
    };
    let image = dockerfile.split("BUILD_IMAGE=rust:").nth(1).unwrap();
    let manifest = read("Cargo.toml");
    let wanted = manifest.split("rust-version = \"").nth(1).unwrap();
    assert!(minor(image) >= minor(wanted), "an older Rust than {wanted}");
    let copied = dockerfile.split("cp -r configs ").nth(1).unwrap();
    let copied = copied.split(" /image/").next().unwrap().split(' ');
    for file in copied.chain(["configs", "Cargo.lock", "xtask/src/libtorch/wheels.txt"]) {
        assert!(root().join(file).exists(), "{file}");
        let dropped = |line: &str| line.trim_matches(['/', '*']) == file;
        assert!(!ignored.lines().any(dropped), "{file} is not in the context");
    }
    // Its commands are the launcher's and the page's.
    assert!(dockerfile.contains("cargo run --locked --bin train -- --fetch-only"));
    for argument in ["OSTLER_CUDA", "BUILD_IMAGE", "BASE_IMAGE"] {
        assert!(dockerfile.contains(&format!("ARG {argument}=")));
        assert!(read("docs/container.md").contains(&format!("| `{argument}` |")));
    }
}

/// README's mistake, made in the file that it names.
#[test]
fn readme_shows_a_mistake_as_the_program_does() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let page = Page::read(&text);
    let mut texts = page.blocks.iter().filter(|b| b.kind == "text");
    let shown = &texts.find(|b| b.text.starts_with("error: ")).unwrap().text;
    let (folder, file) = (tempfile::tempdir().unwrap(), "configs/half_cheetah.toml");
    session::copy(&root().join("configs"), &folder.path().join("configs"));
    let sound = std::fs::read_to_string(root().join(file)).unwrap();
    let wrong = sound.replacen("joint_vel(root_x)", "joint_vel(rot_x)", 1);
    std::fs::write(folder.path().join(file), wrong).unwrap();
    let mut ostler = crate::common::ostler();
    ostler.args(["check", file, "-q"]).current_dir(folder.path());
    let said = ostler.forked().unwrap().stderr;
    assert_eq!(&String::from_utf8(said).unwrap(), shown);
}

/// A page's files are written and its commands run, in their order.
fn run(name: &str) {
    let text = std::fs::read_to_string(root().join("docs").join(name)).unwrap();
    session::run(&root(), name, &Page::read(&text));
}

#[test]
fn bare_urdf_shows_what_the_program_says() {
    run("bare-urdf.md");
}

#[test]
fn card_shows_what_the_program_says() {
    run("card.md");
}

#[test]
fn task_terrain_shows_what_the_program_says() {
    run("task-terrain.md");
}

#[test]
fn sim_to_real_shows_what_the_program_says() {
    run("sim-to-real.md");
}

#[test]
fn not_learning_shows_what_the_program_says() {
    run("not-learning.md");
}

#[test]
fn run_died_shows_what_the_program_says() {
    run("run-died.md");
}

#[test]
fn coming_from_shows_what_the_program_says() {
    run("coming-from.md");
}

#[test]
fn play_shows_what_the_program_says() {
    run("play.md");
}

#[test]
fn motions_shows_what_the_program_says() {
    run("motions.md");
}

#[test]
fn metrics_shows_what_the_program_says() {
    run("metrics.md");
}

#[test]
fn export_shows_what_the_program_says() {
    run("export.md");
}

#[test]
fn native_shows_what_the_program_says() {
    run("native.md");
}

#[test]
fn learners_shows_what_the_program_says() {
    run("learners.md");
}

#[test]
fn regress_shows_what_the_program_says() {
    run("regress.md");
}

#[test]
fn devices_shows_what_the_program_says() {
    run("devices.md");
}
