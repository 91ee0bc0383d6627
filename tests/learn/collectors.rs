//! The same run with either collector: one key, the same logs, checkpoints that go from
//! one to the other (failure F8), nothing left behind (failure F4).

use crate::common::process::{holders, kill, left_in_shm, names, parent_of, trainer_of, wait};
use crate::common::{Place, TASK, metrics, tensors};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

const ASYNC: &str = "collector.kind=async";
const TWO: &str = "collector.workers=2";

fn tags(run: &Path) -> BTreeSet<String> {
    let last = metrics(run).pop().unwrap();
    last.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn f8_one_key_changes_the_collector_and_nothing_else() {
    let place = Place::new();
    let sync = place.train("sync", 3, &[]);
    let crew = place.train("async", 3, &[ASYNC, TWO]);
    let of_crew: BTreeSet<String> = [
        "Perf/workers",
        "Perf/staleness",
        "Guard/worker_restarts",
        "Guard/worker_hangs",
        "Guard/cut_steps",
    ]
    .map(String::from)
    .into();
    // Tags that are logged once there is something to count may come in one and not the other.
    let sometimes = |tag: &String| tag.starts_with("Episode_");
    let (one, other) = (tags(&sync), tags(&crew));
    assert!(one.difference(&other).all(sometimes), "{one:?}\n{other:?}");
    let more: BTreeSet<String> = other.difference(&one).cloned().collect();
    let more: BTreeSet<String> = more.into_iter().filter(|t| !sometimes(t)).collect();
    assert_eq!(more, of_crew);
    let lines = metrics(&crew);
    // The first rollout only warmed the normaliser up, and what was collected ahead of
    // that was thrown away.
    let stale: Vec<f64> = lines.iter().map(|l| l["Perf/staleness"].as_f64().unwrap()).collect();
    assert_eq!(stale, [0.0, 1.0, 1.0]);
    for line in &lines {
        assert_eq!(line["Perf/workers"], 2.0);
        assert_eq!(line["Guard/worker_restarts"], 0.0);
        assert_eq!(line["Guard/worker_hangs"], 0.0);
        assert_eq!(line["Guard/cut_steps"], 0.0);
    }
    let config = std::fs::read_to_string(crew.join("config.toml")).unwrap();
    for key in ["workers", "storing_device", "staleness_correction"] {
        let auto = format!("\n{key} = \"auto\"");
        assert!(!config.contains(&auto), "{config}");
    }
    assert!(config.contains("staleness_correction = \"clip\""), "{config}");
    let log = std::fs::read_to_string(crew.join("log.txt")).unwrap();
    assert!(log.contains("2 workers collect, "), "{log}");
    // The same tensors in the checkpoint, in the same shapes.
    let shapes = |run: &Path| -> Vec<(String, Vec<usize>)> {
        let all = tensors(run).into_iter();
        all.map(|(name, shape, _)| (name, shape)).collect()
    };
    let fixed = |(name, _): &(String, Vec<usize>)| name != "episodes";
    let kept = |run: &Path| shapes(run).into_iter().filter(fixed).collect::<Vec<_>>();
    assert_eq!(kept(&sync), kept(&crew));
}

/// Every learner, with any number of workers that it waits for, learns what it learns
/// without: a row's exploration does not depend on the worker that steps it.
#[test]
fn workers_that_the_learner_waits_for_change_no_bit() {
    let more = "
[replay]
capacity = 2000
storage = \"host\"
[sac]
batch_size = 32
learning_starts = 100
[td3]
batch_size = 32
num_updates = 1
learning_starts = 100
num_atoms = 21
v_min = 0.0
v_max = 40.0
";
    let place = Place::with(&format!("{TASK}{more}"));
    let learnt = |run: &Path| -> Vec<_> {
        let all = tensors(run).into_iter();
        all.filter(|(name, ..)| name.starts_with("learner/")).collect()
    };
    let recurrent = ["actor.rnn_type=gru", "actor.rnn_hidden_dim=5"];
    let learners: [(&str, &str, &[&str]); 5] = [
        ("ppo", "ppo", &[]),
        ("recurrent", "ppo", &recurrent),
        ("sac", "sac", &[]),
        ("td3", "td3", &[]),
        ("ars", "ars", &[]),
    ];
    for (name, algorithm, more) in learners {
        let chosen = format!("runner.algorithm={algorithm}");
        let anew = format!("collector.reset_at_each_iter={}", algorithm == "ars");
        let common = [&[chosen.as_str(), anew.as_str()], more].concat();
        let sync = learnt(&place.train(&format!("{name}_sync"), 3, &common));
        assert!(sync.len() > 3, "{name}: {}", sync.len());
        for workers in ["collector.workers=2", "collector.workers=3"] {
            let threads = [ASYNC, workers, "collector.max_staleness=0"];
            let out = format!("{name}_{}", workers.replace('=', "_"));
            let run = place.train(&out, 3, &[&common[..], &threads].concat());
            for (a, b) in sync.iter().zip(&learnt(&run)) {
                assert!(a == b, "{name}, {workers}: {}", a.0);
            }
        }
    }
}

#[test]
fn f8_a_run_goes_on_with_the_other_collector() {
    let place = Place::new();
    let run = place.train("a", 2, &[]);
    let path = run.display().to_string();
    let go_on = |iterations: &str, more: &[&str]| {
        let args = ["train", "--resume", &path, iterations];
        place.ok(&[&args, more].concat());
    };
    let corrected = "ppo.staleness_correction=auto";
    go_on("runner.max_iterations=4", &[ASYNC, TWO, corrected]);
    let resumed = metrics(&run);
    assert_eq!(resumed.len(), 4);
    assert_eq!(resumed[3]["Perf/staleness"], 1.0);
    assert!(resumed[1].get("Perf/staleness").is_none());
    go_on("runner.max_iterations=5", &["collector.workers=1"]);
    go_on("runner.max_iterations=6", &["collector.kind=sync", corrected]);
    let all = metrics(&run);
    assert_eq!(all.len(), 6);
    assert!(all[5].get("Perf/staleness").is_none());
    let samples = all[5]["env_steps"].as_u64().unwrap() - all[4]["env_steps"].as_u64().unwrap();
    assert_eq!(
        samples,
        all[1]["env_steps"].as_u64().unwrap() - all[0]["env_steps"].as_u64().unwrap()
    );
}

/// A crew that is killed with its supervisor, or orphaned by it: neither process, thread,
/// open file nor shared memory is left, nor a file anywhere but in the run's folder; and
/// the run goes on.
#[test]
fn f4_a_killed_crew_leaves_nothing_in_shared_memory() {
    for orphaned in [false, true] {
        let place = Place::new();
        let folders = ["tmp", "home", "cache"].map(|name| place.path(name));
        folders.iter().for_each(|f| std::fs::create_dir(f).unwrap());
        let [tmp, home, cache] = &folders;
        let before = (names("/dev/shm"), names(place.0.path()));
        let args = [
            "train",
            "pole.toml",
            "--quiet",
            "--out",
            "a",
            ASYNC,
            TWO,
            "runner.supervise=true",
            "runner.save_interval=1",
            "runner.max_iterations=1000000",
        ];
        let mut child = place
            .ostler(&args)
            .env("TMPDIR", tmp)
            .env("HOME", home)
            .env("OSTLER_CACHE", cache)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let supervisor = child.id() as i32;
        let metrics_file = place.path("a/metrics.jsonl");
        wait("iterations", || {
            let text = std::fs::read_to_string(&metrics_file).ok()?;
            (text.lines().count() > 3).then_some(())
        });
        let trainer = wait("the training process", || trainer_of(supervisor));
        let tasks = std::path::PathBuf::from(format!("/proc/{trainer}/task"));
        let threads: Vec<String> = names(&tasks)
            .iter()
            .filter_map(|t| std::fs::read_to_string(tasks.join(t).join("comm")).ok())
            .collect();
        for worker in ["collect-0", "collect-1"] {
            let runs = threads.iter().any(|t| t.trim() == worker);
            assert!(runs, "{threads:?}");
        }
        // Semaphores and buffers of processes that share memory would be here.
        let maps = std::fs::read_to_string(format!("/proc/{trainer}/maps")).unwrap();
        assert!(!maps.contains("/dev/shm"), "{maps}");
        let held = holders(place.0.path());
        let log = format!("/proc/{trainer}/fd/");
        assert!(held.iter().any(|h| h.starts_with(&log)), "{held:?}");
        assert!(!held.iter().any(|h| h.contains("/dev/shm")), "{held:?}");

        kill(supervisor, libc::SIGKILL);
        if !orphaned {
            kill(trainer, libc::SIGKILL);
        }
        child.wait().unwrap();
        wait("the end of the trainer and its threads", || {
            // A zombie that nobody waits for has no thread any more but the first.
            (parent_of(trainer).is_none() && names(&tasks).len() <= 1).then_some(())
        });
        assert_eq!(holders(place.0.path()), [""; 0], "a process holds files");
        let left = left_in_shm(&before.0, &[supervisor, trainer]);
        assert!(left.is_empty(), "in shared memory: {left:?}");
        for folder in &folders {
            let left = names(folder);
            assert!(left.is_empty(), "in {}: {left:?}", folder.display());
        }
        let mut expected = before.1;
        expected.insert("a".into());
        assert_eq!(names(place.0.path()), expected);
        // Nothing is in the way of the next one.
        let done = std::fs::read_to_string(&metrics_file).unwrap();
        let more = format!("runner.max_iterations={}", done.lines().count() + 1);
        place.ok(&["train", "--resume", "a", "--quiet", &more]);
    }
}

#[test]
fn f6_more_workers_than_cores_are_honoured_with_a_warning() {
    let place = Place::new();
    let run = place.train("a", 1, &[ASYNC, "collector.workers=8"]);
    let cores = std::thread::available_parallelism().unwrap().get();
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    if cores < 9 {
        assert!(log.contains("collector.workers = 8 over-subscribes"), "{log}");
    }
    assert_eq!(metrics(&run)[0]["Perf/workers"], 8.0);
    let run = place.train("b", 1, &[ASYNC]);
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains("collector.workers = \"auto\" is "), "{log}");
}

#[test]
fn what_does_not_go_together_is_refused_with_the_ways_out() {
    let place = Place::new();
    let refused = |overrides: &[&str], words: &[&str]| {
        let said = place.fails(2, &[&["check", "pole.toml"], overrides].concat());
        for word in words {
            assert!(said.contains(word), "{word:?} not in\n{said}");
        }
    };
    let none = "ppo.staleness_correction=none";
    refused(&[ASYNC, none], &["vtrace", "collector.max_staleness = 0"]);
    place.ok(&["check", "pole.toml", ASYNC, none, "collector.max_staleness=0"]);
    place.ok(&["check", "pole.toml", none]);
    refused(
        &[ASYNC, "sim.device=cuda", "device=cuda:0"],
        &["one stream", "collector.kind = \"sync\"", "sim.device = \"cpu\""],
    );
    for (key, words) in [
        ("collector.workers=0", "1 or more"),
        ("collector.workers=100000", "1 to"),
        ("collector.preemptive_threshold=0", "at most 1"),
        ("collector.preemptive_threshold=1.5", "at most 1"),
        ("collector.max_staleness=1000", "0 to 64"),
        ("collector.worker_timeout_s=0", "above 0 [s]"),
        ("collector.shutdown_timeout_s=-1.0", "above 0 [s]"),
        ("collector.init_random_steps=10", "own policy"),
        ("collector.storing_device=cuda:0", "storing_device"),
    ] {
        let name = key.split('=').next().unwrap();
        refused(&[ASYNC, key], &[name, words]);
    }
}
