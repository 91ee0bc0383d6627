//! Which events are logged: `info`, or `warn,ostler_trainer::memory=debug`.
//!
//! Parts are separated by commas. A level alone holds for everything, `MODULE=LEVEL` for
//! all whose module's path begins so: `ostler` means all crates here. The longest that fits
//! an event counts. Modules that no part names are logged from `info` on.

use ostler_sim::names::nearest;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The environment's word, where the command line has none.
pub const VARIABLE: &str = "OSTLER_LOG";

/// Levels, from nothing to everything.
const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// Targets of this program's events; other crates have events, too.
const OURS: [&str; 4] = ["ostler", "ostler_collector", "ostler_sim", "ostler_trainer"];

/// Packages that show others as one, and those others: a filter names the former, events the
/// latter.
const PARTS: [(&str, &[&str]); 2] = [
    (
        "ostler_sim",
        &[
            "ostler_base",
            "ostler_model",
            "ostler_engine",
            "ostler_rapier",
            "ostler_lang",
            "ostler_env",
        ],
    ),
    (
        "ostler_trainer",
        &["ostler_machine", "ostler_learn", "ostler_draw", "ostler_run", "ostler_tools"],
    ),
];

/// All names with which a module of ours may begin.
fn ours() -> impl Iterator<Item = &'static str> {
    OURS.into_iter().chain(PARTS.iter().flat_map(|(_, parts)| parts.iter().copied()))
}

/// The modules that `path` names, as events have them.
fn modules(path: &str) -> Vec<String> {
    let (first, rest) = path.split_at(path.find("::").unwrap_or(path.len()));
    let Some((_, parts)) = PARTS.iter().find(|(package, _)| *package == first) else {
        return vec![path.to_string()];
    };
    let within = |part: &&str| {
        // The part itself may be what is named: `ostler_sim::model`.
        let own =
            part.strip_prefix("ostler_").and_then(|name| rest.split_once(&format!("::{name}")));
        let own = own.map(|(_, after)| after);
        let own = own.filter(|after| after.is_empty() || after.starts_with("::"));
        [Some(rest), own].into_iter().flatten().map(|m| format!("{part}{m}")).collect()
    };
    parts.iter().flat_map::<Vec<_>, _>(within).chain([path.to_string()]).collect()
}

/// A mistake in a filter and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error(
        "a part of the filter \"{filter}\" is empty: write a level such as info, or warn,ostler_trainer::memory=debug"
    )]
    Empty { filter: String },
    #[error(
        "\"{word}\" is no level{}; levels are off, error, warn, info, debug, trace",
        guess(.nearest)
    )]
    Level { word: String, nearest: Option<&'static str> },
    #[error("\"{module}\" has no level: write {module}=debug, for example")]
    NoLevel { module: String },
    #[error(
        "no module is called \"{module}\"{}; modules are written as ostler_trainer::memory",
        guess(.nearest)
    )]
    Module { module: String, nearest: Option<&'static str> },
}

fn guess(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |n| format!("; did you mean {n}?"))
}

fn level(word: &str) -> Result<LevelFilter, FilterError> {
    let known = LEVELS.iter().find(|(n, _)| n.eq_ignore_ascii_case(word));
    known.map(|(_, level)| *level).ok_or_else(|| FilterError::Level {
        word: word.into(),
        nearest: nearest(word, LEVELS.map(|(name, _)| name)),
    })
}

/// A module's path, as far as that can be known: those of other crates may be meant.
fn module(path: &str) -> Result<(), FilterError> {
    let wrong = |nearest| FilterError::Module { module: path.into(), nearest };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if path.split("::").any(|p| p.is_empty() || !p.chars().all(plain)) {
        return Err(wrong(None));
    }
    let first = path.split("::").next().unwrap_or_default();
    match nearest(first, ours()) {
        Some(ours) if ours != first => Err(wrong(Some(ours))),
        _ => Ok(()),
    }
}

/// Reads a filter.
///
/// # Errors
/// Names the part that says nothing.
pub fn parse(filter: &str) -> Result<Targets, FilterError> {
    let mut targets = Targets::new().with_default(LevelFilter::INFO);
    for part in filter.split(',').map(str::trim) {
        if part.is_empty() {
            let filter = filter.into();
            return Err(FilterError::Empty { filter });
        }
        if let Some((path, word)) = part.split_once('=') {
            module(path.trim())?;
            let level = level(word.trim())?;
            targets = targets.with_targets(modules(path.trim()).into_iter().map(|m| (m, level)));
            continue;
        }
        targets = match level(part) {
            Ok(level) => targets.with_default(level),
            Err(_) if part.contains("::") || ours().any(|name| name == part) => {
                let module = part.into();
                return Err(FilterError::NoLevel { module });
            }
            Err(e) => return Err(e),
        };
    }
    Ok(targets)
}

/// `filter` itself if it can be read: for the command line.
///
/// # Errors
/// As [`parse`].
pub fn checked(filter: &str) -> Result<String, FilterError> {
    parse(filter).map(|_| filter.to_string())
}

/// Filter of the command line, else of the environment; `None` where neither has one.
///
/// # Errors
/// The environment's cannot be read.
pub fn wanted(flag: Option<String>) -> Result<Option<String>, String> {
    if flag.is_some() {
        return Ok(flag);
    }
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    checked(&text).map(Some).map_err(|e| format!("{VARIABLE}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn the_longest_part_that_fits_counts_and_the_rest_is_info() {
        let allowed = |filter: &str, target: &str, level: Level| {
            parse(filter).unwrap().would_enable(target, &level)
        };
        for (filter, target, level, wanted) in [
            ("info", "ostler_sim::env", Level::INFO, true),
            ("info", "ostler_sim::env", Level::DEBUG, false),
            ("WARN", "ostler_sim", Level::INFO, false),
            ("off", "ostler_sim", Level::ERROR, false),
            ("ostler_trainer::memory=debug", "ostler_machine::memory::monitor", Level::DEBUG, true),
            ("ostler_trainer::memory=debug", "ostler_run::run", Level::DEBUG, false),
            ("ostler_trainer::memory=debug", "ostler_run::run", Level::INFO, true),
            ("ostler_trainer=debug", "ostler_tools::cli", Level::DEBUG, true),
            ("ostler_sim::model=debug", "ostler_model::mjcf", Level::DEBUG, true),
            ("ostler_sim::model=debug", "ostler_engine::physics", Level::DEBUG, false),
            ("ostler_sim::physics::rapier=debug", "ostler_rapier::step", Level::DEBUG, true),
            ("ostler_env::env=debug", "ostler_env::env::step", Level::DEBUG, true),
            ("warn, ostler=off,ostler::kernels=trace", "ostler::kernels", Level::TRACE, true),
            ("warn,wgpu_core=error", "wgpu_core::device", Level::WARN, false),
        ] {
            assert_eq!(allowed(filter, target, level), wanted, "{filter}: {target} {level}");
        }
    }

    #[test]
    fn every_crate_can_be_named() {
        let text = include_str!("../../../../Cargo.lock");
        let lock: toml::Table = toml::from_str(text).unwrap();
        let packages = lock["package"].as_array().unwrap().iter();
        let own = packages.filter(|p| p.get("source").is_none());
        for name in own.map(|p| p["name"].as_str().unwrap().replace('-', "_")) {
            // These two have no events in a run.
            let apart = ["ostler_python", "ostler_xtask"].contains(&&*name);
            assert_eq!(ours().any(|known| known == name), !apart, "{name}");
        }
    }

    #[test]
    fn a_wrong_filter_says_what_would_be_right() {
        for (filter, words) in [
            ("inof", "\"inof\" is no level; did you mean info?"),
            ("verbose", "levels are off, error, warn, info, debug, trace"),
            ("", "is empty"),
            ("info,", "is empty"),
            ("ostler_sim=loud", "\"loud\" is no level"),
            ("ostler_sim=", "\"\" is no level"),
            ("ostler_sim", "write ostler_sim=debug"),
            ("ostler_trainer::memory", "write ostler_trainer::memory=debug"),
            ("ostler_trianer::run=debug", "did you mean ostler_trainer?"),
            ("a b=debug", "no module is called \"a b\""),
            ("=debug", "no module is called \"\""),
            ("ostler_sim:::env=debug", "no module is called"),
        ] {
            let e = parse(filter).unwrap_err().to_string();
            assert!(e.contains(words), "{filter}: {e}");
        }
    }
}
