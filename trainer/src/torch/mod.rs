//! What tch lacks, through a small C++ shim.
