//! Pictures of robots: a small software renderer, PNG sheets and GIFs.
