//! Geoms that can collide, in the frames of the bodies that carry them.

use super::super::context::Context;
use super::mesh;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::matrix;
use ostler_model::{Geom, GeomKind, HField, Model, ShapePair, on_all_lanes};

/// Farther than anything, in single precision.
pub(super) const EVERYWHERE: f64 = 1e30;

/// The least distance of centres at which a pair has no contact: above a plane that
/// comes first, else squared. Height fields and the shared ground have no bounding sphere.
///
/// A little more, for rounding.
pub(super) fn near(kinds: [GeomKind; 2], bounds: [f64; 2], reach: f64) -> f64 {
    const ROUNDING: f64 = 1.0001;
    match kinds {
        [GeomKind::Plane, _] => (reach + bounds[1]) * ROUNDING,
        [GeomKind::Hfield(_) | GeomKind::Terrain, _]
        | [_, GeomKind::Hfield(_) | GeomKind::Terrain] => EVERYWHERE,
        _ => (bounds[0] + bounds[1] + reach).powi(2) * ROUNDING,
    }
}

/// Radius of a sphere about the geom's centre that holds it; 0 for planes.
pub(super) fn bound(model: &Model, geom: &Geom) -> f64 {
    let [x, y, z] = geom.size;
    match geom.kind {
        GeomKind::Mesh(i) => mesh::bound(&model.meshes[i]),
        GeomKind::Hfield(i) => {
            let [x, y, top, base] = model.hfields[i].size;
            norm(&[x, y, top.max(base)])
        }
        GeomKind::Plane | GeomKind::Terrain => 0.0,
        GeomKind::Sphere => x,
        GeomKind::Capsule => x + y,
        GeomKind::Ellipsoid => x.max(y).max(z),
        GeomKind::Cylinder => x.hypot(y),
        GeomKind::Box => norm(&[x, y, z]),
    }
}

/// Half sizes of a box about the geom's centre, along its axes, that holds it.
pub(super) fn half_sizes(model: &Model, geom: &Geom) -> [f64; 3] {
    let [x, y, z] = geom.size;
    match geom.kind {
        GeomKind::Mesh(i) => mesh::half_sizes(&model.meshes[i]),
        GeomKind::Hfield(i) => {
            let [x, y, top, base] = model.hfields[i].size;
            [x, y, top.max(base)]
        }
        GeomKind::Plane | GeomKind::Terrain => [0.0; 3],
        GeomKind::Sphere => [x; 3],
        GeomKind::Capsule => [x, x, x + y],
        GeomKind::Cylinder => [x, x, y],
        GeomKind::Ellipsoid | GeomKind::Box => [x, y, z],
    }
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Writes each geom once, when it is first needed, and each mesh and height field.
pub(super) struct Shapes<'a> {
    context: &'a Context<'a>,
    /// Index among the colliding geoms, for each geom of the model.
    geoms: Vec<Option<i32>>,
    /// Index among the written meshes, for each mesh of the model.
    meshes: Vec<Option<i32>>,
    hfields: Vec<Option<i32>>,
}

impl<'a> Shapes<'a> {
    pub(crate) fn new(context: &'a Context, plan: &mut RobotTables) -> Self {
        plan.mesh_vert.push(0);
        plan.mesh_face.push(0);
        plan.mesh_core.push(0);
        plan.field_adr.push(0);
        let model = context.model;
        Self {
            context,
            geoms: vec![None; model.geoms.len()],
            meshes: vec![None; model.meshes.len()],
            hfields: vec![None; model.hfields.len()],
        }
    }

    /// Index of the model's geom `g` among the colliding ones.
    pub(crate) fn index(&mut self, g: usize, plan: &mut RobotTables) -> i32 {
        if let Some(index) = self.geoms[g] {
            return index;
        }
        let model: &Model = self.context.model;
        let geom = &model.geoms[g];
        let data = match geom.kind {
            GeomKind::Mesh(i) => {
                *self.meshes[i].get_or_insert_with(|| mesh::write(&model.meshes[i], plan))
            }
            GeomKind::Hfield(i) => {
                *self.hfields[i].get_or_insert_with(|| write_hfield(&model.hfields[i], plan))
            }
            _ => -1,
        };
        let pose = self.context.tree.fixed(geom.body, geom.pos, geom.quat);
        let index = plan.cg_type.len() as i32;
        plan.cg_type.push(geom.kind.code() as i32);
        plan.cg_body.push(self.context.tree.carrier[geom.body].index());
        plan.cg_geom.push(g as i32);
        plan.cg_data.push(data);
        plan.cg_pos.extend(pose.pos);
        plan.cg_mat.extend(matrix(pose.quat).concat());
        plan.cg_size.extend(geom.size);
        plan.cg_bound.push(bound(model, geom));
        plan.cg_half.extend(half_sizes(model, geom));
        plan.ngrid += usize::from(matches!(geom.kind, GeomKind::Hfield(_) | GeomKind::Terrain));
        plan.nhull += usize::from(matches!(geom.kind, GeomKind::Mesh(_)));
        // Spheres, capsules and planes need their third axis alone.
        let round = on_all_lanes(ShapePair::new([geom.kind; 2]).code());
        let brick = if round { -1 } else { plan.nbrick as i32 };
        plan.cg_brick.push(brick);
        plan.nbrick += usize::from(!round);
        self.geoms[g] = Some(index);
        index
    }
}

fn write_hfield(field: &HField, plan: &mut RobotTables) -> i32 {
    let index = plan.field_rows.len() as i32;
    plan.field_rows.push(field.nrow as i32);
    plan.field_cols.push(field.ncol as i32);
    plan.field_size.extend(field.size);
    plan.field_data.extend(field.data.iter().map(|h| f64::from(*h)));
    plan.field_adr.push(plan.field_data.len() as i32);
    index
}

#[cfg(test)]
mod tests {
    use ostler_model::{GeomKind, ShapePair, WORDS};
    use std::collections::HashSet;

    unsafe extern "C" {
        fn ostler_most_hits_f32(kind: i32) -> i32;
    }

    fn pairs() -> impl Iterator<Item = ShapePair> {
        let others = |(i, a): (usize, &'static (&str, GeomKind))| {
            WORDS[i..].iter().map(move |b| ShapePair::new([b.1, a.1]))
        };
        WORDS.iter().enumerate().flat_map(others)
    }

    #[test]
    fn kernels_and_model_count_alike() {
        // SAFETY: it takes a number and gives one.
        let kernels = |kind: i32| unsafe { ostler_most_hits_f32(kind) };
        assert_eq!(kernels(-1), WORDS.len() as i32);
        let mut seen = HashSet::new();
        for pair in pairs() {
            assert!(seen.insert(pair.code()), "{pair:?}");
            assert_eq!(kernels(pair.code()), pair.hits() as i32, "{pair:?}");
        }
        let count = WORDS.len();
        assert_eq!(seen.len(), count * (count + 1) / 2);
        for (i, (word, kind)) in WORDS.iter().enumerate() {
            assert_eq!(kind.code(), i, "{word}");
        }
    }
}
