//! Pins: beta and truncated normal numbers are distributed as numpy has them, wherever a
//! distribution stands.

use super::point_mass::{Out, task};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize};
use ostler_sim::env::BatchEnv;
use ostler_sim::model::mjcf;
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
