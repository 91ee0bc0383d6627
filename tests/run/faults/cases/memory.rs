//! Want of memory.

use super::seen::{drill, train};
use super::{Case, case, limited};

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
        case("no memory for a checkpoint", "`fail allocation phase=save iteration=2`", || {
            drill("fail allocation phase=save iteration=2").goes_on()
        }),
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
                assert!(tried.err().contains("8 environments do not fit"), "{}", tried.err());
                let seen = tried.look();
                tried.resume(&["fault.inject=[]"]).after(seen)
            },
        ),
        case("65,536 environments in 293 MiB", "`ulimit -d` (RLIMIT_DATA)", || {
            let mut tried =
                limited("-d 300000", "env.num_envs=65536 runner.max_iterations=2 log.curve=false");
            tried.envs = 65536;
            tried.ends(0).look()
        }),
    ]
}
