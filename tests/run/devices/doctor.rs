//! `ostler doctor` on machines of every kind.

use super::machine::{CudaPart, Machine};
use crate::common::text;
use crate::support::nvrtc::nvrtc_folder;
use serde_json::Value;

/// The finding about each subject, and the exit code.
fn examined(machine: &Machine, args: &[&str]) -> (Vec<Value>, i32) {
    let args = [&["doctor", "--json"], args].concat();
    let out = machine.ostler(&args).output().unwrap();
    let said = text(&out);
    assert!(!said.contains("panicked"), "{said}");
    let report: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e} {said}"));
    let findings = report["findings"].as_array().unwrap().clone();
    for f in &findings {
        let well = f["verdict"] == "ok";
        assert_eq!(f["remedy"].is_null(), well, "a remedy where it is needed: {f}");
        assert!(!f["found"].as_str().unwrap().contains('\n'), "one line: {f}");
    }
    let worst = ["problem", "warning", "ok"];
    let worst = worst.iter().find(|v| findings.iter().any(|f| f["verdict"] == **v));
    assert_eq!(report["verdict"], **worst.unwrap());
    (findings, out.status.code().unwrap())
}

/// Verdict and text of a subject.
fn of<'a>(findings: &'a [Value], subject: &str) -> (&'a str, &'a str) {
    let finding = findings.iter().find(|f| f["subject"] == subject);
    let finding = finding.unwrap_or_else(|| panic!("{subject} in {findings:?}"));
    let text = |key: &str| finding[key].as_str().unwrap();
    (text("verdict"), text("found"))
}

#[test]
fn a_machine_without_a_gpu_is_well_enough() {
    let machine = Machine::without_driver();
    let (findings, code) = examined(&machine, &[]);
    assert_eq!(code, 0);
    for subject in ["libtorch", "processor", "compiler", "memory", "cache", "runs"] {
        let (verdict, found) = of(&findings, subject);
        assert!(verdict != "problem" && !found.is_empty(), "{subject}: {found}");
    }
    let (verdict, found) = of(&findings, "driver");
    assert_eq!(verdict, "warning");
    assert!(found.contains("no NVIDIA driver"), "{found}");
    let (_, found) = of(&findings, "libtorch");
    assert!(found.contains("2.11.0 in /"), "{found}");

    // For people, on one screen.
    let out = machine.ostler(&["doctor"]).output().unwrap();
    let screen = String::from_utf8(out.stdout).unwrap();
    assert!(screen.lines().count() <= 40, "{screen}");
    for line in ["ok       libtorch   2.11.0", "warning  driver     no NVIDIA driver"] {
        assert!(screen.contains(line), "{line:?} not in\n{screen}");
    }
    assert!(screen.contains("-> install one"), "{screen}");
}

#[test]
fn what_a_configuration_needs_and_the_machine_lacks_is_a_problem() {
    let machine = Machine::without_driver();
    for args in [&["pole.toml", "--device", "cuda:0"][..], &["--device", "cuda:0"]] {
        let (findings, code) = examined(&machine, args);
        assert_eq!((of(&findings, "driver").0, code), ("problem", 1));
    }
    let (findings, code) = examined(&machine, &["pole.toml"]);
    assert_eq!((of(&findings, "driver").0, code), ("warning", 0));
    assert!(of(&findings, "config").1.contains("is sound"), "{findings:?}");

    let (findings, code) = examined(
        &machine,
        &["pole.toml", "env.num_envs=100000", "runner.num_steps_per_env=1000000"],
    );
    let (verdict, found) = of(&findings, "config");
    assert_eq!((verdict, code), ("problem", 1), "{found}");
    assert!(found.contains("MiB"), "{found}");

    let (findings, code) = examined(&machine, &["pole.toml", "env.num_env=4"]);
    let (verdict, found) = of(&findings, "config");
    assert_eq!((verdict, code), ("problem", 1), "{found}");
    assert!(found.contains("unknown key"), "{found}");
}

#[test]
fn a_gpu_is_not_looked_for_where_the_processor_is_asked_for() {
    let machine = Machine::with_driver(&[]).libtorch(CudaPart::Hollow);
    let (findings, code) = examined(&machine, &["--device", "cpu"]);
    assert_eq!(code, 0);
    assert!(of(&findings, "GPU").1.contains("not looked for"));
    assert!(findings.iter().all(|f| f["subject"] != "driver"));
}

#[test]
fn driver_gpus_and_what_nvml_says_of_them_are_told() {
    let machine = Machine::with_driver(&[]).libtorch(CudaPart::Hollow).nvml();
    let (findings, code) = examined(&machine, &[]);
    assert_eq!(code, 0);
    assert_eq!(of(&findings, "driver"), ("ok", "CUDA 13.0"));
    let gpu =
        "cuda:0 Fake GPU, capability 9.0, 60.0 GiB free of 80.0 GiB, 57 degrees, 312 W, 71 % busy";
    assert_eq!(of(&findings, "GPU"), ("ok", gpu));
    assert_eq!(of(&findings, "NVML").0, "ok");
    // This libtorch's CUDA part is an empty library.
    let (verdict, found) = of(&findings, "CUDA");
    assert_eq!(verdict, "warning");
    assert!(found.contains("finds 0 GPUs where the driver has 1"), "{found}");

    // NVML numbers the devices in another order: both have one name for each.
    let machine = Machine::with_driver(&[("FAKE_ORDER", "1")]).libtorch(CudaPart::Hollow).nvml();
    assert_eq!(of(&examined(&machine, &[]).0, "GPU"), ("ok", gpu));

    let machine = Machine::with_driver(&[("FAKE_DEVICES", "2")]).libtorch(CudaPart::None).nvml();
    let (findings, code) = examined(&machine, &["pole.toml", "--device", "cuda:2"]);
    assert_eq!(code, 1);
    let gpus = findings.iter().filter(|f| f["subject"] == "GPU").count();
    assert_eq!(gpus, 2);
    // NVML knows only the first.
    assert_eq!(of(&findings, "NVML").0, "warning");
    let (verdict, found) = of(&findings, "CUDA");
    assert_eq!(verdict, "problem");
    assert!(found.contains("computes on the processor only"), "{found}");
}

#[test]
fn a_gpu_that_is_hot_or_gone_is_told() {
    let hot = Machine::with_driver(&[("FAKE_HEAT", "1")]).libtorch(CudaPart::Hollow).nvml();
    let (findings, _) = examined(&hot, &[]);
    let (_, found) = of(&findings, "GPU");
    for words in ["94 degrees", "slowed by heat", "2 memory errors"] {
        assert!(found.contains(words), "{found}");
    }
    let gone = Machine::with_driver(&[("FAKE_GONE", "1")]).libtorch(CudaPart::Hollow).nvml();
    let (findings, code) = examined(&gone, &[]);
    assert_eq!((of(&findings, "NVML").0, code), ("warning", 0));
}

#[test]
fn the_compiler_for_gpus_is_found_or_missed() {
    let machine = Machine::with_driver(&[("OSTLER_NVRTC", "/nowhere")]).libtorch(CudaPart::Hollow);
    let (findings, code) = examined(&machine, &["pole.toml", "--device", "cuda:0"]);
    let (verdict, found) = of(&findings, "NVRTC");
    assert_eq!((verdict, code), ("problem", 1));
    assert!(found.contains("OSTLER_NVRTC=/nowhere"), "{found}");
    // Physics on the processor do without it.
    let args = ["pole.toml", "--device", "cuda:0", "sim.backend=rapier"];
    let (findings, _) = examined(&machine, &args);
    assert_eq!(of(&findings, "NVRTC").0, "warning");

    let Some(folder) = nvrtc_folder() else { return };
    let folder = folder.display().to_string();
    let machine = Machine::with_driver(&[("OSTLER_NVRTC", &folder)]).libtorch(CudaPart::Hollow);
    let (findings, _) = examined(&machine, &[]);
    let (verdict, found) = of(&findings, "NVRTC");
    assert!(verdict == "ok" && found.contains("libnvrtc"), "{found}");
}

#[test]
fn what_a_task_needs_of_a_gpu_is_told_without_one() {
    let Some(folder) = nvrtc_folder() else { return };
    let machine = Machine::without_driver();
    let ostler = |args: &[&str]| {
        let args = [&["doctor"], args].concat();
        machine.ostler(&args).env("OSTLER_NVRTC", &folder).output().unwrap()
    };
    let kernels = ["--json", "--arch", "sm_90", "--kernels", "pole.toml"];
    let out = ostler(&kernels);
    assert!(out.status.success(), "{}", text(&out));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let step = rows.iter().find(|r| r["entry"] == "ostler_env_step").unwrap();
    let number = |key: &str| step[key].as_f64().unwrap();
    assert!((16.0..=255.0).contains(&number("registers")), "{step}");
    assert!(number("stack") > 0.0, "{step}");
    assert_eq!((&step["config"], &step["architecture"]), (&"pole".into(), &"sm_90".into()));

    // For people: one line a program.
    let out = ostler(&kernels[1..]);
    let table = String::from_utf8(out.stdout).unwrap();
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains("pole             sm_90"), "{table}");

    for (args, words) in [
        (&["--kernels", "pole.toml", "--arch", "sm_1"][..], "no code for \"sm_1\""),
        (&["--kernels"], "no configurations in configs"),
    ] {
        let out = ostler(args);
        assert_eq!(out.status.code(), Some(2));
        assert!(text(&out).contains(words), "{}", text(&out));
    }
    let wrong =
        ["--arch", "sm_90", "--set", "task.reward.alive.expr=qpos", "--kernels", "pole.toml"];
    let out = ostler(&wrong);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out).contains("task.reward"), "{}", text(&out));
}
