//! Where transitions lie: what every storage does, whatever its memory.
//!
//! A kind of storage is a file of its own above this one: a type that is a [`Storage`], and an
//! [`About`] with what `replay.storage` needs to know of it.

use super::batch::{Draw, Slot};
use super::file::FileRing;
use super::transition::{Layout, Rows, Segment, Window};
use crate::Rollout;
use crate::error::ReplayError;
use ostler_sim::device::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use tch::Device;

/// Writes the words of a transition, given its place in a sequence.
pub(crate) type Fill<'a> = dyn FnMut(usize, &mut [u32]) + 'a;

/// Transitions that come, step by step from the same environments.
pub(crate) struct New<'a> {
    pub count: usize,
    pub stride: u32,
    pub fill: &'a mut Fill<'a>,
}

/// Free host memory (bytes), where anybody knows.
pub(crate) type FreeMemory = fn() -> Option<u64>;

/// Places of transitions. The window that it is given is always the same one, and says which
/// of them are there.
pub(crate) trait Storage: Debug + Send + Sync {
    /// Writes transitions behind those of the window, and takes them into it. Of more than
    /// there are places the last ones stay.
    ///
    /// # Errors
    /// They cannot be stored; the window is as it was, but for overwritten places.
    fn extend(&mut self, window: &mut Window, new: &mut New<'_>) -> Result<(), ReplayError>;

    /// The same of a rollout on a device, where that is the storage's: its transitions need
    /// not come to the host. `false`, and nothing is done, where they have to.
    ///
    /// # Errors
    /// As [`extend`](Self::extend); the rollout is of another layout.
    fn extend_there(
        &mut self,
        _window: &mut Window,
        _rollout: &Rollout,
        _version: i32,
    ) -> Result<bool, ReplayError> {
        Ok(false)
    }

    /// Fills rows of a slot's batch with the transitions whose numbers are in the slot.
    ///
    /// # Errors
    /// The device fails; another program made the file shorter.
    fn gather(&self, draw: &Draw<'_>, slot: &mut Slot) -> Result<(), ReplayError>;

    /// The window went back by so many transitions, or more.
    ///
    /// # Errors
    /// The device or the disk fails.
    fn went_back(&mut self, _window: &Window, _by: u64) -> Result<(), ReplayError> {
        Ok(())
    }

    /// Brings all transitions to the disk, where there is a file for them. Returns one behind
    /// the newest that is there.
    ///
    /// # Errors
    /// The disk is full, or fails; the device fails.
    fn save(&mut self, _window: &Window) -> Result<u64, ReplayError> {
        Ok(0)
    }

    /// How many transitions [`save`](Self::save) would write.
    fn unsaved(&self, _window: &Window) -> u64 {
        0
    }
}

/// A storage that is memory, and so needs a file to outlive the process.
pub(crate) trait Memory: Storage + 'static {
    fn places(&self) -> u64;

    /// Hands `count` transitions from number `first` on to `write`, in pieces.
    ///
    /// # Errors
    /// The device fails; `write` does.
    fn read(
        &self,
        first: u64,
        count: usize,
        write: &mut dyn FnMut(u64, usize, &mut Fill<'_>) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError>;

    /// Puts transitions of `rows` into their places.
    ///
    /// # Errors
    /// The device fails.
    fn write(&mut self, rows: Rows<'_>, range: Range<u64>) -> Result<(), ReplayError>;
}

/// Memory whose transitions are appended to a file like that of a storage in a file, whenever
/// they are saved.
#[derive(Debug)]
struct Kept<S> {
    memory: S,
    file: FileRing,
    /// One behind the newest transition that is in the file and still the same in memory.
    kept: u64,
}

impl<S: Memory> Storage for Kept<S> {
    fn extend(&mut self, window: &mut Window, new: &mut New<'_>) -> Result<(), ReplayError> {
        self.memory.extend(window, new)
    }

    fn extend_there(
        &mut self,
        window: &mut Window,
        rollout: &Rollout,
        version: i32,
    ) -> Result<bool, ReplayError> {
        self.memory.extend_there(window, rollout, version)
    }

    fn gather(&self, draw: &Draw<'_>, slot: &mut Slot) -> Result<(), ReplayError> {
        self.memory.gather(draw, slot)
    }

    fn went_back(&mut self, window: &Window, _by: u64) -> Result<(), ReplayError> {
        self.kept = self.kept.min(window.end());
        Ok(())
    }

    fn save(&mut self, window: &Window) -> Result<u64, ReplayError> {
        let (count, file) = (self.unsaved(window), &mut self.file);
        let segment =
            |row| window.segment_at(row).unwrap_or(Segment { start: row, stride: 1, id: 0 });
        self.memory.read(window.end() - count, count as usize, &mut |first, count, rows| {
            let written = file.write(first, count, segment, rows);
            written.map_err(|e| file.error("cannot write to it", e))
        })?;
        file.commit(window).map_err(|e| file.error("cannot write to it", e))?;
        self.kept = window.end();
        file.sync()?;
        Ok(window.end())
    }

    fn unsaved(&self, window: &Window) -> u64 {
        window.end() - self.kept.max(window.begin()).min(window.end())
    }
}

/// What a configuration needs to know of a kind of storage.
#[derive(Debug)]
pub(crate) struct About {
    /// As it is written there.
    pub name: &'static str,
    /// Whether transitions lie in a file as they come.
    pub in_file: bool,
    /// Whether its memory is that of the learner's device, where there is any.
    pub near: bool,
    /// How many of (all transitions, `replay.recent` and the margin, the smaller) lie in memory.
    pub in_memory: fn(u64, u64) -> u64,
    /// The key that says how many.
    pub key: &'static str,
    /// What else may help where they do not fit.
    pub instead: &'static str,
    /// Makes one.
    pub open: fn(Site<'_>) -> Result<Box<dyn Storage>, ReplayError>,
}

/// `replay.on_full_disk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFullDisk {
    /// The run ends with an error; stored transitions stay readable.
    Stop,
    /// New transitions go to host memory.
    Host,
}

/// What a storage is made from.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub layout: &'a Layout,
    /// The transitions that the file holds.
    pub window: &'a Window,
    /// How many of the newest are to be drawn from memory, of those that lie in a file too.
    pub recent: u64,
    /// Transitions more than can be drawn, to go back to.
    pub margin: u64,
    pub device: Device,
    /// Counts copies between host and device.
    pub crossed: &'a Arc<Counts>,
    pub on_full: OnFullDisk,
    /// Free host memory, at any time.
    pub free: FreeMemory,
    /// The file, where there is one.
    pub file: Option<FileRing>,
}

impl Site<'_> {
    /// The file of a storage that needs one.
    ///
    /// # Errors
    /// There is no folder for it.
    pub(crate) fn file(&mut self) -> Result<FileRing, ReplayError> {
        self.file.take().ok_or_else(|| {
            ReplayError::shape(
                "folder of the replay buffer's file",
                "replay.directory, or a run with a folder",
                "neither",
            )
        })
    }

    /// A storage in memory, filled from the file that it is saved in where there is one.
    ///
    /// # Errors
    /// The file cannot be read; the device fails.
    pub(crate) fn kept<S: Memory>(self, mut memory: S) -> Result<Box<dyn Storage>, ReplayError> {
        let (window, Some(file)) = (self.window, self.file) else {
            return Ok(Box::new(memory));
        };
        let oldest = window.end().saturating_sub(window.physical()).max(window.floor());
        memory.write(Rows::one(file.ring()?), oldest..window.end())?;
        Ok(Box::new(Kept { memory, file, kept: window.end() }))
    }
}
