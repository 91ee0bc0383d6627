//! Runs damaged files through a reader for a while and makes what is found small.

use super::count;
use super::mutate::{Corpus, strategy};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// A case may hold this much (bytes) ...
const MEMORY: usize = 64 << 20;
/// ... and so much for each of its bytes.
const PER_BYTE: usize = 100;
/// Processor time of one case.
const SLOW: Duration = Duration::from_secs(5);
/// Time after which a case is taken to go on for ever.
const STUCK: Duration = Duration::from_secs(120);
/// Stack of the thread that reads: a usual one (bytes).
const STACK: usize = 2 << 20;

/// Reads a file; the answer is whether it was accepted.
type Read = Box<dyn FnMut(&[u8]) -> bool>;

/// A reader and what it is fed.
pub struct Target {
    pub corpus: Corpus,
    pub read: Read,
}

thread_local! {
    /// The message of the thread's last panic, while a case runs.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let worker = std::thread::current().name().is_some_and(|n| n.starts_with("ostler"));
            if !QUIET.get() && !worker {
                return usual(info);
            }
            let text = info.to_string().replace('\n', " ");
            PANIC.with_borrow_mut(|p| *p = Some(text));
        }));
    });
}

fn processor_time() -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the answer is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// One case; an error says what was wrong: its kind first, by which findings are told
/// apart.
fn case(target: &mut Target, input: &[u8]) -> Result<bool, (String, String)> {
    let (live, begun) = (count::start(), processor_time());
    QUIET.set(true);
    let answer = catch_unwind(AssertUnwindSafe(|| (target.read)(input)));
    QUIET.set(false);
    let (peak, time) = (count::peak_since(live), processor_time() - begun);
    let said = PANIC.take();
    let Ok(accepted) = answer else {
        let said = said.unwrap_or_default();
        let place: String = said.split(": ").next().unwrap_or_default().into();
        return Err((place, said));
    };
    let most = MEMORY + PER_BYTE * input.len();
    if peak > most {
        let text = format!("{} MiB held for {} bytes", peak >> 20, input.len());
        return Err(("memory".into(), text));
    }
    if time > SLOW {
        return Err(("time".into(), format!("{time:?} of processor time")));
    }
    Ok(accepted)
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Puts a finding into a file.
fn keep(name: &str, seed: u64, input: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{seed}"));
    let _ = std::fs::write(&path, input);
    path
}

/// Makes a failing case smaller as long as it fails in the same way.
fn shrink(make: &dyn Fn() -> Target, seed: u64, kind: &str) -> Vec<u8> {
    let mut target = make();
    let until = Instant::now() + Duration::from_secs(20);
    let mut tree = strategy().new_tree(&mut runner(seed)).unwrap();
    let mut best = target.corpus.make(&tree.current());
    let mut more = tree.simplify();
    while more && Instant::now() < until {
        let input = target.corpus.make(&tree.current());
        let same = matches!(case(&mut target, &input), Err((k, _)) if k == kind);
        if same {
            best = input;
            target = make();
            more = tree.simplify();
        } else {
            more = tree.complicate();
        }
    }
    best
}

/// Which cases are run.
#[derive(Clone, Copy)]
enum Extent {
    /// The same cases every time, so that a change fails for its own mistakes.
    Cases(u64),
    /// Others every time, for so long.
    Time(Duration),
}

impl Extent {
    /// The number of cases that the environment asks for, or `usual`; with the seed.
    fn asked(usual: u64) -> (u64, Self) {
        let seed = number("OSTLER_FUZZ_SEED");
        if let Some(one) = number("OSTLER_FUZZ_CASE") {
            return (one, Self::Cases(1));
        }
        let Some(seconds) = number("OSTLER_FUZZ_SECONDS") else {
            return (seed.unwrap_or(1), Self::Cases(usual));
        };
        let clock = std::time::UNIX_EPOCH.elapsed();
        let clock = clock.map_or(1, |d| d.as_nanos() as u64);
        let time = Duration::from_secs(seconds);
        (seed.unwrap_or(clock), Self::Time(time))
    }
}

/// Reads damaged files: `usual` of them, or the one case `OSTLER_FUZZ_CASE`, or for
/// `OSTLER_FUZZ_SECONDS`; fails with every kind of finding once.
pub fn fuzz(name: &'static str, usual: u64, make: impl Fn() -> Target + Send + Copy + 'static) {
    hook();
    let (seed, extent) = Extent::asked(usual);
    println!("{name}: seed {seed} (OSTLER_FUZZ_SEED)");
    let begun = Arc::new(AtomicU64::new(0));
    let (present, started) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let work = {
        let (begun, present) = (begun.clone(), present.clone());
        move || {
            let mut target = make();
            let note = std::fs::File::create(
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}.case")),
            )
            .unwrap();
            let mut found: BTreeMap<String, (u64, String)> = BTreeMap::new();
            let (mut cases, mut accepted) = (0_u64, 0_u64);
            let begin = Instant::now();
            // The files themselves are good.
            for (number, file) in target.corpus.files.clone().into_iter().enumerate() {
                if let Err((_, why)) = case(&mut target, &file) {
                    let begin = String::from_utf8_lossy(&file[..file.len().min(300)]).into_owned();
                    panic!("{name}: file {number} of the corpus: {why}\n{begin}");
                }
            }
            let go_on = |cases| match extent {
                Extent::Cases(most) => cases < most,
                Extent::Time(time) => begin.elapsed() < time,
            };
            while go_on(cases) && found.len() < 20 {
                let of_case = seed.wrapping_add(cases);
                let tree = strategy().new_tree(&mut runner(of_case)).unwrap();
                let input = target.corpus.make(&tree.current());
                begun.store(started.elapsed().as_secs(), Ordering::Relaxed);
                present.store(of_case, Ordering::Relaxed);
                // This record remains when the case overflows the stack or aborts.
                use std::os::unix::fs::FileExt as _;
                let _ = note.write_all_at(format!("{of_case:020}\n").as_bytes(), 0);
                match case(&mut target, &input) {
                    Ok(good) => accepted += u64::from(good),
                    Err((kind, why)) => {
                        target = make();
                        found.entry(kind).or_insert((of_case, why));
                    }
                }
                cases += 1;
            }
            println!("{name}: {cases} cases, {accepted} accepted");
            begun.store(u64::MAX, Ordering::Relaxed);
            let mut report = String::new();
            for (kind, (seed, why)) in &found {
                let small = shrink(&make, *seed, kind);
                let path = keep(name, *seed, &small);
                let shown = String::from_utf8_lossy(&small[..small.len().min(2000)]).into_owned();
                let _ = write!(
                    report,
                    "\nOSTLER_FUZZ_CASE={seed}: {why}\n{} bytes in {}:\n{shown}\n",
                    small.len(),
                    path.display()
                );
            }
            assert!(found.is_empty(), "{name}: {} findings{report}", found.len());
            assert!(cases > 0, "{name}: no case was run");
        }
    };
    let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK);
    let thread = thread.spawn(work).unwrap();
    while !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        let since = Duration::from_secs(begun.load(Ordering::Relaxed));
        assert!(
            started.elapsed().saturating_sub(since) < STUCK + Duration::from_secs(60),
            "{name}: OSTLER_FUZZ_CASE={} goes on for ever",
            present.load(Ordering::Relaxed)
        );
    }
    if let Err(e) = thread.join() {
        std::panic::resume_unwind(e);
    }
}

/// A reader with one fault, for files that hold an `x` where the good one has none.
pub fn wrong(name: &'static str) -> Target {
    let files = vec![b"good".to_vec()];
    Target {
        corpus: Corpus::of_text(files, &["x"]),
        read: Box::new(move |bytes| {
            let bad = bytes.contains(&b'x');
            match name {
                "panics" => assert!(!bad, "an x"),
                "memory" if bad => drop(std::hint::black_box(Vec::<u8>::with_capacity(70 << 20))),
                "memory-of-c" if bad => {
                    let size = [70 << 18];
                    drop(tch::Tensor::ones(size, (tch::Kind::Float, tch::Device::Cpu)));
                }
                _ => {}
            }
            true
        }),
    }
}
