//! The guarantees of a replay buffer across processes: kills, full disks, other programs, and
//! the files that it leaves behind. Each test that needs a process of its own starts this
//! program again, as one of the ignored tests whose names begin with `child`.

use crate::support::{alone, disk};
use ostler_collector::replay::{
    Field, Layout, OnFullDisk, ReplayBuffer, ReplayConfig, ReplayError, Setup, StorageKind,
};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FOLDER: &str = "OSTLER_REPLAY_TEST_FOLDER";
const ENVS: usize = 8;
const STEPS: usize = 16;
const ROWS: usize = ENVS * STEPS;
const WIDTH: usize = 20;

/// Where a child works.
fn folder() -> PathBuf {
    std::env::var_os(FOLDER).unwrap().into()
}

fn child_of(wrapper: &[&str], name: &str, folder: &Path) -> std::io::Result<Child> {
    let mut command = alone::command(wrapper, &format!("replay::{name}"));
    command.env(FOLDER, folder).stdout(Stdio::piped()).spawn()
}

fn layout() -> Layout {
    Layout::new(vec![
        Field::float("number", 1),
        Field::integer("version"),
        Field::float("words", WIDTH),
    ])
    .unwrap()
}

fn config(capacity: usize) -> ReplayConfig {
    ReplayConfig { capacity, storage: StorageKind::Memmap, prefetch: 2, ..ReplayConfig::default() }
}

fn open(config: &ReplayConfig, folder: &Path, reopen: bool) -> Result<ReplayBuffer, ReplayError> {
    let setup = Setup {
        folder: Some(folder),
        margin: 2 * ROWS,
        reopen,
        free_memory: || Some(1 << 30),
        ..Setup::new(64, tch::Device::Cpu, 0.99, 5)
    };
    ReplayBuffer::new(config, layout(), setup)
}

/// Every word of a transition follows from its number.
fn extend(buffer: &mut ReplayBuffer, first: usize) -> Result<(), ReplayError> {
    let rows = first..first + ROWS;
    let number: Vec<u32> = rows.clone().map(|r| (r as f32).to_bits()).collect();
    let version: Vec<u32> = rows.clone().map(|r| r as u32).collect();
    let words = rows.flat_map(|r| (0..WIDTH).map(move |k| ((r + k) as f32).to_bits()));
    let words: Vec<u32> = words.collect();
    buffer.extend_rows(&[&number, &version, &words], ENVS)
}

/// Draws many batches and looks at every word of them.
fn check(buffer: &mut ReplayBuffer) {
    buffer.begin_update(50);
    for _ in 0..50 {
        let batch = buffer.next().unwrap();
        let numbers = |name| {
            let field = batch.get(name).unwrap().flatten(0, -1).to_kind(tch::Kind::Double);
            Vec::<f64>::try_from(field).unwrap()
        };
        let (number, words) = (numbers("number"), numbers("words"));
        assert!(numbers("version") == number);
        for (i, &row) in batch.indices().iter().enumerate() {
            assert_eq!(number[i], row as f64);
            for (k, word) in words[WIDTH * i..][..WIDTH].iter().enumerate() {
                assert_eq!(*word, (row as usize + k) as f64);
            }
        }
    }
}

#[test]
#[ignore = "only run by another test"]
fn child_writes_until_it_is_killed() {
    let folder = folder();
    let mut buffer = open(&config(1000), &folder, false).unwrap();
    for i in 0.. {
        extend(&mut buffer, i * ROWS).unwrap();
        println!("\ncommitted {}", (i + 1) * ROWS);
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn f13_a_killed_process_leaves_everything_that_it_committed() {
    for after in [1, 3, 7, 40] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = child_of(&[], "child_writes_until_it_is_killed", dir.path()).unwrap();
        let mut committed = 0;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.by_ref() {
            if let Some(count) = line.unwrap().strip_prefix("committed ") {
                committed = count.parse().unwrap();
                if committed >= after * ROWS {
                    break;
                }
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let mut buffer = open(&config(1000), dir.path(), true).unwrap();
        let line = buffer.describe();
        assert!(!line.contains("damaged"), "{line}");
        assert!(buffer.len() >= committed.min(1000), "{committed}: {line}");
        check(&mut buffer);
        let newest = buffer.next().unwrap().indices().iter().copied().max().unwrap();
        assert!(newest as usize + 1000 >= committed);
    }
}

/// Runs a test in a mount namespace of its own where `folder` is a file system of 2 MiB;
/// `None` after saying that the calling test is skipped, where the system does not let it.
fn on_a_small_disk(name: &str, folder: &Path) -> Option<(String, Option<i32>)> {
    const MOUNT: &str =
        "mount -t tmpfs -o size=2m tmpfs \"$OSTLER_REPLAY_TEST_FOLDER\" && exec \"$@\"";
    let wrapper = [disk::unshare()?, &["sh", "-c", MOUNT, "sh"]].concat();
    let out = child_of(&wrapper, name, folder).unwrap();
    let out = out.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    Some((text, out.status.code()))
}

#[test]
#[ignore = "only run by another test"]
fn child_fills_a_small_disk() {
    let folder = folder();
    // 100 bytes each: 10 MB in all.
    for (name, on_full_disk) in [("stop", OnFullDisk::Stop), ("host", OnFullDisk::Host)] {
        let folder = folder.join(name);
        let config = ReplayConfig { on_full_disk, ..config(100_000) };
        let mut buffer = open(&config, &folder, false).unwrap();
        let mut stored = 0;
        let failed = loop {
            match extend(&mut buffer, stored) {
                Ok(()) if stored > 150_000 => break None,
                Ok(()) => stored += ROWS,
                Err(e) => break Some(e),
            }
        };
        check(&mut buffer);
        match (on_full_disk, failed) {
            (OnFullDisk::Stop, Some(ReplayError::FullDisk { rows, .. })) => {
                assert_eq!((rows as usize, buffer.len()), (stored, stored));
                drop(buffer);
                let mut again = open(&config, &folder, true).unwrap();
                assert_eq!(again.len(), stored);
                check(&mut again);
                drop(again);
                std::fs::remove_dir_all(&folder).unwrap();
            }
            (OnFullDisk::Host, None) => {
                assert_eq!(buffer.len(), 100_000);
                let saved = buffer.save().unwrap();
                drop(buffer);
                let mut again = open(&config, &folder, true).unwrap();
                let restored = again.restore(&saved).unwrap();
                assert!(restored.lost_newest > 0 && restored.rows > 0 || again.is_empty());
            }
            (_, other) => panic!("{name}: {other:?}"),
        }
        println!("\n{name} is as it should be");
    }
}

#[test]
fn f13_a_disk_that_fills_up_is_never_a_bus_error() {
    let dir = tempfile::tempdir().unwrap();
    if let Some((text, code)) = on_a_small_disk("child_fills_a_small_disk", dir.path()) {
        assert_eq!(code, Some(0), "{text}");
        for name in ["stop", "host"] {
            assert!(text.contains(&format!("{name} is as it should be")), "{text}");
        }
    }
}

#[test]
#[ignore = "only run by another test"]
fn child_counts_its_threads() {
    // By name; a thread that was waited for may be listed for a moment longer.
    let wait_for = |expected: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        let count = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let names = tasks.map(|t| std::fs::read_to_string(t.path().join("comm")));
            names.flatten().filter(|n| n.trim() == "replay").count()
        };
        while count() != expected {
            assert!(Instant::now() < deadline, "{} instead of {expected}", count());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let make = || {
        let config = ReplayConfig { storage: StorageKind::Host, save: false, ..config(1000) };
        let mut buffer = open(&config, Path::new("."), false).unwrap();
        extend(&mut buffer, 0).unwrap();
        check(&mut buffer);
        // Some are under way.
        buffer.begin_update(2);
        buffer
    };
    let one = make();
    wait_for(1);
    let two = make();
    wait_for(2);
    drop((one, two));
    for _ in 0..20 {
        drop(make());
    }
    wait_for(0);
    println!("\ncounted");
}

#[test]
fn the_thread_that_draws_ahead_ends_with_its_memory() {
    let dir = tempfile::tempdir().unwrap();
    let out = child_of(&[], "child_counts_its_threads", dir.path()).unwrap();
    let out = out.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("counted"), "{text}");
}

/// The lines of docs/replay.md between ```python and ```.
fn snippet() -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/replay.md");
    let text = std::fs::read_to_string(docs).unwrap();
    let start = text.split("```python\n").nth(1).unwrap();
    start.split("```").next().unwrap().to_owned()
}

#[test]
fn numpy_reads_the_file_as_the_documentation_says() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut buffer = open(&config(1000), dir.path(), false).unwrap();
    for i in 0..20 {
        extend(&mut buffer, i * ROWS).unwrap();
    }
    // The snippet, and then what it is to have found: 1560..2560, in order.
    let program = format!(
        "{}\n\
         assert (begin, end) == ({}, {}), (begin, end)\n\
         expected = numpy.arange(begin, end)\n\
         assert (rows['number'] == expected).all()\n\
         assert (rows['version'] == expected).all()\n\
         assert (rows['words'] == expected[:, None] + numpy.arange({WIDTH})).all()\n\
         assert (rows['stride'] == {ENVS}).all() and (rows['segment'] == 0).all()\n\
         print('read', len(rows))\n",
        snippet(),
        20 * ROWS - 1000,
        20 * ROWS,
    );
    let mut command = Command::new(python);
    let out = command.args(["-c", &program]).current_dir(dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("read 1000"), "{text} {}", String::from_utf8_lossy(&out.stderr));
}
