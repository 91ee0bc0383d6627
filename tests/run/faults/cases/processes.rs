//! Deaths and signals.

use super::seen::{Seen, Tried, drill, saved};
use super::{Case, case, endless, goes_on};
use crate::common::Place;
use crate::common::process::{kill, parent_of, trainer_of, wait};

fn saved_and_resumed(signal: i32) -> Seen {
    let place = Place::new();
    let child = endless(&place, &[]);
    child.send(signal);
    let tried = child.end(place);
    let seen = tried.look();
    tried.resume(&[]).after(seen)
}

/// SIGKILL for each process that trains, as soon as it does, until there are no more.
fn killed_every_time() -> Tried {
    let place = Place::new();
    let child = endless(&place, &["runner.save_interval=3"]);
    wait("a checkpoint", || saved(&place.path("a")).pop());
    let supervisor = child.id();
    let mut last = None;
    // The supervisor waits for longer and longer, then gives up; it is a zombie then.
    while parent_of(supervisor).is_some() {
        match trainer_of(supervisor) {
            Some(trainer) if last != Some(trainer) => {
                kill(trainer, libc::SIGKILL);
                last = Some(trainer);
            }
            _ => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    }
    child.end(place)
}

pub fn all() -> Vec<Case> {
    vec![
        case("killed (SIGKILL) while collecting", "`kill phase=collect iteration=4`", || {
            drill("kill phase=collect iteration=4").same_bits()
        }),
        case("killed in an update", "`kill phase=update iteration=5`", || {
            drill("kill phase=update iteration=5").same_bits()
        }),
        case("killed before its first checkpoint", "`kill phase=update iteration=1`", || {
            drill("kill phase=update iteration=1").same_bits()
        }),
        case("killed while a checkpoint is due", "`kill phase=save iteration=4`", || {
            drill("kill phase=save iteration=4").same_bits()
        }),
        case("an abort in C++ or Rust", "`abort phase=update iteration=4`", || {
            drill("abort phase=update iteration=4").same_bits()
        }),
        case("SIGTERM (SLURM, Kubernetes)", "`kill -TERM`", || saved_and_resumed(libc::SIGTERM)),
        case("Ctrl-C", "`kill -INT`", || saved_and_resumed(libc::SIGINT)),
        case("SIGUSR1: save now", "`kill -USR1`", || {
            let place = Place::new();
            let child = endless(&place, &["runner.save_interval=0"]);
            let run = place.path("a");
            assert!(saved(&run).is_empty());
            child.send(libc::SIGUSR1);
            let first = wait("a checkpoint", || saved(&run).pop());
            goes_on(&place);
            // Between the two it saved nothing of itself.
            assert_eq!(saved(&run), [first]);
            child.send(libc::SIGTERM);
            let tried = child.end(place);
            let kept = saved(&run).contains(&first);
            let wrote = if kept { "wrote" } else { "wrote and lost" };
            let seen = tried.look();
            Seen {
                did: format!("{wrote} a checkpoint and went on; at SIGTERM {}", seen.did),
                ..seen
            }
        }),
        case("kill -9 of the supervising process", "`kill -KILL`", || {
            let place = Place::new();
            let child = endless(&place, &["runner.save_interval=1"]);
            let trainer = trainer_of(child.id()).unwrap();
            child.send(libc::SIGKILL);
            let tried = child.end(place);
            wait("the end of its child", || parent_of(trainer).is_none().then_some(()));
            let seen = tried.look().and("its child ended, too", None);
            // Nothing holds the folder any more.
            tried.resume(&[]).after_death(seen)
        }),
        case(
            "a run that dies at once, every time",
            "`kill -KILL` of every process that trains, from its third iteration on",
            || {
                let tried = killed_every_time().ends(1);
                let seen = tried.look();
                tried.resume(&[]).after_death(seen)
            },
        ),
    ]
}
