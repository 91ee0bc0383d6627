//! What a browser makes of a page.

use super::browser::{self, pixels};
use super::{odd, ostler};
use crate::common::forked::Forked as _;

/// Lit magenta, as the odd robot is, in light or shade.
fn of_robot(c: &[u8; 3]) -> bool {
    let [r, g, b] = c.map(i32::from);
    r > 60 && b > 60 && g * 2 < r && g * 2 < b && (r - b).abs() < 40
}

#[test]
fn a_page_draws_the_robot_and_asks_for_nothing() {
    let Some(mut browser) = browser::open(640, 360) else {
        return;
    };
    let dir = odd();
    let file = dir.path().join("page.html");
    let out = ostler()
        .args(["play", "odd.toml", "--agent", "random", "--episodes", "2", "--html", "page.html"])
        .current_dir(dir.path())
        .forked()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let url = format!("file://{}", file.display());
    browser.show(&url);
    browser.eval("ostler.source.playing && ostler.source.toggle(), ostler.source.seek(0)");
    let frames = "ostler.frames";
    let drawn = browser.eval(frames).as_u64().unwrap();
    browser.until(&format!("{frames} > {}", drawn + 3));
    let first = pixels(&browser.screenshot());
    let robot = first.iter().filter(|c| of_robot(c)).count();
    assert!(robot > 500, "{robot} pixels of the robot's colour");
    // Somewhere else later, with its numbers.
    browser.eval("ostler.source.seek(2)");
    let drawn = browser.eval(frames).as_u64().unwrap();
    browser.until(&format!("{frames} > {}", drawn + 3));
    let later = pixels(&browser.screenshot());
    assert!(later.iter().filter(|c| of_robot(c)).count() > 500);
    let other = first.iter().zip(&later).filter(|(a, b)| a != b).count();
    assert!(other > 200, "{other} pixels differ");
    let row = browser.eval("Number(document.body.dataset.row)").as_u64().unwrap();
    assert!(row > 10, "{row}");
    // The second episode, by the selector.
    browser.eval("document.getElementById('episode').value = 1; document.getElementById('episode').onchange()");
    let first = browser.eval("ostler.data.episodes[1].first");
    assert_eq!(browser.eval("Number(document.body.dataset.row)"), first);
    // Names are text: nothing that is written in them came to be.
    assert_ne!(browser.eval("document.title"), "broken");
    browser.eval(
        "document.getElementById('group').value = 2; document.getElementById('group').onchange()",
    );
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    let outside: Vec<&String> =
        browser.requests.iter().filter(|r| **r != url && !r.starts_with("data:")).collect();
    assert!(outside.is_empty(), "{outside:?}");
}
