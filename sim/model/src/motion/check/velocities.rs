//! Velocities of a file against the rates of its positions.

use super::{breadth_first_joints, joint, permuted};
use crate::motion::differences::{point_rates, rates, turn_rates};
use crate::motion::error::MotionError;
use crate::motion::format::BODY;
use crate::motion::given::{Given, Robot};
use crate::motion::{Motion, into_body};
use crate::rotation::{Pose, add, conjugate, cross, rotate};
use crate::{Quat, Vec3};

/// Velocities that differ from the rates by more than this part of themselves contradict them.
const CONTRADICTS: f64 = 0.5;
/// By more than this part it is noted.
const NOTED: f64 = 0.05;
/// A factor this far from 1 is another number of frames per second, or another unit.
const FACTOR: f64 = 0.12;
/// Slower than this (root mean square; m/s, rad/s) nothing can be told.
const SLOW: f64 = 0.05;

/// Velocities of the joints and of the root in the world.
pub(in crate::motion) struct Velocity {
    /// `[T]`, linear and angular; empty for robots without a free joint.
    root: Vec<[Vec3; 2]>,
    /// `[T][nj]`.
    joints: Vec<f64>,
}

impl Velocity {
    /// Generalised velocities of a frame `(nv)`.
    pub(in crate::motion) fn qvel(
        &self,
        robot: &Robot<'_>,
        given: &Given,
        frame: usize,
    ) -> Vec<f64> {
        let mut qvel = vec![0.0; robot.model.nv];
        if let (Some(root), Some([linear, angular]), Some(pose)) =
            (robot.root, self.root.get(frame), given.root.get(frame))
        {
            let at = robot.model.joints[root].dof_adr;
            qvel[at..at + 3].copy_from_slice(linear);
            qvel[at + 3..at + 6].copy_from_slice(&into_body(pose.quat, *angular));
        }
        let nj = robot.joints.len();
        for (j, value) in robot.joints.iter().zip(&self.joints[frame * nj..(frame + 1) * nj]) {
            qvel[robot.model.joints[*j].dof_adr] = *value;
        }
        qvel
    }
}

/// How given velocities relate to rates of positions.
struct Relation {
    /// Root mean squares.
    given: f64,
    rates: f64,
    /// The difference as a part of the larger of both.
    error: f64,
    /// `given` is about this many times `rates`, ...
    factor: f64,
    /// ... but for this part of itself.
    rest: f64,
}

impl Relation {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut gg, mut rr, mut gr, mut dd, mut n) = (0.0, 0.0, 0.0, 0.0, 0.0_f64);
        for (g, r) in pairs {
            gg += g * g;
            rr += r * r;
            gr += g * r;
            dd += (g - r) * (g - r);
            n += 1.0;
        }
        let mean = |sum: f64| (sum / n.max(1.0)).sqrt();
        let factor = if rr > 0.0 { gr / rr } else { 0.0 };
        let rest = if gg > 0.0 { ((gg - factor * gr).max(0.0) / gg).sqrt() } else { 1.0 };
        let error = mean(dd) / mean(gg).max(mean(rr)).max(SLOW);
        Self { given: mean(gg), rates: mean(rr), error, factor, rest }
    }

    fn fits(&self) -> bool {
        self.error < 0.2
    }

    /// A reason to refuse velocities that are a multiple of the rates, or none at all.
    fn reason(&self, step: f64) -> Option<(String, String)> {
        let drop = "leave the velocities out: they are then taken from the positions";
        if self.rates < SLOW && self.given < SLOW {
            return None;
        }
        if self.given == 0.0 {
            return Some(("they are 0 while the positions change".into(), drop.into()));
        }
        if self.rest < 0.3 && (self.factor - 1.0).abs() > FACTOR {
            let fps = 1.0 / step;
            let factor = self.factor;
            let near = |x: f64| (factor / x - 1.0).abs() < 0.05;
            if near(180.0 / std::f64::consts::PI) {
                let what = "they are about 57.3 times the rates of the positions: degrees";
                return Some((what.into(), "write radians per second".into()));
            }
            if factor < 0.0 {
                let what = format!("they are about {factor:.2} times the rates of the positions");
                return Some((what, "check their sign, and the order of the frames".into()));
            }
            return Some((
                format!(
                    "they are about {factor:.2} times the rates of the positions at {fps:.4} frames per second; at {:.4} they would fit",
                    fps * factor
                ),
                format!("correct fps, if {:.0} is right; else {drop}", fps * factor),
            ));
        }
        None
    }
}

fn flat(vectors: &[Vec3]) -> impl Iterator<Item = f64> + '_ {
    vectors.iter().flatten().copied()
}

fn compared(given: &[Vec3], rates: &[Vec3]) -> Relation {
    Relation::of(flat(given).zip(flat(rates)))
}

/// The file's velocities where it has them, else rates of the positions.
///
/// # Errors
/// The file's contradict its positions.
pub(in crate::motion) fn velocities(
    robot: &Robot<'_>,
    given: &Given,
    notes: &mut Vec<String>,
) -> Result<Velocity, MotionError> {
    let nj = robot.joints.len();
    let moved = rates(&given.joints, nj, given.step);
    let joints = match &given.joint_velocity {
        Some(own) => {
            joints(robot, given, own, &moved, notes)?;
            own.clone()
        }
        None => {
            notes.push("computed: velocities of the joints, from their positions".into());
            moved
        }
    };
    if robot.root.is_none() {
        return Ok(Velocity { root: Vec::new(), joints });
    }
    let pos: Vec<Vec3> = given.root.iter().map(|p| p.pos).collect();
    let quat: Vec<Quat> = given.root.iter().map(|p| p.quat).collect();
    let both = [point_rates(&pos, given.step), turn_rates(&quat, given.step)];
    let root = match &given.root_velocity {
        Some((own, places)) => {
            for (k, place) in places.iter().enumerate() {
                let own: Vec<Vec3> = own.iter().map(|v| v[k]).collect();
                root_velocity(given, &own, &both[k], &quat, place, k == 1, notes)?;
            }
            own.clone()
        }
        None => {
            notes.push("computed: velocities of the root, from its positions".into());
            both[0].iter().zip(&both[1]).map(|(v, w)| [*v, *w]).collect()
        }
    };
    Ok(Velocity { root, joints })
}

const DROP: &str =
    "correct them, or leave joint_vel out: velocities are then taken from the positions";

fn joints(
    robot: &Robot<'_>,
    given: &Given,
    own: &[f64],
    moved: &[f64],
    notes: &mut Vec<String>,
) -> Result<(), MotionError> {
    let nj = robot.joints.len();
    let all = Relation::of(own.iter().copied().zip(moved.iter().copied()));
    let refuse = |place: String, what: String, help: String| {
        Err(MotionError::new(place, format!("velocities contradict the positions: {what}"), help))
    };
    if let Some((what, help)) = all.reason(given.step) {
        return refuse("array joint_vel".into(), what, help);
    }
    if all.error > CONTRADICTS
        && let Some(columns) = breadth_first_joints(robot)
        && Relation::of(permuted(own, &columns).into_iter().zip(moved.iter().copied())).fits()
    {
        let what = "they fit with the joints breadth first, as Isaac Lab lists them";
        let help = "write joint_vel in the order of joint_pos";
        return refuse("array joint_vel".into(), what.into(), help.into());
    }
    let of = |a: usize, b: usize| Relation::of(joint(own, a, nj).zip(joint(moved, b, nj)));
    let mut worst: Option<(usize, Relation)> = None;
    for j in 0..nj {
        let here = of(j, j);
        if worst.as_ref().is_none_or(|w| here.error > w.1.error) {
            worst = Some((j, here));
        }
    }
    let Some((j, worst)) = worst else { return Ok(()) };
    let place = || format!("array joint_vel, joint {}", robot.joint_name(j));
    if worst.error > CONTRADICTS && worst.rates.max(worst.given) > 2.0 * SLOW {
        if let Some((what, help)) = worst.reason(given.step) {
            return refuse(place(), what, help);
        }
        let another = (0..nj).filter(|o| *o != j).map(|o| (o, of(j, o)));
        let another = another.filter(|(_, r)| r.fits() && r.rates > SLOW);
        let nearest = another.min_by(|a, b| a.1.error.total_cmp(&b.1.error));
        if let Some((o, _)) = nearest {
            return refuse(
                place(),
                format!("they are those of {}", robot.joint_name(o)),
                "write joint_vel in the order of joint_pos".into(),
            );
        }
        return refuse(
            place(),
            format!("{:.0} % of them do not come from the positions", 100.0 * worst.error),
            DROP.into(),
        );
    }
    if all.error > NOTED {
        notes.push(format!(
            "velocities of the joints differ from the rates of their positions by {:.0} %; leave joint_vel out to have these",
            100.0 * all.error
        ));
    }
    Ok(())
}

fn root_velocity(
    given: &Given,
    own: &[Vec3],
    moved: &[Vec3],
    quats: &[Quat],
    place: &str,
    angular: bool,
    notes: &mut Vec<String>,
) -> Result<(), MotionError> {
    let relation = compared(own, moved);
    let what = if angular { "the root's angular velocities" } else { "the root's velocities" };
    let refuse = |why: String, help: String| {
        Err(MotionError::new(place, format!("{what} contradict its positions: {why}"), help))
    };
    let turned = |turn: fn(Quat) -> Quat| {
        let all = own.iter().zip(quats).map(|(v, q)| rotate(turn(*q), *v));
        compared(&all.collect::<Vec<_>>(), moved)
    };
    if relation.error > 2.0 * NOTED {
        let [from_body, twice] = [turned(|q| q), turned(conjugate)];
        if from_body.fits() && from_body.error < 0.5 * relation.error {
            return refuse(
                "they fit in the body's frame, and are to be in the world's".into(),
                "turn them by the root's quaternion, or leave them out".into(),
            );
        }
        if twice.fits() && twice.error < 0.5 * relation.error {
            return refuse(
                "they were turned by the root's quaternion once too often".into(),
                "write them in the world's frame, or leave them out".into(),
            );
        }
    }
    if let Some((why, help)) = relation.reason(given.step) {
        return refuse(why, help);
    }
    if relation.error > CONTRADICTS && relation.rates.max(relation.given) > 2.0 * SLOW {
        let why = format!("{:.0} % of them do not come from there", 100.0 * relation.error);
        let help =
            "correct them, or leave the velocities out: they are then taken from the positions";
        return refuse(why, help.into());
    }
    if relation.error > NOTED {
        notes.push(format!(
            "{what} differ from the rates of its positions by {:.0} % ({place})",
            100.0 * relation.error
        ));
    }
    Ok(())
}

/// Which velocities of bodies are the file's.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::motion) struct Kept {
    pub(in crate::motion) linear: bool,
    pub(in crate::motion) angular: bool,
}

/// Compares the file's velocities of bodies with those that follow from the joints', and notes
/// those that are replaced. `motion` has positions and velocities already.
pub(in crate::motion) fn body_velocities(
    robot: &Robot<'_>,
    given: &Given,
    motion: &Motion,
    poses: &[Pose],
    notes: &mut Vec<String>,
) -> Kept {
    let model = robot.model;
    let nbody = model.bodies.len();
    let Some(bodies) = &given.bodies else { return Kept::default() };
    let frames = given.sample();
    let mut follow = [Vec::new(), Vec::new()];
    // What they would be if the root's angular velocity had been turned once too often: MuJoCo
    // takes it in the body's frame.
    let mut twice = [Vec::new(), Vec::new()];
    for t in &frames {
        let qpos = &motion.qpos[t * model.nq..(t + 1) * model.nq];
        let mut qvel = motion.qvel[t * model.nv..(t + 1) * model.nv].to_vec();
        let put = |to: &mut [Vec<Vec3>; 2], qvel: &[f64]| {
            let all = crate::motion::kinematics(model, qpos, qvel);
            for b in &bodies.of {
                let at = |k: usize| [0, 1, 2].map(|i| all[b * BODY + k + i]);
                to[0].push(at(7));
                to[1].push(at(10));
            }
        };
        put(&mut follow, &qvel);
        if let (Some(root), Some(pose)) = (robot.root, given.root.get(*t)) {
            let at = model.joints[root].dof_adr + 3;
            let world = rotate(pose.quat, [qvel[at], qvel[at + 1], qvel[at + 2]]);
            qvel[at..at + 3].copy_from_slice(&world);
        }
        put(&mut twice, &qvel);
    }
    let columns = bodies.of.len();
    let picked = |all: &[Vec3]| -> Vec<Vec3> {
        frames.iter().flat_map(|t| all[t * columns..(t + 1) * columns].to_vec()).collect()
    };
    let frame_of = |i: usize| (frames[i / columns], bodies.of[i % columns]);
    let mut kept = Kept::default();
    if let Some(angular) = bodies.angular.as_deref().map(picked) {
        let error = compared(&angular, &follow[1]).error;
        kept.angular = error < NOTED;
        if !kept.angular {
            let own_frames: Vec<Vec3> = (angular.iter().enumerate())
                .map(|(i, w)| {
                    let (t, b) = frame_of(i);
                    rotate(poses[t * nbody + b].quat, *w)
                })
                .collect();
            let why = if compared(&angular, &twice[1]).fits() {
                ": they are what MuJoCo makes of a root's angular velocity in the world that it takes in the body's frame"
            } else if compared(&own_frames, &follow[1]).fits() {
                ": they are in the bodies' frames"
            } else {
                ""
            };
            notes.push(replaced("body_ang_vel_w", error, why));
        }
    }
    if let Some(linear) = bodies.linear.as_deref().map(picked) {
        let error = compared(&linear, &follow[0]).error;
        kept.linear = error < NOTED;
        if !kept.linear {
            let centres = |[linear, angular]: &[Vec<Vec3>; 2]| -> Vec<Vec3> {
                let both = linear.iter().zip(angular).enumerate();
                both.map(|(i, (v, w))| {
                    let (t, b) = frame_of(i);
                    let arm = rotate(poses[t * nbody + b].quat, model.bodies[b].ipos);
                    add(*v, cross(*w, arm))
                })
                .collect()
            };
            let near = |other: &[Vec3]| compared(&linear, other).error < 0.5 * error;
            let why = if near(&centres(&follow)) {
                ": they fit better as those of the centres of mass"
            } else if near(&twice[0]) || near(&centres(&twice)) {
                ": they follow from the same mistake as body_ang_vel_w"
            } else {
                ""
            };
            notes.push(replaced("body_lin_vel_w", error, why));
        }
    }
    kept
}

fn replaced(array: &str, error: f64, why: &str) -> String {
    format!(
        "replaced: {array}, which differs by {:.0} % from what the root and the joints do{why}; correct it or leave it out to have no such note",
        100.0 * error
    )
}
