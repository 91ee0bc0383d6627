//! Faces cut into triangles as MuJoCo's reader of OBJ files (tinyobjloader) cuts them. The cut
//! of a face matters: an inertia of the kind "legacy" sums the absolute volumes over them.

/// Most tests of a corner against an ear in one file.
const TESTS: usize = 400_000_000;

/// Cuts the faces of one file.
pub(super) struct Cutter {
    tests: usize,
}

impl Cutter {
    pub(super) fn new() -> Self {
        Self { tests: TESTS }
    }

    /// Triangles of a face of three or more corners, as places in `ring`. A face that crosses
    /// itself may lose some.
    ///
    /// # Errors
    /// The file's faces have too many corners.
    pub(super) fn cut(&mut self, ring: &[[f32; 3]]) -> Result<Vec<[usize; 3]>, String> {
        match ring {
            [_, _, _] => Ok(vec![[0, 1, 2]]),
            // Along the shorter diagonal.
            [a, b, c, d] if length2(*a, *c) < length2(*b, *d) => Ok(vec![[0, 1, 2], [0, 2, 3]]),
            [_, _, _, _] => Ok(vec![[0, 1, 3], [1, 2, 3]]),
            _ => self.clip_ears(ring),
        }
    }

    fn clip_ears(&mut self, ring: &[[f32; 3]]) -> Result<Vec<[usize; 3]>, String> {
        let [x, y] = axes(ring);
        let flat: Vec<[f32; 2]> = ring.iter().map(|p| [p[x], p[y]]).collect();
        let mut left: Vec<usize> = (0..ring.len()).collect();
        let mut triangles = Vec::with_capacity(ring.len() - 2);
        let (mut at, mut tries, mut before) = (0, ring.len(), ring.len());
        while left.len() > 3 && tries > 0 {
            let count = left.len();
            at %= count;
            // As there an ear that is found by the last try is the last one.
            tries = if before == count { tries - 1 } else { count };
            before = count;
            let ear = [0, 1, 2].map(|k| left[(at + k) % count]);
            let corners = ear.map(|i| flat[i]);
            let mut others = (3..count).map(|k| flat[left[(at + k) % count]]);
            self.tests = self.tests.checked_sub(count).ok_or(
                "its faces have too many corners to be cut into triangles; export it with triangles",
            )?;
            if reflex(corners) || others.any(|p| inside(corners, p)) {
                at += 1;
                continue;
            }
            triangles.push(ear);
            left.remove((at + 1) % count);
        }
        if let [a, b, c] = left[..] {
            triangles.push([a, b, c]);
        }
        Ok(triangles)
    }
}

fn minus(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn length2(a: [f32; 3], b: [f32; 3]) -> f32 {
    let [x, y, z] = minus(b, a);
    x * x + y * y + z * z
}

/// The plane's axes in which the face is cut, by its first corner that is none of a line.
fn axes(ring: &[[f32; 3]]) -> [usize; 2] {
    let count = ring.len();
    for k in 0..count {
        let [a, b, c] = [0, 1, 2].map(|i| ring[(k + i) % count]);
        let (e, f) = (minus(b, a), minus(c, b));
        let x = (e[1] * f[2] - e[2] * f[1]).abs();
        let y = (e[2] * f[0] - e[0] * f[2]).abs();
        let z = (e[0] * f[1] - e[1] * f[0]).abs();
        if x > f32::EPSILON || y > f32::EPSILON || z > f32::EPSILON {
            return match () {
                () if x > y && x > z => [1, 2],
                () if z > x && z > y => [0, 1],
                () => [0, 2],
            };
        }
    }
    [1, 2]
}

/// Whether the middle corner points inwards: it turns against the way in which the first edge
/// goes around the origin. (Not around the face; where the origin lies decides some cuts.)
fn reflex([a, b, c]: [[f32; 2]; 3]) -> bool {
    let turn = (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]);
    let area = (a[0] * b[1] - a[1] * b[0]) * 0.5;
    turn * area < 0.0
}

/// Whether a ray from `p` crosses the triangle's sides an odd number of times (W. R. Franklin's
/// pnpoly).
fn inside(corners: [[f32; 2]; 3], p: [f32; 2]) -> bool {
    let crosses = |i: usize| {
        let (a, b) = (corners[i], corners[(i + 2) % 3]);
        (a[1] > p[1]) != (b[1] > p[1])
            && p[0] < (b[0] - a[0]) * (p[1] - a[1]) / (b[1] - a[1]) + a[0]
    };
    (0..3).filter(|i| crosses(*i)).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(ring: &[[f32; 3]]) -> Vec<[usize; 3]> {
        Cutter::new().cut(ring).unwrap()
    }

    #[test]
    fn quads_are_cut_along_the_shorter_diagonal() {
        let arrow = [[0.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.5, 1.0, 0.0], [0.0, 2.0, 0.0]];
        assert_eq!(cut(&arrow), [[0, 1, 2], [0, 2, 3]]);
        let turned = [arrow[3], arrow[0], arrow[1], arrow[2]];
        assert_eq!(cut(&turned), [[0, 1, 3], [1, 2, 3]]);
    }

    #[test]
    fn work_is_bounded() {
        let ring: Vec<[f32; 3]> = (0..100_u8).map(|k| [f32::from(k), 0.0, 1.0]).collect();
        let mut cutter = Cutter { tests: 200 };
        assert!(cutter.cut(&ring).unwrap_err().contains("too many corners"));
    }
}
