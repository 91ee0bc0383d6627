//! Readers of what runs leave: metrics, events, checkpoints, reports of failures.

use super::drive::Target;
use super::mutate::Corpus;
use crate::common::forge::{Tensors, with_checksum};
use crate::common::{Place, TASK, newest};
use ostler_collector::{Collector, Snapshot, SyncCollector};
use ostler_sim::BatchEnv;
use ostler_trainer::config::load;
use ostler_trainer::learner::{Learner, Ppo, TrainedPolicy};
use ostler_trainer::log::metrics::{MetricsWriter, Record};
use ostler_trainer::log::{curve as picture, tensorboard};
use ostler_trainer::readers;
use ostler_trainer::regress::baseline::{Baseline, Baselines};
use ostler_trainer::regress::metrics::History;
use ostler_trainer::run::checkpoint::Checkpoint;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// A short run, and one that ended with a report.
struct Runs {
    place: Place,
    run: PathBuf,
    report: PathBuf,
}

fn runs() -> &'static Runs {
    static RUNS: LazyLock<Runs> = LazyLock::new(|| {
        let place = Place::with(TASK);
        let run = place.train("a", 3, &[]);
        // Half of the environments break in every step of the second iteration.
        let faults = (17..33).map(|s| format!("nan qpos[0] share=0.5 step={s}"));
        let faults: Vec<String> = faults.collect();
        let mut args = vec!["train", "pole.toml", "--quiet", "--out", "b"];
        for fault in &faults {
            args.extend(["--inject", fault]);
        }
        place.run(&args);
        let failures = std::fs::read_dir(place.path("b/failure")).unwrap();
        let mut reports: Vec<PathBuf> = failures.map(|e| e.unwrap().path()).collect();
        reports.retain(|p| p.join("start.safetensors").exists());
        reports.sort();
        let report = reports[0].clone();
        Runs { place, run, report }
    });
    &RUNS
}

/// A folder in memory where there is one.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

const TAGS: [&str; 12] = [
    "\"iteration\"",
    "\"env_steps\"",
    "\"wall_s\"",
    "\"Train/mean_reward\"",
    "null",
    "true",
    "\"Eval/mean_reward\"",
    "\"Eval/std_reward\"",
    "\"Policy/mean_std\"",
    "{",
    "}",
    "\\ud800",
];

fn lines_of_metrics() -> Corpus {
    let real = std::fs::read(runs().run.join("metrics.jsonl")).unwrap();
    let small: String = (1..40)
        .map(|i| {
            format!("{{\"iteration\":{i},\"env_steps\":{},\"wall_s\":0.5,\"Train/mean_reward\":{i},\"Train/mean_episode_length\":9,\"Policy/mean_std\":1.0,\"Loss/value_function\":0.1,\"Eval/mean_reward\":3,\"Eval/std_reward\":1}}\n", i * 128)
        })
        .collect();
    Corpus::of_text(vec![real, small.into_bytes()], &TAGS)
}

pub fn metrics() -> Target {
    let dir = folder();
    Target {
        corpus: lines_of_metrics(),
        read: Box::new(move |bytes| {
            let path = dir.path().join("metrics.jsonl");
            let iteration = [0, 2, 17, u64::MAX][bytes.len() % 4];
            std::fs::write(&path, bytes).unwrap();
            let mut record = Record::default();
            record.begin(iteration, 5, 1.0);
            record.put("Train/mean_reward", 1.0);
            let mut writer = MetricsWriter::open(&path, iteration).unwrap();
            writer.write(&record).unwrap();
            // Only whole records up to the iteration remain.
            let left = std::fs::read(&path).unwrap();
            for line in left.split_inclusive(|&b| b == b'\n') {
                let v: serde_json::Value = serde_json::from_slice(line).unwrap();
                assert!(v["iteration"].as_u64().unwrap() <= iteration);
            }
            left.len() > 80
        }),
    }
}

/// Metrics as a judge of regressions reads them.
pub fn history() -> Target {
    Target {
        corpus: lines_of_metrics(),
        read: Box::new(|bytes| match History::parse(bytes) {
            Ok(all) => {
                // Each iteration once, and no number that is none.
                let lines = bytes.iter().filter(|&&b| b == b'\n').count();
                assert_eq!((all.0.len(), all.iterations()), (lines, lines as u64));
                for skip in [0, 3, usize::MAX] {
                    if let Ok(values) = all.values("Train/mean_reward", skip, None) {
                        assert!(!values.is_empty() && values.iter().all(|v| v.is_finite()));
                    }
                }
                all.not_finite(&["*reward".into()]).len() < 99
            }
            Err(why) => {
                assert!(why.contains("line "), "{why}");
                false
            }
        }),
    }
}

/// Baselines of throughput.
pub fn baselines() -> Target {
    let dir = folder();
    let path = dir.path().join("baselines.json");
    let mut all = Baselines::default();
    for (class, case, steps_per_s) in [("a", "x", 1.5), ("a", "y --short", 2e9), ("b", "x", 3.0)] {
        let date = "2026-11-20".into();
        let seeds = 3;
        let one = Baseline { steps_per_s, seeds, date };
        all.set(class, case, one);
    }
    all.write(&path).unwrap();
    let keys = ["\"version\"", "null", "1e999", "-0.0", "\"steps_per_s\"", "{", "}", "0"];
    Target {
        corpus: Corpus::of_text(vec![std::fs::read(&path).unwrap()], &keys),
        read: Box::new(move |bytes| {
            std::fs::write(dir.path().join("b.json"), bytes).unwrap();
            match Baselines::read(&dir.path().join("b.json")) {
                Ok(all) => all.get("a", "x").is_some_and(|b| b.steps_per_s > 0.0),
                Err(e) => e.to_string().is_empty(),
            }
        }),
    }
}

pub fn curve() -> Target {
    let dir = folder();
    Target {
        corpus: lines_of_metrics(),
        read: Box::new(move |bytes| {
            let path = dir.path().join("metrics.jsonl");
            std::fs::write(&path, bytes).unwrap();
            picture::draw(&path, &dir.path().join("curve.png"), "a name").is_ok()
        }),
    }
}

pub fn events() -> Target {
    let dir = folder();
    let real = std::fs::read(runs().run.join(tensorboard::FILE_NAME)).unwrap();
    Target {
        corpus: Corpus { files: vec![real], words: Vec::new(), text: false },
        read: Box::new(move |bytes| {
            let path = dir.path().join(tensorboard::FILE_NAME);
            let mut good = false;
            for file in [bytes.to_vec(), framed(bytes)] {
                std::fs::write(&path, &file).unwrap();
                let step = [0, 3, i64::MAX, i64::MIN][bytes.len() % 4];
                let mut writer = tensorboard::EventWriter::resume(dir.path(), step).unwrap();
                writer.scalars(1, 0.0, [("x", 1.0)]).unwrap();
                good |= std::fs::metadata(&path).unwrap().len() > 80;
            }
            good
        }),
    }
}

/// Records with checksums that are right, whatever is in them.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let crc = |b: &[u8]| crc32c::crc32c(b).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    let mut out = Vec::new();
    for data in bytes.chunks(61) {
        let len = (data.len() as u64).to_le_bytes();
        for part in [&len[..], &crc(&len), data, &crc(data)] {
            out.extend_from_slice(part);
        }
    }
    out
}

/// Between the sections of a file that is built anew from text.
pub const CUT: &[u8] = b"\n%%\n";

pub fn sections(bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(CUT.len()).position(|w| w == CUT) {
        all.push(&rest[..at]);
        rest = &rest[at + CUT.len()..];
    }
    all.push(rest);
    all
}

const KINDS: [(&str, Dtype, usize); 7] = [
    ("F32", Dtype::F32, 4),
    ("F64", Dtype::F64, 8),
    ("I64", Dtype::I64, 8),
    ("I32", Dtype::I32, 4),
    ("U8", Dtype::U8, 1),
    ("BOOL", Dtype::BOOL, 1),
    ("F16", Dtype::F16, 2),
];

/// Tensors as text, `NAME KIND D,D,...` a line, the collector's bytes apart.
fn text_of(file: &[u8]) -> Vec<u8> {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let json = &header.metadata().as_ref().unwrap()["ostler"];
    let mut text = json.clone().into_bytes();
    text.extend_from_slice(CUT);
    let all = SafeTensors::deserialize(file).unwrap();
    let mut collector = Vec::new();
    for (name, t) in all.tensors() {
        let kind = KINDS.iter().find(|k| k.1 == t.dtype()).unwrap().0;
        let shape: Vec<String> = t.shape().iter().map(usize::to_string).collect();
        if name == "collector" {
            collector = t.data().to_vec();
        } else {
            text.extend_from_slice(format!("{name} {kind} {}\n", shape.join(",")).as_bytes());
        }
    }
    text.extend_from_slice(CUT);
    text.extend_from_slice(&collector);
    text
}

/// The checkpoint that such text describes, with a checksum that is right. Numbers are
/// taken from the text's own bytes.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let [json, table, collector] = sections(bytes).try_into().ok()?;
    let json = String::from_utf8_lossy(json).into_owned();
    let mut tensors: Tensors = Tensors::new();
    let mut room = 1_usize << 20;
    for line in String::from_utf8_lossy(table).lines() {
        let mut words = line.split(' ');
        let name = words.next()?.to_string();
        let (_, kind, size) = KINDS.iter().find(|k| Some(k.0) == words.clone().next())?;
        let dims = words.nth(1)?.split(',').filter(|d| !d.is_empty());
        let shape: Vec<usize> = dims.map(|d| d.parse().ok()).collect::<Option<_>>()?;
        let bytes = shape.iter().try_fold(*size, |n, &d| n.checked_mul(d))?;
        room = room.checked_sub(bytes)?;
        // Small numbers: 0 and 1 in all kinds.
        let data = (0..bytes).map(|i| u8::from(i % size == 0 && name.len() % 2 == 0)).collect();
        tensors.insert(name, (*kind, shape, data));
    }
    let fresh = collector.to_vec();
    tensors.insert("collector".into(), (Dtype::U8, vec![fresh.len()], fresh));
    with_checksum(&json, &tensors)
}

pub fn checkpoint() -> Target {
    ostler_trainer::torch::init(1).unwrap();
    let runs = runs();
    let real = std::fs::read(newest(&runs.run)).unwrap();
    let words = [
        "learner/",
        "good/",
        "candidate/",
        "best/",
        "collector",
        "episodes",
        "F32",
        "I64",
        "U8",
        "BOOL",
        "0",
        "0,0",
        "1,1,1,1,1",
        "null",
        "\"version\":1",
        "\"iteration\"",
        "\"schedules\":[",
        "{",
        "}",
    ];
    let mut corpus = Corpus::of_text(vec![real.clone(), text_of(&real)], &words);
    let whole = sealed(&corpus.files[1]).unwrap();
    assert!(readers::checkpoint(&whole).is_ok());
    // Text more often than not.
    corpus.files.push(corpus.files[1].clone());
    let loaded = load(&runs.run.join("config.toml"), &[]).unwrap();
    let c = loaded.config.clone();
    let model = Arc::new(loaded.model().unwrap());
    let env = BatchEnv::new(model, &c.sim, &c.env, &c.task, c.seed).unwrap();
    let spec = env.spec().clone();
    let (steps, cpu) = (c.runner.num_steps_per_env, tch::Device::Cpu);
    let mut ppo = Ppo::new(&c.ppo, &c.actor, &c.critic, &spec, steps, c.seed, cpu).unwrap();
    let mut collector =
        SyncCollector::new(Box::new(env), steps, ppo.policy(), c.seed, true).unwrap();
    let (mut kept, good) = (Snapshot::default(), ppo.save().unwrap());
    collector.capture(&mut kept).unwrap();
    Target {
        corpus,
        read: Box::new(move |bytes| {
            let mut any = false;
            let built = sealed(bytes);
            for file in [Some(bytes), built.as_deref()].into_iter().flatten() {
                let Ok(read) = readers::checkpoint(file) else {
                    continue;
                };
                any = true;
                let Checkpoint { learner, good: older, collector: blob, .. } = &read;
                let _ = ppo.policy_mut().load(older);
                let _ = ppo.load(learner);
                let taken =
                    [collector.restore(blob).is_ok(), collector.restore_range(blob, true).is_ok()];
                if taken.contains(&true) {
                    collector.collect(ppo.policy_mut()).unwrap();
                }
                ppo.load(&good).unwrap();
                collector.restore(&kept).unwrap();
            }
            any
        }),
    }
}

/// `report.json`, `T N A`, the environments' bytes.
pub fn replay() -> Target {
    let runs = runs();
    let dir = folder();
    let copy = |from: &str, to: &Path| {
        let status =
            std::process::Command::new("cp").arg("-r").arg(runs.report.join(from)).arg(to).status();
        assert!(status.unwrap().success());
    };
    copy("config.toml", dir.path());
    copy("robot", dir.path());
    let start = std::fs::read(runs.report.join("start.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&start).unwrap();
    let shape: Vec<String> =
        tensors.tensor("actions").unwrap().shape().iter().map(usize::to_string).collect();
    let report = std::fs::read(runs.report.join("report.json")).unwrap();
    let environments = tensors.tensor("environments").unwrap().data().to_vec();
    let file = [&report[..], CUT, shape.join(" ").as_bytes(), CUT, &environments].concat();
    let words = ["\"breaks\"", "\"schedules\"", "\"env\"", "[]", "{}", "null", "8", "0"];
    let _ = &runs.place;
    Target {
        corpus: Corpus::of_text(vec![file.clone(), file], &words),
        read: Box::new(move |bytes| {
            let Ok([report, shape, environments]) = <[&[u8]; 3]>::try_from(sections(bytes)) else {
                return false;
            };
            let shape = String::from_utf8_lossy(shape).into_owned();
            let dims = shape.split_whitespace().map(|d| d.parse::<usize>().ok());
            let Some(dims) = dims.collect::<Option<Vec<_>>>() else {
                return false;
            };
            let Some(len) = dims.iter().try_fold(4_usize, |n, &d| n.checked_mul(d)) else {
                return false;
            };
            if len > 1 << 20 {
                return false;
            }
            let actions = vec![0; len];
            let Ok(actions) = TensorView::new(Dtype::F32, dims, &actions) else {
                return false;
            };
            let environments =
                TensorView::new(Dtype::U8, vec![environments.len()], environments).unwrap();
            let file = safetensors::serialize(
                [("environments", environments), ("actions", actions)],
                None,
            )
            .unwrap();
            std::fs::write(dir.path().join("start.safetensors"), file).unwrap();
            std::fs::write(dir.path().join("report.json"), report).unwrap();
            readers::replay(dir.path(), 4).is_ok()
        }),
    }
}
