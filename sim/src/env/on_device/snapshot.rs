//! The state between host and device, as the twin reads and writes it.

use super::DeviceEnv;
use crate::device::transfer::Reader;
use crate::device::{Address, DeviceError};
use crate::env::{EnvError, Groups, snapshot};
use crate::memory::zeroed;
use crate::physics::SnapshotError;

impl From<DeviceError> for SnapshotError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Memory(e) => Self::Memory(e),
            other => Self::Unfit(other.to_string()),
        }
    }
}

impl DeviceEnv {
    /// As [`crate::BatchEnv::save`]: the same bytes. Waits for the device.
    ///
    /// # Errors
    /// No memory; the device refuses.
    pub fn save(&mut self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.fetch_state()?;
        self.twin.save(out)
    }

    /// As [`crate::BatchEnv::keep`]. Waits for the device.
    ///
    /// # Errors
    /// No memory; the device refuses.
    pub fn keep(&mut self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.count()?;
        let start = out.len();
        self.twin.keep(out)?;
        self.read_into(&mut out[start..], self.blocks.state.address())
    }

    /// As [`crate::BatchEnv::restore`], of what either saved.
    ///
    /// # Errors
    /// It does not fit; nothing has changed then. The device refuses.
    pub fn restore(&mut self, blob: &[u8]) -> Result<(), SnapshotError> {
        self.twin.restore(blob)?;
        Ok(self.send_state()?)
    }

    /// As [`crate::BatchEnv::revert`], of what either kept.
    ///
    /// # Errors
    /// As for [`restore`](Self::restore).
    pub fn revert(&mut self, kept: &[u8]) -> Result<(), SnapshotError> {
        self.twin.revert(kept)?;
        Ok(self.send_state()?)
    }

    /// As [`crate::BatchEnv::adopt`]; rows of environments that begin anew are written to
    /// `obs` `[R][O]` on the device.
    ///
    /// # Errors
    /// As for [`restore`](Self::restore).
    pub fn adopt(
        &mut self,
        blob: &[u8],
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
        let taken = self.twin.adopt(blob, spread, &mut rows)?;
        self.send_state()?;
        for (rows, width, at) in [
            (&policy, wide, Some(obs.policy)),
            (&critic, critic_wide, obs.critic),
        ] {
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

    /// The twin's buffers to the device.
    pub(super) fn send_state(&mut self) -> Result<(), DeviceError> {
        let mut blob = Vec::new();
        let of = |e: SnapshotError| match e {
            SnapshotError::Memory(e) => DeviceError::Memory(e),
            SnapshotError::Unfit(why) => DeviceError::Defect(why),
        };
        self.twin.keep(&mut blob).map_err(of)?;
        let (live, physics) = self.parts(&blob).map_err(of)?;
        let state = self.blocks.state.address();
        // SAFETY: `live` bytes, then the rest of the block; `parts` has checked that they
        // are as many.
        unsafe {
            self.device.upload(&blob[live], state)?;
            self.device
                .upload(&blob[physics], state + self.blocks.live as Address)?;
        }
        // What the host knows of is not counted a second time.
        self.uncounted = false;
        self.shortfalls = self.twin.physics.shortfalls();
        Ok(())
    }

    /// The device's state into the twin's buffers.
    fn fetch_state(&mut self) -> Result<(), SnapshotError> {
        let mut blob = Vec::new();
        self.keep(&mut blob)?;
        self.twin.revert(&blob)
    }

    /// The state that lies at `from` into its places in what the twin kept.
    pub(super) fn read_into(&self, blob: &mut [u8], from: Address) -> Result<(), SnapshotError> {
        let (live, physics) = self.parts(blob)?;
        let block = &self.blocks.state;
        let staging = self.device.staging("a snapshot", block.bytes())?;
        // SAFETY: the state and its copy are as long, and live.
        let flight = unsafe { Reader::new(staging).begin(from) }?;
        let reader = flight.wait()?;
        let (a, b) = reader.bytes().split_at(self.blocks.live);
        blob[live].copy_from_slice(a);
        blob[physics].copy_from_slice(b);
        Ok(())
    }

    /// Where the two parts of the state lie in what the twin kept.
    fn parts(
        &self,
        blob: &[u8],
    ) -> Result<(std::ops::Range<usize>, std::ops::Range<usize>), SnapshotError> {
        let physics = self.blocks.state.bytes() - self.blocks.live;
        let parts = snapshot::parts(&self.twin, blob, physics)?;
        match parts.0.len() == self.blocks.live {
            true => Ok(parts),
            false => Err(SnapshotError::Unfit(format!(
                "{} bytes of environments, not {}",
                parts.0.len(),
                self.blocks.live
            ))),
        }
    }
}

impl From<DeviceError> for EnvError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Memory(e) => Self::Memory(e),
            other => Self::Device(other),
        }
    }
}
