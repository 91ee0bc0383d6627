//! Joints beyond their limits, joints in degrees, and jumps from one frame to the next.

use super::joint;
use crate::JointKind;
use crate::motion::differences::{angle, length};
use crate::motion::error::MotionError;
use crate::motion::given::{Given, Robot};

/// Beyond its limits by more (rad), a hinge's position is no motion of this robot.
const FAR: f64 = 1.5;
/// The same of a slide (m).
const FAR_SLIDE: f64 = 0.5;

/// How far a value is outside a range.
pub(in crate::motion) fn outside([low, high]: [f64; 2], value: f64) -> f64 {
    (low - value).max(value - high).max(0.0)
}

/// Joint positions that fit as degrees and not as radians.
///
/// # Errors
/// They are degrees.
pub(in crate::motion) fn degrees(robot: &Robot<'_>, given: &Given) -> Result<(), MotionError> {
    let nj = robot.joints.len();
    let hinges = robot.joints.iter().enumerate().filter_map(|(j, joint)| {
        let joint = &robot.model.joints[*joint];
        Some((j, joint.range?)).filter(|_| joint.kind == JointKind::Hinge)
    });
    let (mut worst, mut as_degrees) = ((0.0, 0, 0, 0.0), 0.0_f64);
    let (mut count, mut exceeding) = (0, 0);
    for (j, range) in hinges {
        let mut most = 0.0_f64;
        for (t, value) in joint(&given.joints, j, nj).enumerate() {
            let beyond = outside(range, value);
            most = most.max(beyond);
            if beyond > worst.0 {
                worst = (beyond, j, t, value);
            }
            as_degrees = as_degrees.max(outside(range, value.to_radians()));
        }
        count += 1;
        exceeding += usize::from(most > 0.3);
    }
    let (beyond, j, t, value) = worst;
    // A few degrees, taken for radians, are beyond any limit: most joints are then.
    if beyond < FAR || as_degrees > 0.3 || 2 * exceeding < count {
        return Ok(());
    }
    Err(MotionError::new(
        format!("joint positions, frame {t}, joint {}", robot.joint_name(j)),
        format!("{value:.2} rad is far beyond the joint's limits; taken as degrees all joints fit"),
        "write radians: multiply the joints by pi / 180",
    ))
}

/// Notes joints beyond their limits.
///
/// # Errors
/// One is far beyond them.
pub(in crate::motion) fn limits(
    robot: &Robot<'_>,
    given: &Given,
    notes: &mut Vec<String>,
) -> Result<(), MotionError> {
    let nj = robot.joints.len();
    let mut found = Vec::new();
    for (j, index) in robot.joints.iter().enumerate() {
        let own = &robot.model.joints[*index];
        let Some(range) = own.range else { continue };
        let beyond = joint(&given.joints, j, nj).map(|x| outside(range, x)).enumerate();
        let (t, most) = beyond.fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
        let (unit, far) = match own.kind {
            JointKind::Hinge => ("rad", FAR),
            _ => ("m", FAR_SLIDE),
        };
        let value = given.joints[t * nj + j];
        if most > far {
            return Err(MotionError::new(
                format!("joint positions, frame {t}, joint {}", own.name),
                format!(
                    "{value:.3} {unit} is far beyond its limits {:.3} to {:.3}",
                    range[0], range[1]
                ),
                "check the joints' order and unit, and that the file is of this robot",
            ));
        }
        // A limit that was rounded to single precision is none that is exceeded.
        if most > 1e-4 {
            found.push((most, format!("{} by {most:.3} {unit} (frame {t})", own.name)));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    if let Some((_, first)) = found.first() {
        let more = match found.len() {
            1 => String::new(),
            n => format!(" and {} more joints", n - 1),
        };
        notes.push(format!(
            "beyond limits: {first}{more}; ostler motion FILE --out writes a copy within them"
        ));
    }
    Ok(())
}

/// Moves that fit neither the one before nor the one after; high speeds are noted.
///
/// # Errors
/// There is such a move.
pub(in crate::motion) fn jumps(
    robot: &Robot<'_>,
    given: &Given,
    notes: &mut Vec<String>,
) -> Result<(), MotionError> {
    let nj = robot.joints.len();
    let fastest = |moves: &[f64]| {
        let all = moves.iter().enumerate();
        let (t, most) = all.fold((0, 0.0), |a, (t, m)| if *m > a.1 { (t, *m) } else { a });
        (t + 1, most / given.step)
    };
    let mut fast = Vec::new();
    let pairs = || given.root.windows(2);
    let ways: Vec<f64> =
        pairs().map(|p| length([0, 1, 2].map(|i| p[1].pos[i] - p[0].pos[i]))).collect();
    let turns: Vec<f64> = pairs().map(|p| angle(p[0].quat, p[1].quat)).collect();
    for (moves, least, most, unit) in [(&ways, 0.2, 10.0, "m"), (&turns, 0.6, 20.0, "rad")] {
        if let Some(t) = spike(moves, least) {
            return Err(jump(
                format!("{}, frame {t}", given.root_place),
                format!("the root jumps by {:.2} {unit} from the frame before", moves[t - 1]),
                "cut the motion there into two files",
            ));
        }
        let (t, speed) = fastest(moves);
        if speed > most {
            fast.push(format!("the root {speed:.1} {unit}/s (frame {t})"));
        }
    }
    for (j, index) in robot.joints.iter().enumerate() {
        let own = &robot.model.joints[*index];
        let values: Vec<f64> = joint(&given.joints, j, nj).collect();
        let moves: Vec<f64> = values.windows(2).map(|p| (p[1] - p[0]).abs()).collect();
        let (least, most, unit) = match own.kind {
            JointKind::Hinge => (0.6, 40.0, "rad"),
            _ => (0.2, 10.0, "m"),
        };
        if let Some(t) = spike(&moves, least) {
            let whole = (moves[t - 1] / std::f64::consts::TAU).round();
            let turn = own.kind == JointKind::Hinge
                && whole >= 1.0
                && (moves[t - 1] - whole * std::f64::consts::TAU).abs() < 0.3;
            let help = match turn {
                true => "it is a full turn: unwrap the joint's angle (numpy.unwrap)",
                false => "cut the motion there into two files, or mend the frame",
            };
            return Err(jump(
                format!("joint positions, frame {t}, joint {}", own.name),
                format!("it jumps by {:.2} {unit} from the frame before", moves[t - 1]),
                help,
            ));
        }
        let (t, speed) = fastest(&moves);
        if speed > most {
            fast.push(format!("{} {speed:.1} {unit}/s (frame {t})", own.name));
        }
    }
    if !fast.is_empty() {
        notes.push(format!(
            "fast: {}; check fps, and whether a robot can follow that",
            fast.join(", ")
        ));
    }
    Ok(())
}

fn jump(place: String, what: String, help: &str) -> MotionError {
    MotionError::new(place, what, help)
}

/// The frame at the end of a move that is larger than `least` and five times as large as those
/// around it. Where a single frame is out of line, the move back follows at once. Of clips with
/// less than four frames nothing can be said.
fn spike(moves: &[f64], least: f64) -> Option<usize> {
    let at = |t: usize| moves.get(t).copied().unwrap_or(0.0);
    let stands_out = |t: &usize| {
        let before = t.checked_sub(1).map_or(0.0, at);
        let after = at(t + 1).min(at(t + 2));
        moves[*t] > least + 5.0 * before.max(after)
    };
    (moves.len() > 2).then(|| (0..moves.len()).find(stands_out))?.map(|t| t + 1)
}
