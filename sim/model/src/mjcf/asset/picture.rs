//! Pictures of textures: PNG files as red, green and blue, bounded before they are decoded.

use std::io::Cursor;

/// Most pixels of a picture, and of all of a model: what is unpacked takes time. Rows are made
/// smaller as they come.
const MAX_READ: usize = 1 << 26;
const MAX_READ_IN_ALL: usize = 1 << 27;
/// Most pixels that are kept of a texture, and of all of a model.
pub(super) const MAX_KEPT: usize = 1 << 22;
const MAX_KEPT_IN_ALL: usize = 1 << 24;
/// Textures are not made smaller than this (pixels).
const LEAST: usize = 1 << 12;

/// Pixels that a model's textures may still take.
pub(super) struct Budget {
    read: usize,
    kept: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { read: MAX_READ_IN_ALL, kept: MAX_KEPT_IN_ALL }
    }

    /// Pixels that the next texture may keep: less, the less is left.
    pub(crate) fn most(&self) -> Result<usize, String> {
        match MAX_KEPT.min(self.kept / 2) {
            most if most < LEAST => {
                Err("the model's textures have too many pixels in all; use smaller ones".into())
            }
            most => Ok(most),
        }
    }

    /// That many pixels are kept.
    pub(crate) fn keep(&mut self, pixels: usize) {
        self.kept = self.kept.saturating_sub(pixels);
    }

    fn read(&mut self, width: usize, height: usize) -> Result<(), String> {
        let pixels = width.saturating_mul(height);
        let left = self.read.checked_sub(pixels).filter(|_| pixels <= MAX_READ);
        self.read = left.ok_or_else(|| {
            format!(
                "{width} x {height} pixels; a picture has at most {} million, all of a model at \
                 most {} million",
                MAX_READ / 1_000_000,
                MAX_READ_IN_ALL / 1_000_000
            )
        })?;
        Ok(())
    }
}

/// A picture in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub width: usize,
    pub height: usize,
    /// `[height][width][3]`.
    pub data: Vec<u8>,
    /// Width and height in the file.
    pub whole: [usize; 2],
}

/// The least divisor that makes `width` x `height` pixels at most `most`.
pub(super) fn divisor(width: usize, height: usize, most: usize) -> usize {
    let fits = |d: &usize| width.div_ceil(*d).saturating_mul(height.div_ceil(*d)) <= most.max(1);
    (1..=width.max(height)).find(fits).unwrap_or(1)
}

/// A PNG file with at most `most` pixels: a larger picture as means over squares. Transparency
/// is left out, grey becomes three times the same.
///
/// # Errors
/// Not a PNG file that can be read; too many pixels.
pub(super) fn png(bytes: &[u8], most: usize, budget: &mut Budget) -> Result<Picture, String> {
    let said = |e: png::DecodingError| format!("not a PNG picture that can be read: {e}");
    let limits = png::Limits { bytes: 1 << 24 };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(said)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    budget.read(width, height)?;
    let samples = reader.output_color_type().0.samples();
    let mut shrink = Shrink::new(width, height, divisor(width, height, most));
    if reader.info().interlaced {
        if width * height > MAX_KEPT {
            return Err(format!(
                "{width} x {height} interlaced pixels; save it without interlacing"
            ));
        }
        let size = reader.output_buffer_size().ok_or("it is too large")?;
        let mut buffer = vec![0; size];
        let frame = reader.next_frame(&mut buffer).map_err(said)?;
        for row in buffer.chunks_exact(frame.line_size.max(1)).take(height) {
            shrink.row(row, samples);
        }
    } else {
        for _ in 0..height {
            let row = reader.next_row().map_err(said)?;
            let row = row.ok_or("the picture ends early")?;
            shrink.row(row.data(), samples);
        }
    }
    Ok(shrink.end())
}

/// Makes a picture smaller while its rows come in.
struct Shrink {
    divisor: usize,
    picture: Picture,
    /// Sums of the row of squares, and pixels in each.
    sums: Vec<[u32; 3]>,
    rows: usize,
}

impl Shrink {
    fn new(width: usize, height: usize, divisor: usize) -> Self {
        let (w, h) = (width.div_ceil(divisor), height.div_ceil(divisor));
        Self {
            divisor,
            picture: Picture {
                width: w,
                height: h,
                data: Vec::with_capacity(3 * w * h),
                whole: [width, height],
            },
            sums: vec![[0; 3]; w],
            rows: 0,
        }
    }

    /// Takes a row of pixels of one (grey) to four samples.
    fn row(&mut self, row: &[u8], samples: usize) {
        let width = self.picture.whole[0];
        let pixels = row.chunks_exact(samples.max(1)).take(width);
        let pixels = pixels.map(|p| match *p {
            [r, g, b, ..] => [r, g, b],
            [grey, ..] => [grey; 3],
            [] => [0; 3],
        });
        if self.divisor == 1 {
            self.picture.data.extend(pixels.flatten());
            return;
        }
        for (x, pixel) in pixels.enumerate() {
            let sum = &mut self.sums[x / self.divisor];
            *sum = [0, 1, 2].map(|i| sum[i] + u32::from(pixel[i]));
        }
        self.rows += 1;
        if self.rows == self.divisor {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let width = self.picture.whole[0];
        for (x, sum) in self.sums.iter_mut().enumerate() {
            let across = self.divisor.min(width - x * self.divisor);
            let count = (across * self.rows).max(1) as u32;
            let mean = sum.map(|s| ((s + count / 2) / count) as u8);
            self.picture.data.extend(mean);
            *sum = [0; 3];
        }
        self.rows = 0;
    }

    fn end(mut self) -> Picture {
        if self.rows > 0 {
            self.flush();
        }
        self.picture
    }
}

impl Picture {
    /// With at most `most` pixels.
    pub(crate) fn shrunk(self, most: usize) -> Picture {
        let divisor = divisor(self.width, self.height, most);
        if divisor == 1 {
            return self;
        }
        let mut shrink = Shrink::new(self.width, self.height, divisor);
        for row in self.data.chunks_exact(3 * self.width) {
            shrink.row(row, 3);
        }
        shrink.end()
    }

    /// Mirrors it.
    pub(crate) fn flip(&mut self, horizontally: bool, vertically: bool) {
        let row = 3 * self.width;
        if horizontally {
            for row in self.data.chunks_exact_mut(row) {
                for c in 0..row.len() / 6 {
                    for i in 0..3 {
                        row.swap(3 * c + i, row.len() - 3 * (c + 1) + i);
                    }
                }
            }
        }
        if vertically {
            for r in 0..self.height / 2 {
                let (above, below) = self.data.split_at_mut(row * (self.height - 1 - r));
                above[row * r..row * (r + 1)].swap_with_slice(&mut below[..row]);
            }
        }
    }

    /// The square of `side` pixels whose upper left corner is at column `x` and row `y`.
    pub(crate) fn square(&self, x: usize, y: usize, side: usize) -> impl Iterator<Item = u8> + '_ {
        let rows = self.data.chunks_exact(3 * self.width).skip(y).take(side);
        rows.flat_map(move |r| r[3 * x..3 * (x + side)].iter().copied())
    }
}
