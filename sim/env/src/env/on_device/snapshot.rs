//! The state between host and device, as the twin reads and writes it.

use super::DeviceEnv;
use crate::env::{BatchEnv, EnvError, Groups};
use ostler_base::memory::{MemoryError, zeroed};
use ostler_base::snapshot::unfit;
use ostler_engine::device::transfer::Reader;
use ostler_engine::device::{Address, DeviceError};
use ostler_engine::physics::SnapshotError;
use ostler_engine::state::{self, EPISODE, Sizes, WORLD};

impl DeviceEnv {
    /// As [`crate::env::BatchEnv::capture`]: the same bytes. Waits for the device.
    ///
    /// # Errors
    /// No memory; the device refuses.
    pub fn capture(&mut self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.count()?;
        self.fetch(self.blocks.state.address())?;
        self.twin.capture(out)
    }

    /// As [`crate::env::BatchEnv::restore`], of a snapshot of either.
    ///
    /// # Errors
    /// It does not fit; nothing has changed then. The device refuses.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.twin.restore(bytes)?;
        Ok(self.send_state()?)
    }

    /// As [`crate::env::BatchEnv::restore_range`]; rows of environments that begin anew are
    /// written to `obs` `[R][O]` on the device.
    ///
    /// # Errors
    /// As for [`restore`](Self::restore).
    pub fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: Groups<Address>,
    ) -> Result<usize, SnapshotError> {
        let spec = &self.twin.spec;
        let n = spec.num_envs;
        let [wide, critic_wide] = self.twin.task.observations.world();
        let mut policy = zeroed::<f32>("observations", n * wide)?;
        let mut critic = zeroed::<f32>("observations", n * critic_wide)?;
        let mut rows = Groups {
            policy: &mut policy[..],
            critic: (critic_wide > 0).then_some(&mut critic[..]),
        };
        let taken = self.twin.restore_range(bytes, spread, &mut rows)?;
        self.send_state()?;
        for (rows, width, at) in
            [(&policy, wide, Some(obs.policy)), (&critic, critic_wide, obs.critic)]
        {
            let (new, Some(at)) = (&rows[taken * width..], at) else {
                continue;
            };
            if !new.is_empty() {
                let at = at + (4 * taken * width) as Address;
                // SAFETY: the rest of the rows `[R][O]` that the caller has at `at`.
                unsafe { self.device.upload(bytemuck::cast_slice(new), at) }?;
            }
        }
        Ok(taken)
    }

    /// The twin's columns to the device.
    pub(super) fn send_state(&mut self) -> Result<(), DeviceError> {
        let bytes = self.blocks.state.bytes();
        let mut all = Vec::new();
        all.try_reserve_exact(bytes)
            .map_err(|_| MemoryError { what: "the environments' state".into(), bytes })?;
        let world = self.twin.physics.state();
        let columns = self.twin.live.episodes.columns().chain(world.columns());
        columns.for_each(|(_, column)| all.extend_from_slice(column));
        if all.len() != bytes {
            return Err(DeviceError::Defect("columns of another size".into()));
        }
        // SAFETY: as long as the block, which lives.
        unsafe { self.device.upload(&all, self.blocks.state.address()) }?;
        // Statistics that the host has read already are not counted a second time.
        self.uncounted = false;
        self.shortfalls = self.twin.physics.shortfalls();
        Ok(())
    }

    /// The state that lies at `from` on the device into the twin's columns.
    pub(super) fn fetch(&mut self, from: Address) -> Result<(), SnapshotError> {
        let staging = self.device.staging("a snapshot", self.blocks.state.bytes())?;
        // SAFETY: the state and its copy are as long, and live.
        let flight = unsafe { Reader::new(staging).begin(from) }?;
        let reader = flight.wait()?;
        let (n, live) = (self.twin.spec.num_envs, self.blocks.live);
        put(&mut self.twin, &self.sizes, n, reader.bytes().split_at(live))
    }
}

/// Puts the columns of `n` environments, which lie one behind the other, into a batch of as
/// many: the episodes' and the worlds'.
pub(super) fn put(
    batch: &mut BatchEnv,
    sizes: &Sizes,
    n: usize,
    (episodes, worlds): (&[u8], &[u8]),
) -> Result<(), SnapshotError> {
    let episodes = state::cut(episodes, &state::ends(&EPISODE, sizes, n));
    let worlds = state::cut(worlds, &state::ends(&WORLD, sizes, n));
    let Some(state) = batch.physics.state_mut() else {
        return Err(unfit("only the native engine runs on a device"));
    };
    state.check(n, &worlds)?;
    batch.live.episodes.check(n, &episodes)?;
    state.fill(n, 0, &worlds);
    batch.live.episodes.fill(n, 0, &episodes);
    Ok(())
}

impl From<DeviceError> for EnvError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Memory(e) => Self::Memory(e),
            other => Self::Device(other),
        }
    }
}
