//! Random texts, random well-typed expressions, and the independence of lanes.

use super::fixture::World;
use crate::expr::{BLOCK, Scratch};
use proptest::prelude::*;

/// A well-typed expression of numbers, for a naive interpreter in f64.
#[derive(Debug, Clone)]
enum Tree {
    Number(f64),
    /// Component of `action`.
    Action(usize),
    /// Component of `lin_vel(torso)`.
    Velocity(usize),
    One(&'static str, Box<Tree>),
    Two(&'static str, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Self::Number(x) => format!("{x}"),
            Self::Action(i) => format!("action[{i}]"),
            // A constant factor: any unit.
            Self::Velocity(i) => format!("(1 * lin_vel(torso).{})", ["x", "y", "z"][*i]),
            Self::One(f, a) => format!("{f}({})", a.text()),
            Self::Two(op, a, b) if op.len() == 1 => format!("({} {op} {})", a.text(), b.text()),
            Self::Two(f, a, b) => format!("{f}({}, {})", a.text(), b.text()),
            Self::If(c, a, b) => format!("({} > 0 ? {} : {})", c.text(), a.text(), b.text()),
        }
    }

    /// Value and a bound on how far rounding may have moved it.
    fn value(&self, action: &[f64], velocity: &[f64]) -> (f64, f64) {
        const EPS: f64 = 4e-7;
        let round = |x: f64, error: f64| (x, error + EPS * x.abs() + 1e-30);
        match self {
            Self::Number(x) => round(*x, 0.0),
            Self::Action(i) => (action[*i], 0.0),
            Self::Velocity(i) => (velocity[*i], 0.0),
            Self::One(f, a) => {
                let (x, e) = a.value(action, velocity);
                match *f {
                    "sin" => round(x.sin(), e + EPS),
                    "tanh" => round(x.tanh(), e),
                    "abs" => round(x.abs(), e),
                    "square" => round(x * x, 2.0 * x.abs() * e + e * e),
                    _ => round(-x, e),
                }
            }
            Self::Two(op, a, b) => {
                let ((x, e), (y, f)) = (a.value(action, velocity), b.value(action, velocity));
                match *op {
                    "+" => round(x + y, e + f),
                    "-" => round(x - y, e + f),
                    "*" => round(x * y, x.abs() * f + y.abs() * e + e * f),
                    "min" => round(x.min(y), e.max(f)),
                    _ => round(x.max(y), e.max(f)),
                }
            }
            Self::If(c, a, b) => {
                let (c, e) = c.value(action, velocity);
                let (yes, no) = (a.value(action, velocity), b.value(action, velocity));
                let taken = if c > 0.0 { yes } else { no };
                // Near the edge either branch is right.
                let doubt = if c.abs() <= e { (yes.0 - no.0).abs() + yes.1 + no.1 } else { 0.0 };
                round(taken.0, taken.1 + doubt)
            }
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-40i32..40).prop_map(|x| Tree::Number(f64::from(x) / 8.0)),
        (0usize..3).prop_map(Tree::Action),
        (0usize..3).prop_map(Tree::Velocity),
    ];
    leaf.prop_recursive(6, 60, 3, |inner| {
        let boxed = inner.prop_map(Box::new).boxed();
        let one = prop::sample::select(vec!["sin", "tanh", "abs", "square", "-"]);
        let two = prop::sample::select(vec!["+", "-", "*", "min", "max"]);
        prop_oneof![
            (one, boxed.clone()).prop_map(|(f, a)| Tree::One(f, a)),
            (two, boxed.clone(), boxed.clone()).prop_map(|(f, a, b)| Tree::Two(f, a, b)),
            (boxed.clone(), boxed.clone(), boxed).prop_map(|(c, a, b)| Tree::If(c, a, b)),
        ]
    })
}

/// Words of the language, in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = "+ - * / ^ ( ) [ ] , . : ? < <= == != and or not ! true 1 0.5 -2 1e3 x xy qpos \
                 qvel time action command param twist target torso hip_1 imu \"foot_*\" norm( \
                 lin_vel( quat( if( clip( max( concat( joint_pos( contact( [0] [1:] .x .xyz com mass"
        .split_whitespace()
        .collect::<Vec<_>>();
    prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|w| w.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_a_program_or_an_error_inside_the_text(text in "\\PC{0,80}|[ -~\\n]{0,200}") {
        let world = World::new(1, 1);
        if let Err(e) = world.compile(&text) {
            prop_assert!(text.get(e.span.clone()).is_some(), "{:?} of {text:?}", e.span);
            prop_assert!(!e.message.is_empty());
        }
    }

    #[test]
    fn any_words_give_a_program_that_runs_or_an_error(text in soup()) {
        let world = World::new(2, 1);
        match world.compile(&text) {
            Ok(program) => prop_assert_eq!(world.run(&program, BLOCK)[0].len(), program.ty().len()),
            Err(e) => prop_assert!(text.get(e.span.clone()).is_some(), "{:?} of {text:?}", e.span),
        }
    }

    #[test]
    fn a_well_typed_expression_equals_a_naive_interpreter(tree in tree(), seed in 0u64..1000) {
        let world = World::new(5, seed);
        let text = tree.text();
        let program = world.compile(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        for (e, row) in world.run(&program, BLOCK).iter().enumerate() {
            let read = |buffer: &[f32], k: usize| f64::from(buffer[k * 5 + e]);
            let action: Vec<f64> = (0..3).map(|k| read(&world.action, k)).collect();
            let velocity: Vec<f64> = (3..6).map(|k| read(&world.state.body_lin_vel, k)).collect();
            let (want, bound) = tree.value(&action, &velocity);
            let got = f64::from(row[0]);
            if want.abs() < 1e30 {
                prop_assert!((got - want).abs() <= bound, "{text}: {got}, expected {want} +- {bound}");
            }
        }
    }
}

#[test]
fn a_lane_has_the_same_bits_in_any_block_with_any_neighbour() {
    let text = "[exp(-norm2(lin_vel(torso))/4), tanh(qvel/3), com, roll(torso), sin(9*qpos), \
                wrap_angle(qvel[3:]), (2+action)^1.3, quat(imu), time, ctrl]";
    let world = World::new(150, 3);
    let program = world.compile(text).unwrap();
    let bits = |rows: Vec<Vec<f32>>| -> Vec<Vec<u32>> {
        rows.into_iter().map(|r| r.into_iter().map(f32::to_bits).collect()).collect()
    };
    let whole = bits(world.run(&program, BLOCK));
    for block in [1, 7, 63] {
        assert_eq!(whole, bits(world.run(&program, block)), "blocks of {block}");
    }
    // Broken neighbours, and registers full of the previous block's numbers.
    let mut broken = World::new(150, 3);
    for v in [&mut broken.state.qpos, &mut broken.state.qvel, &mut broken.action] {
        for (i, x) in v.iter_mut().enumerate() {
            if i % 150 % 2 == 1 {
                *x = [f32::NAN, f32::INFINITY, 3e38][i % 3];
            }
        }
    }
    let spoilt = bits(broken.run(&program, BLOCK));
    for e in (0..150).step_by(2) {
        assert_eq!(whole[e], spoilt[e], "environment {e}");
    }
}

#[test]
fn nan_reaches_the_result_and_is_never_a_true_comparison() {
    let mut world = World::new(1, 1);
    world.action[0] = f32::NAN;
    for text in [
        "max(action[0], 1)",
        "min(1, action[0])",
        "clip(action[0], 0, 1)",
        "sign(action[0])",
        "tanh(action[0])",
    ] {
        assert!(world.eval(text)[0][0].is_nan(), "{text}");
    }
    for (text, want) in [
        ("action[0] > 1 or action[0] <= 1", 0.0),
        ("not between(action[0], -1, 1)", 1.0),
        ("is_finite(action[0])", 0.0),
        ("action[0] != action[0]", 1.0),
    ] {
        assert_eq!(world.eval(text)[0], [want], "{text}");
    }
}

#[test]
fn equal_parts_are_computed_once_and_constants_before() {
    let world = World::new(1, 1);
    let steps = |text: &str| world.compile(text).unwrap().steps();
    assert_eq!(steps("2 * 3 + 4 / sqrt(16)"), 1);
    assert_eq!(steps("gravity.z * mass"), 1);
    // Two loads, two products, a sum; a second time only the last sum.
    let once = steps("norm2(command.xy)");
    assert_eq!(once, 5);
    assert_eq!(steps("norm2(command.xy) + norm2(command.xy)"), once + 1);
    // Unused components cost nothing.
    assert_eq!(steps("pos(imu).x * 0 + time"), steps("pos(imu).x * 0 + time"));
    assert_eq!(steps("lin_vel(torso)[1]"), 1);
}

#[test]
fn evaluation_reuses_its_registers() {
    let world = World::new(64, 1);
    let program = world.compile("com").unwrap();
    let mut scratch = Scratch::default();
    program.eval(&world.inputs(0, 64), &mut scratch);
    let (at, len) = (scratch.registers.as_ptr(), scratch.registers.len());
    assert_eq!(len, program.scratch_len());
    program.eval(&world.inputs(0, 64), &mut scratch);
    assert_eq!((scratch.registers.as_ptr(), scratch.registers.len()), (at, len));
}

#[test]
fn a_program_says_what_it_reads() {
    let world = World::new(1, 1);
    let program = world.compile("distance(imu, foot_1) + height(imu)").unwrap();
    let names: Vec<&str> =
        program.elements().iter().map(|e| e.kind.names(&world.model)[e.index]).collect();
    assert_eq!(names, ["imu", "torso", "foot_1"]);
    assert_eq!(program.units()[0].to_string(), "m");
}
