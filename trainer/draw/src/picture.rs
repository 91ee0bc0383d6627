//! Textures as pyramids of ever smaller pictures, and their colours at a place.

use super::math::V3;
use ostler_sim::model::looks::{Texture, TextureKind};

/// Looks along the longer side of what a sample covers, at most.
const TAPS: f32 = 8.0;

/// A texture that shapes are painted with.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Its name.
    pub name: String,
    /// Whether it is a square for each of a cube's sides, or for all of them.
    pub cube: bool,
    /// Its mean, 0 to 1, as it is shown.
    pub mean: [f32; 3],
    /// One, or six of a cube: +x, -x, +y, -y, +z, -z.
    sides: Vec<Side>,
}

/// A picture, and its halves: `[level]`.
#[derive(Debug, Clone, PartialEq)]
struct Side(Vec<Level>);

/// Red, green, blue, `[height][width][3]`.
#[derive(Debug, Clone, PartialEq)]
struct Level {
    width: usize,
    height: usize,
    data: Vec<u8>,
}

impl Picture {
    /// Of a texture; `None` if it has no pixels.
    pub fn new(texture: &Texture) -> Option<Picture> {
        let cube = texture.kind == TextureKind::Cube;
        let width = texture.width;
        let six = cube && texture.height == 6 * width;
        let height = texture.height / if six { 6 } else { 1 };
        let size = 3 * width * height;
        if size == 0 || texture.data.len() != size * if six { 6 } else { 1 } {
            return None;
        }
        let side = |data: &[u8]| {
            let mut levels = vec![Level { width, height, data: data.to_vec() }];
            while let Some(half) = levels.last().and_then(Level::halved) {
                levels.push(half);
            }
            Side(levels)
        };
        Some(Picture {
            name: texture.name.clone(),
            cube,
            mean: texture.mean(),
            sides: texture.data.chunks_exact(size).map(side).collect(),
        })
    }

    /// Width and height (pixels), and the pixels of each side, made half as large `halvings` times.
    pub fn sides(&self, halvings: usize) -> impl ExactSizeIterator<Item = (usize, usize, &[u8])> {
        self.sides.iter().map(move |Side(levels)| {
            let level = &levels[halvings.min(levels.len() - 1)];
            (level.width, level.height, &level.data[..])
        })
    }

    /// The mean colour around (u, v) of an area with the sides `a` and `b`, all in pictures:
    /// from 0 to 1 lies one, which repeats.
    pub fn flat(&self, [u, v]: [f32; 2], a: [f32; 2], b: [f32; 2]) -> [f32; 3] {
        let Some(side @ Side(levels)) = self.sides.first() else {
            return self.mean;
        };
        let pixels = |d: [f32; 2]| {
            let [x, y] = [d[0] * levels[0].width as f32, d[1] * levels[0].height as f32];
            (x * x + y * y).sqrt()
        };
        let (la, lb) = (pixels(a), pixels(b));
        let (long, length, short) = if la > lb { (a, la, lb) } else { (b, lb, la) };
        let taps = (length / short.max(1.0)).ceil().clamp(1.0, TAPS);
        let level = (length / taps).max(1.0).log2();
        let mut sum = [0.0; 3];
        for k in 0..taps as usize {
            let off = (k as f32 + 0.5) / taps - 0.5;
            let c = side.at([u + off * long[0], v + off * long[1]], level, true);
            sum = [0, 1, 2].map(|i| sum[i] + c[i]);
        }
        sum.map(|s| s / taps)
    }

    /// The colour of a cube in direction `d`; `across`: length of `d` that a sample covers.
    pub fn cube(&self, d: V3, across: f32) -> [f32; 3] {
        let (x, y, z) = (d.x.abs(), d.y.abs(), d.z.abs());
        // As OpenGL places the sides.
        let (k, s, t, long) = if x >= y && x >= z {
            (usize::from(d.x < 0.0), -d.z * d.x.signum(), -d.y, x)
        } else if y >= z {
            (2 + usize::from(d.y < 0.0), d.x, d.z * d.y.signum(), y)
        } else {
            (4 + usize::from(d.z < 0.0), d.x * d.z.signum(), -d.y, z)
        };
        let Some(side) = self.sides.get(k).or(self.sides.first()) else {
            return self.mean;
        };
        if long <= 0.0 {
            return self.mean;
        }
        let pixels = 0.5 * side.0[0].width as f32 * across / long;
        let place = [s, t].map(|c| 0.5 + 0.5 * c / long);
        side.at(place, pixels.max(1.0).log2(), false)
    }
}

impl Side {
    /// The colour at a place, between the pixels of the two nearest levels.
    fn at(&self, place: [f32; 2], level: f32, repeats: bool) -> [f32; 3] {
        let last = self.0.len() - 1;
        // Infinite and NaN are the whole picture.
        let level = if level < last as f32 { level } else { last as f32 };
        let (low, share) = (level as usize, level.fract());
        let one = self.0[low].at(place, repeats);
        if share <= 0.0 || low == last {
            return one;
        }
        let two = self.0[low + 1].at(place, repeats);
        [0, 1, 2].map(|i| one[i] + (two[i] - one[i]) * share)
    }
}

impl Level {
    fn halved(&self) -> Option<Level> {
        if self.width == 1 && self.height == 1 {
            return None;
        }
        let (width, height) = ((self.width / 2).max(1), (self.height / 2).max(1));
        let mut data = Vec::with_capacity(3 * width * height);
        // Of an odd number the last one is part of the last square.
        let span =
            |i: usize, n: usize, of: usize| i * of / n..((i + 1) * of / n).max(i * of / n + 1);
        for r in 0..height {
            for c in 0..width {
                let (rows, columns) = (span(r, height, self.height), span(c, width, self.width));
                let count = (rows.len() * columns.len()) as u32;
                let mut sum = [0_u32; 3];
                for y in rows {
                    for x in columns.clone() {
                        let p = self.pixel(x, y);
                        sum = [0, 1, 2].map(|i| sum[i] + u32::from(p[i]));
                    }
                }
                data.extend(sum.map(|s| ((s + count / 2) / count) as u8));
            }
        }
        Some(Level { width, height, data })
    }

    fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let k = 3 * (y * self.width + x);
        match self.data.get(k..k + 3) {
            Some(&[r, g, b]) => [r, g, b],
            _ => [0; 3],
        }
    }

    /// The colour at a place between pixels, 0 to 1.
    fn at(&self, [u, v]: [f32; 2], repeats: bool) -> [f32; 3] {
        let along = |x: f32, n: usize| {
            let x = if repeats { x - x.floor() } else { x.clamp(0.0, 1.0) };
            // Of what is not finite any pixel will do.
            let x = x * n as f32 - 0.5;
            let low = x.floor();
            let wrap = |i: f32| match repeats {
                true => (i as i64).rem_euclid(n as i64) as usize,
                false => (i.max(0.0) as usize).min(n - 1),
            };
            (wrap(low), wrap(low + 1.0), x - low)
        };
        let (x0, x1, fx) = along(u, self.width);
        let (y0, y1, fy) = along(v, self.height);
        let row = |y: usize| {
            let (a, b) = (self.pixel(x0, y), self.pixel(x1, y));
            [0, 1, 2].map(|i| f32::from(a[i]) + (f32::from(b[i]) - f32::from(a[i])) * fx)
        };
        let (a, b) = (row(y0), row(y1));
        [0, 1, 2].map(|i| (a[i] + (b[i] - a[i]) * fy) / 255.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::v3;

    fn texture(kind: TextureKind, width: usize, data: Vec<u8>) -> Texture {
        Texture {
            name: "t".into(),
            kind,
            width,
            height: data.len() / (3 * width),
            data,
            reduced: None,
        }
    }

    fn near(a: [f32; 3], b: [f32; 3]) {
        assert!((0..3).all(|i| (a[i] - b[i]).abs() < 3e-3), "{a:?} {b:?}");
    }

    #[test]
    fn small_areas_have_their_pixel_and_large_ones_the_mean() {
        // Red and green, blue and white.
        let data = vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        let picture = Picture::new(&texture(TextureKind::Flat, 2, data)).unwrap();
        near(picture.mean, [0.5; 3]);
        let none = [0.0; 2];
        for (at, color) in [
            ([0.25, 0.25], [1.0, 0.0, 0.0]),
            ([0.75, 0.25], [0.0, 1.0, 0.0]),
            ([-2.75, 7.75], [0.0, 0.0, 1.0]),
            ([0.5, 0.25], [0.5, 0.5, 0.0]),
        ] {
            near(picture.flat(at, none, none), color);
        }
        near(picture.flat([0.25; 2], [4.0, 0.0], [0.0, 4.0]), [0.5; 3]);
        // Over a row it is that row's mean, however long.
        let row = picture.flat([0.3, 0.25], [1.0, 0.0], none);
        near(row, [0.5, 0.5, 0.0]);
        for wrong in [f32::NAN, f32::INFINITY, -3e38] {
            picture.flat([wrong, 0.0], [wrong; 2], none);
            picture.cube(v3(wrong, 0.0, 0.0), wrong);
        }
    }

    #[test]
    fn sides_of_a_cube_lie_where_they_are_named() {
        let side = |k: u8| [40 * k, 0, 0].repeat(4);
        let data: Vec<u8> = (0..6).flat_map(side).collect();
        let picture = Picture::new(&texture(TextureKind::Cube, 2, data)).unwrap();
        let all = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]];
        for (k, [x, y, z]) in all.into_iter().enumerate() {
            let d = v3(x as f32, y as f32, z as f32) + v3(0.2, 0.1, -0.3);
            near(picture.cube(d, 0.0), [40.0 * k as f32 / 255.0, 0.0, 0.0]);
        }
        // From outside, +z is seen as it is in the file with +y up.
        let data = vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        let picture = Picture::new(&texture(TextureKind::Cube, 2, data)).unwrap();
        near(picture.cube(v3(-0.5, 0.5, 1.0), 0.0), [1.0, 0.0, 0.0]);
        near(picture.cube(v3(0.5, 0.5, 1.0), 0.0), [0.0, 1.0, 0.0]);
        near(picture.cube(v3(1.0, 0.5, 0.5), 0.0), [1.0, 0.0, 0.0]);
        near(picture.cube(v3(0.5, 1.0, -0.5), 0.0), [0.0, 1.0, 0.0]);
    }
}
