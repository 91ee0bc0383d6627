//! Triangle meshes: where a ray meets one, through a tree of boxes.

use super::math::{V3, v3};
use super::shape::Touch;
use super::smooth::shading;
use ostler_sim::model::HField;
use ostler_sim::model::looks::Surface;

/// Triangles in a leaf, at most.
const LEAF: usize = 4;
/// The tree halves its triangles at every node: deeper than any that fits into memory.
const DEPTH: usize = 48;
/// Rows and columns of a height field that are drawn, at most.
const GRID: usize = 512;

/// Triangles in a frame whose origin is the centre of their bounding box.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    triangles: Vec<Triangle>,
    nodes: Vec<Node>,
    /// Texture coordinates of each face's corners; empty where there are none.
    coords: Vec<[[f32; 2]; 3]>,
    /// Half-extents of the bounding box.
    half: V3,
    radius: f32,
}

/// One corner and the edges from it, with the normals that light is computed with.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Triangle {
    corner: V3,
    edges: [V3; 2],
    normals: [V3; 3],
    /// Index into [`Mesh::coords`].
    face: u32,
}

/// A box around triangles: of a leaf `count` from `first` on, else of the nodes that
/// follow and of `first`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Node {
    low: V3,
    high: V3,
    first: u32,
    count: u32,
}

impl Mesh {
    /// The mesh of these vertices and faces, and where its origin is among them. Faces
    /// that are not finite or name no vertex are left out; `None` if none is left.
    pub fn new(vertices: &[[f32; 3]], faces: &[[u32; 3]]) -> Option<(Mesh, V3)> {
        Mesh::with_coords(vertices, faces, |_| None)
    }

    /// The same with a surface's texture coordinates.
    pub fn of(surface: &Surface) -> Option<(Mesh, V3)> {
        let whole = surface.coord_faces.len() == surface.faces.len();
        let point = |i: u32| surface.coords.get(i as usize).copied();
        let at = |face: usize| {
            let corners = surface.coord_faces.get(face).filter(|_| whole)?;
            Some(corners.map(|i| point(i).unwrap_or_default()))
        };
        Mesh::with_coords(&surface.vertices, &surface.faces, at)
    }

    fn with_coords(
        vertices: &[[f32; 3]],
        faces: &[[u32; 3]],
        coords: impl Fn(usize) -> Option<[[f32; 2]; 3]>,
    ) -> Option<(Mesh, V3)> {
        let points: Vec<V3> = vertices.iter().map(|&[x, y, z]| v3(x, y, z)).collect();
        let whole = |face: &[u32; 3]| -> Option<[usize; 3]> {
            let face = face.map(|i| i as usize);
            let sound = |i: &usize| points.get(*i).is_some_and(|p| p.norm() < 1e5);
            face.iter().all(sound).then_some(face)
        };
        let all = faces.iter().enumerate();
        let sound = all.filter_map(|(i, f)| Some((i, whole(f)?)));
        let (numbers, faces): (Vec<usize>, Vec<[usize; 3]>) = sound.unzip();
        let coords: Option<Vec<_>> = numbers.into_iter().map(coords).collect();
        let corners = || faces.iter().flatten().map(|&i| points[i]);
        let first = corners().next()?;
        let (low, high) = corners().fold((first, first), around);
        let centre = (low + high) * 0.5;
        let normals = shading(&points, &faces);
        let mut triangles: Vec<Triangle> = faces
            .iter()
            .zip(normals)
            .zip(0..)
            .map(|((&[a, b, c], normals), face)| Triangle {
                corner: points[a] - centre,
                edges: [points[b] - points[a], points[c] - points[a]],
                normals,
                face,
            })
            .collect();
        let mut nodes = Vec::with_capacity(triangles.len());
        grow(&mut triangles, 0, &mut nodes);
        let half = (high - low) * 0.5;
        let mesh = Mesh {
            triangles,
            nodes,
            coords: coords.unwrap_or_default(),
            half,
            radius: half.norm(),
        };
        Some((mesh, centre))
    }

    /// The upper side of a terrain, of a fine one every so many rows and columns.
    pub fn terrain(field: &HField) -> Option<(Mesh, V3)> {
        let (rows, columns) = (picks(field.nrow), picks(field.ncol));
        let [x, y, top, _] = field.size.map(|s| s as f32);
        let along = |half: f32, i: usize, n: usize| half * (2.0 * i as f32 / (n - 1) as f32 - 1.0);
        let mut vertices = Vec::with_capacity(rows.len() * columns.len());
        for &r in &rows {
            for &c in &columns {
                let height = field.data.get(r * field.ncol + c)?;
                let place = [along(x, c, field.ncol), along(y, r, field.nrow)];
                vertices.push([place[0], place[1], top * height]);
            }
        }
        let wide = columns.len() as u32;
        let mut faces = Vec::with_capacity(2 * vertices.len());
        for r in 1..rows.len() as u32 {
            for c in 1..wide {
                let [a, b] = [(r - 1) * wide + c - 1, r * wide + c - 1];
                faces.extend([[a, a + 1, b + 1], [a, b + 1, b]]);
            }
        }
        Mesh::new(&vertices, &faces)
    }

    /// Half-extents of the bounding box.
    pub fn half(&self) -> V3 {
        self.half
    }

    /// It has texture coordinates.
    pub fn has_coords(&self) -> bool {
        !self.coords.is_empty()
    }

    /// Corners of its triangles, each with the normal that light is computed with and its
    /// texture coordinates, zeros where there are none.
    pub fn corners(&self) -> impl ExactSizeIterator<Item = [(V3, V3, [f32; 2]); 3]> + '_ {
        self.triangles.iter().map(|t| {
            let [e, f] = t.edges;
            let [a, b, c] = t.normals;
            let [u, v, w] = self.coords(t).unwrap_or_default();
            [(t.corner, a, u), (t.corner + e, b, v), (t.corner + f, c, w)]
        })
    }

    fn coords(&self, t: &Triangle) -> Option<[[f32; 2]; 3]> {
        self.coords.get(t.face as usize).copied()
    }

    /// Radius of the sphere around the origin that holds it.
    pub fn radius(&self) -> f32 {
        self.radius
    }

    /// Distance along the ray `o + t d` to the first triangle, of whichever side, and the
    /// unit normal there, on the side that the ray comes from.
    pub fn hit(&self, o: V3, d: V3) -> Option<(f32, V3)> {
        self.touch(o, d).map(|touch| (touch.t, touch.normal))
    }

    /// Whether the ray meets any triangle.
    pub fn blocks(&self, o: V3, d: V3) -> bool {
        self.meet(o, d, true).is_some()
    }

    /// The first triangle on the ray, with the distance to it and the place on it, or `any`.
    fn meet(&self, o: V3, d: V3, any: bool) -> Option<(f32, [f32; 2], &Triangle)> {
        let inverse = d.map(|x| 1.0 / x);
        let mut best: Option<(f32, [f32; 2], &Triangle)> = None;
        // Nodes to look into, each with the distance to its box: the nearer of two comes first.
        let mut stack = [(0_u32, 0.0_f32); DEPTH];
        let mut open = usize::from(self.nodes.first()?.enters(o, inverse).is_some());
        while open > 0 {
            open -= 1;
            let (at, enter) = stack[open];
            if best.is_some_and(|b| enter >= b.0) {
                continue;
            }
            let node = self.nodes[at as usize];
            if node.count > 0 {
                let first = node.first as usize;
                for triangle in &self.triangles[first..first + node.count as usize] {
                    if let Some((t, place)) = triangle.hit(o, d)
                        && best.is_none_or(|b| t < b.0)
                    {
                        best = Some((t, place, triangle));
                    }
                }
                if any && best.is_some() {
                    return best;
                }
                continue;
            }
            let below = [at + 1, node.first];
            let below = below.map(|n| Some((n, self.nodes[n as usize].enters(o, inverse)?)));
            let far_first = match below {
                [Some(a), Some(b)] if a.1 <= b.1 => [below[1], below[0]],
                _ => below,
            };
            for entry in far_first.into_iter().flatten().take(DEPTH - open) {
                stack[open] = entry;
                open += 1;
            }
        }
        best
    }

    /// The same as [`Mesh::hit`], with the texture coordinates there.
    pub fn touch(&self, o: V3, d: V3) -> Option<Touch> {
        let (t, [u, v], triangle) = self.meet(o, d, false)?;
        let [a, b, c] = triangle.normals;
        let normal = (a * (1.0 - u - v) + b * u + c * v).unit();
        let [e, f] = triangle.edges;
        let away = e.cross(f).dot(d) > 0.0;
        let coords = self.coords(triangle).map(|[p, q, r]| {
            let mix = |i: usize| p[i] * (1.0 - u - v) + q[i] * u + r[i] * v;
            let ([a, b], [c, d]) = ([q[0] - p[0], q[1] - p[1]], [r[0] - p[0], r[1] - p[1]]);
            let share = (a * d - b * c).abs() / e.cross(f).norm().max(1e-20);
            ([mix(0), mix(1)], share.sqrt())
        });
        Some(Touch { t, normal: if away { -normal } else { normal }, coords })
    }
}

impl Triangle {
    /// Distance to it, and the place on it in shares of its edges.
    ///
    /// Source: Moeller, Trumbore, "Fast, minimum storage ray-triangle intersection", 1997.
    fn hit(&self, o: V3, d: V3) -> Option<(f32, [f32; 2])> {
        let [e, f] = self.edges;
        let p = d.cross(f);
        let scale = 1.0 / e.dot(p);
        let s = o - self.corner;
        let u = s.dot(p) * scale;
        let q = s.cross(e);
        let v = d.dot(q) * scale;
        let t = f.dot(q) * scale;
        // A little beyond its edges, so that there is no gap to the next one; NaN (a triangle
        // without area) is no hit.
        let inside = u >= -1e-5 && v >= -1e-5 && u + v <= 1.0 + 1e-5;
        (inside && t > 0.0 && t.is_finite()).then_some((t, [u, v]))
    }

    fn centre(&self) -> V3 {
        self.corner + (self.edges[0] + self.edges[1]) * (1.0 / 3.0)
    }
}

impl Node {
    /// Distance to where a ray enters the box, 0 from within; `None` if it misses.
    fn enters(&self, o: V3, inverse: V3) -> Option<f32> {
        let a = (self.low - o).times(inverse);
        let b = (self.high - o).times(inverse);
        // min and max pass over what is not a number: a ray along a side of the box.
        let enter = a.x.min(b.x).max(a.y.min(b.y)).max(a.z.min(b.z)).max(0.0);
        let leave = a.x.max(b.x).min(a.y.max(b.y)).min(a.z.max(b.z));
        (enter <= leave * (1.0 + 1e-5)).then_some(enter)
    }
}

fn around((low, high): (V3, V3), p: V3) -> (V3, V3) {
    (
        v3(low.x.min(p.x), low.y.min(p.y), low.z.min(p.z)),
        v3(high.x.max(p.x), high.y.max(p.y), high.z.max(p.z)),
    )
}

/// Adds the node of `triangles`, which start at `first`, and all below it; sorts them.
fn grow(triangles: &mut [Triangle], first: usize, nodes: &mut Vec<Node>) {
    let Some(one) = triangles.first() else { return };
    let mut bounds = (one.corner, one.corner);
    let mut centres = (one.centre(), one.centre());
    for t in triangles.iter() {
        for p in [t.corner, t.corner + t.edges[0], t.corner + t.edges[1]] {
            bounds = around(bounds, p);
        }
        centres = around(centres, t.centre());
    }
    let (low, high) = bounds;
    let leaf = triangles.len() <= LEAF;
    let me = nodes.len();
    nodes.push(Node {
        low,
        high,
        first: first as u32,
        count: if leaf { triangles.len() as u32 } else { 0 },
    });
    if leaf {
        return;
    }
    let wide = centres.1 - centres.0;
    let key = |t: &Triangle| {
        let c = t.centre();
        if wide.x >= wide.y && wide.x >= wide.z {
            c.x
        } else if wide.y >= wide.z {
            c.y
        } else {
            c.z
        }
    };
    let middle = triangles.len() / 2;
    triangles.select_nth_unstable_by(middle, |a, b| key(a).total_cmp(&key(b)));
    let (before, after) = triangles.split_at_mut(middle);
    grow(before, first, nodes);
    nodes[me].first = nodes.len() as u32;
    grow(after, first + middle, nodes);
}

/// Up to [`GRID`] of `n` rows, evenly, with the first and the last.
fn picks(n: usize) -> Vec<usize> {
    let count = n.min(GRID);
    let last = count.saturating_sub(1).max(1);
    (0..count).map(|k| k * n.saturating_sub(1) / last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ball of many triangles and the ball itself are met at the same places.
    #[test]
    fn rays_meet_a_fine_mesh_where_they_meet_what_it_stands_for() {
        let (n, radius) = (100_u32, 0.5_f32);
        let mut vertices = Vec::new();
        for i in 0..=n {
            let (s, c) = (std::f32::consts::PI * i as f32 / n as f32).sin_cos();
            for j in 0..2 * n {
                let (t, u) = (std::f32::consts::PI * j as f32 / n as f32).sin_cos();
                vertices.push([3.0 + radius * s * u, radius * s * t, radius * c]);
            }
        }
        let mut faces = Vec::new();
        for i in 0..n {
            for j in 0..2 * n {
                let (a, b) = (2 * n * i + j, 2 * n * i + (j + 1) % (2 * n));
                faces.extend([[a, a + 2 * n, b], [b, a + 2 * n, b + 2 * n]]);
            }
        }
        let (mesh, centre) = Mesh::new(&vertices, &faces).unwrap();
        assert!((centre - v3(3.0, 0.0, 0.0)).norm() < 1e-4, "{centre:?}");
        let ball = super::super::shape::Shape::Sphere(radius);
        let (mut met, mut missed) = (0, 0);
        for k in 0..4000_u32 {
            let w = ostler_sim::rng::philox_raw([k, 0, 0, 0], [1, 2]);
            let u = w.map(|x| 2.0 * ostler_sim::rng::unit(x) - 1.0);
            let o = v3(u[0], u[1], u[2]).unit() * 2.0;
            let d = v3(u[3], u[0] * u[1] * 3.0, u[2] * u[3] * 3.0) * 0.4 - o;
            assert_eq!(mesh.blocks(o, d), mesh.hit(o, d).is_some());
            match (ball.hit(o, d), mesh.hit(o, d)) {
                (Some((t, n)), Some((s, m))) => {
                    met += 1;
                    // Grazing rays part by more than the mesh does from the ball.
                    let slack = 0.001 / n.dot(d.unit()).abs().max(0.02);
                    assert!((t - s).abs() * d.norm() < slack, "{t} {s}");
                    assert!((n - m).norm() < 0.05, "{n:?} {m:?}");
                }
                (None, Some((_, m))) => panic!("beside the ball {m:?}"),
                (Some((_, n)), None) => {
                    assert!(n.dot(d.unit()).abs() < 0.05, "through the mesh");
                }
                (None, None) => missed += 1,
            }
        }
        assert!(met > 1000 && missed > 200, "{met} {missed}");
    }

    #[test]
    fn both_sides_are_seen_and_broken_faces_are_not() {
        let nan = f32::NAN;
        let vertices = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [nan, 0.0, 0.0]];
        let faces = [[0, 1, 2], [0, 1, 3], [0, 1, 9], [0, 0, 1]];
        let (mesh, centre) = Mesh::new(&vertices, &faces).unwrap();
        let inside = v3(0.2, 0.2, 0.0) - centre;
        for side in [1.0, -1.0] {
            let up = v3(0.0, 0.0, side);
            let (t, n) = mesh.hit(inside + up * 2.0, -up).unwrap();
            assert!((t - 2.0).abs() < 1e-6 && (n - up).norm() < 1e-6, "{n:?}");
        }
        let beside = v3(0.8, 0.8, 2.0) - centre;
        assert!(mesh.hit(beside, v3(0.0, 0.0, -1.0)).is_none());
        assert!(Mesh::new(&vertices, &[[0, 1, 3]]).is_none());
        assert!(Mesh::new(&[], &[]).is_none());
    }

    #[test]
    fn a_terrain_is_as_high_as_its_field_however_fine() {
        for n in [2, 3, 2000] {
            let field = HField {
                name: "hills".into(),
                nrow: 2,
                ncol: n,
                size: [4.0, 1.0, 0.5, 0.1],
                data: (0..2 * n).map(|k| (k % n) as f32 / (n - 1) as f32).collect(),
            };
            let (mesh, centre) = Mesh::terrain(&field).unwrap();
            for x in [-3.9, -1.0, 2.5] {
                let from = v3(x, 0.3, 3.0) - centre;
                let (t, _) = mesh.hit(from, v3(0.0, 0.0, -1.0)).unwrap();
                let height = 0.5 * (x + 4.0) / 8.0;
                assert!((3.0 - t - height).abs() < 1e-3, "{n} {x}: {}", 3.0 - t);
            }
        }
    }
}
