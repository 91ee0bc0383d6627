//! The bundle for a machine with a GPU, from packing to the merged summary, on the pretend GPU:
//! every item, small sizes.

use ostler_xtask::gpu_bundle::{Options, bundle};
use ostler_xtask::place::Place;
use ostler_xtask::pretend_gpu;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tools that a GPU's toolkit brings: the program runs, and what they would print is printed.
const TOOLS: [(&str, &str); 2] = [
    ("compute-sanitizer", "echo '========= ERROR SUMMARY: 0 errors'"),
    (
        "ncu",
        r#"echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","ostler_env_step(EnvArgs)","gpu__time_duration.sum","nsecond","1,234"'"#,
    ),
];

fn tools(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for (name, says) in TOOLS {
        let path = folder.join(name);
        // What comes behind the tool's own options: a program, by its full path.
        let text = format!(
            "#!/bin/sh\nwhile [ \"${{1#/}}\" = \"$1\" ]; do shift; done\n\"$@\" >&2 || exit 1\n{says}\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn run(part: &Path, folder: &Path, args: &[&str]) -> (bool, String) {
    let path = std::env::var("PATH").unwrap();
    let out = Command::new("python3")
        .arg(part.join("run.py"))
        .args(["--home"])
        .arg(folder.join("home"))
        .args(args)
        .env("PATH", format!("{path}:{}", folder.display()))
        .env("LIBTORCH", Place::from_env().unwrap().root.join(".libtorch/torch"))
        .env_remove("OSTLER_REQUIRE")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    (out.status.success(), text.into_owned())
}

#[test]
fn every_item_runs_on_the_pretend_gpu() {
    let place = Place::from_env().unwrap();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let compiler = std::env::var("CXX").unwrap_or("c++".into());
    let found = crate::need::Need::Compiler.or_skip(crate::need::runs(&compiler));
    let Some(()) = found else { return };
    let (_, variables) = pretend_gpu::build(&place, &target).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    tools(folder);
    let options = Options { dev: true, ..Options::default() };
    let parts = bundle(&place, &folder.join("bundle"), &options).unwrap();
    for part in &parts {
        let bytes: u64 =
            fs::read_dir(part).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes <= 48 << 20, "{} has {bytes} bytes", part.display());
    }
    // Without all pieces nothing runs; the order is nobody's business.
    if parts.len() > 1 {
        let (ok, said) = run(&parts[0], folder, &["--group", "1"]);
        assert!(!ok && said.contains("pieces are missing"), "{said}");
        for part in parts[1..].iter().rev() {
            let (ok, said) = run(part, folder, &["--add"]);
            assert!(ok, "{said}");
        }
    }
    let variables = variables.to_str().unwrap();
    let mut results = Vec::new();
    // The second has laboratories' robots, which a bundle for a test does not pack.
    for group in ["1", "3", "4", "5"] {
        let out = folder.join(group);
        let out = out.to_str().unwrap();
        let args = ["--group", group, "--pretend", variables, "--out", out];
        let (ok, said) = run(&parts[0], folder, &args);
        assert!(ok, "group {group}\n{said}");
        println!("{said}");
        results.push(folder.join(group).join("gpu-results.json"));
        assert!(folder.join(group).join("logs.tar.gz").is_file());
    }
    let all = folder.join("all");
    let mut args = vec!["--merge", all.to_str().unwrap()];
    args.extend(results.iter().map(|r| r.to_str().unwrap()));
    let (ok, said) = run(&parts[0], folder, &args);
    assert!(ok, "{said}");
    let summary = fs::read_to_string(all.join("summary.md")).unwrap();
    for text in [
        "| first contact | doctor | ok |",
        "| figures | figures::updates_by_events | ok |",
        "| profiles | memcheck | ok |",
        "ostler_env_step.gpu__time_duration.sum 1234",
        "| long | soak::soak_of_a_million_launches | ok |",
    ] {
        assert!(summary.contains(text), "{text}\n{summary}");
    }
    assert!(!summary.contains("FAILED"), "{summary}");
    // What is left out is what a pretend GPU cannot do.
    let line = summary.lines().find(|l| l.starts_with("Not run:"));
    let humanoid = "versus, humanoid (there is no configs/robots/humanoid.xml)";
    let expected = format!(
        "Not run: profile, Go1 (for a GPU alone); {humanoid}; regression (for a GPU alone)."
    );
    assert_eq!(line, Some(&expected[..]), "{summary}");
}
