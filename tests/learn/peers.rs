//! The terms of peers' tasks beside the peers' own functions, taken from their wheels: every
//! reward, observation and end of `examples/` on 10,000 states of our environments.
//!
//! `tests/referee/peers` calls the functions, with the numbers of the peers' own configurations.

use crate::common::root;
use crate::support::referee;
use ostler_sim::config::{RewardTerm, Specialize, TaskConfig};
use ostler_sim::env::ObsRow;
use ostler_sim::{BatchEnv, Groups, StepOut};
use ostler_trainer::config::{self, Loaded};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const ENVS: usize = 100;
const STEPS: usize = 100;
/// Largest error, in units of the number or of 1.
const TOLERANCE: f32 = 1e-5;

/// A task of `examples/`, and what the peers' functions are given of it.
struct Case {
    /// The file of `examples/`, and the robot if it is not beside it.
    example: &'static str,
    robot: Option<PathBuf>,
    /// The script in `tests/referee/peers` and the task there.
    script: &'static str,
    task: &'static str,
    /// Parts of the task that change.
    more: &'static str,
    /// Names and expressions of what is copied, beside positions, velocities and actions.
    copied: Vec<(String, String)>,
    /// Names of terms of the peer that the task has not.
    without: &'static [&'static str],
}

/// Everything that a run of an environment gave.
struct Run {
    /// Observations of policies and critics, `[T + 1][N][O]`.
    policy: Vec<f32>,
    critic: Vec<f32>,
    widths: [usize; 2],
    tables: Groups<Vec<ObsRow>>,
    /// `[T][N]`.
    reward: Vec<f32>,
    ended: Vec<bool>,
    step_dt: f64,
}

/// Random actions, the same in every run.
fn action(env: usize, step: usize, k: usize) -> f32 {
    let mut x = (env as u64) << 40 | (step as u64) << 16 | k as u64;
    // SplitMix64.
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

fn run(loaded: &Loaded, task: &TaskConfig) -> Run {
    let mut sim = loaded.config.sim.clone();
    sim.specialize = Specialize::Off;
    let mut env_config = loaded.config.env.clone();
    env_config.num_envs = ENVS;
    env_config.episode_length_s = 0.7;
    let model = std::sync::Arc::new(loaded.model().unwrap_or_else(|e| panic!("{e}")));
    let mut env =
        BatchEnv::new(model, &sim, &env_config, task, 7).unwrap_or_else(|e| panic!("{e}"));
    // The functions are compared, not the randomness around them.
    env.set_noise(false);
    env.set_events(false);
    let spec = env.spec().clone();
    let widths = [spec.obs.policy, spec.obs.critic.unwrap_or(0)];
    let [policy, critic] = widths.map(|w| w * ENVS);
    let mut out = Run {
        policy: vec![0.0; policy * (STEPS + 1)],
        critic: vec![0.0; critic * (STEPS + 1)],
        widths,
        tables: spec.obs_table.clone(),
        reward: vec![0.0; ENVS * STEPS],
        ended: Vec::new(),
        step_dt: spec.step_dt,
    };
    env.reset(
        true,
        &mut Groups { policy: &mut out.policy[..policy], critic: Some(&mut out.critic[..critic]) },
    );
    let [mut terminated, mut truncated, mut valid] = [(); 3].map(|()| vec![0.0; ENVS]);
    let mut slot = vec![0; ENVS];
    let width = spec.action.width();
    for step in 0..STEPS {
        let actions: Vec<f32> =
            (0..ENVS * width).map(|i| action(i / width, step, i % width)).collect();
        let rows = step + 1..step + 2;
        env.begin_rollout();
        env.step(
            &actions,
            &mut StepOut {
                obs: Groups {
                    policy: &mut out.policy[rows.start * policy..rows.end * policy],
                    critic: Some(&mut out.critic[rows.start * critic..rows.end * critic]),
                },
                reward: &mut out.reward[step * ENVS..(step + 1) * ENVS],
                terminated: &mut terminated,
                truncated: &mut truncated,
                valid: &mut valid,
                final_obs: Groups { policy: &mut [], critic: Some(&mut []) },
                final_slot: &mut slot,
            },
        );
        assert!(valid.iter().all(|v| *v == 1.0), "an environment broke");
        let ends = terminated.iter().zip(&truncated);
        out.ended.extend(ends.map(|(a, b)| *a + *b > 0.0));
    }
    out
}

/// The term's numbers in a row of `[T + 1][N][width]`.
fn term<'r>(table: &[ObsRow], rows: &'r [f32], width: usize, name: &str) -> Option<Vec<&'r [f32]>> {
    let row = table.iter().find(|r| r.name == name)?;
    let each = rows.chunks_exact(width);
    Some(each.map(|o| &o[row.index..row.index + row.len]).collect())
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn read(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let each = bytes.chunks_exact(4);
    each.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn load(case: &Case, folder: &Path) -> Loaded {
    let example = root().join("examples").join(case.example);
    let example = example.canonicalize().unwrap();
    let mut text = format!("extends = {example:?}\n[task]\n");
    if let Some(robot) = &case.robot {
        text += &format!("robot = {robot:?}\n");
    }
    text += case.more;
    let whole = ["qpos", "qvel", "action", "last_action"].map(|n| (n.to_owned(), n.to_owned()));
    for (name, expr) in whole.iter().chain(&case.copied) {
        text += &format!(
            "[[task.observation]]\nname = \"copied {name}\"\nexpr = {expr:?}\ngroup = \"critic\"\n"
        );
    }
    let path = folder.join("case.toml");
    std::fs::write(&path, text).unwrap();
    config::load(&path, &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// Asks the peer's functions about the states of a run: numbers by name.
fn ask(
    case: &Case,
    folder: &Path,
    python: &Path,
    peers: &Path,
    robot: &Path,
    run: &Run,
) -> BTreeMap<String, Vec<f32>> {
    let mut columns = BTreeMap::new();
    let mut width = 0;
    let mut parts = Vec::new();
    for row in &run.tables.critic.as_ref().unwrap()[..] {
        if let Some(name) = row.name.strip_prefix("copied ") {
            columns.insert(name.to_owned(), [width, row.len]);
            width += row.len;
            parts.push(row.index..row.index + row.len);
        }
    }
    let rows = run.critic.chunks_exact(run.widths[1]);
    let state = rows.flat_map(|row| parts.iter().flat_map(|p| row[p.clone()].iter().copied()));
    std::fs::write(folder.join("state"), floats(state)).unwrap();
    let ended = run.ended.iter().map(|e| f32::from(u8::from(*e)));
    std::fs::write(folder.join("ended"), floats(ended)).unwrap();
    let meta = serde_json::json!({
        "steps": STEPS, "envs": ENVS, "step_dt": run.step_dt, "columns": columns, "robot": robot,
    });
    std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
    let scripts = root().join("tests/referee/peers");
    let out = Command::new(python)
        .arg(scripts.join(case.script))
        .arg(case.task)
        .arg(folder)
        .arg(peers)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answers = std::fs::read(folder.join("answers.json")).unwrap();
    let answers: BTreeMap<String, usize> = serde_json::from_slice(&answers).unwrap();
    let each = answers.into_keys();
    each.map(|name| (name.clone(), read(&folder.join(name)))).collect()
}

/// Counts of a comparison.
#[derive(Default)]
struct Seen {
    compared: usize,
    nonzero: usize,
    worst: f32,
}

impl Seen {
    fn compare(&mut self, what: &str, at: usize, ours: f32, theirs: f32) {
        let off = (ours - theirs).abs() / theirs.abs().max(1.0);
        let (step, env) = (at / ENVS, at % ENVS);
        assert!(
            off <= TOLERANCE,
            "{what}, row {step} of environment {env}: {ours}, the peer's {theirs}"
        );
        self.compared += 1;
        self.nonzero += usize::from(theirs != 0.0);
        self.worst = self.worst.max(off);
    }

    /// `states`: how many there were.
    fn report(&self, what: &str, states: usize) {
        eprintln!(
            "{what:50} {:8} numbers, {:8} not 0, largest error {:.1e}",
            self.compared, self.nonzero, self.worst
        );
        assert!(self.compared >= states, "{what}: {} numbers", self.compared);
        assert!(self.nonzero > 0, "{what} is always 0");
    }
}

fn compare(case: &Case) {
    let Some(python) = referee::referee_python() else {
        return;
    };
    let Some(peers) = referee::peers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut case_robot = case.robot.clone();
    if let Some(robot) = &mut case_robot {
        *robot = peers.join(&*robot);
    }
    // Where a task's motions lie beside it.
    std::os::unix::fs::symlink(peers.join("holosoma"), folder.path().join("holosoma")).unwrap();
    let case = &Case { robot: case_robot, copied: case.copied.clone(), ..*case };
    let loaded = load(case, folder.path());
    let mut whole = loaded.config.task.clone();
    // Episodes end by their time alone: the conditions are judged as numbers, in every state.
    let ends = std::mem::take(&mut whole.termination);
    let rewards = std::mem::take(&mut whole.reward);
    let reward = |name: &str, expr: &str, weight: f64| RewardTerm {
        name: name.into(),
        expr: expr.into(),
        weight,
        agents: None,
    };
    let mut probes: Vec<RewardTerm> = Vec::new();
    probes.extend(rewards.iter().map(|r| reward(&format!("reward.{}", r.name), &r.expr, r.weight)));
    probes.extend(ends.iter().map(|e| reward(&format!("end.{}", e.name), &e.expr, 1.0)));
    let mut theirs = BTreeMap::new();
    for (k, probe) in probes.iter().enumerate() {
        let mut task = whole.clone();
        task.reward = vec![probe.clone()];
        let run = run(&loaded, &task);
        if k == 0 {
            theirs = ask(case, folder.path(), &python, &peers, &loaded.robot(), &run);
            observed(case, &run, &theirs);
        }
        let answers = theirs.get(&probe.name);
        let answers = answers.unwrap_or_else(|| panic!("the peer has no {}", probe.name));
        let end = probe.name.starts_with("end.");
        let mut seen = Seen::default();
        for (at, (&ours, &peer)) in run.reward.iter().zip(answers).enumerate() {
            // A new episode has begun where one ended: its state is another.
            if !run.ended[at] {
                let ours = if end { (ours / run.step_dt as f32).round() } else { ours };
                seen.compare(&probe.name, at, ours, peer);
            }
        }
        seen.report(&probe.name, ENVS * STEPS * 9 / 10);
    }
    let terms = theirs.keys().filter(|n| n.starts_with("reward.") || n.starts_with("end."));
    for name in terms {
        let have = probes.iter().any(|p| p.name == *name) || case.without.contains(&name.as_str());
        assert!(have, "the task has no {name}");
    }
}

fn observed(case: &Case, run: &Run, theirs: &BTreeMap<String, Vec<f32>>) {
    for (name, answers) in theirs {
        let Some((group, own)) = name.split_once('.') else {
            continue;
        };
        let (table, rows, width) = match group {
            "policy" => (&run.tables.policy, &run.policy, run.widths[0]),
            "critic" => (run.tables.critic.as_ref().unwrap(), &run.critic, run.widths[1]),
            _ => continue,
        };
        let Some(ours) = term(table, rows, width, own) else {
            assert!(case.without.contains(&name.as_str()), "the task has no {name}");
            continue;
        };
        let len = ours[0].len();
        assert_eq!(answers.len(), len * ours.len(), "{name}");
        let mut seen = Seen::default();
        for (at, (ours, peer)) in ours.iter().zip(answers.chunks_exact(len)).enumerate() {
            for (x, y) in ours.iter().zip(peer) {
                seen.compare(name, at, *x, *y);
            }
        }
        seen.report(name, ENVS * (STEPS + 1));
    }
}

fn copies(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(n, e)| ((*n).to_owned(), (*e).to_owned())).collect()
}

/// Starts anywhere, so that the robot falls and its joints are beyond their limits.
const TUMBLE: &str = r#"
[[task.reset]]
target = 'joint_pos("*_joint")'
value = { "*R_hip_joint" = 0.1, "*L_hip_joint" = -0.1, "*_thigh_joint" = 0.9, "*_calf_joint" = -1.8 }
uniform = [-1.0, 1.0]
[[task.reset]]
target = "pos(trunk)"
value = [0.0, 0.0, 0.4]
uniform = [[-0.5, 0.5], [-0.5, 0.5], [-0.1, 0.1]]
[[task.reset]]
target = "rpy(trunk)"
uniform = [[-1.0, 1.0], [-1.0, 1.0], [-3.14, 3.14]]
"#;

#[test]
fn mjlabs_velocity_task_has_mjlabs_terms() {
    compare(&Case {
        example: "go1_flat.toml",
        robot: Some("mjlab/asset_zoo/robots/unitree_go1/xmls/go1.xml".into()),
        script: "mjlab_terms.py",
        task: "velocity",
        more: TUMBLE,
        copied: copies(&[
            ("command.twist", "command.twist"),
            ("contact_time", "held"),
            ("air_time", "each(foot, air_time({foot}_foot_collision, floor))"),
            ("force", "load"),
        ]),
        without: &[],
    });
}

/// The humanoid anywhere, on its feet and on its back.
const STUMBLE: &str = r#"
[[task.reset]]
target = "joint_pos(*)"
value = { "*_hip_pitch_joint" = -0.312, "*_knee_joint" = 0.669, "*_ankle_pitch_joint" = -0.363, "*_elbow_joint" = 0.6, "*_shoulder_pitch_joint" = 0.2, "left_shoulder_roll_joint" = 0.2, "right_shoulder_roll_joint" = -0.2, "*_hip_roll_joint" = 0, "*_hip_yaw_joint" = 0, "*_ankle_roll_joint" = 0, "waist_*_joint" = 0, "*_shoulder_yaw_joint" = 0, "*_wrist_*_joint" = 0 }
uniform = [-0.7, 0.7]
[[task.reset]]
target = "pos(pelvis)"
value = [0, 0, 0.78]
[[task.reset]]
target = "rpy(pelvis)"
uniform = [[-0.6, 0.6], [-0.6, 0.6], [-3.14, 3.14]]
"#;

#[test]
fn mjlabs_velocity_task_of_the_humanoid_has_mjlabs_terms() {
    compare(&Case {
        example: "g1_flat.toml",
        robot: Some("mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml".into()),
        script: "mjlab_terms.py",
        task: "velocity_g1",
        more: STUMBLE,
        copied: copies(&[
            ("command.twist", "command.twist"),
            ("contact_time", "held"),
            ("air_time", "each(side, air_time(subtree({side}_ankle_roll_link), floor))"),
            ("force", "load"),
            ("self_steps", "substeps(contact_force(subtree(pelvis), subtree(pelvis)) > 10)"),
        ]),
        without: &[],
    });
}

/// Episodes begin far from the reference: these starts take the place of the file's.
const WANDER: &str = r#"
[[task.reset]]
target = "joint_pos(*)"
value = { "*_hip_pitch_joint" = -0.312, "*_knee_joint" = 0.669, "*_ankle_pitch_joint" = -0.363, "*_elbow_joint" = 0.6, "*_shoulder_pitch_joint" = 0.2, "left_shoulder_roll_joint" = 0.2, "right_shoulder_roll_joint" = -0.2, "*_hip_roll_joint" = 0, "*_hip_yaw_joint" = 0, "*_ankle_roll_joint" = 0, "waist_*_joint" = 0, "*_shoulder_yaw_joint" = 0, "*_wrist_*_joint" = 0 }
uniform = [-1.0, 1.0]
[[task.reset]]
target = "pos(pelvis)"
value = [0, 0, 0.9]
[[task.reset]]
target = "rpy(pelvis)"
uniform = [[-1.5, 1.5], [-1.5, 1.5], [-3.14, 3.14]]
"#;

#[test]
fn mjlabs_tracking_task_has_mjlabs_terms() {
    let all = |of: &str| format!("ahead(0.02, each(body, motion.{of}({{body}})))");
    let of_bodies = [
        ("pos", "body_pos_w"),
        ("quat", "body_quat_w"),
        ("lin_vel", "body_lin_vel_w"),
        ("ang_vel", "body_ang_vel_w"),
    ];
    let mut copied = copies(&[
        ("ref.joint_pos", "ahead(0.02, motion.joint_pos)"),
        ("ref.joint_vel", "ahead(0.02, motion.joint_vel)"),
        ("self_steps", "substeps(contact_force(subtree(pelvis), subtree(pelvis)) > 10)"),
    ]);
    copied.extend(of_bodies.map(|(ours, theirs)| (format!("ref.{theirs}"), all(ours))));
    compare(&Case {
        example: "g1_tracking.toml",
        robot: Some("mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml".into()),
        script: "mjlab_terms.py",
        task: "tracking",
        more: WANDER,
        copied,
        without: &[],
    });
}

/// The cube begins in the air, and beyond the table, too.
const SCATTER: &str = r#"
[[task.reset]]
target = "joint_pos(panda_joint*)"
value = [0.0, -0.569, 0.0, -2.810, 0.0, 3.037, 0.741]
[[task.reset]]
target = "joint_pos(panda_finger_joint*)"
value = 0.04
[[task.reset]]
target = "pos(cube)"
uniform = [[-0.1, 1.5], [-0.25, 0.25], [0, 0.4]]
"#;

#[test]
fn isaac_labs_lift_task_has_isaac_labs_terms() {
    compare(&Case {
        example: "lift_cube.toml",
        robot: None,
        script: "isaaclab_terms.py",
        task: "lift",
        more: SCATTER,
        copied: copies(&[("command.object_pose", "command.object_pose")]),
        without: &[],
    });
}
