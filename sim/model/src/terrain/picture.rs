//! Ground seen from above.

use super::Terrain;

/// Most pixels to a side.
const MOST: usize = 2048;

impl Terrain {
    /// A grey PNG picture from above, x to the right and y upwards: a pixel for each cell, or
    /// for every k-th one of large grounds. The lowest ground is black, the highest white.
    ///
    /// # Errors
    /// The encoder's.
    pub fn picture(&self) -> Result<Vec<u8>, String> {
        let [across, up] = [self.levels, self.columns].map(|tiles| tiles * self.cells);
        let step = across.max(up).div_ceil(MOST).max(1);
        let [width, height] = [across, up].map(|cells| cells.div_ceil(step));
        let [low, high] = self.range;
        let grey = |(r, c): (usize, usize)| {
            let tile = c / self.cells * self.columns + r / self.cells;
            let at = self.index(tile, r % self.cells, c % self.cells);
            let z = f64::from(self.heights[at]);
            (255.0 * (z - low) / (high - low).max(1e-6)).round() as u8
        };
        let rows = (0..height).rev();
        let pixels = rows.flat_map(|r| (0..width).map(move |c| (r * step, c * step)));
        let pixels: Vec<u8> = pixels.map(grey).collect();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
        encoder.set_color(png::ColorType::Grayscale);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&pixels)?;
            writer.finish()
        });
        written.map_err(|e| e.to_string())?;
        Ok(bytes)
    }
}
