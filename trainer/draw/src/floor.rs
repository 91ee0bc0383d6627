//! The ground: checks that fade into the distance, and the robot's shadow on it.

use super::math::{Frame, V3, v3};
use super::shape::Shape;

/// Cells of the shadow map along one side.
const CELLS: usize = 160;

/// How much of an area of the ground is in shadow, as a blurred map.
#[derive(Debug, Default)]
pub struct Shadow {
    /// 0 lit, 1 dark; `[CELLS][CELLS]`.
    map: Vec<f32>,
    blurred: Vec<f32>,
    /// Corner of the map in floor coordinates.
    origin: [f32; 2],
    /// Cells a metre; 0 when nothing casts a shadow.
    scale: f32,
}

impl Shadow {
    /// Casts the shadow of `solids` (world frames) in the direction away from `light`.
    pub fn cast<'a>(
        &mut self,
        floor: &Frame,
        light: V3,
        solids: impl Iterator<Item = (&'a Frame, &'a Shape)> + Clone,
    ) {
        let l = floor.rot.inverse(light);
        self.scale = 0.0;
        // Where a sphere's shadow can be: its centre slid along the light, and an
        // ellipse around it that a circle of radius r / l.z holds.
        let project = |frame: &Frame, shape: &Shape| {
            let c = floor.rot.inverse(frame.pos - floor.pos);
            (c.x - l.x / l.z * c.z, c.y - l.y / l.z * c.z, shape.radius() / l.z)
        };
        let mut low = [f32::INFINITY; 2];
        let mut high = [f32::NEG_INFINITY; 2];
        for (frame, shape) in solids.clone() {
            let (x, y, r) = project(frame, shape);
            low = [low[0].min(x - r), low[1].min(y - r)];
            high = [high[0].max(x + r), high[1].max(y + r)];
        }
        let side = (high[0] - low[0]).max(high[1] - low[1]) * 1.06;
        if !(l.z > 0.05 && side > 0.0 && side < 1e4) {
            return;
        }
        // Cells of a fixed place in the world do not shimmer when the robot moves.
        let step = 2.0f32.powf((4.0 * (side / (CELLS - 12) as f32).log2()).ceil() / 4.0);
        self.origin = [low[0], low[1]].map(|x| ((x / step).floor() - 5.0) * step);
        self.scale = 1.0 / step;
        self.map.clear();
        self.map.resize(CELLS * CELLS, 0.0);
        self.blurred.resize(CELLS * CELLS, 0.0);
        for (frame, shape) in solids {
            let (x, y, r) = project(frame, shape);
            let cells = |c: f32, k: usize| {
                let at = |v: f32| ((v - self.origin[k]) / step).clamp(0.0, CELLS as f32) as usize;
                at(c - r)..(at(c + r) + 1).min(CELLS)
            };
            let direction = frame.rot.inverse(light);
            for j in cells(y, 1) {
                for i in cells(x, 0) {
                    let u = self.origin[0] + (i as f32 + 0.5) * step;
                    let v = self.origin[1] + (j as f32 + 0.5) * step;
                    let p = frame.rot.inverse(floor.point(v3(u, v, 0.0)) - frame.pos);
                    // From far below, so that what has sunk into the floor counts.
                    let start = p - direction * (4.0 * shape.radius() + p.norm());
                    if self.map[j * CELLS + i] == 0.0 && shape.blocks(start, direction) {
                        self.map[j * CELLS + i] = 1.0;
                    }
                }
            }
        }
        for _ in 0..2 {
            blur(&self.map, &mut self.blurred, 1);
            blur(&self.blurred, &mut self.map, CELLS);
        }
    }

    /// Darkness at a point of the floor, 0 to 1.
    pub fn at(&self, x: f32, y: f32) -> f32 {
        let (u, v) =
            ((x - self.origin[0]) * self.scale - 0.5, (y - self.origin[1]) * self.scale - 0.5);
        let last = (CELLS - 1) as f32;
        if !(self.scale > 0.0 && u >= 0.0 && v >= 0.0 && u < last && v < last) {
            return 0.0;
        }
        let (i, j) = (u as usize, v as usize);
        let (fu, fv) = (u - i as f32, v - j as f32);
        let row = |j: usize| {
            let k = j * CELLS + i;
            self.map[k] + (self.map[k + 1] - self.map[k]) * fu
        };
        row(j) + (row(j + 1) - row(j)) * fv
    }
}

/// A running mean over five cells, `stride` apart.
fn blur(from: &[f32], to: &mut [f32], stride: usize) {
    for (k, out) in to.iter_mut().enumerate() {
        let at =
            |d: usize| from.get((k + d * stride).wrapping_sub(2 * stride)).copied().unwrap_or(0.0);
        *out = (at(0) + at(1) + at(2) + at(3) + at(4)) * 0.2;
    }
}

/// Share of light against dark checks around (x, y), -1 to 1: a box filter of the
/// given widths over the pattern with cells of length 1, in closed form. It fades
/// to the mean by itself where a pixel covers many cells.
///
/// Source: I. Quilez, "Box filtered procedural checkerboard".
pub fn checks(x: f32, y: f32, width_x: f32, width_y: f32) -> f32 {
    // Integral of the square wave that is +1 on [0,1) and -1 on [1,2).
    let integral = |x: f32| {
        let r = x.rem_euclid(2.0);
        if r < 1.0 { r } else { 2.0 - r }
    };
    let mean = |x: f32, w: f32| {
        let w = w.max(1e-4);
        (integral(x + 0.5 * w) - integral(x - 0.5 * w)) / w
    };
    mean(x, width_x) * mean(y, width_y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_alternate_near_and_vanish_far() {
        assert!(checks(0.5, 0.5, 0.01, 0.01) > 0.99);
        assert!(checks(1.5, 0.5, 0.01, 0.01) < -0.99);
        assert!(checks(-0.5, -0.5, 0.01, 0.01) > 0.99);
        assert!(checks(0.3, 0.4, 50.0, 50.0).abs() < 0.01);
    }

    #[test]
    fn a_ball_shades_the_ground_below_along_the_light() {
        let floor = Frame::new([0.0; 3], [1.0, 0.0, 0.0, 0.0]);
        let ball = Frame::new([3.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]);
        let shape = Shape::Sphere(0.25);
        let mut shadow = Shadow::default();
        // Light from +x at 45 degrees: the shadow falls at x = 3 - 1.
        shadow.cast(&floor, v3(1.0, 0.0, 1.0).unit(), [(&ball, &shape)].into_iter());
        assert!(shadow.at(2.0, 0.0) > 0.95, "{}", shadow.at(2.0, 0.0));
        assert_eq!(shadow.at(3.0, 0.0), 0.0);
        assert_eq!(shadow.at(2.0, 0.5), 0.0);
    }
}
