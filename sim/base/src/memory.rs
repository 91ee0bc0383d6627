//! Where long-lived buffers come from.
//!
//! Every allocation whose size depends on the number of environments is asked
//! for here and can fail without ending the process.

/// An allocation that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot allocate {} for {what}; use fewer environments (env.num_envs) or free memory",
    amount(*.bytes)
)]
pub struct MemoryError {
    /// Purpose of the memory.
    pub what: String,
    /// How much was asked for; 0 where whoever refused did not say.
    pub bytes: usize,
}

fn amount(bytes: usize) -> String {
    match bytes {
        0 => "memory".to_string(),
        n => format!("{n} bytes"),
    }
}

/// A zeroed host buffer of `len` elements, or an error instead of an abort.
pub fn zeroed<T: bytemuck::Zeroable + Clone>(
    what: &str,
    len: usize,
) -> Result<Vec<T>, MemoryError> {
    let mut v = Vec::new();
    v.try_reserve_exact(len).map_err(|_| MemoryError {
        what: what.to_string(),
        bytes: len.saturating_mul(std::mem::size_of::<T>()),
    })?;
    v.resize(len, T::zeroed());
    Ok(v)
}
