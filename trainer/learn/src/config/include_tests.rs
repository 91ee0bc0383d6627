//! Pins: what a configuration of several files is, and where its mistakes are.

use crate::config::{Config, Loaded, Override, load};
use std::path::Path;

/// Files in a folder of their own; loads the first.
fn files(files: &[(&str, &str)], overrides: &[&str]) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let overrides: Vec<Override> = overrides.iter().map(|o| Override::set(*o)).collect();
    let main = dir.path().join(files[0].0);
    let root = format!("{}/", dir.path().display());
    load(&main, &overrides).map_err(|e| e.to_string().replace(&root, ""))
}

const BASE: &str = r#"
name = "base"
description = "of the base"
[env]
num_envs = 64
decimation = 3
[task]
robot = "robots/a.xml"
[[task.action]]
actuators = ["*"]
[[task.observation]]
name = "q"
expr = "qpos"
noise = 0.1
[[task.observation]]
name = "q"
expr = "qvel"
group = "critic"
[[task.reward]]
name = "alive"
expr = "1"
[[task.reward]]
name = "effort"
expr = "sum(action^2)"
weight = -0.1
[[task.reset]]
target = "qpos"
uniform = [-0.1, 0.1]
[[curriculum]]
key = "task.reward.effort.weight"
points = [[0, -0.1]]
"#;

fn rewards(config: &Config) -> Vec<(&str, f64)> {
    let all = config.task.reward.iter();
    all.map(|r| (r.name.as_str(), r.weight)).collect()
}

#[test]
fn a_file_changes_what_it_extends() {
    let main = r#"
extends = "base.toml"
include = ["learners/ppo.toml", "learners/more.toml"]
[env]
decimation = 5
[[task.observation]]
name = "q"
noise = { normal = 0.2 }
[[task.observation]]
name = "q"
group = "critic"
expr = "2 * qvel"
[[task.reward]]
name = "effort"
weight = -0.5
[[task.reward]]
name = "alive"
enabled = false
[[task.reward]]
name = "new"
expr = "2"
enabled = true
[[task.reset]]
target = "qvel"
normal = 0.1
[[curriculum]]
key = "task.reward.effort.weight"
points = [[0, -0.7]]
"#;
    let all = [
        ("main.toml", main),
        ("base.toml", BASE),
        (
            "learners/ppo.toml",
            "[ppo]\ngamma = 0.9\n[env]\nnum_envs = 8\n[runner]\nmax_iterations = 7\n",
        ),
        ("learners/more.toml", "[ppo]\ngamma = 0.95\n"),
    ];
    let loaded = files(&all, &["runner.max_iterations=9"]).unwrap();
    let c = &loaded.config;
    assert_eq!((c.name.as_str(), c.description.as_str()), ("main", ""));
    assert_eq!((c.env.num_envs, c.env.decimation), (8, 5));
    assert_eq!((c.ppo.gamma, c.runner.max_iterations), (0.95, 9));
    assert_eq!(rewards(c), [("effort", -0.5), ("new", 1.0)]);
    assert_eq!(c.task.reward[0].expr, "sum(action^2)");
    let terms: Vec<&str> = c.task.observation.iter().map(|t| t.expr.as_str()).collect();
    assert_eq!(terms, ["qpos", "2 * qvel"]);
    // Lists without names are replaced.
    assert_eq!(c.task.reset.len(), 1);
    assert_eq!(c.task.reset[0].target, "qvel");
    assert_eq!(c.curriculum.len(), 1);
    assert_eq!(c.curriculum[0].points, [[0.0, -0.7]]);
    let names = loaded.files.iter().map(|f| f.file_name().unwrap().to_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["base.toml", "ppo.toml", "more.toml"]);
    // In one file, as runs keep it.
    let resolved = toml::to_string(c).unwrap();
    assert!(!resolved.contains("extends") && !resolved.contains("include"));
    let again = crate::config::parse(&resolved, Path::new("main.toml"), &[]).unwrap();
    assert_eq!(again.config, *c);
}

#[test]
fn an_empty_list_drops_what_the_base_has_in_it() {
    let main = "extends = \"base.toml\"\ncurriculum = []\n[task]\nmetric = []\n";
    let loaded = files(&[("main.toml", main), ("base.toml", BASE)], &[]).unwrap();
    assert!(loaded.config.curriculum.is_empty());
    assert_eq!(rewards(&loaded.config).len(), 2);
}

#[test]
fn paths_are_relative_to_the_file_that_has_them() {
    let child = "extends = \"../tasks/walk.toml\"\n";
    let walk = format!("extends = \"common/base.toml\"\n{}", "[task]\nrobot_folder = \"meshes\"\n");
    let all =
        [("mine/run.toml", child), ("tasks/walk.toml", &walk), ("tasks/common/base.toml", BASE)];
    let loaded = files(&all, &[]).unwrap();
    assert_eq!(loaded.config.task.robot, "../tasks/common/robots/a.xml");
    let folder = loaded.config.task.robot_folder.as_deref();
    assert_eq!(folder, Some("../tasks/meshes"));
}

#[test]
fn mistakes_are_shown_in_the_file_that_has_them() {
    let with = |extra: &str| format!("{BASE}{extra}");
    let unknown = with("[ppo]\ngama = 0.9\n");
    let all = [("main.toml", "extends = \"base.toml\"\n"), ("base.toml", unknown.as_str())];
    let e = files(&all, &[]).unwrap_err();
    let line = unknown.lines().count();
    assert!(e.starts_with(&format!("base.toml:{line}:1: unknown key \"gama\"")), "{e}");

    // Found after reading: a value of the base, and one of the file over it.
    let wrong = with("[runner]\nnum_steps_per_env = 0\n");
    let all = [("main.toml", "extends = \"base.toml\"\n"), ("base.toml", wrong.as_str())];
    let e = files(&all, &[]).unwrap_err();
    assert!(e.starts_with("base.toml:"), "{e}");
    let over = "extends = \"base.toml\"\n[runner]\nnum_steps_per_env = 0\n";
    let all = [("main.toml", over), ("base.toml", BASE)];
    let e = files(&all, &[]).unwrap_err();
    assert!(e.starts_with("main.toml:3:"), "{e}");

    let syntax = [("main.toml", "include = \"part.toml\"\n"), ("part.toml", "\n[ppo\n")];
    let e = files(&syntax, &[]).unwrap_err();
    assert!(e.starts_with("part.toml:2:") && e.contains("not valid TOML"), "{e}");

    let kind = [("main.toml", "extends = 3\n")];
    let e = files(&kind, &[]).unwrap_err();
    assert!(e.starts_with("main.toml:1:11: extends takes the path of a file, this is 3"), "{e}");

    let missing = [("main.toml", "\ninclude = [\"bsae.toml\"]\n"), ("base.toml", BASE)];
    let e = files(&missing, &[]).unwrap_err();
    assert!(e.starts_with("main.toml:2:12:"), "{e}");
    assert!(e.contains("no such file") && e.contains("did you mean \"base.toml\"?"), "{e}");
}

#[test]
fn files_that_ask_for_themselves_are_refused() {
    let all = [("a.toml", "extends = \"b/b.toml\"\n"), ("b/b.toml", "include = [\"../a.toml\"]\n")];
    let e = files(&all, &[]).unwrap_err();
    assert!(e.starts_with("b/b.toml:1:12:") || e.contains("b.toml:1:12:"), "{e}");
    assert!(e.contains("part of itself: a.toml -> b.toml -> a.toml"), "{e}");
    let own = [("a.toml", "include = [\"./a.toml\"]\n")];
    let e = files(&own, &[]).unwrap_err();
    assert!(e.contains("a.toml -> a.toml"), "{e}");
    // The same part twice is no circle, but there are bounds.
    let part = "[ppo]\ngamma = 0.9\n";
    let many = format!("include = [{}]\n", "\"p.toml\", ".repeat(65));
    let e = files(&[("a.toml", &many), ("p.toml", part)], &[]).unwrap_err();
    assert!(e.contains("more than 64 files"), "{e}");
}

#[test]
fn a_chain_of_files_ends_at_the_bound_whatever_its_length_and_its_links() {
    let dir = tempfile::tempdir().unwrap();
    let at = |i: usize| dir.path().join(format!("{i}.toml"));
    let chain = |n: usize, key: &str| {
        for i in 0..n {
            std::fs::write(at(i), format!("{key} = \"{}.toml\"\n", i + 1)).unwrap();
        }
        std::fs::write(at(n), "[ppo]\ngamma = 0.9\n").unwrap();
        load(&at(0), &[]).map_err(|e| e.to_string())
    };
    for key in ["extends", "include"] {
        let e = chain(10_000, key).unwrap_err();
        assert!(e.contains("64.toml:1:") && e.contains("more than 64 files"), "{e}");
        let e = chain(65, key).unwrap_err();
        assert!(e.contains("more than 64 files"), "{e}");
        // Whatever else the longest chain lacks, it is read.
        assert!(!chain(64, key).is_err_and(|e| e.contains("64 files")));
    }
    // Files that each ask for many: all of them count, those that wait, too.
    let all: Vec<String> = (1..=64).map(|i| format!("\"{i}.toml\"")).collect();
    for i in 0..=64 {
        let below = all[i.min(63)..].join(", ");
        std::fs::write(at(i), format!("include = [{below}]\n")).unwrap();
    }
    let e = load(&at(0), &[]).unwrap_err().to_string();
    assert!(e.contains("more than 64 files") || e.contains("part of itself"), "{e}");
    // A file under another name is the same file.
    std::fs::write(at(0), "extends = \"link.toml\"\n").unwrap();
    std::os::unix::fs::symlink("0.toml", dir.path().join("link.toml")).unwrap();
    let e = load(&at(0), &[]).unwrap_err().to_string();
    assert!(e.contains("part of itself"), "{e}");
    // A link that leads to itself leads nowhere.
    std::os::unix::fs::symlink("round.toml", dir.path().join("round.toml")).unwrap();
    std::fs::write(at(0), "extends = \"round.toml\"\n").unwrap();
    let e = load(&at(0), &[]).unwrap_err().to_string();
    assert!(e.contains("cannot read"), "{e}");
}

#[test]
fn files_that_are_no_configurations_are_not_shown() {
    for path in ["/proc/self/environ", "secret.key"] {
        let main = format!("extends = \"{path}\"\n");
        let e = files(&[("main.toml", &main), ("secret.key", "PASS WORD\n")], &[]).unwrap_err();
        assert!(e.contains("does not end in .toml") && !e.contains("PASS"), "{e}");
    }
}

#[test]
fn a_link_to_what_is_no_configuration_shows_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("secret.key"), "PASS WORD\n").unwrap();
    std::fs::write(at("base.toml"), "seed = 3\n").unwrap();
    std::os::unix::fs::symlink("secret.key", at("secret.toml")).unwrap();
    std::os::unix::fs::symlink("base.toml", at("link.toml")).unwrap();
    std::fs::write(at("main.toml"), "extends = \"secret.toml\"\n").unwrap();
    let e = load(&at("main.toml"), &[]).unwrap_err().to_string();
    assert!(e.contains("main.toml:1:") && e.contains("leads to a file"), "{e}");
    assert!(!e.contains("PASS"), "{e}");
    std::fs::write(at("main.toml"), "extends = \"link.toml\"\n").unwrap();
    let e = load(&at("main.toml"), &[]).err().map(|e| e.to_string());
    assert!(e.is_none_or(|e| !e.contains("leads to a file")));
}

#[test]
fn values_that_are_nested_without_end_are_refused() {
    let keys = vec!["a"; 78].join(".");
    // Tables within tables, each by a key of many parts.
    let tables = format!("{}1{}", format!("{keys} = {{").repeat(76), "}".repeat(76));
    let tables = tables.replacen("{1", "{ b = 1", 1);
    let lists = format!("a = {}{}\n", "[".repeat(5000), "]".repeat(5000));
    let headers = format!("[{}]\nb = 1\n", vec!["a"; 5000].join("."));
    for text in [tables, lists, headers] {
        let e = files(&[("main.toml", &text)], &[]).unwrap_err();
        assert!(e.starts_with("main.toml:1:"), "{}", &e[..e.len().min(300)]);
        assert!(e.contains("nested") || e.contains("recurs"), "{}", &e[..e.len().min(300)]);
        let set = format!("x={}", text.trim_end().trim_start_matches("a = "));
        assert!(files(&[("main.toml", "")], &[&set]).is_err());
    }
}

/// Two elements of one name are a mistake in one file, whatever else it extends.
#[test]
fn elements_of_one_name_in_one_file_are_not_merged() {
    let twice = |name: &str| {
        let reward =
            |expr: &str| format!("[[task.reward]]\nname = \"{name}\"\nexpr = \"{expr}\"\n");
        let main = format!("extends = \"base.toml\"\n{}{}", reward("2"), reward("3"));
        let loaded = files(&[("main.toml", &main), ("base.toml", BASE)], &[]).unwrap();
        let all = loaded.config.task.reward.iter().filter(|r| r.name == name);
        all.map(|r| r.expr.clone()).collect::<Vec<_>>()
    };
    // Both are there for the check that says of names that they are used twice.
    assert_eq!(twice("dup"), ["2", "3"]);
    assert_eq!(twice("alive"), ["2", "3"]);
}
