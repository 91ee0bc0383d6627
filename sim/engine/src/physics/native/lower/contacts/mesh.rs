//! Convex hulls as the narrow phase wants them: vertices, and faces with coplanar
//! triangles merged.

use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{cross, dot, rotate};
use ostler_model::{Mesh, Vec3};
use std::collections::{BTreeMap, BTreeSet};

/// Triangles whose directions round to the same multiples of this azimuth and polar
/// angle (rad), in the frame of the mesh's file, are one face, as in MuJoCo.
const ANGLE: f64 = 0.01;
/// Directions this near the poles have no azimuth.
const POLE: f64 = 1.0 - 1e-7;

/// From this many vertices on a mesh is climbed; of fewer all are looked at. MuJoCo climbs from 10
/// on (`mjMESH_HILLCLIMB_MIN`): below this one the climb's steps take as long.
const CLIMBED: usize = 48;

/// Most vertices of a mesh that tests on all lanes look at.
const CORE: usize = 96;

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
    write_graph(mesh, &vertices, plan);
    write_core(&vertices, plan);
    plan.mesh_vert.push(plan.vert_adr.len() as i32);
    plan.mesh_face.push(plan.face_adr.len() as i32);
    plan.mesh_bound.push(bound(mesh));
    index
}

/// Writes few vertices that nearly have the mesh as their hull, and how far it reaches beyond
/// that: the farthest ones along directions spread evenly over the sphere.
fn write_core(vertices: &[Vec3], plan: &mut RobotTables) {
    let core: BTreeSet<usize> = match vertices.len() <= CORE {
        true => (0..vertices.len()).collect(),
        false => (0..CORE).map(|k| farthest(vertices, spread(k))).collect(),
    };
    let held: Vec<Vec3> = core.iter().map(|i| vertices[*i]).collect();
    let others = (0..vertices.len()).filter(|i| !core.contains(i));
    // A little more, for rounding in single precision.
    let over = others.map(|i| gap(&held, vertices[i])).fold(0.0, f64::max) * 1.0001;
    plan.core_pos.extend(held.iter().flatten());
    plan.mesh_core.push(plan.core_pos.len() as i32 / 3);
    plan.core_over.push(over);
}

/// Direction `k` of [`CORE`] that are spread evenly (Fibonacci's lattice).
fn spread(k: usize) -> Vec3 {
    let z = 1.0 - (2.0 * k as f64 + 1.0) / CORE as f64;
    let (sin, cos) = (k as f64 * std::f64::consts::PI * (3.0 - 5.0_f64.sqrt())).sin_cos();
    let r = (1.0 - z * z).sqrt();
    [r * cos, r * sin, z]
}

fn farthest(vertices: &[Vec3], way: Vec3) -> usize {
    let best = |best: (usize, f64), (i, vertex): (usize, &Vec3)| {
        let along = dot(way, *vertex);
        if along > best.1 { (i, along) } else { best }
    };
    vertices.iter().enumerate().fold((0, f64::MIN), best).0
}

/// At least the distance of `vertex` from the hull of `core`: from a point in the hull, which
/// steps bring nearer (Frank and Wolfe 1956).
fn gap(core: &[Vec3], vertex: Vec3) -> f64 {
    const STEPS: usize = 40;
    let from = |at: Vec3| [0, 1, 2].map(|k| vertex[k] - at[k]);
    let mut at = core[farthest(core, vertex)];
    for _ in 0..STEPS {
        let way = from(at);
        let next = core[farthest(core, way)];
        let step = [0, 1, 2].map(|k| next[k] - at[k]);
        let share = (dot(way, step) / dot(step, step).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        if share == 0.0 {
            break;
        }
        at = [0, 1, 2].map(|k| at[k] + share * step[k]);
    }
    let way = from(at);
    dot(way, way).sqrt()
}

/// Writes which vertices edges of the hull lead to, along which its farthest point is climbed to,
/// and where such a climb begins.
fn write_graph(mesh: &Mesh, vertices: &[Vec3], plan: &mut RobotTables) {
    let climbed = vertices.len() >= CLIMBED;
    plan.mesh_graph.push(if climbed { vertices.len() as i32 } else { 0 });
    let directions = (0..27).map(|k| [k / 9, k / 3 % 3, k % 3].map(|x| f64::from(x) - 1.0));
    plan.mesh_seed.extend(directions.map(|way| {
        let along = |i: usize| dot(way, vertices[i]);
        let first = |best, i| if along(i) > along(best) { i } else { best };
        if climbed { (0..vertices.len()).fold(0, first) as i32 } else { 0 }
    }));
    let mut next = vec![BTreeSet::new(); vertices.len()];
    for &[a, b, c] in mesh.faces.iter().filter(|_| climbed) {
        for [from, to] in [[a, b], [b, c], [c, a]] {
            next[from as usize].insert(to as i32);
            next[to as usize].insert(from as i32);
        }
    }
    for (own, next) in next.into_iter().enumerate() {
        plan.vert_own.push(own as i32);
        plan.vert_link.push(plan.vert_next.len() as i32);
        plan.vert_next.extend(next);
        plan.vert_next.push(-1);
    }
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
    use crate::physics::native::lower::tests::model;

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

    fn empty() -> RobotTables {
        RobotTables {
            mesh_vert: vec![0],
            mesh_face: vec![0],
            mesh_core: vec![0],
            ..RobotTables::default()
        }
    }

    #[test]
    fn two_triangles_of_a_cubes_side_are_one_face() {
        let mut plan = empty();
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

    /// A ball of 200 points: from any vertex the climb ends at the farthest one.
    #[test]
    fn a_hull_is_climbed_to_its_farthest_vertex() {
        let point = |k: usize| {
            let z = 1.0 - (2.0 * k as f64 + 1.0) / 200.0;
            let (sin, cos) = (k as f64 * 2.399_963).sin_cos();
            let r = (1.0 - z * z).sqrt();
            format!("{} {} {z} ", r * cos, 0.6 * r * sin)
        };
        let points: String = (0..200).map(point).collect();
        let text = format!(
            "<asset><mesh name=\"m\" vertex=\"{points}\"/></asset><worldbody><body><freejoint/>\
             <geom type=\"mesh\" mesh=\"m\"/></body></worldbody>"
        );
        let mesh = model(&text).meshes[0].clone();
        let mut plan = empty();
        // Behind another one, to whose tables its own are added.
        write(&cube(), &mut plan);
        write(&mesh, &mut plan);
        assert_eq!((plan.mesh_graph[0], plan.mesh_graph[1]), (0, 200));
        // Fewer of them nearly have its hull: along no direction it reaches farther.
        assert_eq!(plan.mesh_core[..2], [0, 8]);
        let core = &plan.core_pos[24..];
        assert!(core.len() <= 3 * CORE && plan.core_over[0] == 0.0);
        assert!((0.001..0.1).contains(&plan.core_over[1]), "{:?}", plan.core_over);
        for k in 0..CORE {
            let way = spread(k * 31 % CORE).map(|x| x * 0.999);
            let reach = |points: &[f64]| {
                let along = points.chunks(3).map(|p| way[0] * p[0] + way[1] * p[1] + way[2] * p[2]);
                along.fold(f64::MIN, f64::max)
            };
            assert!(reach(&plan.mesh_pos[24..]) <= reach(core) + plan.core_over[1]);
        }
        let at = |v: usize| &plan.mesh_pos[3 * (8 + v)..][..3];
        for k in 0..100 {
            let way = at(k * 7 % 200).to_vec();
            let along = |v: usize| at(v).iter().zip(&way).map(|(a, b)| a * b).sum::<f64>();
            let farthest = (0..200).map(along).fold(f64::MIN, f64::max);
            let mut here = k;
            loop {
                let links = &plan.vert_next[plan.vert_link[8 + here] as usize..];
                let links = links.iter().take_while(|v| **v >= 0).map(|v| *v as usize);
                let best = links.max_by(|a, b| along(*a).total_cmp(&along(*b))).unwrap();
                if along(best) <= along(here) {
                    break;
                }
                here = best;
            }
            assert_eq!(along(here), farthest);
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
