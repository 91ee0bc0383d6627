//! Pins: every mistake in a task is an error that says where and what; no number panics.

use super::point_mass::{Batch, Out, SMALL, build, model, task};
use ostler_sim::config::{ConfigError, EnvConfig, OneOrMany, SimConfig, Specialize};
use ostler_sim::env::{BatchEnv, EnvError};
use ostler_sim::model::Model;
use ostler_sim::physics::native;
use ostler_sim::physics::pool::Pool;
use ostler_sim::task::prepare;
use proptest::prelude::*;
use std::sync::Arc;

const GOOD: &str = r#"
[[action]]
actuators = ["push"]
[[observation]]
name = "q"
expr = "qpos"
[[reward]]
name = "r"
expr = "1"
"#;

fn mistake(text: &str) -> ConfigError {
    match build(SMALL, &task(text)) {
        Err(EnvError::Config(e)) => e,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_an_engine_does_not_measure_is_refused() {
    for term in [
        "[[observation]]\nname = \"a\"\nexpr = \"joint_acc\"",
        "[[reward]]\nname = \"a\"\nexpr = \"sum(joint_acc^2)\"",
        "[[termination]]\nname = \"a\"\nexpr = \"previous(joint_acc)[0] > 3\"",
    ] {
        let e = mistake(&format!("{GOOD}{term}"));
        assert_eq!(e.path, "sim.backend", "{term}: {e}");
        assert!(e.to_string().contains("joint_acc"), "{e}");
    }
}

/// Worlds of the robot alone have no room for the contacts that the task reads.
#[test]
fn worlds_of_another_robot_are_refused() {
    let term = "[[metric]]\nname = \"push\"\nexpr = \"net_contact_force(ball).z\"";
    let (plain, task) = (model(), task(&format!("{GOOD}{term}")));
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: 3, decimation: 2, episode_length_s: 1.0 };
    let over = |worlds_of, num_envs| {
        let pool = Arc::new(Pool::new(1).unwrap());
        let worlds = Box::new(native::new(worlds_of, &sim, num_envs, &pool).unwrap());
        BatchEnv::with_physics(plain.clone(), worlds, pool, &env, &task, 1, 0)
    };
    let refused = |built: Result<BatchEnv, EnvError>| built.unwrap_err().to_string();
    let e = refused(over(&plain, 3));
    assert!(e.contains("another \"contact_data\"") && e.contains("task::prepare"), "{e}");
    let step_dt = |m: &Model| 2.0 * sim.timestep(m);
    let (prepared, _) = prepare(&plain, &task, step_dt).unwrap();
    assert!(over(&prepared, 3).is_ok());
    let e = refused(over(&prepared, 4));
    assert!(e.contains("another \"qpos\""), "{e}");
}

#[test]
fn mistakes_name_their_path_and_a_remedy() {
    for (extra, path, part) in [
        ("[[reward]]\nname = \"s\"\nexpr = \"height(bal)\"", "task.reward[1].expr", "ball"),
        ("[[reward]]\nname = \"s\"\nexpr = \"qpos\"", "task.reward[1].expr", "one number"),
        ("[[reward]]\nname = \"r\"\nexpr = \"1\"", "task.reward[1].name", "twice"),
        (
            "[[reward]]\nname = \"s\"\nexpr = \"1\"\nweight = 1e99",
            "task.reward[1].weight",
            "finite",
        ),
        ("[[observation]]\nname = \"q\"\nexpr = \"1\"", "task.observation[1].name", "twice"),
        (
            "[[observation]]\nname = \"s\"\nexpr = \"qpos\"\nscale = [1, 2]",
            "task.observation[1].scale",
            "2 numbers for 9",
        ),
        (
            "[[observation]]\nname = \"s\"\nexpr = \"qpos\"\nclip = [1, -1]",
            "task.observation[1].clip",
            "upside down",
        ),
        (
            "[[observation]]\nname = \"s\"\nexpr = \"qpos\"\nnoise = -1",
            "task.observation[1].noise",
            "negative",
        ),
        (
            "[[termination]]\nname = \"t\"\nexpr = \"qpos[0]\"",
            "task.termination[0].expr",
            "true or false",
        ),
        (
            "[[termination]]\nname = \"time_out\"\nexpr = \"1 > 2\"",
            "task.termination[0].name",
            "twice",
        ),
        (
            "[[action]]\nactuators = [\"servos\"]",
            "task.action[1].actuators[0]",
            "did you mean \"servo\"",
        ),
        ("[[action]]\nactuators = [\"pu*\"]", "task.action[1].actuators", "already driven"),
        (
            "[[action]]\nactuators = [\"servo\"]\nkind = \"discrete\"\nchoices = [[1]]",
            "task.action[1].kind",
            "only one",
        ),
        (
            "[[action]]\nactuators = [\"servo\"]\nstiffness = 3",
            "task.action[1].stiffness",
            "position",
        ),
        (
            "[[action]]\nactuators = [\"servo\"]\nkind = \"position\"\nstiffness = 3",
            "task.action[1].stiffness",
            "of its own",
        ),
        ("[[command]]\nname = \"c\"\nrange = []", "task.command[0].range", "no components"),
        ("[[command]]\nname = \"c\"\nrange = [[2, 1]]", "task.command[0].range[0]", "[1, 2]"),
        (
            "[[command]]\nname = \"c\"\nrange = [[1, 2]]\nresample_s = 0.001",
            "task.command[0].resample_s",
            "control steps",
        ),
        (
            "[[reset]]\ntarget = \"joint_pso(slider)\"\nvalue = 1",
            "task.reset[0].target",
            "joint_pos",
        ),
        ("[[reset]]\ntarget = \"joint_pos(slidr)\"\nvalue = 1", "task.reset[0].target", "slider"),
        ("[[reset]]\ntarget = \"joint_pos\"\nvalue = 1", "task.reset[0].target", "needs a name"),
        (
            "[[reset]]\ntarget = \"qpos(slider)\"\nvalue = 1",
            "task.reset[0].target",
            "takes no name",
        ),
        ("[[reset]]\ntarget = \"pos(cart)\"\nvalue = 1", "task.reset[0].target", "free joint"),
        ("[[reset]]\ntarget = \"keyframe(hihg)\"", "task.reset[0].target", "high"),
        ("[[reset]]\ntarget = \"keyframe(high)\"\nnormal = 1", "task.reset[0]", "takes no numbers"),
        ("[[reset]]\ntarget = \"qpos\"", "task.reset[0]", "does nothing"),
        ("[[reset]]\ntarget = \"qpos\"\nnormal = 1\nuniform = [0, 1]", "task.reset[0]", "both"),
        ("[[reset]]\ntarget = \"qpos\"\nnormal = -1", "task.reset[0].normal", "negative"),
        ("[[reset]]\ntarget = \"qpos\"\nvalue = [1, 2]", "task.reset[0].value", "2 numbers for 9"),
    ] {
        let e = mistake(&format!("{GOOD}{extra}"));
        assert_eq!(e.path, path, "{e}");
        assert!(e.to_string().contains(part), "{e}");
    }
    let e = mistake(&format!("{GOOD}[[reward]]\nname = \"s\"\nexpr = \"2 * height(bal)\""));
    assert_eq!(e.span, Some(11..14), "{e}");
    for missing in ["action", "observation", "reward"] {
        let rest: String = GOOD
            .split("[[")
            .filter(|t| !t.starts_with(missing) && !t.trim().is_empty())
            .map(|t| format!("[[{t}"))
            .collect();
        assert_eq!(mistake(&rest).path, format!("task.{missing}"));
    }
}

fn limit(
    joints: &[&str],
    max_speed: Option<f64>,
    max_position: Option<f64>,
) -> Vec<ostler_sim::config::JointLimit> {
    vec![ostler_sim::config::JointLimit {
        joints: joints.iter().map(ToString::to_string).collect(),
        max_speed,
        max_position,
    }]
}

#[test]
fn impossible_numbers_of_the_batch_are_refused_by_name() {
    for (env, path) in [
        (EnvConfig { num_envs: 0, ..EnvConfig::default() }, "env.num_envs"),
        (EnvConfig { num_envs: usize::MAX, ..EnvConfig::default() }, "env.num_envs"),
        (EnvConfig { decimation: 0, ..EnvConfig::default() }, "env.decimation"),
        (EnvConfig { episode_length_s: -1.0, ..EnvConfig::default() }, "env.episode_length_s"),
        (EnvConfig { episode_length_s: f64::NAN, ..EnvConfig::default() }, "env.episode_length_s"),
    ] {
        assert_eq!(env.validate().unwrap_err().path, path);
    }
    for (sim, path) in [
        (SimConfig { dt: -0.01, ..SimConfig::default() }, "sim.dt"),
        (SimConfig { dt: f64::INFINITY, ..SimConfig::default() }, "sim.dt"),
        (SimConfig { max_speed: 0.0, ..SimConfig::default() }, "sim.max_speed"),
        (SimConfig { max_speed: f64::NAN, ..SimConfig::default() }, "sim.max_speed"),
        (
            SimConfig { limit: limit(&["slider"], Some(1.0), Some(-1.0)), ..SimConfig::default() },
            "sim.limit[0].max_position",
        ),
        (
            SimConfig { limit: limit(&["slider"], None, None), ..SimConfig::default() },
            "sim.limit[0]",
        ),
        (
            SimConfig { limit: limit(&[], Some(1.0), None), ..SimConfig::default() },
            "sim.limit[0].joints",
        ),
        (
            SimConfig { threads: ostler_sim::config::Auto::N(0), ..SimConfig::default() },
            "sim.threads",
        ),
    ] {
        assert_eq!(sim.validate().unwrap_err().path, path);
    }
    let short = EnvConfig { episode_length_s: 0.01, ..EnvConfig::default() };
    assert_eq!(short.max_episode_steps(0.02).unwrap_err().path, "env.episode_length_s");
    let gym = EnvConfig { episode_length_s: 40.0, ..EnvConfig::default() };
    assert_eq!(gym.max_episode_steps(0.02 * 2.0), Ok(1000));
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(0.0),
        Just(-1.0),
        Just(1e-300),
        Just(f64::MAX),
        -10.0..10.0f64,
        any::<f64>()
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_numbers_in_a_task_make_it_panic(x in proptest::collection::vec(any_number(), 20), raw in any::<f32>()) {
        let mut t = task(&format!("{GOOD}[[command]]\nname = \"c\"\nrange = [[0, 1]]\n[[reset]]\ntarget = \"qpos\"\nuniform = [0, 1]\n[[reset]]\ntarget = \"yaw(ball)\"\nnormal = 1"));
        t.action[0].scale = OneOrMany::One(x[0]);
        t.action[0].offset = OneOrMany::Many(vec![x[1]]);
        t.action[0].clip = Some([x[2].min(x[3]), x[3].max(x[2])].into());
        t.command[0].range = vec![[x[4], x[5]]];
        t.command[0].resample_s = x[6].into();
        t.observation[0].scale = OneOrMany::One(x[7]);
        t.observation[0].clip = Some([x[8], x[9]]);
        t.observation[0].noise = x[10].into();
        t.reward[0].weight = x[11];
        t.reset[0].uniform = Some([x[12].min(x[13]), x[13].max(x[12])].into());
        t.reset[1].normal = Some(OneOrMany::One(x[14]));
        t.rewards.clip = Some([x[15], x[16]]);
        t.rewards.scale_by_dt = x[17] > 0.0;
        t.params.insert("p".into(), x[18]);
        // Ordered pairs, so that some get through.
        for pair in [&mut t.command[0].range[0]] {
            if pair[0] > pair[1] {
                pair.swap(0, 1);
            }
        }
        if let Ok(mut env) = build(Batch { n: 2, ..SMALL }, &t) {
            let mut out = Out::new(env.spec(), 1);
            out.reset(&mut env, true);
            for _ in 0..7 {
                out.step(&mut env, &[raw, 1.0]);
                prop_assert!(out.policy.iter().chain(&out.reward).all(|v| v.is_finite()));
            }
        }
    }
}
