//! Deaths and signals.

use super::common::{Place, metrics, text};
use super::seen::{Seen, drill, train};
use super::{Case, case, endless, metrics_so_far, saw, wait};
use std::os::unix::process::ExitStatusExt;

fn saved_and_resumed(signal: i32, name: &str) -> Seen {
    let place = Place::new();
    let child = endless(&place, &[]);
    child.send(signal);
    let out = child.end();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out));
    let done = metrics(&place.path("a")).len();
    let n = format!("runner.max_iterations={}", done + 1);
    place.ok(&["train", "--resume", "a", "--quiet", &n]);
    assert_eq!(metrics(&place.path("a")).len(), done + 1);
    assert!(!name.is_empty());
    saw(
        "finished its iteration, saved, exit code 130; `--resume` went on",
        "nothing",
    )
}

pub fn all() -> Vec<Case> {
    vec![
        case(
            "killed (SIGKILL) while collecting",
            "`kill phase=collect iteration=4`",
            || drill("kill phase=collect iteration=4").same_bits(),
        ),
        case(
            "killed in an update",
            "`kill phase=update iteration=5`",
            || drill("kill phase=update iteration=5").same_bits(),
        ),
        case(
            "killed before its first checkpoint",
            "`kill phase=update iteration=1`",
            || drill("kill phase=update iteration=1").same_bits(),
        ),
        case(
            "killed while a checkpoint is due",
            "`kill phase=save iteration=4`",
            || drill("kill phase=save iteration=4").same_bits(),
        ),
        case(
            "an abort in C++ or Rust",
            "`abort phase=update iteration=4`",
            || drill("abort phase=update iteration=4").same_bits(),
        ),
        case("SIGTERM (SLURM, Kubernetes)", "`kill -TERM`", || {
            saved_and_resumed(libc::SIGTERM, "SIGTERM")
        }),
        case("Ctrl-C", "`kill -INT`", || {
            saved_and_resumed(libc::SIGINT, "SIGINT")
        }),
        case("SIGUSR1: save now", "`kill -USR1`", || {
            let place = Place::new();
            let child = endless(&place, &["runner.save_interval=0"]);
            assert_eq!(
                std::fs::read_dir(place.path("a/checkpoints"))
                    .unwrap()
                    .count(),
                0
            );
            child.send(libc::SIGUSR1);
            let saved = || {
                std::fs::read_dir(place.path("a/checkpoints"))
                    .unwrap()
                    .count()
                    > 0
            };
            wait(saved);
            let before = metrics(&place.path("a")).len();
            wait(|| metrics_so_far(&place) > before);
            child.send(libc::SIGTERM);
            let out = child.end();
            assert_eq!(out.status.code(), Some(130), "{}", text(&out));
            saw("wrote a checkpoint and went on", "nothing")
        }),
        case("kill -9 of the supervising process", "`kill -KILL`", || {
            let place = Place::new();
            let child = endless(&place, &["runner.save_interval=1"]);
            child.send(libc::SIGKILL);
            let out = child.end();
            assert_eq!(out.status.signal(), Some(libc::SIGKILL));
            // Nothing holds the folder any more.
            let n = metrics_so_far(&place) + 2;
            let n = format!("runner.max_iterations={n}");
            wait(|| {
                let again = place.run(&["train", "--resume", "a", "--quiet", &n]);
                again.status.success()
            });
            saw(
                "ended with its child; `--resume` went on",
                "nothing that was saved",
            )
        }),
        case(
            "a run that dies at once, every time",
            "`kill phase=update` without supervision of progress (`runner.max_restarts=0`)",
            || {
                let tried = train(&[
                    "--inject",
                    "kill phase=update iteration=3",
                    "runner.max_restarts=0",
                ]);
                assert_eq!(tried.output.status.code(), Some(1), "{}", tried.err());
                assert!(tried.err().contains("it is given up"), "{}", tried.err());
                saw(
                    "given up after `runner.max_restarts` restarts without a new checkpoint, exit code 1",
                    "nothing that was saved",
                )
            },
        ),
    ]
}
