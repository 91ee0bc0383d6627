//! Pins: starts within the soft limits of joints, as mjlab's and Isaac Lab's.

use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, Groups};
use ostler_sim::model::mjcf;
use std::path::Path;
use std::sync::Arc;

/// Positions of a hinge from -1 to 3 and of a slide without limits, in 2,000 starts.
fn starts(terms: &str) -> Vec<[f32; 2]> {
    let xml = r#"<mujoco><compiler angle="radian"/><worldbody><body>
        <joint name="hinge" axis="0 1 0" range="-1 3" limited="true"/><geom size="0.1"/>
        <body pos="0 0 1"><joint name="free" type="slide"/><geom size="0.1"/></body></body></worldbody>
      <actuator><motor name="m" joint="hinge"/></actuator></mujoco>"#;
    let model = mjcf::parse(Path::new("limits.xml"), xml.to_string()).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: 2000, ..EnvConfig::default() };
    let task: TaskConfig = toml::from_str(&format!(
        "robot = \"\"\n[[action]]\nactuators = [\"*\"]\n[[observation]]\nname = \"q\"\nexpr = \"joint_pos()\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n[[reset]]\n{terms}"
    ))
    .unwrap();
    let mut env = BatchEnv::new(Arc::new(model), &sim, &env, &task, 3).unwrap();
    let mut rows = vec![0.0; 4000];
    env.reset(false, &mut Groups { policy: &mut rows, critic: None });
    rows.chunks(2).map(|r| [r[0], r[1]]).collect()
}

#[test]
fn positions_lie_within_a_share_of_the_limits() {
    let all = starts("target = \"joint_pos(hinge)\"\nwithin_limits = 0.9");
    let least = all.iter().map(|r| r[0]).fold(f32::MAX, f32::min);
    let most = all.iter().map(|r| r[0]).fold(f32::MIN, f32::max);
    assert!((-0.8..-0.78).contains(&least) && (2.78..=2.8).contains(&most), "{least} {most}");
    let mean = all.iter().map(|r| f64::from(r[0])).sum::<f64>() / 2000.0;
    assert!((mean - 1.0).abs() < 0.1, "{mean}");
}

/// `reset_joints_by_offset` clips to the soft limits; a joint without limits is free.
#[test]
fn offsets_are_clipped_to_them() {
    let all = starts("target = \"joint_pos(*)\"\nuniform = [-4, 4]\nwithin_limits = 0.5");
    assert!(all.iter().all(|r| (0.0..=2.0).contains(&r[0])));
    let at = |x: f32| all.iter().filter(|r| r[0] == x).count();
    assert!((900..1100).contains(&at(0.0)) && (400..600).contains(&at(2.0)));
    assert!(all.iter().any(|r| r[1] < -3.9) && all.iter().any(|r| r[1] > 3.9));
}
