//! A robot's tables as constants of a C++ struct.

use crate::physics::native::tables::Plan;
use std::fmt::Write;

/// `struct Robot`, with the members that `Tables` has.
pub(super) fn write(plan: &Plan) -> String {
    let mut text = String::from("struct Robot {\n");
    for (name, count) in plan.counts() {
        let _ = writeln!(text, "  static constexpr int {name} = {count};");
    }
    for (name, x) in plan.scalars() {
        let _ = writeln!(text, "  static constexpr double {name} = {};", real(x));
    }
    for (name, array) in plan.ints() {
        list(
            &mut text,
            "int",
            name,
            array.iter().map(ToString::to_string),
        );
    }
    for (name, array) in plan.reals() {
        // As the generic kernel has them: rounded to single precision.
        let single = array.iter().map(|x| real(f64::from(*x as f32)));
        list(&mut text, "float", name, single);
    }
    // The dimension of all contacts, 0 where they differ.
    let first = plan.pair_dim.first().copied().unwrap_or(1);
    let same = plan.pair_dim.iter().all(|d| *d == first);
    let _ = writeln!(
        text,
        "  static constexpr int one_dim = {};",
        if same { first } else { 0 }
    );
    text.push_str("};\n");
    text
}

fn list(text: &mut String, kind: &str, name: &str, items: impl Iterator<Item = String>) {
    let mut items = items.collect::<Vec<_>>();
    if items.is_empty() {
        items.push("0".into());
    }
    let _ = writeln!(
        text,
        "  static constexpr {kind} {name}[] = {{{}}};",
        items.join(",")
    );
}

fn real(x: f64) -> String {
    crate::physics::native::tape::literal(x)
}
