//! The ground that environments share, as rays meet it: from cell to cell, past squares of cells
//! that lie below the ray as a whole. No mesh of it is made, however large it is.

use super::math::{V3, v3};
use ostler_sim::model::terrain::Terrain;
use std::sync::Arc;

/// Cells along the side of a square that is passed as a whole.
const BLOCK: usize = 8;
/// Farther than this nothing of it is seen (m).
const FAR: f32 = 500.0;
/// What rounding makes of heights (m).
const ROUNDING: f32 = 1e-4;

/// A terrain, in the world's axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground {
    terrain: Arc<Terrain>,
    /// Cells along x and y.
    cells: [usize; 2],
    /// What a cell's column and row add to the place of its height.
    places: [Vec<usize>; 2],
    /// Greatest height of each square of cells, x fastest.
    tops: Vec<f32>,
}

/// A square that a ray passes.
struct Passed {
    at: [usize; 2],
    /// Where on the ray it begins and ends.
    from: f32,
    to: f32,
    /// The axis along which the ray came in.
    axis: Option<usize>,
}

/// A ray in the ground's frame: x and y in cells from its least corner, z in m.
#[derive(Clone, Copy)]
struct Ray {
    o: V3,
    d: V3,
}

impl Ray {
    fn z(&self, t: f32) -> f32 {
        self.o.z + t * self.d.z
    }

    fn place(&self, t: f32) -> [f32; 2] {
        [self.o.x + t * self.d.x, self.o.y + t * self.d.y]
    }

    /// The side of a wall, met along an axis, that faces the ray.
    fn against(&self, axis: usize) -> V3 {
        match axis {
            0 => v3(-self.d.x.signum(), 0.0, 0.0),
            _ => v3(0.0, -self.d.y.signum(), 0.0),
        }
    }

    /// The squares of `side` cells between two places of the ray, of `count` along each axis.
    fn squares(
        self,
        side: f32,
        count: [usize; 2],
        [from, to]: [f32; 2],
        axis: Option<usize>,
    ) -> impl Iterator<Item = Passed> {
        let o = [self.o.x / side, self.o.y / side];
        let d = [self.d.x / side, self.d.y / side];
        let first = |k: usize| ((o[k] + d[k] * from) as usize).min(count[k] - 1);
        let mut next = Some(([first(0), first(1)], from, axis));
        std::iter::from_fn(move || {
            let (at, from, axis) = next.take()?;
            let end = |k: usize| match d[k] {
                0.0 => f32::INFINITY,
                d if d > 0.0 => ((at[k] + 1) as f32 - o[k]) / d,
                d => (at[k] as f32 - o[k]) / d,
            };
            let out = usize::from(end(1) < end(0));
            let leaves = end(out).max(from);
            if leaves < to {
                let mut beside = at;
                let moved = match d[out] > 0.0 {
                    true => at[out].checked_add(1).filter(|i| *i < count[out]),
                    false => at[out].checked_sub(1),
                };
                next = moved.map(|i| {
                    beside[out] = i;
                    (beside, leaves, Some(out))
                });
            }
            Some(Passed { at, from, to: leaves.min(to), axis })
        })
    }
}

/// Heights at a cell's corners: least x and y, the next along x, the next along y, both.
#[derive(Clone, Copy)]
struct Corners([f32; 4]);

impl Corners {
    fn height(self, [u, v]: [f32; 2]) -> f32 {
        let [along_x, along_y] = self.rise(v >= u);
        self.0[0] + u * along_x + v * along_y
    }

    /// Rise along x and y of the triangle above or below the diagonal.
    fn rise(self, above: bool) -> [f32; 2] {
        let [low, x, y, both] = self.0;
        if above { [both - y, y - low] } else { [x - low, both - x] }
    }
}

impl Ground {
    /// Of a terrain.
    pub fn new(terrain: &Arc<Terrain>) -> Self {
        let cells = [terrain.levels, terrain.columns].map(|tiles| tiles * terrain.cells);
        let [wide, high] = cells.map(|n| n.div_ceil(BLOCK));
        let side = terrain.cells + 1;
        let place = |i: usize, tile: usize, cell: usize| {
            i / terrain.cells * tile * side * side + i % terrain.cells * cell
        };
        let places = [
            (0..cells[0]).map(|c| place(c, terrain.columns, 1)).collect(),
            (0..cells[1]).map(|r| place(r, 1, side)).collect(),
        ];
        let tops = vec![f32::NEG_INFINITY; wide * high];
        let mut ground = Self { terrain: Arc::clone(terrain), cells, places, tops };
        for (row, column) in (0..cells[1]).flat_map(|r| (0..cells[0]).map(move |c| (r, c))) {
            let Corners(heights) = ground.corners([column, row]);
            let top = &mut ground.tops[row / BLOCK * wide + column / BLOCK];
            *top = heights.into_iter().fold(*top, f32::max);
        }
        ground
    }

    /// The terrain.
    pub fn terrain(&self) -> &Terrain {
        &self.terrain
    }

    /// Least and greatest height (m).
    pub fn range(&self) -> [f32; 2] {
        self.terrain.range.map(|z| z as f32)
    }

    /// Height at a place of the world (m).
    pub fn height(&self, x: f32, y: f32) -> f32 {
        self.terrain.height(f64::from(x), f64::from(y)) as f32
    }

    fn corners(&self, [column, row]: [usize; 2]) -> Corners {
        let t = &*self.terrain;
        let at = self.places[0][column] + self.places[1][row];
        let height = t.heights[at];
        if Terrain::marks_level(height) {
            return Corners([height; 4]);
        }
        let above = at + t.cells + 1;
        Corners([at, at + 1, above, above + 1].map(|i| t.heights[i]))
    }

    /// Distance along the ray `o + t d` to the ground, and its unit normal there. `None` if the
    /// ray misses it or comes from below.
    pub fn hit(&self, o: V3, d: V3) -> Option<(f32, V3)> {
        let up = v3(0.0, 0.0, 1.0);
        let [x, y] = self.terrain.corner().map(|c| c as f32);
        let scale = 1.0 / self.terrain.cell as f32;
        let ray = Ray {
            o: v3((o.x - x) * scale, (o.y - y) * scale, o.z),
            d: v3(d.x * scale, d.y * scale, d.z),
        };
        let far = FAR / d.norm();
        // Around the tiles it is level.
        let plane = -o.z / d.z;
        let around = |from: f32, to: f32| {
            let met = d.z < 0.0 && plane > 0.0 && (from..=to.min(far)).contains(&plane);
            met.then_some((plane, up))
        };
        let Some(([enter, leave], [entered, left])) = self.within(ray, far) else {
            return around(0.0, far);
        };
        if let Some(hit) = around(0.0, enter).filter(|_| entered.is_some()) {
            return Some(hit);
        }
        let mut above = match entered {
            Some(_) => ray.z(enter) >= -ROUNDING,
            None => {
                let at = ray.place(enter);
                let cell = [0, 1].map(|k| (at[k] as usize).min(self.cells[k] - 1));
                let inside = [0, 1].map(|k| at[k] - cell[k] as f32);
                ray.z(enter) >= self.corners(cell).height(inside) - ROUNDING
            }
        };
        let wide = self.cells[0].div_ceil(BLOCK);
        let blocks = self.cells.map(|n| n.div_ceil(BLOCK));
        for block in ray.squares(BLOCK as f32, blocks, [enter, leave], entered) {
            let ends = [block.from, block.to];
            let lowest = ends.map(|t| ray.z(t)).into_iter().fold(f32::INFINITY, f32::min);
            if lowest > self.tops[block.at[1] * wide + block.at[0]] {
                above = true;
                continue;
            }
            for cell in ray.squares(1.0, self.cells, ends, block.axis) {
                if let Some(hit) = self.cell(ray, &cell, &mut above) {
                    return Some(hit);
                }
            }
        }
        let axis = left?;
        match above && ray.z(leave) < -ROUNDING {
            true => Some((leave, ray.against(axis))),
            false => around(leave, far),
        }
    }

    /// The part of a ray that is above the tiles and between their least and greatest height, and
    /// the axes along which it comes in and goes out over their edges.
    fn within(&self, ray: Ray, far: f32) -> Option<([f32; 2], [Option<usize>; 2])> {
        let [mut enter, mut leave] = [0.0_f32, far];
        let [mut entered, mut left] = [None, None];
        let [low, high] = self.range();
        let sides = [
            (ray.o.z, ray.d.z, low - ROUNDING, high + ROUNDING, None),
            (ray.o.x, ray.d.x, 0.0, self.cells[0] as f32, Some(0)),
            (ray.o.y, ray.d.y, 0.0, self.cells[1] as f32, Some(1)),
        ];
        for (o, d, low, high, axis) in sides {
            if d == 0.0 {
                if o < low || o > high {
                    return None;
                }
                continue;
            }
            let [a, b] = [(low - o) / d, (high - o) / d];
            if a.min(b) > enter {
                (enter, entered) = (a.min(b), axis);
            }
            if a.max(b) < leave {
                (leave, left) = (a.max(b), axis);
            }
        }
        (enter < leave).then_some(([enter, leave], [entered, left]))
    }

    /// The wall at a cell's edge or the cell itself, where the ray meets them from above;
    /// `above`: whether it was, and is.
    fn cell(&self, ray: Ray, cell: &Passed, above: &mut bool) -> Option<(f32, V3)> {
        let corners = self.corners(cell.at);
        let top = corners.0.into_iter().fold(f32::NEG_INFINITY, f32::max);
        if ray.z(cell.from).min(ray.z(cell.to)) > top {
            *above = true;
            return None;
        }
        let inside = |t: f32| {
            let place = ray.place(t);
            [0, 1].map(|k| (place[k] - cell.at[k] as f32).clamp(0.0, 1.0))
        };
        let over = |t: f32| ray.z(t) - corners.height(inside(t));
        let first = over(cell.from);
        if *above
            && first < -ROUNDING
            && let Some(axis) = cell.axis
        {
            return Some((cell.from, ray.against(axis)));
        }
        *above = first >= -ROUNDING;
        // Each side of the diagonal is one plane.
        let [a, b] = [cell.from, cell.to].map(|t| {
            let [u, v] = inside(t);
            u - v
        });
        let middle = match a * b < 0.0 {
            true => cell.from + (cell.to - cell.from) * a / (a - b),
            false => cell.to,
        };
        for [from, to] in [[cell.from, middle], [middle, cell.to]] {
            let [here, there] = [over(from), over(to)];
            if *above && there < 0.0 && from < to {
                let here = here.max(0.0);
                let [u, v] = inside(0.5 * (from + to));
                let [x, y] = corners.rise(v >= u).map(|rise| -rise / self.terrain.cell as f32);
                let t = from + (to - from) * here / (here - there);
                return (t > 0.0).then(|| (t, v3(x, y, 1.0).unit()));
            }
            *above = there >= 0.0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::model::terrain::{KindPlan, KindWord, TerrainPlan};

    fn ground() -> Ground {
        let kinds = [KindWord::Stairs, KindWord::Rough, KindWord::Stones, KindWord::Slope];
        let kinds = kinds.map(KindPlan::new).into();
        let plan = TerrainPlan { levels: 3, columns: 4, kinds, ..TerrainPlan::default() };
        let read = |_: &str| Err(String::new());
        Ground::new(&Arc::new(Terrain::generate(&plan, &read).unwrap().0))
    }

    fn number(k: u32, i: usize) -> f32 {
        let w = ostler_sim::rng::philox_raw([k, 0, 0, 0], [1, 2]);
        2.0 * ostler_sim::rng::unit(w[i]) - 1.0
    }

    #[test]
    fn rays_from_above_meet_the_terrains_own_heights() {
        let ground = ground();
        for k in 0..5000 {
            let (x, y) = (16.0 * number(k, 0), 20.0 * number(k, 1));
            let (t, n) = ground.hit(v3(x, y, 5.0), v3(0.0, 0.0, -1.0)).unwrap();
            let height = ground.terrain.height(f64::from(x), f64::from(y)) as f32;
            assert!((5.0 - t - height).abs() < 2e-3, "{x} {y}: {} {height}", 5.0 - t);
            let normal = ground.terrain.normal(f64::from(x), f64::from(y)).map(|n| n as f32);
            assert!((n - v3(normal[0], normal[1], normal[2])).norm() < 1e-3, "{n:?} {normal:?}");
        }
    }

    /// A ray walked in small steps goes below the ground where the ray is said to meet it, and
    /// nowhere before.
    #[test]
    fn slanted_rays_end_where_steps_along_them_go_below() {
        let ground = ground();
        let (mut walls, mut met) = (0, 0);
        for k in 0..3000 {
            let o = v3(20.0 * number(k, 0), 24.0 * number(k, 1), 1.2 + 1.0 * number(k, 2));
            let d = v3(number(k, 3), number(k + 7000, 0), 0.25 * number(k, 1) - 0.2).unit();
            let over = |t: f32| {
                let p = o + d * t;
                p.z - ground.terrain.height(f64::from(p.x), f64::from(p.y)) as f32
            };
            if over(0.0) < 0.01 {
                continue;
            }
            let end = ground.hit(o, d).map_or(30.0, |(t, _)| t.min(30.0));
            // Thinner corners than a step are cut.
            let below = (0..(end / 0.01) as usize).find(|i| over(0.01 * *i as f32) < -3e-3);
            assert!(below.is_none(), "{k}: through the ground at {below:?} of {end}");
            if let Some((t, n)) = ground.hit(o, d).filter(|(t, _)| *t < 30.0) {
                met += 1;
                walls += u32::from(n.z == 0.0);
                assert!(n.dot(d) < 1e-4, "{n:?} {d:?}");
                // It may graze a corner: what is near by counts.
                let beside = |i: i32| {
                    let p = o + d * t;
                    let [x, y] = [p.x + 1e-3 * (i % 3 - 1) as f32, p.y + 1e-3 * (i / 3 - 1) as f32];
                    p.z - ground.height(x, y)
                };
                let least = (0..9).map(beside).fold(1.0, f32::min);
                assert!(least < 3e-3, "{k}: {least} above the ground");
            }
        }
        assert!(met > 1000 && walls > 100, "{met} {walls}");
    }

    #[test]
    fn around_the_tiles_it_is_level() {
        let ground = ground();
        let from = v3(100.0, 0.0, 1.0);
        let (t, n) = ground.hit(from, v3(0.0, 0.0, -2.0)).unwrap();
        assert!((t - 0.5).abs() < 1e-6 && n.z == 1.0);
        assert!(ground.hit(from, v3(0.0, 0.0, 1.0)).is_none());
        assert!(ground.hit(from, v3(1.0, 0.0, 0.0)).is_none());
    }
}
