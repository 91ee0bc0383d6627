//! Pins: an episode that a keyframe begins has the keyframe's activations, in every engine, as
//! after MuJoCo's `mj_resetDataKeyframe`.

use crate::batch_env::point_mass::{Out, task};
use crate::parts::Whole;
use crate::support::referee::referee_python;
use crate::support::script::{answer, numbers, same};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::BatchEnv;
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::native;
use ostler_sim::physics::pool::Pool;
use ostler_sim::referee::mujoco::MuJoCo;
use ostler_sim::referee::worlds::MuJoCoWorlds;
use std::path::Path;
use std::sync::Arc;

/// Two of each, so that an activation that goes to another's place shows. That of `over` is
/// outside of its range: MuJoCo takes it as it is, and clamps it in the first step.
const ROBOT: &str = r#"<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <worldbody>
    <body><joint name="a" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="1" contype="0"/></body>
    <body><joint name="b" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="1" contype="0"/></body>
    <body><joint name="c" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="1" contype="0"/></body>
  </worldbody>
  <actuator>
    <motor name="plain" joint="a"/>
    <intvelocity name="whole" joint="a" kp="10" actrange="-2 2"/>
    <general name="lag" joint="b" dyntype="filter" dynprm="0.5" gainprm="10"/>
    <general name="over" joint="c" dyntype="integrator" gainprm="3" actlimited="true" actrange="-1 1"/>
  </actuator>
  <keyframe>
    <key name="home" qpos="1 0 0.5" act="1 0.8 -3"/>
    <key name="other" qpos="0.5 0.25 0" act="-0.5 -0.25 0.75"/>
    <key name="rest" qpos="0.125 0 0"/>
  </keyframe>
</mujoco>"#;
const STEPS: usize = 40;
/// More than a block of environments.
const N: usize = 70;

fn seen(more: &str) -> TaskConfig {
    task(&format!(
        "{more}\n[[action]]\nactuators = [\"*\"]\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n\
         [[reward]]\nname = \"r\"\nexpr = \"1\"\n"
    ))
}

/// The same task in the native engine, in blocks and stepped as a whole, and in MuJoCo's worlds.
fn engines(model: &Arc<Model>, task: &TaskConfig) -> Vec<(&'static str, BatchEnv)> {
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: N, decimation: 1, episode_length_s: 10.0 };
    let pool = || Arc::new(Pool::new(1).unwrap());
    let whole = Box::new(Whole(native::new(model, &sim, N, &pool()).unwrap()));
    let of = |worlds| BatchEnv::with_physics(Arc::clone(model), worlds, pool(), &env, task, 5, 0);
    let mut all = vec![
        ("native", BatchEnv::new(Arc::clone(model), &sim, &env, task, 5).unwrap()),
        ("native, as a whole", of(whole).unwrap()),
    ];
    if let Some(python) = referee_python() {
        let mujoco = MuJoCo::start(Some(&python)).unwrap();
        let worlds = Box::new(MuJoCoWorlds::new(mujoco, model, N, &sim).unwrap());
        all.push(("MuJoCo", of(worlds).unwrap()));
    }
    all
}

/// Activations of environment `e`; of MuJoCo's worlds Ostler does not know them.
fn activations(env: &BatchEnv, e: usize) -> Vec<f64> {
    let act = &env.physics().state().act;
    act.iter().skip(e).step_by(N).map(|x| f64::from(*x)).collect()
}

#[test]
fn whoever_begins_with_a_keyframe_has_its_activations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot.xml");
    std::fs::write(&path, ROBOT).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/referee/keyframes.py");
    let steps = STEPS.to_string();
    let args = [path.as_os_str(), steps.as_ref()];
    let Some(theirs) = answer(&script, &args) else { return };
    let key = |name: &str| [0, 1, 2].map(|i| numbers(&theirs[name][i]));
    assert_eq!(key("home")[0], [1.0, 0.8, -3.0], "MuJoCo clamps nothing where it resets");
    let model = Arc::new(mjcf::load(&path).unwrap());
    let reset = |target: &str| format!("[[reset]]\ntarget = '{target}'\n");
    for (what, text, keys) in [
        ("a default pose", "default_pose = \"keyframe(home)\"\n".to_string(), &["home"][..]),
        ("a reset", reset("keyframe(other)"), &["other"]),
        ("one of several", reset("keyframe([home, other, rest])"), &["home", "other", "rest"]),
        (
            "the last counts",
            format!("default_pose = \"keyframe(home)\"\n{}", reset("keyframe(rest)")),
            &["rest"],
        ),
        ("none", String::new(), &[]),
    ] {
        for (engine, mut env) in engines(&model, &seen(&text)) {
            let mut out = Out::new(env.spec(), 1);
            // Twice: an episode begins anew with the same.
            for _ in 0..2 {
                out.reset(&mut env, false);
                let begun: Vec<Vec<f64>> = (0..N).map(|e| activations(&env, e)).collect();
                let placed: Vec<f32> = out.policy.clone();
                for _ in 0..STEPS {
                    out.step(&mut env, &[0.0; 4 * N]);
                }
                let mut met = vec![false; keys.len()];
                for e in 0..N {
                    let here = format!("{what}, {engine}, environment {e}");
                    let known = |name: &&str| {
                        let at = model.keyframes.iter().find(|k| k.name == *name).unwrap();
                        at.qpos[0] == f64::from(placed[3 * e])
                    };
                    let Some(k) = keys.iter().position(known) else {
                        assert!(keys.is_empty(), "{here}: {:?}", &placed[3 * e..][..3]);
                        assert!(out.policy[3 * e..][..3].iter().all(|x| *x == 0.0), "{here}");
                        continue;
                    };
                    met[k] = true;
                    let [start, qpos, act] = key(keys[k]);
                    let ours: Vec<f64> =
                        out.policy[3 * e..][..3].iter().map(|x| f64::from(*x)).collect();
                    same(1e-5, &here, &ours, &qpos);
                    if engine != "MuJoCo" {
                        same(1e-7, &here, &begun[e], &start);
                        same(1e-5, &here, &activations(&env, e), &act);
                    }
                }
                assert!(met.iter().all(|m| *m), "{what}, {engine}: {met:?}");
            }
        }
    }
}
