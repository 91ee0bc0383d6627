//! A surface of triangles as a solid: hull, volume, inertia, its own frame.

use super::coords::Coords;
use super::hull::convex_hull;
use crate::mjcf::inertia::{MESH, eigen};
use crate::rotation::{Pose, add, conjugate, cross, dot, rotate};
use crate::{GeomKind, Quat, Vec3, looks};
use std::sync::Arc;

/// Vertices and triangles as a file gives them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Surface {
    pub vertices: Vec<[f32; 3]>,
    /// Indices of vertices; empty: the convex hull's.
    pub faces: Vec<[usize; 3]>,
    /// Texture coordinates, if they were asked for.
    pub coords: Coords,
}

/// `mesh/inertia`: the volume or shell that has the mass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filling {
    /// The convex hull.
    Convex,
    /// The inside of a closed surface.
    Exact,
    /// As exact, with cones from the centre to every face counted as positive.
    Legacy,
    /// The surface itself.
    Shell,
}

/// How a mesh's vertices become the solid's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placing {
    pub refpos: Vec3,
    pub refquat: Quat,
    pub scale: Vec3,
}

impl Placing {
    /// The vertices where the asset places them.
    ///
    /// # Errors
    /// Numbers that are not finite, faces without vertices.
    fn points(&self, surface: &Surface) -> Result<Vec<Vec3>, String> {
        if surface.vertices.iter().flatten().any(|x| !x.is_finite()) {
            return Err("a vertex is not finite".into());
        }
        let count = surface.vertices.len();
        if surface.faces.iter().flatten().any(|i| *i >= count) {
            return Err(format!("a face names a vertex beyond the {count} there are"));
        }
        let placed = surface.vertices.iter().map(|v| {
            let moved = minus(v.map(f64::from), self.refpos);
            let turned = rotate(conjugate(self.refquat), moved);
            [0, 1, 2].map(|i| turned[i] * self.scale[i])
        });
        Ok(placed.collect())
    }

    /// The faces, their outer sides still outside.
    fn faces(&self, faces: &[[usize; 3]]) -> Vec<[usize; 3]> {
        match self.scale.iter().product::<f64>() < 0.0 {
            true => faces.iter().map(|[a, b, c]| [*a, *c, *b]).collect(),
            false => faces.to_vec(),
        }
    }

    /// The part of a surface that is drawn; of one without faces the convex hull.
    ///
    /// # Errors
    /// Numbers that are not finite, faces without vertices, nothing to draw.
    pub(crate) fn triangles(&self, surface: Surface) -> Result<looks::Surface, String> {
        let points = self.points(&surface)?;
        let faces = match &surface.faces[..] {
            [] => convex_hull(&points)?,
            faces => self.faces(faces),
        };
        let Coords { points: at, .. } = surface.coords;
        let coords = match &surface.coords.faces[..] {
            _ if at.is_empty() => Vec::new(),
            [] => faces.clone(),
            coords => self.faces(coords),
        };
        let small = |f: &[usize; 3]| f.map(|i| i as u32);
        Ok(looks::Surface {
            name: String::new(),
            vertices: points.iter().map(|p| p.map(|x| x as f32)).collect(),
            faces: faces.iter().map(small).collect(),
            coords: at,
            coord_faces: coords.iter().map(small).collect(),
        })
    }
}

/// A mesh about its centre of mass, along its principal axes.
#[derive(Debug, Clone)]
pub(crate) struct Solid {
    /// Frame of the solid in the frame of the file's (placed) vertices.
    pub frame: Pose,
    /// Corners and triangles of the convex hull.
    pub vertices: Vec<[f32; 3]>,
    pub faces: Vec<[u32; 3]>,
    /// The file's own triangles.
    pub surface: Option<Arc<looks::Surface>>,
    /// Bounding box, lowest and highest corner (m).
    pub bounds: [Vec3; 2],
    /// Half-extents of the box with the same mass and inertia (m).
    pub inertia_box: Vec3,
    /// Volume (m^3), or area of shells (m^2).
    pub volume: f64,
}

/// Tetrahedra from `apex` to each face: volume and corners; of shells the areas.
fn parts<'a>(
    points: &'a [Vec3],
    faces: &'a [[usize; 3]],
    filling: Filling,
    apex: Vec3,
) -> impl Iterator<Item = (f64, [Vec3; 3])> + 'a {
    faces.iter().map(move |f| {
        let [a, b, c] = f.map(|i| minus(points[i], apex));
        let normal = cross(minus(b, a), minus(c, a));
        let volume = match filling {
            Filling::Shell => 0.5 * dot(normal, normal).sqrt(),
            Filling::Legacy => (dot(a, normal) / 6.0).abs(),
            Filling::Convex | Filling::Exact => dot(a, normal) / 6.0,
        };
        (volume, [a, b, c])
    })
}

fn minus(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The smallest volume or area that counts.
const LEAST: f64 = 1e-15;

impl Solid {
    /// Source of the rule for inside, and of the frame: MuJoCo, XML reference,
    /// asset/mesh.
    ///
    /// # Errors
    /// Numbers that are not finite, faces without vertices, no volume.
    pub(super) fn new(
        surface: &Surface,
        placing: Placing,
        filling: Filling,
    ) -> Result<Self, String> {
        let mut points = placing.points(surface)?;
        let hull = convex_hull(&points)?;
        let faces: Vec<[usize; 3]> = match (filling, &surface.faces[..]) {
            (Filling::Convex, _) | (_, []) => hull.clone(),
            (_, faces) => placing.faces(faces),
        };
        if filling == Filling::Exact && inconsistent(&points, &faces) {
            return Err("neighbouring faces look to different sides; correct the mesh, or use \
                        inertia=\"convex\""
                .into());
        }
        let centre = centre_of_mass(&points, &faces, filling)?;
        for p in &mut points {
            *p = minus(*p, centre);
        }
        let (axes, inertia_box, volume) = principal(&points, &faces, filling)?;
        for p in &mut points {
            *p = rotate(conjugate(axes), *p);
        }
        let own = (!surface.faces.is_empty()).then(|| {
            let vertices = points.iter().map(|p| p.map(|x| x as f32)).collect();
            let faces = placing.faces(&surface.faces);
            let faces = faces.iter().map(|f| f.map(|i| i as u32)).collect();
            Arc::new(looks::Surface { vertices, faces, ..looks::Surface::default() })
        });
        let mut used = vec![u32::MAX; points.len()];
        let mut vertices = Vec::new();
        let faces = hull
            .iter()
            .map(|f| {
                f.map(|i| {
                    if used[i] == u32::MAX {
                        used[i] = vertices.len() as u32;
                        vertices.push(points[i].map(|x| x as f32));
                    }
                    used[i]
                })
            })
            .collect();
        let mut bounds = [[f64::MAX; 3], [f64::MIN; 3]];
        for p in &points {
            for i in 0..3 {
                bounds[0][i] = bounds[0][i].min(p[i]);
                bounds[1][i] = bounds[1][i].max(p[i]);
            }
        }
        Ok(Self {
            frame: Pose { pos: centre, quat: axes },
            vertices,
            faces,
            surface: own,
            bounds,
            inertia_box,
            volume,
        })
    }

    /// Size of the primitive that stands for the solid, and its centre: with the same
    /// inertia, or with `aabb` the least whose bounding box holds the solid's.
    pub(crate) fn fit(&self, kind: GeomKind, aabb: bool, scale: f64) -> (Vec3, Vec3) {
        let [low, high] = self.bounds;
        let centre = [0, 1, 2].map(|i| 0.5 * (low[i] + high[i]));
        let [a, b, c] = if aabb { minus(high, centre) } else { self.inertia_box };
        let size = match (kind, aabb) {
            (GeomKind::Sphere, false) => [(a + b + c) / 3.0, 0.0, 0.0],
            (GeomKind::Sphere, true) => [a.max(b).max(c), 0.0, 0.0],
            (GeomKind::Capsule, false) => {
                let radius = 0.5 * (a + b);
                [radius, (c - 0.5 * radius).max(0.0), 0.0]
            }
            (GeomKind::Capsule, true) => [a.max(b), c - a.max(b), 0.0],
            (GeomKind::Cylinder, false) => [0.5 * (a + b), c, 0.0],
            (GeomKind::Cylinder, true) => [a.max(b), c, 0.0],
            (
                GeomKind::Plane
                | GeomKind::Hfield(_)
                | GeomKind::Terrain
                | GeomKind::Ellipsoid
                | GeomKind::Box
                | GeomKind::Mesh(_),
                _,
            ) => [a, b, c],
        };
        (size.map(|s| s * scale), if aabb { centre } else { [0.0; 3] })
    }
}

/// Some edge is run through twice in the same direction.
fn inconsistent(points: &[Vec3], faces: &[[usize; 3]]) -> bool {
    let mut edges: Vec<(usize, usize)> = faces
        .iter()
        .filter(|f| {
            let [a, b, c] = f.map(|i| points[i]);
            let n = cross(minus(b, a), minus(c, a));
            0.5 * dot(n, n).sqrt() > LEAST.sqrt()
        })
        .flat_map(|[a, b, c]| [(*a, *b), (*b, *c), (*c, *a)])
        .collect();
    edges.sort_unstable();
    edges.windows(2).any(|w| w[0] == w[1])
}

fn centre_of_mass(points: &[Vec3], faces: &[[usize; 3]], filling: Filling) -> Result<Vec3, String> {
    let weighted = |filling, apex: Vec3, part: f64| {
        let (mut sum, mut total) = ([0.0; 3], 0.0);
        for (volume, [a, b, c]) in parts(points, faces, filling, apex) {
            // Centres of faces, or of the cones over them.
            let centre = add(add(a, b), c).map(|x| part * x / 3.0);
            sum = add(sum, centre.map(|x| volume * x));
            total += volume;
        }
        (add(sum.map(|x| x / total), apex), total)
    };
    let (middle, area) = weighted(Filling::Shell, [0.0; 3], 1.0);
    if area.is_nan() || area < LEAST {
        return Err("the surface has no area".into());
    }
    // MuJoCo moves shells' centres like those of cones too.
    let (centre, volume) = weighted(filling, middle, 0.75);
    match (volume, filling) {
        (v, _) if v >= LEAST => Ok(centre),
        (v, _) if v < 0.0 => Err("the volume is negative: faces look inwards".into()),
        _ => Err("there is no volume; try inertia=\"shell\"".into()),
    }
}

/// Principal axes, largest moment first, the box of equal inertia, and the volume as
/// seen from the centre (of legacy meshes it differs with the point of view).
fn principal(
    points: &[Vec3],
    faces: &[[usize; 3]],
    filling: Filling,
) -> Result<(Quat, Vec3, f64), String> {
    let mut spread = [[0.0; 3]; 3];
    let mut total = 0.0;
    let share = if filling == Filling::Shell { 12.0 } else { 20.0 };
    for (volume, [a, b, c]) in parts(points, faces, filling, [0.0; 3]) {
        total += volume;
        let sum = add(add(a, b), c);
        for i in 0..3 {
            for j in 0..3 {
                let own = a[i] * a[j] + b[i] * b[j] + c[i] * c[j];
                spread[i][j] += volume / share * (own + sum[i] * sum[j]);
            }
        }
    }
    let trace = spread[0][0] + spread[1][1] + spread[2][2];
    let tensor =
        [0, 1, 2].map(|i| [0, 1, 2].map(|j| if i == j { trace } else { 0.0 } - spread[i][j]));
    let (axes, [x, y, z]) = eigen(tensor, MESH)?;
    let sides = [y + z - x, x + z - y, x + y - z];
    let slack = -1e-6 * x - 1e-9;
    if z <= 0.0 || sides.iter().any(|s| *s < slack) {
        return Err("no rigid body can have this inertia; correct the faces, or use \
                    inertia=\"convex\""
            .into());
    }
    let half = sides.map(|s| 0.5 * (6.0 * s.max(0.0) / total).sqrt());
    Ok((axes, half, total))
}
