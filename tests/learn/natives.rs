//! Functions of C++ headers by the real program: the page's example, leave by the flag alone,
//! the run's own copy, resumed runs, mistakes.

use crate::common::forked::Forked as _;
use crate::common::natives::{PART, header, place};
use crate::common::{Place, assert_same_bits, metrics, root, text};

fn loaded(place: &Place) -> bool {
    let mark = place.path("loaded");
    let there = mark.exists();
    let _ = std::fs::remove_file(mark);
    there
}

/// It ends before anything is compiled, and says what it would run, and how.
fn refused(place: &Place, args: &[&str]) {
    let out = place.run(args);
    let said = text(&out);
    assert!(matches!(out.status.code(), Some(1 | 2)), "{args:?}: {said}");
    assert!(said.contains("would compile and run"), "{args:?}: {said}");
    assert!(said.contains("swing.cuh"), "{args:?}: {said}");
    assert!(said.contains("--allow-native"), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    assert!(!loaded(place), "{args:?} ran the code");
}

#[test]
fn without_the_flag_of_this_command_line_nothing_is_compiled_or_run() {
    let place = place();
    refused(&place, &["train", "pole.toml", "--quiet", "--out", "a"]);
    assert!(!place.path("a/config.toml").exists());
    refused(&place, &["play", "pole.toml", "--agent", "zero"]);
    refused(&place, &["bench", "pole.toml"]);
    // `check` describes the task, and says what it left out.
    let said = place.ok(&["check", "pole.toml", "--quiet"]);
    assert!(said.contains("NOT COMPILED: swing.cuh"), "{said}");
    assert!(said.contains("in[0]              rad"), "{said}");
    assert!(said.contains("out[0..1]          rad, -"), "{said}");
    assert!(said.contains("memory[0]"), "{said}");
    assert!(said.contains("before rewards and before observations"), "{said}");
    assert!(!loaded(&place));
    let said = place.ok(&["check", "pole.toml", "--quiet", "--allow-native"]);
    assert!(!said.contains("NOT COMPILED"), "{said}");
    assert!(loaded(&place), "`check` compiles and loads what it is allowed to");
    // A run that was allowed is not allowed for ever: whoever goes on says so again.
    place.train("b", 2, &["--allow-native"]);
    assert!(loaded(&place));
    let more = "runner.max_iterations=3";
    refused(&place, &["train", "--resume", "b", "--quiet", more]);
    let auto = ["train", "pole.toml", "--resume", "auto", "--out", "b", "--quiet", more];
    refused(&place, &auto);
    refused(&place, &["eval", "b", "--episodes", "2"]);
    refused(&place, &["play", "b"]);
    refused(&place, &["train", "b/config.toml", "--quiet", "--out", "c"]);
    // A failure is shown again by the same code.
    let mut args = vec!["train", "pole.toml", "--quiet", "--out", "f", "--allow-native"];
    let faults: Vec<String> = (17..33).map(|s| format!("nan qpos[0] share=0.5 step={s}")).collect();
    faults.iter().for_each(|f| args.extend(["--inject", f]));
    place.run(&args);
    loaded(&place);
    let report = std::fs::read_dir(place.path("f/failure")).unwrap().next();
    let report = report.unwrap().unwrap().path().display().to_string();
    refused(&place, &["replay", &report]);
    place.ok(&["replay", &report, "--allow-native"]);
    assert!(loaded(&place));
    // A suite gives its trainings what it was given.
    std::fs::create_dir(place.path("cases")).unwrap();
    std::fs::write(
        place.path("cases/pole.toml"),
        "description = \"x\"\nconfig = \"../pole.toml\"\nseeds = [1]\n[budget]\niterations = 2\n\
         [expect]\nreturn_at_least = -1000.0\n",
    )
    .unwrap();
    place.fails(1, &["regress", "cases", "--out", "suite"]);
    assert!(!loaded(&place));
    place.ok(&["regress", "cases", "--out", "again", "--allow-native"]);
    assert!(loaded(&place));
    // Nothing in a file can stand for the flag.
    let own = std::fs::read_to_string(place.path("b/config.toml")).unwrap();
    for (key, words) in [
        ("allow_native = true\n", "allow_native"),
        ("[task.native_code]\nleave = \"run\"\n", "native_code"),
    ] {
        let text = match key.starts_with('[') {
            true => format!("{own}\n{key}"),
            false => format!("{key}{own}"),
        };
        std::fs::write(place.path("forged.toml"), text).unwrap();
        let args = ["train", "forged.toml", "--quiet", "--out", "d"];
        let said = place.fails(2, &args);
        assert!(said.contains(words), "{said}");
        assert!(!loaded(&place));
    }
    let set = ["train", "pole.toml", "--quiet", "--set", "task.native.swing.allow=true"];
    place.fails(2, &set);
    place.ok(&["eval", "b", "--episodes", "2", "--allow-native"]);
    assert!(loaded(&place));
}

#[test]
fn a_run_keeps_its_functions_and_goes_on_with_the_same_bits() {
    let place = place();
    let allow = "--allow-native";
    let whole = place.train("whole", 6, &[allow]);
    let row = metrics(&whole);
    assert!(row.iter().any(|m| m["Metrics/swing"].as_f64().is_some_and(|x| x > 0.0)));
    place.train("threads", 6, &[allow, "--set", "sim.threads=2"]);
    assert_same_bits(&whole, &place.path("threads"));
    let part = place.train("part", 3, &[allow]);
    // The files are gone: the run has copies, which lie as the header names them.
    std::fs::remove_file(place.path("swing.cuh")).unwrap();
    std::fs::remove_dir_all(place.path("parts")).unwrap();
    let config = std::fs::read_to_string(part.join("config.toml")).unwrap();
    assert!(config.contains("file = \"native/0/swing.cuh\""), "{config}");
    assert!(config.contains("checksum = \""), "{config}");
    assert_eq!(std::fs::read_to_string(part.join("native/0/parts/decay.cuh")).unwrap(), PART);
    let go_on = ["train", "--resume", "part", "--quiet", "runner.max_iterations=6", allow];
    place.ok(&go_on);
    assert_same_bits(&whole, &part);
    let said = place.ok(&["eval", "part", "--episodes", "4", "--json", allow]);
    assert!(said.contains("\"swing\""), "{said}");
    // Somebody changed the copy: it is not the code that the run was trained with.
    let copy = part.join("native/0/parts/decay.cuh");
    std::fs::write(&copy, PART.replace("0.9", "0.8")).unwrap();
    loaded(&place);
    let more = ["train", "--resume", "part", "--quiet", "runner.max_iterations=7", allow];
    let said = place.fails(2, &more);
    assert!(said.contains("is not the file that the checksum is of"), "{said}");
    assert!(said.contains("task.native[0].checksum"), "{said}");
    assert!(!loaded(&place));
    std::fs::write(&copy, PART).unwrap();
    place.ok(&more);
    // Under a configuration with another header it would be another run.
    std::fs::write(place.path("swing.cuh"), header(&place.path("loaded"))).unwrap();
    std::fs::create_dir(place.path("parts")).unwrap();
    std::fs::write(place.path("parts/decay.cuh"), PART.replace("0.9", "0.7")).unwrap();
    let other =
        ["train", "pole.toml", "--resume", "part", "--quiet", "runner.max_iterations=8", allow];
    let said = place.fails(2, &other);
    assert!(said.contains("task.native[0].checksum: was"), "{said}");
    std::fs::write(place.path("parts/decay.cuh"), PART).unwrap();
    place.ok(&other);
}

#[test]
fn a_killed_run_is_started_again_with_its_functions() {
    let place = place();
    let whole = place.train("whole", 5, &["--allow-native"]);
    let killed =
        place.train("killed", 5, &["--allow-native", "--inject", "kill phase=update iteration=3"]);
    assert_same_bits(&whole, &killed);
    // Workers of an asynchronous collector have parts of the environments.
    let more = ["--allow-native", "collector.kind=async", "collector.workers=2"];
    place.train("workers", 3, &more);
}

#[test]
fn mistakes_are_shown_in_the_users_files() {
    let place = place();
    let good = header(&place.path("loaded"));
    let check = ["check", "pole.toml", "--quiet", "--allow-native"];
    let write = |text: &str| std::fs::write(place.path("swing.cuh"), text).unwrap();
    write(&good.replace("abs(in[0])", "abs(speed)"));
    let said = place.fails(2, &check);
    assert!(said.contains("pole.toml:"), "{said}");
    assert!(said.contains("task.native[0].file: does not compile"), "{said}");
    assert!(said.contains("swing.cuh:9:"), "{said}");
    assert!(said.contains("speed"), "{said}");
    // The first error is that of the part, with its own line.
    write(&good);
    std::fs::write(place.path("parts/decay.cuh"), PART.replace("0.9f", "rate")).unwrap();
    let said = place.fails(2, &check);
    assert!(said.contains("parts/decay.cuh:1:"), "{said}");
    std::fs::write(place.path("parts/decay.cuh"), PART).unwrap();
    write(&good.replace("(&in)[2]", "(&in)[3]"));
    let said = place.fails(2, &check);
    assert!(said.contains("declare it as OSTLER_NATIVE void swing(const Env& env, const float (&in)[2], float (&out)[2], float (&memory)[1])"), "{said}");
    // Without the flag the rest is checked all the same.
    write(&good.replace("void swing(", "void sving("));
    let said = place.fails(2, &["check", "pole.toml", "--quiet"]);
    assert!(said.contains("has no function called \"swing\""), "{said}");
    assert!(said.contains("did you mean \"sving\"?"), "{said}");
    write(&good);
    let missing = place.ostler(&check).env("OSTLER_CXX", "/nowhere/c++").forked().unwrap();
    let said = text(&missing);
    assert_eq!(missing.status.code(), Some(2), "{said}");
    assert!(said.contains("the header has to be compiled"), "{said}");
    assert!(said.contains("OSTLER_CXX"), "{said}");
    std::fs::remove_file(place.path("swing.cuh")).unwrap();
    let said = place.fails(2, &["train", "pole.toml", "--quiet", "--allow-native"]);
    assert!(said.contains("task.native[0].file: there is no file"), "{said}");
}

/// A code block of the page.
fn block<'a>(page: &'a str, first: &str) -> &'a str {
    let from = page.find(first).unwrap_or_else(|| panic!("the page has no {first}"));
    let end = page[from..].find("```").unwrap();
    &page[from..from + end]
}

#[test]
fn the_example_of_the_page_is_sound_and_trains() {
    let page = root().join("docs/native.md");
    let page = std::fs::read_to_string(page).unwrap();
    let place = Place::new();
    let configs = root().join("configs");
    for (name, to) in [
        ("quadruped.toml", "configs/quadruped.toml"),
        ("robots/quadruped.xml", "configs/robots/quadruped.xml"),
    ] {
        let to = place.path(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(configs.join(name), to).unwrap();
    }
    std::fs::write(place.path("trot.toml"), block(&page, "# trot.toml")).unwrap();
    std::fs::write(place.path("trot.cuh"), block(&page, "// trot.cuh")).unwrap();
    let said = place.ok(&["check", "trot.toml", "--quiet", "--allow-native"]);
    for line in ["in[1..4]", "out[0..2]", "in[0..2]           m", "native.ground"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let small = [
        "train",
        "trot.toml",
        "--allow-native",
        "--quiet",
        "--out",
        "trot",
        "env.num_envs=16",
        "runner.num_steps_per_env=8",
        "runner.max_iterations=2",
        "ppo.num_mini_batches=1",
        "actor.hidden_dims=[16]",
        "critic.hidden_dims=[16]",
        "sim.specialize=off",
        "runner.eval_interval=0",
    ];
    place.ok(&small);
    let rows = metrics(&place.path("trot"));
    let gait = rows.last().unwrap()["Guard/broken_envs"].as_f64();
    assert!(gait.is_none_or(|broken| broken == 0.0), "{gait:?}");
}
