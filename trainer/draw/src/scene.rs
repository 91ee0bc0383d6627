//! The scene: the model's geoms as coloured solids, and the floor.

use super::choice::{Chosen, Geoms, choose, is_robot};
use super::ground::Ground;
use super::math::{Frame, Rot, V3, v3};
use super::paint::Coat;
use super::shape::Shape;
use ostler_sim::model::looks::Looks;
use ostler_sim::model::rest::Rest;
use ostler_sim::model::rotation::Pose;
use ostler_sim::model::{JointKind, TendonKind};
use ostler_sim::{BatchEnv, Model, State};

/// Poses of one environment's bodies in the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Poses {
    /// Positions `[3 nbody]` (m).
    pub pos: Vec<f32>,
    /// Orientations `[4 nbody]`, (w, x, y, z).
    pub quat: Vec<f32>,
    /// What else is seen in the world.
    pub marks: Vec<Mark>,
}

/// Something without a shape of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    /// A straight part of a tendon, from and to (m).
    String([V3; 2]),
    /// A point that a command asks for (m).
    Goal(V3),
}

/// Radius of tendons (m); MuJoCo's is half of it, too thin for a picture.
const STRING_RADIUS: f32 = 0.006;
/// Radius of goals (m).
const GOAL_RADIUS: f32 = 0.025;

impl Mark {
    /// Those of environment `e`, where `poses` are its bodies': spatial tendons, and commands of
    /// three lengths.
    fn of_env(env: &BatchEnv, e: usize, poses: &Poses) -> Vec<Mark> {
        let mut marks: Vec<Mark> =
            poses.strings(env.model()).into_iter().map(Mark::String).collect();
        let commands: Vec<f32> = env.commands(e).collect();
        for command in env.command_specs().iter().filter(|c| c.is_place()) {
            let at = &commands[command.first..command.first + 3];
            marks.push(Mark::Goal(v3(at[0], at[1], at[2])));
        }
        marks
    }

    /// As the renderer draws it, in the world's frame; `None` where it is nowhere.
    pub(super) fn solid(&self) -> Option<Solid> {
        let (pos, rot, shape, rgb) = match *self {
            Mark::String([from, to]) => {
                let (way, middle) = (to - from, (from + to) * 0.5);
                let along = Rot::with_z(way);
                (middle, along, Shape::Capsule(STRING_RADIUS, 0.5 * way.norm()), [0.45; 3])
            }
            Mark::Goal(at) => {
                (at, Rot::with_z(v3(0.0, 0.0, 1.0)), Shape::Sphere(GOAL_RADIUS), [0.1, 0.75, 0.3])
            }
        };
        let local = Frame { rot, pos };
        let seen = local.is_finite() && pos.norm() < 1e5;
        seen.then(|| Solid {
            body: 0,
            local,
            shape,
            color: linear(rgb),
            coat: None,
            ground: false,
            robot: false,
        })
    }
}

impl Poses {
    /// Poses of environment `env` of a batch.
    pub fn of(state: &State, env: usize) -> Poses {
        let column =
            |x: &[f32]| x.iter().skip(env).step_by(state.num_envs.max(1)).copied().collect();
        let (pos, quat) = (column(&state.body_pos), column(&state.body_quat));
        Poses { pos, quat, marks: Vec::new() }
    }

    /// Poses of an environment, and behind them those of the reference motion that it follows.
    pub fn of_env(env: &BatchEnv, e: usize) -> Poses {
        let mut poses = Self::of(env.physics().state(), e);
        poses.marks = Mark::of_env(env, e, &poses);
        for pose in env.reference_poses(e) {
            poses.pos.extend(&pose[..3]);
            poses.quat.extend(&pose[3..]);
        }
        poses
    }

    /// Straight parts of the model's spatial tendons, from and to (m): always as many.
    pub fn strings(&self, model: &Model) -> Vec<[V3; 2]> {
        if !model.tendons.iter().any(|t| matches!(t.kind, TendonKind::Spatial(_))) {
            return Vec::new();
        }
        let (pos, quat) = (self.pos.as_chunks().0.iter(), self.quat.as_chunks().0);
        let bodies = pos.zip(quat).take(model.bodies.len());
        let bodies =
            bodies.map(|(pos, quat)| Pose { pos: pos.map(f64::from), quat: quat.map(f64::from) });
        let rest = Rest::posed(model, bodies.collect());
        rest.strings().map(|ends| ends.map(V3::from)).collect()
    }

    /// Poses of the model's initial pose.
    pub fn initial(model: &Model) -> Poses {
        let mut poses = Poses {
            pos: Vec::with_capacity(3 * model.bodies.len()),
            quat: Vec::with_capacity(4 * model.bodies.len()),
            marks: Vec::new(),
        };
        let mut quats: Vec<[f64; 4]> = Vec::with_capacity(model.bodies.len());
        let mut frames: Vec<Frame> = Vec::with_capacity(model.bodies.len());
        for (i, body) in model.bodies.iter().enumerate() {
            let inner = Frame::new(body.pos, body.quat);
            // Parents come before their children; the world is its own parent.
            let (frame, quat) = match (i, frames.get(body.parent)) {
                (1.., Some(parent)) => {
                    (parent.then(&inner), multiply(quats[body.parent], body.quat))
                }
                _ => (inner, body.quat),
            };
            poses.pos.extend([frame.pos.x, frame.pos.y, frame.pos.z]);
            poses.quat.extend(quat.map(|v| v as f32));
            frames.push(frame);
            quats.push(quat);
        }
        poses
    }

    /// The frame of body `i`; `None` where it is missing or not finite.
    pub fn frame(&self, i: usize) -> Option<Frame> {
        let p = self.pos.get(3 * i..3 * i + 3)?;
        let q = self.quat.get(4 * i..4 * i + 4)?;
        let frame =
            Frame { rot: Rot::from_quat([q[0], q[1], q[2], q[3]]), pos: v3(p[0], p[1], p[2]) };
        // Farther than this, f32 pictures are noise.
        (frame.is_finite() && frame.pos.norm() < 1e5).then_some(frame)
    }
}

fn multiply(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

/// A geom as the renderer sees it.
#[derive(Debug, Clone)]
pub struct Solid {
    /// The body it moves with.
    pub body: usize,
    /// Its pose in the body's frame.
    pub local: Frame,
    /// Its shape.
    pub shape: Shape,
    /// Its colour, linear light; its texture's mean where it has one.
    pub color: V3,
    /// Its texture.
    pub coat: Option<Coat>,
    /// A plane or a terrain: it may go on for ever, and casts no shadow.
    pub ground: bool,
    /// It is a part of the robot.
    pub robot: bool,
}

/// How the robot can travel, which decides on the camera.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// Its base stays within limits: the camera stands still.
    Bounded,
    /// It moves in the plane y = const: the camera follows and looks along +y.
    Planar,
    /// It goes anywhere: the camera follows and looks from the side and above.
    Free,
}

/// Everything about a model that pictures need.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Solids to draw.
    pub solids: Vec<Solid>,
    /// Pose of the floor, its normal along z.
    pub floor: Frame,
    /// Half-extents of the floor (m).
    pub floor_half: [f32; 2],
    /// The floor's texture; without one it has checks.
    pub floor_coat: Option<Coat>,
    /// The body that the camera follows.
    pub root: usize,
    /// How it travels.
    pub travel: Travel,
    /// Corners of what should be in view in the initial pose.
    pub extent: Vec<V3>,
    /// Where the root is in the initial pose.
    pub root_pos: V3,
    /// Shapes that cannot be drawn, in words.
    pub missing: Option<String>,
    /// Why nothing of the robot is drawn, in words.
    pub nothing: Option<String>,
}

/// What a reference motion is shown in.
const GHOST: [f32; 3] = [0.75, 0.85, 1.0];
/// Upward part of the normal of a plane that can be the floor.
const FACES_UP: f32 = 0.5;

impl Scene {
    /// Reads a model. The first plane that faces up is the floor; without one there is a
    /// floor below everything, as decoration.
    pub fn new(model: &Model, looks: &Looks, geoms: Geoms) -> Scene {
        let poses = Poses::initial(model);
        let choice = choose(model, looks, geoms);
        let mut solids = Vec::with_capacity(choice.shapes.len());
        let mut floor = None;
        for Chosen { body, local, shape, rgba, coat, terrain } in choice.shapes {
            let pose = poses.frame(body).map_or(local, |b| b.then(&local));
            if let Shape::Plane(half) = shape
                && floor.is_none()
                && pose.rot.c[2].z > FACES_UP
            {
                floor = Some((pose, half, coat));
                continue;
            }
            let ground = terrain || matches!(shape, Shape::Plane(_));
            solids.push(Solid {
                body,
                local,
                shape,
                color: match &coat {
                    Some(coat) => coat.mean(),
                    None => color(model, body, rgba),
                },
                coat,
                ground,
                robot: !ground && is_robot(model, body),
            });
        }
        let root =
            (1..model.bodies.len()).find(|&b| !model.bodies[b].joints.is_empty()).unwrap_or(0);
        let travel = travel(model, root);
        let extent = extent(model, &solids, &poses, root, travel);
        let (floor, floor_half, floor_coat) = floor.unwrap_or_else(|| {
            let high = extent.iter().map(|p| p.z).fold(f32::NEG_INFINITY, f32::max);
            let low = solids.iter().filter(|s| s.shape.radius().is_finite());
            let low = low.flat_map(|s| corners(s, &poses)).map(|p| p.z);
            let low = low.chain(extent.iter().map(|p| p.z)).fold(f32::INFINITY, f32::min);
            let z = if low <= high { low - 0.25 * (high - low) - 0.05 } else { 0.0 };
            // It hides nothing of a ground.
            let z = ground(&solids).map_or(z, |g| z.min(g.range()[0] - 1.0));
            let pose = Frame::new([0.0, 0.0, f64::from(z)], [1.0, 0.0, 0.0, 0.0]);
            (pose, [f32::INFINITY; 2], None)
        });
        Scene {
            solids,
            floor,
            floor_half,
            floor_coat,
            root,
            travel,
            extent,
            root_pos: poses.frame(root).map_or(v3(0.0, 0.0, 0.0), |f| f.pos),
            missing: choice.missing,
            nothing: choice.nothing,
        }
    }

    /// With a pale copy of the robot, whose bodies come behind its own `bodies`: the reference
    /// motion, where there is one.
    pub fn with_ghost(mut self, bodies: usize) -> Self {
        let robot = self.solids.iter().filter(|s| s.robot);
        let light = linear(GHOST);
        let ghost = robot.map(|s| Solid {
            body: s.body + bodies,
            color: s.color * 0.25 + light * 0.75,
            coat: None,
            robot: false,
            ..s.clone()
        });
        let ghost: Vec<Solid> = ghost.collect();
        self.solids.extend(ghost);
        self
    }

    /// The ground that environments share.
    pub fn ground(&self) -> Option<&Ground> {
        ground(&self.solids)
    }

    /// Size of what is in view (m), for choices that scale with the robot.
    pub fn size(&self) -> f32 {
        let (low, high) = bounds(&self.extent);
        (high - low).norm().clamp(1e-3, 1e3)
    }
}

fn ground(solids: &[Solid]) -> Option<&Ground> {
    solids.iter().find_map(|s| match &s.shape {
        Shape::Ground(ground) => Some(&**ground),
        _ => None,
    })
}

/// Smallest and largest coordinates; both zero for no points.
pub fn bounds(points: &[V3]) -> (V3, V3) {
    let Some(&first) = points.first() else {
        return Default::default();
    };
    points.iter().fold((first, first), |(a, b), p| {
        (v3(a.x.min(p.x), a.y.min(p.y), a.z.min(p.z)), v3(b.x.max(p.x), b.y.max(p.y), b.z.max(p.z)))
    })
}

fn travel(model: &Model, root: usize) -> Travel {
    let Some(body) = model.bodies.get(root) else {
        return Travel::Bounded;
    };
    let joints = &model.joints[body.joints.clone()];
    let far = |j: &&ostler_sim::model::Joint| {
        j.kind == JointKind::Slide && j.range.is_none_or(|[a, b]| b - a > 20.0)
    };
    if joints.iter().any(|j| j.kind == JointKind::Free) {
        Travel::Free
    } else if !joints.iter().any(|j| far(&j)) {
        Travel::Bounded
    } else if joints.iter().filter(far).all(|j| j.axis[1].abs() < 0.01) {
        Travel::Planar
    } else {
        Travel::Free
    }
}

/// Corners of the box around a solid.
pub(crate) fn corners(solid: &Solid, poses: &Poses) -> impl Iterator<Item = V3> {
    let frame = poses.frame(solid.body).map(|b| b.then(&solid.local));
    let h = solid.shape.half();
    let sign = |k: i32, bit: i32| if k & bit == 0 { -1.0 } else { 1.0 };
    let corner = move |k| h.times(v3(sign(k, 1), sign(k, 2), sign(k, 4)));
    frame.into_iter().flat_map(move |frame| (0..8).map(move |k| frame.point(corner(k))))
}

/// Corners of the boxes around the solids; for a robot that stays in place also
/// where its base's slides can take it.
fn extent(model: &Model, solids: &[Solid], poses: &Poses, root: usize, travel: Travel) -> Vec<V3> {
    let mut points = Vec::new();
    for solid in solids {
        let moves = model.bodies.get(solid.body).is_some_and(|b| b.weld != 0);
        if solid.ground || !moves && travel != Travel::Bounded {
            continue;
        }
        for corner in corners(solid, poses) {
            points.push(corner);
            if moves && let Some(body) = model.bodies.get(root) {
                for joint in &model.joints[body.joints.clone()] {
                    if let (JointKind::Slide, Some(range), Travel::Bounded) =
                        (joint.kind, joint.range, travel)
                    {
                        let axis: V3 = joint.axis.into();
                        points.extend(range.map(|r| corner + axis * (r as f32)));
                    }
                }
            }
        }
    }
    points.retain(|p| p.is_finite());
    points
}

/// sRGB in 0..1 as linear light.
pub fn linear(rgb: [f32; 3]) -> V3 {
    let f = |c: f32| {
        let c = c.clamp(0.0, 1.0);
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    v3(f(rgb[0]), f(rgb[1]), f(rgb[2]))
}

/// The file's colour; where it gives none (MuJoCo's grey), one by the body's depth
/// in the tree, so that links can be told apart.
fn color(model: &Model, body: usize, rgba: [f32; 4]) -> V3 {
    const BY_DEPTH: [[f32; 3]; 5] = [
        [0.93, 0.58, 0.20],
        [0.16, 0.44, 0.66],
        [0.90, 0.91, 0.93],
        [0.84, 0.33, 0.31],
        [0.27, 0.30, 0.36],
    ];
    if rgba[..3].iter().any(|c| (c - 0.5).abs() > 1e-3) {
        return linear([rgba[0], rgba[1], rgba[2]]);
    }
    let mut depth = 0;
    let mut b = body;
    while let Some(next) = model.bodies.get(b) {
        if b == 0 || next.parent >= b {
            break;
        }
        depth += usize::from(!next.joints.is_empty());
        b = next.parent;
    }
    match depth {
        0 => linear([0.55, 0.58, 0.62]),
        d => linear(BY_DEPTH[(d - 1) % BY_DEPTH.len()]),
    }
}
