//! How high the ground is at most about a place: what is above that touches nothing.

use super::Terrain;
use std::sync::OnceLock;

/// Side of a block (m), or a little more.
const SIDE: f64 = 0.2;

/// The heights of [`Terrain::roof()`], from their first use on. A copy finds its own, for the ground
/// that it belongs to may be changed.
#[derive(Debug, Default)]
pub struct Roof(OnceLock<Vec<f32>>);

impl Clone for Roof {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Roof {
    /// It follows from the heights.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Terrain {
    /// Cells along a block's side.
    pub fn block(&self) -> usize {
        ((SIDE / self.cell).ceil() as usize).max(1)
    }

    /// Blocks along x and y; the last ones may reach beyond the tiles.
    pub fn blocks(&self) -> [usize; 2] {
        [self.levels, self.columns].map(|tiles| (tiles * self.cells).div_ceil(self.block()))
    }

    /// The greatest height (m) within each block and the eight around it, `[blocks along x][blocks
    /// along y]`, with that of the ground around the tiles.
    pub fn roof(&self) -> &[f32] {
        self.roof.0.get_or_init(|| {
            let [across, up] = self.blocks();
            let (block, side) = (self.block(), self.cells + 1);
            let mut own = vec![f32::NEG_INFINITY; across * up];
            // Blocks that reach beyond the tiles.
            for (place, own) in own.iter_mut().enumerate() {
                let ends = [place / up, place % up].map(|k| (k + 1) * block);
                if ends[0] > self.levels * self.cells || ends[1] > self.columns * self.cells {
                    *own = 0.0;
                }
            }
            // The blocks of the cells on both sides of each corner of a tile.
            let sides = |first: usize| {
                let cells = |k: usize| [k.saturating_sub(1), k.min(self.cells - 1)];
                (0..side).map(|k| cells(k).map(|cell| (first + cell) / block)).collect()
            };
            for (tile, heights) in self.heights.chunks(side * side).enumerate() {
                let [xs, ys]: [Vec<[usize; 2]>; 2] =
                    [tile / self.columns, tile % self.columns].map(|t| sides(t * self.cells));
                for (row, [y0, y1]) in heights.chunks(side).zip(&ys) {
                    for (height, [x0, x1]) in row.iter().zip(&xs) {
                        for place in [x0 * up + y0, x0 * up + y1, x1 * up + y0, x1 * up + y1] {
                            own[place] = own[place].max(*height);
                        }
                    }
                }
            }
            let about = |k: usize, count: usize| k.saturating_sub(1)..(k + 2).min(count);
            let all = |k: usize| {
                let (x, y) = (k / up, k % up);
                let rows = about(x, across).flat_map(|x| about(y, up).map(move |y| x * up + y));
                let highest = rows.map(|place| own[place]).fold(f32::NEG_INFINITY, f32::max);
                let inner = x > 0 && y > 0 && x + 1 < across && y + 1 < up;
                if inner { highest } else { highest.max(0.0) }
            };
            (0..own.len()).map(all).collect()
        })
    }
}
