//! Ground that all environments share: square tiles of cells, in levels (rows along x) and
//! columns (along y), from a plan and a seed.

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
    /// the cell is level ([`Terrain::level`]).
    pub heights: Vec<f32>,
    /// Where episodes begin in each tile (m), in the world `[levels][columns]`.
    pub origins: Vec<Vec3>,
    /// The kind of each column: a place in [`Terrain::kinds`].
    pub column_kinds: Vec<usize>,
    /// What the kinds are called.
    pub kinds: Vec<String>,
}
