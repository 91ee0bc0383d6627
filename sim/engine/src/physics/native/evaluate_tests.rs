//! What the broad phase leaves out has no contact.

#![allow(clippy::unwrap_used)]

use super::*;
use ostler_model::{JointKind, mjcf};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The same tables with tests that let every pair through.
fn everything(mut plan: RobotTables) -> RobotTables {
    plan.group_ball.fill(-1);
    plan.group_live = plan.group_adr[1..].to_vec();
    plan.pair_near.fill(1e30);
    plan.knot_near.fill(1e30);
    plan.cg_bound.fill(1e9);
    plan
}

/// Poses in which much touches: joints anywhere in their ranges and a share of these beyond,
/// free bodies near the origin, turned at random.
fn scattered(model: &Model, count: usize, beyond: f64, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut qpos = model.qpos0.clone();
        for joint in &model.joints {
            let at = joint.qpos_adr;
            match joint.kind {
                JointKind::Free | JointKind::Ball => {
                    let mut quat = at;
                    if joint.kind == JointKind::Free {
                        (0..3).for_each(|k| qpos[at + k] += 0.6 * (random() - 0.5));
                        quat += 3;
                    }
                    (0..4).for_each(|k| qpos[quat + k] += 1.5 * (random() - 0.5));
                    let norm = qpos[quat..quat + 4].iter().map(|x| x * x).sum::<f64>().sqrt();
                    (0..4).for_each(|k| qpos[quat + k] /= norm);
                }
                JointKind::Hinge | JointKind::Slide => {
                    let [low, high] = joint.range.unwrap_or([-1.0, 1.0]);
                    qpos[at] = low + (high - low) * ((1.0 + 2.0 * beyond) * random() - beyond);
                }
            }
        }
        rows.extend(qpos.iter().map(|x| f64::from(*x as f32)));
    }
    rows
}

/// Bodies of several shapes among static boxes that are a crowd.
fn arena() -> Model {
    let mut boxes = String::new();
    for k in 0..300 {
        let at = |by: usize| (k * by % 97) as f64 / 97.0 - 0.5;
        let _ = write!(
            boxes,
            "<geom type=\"box\" size=\"0.03 0.02 0.04\" pos=\"{} {} {}\" euler=\"{k} {} 0\"/>",
            at(31),
            at(57),
            at(11),
            7 * k
        );
    }
    let mesh = "0.1 0 0 0 0.1 0 0 0 0.1 -0.1 -0.1 -0.1 0.05 0.1 0.08";
    let body = |geom: &str| format!("<body><freejoint/><geom {geom}/></body>");
    let bodies = [
        "type=\"sphere\" size=\"0.05\"",
        "type=\"capsule\" size=\"0.03 0.1\"",
        "type=\"box\" size=\"0.1 0.05 0.05\"",
        "type=\"mesh\" mesh=\"m\"",
    ];
    let bodies: String = bodies.map(body).concat();
    let text = format!(
        "<mujoco><asset><mesh name=\"m\" vertex=\"{mesh}\"/></asset><worldbody>\
         <geom type=\"plane\" size=\"0 0 1\" pos=\"0 0 -0.4\"/>{boxes}{bodies}</worldbody></mujoco>"
    );
    mjcf::parse(Path::new("arena.xml"), text).unwrap()
}

#[test]
fn what_the_broad_phase_leaves_out_does_not_touch() {
    const STATES: usize = 96;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["configs/robots", "tests/referee/robots", "tests/referee/features"];
    let files = folders.map(|f| root.join(f));
    let files = files.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let (mut seen, mut grouped, mut kept_apart) = (0, 0, 0);
    let files = files.map(|f| f.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|e| e == "xml"));
    let robots = files.map(|file| (file.display().to_string(), mjcf::load(&file).unwrap()));
    for (file, model) in robots.chain([("arena".to_owned(), arena())]) {
        let options = EvalOptions { iterations: 12, ..EvalOptions::default() };
        let plan = lower(&model, &options.lower).unwrap();
        if plan.npair == 0 {
            continue;
        }
        assert_eq!(plan.nknot > 0, file == "arena", "{file}");
        grouped += usize::from(plan.group_ball.iter().any(|b| *b >= 0));
        let ends = &plan.group_adr[1..];
        kept_apart += usize::from(plan.group_live.iter().zip(ends).any(|(a, b)| a < b));
        // Far beyond, beyond by what pairs are kept apart for at most, and within.
        for beyond in [0.1, 0.02, 0.0] {
            let qpos = scattered(&model, STATES, beyond, 1);
            let states = States {
                qpos: &qpos,
                qvel: &vec![0.0; STATES * model.nv],
                ctrl: &vec![0.0; STATES * model.nu()],
                act: &vec![0.0; STATES * model.na],
                varied: &[],
            };
            let generic = InstructionSet::detect().generic().unwrap();
            let both = [plan.clone(), everything(plan.clone())].map(|plan| {
                let robot = robot::<f32>(generic, plan).unwrap();
                run(&robot, Ground::zeroed(), &options, &states, None).unwrap()
            });
            let bits = |e: &Evaluation| e.qacc.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(both[0].ncon, both[1].ncon, "{file}");
            assert_eq!(bits(&both[0]), bits(&both[1]), "{file}");
            seen += both[0].ncon.iter().sum::<u32>();
        }
    }
    // There were contacts, groups to leave out, and pairs that ranges keep apart.
    assert!(seen > 10_000, "{seen}");
    assert!(grouped > 5, "{grouped}");
    assert!(kept_apart > 1, "{kept_apart}");
}

/// Two arms side by side, each with a ball at its end: where `a` and `b` are 0, the balls
/// overlap.
fn arms(range_a: &str, range_b: &str, between: f64) -> Model {
    let text = format!(
        r#"<mujoco><compiler angle="radian"/><worldbody>
          <body><joint name="a" axis="0 0 1" {range_a}/><geom size="0.1" pos="1 0 0"/></body>
          <body pos="{between} 0 0"><joint name="b" axis="0 0 1" {range_b}/><geom size="0.1" pos="-1 0 0"/></body>
        </worldbody></mujoco>"#
    );
    mjcf::parse(Path::new("arms.xml"), text).unwrap()
}

#[test]
fn ranges_keep_pairs_apart_where_nothing_within_them_touches() {
    let apart = |range_a: &str, range_b: &str, between: f64| {
        let plan = lower(&arms(range_a, range_b, between), &LowerOptions::default()).unwrap();
        assert_eq!((plan.npair, plan.ngroup), (1, 1));
        plan.group_live[0] == 0
    };
    let (near, away) = ("range='-0.5 0.5'", "range='1 1.5'");
    // The balls' least distances: 1, 0.2, touching, and touching 0.1 beyond the range only.
    assert!(apart(near, near, 3.2));
    assert!(apart(near, near, 2.4));
    assert!(!apart(near, near, 2.19));
    assert!(!apart("range='0.1 0.5'", near, 2.1));
    // They touch where one of them is at 0.
    assert!(apart(away, near, 2.1));
    // Nothing keeps them.
    assert!(!apart("", near, 3.2));
    assert!(!apart("range='-4 4'", "range='-4 4'", 2.1));
}

#[test]
fn pairs_that_ranges_keep_apart_touch_beyond_them() {
    const STATES: usize = 32;
    let model = arms("range='1 1.5'", "range='-0.5 0.5'", 2.1);
    let options = EvalOptions::default();
    let plan = lower(&model, &options.lower).unwrap();
    assert_eq!((plan.group_live[0], plan.nwatch), (0, 2));
    assert_eq!(plan.watch_lo, [0.85, -0.65]);
    // One of all has its arm far beyond its range.
    let mut qpos = [1.2, 0.0].repeat(STATES);
    qpos[2 * 5] = 0.0;
    let states = States {
        qpos: &qpos,
        qvel: &vec![0.0; STATES * model.nv],
        ctrl: &[],
        act: &[],
        varied: &[],
    };
    let generic = InstructionSet::detect().generic().unwrap();
    let robot = robot::<f32>(generic, plan).unwrap();
    let found = run(&robot, Ground::zeroed(), &options, &states, None).unwrap();
    let expected: Vec<u32> = (0..STATES).map(|i| u32::from(i == 5)).collect();
    assert_eq!(found.ncon, expected);
}

/// A copy of the kernels in which the functions of each part (`generate::printed`) write down
/// that they were called: both precisions, as libraries.
fn marked_kernels(folder: &Path) -> [PathBuf; 2] {
    use crate::physics::native::generate::printed::{PARTS, bodies, plain};
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &target),
                false => drop(std::fs::copy(entry.path(), target).unwrap()),
            }
        }
    }
    let kernels = folder.join("kernels");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels"), &kernels);
    for (i, part) in PARTS.iter().enumerate() {
        let path = kernels.join(part.file);
        let mut text = plain(&std::fs::read_to_string(&path).unwrap());
        let found = bodies(&text);
        assert!(!found.is_empty(), "{}", part.file);
        for body in found.into_iter().rev() {
            text.insert_str(body.start, &format!(" ostler_ran[{i}] = 1; "));
        }
        std::fs::write(path, text).unwrap();
    }
    let head = folder.join("marks.h");
    let marks = format!(
        "extern \"C\" {{ inline int ostler_ran[{}];\n__attribute__((used)) inline int* ostler_marks() {{ return ostler_ran; }} }}\n",
        PARTS.len()
    );
    std::fs::write(&head, marks).unwrap();
    ["-DOSTLER_LANES=4", "-DOSTLER_DOUBLE"]
        .map(|kind| {
            let library = folder.join(format!("{kind}.so"));
            let mut compiler = std::process::Command::new("g++");
            compiler.args([
                "-std=c++17",
                "-O0",
                "-fPIC",
                "-shared",
                "-w",
                "-DOSTLER_NAME=marked",
                kind,
            ]);
            compiler
                .arg("-include")
                .arg(&head)
                .arg(kernels.join("host.cpp"))
                .arg("-o")
                .arg(&library);
            (library, compiler.stderr(std::process::Stdio::piped()).spawn().unwrap())
        })
        .map(|(library, compiler)| {
            let out = compiler.wait_with_output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            library
        })
}

/// A part that is left out of a robot's hash does not run for it: an edit of the part proves
/// nothing anew of this robot.
#[test]
fn parts_run_only_for_the_robots_that_are_said_to_have_them() {
    use crate::kernels::OstlerKernel;
    use crate::physics::native::generate::printed::PARTS;
    use crate::physics::native::specialize::Library;
    use crate::test_support::need::{Need, runs};
    const STATES: usize = 16;
    let Some(()) = Need::Compiler.or_skip(runs("g++")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [single, double] = marked_kernels(folder.path()).map(|path| {
        // SAFETY: the kernels of this checkout, compiled here.
        let library = unsafe { Library::open(&path) }.unwrap();
        // SAFETY: `host.cpp` gives this name this signature.
        let kernel = unsafe {
            library
                .function::<unsafe extern "C" fn() -> *const OstlerKernel>("ostler_kernel_marked")
        };
        // SAFETY: as above; the constant lives as long as the library, which is never closed.
        let kernel: &'static OstlerKernel = unsafe { &*(kernel.unwrap().get())() };
        // SAFETY: the header above gives this name this signature.
        let marks =
            unsafe { library.function::<unsafe extern "C" fn() -> *mut i32>("ostler_marks") };
        // SAFETY: as above.
        let marks = unsafe { (marks.unwrap().get())() };
        std::mem::forget(library);
        // SAFETY: an array of so many integers that this thread alone uses.
        (kernel, unsafe { std::slice::from_raw_parts_mut(marks, PARTS.len()) })
    });
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["configs/robots", "tests/referee/robots", "tests/referee/features"];
    let files = folders.map(|f| root.join(f));
    let files = files.iter().flat_map(|f| std::fs::read_dir(f).unwrap());
    let (mut ran, mut left_out) = ([false; PARTS.len()], [0; PARTS.len()]);
    for file in files.map(|f| f.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "xml") {
            continue;
        }
        let model = mjcf::load(&file).unwrap();
        let options = EvalOptions { iterations: 8, ..EvalOptions::default() };
        let plan = lower(&model, &options.lower).unwrap();
        let qpos = scattered(&model, STATES, 0.1, 1);
        let states = States {
            qpos: &qpos,
            qvel: &vec![0.3; STATES * model.nv],
            ctrl: &vec![0.2; STATES * model.nu()],
            act: &vec![0.1; STATES * model.na],
            varied: &[],
        };
        single.1.fill(0);
        double.1.fill(0);
        let robots = (robot::<f32>(single.0, plan.clone()), robot::<f64>(double.0, plan.clone()));
        run(&robots.0.unwrap(), Ground::zeroed(), &options, &states, None).unwrap();
        run(&robots.1.unwrap(), Ground::zeroed(), &options, &states, None).unwrap();
        for (i, part) in PARTS.iter().enumerate() {
            let called = single.1[i] + double.1[i] > 0;
            assert!(!called || (part.runs)(&plan), "{} runs for {file:?}", part.file);
            ran[i] |= called;
            left_out[i] += usize::from(!(part.runs)(&plan));
        }
    }
    for (i, part) in PARTS.iter().enumerate() {
        assert!(left_out[i] > 10, "{} counts for nearly all", part.file);
        // Of tasks, whose models these are not: the calls ask for the same numbers.
        let of_tasks = ["motor.cuh", "contact_sensor.cuh", "derive.cuh"].contains(&part.file);
        assert!(ran[i] || of_tasks, "{} was never called", part.file);
    }
}
