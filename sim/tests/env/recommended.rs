//! Pins: the language understands every expression that messages and pages recommend.
//!
//! A message is a text with a space in the program's sources, outside of tests; of a page
//! it is what stands in backticks. Wherever one has `name(...)`, `name` is a function of
//! the language, a reset's target or an event's quantity; and what stands there compiles for a robot, once its
//! placeholders (`BODY`, `x`, ...) are filled in.

use ostler_sim::config::{ResetTerm, TaskConfig};
use ostler_sim::model::terrain::{KindPlan, KindWord, Terrain, TerrainPlan};
use ostler_sim::model::{Model, mjcf};
use ostler_sim::task::Task;
use ostler_sim::task::expr::{
    Agents, Definitions, Draws, EventNumbers, HistoryBuilder, Looks, Program, Readings, Scope,
    Start, reference,
};
use ostler_sim::task::robot;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Read as calls, but nothing that is to be written into a task.
const OTHERS: [&str; 12] = [
    "sizeof",           // C++
    "static_assert",    // C++
    "value",            // a formula of docs/replay.md
    "worker",           // "worker(s)"
    "call",             // "call(s)"
    "speed",            // the page's own, of [task.let]
    "near",             // likewise
    "subtree",          // a name of parts, within others
    "body",             // a name of one kind of parts
    "geom",             // the same
    "site",             // the same
    "matrix_from_quat", // mjlab's
];

/// Placeholders, and what stands for them here.
const FILLED: [(&str, &str); 35] = [
    ("BODY", "torso"),
    ("FOOT", "torso"),
    ("SITE", "torso"),
    ("GEOM", "torso"),
    ("JOINT", "hip_1"),
    ("ACTUATOR", "hip_1"),
    ("NAME", "torso"),
    ("A", "torso"),
    ("B", "torso"),
    ("cube", "torso"),
    ("trunk", "torso"),
    ("foot", "torso"),
    ("body", "torso"),
    ("name", "torso"),
    ("hinge", "hip_1"),
    ("x", "NUMBERS"),
    ("y", "NUMBERS"),
    ("a", "NUMBERS"),
    ("b", "NUMBERS"),
    ("expr", "NUMBERS"),
    ("error", "NUMBERS"),
    ("std", "0.2"),
    ("sigma", "0.5"),
    ("lo", "0.1"),
    ("hi", "0.9"),
    ("low", "0.1"),
    ("high", "0.9"),
    ("v", "forward(torso)"),
    ("q", "quat(torso)"),
    ("c", "true"),
    ("condition", "contact(torso)"),
    ("mean", "0.5"),
    ("roll", "0.1"),
    ("pitch", "0.1"),
    ("yaw", "0.1"),
];
/// Stand-ins for numbers: one, several, a condition or a quaternion.
const NUMBERS: [&str; 4] = ["episode_progress", "forward(torso)", "contact(torso)", "quat(torso)"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path, ends: &str, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, ends, into);
        } else if path.to_string_lossy().ends_with(ends) {
            into.push(path);
        }
    }
}

/// The string literals of a Rust file, as they are written.
fn literals(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("r#\"") || rest.starts_with("r\"") {
            let (skip, end) = match rest.starts_with("r#") {
                true => (3, "\"#"),
                false => (2, "\""),
            };
            let len = rest[skip..].find(end).unwrap();
            found.push(&rest[skip..skip + len]);
            at += skip + len + end.len();
        } else if rest.starts_with('"') {
            let mut end = 1;
            while bytes[at + end] != b'"' {
                end += if bytes[at + end] == b'\\' { 2 } else { 1 };
            }
            found.push(&rest[1..end]);
            at += end + 1;
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            at += 1 + rest[1..].find('\'').unwrap().max(2) + 1;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Messages of the program and code in its pages, with where they stand.
fn texts() -> Vec<(String, String)> {
    let (mut sources, mut pages) = (Vec::new(), Vec::new());
    for part in [
        "trainer/machine/src",
        "trainer/learn/src",
        "trainer/draw/src",
        "trainer/run/src",
        "trainer/tools/src",
        "collector/src",
        "python/src",
        "sim/lang/src/config",
        "sim/lang/src/expr",
        "sim/env/src/task",
        "sim/env/src/env",
    ] {
        files(&root().join(part), ".rs", &mut sources);
    }
    sources.push(root().join("sim/lang/src/config.rs"));
    files(&root().join("docs"), ".md", &mut pages);
    pages.push(root().join("README.md"));
    let mut all = Vec::new();
    for path in &sources {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        // Programs for GPUs and robots are texts, too.
        let programs = [
            "/emit",
            "task/native/library",
            "task/native/print",
            "task/deploy/c",
            "export/c",
            "device/kernels",
        ];
        if name.contains("test") || programs.iter().any(|p| name.contains(p)) {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let own = text.split("#[cfg(test)]").next().unwrap().to_string();
        let messages = literals(&own).into_iter().filter(|l| l.contains(' '));
        all.extend(messages.map(|l| (name.clone(), l.replace("\\\"", "\""))));
    }
    for path in &pages {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        for (i, block) in text.split("```").enumerate() {
            if i % 2 == 1 {
                let lines = block.lines();
                let exprs = lines.filter_map(|l| l.split_once("expr = \""));
                let exprs = exprs.filter_map(|(_, e)| Some(e.rsplit_once('"')?.0));
                all.extend(exprs.map(|e| (name.clone(), e.replace("\\\"", "\""))));
                continue;
            }
            // C++ and Python, but for tasks' files.
            if name == "native.md" || name == "python.md" {
                continue;
            }
            let code = block.split('`').skip(1).step_by(2);
            all.extend(code.map(|c| (name.clone(), c.to_string())));
        }
    }
    all
}

/// Every `name(...)` of a text: the name and all of it, up to the bracket that closes it.
fn calls(text: &str) -> Vec<(&str, &str)> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (open, _) in text.match_indices('(') {
        let before = &text[..open];
        let from = before
            .rfind(|c| !part(c))
            .map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
        let name = &text[from..open];
        let method = before[..from].ends_with(['.', ':']);
        if method || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
            continue;
        }
        let mut depth = 0;
        let end = text[open..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        if let Some(end) = end {
            found.push((name, &text[from..=open + end]));
        }
    }
    found
}

/// With what stands for the placeholders.
fn filled(text: &str, numbers: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match part(c) {
            true => rest.find(|c| !part(c)).unwrap_or(rest.len()),
            false => c.len_utf8(),
        };
        let (word, after) = rest.split_at(len);
        // Of something: a component, `param.NAME`.
        let part_of = out.ends_with('.');
        // A function keeps its name: `contact(FOOT)`, but `previous(x)`.
        let place = FILLED.iter().find(|(p, _)| *p == word && !part_of && !after.starts_with('('));
        out += place.map_or(word, |(_, with)| match *with {
            "NUMBERS" => numbers,
            with => with,
        });
        rest = after;
    }
    out
}

fn ant() -> Model {
    let mut model = mjcf::load(&root().join("configs/robots/ant.xml")).unwrap();
    // Functions of the ground want one.
    let kinds = vec![KindPlan::new(KindWord::Flat)];
    let plan = TerrainPlan { levels: 1, columns: 1, kinds, ..TerrainPlan::default() };
    let (flat, _) = Terrain::generate(&plan, &|name| Err(name.to_owned())).unwrap();
    model.terrain = Some(std::sync::Arc::new(flat));
    model
}

/// Targets of resets, found by asking.
fn is_target(model: &Model, name: &str) -> bool {
    let mut cfg: TaskConfig = toml::from_str(
        "[[action]]\nactuators = [\"*\"]\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"",
    )
    .unwrap();
    cfg.reset =
        vec![ResetTerm { target: format!("{name}(no such thing)"), ..ResetTerm::default() }];
    let error = Task::compile(model, &cfg, 0.02).unwrap_err().to_string();
    !error.contains("no reset target")
}

/// Quantities of events, likewise.
fn is_quantity(model: &Model, name: &str) -> bool {
    let event = format!(
        "[[event]]\nname = \"e\"\nwhen = \"reset\"\nset = \"{name}(no such thing)\"\nrange = [0.0, 1.0]"
    );
    let cfg: TaskConfig = toml::from_str(&event).unwrap();
    let error = robot(&std::sync::Arc::new(model.clone()), &cfg).unwrap_err();
    !error.to_string().contains("no event sets")
}

#[test]
fn what_is_recommended_is_understood() {
    let model = ant();
    let reference = reference();
    let functions: HashSet<&str> = (reference.lines())
        .filter_map(|l| l.strip_prefix("| `")?.split(['`', '(']).next())
        .collect();
    assert!(functions.len() > 60, "{}", functions.len());
    let history = HistoryBuilder::default();
    let readings = Readings::default();
    let commands = [("velocity".to_string(), 2, "m/s".to_string())];
    let defined = Definitions { motion: Looks::with_step(0.02), ..Definitions::default() };
    let scope = Scope {
        model: &model,
        pose: &model.qpos0,
        commands: &commands,
        params: &[],
        action_width: model.nu(),
        agents: Some(Agents {
            names: &["red".to_string(), "blue".to_string()],
            agent: Some(0),
            others: &[1],
            action_first: 0,
        }),
        history: &history,
        readings: &readings,
        events: &EventNumbers::default(),
        defined: &defined,
        start: None,
    };
    let draws = Draws::default();
    let start =
        Scope { start: Some(Start { draws: &draws, of: "page", drawing: true }), ..scope.clone() };
    let (mut wrong, mut compiled) = (Vec::new(), 0);
    for (place, text) in texts() {
        for (name, call) in calls(&text) {
            if OTHERS.contains(&name) {
                continue;
            }
            if !functions.contains(name) {
                if !is_target(&model, name) && !is_quantity(&model, name) {
                    wrong.push(format!("{place}: {call}: no function `{name}`"));
                }
                continue;
            }
            // Parts of a text that is put together, and signatures, name functions only.
            let vague = ["{", "...", "()", "*", "[", "\\", "LIST", "each(expr)", "others(expr)"];
            if vague.iter().any(|v| call.contains(v)) {
                continue;
            }
            let tried = NUMBERS.map(|n| {
                let text = filled(call, n);
                Program::compile(&text, &scope).or_else(|e| {
                    let drawn = e.message.contains("drawn where an episode begins");
                    let scope = if drawn { &start } else { return Err(e) };
                    Program::compile(&text, scope)
                })
            });
            match &tried {
                all if all.iter().any(Result::is_ok) => compiled += 1,
                // The task's own names.
                [Err(e), ..] if place.ends_with(".md") && about_names(&e.message) => {}
                [Err(e), ..] => wrong.push(format!("{place}: {call}: {}", e.message)),
                [Ok(_), ..] => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compiled > 60, "{compiled}");
}

/// Another robot, or another task, has these names.
fn about_names(message: &str) -> bool {
    ["called", "unknown name", "fits the pattern", "takes a sensor"]
        .iter()
        .any(|part| message.contains(part))
}
