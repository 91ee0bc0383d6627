//! `[[task.reference]]`: what is read of a motion, where episodes begin in it, and how they end.

use crate::support::referee;
use ostler_sim::Groups;
use ostler_sim::config::file::Simulation;
use ostler_sim::config::{Auto, EnvConfig, MotionFile, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, Demonstrations, EnvError, StepOut};
use ostler_sim::model::{Model, mjcf};
use ostler_sim::task::Task;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Frames of the file, 25 a second: every second control step of 0.02 s.
const FRAMES: usize = 51;
const CONTROL: f64 = 0.02;

fn robot() -> Arc<Model> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    Arc::new(mjcf::load(&path).unwrap())
}

/// Where joint `j` is at a time (rad). A straight line between frames, so that it is known there.
fn angle(j: usize, t: f64) -> f64 {
    0.1 + 0.01 * j as f64 + 0.05 * t
}

/// The trunk goes along x and turns about z.
fn walk(joints: usize) -> Vec<u8> {
    let mut text = String::new();
    for k in 0..FRAMES {
        let t = k as f64 / 25.0;
        // Either sign is the same orientation.
        let sign = if k % 3 == 0 { -1.0 } else { 1.0 };
        let (s, c) = (0.5 * 0.3 * t).sin_cos();
        let (s, c) = (sign * s, sign * c);
        write!(text, "{},0.25,0.4,0,0,{s},{c}", 0.5 * t).unwrap();
        (0..joints).for_each(|j| write!(text, ",{}", angle(j, t)).unwrap());
        text.push('\n');
    }
    text.into_bytes()
}

const TASK: &str = r#"
[[action]]
actuators = ["*"]
[[observation]]
name = "seen"
expr = "[motion.joint_pos, ahead(0.1, motion.joint_pos), ahead(0.01, motion.joint_pos), motion.pos(trunk), motion.quat(trunk), motion.lin_vel(trunk), motion.ang_vel(trunk), ahead(0.01, motion.quat(trunk))]"
[[observation]]
name = "is"
expr = "[joint_pos(), pos(trunk), quat(trunk), lin_vel(trunk)]"
[[reward]]
name = "near"
expr = "exp_kernel(motion.joint_pos - joint_pos(), 0.5)"
[[reset]]
target = "joint_pos(*)"
expr = "motion.joint_pos"
[[reset]]
target = "pos(trunk)"
expr = "motion.pos(trunk)"
[[reset]]
target = "quat(trunk)"
expr = "motion.quat(trunk)"
[[reset]]
target = "lin_vel(trunk)"
expr = "motion.lin_vel(trunk)"
"#;

struct Batch {
    env: BatchEnv,
    obs: Vec<f32>,
    reward: Vec<f32>,
    flags: [Vec<f32>; 3],
    slots: Vec<i32>,
    joints: usize,
    n: usize,
}

impl Batch {
    fn made(n: usize, more: &str, length: f64, threads: usize) -> Result<Self, EnvError> {
        let model = robot();
        let joints = model.nq - 7;
        let mut task: TaskConfig = toml::from_str(&format!("{TASK}{more}")).unwrap();
        let file = MotionFile::new("walk.csv", walk(joints));
        task.motion_files = vec![vec![file]; task.reference.len()];
        let sim = SimConfig {
            specialize: Specialize::Off,
            threads: Auto::N(threads),
            ..SimConfig::default()
        };
        let decimation = (CONTROL / model.options.timestep).round() as usize;
        let env = EnvConfig { num_envs: n, decimation, episode_length_s: length };
        let env = BatchEnv::new(model, &sim, &env, &task, 5)?;
        let width = env.spec().obs.policy;
        let mut made = Self {
            obs: vec![0.0; n * width],
            reward: vec![0.0; n],
            flags: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
            slots: vec![0; n],
            env,
            joints,
            n,
        };
        made.env.reset(false, &mut Groups { policy: &mut made.obs, critic: None });
        Ok(made)
    }

    fn new(n: usize, more: &str) -> Self {
        Self::made(n, more, 60.0, 1).unwrap_or_else(|e| panic!("{e}"))
    }

    fn step(&mut self) {
        let actions = vec![0.0; self.n * self.env.compiled().actions.outputs()];
        let width = self.obs.len() / self.n;
        let mut last = vec![0.0; self.n * width];
        let [terminated, truncated, valid] = &mut self.flags;
        self.env.step(
            &actions,
            &mut StepOut {
                obs: Groups { policy: &mut self.obs, critic: None },
                reward: &mut self.reward,
                terminated,
                truncated,
                valid,
                final_obs: Groups { policy: &mut last, critic: None },
                final_slot: &mut self.slots,
            },
        );
    }

    fn row(&self, e: usize) -> &[f32] {
        let width = self.obs.len() / self.n;
        &self.obs[e * width..][..width]
    }

    /// The time of the frame that environment `e` is at, by its first joint (s).
    fn time(&self, e: usize) -> f64 {
        (f64::from(self.row(e)[0]) - angle(0, 0.0)) / 0.05
    }
}

const FROM_BEGIN: &str = "[[reference]]\nfiles = [\"walk.csv\"]\nfps = 25\nstart = \"begin\"\n";

#[test]
fn a_motion_is_read_at_its_frames_between_them_and_ahead() {
    let mut batch = Batch::new(3, FROM_BEGIN);
    for k in 0..60 {
        let (t, joints) = (f64::from(k) * CONTROL, batch.joints);
        for e in 0..3 {
            let row = batch.row(e);
            let near = |at: usize, x: f64, what: &str| {
                let off = (f64::from(row[at]) - x).abs();
                assert!(off < 1e-5, "{what} in step {k}: {} and not {x}", row[at]);
            };
            for j in 0..joints {
                near(j, angle(j, t), "a joint");
                near(joints + j, angle(j, t + 0.1), "a joint in 0.1 s");
                near(2 * joints + j, angle(j, t + 0.01), "a joint between two frames");
            }
            let at = 3 * joints;
            near(at, 0.5 * t, "x");
            near(at + 2, 0.4, "z");
            let turn = |at: usize, t: f64, what: &str| {
                let dot = f64::from(row[at]) * (0.15 * t).cos()
                    + f64::from(row[at + 3]) * (0.15 * t).sin();
                assert!((dot.abs() - 1.0).abs() < 1e-5, "{what} in step {k}: {dot}");
            };
            turn(at + 3, t, "the quaternion");
            turn(at + 13, t + 0.01, "the quaternion between two frames");
            near(at + 7, 0.5, "the velocity along x");
            let off = (f64::from(row[at + 12]) - 0.3).abs();
            assert!(off < 1e-3, "the angular velocity about z: {}", row[at + 12]);
        }
        batch.step();
    }
}

#[test]
fn an_episode_begins_in_a_frame_and_its_time_is_out_where_the_clip_ends() {
    let mut batch = Batch::new(256, &FROM_BEGIN.replace("begin", "uniform"));
    let (joints, n) = (batch.joints, batch.n);
    for e in 0..n {
        let (row, is) = (batch.row(e), 3 * joints + 17);
        let seen = row[..joints].iter().chain(&row[3 * joints..3 * joints + 10]);
        for (a, b) in seen.zip(&row[is..]) {
            assert!((a - b).abs() < 1e-5, "{row:?}");
        }
    }
    let (first, last) = (0..n).fold((9.0_f64, 0.0_f64), |(low, high), e| {
        (low.min(batch.time(e)), high.max(batch.time(e)))
    });
    assert!(first < 0.1 && last > 1.8 && last < 1.981, "{first} {last}");
    let duration = (FRAMES - 1) as f64 / 25.0;
    let mut ended = 0;
    for _ in 0..40 {
        let before: Vec<f64> = (0..n).map(|e| batch.time(e)).collect();
        batch.step();
        for (e, time) in before.iter().enumerate() {
            let over = time + 1.5 * CONTROL > duration;
            assert_eq!(batch.flags[1][e] != 0.0, over, "{time}");
            ended += usize::from(over);
            if !over {
                assert!((batch.time(e) - time - CONTROL).abs() < 1e-4);
            }
        }
    }
    assert!(ended > 50, "{ended}");
}

#[test]
fn a_clip_that_goes_round_goes_on_from_where_it_has_led() {
    let mut batch = Batch::new(2, &format!("{FROM_BEGIN}loop = true\n"));
    let duration = (FRAMES - 1) as f64 / 25.0;
    let mut last = [0.0, 0.25];
    // The picture of the reference stands beside it.
    let aside = |batch: &Batch| -> [f32; 3] {
        let ghost = batch.env.reference_poses(0).nth(1).unwrap();
        let row = &batch.row(0)[3 * batch.joints..];
        let same = (0..4).map(|i| ghost[3 + i] * row[3 + i]).sum::<f32>().abs();
        assert!(same > 1.0 - 1e-5, "{ghost:?} {row:?}");
        std::array::from_fn(|i| ghost[i] - row[i])
    };
    let first = aside(&batch);
    for k in 1..=250 {
        batch.step();
        let off = aside(&batch);
        assert!((0..3).all(|i| (off[i] - first[i]).abs() < 1e-4), "{off:?} {first:?}");
        let t = f64::from(k) * CONTROL;
        let (row, joints) = (batch.row(0), batch.joints);
        // 0.5 m/s and 0.3 rad/s, also where a round ends.
        let [x, y, _, w, _, _, z]: [f32; 7] = std::array::from_fn(|i| row[3 * joints + i]);
        let far = f64::from(x - last[0]).hypot(f64::from(y - last[1]));
        assert!((far - 0.5 * CONTROL).abs() < 1e-5, "{far} at {t}");
        let (s, c) = (0.15 * t).sin_cos();
        assert!((f64::from(w) * c + f64::from(z) * s).abs() > 1.0 - 1e-6, "{w} {z} at {t}");
        last = [x, y];
        // A frame may be the last of a round or the first of the next.
        let off = (batch.time(0) - t.rem_euclid(duration)).abs();
        assert!(off < 1e-4 || (off - duration).abs() < 1e-4, "{t}");
        assert_eq!(batch.flags[1], [0.0; 2]);
    }
}

/// numpy moves the frames of the first round on by what leads from the file's first row to its
/// last one, once for each round.
const ROUNDS: &str = r#"
import json, sys
import numpy as np
given = json.load(sys.stdin)
def matrix(w, x, y, z):
    v, k = np.array([x, y, z]), np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) * (w * w - v @ v) + 2 * np.outer(v, v) + 2 * w * k
first, last = (np.array(row) for row in given["ends"])
of = lambda row: matrix(row[6], *row[3:6])
turn = of(last) @ of(first).T
assert abs(turn[2, 2] - 1) < 1e-9
shift = (last[:3] - turn @ first[:3]) * [1, 1, 0]
rows = []
for k in range(given["count"]):
    row = np.array(given["first"][k % len(given["first"])])
    pos, mat, vel, omega = row[:3], matrix(*row[3:7]), row[7:10], row[10:13]
    for _ in range(k // len(given["first"])):
        pos, mat, vel, omega = turn @ pos + shift, turn @ mat, turn @ vel, turn @ omega
    rows.append(np.concatenate([pos, mat.ravel(), vel, omega]).tolist())
print(json.dumps(rows))
"#;

/// The rotation of a quaternion, in rows.
fn rotation(quat: [f64; 4]) -> Vec<f64> {
    ostler_sim::model::rotation::matrix(quat).concat()
}

#[test]
fn rounds_are_those_that_numpy_makes_of_the_first() {
    let Some(python) = referee::referee_python() else { return };
    let mut batch = Batch::new(1, &format!("{FROM_BEGIN}loop = true\n"));
    let (round, count) = (2 * (FRAMES - 1), 7 * 2 * (FRAMES - 1) + 3);
    let mut seen: Vec<Vec<f64>> = Vec::new();
    for _ in 0..count {
        let row = &batch.row(0)[3 * batch.joints..][..13];
        seen.push(row.iter().map(|x| f64::from(*x)).collect());
        batch.step();
    }
    let text = String::from_utf8(walk(batch.joints)).unwrap();
    let end = |line: Option<&str>| -> Vec<f64> {
        line.unwrap().split(',').take(7).map(|x| x.parse().unwrap()).collect()
    };
    let ends = [end(text.lines().next()), end(text.lines().last())];
    let given = serde_json::json!({ "ends": ends, "count": count, "first": &seen[..round] });
    let mut asked = Command::new(python)
        .args(["-c", ROUNDS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    asked.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let answer = asked.wait_with_output().unwrap();
    assert!(answer.status.success());
    let rows: Vec<Vec<f64>> = serde_json::from_slice(&answer.stdout).unwrap();
    for (k, (seen, want)) in seen.iter().zip(&rows).enumerate() {
        let mat = rotation(std::array::from_fn(|i| seen[3 + i]));
        let seen = seen[..3].iter().chain(&mat).chain(&seen[7..13]);
        for (a, b) in seen.zip(want) {
            assert!((a - b).abs() < 2e-5, "frame {k}: {a}, not {b}");
        }
    }
    assert_eq!(rows.len(), count);
}

/// The trunk sinks, one joint turns: the check tells. A motion that closes tells nothing.
#[test]
fn a_clip_that_does_not_close_is_told() {
    let lines = |more: &str| {
        let batch = Batch::new(1, &format!("{FROM_BEGIN}{more}"));
        batch.env.compiled().reference.lines()
    };
    let told = lines("loop = true\n");
    let seam = "it goes round, but its last frame is not its first: up to 0.10 rad of joint";
    assert!(told[1].contains(seam), "{told:?}");
    assert!(lines("").iter().all(|line| !line.contains("goes round")));
}

#[test]
fn adaptive_starts_are_where_others_failed() {
    let more = FROM_BEGIN.replace("begin", "adaptive")
        + "[[termination]]\nname = \"hard\"\nexpr = \"motion.joint_pos[0] > 0.1 + 0.05 * 1.2 and \
           motion.joint_pos[0] < 0.1 + 0.05 * 1.3\"\n";
    let share = |more: &str| {
        let mut batch = Batch::new(512, more);
        let (mut hard, mut begun) = (0, 0);
        for k in 0..300 {
            if k % 24 == 0 {
                batch.env.begin_rollout();
            }
            let before: Vec<f64> = (0..batch.n).map(|e| batch.time(e)).collect();
            batch.step();
            for (e, time) in before.iter().enumerate() {
                // A step of the same episode leads one frame on.
                if k >= 100 && (batch.time(e) - time - CONTROL).abs() > 1e-3 {
                    begun += 1;
                    hard += usize::from(batch.time(e) >= 0.999);
                }
            }
        }
        assert!(begun > 1000, "{begun}");
        hard as f64 / begun as f64
    };
    // The second from 1 s on has all failures: a tenth of the starts is anywhere, half of it there.
    let (adaptive, uniform) = (share(&more), share(&more.replace("adaptive", "uniform")));
    assert!(adaptive > 0.9 && (0.4..0.6).contains(&uniform), "{adaptive} {uniform}");
}

#[test]
fn threads_and_snapshots_change_no_bit_of_it() {
    let more = FROM_BEGIN.replace("begin", "adaptive")
        + "[[termination]]\nname = \"low\"\nexpr = \"pos(trunk).z < 0.3\"\n";
    let run = |threads: usize, cut: bool| {
        let mut batch = Batch::made(300, &more, 60.0, threads).unwrap();
        for k in 0..120 {
            if k % 24 == 0 {
                batch.env.begin_rollout();
            }
            if cut && k == 60 {
                let mut bytes = Vec::new();
                batch.env.capture(&mut bytes).unwrap();
                batch = Batch::made(300, &more, 60.0, threads).unwrap();
                batch.env.restore(&bytes).unwrap();
            }
            batch.step();
        }
        batch.obs.iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
    };
    let one = run(1, false);
    assert!(run(3, false) == one);
    assert!(run(2, true) == one);
}

#[test]
fn mistakes_are_refused_with_the_place() {
    let refused = |more: &str| match Batch::made(1, more, 60.0, 1) {
        Err(e) => format!("{e:?}"),
        Ok(_) => panic!("{more} was taken"),
    };
    let none = refused("");
    assert!(none.contains("motion.joint_pos") && none.contains("[[task.reference]]"), "{none}");
    let other = format!("{FROM_BEGIN}{}", FROM_BEGIN.replace("begin", "uniform"));
    assert!(refused(&other).contains("task.reference[1].start"));
    assert!(refused(&format!("{FROM_BEGIN}weight = 0")).contains("task.reference[0].weight"));
    let with = |expr: &str| {
        refused(&format!("{FROM_BEGIN}[[observation]]\nname = \"x\"\nexpr = \"{expr}\"\n"))
    };
    assert!(with("motion.joint_acc").contains("has no `joint_acc`"));
    assert!(with("motion.pos").contains("needs its arguments"));
    assert!(with("motion").contains("what of the reference motion"));
    assert!(with("ahead(-0.1, motion.joint_pos)").contains("0 or more"));
    assert!(with("ahead(time, motion.joint_pos)").contains("0 or more"));
    assert!(with("motion.pos(trunc)").contains("trunk"));
    let few = FROM_BEGIN.replace("fps = 25\n", "");
    assert!(refused(&few).contains("fps"));
}

#[test]
fn a_file_is_read_once_however_often_a_task_is_compiled() {
    let model = robot();
    let mut task: TaskConfig = toml::from_str(&format!("{TASK}{FROM_BEGIN}")).unwrap();
    task.motion_files = vec![vec![MotionFile::new("walk.csv", walk(model.nq - 7))]];
    let read = |model: &Arc<Model>, task: &TaskConfig, step: f64| {
        let task = Task::compile(model, task, step).unwrap();
        Arc::clone(&task.reference.clips[0].motion)
    };
    let first = read(&model, &task, CONTROL);
    assert!(Arc::ptr_eq(&first, &read(&model, &task.clone(), CONTROL)));
    // Of another step, and of another robot, it is another motion.
    assert!(read(&model, &task, 2.0 * CONTROL).frames < first.frames);
    let mut longer = Model::clone(&model);
    longer.bodies.last_mut().unwrap().pos[2] -= 0.01;
    let other = read(&Arc::new(longer), &task, CONTROL);
    assert!(!Arc::ptr_eq(&first, &other) && first != other);
}

#[test]
fn demonstrations_are_what_a_policy_would_see_in_the_frames() {
    let model = robot();
    let joints = model.nq - 7;
    let mut task: TaskConfig = toml::from_str(&format!("{TASK}{FROM_BEGIN}")).unwrap();
    let file = MotionFile::new("walk.csv", walk(joints));
    task.motion_files = vec![vec![file]];
    let mut config = Simulation { task, ..Simulation::default() };
    config.sim.threads = Auto::N(1);
    let all = Demonstrations::of(&config, model).unwrap();
    // 2 s of control steps of 0.02 s, with the last one.
    assert_eq!((all.clips.clone(), all.frames()), (vec![101], 101));
    for (k, row) in all.rows.chunks_exact(all.width).enumerate() {
        let (t, is) = (k as f64 * CONTROL, &row[3 * joints + 17..]);
        let wanted = (0..joints).map(|j| angle(j, t)).chain([0.5 * t, 0.25, 0.4]);
        for (at, x) in wanted.enumerate() {
            assert!((f64::from(is[at]) - x).abs() < 1e-5, "{at} of frame {k}: {} {x}", is[at]);
        }
        assert!((is[joints + 7] - 0.5).abs() < 1e-4, "{is:?}");
    }
    config.task.reference.clear();
    config.task.observation.truncate(0);
    config.task.reward.clear();
    config.task.reset.clear();
    let more: TaskConfig = toml::from_str(
        "[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"one\"\nexpr = \"1\"\n",
    )
    .unwrap();
    (config.task.observation, config.task.reward) = (more.observation, more.reward);
    let refused = Demonstrations::of(&config, robot()).unwrap_err().to_string();
    assert!(refused.contains("amp.observations"), "{refused}");
}
