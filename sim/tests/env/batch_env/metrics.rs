//! Pins: a metric is what `over` says of the values after an episode's steps, is counted with the
//! episodes that are, and changes nothing else.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::EpisodeStats;
use ostler_sim::config::TaskConfig;

const METRICS: &str = r#"
[[metric]]
name = "success"
expr = "action[0] > 0.9"
over = "any"
[[metric]]
name = "mean"
expr = "action[0] * 3"
[[metric]]
name = "last"
expr = "state.n"
over = "last"
[[metric]]
name = "max"
expr = "action[1] - 2"
over = "max"
[[metric]]
name = "min"
expr = "action[1] + 2"
over = "min"
[[metric]]
name = "sum"
expr = "height(ball)"
over = "sum"
unit = "m"
"#;

fn measured(metrics: &str) -> TaskConfig {
    task(&format!(
        r#"
[[action]]
actuators = ["*"]
[[state]]
name = "n"
init = "10"
update = "state.n + 1"
[[observation]]
name = "state"
expr = "qpos"
[[reward]]
name = "r"
expr = "action[0]"
[[termination]]
name = "pushed"
expr = "action[1] > 0.95"
{metrics}"#
    ))
}

fn action(env: usize, step: u32) -> [f32; 2] {
    let wave = |k: u32| ((7 * step + 3 * k + 5 * env as u32) % 11) as f32 / 10.0;
    [wave(0), wave(1)]
}

#[test]
fn a_metric_is_what_over_says_of_an_episodes_values() {
    let b = Batch { n: 70, steps: 9, ..SMALL };
    let mut env = build(b, &measured(METRICS)).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<_> =
        env.spec().metrics.iter().map(|m| (m.name.as_str(), m.unit.as_str())).collect();
    assert_eq!(
        names,
        [
            ("success", "-"),
            ("mean", "any"),
            ("last", "any"),
            ("max", "any"),
            ("min", "any"),
            ("sum", "m")
        ]
    );
    let mut plain = build(b, &measured("")).unwrap();
    let (mut out, mut other) = (Out::new(env.spec(), 1), Out::new(plain.spec(), 1));
    out.reset(&mut env, false);
    other.reset(&mut plain, false);
    let mut stats = EpisodeStats::with_room(env.spec()).unwrap();
    // Actions of the episode so far.
    let mut hand: Vec<Vec<[f32; 2]>> = vec![Vec::new(); b.n];
    let (mut sums, mut episodes) = ([0.0f64; 6], 0);
    for step in 0..60 {
        let actions: Vec<f32> = (0..b.n).flat_map(|e| action(e, step)).collect();
        out.step(&mut env, &actions);
        other.step(&mut plain, &actions);
        assert_eq!(out.policy, other.policy);
        assert_eq!(out.reward, other.reward);
        let mut finished = Vec::new();
        for (e, taken) in hand.iter_mut().enumerate() {
            taken.push(action(e, step));
            if out.terminated[e] == 0.0 && out.truncated[e] == 0.0 {
                continue;
            }
            let of = |k: usize| taken.iter().map(move |a| a[k]);
            let n = taken.len() as f32;
            let metrics = [
                f32::from(u8::from(of(0).any(|x| x > 0.9))),
                of(0).fold(0.0, |s, x| s + x * 3.0) / n,
                9.0 + n,
                of(1).map(|x| x - 2.0).fold(f32::MIN, f32::max),
                of(1).map(|x| x + 2.0).fold(f32::MAX, f32::min),
                n,
            ];
            episodes += 1;
            sums.iter_mut().zip(metrics).for_each(|(s, m)| *s += f64::from(m));
            finished.extend(metrics);
            taken.clear();
        }
        if step % 2 == 0 {
            env.take_stats(&mut stats);
            let at = stats.finished_metrics.len() - finished.len();
            assert!(stats.finished.len() as u64 == stats.episodes);
            assert_eq!(stats.finished_metrics.len(), 6 * stats.finished.len());
            for (a, b) in stats.finished_metrics[at..].iter().zip(&finished) {
                assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} {b}");
            }
            assert_eq!(stats.episodes, episodes);
            for (a, b) in stats.metric_sums.iter().zip(sums) {
                assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} {b}");
            }
            (sums, episodes) = ([0.0; 6], 0);
        }
    }
}

#[test]
fn mistakes_in_metrics_name_their_place_and_a_remedy() {
    let metric = |rest: &str| format!("[[metric]]\n{rest}\n");
    for (text, path, message, help) in [
        (metric("name = \"\"\nexpr = \"1\""), "task.metric[0].name", "the name is empty", ""),
        (
            metric("name = \"a\"\nexpr = \"qpos\""),
            "task.metric[0].expr",
            "a metric is one number; this has 9",
            "sum(...)",
        ),
        (
            metric("name = \"a\"\nexpr = \"time\"\nover = \"any\""),
            "task.metric[0].expr",
            "over = \"any\" takes a condition",
            "> 0",
        ),
        (
            metric("name = \"a\"\nexpr = \"time\"\nunit = \"m\""),
            "task.metric[0].unit",
            "`expr` is in [s], not in [m]",
            "unit = \"s\"",
        ),
        (
            metric("name = \"a\"\nexpr = \"time\"\nunit = \"mile\""),
            "task.metric[0].unit",
            "\"mile\" is not known",
            "",
        ),
        (
            metric("name = \"a\"\nexpr = \"tiem\""),
            "task.metric[0].expr",
            "unknown name `tiem`",
            "time",
        ),
        (metric("name = \"a\"\nexpr = \"1\"").repeat(2), "task.metric[1].name", "used twice", ""),
        (
            metric("name = \"a\"\nexpr = \"1\"\nagents = [\"x\"]"),
            "task.metric[0].agents",
            "several agents",
            "",
        ),
    ] {
        let error = match build(SMALL, &measured(&text)) {
            Err(ostler_sim::env::EnvError::Config(e)) => e,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(error.path, path, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
        assert!(error.help.clone().unwrap_or_default().contains(help), "{text}: {error}");
    }
}
