//! Ground that all environments share: square tiles of cells, in levels (rows along x) and
//! columns (along y), from a plan and a seed.

mod checked;
mod file;
mod generate;
mod kinds;
mod parts;
mod picture;
mod plan;
mod roof;
mod spline;

pub use parts::TerrainPart;
pub use plan::{KindPlan, KindWord, LevelRange, TerrainPlan};
pub use roof::Roof;

use crate::Vec3;

/// The ground. Its middle is the world's origin; beyond its tiles the ground is level at z = 0.
///
/// A cell is either level, at the height of its corner of least x and y, or two triangles that
/// meet on the diagonal from that corner, as in MuJoCo's height fields. Where heights of
/// neighbours differ at their common edge there is a vertical wall.
#[derive(Debug, Clone, PartialEq)]
pub struct Terrain {
    /// Tiles along x, the easiest first.
    pub levels: usize,
    /// Tiles along y.
    pub columns: usize,
    /// Cells along a tile's side.
    pub cells: usize,
    /// Side of a cell (m).
    pub cell: f64,
    /// Heights of the corners of cells (m), `[levels][columns][cells + 1][cells + 1]`, x fastest.
    /// Every tile has its own. The lowest bit of a cell's corner of least x and y says whether
    /// the cell is level ([`Terrain::is_level`]).
    pub heights: Vec<f32>,
    /// Where episodes begin in each tile (m), in the world `[levels][columns]`.
    pub origins: Vec<Vec3>,
    /// The kind of each column: a place in [`Terrain::kinds`].
    pub column_kinds: Vec<usize>,
    /// What the kinds are called.
    pub kinds: Vec<String>,
    /// Least and greatest height (m), with that of the ground around the tiles.
    pub range: [f64; 2],
    /// See [`Terrain::roof()`].
    pub roof: Roof,
}

impl Terrain {
    /// Side of a tile (m).
    pub fn tile(&self) -> f64 {
        self.cells as f64 * self.cell
    }

    /// The corner of least x and y (m), in the world.
    pub fn corner(&self) -> [f64; 2] {
        [self.levels, self.columns].map(|tiles| -0.5 * tiles as f64 * self.tile())
    }

    /// Place in [`Terrain::heights`] of a corner of a tile's cells: row along y, column along x.
    pub fn index(&self, tile: usize, row: usize, column: usize) -> usize {
        (tile * (self.cells + 1) + row) * (self.cells + 1) + column
    }

    /// Whether a cell of a tile is level.
    pub fn is_level(&self, tile: usize, row: usize, column: usize) -> bool {
        Self::marks_level(self.heights[self.index(tile, row, column)])
    }

    /// Whether the height of a cell's corner of least x and y says that the cell is level.
    pub fn marks_level(height: f32) -> bool {
        height.to_bits() & 1 == 1
    }

    /// Height (m) at a point of the world.
    pub fn height(&self, x: f64, y: f64) -> f64 {
        match self.patch(x, y) {
            None => 0.0,
            Some(Patch { low, level: true, .. }) => low,
            Some(Patch { low, rise: [along_x, along_y], at: [u, v], .. }) => {
                low + u * along_x + v * along_y
            }
        }
    }

    /// Upwards normal of the ground at a point of the world.
    pub fn normal(&self, x: f64, y: f64) -> Vec3 {
        match self.patch(x, y) {
            Some(Patch { rise: [along_x, along_y], level: false, .. }) => {
                let [x, y] = [-along_x / self.cell, -along_y / self.cell];
                let length = (x * x + y * y + 1.0).sqrt();
                [x / length, y / length, 1.0 / length]
            }
            _ => [0.0, 0.0, 1.0],
        }
    }

    /// Ground of the same tiles with level cells, whose heights (m) `height` gives by their numbers
    /// along x and y; origins are at `start` (m).
    #[must_use]
    pub fn of_steps(&self, start: f64, height: impl Fn(usize, usize) -> f32) -> Self {
        let mut made = self.clone();
        let (columns, cells, side) = (self.columns, self.cells, self.cells + 1);
        for (place, to) in made.heights.iter_mut().enumerate() {
            let (tile, row, column) = (place / (side * side), place / side % side, place % side);
            let [x, y] = [tile / columns, tile % columns].map(|t| t * cells);
            // The last row and column of corners begin no cell.
            let [r, c] = [row, column].map(|k| k.min(cells - 1));
            *to = f32::from_bits(height(x + c, y + r).to_bits() | 1);
        }
        made.origins.iter_mut().for_each(|origin| origin[2] = start);
        made
    }

    /// The level cell or triangle at a point; beyond the tiles there is none.
    fn patch(&self, x: f64, y: f64) -> Option<Patch> {
        let [x0, y0] = self.corner();
        let [x, y] = [(x - x0) / self.cell, (y - y0) / self.cell];
        let inside = |t: f64, tiles: usize| t >= 0.0 && t < (tiles * self.cells) as f64;
        if !inside(x, self.levels) || !inside(y, self.columns) {
            return None;
        }
        let (c, r) = (x as usize, y as usize);
        let at = [x - c as f64, y - r as f64];
        let tile = c / self.cells * self.columns + r / self.cells;
        let (r, c) = (r % self.cells, c % self.cells);
        let height = |r, c| f64::from(self.heights[self.index(tile, r, c)]);
        // Without the mark of a level cell.
        let low = self.heights[self.index(tile, r, c)].to_bits() & !1;
        let low = f64::from(f32::from_bits(low));
        let across = height(r + 1, c + 1);
        let rise = match at[1] >= at[0] {
            true => [across - height(r + 1, c), height(r + 1, c) - low],
            false => [height(r, c + 1) - low, across - height(r, c + 1)],
        };
        Some(Patch { low, level: self.is_level(tile, r, c), rise, at })
    }
}

/// The ground within a cell.
struct Patch {
    /// Height of the corner of least x and y (m).
    low: f64,
    level: bool,
    /// Rise along x and y over the cell's side (m), of the triangle.
    rise: [f64; 2],
    /// Place within the cell along x and y, in cells.
    at: [f64; 2],
}

#[cfg(test)]
mod tests;
