//! The extension of the Python package `ostler`: `batch::Batch` is N environments over the
//! caller's arrays. What Gymnasium and learners expect is in Python, in `python/ostler`.
//!
//! No `unsafe`: numpy's arrays come borrowed, and a step writes into them while other Python
//! threads run.

mod arrays;
mod batch;
mod error;
mod make;
mod messages;

use pyo3::prelude::*;

/// Batched robot environments.
#[pymodule]
fn _ostler(module: &Bound<'_, PyModule>) -> PyResult<()> {
    messages::collect();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("RAPIER", cfg!(feature = "rapier"))?;
    module.add_class::<batch::Batch>()?;
    module.add_function(wrap_pyfunction!(messages::messages, module)?)?;
    error::add(module)
}
