//! One run by several processes: what they learn, and what happens when one of them is gone.

use crate::common::process::{kill, parent_of, trainer_of, wait};
use crate::common::{Place, REPLAY, assert_same_bits, metrics, newest, root, text};
use crate::supervise::{done, finish, start};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

/// Slow enough to be hit in the middle, short enough to end.
const MIDDLE: [&str; 2] = ["runner.max_iterations=60", "env.num_envs=128"];
const TWO: [&str; 2] = ["--nproc", "2"];

/// Waits until the run goes on; both processes.
fn running(place: &Place, child: &Child, n: usize) -> [i32; 2] {
    let run = place.path("a");
    wait("iterations", || (done(&run) > n && run.join("checkpoints").exists()).then_some(()));
    let first = wait("the first process", || trainer_of(child.id() as i32));
    [first, wait("the second process", || trainer_of(first))]
}

/// The first iteration's statistics of the update: with so few rounds nothing has drifted apart.
fn update(run: &Path) -> Vec<(String, f64)> {
    let first = metrics(run).remove(0);
    let all = first.as_object().unwrap().iter();
    let of_update = all.filter(|(k, _)| {
        k.starts_with("Loss/") || k.starts_with("Policy/") || *k == "Train/reward_per_step"
    });
    of_update.map(|(k, v)| (k.clone(), v.as_f64().unwrap_or(f64::NAN))).collect()
}

/// Random search on short episodes.
const SEARCH: [&str; 3] = [
    "runner.algorithm=ars",
    "collector.reset_at_each_iter=true",
    "runner.init_at_random_ep_len=false",
];

#[test]
fn several_processes_learn_what_one_does() {
    let configs = [
        ("cartpole", vec![]),
        ("cartpole", vec!["ppo.normalize_returns=true", "ppo.normalize_advantage=\"mini_batch\""]),
        // Sequences, sides, agents with policies of their own.
        ("cartpole_recall", vec![]),
        // As many minibatches as sequences: all but one process have no part in each.
        ("cartpole_recall", vec!["ppo.num_mini_batches=29"]),
        ("quadruped", vec!["symmetry.mirror_loss=0.5"]),
        ("spread", vec![]),
        // Opponents of the past.
        ("ant_sumo", vec![]),
        ("cartpole", vec!["ppo.rnd.weight=0.5", "ppo.priority_alpha=0.6", "ppo.gamma=0.9"]),
        ("cartpole", [&SEARCH[..], &["runner.num_steps_per_env=120"]].concat()),
        ("../examples/trot", vec!["amp.steps=3"]),
    ];
    let place = Place::new();
    for (name, more) in configs {
        let config = root().join(format!("configs/{name}.toml"));
        let name = name.trim_start_matches("../examples/");
        let train = |processes: &str| {
            let out = place.path(&format!("{name}{}{processes}", more.len()));
            let args = ["train", config.to_str().unwrap(), "--quiet", "--nproc", processes];
            let set = [
                "--out",
                out.to_str().unwrap(),
                "runner.max_iterations=1",
                "runner.eval_interval=0",
                "sim.specialize=off",
                "env.num_envs=29",
                "log.curve=false",
            ];
            place.ok(&[&args[..], &set, &more].concat());
            update(&out)
        };
        let alone = train("1");
        assert!(alone.len() > 3, "{alone:?}");
        // Its robots take long.
        let several: &[&str] = if name == "ant_sumo" { &["3"] } else { &["2", "3"] };
        for processes in several {
            for ((tag, one), (_, several)) in alone.iter().zip(train(processes)) {
                // Means over all steps of an update; the gradients themselves are nearer.
                let most = match &**tag {
                    tag if tag.ends_with("grad_norm") => 1e-5,
                    // Of other networks each process draws for itself, and means are of means.
                    "Policy/amp_reward" | "Policy/rnd_reward" => 1e-4,
                    tag if tag.contains("amp") || tag.contains("rnd") => 5e-2,
                    _ => 1e-4,
                };
                let off = (one - several).abs() / one.abs().max(1e-2);
                assert!(
                    off < most || one.is_nan() && several.is_nan(),
                    "{name} {more:?} {processes}: {tag} {one} {several}"
                );
            }
        }
    }
}

/// Before there is enough to learn from.
#[test]
fn each_environment_explores_as_in_one_process() {
    let speed = "[[task.reward]]\nname = \"speed\"\nexpr = \"abs(joint_vel(slider))\"\n";
    let place = Place::with(&[crate::common::TASK, REPLAY, speed].concat());
    let more = ["--profile=td3", "td3.learning_starts=100000", "env.num_envs=9"];
    let [one, two] = ["1", "2"].map(|processes| {
        let more = [&more[..], &["--nproc", processes]].concat();
        let lines = metrics(&place.train(processes, 3, &more));
        let reward = |line: &serde_json::Value| line["Train/reward_per_step"].as_f64().unwrap();
        lines.iter().map(reward).collect::<Vec<_>>()
    });
    for (a, b) in one.iter().zip(&two) {
        assert!((a - b).abs() < 1e-5 * a.abs(), "{one:?} {two:?}");
    }
}

#[test]
fn bits_are_the_same_from_run_to_run_and_after_a_resume() {
    let place = Place::new();
    let three = ["--nproc", "3", "env.num_envs=10"];
    let whole = place.train("whole", 8, &three);
    assert_same_bits(&whole, &place.train("again", 8, &three));
    place.train("half", 4, &three);
    place.ok(&["train", "--resume", "half", "--quiet", "--nproc", "3", "runner.max_iterations=8"]);
    assert_same_bits(&whole, &place.path("half"));
    // Replay buffers of their own, too.
    let replay = Place::with(&[crate::common::TASK, REPLAY].concat());
    for learner in ["sac", "td3"] {
        let more = ["--profile", learner, "--nproc", "2", "replay.storage=auto"];
        let whole = replay.train(&format!("{learner}-whole"), 4, &more);
        let half = format!("{learner}-half");
        replay.train(&half, 2, &more);
        // Where the storage was chosen, the command that began it goes on with it.
        let go_on = ["--resume", "auto", "--out", &half, "runner.max_iterations=4", "--quiet"];
        replay.ok(&[&["train", "pole.toml"][..], &go_on, &more].concat());
        assert_same_bits(&whole, &replay.path(&half));
        let last = metrics(&whole).pop().unwrap();
        // Of all processes, those of the warm-up among them.
        assert_eq!(last["Replay/size"], 5 * 8 * 16, "{learner}");
    }
    // What is remembered of all, too: sums of distances, transitions, directions.
    let task = std::fs::read_to_string(root().join("examples/trot.toml")).unwrap();
    let from = |name: &str| root().join(name).display().to_string();
    let task = task.replace("../configs/robots", &from("configs/robots"));
    let trot = Place::with(&task.replace("trot.csv", &from("examples/trot.csv")));
    let novel = ["ppo.rnd.weight=0.1", "ppo.priority_alpha=0.6"];
    let style = ["amp.steps=3", "env.num_envs=10", "sim.specialize=off"];
    // And what the reflections of a recurrent policy remember.
    let sides = ["symmetry.plane=xz", "actor.rnn_type=gru", "actor.rnn_hidden_dim=8"];
    let style = [&style[..], &sides].concat();
    for (place, name, more) in
        [(&place, "novel", &novel[..]), (&place, "search", &SEARCH), (&trot, "style", &style)]
    {
        let more = [more, &["--nproc", "2"]].concat();
        let whole = place.train(&format!("{name}-whole"), 4, &more);
        let half = format!("{name}-half");
        place.train(&half, 2, &more);
        let go_on = ["--quiet", "--nproc", "2", "runner.max_iterations=4"];
        place.ok(&[&["train", "--resume", &half][..], &go_on].concat());
        assert_same_bits(&whole, &place.path(&half));
    }
    // Replay buffers of another number are left behind.
    let out =
        replay.run(&["train", "--resume", "sac-half", "--nproc", "1", "runner.max_iterations=6"]);
    let said = text(&out);
    assert!(out.status.success() && said.contains("the run had 2 processes"), "{said}");
    assert!(replay.path("sac-half/replay-of-2-processes").is_dir());
    // With another number of processes the states are dealt out anew.
    for (processes, more) in [("2", "10"), ("1", "12")] {
        let n = format!("runner.max_iterations={more}");
        let out = place.run(&["train", "--resume", "half", "--quiet", "--nproc", processes, &n]);
        let said = text(&out);
        assert!(out.status.success() && said.contains("dealt out anew"), "{said}");
    }
    let iterations: Vec<u64> =
        metrics(&place.path("half")).iter().map(|m| m["iteration"].as_u64().unwrap()).collect();
    assert_eq!(iterations, (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_killed_process_ends_with_the_bits_of_a_run_that_was_left_alone() {
    let place = Place::new();
    let whole = place.train("whole", 60, &["--nproc", "2", "env.num_envs=128"]);
    for (who, words) in [(0, "died of SIGKILL"), (1, "lost another of its processes")] {
        let _ = std::fs::remove_dir_all(place.path("a"));
        let child = start(&place, &[&TWO[..], &MIDDLE].concat());
        let pids = running(&place, &child, 2);
        kill(pids[who], libc::SIGKILL);
        for pid in pids {
            wait("its end", || parent_of(pid).is_none().then_some(()));
        }
        let out = finish(child);
        let err = text(&out);
        assert_eq!(out.status.code(), Some(0), "{err}");
        assert!(err.contains(&format!("the training process {words}; the run goes on")), "{err}");
        assert_same_bits(&whole, &place.path("a"));
    }
}

/// A process of two that dies in a phase of its own: the supervisor starts all again, and the
/// last checkpoint has the bits of a run that was left alone.
#[test]
fn killed_in_any_phase_all_begin_again_with_the_same_bits() {
    let place = Place::with(&[crate::common::TASK, REPLAY].concat());
    let save = "runner.save_interval=2";
    for profile in ["", "--profile=sac"] {
        let train = |name: &str, more: &[&str]| {
            let args = ["--nproc", "2", save, profile].into_iter().filter(|arg| !arg.is_empty());
            place.train(name, 5, &args.chain(more.iter().copied()).collect::<Vec<_>>())
        };
        let whole = train(&format!("whole{profile}"), &[]);
        for (process, phase) in
            [(0, "collect"), (0, "update"), (0, "save"), (1, "collect"), (1, "update"), (1, "save")]
        {
            let fault = format!("kill phase={phase} iteration=4 process={process}");
            let name = format!("{phase}{process}{profile}");
            let run = train(&name, &["--inject", &fault]);
            assert_same_bits(&whole, &run);
            let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
            assert!(log.contains("the run goes on from its checkpoint"), "{name}\n{log}");
        }
    }
}

#[test]
fn a_process_that_stands_still_is_noticed() {
    stands_still(1);
    // It has the store by which the others would notice.
    stands_still(0);
}

fn stands_still(who: usize) {
    let place = Place::new();
    let more = [&TWO[..], &MIDDLE, &["runner.peers_silence_s=2"]].concat();
    let child = start(&place, &more);
    let pids = running(&place, &child, 2);
    kill(pids[who], libc::SIGSTOP);
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    let said = format!("process {who} of 2 has said nothing for 2 s");
    assert!(err.contains(&said), "{err}");
    let whole = place.train("whole", 60, &["--nproc", "2", "env.num_envs=128"]);
    assert_same_bits(&whole, &place.path("a"));
    assert!(pids.iter().all(|&pid| parent_of(pid).is_none()), "one is left");
}

/// Before the others could notice by the watch: whenever a child dies at its start, all begin again.
#[test]
fn a_process_that_dies_at_its_start_is_started_again() {
    for wait_ms in [0, 10, 40, 80, 160, 320] {
        let place = Place::new();
        let child = start(&place, &["--nproc", "2", "runner.max_iterations=3"]);
        let second = wait("two processes", || trainer_of(trainer_of(child.id() as i32)?));
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        kill(second, libc::SIGKILL);
        let out = finish(child);
        assert_eq!(out.status.code(), Some(0), "{wait_ms} ms: {}", text(&out));
    }
}

#[test]
fn a_signal_to_any_process_saves_and_ends_all() {
    for who in 0..3 {
        let place = Place::new();
        let long = ["runner.max_iterations=1000000", "env.num_envs=128"];
        let child = start(&place, &[&TWO[..], &long].concat());
        let pids = running(&place, &child, 2);
        kill([child.id() as i32, pids[0], pids[1]][who], libc::SIGTERM);
        let out = finish(child);
        assert_eq!(out.status.code(), Some(130), "{who}: {}", text(&out));
        assert!(newest(&place.path("a")).exists());
        for pid in pids {
            wait("its end", || parent_of(pid).is_none().then_some(()));
        }
    }
}

#[test]
fn faults_of_one_process_are_those_of_the_run() {
    let place = Place::new();
    // Environment 6 of 8 is the second process's.
    let run = place.train("nan", 4, &["--nproc", "2", "--inject", "nan qpos[0] env=6 step=20"]);
    let broken: f64 = metrics(&run).iter().map(|m| m["Guard/broken_envs"].as_f64().unwrap()).sum();
    assert_eq!(broken, 1.0);
    // A gradient that is no number is skipped by all, with the same weights after it.
    let run = place.train("grad", 4, &["--nproc", "2", "--inject", "nan gradient update=2"]);
    let skipped: f64 =
        metrics(&run).iter().map(|m| m["Guard/skipped_minibatches"].as_f64().unwrap()).sum();
    assert!(skipped >= 1.0, "{skipped}");
    // Memory that does not suffice lowers the number for all.
    // Also in the midst of sums that the others wait for, be they of PPO or of SAC.
    let replay = Place::with(&[crate::common::TASK, REPLAY].concat());
    // Their replay buffers lie where process 0's does not.
    let sac = ["--profile=sac", "replay.storage=auto", "replay.directory=far"];
    for (place, more, what) in [
        (&place, &[][..], "phase=collect iteration=2 after=0"),
        (&place, &[], "phase=collect iteration=2 after=2"),
        (&place, &[], "phase=collect iteration=2 after=3"),
        (&place, &[], "phase=collect iteration=2 after=0 process=1"),
        (&place, &[], "phase=update iteration=2 after=0"),
        (&place, &[], "phase=update iteration=2 after=60"),
        (&place, &[], "phase=update iteration=2 after=60 process=1"),
        // Behind the last sum.
        (&place, &[], "phase=update iteration=2 after=100000 process=1"),
        (&replay, &sac, "phase=update iteration=3 after=200"),
    ] {
        let fault = format!("fail allocation {what}");
        let args = [&["--nproc", "2", "--inject", &*fault][..], more].concat();
        let run = place.train(&what.replace(' ', "_"), 4, &args);
        let envs = |m: &serde_json::Value| m["Perf/num_envs"].as_f64().unwrap();
        let all: Vec<f64> = metrics(&run).iter().map(envs).collect();
        assert!(all[0] == 8.0 && all[3] < 8.0, "{what}: {all:?}");
    }
}

/// Variables of a process, by its rank and the port.
type Variables = dyn Fn(&str, &str) -> Vec<(String, String)>;

/// The variables that `torchrun` sets.
fn torchrun<'a>(rank: &'a str, port: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("WORLD_SIZE", "2"),
        ("RANK", rank),
        ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", port),
    ]
}

/// A port that nobody has at this time.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

#[test]
fn torchrun_and_slurm_start_the_run_that_nproc_starts() {
    let place = Place::new();
    let whole = place.train("whole", 3, &["--nproc", "2"]);
    let slurm = |rank: &str, port: &str| -> Vec<(String, String)> {
        let step = [
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NUM_NODES", "1"),
            ("SLURM_PROCID", rank),
            ("SLURM_JOB_ID", "1"),
            ("MASTER_PORT", port),
        ];
        step.map(|(k, v)| (k.to_string(), v.to_string())).to_vec()
    };
    let torch = |rank: &str, port: &str| -> Vec<(String, String)> {
        torchrun(rank, port).map(|(k, v)| (k.to_string(), v.to_string())).to_vec()
    };
    let launchers: [(&str, &Variables); 2] = [("torchrun", &torch), ("slurm", &slurm)];
    for (out, variables) in launchers {
        let port = free_port();
        let spawn = |rank: &str| {
            place
                .ostler(&["train", "pole.toml", "--quiet", "--out", out])
                .envs(variables(rank, &port))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let both = ["0", "1"].map(spawn);
        for out in both.map(finish) {
            assert_eq!(out.status.code(), Some(0), "{}", text(&out));
        }
        assert_same_bits(&whole, &place.path(out));
    }
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let place = Place::with(&[crate::common::TASK, REPLAY].concat());
    let port = free_port();
    let spawn = |rank: &str, gamma: &str| {
        place
            .ostler(&["train", "pole.toml", "--quiet", "--out", "other", gamma])
            .envs(torchrun(rank, &port))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let both = [spawn("0", "ppo.gamma=0.99"), spawn("1", "ppo.gamma=0.9")];
    let [first, second] = both.map(finish);
    let err = text(&first);
    assert_ne!(first.status.code(), Some(0), "{err}");
    assert!(err.contains("process 1") && err.contains("ppo.gamma: was 0.99, is 0.9"), "{err}");
    assert_eq!(second.status.code(), Some(0), "{}", text(&second));
    // Who waits for nobody says so.
    let mut alone = place.ostler(&["train", "pole.toml", "runner.peers_start_s=1"]);
    let out = alone.envs(torchrun("0", &free_port())).output().unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out));
    assert!(text(&out).lines().count() == 1, "{}", text(&out));
    assert!(text(&out).contains("process 1 of 2 did not come within 1 s"), "{}", text(&out));
    let mut both = place.ostler(&["train", "pole.toml", "--nproc", "2"]);
    let out = both.envs(torchrun("0", &free_port())).output().unwrap();
    assert!(text(&out).contains("--nproc 2 starts processes on one machine"), "{}", text(&out));
    for (more, words) in
        [(&["collector.kind=async"][..], "collector.kind"), (&["env.num_envs=1"], "env.num_envs")]
    {
        let err = place.fails(2, &[&["train", "pole.toml", "--nproc", "2"], more].concat());
        assert!(err.contains(words) && err.contains("processes"), "{err}");
    }
}
