//! Outputs for other programs: reports.

use super::{CASE, Suite, swap};
use roxmltree::{Document, Node};

fn number(node: Node<'_, '_>, name: &str) -> usize {
    node.attribute(name).unwrap().parse().unwrap()
}

fn below<'a>(node: Node<'a, 'a>, name: &'static str) -> Vec<Node<'a, 'a>> {
    let all = node.descendants();
    all.filter(|n| n.has_tag_name(name)).collect()
}

/// Two that fail in two ways, one that passes, one that is skipped.
fn four() -> Suite {
    let suite = Suite::of("a_good", CASE);
    let low = swap("1.0", "1e6").replace("[1]", "[1, 2]");
    suite.case("b_low", &low);
    let dying = swap("\"env.num_envs=16\"", "'fault.inject=[\"kill phase=update iteration=2\"]'");
    suite.case("c_dying", &format!("description = \"a < b & \\\"c\\\" | d\"\n{dying}"));
    suite.case("d_gpu", &format!("requires = \"cuda\"\n{CASE}"));
    suite
}

#[test]
fn one_failure_fails_the_suite_and_hides_nothing() {
    let suite = four();
    let (results, said) = suite.ends(1, "out", &["--allow-missing", "gpu"]);
    let verdicts: Vec<&str> = results["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["passed", "failed", "failed", "skipped"]);
    let counts = &results["counts"];
    assert_eq!(counts["cases"], 4);
    assert_eq!((&counts["passed"], &counts["failed"]), (&1.into(), &2.into()));
    assert!(said.contains("ok      a_good"), "{said}");
    assert!(said.contains("1 passed, 2 failed, 1 SKIPPED of 4 cases"), "{said}");

    let text = suite.read("out/junit.xml");
    let xml = Document::parse(&text).unwrap();
    let root = xml.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let suites = below(root, "testsuite");
    assert_eq!(suites.len(), 4);
    // a: a run and a check; b: two runs and a check; c: a run and a check; d: itself.
    for (node, tests, failures, errors, skipped) in [
        (root, 8, 2, 1, 1),
        (suites[0], 2, 0, 0, 0),
        (suites[1], 3, 1, 0, 0),
        (suites[3], 1, 0, 0, 1),
    ] {
        assert_eq!(number(node, "tests"), tests);
        assert_eq!(number(node, "skipped"), skipped);
        // The dying run has a return from before its death: its check may pass.
        if node != root {
            assert_eq!(number(node, "failures"), failures);
            assert_eq!(number(node, "errors"), errors);
        }
    }
    for node in std::iter::once(root).chain(suites.iter().copied()) {
        assert_eq!(number(node, "tests"), below(node, "testcase").len());
        assert_eq!(number(node, "failures"), below(node, "failure").len());
        assert_eq!(number(node, "errors"), below(node, "error").len());
        assert_eq!(number(node, "skipped"), below(node, "skipped").len());
        for test in below(node, "testcase") {
            assert!(test.attribute("classname").unwrap().starts_with("regress."));
            assert!(test.attribute("time").unwrap().parse::<f64>().is_ok());
        }
    }
    let dying = below(suites[2], "error")[0];
    assert_eq!(dying.attribute("type"), Some("signal"));
    let missed = below(suites[1], "failure")[0];
    assert_eq!(missed.attribute("type"), Some("return"));

    let summary = suite.read("out/summary.md");
    assert!(summary.starts_with("# Regression FAILED"), "{summary}");
    assert!(summary.contains("| b_low | **FAILED** |"), "{summary}");
    assert!(summary.contains("| a_good | ok |"), "{summary}");
    assert!(summary.contains("- **c_dying**, seed 1: `signal`: "), "{summary}");
    assert!(summary.contains("## What was skipped"), "{summary}");
    // Every row of the table has all of its cells.
    let rows = summary.lines().filter(|l| l.starts_with('|'));
    assert!(rows.clone().count() == 6 && rows.clone().all(|r| r.matches('|').count() == 11));
}

#[test]
fn cases_can_be_chosen_and_listed() {
    let suite = four();
    let (results, _) = suite.ends(0, "out", &["--only", "*_good"]);
    assert_eq!(results["counts"]["cases"], 1);
    let list = suite.0.ok(&["regress", "cases", "--list"]);
    assert_eq!(list.lines().count(), 4, "{list}");
    assert!(list.contains("d_gpu  : 1 x 3 iterations, requires a GPU"), "{list}");
}

#[test]
fn a_short_form_stands_for_itself() {
    let short = "[short]\nseeds = [7]\nbudget.iterations = 2\n";
    let suite = Suite::of("one", &format!("{}{short}", swap("1.0", "1e6")));
    suite.case("two", CASE);
    let out = suite.run("out", &["--short"]);
    assert_eq!(out.status.code(), Some(0), "{}", crate::common::text(&out));
    let said = crate::common::text(&out);
    assert!(said.contains("without a [short] part, not run: two"), "{said}");
    let results = suite.results("out");
    assert_eq!(results["short"], true);
    assert_eq!(results["counts"]["cases"], 1);
    let run = &results["cases"][0]["runs"][0];
    assert_eq!((&run["seed"], &run["iterations"]), (&7.into(), &2.into()));
}
