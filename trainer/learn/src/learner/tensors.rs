//! Tensors by name, of zeros, and on the host.

use super::error::LearnError;
use ostler_sim::memory::MemoryError;
use tch::{Device, Kind, TchError, Tensor};

/// Tensors with their names, as a checkpoint holds them.
pub type NamedTensors = Vec<(String, Tensor)>;

/// A zeroed tensor, or an error that names its purpose.
pub(super) fn zeros(
    what: &str,
    size: &[i64],
    kind: Kind,
    device: Device,
) -> Result<Tensor, LearnError> {
    Tensor::f_zeros(size, (kind, device)).map_err(|_| {
        let elements = size.iter().fold(1usize, |n, &d| n.saturating_mul(d.max(0) as usize));
        LearnError::Memory(MemoryError {
            what: format!("{what} {size:?}"),
            bytes: elements.saturating_mul(kind.elt_size_in_bytes()),
        })
    })
}

/// A copy on the host, of its own memory.
pub(super) fn host_copy(t: &Tensor) -> Result<Tensor, TchError> {
    let mut copy = Tensor::f_empty(t.size(), (t.f_kind()?, Device::Cpu))?;
    copy.f_copy_(t)?;
    Ok(copy)
}

/// The tensor called `name`, if it has this shape.
pub(super) fn find<'a>(
    tensors: &'a [(String, Tensor)],
    name: &str,
    shape: &[i64],
) -> Result<&'a Tensor, LearnError> {
    let Some((_, tensor)) = tensors.iter().find(|(n, _)| n == name) else {
        return Err(LearnError::Checkpoint(format!("it has no {name}")));
    };
    if tensor.size() != shape {
        return Err(LearnError::Checkpoint(format!(
            "{name} is {:?}, expected {shape:?}",
            tensor.size()
        )));
    }
    Ok(tensor)
}
