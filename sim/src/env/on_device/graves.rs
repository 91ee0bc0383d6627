//! Why environments broke: the device keeps what was left of the first of them, one
//! environment on the host is put into the same state and looked at as all are there.

use super::DeviceEnv;
use super::snapshot::put;
use crate::config::EnvConfig;
use crate::device::DeviceError;
use crate::device::transfer::Reader;
use crate::env::causes::{Kind, Place};
use crate::env::examine::DESCRIBED;
use crate::env::{BatchEnv, Break};
use crate::task::emit::{GRAVE_HEAD, GRAVES};
use bytemuck::pod_read_unaligned;
use std::sync::Arc;

/// One of the words of a grave.
fn word(grave: &[u8], i: usize) -> u32 {
    pod_read_unaligned(&grave[4 * i..4 * i + 4])
}

fn clock(grave: &[u8]) -> u64 {
    u64::from(word(grave, 5)) | u64::from(word(grave, 6)) << 32
}

impl DeviceEnv {
    /// Counts the causes of `buried` environments that broke.
    pub(super) fn examine(&mut self, buried: u32) -> Result<(), DeviceError> {
        if buried == 0 {
            return Ok(());
        }
        let (size, kept) = (4 * self.sizes.grave(), (buried as usize).min(GRAVES));
        let staging = self.device.staging("broken environments", kept * size)?;
        // SAFETY: `grave` is the address of GRAVES graves in a block of `self`.
        let flight = unsafe { Reader::new(staging).begin(self.args.grave) }?;
        let reader = flight.wait()?;
        // SAFETY: four bytes in a block of `self`.
        unsafe { self.device.upload(&[0; 4], self.args.buried) }?;
        let mut graves: Vec<&[u8]> = reader.bytes().chunks_exact(size).collect();
        graves.sort_unstable_by_key(|g| (clock(g), word(g, 0)));
        for grave in graves {
            let (place, kind, value) = self.cause(grave);
            let cause = self.twin.causes.index(place, kind);
            let first_env = self.twin.first_env;
            let stats = &mut self.twin.live.stats;
            stats.causes[cause] += 1;
            if stats.breaks.len() < DESCRIBED {
                stats.breaks.push(Break {
                    env: first_env.wrapping_add(word(grave, 0)),
                    clock: clock(grave),
                    step: word(grave, 1),
                    age: word(grave, 2),
                    cause: cause as u32,
                    value,
                });
            }
        }
        let rest = self.twin.causes.index(Place::Unexamined, Kind::Nan);
        self.twin.live.stats.causes[rest] += u64::from(buried) - kept as u64;
        Ok(())
    }

    /// What broke the environment of a grave.
    fn cause(&mut self, grave: &[u8]) -> (Place, Kind, f32) {
        let unknown = (Place::Unknown, Kind::Nan, f32::NAN);
        if self.coroner.is_none() {
            let recipe = &self.recipe;
            let env = EnvConfig {
                num_envs: 1,
                ..recipe.env.clone()
            };
            self.coroner = BatchEnv::shard(
                Arc::clone(&recipe.model),
                &recipe.sim,
                &env,
                self.twin.task(),
                recipe.seed,
                0,
            )
            .ok();
        }
        let Some(coroner) = &mut self.coroner else {
            return unknown;
        };
        // A curriculum may have changed the task since.
        if coroner.task() != self.twin.task() && coroner.set_task(self.twin.task()).is_err() {
            return unknown;
        }
        let s = &self.sizes;
        let mut rest = &grave[4 * GRAVE_HEAD..];
        let mut floats = |k: usize| -> Vec<f32> {
            let (head, tail) = rest.split_at(4 * k);
            rest = tail;
            head.chunks_exact(4).map(pod_read_unaligned).collect()
        };
        let actions = floats(s.nraw);
        let ctrl = floats(s.nu);
        let rewards = floats(s.nagent);
        let _row = floats(s.nobs + s.ncritic);
        coroner.first_env = self.twin.first_env.wrapping_add(word(grave, 0));
        coroner.noise = self.twin.noise;
        coroner.live.clock = clock(grave);
        let (live, physics) = rest.split_at(4 * s.live());
        let put = put(coroner, s, 1, (live, physics));
        if put.is_err() {
            return unknown;
        }
        coroner.work.ctrl.copy_from_slice(&ctrl);
        coroner.work.fault[0] = word(grave, 3);
        coroner.work.reward.copy_from_slice(&rewards);
        coroner.first_cause(0, &actions)
    }
}
