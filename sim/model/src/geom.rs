//! Geoms, what they are made of, and pairs of them.

use super::rotation::{Pose, conjugate, dot, rotate};
use super::{GeomKind, Model, Quat, Vec3, looks};
use std::sync::Arc;

/// A collision (and visual) shape fixed to a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Geom {
    /// Name; `geomK` where the file gives none.
    pub name: String,
    /// Shape.
    pub kind: GeomKind,
    /// The body it is fixed to.
    pub body: usize,
    /// Position in the body's frame (m).
    pub pos: Vec3,
    /// Orientation in the body's frame.
    pub quat: Quat,
    /// Shape's size (m), see [`GeomKind`].
    pub size: Vec3,
    /// Collision bits this geom has.
    pub contype: u32,
    /// Collision bits this geom accepts.
    pub conaffinity: u32,
    /// Dimension of its contacts: 1, 3, 4 or 6.
    pub condim: u32,
    /// Sliding, torsional (m) and rolling (m) friction.
    pub friction: Vec3,
    /// Contact priority.
    pub priority: i32,
    /// Weight in mixing of solver parameters.
    pub solmix: f64,
    /// Contact reference.
    pub solref: [f64; 2],
    /// Contact impedance.
    pub solimp: [f64; 5],
    /// Distance at which a contact is made (m).
    pub margin: f64,
    /// Part of the margin without force (m).
    pub gap: f64,
    /// Adhesive force of a contact (N).
    pub adhesion: f64,
    /// Fluid forces on the equivalent ellipsoid (`fluidshape="ellipsoid"`): MuJoCo's
    /// `geom_fluid`: blunt drag, slender drag, angular drag, Kutta lift and Magnus
    /// lift coefficients, virtual mass per density (m^3) and virtual moment of
    /// inertia per density (m^5). `None`: the body's inertia box feels the fluid.
    pub fluid: Option<[f64; 11]>,
    /// Visualisation group.
    pub group: i32,
    /// Colour.
    pub rgba: [f32; 4],
    /// It is not seen, by its material if it has one, else by its own colour: rays pass.
    pub unseen: bool,
}

impl Geom {
    /// The greatest product of `direction` with a point of the shape, which has the pose `pose`;
    /// infinite below 0 for ground, which has no end.
    pub fn reach(&self, model: &Model, pose: Pose, direction: Vec3) -> f64 {
        let [x, y, z] = rotate(conjugate(pose.quat), direction);
        let [a, b, c] = self.size;
        let length = |v: Vec3| dot(v, v).sqrt();
        let own = match self.kind {
            GeomKind::Sphere => a * length(direction),
            GeomKind::Capsule => a * length(direction) + b * z.abs(),
            GeomKind::Cylinder => a * x.hypot(y) + b * z.abs(),
            GeomKind::Ellipsoid => length([a * x, b * y, c * z]),
            GeomKind::Box => (a * x).abs() + (b * y).abs() + (c * z).abs(),
            GeomKind::Mesh(mesh) => {
                let corners = model.meshes[mesh].vertices.iter();
                let along = corners.map(|p| dot(p.map(f64::from), [x, y, z]));
                along.fold(f64::NEG_INFINITY, f64::max)
            }
            GeomKind::Plane | GeomKind::Hfield(_) | GeomKind::Terrain => f64::NEG_INFINITY,
        };
        dot(pose.pos, direction) + own
    }
}

/// A convex body given by its corners, in its own frame: the centre of mass is
/// the origin, the principal axes of inertia are the axes (MuJoCo's centring).
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    /// Name; the file's stem where the file gives none.
    pub name: String,
    /// Position of the mesh's frame in the frame the file's vertices are given in (m).
    pub pos: Vec3,
    /// Orientation of the mesh's frame in the frame of the file's vertices.
    pub quat: Quat,
    /// Vertices of the convex hull (m); float32 as MuJoCo keeps them.
    pub vertices: Vec<[f32; 3]>,
    /// Triangles of the convex hull, indices into `vertices`, counter-clockwise
    /// seen from outside.
    pub faces: Vec<[u32; 3]>,
    /// The file's own triangles, in the mesh's frame, which rays meet; none: the hull's.
    pub surface: Option<Arc<looks::Surface>>,
}

impl Mesh {
    /// The corners of the triangles that rays meet (m).
    pub fn triangles(&self) -> impl ExactSizeIterator<Item = [[f32; 3]; 3]> + '_ {
        let (vertices, faces) = match &self.surface {
            Some(surface) => (&surface.vertices, &surface.faces),
            None => (&self.vertices, &self.faces),
        };
        faces.iter().map(|f| f.map(|i| vertices[i as usize]))
    }
}

/// A terrain over a rectangle: x grows with the column, y with the row.
#[derive(Debug, Clone, PartialEq)]
pub struct HField {
    /// Name.
    pub name: String,
    /// Number of rows (y).
    pub nrow: usize,
    /// Number of columns (x).
    pub ncol: usize,
    /// Half-extents x and y, greatest height and depth of the base below z = 0 (m).
    pub size: [f64; 4],
    /// Heights in 0..1, row by row `(nrow ncol)`, the row of least y first; 1 is
    /// `size[2]`.
    pub data: Vec<f32>,
}

impl HField {
    /// How many [`HField::triangles`] there are.
    pub fn triangle_count(&self) -> usize {
        2 * (self.nrow + 1) * (self.ncol + 1) + 4
    }

    /// The corners of the triangles that rays meet (m): of the top, of the walls at its ends, and
    /// of the base, whose upper side at z = 0 is one, too. As `mj_rayHfield` has them.
    pub fn triangles(&self) -> impl Iterator<Item = [[f32; 3]; 3]> + '_ {
        let [x, y, top, base] = self.size;
        let (columns, rows) = (self.ncol.saturating_sub(1), self.nrow.saturating_sub(1));
        let place =
            |k: usize, count: usize, half: f64| half * (2.0 * k as f64 / count as f64 - 1.0);
        let at = move |c: usize, r: usize, z: f64| [place(c, columns, x), place(r, rows, y), z];
        let height = move |c: usize, r: usize| f64::from(self.data[r * self.ncol + c]) * top;
        let on = move |c: usize, r: usize| at(c, r, height(c, r));
        let cells = (0..rows).flat_map(move |r| (0..columns).map(move |c| (c, r)));
        let tops = cells.flat_map(move |(c, r)| {
            let [least, most] = [on(c, r), on(c + 1, r + 1)];
            [[least, most, on(c + 1, r)], [least, most, on(c, r + 1)]]
        });
        let quad = |[a, b, c, d]: [Vec3; 4]| [[a, b, c], [a, c, d]];
        let along =
            [0, rows].into_iter().flat_map(move |r| (0..columns).map(move |c| [c, r, c + 1, r]));
        let across =
            [0, columns].into_iter().flat_map(move |c| (0..rows).map(move |r| [c, r, c, r + 1]));
        let walls = along.chain(across).flat_map(move |[c, r, next_c, next_r]| {
            quad([at(c, r, 0.0), at(next_c, next_r, 0.0), on(next_c, next_r), on(c, r)])
        });
        let corner = move |i: usize| {
            at(columns * (i & 1), rows * (i >> 1 & 1), if i & 4 == 0 { 0.0 } else { -base })
        };
        const SIDES: [[usize; 4]; 6] =
            [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]];
        let bottom = SIDES.into_iter().flat_map(move |side| quad(side.map(corner)));
        tops.chain(walls).chain(bottom).map(|t| t.map(|p| p.map(|x| x as f32)))
    }
}

/// Two geoms that collide whatever their bits say, with parameters of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Geom whose body comes first.
    pub geom1: usize,
    /// The other geom.
    pub geom2: usize,
    /// Dimension of the contacts: 1, 3, 4 or 6.
    pub condim: u32,
    /// Two sliding, one torsional (m) and two rolling (m) coefficients.
    pub friction: [f64; 5],
    /// Contact reference, normal direction.
    pub solref: [f64; 2],
    /// Contact reference of the friction directions; zeros: as `solref`.
    pub solref_friction: [f64; 2],
    /// Contact impedance.
    pub solimp: [f64; 5],
    /// Distance at which a contact is made (m).
    pub margin: f64,
    /// Part of the margin without force (m).
    pub gap: f64,
    /// Adhesive force of a contact (N).
    pub adhesion: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_as_many_triangles_as_it_counts() {
        for [nrow, ncol] in [[2, 2], [2, 7], [5, 3]] {
            let data = vec![0.5; nrow * ncol];
            let field = HField { name: String::new(), nrow, ncol, size: [1.0; 4], data };
            assert_eq!(field.triangles().count(), field.triangle_count());
        }
    }
}
