//! `cargo xtask peers`: other programs and Ostler, measured in turn on the same cores, and the
//! tables of `docs/benchmarks.md`. `xtask/peers/peers.py` measures; here is what it needs.

use crate::place::Place;
use crate::{SetupError, cargo, libtorch, python, referee};
use std::ffi::OsString;
use std::path::PathBuf;

/// Installs what can be had, builds Ostler where `args` name no `--program`, and measures.
///
/// # Errors
/// No program, no Python, or `peers.py` fails; a peer's trouble is none, and stands in the tables.
pub fn peers(place: &Place, args: &[String]) -> Result<(), SetupError> {
    let given = args.iter().position(|arg| arg == "--program");
    let program = match given.map(|i| args.get(i + 1)) {
        Some(Some(program)) => {
            std::path::absolute(program).map_err(SetupError::io("find", program))?
        }
        Some(None) => return Err(SetupError::Usage("--program takes a path".into())),
        None => {
            libtorch::ensure(place)?;
            cargo::build_ostler(place, None)?
        }
    };
    let scripts = place.root.join("xtask/peers");
    let engines = referee::environment(place, "engines", &scripts.join("engines.txt"), "engines");
    let learners = referee::install_learners(place);
    let any = learners.as_ref().or(engines.as_ref()).ok().cloned();
    let any = any.or_else(|| python::interpreters().next().map(PathBuf::from));
    let any = any.ok_or_else(|| SetupError::Referee("python3 is not in PATH".into()))?;
    let robots = referee::ensure_peers(place, &any).map(Option::unwrap_or_default);
    // A path, or the words of what refused.
    let found = |it: Result<PathBuf, SetupError>| match it {
        Ok(path) => path.into_os_string(),
        Err(error) => OsString::from(format!("error: {error}")),
    };
    let mut command = python::command(&any);
    command.arg(scripts.join("peers.py")).args(args);
    command.arg("--program").arg(program);
    command.arg("--engines").arg(found(engines));
    command.arg("--learners").arg(found(learners));
    command.arg("--robots").arg(found(robots));
    command.current_dir(&place.root);
    let status = command.status().map_err(SetupError::io("start", any))?;
    match status.success() {
        true => Ok(()),
        false => Err(SetupError::Referee("peers.py fails: its words are above".into())),
    }
}
