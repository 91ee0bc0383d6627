//! Robots in a browser: pages that show a recording, and a server that shows what happens now.
//!
//! Reading order: [`scene`] turns the shapes of `draw` into what the page draws, [`textures`] their
//! textures, [`ground`] a terrain -> [`contacts`]
//! measures where bodies touch -> [`feed`] makes a row of numbers of every moment -> [`record`]
//! keeps the rows of some episodes -> [`page`] writes one file that needs nothing else, and
//! [`serve`] sends rows to browsers as they are made.

pub mod contacts;
pub mod feed;
pub mod ground;
pub mod page;
pub mod record;
pub mod scene;
pub mod serve;
pub mod textures;

pub use feed::Feed;
pub use record::{Recorder, Recording};

use std::path::{Path, PathBuf};

/// A page that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The file cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// More than a browser can be asked to hold.
    #[error(
        "the page would hold {} MiB, and at most {} MiB are written: play for a shorter time (--seconds), \
         with fewer pictures a second (--fps), or draw simpler shapes (--geoms collision)",
        .bytes >> 20, .most >> 20
    )]
    Large {
        /// Bytes of its numbers.
        bytes: usize,
        /// Bytes at most.
        most: usize,
    },
    /// Nothing was recorded.
    #[error("nothing was recorded, so there is nothing to show in {}; play for longer (--seconds)", .0.display())]
    Empty(PathBuf),
}

impl ViewError {
    fn write(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Write { path: path.to_path_buf(), reason: reason.to_string() }
    }
}
