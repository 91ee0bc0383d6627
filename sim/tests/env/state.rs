//! The list of columns, `kernels/state.h`, and its page. `OSTLER_WRITE_DOCS=1` writes
//! docs/state.md anew.

#[path = "../../build/columns.rs"]
mod columns;

use ostler_sim::state::{Begin, Column, EPISODE, Kind, STEP, Sizes, TABLES, WORLD};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# The state of an environment

The first two tables hold everything that a later step of the native engine depends on;
rapier's worlds have bodies of their own as well. Entries have four bytes. `N` is the
number of environments; a buffer is `[width][N]`, or `[N][width]` where the table says
\"row\". The source is `sim/kernels/state.h`: a line there is a column on the host and on a GPU,
in snapshots and in this page.
";

fn kind(column: &Column) -> &'static str {
    match column.kind {
        Kind::Real => "number",
        Kind::Word => "unsigned",
        Kind::Row => "number, row",
    }
}

fn width(column: &Column) -> &'static str {
    let width = column.shape.strip_suffix(" one").unwrap_or(column.shape);
    width.strip_prefix("1 ").unwrap_or(width)
}

fn table(text: &mut String, title: &str, list: &[Column]) {
    let _ = writeln!(
        text,
        "\n## {title}\n\n| column | width | kind | an episode begins with | expressions read it | contents |\n|---|---|---|---|---|---|"
    );
    for c in list {
        let kind = kind(c);
        let begin = match c.begin {
            Begin::Zero => "0",
            Begin::Kept => "the old value",
            Begin::Own => "its own value",
        };
        let width = width(c);
        let seen = if c.seen { "yes" } else { "no" };
        let _ =
            writeln!(text, "| `{}` | {width} | {kind} | {begin} | {seen} | {} |", c.name, c.says);
    }
}

#[test]
fn the_page_lists_every_column() {
    let mut text = HEAD.to_string();
    table(&mut text, "The world", &WORLD);
    table(&mut text, "The episode", &EPISODE);
    text.push_str(
        "\n## Between the phases of a step\n\nA step writes these before it reads them; snapshots \
         do not hold them.\n\n| column | width | kind | contents |\n|---|---|---|---|\n",
    );
    for c in &STEP {
        let (kind, width) = (kind(c), width(c));
        let _ = writeln!(text, "| `{}` | {width} | {kind} | {} |", c.name, c.says);
    }
    text.push_str(
        "\n## The task and its robot\n\nAll environments read these, beside the task's expressions. \
         `sim/env/src/task/tables.rs` fills them.\n\n| table | entries | kind | contents \
         |\n|---|---|---|---|\n",
    );
    for (name, factor, size, real, says) in TABLES {
        let kind = if real { "number" } else { "unsigned" };
        let size = match (factor, size) {
            (1, "one") => "1".to_string(),
            (1, size) => size.to_string(),
            _ => format!("{factor} {size}"),
        };
        let _ = writeln!(text, "| `{name}` | {size} | {kind} | {says} |");
    }
    text.push_str("\n## Sizes\n\n| size | of |\n|---|---|\n");
    for (name, says) in Sizes::SAYS {
        let _ = writeln!(text, "| `{name}` | {says} |");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/state.md");
    if std::env::var_os("OSTLER_WRITE_DOCS").is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(text, written, "OSTLER_WRITE_DOCS=1 writes it anew");
}

#[test]
fn names_are_unique_and_sizes_are_used() {
    let all = || WORLD.iter().chain(&EPISODE).chain(&STEP);
    let names: HashSet<_> = all().map(|c| c.name).collect();
    assert_eq!(names.len(), all().count());
    // Every width follows the size that it names, and no other.
    let known = |size: &str| size == "one" || Sizes::SAYS.iter().any(|(name, _)| *name == size);
    assert!(TABLES.iter().all(|(_, _, size, ..)| known(size)));
    for c in all() {
        let [factor, size] = <[&str; 2]>::try_from(c.shape.split(' ').collect::<Vec<_>>()).unwrap();
        let factor: usize = factor.parse().unwrap();
        let none = c.width(&Sizes::default());
        assert_eq!(none, if size == "one" { factor } else { 0 }, "{}", c.name);
        assert!(known(size));
    }
}

#[test]
fn a_list_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (header, out) = (dir.path().join("state.h"), dir.path());
    let whole = "#define OSTLER_SIZES(X) \\\n  X(nq, \"a, b\")\n\n#define OSTLER_EPISODE(X) \\\n  \
                 X(age, word, 1, one, own, yes, \"of it\")\n\n#define OSTLER_WORLD(X) \\\n  \
                 X(body_pos, real, 3, nbody, own, yes, \"where\") \\\n  X(act, real, 1, na, zero, no, \"it\")\n\n\
                 #define OSTLER_STEP_BUFFERS(X) \\\n  X(ctrl, real, 1, nu, own, no, \"controls\")\n\n\
                 #define OSTLER_TABLES(X) \\\n  X(raw, word, 1, naction, \"place\")\n";
    let write = |text: &str| {
        std::fs::write(&header, text).unwrap();
        columns::write(&header, columns::STATE, &out.join("columns.rs"))
    };
    write(whole).unwrap();
    let rust = std::fs::read_to_string(out.join("columns.rs")).unwrap();
    for line in [
        "(nq Nq \"a, b\")",
        "(body_pos BodyPos real 3 nbody own yes \"where\")",
        "(act Act real 1 na zero no \"it\")",
        "(raw Raw word 1 naction \"place\")",
    ] {
        assert!(rust.contains(line), "{rust}");
    }
    let error = write(&whole.replace("OSTLER_WORLD", "OSTLER_WORD")).unwrap_err();
    assert!(error.contains("#define OSTLER_WORLD(X)"), "{error}");
    let error = write(&whole.replace("X(act", "Y(act")).unwrap_err();
    assert!(error.contains("cannot read `Y(act"), "{error}");
}
