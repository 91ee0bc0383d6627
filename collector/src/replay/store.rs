//! Where transitions lie: one of the storages of `replay.storage`.

use super::core::Inner;
use super::device::{DeviceRing, Drawn};
use super::disk::Disk;
use super::gather::GatherPlan;
use super::host::HostRing;
use super::rows::Rows;
use super::slot::Slot;
use super::window::Window;
use super::{Layout, ReplayError};
use crate::Rollout;

/// One of the storages.
#[derive(Debug)]
pub enum Store {
    /// In host memory.
    Host(HostRing),
    /// On a device.
    Device(DeviceRing),
    /// In a file.
    File(Disk),
    /// All in a file, the newest ones in memory too.
    Tiered {
        /// All of them.
        disk: Disk,
        /// The newest.
        recent: Recent,
        /// So many of them are drawn from there.
        span: u64,
    },
}

/// The newest transitions of a tiered storage.
#[derive(Debug)]
pub enum Recent {
    /// In host memory.
    Host(HostRing),
    /// On a device.
    Device(DeviceRing),
}

/// Writes the words of a transition, given its place in a sequence.
pub type Fill<'a> = dyn FnMut(usize, &mut [u32]) + 'a;

/// Source of a write: a rollout that lies on the storage's device can be written there.
pub struct Source<'a> {
    /// Transitions, and environments.
    pub count: usize,
    /// Environments.
    pub stride: u32,
    /// The rollout and the version of its policy.
    pub rollout: Option<(&'a Rollout, i32)>,
}

impl Store {
    /// Writes transitions behind those of the window and takes them into it. Without `fill`
    /// they come from the rollout, on the device.
    ///
    /// # Errors
    /// They cannot be stored; the window is as it was.
    pub fn extend(
        inner: &mut Inner,
        layout: &Layout,
        source: &Source<'_>,
        fill: Option<&mut Fill<'_>>,
    ) -> Result<(), ReplayError> {
        let Inner { window, store, .. } = inner;
        let (count, first) = (source.count, window.end());
        // More than there are places: the last ones stay anyway.
        let skip_for = |places: u64| (count as u64).saturating_sub(places) as usize;
        let skip = skip_for(window.physical());
        let mut nothing = |_: usize, _: &mut [u32]| ();
        let fill: &mut Fill<'_> = match fill {
            Some(fill) => fill,
            None => &mut nothing,
        };
        let to_device = |ring: &DeviceRing, fill: &mut Fill<'_>| {
            let skip = skip_for(ring.physical());
            let first = first + skip as u64;
            match source.rollout {
                Some((rollout, version)) => {
                    ring.write_rollout(first, skip, rollout, layout, version)
                }
                None => ring.write(first, count - skip, layout.words(), |i, row| {
                    fill(skip + i, row);
                }),
            }
        };
        match store {
            Self::Host(ring) => {
                (skip..count).for_each(|i| fill(i, ring.place_mut(first + i as u64)));
            }
            Self::Device(ring) => to_device(ring, fill)?,
            Self::File(disk) => return disk.extend(window, skip, count, source.stride, fill),
            Self::Tiered { disk, recent, .. } => {
                let before = window.clone();
                // The file first: where the disk is full, nothing else has changed.
                disk.extend(window, skip, count, source.stride, &mut *fill)?;
                let written = match recent {
                    Recent::Device(ring) => to_device(ring, fill),
                    Recent::Host(ring) => {
                        let skip = skip_for(ring.physical());
                        (skip..count).for_each(|i| fill(i, ring.place_mut(first + i as u64)));
                        Ok(())
                    }
                };
                if written.is_err() {
                    *window = before;
                }
                return written;
            }
        }
        window.push(count as u64, source.stride);
        Ok(())
    }

    /// Whether a rollout of this device is written there, without coming to the host.
    pub fn takes(&self, rollout: &Rollout) -> bool {
        let on_device = matches!(self, Self::Device(_));
        on_device && rollout.device() != tch::Device::Cpu
    }

    /// Fills a slot with the transitions whose numbers are in it.
    ///
    /// # Errors
    /// The device fails; another program made the file shorter.
    pub fn gather(
        &self,
        plan: &GatherPlan,
        layout: &Layout,
        window: &Window,
        slot: &mut Slot,
    ) -> Result<(), ReplayError> {
        let on_host = |slot: &mut Slot, rows: Rows<'_>, elsewhere: u64| {
            slot.columns(|first, out| plan.gather(rows, window, first, elsewhere, out))
        };
        match self {
            Self::Host(ring) => on_host(slot, Rows::one(ring.ring()), u64::MAX)?,
            Self::File(disk) => on_host(slot, disk.rows()?, u64::MAX)?,
            Self::Tiered { disk, recent, span } => {
                let at = window.end().saturating_sub(*span);
                match recent {
                    Recent::Host(ring) if disk.overflow.is_none() => {
                        let rows = Rows::two(disk.file.ring()?, at, ring.ring());
                        on_host(slot, rows, u64::MAX)?;
                    }
                    Recent::Host(_) => on_host(slot, disk.rows()?, u64::MAX)?,
                    // The successor in time of a recent transition is recent too.
                    Recent::Device(ring) => {
                        on_host(slot, disk.rows()?, at)?;
                        let mut recent = 0;
                        slot.columns(|first, out| {
                            let new = (0..).zip(first).filter(|(_, row)| **row >= at);
                            recent = ring.locate(plan, window, new, out);
                        })?;
                        slot.upload(0..plan.words() + plan.places())?;
                        return match recent {
                            0 => Ok(()),
                            _ => ring.gather(plan, layout, slot, Drawn::Some(recent)),
                        };
                    }
                }
            }
            Self::Device(ring) => {
                slot.columns(|first, out| {
                    ring.locate(plan, window, (0..).zip(first), out);
                })?;
                slot.upload(plan.weights().start..plan.words() + plan.places())?;
                return ring.gather(plan, layout, slot, Drawn::All);
            }
        }
        slot.upload(0..plan.words())
    }

    /// Transitions as they are, one after the other, into `write`.
    ///
    /// # Errors
    /// As [`gather`](Self::gather); `write` fails.
    pub fn copy_out(
        &self,
        first: u64,
        count: usize,
        mut write: impl FnMut(u64, usize, &mut Fill<'_>) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        let mut from = |rows: Rows<'_>| {
            write(first, count, &mut |i, words| {
                words.copy_from_slice(rows.row(first + i as u64));
            })
        };
        match self {
            Self::Host(ring) => from(Rows::one(ring.ring())),
            Self::File(disk) | Self::Tiered { disk, .. } => from(disk.rows()?),
            Self::Device(ring) => {
                const PIECE: usize = 1 << 16;
                for start in (0..count).step_by(PIECE) {
                    let n = PIECE.min(count - start);
                    let words = ring.read(first + start as u64, n)?;
                    let words: &[u32] = bytemuck::cast_slice(&words);
                    let width = words.len() / n;
                    write(first + start as u64, n, &mut |i, row| {
                        row.copy_from_slice(&words[i * width..][..width]);
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Puts transitions of `rows` into their places: the part in memory is read again.
    ///
    /// # Errors
    /// The device fails.
    pub fn copy_in(
        &mut self,
        rows: Rows<'_>,
        range: std::ops::Range<u64>,
    ) -> Result<(), ReplayError> {
        match self {
            Self::Host(ring) => copy_to_host(ring, rows, range),
            Self::Device(ring) => copy_to_device(ring, rows, range)?,
            Self::File(_) | Self::Tiered { .. } => {}
        }
        Ok(())
    }

    /// The newest transitions of a tiered storage are read from its file again.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn reload(&mut self, window: &Window) -> Result<(), ReplayError> {
        let Self::Tiered { disk, recent, .. } = self else {
            return Ok(());
        };
        let range = |places: u64| {
            let oldest = window.end().saturating_sub(places);
            oldest.max(window.begin())..window.end()
        };
        match recent {
            Recent::Host(ring) => {
                let range = range(ring.physical());
                copy_to_host(ring, disk.rows()?, range);
            }
            Recent::Device(ring) => {
                let range = range(ring.physical());
                copy_to_device(ring, disk.rows()?, range)?;
            }
        }
        Ok(())
    }

    /// Whether transitions are in a file as they come.
    pub fn in_file(&self) -> bool {
        matches!(self, Self::File(_) | Self::Tiered { .. })
    }

    /// The file that holds transitions as they come.
    pub fn disk(&mut self) -> Option<&mut Disk> {
        match self {
            Self::File(disk) | Self::Tiered { disk, .. } => Some(disk),
            Self::Host(_) | Self::Device(_) => None,
        }
    }
}

fn copy_to_host(ring: &mut HostRing, rows: Rows<'_>, range: std::ops::Range<u64>) {
    for row in range {
        ring.place_mut(row).copy_from_slice(rows.row(row));
    }
}

fn copy_to_device(
    ring: &DeviceRing,
    rows: Rows<'_>,
    range: std::ops::Range<u64>,
) -> Result<(), ReplayError> {
    let words = match range.is_empty() {
        true => return Ok(()),
        false => rows.row(range.start).len(),
    };
    let count = (range.end - range.start) as usize;
    ring.write(range.start, count, words, |i, row| {
        row.copy_from_slice(rows.row(range.start + i as u64));
    })
}
