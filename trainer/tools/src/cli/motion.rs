//! `ostler motion`: what a file of a motion asks of a robot, and a repaired copy of it.

use super::shipped;
use clap::{Args, ValueEnum};
use ostler_learn::config;
use ostler_run::log::{errln, outln};
use ostler_run::run::RunError;
use ostler_sim::files;
use ostler_sim::model::mjcf::Reading;
use ostler_sim::model::motion::{self, Examination, Motion, MotionFormat, QuatOrder};
use ostler_sim::model::{JointKind, Model};
use ostler_sim::task;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a file that is read.
const MOST: u64 = 1 << 30;
/// Joints and shapes that are listed.
const LISTED: usize = 12;

/// Flags of `ostler motion`.
#[derive(Debug, Args)]
pub(crate) struct MotionArgs {
    /// A motion: .npz as mjlab and holosoma write it, or .csv
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The robot that moves: an MJCF or URDF file, or a configuration (.toml)
    #[arg(long, value_name = "ROBOT")]
    robot: PathBuf,
    /// Folder that holds the robot's files, if not its own
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Frames per second, for files that do not say it
    #[arg(long, value_name = "N")]
    fps: Option<f64>,
    /// Order of a quaternion's numbers; without it wxyz in .npz and xyzw in .csv
    #[arg(long, value_enum, value_name = "ORDER")]
    quat: Option<QuatArg>,
    /// Names of the joints in the order of the columns, for files without names: hip,knee,...
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    joints: Vec<String>,
    /// Write a repaired copy: within the joints' limits, on the floor, with new velocities
    #[arg(long, value_name = "FIXED.npz")]
    out: Option<PathBuf>,
    /// Time between the copy's frames (s); the file's without it
    #[arg(long, value_name = "SECONDS", requires = "out")]
    step: Option<f64>,
}

/// `--quat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum QuatArg {
    /// w first
    Wxyz,
    /// w last
    Xyzw,
}

/// Reads, looks and prints; writes the copy.
pub(crate) fn run(args: &MotionArgs) -> Result<i32, RunError> {
    if let Some(step) = args.step.filter(|s| !(1e-4..=1.0).contains(s)) {
        return Err(RunError::Usage(format!(
            "--step {step}: give 0.0001 to 1 seconds, as a rule the control step: --step 0.02"
        )));
    }
    let model = robot(args)?;
    let unread =
        |source| RunError::File { action: "read", path: args.file.clone(), source, hint: "" };
    let bytes = files::read(&args.file, MOST).map_err(unread)?;
    let format = MotionFormat {
        fps: args.fps,
        quat: args.quat.map(|quat| match quat {
            QuatArg::Wxyz => QuatOrder::Wxyz,
            QuatArg::Xyzw => QuatOrder::Xyzw,
        }),
        joints: args.joints.clone(),
    };
    let motion = motion::read(&model, &args.file.to_string_lossy(), &bytes, &format)?;
    drop(bytes);
    outln!(
        "{}: {:.2} s, {} frames, {:.6} per second; {}: {} joints, {} bodies",
        args.file.display(),
        motion.duration(),
        motion.frames,
        1.0 / motion.step,
        model.name,
        model.joints.iter().filter(|j| j.is_scalar()).count(),
        model.bodies.len().saturating_sub(1)
    );
    print(&model, &motion.examined(&model), motion.frames);
    for note in &motion.notes {
        outln!("note: {note}");
    }
    if let Some(out) = &args.out {
        write(args, &model, &motion, out)?;
    }
    for line in model.ignored_lines() {
        errln!("note: without effect: {line}");
    }
    Ok(0)
}

/// The robot of a file or of a configuration.
fn robot(args: &MotionArgs) -> Result<Model, RunError> {
    let named = |end: &str| args.robot.extension().is_some_and(|e| e.eq_ignore_ascii_case(end));
    // A name without an ending is that of a configuration at hand.
    if named("toml") || args.robot.extension().is_none() {
        let path = shipped::find(&args.robot.to_string_lossy());
        let loaded = config::load(&path, &[])?;
        if loaded.foreign.is_some() {
            return Err(RunError::Usage(format!(
                "--robot {}: its environments are not of Ostler, so it has no robot; give an MJCF or URDF file",
                args.robot.display()
            )));
        }
        // With the task's motors, whose speeds are compared.
        let model = task::robot(&Arc::new(loaded.model()?), &loaded.config.task);
        let model = model.map_err(|e| RunError::from(loaded.places.explain(&e)))?;
        return Ok(Arc::unwrap_or_clone(model));
    }
    let reading = Reading { within: args.folder.as_deref(), ..Reading::default() };
    Ok(reading.read(&args.robot)?.0)
}

fn print(model: &Model, found: &Examination, frames: usize) {
    let unit = |j: usize| match model.joints[j].kind {
        JointKind::Slide => "m",
        _ => "rad",
    };
    match found.beyond.as_slice() {
        [] => outln!("limits: no joint is beyond its own"),
        beyond => {
            outln!("limits: {} joints are beyond their own", beyond.len());
            for b in beyond.iter().take(LISTED) {
                outln!(
                    "  {}: by {:.3} {} at frame {}, beyond in {} of {frames} frames",
                    model.joints[b.joint].name,
                    b.most,
                    unit(b.joint),
                    b.frame,
                    b.frames
                );
            }
            more(beyond.len());
        }
    }
    if let Some([(speed, t), (turning, u)]) = found.root {
        outln!("root: up to {speed:.2} m/s (frame {t}) and {turning:.2} rad/s (frame {u})");
    }
    let limited = found.speeds.iter().filter(|s| s.limit.is_some());
    let fast: Vec<_> = limited.filter(|s| s.limit.is_some_and(|l| s.most > l)).collect();
    for s in fast.iter().take(LISTED) {
        outln!(
            "speeds: {} reaches {:.2} {}/s (frame {}), beyond its motor's {:.2}",
            model.joints[s.joint].name,
            s.most,
            unit(s.joint),
            s.frame,
            s.limit.unwrap_or_default()
        );
    }
    let fastest = found.speeds.iter().take(3).map(|s| {
        let name = &model.joints[s.joint].name;
        format!("{name} {:.2} {}/s (frame {})", s.most, unit(s.joint), s.frame)
    });
    outln!("speeds: the fastest are {}", fastest.collect::<Vec<_>>().join(", "));
    let (low, frame) = found.lowest;
    if found.root.is_some() {
        outln!("floor: the lowest point of the clip is at z = {low:.4} m (frame {frame})");
    }
    for s in found.floor.iter().take(LISTED).filter(|_| found.root.is_some()) {
        let geom = &model.geoms[s.geom];
        outln!(
            "  {} of {}: down to {:.4} m (frame {}); near the floor in {} frames, sliding there at {:.3} m/s in the mean and {:.3} at the most (frame {})",
            geom.name,
            model.bodies[geom.body].name,
            s.lowest,
            s.frame,
            s.touching,
            s.sliding[0],
            s.sliding[1],
            s.fastest
        );
    }
    if found.root.is_some() {
        more(found.floor.len());
    }
}

fn more(count: usize) {
    if count > LISTED {
        outln!("  and {} more", count - LISTED);
    }
}

/// Writes a repaired copy, line by line what was changed.
fn write(args: &MotionArgs, model: &Model, motion: &Motion, out: &Path) -> Result<(), RunError> {
    let (fixed, lines) = motion.mended(model, args.step)?;
    if fixed.frames < 2 {
        return Err(RunError::Usage(format!(
            "--step: the motion has {:.3} s, of which a copy would have fewer than 2 frames",
            motion.duration()
        )));
    }
    for line in lines {
        outln!("changed: {line}");
    }
    fixed.write(model, out)?;
    outln!("{}: {} frames, {:.6} per second", out.display(), fixed.frames, 1.0 / fixed.step);
    Ok(())
}
