//! Disks, folders, files.

use super::common::{Place, metrics, newest, tensors, text};
use super::seen::{ITERATIONS, drill, train};
use super::{Case, case, endless, limited, metrics_so_far, saw, wait};
use std::process::Command;

pub fn all() -> Vec<Case> {
    vec![
        case(
            "a full disk while a checkpoint is written",
            "`full disk iteration=2..4`",
            || drill("full disk iteration=2..4").goes_on(),
        ),
        case(
            "a full disk for the logs",
            "`ulimit -f` (RLIMIT_FSIZE), 128 KiB",
            || {
                let tried = limited("-f 128", "runner.max_iterations=300 log.curve=false").ends(0);
                let err = tried.err();
                assert_eq!(err.matches("cannot write").count(), 1, "{err}");
                assert!((10..300).contains(&metrics(&tried.run).len()));
                saw("went on, said so once", "the records that did not fit")
            },
        ),
        case(
            "a full disk at the end of the run",
            "`ulimit -f`, 8 KiB",
            || {
                let tried = limited("-f 8", "runner.max_iterations=4 log.curve=false").ends(1);
                assert!(
                    tried.err().contains("cannot write the checkpoint"),
                    "{}",
                    tried.err()
                );
                assert_eq!(metrics(&tried.run).len(), 4);
                saw(
                    "trained to the end, tried the temporary folder, exit code 1",
                    "the checkpoint",
                )
            },
        ),
        case("a slow disk", "`slow disk ms=300`", || {
            drill("slow disk ms=300").same_bits()
        }),
        case("the folder of checkpoints vanishes", "`rm -r`", || {
            let place = Place::new();
            let child = endless(&place, &[]);
            std::fs::remove_dir_all(place.path("a/checkpoints")).unwrap();
            child.send(libc::SIGTERM);
            let out = child.end();
            let err = text(&out);
            assert_eq!(out.status.code(), Some(130), "{err}");
            assert!(err.contains("vanished and is made again"), "{err}");
            assert!(newest(&place.path("a")).is_file());
            saw(
                "made it again, saved, exit code 130",
                "the older checkpoints",
            )
        }),
        case("the newest checkpoint is damaged", "a flipped bit", || {
            let tried = train(&[]).ends(0);
            let file = newest(&tried.run);
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            let again = tried.place.run(&[
                "train",
                "--resume",
                "a",
                "--quiet",
                "runner.max_iterations=8",
            ]);
            let err = text(&again);
            assert_eq!(again.status.code(), Some(0), "{err}");
            let log = std::fs::read_to_string(tried.run.join("log.txt")).unwrap();
            assert!(log.contains("cut short or damaged"), "{log}");
            assert_eq!(metrics(&tried.run).len(), 8);
            saw(
                "said so and went on from the one before",
                "2 iterations, done again",
            )
        }),
        case(
            "a second run into the same folder",
            "`--out a` twice",
            || {
                let place = Place::new();
                let child = endless(&place, &[]);
                let err = place.fails(2, &["train", "pole.toml", "--quiet", "--out", "a"]);
                assert!(err.contains("in use by another process"), "{err}");
                child.send(libc::SIGTERM);
                child.end();
                saw("the second is refused, the first goes on", "nothing")
            },
        ),
        case(
            "a folder that cannot be written",
            "`--out /proc/run`",
            || {
                let place = Place::new();
                place.fails(2, &["train", "pole.toml", "--out", "/proc/run"]);
                saw("refused before anything begins, exit code 2", "nothing")
            },
        ),
        case(
            "whoever reads its output goes away",
            "a pipe to `true`",
            || {
                let place = Place::new();
                let script = format!(
                    "'{}' train pole.toml --out a runner.max_iterations={ITERATIONS} 2>&1 | true",
                    env!("CARGO_BIN_EXE_ostler")
                );
                let mut bash = Command::new("bash");
                bash.args(["-c", &script]).current_dir(place.0.path());
                bash.output().unwrap();
                wait(|| metrics_so_far(&place) as u64 == ITERATIONS);
                assert!(!tensors(&place.path("a")).is_empty());
                saw("went on", "nothing")
            },
        ),
    ]
}
