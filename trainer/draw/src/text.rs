//! Text on pictures, in DejaVu Sans, which the program carries with it: nothing
//! depends on the installed fonts.

use super::image::Image;
use ab_glyph::{Font, FontRef, ScaleFont, point};

/// Draws text with its upper left corner at (x, y); `size` is the line's height in
/// pixels. Returns the width it took.
pub fn draw(image: &mut Image, text: &str, x: f32, y: f32, size: f32, rgb: [u8; 3]) -> f32 {
    // The bytes are part of the program, but a broken font would only cost labels.
    let Ok(font) = FontRef::try_from_slice(dejavu::sans::regular()) else {
        return 0.0;
    };
    let scaled = font.as_scaled(size);
    let mut pen = x;
    for c in text.chars() {
        let id = font.glyph_id(c);
        let glyph = id.with_scale_and_position(size, point(pen, y + scaled.ascent()));
        pen += scaled.h_advance(id);
        let Some(outline) = font.outline_glyph(glyph) else {
            continue;
        };
        let corner = outline.px_bounds().min;
        outline.draw(|i, j, cover| {
            let (px, py) = (corner.x + i as f32, corner.y + j as f32);
            if px >= 0.0 && py >= 0.0 {
                image.blend(px as usize, py as usize, rgb, cover);
            }
        });
    }
    pen - x
}

/// Colour of a text of `width` x `height` pixels at (x, y) that can be read there: dark, or light
/// before a dark floor.
pub fn ink(image: &Image, x: f32, y: f32, width: f32, height: f32) -> [u8; 3] {
    let (mut sum, mut count) = (0_u64, 0_u64);
    for row in y.max(0.0) as usize..(y + height).max(0.0) as usize {
        for column in x.max(0.0) as usize..(x + width).max(0.0) as usize {
            let [r, g, b] = image.get(column, row).map(u64::from);
            sum += 2 * r + 5 * g + b;
            count += 8;
        }
    }
    match sum < 110 * count {
        true => [228, 234, 242],
        false => [38, 50, 66],
    }
}

/// Width of a text in pixels.
pub fn width(text: &str, size: f32) -> f32 {
    FontRef::try_from_slice(dejavu::sans::regular()).map_or(0.0, |font| {
        let scaled = font.as_scaled(size);
        text.chars().map(|c| scaled.h_advance(font.glyph_id(c))).sum()
    })
}
