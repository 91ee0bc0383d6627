//! One run of a case: the program itself trains, then evaluates, each in a process of
//! its own.

use super::case::Case;
use super::child::{self, Ended, Stop, tail};
use super::file::ReturnOf;
use super::judge::{JudgedRun, Raw, judge_run};
use super::metrics::History;
use super::plan::{CasePlan, Length};
use super::verdict::{Exit, Kind, Problem};
use ostler_learn::config::pass_on;
use ostler_run::run::METRICS;
use ostler_sim::files;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Lines of a failed run's output that are kept.
const SAID: usize = 20;
/// An evaluation that says more than this has no result (bytes).
const MAX_SAID: u64 = 16 << 20;

/// Trains and evaluates with one seed, below the folder `out`, and judges. Where speed is
/// compared, the program `against` trains the same at the same time.
pub fn run(
    case: &Case,
    plan: &CasePlan,
    seed: u64,
    out: &Path,
    stop: &Stop,
    against: Option<&Path>,
) -> JudgedRun {
    let clock = Instant::now();
    let name = format!("{}/seed_{seed}", case.name);
    let place = TrialFiles {
        run: out.join(&name),
        train: out.join(format!("{name}.train.txt")),
        eval: out.join(format!("{name}.eval.txt")),
    };
    let other = &TrialFiles {
        run: out.join(format!("{name}.against")),
        train: out.join(format!("{name}.against.txt")),
        eval: PathBuf::new(),
    };
    let against = against.filter(|_| plan.expect.throughput_share.is_some());
    let own = || train(&std::env::current_exe()?, case, plan, seed, &place, stop);
    let (ended, other_ended) = std::thread::scope(|threads| {
        let beside = against
            .map(|program| threads.spawn(move || train(program, case, plan, seed, other, stop)));
        let died = || Err(std::io::Error::other("its thread died"));
        (own(), beside.map(|thread| thread.join().unwrap_or_else(|_| died())))
    });
    let against = other_ended.map(|ended| (ended, History::read(&other.run.join(METRICS))));
    let history = History::read(&place.run.join(METRICS));
    let well = matches!(&ended, Ok(e) if e.exit == Exit::Code(0));
    let evaluated = match plan.expect.return_of {
        // Without a threshold nobody asks.
        ReturnOf::Evaluation if well && plan.expect.return_at_least.is_some() => {
            Some(evaluate(plan, &place, stop))
        }
        _ => None,
    };
    let raw = Raw {
        seed,
        folder: name,
        ended,
        history,
        against,
        evaluated,
        seconds: clock.elapsed().as_secs_f64(),
    };
    let mut judged = judge_run(plan, raw);
    if !judged.trial.problems.is_empty() {
        let said = [&place.train, &place.eval].map(|f| tail(f, SAID));
        judged.trial.said = said.concat();
        add_error(&mut judged.trial.problems, &judged.trial.said);
    }
    judged
}

/// Says behind an exit code what the program said of it.
fn add_error(problems: &mut [Problem], said: &[String]) {
    let Some(error) = said.iter().rfind(|l| l.starts_with("error")) else {
        return;
    };
    let coded = |p: &&mut Problem| matches!(p.kind, Kind::ExitCode | Kind::Evaluation);
    if let Some(problem) = problems.iter_mut().find(coded) {
        problem.message = format!("{}: {error}", problem.message);
    }
}

struct TrialFiles {
    run: PathBuf,
    train: PathBuf,
    eval: PathBuf,
}

fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    pass_on(&mut command);
    command
}

fn train(
    ostler: &Path,
    case: &Case,
    plan: &CasePlan,
    seed: u64,
    place: &TrialFiles,
    stop: &Stop,
) -> std::io::Result<Ended> {
    if let Some(folder) = place.run.parent() {
        files::own_folder(folder)?;
    }
    let mut command = program(ostler);
    command.arg("train").arg(&case.config).arg("--quiet");
    command.arg("--out").arg(&place.run);
    command.arg("--seed").arg(seed.to_string());
    let own = [
        format!("runner.max_iterations={}", plan.amount.iterations()),
        "runner.stop_at_return=0".into(),
        // A death is to be seen.
        "runner.supervise=false".into(),
    ];
    // The last policy is judged, after the run, so evaluations on the way are off; a case may
    // have them.
    let without = "runner.eval_interval=0".to_string();
    for set in [&without].into_iter().chain(&case.set).chain(&own) {
        command.arg("--set").arg(set);
    }
    if let Length::Time(time) = plan.amount {
        let seconds = format!("{}s", time.as_secs_f64());
        command.arg("--max-time").arg(seconds);
    }
    child::run(&mut command, &place.train, plan.limit, stop)
}

/// The mean return of the last checkpoint.
fn evaluate(plan: &CasePlan, place: &TrialFiles, stop: &Stop) -> Result<f64, Problem> {
    let io = |e| Problem::new(Kind::NotStarted, format!("the evaluation: {e}"));
    let mut command = program(std::env::current_exe().map_err(io)?);
    let episodes = plan.expect.episodes;
    command.arg("eval").arg(&place.run).arg("--json");
    command.arg("--episodes").arg(episodes.to_string());
    let ended = child::run(&mut command, &place.eval, plan.limit, stop).map_err(io)?;
    let fail = |kind, why: String| Err(Problem::new(kind, format!("the evaluation {why}")));
    if ended.stopped {
        return fail(Kind::Interrupted, "was stopped".into());
    }
    if ended.too_long {
        let limit = plan.limit.as_secs_f64();
        return fail(Kind::TimeLimit, format!("took longer than {limit} s"));
    }
    match &ended.exit {
        Exit::Code(0) => {}
        Exit::Code(code) => return fail(Kind::Evaluation, format!("ended with exit code {code}")),
        Exit::Signal(signal) => return fail(Kind::Signal, format!("died of {signal}")),
    }
    read_evaluation(&files::read(&place.eval, MAX_SAID).map_err(io)?, episodes)
}

/// The mean return in the output of `ostler eval --json`.
fn read_evaluation(said: &[u8], episodes: u32) -> Result<f64, Problem> {
    let fail = |kind, why: String| Err(Problem::new(kind, format!("the evaluation {why}")));
    // Warnings come before it.
    let json = said
        .split(|&b| b == b'\n')
        .rfind(|l| l.first() == Some(&b'{'))
        .and_then(|l| serde_json::from_slice::<serde_json::Value>(l).ok());
    let Some(json) = json else {
        return fail(Kind::Evaluation, "printed no result".into());
    };
    let done = json.get("episodes").and_then(serde_json::Value::as_u64);
    if done != Some(u64::from(episodes)) {
        let done = done.unwrap_or(0);
        let why = format!("completed {done} of {episodes} episodes: the others broke off");
        return fail(Kind::Evaluation, why);
    }
    match json.get("mean_return") {
        Some(serde_json::Value::Null) => {
            fail(Kind::NotFinite, "has a mean return that is not finite".into())
        }
        Some(value) => match value.as_f64() {
            Some(value) if value.is_finite() => Ok(value),
            _ => fail(Kind::Evaluation, format!("has the mean return {value}")),
        },
        None => fail(Kind::MissingMetric, "has no mean return".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_explained_by_what_was_said() {
        let said = ["warning: slow", "error: pendulum.toml names Python code"].map(String::from);
        let code = |kind| Problem::new(kind, "the run ended with exit code 2");
        let mut problems = [code(Kind::NotFinite), code(Kind::ExitCode)];
        add_error(&mut problems, &said);
        assert_eq!(problems[0].message, "the run ended with exit code 2");
        assert_eq!(
            problems[1].message,
            "the run ended with exit code 2: error: pendulum.toml names Python code"
        );
        add_error(&mut problems, &said[..1]);
        assert!(!problems[1].message.contains("slow"));
    }

    #[test]
    fn an_evaluation_counts_whole_or_not_at_all() {
        let read = |text: &str| read_evaluation(text.as_bytes(), 10);
        let kind = |text: &str| read(text).unwrap_err().kind;
        let good = "warning: slow\n{\"episodes\":10,\"mean_return\":4.5}\n";
        assert_eq!(read(good), Ok(4.5));
        let nan = "{\"episodes\":10,\"mean_return\":null}\n";
        assert_eq!(kind(nan), Kind::NotFinite);
        assert_eq!(kind("{\"episodes\":10}\n"), Kind::MissingMetric);
        let few = "{\"episodes\":9,\"mean_return\":4.5}\n";
        assert_eq!(kind(few), Kind::Evaluation);
        assert_eq!(kind("{\"mean_return\":4.5}\n"), Kind::Evaluation);
        assert_eq!(kind(""), Kind::Evaluation);
        assert_eq!(kind("{\"episodes\":10,\"mean_re"), Kind::Evaluation);
    }
}
