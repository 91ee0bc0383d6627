//! Schedules: numbers of the task and of environments, and that a run which was
//! interrupted follows them with the same bits.

use crate::common::{Place, TASK, assert_same_bits, metrics, text};
use std::path::Path;

const WEIGHT: &str = "task.reward.alive.weight";

fn place(schedules: &str) -> Place {
    Place::with(&format!("{TASK}\n{schedules}"))
}

/// Values logged under a tag, iteration by iteration.
fn logged(run: &Path, tag: &str) -> Vec<f64> {
    let number = |l: &serde_json::Value| l[tag].as_f64().unwrap_or(f64::NAN);
    metrics(run).iter().map(number).collect()
}

/// A run that was stopped after `first` iterations and went on, and one that was killed
/// in `kill` (a drill), end with the bits of one that never stopped.
fn the_same_however_interrupted(place: &Place, first: u64, kill: &str, more: &[&str]) {
    let with = |own: &[&'static str]| [more, own].concat();
    place.train("whole", 8, &with(&["runner.save_interval=2"]));
    place.train("cut", first, &with(&["runner.save_interval=2"]));
    place.ok(&["train", "--resume", "cut", "--quiet", "runner.max_iterations=8"]);
    assert_same_bits(&place.path("whole"), &place.path("cut"));
    place.train("killed", 8, &[more, &["--inject", kill, "runner.save_interval=2"]].concat());
    assert_same_bits(&place.path("whole"), &place.path("killed"));
    let log = std::fs::read_to_string(place.path("killed/log.txt")).unwrap();
    assert!(log.contains("SIGKILL"), "{log}");
    for tag in ["Perf/num_envs", "Train/mean_reward"] {
        let of = |run| format!("{:?}", logged(&place.path(run), tag));
        assert_eq!(of("whole"), of("cut"), "{tag}");
        assert_eq!(of("whole"), of("killed"), "{tag}");
    }
}

#[test]
fn a_number_of_the_task_follows_iterations() {
    let place = place(
        r#"[[curriculum]]
key = "task.reward.alive.weight"
points = [[2, 0.0], [4, 2.0], [5, 5.0]]"#,
    );
    let run = place.train("a", 7, &[]);
    let weights = logged(&run, &format!("Curriculum/{WEIGHT}"));
    assert_eq!(weights, [0.0, 0.0, 0.0, 1.0, 2.0, 5.0, 5.0]);
    // Not only logged: nothing is earned while the weight is zero.
    let earned = logged(&run, "Episode_Reward/alive");
    assert!(earned[..3].iter().all(|&r| r.is_nan() || r == 0.0), "{earned:?}");
    assert!(earned[6] > 0.0, "{earned:?}");
    the_same_however_interrupted(&place, 3, "kill phase=update iteration=6", &[]);
    // A policy is judged at the stage that it was trained in.
    let out = place.run(&["eval", "a", "--episodes", "8", "--json"]);
    let said = text(&out);
    let stage = format!("curriculum as at iteration 7: {WEIGHT} = 5");
    assert!(out.status.success() && said.contains(&stage), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let of = |key: &str| json[key].as_f64().unwrap();
    assert_eq!(of("mean_return"), 5.0 * of("mean_length"), "{json}");
    let ends: f64 = json["ended_by"].as_object().unwrap().values().filter_map(|x| x.as_f64()).sum();
    assert!((ends - 1.0).abs() < 1e-9, "{json}");
    // What it is to beat, and why its episodes end.
    let zero = place.ok(&["eval", "pole.toml", "--agent", "zero", "--episodes", "8"]);
    assert!(zero.contains("  ended by") && zero.contains("time_out"), "{zero}");
    let out = text(&place.run(&["eval", "pole.toml", "--agent", "zero", "--episodes", "8"]));
    assert!(out.contains(&format!("at no iteration; as in the file: {WEIGHT}")), "{out}");
    let checked = place.ok(&["check", "pole.toml"]);
    let line = format!("  {WEIGHT}: 0 at 2, 2 at 4, 5 at 5 of iteration, in straight lines");
    assert!(checked.contains(&line), "{checked}");
    let over = "curriculum[0].over=Episode_Reward/alife";
    let checked = place.ok(&["check", "pole.toml", "--set", over]);
    let note = format!("note: {WEIGHT} follows \"Episode_Reward/alife\", which is not logged");
    assert!(checked.contains(&note) && checked.contains("\"Episode_Reward/alive\"?"), "{checked}");
    let over = "curriculum[0].over=Terrain/mean_level";
    let checked = place.ok(&["check", "pole.toml", "--set", over]);
    let note = format!("note: {WEIGHT} follows \"Terrain/mean_level\", which is not logged");
    assert!(checked.contains(&note), "{checked}");
    let wrong = ["check", "pole.toml", "--set", "curriculum[0].over=steps"];
    assert!(place.fails(2, &wrong).contains("\"steps\" is not logged"));
}

/// What is easy to earn early is no goal, and no best.
#[test]
fn evaluations_follow_the_curriculum() {
    let place = place(
        r#"[[curriculum]]
key = "task.reward.alive.weight"
points = [[0, 4.0], [4, 1.0]]
steps = true"#,
    );
    let run = place.train("a", 8, &["runner.eval_interval=2", "runner.eval_episodes=8"]);
    let of = |tag| logged(&run, tag).into_iter().filter(|x| x.is_finite()).collect::<Vec<_>>();
    let [returns, lengths] = [of("Eval/mean_reward"), of("Eval/mean_episode_length")];
    let weights: Vec<f64> = returns.iter().zip(&lengths).map(|(r, l)| r / l).collect();
    assert_eq!(weights, [4.0, 4.0, 1.0, 1.0]);
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert_eq!(log.matches("evaluations follow the curriculum").count(), 1, "{log}");
    let best = place.run(&["eval", "a/checkpoints/best.safetensors", "--episodes", "8"]);
    let said = text(&best);
    assert!(said.contains(&format!("{WEIGHT} = 1")), "{said}");
    // By training episodes alone, too.
    let many = "env.num_envs=64";
    let run = place.train("b", 8, &["runner.eval_interval=0", many]);
    let best = place.run(&["eval", "b/checkpoints/best.safetensors", "--episodes", "8"]);
    assert!(text(&best).contains(&format!("{WEIGHT} = 1")), "{} {run:?}", text(&best));
    for interval in ["runner.eval_interval=1", "runner.eval_interval=0"] {
        let run = place.train("goal", 8, &[interval, many, "runner.stop_at_return=1"]);
        let done = metrics(&run).len();
        assert!((5..8).contains(&done), "{interval}: {done}");
        std::fs::remove_dir_all(&run).unwrap();
    }
}

#[test]
fn a_measured_schedule_goes_on_where_it_was() {
    let place = place(
        r#"[[curriculum]]
key = "task.reward.alive.weight"
over = "Train/mean_episode_length"
points = [[0, 1.0], [40, 3.0]]
ratchet = false
[[curriculum]]
key = "task.reset[0].uniform[1]"
over = "Train/mean_reward"
points = [[0, 0.01], [60, 0.1]]"#,
    );
    the_same_however_interrupted(&place, 5, "kill phase=collect iteration=6", &[]);
    // It moved, and more than once: a constant would come back with the same bits.
    let mut weights = logged(&place.path("whole"), &format!("Curriculum/{WEIGHT}"));
    assert_eq!(weights[0], 1.0);
    weights.dedup();
    assert!(weights.len() > 3, "{weights:?}");
}

#[test]
fn environments_come_as_planned() {
    let place = place(
        r#"[[curriculum]]
key = "env.num_envs"
points = [[0, 4], [3, 8], [5, 16], [7, 2]]"#,
    );
    // Cut where there are others than the configuration's 8: a scheduled change is no want
    // of memory, and holds nothing back later.
    the_same_however_interrupted(&place, 2, "kill phase=update iteration=6", &[]);
    let config = std::fs::read_to_string(place.path("cut/config.toml")).unwrap();
    assert!(!config.contains("changes = [["), "{config}");
    let sizes = logged(&place.path("whole"), "Perf/num_envs");
    assert_eq!(sizes, [4.0, 4.0, 4.0, 8.0, 8.0, 16.0, 16.0, 2.0]);
    let log = std::fs::read_to_string(place.path("whole/log.txt")).unwrap();
    assert!(!log.contains("WARN"), "{log}");
    // What is foreseen follows the schedule: 3 x 4, 2 x 8, 2 x 16 and 2 environments of 16 steps.
    let checked = place.ok(&["check", "pole.toml", "-q", "runner.max_iterations=8"]);
    for expected in [
        "iteration: 2 to 16 environments x 16 steps = 32 to 256 transitions",
        "run: at most 8 iterations, 992 environment steps",
        "MiB with 16 environments",
    ] {
        assert!(checked.contains(expected), "{expected}\n{checked}");
    }
    assert!(log.contains("MiB with 16 environments"), "{log}");
}

#[test]
fn right_after_a_roll_back_a_run_goes_on_as_if_it_had_not_stopped() {
    let place = place("");
    let fault = ["--inject", "nan parameter[5] update=3"];
    the_same_however_interrupted(&place, 3, "kill phase=update iteration=4", &fault);
    for run in ["whole", "cut", "killed"] {
        let roll_backs = logged(&place.path(run), "Guard/roll_backs");
        assert_eq!(roll_backs, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "{run}");
    }
}

#[test]
fn a_back_off_that_a_kill_took_back_is_repeated_and_grown_out_of_at_the_same_time() {
    let place = place("");
    // No memory in the fourth iteration, and a kill before it is in a checkpoint.
    let fault = ["--inject", "fail allocation phase=collect iteration=4"];
    let more = [&fault[..], &["back_off.grow_after=3"]].concat();
    the_same_however_interrupted(&place, 5, "kill phase=update iteration=4", &more);
    let sizes = logged(&place.path("killed"), "Perf/num_envs");
    assert_eq!(sizes, [8.0, 8.0, 8.0, 4.0, 4.0, 4.0, 8.0, 8.0]);
}

/// What a schedule leads to is tried before anything is trained.
#[test]
fn what_a_schedule_leads_to_is_tried_at_the_start() {
    let place = place(
        r#"[[curriculum]]
key = "task.reset[0].uniform[0]"
points = [[0, -0.01], [6, 0.5]]"#,
    );
    for command in [&["check", "pole.toml"][..], &["train", "pole.toml", "--out", "a"]] {
        let err = place.fails(2, command);
        // One line with the inner mistake, shown at the point.
        let point = "curriculum[0].points[1]: where \"iteration\" is 6 the task cannot be: task.";
        assert!(err.contains(point) && err.contains("upside down"), "{err}");
        assert!(!err.contains("\\u000a"), "{err}");
    }
    let twice = "curriculum=[{key=\"task.reward.alive.weight\",points=[[0,1]]},\
                 {key=\"task.reward[0].weight\",points=[[0,2]]}]";
    let err = place.fails(2, &["check", "pole.toml", twice]);
    assert!(err.contains("has a schedule already"), "{err}");
}

#[test]
fn a_schedule_over_what_is_never_logged_is_named_once() {
    let place = place(
        r#"[[curriculum]]
key = "task.reward.alive.weight"
over = "Train/mean_rewrad"
points = [[0, 1.5], [40, 3.0]]"#,
    );
    let out = place.run(&["train", "pole.toml", "--out", "a", "runner.max_iterations=4"]);
    let err = text(&out);
    let said = "task.reward.alive.weight follows \"Train/mean_rewrad\", which is not logged, and stays at 1.5; did you mean \"Train/mean_reward\"?";
    assert_eq!(err.matches(said).count(), 1, "{err}");
}

/// Its last value is what the file wants, and no iteration has it.
#[test]
fn a_schedule_that_ends_after_the_run_is_told() {
    let place = place(
        r#"[[curriculum]]
key = "task.reward.alive.weight"
points = [[0, 1], [40, 3]]"#,
    );
    let said = "note: the curriculum goes on after the run's 40 iterations: \
                task.reward.alive.weight comes to 1, and to 3 at 40; ";
    let checked = |n: u32, steps: &str| {
        place.ok(&["check", "pole.toml", &format!("runner.max_iterations={n}"), steps])
    };
    let [lines, steps] = ["curriculum[0].steps=false", "curriculum[0].steps=true"];
    // A line comes to within an iteration of its end, a step does not.
    assert!(checked(40, steps).contains(said), "{}", checked(40, steps));
    assert!(checked(39, lines).contains("weight comes to 2.9, and to 3 at 40"));
    for (n, how) in [(40, lines), (41, steps)] {
        assert!(!checked(n, how).contains("goes on after"), "{}", checked(n, how));
    }
    // The number of environments changes in steps, whatever the file says.
    let environments = r#"curriculum=[{ key = "env.num_envs", points = [[0, 4], [40, 8]] }]"#;
    assert!(checked(40, environments).contains("env.num_envs comes to 4, and to 8 at 40"));
    let out = text(&place.run(&["train", "pole.toml", "--out", "a", "runner.max_iterations=2"]));
    assert_eq!(out.matches("weight comes to 1.05, and to 3 at 40").count(), 1, "{out}");
}

#[test]
fn the_summary_says_what_was_survived() {
    let place = Place::new();
    let out = place.ok(&[
        "train",
        "pole.toml",
        "--out",
        "a",
        "runner.max_iterations=5",
        "--inject",
        "nan qpos[1] env=3 step=20",
        "--inject",
        "nan parameter[5] update=2",
        "--inject",
        "fail allocation phase=update iteration=4",
    ]);
    let line = out.lines().find(|l| l.starts_with("survived")).unwrap();
    for part in ["1 environment broke", "1 roll-back", "4 instead of 8 environments"] {
        assert!(line.contains(part), "{out}");
    }
    assert!(out.contains("failure/iter_00000002_non_finite_params"), "{out}");
    let quiet = place.ok(&["train", "pole.toml", "--out", "b", "runner.max_iterations=2"]);
    assert!(!quiet.contains("survived") && !quiet.contains("report "), "{quiet}");
}
