//! Convex hulls as the narrow phase wants them: vertices, and faces with coplanar
//! triangles merged.

use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{cross, dot, rotate};
use ostler_model::{Mesh, Vec3};
use std::collections::BTreeMap;

/// Triangles whose directions round to the same multiples of this azimuth and polar
/// angle (rad), in the frame of the mesh's file, are one face, as in MuJoCo.
const ANGLE: f64 = 0.01;
/// Directions this near the poles have no azimuth.
const POLE: f64 = 1.0 - 1e-7;

/// Radius of the sphere around the mesh's origin.
pub(super) fn bound(mesh: &Mesh) -> f64 {
    let norm = |v: &[f32; 3]| {
        let v = v.map(f64::from);
        dot(v, v).sqrt()
    };
    mesh.vertices.iter().map(norm).fold(0.0, f64::max)
}

/// Half sizes of a box about the mesh's origin, along its axes, that holds it.
pub(super) fn half_sizes(mesh: &Mesh) -> Vec3 {
    let mut half = [0.0_f64; 3];
    for vertex in &mesh.vertices {
        for (half, x) in half.iter_mut().zip(vertex) {
            *half = half.max(f64::from(x.abs()));
        }
    }
    half
}

/// Writes a mesh; its index in the tables.
pub(super) fn write(mesh: &Mesh, plan: &mut RobotTables) -> i32 {
    let index = plan.mesh_bound.len() as i32;
    let vertices: Vec<Vec3> = mesh.vertices.iter().map(|v| v.map(f64::from)).collect();
    let mut meeting = vec![Vec::new(); vertices.len()];
    for (f, corners) in faces(mesh, &vertices).iter().enumerate() {
        for &v in corners {
            meeting[v as usize].push(f as i32);
        }
        plan.face_adr.push(plan.face_vert.len() as i32);
        plan.face_num.push(corners.len() as i32);
        plan.face_vert.extend(corners.iter().map(|v| *v as i32));
        plan.face_normal.extend(normal(corners, &vertices));
    }
    for (vertex, faces) in vertices.iter().zip(&meeting) {
        plan.mesh_pos.extend(vertex);
        plan.vert_adr.push(plan.vert_face.len() as i32);
        plan.vert_num.push(faces.len() as i32);
        plan.vert_face.extend(faces);
    }
    plan.mesh_vert.push(plan.vert_adr.len() as i32);
    plan.mesh_face.push(plan.face_adr.len() as i32);
    plan.mesh_bound.push(bound(mesh));
    index
}

/// Outlines of the hull's faces, counter-clockwise from outside.
fn faces(mesh: &Mesh, vertices: &[Vec3]) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<[i64; 2], Vec<(u32, u32)>> = BTreeMap::new();
    for &[a, b, c] in &mesh.faces {
        let Some(direction) = unit(doubled_area(&[a, b, c], vertices)) else {
            continue;
        };
        let edges = groups.entry(key(rotate(mesh.quat, direction))).or_default();
        for (from, to) in [(a, b), (b, c), (c, a)] {
            // An edge that two triangles of a face share is inside it.
            match edges.iter().position(|e| *e == (to, from)) {
                Some(shared) => {
                    edges.remove(shared);
                }
                None => edges.push((from, to)),
            }
        }
    }
    groups.into_values().flat_map(outlines).collect()
}

/// The direction's azimuth and polar angle in multiples of [`ANGLE`].
fn key([x, y, z]: Vec3) -> [i64; 2] {
    let steps = |angle: f64| (angle / ANGLE).round() as i64;
    if z.abs() > POLE {
        return [0, if z < 0.0 { steps(std::f64::consts::PI) } else { 0 }];
    }
    // A negative zero would turn the azimuth by half a turn.
    [steps((y + 0.0).atan2(x + 0.0)), steps(z.acos())]
}

/// Joins directed edges to closed outlines.
fn outlines(mut edges: Vec<(u32, u32)>) -> Vec<Vec<u32>> {
    let mut closed = Vec::new();
    while !edges.is_empty() {
        let (start, mut end) = edges.remove(0);
        let mut outline = vec![start];
        while end != start {
            outline.push(end);
            let Some(next) = edges.iter().position(|e| e.0 == end) else {
                break;
            };
            end = edges.remove(next).1;
        }
        if end == start && outline.len() > 2 {
            closed.push(outline);
        }
    }
    closed
}

/// Unit normal of an outline (Newell's: the mean over its corners).
fn normal(corners: &[u32], vertices: &[Vec3]) -> Vec3 {
    unit(doubled_area(corners, vertices)).unwrap_or([0.0, 0.0, 1.0])
}

fn doubled_area(corners: &[u32], vertices: &[Vec3]) -> Vec3 {
    let at = |k: usize| vertices[corners[k % corners.len()] as usize];
    let origin = at(0);
    let arm = |k: usize| [0, 1, 2].map(|i| at(k)[i] - origin[i]);
    let mut sum = [0.0; 3];
    for k in 1..corners.len() {
        let part = cross(arm(k), arm(k + 1));
        sum = [0, 1, 2].map(|i| sum[i] + part[i]);
    }
    sum
}

/// A vector's direction, if it has one.
fn unit(v: Vec3) -> Option<Vec3> {
    // The area of a triangle between vertices a micrometre apart.
    const LEAST: f64 = 1e-15;
    let norm = dot(v, v).sqrt();
    (norm >= LEAST && norm.is_finite()).then(|| v.map(|x| x / norm))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cube of two triangles per side, turned in its file's frame.
    fn cube() -> Mesh {
        let sign = |i: usize, bit: usize| if i & bit == 0 { -1.0 } else { 1.0 };
        let quads =
            [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        Mesh {
            name: "cube".to_string(),
            pos: [0.0; 3],
            quat: [0.8, 0.6, 0.0, 0.0],
            vertices: (0..8).map(|i| [sign(i, 1), sign(i, 2), sign(i, 4)]).collect(),
            faces: quads.iter().flat_map(|[a, b, c, d]| [[*a, *b, *c], [*a, *c, *d]]).collect(),
            surface: None,
        }
    }

    #[test]
    fn two_triangles_of_a_cubes_side_are_one_face() {
        let mut plan =
            RobotTables { mesh_vert: vec![0], mesh_face: vec![0], ..RobotTables::default() };
        write(&cube(), &mut plan);
        assert_eq!(write(&cube(), &mut plan), 1);
        assert_eq!((&plan.mesh_vert, &plan.mesh_face), (&vec![0, 8, 16], &vec![0, 6, 12]));
        assert_eq!(plan.face_num, [4; 12]);
        assert_eq!(plan.vert_num, [3; 16]);
        assert!((plan.mesh_bound[0] - 3.0_f64.sqrt()).abs() < 1e-12);
        for f in 0..12 {
            let normal = &plan.face_normal[3 * f..3 * f + 3];
            let corners = &plan.face_vert[plan.face_adr[f] as usize..][..4];
            // Every corner lies on the side, and knows it; all are different.
            for &v in corners {
                let at = &plan.mesh_pos[3 * v as usize..][..3];
                let along: f64 = normal.iter().zip(at).map(|(n, x)| n * x).sum();
                assert!((along - 1.0).abs() < 1e-12, "{normal:?} {at:?}");
                let adr = plan.vert_adr[v as usize] as usize;
                assert!(plan.vert_face[adr..adr + 3].contains(&(f as i32 % 6)));
            }
            let mut sorted = corners.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 4);
        }
    }

    #[test]
    fn corners_run_counter_clockwise_from_outside() {
        let cube = cube();
        let vertices: Vec<Vec3> = cube.vertices.iter().map(|v| v.map(f64::from)).collect();
        for outline in faces(&cube, &vertices) {
            let [a, b, c] = [0, 1, 2].map(|k| vertices[outline[k] as usize]);
            let sub = |x: Vec3, y: Vec3| [0, 1, 2].map(|k| x[k] - y[k]);
            assert!(dot(cross(sub(b, a), sub(c, a)), a) > 0.0, "{outline:?}");
        }
    }

    #[test]
    fn flat_triangles_and_open_edges_make_no_face() {
        let mut mesh = cube();
        mesh.faces.push([0, 0, 1]);
        let vertices: Vec<Vec3> = mesh.vertices.iter().map(|v| v.map(f64::from)).collect();
        assert_eq!(faces(&mesh, &vertices).len(), 6);
        assert!(outlines(vec![(0, 1), (1, 2)]).is_empty());
    }
}
