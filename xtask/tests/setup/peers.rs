//! The tables that `cargo xtask peers` writes, of numbers that were given, without a network.

use std::path::Path;
use std::process::Command;

/// What Python prints of `peers.py`'s functions.
fn python(code: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let said = Command::new("python3")
        .args(["-B", "-c", &format!("from peers import *\n{code}")])
        .env("PYTHONPATH", folder)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{words}");
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn a_table_has_the_middle_of_the_rounds_and_the_ratio_on_as_many_threads() {
    let rows = "{
        ('Go1', 'Ostler', 1): [(40_000, 50_123), (30_000, 40_000), (39_000, 45_000)],
        ('Go1', 'other', 1): [measured(['noise', 'measured 5000 2.0 1.0'])],
        ('Go1', 'other', 2): [(90, 99.44)],
    }";
    let table = python(&format!("print(table({rows}, 'steps/s', True), end='')"));
    let lines: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "| Go1 | Ostler | 1 | 45,000 | 40,000 to 50,100 | 39,000 |  |",
            "| Go1 | other | 1 | 5,000 | 5,000 to 5,000 | 2,500 | 9.00 times |",
            "| Go1 | other | 2 | 99.4 | 99.4 to 99.4 | 90.0 |  |",
        ]
    );
    // Of seconds fewer are better.
    let rows = "{('a', 'Ostler', 1): [(1, 2)], ('a', 'other', 1): [(3, 90)]}";
    let table = python(&format!("print(table({rows}, 's', False))"));
    assert!(table.contains("| 3.00 | 45.0 times |"), "{table}");
}

#[test]
fn a_page_keeps_what_is_outside_the_markers() {
    let page = "a\n<!-- peers: task -->\nold\n<!-- /peers: task -->\nb\n";
    let put = python(&format!("print(put({page:?}, 'task', 'new\\n'), end='')"));
    assert_eq!(put, "a\n<!-- peers: task -->\nnew\n<!-- /peers: task -->\nb\n");
    // Every part has its place.
    let page = include_str!("../../../docs/benchmarks.md");
    for part in python("print(*PARTS)").split_whitespace() {
        assert_eq!(page.matches(&format!("<!-- peers: {part} -->")).count(), 1);
    }
}

#[test]
fn processor_time_is_that_of_the_stage() {
    // Half a core for two seconds, then a whole one for two.
    let samples = "[(t / 10, t / 20 + max(0, t - 20) / 20) for t in range(41)]";
    let busy = python(&format!(
        "s = {samples}\nprint(busiest(s, 2, False), busiest(s[:21], 2, True), \
         value(['kernel avx2', 'go1.simulation.steps_per_s 12.5'], 'simulation.steps_per_s'))"
    ));
    assert_eq!(busy, "1.0 0.5 12.5\n");
}
