//! A case: a regression file that was read and checked, its configuration included.

use super::file::{Budget, CaseFile, Expect, Requirement};
use super::plan::{CasePlan, Length};
use crate::cli::time;
pub use ostler_learn::config::{ConfigErrors, Override, Places, load, parse_as};
use ostler_sim::config::ConfigError;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run that takes longer than this is killed, unless the file says otherwise.
const LIMIT: Duration = Duration::from_secs(600);
/// A run that is to train for a time takes so much longer, at most, to begin and end.
const AROUND: Duration = Duration::from_secs(300);

/// Keys that the runner sets itself, so that a file cannot.
const OWN: [(&str, &str); 6] = [
    ("seed", "the key is seeds"),
    ("runner.max_iterations", "the key is budget.iterations"),
    ("runner.stop_at_return", "a run goes on to the end of its budget"),
    ("runner.supervise", "a death must be seen, not mended"),
    ("runner.max_restarts", "a death must be seen, not mended"),
    ("log.dir", "runs are kept below --out"),
];

/// A case as read and checked, its configuration included.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name: a folder below `--out` is called so.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// One line.
    pub description: String,
    /// The run's configuration.
    pub config: PathBuf,
    /// `--set` of every run.
    pub set: Vec<String>,
    /// Requirement on the machine.
    pub requires: Option<Requirement>,
    /// The run and its limits.
    pub full: CasePlan,
    /// The same for `--short`.
    pub short: Option<CasePlan>,
}

impl Case {
    /// Reads a file.
    ///
    /// # Errors
    /// Every mistake in it or in the configuration it names, with their places.
    pub fn read(path: &Path) -> Result<Self, ConfigErrors> {
        let (file, places) = parse_as::<CaseFile>(path)?;
        let mut wrong = Vec::new();
        let name = match file.name.is_empty() {
            true => path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned()),
            false => file.name.clone(),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            let why = format!(
                "\"{name}\" names a folder: letters, digits, _, -, + and points, no point at its start"
            );
            wrong.push(ConfigError::new("name", why));
        }
        for (i, set) in file.set.iter().enumerate() {
            let key = set.split('=').next().unwrap_or_default().trim();
            if let Some((_, why)) = OWN.iter().find(|(own, _)| *own == key) {
                let why = format!("{key} cannot be set here: {why}");
                wrong.push(ConfigError::new(format!("set[{i}]"), why));
            }
        }
        if file.config.is_empty() {
            wrong.push(ConfigError::new("config", "which configuration is trained?"));
        }
        if !wrong.is_empty() {
            return Err(places.explain_all(&wrong));
        }
        let config = path.parent().unwrap_or(Path::new("")).join(&file.config);
        let label = |i| format!("{}: set[{i}]", path.display());
        let set = file.set.iter().enumerate();
        let overrides: Vec<Override> =
            set.map(|(i, text)| Override { flag: label(i), text: text.clone() }).collect();
        if !config.is_file() {
            let why = format!("there is no file {}", config.display());
            return Err(places.explain(&ConfigError::new("config", why)).into());
        }
        let loaded = load(&config, &overrides)?;
        let samples = match loaded.auto_envs {
            true => None,
            false => Some(loaded.config.samples()),
        };
        let full = part("", &file.seeds, &file.budget, &file.expect, samples);
        let short = file.short.as_ref().map(|s| {
            let plan = part("short.", &s.seeds, &s.budget, &s.expect, samples);
            plan.map_err(|e| explain(&places, &e))
        });
        let full = full.map_err(|e| explain(&places, &e));
        let (full, short) = match (full, short.transpose()) {
            (Ok(full), Ok(short)) => (full, short),
            (Err(mut a), Err(b)) => {
                a.0.extend(b.0);
                return Err(a);
            }
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        Ok(Self {
            name,
            file: path.to_path_buf(),
            description: file.description,
            config,
            set: file.set,
            requires: file.requires,
            full,
            short,
        })
    }
}

fn explain(places: &Places, errors: &[ConfigError]) -> ConfigErrors {
    places.explain_all(errors)
}

/// One of both forms of a case; `at` is the path before its keys, `samples` the
/// transitions of an iteration where they are known.
fn part(
    at: &str,
    seeds: &[u64],
    budget: &Budget,
    expect: &Expect,
    samples: Option<u64>,
) -> Result<CasePlan, Vec<ConfigError>> {
    let mut wrong = Vec::new();
    let mut no = |key: &str, why: String| wrong.push(ConfigError::new(format!("{at}{key}"), why));
    if seeds.is_empty() {
        no("seeds", "one run for each seed: at least one".into());
    }
    if seeds.iter().collect::<BTreeSet<_>>().len() < seeds.len() {
        no("seeds", "a seed that is there twice says nothing new".into());
    }
    if let Some(big) = seeds.iter().find(|&&s| i64::try_from(s).is_err()) {
        no("seeds", format!("{big} is larger than a seed can be"));
    }
    let mut span = |key: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(time::parse)?;
        match parsed {
            Ok(t) if t > Duration::ZERO => return Some(t),
            Ok(_) => no(key, "0 s are no time".into()),
            Err(why) => no(key, why),
        }
        None
    };
    let time = span("budget.time", &budget.time);
    let limit = span("budget.limit", &budget.limit);
    let given = [budget.iterations.is_some(), budget.env_steps.is_some(), budget.time.is_some()];
    if given.iter().filter(|g| **g).count() != 1 {
        let why = "exactly one of iterations, env_steps and time says how long a run trains";
        no("budget", why.into());
    }
    for (key, n) in
        [("budget.iterations", budget.iterations), ("budget.env_steps", budget.env_steps)]
    {
        if n.is_some_and(|n| n == 0 || n > 1 << 40) {
            no(key, "1 or more, and at most 2^40".into());
        }
    }
    if budget.env_steps.is_some() && samples.is_none() {
        let why = "with env.num_envs = \"auto\" nobody knows how many iterations that is: set env.num_envs";
        no("budget.env_steps", why.into());
    }
    if let (Some(time), Some(limit)) = (time, limit)
        && limit <= time
    {
        no("budget.limit", "a run that trains for budget.time takes longer than that".into());
    }
    check_expect(expect, &mut no);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let amount = match (budget.iterations, budget.env_steps, time) {
        (Some(n), ..) => Length::Iterations(n),
        (_, Some(n), _) => {
            Length::EnvSteps { steps: n, iterations: n.div_ceil(samples.unwrap_or(1).max(1)) }
        }
        (.., time) => Length::Time(time.unwrap_or_default()),
    };
    Ok(CasePlan {
        seeds: seeds.to_vec(),
        limit: limit.unwrap_or(time.map_or(LIMIT, |t| t.saturating_add(AROUND))),
        amount,
        expect: expect.clone(),
    })
}

fn check_expect(expect: &Expect, no: &mut impl FnMut(&str, String)) {
    if expect.episodes == 0 || expect.episodes > 100_000_000 {
        no("expect.episodes", "1 to 100,000,000".into());
    }
    if !(0.5..1.0).contains(&expect.confidence) {
        no("expect.confidence", "at least 0.5 and less than 1, as 0.95".into());
    }
    if expect.throughput_share.is_some_and(|s| s <= 0.0) {
        no("expect.throughput_share", "more than 0, as 0.8".into());
    }
    if expect.peak_memory_mib.is_some_and(|m| m <= 0.0) {
        no("expect.peak_memory_mib", "more than 0 (MiB)".into());
    }
    for (tag, bound) in &expect.metrics {
        let at = format!("expect.metrics.{tag}");
        match (bound.min, bound.max) {
            (None, None) => no(&at, "a bound needs min, max or both".into()),
            (Some(min), Some(max)) if min > max => {
                no(&at, format!("min {min} is larger than max {max}"));
            }
            _ => {}
        }
        if bound.last == Some(0) {
            no(&format!("{at}.last"), "1 or more iterations".into());
        }
        if bound.absent.is_some() && !tag.starts_with("Guard/") {
            let why = "only counters below Guard/ are left out while they are 0; any other metric that is missing is a failure";
            no(&format!("{at}.absent"), why.into());
        }
    }
}
