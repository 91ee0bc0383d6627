use super::*;
use std::path::Path;

/// A machine of files: system memory alone, which the test changes.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new(available: u64) -> Self {
        let m = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir_all(m.0.path().join("proc")).unwrap();
        m.available(available);
        m
    }

    fn available(&self, kib: u64) {
        let text = format!("MemTotal: 1000000 kB\nMemAvailable: {kib} kB\n");
        let path = self.0.path().join("proc/meminfo");
        // Whole or not at all: the watch may be reading.
        std::fs::write(path.with_extension("new"), text).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    }

    fn sources(&self) -> Sources {
        Sources::below(self.0.path(), None)
    }
}

fn config() -> MemoryConfig {
    MemoryConfig { interval_s: 0.05, act_after_s: 0.2, history: 5, ..MemoryConfig::default() }
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < Duration::from_secs(20), "no {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn levels_rise_and_fall_with_the_machine() {
    let machine = Machine::new(900_000);
    let monitor = MemoryMonitor::start(&config(), machine.sources());
    let now = monitor.latest();
    assert_eq!(now.level, Level::Calm, "one sample is there at once");
    assert_eq!((now.used, now.limit), (100_000 << 10, 1_000_000 << 10));
    machine.available(120_000);
    wait("warn", || monitor.latest().level == Level::Warn);
    assert!(monitor.must_act().is_none());
    machine.available(10_000);
    wait("act", || monitor.latest().level == Level::Act);
    wait("time to act", || monitor.must_act().is_some());
    let act = monitor.must_act().unwrap();
    assert!(act.since >= Duration::from_millis(200) && act.share() == 0.99);
    monitor.acted();
    assert!(monitor.must_act().is_none(), "the time begins anew");
    machine.available(500_000);
    wait("calm", || monitor.latest().level == Level::Calm);
    // Once calm, nothing is due however long it lasts.
    std::thread::sleep(Duration::from_millis(250));
    assert!(monitor.must_act().is_none());
}

#[test]
fn the_watch_survives_files_that_vanish_and_nonsense() {
    let machine = Machine::new(10_000);
    let monitor = MemoryMonitor::start(&config(), machine.sources());
    assert_eq!(monitor.latest().level, Level::Act);
    let path = machine.0.path().join("proc/meminfo");
    std::fs::remove_file(&path).unwrap();
    wait("calm without a limit", || monitor.latest().limit == 0);
    std::fs::create_dir(&path).unwrap();
    std::thread::sleep(Duration::from_millis(120));
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, [0xff, 0xfe, 0]).unwrap();
    std::thread::sleep(Duration::from_millis(120));
    machine.available(10_000);
    wait("act again", || monitor.latest().level == Level::Act);
}

#[test]
fn the_last_samples_are_kept_and_no_more() {
    let machine = Machine::new(900_000);
    let monitor = MemoryMonitor::start(&config(), machine.sources());
    wait("five samples", || monitor.history().len() == 5);
    let first = monitor.history()[0].at_s;
    wait("a new one", || monitor.history()[0].at_s > first);
    let all = monitor.history();
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted_by(|a, b| a.at_s < b.at_s));
    assert_eq!(monitor.sample().system, all[4].system);
}

#[test]
fn the_watch_ends_at_once_and_costs_little() {
    let machine = Machine::new(900_000);
    let slow = MemoryConfig { interval_s: 60.0, ..config() };
    let monitor = MemoryMonitor::start(&slow, machine.sources());
    std::thread::sleep(Duration::from_millis(20));
    let began = Instant::now();
    drop(monitor);
    // Far below the interval; a busy machine may take a while to run the thread.
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
}

#[test]
fn a_panic_while_sampling_costs_one_sample() {
    let machine = Machine::new(900_000);
    let calls = Arc::new(AtomicU64::new(0));
    let seen = calls.clone();
    let hook: Hook = Box::new(move |memory, _| {
        assert_eq!(memory.limit, 1_000_000 << 10);
        // Not the first: that one is the caller's own.
        if seen.fetch_add(1, Ordering::SeqCst) == 1 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    });
    let _monitor = MemoryMonitor::start_with(&config(), machine.sources(), Some(hook));
    wait("samples after the panic", || calls.load(Ordering::SeqCst) > 3);
}

#[test]
fn a_real_sample_costs_less_than_a_thousandth_of_a_core() {
    let mut sources = Sources::host(Some(Path::new(".")));
    let cpu = || {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
    };
    let began = cpu();
    for _ in 0..50 {
        std::hint::black_box(sources.sample());
    }
    let each = (cpu() - began) / 50.0;
    let interval = MemoryConfig::default().interval_s;
    assert!(each < 1e-3 * interval, "{} us a sample", each * 1e6);
}

#[test]
fn readers_never_see_half_a_snapshot() {
    let shared = Arc::new(Published::default());
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (shared, stop) = (shared.clone(), stop.clone());
        std::thread::spawn(move || {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let p = Pressure { source: Source::ALL[n % 6], used: n as u64, limit: n as u64 };
                shared.write(Level::ALL[n % 3], p, Some(0));
            }
        })
    };
    let began = Instant::now();
    for _ in 0..20_000 {
        let s = shared.read(began);
        assert_eq!(s.used, s.limit);
        assert_eq!(s.tightest, Source::ALL[s.used as usize % 6]);
        assert_eq!(s.level, Level::ALL[s.used as usize % 3]);
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}
