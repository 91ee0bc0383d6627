//! Animated WebP files, by Google's libwebp: full colour, and of each picture what changed.

use super::film::Film;
use super::image::Image;
use super::{DrawError, Out, create, finish};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use webp_animation::{Encoder, EncoderOptions, EncodingConfig, Error};

/// Quality, 0 to 100: above it files grow faster than anybody sees.
const QUALITY: f32 = 80.0;
/// A picture that stands for itself at least every so many, so that players can jump.
const WHOLE: isize = 50;

/// A WebP file in the making; it is in memory until it ends.
pub struct WebP {
    path: PathBuf,
    out: Out,
    encoder: Encoder,
    rgba: Vec<u8>,
    /// End of the last picture (ms).
    end: i32,
}

/// Milliseconds, rounded so that errors do not add up.
fn millis(s: f64) -> i32 {
    (s * 1000.0).round() as i32
}

impl WebP {
    fn fail(path: &Path) -> impl Fn(Error) -> DrawError + '_ {
        |e| DrawError::write(path, format!("{e:?}"))
    }
}

impl Film for WebP {
    const SAMPLES: usize = 0;

    fn begin(
        path: &Path,
        width: usize,
        height: usize,
        _samples: Vec<Image>,
    ) -> Result<Self, DrawError> {
        // Where nothing can be written nothing needs to be drawn.
        let out = create(path)?;
        let options = EncoderOptions {
            kmin: WHOLE - 1,
            kmax: WHOLE,
            encoding_config: Some(EncodingConfig::new_lossy(QUALITY)),
            ..EncoderOptions::default()
        };
        let size = (width as u32, height as u32);
        let encoder = Encoder::new_with_options(size, options);
        Ok(Self {
            path: path.to_path_buf(),
            out,
            encoder: encoder.map_err(Self::fail(path))?,
            rgba: vec![255; 4 * width * height],
            end: 0,
        })
    }

    fn add(&mut self, image: &Image, from: f64, to: f64) -> Result<(), DrawError> {
        for (rgba, rgb) in self.rgba.chunks_exact_mut(4).zip(image.data.chunks_exact(3)) {
            rgba[..3].copy_from_slice(rgb);
        }
        let added = self.encoder.add_frame(&self.rgba, millis(from));
        added.map_err(Self::fail(&self.path))?;
        self.end = millis(to);
        Ok(())
    }

    fn end(mut self) -> Result<(), DrawError> {
        let file = self.encoder.finalize(self.end);
        let file = file.map_err(Self::fail(&self.path))?;
        let written = self.out.write_all(&file);
        written.map_err(|e| DrawError::write(&self.path, e))?;
        finish(&self.path, self.out)
    }
}
