//! Which parts of the program a training needs: the launcher builds no others.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a training needs rapier: where it is asked for, as a phrase. `args` are those of
/// `ostler train`. What asks for it in a way that is not seen here is refused by the program,
/// which names the remedy.
pub fn rapier(args: &[OsString]) -> Option<String> {
    let asked = Asked::of(args);
    // What is set replaces the files', the last one wins.
    if let Some((word, value)) = asked.backend {
        return (value == "rapier").then(|| format!("as {word} says"));
    }
    let named = |file: &PathBuf| {
        let text = fs::read_to_string(file).ok()?;
        names_rapier(&text, &asked.profile).then(|| format!("as {} says", file.display()))
    };
    asked.files.iter().find_map(named)
}

/// What the command line says of the configuration.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    /// The word that sets `sim.backend`, and its value.
    backend: Option<(String, String)>,
    /// The profile, if one is named.
    profile: String,
    /// Files with configurations.
    files: Vec<PathBuf>,
}

impl Asked {
    fn of(args: &[OsString]) -> Self {
        let mut asked = Self::default();
        let mut flag = None;
        for arg in args {
            let word = arg.to_string_lossy();
            match flag.take() {
                Some(flag) => asked.take(flag, &word),
                None if word.starts_with("--") => match word.split_once('=') {
                    Some((flag, value)) => asked.take(flag.to_owned(), value),
                    None => flag = Some(word.into_owned()),
                },
                None => asked.take(String::new(), &word),
            }
        }
        asked
    }

    /// A flag's value; what follows a flag without one is a word by itself.
    fn take(&mut self, flag: String, value: &str) {
        match flag.as_str() {
            "--profile" => self.profile = value.to_owned(),
            "--resume" => self.resumed(Path::new(value)),
            // Other flags' values are no files of configurations, or do no harm as such.
            _ => match value.split_once('=') {
                Some((key, value)) if !Path::new(&format!("{key}={value}")).exists() => {
                    let value = value.trim().trim_matches(['"', '\'']);
                    match key.trim() {
                        "sim.backend" => {
                            let word = format!("{}={value}", key.trim());
                            self.backend = Some((word, value.to_owned()));
                        }
                        "profile" => self.profile = value.to_owned(),
                        _ => {}
                    }
                }
                _ => {
                    let path = Path::new(value);
                    if path.extension().is_some_and(|e| e == "toml") || flag.is_empty() {
                        self.files.push(path.to_path_buf());
                    }
                }
            },
        }
    }

    /// A run's folder, the folder of a configuration's runs, or a checkpoint.
    fn resumed(&mut self, run: &Path) {
        let of_checkpoint = run.parent().and_then(Path::parent);
        let folders = [Some(run.to_path_buf()), Some(run.join("latest"))];
        let folders = (folders.into_iter().flatten()).chain(of_checkpoint.map(Path::to_path_buf));
        let files = folders.map(|folder| folder.join("config.toml"));
        // The first is the one that is meant.
        self.files.extend(files.filter(|file| file.is_file()).take(1));
    }
}

/// Whether a configuration names rapier, outside of comments and of profiles that are not asked
/// for. Not a reader of TOML: it may find one where none is meant, which costs a build.
fn names_rapier(text: &str, profile: &str) -> bool {
    let mut applies = true;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_matches(['[', ']', ' ']);
            let mut keys = table.split('.').map(|key| key.trim().trim_matches(['"', '\'']));
            applies = keys.next() != Some("profile") || keys.next().is_none_or(|p| p == profile);
        }
        let names = line.contains("\"rapier\"") || line.contains("'rapier'");
        if applies && names && line.contains("backend") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: &[&str]) -> Vec<OsString> {
        args.iter().map(OsString::from).collect()
    }

    #[test]
    fn rapier_is_found_in_files_profiles_and_runs() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path.to_string_lossy().into_owned()
        };
        let native = put("native.toml", "[sim]\nbackend = \"native\" # or \"rapier\"\n");
        let other = put("other.toml", "[sim]\nthreads = 2\nbackend = 'rapier'\n");
        let inline = put("inline.toml", "sim = { backend = \"rapier\" }\n");
        let dotted = put("dotted.toml", "sim.backend = \"rapier\"\n");
        let text =
            "[profile.a.sim]\nbackend = \"rapier\"\n[profile.b]\nseed = 1\n[env]\nnum_envs = 1\n";
        let profiles = put("profiles.toml", text);
        put("runs/x/config.toml", "[sim]\nbackend = \"rapier\"\n");
        put("runs/latest/config.toml", "[sim]\nbackend = \"rapier\"\n");
        put("runs/y/config.toml", "[sim]\nbackend = \"native\"\n");
        let run = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        let (x, y, runs) = (run("runs/x"), run("runs/y"), run("runs"));
        let checkpoint = run("runs/x/checkpoints/3.ckpt");
        for (args, expected) in [
            (&[native.as_str()][..], false),
            (&[&other], true),
            (&[&inline], true),
            (&[&dotted], true),
            (&[&profiles], false),
            (&[&profiles, "--profile", "a"], true),
            (&[&profiles, "--profile=a"], true),
            (&[&profiles, "profile=a"], true),
            (&[&profiles, "--set", "profile=a"], true),
            (&[&profiles, "--profile", "b"], false),
            (&[&native, "--set", "sim.backend=rapier"], true),
            (&[&native, "--set=sim.backend=\"rapier\""], true),
            (&[&native, "sim.backend=rapier"], true),
            (&[&other, "sim.backend=native"], false),
            (&["--quiet", &other], true),
            (&["--resume", &x], true),
            (&["--resume", &y], false),
            (&["--resume", &runs], true),
            (&["--resume", &checkpoint], true),
            (&[&format!("--resume={x}")], true),
            (&[&native, "--resume", "auto"], false),
            (&[&native, "--out", "rapier"], false),
            (&["nowhere.toml"], false),
        ] {
            let found = rapier(&words(args));
            assert_eq!(found.is_some(), expected, "{args:?}: {found:?}");
        }
        let why = rapier(&words(&[&other])).unwrap();
        assert!(why.contains("other.toml"), "{why}");
        let why = rapier(&words(&[&native, "sim.backend=rapier"])).unwrap();
        assert!(why.contains("sim.backend=rapier"), "{why}");
    }

    /// The launcher names them to cargo, which knows them from one file.
    #[test]
    fn what_is_built_is_a_feature_of_the_trainer_and_on_where_nothing_is_named() {
        let manifest = include_str!("../../trainer/Cargo.toml");
        let default = manifest.lines().find(|l| l.starts_with("default = ")).unwrap();
        for feature in ["rapier", "portable", "avx2", "avx512", crate::processor::widest()] {
            assert!(default.contains(&format!("\"{feature}\"")), "{feature}");
            assert!(manifest.contains(&format!("\n{feature} = [")), "{feature}");
        }
    }
}
