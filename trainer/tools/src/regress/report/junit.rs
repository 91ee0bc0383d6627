//! JUnit XML as Jenkins, GitHub's and GitLab's readers take it: a suite for each case,
//! in it a test for each run and for each check.

use super::super::suite::Suite;
use super::super::verdict::{CaseResult, Check, Problem, Trial, Verdict};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The document.
///
/// # Errors
/// It cannot be written as XML.
pub(crate) fn text(suite: &Suite) -> Result<String, SerializeError> {
    let mut report = Report::new(format!("ostler regress {}", suite.dir));
    report.set_time(seconds(suite.seconds));
    for case in &suite.cases {
        report.add_test_suite(one(suite, case));
    }
    report.to_string()
}

fn one(suite: &Suite, case: &CaseResult) -> TestSuite {
    let mut tests = TestSuite::new(case.name.as_str());
    tests.set_time(seconds(case.seconds));
    tests.add_property(("machine", suite.machine.class.as_str()));
    tests.add_property(("file", case.file.as_str()));
    let mut add = |name: &str, status: TestCaseStatus, trial: Option<&Trial>| {
        let mut test = TestCase::new(name, status);
        test.set_classname(format!("regress.{}", case.name));
        test.set_time(seconds(trial.map_or(0.0, |t| t.seconds)));
        if let Some(said) = trial.map(|t| &t.said).filter(|said| !said.is_empty()) {
            test.set_system_err(said.join("\n"));
        }
        tests.add_test_case(test);
    };
    if let Some(problem) = &case.problem {
        let status = match case.verdict {
            Verdict::Skipped => skipped(&problem.to_string()),
            _ => failed(std::slice::from_ref(problem)),
        };
        add("case", status, None);
    }
    for trial in &case.runs {
        let status = match trial.problems.as_slice() {
            [] => TestCaseStatus::success(),
            problems => failed(problems),
        };
        add(&format!("seed {}", trial.seed), status, Some(trial));
    }
    for check in &case.checks {
        add(&check.name, checked(check), None);
    }
    tests
}

fn checked(check: &Check) -> TestCaseStatus {
    match (check.verdict, check.kind) {
        (Verdict::Passed, _) => TestCaseStatus::success(),
        (Verdict::Skipped, _) => skipped(&check.message),
        (_, Some(kind)) => failed(&[Problem::new(kind, check.message.as_str())]),
        (_, None) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(check.message.as_str());
            status
        }
    }
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(why);
    status
}

fn failed(problems: &[Problem]) -> TestCaseStatus {
    let missed = problems.iter().all(|p| p.kind.is_missed_threshold());
    let mut status = TestCaseStatus::non_success(match missed {
        true => NonSuccessKind::Failure,
        false => NonSuccessKind::Error,
    });
    if let Some(first) = problems.first() {
        status.set_message(first.message.as_str());
        status.set_type(first.kind.name());
    }
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    status.set_description(all.join("\n"));
    status
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or_default()
}
