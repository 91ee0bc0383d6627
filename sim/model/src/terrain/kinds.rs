//! The surfaces of tiles. Formulas are those of Isaac Lab and mjlab, on whole cells.

use super::checked::Key::{self, *};
use super::checked::{Kind, short};
use super::file::Samples;
use super::plan::KindWord;
use super::spline;
use ostler_base::rng::{Purpose, philox};

/// Heights (m) of a tile.
pub(super) enum Surface {
    /// Of cells, `[y][x]`: all are level.
    Level(Vec<f64>),
    /// Of the corners of cells, `[y][x]`: all are triangles.
    Triangles(Vec<f64>),
}

/// What was rounded or clipped, once for each kind and key.
#[derive(Default)]
pub(super) struct Notes {
    said: Vec<(usize, Key)>,
    pub lines: Vec<String>,
}

impl Notes {
    fn say(&mut self, kind: &Kind, key: Key, what: &str) {
        if !self.said.contains(&(kind.place, key)) {
            self.said.push((kind.place, key));
            self.lines.push(format!("terrain kind {}: {} {what}", kind.name, key.name()));
        }
    }
}

/// A tile to be made.
pub(super) struct Tile<'a> {
    pub kind: &'a Kind<'a>,
    /// Of a kind `file`.
    pub samples: Option<&'a Samples>,
    /// Cells along a side.
    pub n: usize,
    /// Side of a cell (m).
    pub cell: f64,
    /// From 0 to 1.
    pub difficulty: f64,
    pub draws: Draws,
    pub notes: &'a mut Notes,
}

/// Random numbers of one tile, the same whatever else there is.
pub(super) struct Draws {
    seed: u64,
    kind: u32,
    tile: u64,
    next: u32,
}

impl Draws {
    pub(super) fn new(seed: u64, kind: usize, level: usize, column: usize) -> Self {
        // There are fewer than 2^24 columns: a tile has cells, and those are bounded.
        Self { seed, kind: kind as u32, tile: (level as u64) << 24 | column as u64, next: 0 }
    }

    /// Uniform in [0, 1), 32 bits.
    fn unit(&mut self) -> f64 {
        let word = self.next as usize % 4;
        let four = philox(self.seed, self.kind, Purpose::Terrain, self.tile, self.next / 4);
        self.next += 1;
        f64::from(four[word]) / 4_294_967_296.0
    }

    /// Uniform in [-1, 1).
    fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// A whole number below `n`, or 0.
    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
}

impl Tile<'_> {
    pub(super) fn make(mut self) -> Surface {
        match self.kind.word {
            KindWord::Flat => Surface::Level(vec![0.0; self.n * self.n]),
            KindWord::Rough => Surface::Triangles(self.rough()),
            KindWord::Wave => Surface::Triangles(self.wave()),
            KindWord::Slope => Surface::Triangles(self.slope()),
            KindWord::File => Surface::Triangles(self.file()),
            KindWord::Stairs => Surface::Level(self.stairs()),
            KindWord::Boxes => Surface::Level(self.boxes()),
            KindWord::Stones => Surface::Level(self.stones()),
            KindWord::Gap => Surface::Level(self.gap()),
            KindWord::Rails => Surface::Level(self.rails()),
            KindWord::Pit => Surface::Level(self.pit()),
        }
    }

    fn at(&self, key: Key) -> f64 {
        self.kind.at(key, self.difficulty)
    }

    fn rounded(&mut self, key: Key, cells: usize, what: &str) {
        let (from, to) = (self.at(key), cells as f64 * self.cell);
        if (from - to).abs() > 1e-6 * self.cell {
            let said = format!("{} m became {} m, {what}", short(from), short(to));
            self.notes.say(self.kind, key, &said);
        }
    }

    /// A length in whole cells, at least `least`.
    fn cells(&mut self, key: Key, least: usize) -> usize {
        let cells = ((self.at(key) / self.cell).round() as usize).max(least);
        self.rounded(key, cells, "a whole number of cells");
        cells
    }

    /// Cells from the tile's edge to the platform. The platform is as even as the tile, so that
    /// it lies in the middle.
    fn platform_edge(&mut self) -> usize {
        let odd = self.n % 2;
        let pairs = ((self.at(Platform) / self.cell - odd as f64) / 2.0).round().max(0.0);
        let cells = (2 * pairs as usize + odd).clamp(2 - odd, self.n);
        self.rounded(Platform, cells, "a whole number of cells in the middle");
        (self.n - cells) / 2
    }

    /// Heights of cells by their distance in cells from the tile's edge.
    fn rings(&self, height: impl Fn(usize) -> f64) -> Vec<f64> {
        let last = self.n - 1;
        let near = |i: usize| i.min(last - i);
        let cells = (0..self.n).flat_map(|r| (0..self.n).map(move |c| near(r).min(near(c))));
        cells.map(height).collect()
    }

    fn stairs(&mut self) -> Vec<f64> {
        let [border, platform] = [self.cells(Border, 0), self.cells(Platform, 1)];
        let width = self.cells(StepWidth, 1);
        let steps = self.n.saturating_sub(2 * border + platform) / (2 * width);
        let up = if self.kind.inverted { -self.at(StepHeight) } else { self.at(StepHeight) };
        self.rings(|ring| match ring.checked_sub(border) {
            // The platform is one more step.
            Some(inner) => up * (inner / width).min(steps).saturating_add(1) as f64,
            None => 0.0,
        })
    }

    fn gap(&mut self) -> Vec<f64> {
        let (edge, depth) = (self.platform_edge(), self.at(Depth));
        let gap = self.cells(GapWidth, 0);
        if gap > edge {
            let left = short(edge as f64 * self.cell);
            self.notes.say(self.kind, GapWidth, &format!("is clipped to the {left} m there are"));
        }
        let from = edge.saturating_sub(gap);
        self.rings(|ring| if (from..edge).contains(&ring) { -depth } else { 0.0 })
    }

    fn rails(&mut self) -> Vec<f64> {
        let (edge, height) = (self.platform_edge(), self.at(RailHeight));
        let thick = self.cells(RailThickness, 1);
        // The outer rail's inner side is at 0.6 of the way out.
        let outer = (0.4 * edge as f64).round() as usize;
        if thick > outer {
            let left = short(outer as f64 * self.cell);
            let what = format!("is clipped to the {left} m there are");
            self.notes.say(self.kind, RailThickness, &what);
        }
        let rail = |end: usize, ring: usize| (end.saturating_sub(thick)..end).contains(&ring);
        self.rings(|ring| if rail(edge, ring) || rail(outer, ring) { height } else { 0.0 })
    }

    fn pit(&mut self) -> Vec<f64> {
        let (edge, depth) = (self.platform_edge(), self.at(Depth));
        self.rings(|ring| if ring >= edge { -depth } else { 0.0 })
    }

    fn boxes(&mut self) -> Vec<f64> {
        let (n, edge, border) = (self.n, self.platform_edge(), self.cells(Border, 0));
        let (width, height) = (self.cells(GridWidth, 1), self.at(GridHeight));
        let count = n.saturating_sub(2 * border) / width;
        let first = (n - count * width) / 2;
        // Of all columns, so that the platform's size changes none of the others.
        let grid: Vec<f64> = (0..count * count).map(|_| height * self.draws.signed()).collect();
        let mut heights = self.rings(|ring| if ring >= edge { height } else { 0.0 });
        let place = |i: usize| i.checked_sub(first).map(|i| i / width).filter(|i| *i < count);
        for (i, to) in heights.iter_mut().enumerate() {
            let (r, c) = (i / n, i % n);
            let ring = r.min(c).min(n - 1 - r).min(n - 1 - c);
            if let (Some(r), Some(c), true) = (place(r), place(c), ring < edge) {
                *to = grid[r * count + c];
            }
        }
        heights
    }

    /// Rows of stones along x, each from another place.
    fn stones(&mut self) -> Vec<f64> {
        let (n, edge, border) = (self.n, self.platform_edge(), self.cells(Border, 0));
        let (width, apart) = (self.cells(StoneWidth, 1), self.cells(StoneDistance, 0));
        let (high, depth) = (self.at(StoneHeight), self.at(Depth));
        let inside = border..n.saturating_sub(border);
        let hole = |ring: usize| if ring >= border && ring < edge { -depth } else { 0.0 };
        let mut heights = self.rings(hole);
        for y in inside.clone().step_by(width + apart) {
            // The first stone may begin before the row.
            let mut x = border as isize - self.draws.below(width + apart) as isize;
            while x < inside.end as isize {
                let height = high * self.draws.signed();
                let columns = x.max(border as isize) as usize;
                let end = ((x + width as isize).max(0) as usize).min(inside.end);
                for r in y..(y + width).min(inside.end) {
                    for c in columns..end {
                        let ring = r.min(c).min(n - 1 - r).min(n - 1 - c);
                        if ring < edge {
                            heights[r * n + c] = height;
                        }
                    }
                }
                x += (width + apart) as isize;
            }
        }
        heights
    }

    /// Heights of corners inside the border, by their place from there; 0 outside.
    fn corners(&self, border: usize, height: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let inner = self.n.saturating_sub(2 * border);
        let place = |i: usize| i.checked_sub(border).filter(|i| *i <= inner);
        let all = (0..=self.n).flat_map(|r| (0..=self.n).map(move |c| (r, c)));
        let heights = all.map(|(r, c)| match (place(r), place(c)) {
            (Some(r), Some(c)) => height(r, c),
            _ => 0.0,
        });
        heights.collect()
    }

    /// Random heights on a grid of points, with splines between them.
    fn rough(&mut self) -> Vec<f64> {
        let border = self.cells(Border, 0);
        let inner = self.n.saturating_sub(2 * border).max(1);
        let apart = (self.at(DownsampledScale) / self.cell).max(1.0);
        // The corners of the inner square among them.
        let spaces = ((inner as f64 / apart).round() as usize).max(1);
        if self.at(DownsampledScale) > 0.0 {
            let became = short(inner as f64 * self.cell / spaces as f64);
            if (became - self.at(DownsampledScale)).abs() > 1e-6 {
                let what = format!("became {became} m, so that points lie at the edges");
                self.notes.say(self.kind, DownsampledScale, &what);
            }
        }
        let [low, high, step] = [NoiseLow, NoiseHigh, NoiseStep].map(|key| self.at(key));
        let choices = ((high - low) / step + 1e-6) as usize + 1;
        let points = (spaces + 1) * (spaces + 1);
        let drawn = (0..points).map(|_| low + step * self.draws.below(choices) as f64);
        let heights = spline::grid(drawn.collect(), spaces, inner);
        self.corners(border, |r, c| heights[r * (inner + 1) + c])
    }

    fn wave(&mut self) -> Vec<f64> {
        let border = self.cells(Border, 0);
        let inner = self.n.saturating_sub(2 * border).max(1);
        let half = 0.5 * self.at(Amplitude);
        let turn = std::f64::consts::TAU * self.at(Waves) / inner as f64;
        self.corners(border, |r, c| half * ((c as f64 * turn).cos() + (r as f64 * turn).sin()))
    }

    /// The product of a ramp along x and one along y, cut off at the platform's corners.
    fn slope(&mut self) -> Vec<f64> {
        let [border, platform] = [self.cells(Border, 0), self.cells(Platform, 1)];
        let half = self.n.saturating_sub(2 * border).max(1) as f64 / 2.0;
        let up = if self.kind.inverted { -self.at(Slope) } else { self.at(Slope) };
        let top = up * half * self.cell;
        let at_platform = (1.0 - platform as f64 / 2.0 / half).max(0.0);
        let most = at_platform * at_platform;
        let near = |i: usize| 1.0 - (half - i as f64).abs() / half;
        self.corners(border, |r, c| top * (near(r) * near(c)).min(most))
    }

    fn file(&mut self) -> Vec<f64> {
        let (n, height) = (self.n as f64, self.at(Height));
        let Some(samples) = self.samples else { return vec![0.0; (self.n + 1).pow(2)] };
        let scale = if samples.picture { height } else { 1.0 };
        self.corners(0, |r, c| scale * samples.at(r as f64 / n, c as f64 / n))
    }
}
