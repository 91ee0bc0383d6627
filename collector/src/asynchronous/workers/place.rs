//! States of the workers, and how all go on from another state.

use super::{Member, Order, Workers};
use crate::CollectError;
use crate::env::Environments;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A state, and the first environment of a worker in it.
pub(in crate::asynchronous) type StatePart = (Arc<Vec<u8>>, usize);

impl<E: Environments + Send + 'static> Workers<E> {
    /// Where every worker is.
    pub(crate) fn own_places(&self) -> Vec<StatePart> {
        let own = |m: &Member<E>| (m.state.blob.clone(), 0);
        self.all.iter().map(own).collect()
    }

    /// Where every worker finds its environments in the state of all.
    pub(crate) fn places_in(&self, blob: &[u8]) -> Result<Vec<StatePart>, CollectError> {
        let mut copy = Vec::new();
        copy.try_reserve_exact(blob.len()).map_err(|_| {
            CollectError::Memory(ostler_sim::memory::MemoryError {
                what: "a snapshot of the collector".into(),
                bytes: blob.len(),
            })
        })?;
        copy.extend_from_slice(blob);
        let copy = Arc::new(copy);
        Ok(self.all.iter().map(|m| (copy.clone(), m.shard.first)).collect())
    }

    /// Drops all rollouts below `dropped` and gives every worker a state. Returns how
    /// many environments were taken over.
    pub(crate) fn place(
        &mut self,
        dropped: u64,
        places: &[StatePart],
        spread: bool,
    ) -> Result<usize, CollectError> {
        for (member, (blob, from)) in self.all.iter_mut().zip(places) {
            member.signals.dropped.store(dropped, Relaxed);
            member.free.extend(member.done.drain(..));
            member.placing = true;
            member.placed = None;
            let order = Order::Restore { blob: blob.clone(), from: *from, spread };
            if member.ended || member.orders.send(order).is_err() {
                let (worker, envs) = (member.shard.worker, member.shard.envs());
                return Err(CollectError::Worker { worker, envs, why: "has ended".into() });
            }
        }
        self.look_again();
        let mut failed = None;
        while self.all.iter().any(|m| m.placing) {
            // All answers are waited for: none may be taken for that of another time.
            if let Err(e) = self.listen(None) {
                let ended = self.all.iter().any(|m| m.placing && m.ended);
                if ended {
                    return Err(e);
                }
                failed.get_or_insert(e);
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        let mut all = 0;
        for member in &mut self.all {
            if let Some((taken, state)) = member.placed.take() {
                all += taken;
                member.state = state;
            }
        }
        Ok(all)
    }

    /// States at the start of the rollout that is handed out next.
    pub(crate) fn states(&self) -> Vec<Arc<Vec<u8>>> {
        self.all.iter().map(|m| m.state.blob.clone()).collect()
    }
}
