//! What a robot's steps are made of, as a hash: its tables and the kernels' text that runs for
//! it. Comments and blanks do not count, nor what environments do around the physics
//! (`sim/kernels/env`). For proofs, which are due for the robots whose hash has changed.

use super::amalgam;
use crate::kernels;
use crate::physics::native::tables::RobotTables;
use ostler_model::on_all_lanes;
use std::ops::Range;
use std::sync::OnceLock;

/// Kernels whose functions run only for some robots.
pub(in crate::physics::native) struct Part {
    /// The header.
    pub file: &'static str,
    /// Whether they may run for this robot.
    pub runs: fn(&RobotTables) -> bool,
}

const fn part(file: &'static str, runs: fn(&RobotTables) -> bool) -> Part {
    Part { file, runs }
}

/// All of them. What no entry names counts for every robot. `evaluate`'s tests run every
/// feature's model with functions that tell when they are called.
pub(in crate::physics::native) const PARTS: [Part; 22] = [
    part("tendon.cuh", |p| p.nten > 0 || p.act_arms.iter().any(|arms| *arms >= kernels::ARMS_SITE)),
    part("wrap.cuh", |p| p.nten > 0),
    part("fluid.cuh", |p| p.nfluid + p.nell > 0),
    part("motor.cuh", |p| p.nmotor > 0),
    part("meter.cuh", |p| p.nmeter + p.ncsensor > 0),
    part("contact_sensor.cuh", |p| p.ncsensor > 0),
    part("derive.cuh", |p| p.nderive > 0),
    part("grid.cuh", |p| p.ngrid > 0),
    part("prism.cuh", |p| p.ngrid > 0),
    part("collide/cells.cuh", |p| p.ngrid > 0),
    part("collide/box_box.cuh", searches),
    part("collide/capsule_box.cuh", searches),
    part("collide/convex.cuh", searches),
    part("collide/epa.cuh", searches),
    part("collide/feature.cuh", searches),
    part("collide/field.cuh", searches),
    part("collide/flat.cuh", searches),
    part("collide/gjk.cuh", searches),
    part("collide/patch.cuh", searches),
    part("collide/settle.cuh", searches),
    part("collide/simplex.cuh", searches),
    part("collide/support.cuh", searches),
];

/// Whether there are other shapes than planes, spheres and capsules.
fn searches(plan: &RobotTables) -> bool {
    !plan.pair_kind.iter().all(|kind| on_all_lanes(*kind))
}

/// A header of the physics, as it is hashed.
#[derive(Clone)]
struct Header {
    file: &'static str,
    /// Of all its text.
    whole: blake3::Hash,
    /// Without the bodies of its functions: what others see of it.
    outline: blake3::Hash,
}

impl Header {
    fn new(file: &'static str, text: &str) -> Self {
        let text = plain(text);
        let outline = blake3::hash(outline(&text).as_bytes());
        Self { file, whole: blake3::hash(text.as_bytes()), outline }
    }
}

fn headers() -> &'static [Header] {
    static HEADERS: OnceLock<Vec<Header>> = OnceLock::new();
    HEADERS.get_or_init(|| {
        let files = amalgam::included("kernel.cuh").into_iter();
        files.map(|(file, text)| Header::new(file, text)).collect()
    })
}

/// The hash of a robot's physics by the generic kernels: its tables, and the text of the headers
/// that runs for it. 16 hexadecimal digits.
pub fn physics_hash(plan: &RobotTables) -> String {
    hash(plan, headers(), plan.digest().as_bytes())
}

/// The hash of a program that was printed for a robot, in which the physics' own text counts as
/// in [`physics_hash`]: of [`generate`](super::generate), [`generate_cuda`](super::generate_cuda)
/// or whole environments. 16 hexadecimal digits.
pub fn program_hash(plan: &RobotTables, text: &str) -> String {
    let own = text.replacen(&amalgam::expand("kernel.cuh"), "", 1);
    hash(plan, headers(), plain(&own).as_bytes())
}

fn hash(plan: &RobotTables, headers: &[Header], own: &[u8]) -> String {
    let mut hash = blake3::Hasher::new();
    for header in headers {
        let part = PARTS.iter().find(|part| part.file == header.file);
        let runs = part.is_none_or(|part| (part.runs)(plan));
        let text = if runs { &header.whole } else { &header.outline };
        hash.update(text.as_bytes());
    }
    hash.update(own);
    hash.finalize().to_hex()[..16].to_owned()
}

/// C++ without comments, with one blank or line break for several.
pub(in crate::physics::native) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // A line break outlives blanks beside it: directives end with their line.
    let blank = |out: &mut String, c: char| {
        if c == '\n' {
            out.truncate(out.trim_end_matches(' ').len());
        }
        if !(out.ends_with('\n') || c == ' ' && out.ends_with(' ')) {
            out.push(c);
        }
    };
    while let Some(c) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            blank(&mut out, ' ');
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if c == '"' || c == '\'' && !out.ends_with(|c: char| c.is_ascii_digit()) {
            let mut escaped = false;
            let end = rest[1..].find(|d: char| {
                let ends = d == c && !escaped;
                escaped = d == '\\' && !escaped;
                ends
            });
            let taken = end.map_or(rest.len(), |at| at + 2);
            out.push_str(&rest[..taken]);
            taken
        } else {
            match c {
                c if c.is_whitespace() => blank(&mut out, if c == '\n' { c } else { ' ' }),
                c => out.push(c),
            }
            c.len_utf8()
        };
        rest = &rest[taken..];
    }
    out
}

/// What is between the braces of each function, constant ones aside, which others may need to
/// be compiled.
pub(in crate::physics::native) fn bodies(plain: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(found) = plain[at..].find("OSTLER_FN") {
        let head = at + found;
        let Some(end) = plain[head..].find(['{', ';']).map(|end| head + end) else { break };
        at = end + 1;
        if plain[end..].starts_with(';') || plain[head..end].contains("constexpr") {
            continue;
        }
        let mut depth = 1;
        let close = plain[at..].find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        let close = close.map_or(plain.len(), |close| at + close);
        all.push(at..close);
        at = close;
    }
    all
}

fn outline(plain: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for body in bodies(plain) {
        out.push_str(&plain[from..body.start]);
        from = body.end;
    }
    out + &plain[from..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::native::lower::{LowerOptions, lower};
    use ostler_model::mjcf;
    use std::path::Path;

    fn plan(file: &str) -> RobotTables {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        lower(&mjcf::load(&path).unwrap(), &LowerOptions::default()).unwrap()
    }

    /// The hashes of robots after an edit of a header, beside those before.
    fn changed(file: &str, from: &str, to: &str) -> Vec<&'static str> {
        let files = amalgam::included("kernel.cuh").into_iter();
        let edited = files.map(|(name, text)| {
            let found = name == file;
            assert!(!found || text.contains(from), "{file}: {from}");
            Header::new(name, &if found { text.replacen(from, to, 1) } else { text.to_owned() })
        });
        let edited: Vec<Header> = edited.collect();
        let robots = ["configs/robots/ant.xml", "tests/referee/features/tendon_spatial_wrap.xml"];
        let differs = |robot: &&str| {
            let plan = plan(robot);
            hash(&plan, &edited, plan.digest().as_bytes()) != physics_hash(&plan)
        };
        robots.into_iter().filter(differs).collect()
    }

    #[test]
    fn an_edit_concerns_the_robots_for_which_it_runs() {
        let wraps = "tests/referee/features/tendon_spatial_wrap.xml";
        // In a function, before it, and where nothing runs.
        assert_eq!(changed("wrap.cuh", "a[0] * b[1] - ", "a[0] * b[1] + "), [wraps]);
        assert_eq!(changed("wrap.cuh", "dot2(const R* a", "dot2(const R* c").len(), 2);
        assert_eq!(changed("wrap.cuh", "#pragma once", "#pragma once\n// More.\n"), [""; 0]);
        assert_eq!(changed("space.cuh", " + ", " - ").len(), 2);
        // Environments are not part of it.
        assert_eq!(changed("env/act.cuh", "", "int more;"), [""; 0]);
    }

    #[test]
    fn another_number_is_another_robot() {
        let ant = plan("configs/robots/ant.xml");
        let mut wet = ant.clone();
        wet.density += 1.0;
        assert_ne!(physics_hash(&ant), physics_hash(&wet));
        let text = |plan: &RobotTables| super::super::generate(plan, 8).unwrap().source.text;
        let of = |plan: &RobotTables| program_hash(plan, &text(plan));
        assert_eq!(of(&ant), of(&ant.clone()));
        assert_ne!(of(&ant), of(&wet));
        // The physics' own text was found in the program.
        let whole = text(&ant);
        let without = whole.replacen(&amalgam::expand("kernel.cuh"), "", 1);
        assert!(without.len() < whole.len());
    }

    #[test]
    fn comments_and_blanks_are_none_of_the_text() {
        let text =
            "int a;  // one\n\n /* two\n */ char b = '\"'; f(\"// no\",\t1'000);\n#if X // 3\n";
        assert_eq!(plain(text), "int a;\nchar b = '\"'; f(\"// no\", 1'000);\n#if X\n");
        let text =
            "OSTLER_FN int f(int x) { if (x) { g(); } }\nOSTLER_FN int h();\nstruct S { int x; };";
        assert_eq!(
            outline(text),
            "OSTLER_FN int f(int x) {}\nOSTLER_FN int h();\nstruct S { int x; };"
        );
    }
}
