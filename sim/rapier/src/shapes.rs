//! Geoms as rapier colliders.

use super::filter::Filter;
use super::joints::Pose;
use nalgebra::{UnitQuaternion, Vector3};
use ostler_engine::physics::PhysicsError;
use ostler_model::{Geom, GeomKind, Model};
use rapier3d::math;
use rapier3d::prelude::{CoefficientCombineRule, Collider, ColliderBuilder};

/// A pose in rapier's type and precision.
pub(super) fn to_rapier(p: &Pose) -> math::Pose {
    let (t, q) = (p.translation.vector, p.rotation.quaternion());
    math::Pose::from_parts(
        math::Vector::new(t.x as f32, t.y as f32, t.z as f32),
        math::Rotation::from_xyzw(q.i as f32, q.j as f32, q.k as f32, q.w as f32).normalize(),
    )
}

/// The collider of geom `g`; `at` is its body's frame in the collider's parent.
/// `None` for geoms that touch nothing.
pub(super) fn collider(
    model: &Model,
    filter: &Filter,
    g: usize,
    at: &Pose,
) -> Result<Option<Collider>, PhysicsError> {
    let geom = &model.geoms[g];
    if filter.partners(g).next().is_none() {
        return Ok(None);
    }
    let [a, b, c] = geom.size.map(|x| x as f32);
    let mut turn = UnitQuaternion::identity();
    let builder = match geom.kind {
        GeomKind::Plane => ColliderBuilder::new(rapier3d::geometry::SharedShape::halfspace(
            math::Vector::new(0.0, 0.0, 1.0),
        )),
        GeomKind::Sphere => ColliderBuilder::ball(a),
        GeomKind::Capsule => ColliderBuilder::capsule_z(b, a),
        GeomKind::Box => ColliderBuilder::cuboid(a, b, c),
        GeomKind::Cylinder => {
            // rapier's cylinders stand along y.
            turn = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), std::f64::consts::FRAC_PI_2);
            ColliderBuilder::cylinder(b, a)
        }
        GeomKind::Mesh(i) => {
            let corner = |v: &[f32; 3]| math::Vector::new(v[0], v[1], v[2]);
            let corners: Vec<_> = model.meshes[i].vertices.iter().map(corner).collect();
            ColliderBuilder::convex_hull(&corners).ok_or_else(|| PhysicsError::Unsupported {
                engine: "rapier",
                what: format!("the flat mesh of geom \"{}\"", geom.name),
            })?
        }
        GeomKind::Hfield(_) | GeomKind::Terrain => {
            return Err(PhysicsError::Unsupported {
                engine: "rapier",
                what: format!("the height field of geom \"{}\"", geom.name),
            });
        }
        GeomKind::Ellipsoid => ColliderBuilder::convex_hull(&ellipsoid(geom)).ok_or_else(|| {
            PhysicsError::Unsupported {
                engine: "rapier",
                what: format!("the flat ellipsoid of geom \"{}\"", geom.name),
            }
        })?,
    };
    let mut placed = at * super::joints::pose(geom.pos, geom.quat);
    placed.rotation *= turn;
    let (groups, hooks) = filter.collider(g);
    Ok(Some(
        builder
            .position(to_rapier(&placed))
            .density(0.0)
            .friction(friction(model, filter, g))
            .friction_combine_rule(CoefficientCombineRule::Max)
            .restitution(0.0)
            .collision_groups(groups)
            .active_hooks(hooks)
            .user_data(g as u128)
            .build(),
    ))
}

/// Sliding friction. A pair has MuJoCo's dimension max(condim); one is frictionless,
/// so a geom that meets only such geoms, and is one, has no friction.
fn friction(model: &Model, filter: &Filter, g: usize) -> f32 {
    let frictionless = |i: usize| model.geoms[i].condim == 1;
    if frictionless(g) && filter.partners(g).all(frictionless) {
        0.0
    } else {
        model.geoms[g].friction[0] as f32
    }
}

/// Points on an ellipsoid: a grid of 16 meridians and 9 parallels.
fn ellipsoid(geom: &Geom) -> Vec<math::Vector> {
    let mut points = Vec::new();
    for i in 0..=8 {
        let (sin_t, cos_t) = (std::f64::consts::PI * f64::from(i) / 8.0).sin_cos();
        let around = if i == 0 || i == 8 { 1 } else { 16 };
        for k in 0..around {
            let (sin_p, cos_p) = (std::f64::consts::TAU * f64::from(k) / 16.0).sin_cos();
            let unit = [sin_t * cos_p, sin_t * sin_p, cos_t];
            points.push(math::Vector::new(
                (unit[0] * geom.size[0]) as f32,
                (unit[1] * geom.size[1]) as f32,
                (unit[2] * geom.size[2]) as f32,
            ));
        }
    }
    points
}
