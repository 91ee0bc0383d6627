//! What a task adds to a robot's file, so that a laboratory's file is used as it is.
//!
//! The elements are added to the file's own before it is read (`mjcf/edit.rs`): numbers,
//! names, keyframes and everything else follow as if they stood in it.

use super::{Geom, GeomKind, Joint, JointKind, Model, Vec3};
use crate::rest::Rest;
use crate::rotation::{Pose, rotate};

/// Additions to a robot's file. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edits {
    /// A floor, unless the file has a plane or height field of its own.
    pub floor: Option<Floor>,
    /// Whether the robot's root floats.
    pub base: Option<Base>,
    /// Height of the root in the initial pose.
    pub height: Option<Height>,
    /// Moments of inertia that no body can have become their mean (`compiler/balanceinertia`).
    pub balance: bool,
}

/// An infinite plane, normal to z.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// Its z (m).
    pub height: f64,
    /// Sliding, torsional (m) and rolling (m) friction. In a contact the larger of the two
    /// geoms' counts, as MuJoCo has it.
    pub friction: [f64; 3],
}

impl Default for Floor {
    fn default() -> Self {
        Self { height: 0.0, friction: [1.0, 0.005, 0.0001] }
    }
}

/// How the robot's root is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// By a free joint.
    Free,
    /// By the world.
    Fixed,
}

/// z of the robot's root in the initial pose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Height {
    /// The one (m) at which the lowest shape that can touch something stands on the floor.
    OnFloor,
    /// In the world (m).
    At(f64),
}

impl Edits {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Model {
    /// What a robot usually needs and this one lacks, each with the key that gives it: a
    /// floor, a free base.
    pub fn lacks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let free = (self.joints.iter()).find(|j| j.kind == JointKind::Free);
        let falls = |joint: &&Joint| {
            let still = |g: &Geom| self.bodies[g.body].weld == 0;
            let felt = |g: &Geom| g.contype | g.conaffinity != 0;
            let pulled = self.options.gravity != [0.0; 3];
            // Another body may carry it, or what it hangs on.
            let root = |b: usize| self.below_world(b);
            let loose = |b: usize| {
                (self.joints.iter()).any(|j| j.body == root(b) && j.kind == JointKind::Free)
            };
            let other = |g: &Geom| root(g.body) != root(joint.body) && !loose(g.body);
            let stands = self.geoms.iter().any(|g| (still(g) || other(g)) && felt(g))
                || !self.pairs.is_empty()
                || !self.tendons.is_empty()
                || !self.equalities.is_empty();
            self.bodies[joint.body].gravcomp == 0.0 && pulled && !stands
        };
        if let Some(joint) = free.filter(falls) {
            lines.push(format!(
                "body \"{}\" has nothing to stand on (task.floor = true adds a floor)",
                self.bodies[joint.body].name
            ));
        }
        if free.is_none() && !self.joints.is_empty() {
            let branches = self.bodies.iter().skip(1);
            let roots = branches.filter(|b| b.weld != 0 && self.bodies[b.parent].weld == 0);
            // They hang on one body that can be set free, or on the world itself.
            let on: Vec<usize> = roots.map(|b| self.below_world(b.parent)).collect();
            if on.len() > 1 && on[0] != 0 && on.iter().all(|b| *b == on[0]) {
                lines.push(
                    "several chains of joints hang on a body that stands still: if the robot is to move about, \
                     task.base = \"free\" gives it a free joint"
                        .into(),
                );
            }
        }
        lines
    }

    /// The body on the world that carries a body.
    fn below_world(&self, mut body: usize) -> usize {
        while self.bodies[body].parent != 0 {
            body = self.bodies[body].parent;
        }
        body
    }
}

/// A static plane or height field that something can touch.
pub fn grounds(model: &Model) -> impl Iterator<Item = usize> {
    let grounds = model.geoms.iter().enumerate().filter(|(_, geom)| {
        let ground = matches!(geom.kind, GeomKind::Plane | GeomKind::Hfield(_) | GeomKind::Terrain);
        let body = &model.bodies[geom.body];
        ground && body.weld == 0 && geom.contype | geom.conaffinity != 0
    });
    grounds.map(|(g, _)| g)
}

/// Height of a static plane whose normal points up; of other grounds nothing is known.
pub(super) fn plane_height(model: &Model, geom: usize) -> Option<f64> {
    let geom = &model.geoms[geom];
    let bodies = Rest::new(model, &model.qpos0).bodies;
    let pose = bodies[geom.body].then(Pose { pos: geom.pos, quat: geom.quat });
    let normal = rotate(pose.quat, [0.0, 0.0, 1.0]);
    (geom.kind == GeomKind::Plane && normal[2] > 1.0 - 1e-9).then_some(pose.pos[2])
}

/// Lowest z (m) of the shapes of a body and what it carries, in the initial pose; of those
/// that can touch something. `None`: there are none.
pub(super) fn lowest(model: &Model, root: usize) -> Option<f64> {
    lowest_in(model, root, &model.qpos0)
}

/// The same in the pose `qpos (nq)`.
pub fn lowest_in(model: &Model, root: usize, qpos: &[f64]) -> Option<f64> {
    let bodies = Rest::new(model, qpos).bodies;
    let carried = carried(model, root);
    let felt = model.geoms.iter();
    bottom(model, &bodies, felt.filter(|g| carried[g.body] && g.contype | g.conaffinity != 0))
}

/// Whether each body is the body `root` or carried by it.
pub fn carried(model: &Model, root: usize) -> Vec<bool> {
    let mut carried = vec![false; model.bodies.len()];
    for (b, body) in model.bodies.iter().enumerate() {
        // Parents come first.
        carried[b] = b == root || b > 0 && carried[body.parent];
    }
    carried
}

/// Lowest z (m) of shapes whose bodies have these poses. `None`: there are none.
pub(super) fn bottom<'a>(
    model: &Model,
    bodies: &[Pose],
    geoms: impl Iterator<Item = &'a Geom>,
) -> Option<f64> {
    farthest(model, bodies, geoms, [0.0, 0.0, -1.0]).map(|z| -z)
}

/// The greatest product of `direction` with a point of shapes whose bodies have these poses.
/// `None`: there are none that end.
pub fn farthest<'a>(
    model: &Model,
    bodies: &[Pose],
    geoms: impl Iterator<Item = &'a Geom>,
    direction: Vec3,
) -> Option<f64> {
    let ends = geoms.map(|geom| {
        let pose = bodies[geom.body].then(Pose { pos: geom.pos, quat: geom.quat });
        geom.reach(model, pose, direction)
    });
    ends.filter(|end| end.is_finite()).reduce(f64::max)
}
