//! Tensors over host memory that the simulation writes in place.
