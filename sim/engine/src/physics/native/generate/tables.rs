//! A robot's tables as constants of a C++ struct.

use crate::physics::native::tables::RobotTables;
use std::fmt::Write;

/// `struct Robot`, with the members that `Tables` has.
pub(super) fn write(plan: &RobotTables) -> String {
    let mut text = String::from("struct Robot {\n");
    for (name, count) in plan.counts() {
        let _ = writeln!(text, "  static constexpr int {name} = {count};");
    }
    for (name, x) in plan.scalars() {
        let _ = writeln!(text, "  static constexpr double {name} = {};", real(x));
    }
    for (name, array) in plan.ints() {
        list(&mut text, "int", name, array.iter().map(ToString::to_string));
    }
    for (name, array) in plan.reals() {
        // As the generic kernel has them: rounded to single precision.
        let single = array.iter().map(|x| real(f64::from(*x as f32)));
        list(&mut text, "float", name, single);
    }
    // A bit for each dimension that contacts have; those kept by body come first.
    let bits = |dims: &[i32]| dims.iter().fold(0, |bits, dim| bits | 1_u32 << dim);
    let (body, jacobian) = plan.pair_dim.split_at(plan.nwpair);
    let _ = writeln!(
        text,
        "  static constexpr unsigned body_dims = {}, jacobian_dims = {};",
        bits(body),
        bits(jacobian)
    );
    // Which pairs couple degrees of freedom that the Hessian's static pattern does not.
    let joins = (0..plan.npair).map(|pair| joins(plan, pair).to_string());
    list(&mut text, "bool", "pair_joins", joins);
    text.push_str("};\n");
    text
}

/// Whether a contact of a pair couples degrees of freedom of different branches.
fn joins(plan: &RobotTables, pair: usize) -> bool {
    let range = |adr: &[i32], i: usize| adr[i] as usize..adr[i + 1] as usize;
    let path = &plan.path_dof[range(&plan.pair_path, pair)];
    let coupled = |dof: i32, below: i32| {
        let row = &plan.hrow_col[range(&plan.hrow_adr, dof as usize)];
        row.contains(&below)
    };
    // Ascending.
    path.iter().enumerate().any(|(i, dof)| path[..i].iter().any(|below| !coupled(*dof, *below)))
}

fn list(text: &mut String, kind: &str, name: &str, items: impl Iterator<Item = String>) {
    let _ = write!(text, "  static constexpr {kind} {name}[] = {{");
    let first = text.len();
    for item in items {
        if text.len() > first {
            text.push(',');
        }
        text.push_str(&item);
    }
    if text.len() == first {
        text.push('0');
    }
    text.push_str("};\n");
}

fn real(x: f64) -> String {
    crate::physics::native::tape::literal(x)
}
