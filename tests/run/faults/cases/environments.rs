//! Faults in environments.

use super::seen::{drill, train};
use super::{Case, case};

pub fn all() -> Vec<Case> {
    vec![
        case("a joint's position is NaN", "`nan qpos[1] env=3 step=50`", || {
            drill("nan qpos[1] env=3 step=50").goes_on()
        }),
        case("a joint's velocity is infinite", "`inf qvel[0] env=3 step=50`", || {
            drill("inf qvel[0] env=3 step=50").goes_on()
        }),
        case("a joint is too fast", "`8 qvel[0] env=3 step=50` with `sim.max_speed=5`", || {
            let fast = "8 qvel[0] env=3 step=50";
            train(&["--inject", fast, "sim.max_speed=5"]).goes_on()
        }),
        case(
            "a joint is too far away",
            "`0.9 qpos[0] env=3 step=50` with `sim.max_position=0.5`",
            || {
                let far = "0.9 qpos[0] env=3 step=50";
                train(&["--inject", far, "sim.max_position=0.5"]).goes_on()
            },
        ),
        // So much that the same joint is the first to be no number whatever the processor
        // rounds; smaller ones end in a speed or in either joint.
        case(
            "a speed that no number can hold a step later",
            "`1e20 qvel[1] env=3 step=50`",
            || drill("1e20 qvel[1] env=3 step=50").goes_on(),
        ),
        case(
            "a position that no number can hold a step later",
            "`1e20 qpos[0] env=3 step=50`",
            || drill("1e20 qpos[0] env=3 step=50").goes_on(),
        ),
        case("an action is NaN", "`nan action[0] env=3 step=50`", || {
            drill("nan action[0] env=3 step=50").goes_on()
        }),
        case("an observation is infinite", "`inf observation[2] env=3 step=50`", || {
            drill("inf observation[2] env=3 step=50").goes_on()
        }),
        case("a reward is NaN", "`nan reward env=3 step=50`", || {
            drill("nan reward env=3 step=50").goes_on()
        }),
        case("a thread of the simulation panics", "`panic worker env=3 step=50`", || {
            // All environments of its block begin anew: here that is every one.
            train(&["--inject", "panic worker env=3 step=50"]).goes_on()
        }),
        case(
            "half of the environments break in every step of an iteration",
            "`nan qpos[0] share=0.5 step=...` (steps 49 to 64)",
            || {
                let mut args = Vec::new();
                let faults: Vec<String> =
                    (49..65).map(|s| format!("nan qpos[0] share=0.5 step={s}")).collect();
                for f in &faults {
                    args.extend(["--inject", f]);
                }
                let tried = train(&args);
                let all = std::fs::read_dir(tried.run.join("failure")).unwrap();
                let folder = all.map(|e| e.unwrap().path()).next().unwrap();
                // And its report shows it again.
                let shown = tried.place.ok(&["replay", folder.to_str().unwrap()]);
                assert!(shown.contains("the same as in the report"), "{shown}");
                let beyond = ["replay", folder.to_str().unwrap(), "--env", "8"];
                let refused = tried.place.fails(2, &beyond);
                assert!(refused.contains("environments 0 to 7"), "{refused}");
                tried.goes_on()
            },
        ),
    ]
}
