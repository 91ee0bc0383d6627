//! Statistics of a rollout, read by the host.

use super::blocks::chunks;
use super::{DeviceEnv, Entry};
use crate::env::Finished;
use bytemuck::pod_read_unaligned;
use ostler_engine::device::DeviceError;
use ostler_engine::physics::Shortfalls;
use ostler_engine::stats::{STATS, StatSizes};

/// An episode that ended, as the device lists it.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Last {
    env: u32,
    ret: f32,
    length: u32,
    /// 1 + control steps of the rollout before.
    when: u32,
}

impl DeviceEnv {
    /// Adds the device's counts to the twin's statistics and resets them.
    pub(super) fn count(&mut self) -> Result<(), DeviceError> {
        if !self.uncounted {
            return Ok(());
        }
        let (chunks, sums) = (chunks(self.twin.spec.num_envs), self.sizes.tally() + 2);
        self.launch(Entry::Tally, chunks)?;
        self.launch(Entry::Total, sums)?;
        let reader = self.totals.take();
        let reader = match reader {
            Some(reader) => reader,
            // The last copy failed.
            None => {
                let bytes = self.blocks.totals.bytes();
                ostler_engine::device::transfer::Reader::new(
                    self.device.staging("statistics", bytes)?,
                )
            }
        };
        // SAFETY: the reader is as long as the block, which lives.
        let flight = unsafe { reader.begin(self.blocks.totals.address()) }?;
        let reader = flight.wait()?;
        let broken = self.add(reader.bytes());
        self.totals = Some(reader);
        self.uncounted = false;
        self.examine(broken)
    }

    /// Adds the totals block to the twin's statistics; returns how many broke.
    fn add(&mut self, bytes: &[u8]) -> u32 {
        let s = &self.sizes;
        let total = |i: usize| -> f64 { pod_read_unaligned(&bytes[8 * i..8 * i + 8]) };
        let stats = &mut self.twin.live.stats;
        let (sizes, mut next) = (StatSizes::on_device(s), 0);
        for (stat, own) in STATS.iter().zip(stats.numbers_mut()) {
            for number in own.iter_mut().take(stat.size(&sizes)) {
                stat.add_total(number, total(next));
                next += 1;
            }
        }
        self.shortfalls = Shortfalls {
            contact_overflow: total(s.tally()) as u64,
            unsolved: total(s.tally() + 1) as u64,
        };

        let (counts, list) = bytes[8 * (s.tally() + 2)..].split_at(8);
        let [broken, listed] = pod_read_unaligned::<[u32; 2]>(counts);
        // The counter and the list go on from call to call.
        let (new, room) = (listed.wrapping_sub(self.listed), list.len() as u32 / 16);
        self.listed = listed;
        let mut lasts: Vec<Last> = (1..=new.min(room))
            .map(|back| (listed.wrapping_sub(back) % room) as usize)
            .map(|place| pod_read_unaligned(&list[16 * place..][..16]))
            .collect();
        lasts.sort_unstable_by_key(|l: &Last| (l.when, l.env));
        let all = lasts.iter().map(|last| Finished {
            env: last.env,
            step: last.when.saturating_sub(1),
            ret: last.ret,
            length: last.length,
        });
        stats.finished.extend(all);
        stats.forget_old();
        if !stats.has_metrics() {
            stats.finished_metrics.clear();
        }
        broken
    }
}
