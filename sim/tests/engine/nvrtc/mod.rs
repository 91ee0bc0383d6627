//! The programs of our robots and tasks compile for GPUs, without one: NVRTC makes code
//! for sm_80, sm_89, sm_90 and sm_120, whose registers, spills, stack and machine code are held against
//! the table `needs.json` (what they were when it was last written; `OSTLER_WRITE_NEEDS=1
//! OSTLER_FULL=1` writes it). With the other tests each program is compiled for one of them.
//!
//! All that on two cores takes minutes, so that the code is kept in the cache of compiled
//! programs: only what has changed is compiled.

mod programs;
mod sass;

use crate::support::{page, share};
use ostler_sim::device::Program;
use ostler_sim::device::cuda::compile::{Compiled, Compiler};
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use ostler_sim::device::cuda::nvrtc::log::Needs;
use sass::Sass;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Mutex;

const ARCHITECTURES: [&str; 4] = ["sm_80", "sm_89", "sm_90", "sm_120"];
/// Programs outside of the table are compiled for this architecture only.
const ONE: &str = "sm_90";
/// More than so much above the table is a regression.
const SLACK: f64 = 1.15;

/// A row of the table: the largest of all entries.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    program: String,
    arch: String,
    registers: u32,
    stack: u32,
    spill_stores: u32,
    spill_loads: u32,
    sass: Sass,
}

impl Row {
    fn of(program: &str, compiled: &Compiled, nvdisasm: &Path) -> Self {
        let largest = |of: fn(&Needs) -> u32| {
            let all = compiled.needs.iter().map(|entry| of(&entry.needs));
            all.max().unwrap()
        };
        Self {
            program: program.to_string(),
            arch: compiled.architecture.clone(),
            registers: largest(|n| n.registers),
            stack: largest(|n| n.stack),
            spill_stores: largest(|n| n.spill_stores),
            spill_loads: largest(|n| n.spill_loads),
            sass: Sass::of(nvdisasm, &compiled.cubin),
        }
    }

    fn figures(&self) -> [(&'static str, u32); 8] {
        let sass = self.sass;
        [
            ("code bytes", sass.code),
            ("loads of local memory", sass.local_loads),
            ("stores to local memory", sass.local_stores),
            ("calls", sass.calls),
            ("registers", self.registers),
            ("stack", self.stack),
            ("spill_stores", self.spill_stores),
            ("spill_loads", self.spill_loads),
        ]
    }
}

/// A program's name, itself and its hash, and an architecture.
type Work<'a> = (&'a str, &'a Program, &'a str, &'a str);

/// Compiles them all, as many at a time as there are processors.
fn compiled(compiler: &Compiler, nvdisasm: &Path, work: &[Work]) -> Vec<Row> {
    let next = Mutex::new(work.iter());
    let rows = Mutex::new(Vec::new());
    let processors = std::thread::available_parallelism().unwrap().get();
    std::thread::scope(|scope| {
        for _ in 0..processors.min(4) {
            scope.spawn(|| {
                loop {
                    let Some((name, program, _, architecture)) = next.lock().unwrap().next() else {
                        break;
                    };
                    let compiled = compiler
                        .compile(program, architecture)
                        .unwrap_or_else(|e| panic!("{name}: {e}"));
                    let row = Row::of(name, &compiled, nvdisasm);
                    println!(
                        "{:5.1} s{} {row:?}",
                        compiled.seconds,
                        if compiled.fresh { "" } else { " (kept)" }
                    );
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    let place = |row: &Row| work.iter().position(|w| w.0 == row.program && w.3 == row.arch);
    rows.sort_by_key(place);
    rows
}

#[test]
fn programs_compile_for_gpus_within_the_recorded_needs() {
    let Some(folder) = crate::support::nvrtc::nvrtc_folder() else {
        return;
    };
    let Some(nvdisasm) = crate::support::nvrtc::nvdisasm() else {
        return;
    };
    let compiler = Compiler::from_environment(Nvrtc::in_folder(&folder).unwrap());
    let (shipped, others) = (programs::shipped(), programs::others());
    // The longest compilation first.
    let for_all = ARCHITECTURES.iter().enumerate().flat_map(|(a, arch)| {
        let numbered = shipped.iter().enumerate().rev();
        numbered.map(move |(i, (n, p, hash))| (i, a, (n.as_str(), p, hash.as_str(), *arch)))
    });
    // With the other tests each for one of them, so that all are among them.
    let all = ARCHITECTURES.len() * shipped.len();
    let few = share::of(all, "programs and architectures", shipped.len());
    let chosen = |i: &usize, a: &usize| few == all || i % ARCHITECTURES.len() == *a;
    let due = |(name, _, hash, arch): &Work| share::due(&format!("{name} {arch}"), hash);
    let for_all = for_all.filter(|(i, a, work)| due(work) && chosen(i, a)).map(|(.., work)| work);
    let for_one = others.iter().map(|(n, p, hash)| (n.as_str(), p, hash.as_str(), ONE));
    let for_one = for_one.filter(due);
    let found = compiled(&compiler, &nvdisasm, &for_all.chain(for_one).collect::<Vec<_>>());
    let found: Vec<_> = found
        .into_iter()
        .filter(|row| {
            row.program == programs::HUMANOID
                || programs::EXAMPLES.contains(&&row.program[..])
                || shipped.iter().any(|(name, ..)| *name == row.program)
        })
        .collect();

    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/nvrtc/needs.json");
    if std::env::var_os("OSTLER_WRITE_NEEDS").is_some() {
        assert!(share::in_full(), "OSTLER_WRITE_NEEDS=1 writes all: OSTLER_FULL=1");
        std::fs::write(&table, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        page::write("docs/gpu.md", "stacks", &stacks(&found));
    }
    let recorded: Vec<Row> =
        serde_json::from_str(&std::fs::read_to_string(&table).unwrap()).unwrap();
    for row in &found {
        let was = recorded
            .iter()
            .find(|r| r.program == row.program && r.arch == row.arch)
            .unwrap_or_else(|| {
                panic!("{table:?} lacks {row:?}; write it with OSTLER_WRITE_NEEDS=1 OSTLER_FULL=1")
            });
        for ((what, now), (_, then)) in row.figures().into_iter().zip(was.figures()) {
            assert!(
                f64::from(now) <= f64::from(then) * SLACK + 64.0,
                "{} for {}: {what} {now}, recorded {then}",
                row.program,
                row.arch
            );
        }
    }
}

/// The table of docs/gpu.md is that of `needs.json`, with which it is written.
#[test]
fn the_page_has_the_recorded_stacks() {
    let table: Vec<Row> = serde_json::from_str(include_str!("needs.json")).unwrap();
    page::section("docs/gpu.md", "stacks", &stacks(&table));
}

/// What threads' stacks take, as the page has it.
fn stacks(rows: &[Row]) -> String {
    let mut lines = String::new();
    for row in rows.iter().filter(|row| row.arch == ONE) {
        // 132 multiprocessors of an H100 with 2,048 threads each, 128 of an RTX 4090 with 1,536.
        let [large, small] = [132 * 2048, 128 * 1536]
            .map(|threads| format!("{:.1} GB", f64::from(row.stack) * f64::from(threads) / 1e9));
        let (program, stack) = (&row.program, row.stack);
        lines += &format!("| `{program}` | {stack} B | {large} | {small} |\n");
    }
    let head = "| | stack of a thread | reserved on an H100 or H200 | on an RTX 4090 |\n|---|---|---|---|\n";
    format!("{head}{lines}")
}

/// If the compiler refuses the code of a term, the message names the term and has its text from
/// the user's file.
#[test]
fn what_does_not_compile_is_told_by_the_expression_it_came_of() {
    let Some(folder) = crate::support::nvrtc::nvrtc_folder() else {
        return;
    };
    let compiler = Compiler::without_cache(Nvrtc::in_folder(&folder).unwrap());
    let whole = programs::named("cartpole");
    let expressions: Vec<_> =
        whole.places.iter().filter(|place| place.name.contains("expr")).collect();
    assert!(expressions.len() > 2, "{:?}", whole.places);
    for place in [expressions[0], expressions[expressions.len() - 1]] {
        let mark = format!("\"{}\"", place.name);
        let line = whole.text.find(&mark).unwrap();
        let at = line + whole.text[line..].find("const float").unwrap();
        let mut program = whole.clone();
        program.text.insert_str(at, "const float broken = nowhere;\n  ");
        let error = compiler.compile(&program, ONE).unwrap_err();
        let text = error.to_string();
        let said = format!("in {} = \"{}\"", place.name, place.text);
        assert!(text.contains(&said) && text.contains("nowhere"), "{text}");
    }
}

/// Functions of a header compile with their task's program. A mistake is shown with the line of
/// the header, at the key that names it.
#[test]
fn native_functions_compile_with_the_program_of_their_task() {
    let Some(folder) = crate::support::nvrtc::nvrtc_folder() else {
        return;
    };
    let compiler = Compiler::from_environment(Nvrtc::in_folder(&folder).unwrap());
    let whole = programs::natives();
    for arch in ["sm_80", "sm_90"] {
        compiler.compile(&whole, arch).unwrap_or_else(|e| panic!("{arch}: {e}"));
    }
    let compiler = Compiler::without_cache(Nvrtc::in_folder(&folder).unwrap());
    let mut program = whole.clone();
    let (whole, wrong) = ("const int i = (int)whole;", "const int i = nowhere(whole);");
    assert!(program.text.contains(whole));
    program.text = program.text.replacen(whole, wrong, 1);
    let error = compiler.compile(&program, ONE).unwrap_err().to_string();
    assert!(error.contains("in task.native[0].file = \"parts/table.cuh\""), "{error}");
    assert!(error.contains("parts/table.cuh(5)") && error.contains("nowhere"), "{error}");
}
