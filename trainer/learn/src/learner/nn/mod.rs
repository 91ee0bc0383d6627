//! Layers and the optimiser: tensor operations on buffers that live for the whole run.

pub mod adam;
pub mod device;
pub mod gru;
pub mod host;
pub mod init;
pub mod layer;
pub mod norm;
pub mod params;
pub(crate) mod shared;

pub use adam::{Adam, HostAdam};
pub use gru::Gru;
pub use layer::{Linear, Trunk, TrunkConfig, TrunkSpace};
pub use norm::LayerNorm;
pub use params::{Layout, Params};

use super::LearnError;
use ostler_sim::memory::MemoryError;
use tch::{Device, Kind, TchError, Tensor};

/// A zeroed tensor, or an error that names its purpose.
pub fn zeros(what: &str, size: &[i64], kind: Kind, device: Device) -> Result<Tensor, LearnError> {
    Tensor::f_zeros(size, (kind, device)).map_err(|_| {
        let elements = size.iter().fold(1usize, |n, &d| n.saturating_mul(d.max(0) as usize));
        LearnError::Memory(MemoryError {
            what: format!("{what} {size:?}"),
            bytes: elements.saturating_mul(kind.elt_size_in_bytes()),
        })
    })
}

/// A copy on the host, of its own memory.
pub fn host_copy(t: &Tensor) -> Result<Tensor, TchError> {
    let mut copy = Tensor::f_empty(t.size(), (t.f_kind()?, Device::Cpu))?;
    copy.f_copy_(t)?;
    Ok(copy)
}
