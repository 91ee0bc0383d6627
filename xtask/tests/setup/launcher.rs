//! The launcher against fake Pythons, pips and cargos: every way to find libtorch,
//! every way to fail, each with its way out.

use super::support::Machine;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a GPU takes besides.
const CUDA: usize = 12;
const ALL: [&str; 3] = ["nvidia_cuda_cupti", "nvidia_cuda_runtime", "torch"];

#[test]
fn without_python_the_ways_out_are_named() {
    let machine = Machine::new();
    machine.forget_python();
    machine.fails(&[
        "neither python3 nor python",
        "apt install python3-pip",
        "LIBTORCH=",
        "OSTLER_CACHE=",
    ]);
}

#[test]
fn without_pip_the_ways_out_are_named() {
    let machine = Machine::new();
    machine.write("state/no_pip", "");
    machine.fails(&["`python3 -m pip` does not run", "ensurepip", "LIBTORCH="]);
}

#[test]
fn without_a_network_the_ways_out_are_named() {
    let machine = Machine::new();
    machine.pip("echo \"connection broken by 'NewConnectionError'\" >&2; exit 1");
    machine.fails(&["no connection", "HTTPS_PROXY", "same command again", "--fetch-only"]);
}

#[test]
fn a_full_disk_is_named_with_the_space_needed() {
    let machine = Machine::new();
    machine.pip("echo 'OSError: [Errno 28] No space left on device' >&2; exit 1");
    machine.fails(&["not enough space", "MB are needed", "OSTLER_CACHE"]);
}

#[test]
fn other_troubles_of_pip_are_quoted() {
    let machine = Machine::new();
    machine.pip("echo 'ERROR: the moon is in the wrong phase' >&2; exit 1");
    machine.fails(&["pip said\nERROR: the moon", "upgrade pip"]);
}

#[test]
fn a_wheel_with_another_hash_is_refused() {
    let machine = Machine::new();
    machine.pip("echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1");
    machine.fails(&["torch==2.11.0 was refused", "sha256", "PIP_INDEX_URL"]);
}

#[test]
fn a_wheel_with_another_hash_is_refused_even_where_pip_lets_it_through() {
    let machine = Machine::new();
    machine.pip("deliver evil");
    machine.fails(&["torch==2.11.0 was refused", "sha256"]);
    assert!(machine.list("cache/wheels").is_empty(), "{:?}", machine.list("cache/wheels"));
}

/// A checkout from elsewhere may hold a `pip.py` or a `zipfile.py`.
#[test]
fn python_imports_nothing_from_the_folder_the_launcher_is_started_in() {
    let machine = Machine::new();
    machine.succeeds();
    let started = fs::read_to_string(machine.path("state/started")).unwrap();
    assert!(started.lines().count() > 4, "{started}");
    for line in started.lines() {
        assert_eq!(line, "/ 1", "{started}");
    }
}

#[test]
fn a_fetch_that_is_killed_goes_on_with_the_wheels_it_had() {
    let machine = Machine::new();
    // The first wheel comes; in the midst of the second, the launcher is killed.
    machine.pip(
        "case $name in torch) deliver good;; \
         *) echo half > \"$dest/half.whl\"; kill -9 $PPID; exit 1;; esac",
    );
    let output = machine.fetch();
    assert_eq!(output.status.code(), None, "{output:?}");
    let left = machine.list("cache/wheels");
    assert!(left.iter().any(|name| name.starts_with("torch-2.11.0")), "{left:?}");
    assert!(left.iter().any(|name| name.starts_with(".part-")), "{left:?}");

    machine.pip("deliver good");
    let said = machine.succeeds();
    assert!(said.contains("kept from an earlier fetch: torch-2.11.0"), "{said}");
    assert_eq!(machine.delivered(), ALL);
    assert_eq!(machine.list("cache"), ["libtorch-2.11.0", "lock"], "nothing is left over");
}

#[test]
fn a_damaged_wheel_is_fetched_again() {
    let machine = Machine::new();
    machine.write("cache/wheels/torch-2.11.0-cp312.whl", "rotten");
    let said = machine.succeeds();
    assert!(said.contains("damaged, fetched again: torch-2.11.0"), "{said}");
    assert_eq!(machine.delivered(), ALL);
}

/// A machine whose driver is one, or is a file that none can load.
fn driver(machine: &Machine, loads: bool) -> std::path::PathBuf {
    machine.write("driver/libcuda.so.1", "none");
    machine.write("driver/nothing.c", "int nothing;");
    let folder = machine.path("driver");
    if loads {
        let status = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o", "libcuda.so.1", "nothing.c"])
            .current_dir(&folder)
            .status();
        assert!(status.unwrap().success());
    }
    folder
}

#[test]
fn what_a_gpu_takes_is_fetched_where_there_is_a_driver() {
    for (loads, more) in [(true, CUDA), (false, 0)] {
        let machine = Machine::new();
        let mut command = machine.command(&["--fetch-only"]);
        command.env_remove("OSTLER_CUDA");
        command.env("LD_LIBRARY_PATH", driver(&machine, loads));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(machine.delivered().len(), ALL.len() + more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("an NVIDIA driver is here"), loads, "{said}");
        // A second start finds everything.
        machine.pip("exit 1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(machine.delivered().len(), ALL.len() + more);
    }
}

#[test]
fn a_gpu_that_comes_later_adds_its_libraries_to_what_is_there() {
    let machine = Machine::new();
    machine.succeeds();
    assert_eq!(machine.delivered(), ALL);
    let mark = machine.path("cache/libtorch-2.11.0/torch/version.py");
    let before = fs::metadata(&mark).unwrap().modified().unwrap();
    let with_cuda = || {
        let mut command = machine.command(&["--fetch-only"]);
        command.env("OSTLER_CUDA", "1").output().unwrap()
    };
    // Killed in the midst of the third wheel.
    machine.pip("case $name in *cufile) kill -9 $PPID; exit 1;; *) deliver good;; esac");
    assert_eq!(with_cuda().status.code(), None);
    let cudnn = machine.path("cache/libtorch-2.11.0/nvidia/nvidia_cudnn_cu13/lib.so");
    assert!(!cudnn.exists());

    machine.pip("deliver good");
    let output = with_cuda();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("kept from an earlier fetch: nvidia_cublas"), "{said}");
    assert_eq!(machine.delivered().len(), ALL.len() + CUDA, "none came twice");
    assert!(cudnn.is_file());
    let after = fs::metadata(&mark).unwrap().modified().unwrap();
    assert_eq!(before, after, "libtorch itself stays as it was");
    assert_eq!(machine.list("cache"), ["libtorch-2.11.0", "lock"]);
}

#[test]
fn without_what_a_gpu_takes_the_processor_still_serves_unless_it_is_asked_for() {
    let machine = Machine::new();
    machine.succeeds();
    machine.pip("echo \"connection broken by 'NewConnectionError'\" >&2; exit 1");
    let mut command = machine.command(&["--fetch-only"]);
    command.env("LD_LIBRARY_PATH", driver(&machine, true));
    let output = command.env_remove("OSTLER_CUDA").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for words in ["GPUs cannot be used", "no connection", "OSTLER_CUDA=0"] {
        assert!(said.contains(words), "{words:?} not in {said}");
    }
    let output = command.env("OSTLER_CUDA", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn several_at_once_fetch_once() {
    let machine = Machine::new();
    machine.pip("sleep 0.3; deliver good");
    let start = |_| machine.command(&["--fetch-only"]).spawn().unwrap();
    let children: Vec<_> = (0..3).map(start).collect();
    let mut waited = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        waited += usize::from(String::from_utf8_lossy(&output.stderr).contains("waiting"));
    }
    assert!(waited >= 1, "nobody waited");
    assert_eq!(machine.delivered(), ALL);
}

#[test]
fn what_was_fetched_serves_other_checkouts_without_python() {
    let machine = Machine::new();
    machine.succeeds();
    assert_eq!(machine.link(), machine.path("cache/libtorch-2.11.0/torch"));
    fs::remove_dir_all(machine.path("repo/.libtorch")).unwrap();
    machine.forget_python();
    machine.succeeds();
    assert_eq!(machine.link(), machine.path("cache/libtorch-2.11.0/torch"));
}

#[test]
fn a_libtorch_that_others_may_change_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    machine.succeeds();
    let library = machine.path("cache/libtorch-2.11.0/torch/lib/libc10.so");
    fs::set_permissions(&library, fs::Permissions::from_mode(0o666)).unwrap();
    for linked in [true, false] {
        if !linked {
            fs::remove_dir_all(machine.path("repo/.libtorch")).unwrap();
        }
        let output = machine.fetch();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for words in ["libc10.so", "everybody", "OSTLER_TRUST_OWNER", "OSTLER_CACHE"] {
            assert!(said.contains(words), "{words:?} not in {said}");
        }
    }
}

#[test]
fn a_torch_of_python_in_the_right_version_is_used_and_nothing_fetched() {
    let machine = Machine::new();
    let torch = machine.libtorch("site/torch", "2.11.0+cpu");
    machine.write("state/torch", &torch.join("__init__.py").to_string_lossy());
    machine.succeeds();
    assert_eq!(machine.link(), torch);
    assert!(machine.delivered().is_empty());
}

#[test]
fn a_torch_of_python_in_another_version_is_named_and_passed_over() {
    let machine = Machine::new();
    let torch = machine.libtorch("site/torch", "2.9.1+cu128");
    machine.write("state/torch", &torch.join("__init__.py").to_string_lossy());
    let said = machine.succeeds();
    assert!(said.contains("python3's torch is not used") && said.contains("2.9.1+cu128"), "{said}");
    assert_eq!(machine.link(), machine.path("cache/libtorch-2.11.0/torch"));
}

#[test]
fn libtorch_of_the_user_wins_and_must_serve() {
    let machine = Machine::new();
    machine.succeeds();
    let own = machine.libtorch("own", "2.11.0");
    let output = machine.command(&["--fetch-only"]).env("LIBTORCH", &own).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(machine.link(), own);

    let old = machine.libtorch("old", "2.7.0");
    let output = machine.command(&["--fetch-only"]).env("LIBTORCH", &old).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("version 2.7.0, not 2.11.0") && said.contains("unset it"), "{said}");
    assert_eq!(machine.link(), own, "a refused one changes nothing");
}

#[test]
fn the_link_that_cargo_names_as_libtorch_is_not_the_choice_of_the_user() {
    let machine = Machine::new();
    let link = machine.path("repo/.libtorch/torch");
    let output = machine.command(&["--fetch-only"]).env("LIBTORCH", link).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(machine.link(), machine.path("cache/libtorch-2.11.0/torch"));
}

#[test]
fn a_link_to_something_gone_is_mended() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("repo/.libtorch")).unwrap();
    std::os::unix::fs::symlink("/gone", machine.path("repo/.libtorch/torch")).unwrap();
    machine.succeeds();
    assert_eq!(machine.link(), machine.path("cache/libtorch-2.11.0/torch"));
}

#[test]
fn the_program_gets_arguments_streams_and_exit_code_and_a_clean_environment() {
    let machine = Machine::new();
    machine.write("run.toml", "");
    let config = machine.path("run.toml").into_os_string().into_string().unwrap();
    let added = machine.path("repo/target/debug").into_os_string().into_string().unwrap();
    let output = machine
        .command(&[&config, "--seed", "7 8"])
        .env("CARGO_PKG_NAME", "ostler-xtask")
        .env("LIBTORCH_USE_PYTORCH", "1")
        .env("LD_LIBRARY_PATH", format!("{added}:/own/lib"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42), "{output:?}");
    // The fake ostler prints its arguments, then the variables that matter.
    let told = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines, ["train", config.as_str(), "--seed", "7 8", "LD_LIBRARY_PATH=/own/lib"]);
    // The fake cargo notes the same of itself.
    let built = fs::read_to_string(machine.path("state/cargo_called")).unwrap();
    let command = "build --release --package ostler-trainer --bin ostler --no-default-features \
                   --features ";
    let features = built.strip_prefix(command).unwrap_or_else(|| panic!("{built}"));
    let features = features.split(' ').next().unwrap();
    assert_eq!(features, ostler_xtask::processor::widest(), "{built}");
    assert!(built.ends_with("LD_LIBRARY_PATH=/own/lib\n"), "{built}");
    assert!(!built.contains("LIBTORCH") && !built.contains("CARGO_PKG_NAME"), "{built}");
}

#[test]
fn a_config_that_is_not_there_is_refused_before_anything_is_fetched() {
    let machine = Machine::new();
    for args in [&["no/such.toml"][..], &[]] {
        let output = machine.command(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains("usage: cargo run --bin train"), "{said}");
    }
    assert!(machine.delivered().is_empty());
}

#[test]
fn a_build_that_fails_gives_the_exit_code_of_cargo() {
    let machine = Machine::new();
    machine.write("state/cargo_fails", "");
    machine.write("run.toml", "");
    let config = machine.path("run.toml");
    let output = machine.command(&[config.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(101), "{output:?}");
}

#[test]
fn rapier_is_built_where_the_configuration_asks_for_it_and_said() {
    let machine = Machine::new();
    machine.write("run.toml", "[sim]\nbackend = \"rapier\"\n");
    machine.write("other.toml", "[sim]\nbackend = \"native\"\n");
    for (file, more, with) in [
        ("run.toml", None, true),
        ("other.toml", None, false),
        ("other.toml", Some("sim.backend=rapier"), true),
    ] {
        let config = machine.path(file).into_os_string().into_string().unwrap();
        let args: Vec<&str> = [config.as_str()].into_iter().chain(more).collect();
        let output = machine.command(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("built with rapier, as "), with, "{said}");
        let built = fs::read_to_string(machine.path("state/cargo_called")).unwrap();
        let features = format!("--features {}", ostler_xtask::processor::widest());
        let features = features + if with { ",rapier " } else { " " };
        assert!(built.contains(&features), "{built}");
    }
}

/// `cargo build` without libtorch ends in the C++ compiler, which names the remedy.
#[test]
fn a_build_without_libtorch_says_how_it_comes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let config = std::fs::read_to_string(root.join(".cargo/config.toml")).unwrap();
    let folder = ".cargo/missing";
    assert!(config.contains(&format!("CPLUS_INCLUDE_PATH = {{ value = \"{folder}\"")));
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a.cpp");
    std::fs::write(&source, "#include <torch/torch.h>\ntorch::Tensor x;\n").unwrap();
    let mut compiler = Command::new("c++");
    compiler.arg("-fsyntax-only").arg(&source).env("CPLUS_INCLUDE_PATH", root.join(folder));
    let out = compiler.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(err.matches("error").count(), 1, "{err}");
    assert!(err.contains("cargo xtask libtorch"), "{err}");
}
