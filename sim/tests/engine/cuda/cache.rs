//! Compiled programs are kept from one start to the next, and a cache can only cost time.

use super::work::fill;
use crate::support::alone;
use crate::support::nvrtc::nvrtc_folder;
use ostler_sim::device::cuda::compile::{Compiled, Compiler};
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const ARCHITECTURE: &str = "sm_90";

fn compiler(cache: &Path, limit: u64) -> Option<Compiler> {
    let nvrtc = Nvrtc::in_folder(&nvrtc_folder()?).unwrap();
    Some(Compiler::with_cache(nvrtc, cache, limit))
}

fn compile(compiler: &Compiler) -> Compiled {
    compiler.compile(&fill(), ARCHITECTURE).unwrap()
}

/// All but the moment and whether it was just made.
fn same(a: &Compiled, b: &Compiled) -> bool {
    (&a.cubin, &a.architecture, &a.hash, &a.needs) == (&b.cubin, &b.architecture, &b.hash, &b.needs)
}

/// Names in the cache, without locks.
fn names(cache: &Path) -> Vec<String> {
    let list = fs::read_dir(cache).unwrap();
    let names = list.map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|n| !n.ends_with(".lock")).collect();
    names.sort();
    names
}

#[test]
fn compiled_once_then_found() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cubins");
    let Some(compiler) = compiler(&cache, 1 << 20) else {
        return;
    };
    let first = compile(&compiler);
    assert!(first.fresh);
    let second = compile(&compiler);
    assert!(!second.fresh && same(&first, &second));
    assert_eq!(second.seconds, first.seconds);
    assert_eq!(names(&cache), [first.hash.as_str()]);
    // Another device, another text, other entries: other code.
    let other = compiler.compile(&fill(), "sm_80").unwrap();
    assert!(other.fresh && other.hash != first.hash);
    let mut program = fill();
    program.text.push('\n');
    assert_ne!(compiler.hash(&program, ARCHITECTURE), first.hash);
    let mut program = fill();
    program.entries.clear();
    assert_ne!(compiler.hash(&program, ARCHITECTURE), first.hash);
}

#[test]
fn what_is_not_whole_is_ignored_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(compiler) = compiler(folder.path(), 1 << 20) else {
        return;
    };
    let good = compile(&compiler);
    let entry = folder.path().join(&good.hash);
    let file = entry.join("program.cubin");
    let checksum = entry.join("program.cubin.blake3");
    let whole = fs::read(&file).unwrap();
    let write = |bytes: &[u8]| fs::write(&file, bytes).unwrap();
    let signed = |bytes: &[u8]| {
        write(bytes);
        fs::write(&checksum, blake3::hash(bytes).to_hex().as_str()).unwrap();
    };
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let other = compiler.compile(&fill(), "sm_80").unwrap();
    let foreign = fs::read(folder.path().join(&other.hash).join("program.cubin")).unwrap();
    let damages: [(&str, &dyn Fn()); 8] = [
        ("flipped", &|| write(&flipped)),
        ("truncated", &|| write(&whole[..whole.len() / 2])),
        ("empty", &|| write(&[])),
        ("no file", &|| fs::remove_file(&file).unwrap()),
        ("no checksum", &|| fs::remove_file(&checksum).unwrap()),
        ("another entry's file, with its checksum", &|| signed(&foreign)),
        ("another program's file", &|| signed(b"{\"hello\": 1}\nworld")),
        ("no line", &|| signed(b"\x7fELF")),
    ];
    for (what, damage) in damages {
        damage();
        let again = compile(&compiler);
        assert!(again.fresh && same(&good, &again), "{what}");
        assert!(!compile(&compiler).fresh, "{what}: not kept again");
    }
}

#[test]
fn a_cache_that_cannot_be_written_costs_the_cache_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let read_only = folder.path().join("read-only");
    fs::create_dir(&read_only).unwrap();
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o555)).unwrap();
    let mut places: Vec<PathBuf> = vec![file.join("cubins")];
    // Whoever may write everywhere cannot try this.
    if fs::write(read_only.join("try"), "").is_err() {
        places.extend([read_only.clone(), read_only.join("cubins")]);
    }
    for place in places {
        let Some(compiler) = compiler(&place, 1 << 20) else {
            return;
        };
        assert!(compile(&compiler).fresh && compile(&compiler).fresh);
    }
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_longest_unused_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let Some(large) = compiler(folder.path(), 1 << 30) else {
        return;
    };
    let first = compile(&large);
    let size = |hash: &str| -> u64 {
        let files = fs::read_dir(folder.path().join(hash)).unwrap();
        files.map(|f| f.unwrap().metadata().unwrap().len()).sum()
    };
    let small = compiler(folder.path(), size(&first.hash) * 3 / 2).unwrap();
    let second = small.compile(&fill(), "sm_80").unwrap();
    assert_eq!(names(folder.path()), [second.hash]);
}

/// Prints whether it had to compile.
#[test]
#[ignore = "only run by another test"]
fn one_of_several() {
    let cache = std::env::var_os("TEST_CUBINS").unwrap();
    let compiled = compile(&compiler(Path::new(&cache), 1 << 20).unwrap());
    println!("FRESH {}", compiled.fresh);
}

#[test]
fn several_processes_at_once_compile_once() {
    let folder = tempfile::tempdir().unwrap();
    if nvrtc_folder().is_none() {
        return;
    }
    let start = || {
        alone::command(&[], "cuda::cache::one_of_several")
            .env("TEST_CUBINS", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let processes = [start(), start(), start()];
    let mut fresh = 0;
    for process in processes {
        let output = process.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        fresh += usize::from(text.contains("FRESH true"));
        assert!(text.contains("FRESH "), "{text}");
    }
    assert_eq!(fresh, 1);
    assert_eq!(names(folder.path()).len(), 1);
}
