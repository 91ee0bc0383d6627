//! The one place where the numbers of a tensor come to the host.
//!
//! Every function here waits until its copy has landed: its result cannot be read too early
//! (failure F3). Each is also a wait for everything that a GPU was given before, so none belongs
//! into the collection loop, where `ostler_sim::device::transfer` reads without standing still,
//! and few into an update. The lint `disallowed-methods` keeps libtorch's own ways to the host
//! to this file. Numbers that come back in every step land in memory that is there already:
//! `Landing` of [`crate::device::stream`], which can be read only from the call that waited,
//! too.

#![allow(clippy::disallowed_methods, reason = "this is the place")]

use ostler_sim::device::Counts;
use tch::kind::Element;
use tch::{Device, Kind, TchError, Tensor};

/// The tensor in the host's memory, without gaps.
fn landed(tensor: &Tensor) -> Result<Tensor, TchError> {
    // This copy is not one of the non-blocking ones: it returns when it is there.
    tensor.f_to_device(Device::Cpu)?.f_contiguous()
}

/// The tensor on a device, in one copy that is waited for and counted; itself where it is
/// there already.
///
/// # Errors
/// The GPU refuses, now or for something that was started before; no memory.
pub fn brought(tensor: &Tensor, device: Device, crossed: &Counts) -> Result<Tensor, TchError> {
    count(tensor, device, crossed);
    tensor.f_to_device(device)
}

/// Copies `from` into `to`, which may lie on another device: waited for and counted then.
///
/// # Errors
/// As [`brought`].
pub(crate) fn copied(from: &Tensor, to: &Tensor, crossed: &Counts) -> Result<(), TchError> {
    count(from, to.device(), crossed);
    to.shallow_clone().f_copy_(from)
}

fn count(tensor: &Tensor, to: Device, crossed: &Counts) {
    // Of nothing libtorch copies nothing.
    if tensor.device() != to && tensor.numel() > 0 {
        match to {
            Device::Cpu => crossed.fetched(),
            _ => crossed.sent(true),
        }
    }
}

/// All numbers of a tensor, in the order of its rows.
///
/// # Errors
/// The GPU refuses, now or for something that was started before; no memory.
pub fn host_numbers(tensor: &Tensor) -> Result<Vec<f32>, TchError> {
    Vec::try_from(landed(&tensor.f_to_kind(Kind::Float)?.f_reshape([-1])?)?)
}

/// [`host_numbers`] in double precision.
///
/// # Errors
/// As there.
pub fn host_doubles(tensor: &Tensor) -> Result<Vec<f64>, TchError> {
    Vec::try_from(landed(&tensor.f_to_kind(Kind::Double)?.f_reshape([-1])?)?)
}

/// All whole numbers of a tensor.
///
/// # Errors
/// As [`host_numbers`].
pub fn host_integers(tensor: &Tensor) -> Result<Vec<i64>, TchError> {
    Vec::try_from(landed(&tensor.f_to_kind(Kind::Int64)?.f_reshape([-1])?)?)
}

/// The first number of a tensor.
///
/// # Errors
/// As [`host_numbers`]; it has none.
pub fn host_number(tensor: &Tensor) -> Result<f64, TchError> {
    landed(&first(tensor)?)?.f_double_value(&[])
}

/// The first number of a tensor of whole numbers.
///
/// # Errors
/// As [`host_number`].
pub fn host_integer(tensor: &Tensor) -> Result<i64, TchError> {
    landed(&first(tensor)?)?.f_int64_value(&[])
}

/// Only the wanted numbers cross the bus.
fn first(tensor: &Tensor) -> Result<Tensor, TchError> {
    tensor.f_reshape([-1])?.f_get(0)
}

/// Fills `out` with the first numbers of a tensor of that kind.
///
/// # Errors
/// As [`host_numbers`]; the tensor is of another kind or has fewer.
pub fn read_into<T: Element>(tensor: &Tensor, out: &mut [T]) -> Result<(), TchError> {
    let count = out.len();
    landed(tensor)?.f_copy_data(out, count)
}

/// Fills `out` with the bytes of a tensor of any kind.
///
/// # Errors
/// As [`host_numbers`]; `out` is shorter than the tensor.
pub fn bytes_into(tensor: &Tensor, out: &mut [u8]) -> Result<(), TchError> {
    landed(tensor)?.f_copy_data_u8(out, tensor.numel())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_arrive_in_the_order_of_rows() {
        let t = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).view([2, 3]);
        let turned = t.transpose(0, 1);
        let expected = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        assert_eq!(host_numbers(&turned.contiguous()).unwrap(), expected);
        let mut out = [0.0_f32; 6];
        read_into(&turned, &mut out).unwrap();
        assert_eq!(out, expected, "gaps in the tensor are none in the answer");
        assert_eq!(host_doubles(&t).unwrap()[5], 6.0);
        assert_eq!(host_number(&turned).unwrap(), 1.0);
        assert_eq!(host_integer(&Tensor::from_slice(&[7_i64, 8])).unwrap(), 7);
        let mut bytes = [0; 24];
        bytes_into(&turned, &mut bytes).unwrap();
        assert_eq!(bytes[4..8], 4.0_f32.to_ne_bytes());
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let t = Tensor::from_slice(&[1.0_f32, 2.0]);
        assert!(read_into(&t, &mut [0.0_f32; 3]).is_err(), "fewer numbers");
        assert!(read_into(&t, &mut [0.0_f64; 2]).is_err(), "another kind");
        assert!(bytes_into(&t, &mut [0; 7]).is_err(), "too short");
        let none = Tensor::from_slice::<f32>(&[]);
        assert!(host_number(&none).is_err(), "nothing there");
    }
}
