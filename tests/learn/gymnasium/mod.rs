//! Environments of Gymnasium: numbers, faults of Python, whole runs by the program.

mod runs;
mod worlds;
