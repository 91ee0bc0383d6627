//! Events in whole runs: the same bits however a run is interrupted, breaks counted by event,
//! `--events off`, mistakes with their places.

use crate::common::{Place, TASK, assert_same_bits, metrics, text};
use std::path::Path;

/// Chance of every kind in the cart-pole, seen by its policy.
const EVENTS: &str = r#"
[[task.observation]]
name = "privileged"
expr = "concat(event.load, event.wear, event.gust, event.lean, mass(pole), damping, gravity)"
[[task.event]]
name = "load"
when = "startup"
set = "mass(pole)"
operation = "scale"
range = [0.5, 2.0]
[[task.event]]
name = "wear"
when = "reset"
set = "damping(*)"
distribution = "normal"
mean = 0.05
std = 0.02
[[task.event]]
name = "gust"
when = "interval"
interval_s = [0.1, 0.3]
duration_s = 0.05
set = "force(pole)[0]"
range = [-2.0, 2.0]
[[task.event]]
name = "lean"
when = "interval"
interval_s = 0.2
set = "gravity[0:2]"
operation = "add"
range = [-0.5, 0.5]
"#;

fn place(events: &str) -> Place {
    let (task, rest) = TASK.split_once("[actor]").unwrap();
    Place::with(&format!("{task}{events}[actor]{rest}"))
}

/// Values logged under a tag, iteration by iteration.
fn logged(run: &Path, tag: &str) -> Vec<f64> {
    let number = |l: &serde_json::Value| l[tag].as_f64().unwrap_or(0.0);
    metrics(run).iter().map(number).collect()
}

#[test]
fn a_run_with_events_has_the_same_bits_however_it_is_interrupted() {
    let place = place(EVENTS);
    let saving = "runner.save_interval=2";
    let whole = place.train("whole", 8, &[saving]);
    let cut = place.train("cut", 3, &[saving]);
    place.ok(&["train", "--resume", "cut", "--quiet", "runner.max_iterations=8"]);
    assert_same_bits(&whole, &cut);
    let kill = "kill phase=update iteration=5";
    let killed = place.train("killed", 8, &["--inject", kill, saving]);
    assert_same_bits(&whole, &killed);
    let log = std::fs::read_to_string(killed.join("log.txt")).unwrap();
    assert!(log.contains("SIGKILL"), "{log}");
    let threads = place.train("threads", 8, &[saving, "sim.threads=3"]);
    assert_same_bits(&whole, &threads);
}

/// Kicks that nothing withstands, and a weak wind.
const KICKS: &str = r#"
[[task.event]]
name = "kick"
when = "interval"
interval_s = 1.6
set = "force(pole)[0]"
duration_s = 0.05
distribution = "choice"
choices = [0.0, 1e8]
[[task.event]]
name = "wind"
when = "interval"
interval_s = 2.4
set = "force(cart)[0]"
range = [-0.1, 0.1]
[[task.event]]
name = "load"
when = "startup"
set = "mass(pole)"
operation = "scale"
range = [0.5, 2.0]
"#;

#[test]
fn breaks_are_logged_by_event_and_the_run_says_which_it_suspects() {
    let place = place(KICKS);
    let more = ["task.termination[0].expr=\"time < 0\"", "env.episode_length_s=20.0"];
    let args = ["train", "pole.toml", "--out", "run", "runner.max_iterations=12"];
    let out = place.run(&[&args[..], &more].concat());
    assert!(out.status.success(), "{}", text(&out));
    let run = place.path("run");
    let [broken, kicked, blown] =
        ["Guard/broken_envs", "Guard/event/kick", "Guard/event/wind"].map(|tag| logged(&run, tag));
    let sum = |x: &[f64]| x.iter().sum::<f64>();
    assert!(sum(&broken) >= 10.0, "{broken:?}");
    assert_eq!(broken, kicked);
    assert!(sum(&blown) < sum(&broken), "{blown:?}");
    let said = String::from_utf8_lossy(&out.stdout);
    let last = said.lines().find(|l| l.starts_with("survived")).unwrap();
    let n = sum(&broken);
    let words = format!("{n} of {n} breaks came within 10 control steps after the event \"kick\"");
    assert!(last.contains(&words), "{last}");
    assert!(last.contains("broke and were reset (") && last.contains("/joint/"), "{last}");
    assert!(!last.contains("wind"), "{last}");
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("after the event \"kick\""), "{log}");
}

#[test]
fn policies_that_see_events_are_played_and_judged_without_them() {
    let place = place(EVENTS);
    place.train("run", 2, &[]);
    let mut returns = Vec::new();
    for events in ["on", "off"] {
        let args = ["eval", "run", "--episodes", "16", "--json", "--events", events];
        let said: serde_json::Value = serde_json::from_str(&place.ok(&args)).unwrap();
        assert_eq!(said["episodes"], 16, "{said}");
        returns.push(said["mean_return"].as_f64().unwrap());
    }
    assert_ne!(returns[0], returns[1]);
    let error = place.fails(2, &["eval", "run", "--backend", "rapier", "--events", "off"]);
    assert!(error.contains("reads event."), "{error}");
}

#[test]
fn a_policy_is_judged_with_noise_and_without() {
    let place = place(
        "[[task.observation]]\nname = \"loud\"\nexpr = \"qpos\"\nnoise = 2.0\n\
         [[task.reward]]\nname = \"near\"\nexpr = \"-norm2(qpos)\"\n",
    );
    place.train("run", 2, &[]);
    let judged = |noise: &[&str]| {
        let args = [&["eval", "run", "--episodes", "16", "--json"], noise].concat();
        let said: serde_json::Value = serde_json::from_str(&place.ok(&args)).unwrap();
        (said["noise"].as_bool().unwrap(), said["mean_return"].as_f64().unwrap())
    };
    let (exact, noisy) = (judged(&[]), judged(&["--noise", "on"]));
    assert_eq!(judged(&["--noise", "off"]), exact);
    assert_eq!([exact.0, noisy.0], [false, true]);
    assert_ne!(exact.1, noisy.1);
}

#[test]
fn check_says_what_events_draw_and_where_a_mistake_is() {
    let sound = place(EVENTS).ok(&["check", "pole.toml", "--quiet"]);
    for line in [
        "load: mass(pole) at startup, 1 number [-]",
        "wear: damping(*) at every reset, 2 numbers",
        "lean: gravity[0:2] every 5 to 5 control steps, 2 numbers [m/s^2]",
        "event \"wear\": 0.62 % of the draws",
    ] {
        assert!(sound.contains(line), "{line}\n{sound}");
    }
    for (from, to, words) in [
        ("event.load,", "event.lod,", "did you mean event.load?"),
        ("event.load,", "event,", "which event?"),
        ("event.load,", "event.load + time,", "[s]"),
        ("mass(pole),", "kp(slide),", "it is no position actuator"),
        ("range = [0.5, 2.0]", "range = [2.0, 0.5]", "upside down"),
        ("range = [0.5, 2.0]", "range = [-2.0, 0.5]", "not above 0"),
        ("set = \"damping(*)\"", "set = \"damping(h*x)\"", "no joint fits"),
    ] {
        let error = place(&EVENTS.replacen(from, to, 1)).fails(2, &["check", "pole.toml"]);
        let place = error.lines().next().unwrap();
        assert!(place.contains("pole.toml:"), "{error}");
        assert!(error.contains(words), "{from} {to}: {error}");
    }
}
