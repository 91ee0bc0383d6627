//! A collector's state as bytes: `magic | step | observation groups | environments`,
//! little-endian; a group is its number of floats and the floats.

use crate::CollectError;
use ostler_sim::Groups;
use ostler_sim::memory::MemoryError;

/// Begins a saved collector; the digit is the format's version.
const MAGIC: [u8; 8] = *b"ostlerC1";

/// Appends all that comes before the environments.
pub fn write_head(
    out: &mut Vec<u8>,
    step: u64,
    groups: [Option<&[f32]>; 2],
) -> Result<(), CollectError> {
    let groups = groups.into_iter().flatten();
    let floats: usize = groups.clone().map(<[f32]>::len).sum();
    let bytes = 4 * floats + 64;
    out.try_reserve_exact(bytes).map_err(|_| MemoryError {
        what: "a snapshot of the collector".into(),
        bytes,
    })?;
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&step.to_le_bytes());
    for numbers in groups {
        out.extend_from_slice(&(numbers.len() as u64).to_le_bytes());
        out.extend_from_slice(bytemuck::cast_slice(numbers));
    }
    Ok(())
}

/// [`write_head`] for the whole of which these are parts, in their order.
pub fn write_joined(out: &mut Vec<u8>, parts: &[Saved<'_>]) -> Result<(), CollectError> {
    let step = parts.first().map_or(0, |p| p.step);
    let bytes: usize = parts.iter().flat_map(|p| p.obs).map(<[u8]>::len).sum();
    out.try_reserve_exact(bytes + 64).map_err(|_| MemoryError {
        what: "a snapshot of the collector".into(),
        bytes: bytes + 64,
    })?;
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&step.to_le_bytes());
    for group in 0..2 {
        let floats: usize = parts.iter().map(|p| p.obs[group].len() / 4).sum();
        if floats == 0 {
            continue;
        }
        out.extend_from_slice(&(floats as u64).to_le_bytes());
        for part in parts {
            out.extend_from_slice(part.obs[group]);
        }
    }
    Ok(())
}

/// Saved state that fits, in its parts.
pub struct Saved<'a> {
    pub step: u64,
    /// First observations `[N][O]` as bytes, policy's and critic's.
    pub obs: [&'a [u8]; 2],
    /// What is the environments'.
    pub env: &'a [u8],
}

impl<'a> Saved<'a> {
    /// Takes a blob apart for a collector of observations so wide. `stored`: the number
    /// of environments that it must hold; any without.
    pub fn read(
        blob: &'a [u8],
        widths: &Groups<usize>,
        stored: Option<usize>,
    ) -> Result<Self, CollectError> {
        let mut rest = blob;
        if take(&mut rest, MAGIC.len())? != MAGIC {
            return Err(CollectError::Blob("it does not begin as one".into()));
        }
        let step = take_u64(&mut rest)?;
        let mut found = [&[][..]; 2];
        let mut envs = stored.map(|n| n as u64);
        let widths = std::iter::once(widths.policy).chain(widths.critic);
        for (width, found) in widths.zip(&mut found) {
            let width = width as u64;
            let len = take_u64(&mut rest)?;
            let envs = *envs.get_or_insert(len / width.max(1));
            if envs.checked_mul(width) != Some(len) {
                return Err(CollectError::Blob(format!(
                    "it holds {len} numbers of first observations, expected {envs} x {width} \
                     (environments times observation width)"
                )));
            }
            let bytes = usize::try_from(len).unwrap_or(usize::MAX).saturating_mul(4);
            *found = take(&mut rest, bytes)?;
        }
        Ok(Self {
            step,
            obs: found,
            env: rest,
        })
    }
}

/// Copies what both have.
pub fn copy(stored: &[u8], into: &mut [f32]) {
    for (x, b) in into.iter_mut().zip(stored.chunks_exact(4)) {
        *x = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], CollectError> {
    let Some((head, tail)) = rest.split_at_checked(len) else {
        return Err(CollectError::Blob("it ends too early".into()));
    };
    *rest = tail;
    Ok(head)
}

fn take_u64(rest: &mut &[u8]) -> Result<u64, CollectError> {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(take(rest, 8)?);
    Ok(u64::from_le_bytes(bytes))
}
