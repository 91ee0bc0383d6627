//! The extension of the Python package `ostler`: `batch::Batch` is N environments over the
//! caller's arrays, `device::DeviceBatch` N of them on a GPU. What Gymnasium and learners expect
//! is in Python, in `python/ostler`.
//!
//! On the processor there is no `unsafe`: numpy's arrays come borrowed, and a step writes into
//! them while other Python threads run.

mod arrays;
mod batch;
mod device;
mod error;
mod facts;
mod guarded;
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
    module.add_class::<device::DeviceArray>()?;
    module.add_class::<device::DeviceBatch>()?;
    module.add_class::<device::DeviceSet>()?;
    module.add_function(wrap_pyfunction!(messages::messages, module)?)?;
    error::add(module)
}
