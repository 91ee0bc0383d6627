//! A collector's state: a record of its own, then that of the environments.

use crate::{CollectError, custom, gymnasium};
use ostler_sim::memory::MemoryError;
use ostler_sim::snapshot::{self, Bytes};
use ostler_sim::{BatchEnv, Groups};
use serde::{Deserialize, Serialize};

const OF: &str = "collectors";

/// The state of a collector at a moment: bytes, or, where environments step on a device,
/// a copy on that device.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) bytes: Vec<u8>,
    /// Whether the next state may be captured on its device.
    pub(crate) may_stay: bool,
    /// Whether it was: then there are no bytes.
    pub(crate) stayed: bool,
}

impl Snapshot {
    /// For snapshots within one collector: on a device where that is possible, which has room
    /// for one.
    pub fn in_place() -> Self {
        Self { may_stay: true, ..Self::default() }
    }

    /// The bytes; none of a state on a device ([`Collector::bytes`](crate::Collector::bytes)
    /// fetches it).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a captured state.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Whether the next state may be captured where the environments are.
    pub fn stays(&self) -> bool {
        self.may_stay
    }

    /// Whether it was.
    pub fn stayed(&self) -> bool {
        self.stayed
    }

    /// It was captured where the environments are: there are no bytes here.
    pub fn stay(&mut self) {
        self.bytes.clear();
        self.stayed = true;
    }

    /// To be written anew.
    pub(crate) fn clear(&mut self) -> &mut Vec<u8> {
        self.stayed = false;
        self.bytes.clear();
        &mut self.bytes
    }

    /// The bytes, for a collector that cannot have it on a device.
    pub(crate) fn on_host(&self) -> Result<&[u8], CollectError> {
        match self.stayed {
            false => Ok(&self.bytes),
            true => Err(CollectError::Blob("it was captured on a device".into())),
        }
    }
}

impl From<Vec<u8>> for Snapshot {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }
}

/// Groups of a rollout's first row: the policy's and the critic's observations, hidden states.
pub(crate) const GROUPS: usize = 3;

#[derive(Serialize, Deserialize)]
struct Record<'a> {
    step: u64,
    /// First observations `[N][O]`, policy's and critic's; hidden states `[N][H]`.
    #[serde(borrow)]
    groups: [Bytes<'a>; GROUPS],
}

fn write(out: &mut Vec<u8>, record: &Record<'_>) -> Result<(), CollectError> {
    let room = record.groups.iter().map(|o| o.0.len()).sum::<usize>() + 64;
    Ok(snapshot::write(OF, record, room, out)?)
}

/// Appends all that comes before the environments.
pub(crate) fn write_head(
    out: &mut Vec<u8>,
    step: u64,
    groups: [&[f32]; GROUPS],
) -> Result<(), CollectError> {
    let groups = groups.map(|g| Bytes(bytemuck::cast_slice(g)));
    write(out, &Record { step, groups })
}

/// [`write_head`] for the whole of which these are parts, in their order.
pub(crate) fn write_joined(out: &mut Vec<u8>, parts: &[Saved<'_>]) -> Result<(), CollectError> {
    let step = parts.first().map_or(0, |p| p.step);
    let mut joined = [const { Vec::new() }; GROUPS];
    for (group, all) in joined.iter_mut().enumerate() {
        let bytes: usize = parts.iter().map(|p| p.groups[group].len()).sum();
        all.try_reserve_exact(bytes)
            .map_err(|_| MemoryError { what: "a snapshot of the collector".into(), bytes })?;
        parts.iter().for_each(|p| all.extend_from_slice(p.groups[group]));
    }
    let groups = joined.each_ref().map(|g| Bytes(g));
    write(out, &Record { step, groups })
}

/// The captured state of the whole batch of which these are parts, in the order of their
/// environments; the policy sees observations so wide and has `hidden` states so wide.
///
/// # Errors
/// They are not parts of one batch at one time; there is no memory.
pub fn join(parts: &[&[u8]], widths: &Groups<usize>, hidden: i64) -> Result<Vec<u8>, CollectError> {
    let mut out = Vec::new();
    let parts: Vec<Saved<'_>> = parts
        .iter()
        .map(|bytes| Saved::read(bytes, widths, hidden, None))
        .collect::<Result<_, _>>()?;
    write_joined(&mut out, &parts)?;
    let envs: Vec<&[u8]> = parts.iter().map(|p| p.env).collect();
    match envs.first().and_then(|env| snapshot::whose(env)) {
        Some(custom::OF) => custom::join(&envs, &mut out)?,
        Some(gymnasium::OF) => gymnasium::join(&envs, &mut out)?,
        _ => BatchEnv::join(&envs, &mut out)?,
    }
    Ok(out)
}

/// The environments' part of a captured state.
///
/// # Errors
/// It is not one of a collector.
pub fn environments(bytes: &[u8]) -> Result<&[u8], CollectError> {
    let (Record { .. }, rest) = snapshot::read(OF, bytes)?;
    Ok(rest)
}

/// Captured state that fits, in its parts.
pub(crate) struct Saved<'a> {
    pub step: u64,
    /// First observations `[N][O]` as bytes, policy's and critic's; hidden states `[N][H]`.
    pub groups: [&'a [u8]; GROUPS],
    /// The environments' part.
    pub env: &'a [u8],
}

impl<'a> Saved<'a> {
    /// Takes a state apart for a collector of observations and `hidden` states so wide.
    /// `stored`: the number of environments that it must hold; any without.
    pub(crate) fn read(
        bytes: &'a [u8],
        widths: &Groups<usize>,
        hidden: i64,
        stored: Option<usize>,
    ) -> Result<Self, CollectError> {
        let (record, env) = snapshot::read::<Record<'a>>(OF, bytes)?;
        let groups = record.groups.map(|g| g.0);
        let mut envs = stored;
        let widths = [
            ("first observations", widths.policy),
            ("the critic's first observations", widths.critic.unwrap_or(0)),
            ("hidden states", hidden as usize),
        ];
        for ((what, width), group) in widths.into_iter().zip(groups) {
            let numbers = group.len() / 4;
            let n = *envs.get_or_insert(numbers / width.max(1));
            if n.checked_mul(4 * width) != Some(group.len()) {
                return Err(CollectError::Blob(format!(
                    "it holds {numbers} numbers of {what}, expected {n} x {width} \
                     (environments times width)"
                )));
            }
        }
        Ok(Self { step: record.step, groups, env })
    }
}

/// Copies the common part.
pub(crate) fn copy(stored: &[u8], into: &mut [f32]) {
    for (x, b) in into.iter_mut().zip(stored.chunks_exact(4)) {
        *x = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    }
}
