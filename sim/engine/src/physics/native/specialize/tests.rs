//! Promises of compilation and cache.

use super::library::float_mode;
use super::*;
use crate::test_support::need::Need;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A cache of its own, and compilers of its own.
struct Place {
    folder: tempfile::TempDir,
    cxx: Option<String>,
    limit: u64,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), cxx: None, limit: SIZE_LIMIT }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("kernels")
    }

    /// Replaces the compiler by a shell script; `$@` are the arguments.
    fn script(mut self, body: &str) -> Self {
        let script = self.path("cxx.sh");
        let version = "[ \"$1\" = --version ] && { echo fake 1.0; exit; }\n";
        fs::write(&script, format!("{version}{body}")).unwrap();
        self.cxx = Some(format!("/bin/sh {}", script.display()));
        self
    }

    fn specializer(&self) -> Specializer {
        let cache = Cache::new(self.cache(), self.limit);
        Specializer::new(cache, &|name| match name {
            "OSTLER_CXX" => self.cxx.clone().map(Into::into),
            "PATH" => std::env::var_os("PATH"),
            _ => None,
        })
    }

    fn wait(&self, source: &Source) -> Outcome {
        self.specializer().prepare(source, InstructionSet::Portable, Mode::Wait, &mut go_on)
    }

    /// Names in the cache, without locks.
    fn names(&self) -> Vec<String> {
        let list = fs::read_dir(self.cache()).unwrap();
        let names = list.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|n| !n.ends_with(".lock")).collect();
        names.sort();
        names
    }
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A library whose `answer()` is this.
fn answering(answer: u32) -> Source {
    Source {
        text: format!(
            "#include \"answer.cuh\"
extern \"C\" __attribute__((visibility(\"default\"))) unsigned answer() {{ return Answer<{answer}>::value; }}\n"
        ),
        headers: vec![(
            "answer.cuh".into(),
            "template<unsigned V> struct Answer { static constexpr unsigned value = V; };\n".into(),
        )],
    }
}

fn answer(kernel: &Kernel) -> u32 {
    // SAFETY: the source above declares it so.
    let function = unsafe { kernel.library.function::<extern "C" fn() -> u32>("answer") };
    function.unwrap().get()()
}

fn ready(outcome: Outcome) -> Kernel {
    match outcome {
        Outcome::Ready(kernel) => kernel,
        other => panic!("{other:?}"),
    }
}

fn reason(outcome: Outcome) -> SpecializeError {
    match outcome {
        Outcome::Generic(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Whether this machine has no C++ compiler at all, after saying that the calling test
/// is skipped.
fn no_compiler() -> bool {
    let specializer = Place::new().specializer();
    Need::Compiler.or_skip(specializer.compiler()).is_none()
}

fn within(seconds: u64, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn runs(pid: i32) -> bool {
    // A process that has ended but was not waited for does not run.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !(state.is_empty() || state.starts_with('Z') || state.starts_with('X'))
}

#[test]
fn compiled_once_then_found() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let source = answering(42);
    let kernel = ready(place.wait(&source));
    assert_eq!(answer(&kernel), 42);
    assert_eq!(place.names(), [kernel.hash.as_str()]);
    let mut quiet = |_| -> ControlFlow<()> { panic!("compiles again") };
    let found =
        place.specializer().prepare(&source, InstructionSet::Portable, Mode::Auto, &mut quiet);
    assert_eq!(ready(found).hash, kernel.hash);
    // Another source, another instruction set: another kernel.
    let specializer = place.specializer();
    let hash = |s: &Source, i| specializer.hash(s, i).unwrap();
    assert_eq!(hash(&source, InstructionSet::Portable), kernel.hash);
    assert_ne!(hash(&source, InstructionSet::Avx2), kernel.hash);
    assert_ne!(hash(&answering(43), InstructionSet::Portable), kernel.hash);
    let mut header = source.clone();
    header.headers[0].1.push('\n');
    assert_ne!(hash(&header, InstructionSet::Portable), kernel.hash);
    // By its hash even without a compiler.
    let none = Specializer::new(Cache::new(place.cache(), 0), &|_| None);
    assert_eq!(answer(&none.find(&kernel.hash).unwrap()), 42);
    let unknown = "0".repeat(64);
    for hash in [unknown.as_str(), "../../etc", ""] {
        let error = none.find(hash).unwrap_err();
        assert_eq!(error, SpecializeError::NotCached(hash.into()));
    }
}

#[test]
fn every_instruction_set_s_flags_are_accepted() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    for instructions in [InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512] {
        if !instructions.is_available() {
            continue;
        }
        let outcome =
            place.specializer().prepare(&answering(7), instructions, Mode::Wait, &mut go_on);
        assert_eq!(answer(&ready(outcome)), 7);
    }
}

#[test]
fn two_at_once_compile_once() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let log = place.path("log");
    let place =
        place.script(&format!("echo compiled >> {}; sleep 0.3; exec c++ \"$@\"", log.display()));
    let source = answering(5);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..3).map(|_| scope.spawn(|| answer(&ready(place.wait(&source))))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 5);
        }
    });
    assert_eq!(fs::read_to_string(log).unwrap(), "compiled\n");
}

#[test]
fn what_a_killed_process_left_is_removed() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let source = answering(6);
    let key = place.specializer().hash(&source, InstructionSet::Portable);
    let key = key.unwrap();
    for name in [key.as_str(), &"1".repeat(64)] {
        let left = place.cache().join(format!("building-{name}"));
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("kernel.so"), "half").unwrap();
        fs::write(place.cache().join(format!("{name}.lock")), "").unwrap();
    }
    assert_eq!(answer(&ready(place.wait(&source))), 6);
    assert_eq!(place.names(), [key]);
}

#[test]
fn damaged_entries_are_compiled_again() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let source = answering(8);
    let hash = ready(place.wait(&source)).hash;
    let library = place.cache().join(&hash).join("kernel.so");
    let whole = fs::read(&library).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let damages: [&dyn Fn(); 4] = [
        &|| fs::write(&library, &whole[..whole.len() / 2]).unwrap(),
        &|| fs::write(&library, &flipped).unwrap(),
        &|| fs::remove_file(&library).unwrap(),
        &|| fs::remove_file(library.with_file_name("kernel.so.blake3")).unwrap(),
    ];
    for damage in damages {
        damage();
        let error = place.specializer().find(&hash).unwrap_err();
        assert_eq!(error, SpecializeError::Damaged(library.clone()));
        assert_eq!(answer(&ready(place.wait(&source))), 8);
    }
}

/// Nobody writes into these pipes: opening one would wait for ever.
#[test]
fn a_pipe_in_an_entry_is_damage_at_once() {
    let place = Place::new();
    let hash = "0".repeat(64);
    let entry = place.cache().join(&hash);
    fs::create_dir_all(&entry).unwrap();
    for name in ["kernel.so", "kernel.so.blake3"] {
        let path = entry.join(name);
        let _ = fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let cache = Cache::new(place.cache(), 0);
        let (hash, (done, answer)) = (hash.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || done.send(cache.find(&hash).unwrap_err()));
        let error = answer.recv_timeout(Duration::from_secs(60)).expect("it waits");
        assert_eq!(error, SpecializeError::Damaged(entry.join("kernel.so")));
        // The next one is the hash's.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "code").unwrap();
    }
}

#[test]
fn without_a_compiler_the_reason_says_what_to_do() {
    let place = Place::new();
    let cache = Cache::new(place.cache(), 0);
    for (cxx, what) in [
        (None, "install g++"),
        (Some("/nonexistent/c++ -m64"), "not found"),
        (Some("/bin/false"), "ends with"),
    ] {
        let specializer = Specializer::new(cache.clone(), &|name| match name {
            "CXX" => cxx.map(Into::into),
            _ => None,
        });
        for mode in [Mode::Auto, Mode::Wait] {
            let outcome =
                specializer.prepare(&answering(1), InstructionSet::Portable, mode, &mut go_on);
            let message = reason(outcome).to_string();
            assert!(message.contains(what), "{message}");
            assert!(message.contains("OSTLER_CXX"), "{message}");
        }
    }
    assert!(!place.cache().exists());
}

#[test]
fn how_much_is_optimised_is_a_variable() {
    let flags = |value: &str| {
        let compiler = Compiler::find(&|name| match name {
            "OSTLER_OPTIMISE" => Some(value.into()),
            "PATH" => std::env::var_os("PATH"),
            _ => None,
        });
        compiler.map(|c| c.flags(InstructionSet::Portable))
    };
    for (value, level) in [("", "-O3"), ("full", "-O3"), ("little", "-Og")] {
        assert!(flags(value).unwrap().contains(&level), "{value}");
    }
    let said = flags("fast").unwrap_err().to_string();
    assert!(said.contains("OSTLER_OPTIMISE=`fast`"), "{said}");
}

#[test]
fn off_means_off() {
    let place = Place::new().script("echo called >&2; exit 1");
    let specializer = place.specializer();
    let source = answering(1);
    let outcome = specializer.prepare(&source, InstructionSet::Portable, Mode::Off, &mut go_on);
    assert_eq!(reason(outcome), SpecializeError::Off);
    assert!(!place.cache().exists());
}

#[test]
fn a_refused_source_is_quoted() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let mut source = answering(1);
    source.text.push_str("int broken = missing_name;\n");
    let error = reason(place.wait(&source));
    assert!(matches!(error, SpecializeError::Failed { .. }));
    let message = error.to_string();
    assert!(message.contains("kernel.cpp:3"), "{message}");
    assert!(message.contains("missing_name"), "{message}");
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn a_compiler_too_old_is_named() {
    let place = Place::new().script("echo 'error: unrecognized option -std=c++17' >&2; exit 1");
    let error = reason(place.wait(&answering(1)));
    let message = error.to_string();
    assert!(matches!(error, SpecializeError::Unsuitable { .. }), "{message}");
    assert!(message.contains("fake 1.0 lacks C++17"), "{message}");
    assert!(message.contains("unrecognized option"), "{message}");
}

#[test]
fn a_cache_that_cannot_be_written_leaves_the_generic_kernel() {
    let place = Place::new().script("exit 1");
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    let read_only = place.path("read-only");
    fs::create_dir(&read_only).unwrap();
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o555)).unwrap();
    let mut folders = vec![file.join("kernels")];
    if fs::write(read_only.join("try"), "").is_err() {
        folders.push(read_only.clone());
        folders.push(read_only.join("kernels"));
    }
    for folder in folders {
        let specializer =
            Specializer { cache: Cache::new(folder, 0), compiler: place.specializer().compiler };
        let prepare =
            |mode| specializer.prepare(&answering(1), InstructionSet::Portable, mode, &mut go_on);
        let error = reason(prepare(Mode::Wait));
        assert!(matches!(error, SpecializeError::Cache { .. }), "{error}");
        assert!(error.to_string().contains("OSTLER_CACHE"), "{error}");
        assert!(matches!(reason(prepare(Mode::Auto)), SpecializeError::Cache { .. }));
    }
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn auto_compiles_for_the_next_run() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let source = answering(9);
    let auto =
        || place.specializer().prepare(&source, InstructionSet::Portable, Mode::Auto, &mut go_on);
    let Outcome::Background(background) = auto() else {
        panic!("not in the background");
    };
    let hash = background.hash().to_owned();
    background.wait().unwrap();
    let kernel = ready(auto());
    assert_eq!((answer(&kernel), kernel.hash), (9, hash));
}

/// A compiler that starts another process, as compilers do, and never ends.
fn endless(place: Place) -> (Place, impl Fn() -> Vec<i32>) {
    let pids = place.path("pids");
    let place = place.script(&format!(
        "sleep 1000 & echo $! $$ >> {p}.new; mv {p}.new {p}; wait",
        p = pids.display()
    ));
    let read = move || {
        let text = fs::read_to_string(&pids).unwrap_or_default();
        text.split_whitespace().map(|p| p.parse().unwrap()).collect()
    };
    (place, read)
}

#[test]
fn a_run_that_ends_first_stops_the_compiler_and_cleans_up() {
    let (place, pids) = endless(Place::new());
    let specializer = place.specializer();
    let outcome =
        specializer.prepare(&answering(1), InstructionSet::Portable, Mode::Auto, &mut go_on);
    assert!(within(60, || !pids().is_empty()));
    assert!(pids().into_iter().all(runs));
    drop(outcome);
    assert!(within(60, || !pids().into_iter().any(runs)));
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn waiting_can_be_given_up() {
    let (place, pids) = endless(Place::new());
    let specializer = place.specializer();
    let mut enough = |progress| match progress {
        Progress::Compiling(_) if !pids().is_empty() => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let source = answering(1);
    let outcome = specializer.prepare(&source, InstructionSet::Portable, Mode::Wait, &mut enough);
    assert_eq!(reason(outcome), SpecializeError::Stopped);
    assert!(within(60, || !pids().into_iter().any(runs)));
}

/// The process that the next test kills: waits for a compiler that never ends.
#[test]
#[ignore = "only run by another test"]
fn parent_of_an_endless_compiler() {
    let folder = std::env::var_os("OSTLER_TEST_PARENT").unwrap();
    let script = Path::new(&folder).join("cxx.sh");
    let cache = Cache::new(Path::new(&folder).join("kernels"), SIZE_LIMIT);
    let specializer = Specializer::new(cache, &|name| {
        (name == "CXX").then(|| format!("/bin/sh {}", script.display()).into())
    });
    let source = answering(1);
    let _ = specializer.prepare(&source, InstructionSet::Portable, Mode::Wait, &mut go_on);
}

#[test]
fn compilers_die_with_their_parent() {
    let (place, pids) = endless(Place::new());
    let name = "physics::native::specialize::tests::parent_of_an_endless_compiler";
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", name])
        .env("OSTLER_TEST_PARENT", place.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = within(60, || !pids().is_empty());
    let ran = pids().into_iter().all(runs);
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(started && ran);
    assert!(within(60, || !pids().into_iter().any(runs)));
}

#[test]
fn the_longest_unused_entries_go_first() {
    if no_compiler() {
        return;
    }
    let mut place = Place::new();
    let sources: Vec<Source> = (0..4).map(answering).collect();
    let mut hashes = Vec::new();
    for source in &sources[..3] {
        hashes.push(ready(place.wait(source)).hash);
    }
    // The second was used longest ago.
    for (hash, age) in hashes.iter().zip([10, 30, 20]) {
        let file = place.cache().join(hash).join("kernel.so.blake3");
        let file = fs::File::open(file).unwrap();
        let used = SystemTime::now() - Duration::from_secs(age);
        file.set_modified(used).unwrap();
    }
    let size = |hash: &String| {
        let files = fs::read_dir(place.cache().join(hash)).unwrap();
        files.map(|f| f.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    place.limit = 3 * size(&hashes[0]) + size(&hashes[0]) / 2;
    hashes[1] = ready(place.wait(&sources[3])).hash;
    hashes.sort();
    assert_eq!(place.names(), hashes);
}

#[test]
fn kernels_do_not_share_what_both_define() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let kernel = |value: u32| {
        let text = format!(
            "template<class T> struct Table {{ static inline unsigned value = {value}; }};
extern \"C\" __attribute__((visibility(\"default\"))) unsigned answer() {{ return Table<int>::value; }}\n"
        );
        let headers = Vec::new();
        ready(place.wait(&Source { text, headers }))
    };
    let (first, second) = (kernel(1), kernel(2));
    assert_eq!((answer(&first), answer(&second)), (1, 2));
}

#[test]
fn loading_leaves_the_floating_point_mode_alone() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let before = float_mode::get();
    let kernel = ready(place.wait(&answering(3)));
    assert_eq!(float_mode::get(), before);
    // A library linked with -ffast-math does this when it is loaded.
    let mut hostile = answering(4);
    hostile.text.push_str(
        "__attribute__((constructor)) static void start() {
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}\n",
    );
    let error = reason(place.wait(&hostile));
    assert!(error.to_string().contains("floating-point mode"), "{error}");
    assert_eq!(float_mode::get(), before);
    assert_eq!(answer(&kernel), 3);
    // SAFETY: the type does not matter where there is no such function.
    let missing = unsafe { kernel.library.function::<extern "C" fn()>("missing") };
    assert!(missing.unwrap_err().to_string().contains("`missing`"));
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn code_that_others_could_have_written_is_not_loaded() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let source = answering(9);
    let hash = ready(place.wait(&source)).hash;
    let entry = place.cache().join(&hash);
    for open in [entry.join("kernel.so"), entry, place.cache()] {
        let before = open.metadata().unwrap().permissions().mode();
        mode(&open, before | 0o002);
        let error = place.specializer().find(&hash).unwrap_err();
        let SpecializeError::Distrusted(foreign) = &error else {
            panic!("{error}");
        };
        assert_eq!(foreign.path, open.canonicalize().unwrap());
        let said = error.to_string();
        assert!(said.contains("OSTLER_TRUST_OWNER"), "{said}");
        mode(&open, before);
    }
    assert_eq!(answer(&place.specializer().find(&hash).unwrap()), 9);
}

/// A file in the cache may have been replaced by the time that it is loaded.
#[test]
fn no_library_is_loaded_by_its_name_in_the_cache() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let compiled = ready(place.wait(&answering(10)));
    let found = place.specializer().find(&compiled.hash).unwrap();
    assert_eq!([answer(&compiled), answer(&found)], [10, 10]);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("memfd:ostler"), "{maps}");
    let cache = place.cache().canonicalize().unwrap();
    assert!(!maps.contains(cache.to_str().unwrap()), "{maps}");
}

#[test]
fn a_hash_that_is_none_names_nothing_outside_of_the_cache() {
    let place = Place::new();
    let other = place.path("other");
    fs::create_dir_all(&other).unwrap();
    fs::create_dir_all(place.cache()).unwrap();
    fs::write(other.join("kernel.so"), "code").unwrap();
    let sum = blake3::hash(b"code").to_hex().to_string();
    fs::write(other.join("kernel.so.blake3"), sum).unwrap();
    let long = format!("{}other", "./".repeat(28) + "../");
    assert_eq!(long.len(), 64);
    for key in ["../other", &long, other.to_str().unwrap()] {
        let error = place.specializer().find(key).unwrap_err();
        assert_eq!(error, SpecializeError::NotCached(key.to_owned()));
    }
}

#[test]
fn a_cache_that_others_may_write_gives_way_to_a_private_one() {
    let place = Place::new();
    let (shared, home) = (place.path("shared"), place.path("home"));
    fs::create_dir_all(&shared).unwrap();
    fs::create_dir_all(&home).unwrap();
    let found = || {
        super::root(&|name| match name {
            "OSTLER_CACHE" => Some(shared.clone().into()),
            "HOME" => Some(home.clone().into()),
            _ => None,
        })
    };
    assert_eq!(found().unwrap(), shared);
    mode(&shared, 0o777);
    let own = found().unwrap();
    assert_eq!(own, home.join(".cache/ostler"));
    assert_eq!(own.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let why = Cache::refused(&|name| match name {
        "HOME" => Some(home.clone().into()),
        _ => Some(shared.clone().into()).filter(|_| name == "OSTLER_CACHE"),
    });
    assert!(matches!(why, Some(SpecializeError::Distrusted(_))));
    let named = super::root(&|name| match name {
        "OSTLER_TRUST_OWNER" => Some("nobody of this name".into()),
        _ => Some(shared.clone().into()),
    });
    assert!(matches!(named, Err(SpecializeError::TrustOwner(_))));
    // A private one that is open gives way in turn, and so does one after it.
    let temporary = place.path("temporary");
    fs::create_dir_all(&temporary).unwrap();
    let found = || {
        super::root(&|name| match name {
            "OSTLER_CACHE" => Some(shared.clone().into()),
            "HOME" => Some(home.clone().into()),
            "TMPDIR" => Some(temporary.clone().into()),
            _ => None,
        })
    };
    mode(&own, 0o777);
    let last = found().unwrap();
    assert_eq!(last.parent(), Some(temporary.as_path()));
    assert_eq!(last.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    mode(&last, 0o777);
    assert!(matches!(found(), Err(SpecializeError::Distrusted(_))));
}

/// The checked bytes are the ones that run, whichever file has the name by then.
#[test]
fn a_library_is_loaded_from_the_bytes_that_were_read() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let [one, two] = [1, 2].map(|n| {
        let hash = ready(place.wait(&answering(n))).hash;
        fs::read(place.cache().join(hash).join("kernel.so")).unwrap()
    });
    let path = place.path("gone.so");
    // SAFETY: both were compiled here, of a function without initialisers.
    let load = |bytes: &[u8]| unsafe { Library::from_bytes(&path, bytes) }.unwrap();
    let kernel = |bytes: &[u8]| Kernel { library: load(bytes), hash: String::new() };
    let first = kernel(&one);
    // The first stays loaded: the loader must not take the second for it.
    assert_eq!([answer(&first), answer(&kernel(&two))], [1, 2]);
    drop(first);
    assert_eq!(answer(&kernel(&two)), 2);
    assert_eq!(load(&one).path(), path);
}

#[test]
fn variables_that_lead_the_compiler_elsewhere_are_part_of_the_hash() {
    if no_compiler() {
        return;
    }
    let place = Place::new();
    let hash = |set: &'static [(&str, &str)]| {
        let specializer = Specializer::new(Cache::new(place.cache(), 0), &move |name| {
            let own = set.iter().find(|v| v.0 == name).map(|v| v.1.into());
            own.or_else(|| std::env::var_os("PATH").filter(|_| name == "PATH"))
        });
        specializer.hash(&answering(1), InstructionSet::Portable)
    };
    let plain = hash(&[]).unwrap();
    assert_ne!(hash(&[("CPATH", "/elsewhere")]).unwrap(), plain);
    assert_ne!(hash(&[("GCC_EXEC_PREFIX", "/elsewhere/")]).unwrap(), plain);
    assert_eq!(hash(&[("EDITOR", "ed")]).unwrap(), plain);
}
