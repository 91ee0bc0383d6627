//! Which Python of the referees `cargo xtask test` hands to the tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

const REQUIREMENTS: &str = "mujoco==3 --hash=sha256:0\n";

/// Notes the interpreters that it is given.
const CARGO: &str = "#!/bin/sh
echo \"$OSTLER_REFEREE_PYTHON\" > STATE/named
echo \"$OSTLER_LEARNERS_PYTHON\" > STATE/learners
echo 'test result: ok. 1 passed; 0 failed; 0 ignored'
";

/// `-m venv FOLDER` makes an interpreter that notes how it is called.
const PYTHON: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
case $1 in --version) exit 0;; esac
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'END'
#!/bin/sh
echo "$(pwd) $PYTHONSAFEPATH $*" >> STATE/pip
END
chmod +x "$3/bin/python"
"#;

/// A checkout with a libtorch and, in its cache, an environment of the referees.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.write("repo/Cargo.toml", "");
        machine.write("repo/tests/referee/requirements.txt", REQUIREMENTS);
        machine.write("libtorch/version.py", "__version__ = '2.11.0'\n");
        for file in ["lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/Context.h"] {
            machine.write(&format!("libtorch/{file}"), "");
        }
        let state = machine.path("state");
        machine.program("state/cargo", &CARGO.replace("STATE", state.to_str().unwrap()));
        let started = format!("#!/bin/sh\necho >> {}/started\nexit 1\n", state.display());
        machine.program("bin/python3", &started);
        let environment = machine.environment();
        machine.program(&format!("{environment}/bin/python"), "#!/bin/sh\n");
        machine.write(&format!("{environment}/lib/site-packages/numpy/core.py"), "");
        machine.write(&format!("{environment}/complete"), "");
        machine
    }

    fn environment(&self) -> String {
        let folder = ostler_xtask::referee::folder(&PathBuf::from("cache"), REQUIREMENTS);
        folder.into_os_string().into_string().unwrap()
    }

    fn python(&self) -> PathBuf {
        self.path(&format!("{}/bin/python", self.environment()))
    }

    fn module(&self) -> PathBuf {
        let module = "lib/site-packages/numpy/core.py";
        self.path(&format!("{}/{module}", self.environment()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        self.mode(name, 0o755);
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    /// `cargo xtask test a_test`, and the interpreter that the tests got.
    fn test(&self, environment: &[(&str, &str)]) -> (Output, String) {
        let _ = fs::remove_file(self.path("state/named"));
        let output = self.xtask(&["test", "a_test"], environment);
        let named = fs::read_to_string(self.path("state/named")).unwrap_or_default();
        (output, named.trim_end().to_owned())
    }

    /// The learners' interpreter that the tests got.
    fn learners(&self, environment: &[(&str, &str)]) -> String {
        let (output, _) = self.test(environment);
        assert!(output.status.success(), "{output:?}");
        let named = fs::read_to_string(self.path("state/learners")).unwrap();
        named.trim_end().to_owned()
    }

    fn xtask(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("CARGO", self.path("state/cargo"))
            .env("CARGO_MANIFEST_DIR", self.path("repo/xtask"))
            .env("OSTLER_CACHE", self.path("cache"))
            .env("OSTLER_CUDA", "0")
            .env("LIBTORCH", self.path("libtorch"))
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    /// The tests get this interpreter.
    fn takes(&self, python: &str, environment: &[(&str, &str)]) {
        let (output, named) = self.test(environment);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(named, python, "{output:?}");
    }

    /// They get none, and are told why; where referees are required nothing is run.
    fn refuses(&self, words: &[&str]) {
        for (required, code) in [("", 0), ("referee", 2)] {
            let (output, named) = self.test(&[("OSTLER_REQUIRE", required)]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert_eq!(named, "", "{said}");
            let ways = ["OSTLER_TRUST_OWNER", "OSTLER_CACHE", "OSTLER_REFEREE_PYTHON"];
            for word in words.iter().chain(&ways) {
                assert!(said.contains(word), "no {word:?} in {said}");
            }
        }
        assert!(!self.path("state/started").exists(), "a Python was started");
    }
}

#[test]
fn an_environment_that_others_may_change_is_not_started() {
    let machine = Machine::new();
    let python = machine.python().into_os_string().into_string().unwrap();
    machine.takes(&python, &[]);
    let (environment, module) = (machine.environment(), machine.module());
    let module = module.strip_prefix(machine.0.path()).unwrap().to_str().unwrap();
    // A module deep in it, a folder of it, the folder that it lies in.
    for (name, mode, before) in [
        (module, 0o646, 0o644),
        (&format!("{environment}/lib"), 0o777, 0o755),
        ("cache", 0o777, 0o755),
    ] {
        machine.mode(name, mode);
        let path = machine.path(name).canonicalize().unwrap();
        machine.refuses(&[path.to_str().unwrap(), "everybody"]);
        // Whom the user names is the user's choice.
        machine.takes(&python, &[("OSTLER_REFEREE_PYTHON", &python)]);
        machine.mode(name, before);
    }
    // An interpreter elsewhere, which everybody may replace.
    machine.program("open/python", "#!/bin/sh\n");
    fs::remove_file(machine.python()).unwrap();
    symlink(machine.path("open/python"), machine.python()).unwrap();
    machine.takes(&python, &[]);
    machine.mode("open", 0o777);
    machine.refuses(&["/open", "everybody"]);
}

#[test]
fn nothing_is_installed_where_others_may_change_it() {
    let machine = Machine::new();
    fs::remove_dir_all(machine.path(&machine.environment())).unwrap();
    machine.mode("cache", 0o777);
    machine.refuses(&["/cache", "everybody"]);
    let left = fs::read_dir(machine.path("cache")).unwrap().count();
    assert_eq!(left, 0, "something was made there");
    machine.mode("cache", 0o755);
    let (output, _) = machine.test(&[]);
    assert!(output.status.success(), "{output:?}");
    assert!(machine.path("state/started").exists(), "Python is asked now");
}

/// pip has hashes to check, imports nothing from here and builds nothing that runs.
#[test]
fn what_is_installed_has_the_hashes_of_the_list() {
    let machine = Machine::new();
    fs::remove_dir_all(machine.path(&machine.environment())).unwrap();
    let state = machine.path("state");
    machine.program("bin/python3", &PYTHON.replace("STATE", state.to_str().unwrap()));
    let python = machine.python().into_os_string().into_string().unwrap();
    machine.takes(&python, &[]);
    let called = fs::read_to_string(machine.path("state/pip")).unwrap();
    let list = machine.path("repo/tests/referee/requirements.txt");
    let [call] = called.lines().collect::<Vec<_>>()[..] else {
        panic!("{called}");
    };
    assert!(call.starts_with("/ 1 -m pip install "), "{call}");
    for argument in ["--require-hashes", "--only-binary=:all:"] {
        assert!(call.split(' ').any(|a| a == argument), "{call}");
    }
    let end = format!(" --requirement {}", list.display());
    assert!(call.ends_with(&end), "{call}");
    // The next time nothing is installed.
    machine.takes(&python, &[]);
    assert_eq!(fs::read_to_string(machine.path("state/pip")).unwrap(), called);
}

/// Gigabytes come to nobody who has not asked for them.
#[test]
fn learners_are_installed_on_request_and_then_tested_with() {
    let machine = Machine::new();
    let state = machine.path("state");
    let program = PYTHON.replace("STATE", state.to_str().unwrap());
    machine.program("bin/python3", &program);
    // A checkout that has no list of them.
    assert_eq!(machine.learners(&[]), "");
    let pin = |version: &str| {
        let line = format!("torch=={version} --hash=sha256:0\n");
        machine.write("repo/python/tests/learners.txt", &line);
    };
    pin("1");
    assert_eq!(machine.learners(&[]), "");
    assert!(!machine.path("state/pip").exists());
    let output = machine.xtask(&["learners"], &[]);
    assert!(output.status.success(), "{output:?}");
    let python = String::from_utf8(output.stdout).unwrap();
    let python = python.trim_end();
    let called = fs::read_to_string(machine.path("state/pip")).unwrap();
    assert!(called.contains(" --require-hashes "), "{called}");
    let list = machine.path("repo/python/tests/learners.txt");
    let end = format!(" --requirement {}\n", list.display());
    assert!(called.ends_with(&end), "{called}");
    assert_eq!(machine.learners(&[]), python);
    // Whom the user names comes first.
    let mine = [("OSTLER_LEARNERS_PYTHON", "/mine")];
    assert_eq!(machine.learners(&mine), "/mine");
    // Another list, another environment; one that was cut short is none.
    pin("2");
    assert_eq!(machine.learners(&[]), "");
    pin("1");
    let folder = PathBuf::from(python).ancestors().nth(2).unwrap().to_owned();
    fs::remove_file(folder.join("complete")).unwrap();
    assert_eq!(machine.learners(&[]), "");
    // What others may change is not started.
    fs::write(folder.join("complete"), "").unwrap();
    assert_eq!(machine.learners(&[]), python);
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(machine.learners(&[]), "");
    let required = [("OSTLER_REQUIRE", "learners")];
    let (output, _) = machine.test(&required);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("everybody"), "{said}");
}

/// Root can give files away; another user's test stops at a name that is nobody's.
#[test]
fn another_users_environment_counts_where_that_user_is_named() {
    let machine = Machine::new();
    let python = machine.python().into_os_string().into_string().unwrap();
    if std::os::unix::fs::chown(machine.module(), Some(4242), None).is_ok() {
        machine.refuses(&["core.py", "belongs to"]);
        machine.takes(&python, &[("OSTLER_TRUST_OWNER", "4242")]);
    }
    let (output, named) = machine.test(&[("OSTLER_TRUST_OWNER", "no such user")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("there is no such user"), "{said}");
    assert_eq!(named, "");
}

/// Notes how it is called, and fails in the part that the first argument names.
const NOTES: &str = r#"#!/bin/sh
case "$*" in *FAILS*) failed=1;; *) failed=0;; esac
echo "NAME $(pwd) $PYTHONSAFEPATH $*" >> STATE/called
case "$*" in *"maturin build"*) : > ROOT/target/dist/out/ostler-1-x.whl;; esac
exit $failed
"#;

#[test]
fn wheels_are_built_once_every_crate_is_there_and_its_licence_is_listed() {
    let machine = Machine::new();
    let (state, root) = (machine.path("state"), machine.path("repo"));
    let notes = |name: &str, fails: &str| {
        let text = NOTES.replace("NAME", name).replace("FAILS", fails);
        let text = text.replace("STATE", state.to_str().unwrap());
        text.replace("ROOT", root.to_str().unwrap())
    };
    machine.write("repo/xtask/src/dist/requirements.txt", REQUIREMENTS);
    machine.write("repo/configs/robots/a.xml", "");
    machine.write("repo/configs/a.toml", "");
    let venv = PYTHON
        .replace("echo \"$(pwd) $PYTHONSAFEPATH $*\" >> STATE/pip", "exec STATE/python \"$@\"");
    let venv = venv.replace("STATE", state.to_str().unwrap());
    machine.program("bin/python3", &venv);
    let root = root.canonicalize().unwrap();
    let root = root.display();
    let fetch = format!("cargo {root}  fetch --locked --target x86_64-unknown-linux-gnu");
    let notices = format!("python {root} 1 {root}/xtask/src/dist/notices.py ");
    let build = format!("python {root} 1 -m maturin build ");
    let all = [&fetch, &notices, &build];
    for (fails, last) in [("fetch", 1), ("notices.py", 2), ("nothing", 3)] {
        machine.program("state/cargo", &notes("cargo", fails));
        machine.program("state/python", &notes("python", fails));
        let _ = fs::remove_file(machine.path("state/called"));
        let out = machine.xtask(&["dist", "--environments"], &[("CXX", "c++")]);
        assert_eq!(out.status.success(), last == 3, "{fails}: {out:?}");
        let called = fs::read_to_string(machine.path("state/called")).unwrap();
        let called: Vec<&str> = called.lines().filter(|c| !c.contains("pip install")).collect();
        assert_eq!(called.len(), last, "{called:?}");
        for (call, expected) in called.iter().zip(all) {
            assert!(call.starts_with(expected.as_str()), "{call}\n{expected}");
        }
    }
}
