//! Lists, named expressions, states and metrics of a task in whole runs: logged, evaluated,
//! shown, resumed.

use crate::common::{Place, TASK, assert_same_bits, metrics};

/// Parts of the task that the others have not.
const MORE: &str = r#"
[task.names]
joint = ["hinge", "slider"]
[task.let]
tilt = "abs(joint_pos(hinge))"
"beyond(x, most)" = "x > most"
each_speed = "1 * joint_vel({joint})"
[[task.state]]
name = "steps"
init = "0"
update = "state.steps + 1"
[[task.state]]
name = "{joint}_most"
init = "abs(joint_pos({joint}))"
update = "max(state.{joint}_most, abs(joint_pos({joint})))"
[[task.metric]]
name = "worst_tilt"
expr = "state.hinge_most"
over = "last"
[[task.metric]]
name = "speed"
expr = "sum(abs(each(joint, each_speed)))"
[[task.metric]]
name = "length"
expr = "state.steps + 1"
over = "max"
[[task.metric]]
name = "success"
expr = "not beyond(tilt, 0.05)"
over = "any"
[[task.observation]]
name = "kept"
expr = "[state.steps / 20, each(joint, 1 * state.{joint}_most)]"
"#;

fn place() -> Place {
    let at = TASK.find("[actor]").unwrap();
    let (task, rest) = TASK.split_at(at);
    Place::with(&format!("{task}{MORE}{rest}"))
}

#[test]
fn metrics_are_logged_evaluated_and_shown() {
    let place = place();
    let run = place.train("a", 4, &["runner.eval_interval=2"]);
    let lines = metrics(&run);
    let ended = |l: &&serde_json::Value| l.get("Metrics/success").is_some();
    let seen = lines.iter().rev().find(ended).unwrap();
    let number = |line: &serde_json::Value, tag: &str| line[tag].as_f64().unwrap();
    let share = number(seen, "Metrics/success");
    assert!((0.0..=1.0).contains(&share), "{share}");
    assert!(number(seen, "Metrics/speed") > 0.0);
    assert!(number(seen, "Metrics/worst_tilt") > 0.0);
    // Steps are counted from 0 in the first step's metrics.
    let evaluated = lines.iter().find(|l| l.get("Eval/Metrics/length").is_some());
    let evaluated = evaluated.unwrap();
    let (counted, length) = ("Eval/Metrics/length", "Eval/mean_episode_length");
    assert_eq!(number(evaluated, counted), number(evaluated, length));

    let said = place.ok(&["eval", "a", "--episodes", "6"]);
    let at = |word: &str| said.find(word).unwrap_or_else(|| panic!("{word}: {said}"));
    assert!(at("success") < at("worst_tilt") && at("worst_tilt") < at("mean return"));
    let said = place.run(&["eval", "a", "--episodes", "6", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let mean = |name: &str| json["metrics"][name]["mean"].as_f64().unwrap();
    assert_eq!(mean("length"), json["mean_length"].as_f64().unwrap());
    assert!((0.0..=1.0).contains(&mean("success")));

    // A run that was stopped goes on with the same bits, states and all.
    let place = self::place();
    let whole = place.train("whole", 4, &[]);
    place.train("part", 2, &[]);
    let more = "runner.max_iterations=4";
    place.ok(&["train", "--resume", "part", "--quiet", more]);
    assert_same_bits(&whole, &place.path("part"));
}

#[test]
fn check_lists_what_is_defined_and_says_where_it_is_wrong() {
    let place = place();
    let said = place.ok(&["check", "pole.toml", "--quiet"]);
    for line in [
        "joint                hinge, slider",
        "tilt                 rad",
        "beyond(x, most)      function",
        "for each joint",
        "steps                any              0; then state.steps + 1",
        "hinge_most           rad",
        "success              -          any   not beyond(tilt, 0.05)",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let task = std::fs::read_to_string(place.path("pole.toml")).unwrap();
    let wrong =
        task.replace("abs(joint_pos(hinge))\"\n\"beyond", "abs(joint_pos(hing))\"\n\"beyond");
    assert_ne!(task, wrong);
    std::fs::write(place.path("pole.toml"), &wrong).unwrap();
    let line = wrong.lines().position(|l| l.starts_with("tilt =")).unwrap() + 1;
    let said = place.fails(2, &["check", "pole.toml"]);
    for part in [
        format!("pole.toml:{line}:"),
        "no joint called \"hing\"".into(),
        "did you mean \"hinge\"?".into(),
    ] {
        assert!(said.contains(&part), "{part}\n{said}");
    }
    // In a function: with who uses it.
    let wrong = task.replace("\"x > most\"", "\"x > most + 1 + tiltt\"");
    std::fs::write(place.path("pole.toml"), &wrong).unwrap();
    let line = wrong.lines().position(|l| l.starts_with("\"beyond")).unwrap() + 1;
    let said = place.fails(2, &["check", "pole.toml"]);
    for part in [
        format!("pole.toml:{line}:"),
        "unknown name `tiltt`".into(),
        "used by task.metric[3].expr".into(),
        "did you mean `tilt`?".into(),
    ] {
        assert!(said.contains(&part), "{part}\n{said}");
    }
}
