//! Pins: beta and truncated normal numbers are distributed as numpy has them, wherever a
//! distribution stands.

use super::point_mass::{Out, task};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize};
use ostler_sim::env::BatchEnv;
use ostler_sim::math::{exp, ln};
use ostler_sim::model::mjcf;
use ostler_sim::rng::{Purpose, normal_pair, philox, unit};
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// `tests/referee/distributions.py` writes them.
const NUMPY: &str = include_str!("../../../../tests/fixtures/distributions.json");

#[derive(Deserialize)]
struct Quantiles {
    shares: Vec<f64>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    distribution: String,
    mean: f64,
    std: f64,
    range: [f64; 2],
    quantiles: Vec<f64>,
}

const N: usize = 100_000;
/// Where numbers are drawn.
const PLACES: [&str; 7] =
    ["command", "reset", "event", "bias", "start", "noise", "noise beside it"];

/// First observations of many environments: what is drawn in every one of the places.
fn first(case: &Case) -> Vec<Vec<f32>> {
    let Case { distribution, mean, std, range: [low, high], .. } = case;
    let keys = format!("distribution = \"{distribution}\"");
    let inline =
        format!("{{ {keys}, range = [{low:?}, {high:?}], mean = {mean:?}, std = {std:?} }}");
    let see = |name: &str, expr: &str, more: &str| {
        format!("[[observation]]\nname = \"{name}\"\nexpr = \"{expr}\"\n{more}\n")
    };
    let text = [
        "[[action]]\nactuators = [\"push\"]\n[[reward]]\nname = \"one\"\nexpr = \"1\"\n".to_string(),
        format!(
            "[[command]]\nname = \"c\"\n{keys}\nrange = [[{low:?}, {high:?}]]\nmean = [{mean:?}]\nstd = [{std:?}]\n"
        ),
        format!("[[reset]]\ntarget = \"joint_vel(slider)\"\ndraw = {inline}\n"),
        format!(
            "[[event]]\nname = \"pull\"\nwhen = \"reset\"\nset = \"gravity[0]\"\n{keys}\nrange = [{low:?}, {high:?}]\nmean = {mean:?}\nstd = {std:?}\n"
        ),
        format!(
            "[[state]]\nname = \"s\"\ninit = \"{distribution}({mean:?}, {std:?}, {low:?}, {high:?})\"\nupdate = \"state.s\"\n"
        ),
        see("command", "command.c", ""),
        see("reset", "qvel[0]", ""),
        see("event", "event.pull", ""),
        see("bias", "0", &format!("bias = {{ draw = {inline} }}")),
        see("start", "state.s", ""),
        see("noise", "[0, 0]", &format!("noise = {{ draw = {inline} }}")),
    ]
    .concat();
    let xml = r#"<mujoco><worldbody><body name="cart"><joint name="slider" type="slide" axis="1 0 0"/>
        <geom type="sphere" size="0.1" mass="1"/></body></worldbody>
        <actuator><motor name="push" joint="slider"/></actuator></mujoco>"#;
    let model = mjcf::parse(Path::new("cart.xml"), xml.to_string()).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: N, decimation: 1, episode_length_s: 20.0 };
    let mut env = BatchEnv::new(Arc::new(model), &sim, &env, &task(&text), 11).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let places = 0..PLACES.len();
    places.map(|k| out.policy.iter().skip(k).step_by(PLACES.len()).copied().collect()).collect()
}

/// The share of draws below each of numpy's quantiles, within the error of 10^5 draws; and no
/// place draws what another does.
#[test]
fn draws_have_the_quantiles_of_numpy() {
    let numpy: Quantiles = serde_json::from_str(NUMPY).unwrap();
    for case in &numpy.cases {
        let columns = first(case);
        let name = format!("{} {} {} {:?}", case.distribution, case.mean, case.std, case.range);
        for (place, drawn) in PLACES.iter().zip(&columns) {
            let ends = case.range.map(|x| x as f32);
            assert!(drawn.iter().all(|x| (ends[0]..=ends[1]).contains(x)), "{name}: {place}");
            for (p, quantile) in numpy.shares.iter().zip(&case.quantiles) {
                let below = drawn.iter().filter(|x| f64::from(**x) < *quantile).count();
                let share = below as f64 / N as f64;
                let error = (p * (1.0 - p) / N as f64).sqrt();
                assert!(
                    (share - p).abs() < 4.5 * error,
                    "{name}: {place}: {share} below {quantile}"
                );
            }
        }
        for (i, a) in columns.iter().enumerate() {
            for (k, b) in columns.iter().enumerate().skip(i + 1) {
                let same = a.iter().zip(b).filter(|(a, b)| a == b).count();
                let mean = |of: &dyn Fn(usize) -> f64| (0..N).map(of).sum::<f64>() / N as f64;
                let [x, y] = [a, b].map(|c| mean(&|e| f64::from(c[e])));
                let product = mean(&|e| (f64::from(a[e]) - x) * (f64::from(b[e]) - y));
                let [u, v] =
                    [(a, x), (b, y)].map(|(c, m)| mean(&|e| (f64::from(c[e]) - m).powi(2)));
                let correlated = product / (u * v).sqrt();
                let pair = format!("{name}: {} and {}", PLACES[i], PLACES[k]);
                assert!(correlated.abs() < 5.0 / (N as f64).sqrt(), "{pair}: {correlated}");
                assert!(same < N / 2, "{pair} are the same {same} times");
            }
        }
    }
}

/// Every draw is a formula of the words of its own key, to the bit: what a run has drawn another
/// one draws again, however the code of draws is arranged.
#[test]
fn draws_are_formulas_of_the_words_of_their_keys() {
    const SEED: u64 = 11;
    // The first clock of a batch.
    const CLOCK: u64 = 1;
    let text = r#"
[[action]]
actuators = ["push"]
[[reward]]
name = "one"
expr = "1"
[[command]]
name = "a"
range = [[-1.5, 2.25], [0.3, 0.7]]
[[command]]
name = "b"
distribution = "log_uniform"
range = [[0.3, 7]]
[[command]]
name = "c"
distribution = "normal"
mean = [0.3, 1]
std = [0.7, 2]
range = [[-9, 9], [0, 1.5]]
[[command]]
name = "d"
distribution = "exponential"
mean = [0.7]
[[command]]
name = "e"
distribution = "bernoulli"
probability = [0.3]
[[command]]
name = "f"
distribution = "choice"
choices = [[1, 10], [2, 20], [3, 30]]
weights = [1, 2, 0.7]
[[reset]]
target = "joint_pos(*)"
uniform = [[-0.7, 0.3], [0.1, 0.4]]
[[reset]]
target = "joint_vel(slider)"
log_uniform = [0.3, 0.7]
[[reset]]
target = "joint_vel(turn)"
normal = 0.7
[[reset]]
target = "qvel"
choice = [[0, 0], [0.25, 0], [0.5, 0], [0.75, 0], [1, 0]]
[[reset]]
target = "joint_vel(turn)"
uniform = [1, 2]
[[event]]
name = "log"
when = "reset"
set = "gravity"
distribution = "log_uniform"
range = [0.824, 0.889]
[[event]]
name = "normal"
when = "startup"
set = "armature(*)"
distribution = "normal"
mean = 5
std = 0.3
[[event]]
name = "choice"
when = "reset"
set = "damping(slider)"
distribution = "choice"
choices = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
[[observation]]
name = "commands"
expr = "[command.a, command.b, command.c, command.d, command.e, command.f]"
[[observation]]
name = "state"
expr = "[1 * qpos, 1 * qvel]"
[[observation]]
name = "events"
expr = "[1 * event.log, 1 * event.normal, 1 * event.choice]"
[[observation]]
name = "uniform"
expr = "[0, 0, 0]"
noise = [-0.1, 0.3]
[[observation]]
name = "normal"
expr = "[0, 0, 0, 0]"
noise = { normal = 0.3 }
[[observation]]
name = "biases"
expr = "[0, 0]"
bias = [-0.1, 0.3]
[[observation]]
name = "normal_bias"
expr = "0"
bias = { normal = 0.3 }
"#;
    let xml = r#"<mujoco><worldbody><body name="cart"><joint name="slider" type="slide" axis="1 0 0"/>
        <joint name="turn" axis="0 0 1"/><geom type="sphere" size="0.1" mass="1"/></body></worldbody>
        <actuator><motor name="push" joint="slider"/></actuator></mujoco>"#;
    let model = mjcf::parse(Path::new("cart.xml"), xml.to_string()).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: 500, decimation: 1, episode_length_s: 20.0 };
    let mut env = BatchEnv::new(Arc::new(model), &sim, &env, &task(text), SEED).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let width = env.spec().obs.policy;
    let between = |[low, high]: [f32; 2], word: u32| low + (high - low) * unit(word);
    for (e, row) in out.policy.chunks(width).enumerate() {
        let of = |purpose, clock, index| philox(SEED, e as u32, purpose, clock, index);
        let command = |index: u32| of(Purpose::Command, CLOCK, index);
        let component = |c: u32| command(c / 4)[c as usize % 4];
        let log = |low: f32, high: f32| [low, high].map(|x| f64::from(x).ln() as f32);
        let normal = |c: u32| normal_pair(component(c), command(c | 0x4000_0000)[0]).0;
        let mut wants = vec![
            between([-1.5, 2.25], component(0)),
            between([0.3, 0.7], component(1)),
            exp(between(log(0.3, 7.0), component(2))),
            (0.3 + 0.7 * normal(3)).clamp(-9.0, 9.0),
            (1.0 + 2.0 * normal(4)).clamp(0.0, 1.5),
            -0.7 * ln(1.0 - unit(component(5))),
            f32::from(u8::from(unit(component(6)) < 0.3)),
        ];
        let chosen = unit(command(7 | 0x2000_0000)[0]);
        let shares = [1.0, 3.0].map(|sum: f64| (sum / 3.7) as f32);
        let row_of = shares.iter().filter(|share| chosen >= **share).count();
        wants.extend([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]][row_of]);
        let pair = |purpose, clock, k: u32| {
            let words = of(purpose, clock, k / 2);
            [words[k as usize % 2 * 2], words[k as usize % 2 * 2 + 1]]
        };
        let reset = |k: u32| pair(Purpose::Reset, CLOCK, k);
        let below = |count: usize, word: u32| ((unit(word) * count as f32) as usize).min(count - 1);
        wants.extend([
            0.0 + between([-0.7, 0.3], reset(0)[0]),
            0.0 + between([0.1, 0.4], reset(1)[0]),
            0.25 * below(5, reset(4)[0]) as f32,
            0.0 + between([1.0, 2.0], reset(5)[0]),
        ]);
        let event = |k: u32, clock: u64| pair(Purpose::Event, clock, k);
        // As at run time: a compiler rounds the logarithm of a constant otherwise.
        let logs = std::hint::black_box([0.824_f32, 0.889]).map(f32::ln);
        wants.extend((0..3).map(|k| exp(between(logs, event(k, CLOCK)[0]))));
        wants.extend((3..5).map(|k| {
            let [a, b] = event(k, 0);
            5.0 + 0.3 * normal_pair(a, b).0
        }));
        wants.push([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7][below(7, event(5, CLOCK)[0])]);
        // Two rows in one step, before and after a reset, differ in their noise.
        let noise = |place: u32, normal: bool| {
            let index = (place / 4) | (u32::from(normal) << 31);
            of(Purpose::ObservationNoise, 2 * CLOCK + 1, index)
        };
        let first = wants.len() as u32;
        let (middle, half) = ((-0.1_f32 + 0.3) / 2.0, (0.3_f32 - -0.1) / 2.0);
        wants.extend((first..first + 3).map(|place| {
            middle + half * (2.0 * unit(noise(place, false)[place as usize % 4]) - 1.0)
        }));
        wants.extend((first + 3..first + 7).map(|place| {
            let words = noise(place, true);
            let even = place as usize % 4 / 2 * 2;
            let (x, y) = normal_pair(words[even], words[even + 1]);
            0.0 + 0.3 * if place % 2 == 0 { x } else { y }
        }));
        let bias = |k: u32| of(Purpose::ObservationBias, CLOCK, k);
        wants.extend((0..2).map(|k| between([-0.1, 0.3], bias(k)[0])));
        let [a, b, ..] = bias(2);
        wants.push(0.3 * normal_pair(a, b).0);
        for (at, (found, want)) in row.iter().zip(&wants).enumerate() {
            assert_eq!(found.to_bits(), want.to_bits(), "{e}: place {at}: {found}, not {want}");
        }
        assert_eq!(row.len(), wants.len());
    }
}
