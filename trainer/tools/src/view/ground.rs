//! The ground that environments share, as the page reads it: heights, of which the page draws
//! those around the robot.

use super::scene::Blob;
use ostler_sim::model::terrain::Terrain;
use serde::Serialize;

/// Heights of a page at most: 8 MiB.
const MOST: usize = 4 << 20;
/// Steps between the least and the greatest height.
const STEPS: f64 = ((1 << 15) - 1) as f64;

/// A terrain.
#[derive(Debug, Clone, Serialize)]
pub struct GroundData {
    /// Tiles along x and y.
    pub tiles: [usize; 2],
    /// Cells along a tile's side.
    pub cells: usize,
    /// Side of a cell (m).
    pub cell: f64,
    /// The corner of least x and y (m).
    pub corner: [f64; 2],
    /// The least height, and how much a step is (m).
    pub low: f64,
    /// See `low`.
    pub step: f64,
    /// Where heights of corners begin in the blob: uint16, twice the steps above the least, and 1
    /// more where the cell is level; `[tiles along x][tiles along y][cells + 1][cells + 1]`.
    pub heights: usize,
}

impl GroundData {
    /// Its heights go into `blob`; of a large one those of larger cells, which `notes` says.
    pub fn new(terrain: &Terrain, blob: &mut Blob, notes: &mut Vec<String>) -> Self {
        let tiles = terrain.levels * terrain.columns;
        let all = |cells: usize| tiles * (cells + 1) * (cells + 1);
        let finer = |k: &usize| all((terrain.cells / k).max(1)) > MOST;
        let divisor = (1..terrain.cells).find(|k| !finer(k)).unwrap_or(terrain.cells);
        let cells = (terrain.cells / divisor).max(1);
        let cell = terrain.tile() / cells as f64;
        if divisor > 1 {
            notes.push(format!(
                "the terrain is drawn in cells of {cell:.3} m, as it is too large for those of {} m",
                terrain.cell
            ));
        }
        let [low, high] = terrain.range;
        let step = ((high - low) / STEPS).max(1e-9);
        let mut heights: Vec<u16> = Vec::with_capacity(all(cells));
        let place = |i: usize| i * terrain.cells / cells;
        for tile in 0..tiles {
            for (row, column) in (0..=cells).flat_map(|r| (0..=cells).map(move |c| (r, c))) {
                let (row, column) = (place(row), place(column));
                let z = f64::from(terrain.heights[terrain.index(tile, row, column)]);
                let steps = ((z - low) / step).round().clamp(0.0, STEPS) as u16;
                heights.push(steps << 1 | u16::from(terrain.is_level(tile, row, column)));
            }
        }
        Self {
            tiles: [terrain.levels, terrain.columns],
            cells,
            cell,
            corner: terrain.corner(),
            low,
            step,
            heights: blob.push(bytemuck::cast_slice(&heights)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::model::terrain::{KindPlan, KindWord, TerrainPlan};

    #[test]
    fn pages_stay_small_and_heights_the_same() {
        for (levels, divisor) in [(2, 1), (40, 2)] {
            let kinds = vec![KindPlan::new(KindWord::Stairs)];
            let plan = TerrainPlan { levels, columns: 20, kinds, ..TerrainPlan::default() };
            let (terrain, _) = Terrain::generate(&plan, &|_| Err(String::new())).unwrap();
            let (mut blob, mut notes) = (Blob::default(), Vec::new());
            let data = GroundData::new(&terrain, &mut blob, &mut notes);
            assert_eq!((data.cells * divisor, notes.len()), (terrain.cells, divisor - 1));
            assert!(blob.bytes().len() <= 2 * MOST);
            let pairs = blob.bytes().as_chunks().0.iter();
            let heights: Vec<u16> = pairs.map(|pair| u16::from_le_bytes(*pair)).collect();
            let side = data.cells + 1;
            for (tile, row, column) in [(0, 0, 0), (levels * 20 - 1, data.cells / 2, 3)] {
                let seen = heights[(tile * side + row) * side + column];
                let z = data.low + data.step * f64::from(seen >> 1);
                let own = terrain.heights[terrain.index(tile, divisor * row, divisor * column)];
                assert!((z - f64::from(own)).abs() < 1e-3 && seen & 1 == 1, "{z} {own}");
            }
        }
    }
}
