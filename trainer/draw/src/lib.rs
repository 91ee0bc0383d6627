//! Pictures of robots: a small software renderer, PNG sheets and GIF.
//!
//! Reading order: a [`Clip`] collects poses while a policy runs -> [`choice`] says which
//! shapes are drawn, [`Scene`] what a model looks like, [`paint`] where a texture lies ->
//! [`camera`] where from -> [`render`] casts rays at [`shape`]s, [`mesh`]es and the [`ground`] -> [`image`],
//! [`sheet`] and [`gif`] write files. No window, no GPU, no fonts needed.

#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod camera;
pub mod choice;
pub mod clip;
pub mod floor;
pub mod gif;
pub mod ground;
pub mod image;
pub mod math;
pub mod mesh;
pub mod paint;
pub mod picture;
pub mod render;
pub mod scene;
pub mod shape;
pub mod sheet;
pub mod smooth;
pub mod text;

pub use camera::Aim;
pub use choice::Geoms;
pub use clip::{Clip, Unseen};
pub use image::Image;
pub use scene::{Poses, Scene};

use ostler_sim::files::NewFile;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A picture that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The file cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Reason of the system or the encoder.
        reason: String,
    },
    /// There is nothing to draw.
    #[error("nothing was recorded, so there is no picture to write to {}; play for longer (--seconds)", .0.display())]
    Empty(PathBuf),
    /// There is no memory to draw.
    #[error("there is no memory for a picture: it takes up to {} MiB", .0.div_ceil(1 << 20))]
    Memory(usize),
}

/// Asks for as much memory as is about to be used, and gives it back: whatever draws takes its
/// memory in many pieces, some of it in the code of others, and ends the process where one of
/// them is refused.
///
/// # Errors
/// [`DrawError::Memory`].
pub fn room_for(bytes: usize) -> Result<(), DrawError> {
    let mut room = Vec::<u8>::new();
    let reserved = room.try_reserve_exact(bytes);
    // Not left out as nobody looks at it.
    std::hint::black_box(&room);
    reserved.map_err(|_| DrawError::Memory(bytes))
}

/// What fonts, encoders and the system take beside pictures, at the most (bytes).
pub const BESIDE: usize = 16 << 20;

impl DrawError {
    fn write(path: &Path, reason: impl std::fmt::Display) -> DrawError {
        DrawError::Write { path: path.to_path_buf(), reason: reason.to_string() }
    }
}

/// A picture in the making.
type Out = BufWriter<NewFile>;

fn create(path: &Path) -> Result<Out, DrawError> {
    let new = NewFile::output(path).map(BufWriter::new);
    new.map_err(|e| DrawError::write(path, e))
}

fn finish(path: &Path, out: Out) -> Result<(), DrawError> {
    let whole = out.into_inner().map_err(std::io::IntoInnerError::into_error);
    let done = whole.and_then(NewFile::finish);
    done.map_err(|e| DrawError::write(path, e))
}

#[cfg(test)]
mod tests;
