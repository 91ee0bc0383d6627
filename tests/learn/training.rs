//! Real runs by the real program: the folder's contents, repeats, resumes, ends.

use crate::common::{Place, assert_same_bits, metrics, newest, tensors, text};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_run_leaves_a_self_contained_folder() {
    let place = Place::new();
    let out = place.ok(&["train", "pole.toml", "--seed", "7"]);
    let latest = place.path("runs/pole/latest");
    let run = latest.canonicalize().unwrap();
    for name in
        ["config.toml", "metrics.jsonl", "meta.json", "log.txt", "robot/cartpole.xml", "curve.png"]
    {
        assert!(run.join(name).is_file(), "{name}");
    }
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    for resolved in [
        "seed = 7",
        "device = \"cpu\"",
        "dt = 0.02",
        "backend = \"native\"",
        "kernel = \"generic-",
        "robot = \"robot/cartpole.xml\"",
    ] {
        assert!(config.contains(resolved), "{resolved}\n{config}");
    }
    assert!(!config.contains("= \"auto\""), "{config}");
    let lines = metrics(&run);
    assert_eq!(lines.len(), 3);
    for (i, line) in lines.iter().enumerate() {
        assert_eq!(line["iteration"], i + 1);
        // The first rollout only warmed the normaliser up; its steps count.
        assert_eq!(line["env_steps"], 128 * (i + 2));
        for key in [
            "wall_s",
            "Train/mean_reward",
            "Train/mean_episode_length",
            "Loss/surrogate",
            "Loss/value_function",
            "Loss/explained_variance",
            "Policy/mean_std",
            "Policy/kl",
            "Policy/clip_fraction",
            "Perf/total_fps",
            "Perf/collection_time",
            "Perf/learning_time",
            "Perf/physics_ms",
            "Guard/broken_envs",
            "Guard/contact_overflow",
            "Guard/unsolved",
            "Memory/rss_mib",
        ] {
            assert!(line.get(key).is_some(), "{key}");
        }
        assert!(line["Perf/total_fps"].as_f64().unwrap() > 0.0);
    }
    assert!(lines[2]["Episode_Reward/alive"].as_f64().unwrap() > 0.0);
    let events = std::fs::read_dir(&run)
        .unwrap()
        .any(|e| e.unwrap().file_name().to_string_lossy().starts_with("events.out"));
    assert!(events, "TensorBoard events");
    let meta: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["robot"], "cartpole");
    assert!(meta["command_line"].as_array().unwrap().len() >= 3);
    assert!(newest(&run).ends_with("iter_00000003.safetensors"));
    for said in ["all iterations done", "checkpoint", "ostler play"] {
        assert!(out.contains(said), "{said}\n{out}");
    }
}

#[test]
fn training_the_written_configuration_repeats_the_run() {
    let place = Place::new();
    let first = place.train("a", 2, &["--seed", "3"]);
    // The run does not need what it was made from.
    std::fs::remove_dir_all(place.path("robots")).unwrap();
    place.ok(&["train", "a/config.toml", "--quiet", "--out", "b"]);
    assert_same_bits(&first, &place.path("b"));
    place.ok(&["train", "a/config.toml", "--quiet", "--out", "c", "--seed", "4"]);
    assert_ne!(tensors(&first), tensors(&place.path("c")), "seeds matter");
}

#[test]
fn resuming_ends_with_the_bits_of_a_run_never_stopped() {
    let place = Place::new();
    let whole = place.train("whole", 6, &[]);
    let parts = place.train("parts", 2, &[]);
    place.ok(&["train", "--resume", "parts", "--quiet", "runner.max_iterations=4"]);
    place.ok(&[
        "train",
        "pole.toml",
        "--resume",
        "parts",
        "--quiet",
        "runner.max_iterations=6",
        "sim.threads=2",
    ]);
    assert_same_bits(&whole, &parts);
    let of = |run| -> Vec<(u64, u64, String)> {
        metrics(run)
            .iter()
            .map(|l| {
                (
                    l["iteration"].as_u64().unwrap(),
                    l["env_steps"].as_u64().unwrap(),
                    l["Loss/surrogate"].to_string() + &l["Train/mean_reward"].to_string(),
                )
            })
            .collect()
    };
    assert_eq!(of(&whole), of(&parts));
}

#[test]
fn resuming_from_an_older_checkpoint_sets_aside_what_came_after() {
    let place = Place::new();
    let run = place.train("a", 4, &["runner.save_interval=2"]);
    let before = tensors(&run);
    let older = run.join("checkpoints/iter_00000002.safetensors");
    place.ok(&["train", "--resume", older.to_str().unwrap(), "--quiet"]);
    assert_eq!(metrics(&run).len(), 4);
    assert_eq!(before, tensors(&run));
    let kept = run.join("checkpoints/replaced_from_2_1");
    assert!(kept.join("iter_00000004.safetensors").is_file());
    assert_eq!(metrics(&kept).len(), 4, "the numbers as they were");
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("replaced_from_2_1"), "{log}");
}

#[test]
fn resume_refuses_another_run() {
    let place = Place::new();
    place.train("a", 2, &[]);
    let err =
        place.fails(2, &["train", "--resume", "a", "ppo.gamma=0.5", "runner.max_iterations=9"]);
    assert!(err.contains("ppo.gamma: was 0.99, is 0.5"), "{err}");
    let err = place.fails(2, &["train", "--resume", "a"]);
    assert!(err.contains("has done 2 of 2"), "{err}");
    let file = place.path("robots/cartpole.xml");
    let robot = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, robot.replacen("0.6", "0.7", 1)).unwrap();
    let err = place.fails(2, &["train", "pole.toml", "--resume", "a", "runner.max_iterations=9"]);
    assert!(err.contains("differs from the run's own copy"), "{err}");
}

#[test]
fn init_from_takes_weights_and_starts_anew() {
    let place = Place::new();
    let a = place.train("a", 2, &[]);
    let b =
        place.train("b", 1, &["--init-from", "a", "ppo.learning_rate=1e-9", "ppo.schedule=fixed"]);
    let c = place.train("c", 1, &["ppo.learning_rate=1e-9", "ppo.schedule=fixed"]);
    assert_eq!(metrics(&b).len(), 1, "counts from the start");
    // With next to no learning the weights stay near those of the first run.
    let distance = |x: &std::path::Path| -> f64 {
        let floats = |run| -> Vec<f32> {
            tensors(run)
                .iter()
                // Weights to roll back to, good/, are kept beside those in use. The critic's
                // output layer follows the statistics of returns, however little is learnt.
                .filter(|t| t.0.starts_with("learner/actor") && t.0.ends_with(".weight"))
                .flat_map(|t| {
                    t.2.chunks_exact(4)
                        .map(|w| f32::from_le_bytes(w.try_into().unwrap()))
                        .collect::<Vec<_>>()
                })
                .collect()
        };
        let (p, q) = (floats(&a), floats(x));
        assert!(!p.is_empty() && p.len() == q.len());
        p.iter().zip(&q).map(|(u, v)| f64::from((u - v).powi(2))).sum()
    };
    assert!(distance(&b) < 0.01 * distance(&c), "{} {}", distance(&b), distance(&c));
}

/// Starts a long training and waits until it has logged iterations.
fn long_run(place: &Place, out: &str) -> std::process::Child {
    let child = place
        .ostler(&["train", "pole.toml", "--out", out, "runner.max_iterations=1000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = place.path(out).join("metrics.jsonl");
    let clock = Instant::now();
    while std::fs::read_to_string(&log).map_or(0, |t| t.lines().count()) < 3 {
        assert!(clock.elapsed() < Duration::from_secs(60), "no iterations");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &std::process::Child, signal: i32) {
    // SAFETY: kill takes two numbers; the child is ours and not yet waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
}

#[test]
fn a_signal_saves_and_the_run_goes_on_with_the_same_bits() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let place = Place::new();
        let child = long_run(&place, "a");
        signal(&child, number);
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{}", text(&out));
        let done = metrics(&place.path("a")).len() as u64;
        let name = newest(&place.path("a"));
        assert!(name.ends_with(format!("iter_{done:08}.safetensors")), "{name:?}");
        let n = format!("runner.max_iterations={}", done + 2);
        place.ok(&["train", "--resume", "a", "--quiet", &n]);
        let whole = place.train("whole", done + 2, &[]);
        assert_same_bits(&whole, &place.path("a"));
    }
}

#[test]
fn a_folder_in_use_is_refused_and_a_killed_run_leaves_no_lock() {
    let place = Place::new();
    let mut child = long_run(&place, "a");
    let err = place.fails(2, &["train", "pole.toml", "--out", "a"]);
    assert!(err.contains("in use by another process"), "{err}");
    child.kill().unwrap();
    child.wait().unwrap();
    let err = place.fails(2, &["train", "pole.toml", "--out", "a"]);
    assert!(err.contains("already holds a run"), "{err}");
}

#[test]
fn max_time_saves_and_ends_well() {
    let place = Place::new();
    let run = place.train("a", 1_000_000, &["--max-time", "1s"]);
    let done = metrics(&run).len() as u64;
    assert!(done >= 1);
    assert!(newest(&run).ends_with(format!("iter_{done:08}.safetensors")));
}

#[test]
fn stops_when_the_return_is_reached() {
    let place = Place::new();
    // Every episode returns at least 1, so a goal of 1 is reached once 100 ended.
    let run =
        place.train("a", 1000, &["runner.stop_at_return=1", "runner.init_at_random_ep_len=true"]);
    assert!(metrics(&run).len() < 1000);
    let by_evaluation = place.train(
        "b",
        1000,
        &["runner.stop_at_return=1", "runner.eval_interval=2", "runner.eval_episodes=3"],
    );
    let lines = metrics(&by_evaluation);
    assert_eq!(lines.len(), 2);
    assert!(lines[1]["Eval/mean_reward"].as_f64().unwrap() >= 1.0);
    assert!(lines[0].get("Eval/mean_reward").is_none());
}

#[test]
fn an_output_folder_that_cannot_be_written_is_explained() {
    let place = Place::new();
    std::fs::write(place.path("file"), "x").unwrap();
    let err = place.fails(2, &["train", "pole.toml", "--out", "file/run"]);
    assert!(err.contains("cannot make the folder file/run"), "{err}");
    let err = place.fails(2, &["train", "pole.toml", "--out", "/proc/run"]);
    assert!(err.contains("/proc/run"), "{err}");
}

#[test]
fn checkpoints_that_cannot_be_used_are_explained() {
    let place = Place::new();
    let run = place.train("a", 2, &[]);
    let file = newest(&run);
    let whole = std::fs::read(&file).unwrap();
    let resume = ["train", "--resume", "a", "--quiet", "runner.max_iterations=9"];
    let init = ["train", "pole.toml", "--quiet", "--out", "b", "--init-from", "a"];
    let mut flipped = whole.clone();
    let last = flipped.len() - 9;
    flipped[last] ^= 1;
    for bytes in [&whole[..whole.len() / 2], &whole[..4], &[], &flipped] {
        std::fs::write(&file, bytes).unwrap();
        for args in [&resume[..], &init[..]] {
            let err = place.fails(2, args);
            assert!(err.contains("cut short or damaged"), "{err}");
            assert!(err.contains("iter_00000002.safetensors"), "{err}");
        }
    }
    // Of another task.
    std::fs::write(&file, &whole).unwrap();
    let err = place.fails(
        2,
        &[
            "train",
            "pole.toml",
            "--quiet",
            "--out",
            "c",
            "--init-from",
            "a",
            "task.observation.state.expr=qpos.x",
        ],
    );
    assert!(err.contains("does not fit") && err.contains("observations"), "{err}");
    // Of another network.
    let err = place.fails(
        2,
        &[
            "train",
            "pole.toml",
            "--quiet",
            "--out",
            "d",
            "--init-from",
            "a",
            "actor.hidden_dims=[4]",
        ],
    );
    assert!(err.contains("does not fit"), "{err}");
    // Of one that is the same but for what it has beside these weights, or makes of them.
    for (set, said) in [
        ("actor.obs_normalization=false", "actor.obs_normalization = true"),
        ("critic.obs_normalization=false", "critic.obs_normalization = true"),
        ("actor.layer_norm=true", "it has no actor.0.norm"),
        ("actor.hidden_dims=[16]", "the run's own actor.hidden_dims"),
        ("critic.activation=tanh", "critic.activation = \"elu\""),
        ("actor.residual=true", "actor.residual = false"),
    ] {
        let err = place.fails(2, &[&init[..], &[set]].concat());
        assert!(err.contains(said), "{set}: {err}");
    }
    for out in ["b", "c"] {
        assert!(!place.path(out).exists(), "nothing is left behind");
    }
}

/// Observations that tell the time (a cart that drifts) and episodes that end by it: the
/// critic's values of last observations enter its targets, and it is never trained on them. The
/// values went up by a tenth in every iteration, to 10^20.
#[test]
fn a_critic_does_not_promise_itself_more_than_rewards_can_bring() {
    let place = Place::new();
    let more =
        ["env.num_envs=16", "runner.num_steps_per_env=32", "runner.eval_interval=0", "seed=1"];
    let run = place.train("a", 250, &more);
    let name = "learner/critic.return_normalizer.mean";
    let all = crate::common::tensors(&run);
    let (_, _, bytes) = all.iter().find(|(n, ..)| n == name).unwrap();
    let mean = f64::from_le_bytes(bytes[..8].try_into().unwrap());
    // A reward of 1 for ever, discounted by 0.99, is worth 100.
    assert!((10.0..=100.0).contains(&mean), "{mean}");
}
