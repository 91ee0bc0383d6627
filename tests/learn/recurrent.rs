//! Recurrent policies: tasks that need memory; the hidden state survives every stop, move and
//! change of size of a run.

use crate::common::process::{kill, parent_of, trainer_of, wait};
use crate::common::{Place, assert_same_bits, metrics, root, tensors};
use std::path::Path;
use std::process::Stdio;

const GRU: [&str; 2] = ["actor.rnn_type=gru", "actor.rnn_hidden_dim=6"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&GRU, more].concat()
}

#[test]
fn what_is_shown_once_is_remembered() {
    let place = Place::new();
    let file = root().join("configs/cartpole_recall.toml");
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(place.path("pole.toml"), text).unwrap();
    let rewards = ["gru", "none"].map(|kind| {
        let rnn = format!("actor.rnn_type={kind}");
        place.train(kind, 100, &[&rnn, "sim.specialize=wait"]);
        let said = place.ok(&["eval", kind, "--episodes", "64", "--json"]);
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        said["mean_return"].as_f64().unwrap()
    });
    let [recurrent, forgetful] = rewards;
    assert!(recurrent > 65.0 && recurrent > 1.4 * forgetful, "{recurrent} {forgetful}");
}

#[test]
fn a_run_that_is_killed_ends_with_the_bits_of_one_that_was_not() {
    let place = Place::new();
    // More states than a rollout has episodes: some of them are old when it is killed.
    let size = ["env.num_envs=64", "ppo.sequence_length=8"];
    let n = 60;
    let whole = place.train("whole", n, &with(&size));
    let goal = format!("runner.max_iterations={n}");
    let args = ["train", "pole.toml", "--quiet", "--out", "a"];
    let more = ["runner.save_interval=1", &goal];
    let child = place
        .ostler(&[&args[..], &more, &with(&size)].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let run = place.path("a");
    wait("iterations", || {
        let done = std::fs::read_to_string(run.join("metrics.jsonl"));
        (done.is_ok_and(|t| t.lines().count() > 3)).then_some(())
    });
    let trainer = wait("the training process", || trainer_of(child.id() as i32));
    kill(trainer, libc::SIGKILL);
    wait("its end", || parent_of(trainer).is_none().then_some(()));
    // Its supervisor goes on with it.
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("the training process died of SIGKILL"), "{log}");
    assert_same_bits(&whole, &run);
}

#[test]
fn resumed_and_with_fewer_environments_the_others_go_on_with_what_they_remember() {
    let place = Place::new();
    let crew = ["collector.kind=async", "collector.workers=2"];
    let crew = [&crew[..], &["collector.max_staleness=0"]].concat();
    for threads in [&[][..], &crew] {
        let name = |what: &str| format!("{what}{}", threads.len());
        let more = with(threads);
        let whole = place.train(&name("whole"), 6, &more);
        let part = place.train(&name("part"), 2, &more);
        let goal = "runner.max_iterations=6";
        place.ok(&["train", "--resume", &name("part"), "--quiet", goal]);
        assert_same_bits(&whole, &part);
    }
    // The same environments go on, and the same begin anew, in both.
    let planned = [&GRU[..], &["back_off.changes=[[2,4],[4,8]]"]].concat();
    let planned = place.train("planned", 6, &planned);
    let stopped = ["back_off.changes=[[2,4],[4,8]]", "runner.save_interval=1"];
    let stopped = place.train("stopped", 3, &with(&stopped));
    place.ok(&["train", "--resume", "stopped", "--quiet", "runner.max_iterations=6"]);
    assert_same_bits(&planned, &stopped);
}

#[test]
fn a_checkpoint_holds_hidden_states_and_one_of_another_width_is_refused() {
    let place = Place::new();
    let run = place.train("a", 2, &with(&[]));
    let names: Vec<_> = tensors(&run).into_iter().map(|t| (t.0, t.1)).collect();
    let shape = |name: &str| names.iter().find(|n| n.0 == name).map(|n| n.1.clone());
    assert_eq!(shape("learner/actor.gru.input.weight"), Some(vec![18, 4]));
    assert_eq!(shape("learner/actor.gru.hidden.weight"), Some(vec![18, 6]));
    let plain = place.train("plain", 2, &[]);
    let states = |run: &Path| {
        let all = tensors(run);
        all.iter().find(|t| t.0 == "collector").map(|t| t.1[0])
    };
    // 8 environments of 6 numbers each, and how many these are.
    let more = states(&run).unwrap() - states(&plain).unwrap();
    assert_eq!(more, 8 * 6 * 4 + 1, "{names:?}");
    let err = place.fails(2, &["train", "pole.toml", "--init-from", "a", "--out", "b"]);
    assert!(err.contains("does not fit"), "{err}");
    let wider = "actor.rnn_hidden_dim=7";
    let err = place.fails(2, &["train", "--resume", "a", wider]);
    assert!(err.contains("actor"), "{err}");
}

#[test]
fn it_is_evaluated_watched_and_repeats_itself() {
    let place = Place::new();
    let run = place.train("a", 3, &with(&["runner.eval_interval=1", "runner.eval_episodes=8"]));
    assert!(metrics(&run).iter().all(|m| m["Eval/mean_reward"].is_number()));
    let eval = || place.ok(&["eval", "a", "--episodes", "12", "--json"]);
    let value = |text: &str| -> f64 {
        let said: serde_json::Value = serde_json::from_str(text).unwrap();
        said["mean_return"].as_f64().unwrap()
    };
    assert_eq!(value(&eval()), value(&eval()));
    place.ok(&["play", "a", "--episodes", "1"]);
}

#[test]
fn keys_that_do_not_go_together_are_explained() {
    let place = Place::new();
    for (more, said) in [
        (
            &["actor.rnn_type=gru", "runner.algorithm=sac"][..],
            "actor.rnn_type: \"sac\" learns no recurrent policy",
        ),
        (&["actor.rnn_type=lstm"], "allowed: \"none\", \"gru\""),
        (
            &["actor.rnn_type=gru", "actor.rnn_hidden_dim=0"],
            "actor.rnn_hidden_dim: 0 is not a usable layer width",
        ),
        (
            &["ppo.sequence_length=4"],
            "ppo.sequence_length: only a recurrent policy learns from sequences",
        ),
        (
            &["actor.rnn_type=gru", "ppo.sequence_length=5"],
            "rollouts of 16 steps are not whole sequences of 5",
        ),
        (&["actor.rnn_type=gru", "ppo.num_mini_batches=9"], "9 minibatches of only 8 sequences"),
    ] {
        let err = place.fails(2, &[&["check", "pole.toml"], more].concat());
        assert!(err.contains(said), "{more:?}: {err}");
    }
}
