//! Animated GIFs: one palette for the whole clip, ordered dithering (which stands
//! still from frame to frame, as error diffusion does not), and only what changed.

use super::clip::{CHUNK, Clip, Unseen};
use super::image::Image;
use super::{BESIDE, DrawError, Out, create, finish, room_for};
use color_quant::NeuQuant;
use std::path::{Path, PathBuf};

/// Colours of the palette; one more entry stands for "as before".
const COLORS: usize = 255;
const AS_BEFORE: u8 = COLORS as u8;

/// Pictures that the palette is made from, at most.
const SAMPLES: usize = 8;

/// Writes the clip as a film that loops, in real time at about `fps` pictures a second. Says in
/// which the robot is not seen.
///
/// # Errors
/// There is no moment, or the file cannot be written.
pub fn write(
    clip: &Clip,
    path: &Path,
    width: usize,
    height: usize,
    fps: f64,
) -> Result<Unseen, DrawError> {
    if clip.is_empty() {
        return Err(DrawError::Empty(path.to_path_buf()));
    }
    // Of each picture that is there at a time its bytes, and twice as many for the encoder.
    let pixels = width.saturating_mul(height);
    let pictures = CHUNK + 3 * SAMPLES + 4;
    room_for(pixels.saturating_mul(9 * pictures).saturating_add(BESIDE))?;
    let stride = (1.0 / (fps * clip.step_dt())).round().max(1.0) as usize;
    let picks: Vec<usize> = (0..clip.len()).step_by(stride).collect();
    let mut samples = Vec::new();
    let step = picks.len().div_ceil(SAMPLES).max(1);
    let sampled: Vec<usize> = picks.iter().step_by(step).copied().collect();
    clip.render(&sampled, width, height, |_, image| {
        samples.push(image.clone());
        Ok::<(), DrawError>(())
    })?;
    let mut film = Gif::begin(path, width, height, &samples)?;
    let time = |n: usize| (n * stride) as f64 * clip.step_dt();
    let mut shown = 0;
    let unseen = clip.render(&picks, width, height, |_, image| {
        shown += 1;
        film.add(image, time(shown - 1), time(shown))
    })?;
    film.end()?;
    Ok(unseen)
}

/// A GIF in the making.
struct Gif {
    path: PathBuf,
    encoder: gif::Encoder<Out>,
    quantizer: Quantizer,
    size: [usize; 2],
    /// The frame before, as entries of the palette, and room for the next one.
    shown: Vec<u8>,
    next: Vec<u8>,
}

impl Gif {
    /// Begins a file of pictures of `width` x `height` pixels.
    fn begin(
        path: &Path,
        width: usize,
        height: usize,
        samples: &[Image],
    ) -> Result<Self, DrawError> {
        let fail = |e: gif::EncodingError| DrawError::write(path, e);
        let quantizer = Quantizer::new(samples);
        let (w, h) = (width as u16, height as u16);
        let file = create(path)?;
        let mut encoder = gif::Encoder::new(file, w, h, &quantizer.palette).map_err(fail)?;
        encoder.set_repeat(gif::Repeat::Infinite).map_err(fail)?;
        Ok(Self {
            path: path.to_path_buf(),
            encoder,
            quantizer,
            size: [width, height],
            shown: Vec::new(),
            next: vec![0; width * height],
        })
    }

    /// Adds a picture that is shown from `from` to `to` (s).
    fn add(&mut self, image: &Image, from: f64, to: f64) -> Result<(), DrawError> {
        let [width, height] = self.size;
        self.quantizer.map(image, &mut self.next);
        let mut frame = changed(&self.shown, &self.next, width, height);
        // Hundredths of a second, rounded so that errors do not add up.
        let tick = |s: f64| (s * 100.0).round();
        frame.delay = (tick(to) - tick(from)) as u16;
        let written = self.encoder.write_frame(&frame);
        written.map_err(|e| DrawError::write(&self.path, e))?;
        self.shown.clone_from(&self.next);
        Ok(())
    }

    fn end(self) -> Result<(), DrawError> {
        let out = self.encoder.into_inner();
        let out = out.map_err(|e| DrawError::write(&self.path, e))?;
        finish(&self.path, out)
    }
}

/// The smallest rectangle that differs, with what is equal in it left transparent.
fn changed(shown: &[u8], next: &[u8], width: usize, height: usize) -> gif::Frame<'static> {
    let same = |x: usize, y: usize| shown.get(y * width + x) == Some(&next[y * width + x]);
    let mut rows = (0..height).filter(|&y| (0..width).any(|x| !same(x, y)));
    let top = rows.next().unwrap_or(0);
    let bottom = rows.next_back().unwrap_or(top);
    let mut columns = (0..width).filter(|&x| (top..=bottom).any(|y| !same(x, y)));
    let left = columns.next().unwrap_or(0);
    let right = columns.next_back().unwrap_or(left);
    let mut buffer = Vec::with_capacity((right + 1 - left) * (bottom + 1 - top));
    for y in top..=bottom {
        for x in left..=right {
            buffer.push(if same(x, y) { AS_BEFORE } else { next[y * width + x] });
        }
    }
    gif::Frame {
        left: left as u16,
        top: top as u16,
        width: (right + 1 - left) as u16,
        height: (bottom + 1 - top) as u16,
        transparent: Some(AS_BEFORE),
        dispose: gif::DisposalMethod::Keep,
        buffer: buffer.into(),
        ..gif::Frame::default()
    }
}

/// Colours to palette entries.
struct Quantizer {
    network: NeuQuant,
    /// Red, green, blue of each entry, the last one unused.
    palette: Vec<u8>,
    /// Entry of each colour at six bits a channel, found when first asked for.
    known: Vec<Option<u8>>,
}

impl Quantizer {
    fn new(samples: &[Image]) -> Self {
        let mut pixels = Vec::new();
        for rgb in samples.iter().flat_map(|i| i.data.chunks_exact(3)) {
            pixels.extend([rgb[0], rgb[1], rgb[2], 255]);
        }
        let network = NeuQuant::new(10, COLORS, &pixels);
        let mut palette = network.color_map_rgb();
        palette.resize(3 * (COLORS + 1), 0);
        Self { network, palette, known: vec![None; 1 << 18] }
    }

    fn map(&mut self, image: &Image, out: &mut [u8]) {
        // Bayer's 4 x 4 matrix.
        const ORDER: [i32; 16] = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5];
        for (k, (rgb, out)) in image.data.chunks_exact(3).zip(out).enumerate() {
            let (x, y) = (k % image.width, k / image.width);
            let nudge = (ORDER[4 * (y % 4) + x % 4] - 7) / 2;
            let six = |c: u8| (i32::from(c) + nudge).clamp(0, 255) as usize >> 2;
            let (r, g, b) = (six(rgb[0]), six(rgb[1]), six(rgb[2]));
            *out = *self.known[r << 12 | g << 6 | b].get_or_insert_with(|| {
                let wide = |c: usize| (c << 2 | c >> 4) as u8;
                let entry = self.network.index_of(&[wide(r), wide(g), wide(b), 255]);
                entry.min(COLORS - 1) as u8
            });
        }
    }
}
