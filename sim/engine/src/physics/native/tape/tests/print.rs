use super::super::{Array, Order, Printer, Program, Recorder, Style};
use super::program;
use super::random::sample;
use crate::test_support::need::Need;
use std::process::Command;

fn printed(program: &Program, order: Order, piece: usize) -> String {
    let style = Style { order, piece, ..Style::default() };
    Printer::new(program, style).all("f_init")
}

#[test]
fn signs_are_printed_where_they_cost_nothing() {
    let program = program(3, |g, x| {
        let a = g.fma(x[0].flip(), x[1], x[2]);
        let b = g.mul(a, x[0]);
        let two = g.number(-2.0);
        let scaled = g.mul(b, two);
        let below = g.lt(a, x[1]);
        let chosen = g.sel(below.flip(), a, scaled);
        let (s, c) = (g.sin(chosen), g.cos(chosen));
        let root = g.sqrt(s);
        vec![b.flip(), chosen, root, c, g.sub(x[0], x[0])]
    });
    let text = printed(&program, Order::Recorded, 0);
    let expected = "\
static OSTLER_FN_BIG void f(W& w) {
  const R t0 = fnma(w.x[0], w.x[1], w.x[2]);
  const R t1 = w.x[0] * t0;
  w.y[0] = -t1;
  const R t2 = t1 * bc<R>(-2.0);
  const auto t3 = t0 < w.x[1];
  const R t4 = sel(t3, t2, t0);
  w.y[1] = t4;
  R t5, t6; sincos_(t4, t5, t6);
  w.y[3] = t6;
  const R t7 = sqrt_(t5);
  w.y[2] = t7;
  const R t8 = w.x[0] - w.x[0];
  w.y[4] = t8;
  (void)w;
}
static OSTLER_FN_BIG void f_init(W& w) {
  (void)w;
}
";
    assert_eq!(text, expected);
}

#[test]
fn elements_are_read_before_they_are_overwritten() {
    for order in [Order::Recorded, Order::DepthFirst] {
        let mut recorder = Recorder::new(vec![Array::shared("w.x", &[2])]);
        recorder.begin("swap");
        let [a, b] = [0, 1].map(|i| recorder.load(0, i).unwrap());
        recorder.store(0, 0, b);
        recorder.store(0, 1, a);
        recorder.end();
        let program = recorder.finish().unwrap();
        let text = printed(&program, order, 0);
        let read = text.find("const R t0 = w.x").unwrap();
        let second = text.find("const R t1 = w.x").unwrap();
        let first_store = text.find("  w.x").unwrap();
        let last_store = text.rfind("  w.x").unwrap();
        assert!(read < first_store && second < last_store);
        let mut arrays = vec![vec![1.0_f64, 2.0]];
        program.run(&program.functions[0], &mut arrays);
        assert_eq!(arrays[0], [2.0, 1.0]);
    }
}

#[test]
fn the_same_recording_prints_the_same_text() {
    for order in [Order::Recorded, Order::DepthFirst] {
        let text = |_| printed(&sample(7, 200).0, order, 40);
        assert_eq!(text(0), text(1));
    }
}

#[test]
fn depth_first_keeps_fewer_values_of_a_wide_sum_alive() {
    let program = program(8, |g, x| {
        let roots: Vec<_> = x.iter().map(|x| g.sqrt(*x)).collect();
        let mut sum = roots[0];
        for root in &roots[1..] {
            sum = g.add(sum, *root);
        }
        vec![sum]
    });
    let alive = |order| {
        let style = Style { order, ..Style::default() };
        Printer::new(&program, style).most_alive(&program.functions[0])
    };
    assert_eq!(alive(Order::Recorded), 8);
    assert_eq!(alive(Order::DepthFirst), 2);
}

/// Compiles and runs printed functions for a scalar type; the outputs' bits.
fn compiled(program: &Program, text: &str, scalar: &str, inputs: &[f64]) -> Option<Vec<f64>> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("f.cpp");
    let inputs: Vec<String> = inputs.iter().map(|x| format!("{x:?}")).collect();
    let outputs = program.arrays[1].len();
    let body = format!(
        "#include <math.h>
#include <stdio.h>
typedef {scalar} R;
struct W {{ R x[{n}], y[{outputs}]; }};
#define OSTLER_FN_BIG __attribute__((noinline))
#define OSTLER_RESTRICT __restrict
template<class T> T bc(double x) {{ return T(x); }}
static R fma(R a, R b, R c) {{ return sizeof(R) == 4 ? R(fmaf(a, b, c)) : R(::fma(double(a), b, c)); }}
static R fms(R a, R b, R c) {{ return fma(a, b, -c); }}
static R fnma(R a, R b, R c) {{ return fma(-a, b, c); }}
static bool mask_xor(bool a, bool b) {{ return a != b; }}
static R atan2_(R a, R b) {{ return sizeof(R) == 4 ? R(atan2f(a + 0, b + 0)) : R(atan2(a + 0, b + 0)); }}
static R sel(bool m, R a, R b) {{ return m ? a : b; }}
static R sqrt_(R a) {{ return sizeof(R) == 4 ? R(sqrtf(a)) : R(sqrt(a)); }}
static R recip_(R a) {{ return R(1) / a; }}
static R abs_(R a) {{ return a < 0 ? -a : a; }}
static R min_(R a, R b) {{ return a < b ? a : b; }}
static R max_(R a, R b) {{ return a > b ? a : b; }}
static R rint_(R a) {{ return sizeof(R) == 4 ? R(nearbyintf(a)) : R(nearbyint(a)); }}
static void sincos_(R a, R& s, R& c) {{
  if (sizeof(R) == 4) {{ s = sinf(a); c = cosf(a); }} else {{ s = sin(a); c = cos(a); }}
}}
{text}
int main() {{
  static W w = {{{{{inputs}}}, {{0}}}};
  f_init(w);
  f(w);
  for (int i = 0; i < {outputs}; i++) printf(\"%a\\n\", double(w.y[i]));
}}
",
        n = inputs.len(),
        inputs = inputs.join(", "),
    )
    // Its own names where the C library has the same.
    .replace("fma(", "fma_(")
    .replace("::fma_(", "::fma(");
    std::fs::write(&source, body).unwrap();
    let program_path = folder.path().join("f");
    let flags = ["-std=c++17", "-O1", "-mfma", "-ffp-contract=off", "-fno-builtin"];
    let compiler = Command::new("c++")
        .args(flags)
        .args(["-Wno-narrowing", "-o"])
        .args([&program_path, &source])
        .output();
    let compiler = Need::Compiler.or_skip(compiler.map_err(|e| format!("c++: {e}")))?;
    let message = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "{message}");
    let run = Command::new(program_path).output().unwrap();
    assert!(run.status.success());
    let text = String::from_utf8(run.stdout).unwrap();
    Some(text.lines().map(hexadecimal).collect())
}

fn hexadecimal(text: &str) -> f64 {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let (digits, exponent) = rest.strip_prefix("0x").unwrap().split_once('p').unwrap();
    let digits = digits.replace('.', "");
    let scale = exponent.parse::<i32>().unwrap() - 4 * (digits.len() as i32 - 1);
    let whole = u64::from_str_radix(&digits, 16).unwrap() as f64;
    // In two steps: the scale of a subnormal number is not a number itself.
    sign * whole * 2.0_f64.powi(scale / 2) * 2.0_f64.powi(scale - scale / 2)
}

#[test]
fn compiled_text_gives_the_interpreter_s_bits() {
    for (seed, order, piece) in [
        (1, Order::Recorded, 0),
        (2, Order::DepthFirst, 0),
        (3, Order::Recorded, 25),
        (4, Order::DepthFirst, 25),
        (5, Order::Recorded, 60),
    ] {
        let (program, inputs) = sample(seed, 240);
        let text = printed(&program, order, piece);
        assert_eq!(text.contains("f_1(w, s)"), piece > 0);
        let mut double = vec![inputs.clone(), vec![0.0; 256]];
        program.run(&program.functions[0], &mut double);
        let Some(result) = compiled(&program, &text, "double", &inputs) else {
            return;
        };
        assert!(result == double[1], "{seed}: {text}");
        let mut single = vec![inputs.iter().map(|x| *x as f32).collect(), vec![0.0; 256]];
        program.run(&program.functions[0], &mut single);
        let Some(result) = compiled(&program, &text, "float", &inputs) else {
            return;
        };
        let single: Vec<f64> = single[1].iter().map(|x| f64::from(*x)).collect();
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        assert!(result.iter().zip(&single).all(same), "{seed}: {text}");
    }
}
