//! A picture in memory, and PNG files.

use super::DrawError;
use ostler_sim::files;
use std::path::Path;

/// Red, green and blue bytes (sRGB), row by row from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// `[height][width][3]`.
    pub data: Vec<u8>,
}

impl Image {
    /// A picture of one colour.
    pub fn new(width: usize, height: usize, rgb: [u8; 3]) -> Image {
        Image { width, height, data: rgb.repeat(width * height) }
    }

    /// The colour of a pixel; black outside.
    pub fn get(&self, x: usize, y: usize) -> [u8; 3] {
        let k = 3 * (y * self.width + x);
        match self.data.get(k..k + 3) {
            Some(&[r, g, b]) if x < self.width => [r, g, b],
            _ => [0; 3],
        }
    }

    /// Sets a pixel; nothing happens outside.
    pub fn put(&mut self, x: usize, y: usize, rgb: [u8; 3]) {
        if x < self.width && y < self.height {
            let k = 3 * (y * self.width + x);
            self.data[k..k + 3].copy_from_slice(&rgb);
        }
    }

    /// Moves a pixel towards a colour by `cover` of the way, 0 to 1.
    pub fn blend(&mut self, x: usize, y: usize, rgb: [u8; 3], cover: f32) {
        let old = self.get(x, y);
        let mix = |k: usize| {
            let (a, b) = (f32::from(old[k]), f32::from(rgb[k]));
            (a + (b - a) * cover.clamp(0.0, 1.0) + 0.5) as u8
        };
        self.put(x, y, [mix(0), mix(1), mix(2)]);
    }

    /// Copies `other` to where its upper left corner is at (x, y).
    pub fn paste(&mut self, other: &Image, x: usize, y: usize) {
        for row in 0..other.height {
            for column in 0..other.width {
                self.put(x + column, y + row, other.get(column, row));
            }
        }
    }

    /// Half as wide and high: means over blocks of four pixels.
    pub fn halved(&self) -> Image {
        let mut out = Image::new(self.width / 2, self.height / 2, [0; 3]);
        for y in 0..out.height {
            for x in 0..out.width {
                let four =
                    [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(i, j)| self.get(2 * x + i, 2 * y + j));
                let mean = |k: usize| (four.iter().map(|p| u32::from(p[k])).sum::<u32>() + 2) / 4;
                out.put(x, y, [mean(0) as u8, mean(1) as u8, mean(2) as u8]);
            }
        }
        out
    }

    /// Writes a PNG file.
    pub fn write_png(&self, path: &Path) -> Result<(), DrawError> {
        let mut out = super::create(path)?;
        let encoded = self.encode_png(&mut out);
        encoded.map_err(|e| DrawError::write(path, e))?;
        super::finish(path, out)
    }

    /// Puts a PNG file in the place of whatever has this name: nothing is written through
    /// a link, and no pipe is waited for.
    pub fn replace_png(&self, path: &Path) -> Result<(), DrawError> {
        let put = |file: &mut std::fs::File| {
            let encoded = self.encode_png(std::io::BufWriter::new(file));
            encoded.map_err(std::io::Error::other)
        };
        files::replace_with(path, files::SHARED, put).map_err(|e| DrawError::write(path, e))
    }

    fn encode_png(&self, to: impl std::io::Write) -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(to, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.data)?;
        writer.finish()
    }
}
