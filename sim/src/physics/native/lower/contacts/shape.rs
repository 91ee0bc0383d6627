//! Geoms that can collide, in the frames of the bodies that carry them.

use super::super::{Context, LowerError};
use crate::model::rotation::matrix;
use crate::model::{Geom, GeomKind, Model};
use crate::physics::native::tables::Plan;

/// Number of a geom's type, in MuJoCo's order.
pub(super) fn code(kind: GeomKind) -> i32 {
    match kind {
        GeomKind::Plane => PLANE,
        GeomKind::Sphere => SPHERE,
        GeomKind::Capsule => CAPSULE,
        GeomKind::Ellipsoid => ELLIPSOID,
        GeomKind::Cylinder => CYLINDER,
        GeomKind::Box => BOX,
    }
}

const PLANE: i32 = 0;
const HFIELD: i32 = 1;
const SPHERE: i32 = 2;
const CAPSULE: i32 = 3;
const ELLIPSOID: i32 = 4;
const CYLINDER: i32 = 5;
const BOX: i32 = 6;
const MESH: i32 = 7;

/// Whether there are contacts between two types at all: planes and height fields
/// do not meet each other.
pub(super) fn collide([_, b]: [i32; 2]) -> bool {
    b > HFIELD
}

/// Most contacts between two types, given in MuJoCo's order.
///
/// `near` is whether they make contact before they touch, `multi` the flag
/// `multiccd`. Source: MuJoCo's collision functions and `mj_maxContact`.
pub(super) fn hits(kinds: [i32; 2], near: bool, multi: bool) -> usize {
    match kinds {
        [HFIELD, _] => 50,
        [SPHERE | ELLIPSOID, _] | [_, SPHERE | ELLIPSOID] => 1,
        [PLANE, CAPSULE] | [CAPSULE, CAPSULE | BOX] => 2,
        [PLANE, MESH] => 3,
        [PLANE, _] => 4,
        [BOX, BOX] => 8,
        _ if !multi => 1,
        [CAPSULE | CYLINDER, _] | [_, CAPSULE | CYLINDER] => 5,
        _ if near => 5,
        _ => 4,
    }
}

/// Radius of a sphere about the geom's centre that holds it; 0 for planes.
fn bound(geom: &Geom) -> f64 {
    let [x, y, z] = geom.size;
    match geom.kind {
        GeomKind::Plane => 0.0,
        GeomKind::Sphere => x,
        GeomKind::Capsule => x + y,
        GeomKind::Ellipsoid => x.max(y).max(z),
        GeomKind::Cylinder => x.hypot(y),
        GeomKind::Box => (x * x + y * y + z * z).sqrt(),
    }
}

/// Writes each geom once, when it is first needed.
pub(super) struct Shapes<'a> {
    context: &'a Context<'a>,
    /// Index among the colliding geoms, for each geom of the model.
    known: Vec<Option<i32>>,
}

impl<'a> Shapes<'a> {
    pub fn new(context: &'a Context) -> Self {
        Self {
            context,
            known: vec![None; context.model.geoms.len()],
        }
    }

    /// Index of the model's geom `g` among the colliding ones.
    pub fn index(&mut self, g: usize, plan: &mut Plan) -> Result<i32, LowerError> {
        if let Some(index) = self.known[g] {
            return Ok(index);
        }
        let model: &Model = self.context.model;
        let geom = &model.geoms[g];
        let pose = self.context.tree.fixed(geom.body, geom.pos, geom.quat);
        let index = plan.cg_type.len() as i32;
        plan.cg_type.push(code(geom.kind));
        plan.cg_body
            .push(self.context.tree.carrier[geom.body].index());
        plan.cg_geom.push(g as i32);
        plan.cg_data.push(-1);
        plan.cg_pos.extend(pose.pos);
        plan.cg_mat.extend(matrix(pose.quat).concat());
        plan.cg_size.extend(geom.size);
        plan.cg_bound.push(bound(geom));
        self.known[g] = Some(index);
        Ok(index)
    }

    /// Writes the assets of the geoms that were needed.
    pub fn finish(self, plan: &mut Plan) {
        plan.mesh_vert.push(0);
        plan.mesh_edge.push(0);
        plan.field_adr.push(0);
    }
}
