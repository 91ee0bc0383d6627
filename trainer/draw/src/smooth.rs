//! Normals of a mesh that light is computed with: smooth where its surface is.

use super::math::{V3, v3};

/// Faces that meet at less than this angle are drawn as one smooth surface (cosine).
const SMOOTH: f32 = 0.8;
/// Faces around a vertex that are looked at for this; a fan of more stays flat.
const FAN: usize = 64;

/// Normals at the corners of each face: the mean over the faces around the corner that
/// go on smoothly, by their areas.
pub fn shading(points: &[V3], faces: &[[usize; 3]]) -> Vec<[V3; 3]> {
    let area: Vec<V3> = faces
        .iter()
        .map(|&[a, b, c]| (points[b] - points[a]).cross(points[c] - points[a]))
        .collect();
    // Faces of each vertex, one vertex after the other.
    let mut ends = vec![0_usize; points.len() + 1];
    for &i in faces.iter().flatten() {
        ends[i + 1] += 1;
    }
    for i in 1..ends.len() {
        ends[i] += ends[i - 1];
    }
    let mut next = ends.clone();
    let mut of = vec![0_usize; 3 * faces.len()];
    for (f, face) in faces.iter().enumerate() {
        for &i in face {
            of[next[i]] = f;
            next[i] += 1;
        }
    }
    let units: Vec<V3> = area.iter().map(|n| n.unit()).collect();
    let at = |f: usize, vertex: usize| {
        let fan = &of[ends[vertex]..ends[vertex + 1]];
        if fan.len() > FAN {
            return units[f];
        }
        let smooth = fan.iter().filter(|&&g| units[g].dot(units[f]) > SMOOTH);
        let sum = smooth.fold(v3(0.0, 0.0, 0.0), |sum, &g| sum + area[g]);
        if sum.norm() > 0.0 { sum.unit() } else { units[f] }
    };
    let corners = faces.iter().enumerate();
    corners.map(|(f, face)| face.map(|i| at(f, i))).collect()
}
