//! Which operators libtorch runs: how many launches a step or an update takes on a GPU,
//! and whether any of them reads the device back.

use super::{TorchError, call};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn ostler_torch_watch(error: *mut c_char, error_size: usize) -> i32;
    fn ostler_torch_watched(
        text: *mut c_char,
        text_size: usize,
        started: *mut u64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
}

/// Operations that ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operators {
    /// How often each operator ran, by its name: `aten::addmm`. One that another operator
    /// ran is counted as well as that one.
    pub by_name: BTreeMap<String, u64>,
    /// Of them, those that start something on a GPU: about as many kernels are launched.
    pub launches: u64,
}

/// Operators after which the host waits for a GPU, whatever they are used for.
const READS_BACK: &[&str] = &[
    "aten::_local_scalar_dense",
    "aten::equal",
    "aten::is_nonzero",
    "aten::item",
    "aten::masked_select",
    "aten::nonzero",
    "aten::repeat_interleave",
    "aten::unique",
    "aten::_unique2",
];

impl Operators {
    /// How often this one ran.
    pub fn of(&self, name: &str) -> u64 {
        self.by_name.get(name).copied().unwrap_or(0)
    }

    /// Those that make the host wait for a GPU.
    pub fn read_back(&self) -> Vec<&str> {
        let all = READS_BACK.iter().copied();
        all.filter(|name| self.of(name) > 0).collect()
    }
}

/// Counts the operators that `work` runs on this thread.
///
/// # Errors
/// libtorch refuses; or this is called within itself.
pub fn watched<T>(work: impl FnOnce() -> T) -> Result<(T, Operators), TorchError> {
    // SAFETY: `call` hands over a buffer together with its length.
    call("count operators", |error, size| unsafe { ostler_torch_watch(error, size) })?;
    let result = work();
    let mut text = vec![0_u8; 1 << 16];
    let mut launches = 0;
    // SAFETY: buffer and number live across the call, the buffer is as long as said, and
    // `call` hands over a buffer together with its length.
    call("count operators", |error, size| unsafe {
        ostler_torch_watched(text.as_mut_ptr().cast(), text.len(), &mut launches, error, size)
    })?;
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    let text = text.to_string_lossy();
    let lines = text.lines().filter_map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name.to_string(), count.parse().ok()?))
    });
    let operators = Operators { by_name: lines.collect(), launches };
    Ok((result, operators))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Tensor;

    #[test]
    fn operators_are_counted_by_name_and_reads_are_found() {
        let x = Tensor::from_slice(&[1.0_f32, 2.0, 3.0]);
        let (product, operators) = watched(|| {
            let y = x.f_add(&x)?.f_add(&x)?;
            y.f_narrow(0, 0, 1)?.f_mul(&y)
        })
        .unwrap();
        assert_eq!(product.unwrap().double_value(&[2]), 27.0);
        assert_eq!(operators.of("aten::add"), 2);
        assert_eq!(operators.of("aten::narrow"), 1);
        assert_eq!(operators.launches, 3);
        assert!(operators.read_back().is_empty(), "{operators:?}");

        let (_, operators) = watched(|| x.double_value(&[1])).unwrap();
        assert!(operators.read_back().contains(&"aten::_local_scalar_dense"), "{operators:?}");
        // Nothing is counted any more.
        let (_, operators) = watched(|| ()).unwrap();
        assert_eq!(operators, Operators::default());
    }
}
