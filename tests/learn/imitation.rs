//! A policy that imitates another run's, by the real program.

use crate::common::{Place, assert_same_bits, metrics};

const FIRST: &str = "[[task.observation]]";

/// The task with a group of all that its own policy sees; and that policy, the teacher.
fn taught() -> Place {
    let place = Place::new();
    let text = std::fs::read_to_string(place.path("pole.toml")).unwrap();
    let group =
        "[[task.observation]]\nname = \"all\"\nexpr = \"[qpos, qvel]\"\ngroup = \"teacher\"\n";
    let text = text.replacen(FIRST, &format!("{group}{FIRST}"), 1);
    std::fs::write(place.path("taught.toml"), text).unwrap();
    place.train("teacher", 5, &[]);
    place
}

fn train(place: &Place, out: &str, iterations: u64, more: &[&str]) -> std::path::PathBuf {
    let n = format!("runner.max_iterations={iterations}");
    let args = ["train", "taught.toml", "--quiet", "--out", out, &n];
    place.ok(&[&args[..], more].concat());
    place.path(out)
}

const TEACHER: &str = "ppo.imitation.teacher=teacher";

#[test]
fn the_distance_from_the_teacher_falls_and_is_logged() {
    let place = taught();
    let more = [TEACHER, "ppo.imitation.alone=true", "ppo.imitation.coef=10"];
    let more = [&more[..], &["ppo.kl_stop=0", "ppo.schedule=fixed"]].concat();
    let run = train(&place, "student", 30, &more);
    let off: Vec<f64> =
        metrics(&run).iter().map(|l| l["Loss/imitation"].as_f64().unwrap()).collect();
    assert!(off[29] < 0.5 * off[0], "{off:?}");
    // Without one nothing is logged, and the group changes no bit.
    let plain = train(&place, "plain", 2, &[]);
    assert!(metrics(&plain)[0].get("Loss/imitation").is_none());
    let own = place.train("own", 2, &[]);
    let weights = |run| -> Vec<_> {
        let all = crate::common::tensors(run).into_iter();
        all.filter(|(name, ..)| name.starts_with("learner/")).collect()
    };
    assert!(weights(&plain) == weights(&own));
}

#[test]
fn it_resumes_goes_on_in_threads_and_with_fewer_environments() {
    let place = taught();
    let whole = train(&place, "whole", 4, &[TEACHER]);
    let part = train(&place, "part", 2, &[TEACHER]);
    // The teacher learns on, and goes away: the run has its own copy.
    place.ok(&["train", "--resume", "teacher", "--quiet", "runner.max_iterations=9"]);
    std::fs::rename(place.path("teacher"), place.path("elsewhere")).unwrap();
    place.ok(&["train", "--resume", "part", "--quiet", "runner.max_iterations=3"]);
    let again = ["train", "taught.toml", TEACHER, "--resume", "auto", "--out", "part", "--quiet"];
    std::fs::rename(place.path("elsewhere"), place.path("teacher")).unwrap();
    place.ok(&[&again[..], &["runner.max_iterations=4"]].concat());
    assert_same_bits(&whole, &part);
    let crew = ["collector.kind=async", "collector.workers=2", "collector.max_staleness=0"];
    // The teacher as it was.
    let copy = "ppo.imitation.teacher=whole/teacher";
    let crew = train(&place, "crew", 4, &[&[copy][..], &crew].concat());
    let last = |run: &std::path::Path| metrics(run).pop().unwrap()["Loss/imitation"].as_f64();
    assert_eq!(last(&whole), last(&crew));
    let fault = "fail allocation phase=update iteration=2";
    let small = train(&place, "small", 4, &[TEACHER, "--inject", fault]);
    assert!(last(&small).unwrap().is_finite());
    // A student is a policy like any other: to act, it needs no teacher.
    std::fs::remove_dir_all(place.path("teacher")).unwrap();
    place.ok(&["eval", "whole", "--episodes", "4"]);
}

#[test]
fn a_teacher_that_does_not_fit_is_refused_with_its_key() {
    let place = taught();
    for (file, more, words) in [
        (
            "taught.toml",
            &["ppo.imitation.teacher=nowhere"][..],
            &["ppo.imitation.teacher", "no such folder"][..],
        ),
        ("pole.toml", &[TEACHER], &["ppo.imitation.group", "group = \"teacher\""]),
        (
            "taught.toml",
            &[TEACHER, "ppo.imitation.group=teachers"],
            &["task.observation[0].group", "did you mean \"teachers\"?"],
        ),
        ("taught.toml", &[TEACHER, "ppo.imitation.coef=-1"], &["ppo.imitation.coef"]),
        (
            "taught.toml",
            &["task.observation.all.expr=[qpos]", TEACHER],
            &["ppo.imitation.teacher", "sees"],
        ),
    ] {
        let said = place.fails(2, &[&["check", file], more].concat());
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    let said = place.ok(&["check", "taught.toml"]);
    assert!(said.contains("observation (group teacher)"), "{said}");
}
