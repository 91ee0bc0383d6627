//! A replay buffer across the end of its process.

use super::layout::TRAILER;
use super::saved::{Restored, Saved, restore_priorities, save_priorities};
use super::{ReplayBuffer, ReplayError};

impl ReplayBuffer {
    /// A checkpoint's part, to go on from here in another process. All transitions are on
    /// the disk when this returns, unless `replay.save` is off.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn save(&mut self) -> Result<Saved, ReplayError> {
        self.settle();
        let in_file = {
            let inner = &mut *self.core.write();
            let end = inner.window.end();
            match (&mut self.keeper, inner.store.disk()) {
                (Some(keeper), _) => {
                    keeper.append(inner)?;
                    end
                }
                (None, Some(disk)) if self.save => {
                    disk.file.sync()?;
                    disk.end(end)
                }
                // The file of a buffer that is not to be kept.
                _ => 0,
            }
        };
        let priorities = match &self.folder {
            Some(folder) if self.save => {
                self.saves += 1;
                save_priorities(&self.core, folder, self.saves)?
            }
            _ => None,
        };
        Ok(Saved {
            place: self.core.read().window.place(),
            in_file,
            progress: self.progress,
            version: self.version,
            priorities,
        })
    }

    /// Bytes that [`save`](Self::save) would write at the most: transitions that are not in
    /// the file yet, and priorities. Those of a storage in a file are there already.
    pub fn unsaved_bytes(&self) -> u64 {
        let inner = self.core.read();
        let rows = match &self.keeper {
            Some(keeper) => keeper.behind(&inner.window),
            None => 0,
        };
        let row = self.bytes_per_transition() + 4 * TRAILER;
        let priorities = match inner.priorities {
            Some(_) if self.save => 8 * inner.window.len(),
            _ => 0,
        };
        rows.saturating_mul(row as u64).saturating_add(priorities)
    }

    /// Goes back to the saved state, in a buffer that was [reopened](super::Setup::reopen), as
    /// far as its file holds that. Without `replay.save` it is empty, and only its draws go on.
    ///
    /// # Errors
    /// The saved state cannot be; the device fails.
    pub fn restore(&mut self, saved: &Saved) -> Result<Restored, ReplayError> {
        self.settle();
        let inner = &mut *self.core.write();
        saved
            .plausible(inner.window.capacity())
            .map_err(|what| ReplayError::Saved(format!("{what} cannot be: it is damaged")))?;
        let (there, wanted) = (inner.window.end(), saved.place);
        let mut place = wanted;
        // Damage, or another program, may have taken the newest.
        place.end = wanted.end.min(saved.in_file).min(there);
        place.begin = wanted.begin.min(place.end);
        // It is in the past, whatever the file holds.
        let lost_oldest = inner.window.rewind(&place).unwrap_or_default();
        let lost_newest = (wanted.end - place.end).min(wanted.end - wanted.begin);
        if lost_newest > 0 {
            inner.window.cut();
        }
        inner.store.reload(&inner.window)?;
        if let Some(disk) = inner.store.disk() {
            disk.commit(&inner.window)?;
        }
        if let Some(keeper) = &mut self.keeper {
            keeper.went_back(place.end);
        }
        let places = inner.window.physical();
        let range = inner.window.range();
        if let Some(tree) = &mut inner.priorities {
            tree.start_anew(range, places);
        }
        let lost = lost_oldest + lost_newest > 0;
        let lost_priorities = match (&saved.priorities, &self.folder) {
            _ if inner.priorities.is_none() => false,
            (Some(priorities), Some(folder)) if !lost => {
                !restore_priorities(inner, folder, priorities)
            }
            _ => wanted.end > 0,
        };
        (self.progress, self.version) = (saved.progress, saved.version);
        Ok(Restored { rows: inner.window.len(), lost_oldest, lost_newest, lost_priorities })
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
