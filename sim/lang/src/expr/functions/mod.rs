//! Every function of the language: one table drives the checker, its messages
//! and the page `docs/task-functions.md`.

mod agents;
mod contacts;
mod fields;
mod frames;
mod geometry;
mod history;
mod logic;
mod maths;
mod motion;
mod quats;
mod random;
mod rays;
mod robot;
mod sensors;
mod terrain;
mod tolerance;

pub use fields::field_unit;
pub(crate) use motion::steps_ahead;

use super::function::Function;

/// All functions by section of the page.
pub(crate) const SECTIONS: [(&str, &[Function]); 15] = [
    ("The robot", robot::TABLE),
    ("Numbers of the robot", fields::TABLE),
    ("Bodies, sites and geoms", geometry::TABLE),
    ("Contacts", contacts::TABLE),
    ("The ground", terrain::TABLE),
    ("The reference motion", motion::TABLE),
    ("Mathematics", maths::TABLE),
    ("Shaped rewards", tolerance::TABLE),
    ("Quaternions", quats::TABLE),
    ("Conditions", logic::TABLE),
    ("Random numbers", random::TABLE),
    ("Random numbers of other distributions", random::DISTRIBUTIONS),
    ("Lists of parts", agents::LISTS),
    ("Earlier steps", history::TABLE),
    ("Several agents", agents::TABLE),
];

/// All functions.
pub(crate) fn all() -> impl DoubleEndedIterator<Item = &'static Function> {
    SECTIONS.iter().flat_map(|(_, table)| table.iter())
}

/// The function `motion.NAME`.
pub(crate) fn of_motion(name: &str) -> Option<&'static Function> {
    motion::TABLE.iter().find(|f| f.name.strip_prefix("motion.") == Some(name))
}

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    all().find(|f| f.name == name)
}

/// The table of all functions in Markdown, as printed in `docs/task-functions.md`.
pub fn reference() -> String {
    let mut page = String::new();
    for (title, table) in SECTIONS {
        page +=
            &format!("### {title}\n\n| function | gives | unit | meaning |\n|---|---|---|---|\n");
        for f in table {
            page +=
                &format!("| `{}` | {} | {} | {} |\n", f.signature(), f.gives, f.rule.text(), f.doc);
        }
        page.push('\n');
    }
    page
}
