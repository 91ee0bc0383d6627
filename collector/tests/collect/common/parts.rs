//! Parts of a batch whose numbers say who they are, and that do what a test wants at a
//! step of its choice.

use ostler_collector::env::Environments;
use ostler_collector::policy::{Hidden, Noise};
use ostler_collector::{Act, CollectError, Policy, Replica, Replicate};
use ostler_sim::device::Counts;
use ostler_sim::env::{ActionSpace, EnvSpec, Finished};
use ostler_sim::physics::SnapshotError;
use ostler_sim::{EpisodeStats, Groups, StepOut};
use std::sync::Arc;
use tch::{TchError, Tensor};

/// The arguments of a test's callback before each step.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Global id of the part's first environment.
    pub first: usize,
    /// Steps of the part so far.
    pub step: u64,
}

pub type Hook = Arc<dyn Fn(Moment) + Send + Sync>;

/// Observation `[step, global id, age, last action]`, critic's `[100 id + age]`.
/// Episodes of environment `e` time out at age `e + 5`, so
/// one per rollout at the most.
pub struct Part {
    spec: EnvSpec,
    first: usize,
    clock: u64,
    step: u64,
    began: u64,
    /// Added to rewards.
    pub bonus: f32,
    ages: Vec<u32>,
    slots: Vec<i32>,
    finished: Vec<Finished>,
    hook: Hook,
}

pub const WIDE: usize = 4;

impl Part {
    pub fn new(first: usize, num_envs: usize, hook: Hook) -> Self {
        let spec = EnvSpec::plain(
            num_envs,
            Groups { policy: WIDE, critic: Some(1) },
            ActionSpace::Continuous(2),
            0.02,
            2,
        );
        Self {
            spec,
            first,
            clock: 0,
            step: 0,
            began: 0,
            bonus: 0.0,
            ages: vec![0; num_envs],
            slots: vec![0; num_envs],
            finished: Vec::new(),
            hook,
        }
    }

    fn observe(&self, obs: &mut Groups<&mut [f32]>, actions: Option<&[f32]>) {
        for e in 0..self.spec.num_envs {
            let (id, age) = ((self.first + e) as f32, self.ages[e] as f32);
            let action = actions.map_or(-1.0, |a| a[2 * e]);
            let row = [self.step as f32, id, age, action];
            obs.policy[e * WIDE..][..WIDE].copy_from_slice(&row);
            if let Some(critic) = &mut obs.critic {
                critic[e] = 100.0 * id + age;
            }
        }
    }
}

impl Environments for Part {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        self.clock += 1;
        self.ages.fill(u32::from(spread));
        self.observe(obs, None);
        Ok(())
    }

    fn begin_rollout(&mut self) {
        self.slots.fill(0);
        self.began = self.step;
    }

    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        let moment = Moment { first: self.first, step: self.step };
        (self.hook)(moment);
        self.clock += 1;
        self.step += 1;
        for e in 0..self.spec.num_envs {
            let id = self.first + e;
            self.ages[e] += 1;
            let over = self.ages[e] as usize == id + 5;
            out.reward[e] = 10.0 * self.step as f32 + id as f32 + self.bonus;
            out.terminated[e] = 0.0;
            out.truncated[e] = f32::from(over);
            out.valid[e] = 1.0;
            out.final_slot[e] = -1;
            if over {
                let row = self.slots[e] as usize * self.spec.num_envs + e;
                if let Some(to) = out.final_obs.policy.get_mut(row * WIDE..(row + 1) * WIDE) {
                    to.fill(-(self.step as f32));
                    out.final_slot[e] = self.slots[e];
                    self.slots[e] += 1;
                }
                self.finished.push(Finished {
                    env: e as u32,
                    step: (self.step - 1 - self.began) as u32,
                    ret: id as f32,
                    length: self.ages[e],
                });
                self.ages[e] = 0;
            }
        }
        self.observe(&mut out.obs, Some(actions));
        Ok(())
    }

    fn take_stats(&mut self, into: &mut EpisodeStats) {
        into.episodes = self.finished.len() as u64;
        into.finished.clear();
        into.finished.append(&mut self.finished);
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let n = self.spec.num_envs as u64;
        for word in [self.first as u64, n, self.clock, self.step] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for age in &self.ages {
            out.extend_from_slice(&age.to_le_bytes());
        }
        Ok(())
    }

    fn restore(&mut self, blob: &[u8]) -> Result<(), SnapshotError> {
        let (first, ages, clock, step) = read(blob)?;
        if (first, ages.len()) != (self.first, self.spec.num_envs) {
            return Err(SnapshotError::Unfit("of other environments".into()));
        }
        (self.ages, self.clock, self.step) = (ages, clock, step);
        self.finished.clear();
        Ok(())
    }

    fn restore_range(
        &mut self,
        blob: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        let (first, ages, clock, step) = read(blob)?;
        let from = (self.first - first).min(ages.len());
        (self.clock, self.step) = (clock, step);
        self.finished.clear();
        self.ages.fill(u32::from(spread));
        let there = &ages[from..];
        let taken = there.len().min(self.ages.len());
        self.ages[..taken].copy_from_slice(&there[..taken]);
        self.observe(obs, None);
        Ok(taken)
    }

    fn clock(&self) -> u64 {
        self.clock
    }

    fn skip(&mut self, steps: u64) {
        self.clock += steps;
        self.step += steps;
    }

    fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let parts: Vec<Content> = parts.iter().map(|p| read(p)).collect::<Result<_, _>>()?;
        let (first, _, clock, step) = parts[0];
        if parts.iter().any(|p| p.2 != clock) {
            return Err(SnapshotError::Unfit("of different times".into()));
        }
        let ages: Vec<u32> = parts.iter().flat_map(|p| p.1.clone()).collect();
        for word in [first as u64, ages.len() as u64, clock, step] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend(ages.iter().flat_map(|a| a.to_le_bytes()));
        Ok(())
    }
}

type Content = (usize, Vec<u32>, u64, u64);

fn read(blob: &[u8]) -> Result<Content, SnapshotError> {
    let words: Vec<u64> =
        blob.chunks_exact(8).take(4).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    let [first, n, clock, step] = words[..] else {
        return Err(SnapshotError::Unfit("short".into()));
    };
    let ages: Vec<u32> =
        blob[32..].chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    if ages.len() as u64 != n {
        return Err(SnapshotError::Unfit("of other length".into()));
    }
    Ok((first as usize, ages, clock, step))
}

/// Acts with the second number of the observation plus the weight plus noise, and counts the
/// steps of the episode. An update adds 1 to the weight.
#[derive(Clone)]
pub struct Learning {
    pub weight: f32,
    pub version: i32,
    /// Fails for want of memory where it returns true.
    pub full: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Learning {
    pub fn new() -> Self {
        Self { weight: 0.0, version: 0, full: Arc::new(|| false) }
    }

    pub fn update(&mut self) {
        self.weight += 1.0;
        self.version += 1;
    }
}

impl Policy for Learning {
    fn dist_width(&self) -> i64 {
        2
    }

    fn noise(&self) -> (i64, Noise) {
        (2, Noise::Normal)
    }

    fn hidden_width(&self) -> i64 {
        1
    }

    fn bounds(&self) -> &[f32] {
        &[1.0, 0.25]
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        if (self.full)() {
            let error = ostler_sim::memory::MemoryError { what: "a thought".into(), bytes: 12 };
            return Err(ostler_collector::memory::memory_as_tch(error));
        }
        let _no_grad = tch::no_grad_guard();
        let mean = obs.f_narrow(1, 1, 2)?.f_add_scalar(f64::from(self.weight))?;
        out.dist.shallow_clone().f_copy_(&mean)?;
        let Hidden { before, after } = out.hidden.expect("a hidden state");
        after.shallow_clone().f_copy_(&before.f_add_scalar(1.0)?)?;
        let _ = out.std.shallow_clone().f_fill_(1.0)?;
        let _ = mean.f_add_out(out.action, noise)?;
        Ok(())
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        _: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        action.shallow_clone().f_copy_(&obs.f_narrow(1, 1, 2)?)
    }

    fn version(&self) -> i32 {
        self.version
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        Some(self)
    }
}

impl Replicate for Learning {
    fn replica(&self, _: usize, _: usize) -> Result<Box<dyn Replica>, TchError> {
        let mut other = self.clone();
        other.weight = f32::NAN;
        Ok(Box::new(other))
    }

    fn weights(&self, out: &mut Vec<f32>, _: &Counts) -> Result<(), TchError> {
        out.clear();
        out.push(self.weight);
        Ok(())
    }
}

impl Replica for Learning {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        self.weight = weights[0];
        Ok(())
    }
}
