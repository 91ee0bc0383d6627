//! Evaluations during a run: that they say how good the policy is, notice when it
//! falls apart, and change nothing that is learnt.

use crate::common::process::{kill, wait};
use crate::common::{Place, assert_same_bits, metrics, root, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// Iteration and value of a tag, where it was logged.
fn logged(run: &Path, tag: &str) -> Vec<(u64, f64)> {
    let number = |l: &Value| Some((l["iteration"].as_u64()?, l.get(tag)?.as_f64()?));
    metrics(run).iter().filter_map(number).collect()
}

fn iterations(run: &Path) -> Vec<u64> {
    let all = logged(run, "Eval/mean_reward");
    all.iter().map(|e| e.0).collect()
}

/// The iteration of a checkpoint file.
fn iteration_of(checkpoint: &Path) -> u64 {
    let bytes = std::fs::read(checkpoint).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let meta: Value = serde_json::from_str(&header.metadata().as_ref().unwrap()["ostler"]).unwrap();
    meta["iteration"].as_u64().unwrap()
}

#[test]
fn a_run_is_evaluated_without_being_asked_and_learns_the_same() {
    let place = Place::new();
    // A twentieth are 6 iterations, 768 steps: 384 are worth 19 episodes of 20.
    let run = place.train("with", 110, &[]);
    let expected: Vec<u64> = (1..=18).map(|k| 6 * k).chain([110]).collect();
    assert_eq!(iterations(&run), expected);
    let last = metrics(&run).pop().unwrap();
    for tag in [
        "Eval/mean_reward",
        "Eval/ci95_reward",
        "Eval/std_reward",
        "Eval/quantile_5_reward",
        "Eval/mean_episode_length",
        "Perf/evaluation_time",
    ] {
        assert!(last[tag].as_f64().is_some(), "{tag}");
    }
    // The reward is 1 in every step.
    assert_eq!(last["Train/reward_per_step"], 1.0);
    let early = logged(&run, "Train/early_mean");
    // The first episode of full length, 20 steps, can end in the second iteration; 100
    // have ended later.
    assert_eq!((early[0].1, early[109].1), (1.0, 0.0));
    let without = place.train("without", 110, &["runner.eval_interval=0"]);
    assert!(iterations(&without).is_empty());
    assert_same_bits(&run, &without);
    let noted = std::fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(noted.contains("eval_interval = 6") && noted.contains("eval_episodes = 19"), "{noted}");
}

/// Whether the page lists a tag: as it is, or with a name in capitals in its place.
fn is_listed(page: &str, tag: &str) -> bool {
    let listed = page.split('`').skip(1).step_by(2).filter(|t| t.contains('/'));
    let upper = |part: &str| part.chars().all(|c| c.is_ascii_uppercase());
    listed.into_iter().any(|entry| {
        let (a, b): (Vec<&str>, Vec<&str>) = (entry.split('/').collect(), tag.split('/').collect());
        let same = |(x, y): (&&str, &&str)| x == y || upper(x);
        a.len() == b.len() && a[0] == b[0] && a.iter().zip(&b).all(same)
    })
}

#[test]
fn every_tag_is_in_the_list_of_metrics() {
    let page = root().join("docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(is_listed(&page, "Guard/nan/joint/hinge") && is_listed(&page, "Loss/actor"));
    assert!(!is_listed(&page, "Loss/nothing") && !is_listed(&page, "Train/mean_reward/x"));
    let place = Place::new();
    let runs = [
        place.train("ppo", 6, &["--inject", "nan qpos[1] env=3 step=50"]),
        place.train("threads", 2, &["collector.kind=async"]),
        place.train(
            "sac",
            3,
            &["runner.algorithm=sac", "sac.learning_starts=64", "replay.capacity=4096"],
        ),
    ];
    let mut missing = std::collections::BTreeSet::new();
    for line in runs.iter().flat_map(|run| metrics(run)) {
        let tags = line.as_object().unwrap().keys().filter(|k| k.contains('/'));
        missing.extend(tags.filter(|t| !is_listed(&page, t)).cloned());
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_time_limit_brings_evaluations_though_iterations_would_not() {
    let place = Place::new();
    let run = place.train("a", 1_000_000, &["--max-time", "2s"]);
    let all = iterations(&run);
    assert!((2..=25).contains(&all.len()), "{all:?}");
    // 16 episodes of 20 steps are worth 5 iterations of 128.
    assert!(all.windows(2).all(|w| w[1] - w[0] >= 5), "{all:?}");
}

/// `TASK` whose episodes end by their time alone.
fn endless() -> Place {
    Place::with(&crate::common::TASK.replace("> 0.2", "> 1e9"))
}

/// A training that is stopped once it has logged an iteration, and its end.
fn stopped(mut command: std::process::Command, run: &Path, after: Duration) -> Output {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait("an iteration", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
        (!text.is_empty()).then_some(())
    });
    std::thread::sleep(after);
    kill(child.id() as i32, libc::SIGTERM);
    // It hangs for ever, or not.
    let clock = Instant::now();
    wait("the end", || child.try_wait().unwrap());
    let out = child.wait_with_output().unwrap();
    assert!(clock.elapsed() < Duration::from_secs(30), "{}", text(&out));
    out
}

#[test]
fn a_signal_and_the_time_limit_end_an_evaluation_that_takes_for_ever() {
    let place = endless();
    let set = [
        "env.episode_length_s=8000000",
        "runner.eval_interval=1",
        "runner.eval_episodes=1",
        "runner.max_iterations=3",
    ];
    let args = |out| [&["train", "pole.toml", "--out", out][..], &set].concat();
    let out = stopped(
        place.ostler(&[&args("a")[..], &["runner.eval_interval=2"]].concat()),
        &place.path("a"),
        Duration::from_secs(7),
    );
    let err = text(&out);
    assert_eq!(out.status.code(), Some(130), "{err}");
    assert!(err.contains("iteration 2/3  evaluating, step "), "{err}");
    assert!(err.contains(" of 200,000,000"), "{err}");
    assert_eq!(iteration_of(&crate::common::newest(&place.path("a"))), 2);
    // By its time.
    let out = place.run(&[&args("b")[..], &["--max-time", "1s"]].concat());
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert_eq!(metrics(&place.path("b")).len(), 1, "{err}");
    for run in ["a", "b"] {
        let run = place.path(run);
        assert!(iterations(&run).is_empty());
        assert!(!run.join("checkpoints/best.safetensors").exists());
        assert!(said(&run).contains("was cut short and counts as none"));
    }
}

#[test]
fn an_evaluation_that_was_cut_short_is_made_by_the_resume_and_the_rest_is_the_same() {
    let place = endless();
    // An evaluation takes some seconds; whatever follows from it shows.
    let set = [
        "env.episode_length_s=800",
        "runner.eval_interval=2",
        "runner.eval_episodes=1",
        "runner.max_iterations=5",
        "curriculum=[{ key = \"task.reward.alive.weight\", over = \"Eval/mean_reward\", points = [[0, 1], [1e6, 2]] }]",
    ];
    let args = |out| [&["train", "pole.toml", "--quiet", "--out", out][..], &set].concat();
    place.ok(&args("whole"));
    let cut = place.path("cut");
    wait("an evaluation that is cut", || {
        let _ = std::fs::remove_dir_all(&cut);
        let out = stopped(place.ostler(&args("cut")), &cut, Duration::from_millis(200));
        assert_eq!(out.status.code(), Some(130), "{}", text(&out));
        // It may have come before the second iteration.
        let done = iteration_of(&crate::common::newest(&cut));
        (done == 2 && iterations(&cut).is_empty()).then_some(())
    });
    assert!(!cut.join("checkpoints/best.safetensors").exists());
    place.ok(&["train", "--resume", "cut", "--quiet"]);
    let whole = place.path("whole");
    assert_eq!(iterations(&cut), [2, 4, 5]);
    for tag in ["Eval/mean_reward", "Train/mean_reward", "Curriculum/task.reward.alive.weight"] {
        assert_eq!(logged(&cut, tag), logged(&whole, tag), "{tag}");
    }
    assert_same_bits(&whole, &cut);
    let best = |run: &Path| iteration_of(&run.join("checkpoints/best.safetensors"));
    assert_eq!(best(&cut), best(&whole));
}

#[test]
fn an_iteration_that_takes_too_long_after_a_signal_is_given_up() {
    let place = endless();
    let runs = [("a", "sync"), ("b", "async")].map(|(run, kind)| {
        let kind = format!("collector.kind={kind}");
        let args = ["train", "pole.toml", "--out", run, &kind];
        // Minutes for a rollout, of which nothing is logged.
        let set = ["runner.num_steps_per_env=1000000", "env.num_envs=2"];
        let mut child = place.ostler(&[&args[..], &set].concat());
        (run, child.stderr(Stdio::piped()).spawn().unwrap())
    });
    for (run, child) in &runs {
        wait("the run", || place.path(run).join("meta.json").exists().then_some(()));
        std::thread::sleep(Duration::from_secs(1));
        kill(child.id() as i32, libc::SIGTERM);
    }
    for (run, mut child) in runs {
        wait("the end", || child.try_wait().unwrap());
        let out = child.wait_with_output().unwrap();
        let err = text(&out);
        assert_eq!(out.status.code(), Some(130), "{err}");
        assert!(err.contains("iteration 1 was given up"), "{err}");
        assert_eq!(iteration_of(&crate::common::newest(&place.path(run))), 0);
    }
}

#[test]
fn nothing_is_evaluated_where_that_would_take_longer_than_the_run() {
    let place = endless();
    let args = ["train", "pole.toml", "--out", "a", "env.episode_length_s=8000000"];
    let out = place.run(&args);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert_eq!(err.matches("nothing is evaluated: 16 episodes").count(), 1, "{err}");
    let noted = std::fs::read_to_string(place.path("a/config.toml")).unwrap();
    assert!(noted.contains("eval_interval = 0"), "{noted}");
}

#[test]
fn what_evaluations_take_is_explained() {
    let place = Place::new();
    let blind = ["check", "pole.toml", "guard.max_return_drop=0.5", "runner.eval_interval=0"];
    let said = place.ok(&blind);
    assert!(said.contains("note: guard.max_return_drop = 0.5 does nothing"), "{said}");
    assert!(!place.ok(&blind[..3]).contains("does nothing"));
    let refused = |set: &str| place.fails(2, &["train", "pole.toml", "--set", set]);
    for (set, why) in [
        (
            "runner.eval_interval=-1",
            "runner.eval_interval takes \"auto\" or a whole number, 0 for none",
        ),
        (
            "runner.eval_interval=often",
            "runner.eval_interval takes \"auto\" or a whole number, 0 for none",
        ),
        (
            "runner.eval_episodes=0",
            "runner.eval_episodes takes \"auto\" or a whole number, 1 or more",
        ),
        ("guard.max_return_drop=2", "a number above 0 and at most 1, or 0 for never"),
    ] {
        let err = refused(set);
        assert!(err.contains(why) && err.contains(set), "{set}\n{err}");
    }
}

/// Evaluations with the noise judge otherwise, and nothing else is learnt.
#[test]
fn evaluations_keep_the_noise_of_observations_where_they_are_asked_to() {
    let task = crate::common::TASK;
    let task = task.replacen("expr = \"1\"", "expr = \"joint_vel(hinge)\"", 1);
    let place = Place::with(&task.replacen("expr = \"qpos\"", "expr = \"qpos\"\nnoise = 2.0", 1));
    let run = |out: &str, more: &str| place.train(out, 3, &["runner.eval_interval=1", more]);
    let (clean, noisy) =
        (run("clean", "runner.eval_noise=false"), run("noisy", "runner.eval_noise=true"));
    let returns = |run: &Path| logged(run, "Eval/mean_reward");
    assert_eq!((returns(&clean).len(), returns(&noisy).len()), (3, 3));
    assert!(returns(&clean).iter().zip(returns(&noisy)).all(|(a, b)| a.1 != b.1));
    assert_same_bits(&clean, &noisy);
    // It may be switched in a run that goes on.
    place.ok(&[
        "train",
        "--resume",
        "clean",
        "--quiet",
        "runner.eval_noise=true",
        "runner.max_iterations=4",
    ]);
    let last = |run: &Path| returns(run).pop().unwrap();
    place.ok(&["train", "--resume", "noisy", "--quiet", "runner.max_iterations=4"]);
    assert_eq!(last(&clean), last(&noisy));
}

/// The shipped cart-pole, whose actor's output is ruined in update 58: it pushes the cart
/// to one side from then on.
fn ruined(place: &Place, out: &str, more: &[&str]) -> PathBuf {
    let config = root().join("configs/cartpole.toml");
    let args = [
        "train",
        config.to_str().unwrap(),
        "--quiet",
        "--out",
        out,
        "runner.max_iterations=70",
        // The fourth evaluation, from which on falls are judged, meets a solved task.
        "runner.eval_interval=10",
        "runner.eval_episodes=16",
        "runner.save_interval=10",
        "learner.threads=1",
        "sim.threads=1",
        "sim.specialize=off",
        "--inject",
        "50 parameter name=actor.head.bias update=58",
    ];
    place.ok(&[&args[..], more].concat());
    place.path(out)
}

fn said(run: &Path) -> String {
    std::fs::read_to_string(run.join("log.txt")).unwrap()
}

#[test]
fn a_return_that_falls_is_noticed_and_without_a_key_nothing_is_done() {
    let place = Place::new();
    let run = ruined(&place, "a", &[]);
    let all = logged(&run, "Eval/mean_reward");
    let at = |n: u64| all.iter().find(|e| e.0 == n).unwrap().1;
    assert!(at(50) > 500.0 && at(60) < 100.0, "{all:?}");
    let drop = logged(&run, "Guard/return_drop");
    assert!(drop.iter().any(|d| d.0 == 60 && d.1 > 0.8), "{drop:?}");
    assert!(drop.iter().all(|d| d.0 >= 40 && (d.0 >= 60 || d.1 < 0.3)), "{drop:?}");
    let said = said(&run);
    let warnings = said.matches("the evaluated return fell to").count();
    assert_eq!(warnings, 1, "{said}");
    assert!(said.contains("guard.max_return_drop = 0.5"), "{said}");
    let best = all.iter().fold(all[0], |b, e| if e.1 > b.1 { *e } else { b });
    let file = run.join("checkpoints/best.safetensors");
    assert_eq!(iteration_of(&file), best.0, "{all:?}");
    let last = metrics(&run).pop().unwrap();
    assert_eq!(last["Guard/roll_backs"], 0.0);
    let out = place.run(&["train", "--resume", "a", "runner.max_iterations=71"]);
    let summary = String::from_utf8_lossy(&out.stdout).to_string();
    assert!(summary.contains("the evaluated return fell from"), "{summary}\n{}", text(&out));
}

#[test]
fn a_return_that_falls_too_far_rolls_back_to_the_best_weights_also_after_a_kill() {
    let place = Place::new();
    // Other weights that are good have stood no probation: they are those of the beginning.
    let drop = ["guard.max_return_drop=0.5", "guard.probation=1000"];
    let whole = ruined(&place, "whole", &drop);
    let roll_backs = logged(&whole, "Guard/roll_backs");
    let at = |n: u64| roll_backs.iter().find(|e| e.0 == n).unwrap().1;
    assert_eq!((at(59), at(60), at(70)), (0.0, 1.0, 1.0));
    // The next evaluation is as good as the best was.
    let all = logged(&whole, "Eval/mean_reward");
    let back = all.iter().find(|e| e.0 == 70).unwrap().1;
    assert!(back > 500.0, "{all:?}");
    let said_of = said(&whole);
    assert!(
        said_of.contains("back to the weights of the best evaluation, learning rate times 0.5"),
        "{said_of}"
    );
    assert!(whole.join("failure/iter_00000060_return_drop").is_dir());
    // Killed in between, and again after the roll-back: both decide as the whole run did.
    let kills = [
        drop[0],
        drop[1],
        "--inject",
        "kill phase=update iteration=57",
        "--inject",
        "kill phase=collect iteration=63",
    ];
    let killed = ruined(&place, "killed", &kills);
    assert!(said(&killed).contains("started again") || said(&killed).contains("SIGKILL"));
    assert_eq!(logged(&killed, "Eval/mean_reward"), all);
    assert_eq!(logged(&killed, "Guard/roll_backs"), roll_backs);
    assert_same_bits(&whole, &killed);
}
