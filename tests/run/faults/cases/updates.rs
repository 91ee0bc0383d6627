//! Faults in updates.

use super::seen::{Tried, drill, train};
use super::{Case, case};
use crate::common::Place;

pub fn all() -> Vec<Case> {
    vec![
        case("a gradient is NaN", "`nan gradient[7] update=3`", || {
            drill("nan gradient[7] update=3").goes_on()
        }),
        case("a gradient is infinite", "`inf gradient[7] update=3 minibatch=2`", || {
            drill("inf gradient[7] update=3 minibatch=2").goes_on()
        }),
        case("a loss is NaN", "`nan loss update=3`", || drill("nan loss update=3").goes_on()),
        case("a weight is NaN", "`nan parameter[5] update=3`", || {
            drill("nan parameter[5] update=3").goes_on()
        }),
        case("the actions' standard deviation is NaN", "`nan log_std update=3`", || {
            drill("nan log_std update=3").goes_on()
        }),
        case("the optimiser's mean is NaN", "`nan first_moment[5] update=3`", || {
            drill("nan first_moment[5] update=3").goes_on()
        }),
        case("the optimiser's variance is infinite", "`inf second_moment[5] update=3`", || {
            drill("inf second_moment[5] update=3").goes_on()
        }),
        case("the observations' statistics are NaN", "`nan normalizer update=3`", || {
            drill("nan normalizer update=3").goes_on()
        }),
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
        case("learning that falls apart for good", "`ppo.learning_rate=1e30`", || {
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
            let tried = Tried::new(place, output).ends(1);
            // The weights that are left are good ones.
            let said = tried.place.ok(&["eval", "a", "--episodes", "2", "--json"]);
            let said: serde_json::Value = serde_json::from_str(&said).unwrap();
            let length = said["mean_length"].as_f64().unwrap();
            assert!(length >= 1.0, "{said}");
            tried.look().and("`ostler eval` runs what it saved", None)
        }),
    ]
}
