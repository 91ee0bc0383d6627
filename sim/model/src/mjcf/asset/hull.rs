//! Convex hulls by quickhull, in double precision.
//!
//! Source: Barber, Dobkin, Huhdanpaa, "The quickhull algorithm for convex hulls",
//! 1996. Faces are triangles; points within a tolerance of the hull are not corners.

use crate::Vec3;
use crate::rotation::{cross, dot};
use std::collections::BTreeMap;

/// Most comparisons of points with faces. Points may lie so that each costs as much as all
/// before it.
const MAX_LOOKS: usize = 400_000_000;
/// Most faces that are made for each point, and beside; a point on a sphere makes six.
const MAX_FACES: (usize, usize) = (16, 10_000);
const TOO_MUCH: &str = "the convex hull takes too long; simplify the mesh";

/// Work that may still be done.
struct Budget {
    looks: usize,
    faces: usize,
}

impl Budget {
    fn take(&mut self, looks: usize, faces: usize) -> Result<(), Stop> {
        let left = |from: usize, what: usize| from.checked_sub(what).ok_or(Stop::TooMuch);
        self.looks = left(self.looks, looks)?;
        self.faces = left(self.faces, faces)?;
        Ok(())
    }
}

/// Why there is no hull.
enum Stop {
    /// Rounding at this tolerance gives no closed surface.
    Inconsistent,
    TooMuch,
}

/// Triangles of a hull, indices into the points, counter-clockwise from outside.
pub(super) type Triangles = Vec<[usize; 3]>;

struct Face {
    corners: [usize; 3],
    /// Face across the edge from corner i to corner i + 1.
    across: [usize; 3],
    normal: Vec3,
    offset: f64,
    /// Points above the face, and the highest of them with its height.
    outside: Vec<usize>,
    top: Option<(usize, f64)>,
    alive: bool,
}

impl Face {
    fn new(points: &[Vec3], corners: [usize; 3]) -> Option<Self> {
        let [a, b, c] = corners.map(|i| points[i]);
        let normal = cross(sub(b, a), sub(c, a));
        let length = dot(normal, normal).sqrt();
        if length <= f64::MIN_POSITIVE {
            return None;
        }
        let normal = normal.map(|x| x / length);
        Some(Self {
            corners,
            across: [usize::MAX; 3],
            normal,
            // The mean of the corners loses least for slivers.
            offset: (dot(normal, a) + dot(normal, b) + dot(normal, c)) / 3.0,
            outside: Vec::new(),
            top: None,
            alive: true,
        })
    }

    fn height(&self, p: Vec3) -> f64 {
        dot(self.normal, p) - self.offset
    }

    fn take(&mut self, i: usize, height: f64) {
        if self.top.is_none_or(|(_, h)| height > h) {
            self.top = Some((i, height));
        }
        self.outside.push(i);
    }
}

fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The convex hull of finite points.
///
/// # Errors
/// The points do not span a volume, or no hull is found.
pub(super) fn convex_hull(points: &[Vec3]) -> Result<Triangles, &'static str> {
    let mut scale = 0.0_f64;
    for axis in 0..3 {
        let low = points.iter().map(|p| p[axis]).fold(f64::MAX, f64::min);
        let high = points.iter().map(|p| p[axis]).fold(f64::MIN, f64::max);
        scale = scale.max(high - low);
    }
    let budget = Budget { looks: MAX_LOOKS, faces: MAX_FACES.0 * points.len() + MAX_FACES.1 };
    hull_within(points, scale, budget)
}

fn hull_within(points: &[Vec3], scale: f64, mut budget: Budget) -> Result<Triangles, &'static str> {
    // Rounding can make what is visible from a point inconsistent: a coarser
    // tolerance removes the slivers that cause it.
    let mut search = |points: &[Vec3]| -> Result<Option<Triangles>, &'static str> {
        let start = simplex(points, scale)?;
        let mut tolerance = 1e-14 * scale;
        for _ in 0..8 {
            match quickhull(points, start, tolerance, &mut budget) {
                Ok(triangles) => return Ok(Some(triangles)),
                Err(Stop::TooMuch) => return Err(TOO_MUCH),
                Err(Stop::Inconsistent) => tolerance *= 10.0,
            }
        }
        Ok(None)
    };
    if let Some(triangles) = search(points)? {
        return Ok(triangles);
    }
    // The reflection's faces are found in another order, and with other slivers.
    let reflection: Vec<Vec3> = points.iter().map(|[x, y, z]| [*x, *y, -z]).collect();
    match search(&reflection)? {
        Some(triangles) => Ok(triangles.into_iter().map(|[a, b, c]| [a, c, b]).collect()),
        None => Err("the convex hull cannot be computed; simplify the mesh"),
    }
}

/// Four points far apart.
fn simplex(points: &[Vec3], scale: f64) -> Result<[usize; 4], &'static str> {
    let farthest = |measure: &dyn Fn(Vec3) -> f64| {
        let heights = points.iter().map(|p| measure(*p)).enumerate();
        heights.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let least = 1e-12 * scale;
    let far =
        |found: Option<(usize, f64)>, why| found.filter(|f| f.1 > least).map(|f| f.0).ok_or(why);
    let origin = *points.first().ok_or("there are no vertices")?;
    let same = "all vertices are at one point; use a small sphere instead";
    let a = far(farthest(&|p| dist(p, origin)), same)?;
    let b = far(farthest(&|p| dist(p, points[a])), same)?;
    let along = sub(points[b], points[a]);
    let length = dot(along, along).sqrt();
    let off_line = |p: Vec3| {
        let c = cross(along, sub(p, points[a]));
        dot(c, c).sqrt() / length
    };
    let line = "all vertices lie on a line; use a thin capsule instead";
    let c = far(farthest(&off_line), line)?;
    let normal = cross(along, sub(points[c], points[a]));
    let area = dot(normal, normal).sqrt();
    let off_plane = |p: Vec3| dot(normal, sub(p, points[a])).abs() / area;
    let plane = "all vertices lie in a plane; use a plane or a thin box instead";
    let d = far(farthest(&off_plane), plane)?;
    let above = dot(normal, sub(points[d], points[a])) > 0.0;
    Ok(if above { [a, c, b, d] } else { [a, b, c, d] })
}

fn dist(a: Vec3, b: Vec3) -> f64 {
    let d = sub(a, b);
    dot(d, d).sqrt()
}

fn quickhull(
    points: &[Vec3],
    [a, b, c, d]: [usize; 4],
    tolerance: f64,
    budget: &mut Budget,
) -> Result<Triangles, Stop> {
    let mut faces = Vec::new();
    for corners in [[a, b, c], [a, d, b], [b, d, c], [c, d, a]] {
        faces.push(Face::new(points, corners).ok_or(Stop::Inconsistent)?);
    }
    // Across the edges ab, bc, ca and da, ... as the corners are listed.
    for (face, across) in faces.iter_mut().zip([[1, 2, 3], [3, 2, 0], [1, 3, 0], [2, 1, 0]]) {
        face.across = across;
    }
    budget.take(0, faces.len())?;
    assign(points, &mut faces, 0, 0..points.len(), tolerance, budget)?;
    let mut open: Vec<usize> = (0..4).collect();
    while let Some(f) = open.pop() {
        let Some((eye, _)) = faces[f].top.filter(|_| faces[f].alive) else {
            continue;
        };
        let first = faces.len();
        let (hidden, horizon) = horizon(&mut faces, f, points[eye], tolerance);
        budget.take(hidden.len(), horizon.len())?;
        // Each corner of the horizon starts one edge and ends one.
        let mut starts = BTreeMap::new();
        for (k, (from, to, beyond)) in horizon.iter().enumerate() {
            let face = Face::new(points, [*from, *to, eye]);
            let mut face = face.ok_or(Stop::Inconsistent)?;
            face.across[0] = *beyond;
            let back = faces[*beyond].corners;
            let edge = (0..3).find(|i| back[*i] == *to && back[(i + 1) % 3] == *from);
            let edge = edge.ok_or(Stop::Inconsistent)?;
            faces[*beyond].across[edge] = first + k;
            faces.push(face);
            if starts.insert(*from, first + k).is_some() {
                return Err(Stop::Inconsistent);
            }
        }
        for k in first..faces.len() {
            let next = starts.get(&faces[k].corners[1]);
            let next = *next.ok_or(Stop::Inconsistent)?;
            faces[k].across[1] = next;
            faces[next].across[2] = k;
        }
        let loose: Vec<usize> = hidden
            .into_iter()
            .flat_map(|h| std::mem::take(&mut faces[h].outside))
            .filter(|p| *p != eye)
            .collect();
        assign(points, &mut faces, first, loose.into_iter(), tolerance, budget)?;
        open.extend(first..faces.len());
    }
    let alive: Vec<_> = faces.iter().filter(|f| f.alive).collect();
    let linked =
        alive.iter().all(|f| f.across.iter().all(|a| faces.get(*a).is_some_and(|n| n.alive)));
    let mut corners: Vec<usize> = alive.iter().flat_map(|f| f.corners).collect();
    corners.sort_unstable();
    corners.dedup();
    // Euler: F = 2 V - 4 for a closed surface of triangles.
    match linked && alive.len() + 4 == 2 * corners.len() {
        true => Ok(alive.iter().map(|f| f.corners).collect()),
        false => Err(Stop::Inconsistent),
    }
}

/// Gives each point to the first of the faces from `first` on that it lies above.
fn assign(
    points: &[Vec3],
    faces: &mut [Face],
    first: usize,
    which: impl Iterator<Item = usize>,
    tolerance: f64,
    budget: &mut Budget,
) -> Result<(), Stop> {
    for i in which {
        let mut looks = 0;
        let above = faces[first..].iter_mut().find_map(|f| {
            looks += 1;
            let height = f.height(points[i]);
            (height > tolerance).then_some((f, height))
        });
        if let Some((face, height)) = above {
            face.take(i, height);
        }
        budget.take(looks, 0)?;
    }
    Ok(())
}

/// Faces that see `eye` are marked dead; with the edges around them as (from, to,
/// face beyond).
fn horizon(
    faces: &mut [Face],
    start: usize,
    eye: Vec3,
    tolerance: f64,
) -> (Vec<usize>, Vec<(usize, usize, usize)>) {
    let mut seen = vec![start];
    faces[start].alive = false;
    let mut edges = Vec::new();
    let mut next = 0;
    while let Some(f) = seen.get(next).copied() {
        next += 1;
        for i in 0..3 {
            let beyond = faces[f].across[i];
            if !faces[beyond].alive {
                continue;
            }
            if faces[beyond].height(eye) > tolerance {
                faces[beyond].alive = false;
                seen.push(beyond);
            } else {
                edges.push((f, i, beyond));
            }
        }
    }
    // A face may have died after its neighbour was looked at from another side.
    let edges = edges
        .into_iter()
        .filter(|(_, _, beyond)| faces[*beyond].alive)
        .map(|(f, i, beyond)| {
            let c = faces[f].corners;
            (c[i], c[(i + 1) % 3], beyond)
        })
        .collect();
    (seen, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(n: usize) -> Vec<Vec3> {
        let at = |i: usize| i as f64 / (n - 1) as f64;
        let all = (0..n * n * n).map(|k| [at(k % n), at(k / n % n), at(k / n / n)]);
        all.collect()
    }

    /// Signed volume: positive if the faces look outwards.
    fn volume(points: &[Vec3], triangles: &Triangles) -> f64 {
        let part = |t: &[usize; 3]| {
            let [a, b, c] = t.map(|i| points[i]);
            dot(a, cross(b, c)) / 6.0
        };
        triangles.iter().map(part).sum()
    }

    /// Points on a sphere are all corners; their hull takes far less than the limit, and a lower
    /// limit refuses it.
    #[test]
    fn work_is_bounded() {
        let n = 20_000;
        let golden = std::f64::consts::PI * (3.0 - 5_f64.sqrt());
        let sphere: Vec<Vec3> = (0..n)
            .map(|i| {
                let z = 1.0 - 2.0 * (f64::from(i) + 0.5) / f64::from(n);
                let (s, c) = (golden * f64::from(i)).sin_cos();
                let r = (1.0 - z * z).sqrt();
                [r * c, r * s, z]
            })
            .collect();
        let n = sphere.len();
        let within = |looks: usize, faces: usize| {
            let hull = hull_within(&sphere, 2.0, Budget { looks, faces });
            hull.map(|h| h.len())
        };
        assert_eq!(within(200 * n, 8 * n), Ok(2 * n - 4));
        assert_eq!(within(n, 8 * n), Err(TOO_MUCH));
        assert_eq!(within(200 * n, n), Err(TOO_MUCH));
        assert_eq!(convex_hull(&sphere).map(|h| h.len()), Ok(2 * n - 4));
    }

    #[test]
    fn a_grid_has_a_cubes_hull() {
        for n in [2, 3, 7] {
            let points = grid(n);
            let hull = convex_hull(&points).unwrap();
            assert!((volume(&points, &hull) - 1.0).abs() < 1e-12);
            let outside =
                hull.iter().flatten().all(|i| points[*i].iter().any(|x| *x == 0.0 || *x == 1.0));
            assert!(outside);
        }
    }

    #[test]
    fn every_point_of_a_random_cloud_is_inside() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        for n in [4, 10, 1000] {
            // Rounded to a coarse lattice: many points share a plane or a place.
            let mut cloud = |step: f64| -> Vec<Vec3> {
                let mut x = || (random() / step).round() * step;
                (0..n).map(|_| [x(), x(), x()]).collect()
            };
            for points in [cloud(1e-9), cloud(0.05)] {
                let Ok(hull) = convex_hull(&points) else {
                    assert_eq!(n, 4);
                    continue;
                };
                assert!(volume(&points, &hull) > 0.0);
                for t in &hull {
                    let face = Face::new(&points, *t).unwrap();
                    assert!(points.iter().all(|p| face.height(*p) < 1e-10));
                }
            }
        }
    }

    /// Eighteen triangles of a part of Centauro's leg (iit-centauro-ros-pkg, `ankle-pitch.stl`),
    /// whose reflection has slivers at every tolerance.
    #[test]
    fn a_mesh_that_its_scale_reflects_has_a_hull() {
        #[rustfmt::skip]
        const TRIANGLES: [[f32; 9]; 18] = [
        [-9.346764, -108.99999, -21.059479, -2.3366928, -108.99999, -16.377588, -9.346764, -108.99999, -16.377586],
        [-49.45097, -56.039745, 0.009048462, -49.49646, -56.039753, 7.031891, -49.82474, -49.154816, 0.009048462],
        [-49.45097, -56.039745, 0.009048462, -49.82474, -49.154816, 0.009048462, -49.77925, -49.154816, -7.013794],
        [-28.040289, 33.464478, -59.149998, -23.36691, 38.05443, -59.149998, -23.36691, 33.464478, -59.149998],
        [4.6733856, 42.64439, 62.32105, 8.345571, 37.940376, 63.19013, 9.346764, 42.644394, 62.321053],
        [42.06044, -21.615051, -59.149998, 42.06044, -17.025093, -59.149998, 46.73382, -17.025093, -59.149998],
        [-48.1914, -67.51466, 21.077576, -48.76059, -62.924694, 21.077576, -49.140224, -62.924694, 16.395683],
        [-51.156933, 8.994659, -25.741365, -49.74376, 15.1046295, -25.74137, -49.743042, 15.1046295, -30.423265],
        [37.387054, -26.205017, -59.149998, 42.06044, -21.615051, -59.149998, 42.060444, -26.205017, -59.149998],
        [-48.752182, -67.514656, -11.695686, -48.782516, -67.514656, -7.013794, -49.00137, -62.924694, -11.695686],
        [51.65677, 5.924713, -44.468952, 51.15537, 8.988094, -51.49181, 51.155792, 8.989883, -44.46896],
        [38.36229, -95.054436, -31.455177, 37.414482, -90.51486, -35.135796, 41.000034, -90.46447, -30.423265],
        [28.040289, -35.384933, -59.149998, 32.71367, -35.384933, -59.149998, 28.040289, -39.9749, -59.149998],
        [14.020142, -67.514656, -54.623814, 18.693527, -67.514656, -54.030155, 19.159513, -67.8979, -53.83274],
        [-2.5164385, -72.10462, -54.10102, -9.346764, -67.514656, -55.00422, -2.1242661, -67.514656, -55.254406],
        [-50.994854, -26.205017, -11.695686, -51.02518, -26.205017, -7.013794, -51.325623, -20.11193, -11.695686],
        [-9.346764, -0.9602356, -59.150005, -2.3366928, 5.924713, -59.150005, -2.3366928, -0.9602356, -59.150013],
        [23.366913, -26.205017, -59.149998, 28.040289, -21.615051, -59.149998, 28.040289, -26.205017, -59.149998]];
        let mut stl = vec![0; 80];
        stl.extend(18_u32.to_le_bytes());
        for corners in TRIANGLES {
            stl.extend([0; 12]);
            stl.extend(corners.iter().flat_map(|x| x.to_le_bytes()));
            stl.extend([0; 2]);
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("part.stl"), stl).unwrap();
        let count = |scale: &str| {
            let text = format!(
                "<mujoco><asset><mesh name=\"m\" file=\"part.stl\" scale=\"{scale}\"/></asset>\
                 <worldbody><body><freejoint/><geom type=\"mesh\" mesh=\"m\"/></body>\
                 </worldbody></mujoco>"
            );
            let model = crate::mjcf::parse(&dir.path().join("part.xml"), text).unwrap();
            model.meshes[0].faces.len()
        };
        assert_eq!(count(".001 .001 -.001"), count(".001 .001 .001"));
    }

    #[test]
    fn what_spans_no_volume_is_refused_by_its_shape() {
        let line = [[0.0; 3], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]];
        let flat = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]];
        for (points, word) in [([[1.0; 3]; 4], "point"), (line, "line"), (flat, "plane")] {
            assert!(convex_hull(&points).unwrap_err().contains(word));
        }
    }
}
