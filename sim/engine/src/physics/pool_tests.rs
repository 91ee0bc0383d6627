use super::{PartPanicked, Pool};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn every_part_runs_exactly_once_for_any_number_of_threads() {
    for threads in [1, 2, 3, 8] {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads);
        for parts in [0, 1, 2, 7, 1000] {
            let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            pool.run(parts, &|i| {
                counts[i].fetch_add(1, SeqCst);
            });
            assert!(counts.iter().all(|c| c.load(SeqCst) == 1), "{threads} x {parts}");
        }
    }
}

#[test]
fn many_short_loops_lose_nothing() {
    let pool = Pool::new(4).unwrap();
    let sum = AtomicUsize::new(0);
    for round in 0..20_000 {
        pool.run(3, &|i| {
            sum.fetch_add(i + 1, SeqCst);
        });
        assert_eq!(sum.load(SeqCst), 6 * (round + 1));
    }
}

#[test]
fn a_panicking_part_is_reported_and_the_pool_goes_on() {
    for threads in [1, 4] {
        let pool = Pool::new(threads).unwrap();
        let ran = AtomicUsize::new(0);
        let err = pool
            .try_run(16, &|i| {
                ran.fetch_add(1, SeqCst);
                assert!(i != 5, "part five");
            })
            .unwrap_err();
        assert_eq!(err, PartPanicked { count: 1, message: "part five".into() });
        assert_eq!(ran.load(SeqCst), 16);
        assert_eq!(pool.try_run(16, &|_| ()), Ok(()));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(2, &|i| assert!(i != 1, "again"));
        }));
        assert!(caught.is_err());
        pool.run(100, &|_| {
            ran.fetch_add(1, SeqCst);
        });
        assert_eq!(ran.load(SeqCst), 116);
    }
}

#[test]
fn a_loop_within_a_loop_does_not_deadlock() {
    let pool = Pool::new(3).unwrap();
    let sum = AtomicUsize::new(0);
    pool.run(8, &|_| {
        pool.run(8, &|_| {
            sum.fetch_add(1, SeqCst);
        });
    });
    assert_eq!(sum.load(SeqCst), 64);
}

#[test]
fn two_threads_of_work_run_at_the_same_time() {
    let pool = Pool::new(2).unwrap();
    let barrier = std::sync::Barrier::new(2);
    // Each part waits for the other: this ends only if two threads take part.
    pool.run(2, &|_| {
        barrier.wait();
    });
}

/// CPU time of this process's threads, all together.
fn cpu_seconds() -> f64 {
    // SAFETY: rusage is plain data, and the pointer is to a local of that type.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// In a process of its own, for the affinity and the CPU time are the process's.
#[test]
fn child_affinity_and_idle() {
    if std::env::var_os("OSTLER_POOL_CHILD").is_none() {
        return;
    }
    // SAFETY: cpu_set_t is plain data; the set lives through the call.
    let rc = unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set);
        let first = (0..libc::CPU_SETSIZE as usize).find(|c| libc::CPU_ISSET(*c, &set)).unwrap();
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set)
    };
    assert_eq!(rc, 0);
    assert_eq!(Pool::available(), 1);
    let pool = Pool::new(4).unwrap();
    pool.run(100, &|_| ());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let before = cpu_seconds();
    std::thread::sleep(std::time::Duration::from_millis(400));
    let burnt = cpu_seconds() - before;
    assert!(burnt < 0.02, "an idle pool burnt {burnt} s of 0.4 s");
}

#[test]
fn size_follows_affinity_and_idle_threads_sleep() {
    let exe = std::env::current_exe().unwrap();
    let output = std::process::Command::new(exe)
        .args(["--exact", "physics::pool::tests::child_affinity_and_idle", "--nocapture"])
        .env("OSTLER_POOL_CHILD", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn a_refused_thread_is_an_error() {
    if std::env::var_os("OSTLER_POOL_LIMIT_CHILD").is_none() {
        let exe = std::env::current_exe().unwrap();
        let output = std::process::Command::new(exe)
            .args(["--exact", "physics::pool::tests::a_refused_thread_is_an_error", "--nocapture"])
            .env("OSTLER_POOL_LIMIT_CHILD", "1")
            .env("RUST_MIN_STACK", "1073741824")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        return;
    }
    // Threads of 1 GiB of stack under a limit of 16 GiB of addresses: some fail.
    let limit = libc::rlimit { rlim_cur: 16 << 30, rlim_max: 16 << 30 };
    // SAFETY: the struct is a local and lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    let error = Pool::new(64).unwrap_err().to_string();
    assert!(error.contains("lower sim.threads"), "{error}");
}
