//! Why environments broke: the device records the state of the first of them, and one
//! environment on the host is put into that state and examined as all are there.

use super::DeviceEnv;
use super::snapshot::put;
use crate::config::EnvConfig;
use crate::env::causes::{CausePlace, Kind};
use crate::env::stats::DESCRIBED;
use crate::env::{BatchEnv, Break};
use crate::task::emit::BREAKS;
use bytemuck::pod_read_unaligned;
use ostler_engine::device::DeviceError;
use ostler_engine::device::transfer::Reader;
use ostler_engine::kernels::BREAK_HEAD;
use std::sync::Arc;

/// One of the words of a record.
fn word(record: &[u8], i: usize) -> u32 {
    pod_read_unaligned(&record[4 * i..4 * i + 4])
}

fn clock(record: &[u8]) -> u64 {
    u64::from(word(record, 5)) | u64::from(word(record, 6)) << 32
}

impl DeviceEnv {
    /// Counts the causes of `broken` environments that broke.
    pub(super) fn examine(&mut self, broken: u32) -> Result<(), DeviceError> {
        if broken == 0 {
            return Ok(());
        }
        let (size, kept) = (4 * self.sizes.break_record(), (broken as usize).min(BREAKS));
        let staging = self.device.staging("broken environments", kept * size)?;
        // SAFETY: `breaks` is the address of BREAKS records in a block of `self`.
        let flight = unsafe { Reader::new(staging).begin(self.args.breaks) }?;
        let reader = flight.wait()?;
        // SAFETY: four bytes in a block of `self`.
        unsafe { self.device.upload(&[0; 4], self.args.broken) }?;
        let mut records: Vec<&[u8]> = reader.bytes().chunks_exact(size).collect();
        records.sort_unstable_by_key(|g| (clock(g), word(g, 0)));
        for record in records {
            let (place, kind, value) = self.cause(record);
            let cause = self.twin.causes.index(place, kind);
            let first_env = self.twin.first_env;
            let stats = &mut self.twin.live.stats;
            stats.causes[cause] += 1;
            if stats.breaks.len() < DESCRIBED {
                stats.breaks.push(Break {
                    env: first_env.wrapping_add(word(record, 0)),
                    clock: clock(record),
                    step: word(record, 1),
                    age: word(record, 2),
                    cause: cause as u32,
                    value,
                });
            }
        }
        let rest = self.twin.causes.index(CausePlace::Unexamined, Kind::Nan);
        self.twin.live.stats.causes[rest] += u64::from(broken) - kept as u64;
        Ok(())
    }

    /// Why the environment of a record broke.
    fn cause(&mut self, record: &[u8]) -> (CausePlace, Kind, f32) {
        let unknown = (CausePlace::Unknown, Kind::Nan, f32::NAN);
        if self.examiner.is_none() {
            let recipe = &self.recipe;
            let env = EnvConfig { num_envs: 1, ..recipe.env.clone() };
            self.examiner = BatchEnv::shard(
                Arc::clone(&recipe.model),
                &recipe.sim,
                &env,
                self.twin.task(),
                recipe.seed,
                0,
            )
            .ok();
        }
        let Some(examiner) = &mut self.examiner else {
            return unknown;
        };
        // A curriculum may have changed the task since.
        if examiner.task() != self.twin.task() && examiner.set_task(self.twin.task()).is_err() {
            return unknown;
        }
        let s = &self.sizes;
        let mut rest = &record[4 * BREAK_HEAD as usize..];
        let mut floats = |k: usize| -> Vec<f32> {
            let (head, tail) = rest.split_at(4 * k);
            rest = tail;
            head.chunks_exact(4).map(pod_read_unaligned).collect()
        };
        let actions = floats(s.nraw);
        let ctrl = floats(s.nu);
        let rewards = floats(s.nagent);
        let before = floats(s.nhistory);
        examiner.first_env = self.twin.first_env.wrapping_add(word(record, 0));
        examiner.noise = self.twin.noise;
        examiner.live.clock = clock(record);
        let (live, physics) = rest.split_at(4 * s.live());
        let put = put(examiner, s, 1, (live, physics));
        if put.is_err() {
            return unknown;
        }
        examiner.work.columns.ctrl.copy_from_slice(&ctrl);
        examiner.work.columns.bits[0] = word(record, 3);
        examiner.work.columns.gain.copy_from_slice(&rewards);
        examiner.work.columns.next_history.copy_from_slice(&before);
        examiner.first_cause(0, &actions)
    }
}
