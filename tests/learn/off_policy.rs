//! Learners with a replay buffer, by the real program: logs, repeats, resumes with the buffer,
//! the buffer after a back-off and a full disk.

use crate::common::{Place, REPLAY, TASK, assert_same_bits, metrics, tensors, text};

/// The small task for both learners.
fn place() -> Place {
    Place::with(&format!("{TASK}{REPLAY}"))
}

const BOTH: [&str; 2] = ["--profile=sac", "--profile=td3"];

#[test]
fn a_run_logs_what_its_learner_does_and_repeats() {
    for learner in BOTH {
        let place = place();
        let run = place.train("a", 4, &[learner]);
        let lines = metrics(&run);
        assert_eq!(lines.len(), 4);
        let number = |i: usize, key: &str| lines[i][key].as_f64();
        // One rollout was collected for the normaliser and is remembered.
        assert_eq!(number(0, "Replay/size"), Some(256.0));
        assert_eq!(number(0, "Replay/gradient_steps"), Some(16.0));
        assert_eq!(number(3, "Replay/size"), Some(640.0));
        assert_eq!(number(3, "Replay/gradient_steps"), Some(64.0));
        for key in ["Loss/value_function", "Loss/actor", "Loss/q_mean"] {
            assert!(number(3, key).unwrap().is_finite(), "{key}");
        }
        assert_eq!(number(3, "Guard/skipped_minibatches"), Some(0.0));
        assert!(lines[3].get("Loss/surrogate").is_none(), "that is PPO's");
        let drawn = learner.ends_with("sac");
        assert_eq!(number(3, "Policy/alpha").is_some(), drawn);
        let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
        assert!(!config.contains("= \"auto\""), "{config}");
        assert!(!config.contains("[profile"), "{config}");
        place.ok(&["train", "a/config.toml", "--quiet", "--out", "b"]);
        assert_same_bits(&run, &place.path("b"));
        let said = place.ok(&["eval", "a", "--episodes", "4"]);
        assert!(said.contains("return"), "{said}");
    }
}

/// Keys of the recipes for many environments.
const FAST: [&str; 9] = [
    "replay.n_step=3",
    "sac.num_atoms=21",
    "sac.use_cdq=false",
    "sac.alpha_with_critics=true",
    "sac.tanh_std=true",
    "sac.betas=[0.9,0.95]",
    "actor.activation=silu",
    "critic.activation=silu",
    "critic.layer_norm=true",
];
const FLASH: [&str; 7] = [
    "sac.num_atoms=21",
    "actor.architecture=flash_sac",
    "actor.activation=relu",
    "actor.hidden_dims=[8,8]",
    "critic.architecture=flash_sac",
    "critic.activation=relu",
    "critic.hidden_dims=[8,8]",
];

#[test]
fn a_resumed_run_remembers_and_ends_with_the_bits_of_one_never_stopped() {
    for (learner, storage, own) in [
        (BOTH[0], "replay.storage=host", &[][..]),
        (BOTH[0], "replay.storage=memmap", &FAST),
        (BOTH[1], "replay.storage=tiered", &[]),
        (BOTH[1], "replay.storage=device", &[]),
        (BOTH[0], "replay.sampler=prioritized", &FLASH),
        (BOTH[0], "replay.sampler=without_replacement", &[]),
    ] {
        let place = place();
        // Small enough that the buffer is full, and old transitions fall out of it.
        let small = ["replay.capacity=500", "replay.recent=150"];
        // The exponent of priorities would follow the length of the run.
        let more = [&[learner, storage, "replay.beta_end=0.4"], &small[..], own].concat();
        let whole = place.train("whole", 6, &more);
        let parts = place.train("parts", 3, &more);
        place.ok(&["train", "--resume", "parts", "--quiet", "runner.max_iterations=6"]);
        assert_same_bits(&whole, &parts);
        let size = |run| metrics(run).last().unwrap()["Replay/size"].as_f64();
        assert_eq!(size(&parts), Some(500.0), "{storage}");
    }
}

/// One bit in each part of the file, cuts, and no file: the run goes on and says what it lost.
#[test]
fn a_damaged_memory_costs_what_is_damaged_and_no_resume() {
    let place = place();
    for storage in ["host", "memmap"] {
        let storage = format!("replay.storage={storage}");
        let _ = std::fs::remove_dir_all(place.path("a"));
        let run = place.train("a", 3, &["--profile=sac", &storage]);
        let file = run.join("replay/rows.bin");
        let whole = std::fs::read(&file).unwrap();
        let place_of = (whole.len() - 12_288) / 2000;
        for (at, cut, lost) in [
            (Some(3), None, false),
            (Some(40), None, false),
            (Some(12_288 + 10), None, true),
            (Some(12_288 + 400 * place_of), None, true),
            (None, Some(20_000), true),
            (None, Some(5_000), true),
            (None, Some(0), true),
        ] {
            let again = place.path("b");
            let _ = std::fs::remove_dir_all(&again);
            let copied = std::process::Command::new("cp")
                .args(["-r", "a", "b"])
                .current_dir(place.0.path())
                .status();
            assert!(copied.unwrap().success());
            let mut bytes = whole[..cut.unwrap_or(whole.len())].to_vec();
            if let Some(at) = at {
                bytes[at] ^= 1;
            }
            std::fs::write(again.join("replay/rows.bin"), bytes).unwrap();
            let out = place.run(&["train", "--resume", "b", "runner.max_iterations=4"]);
            let err = text(&out);
            assert_eq!(out.status.code(), Some(0), "{at:?} {cut:?}\n{err}");
            assert_eq!(metrics(&again).len(), 4);
            let said = std::fs::read_to_string(again.join("log.txt")).unwrap();
            for words in [&err, &said] {
                let said = words.contains("does not repeat bit for bit");
                assert_eq!(said, lost, "{storage} {at:?} {cut:?}\n{words}");
            }
            if cut.is_some() || at.is_some_and(|at| at < 12_288) {
                assert!(err.contains("replay/rows.bin: "), "{err}");
            }
        }
        std::fs::remove_dir_all(run.join("replay")).unwrap();
        let out = place.run(&["train", "--resume", "a", "runner.max_iterations=4"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
        assert!(text(&out).contains("does not repeat bit for bit"), "{}", text(&out));
    }
}

/// `[[replay.transform]]` in a run's file: it acts, a resumed run has the bits of one never
/// stopped, and mistakes are shown in the file.
#[test]
fn transforms_act_and_resume_and_their_mistakes_have_a_place() {
    const TRANSFORMS: &str = "
[[replay.transform]]
kind = \"reward\"
scale = 0.5
[[replay.transform]]
kind = \"noise\"
noise = 0.01
noise_kind = \"normal\"
";
    let place = place();
    let plain = std::fs::read_to_string(place.path("pole.toml")).unwrap();
    let without = place.train("without", 6, &[BOTH[0]]);
    std::fs::write(place.path("pole.toml"), format!("{plain}{TRANSFORMS}")).unwrap();
    let said = place.ok(&["check", "pole.toml", BOTH[0]]);
    assert!(said.contains("[[replay.transform]]") && said.contains("noise_kind"));
    for storage in ["replay.storage=memmap", "replay.storage=host"] {
        let name = |of: &str| format!("{of}-{}", storage.rsplit('=').next().unwrap());
        let whole = place.train(&name("whole"), 6, &[BOTH[0], storage]);
        let parts = place.train(&name("parts"), 3, &[BOTH[0], storage]);
        let more = "runner.max_iterations=6";
        place.ok(&["train", "--resume", &name("parts"), "--quiet", more]);
        assert_same_bits(&whole, &parts);
        let weights = |run| {
            tensors(run)
                .into_iter()
                .find(|t| t.0.starts_with("learner/actor") && t.0.ends_with(".weight"))
        };
        assert!(weights(&whole) != weights(&without));
    }
    let wrong = TRANSFORMS.replace("0.5", "0.0");
    std::fs::write(place.path("pole.toml"), format!("{plain}{wrong}")).unwrap();
    let err = place.fails(2, &["check", "pole.toml"]);
    let line = plain.lines().count() + 4;
    assert!(err.contains(&format!("pole.toml:{line}")), "{err}");
    assert!(err.contains("number other than 0"), "{err}");
    let wrong = TRANSFORMS.replace("noise = 0.01", "noise = 0.01\nfields = [\"critic_obs\"]");
    std::fs::write(place.path("pole.toml"), format!("{plain}{wrong}")).unwrap();
    let err = place.fails(2, &["train", "pole.toml", BOTH[0]]);
    assert!(err.contains("no \"critic_obs\""), "{err}");
}

/// Critics with atoms, and actions, mean something else with other numbers.
#[test]
fn weights_of_other_meaning_are_refused_and_a_fixed_temperature_is_the_configurations() {
    let place = place();
    let own = [BOTH[0], "sac.num_atoms=11", "sac.tanh_std=true", "sac.init_alpha=0.5"];
    let run = place.train("a", 3, &own);
    let init = |more: &[&'static str]| {
        let args = ["train", "pole.toml", "--quiet", "runner.max_iterations=2", "--init-from", "a"];
        [&args[..], &own[..], more].concat()
    };
    for (set, said) in [
        ("sac.v_max=50", "sac.v_max = 20.0"),
        ("sac.v_min=-50", "sac.v_min = -20.0"),
        ("sac.tanh_std=false", "sac.tanh_std = true"),
        ("actor.min_std=0.02", "actor.min_std = "),
        ("sac.action_bound=2", "sac.action_bound = 1.0"),
    ] {
        let err = place.fails(2, &init(&[set, "--out", "b"]));
        assert!(err.contains(said) && err.contains("another network"), "{set}: {err}");
    }
    let alpha = |run: &std::path::Path| metrics(run).last().unwrap()["Policy/alpha"].as_f64();
    let learnt = alpha(&run).unwrap();
    assert!((learnt - 0.5).abs() > 1e-4, "{learnt}");
    place.ok(&init(&["sac.auto_alpha=false", "sac.init_alpha=0.25", "--out", "fixed"]));
    assert!((alpha(&place.path("fixed")).unwrap() - 0.25).abs() < 1e-6);
}

#[test]
fn prefetching_changes_nothing_but_time() {
    let place = place();
    let run = |out: &str, depth: &str| place.train(out, 3, &[BOTH[0], depth]);
    let none = run("none", "replay.prefetch=0");
    assert_same_bits(&none, &run("some", "replay.prefetch=4"));
}

#[test]
fn collection_beside_the_learner_feeds_the_memory_and_with_no_staleness_has_the_same_bits() {
    let place = place();
    let sync = place.train("sync", 3, &[BOTH[0]]);
    let parallel = ["collector.kind=async", "collector.workers=2"];
    let fresh = [&[BOTH[0], "collector.max_staleness=0"], &parallel[..]].concat();
    // Episodes that end in one rollout are listed worker by worker.
    let but_episodes = |run| -> Vec<_> {
        let all = tensors(run).into_iter();
        all.filter(|(name, ..)| name != "episodes").collect()
    };
    let parallel_run = place.train("parallel", 3, &fresh);
    assert!(but_episodes(&sync) == but_episodes(&parallel_run));
    for learner in BOTH {
        let stale = [&[learner], &parallel[..]].concat();
        let run = place.train(&format!("async{learner}"), 4, &stale);
        let last = metrics(&run).pop().unwrap();
        assert_eq!(last["Guard/skipped_minibatches"].as_f64(), Some(0.0));
        assert_eq!(last["Guard/worker_restarts"].as_f64(), Some(0.0));
        assert!(last["Loss/value_function"].as_f64().unwrap().is_finite());
    }
}

#[test]
fn a_back_off_keeps_what_is_remembered() {
    let place = place();
    for phase in ["collect", "update"] {
        let fault = format!("fail allocation phase={phase} iteration=3");
        let all = ["train", "pole.toml", "--quiet", BOTH[0], "--out", phase, "--inject", &fault];
        let out = place.run(&all);
        assert!(out.status.success(), "{}", text(&out));
        let lines = metrics(&place.path(phase));
        let last = lines.last().unwrap();
        assert_eq!(last["Perf/num_envs"].as_f64(), Some(4.0), "{phase}");
        // Warm-up and two iterations of 8 environments, one of 4.
        assert_eq!(last["Replay/size"].as_f64(), Some(448.0), "{phase}");
    }
}

/// Fewer environments after a back-off, more by a schedule, another time between checkpoints.
#[test]
fn a_resume_goes_on_in_a_memory_that_was_made_for_other_numbers() {
    let grown = "curriculum=[{key=\"env.num_envs\",points=[[0,8],[4,16]]}]";
    for (learner, storage, set) in [
        (BOTH[0], "replay.storage=host", ["--inject", "fail allocation phase=collect iteration=3"]),
        (BOTH[1], "replay.storage=memmap", ["--set", grown]),
        (BOTH[0], "replay.storage=tiered", ["--set", "runner.save_interval=3"]),
    ] {
        let place = place();
        let small = [learner, storage, "replay.capacity=500", "replay.recent=150"];
        let more = [&small[..], &set].concat();
        let whole = place.train("whole", 9, &more);
        let parts = place.train("parts", 6, &more);
        let next = ["runner.max_iterations=9", "runner.save_interval=50"];
        place.ok(&[&["train", "--resume", "parts", "--quiet"][..], &next].concat());
        assert_same_bits(&whole, &parts);
    }
}

#[test]
fn poisoned_updates_are_skipped_and_rolled_back() {
    let place = place();
    let fault = "nan gradient[3] update=2 minibatch=1";
    let skipped = place.train("a", 3, &[BOTH[1], "--inject", fault]);
    let lines = metrics(&skipped);
    assert_eq!(lines[1]["Guard/skipped_minibatches"].as_f64(), Some(1.0));
    assert_eq!(lines[2]["Guard/roll_backs"].as_f64(), Some(0.0));
    let fault = "nan parameter[3] update=2";
    let rolled = place.train("b", 3, &[BOTH[1], "--inject", fault]);
    let last = metrics(&rolled).pop().unwrap();
    assert_eq!(last["Guard/roll_backs"].as_f64(), Some(1.0));
    assert_eq!(last["Guard/non_finite_params"].as_f64(), Some(0.0));
    assert!(last["Loss/value_function"].as_f64().unwrap().is_finite());
}

#[test]
fn f11_a_memory_map_on_a_gpu_is_refused_with_the_ways_out() {
    let place = place();
    let err = place.fails(
        2,
        &["train", "pole.toml", BOTH[0], "replay.storage=memmap", "replay.storage_device=cuda:0"],
    );
    for word in ["replay.storage_device", "replay.storage = \"device\"", "drawn"] {
        assert!(err.contains(word), "{word}\n{err}");
    }
}

#[test]
fn f13_a_full_disk_is_an_error_and_the_checkpoint_stays() {
    let place = place();
    let more = [BOTH[0], "replay.storage=memmap", "runner.supervise=false"];
    let before = place.train("a", 2, &more);
    let checkpoint = tensors(&before);
    // No file may grow beyond this: the file of the buffer is larger.
    let out = place.limited(
        "-f 64",
        "train --resume a --quiet runner.max_iterations=40 log.tensorboard=false",
    );
    let err = text(&out);
    assert!(!err.contains("panicked"), "{err}");
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("the disk is full"), "{err}");
    assert!(tensors(&before) == checkpoint, "the newest checkpoint has other bits");
}

#[test]
fn f14_a_capacity_that_cannot_fit_is_refused_with_the_largest_that_would() {
    let place = place();
    let err = place.fails(2, &["train", "pole.toml", BOTH[0], "replay.capacity=2000000000"]);
    for word in ["bytes", "per transition", "free", "replay.capacity"] {
        assert!(err.contains(word), "{word}\n{err}");
    }
    let out = place.run(&["train", "pole.toml", BOTH[0], "runner.max_iterations=1"]);
    let said = text(&out);
    assert!(said.contains("bytes per transition"), "{said}");
}

#[test]
fn what_these_learners_cannot_use_is_refused() {
    let place = place();
    let config = std::fs::read_to_string(place.path("pole.toml")).unwrap();
    let choices = config.replace(
        "actuators = [\"slide\"]",
        "actuators = [\"slide\"]\nkind = \"discrete\"\nchoices = [[-1.0], [1.0]]",
    );
    std::fs::write(place.path("choices.toml"), choices).unwrap();
    let err = place.fails(2, &["train", "choices.toml", BOTH[0]]);
    assert!(err.contains("runner.algorithm") && err.contains("ppo"), "{err}");
    let err =
        place.fails(2, &["train", "pole.toml", BOTH[1], "device=cpu", "replay.pin_memory=true"]);
    assert!(err.contains("replay.pin_memory") && err.contains("there is none"), "{err}");
    for (profile, name) in BOTH.into_iter().zip(["sac", "td3"]) {
        let err = place.fails(2, &["train", "pole.toml", profile, "critic.shared=true"]);
        assert!(err.contains("critic.shared: the critics of"), "{err}");
        // 3 iterations of 128 steps, and a rollout before them.
        let check = |starts: &str| {
            let starts = format!("{name}.learning_starts={starts}");
            place.ok(&["check", "pole.toml", profile, &starts]).contains("nothing is learnt: ")
        };
        assert_eq!([check("512"), check("513")], [false, true]);
    }
    let err = place.fails(2, &["train", "pole.toml", "--profile", "sca"]);
    assert!(err.contains("did you mean \"sac\"?"), "{err}");
}

#[test]
fn curves_of_several_runs_are_drawn_in_one_picture() {
    let place = place();
    place.train("a", 8, &[]);
    place.train("b", 8, &[BOTH[0]]);
    let out = place.ok(&["plot", "PPO=a", "SAC=b", "--png", "both.png"]);
    assert!(out.contains("both.png"));
    assert!(std::fs::metadata(place.path("both.png")).unwrap().len() > 5000);
    let err = place.fails(2, &["plot", "a", "nowhere"]);
    assert!(err.contains("nowhere is not a run"), "{err}");
}
