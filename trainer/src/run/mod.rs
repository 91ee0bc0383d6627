//! One training: the loop, its folder, checkpoints and signals.
