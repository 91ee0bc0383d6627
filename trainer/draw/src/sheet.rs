//! Contact sheets: moments of a clip side by side, each with its time.

use super::clip::{Clip, Unseen};
use super::image::Image;
use super::{BESIDE, DrawError, room_for, text};
use std::path::Path;

/// Pixels between pictures.
const GAP: usize = 4;

/// Writes a PNG with `columns` x `rows` moments, evenly spread over the clip, each
/// `width` x `height` pixels. Says in which the robot is not seen.
///
/// # Errors
/// There is no moment, or the file cannot be written.
pub fn write(
    clip: &Clip,
    path: &Path,
    columns: usize,
    rows: usize,
    width: usize,
    height: usize,
) -> Result<Unseen, DrawError> {
    if clip.is_empty() {
        return Err(DrawError::Empty(path.to_path_buf()));
    }
    let tiles = (columns * rows).clamp(1, clip.len());
    let last = clip.len() - 1;
    let pick = |k: usize| (k * last).checked_div(tiles - 1).unwrap_or(last);
    let picks: Vec<usize> = (0..tiles).map(pick).collect();
    let rows = tiles.div_ceil(columns);
    let size = |n: usize, each: usize| n * (each + GAP) + GAP;
    let (wide, high) = (size(tiles.min(columns), width), size(rows, height));
    let pixels = wide.saturating_mul(high);
    room_for(pixels.saturating_mul(4 * 3).saturating_add(BESIDE))?;
    let mut sheet = Image::new(wide, high, [255; 3]);
    let mut k = 0;
    let unseen = clip.render(&picks, width, height, |shot, image| {
        let (x, y) = (GAP + (k % columns) * (width + GAP), GAP + (k / columns) * (height + GAP));
        sheet.paste(image, x, y);
        let label = format!("{:.2} s", shot as f64 * clip.step_dt());
        let size = (height as f32 / 15.0).max(11.0);
        let wide = text::width(&label, size);
        let left = (x + width) as f32 - wide - 0.5 * size;
        let top = (y + height) as f32 - 1.5 * size;
        let ink = text::ink(&sheet, left, top, wide, size);
        text::draw(&mut sheet, &label, left, top, size, ink);
        k += 1;
        Ok::<(), DrawError>(())
    })?;
    sheet.write_png(path)?;
    Ok(unseen)
}
