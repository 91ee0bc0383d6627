//! Ground in shapes that every engine has.

use super::Terrain;
use crate::Vec3;

/// Width (m) of the level ground around the tiles.
const BORDER: f64 = 50.0;
/// How far (m) shapes reach below the lowest ground.
const BELOW: f64 = 1.0;

/// A shape of the ground, in the world's axes.
#[derive(Debug, Clone, PartialEq)]
pub enum TerrainPart {
    /// A box.
    Box {
        /// Its middle (m).
        center: Vec3,
        /// Half its sides (m).
        size: Vec3,
    },
    /// A height field whose cells are two triangles each, as MuJoCo's are.
    Field {
        /// Corner of least x and y (m).
        corner: [f64; 2],
        /// Cells along y and x.
        cells: [usize; 2],
        /// Side of a cell (m).
        cell: f64,
        /// z of its lower side (m).
        bottom: f64,
        /// Heights (m), `[y][x]`, one more than cells each.
        heights: Vec<f32>,
    },
}

/// Cells of a tile.
struct Rect {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
    /// Height of level cells (m); others are triangles.
    level: Option<f32>,
}

impl Terrain {
    /// The ground for programs that have no such ground: level cells of the same height as
    /// boxes, triangles as height fields, and a border 50 m wide at z = 0. All reach down to
    /// the same depth.
    pub fn parts(&self) -> Vec<TerrainPart> {
        let bottom = self.range[0] - BELOW;
        let mut parts = self.border(bottom);
        for tile in 0..self.levels * self.columns {
            let rects = self.rects(tile);
            parts.extend(rects.iter().map(|rect| self.part(tile, rect, bottom)));
        }
        parts
    }

    fn border(&self, bottom: f64) -> Vec<TerrainPart> {
        let [x, y] = self.corner().map(|c| -c);
        let [far_x, far_y] = [x + BORDER, y + BORDER];
        // Two along all of y, two between them.
        let sides = [
            ([-far_x, -far_y], [-x, far_y]),
            ([x, -far_y], [far_x, far_y]),
            ([-x, -far_y], [x, -y]),
            ([-x, y], [x, far_y]),
        ];
        sides.map(|(low, high)| cuboid(low, high, bottom, 0.0)).into()
    }

    /// Rectangles of cells that are level at the same height, or of triangles: each as wide as it
    /// goes, then as high.
    fn rects(&self, tile: usize) -> Vec<Rect> {
        let n = self.cells;
        let level = |r: usize, c: usize| {
            let height = self.heights[self.index(tile, r, c)];
            self.is_level(tile, r, c).then_some(height)
        };
        let mut taken = vec![false; n * n];
        let mut rects = Vec::new();
        for (row, column) in (0..n).flat_map(|r| (0..n).map(move |c| (r, c))) {
            if taken[row * n + column] {
                continue;
            }
            let kind = level(row, column);
            let free = |r: usize, c: usize| !taken[r * n + c] && level(r, c) == kind;
            let right = (column..n).find(|c| !free(row, *c)).unwrap_or(n);
            let whole = |r: &usize| (column..right).all(|c| free(*r, c));
            let top = (row..n).find(|r| !whole(r)).unwrap_or(n);
            for r in row..top {
                taken[r * n + column..r * n + right].fill(true);
            }
            rects.push(Rect { rows: row..top, columns: column..right, level: kind });
        }
        rects
    }

    fn part(&self, tile: usize, rect: &Rect, bottom: f64) -> TerrainPart {
        let [x0, y0] = self.corner();
        let first = [tile / self.columns * self.cells, tile % self.columns * self.cells];
        let x = |c: usize| x0 + (first[0] + c) as f64 * self.cell;
        let y = |r: usize| y0 + (first[1] + r) as f64 * self.cell;
        let (rows, columns) = (&rect.rows, &rect.columns);
        let low = [x(columns.start), y(rows.start)];
        if let Some(height) = rect.level {
            let high = [x(columns.end), y(rows.end)];
            return cuboid(low, high, bottom, f64::from(height));
        }
        let corners = (rows.start..=rows.end).flat_map(|r| {
            let first = self.index(tile, r, columns.start);
            &self.heights[first..=first + columns.len()]
        });
        TerrainPart::Field {
            corner: low,
            cells: [rows.len(), columns.len()],
            cell: self.cell,
            bottom,
            heights: corners.copied().collect(),
        }
    }
}

fn cuboid(low: [f64; 2], high: [f64; 2], bottom: f64, top: f64) -> TerrainPart {
    let ends = [[low[0], high[0]], [low[1], high[1]], [bottom, top]];
    TerrainPart::Box {
        center: ends.map(|[a, b]| 0.5 * (a + b)),
        size: ends.map(|[a, b]| 0.5 * (b - a)),
    }
}
