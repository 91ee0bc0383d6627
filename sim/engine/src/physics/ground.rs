//! The ground that all worlds share, as kernels take it.

use crate::device::Address;
use crate::kernels::Ground;
use bytemuck::Zeroable;
use ostler_model::terrain::Terrain;

/// The ground of a model, whose heights are on the host; without a terrain there is none.
pub fn ground(terrain: Option<&Terrain>) -> Ground {
    let Some(terrain) = terrain else {
        return Ground::zeroed();
    };
    let ([x, y], [low, high]) = (terrain.corner(), terrain.range);
    let block = terrain.block() as f64 * terrain.cell;
    let [roof_x, roof_y] = terrain.blocks().map(|blocks| blocks as i32);
    Ground {
        height: terrain.heights.as_ptr() as Address,
        levels: terrain.levels as i32,
        columns: terrain.columns as i32,
        cells: terrain.cells as i32,
        cell: terrain.cell as f32,
        x: x as f32,
        y: y as f32,
        low: low as f32,
        high: high as f32,
        roof: terrain.roof().as_ptr() as Address,
        block: block as f32,
        per_m: (1.0 / block) as f32,
        roof_x,
        roof_y,
    }
}
