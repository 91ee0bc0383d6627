//! Distances along rays, as MuJoCo's `rangefinder` measures them (`engine_ray.c`): the shapes that
//! they may meet. The kernels compute the distances (`kernels/env/rays.cuh`).

use crate::expr::checker::Checker;
use crate::expr::dag::{Id, Source};
use crate::expr::readings::{Scan, ScanKind};
use ostler_model::{Geom, GeomKind, Model, rotation};

/// Most triangles of all shapes that a ray may meet: 52 bytes each.
const MOST_TRIANGLES: usize = 1 << 21;

/// The distance from a site along its z axis to the first visible geom that is not of the
/// site's own body; -1 where there is none.
///
/// # Errors
/// Objects that a ray might meet and cannot.
pub(super) fn rangefinder(c: &mut Checker<'_>, site: usize) -> Result<Id, String> {
    let model = c.scope.model;
    let site = &model.sites[site];
    let rays = vec![[site.pos, rotation::rotate(site.quat, [0.0, 0.0, 1.0])]];
    let meets = seen(model, |body| body != site.body)?;
    let scan = Scan { kind: ScanKind::Rays, body: site.body, rays, meets };
    let row = c.scope.readings.scan(scan).ok_or("too many rays for one task")?;
    Ok(c.dag.load(Source::Scan, row))
}

/// The visible geoms of these bodies.
///
/// # Errors
/// Shapes that were not kept, or that have too many triangles.
pub(super) fn seen(model: &Model, of: impl Fn(usize) -> bool) -> Result<Vec<usize>, String> {
    let mut bodies = model.bodies.iter().enumerate().filter(|(b, _)| of(*b));
    if let Some((_, body)) = bodies.find(|(_, body)| body.more_seen) {
        return Err(format!("a shape of \"{}\" that is only seen", body.name));
    }
    let found = |(_, geom): &(usize, &Geom)| of(geom.body) && !geom.unseen;
    let found: Vec<usize> = model.geoms.iter().enumerate().filter(found).map(|(g, _)| g).collect();
    let triangles = |g: &usize| match model.geoms[*g].kind {
        GeomKind::Mesh(i) => model.meshes[i].triangles().len(),
        GeomKind::Hfield(i) => model.hfields[i].triangle_count(),
        _ => 0,
    };
    if found.iter().map(triangles).sum::<usize>() > MOST_TRIANGLES {
        return Err(format!("meshes and height fields of more than {MOST_TRIANGLES} triangles"));
    }
    Ok(found)
}
