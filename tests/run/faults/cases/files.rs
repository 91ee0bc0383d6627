//! Disks, folders, files.

use super::seen::{ITERATIONS, Seen, Tried, drill, saved, train};
use super::{Case, case, endless, goes_on, limited};
use crate::common::process::{names, wait};
use crate::common::{Place, newest};
use std::process::Command;

pub fn all() -> Vec<Case> {
    vec![
        case("a full disk while a checkpoint is written", "`full disk iteration=2..4`", || {
            drill("full disk iteration=2..4").goes_on()
        }),
        case(
            "a full disk for the logs",
            "`ulimit -f` (RLIMIT_FSIZE), 128 KiB, 300 iterations",
            || limited("-f 128", "runner.max_iterations=300 log.curve=false").ends(0).look(),
        ),
        case("a full disk at the end of the run", "`ulimit -f`, 8 KiB, 4 iterations", || {
            limited("-f 8", "runner.max_iterations=4 log.curve=false").ends(1).look()
        }),
        case("a slow disk", "`slow disk ms=300`", || drill("slow disk ms=300").same_bits()),
        case("the folder of checkpoints vanishes", "`rm -r`", || {
            let place = Place::new();
            // It saves when it is told to: never while the folder is removed.
            let child = endless(&place, &["runner.save_interval=0"]);
            let run = place.path("a");
            child.send(libc::SIGUSR1);
            wait("a checkpoint", || saved(&run).pop());
            goes_on(&place);
            let before = saved(&run);
            std::fs::remove_dir_all(run.join("checkpoints")).unwrap();
            child.send(libc::SIGTERM);
            let tried = child.end(place);
            let after = saved(&run);
            let gone = before.iter().all(|n| !after.contains(n));
            let mut seen = tried.look();
            if gone {
                seen.lost = "the older checkpoints".into();
            }
            seen
        }),
        case("the newest checkpoint is damaged", "a flipped bit", || {
            let tried = train(&[]).ends(0);
            let file = newest(&tried.run);
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            let resumed = tried.resume(&[]);
            // The log has the message about the file by now.
            resumed.after(tried.look())
        }),
        case("a second run into the same folder", "`--out a` twice", || {
            let place = Place::new();
            let child = endless(&place, &[]);
            let err = place.fails(2, &["train", "pole.toml", "--quiet", "--out", "a"]);
            assert!(err.contains("in use by another process"), "{err}");
            goes_on(&place);
            child.send(libc::SIGTERM);
            let seen = child.end(place).look();
            Seen {
                did: format!(
                    "the second: refused with exit code 2; the first: went on, at SIGTERM {}",
                    seen.did
                ),
                ..seen
            }
        }),
        case("a folder that cannot be written", "`--out /proc/run`", || {
            let place = Place::new();
            let before = names(place.0.path());
            let output = place.run(&["train", "pole.toml", "--out", "/proc/run"]);
            let mut tried = Tried::new(place, output).ends(2);
            tried.run = "/proc/run".into();
            assert_eq!(names(tried.place.0.path()), before, "it left something");
            tried.look()
        }),
        case("the reader of its output goes away", "a pipe to `true`", || {
            let place = Place::new();
            let script = format!(
                "set -o pipefail; '{}' train pole.toml --out a \
                     runner.max_iterations={ITERATIONS} 2>&1 | true",
                env!("CARGO_BIN_EXE_ostler")
            );
            let mut bash = Command::new("bash");
            bash.args(["-c", &script]).current_dir(place.0.path());
            let output = bash.output().unwrap();
            Tried::new(place, output).goes_on()
        }),
    ]
}
