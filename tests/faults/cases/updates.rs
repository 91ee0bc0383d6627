//! Faults in updates.

use super::common::{Place, text};
use super::seen::{drill, train};
use super::{Case, case, saw};

pub fn all() -> Vec<Case> {
    vec![
        case("a gradient is NaN", "`nan gradient[7] update=3`", || {
            drill("nan gradient[7] update=3").goes_on()
        }),
        case(
            "a gradient is infinite",
            "`inf gradient[7] update=3 minibatch=2`",
            || drill("inf gradient[7] update=3 minibatch=2").goes_on(),
        ),
        case("a loss is NaN", "`nan loss update=3`", || {
            drill("nan loss update=3").goes_on()
        }),
        case("a weight is NaN", "`nan parameter[5] update=3`", || {
            drill("nan parameter[5] update=3").goes_on()
        }),
        case(
            "the actions' deviation is NaN",
            "`nan log_std update=3`",
            || drill("nan log_std update=3").goes_on(),
        ),
        case(
            "the optimiser's mean is NaN",
            "`nan first_moment[5] update=3`",
            || drill("nan first_moment[5] update=3").goes_on(),
        ),
        case(
            "the optimiser's variance is infinite",
            "`inf second_moment[5] update=3`",
            || drill("inf second_moment[5] update=3").goes_on(),
        ),
        case(
            "the observations' statistics are NaN",
            "`nan normalizer update=3`",
            || drill("nan normalizer update=3").goes_on(),
        ),
        case(
            "updates without a usable minibatch, three in a row",
            "`nan gradient ...` at every minibatch of updates 2 to 4",
            || {
                let faults: Vec<String> = (2..5)
                    .flat_map(|u| {
                        (0..4).map(move |m| format!("nan gradient update={u} minibatch={m}"))
                    })
                    .collect();
                let mut args = Vec::new();
                for f in &faults {
                    args.extend(["--inject", f]);
                }
                train(&args).goes_on()
            },
        ),
        case(
            "learning that falls apart for good",
            "`ppo.learning_rate=1e30`",
            || {
                let place = Place::new();
                let output = place.run(&[
                    "train",
                    "pole.toml",
                    "--quiet",
                    "--out",
                    "a",
                    "runner.max_iterations=100",
                    "ppo.learning_rate=1e30",
                    "ppo.schedule=fixed",
                ]);
                let err = text(&output);
                assert_eq!(output.status.code(), Some(1), "{err}");
                assert!(err.contains("rolled back 5 times"), "{err}");
                assert!(place.path("a/failure").is_dir());
                // The weights that are left are good ones.
                place.ok(&["eval", "a", "--episodes", "2"]);
                saw(
                    "rolled back 5 times, then stopped with exit code 1, a report and the good weights",
                    "what was learnt since the good weights",
                )
            },
        ),
    ]
}
