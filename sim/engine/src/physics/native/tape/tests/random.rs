use super::super::{Program, Real, Recorder, Val};
use super::arrays;
use proptest::prelude::*;

const INPUTS: usize = 5;
const CONSTANTS: [f64; 9] = [0.0, 1.0, -1.0, 2.0, -0.5, 0.25, 1.0 / 3.0, -7.0, 1e-3];

type Instruction = (u8, u16, u16, u16);

/// The same random instructions done directly and recorded.
struct Both<T> {
    direct: Vec<T>,
    program: Program,
}

fn finite<T: Real>(x: T) -> bool {
    x.abs() < T::constant(f64::INFINITY)
}

/// `constants`: whether arithmetic between constants is recorded. It is done in
/// double precision, so that other types may differ there.
fn both<T: Real>(code: &[Instruction], inputs: &[f64], constants: bool) -> Both<T> {
    let mut recorder = Recorder::new(arrays(INPUTS, 256));
    recorder.begin("f");
    let mut values: Vec<(T, Val)> = Vec::new();
    for (i, &x) in inputs.iter().enumerate() {
        values.push((T::constant(x), recorder.load(0, i as u32).unwrap()));
    }
    let g = recorder.graph();
    for c in CONSTANTS {
        values.push((T::constant(c), g.number(c)));
    }
    let mut masks = vec![(true, g.mask(true))];
    for &(op, i, j, k) in code {
        let pick = |i: u16| values[i as usize % values.len()];
        let pick_mask = |i: u16| masks[i as usize % masks.len()];
        let ((a, va), (b, vb), (c, vc)) = (pick(i), pick(j), pick(k));
        let known = [va, vb, vc].map(|v| g.constant(v).is_some());
        let used = match op % 22 {
            0..=7 => 1,
            8..=15 | 21 => 2,
            _ => 3,
        };
        if !constants && known[..used].iter().all(|k| *k) {
            continue;
        }
        let new = match op % 22 {
            0 => (-a, va.flip()),
            1 => (a.sqrt(), g.sqrt(va)),
            2 => (T::constant(1.0).div(a), g.recip(va)),
            3 => (a.abs(), g.abs(va)),
            4 => (a.sin(), g.sin(va)),
            5 => (a.cos(), g.cos(va)),
            6 => (a.rint(), g.rint(va)),
            7 => {
                let (m, vm) = pick_mask(i);
                masks.push((!m, vm.flip()));
                continue;
            }
            8 => (a.add(b), g.add(va, vb)),
            9 => (a.add(-b), g.sub(va, vb)),
            10 => (a.mul(b), g.mul(va, vb)),
            11 => (a.div(b), g.div(va, vb)),
            12 => (if a < b { a } else { b }, g.min(va, vb)),
            13 => (if a > b { a } else { b }, g.max(va, vb)),
            14 => {
                masks.push((a < b, g.lt(va, vb)));
                continue;
            }
            15 => {
                masks.push((a <= b, g.le(va, vb)));
                continue;
            }
            21 => (a.abs().atan2(b), {
                let y = g.abs(va);
                g.atan2(y, vb)
            }),
            16 | 17 => (a.fma(b, c), g.fma(va, vb, vc)),
            18 => {
                let ((m, vm), (n, vn)) = (pick_mask(i), pick_mask(j));
                let new = match k % 3 {
                    0 => (m & n, g.and(vm, vn)),
                    1 => (m | n, g.or(vm, vn)),
                    _ => (m ^ n, g.xor(vm, vn)),
                };
                masks.push(new);
                continue;
            }
            _ => {
                let (m, vm) = pick_mask(i);
                (if m { b } else { c }, g.sel(vm, vb, vc))
            }
        };
        if finite(new.0) {
            values.push(new);
        }
    }
    let direct = values.iter().map(|(x, _)| *x).collect();
    for (i, (_, value)) in values.iter().enumerate() {
        recorder.store(1, i as u32, *value);
    }
    recorder.end();
    Both { direct, program: recorder.finish().unwrap() }
}

fn check<T: Real + std::fmt::Debug>(both: &Both<T>, inputs: &[f64]) {
    let x = inputs.iter().map(|x| T::constant(*x)).collect();
    let mut arrays = vec![x, vec![T::constant(0.0); 256]];
    both.program.run(&both.program.functions[0], &mut arrays);
    for (i, direct) in both.direct.iter().enumerate() {
        // Equal but for the sign of zero.
        assert!(arrays[1][i] == *direct, "value {i}: {:?} for {direct:?}", arrays[1][i]);
    }
}

fn code() -> impl Strategy<Value = (Vec<Instruction>, Vec<f64>)> {
    (
        proptest::collection::vec(any::<Instruction>(), 0..200),
        proptest::collection::vec(
            prop_oneof![
                4 => -10.0..10.0_f64,
                1 => (-4..4_i32).prop_map(f64::from),
                1 => -1e-6..1e-6_f64
            ],
            INPUTS,
        ),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn folding_changes_no_bit_in_double_precision((code, inputs) in code()) {
        check(&both::<f64>(&code, &inputs, true), &inputs);
    }

    #[test]
    fn folding_changes_no_bit_in_single_precision((code, inputs) in code()) {
        check(&both::<f32>(&code, &inputs, false), &inputs);
    }
}

/// A fixed random program of about `length` instructions, for printing.
pub fn sample(seed: u64, length: usize) -> (Program, Vec<f64>) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u16
    };
    let code: Vec<Instruction> =
        (0..length).map(|_| (next() as u8, next(), next(), next())).collect();
    let inputs = [0.7, -1.3, 2.9, 0.01, -4.2];
    (both::<f64>(&code, &inputs, true).program, inputs.to_vec())
}
