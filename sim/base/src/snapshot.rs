//! Snapshots as records of postcard: whose they are, the version, and the contents.
//!
//! A record has no checksum: a file that holds one has. Whatever is in it, reading it gives
//! an error or a value, and allocates no more than the bytes that are there.

use crate::memory::MemoryError;
use serde::{Deserialize, Serialize};

/// A snapshot that cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Out of memory: fewer environments may do.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// It is of another robot or size, or it is damaged.
    #[error("snapshot: {0}")]
    Unfit(String),
}

impl SnapshotError {
    /// The allocation that failed, if one did.
    pub fn out_of_memory(&self) -> Option<&MemoryError> {
        match self {
            Self::Memory(e) => Some(e),
            Self::Unfit(_) => None,
        }
    }
}

/// Of everything that is written here, `kernels/state.h` included. A snapshot of another
/// version is refused.
pub const VERSION: u32 = 7;

/// How a record begins.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    of: &'a str,
    version: u32,
}

/// Bytes that are copied as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Bytes<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(from).map(Self)
    }
}

/// Appends a record. `of`: whose, in the plural. `room`: about as many bytes as it takes.
///
/// # Errors
/// There is no memory.
pub fn write(
    of: &str,
    record: &impl Serialize,
    room: usize,
    out: &mut Vec<u8>,
) -> Result<(), SnapshotError> {
    reserve(out, room.saturating_add(64), of)?;
    let head = Head { of, version: VERSION };
    append(of, &head, out)?;
    append(of, record, out)
}

/// Whose record these bytes begin with, if they do.
pub fn whose(bytes: &[u8]) -> Option<&str> {
    postcard::take_from_bytes::<Head<'_>>(bytes).ok().map(|(head, _)| head.of)
}

/// Appends a value without a head.
///
/// # Errors
/// There is no memory.
pub fn append(of: &str, value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let done = postcard::serialize_with_flavor(value, Growing(&mut *out));
    match done {
        Ok(()) => Ok(()),
        // Of the flavour below: says how much was asked for.
        Err(postcard::Error::SerializeBufferFull) => Err(no_memory(of, out.len())),
        Err(e) => Err(unfit(format!("{of} cannot be written: {e}"))),
    }
}

/// A vector whose growth can fail.
struct Growing<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Growing<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        let room = self.0.try_reserve(bytes.len());
        room.map_err(|_| postcard::Error::SerializeBufferFull)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Owner of the record that begins there.
///
/// # Errors
/// It is none.
pub fn of(bytes: &[u8]) -> Result<&str, SnapshotError> {
    let head = postcard::take_from_bytes::<Head<'_>>(bytes);
    head.map(|(head, _)| head.of).map_err(|_| unfit("not a snapshot"))
}

/// Takes a record from the front; returns the bytes after it, too.
///
/// # Errors
/// It is another's, of another version, or ends too early.
pub fn read<'a, T: Deserialize<'a>>(
    of: &str,
    bytes: &'a [u8],
) -> Result<(T, &'a [u8]), SnapshotError> {
    let foreign =
        || unfit(format!("not a snapshot of {of}, or one of a build that wrote them otherwise"));
    let (head, rest) = postcard::take_from_bytes::<Head<'_>>(bytes).map_err(|_| foreign())?;
    if head.of != of {
        return Err(foreign());
    }
    if head.version != VERSION {
        return Err(unfit(format!(
            "written by format {}; this program reads format {VERSION}",
            head.version
        )));
    }
    take(of, rest)
}

/// Takes a value without a head from the front.
///
/// # Errors
/// It ends too early.
pub(crate) fn take<'a, T: Deserialize<'a>>(
    of: &str,
    bytes: &'a [u8],
) -> Result<(T, &'a [u8]), SnapshotError> {
    postcard::take_from_bytes(bytes).map_err(|e| match e {
        postcard::Error::DeserializeUnexpectedEnd => {
            unfit(format!("a snapshot of {of} that ends too early"))
        }
        e => unfit(format!("{of} cannot be read: {e}")),
    })
}

/// Nothing may follow.
///
/// # Errors
/// Something does.
pub fn end(rest: &[u8]) -> Result<(), SnapshotError> {
    match rest.len() {
        0 => Ok(()),
        n => Err(unfit(format!("{n} bytes more than belong there"))),
    }
}

/// An error about a snapshot's content.
pub fn unfit(why: impl Into<String>) -> SnapshotError {
    SnapshotError::Unfit(why.into())
}

fn no_memory(of: &str, bytes: usize) -> SnapshotError {
    SnapshotError::Memory(MemoryError { what: format!("a snapshot of {of}"), bytes })
}

/// Room for `len` more bytes, or an error instead of an abort.
pub fn reserve(out: &mut Vec<u8>, len: usize, of: &str) -> Result<(), SnapshotError> {
    out.try_reserve_exact(len).map_err(|_| no_memory(of, out.len().saturating_add(len)))
}
