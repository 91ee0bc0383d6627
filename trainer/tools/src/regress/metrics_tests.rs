//! Judging metrics, whole and damaged.

use super::metrics::{History, matches};
use super::verdict::Kind;

fn history(lines: &[&str]) -> History {
    History::parse(text(lines).as_bytes()).unwrap()
}

/// Lines of a run, numbered.
fn text(lines: &[&str]) -> String {
    let line = |(i, fields): (usize, &&str)| {
        let n = i + 1;
        format!("{{\"iteration\":{n},\"env_steps\":{},{fields}}}\n", 10 * n)
    };
    lines.iter().enumerate().map(line).collect()
}

#[test]
fn numbers_are_read_and_null_is_nan() {
    let h = history(&["\"a\":1.5,\"b\":null", "\"a\":2,\"b\":3"]);
    assert_eq!((h.iterations(), h.env_steps()), (2, 20));
    assert_eq!(h.values("a", 0, None).unwrap(), [1.5, 2.0]);
    assert_eq!(h.last("b").unwrap(), 3.0);
    assert!(h.0[0].values["b"].is_nan());
    assert!(h.has("b") && !h.has("c"));
}

#[test]
fn a_damaged_file_is_an_error_and_never_a_shorter_run() {
    let good = text(&["\"a\":1", "\"a\":2", "\"a\":3"]);
    let cut = |n: usize| good[..good.len() - n].to_string();
    for (bad, why) in [
        (cut(1), "line 3 of the metrics breaks off"),
        (cut(4), "line 3 of the metrics breaks off"),
        (good.replace(":2,\"env", ":4,\"env"), "line 2 of the metrics is of iteration 4"),
        (good.replace("\"a\":2", "\"a\":\"2\""), "line 2 of the metrics: a is no number"),
        (good.replace("\"a\":2", "\"a\":[2]"), "a is no number"),
        (good.replace("\"a\":2", "\"a\":NaN"), "line 2 of the metrics: not JSON"),
        (good.replace("\"a\":2", "\"a\":1e999"), "line 2 of the metrics: not JSON"),
        (good.replace("\"env_steps\":20", "\"env_steps\":10"), "env_steps does not grow"),
        (good.replace("\"env_steps\":20,", ""), "no whole number under \"env_steps\""),
        (good.replace("{\"iteration\":2", "{\"iteration\":2.5"), "under \"iteration\""),
        (format!("{good}\n"), "line 4 of the metrics: not JSON"),
        (format!("{good}[]\n"), "line 4 of the metrics: not an object"),
        (
            good.lines().skip(1).map(|l| format!("{l}\n")).collect(),
            "line 1 of the metrics is of iteration 2",
        ),
    ] {
        let e = History::parse(bad.as_bytes()).unwrap_err();
        assert!(e.contains(why), "{e:?} instead of {why:?}");
    }
}

#[test]
fn a_file_that_is_missing_or_empty_is_a_missing_metric() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.jsonl");
    assert_eq!(History::read(&path).unwrap_err().kind, Kind::MissingMetric);
    std::fs::write(&path, "").unwrap();
    assert_eq!(History::read(&path).unwrap_err().kind, Kind::MissingMetric);
    std::fs::write(&path, "x\n").unwrap();
    assert_eq!(History::read(&path).unwrap_err().kind, Kind::DamagedMetrics);
    std::fs::write(&path, text(&["\"a\":1"])).unwrap();
    assert_eq!(History::read(&path).unwrap().iterations(), 1);
}

#[test]
fn what_is_checked_must_be_there_and_finite_in_every_iteration() {
    let h = history(&["\"a\":1", "\"b\":2", "\"a\":null", "\"a\":4"]);
    let kind = |skip| h.values("a", skip, None).unwrap_err().kind;
    assert_eq!(kind(0), Kind::MissingMetric);
    assert_eq!(kind(2), Kind::NotFinite);
    assert_eq!(h.values("a", 3, None).unwrap(), [4.0]);
    // No window is empty and passes.
    assert_eq!(kind(4), Kind::MissingMetric);
    assert_eq!(kind(99), Kind::MissingMetric);
    // 0 stands for what is missing, never for a NaN.
    assert_eq!(h.values("b", 0, Some(0.0)).unwrap(), [0.0, 2.0, 0.0, 0.0]);
    assert_eq!(h.values("a", 0, Some(0.0)).unwrap_err().kind, Kind::NotFinite);
}

#[test]
fn a_number_that_is_gone_or_never_came_is_found_anywhere() {
    let found = |lines: &[&str], allowed: &[&str]| -> Vec<String> {
        let allowed: Vec<String> = allowed.iter().map(|a| (*a).to_string()).collect();
        let all = history(lines).not_finite(&allowed);
        assert!(all.iter().all(|p| p.kind == Kind::NotFinite));
        all.into_iter().map(|p| p.message).collect()
    };
    // Before the first episode ends there is no mean return.
    assert!(found(&["\"a\":null", "\"a\":null", "\"a\":1"], &[]).is_empty());
    assert_eq!(
        found(&["\"a\":1", "\"a\":null", "\"a\":1"], &[]),
        ["a is not finite in iteration 2"]
    );
    assert_eq!(
        found(&["\"a\":null", "\"a\":1", "\"a\":null"], &[]),
        ["a is not finite in iteration 3"]
    );
    assert_eq!(
        found(&["\"b\":1", "\"a\":null", "\"a\":null"], &[]),
        ["a was never finite, from iteration 2 on"]
    );
    let many: Vec<String> = (0..20).map(|i| format!("\"t{i:02}\":null")).collect();
    let said = found(&[&many.join(",")], &["t00"]);
    assert_eq!(said.len(), 7);
    assert_eq!(said[6], "and 13 more tags are not finite");
    assert!(found(&[&many.join(",")], &["t*"]).is_empty());
}

#[test]
fn a_star_stands_for_anything() {
    for (pattern, text, expected) in [
        ("cart", "cart", true),
        ("cart", "cartpole", false),
        ("cart*", "cartpole", true),
        ("*pole", "cartpole", true),
        ("c*t*e", "cartpole", true),
        ("*", "", true),
        ("a*a", "a", false),
        ("*x*", "cartpole", false),
        ("Loss/*", "Policy/Loss/", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}
