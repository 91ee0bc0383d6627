//! A disk that is nearly full, as the watch sees it: the run writes less, ends in order
//! with its own exit code, and goes on afterwards as if nothing had been.

use crate::common::{Place, TASK, assert_same_bits, metrics};
use std::path::Path;

/// The exit code of a run that ended for want of space.
const DISK_FULL: i32 = 74;

/// Trains until there is too little space from iteration 5 on; returns what was said and
/// the iterations that were done.
fn until_full(place: &Place, more: &[&str]) -> (String, u64) {
    let mut args = vec![
        "train",
        "pole.toml",
        "--quiet",
        "--out",
        "a",
        "--inject",
        "low disk mib=60 iteration=5..1000000",
        "runner.max_iterations=1000000",
        "runner.save_interval=1",
        "runner.keep_checkpoints=3",
        "memory.interval_s=0.05",
        "memory.act_after_s=0.3",
    ];
    args.extend(more);
    let said = place.fails(DISK_FULL, &args);
    let done = metrics(&place.path("a")).last().unwrap()["iteration"].as_u64();
    (said, done.unwrap())
}

/// Iterations of the checkpoints that are there.
fn checkpoints(run: &Path) -> Vec<String> {
    let files = std::fs::read_dir(run.join("checkpoints")).unwrap();
    let names = files.map(|f| f.unwrap().file_name().into_string().unwrap());
    names.filter(|n| n.starts_with("iter_")).collect()
}

/// Records of the event files: one that says what it is, one for each iteration.
fn events(run: &Path) -> usize {
    let files = std::fs::read_dir(run).unwrap().map(|f| f.unwrap().path());
    let mut count = 0;
    for file in files.filter(|f| f.to_string_lossy().contains("tfevents")) {
        let bytes = std::fs::read(file).unwrap();
        let mut rest = bytes.as_slice();
        while rest.len() >= 8 {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap());
            rest = &rest[16 + length as usize..];
            count += 1;
        }
    }
    count
}

fn go_on(place: &Place, iterations: u64) {
    let n = format!("runner.max_iterations={iterations}");
    let args = ["train", "--resume", "a", "--quiet", "fault.inject=[]", &n];
    place.ok(&args);
}

#[test]
fn a_run_whose_disk_is_nearly_full_saves_ends_and_goes_on_with_the_same_bits() {
    let place = Place::new();
    let (said, done) = until_full(&place, &[]);
    let run = place.path("a");
    for part in [
        "60 MiB left",
        "memory.disk_act_mib = 128 MiB",
        "the run saved and ended",
        "ostler train --resume a",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Whoever supervises it does not start it again.
    assert!(!said.contains("goes on from"), "{said}");
    // One checkpoint, of the last iteration; every iteration is on record.
    assert_eq!(checkpoints(&run), [format!("iter_{done:08}.safetensors")]);
    assert_eq!(metrics(&run).len() as u64, done);
    // Event files were left as they were when it began.
    let written = events(&run) as u64 - 1;
    assert!(written >= 4 && written < done, "{written} of {done}");
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("one checkpoint is kept"), "{log}");

    go_on(&place, done + 3);
    let whole = place.train("whole", done + 3, &[]);
    assert_same_bits(&whole, &run);
    // There is space again.
    assert_eq!(events(&run) as u64 - 1, written + 3);
}

#[test]
fn a_replay_memory_is_saved_with_the_last_checkpoint_alone() {
    let more = "
[replay]
capacity = 2000
storage = \"host\"
beta_end = 0.4
[sac]
batch_size = 32
learning_starts = 200
[runner]
algorithm = \"sac\"
";
    let task = TASK.replace("[runner]\n", &format!("{more}\n"));
    for storage in ["host", "memmap"] {
        let place = Place::with(&task);
        let storage = format!("replay.storage={storage}");
        let (_, done) = until_full(&place, &[&storage]);
        let run = place.path("a");
        let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
        let spared = log.contains("the replay buffer is not saved");
        assert_eq!(spared, storage.ends_with("host"), "{log}");
        go_on(&place, done + 3);
        let whole = place.train("whole", done + 3, &[&storage]);
        assert_same_bits(&whole, &run);
    }
}

#[test]
fn a_run_whose_disk_has_space_again_goes_on_and_writes_all() {
    let place = Place::new();
    // Space comes back long before the run would end for want of it.
    let low = "low disk mib=60 iteration=5..150";
    let run = place.train(
        "a",
        400,
        &["--inject", low, "memory.interval_s=0.05", "memory.act_after_s=3600"],
    );
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("one checkpoint is kept"), "{log}");
    assert!(log.contains("all is written again"), "{log}");
    let written = events(&run) - 1;
    assert!((4..400).contains(&written), "{written}");
    assert_same_bits(&place.train("whole", 400, &[]), &run);
}
