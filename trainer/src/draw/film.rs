//! Moving pictures of a clip: one way through it for files of all formats.

use super::clip::{CHUNK, Clip, Unseen};
use super::image::Image;
use super::{BESIDE, DrawError, room_for};
use std::path::Path;

/// A file of moving pictures in the making.
pub trait Film: Sized {
    /// Pictures that it wants to see before it begins, at most.
    const SAMPLES: usize;

    /// Begins a file of pictures of `width` x `height` pixels.
    ///
    /// # Errors
    /// It cannot be written, or not with such pictures.
    fn begin(
        path: &Path,
        width: usize,
        height: usize,
        samples: Vec<Image>,
    ) -> Result<Self, DrawError>;

    /// Adds a picture that is shown from `from` to `to` (s).
    ///
    /// # Errors
    /// It cannot be written.
    fn add(&mut self, image: &Image, from: f64, to: f64) -> Result<(), DrawError>;

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    fn end(self) -> Result<(), DrawError>;
}

/// Writes the clip as a film that loops, in real time at about `fps` pictures a second. Says in
/// which the robot is not seen.
///
/// # Errors
/// There is no moment, or the file cannot be written.
pub fn write<F: Film>(
    clip: &Clip,
    path: &Path,
    width: usize,
    height: usize,
    fps: f64,
) -> Result<Unseen, DrawError> {
    if clip.is_empty() {
        return Err(DrawError::Empty(path.to_path_buf()));
    }
    // Of each picture that is there at a time its bytes, and twice as many for the encoders.
    let pixels = width.saturating_mul(height);
    let pictures = CHUNK + 3 * F::SAMPLES + 4;
    room_for(pixels.saturating_mul(9 * pictures).saturating_add(BESIDE))?;
    let stride = (1.0 / (fps * clip.step_dt())).round().max(1.0) as usize;
    let picks: Vec<usize> = (0..clip.len()).step_by(stride).collect();
    let mut samples = Vec::new();
    if F::SAMPLES > 0 {
        let step = picks.len().div_ceil(F::SAMPLES).max(1);
        let sampled: Vec<usize> = picks.iter().step_by(step).copied().collect();
        clip.render(&sampled, width, height, |_, image| {
            samples.push(image.clone());
            Ok::<(), DrawError>(())
        })?;
    }
    let mut film = F::begin(path, width, height, samples)?;
    let time = |n: usize| (n * stride) as f64 * clip.step_dt();
    let mut shown = 0;
    let unseen = clip.render(&picks, width, height, |_, image| {
        shown += 1;
        film.add(image, time(shown - 1), time(shown))
    })?;
    film.end()?;
    Ok(unseen)
}
