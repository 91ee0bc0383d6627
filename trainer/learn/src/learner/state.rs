//! A learner's state: all that an update changes, by name.
//!
//! Networks, optimisers and statistics enter their tensors and counters into one list,
//! [`State`]. From it follow checkpoints, the way back to the start of an iteration, the way
//! back to earlier weights, the check that every number is finite, and the tensors that a
//! drill poisons. All changes are in place: nothing may replace a tensor that is listed.

use super::error::LearnError;
use super::fault::UpdateTarget;
use super::tensors::{NamedTensors, find, host_copy, zeros};
use ostler_collector::peers::Group;
use ostler_collector::transfer::{host_integer, host_number};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tch::{Kind, TchError, Tensor};

/// Owner of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The policy, critics and statistics: a roll-back takes them from earlier weights, and
    /// a new run from another run's checkpoint.
    Weights,
    /// The rest, which only the same run needs.
    Progress,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct State {
    blocks: Vec<Block>,
    named: Vec<Named>,
    counters: Vec<Counter>,
    /// Tensors that are no state, for drills: gradients and losses.
    marks: Vec<(String, Tensor)>,
}

/// Memory that is captured and restored as a whole.
#[derive(Debug)]
struct Block {
    live: Tensor,
    /// There once the state is [ready](State::ready).
    captured: Option<Tensor>,
}

/// A tensor as files name it; shares memory with a block.
#[derive(Debug)]
struct Named {
    name: String,
    live: Tensor,
    holds: Holds,
    /// Value of all its numbers if a file lacks it; none: it has to be there.
    otherwise: Option<f64>,
    /// A row for each environment: a file may have more or fewer of them.
    rows: bool,
}

#[derive(Debug)]
struct Counter {
    name: String,
    kind: CounterKind,
    live: Arc<AtomicU64>,
    captured: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CounterKind {
    Count,
    /// Bits of a float64 from 0 to 1.
    RateShare,
}

/// A number of times, which a state holds.
#[derive(Debug, Clone)]
pub struct Count(Arc<AtomicU64>);

impl Count {
    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.store(self.get().saturating_add(more), Relaxed);
    }

    /// The count as a policy's version.
    pub fn version(&self) -> i32 {
        i32::try_from(self.get()).unwrap_or(i32::MAX)
    }
}

/// The share of the configured learning rate that roll-backs have left, 0..1.
#[derive(Debug, Clone)]
pub struct RateShare(Arc<AtomicU64>);

impl RateShare {
    /// The share.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl State {
    /// A tensor that is a block by itself.
    pub fn tensor(&mut self, name: impl Into<String>, live: &Tensor, holds: Holds) {
        self.block(live);
        self.view(name, live, holds);
    }

    /// A tensor that a file may lack: all its numbers are `otherwise` then.
    pub fn optional(&mut self, name: impl Into<String>, live: &Tensor, otherwise: f64) {
        self.block(live);
        self.named.push(Named {
            name: name.into(),
            live: live.shallow_clone(),
            holds: Holds::Weights,
            otherwise: Some(otherwise),
            rows: false,
        });
    }

    /// A tensor with a row for each environment, by itself. Where a run goes on with fewer of
    /// them the first rows stay; of more, the others are 0.
    pub fn rows(&mut self, name: impl Into<String>, live: &Tensor, holds: Holds) {
        self.tensor(name, live, holds);
        if let Some(named) = self.named.last_mut() {
            named.rows = true;
        }
    }

    /// Memory that is captured and restored; files hold [views](Self::view) of it, or
    /// nothing where it follows from other tensors.
    pub fn block(&mut self, live: &Tensor) {
        self.blocks.push(Block { live: live.shallow_clone(), captured: None });
    }

    /// A part of a block as files name it.
    pub fn view(&mut self, name: impl Into<String>, live: &Tensor, holds: Holds) {
        self.named.push(Named {
            name: name.into(),
            live: live.shallow_clone(),
            holds,
            otherwise: None,
            rows: false,
        });
    }

    /// A count that starts at 0.
    pub fn count(&mut self, name: &str) -> Count {
        Count(self.counter(name, CounterKind::Count, 0))
    }

    /// Share of the learning rate after roll-backs: 1 at the start.
    pub fn rate_share(&mut self, name: &str) -> RateShare {
        RateShare(self.counter(name, CounterKind::RateShare, 1.0f64.to_bits()))
    }

    fn counter(&mut self, name: &str, kind: CounterKind, start: u64) -> Arc<AtomicU64> {
        let live = Arc::new(AtomicU64::new(start));
        self.counters.push(Counter {
            name: name.into(),
            kind,
            live: Arc::clone(&live),
            captured: Arc::new(AtomicU64::new(start)),
        });
        live
    }

    /// A tensor that is no state, for a drill: `gradient`, `loss`, or `parameters` in a row.
    pub fn mark(&mut self, name: &str, tensor: &Tensor) {
        self.marks.push((name.into(), tensor.shallow_clone()));
    }

    /// Allocates the buffers of [`capture`](Self::capture), and captures.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn ready(mut self) -> Result<Self, LearnError> {
        for block in &mut self.blocks {
            let t = &block.live;
            let copy = zeros("the learner's snapshot", &t.size(), t.kind(), t.device())?;
            block.captured = Some(copy);
        }
        self.capture()?;
        Ok(self)
    }

    /// Takes in another state, whose memory is then shared: names have `prefix/` in front.
    pub fn add(&mut self, prefix: &str, part: &Self) {
        self.take_in(|own| format!("{prefix}/{own}"), part, None);
    }

    /// [`add`](Self::add) for tensors that are no weights of this learner's, whatever they are
    /// to their own.
    pub fn add_progress(&mut self, prefix: &str, part: &Self) {
        let name = |own: &str| format!("{prefix}/{own}");
        self.take_in(name, part, Some(Holds::Progress));
    }

    /// [`add`](Self::add) with names as they are.
    pub fn join(&mut self, part: &Self) {
        self.take_in(str::to_string, part, None);
    }

    fn take_in(&mut self, name: impl Fn(&str) -> String, part: &Self, holds: Option<Holds>) {
        self.blocks.extend(part.blocks.iter().map(|b| Block {
            live: b.live.shallow_clone(),
            captured: b.captured.as_ref().map(Tensor::shallow_clone),
        }));
        self.named.extend(part.named.iter().map(|n| Named {
            name: name(&n.name),
            live: n.live.shallow_clone(),
            holds: holds.unwrap_or(n.holds),
            otherwise: n.otherwise,
            rows: n.rows,
        }));
        self.counters.extend(part.counters.iter().map(|c| Counter {
            name: name(&c.name),
            kind: c.kind,
            live: Arc::clone(&c.live),
            captured: Arc::clone(&c.captured),
        }));
    }

    /// Remembers the state as it is now, on its device, in buffers that are there already.
    ///
    /// # Errors
    /// libtorch refuses; the captured state is then undefined.
    pub fn capture(&mut self) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        for block in &mut self.blocks {
            if let Some(captured) = &mut block.captured {
                captured.f_copy_(&block.live)?;
            }
        }
        for counter in &self.counters {
            counter.captured.store(counter.live.load(Relaxed), Relaxed);
        }
        Ok(())
    }

    /// Goes back to the last captured state: the same bits. Allocates no tensor.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn restore(&mut self) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        for block in &mut self.blocks {
            if let Some(captured) = &block.captured {
                block.live.f_copy_(captured)?;
            }
        }
        for counter in &self.counters {
            counter.live.store(counter.captured.load(Relaxed), Relaxed);
        }
        Ok(())
    }

    /// All processes take the numbers of the first; derived values follow by
    /// [`renew`](super::Learner::renew).
    ///
    /// # Errors
    /// Another process is gone.
    pub fn share(&self, group: &Group) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        for block in &self.blocks {
            group.share(&block.live)?;
        }
        for counter in &self.counters {
            let bits = Tensor::f_from_slice(&[counter.live.load(Relaxed) as i64])?;
            group.share(&bits)?;
            counter.live.store(host_integer(&bits)? as u64, Relaxed);
        }
        Ok(())
    }

    /// The sum of every tensor's largest magnitude, float64 `[1]`, on the tensors' device:
    /// finite only if each number of the state is.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn magnitude(&self) -> Result<Tensor, TchError> {
        let largest = self.blocks.iter().map(|block| {
            block
                .live
                .f_view([-1])?
                .f_linalg_norm(f64::INFINITY, None::<&[i64]>, false, None)?
                .f_to_kind(Kind::Double)?
                .f_view([1])
        });
        let largest = largest.collect::<Result<Vec<_>, _>>()?;
        Tensor::f_cat(&largest, 0)?.f_sum(Kind::Double)?.f_view([1])
    }

    /// Copies on the host of the tensors with the weights, by name.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn weights(&self) -> Result<NamedTensors, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let weights = self.named.iter().filter(|n| n.holds == Holds::Weights);
        weights.map(|n| Ok((n.name.clone(), host_copy(&n.live)?))).collect()
    }

    /// Copies on the host of everything that is needed to go on with the same bits, by name.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn save(&self) -> Result<NamedTensors, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let mut all = Vec::with_capacity(self.named.len() + self.counters.len());
        for n in &self.named {
            all.push((n.name.clone(), host_copy(&n.live)?));
        }
        for c in &self.counters {
            let bits = c.live.load(Relaxed);
            let number = match c.kind {
                CounterKind::Count => {
                    Tensor::f_from_slice(&[i64::try_from(bits).unwrap_or(i64::MAX)])
                }
                CounterKind::RateShare => Tensor::f_from_slice(&[f64::from_bits(bits)]),
            };
            all.push((c.name.clone(), number?));
        }
        Ok(all)
    }

    /// Names of its tensors in files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|n| n.name.as_str())
    }

    /// Whether the weights are among `tensors`, in their shapes.
    ///
    /// # Errors
    /// Something is missing or of another shape.
    pub fn check_weights(&self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.check(tensors, |n| n.holds == Holds::Weights)
    }

    fn check(
        &self,
        tensors: &[(String, Tensor)],
        wanted: impl Fn(&Named) -> bool,
    ) -> Result<(), LearnError> {
        for n in self.named.iter().filter(|n| wanted(n)) {
            if n.otherwise.is_none() || tensors.iter().any(|(name, _)| *name == n.name) {
                let mut shape = n.live.size();
                let stored = tensors.iter().find(|(name, _)| *name == n.name);
                if let (true, Some(own), Some((_, stored))) = (n.rows, shape.first_mut(), stored) {
                    *own = stored.size().first().copied().unwrap_or(0);
                }
                find(tensors, &n.name, &shape)?;
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        tensors: &[(String, Tensor)],
        wanted: impl Fn(&Named) -> bool,
    ) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        for n in self.named.iter_mut().filter(|n| wanted(n)) {
            let stored = tensors.iter().find(|(name, _)| *name == n.name);
            match (stored, n.otherwise) {
                (Some((_, stored)), _) if n.rows => {
                    let rows = stored.size()[0].min(n.live.size()[0]);
                    let _ = n.live.f_zero_()?;
                    n.live.f_narrow(0, 0, rows)?.f_copy_(&stored.f_narrow(0, 0, rows)?)?;
                }
                (Some((_, stored)), _) => n.live.f_copy_(stored)?,
                (None, Some(all)) => drop(n.live.f_fill_(all)?),
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Takes the weights from `tensors`; further names are ignored. Nothing is changed
    /// unless everything fits.
    ///
    /// # Errors
    /// Something is missing or of another shape.
    pub fn load_weights(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.check_weights(tensors)?;
        self.take(tensors, |n| n.holds == Holds::Weights)
    }

    /// The reverse of [`save`](Self::save). Nothing is changed unless everything fits.
    ///
    /// # Errors
    /// Something is missing, of another shape, or a count that cannot be.
    pub fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.check(tensors, |_| true)?;
        let stored = |c: &Counter| -> Result<u64, LearnError> {
            let number = find(tensors, &c.name, &[1])?;
            match c.kind {
                CounterKind::Count => {
                    let count = host_integer(number)?;
                    u64::try_from(count).map_err(|_| {
                        LearnError::Checkpoint(format!("{} is {count}, not 0 or more", c.name))
                    })
                }
                CounterKind::RateShare => {
                    let share = host_number(number)?;
                    match (0.0..=1.0).contains(&share) {
                        true => Ok(share.to_bits()),
                        // Bounds made of it would be in the wrong order.
                        false => Err(LearnError::Checkpoint(format!(
                            "its share of the learning rate is {share}, not one from 0 to 1"
                        ))),
                    }
                }
            }
        };
        let counts = self.counters.iter().map(stored);
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        self.take(tensors, |_| true)?;
        for (counter, count) in self.counters.iter().zip(counts) {
            counter.live.store(count, Relaxed);
        }
        Ok(())
    }

    /// Learning rates are from now on `factor` times what they would be.
    pub fn lower_rates(&mut self, factor: f64) {
        for c in &self.counters {
            if c.kind == CounterKind::RateShare {
                let share = factor * f64::from_bits(c.live.load(Relaxed));
                c.live.store(share.to_bits(), Relaxed);
            }
        }
    }

    /// The numbers that a drill's target means.
    ///
    /// # Errors
    /// There are none.
    pub fn target(&self, what: &UpdateTarget) -> Result<Tensor, LearnError> {
        let none = |what: String| LearnError::Fault(what);
        let named = |matches: &dyn Fn(&str) -> bool, what: &dyn Fn() -> String| {
            let found = self.named.iter().find(|n| matches(&n.name));
            found.map(|n| n.live.shallow_clone()).ok_or_else(|| none(what()))
        };
        let mark = |name: &str| {
            let found = self.marks.iter().find(|(own, _)| own == name);
            let found = found.map(|(_, t)| t.shallow_clone());
            found.ok_or_else(|| none(name.to_string()))
        };
        let moment = |which: &str| {
            let ends = [format!("critic.adam.{which}"), format!("adam.{which}")];
            let ends = |name: &str| ends.iter().any(|end| name == end);
            named(&ends, &|| format!("running mean \"{which}\""))
        };
        match what {
            UpdateTarget::Gradient(i) => entry(&mark("gradient")?, *i),
            UpdateTarget::ParameterIndex(i) => entry(&mark("parameters")?, *i),
            UpdateTarget::FirstMoment(i) => entry(&moment("m")?, *i),
            UpdateTarget::SecondMoment(i) => entry(&moment("v")?, *i),
            UpdateTarget::Parameter(wanted) => {
                named(&|name| name == wanted, &|| format!("parameter called \"{wanted}\""))
            }
            UpdateTarget::Loss => mark("loss"),
            UpdateTarget::LogStd => {
                named(&|name| ["actor.log_std", "actor.log_std_head.bias"].contains(&name), &|| {
                    "parameter called actor.log_std or actor.log_std_head.bias".to_string()
                })
            }
            UpdateTarget::Normalizer => {
                named(&|name| name.ends_with("obs_normalizer.mean"), &|| {
                    "statistics of observations".to_string()
                })
            }
        }
    }

    /// Memory that is captured, in the order in which it was entered.
    #[cfg(test)]
    pub fn live(&self) -> Vec<&Tensor> {
        self.blocks.iter().map(|b| &b.live).collect()
    }
}

/// Tensors whose names begin with `prefix/`, by the rest of their names.
pub fn below(prefix: &str, tensors: &[(String, Tensor)]) -> NamedTensors {
    let own = tensors.iter().filter_map(|(name, t)| {
        let name = name.strip_prefix(prefix)?.strip_prefix('/')?;
        Some((name.to_string(), t.shallow_clone()))
    });
    own.collect()
}

/// Entry `i` of flat parameters.
///
/// # Errors
/// There are not as many.
fn entry(flat: &Tensor, i: u64) -> Result<Tensor, LearnError> {
    match i64::try_from(i).ok().filter(|&i| i < flat.numel() as i64) {
        Some(i) => Ok(flat.f_get(i)?),
        None => Err(LearnError::Fault(format!("entry {i} of {} parameters", flat.numel()))),
    }
}
