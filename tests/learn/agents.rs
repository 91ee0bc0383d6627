//! Several agents in one world, by the real program: shared and separate policies, what
//! is logged, what repeats, resumes, goes on in other threads and with fewer worlds.

use crate::common::carts::{CARTS, TWO};
use crate::common::{Place, assert_same_bits, metrics, tensors};

fn place() -> Place {
    let place = Place::with(TWO);
    std::fs::write(place.path("robots/carts.xml"), CARTS).unwrap();
    place
}

const SEPARATE: &str = "agents.policies=separate";
const PAST: &str = "self_play.window=2";
const CENTRAL: &str = "agents.centralized_critic=true";

fn names(run: &std::path::Path) -> Vec<(String, Vec<usize>)> {
    let all = tensors(run).into_iter();
    all.map(|(name, shape, _)| (name, shape)).collect()
}

fn shape(run: &std::path::Path, name: &str) -> Option<Vec<usize>> {
    let name = format!("learner/{name}");
    let found = names(run).into_iter().find(|(n, _)| *n == name);
    found.map(|(_, shape)| shape)
}

#[test]
fn one_policy_decides_for_all_and_its_critic_sees_what_it_is_to_see() {
    for (critic, width) in [(None, 3), (Some(CENTRAL), 6)] {
        let place = place();
        let more: Vec<&str> = critic.into_iter().collect();
        let run = place.train("a", 3, &more);
        assert_eq!(shape(&run, "actor.0.weight"), Some(vec![16, 3]));
        assert_eq!(shape(&run, "critic.0.weight"), Some(vec![16, width]));
        let lines = metrics(&run);
        let last = lines.last().unwrap();
        let number = |tag: &str| last[tag].as_f64();
        assert!(number("Loss/surrogate").unwrap().is_finite());
        assert!(last.get("Loss/surrogate/left").is_none());
        // 8 worlds of 16 steps, and the warm-up.
        assert_eq!(number("env_steps"), Some(4.0 * 128.0));
        let seen = lines.iter().rev().find(|l| l.get("Episode_Reward/near").is_some());
        let seen = seen.unwrap();
        for tag in [
            "Episode_Reward/left/effort",
            "Episode_Reward/right/effort",
            "Train/agent_reward/left",
            "Train/agent_reward/right",
            "Episode_Termination/away/left",
        ] {
            assert!(seen[tag].as_f64().unwrap().is_finite(), "{tag}");
        }
        // Once for both, and each one's own: a return is the mean over agents.
        let of = |tag: &str| seen[tag].as_f64().unwrap();
        let near = of("Episode_Reward/near");
        for agent in ["left", "right"] {
            let own = of(&format!("Episode_Reward/{agent}/effort"));
            let sum = of(&format!("Train/agent_reward/{agent}"));
            assert!((near + own - sum).abs() < 1e-4 * sum.abs(), "{near} {own} {sum}");
        }
        place.ok(&["train", "a/config.toml", "--quiet", "--out", "b"]);
        assert_same_bits(&run, &place.path("b"));
        let said = place.ok(&["eval", "a", "--episodes", "4"]);
        assert!(said.contains("return"), "{said}");
    }
}

#[test]
fn separate_policies_have_networks_losses_and_checkpoints_of_their_own() {
    let place = place();
    let run = place.train("a", 3, &[SEPARATE, CENTRAL]);
    for name in ["left/actor.0.weight", "right/actor.0.weight"] {
        assert_eq!(shape(&run, name), Some(vec![16, 3]), "{name}");
    }
    assert_eq!(shape(&run, "actor.0.weight"), None);
    let last = metrics(&run).pop().unwrap();
    let loss = |tag: &str| last[tag].as_f64().unwrap();
    let (left, right) = (loss("Loss/surrogate/left"), loss("Loss/surrogate/right"));
    assert_ne!(left, right);
    assert!((loss("Loss/surrogate") - (left + right) / 2.0).abs() < 1e-9);
    place.ok(&["train", "a/config.toml", "--quiet", "--out", "b"]);
    assert_same_bits(&run, &place.path("b"));
    place.ok(&["eval", "a", "--episodes", "4"]);
    // A list of names says the same as "separate" does, under other names.
    let list = place.train("c", 1, &["agents.policies=[\"x\", \"y\"]"]);
    assert!(shape(&list, "y/critic.head.weight").is_some());
}

#[test]
fn a_resumed_run_ends_with_the_bits_of_one_never_stopped() {
    let every = "self_play.save_interval=1";
    for more in [
        &["agents.policies=shared"][..],
        &[SEPARATE],
        &["agents.policies=shared", PAST, every],
        &[SEPARATE, PAST, every, "actor.rnn_type=gru"],
    ] {
        let place = place();
        let more = [more, &[CENTRAL]].concat();
        let whole = place.train("whole", 4, &more);
        let parts = place.train("parts", 2, &more);
        place.ok(&["train", "--resume", "parts", "--quiet", "runner.max_iterations=4"]);
        assert_same_bits(&whole, &parts);
    }
}

#[test]
fn threads_that_collect_make_the_same_rollouts() {
    let none = "self_play.window=0";
    for (policies, rnn, past) in [
        ("agents.policies=shared", "actor.rnn_type=none", none),
        (SEPARATE, "actor.rnn_type=none", none),
        ("agents.policies=shared", "actor.rnn_type=gru", none),
        (SEPARATE, "actor.rnn_type=gru", none),
        ("agents.policies=shared", "actor.rnn_type=gru", PAST),
        (SEPARATE, "actor.rnn_type=none", PAST),
    ] {
        let place = place();
        let width = "actor.rnn_hidden_dim=6";
        let task = [policies, CENTRAL, rnn, width, past, "self_play.save_interval=1"];
        let sync = place.train("sync", 3, &task);
        let crew = ["collector.kind=async", "collector.workers=3"];
        let fresh = [&task[..], &["collector.max_staleness=0"], &crew].concat();
        let fresh = place.train("fresh", 3, &fresh);
        let but_episodes = |run| -> Vec<_> {
            let all = tensors(run).into_iter();
            all.filter(|(name, ..)| name != "episodes").collect()
        };
        assert!(but_episodes(&sync) == but_episodes(&fresh), "{policies} {rnn} {past}");
        let ahead = [&[policies, rnn, past], &crew[..]].concat();
        let last = metrics(&place.train("ahead", 3, &ahead)).pop().unwrap();
        assert_eq!(last["Guard/worker_restarts"].as_f64(), Some(0.0));
        assert!(last["Loss/value_function"].as_f64().unwrap().is_finite());
    }
}

#[test]
fn a_back_off_takes_whole_worlds() {
    for (policies, past) in [
        ("agents.policies=shared", "self_play.window=0"),
        (SEPARATE, "self_play.window=0"),
        ("agents.policies=shared", PAST),
    ] {
        let place = place();
        let out = place.run(&[
            "train",
            "pole.toml",
            "--quiet",
            policies,
            past,
            "--out",
            "a",
            "--inject",
            "fail allocation phase=update iteration=2",
        ]);
        assert!(out.status.success(), "{}", crate::common::text(&out));
        let last = metrics(&place.path("a")).pop().unwrap();
        assert_eq!(last["Perf/num_envs"].as_f64(), Some(4.0), "{policies}");
        assert!(last["Loss/value_function"].as_f64().unwrap().is_finite());
    }
}

#[test]
fn earlier_versions_play_and_are_kept() {
    let place = place();
    let run = place.train("a", 4, &[PAST, "self_play.save_interval=2"]);
    for version in ["self_play/0", "self_play/1"] {
        let name = format!("{version}/actor.0.weight");
        assert_eq!(shape(&run, &name), Some(vec![16, 3]), "{name}");
    }
    let last = metrics(&run).pop().unwrap();
    for tag in ["SelfPlay/past_reward", "SelfPlay/reward"] {
        assert!(last[tag].as_f64().unwrap() < 0.0, "{tag}");
    }
    // Half of the 8 worlds have an earlier version in them: 12 of 16 rows are learnt from.
    let said = place.ok(&["check", "pole.toml", PAST]);
    assert!(said.contains("2 minibatches of 96"), "{said}");
    place.ok(&["eval", "a", "--episodes", "4"]);
    place.ok(&["play", "a", "--episodes", "1"]);
    place.train("b", 1, &[PAST, "--init-from", "a"]);
    for (more, key) in [
        (&[PAST, "runner.algorithm=sac"][..], "self_play.window"),
        (&[PAST, "self_play.share=1.5"], "self_play.share"),
        (&[PAST, "self_play.save_interval=0"], "self_play.save_interval"),
    ] {
        let out = place.run(&[&["check", "pole.toml"], more].concat());
        let said = crate::common::text(&out);
        assert!(out.status.code() == Some(2) && said.contains(key), "{said}");
    }
}

/// Of two processes each has its part of the worlds, and of the versions in them.
#[test]
fn earlier_versions_play_in_several_processes() {
    let place = place();
    // Each half of the worlds has a version of its own.
    let two = [PAST, "self_play.save_interval=2", "self_play.share=1.0", "--nproc", "2"];
    let whole = place.train("whole", 4, &two);
    let [first, alone] = [&whole, &place.train("alone", 4, &two[..3])]
        .map(|run| metrics(run).remove(0)["SelfPlay/past_reward"].as_f64().unwrap());
    assert!((first - alone).abs() < 1e-5, "{first} {alone}");
    let parts = place.train("parts", 3, &two);
    let resume = ["train", "--resume", "parts", "--quiet", "runner.max_iterations=4"];
    place.ok(&[&resume[..], &two[3..]].concat());
    assert_same_bits(&whole, &parts);
    // A part in which all agents have one.
    let all = ["self_play.window=1", "self_play.share=1.0", SEPARATE, "env.num_envs=2"];
    let said = place.fails(2, &[&["train", "pole.toml"][..], &all, &two[3..]].concat());
    assert!(said.contains("self_play.share"), "{said}");
}

/// Who acts instead has learnt with this robot.
#[test]
fn another_robots_policy_acts_for_no_agent() {
    let place = place();
    place.train("a", 1, &[]);
    std::fs::write(place.path("robots/other.xml"), CARTS.replacen("model=\"", "model=\"other_", 1))
        .unwrap();
    place.train("b", 1, &["task.robot=robots/other.xml"]);
    place.ok(&["eval", "a", "--episodes", "2", "--instead", "left=a"]);
    let said = place.fails(2, &["eval", "a", "--episodes", "2", "--instead", "left=b"]);
    let [theirs, ours] = ["it is of robot \"other_", "here it is robot \""].map(|t| said.find(t));
    assert!(
        theirs < ours && theirs.is_some() && !said.contains("here it is robot \"other"),
        "{said}"
    );
}

#[test]
fn a_failure_is_replayed() {
    let place = place();
    let fault = "nan qpos[0] share=0.5 every=1";
    let out = place.run(&["train", "pole.toml", "--quiet", "--out", "a", "--inject", fault]);
    let failure = std::fs::read_dir(place.path("a/failure"));
    let mut all = failure.unwrap_or_else(|e| panic!("{e}: {}", crate::common::text(&out)));
    let folder = all.next().unwrap().unwrap().path();
    let shown = place.ok(&["replay", folder.to_str().unwrap()]);
    assert!(shown.contains("the same as in the report"), "{shown}");
}

const SAC: &str = "runner.algorithm=sac";

#[test]
fn one_policy_learns_from_what_all_agents_remember() {
    let place = place();
    let run = place.train("a", 3, &[SAC]);
    let last = metrics(&run).pop().unwrap();
    // Every agent's transition is one: 16 rows of 16 steps, four times.
    assert_eq!(last["Replay/size"].as_f64(), Some(1024.0));
}

#[test]
fn separate_policies_have_replay_buffers_of_their_own() {
    let td3 = ["runner.algorithm=td3", "td3.learning_starts=200", "td3.batch_size=32"];
    for (learner, storage) in [(&[SAC][..], "host"), (&td3, "memmap")] {
        let place = place();
        let far = storage == "memmap";
        let storage = format!("replay.storage={storage}");
        let train = |name: &str, iterations| {
            let directory = format!("replay.directory=far-{name}");
            let more = [learner, &[SEPARATE, &storage], if far { &[&*directory] } else { &[] }];
            place.train(name, iterations, &more.concat())
        };
        let whole = train("whole", 4);
        let last = metrics(&whole).pop().unwrap();
        let number = |tag: &str| last[tag].as_f64().unwrap();
        // 8 rows of each in five rollouts: sums and means are over both.
        assert_eq!(number("Replay/size"), 2.0 * 640.0);
        let (left, right) = (number("Loss/q_mean/left"), number("Loss/q_mean/right"));
        assert_ne!(left, right);
        assert!((number("Loss/q_mean") - (left + right) / 2.0).abs() < 1e-9);
        let home = if far { "far-whole/left" } else { "whole/replay/left/replay" };
        assert!(place.path(home).join("rows.bin").is_file(), "{home}");
        let parts = train("parts", 2);
        place.ok(&["train", "--resume", "parts", "--quiet", "runner.max_iterations=4"]);
        assert_same_bits(&whole, &parts);
        // What one of them lost is said, and the run goes on.
        let home = if far { "far-parts/right" } else { "parts/replay/right/replay" };
        std::fs::remove_dir_all(place.path(home)).unwrap();
        let out = place.run(&["train", "--resume", "parts", "runner.max_iterations=5"]);
        let said = crate::common::text(&out);
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(said.contains("does not repeat bit for bit"), "{said}");
    }
    let place = place();
    let said = place.ok(&["check", "pole.toml", SAC, SEPARATE]);
    assert!(said.contains("for each policy"), "{said}");
    // Each of two processes has one for each policy.
    let both = [SAC, SEPARATE, "replay.storage=memmap", "--nproc", "2"];
    let whole = place.train("both", 4, &both);
    let last = metrics(&whole).pop().unwrap();
    assert_eq!(last["Replay/size"], 2 * 640);
    assert_ne!(last["Loss/q_mean/left"], last["Loss/q_mean/right"]);
    for home in ["replay/right/replay", "process-1/replay/right/replay"] {
        assert!(whole.join(home).join("rows.bin").is_file(), "{home}");
    }
    let parts = place.train("both-parts", 2, &both);
    let resume = ["train", "--resume", "both-parts", "--quiet"];
    place.ok(&[&resume[..], &["--nproc", "2", "runner.max_iterations=4"]].concat());
    assert_same_bits(&whole, &parts);
    let out = place.run(&[&resume[..], &["--nproc", "1", "runner.max_iterations=5"]].concat());
    let said = crate::common::text(&out);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let log = std::fs::read_to_string(parts.join("log.txt")).unwrap();
    for said in ["the run had 2 processes and goes on with 1", "replay buffers begin empty"] {
        assert!(log.contains(said), "{log}");
    }
}

/// Each agent's own reward under one name: none of them is meant by that name alone.
#[test]
fn rewards_of_one_name_are_told_apart() {
    let place = place();
    let own = |agent: &str, expr: &str| {
        format!(
            "[[task.reward]]\nname = \"own\"\nagents = [\"{agent}\"]\nexpr = \"{expr} + 0 * norm2(action)\"\n"
        )
    };
    let two = std::fs::read_to_string(place.path("pole.toml")).unwrap();
    let two = [two, own("left", "1"), own("right", "-1")].concat();
    std::fs::write(place.path("two.toml"), &two).unwrap();
    let said = place.fails(2, &["check", "two.toml", "--set", "task.reward.own.weight=2"]);
    assert!(said.contains("several elements \"own\""), "{said}");
    let at = two.matches("[[task.reward]]").count() - 1;
    assert!(said.contains(&format!("task.reward[{}] or task.reward[{at}]", at - 1)), "{said}");
    let weights = |file: &str, more: &[&str]| {
        let out = place.path("run");
        let _ = std::fs::remove_dir_all(&out);
        let args = ["train", file, "--quiet", "--out", "run", "runner.max_iterations=1"];
        place.ok(&[&args[..], more].concat());
        let config = std::fs::read_to_string(out.join("config.toml")).unwrap();
        let config: toml::Table = config.parse().unwrap();
        let rewards = config["task"]["reward"].as_array().unwrap().clone();
        rewards[at - 1..].iter().map(|r| r["weight"].as_float().unwrap()).collect::<Vec<_>>()
    };
    let set = format!("task.reward[{at}].weight=7");
    assert_eq!(weights("two.toml", &["--set", &set]), [1.0, 7.0]);
    let schedule = "[[curriculum]]\nkey = \"task.reward.own.weight\"\npoints = [[0, 0], [1, 5]]\n";
    std::fs::write(place.path("moved.toml"), [two.as_str(), schedule].concat()).unwrap();
    let said = place.fails(2, &["check", "moved.toml"]);
    assert!(said.contains("several are called \"own\""), "{said}");
    let child = "extends = \"two.toml\"\n[[task.reward]]\nname = \"own\"\nagents = [\"right\"]\nweight = 9\n";
    std::fs::write(place.path("child.toml"), child).unwrap();
    assert_eq!(weights("child.toml", &[]), [1.0, 9.0]);
}

#[test]
fn a_task_with_agents_is_checked_and_shown() {
    let place = place();
    let said = place.ok(&["check", "pole.toml", CENTRAL]);
    for part in ["agents: left, right", "observation (policy)", "left/effort", "16 rows"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    for (change, words) in [
        ("agents.names=[\"left\"]", "agents.names"),
        ("agents.names=[\"left\", \"left\"]", "agents.names"),
        ("agents.policies=[\"x\"]", "agents.policies"),
        ("agents.policies=none", "agents.policies"),
        ("agents.policy=shared", "did you mean agents.policies?"),
    ] {
        let said = place.fails(2, &["check", "pole.toml", change]);
        assert!(said.contains(words), "{change}\n{said}");
    }
}
