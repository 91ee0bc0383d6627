//! Bodies of a file against those that follow from its joints.

use super::{breadth_first_bodies, breadth_first_joints};
use crate::motion::differences::{angle, length};
use crate::motion::error::MotionError;
use crate::motion::format::{MotionFormat, QuatOrder};
use crate::motion::given::{Bodies, Given, Robot};
use crate::rotation::Pose;

/// Bodies this near (m) and this well turned (rad) are the same: robots' files of one robot
/// differ by millimetres.
const NEAR: f64 = 0.05;
const TURNED: f64 = 0.1;
/// Differences above these are noted (m, rad).
const NOTED: f64 = 1e-3;
const NOTED_TURN: f64 = 1e-2;

/// The largest difference between a column and a body, and in which of the given frames.
#[derive(Clone, Copy)]
struct Distance {
    away: f64,
    turned: f64,
    frame: usize,
}

impl Distance {
    fn fits(self) -> bool {
        self.away <= NEAR && self.turned <= TURNED
    }

    /// How bad it is; 1 is the most that fits.
    fn badness(self) -> f64 {
        (self.away / NEAR).max(self.turned / TURNED)
    }
}

/// Poses of all bodies in some frames `[frames][nbody]`.
struct Known<'a> {
    frames: &'a [usize],
    poses: &'a [Pose],
    nbody: usize,
}

impl Known<'_> {
    fn distance(&self, bodies: &Bodies, column: usize, body: usize) -> Distance {
        let mut most = Distance { away: 0.0, turned: 0.0, frame: 0 };
        let mut worst = -1.0;
        for (poses, frame) in self.poses.chunks_exact(self.nbody).zip(self.frames) {
            let i = frame * bodies.of.len() + column;
            let (pos, pose) = (bodies.pos[i], poses[body]);
            let away = length([0, 1, 2].map(|k| pos[k] - pose.pos[k]));
            let turned = angle(pose.quat, bodies.quat[i]);
            let here = Distance { away, turned, frame: *frame };
            if here.badness() > worst {
                worst = here.badness();
                most.frame = *frame;
            }
            most.away = most.away.max(away);
            most.turned = most.turned.max(turned);
        }
        most
    }

    fn all_fit(&self, bodies: &Bodies, of: &[usize]) -> bool {
        of.iter().enumerate().all(|(c, b)| self.distance(bodies, c, *b).fits())
    }
}

/// Compares the bodies of every frame; notes the largest difference.
///
/// # Errors
/// A body is elsewhere than its joints say; the message says what would fit.
pub(in crate::motion) fn bodies(
    robot: &Robot<'_>,
    given: &Given,
    bodies: &Bodies,
    poses: &[Pose],
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<(), MotionError> {
    let frames: Vec<usize> = (0..given.frames).collect();
    let known = Known { frames: &frames, poses, nbody: robot.model.bodies.len() };
    let columns = bodies.of.iter().enumerate();
    let all: Vec<Distance> = columns.map(|(c, b)| known.distance(bodies, c, *b)).collect();
    let name = |c: usize| robot.model.bodies[bodies.of[c]].name.as_str();
    let largest = |of: fn(&Distance) -> f64| {
        let all = all.iter().enumerate();
        all.max_by(|a, b| of(a.1).total_cmp(&of(b.1)))
    };
    let Some((column, worst)) = largest(|d| d.badness()) else { return Ok(()) };
    if !worst.fits() {
        let array = if worst.away > NEAR { "body_pos_w" } else { "body_quat_w" };
        let (cause, help) = cause(robot, given, bodies, column, format);
        return Err(MotionError::new(
            format!("array {array}, frame {}, body {}", worst.frame, name(column)),
            format!(
                "it contradicts the joints, which put the body {:.3} m and {:.1} degrees away from there{cause}",
                worst.away,
                worst.turned.to_degrees()
            ),
            help,
        ));
    }
    let noted = [
        largest(|d| d.away).map(|(c, d)| (d.away > NOTED, c, format!("{:.1} mm", 1e3 * d.away))),
        largest(|d| d.turned).map(|(c, d)| {
            (d.turned > NOTED_TURN, c, format!("{:.1} degrees", d.turned.to_degrees()))
        }),
    ];
    for (_, c, by) in noted.into_iter().flatten().filter(|n| n.0) {
        notes.push(format!(
            "bodies: {} is up to {by} from where the joints put it in this robot's file; leave body_pos_w and body_quat_w out to have them all from the joints",
            name(c)
        ));
    }
    Ok(())
}

/// What would explain bodies that contradict the joints, and the remedy.
fn cause(
    robot: &Robot<'_>,
    given: &Given,
    bodies: &Bodies,
    column: usize,
    format: &MotionFormat,
) -> (String, String) {
    let frames = given.sample();
    let nbody = robot.model.bodies.len();
    let order = format.quat.unwrap_or(QuatOrder::Wxyz);
    let other = order.other().word();
    let mistaken = |quats: &mut dyn Iterator<Item = &mut crate::Quat>| {
        quats.for_each(|q| *q = order.mistaken(*q));
    };
    let fits = |given: &Given, bodies: &Bodies, of: &[usize]| {
        let poses = given.poses_at(robot, &frames);
        Known { frames: &frames, poses: &poses, nbody }.all_fit(bodies, of)
    };
    let mut swapped = bodies.clone();
    mistaken(&mut swapped.quat.iter_mut());
    let mut all = given.clone();
    mistaken(&mut all.root.iter_mut().map(|pose| &mut pose.quat));
    if fits(&all, &swapped, &bodies.of) {
        return (
            format!("; with its quaternions read as {other} all fits"),
            format!("say quat = \"{other}\" (--quat {other})"),
        );
    }
    if fits(given, &swapped, &bodies.of) {
        return (
            format!("; with body_quat_w alone read as {other} all fits"),
            format!("write body_quat_w as {}, as the root is", order.word()),
        );
    }
    if fits(&all, bodies, &bodies.of) {
        return (
            format!("; with the root's quaternion in joint_pos alone read as {other} all fits"),
            format!("write it as {}, as body_quat_w is", order.word()),
        );
    }
    let first = breadth_first_bodies(robot);
    if given.assumed && fits(given, bodies, &first) {
        return (
            "; breadth first, as Isaac Lab lists bodies, all fit".into(),
            "add the array body_names in the order of the file's bodies".into(),
        );
    }
    if let Some(columns) = breadth_first_joints(robot) {
        let turned = given.with_joints(&columns);
        if fits(&turned, bodies, &bodies.of) || fits(&turned, bodies, &first) {
            return (
                "; with the joints breadth first, as Isaac Lab lists them, all fits".into(),
                "name the joints in the order of the columns: the array joint_names, or the key joints"
                    .into(),
            );
        }
    }
    let poses = given.poses_at(robot, &frames);
    let known = Known { frames: &frames, poses: &poses, nbody };
    let another = (1..nbody)
        .map(|b| (b, known.distance(bodies, column, b)))
        .filter(|(b, d)| *b != bodies.of[column] && d.fits())
        .min_by(|a, b| a.1.badness().total_cmp(&b.1.badness()));
    if let Some((b, _)) = another {
        let other = &robot.model.bodies[b].name;
        return (
            format!("; the body {other} fits there"),
            "put the bodies into the robot's order, or name them rightly by body_names".into(),
        );
    }
    let fitting =
        bodies.of.iter().enumerate().filter(|(c, b)| known.distance(bodies, *c, **b).fits());
    let count = fitting.count();
    (
        format!("; {count} of {} bodies fit", bodies.of.len()),
        "check that the file is of this robot, and the joints' order; without body_pos_w and body_quat_w bodies follow from the joints"
            .into(),
    )
}
