//! A machine of fakes in a temporary folder: `PATH` holds a Python that plays the
//! parts the launcher asks of it, `CARGO` is a cargo that "builds" a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The lists of the checkout, and the hash of a wheel that says `good` and a new line.
const LISTS: [(&str, &str); 2] = [
    ("wheels.txt", include_str!("../../../src/libtorch/wheels.txt")),
    ("cuda.txt", include_str!("../../../src/libtorch/cuda.txt")),
];
const GOOD: &str = "106675dc1490d5cdd6d1f0410731316ce93fc964c6cf6726e2b0d53e19688feb";

/// Plays Python: `pip` is the script in `state/pip`, unpacking makes a libtorch. Notes
/// where it was started and whether it would import from there.
const PYTHON: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
state=STATE
echo "$(pwd) $PYTHONSAFEPATH" >> "$state/started"
case "$1 $2" in
--version*) echo "Python 3.12.0"; exit 0;;
*find_spec*) cat "$state/torch" 2>/dev/null; exit 0;;
esac
case "$1 $2 $3" in
"-m pip --version") test ! -e "$state/no_pip"; exit;;
"-m pip download")
    case " $* " in *" --require-hashes "*) ;; *) echo "no hashes?" >&2; exit 8;; esac
    while [ $# -gt 0 ]; do
        case "$1" in --dest) dest=$2;; --requirement) list=$2;; esac
        shift
    done
    IFS="= " read -r name empty version rest < "$list"
    name=$(echo "$name" | tr - _)
    deliver() {
        echo "$name" >> "$state/delivered"
        echo "$1" > "$dest/$name-$version-any.whl"
    }
    . "$state/pip"; exit;;
esac
case "$1" in
-c)
    folder=$3; shift 3
    for wheel; do
        name=$(basename "$wheel"); name=${name%%-*}
        mkdir -p "$folder/nvidia/$name"; echo "$name" > "$folder/nvidia/$name/lib.so"
    done
    case "$*" in */torch-*) ;; *) exit 0;; esac
    torch=$folder/torch
    mkdir -p "$torch/lib" "$torch/include/ATen"
    touch "$torch/lib/libtorch_cpu.so" "$torch/lib/libc10.so" "$torch/include/ATen/Context.h"
    echo "__version__ = '2.11.0+cu130'" > "$torch/version.py";;
*) echo "what is $*?" >&2; exit 9;;
esac
"#;

const CARGO: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
{ echo "$@"; env | grep -E "^(LIBTORCH|CARGO_PKG_|LD_LIBRARY_PATH)"; } > STATE/cargo_called
test -e STATE/cargo_fails && exit 101
echo '{"reason":"compiler-artifact","executable":null}'
echo '{"reason":"compiler-artifact","executable":"STATE/ostler"}'
"#;

const OSTLER: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
for argument; do echo "$argument"; done
env | grep -E "^(LIBTORCH|CARGO_PKG_|LD_LIBRARY_PATH)"
exit 42
"#;

pub struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    /// A checkout, an empty cache, a Python without torch whose pip delivers.
    pub fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        machine.write("repo/Cargo.toml", "");
        for (name, text) in LISTS {
            let (mut list, sum) = (String::new(), "--hash=sha256:");
            for line in text.lines() {
                match line.split_once(sum) {
                    Some((name, rest)) => list += &format!("{name}{sum}{GOOD}{}", &rest[64..]),
                    None => list += line,
                }
                list.push('\n');
            }
            machine.write(&format!("repo/xtask/src/libtorch/{name}"), &list);
        }
        machine.write("state/pip", "deliver good");
        machine.script("bin/python3", PYTHON);
        machine.script("state/cargo.sh", CARGO);
        machine.script("state/ostler", OSTLER);
        machine.script("bin/c++", "#!/bin/sh\n");
        machine
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.write(name, &text.replace("STATE", self.path("state").to_str().unwrap()));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What `pip download` does; `$name`, `$dest` and `deliver CONTENT` are at hand.
    pub fn pip(&self, script: &str) {
        self.write("state/pip", script);
    }

    pub fn forget_python(&self) {
        fs::remove_file(self.path("bin/python3")).unwrap();
    }

    /// A folder that passes for libtorch.
    pub fn libtorch(&self, name: &str, version: &str) -> PathBuf {
        for file in
            ["lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/Context.h", "__init__.py"]
        {
            self.write(&format!("{name}/{file}"), "");
        }
        self.write(&format!("{name}/version.py"), &format!("__version__ = '{version}'\n"));
        self.path(name)
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_train"));
        command
            .args(args)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("CARGO", self.path("state/cargo.sh"))
            .env("CARGO_MANIFEST_DIR", self.path("repo/xtask"))
            .env("OSTLER_CACHE", self.path("cache"))
            // Whatever the real machine has.
            .env("OSTLER_CUDA", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn fetch(&self) -> Output {
        self.command(&["--fetch-only"]).output().unwrap()
    }

    /// Fetches, and returns what was said on standard error.
    pub fn succeeds(&self) -> String {
        let output = self.fetch();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Fetches, which must fail with exit code 2 and say all of `words`.
    pub fn fails(&self, words: &[&str]) {
        let output = self.fetch();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        for word in words {
            assert!(said.contains(word), "no {word:?} in:\n{said}");
        }
        assert!(!self.path("repo/.libtorch/torch").exists());
    }

    /// Where `.libtorch/torch` points.
    pub fn link(&self) -> PathBuf {
        fs::read_link(self.path("repo/.libtorch/torch")).unwrap()
    }

    /// The packages pip delivered, in alphabetical order.
    pub fn delivered(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("state/delivered")).unwrap_or_default();
        let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        names(&self.path(name))
    }
}

/// The names in a folder, in alphabetical order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
