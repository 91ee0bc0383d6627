//! Want of memory.

use super::common::metrics;
use super::seen::{ITERATIONS, drill, train};
use super::{Case, case, limited, saw};

pub fn all() -> Vec<Case> {
    vec![
        case(
            "no memory for a tensor while collecting",
            "`fail allocation phase=collect iteration=3`",
            || drill("fail allocation phase=collect iteration=3").goes_on(),
        ),
        case(
            "no memory for a tensor in the middle of an update",
            "`fail allocation phase=update iteration=3 after=40`",
            || drill("fail allocation phase=update iteration=3 after=40").goes_on(),
        ),
        case(
            "no memory for a checkpoint",
            "`fail allocation phase=save iteration=2`",
            || drill("fail allocation phase=save iteration=2").goes_on(),
        ),
        case(
            "no memory twice, the second time while it backs off",
            "`fail allocation phase=collect iteration=3` and `phase=resize iteration=3`",
            || {
                train(&[
                    "--inject",
                    "fail allocation phase=collect iteration=3",
                    "--inject",
                    "fail allocation phase=resize iteration=3",
                ])
                .goes_on()
            },
        ),
        case(
            "no memory, and later there is some again",
            "`fail allocation phase=update iteration=2` with `back_off.grow_after=3`",
            || {
                train(&[
                    "--inject",
                    "fail allocation phase=update iteration=2",
                    "back_off.grow_after=3",
                ])
                .goes_on()
            },
        ),
        case(
            "no memory and no fewer environments allowed",
            "`fail allocation phase=update iteration=4` with `back_off.min_num_envs=8`",
            || {
                let tried = train(&[
                    "--inject",
                    "fail allocation phase=update iteration=4",
                    "back_off.min_num_envs=8",
                ])
                .ends(1);
                assert!(
                    tried.err().contains("8 environments do not fit"),
                    "{}",
                    tried.err()
                );
                assert!(tried.run.join("failure").is_dir());
                tried
                    .place
                    .ok(&["train", "--resume", "a", "--quiet", "fault.inject=[]"]);
                assert_eq!(metrics(&tried.run).len() as u64, ITERATIONS);
                saw(
                    "stopped with exit code 1 and a report; `--resume` went on from iteration 2",
                    "1 iteration, done again",
                )
            },
        ),
        case(
            "65,536 environments in 600 MiB",
            "`ulimit -d` (RLIMIT_DATA)",
            || {
                let tried = limited(
                    "-d 614400",
                    "env.num_envs=65536 runner.max_iterations=2 log.curve=false",
                )
                .ends(0);
                assert!(
                    tried.err().contains("environments do not fit"),
                    "{}",
                    tried.err()
                );
                assert_eq!(metrics(&tried.run).len(), 2);
                saw("took as many as fit and said so", "nothing")
            },
        ),
    ]
}
