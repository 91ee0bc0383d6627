//! Whole folders of runs: pipes and devices in the place of files, forged checkpoints and
//! replay buffers whose checksums are right.

use super::drive::Target;
use super::mutate::Corpus;
use super::runs::{CUT, folder, sections};
use crate::common::forge::resealed;
use crate::common::{Place, TASK, newest};
use ostler_trainer::log::curve;
use ostler_trainer::readers;
use safetensors::tensor::SafeTensors;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A learner that remembers, so that its folder has everything.
const REPLAY: &str = "
[replay]
capacity = 300
storage = \"memmap\"
sampler = \"without_replacement\"
[sac]
batch_size = 32
num_updates = 1
learning_starts = 200
[runner]
algorithm = \"sac\"
num_steps_per_env = 16
max_iterations = 3
";

/// Where `rows.bin` has its commits.
const SLOTS: [u64; 2] = [8192, 8704];

fn run() -> &'static (Place, PathBuf) {
    static RUN: LazyLock<(Place, PathBuf)> = LazyLock::new(|| {
        let (head, rest) = TASK.split_once("[runner]").unwrap();
        let (_, tail) = rest.split_once("[learner]").unwrap();
        let place = Place::with(&format!("{head}{REPLAY}\n[learner]{tail}"));
        let run = place.train("a", 3, &[]);
        // A run that is at its end is not resumed.
        let config = run.join("config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        assert!(text.contains("max_iterations = 3"));
        let text = text.replace("max_iterations = 3", "max_iterations = 9");
        std::fs::write(&config, text).unwrap();
        (place, run)
    });
    &RUN
}

/// Files below a folder, by their names in it.
fn files(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let name = match below {
            "" => name,
            _ => format!("{below}/{name}"),
        };
        match entry.file_type().unwrap().is_dir() {
            true => files(folder, &name, found),
            false => found.push(name),
        }
    }
}

/// Puts something in the place of a file, or changes it.
fn change(words: &[&str], path: &Path) -> Option<()> {
    let number = |i: usize| words.get(i)?.parse::<u64>().ok();
    let open = || std::fs::File::options().write(true).open(path).ok();
    match words[0] {
        "cut" | "hole" => open()?.set_len(number(2)?).ok()?,
        "commit" => {
            let numbers: Vec<u64> = (3..7).map(number).collect::<Option<_>>()?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            let check = crc32c::crc32c(&bytes).to_le_bytes();
            let slot = SLOTS[number(2)? as usize % 2];
            open()?.write_all_at(&[&bytes[..], &check].concat(), slot).ok()?;
        }
        kind => {
            std::fs::remove_file(path).ok()?;
            match kind {
                "pipe" => {
                    let name = std::ffi::CString::new(path.to_str()?).ok()?;
                    // SAFETY: the name is a C string, which the call reads.
                    unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
                }
                "socket" => drop(std::os::unix::net::UnixListener::bind(path)),
                "device" => symlink("/dev/zero", path).ok()?,
                "loop" => symlink(path, path).ok()?,
                "folder" => std::fs::create_dir(path).ok()?,
                _ => {}
            }
        }
    }
    Some(())
}

/// The places of all numbers in a JSON, as pointers.
fn numbers(json: &serde_json::Value, at: &str, found: &mut Vec<String>) {
    match json {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                numbers(value, &format!("{at}/{key}"), found);
            }
        }
        serde_json::Value::Number(_) => found.push(at.to_string()),
        _ => {}
    }
}

/// With a number of the JSON replaced; as it is where there is none.
fn with_number(json: &str, words: &[&str]) -> Option<String> {
    let mut json: serde_json::Value = serde_json::from_str(json).ok()?;
    let number: u64 = words.get(2)?.parse().ok()?;
    *json.pointer_mut(words.get(1)?)? = number.into();
    Some(json.to_string())
}

/// A run's folder: changes line by line (`pipe metrics.jsonl`, `commit replay/rows.bin 0 9
/// 0 5 5`, `json /task/num_envs 9`), then the JSON of its checkpoint, whose checksum is put
/// right.
pub fn run_folder() -> Target {
    ostler_trainer::torch::init(1).unwrap();
    let (_, run) = run();
    let mut names = Vec::new();
    files(run, "", &mut names);
    names.sort();
    let checkpoint = newest(run);
    let checkpoint = checkpoint.strip_prefix(run).unwrap().to_path_buf();
    names.retain(|n| !n.ends_with("best.safetensors") && !n.contains("curve"));
    names.retain(|n| !n.starts_with("checkpoints") || Path::new(n) == checkpoint);
    let base: Vec<(String, Vec<u8>)> =
        names.into_iter().map(|n| (n.clone(), std::fs::read(run.join(n)).unwrap())).collect();
    let whole = std::fs::read(run.join(&checkpoint)).unwrap();
    let (_, header) = SafeTensors::read_metadata(&whole).unwrap();
    let json = header.metadata().as_ref().unwrap()["ostler"].clone();
    let with = |lines: &str| [lines.as_bytes(), CUT, json.as_bytes()].concat();
    let mut corpus: Vec<Vec<u8>> = vec![with(""), with("commit replay/rows.bin 0 90 212 512 512")];
    const LARGE: u64 = 1 << 62;
    for slot in [0, 1] {
        let line = format!("commit replay/rows.bin {slot} {} 0 {LARGE} {LARGE}", 90 + slot);
        corpus.push(with(&line));
    }
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut places = Vec::new();
    numbers(&parsed, "", &mut places);
    assert!(places.iter().any(|p| p == "/task/num_envs"), "{places:?}");
    for place in &places {
        for number in [200_000, LARGE, u64::MAX] {
            corpus.push(with(&format!("json {place} {number}")));
        }
    }
    // A pass of which nothing is there.
    corpus.push(with(&format!(
        "json /replay/progress/len {LARGE}\njson /replay/progress/first {}",
        LARGE - 1
    )));
    for (name, _) in &base {
        let kinds = ["pipe", "device", "folder", "socket", "loop", "gone"];
        let lines = kinds.map(|kind| format!("{kind} {name}\n"));
        corpus.extend(lines.map(|line| with(&line)));
        corpus.push(with(&format!("cut {name} 100\nhole {name} 4398046511104")));
    }
    let mut words: Vec<&str> = base.iter().map(|(n, _)| n.as_str()).collect();
    words.extend(["commit", "hole", "cut", "null", "true", "{", "}", "\"num_envs\":9"]);
    Target {
        corpus: Corpus::of_text(corpus, &words),
        read: Box::new(move |bytes| {
            let Ok([lines, json]) = <[&[u8]; 2]>::try_from(sections(bytes)) else {
                return false;
            };
            let dir = folder();
            for (name, bytes) in &base {
                let path = dir.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            let mut json = String::from_utf8_lossy(json).into_owned();
            for line in String::from_utf8_lossy(lines).lines().take(20) {
                let words: Vec<&str> = line.split(' ').collect();
                if words[0] == "json"
                    && let Some(other) = with_number(&json, &words)
                {
                    json = other;
                }
            }
            let forged = resealed(&whole, &json);
            std::fs::write(dir.path().join(&checkpoint), forged).unwrap();
            for line in String::from_utf8_lossy(lines).lines().take(20) {
                let words: Vec<&str> = line.split(' ').collect();
                // Nothing but the files of this folder.
                let name = words.get(1).and_then(|n| base.iter().find(|b| b.0 == *n));
                if let Some((name, _)) = name {
                    change(&words, &dir.path().join(name));
                }
            }
            let seen = [
                curve::draw(&dir.path().join("metrics.jsonl"), &dir.path().join("drawn.png"), "x")
                    .is_ok(),
                readers::watch(dir.path()).is_ok(),
                readers::resume(dir.path()).is_ok(),
            ];
            seen.contains(&true)
        }),
    }
}
