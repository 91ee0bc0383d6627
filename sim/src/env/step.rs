//! The phases of one control step. Each goes over blocks of environments, spread
//! over the pool; a block's numbers depend on nothing outside it.

use super::buffers::{Panicked, Worker};
use super::share::Shared;
use super::{BatchEnv, Finished, Groups, StepOut};
use crate::math::all_finite;
use crate::physics::fault;
use crate::physics::pool::Pool;
use crate::rng::{Purpose, philox, unit};
use crate::task::expr::{BLOCK, Inputs};
use crate::task::observe::NoiseKey;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

/// Calls `f(worker, first, len)` for every block of `n` environments. A block that
/// panics is marked; the others are not affected.
pub(super) fn for_blocks(
    pool: &Pool,
    n: usize,
    workers: &mut [Worker],
    panicked: &Panicked,
    f: impl Fn(&mut Worker, usize, usize) + Sync,
) {
    let blocks = n.div_ceil(BLOCK);
    let parts = workers.len();
    let workers = Shared::of(workers);
    pool.run(parts, &|part| {
        // SAFETY: each part of the loop takes the worker of its own number.
        let worker = unsafe { &mut workers.part(part, 1)[0] };
        for block in part * blocks / parts..(part + 1) * blocks / parts {
            let first = block * BLOCK;
            // What a panic leaves behind in a worker is overwritten by the next block.
            let call = AssertUnwindSafe(|| f(worker, first, BLOCK.min(n - first)));
            if catch_unwind(call).is_err() {
                panicked.blocks[block].store(true, Relaxed);
                panicked.any.store(true, Relaxed);
            }
        }
    });
}

/// What expressions read. A macro, since the borrows are of single fields.
macro_rules! inputs {
    ($env:ident, $live:ident, $work:ident, $state:ident, $first:expr, $len:expr) => {
        Inputs {
            state: $state,
            ctrl: &$work.ctrl,
            action: &$live.episodes.action,
            last_action: &$live.episodes.last_action,
            history: &$live.episodes.history,
            command: &$live.episodes.command,
            params: &$env.task.params,
            step: &$live.episodes.age,
            step_dt: $env.spec.step_dt as f32,
            max_steps: $env.spec.max_episode_steps,
            first: $first,
            len: $len,
        }
    };
}

pub(super) use inputs;

impl BatchEnv {
    /// Actions `[R][A]` to controls; episodes grow older by a step.
    pub(super) fn act(&mut self, actions: &[f32]) {
        let (n, outputs) = (self.spec.num_envs, self.task.actions.outputs());
        let width = self.task.actions.raw_width();
        assert_eq!(actions.len(), n * width, "actions are [R][A]");
        let (live, work) = (&mut self.live, &mut self.work);
        let (action, last) = (
            Shared::new(&mut live.episodes.action),
            Shared::new(&mut live.episodes.last_action),
        );
        let (age, length) = (
            Shared::new(&mut live.episodes.age),
            Shared::new(&mut live.episodes.length),
        );
        let (ctrl, faults) = (Shared::new(&mut work.ctrl), Shared::new(&mut work.fault));
        let (task, state) = (&self.task.actions, self.physics.state());
        let drill = (!self.drill.is_empty()).then_some(&self.drill);
        for_blocks(
            &self.pool,
            n,
            &mut work.workers,
            &work.panicked,
            |_, first, len| {
                let column = |buffer, k: usize| {
                    // SAFETY: entries of environments first..first+len, in row k at
                    // k * n + first, belong to this block alone, and below no two parts
                    // of the same buffer are alive at once.
                    unsafe { Shared::part(buffer, k * n + first, len) }
                };
                if let Some(drill) = drill {
                    drill.panic(first, len);
                }
                for k in 0..outputs {
                    column(&last, k).copy_from_slice(column(&action, k));
                }
                let mut bad = [false; BLOCK];
                let rows = &actions[first * width..(first + len) * width];
                task.clip(rows, &mut bad[..len], |k| column(&action, k));
                task.drive(state, first, |k| &*column(&action, k), |u| column(&ctrl, u));
                // SAFETY: as above.
                let (fault, age, length) = unsafe {
                    (
                        faults.part(first, len),
                        age.part(first, len),
                        length.part(first, len),
                    )
                };
                for lane in 0..len {
                    fault[lane] = if bad[lane] { fault::CONTROL } else { 0 };
                    age[lane] = age[lane].saturating_add(1);
                    length[lane] = length[lane].saturating_add(1);
                }
            },
        );
    }

    /// Faults, rewards and causes of ends, into the work buffers.
    pub(super) fn judge(&mut self) {
        let n = self.spec.num_envs;
        let state = self.physics.state();
        let (live, work) = (&mut self.live, &mut self.work);
        let sums = Shared::new(&mut live.episodes.sums);
        let (reward, faults) = (Shared::new(&mut work.reward), Shared::new(&mut work.fault));
        let (terminated, truncated) = (
            Shared::new(&mut work.terminated),
            Shared::new(&mut work.truncated),
        );
        for_blocks(
            &self.pool,
            n,
            &mut work.workers,
            &work.panicked,
            |worker, first, len| {
                let inputs = inputs!(self, live, work, state, first, len);
                let Worker {
                    scratch, judged, ..
                } = worker;
                self.task
                    .score
                    .judge(&inputs, scratch, judged, |term, lanes| {
                        // SAFETY: this block's entries of row `term`.
                        let sum = unsafe { sums.part(term * n + first, len) };
                        sum.iter_mut().zip(lanes).for_each(|(s, x)| *s += x);
                    });
                // SAFETY: this block's entries.
                let (fault, terminated, truncated) = unsafe {
                    (
                        faults.part(first, len),
                        terminated.part(first, len),
                        truncated.part(first, len),
                    )
                };
                for (agent, sums) in judged.reward.iter().enumerate() {
                    // SAFETY: this block's entries of row `agent`.
                    unsafe { reward.part(agent * n + first, len) }.copy_from_slice(&sums[..len]);
                }
                terminated.copy_from_slice(&judged.terminated[..len]);
                truncated.copy_from_slice(&judged.truncated[..len]);
                for lane in 0..len {
                    let env = first + lane;
                    fault[lane] |= inputs.state.fault[env] | live.episodes.stuck[env];
                    let finite = judged.reward.iter().all(|r| r[lane].is_finite());
                    if !finite || judged.absurd[lane] {
                        fault[lane] |= fault::TASK;
                    }
                }
            },
        );
        if !self.drill.is_empty() {
            let faults = &mut work.fault;
            let bad = |env: usize| faults[env] |= fault::TASK;
            self.drill.reward(n, &mut work.reward, bad);
        }
    }

    /// Commands whose time has come.
    pub(super) fn redraw_commands(&mut self) {
        if self.task.commands.width() == 0 {
            return;
        }
        let n = self.spec.num_envs;
        for env in 0..n {
            let age = self.live.episodes.age[env];
            let stream = self.first_env.wrapping_add(env as u32);
            let command = &mut self.live.episodes.command;
            self.task
                .commands
                .draw(self.seed, stream, self.live.clock, age, |i, x| {
                    command[i * n + env] = x
                });
        }
    }

    /// Observations of all environments as they are now.
    pub(super) fn observe(&mut self, obs: &mut Groups<&mut [f32]>) {
        self.write_observations(obs, false);
    }

    /// Key of the noise of rows written now, if there is noise. Two rows in one step,
    /// before and after a reset (`masked`), differ in it.
    pub(super) fn noise_key(&self, masked: bool) -> Option<NoiseKey> {
        self.noise.then_some(NoiseKey {
            seed: self.seed,
            stream: self.first_env,
            clock: 2 * self.live.clock + u64::from(masked),
        })
    }

    /// Writes rows: of all environments, or of those in the mask, which then have a
    /// new episode. A row that is not finite is a fault of the environment.
    fn write_observations(&mut self, obs: &mut Groups<&mut [f32]>, masked: bool) {
        let n = self.spec.num_envs;
        let [wide, critic_wide] = self.task.observations.world();
        let no_critic: &mut [f32] = &mut [];
        let critic = obs.critic.as_deref_mut().unwrap_or(no_critic);
        assert_eq!(obs.policy.len(), n * wide, "observations are [R][O]");
        assert_eq!(
            critic.len(),
            n * critic_wide,
            "critic observations are [R][O]"
        );
        let noise = self.noise_key(masked);
        let drill = (!masked && !self.drill.is_empty()).then_some(&self.drill);
        let state = self.physics.state();
        let (live, work) = (&mut self.live, &mut self.work);
        let (policy, critic) = (Shared::new(&mut *obs.policy), Shared::new(critic));
        let (last_policy, last_critic) = (
            Shared::new(&mut live.episodes.last_policy),
            Shared::new(&mut live.episodes.last_critic),
        );
        let bits = Shared::new(if masked {
            &mut live.episodes.stuck
        } else {
            &mut work.fault
        });
        for_blocks(
            &self.pool,
            n,
            &mut work.workers,
            &work.panicked,
            |worker, first, len| {
                let mut want = [!masked; BLOCK];
                if masked {
                    for (w, &m) in want.iter_mut().zip(&work.mask[first..first + len]) {
                        *w = m != 0;
                    }
                    if !want.contains(&true) {
                        return;
                    }
                }
                let rows = |buffer, width: usize| {
                    // SAFETY: rows of this block's environments; one part per buffer.
                    unsafe { Shared::part(buffer, first * width, len * width) }
                };
                let (policy, critic) = (rows(&policy, wide), rows(&critic, critic_wide));
                let (last_policy, last_critic) =
                    (rows(&last_policy, wide), rows(&last_critic, critic_wide));
                // SAFETY: this block's entries.
                let bits = unsafe { bits.part(first, len) };
                let inputs = inputs!(self, live, work, state, first, len);
                self.task.observations.write(
                    &inputs,
                    &mut worker.scratch,
                    noise,
                    &want,
                    policy,
                    critic,
                );
                if let Some(drill) = drill {
                    drill.observe(first, len, wide, policy);
                }
                if !masked && all_finite(policy) && all_finite(critic) {
                    last_policy.copy_from_slice(policy);
                    last_critic.copy_from_slice(critic);
                    return;
                }
                for lane in (0..len).filter(|&l| want[l]) {
                    let (p, c) = (
                        lane * wide..(lane + 1) * wide,
                        lane * critic_wide..(lane + 1) * critic_wide,
                    );
                    let finite = all_finite(&policy[p.clone()]) && all_finite(&critic[c.clone()]);
                    if masked {
                        bits[lane] = inputs.state.fault[first + lane];
                    }
                    if finite {
                        last_policy[p.clone()].copy_from_slice(&policy[p]);
                        last_critic[c.clone()].copy_from_slice(&critic[c]);
                    } else {
                        bits[lane] |= fault::TASK;
                        policy[p.clone()].copy_from_slice(&last_policy[p]);
                        critic[c.clone()].copy_from_slice(&last_critic[c]);
                    }
                }
            },
        );
        self.contain_panics(obs, masked);
    }

    /// Writes rewards and flags and marks the environments that begin anew; whether there
    /// are any. A pass without branches.
    fn flag(&mut self, out: &mut StepOut<'_>) -> bool {
        let (n, agents) = (self.spec.num_envs, self.spec.agents_per_env());
        let most = self.spec.max_episode_steps;
        let work = &mut self.work;
        // Of the length that the loops have, which then need not ask.
        let (fault, age) = (&work.fault[..n], &self.live.episodes.age[..n]);
        let (ended, cut) = (&work.terminated[..n], &work.truncated[..n]);
        let mask = &mut work.mask[..n];
        let rows = n * agents;
        let (terminated, truncated) = (&mut out.terminated[..rows], &mut out.truncated[..rows]);
        let (reward, valid) = (&mut out.reward[..rows], &mut out.valid[..rows]);
        for m in 0..agents {
            let given = &work.reward[m * n..(m + 1) * n];
            let sums = &mut self.live.episodes.ret[m * n..(m + 1) * n];
            for env in 0..n {
                let well = fault[env] == 0;
                let end = well & (ended[env] != 0);
                let late = well & !end & ((cut[env] != 0) | (age[env] >= most));
                let gain = if well { given[env] } else { 0.0 };
                let row = env * agents + m;
                sums[env] += gain;
                reward[row] = gain;
                terminated[row] = f32::from(u8::from(end));
                truncated[row] = f32::from(u8::from(late));
                valid[row] = f32::from(u8::from(well));
                mask[env] = u8::from(!well | end | late);
            }
        }
        out.final_slot.fill(-1);
        mask.iter().any(|m| *m != 0)
    }

    /// Writes rewards and flags, keeps last observations and statistics, and marks
    /// the environments that begin anew; false if there are none.
    pub(super) fn settle(&mut self, out: &mut StepOut<'_>) -> bool {
        self.work.broken.clear();
        if !self.flag(out) {
            return false;
        }
        let (n, agents) = (self.spec.num_envs, self.spec.agents_per_env());
        let [wide, critic_wide] = self.task.observations.world();
        let slots = out.final_obs.policy.len() / (n * wide);
        let (live, work) = (&mut self.live, &mut self.work);
        for env in (0..n).filter(|&e| work.mask[e] != 0) {
            let rows = env * agents..(env + 1) * agents;
            let bits = work.fault[env];
            let (valid, cause) = (bits == 0, work.terminated[env]);
            let terminated = out.terminated[rows.start] != 0.0;
            let truncated = out.truncated[rows.start] != 0.0;
            if !valid {
                work.broken.push(env as u32);
                for (bit, count) in live.stats.faults.iter_mut().enumerate() {
                    *count += u64::from(bits >> bit & 1);
                }
                continue;
            }
            if truncated {
                let slot = live.episodes.final_used[env] as usize;
                if slot < slots {
                    live.episodes.final_used[env] += 1;
                    out.final_slot[rows].fill(slot as i32);
                    let row = (slot * n + env) * wide..(slot * n + env + 1) * wide;
                    out.final_obs.policy[row]
                        .copy_from_slice(&out.obs.policy[env * wide..(env + 1) * wide]);
                    if let (Some(to), Some(from)) = (&mut out.final_obs.critic, &out.obs.critic) {
                        let row =
                            (slot * n + env) * critic_wide..(slot * n + env + 1) * critic_wide;
                        to[row].copy_from_slice(&from[env * critic_wide..(env + 1) * critic_wide]);
                    }
                } else {
                    live.stats.final_overflow += 1;
                }
            }
            if live.episodes.counted[env] != 0 {
                let stats = &mut live.stats;
                stats.episodes += 1;
                let mut sum = 0.0;
                for (m, ret) in live.episodes.ret.iter().skip(env).step_by(n).enumerate() {
                    sum += f64::from(*ret);
                    if let Some(own) = stats.agent_return_sums.get_mut(m) {
                        *own += f64::from(*ret);
                    }
                }
                let ret = sum / agents as f64;
                stats.return_sum += ret;
                stats.length_sum += f64::from(live.episodes.length[env]);
                for (k, sum) in stats.reward_sums.iter_mut().enumerate() {
                    *sum += f64::from(live.episodes.sums[k * n + env]);
                }
                let cause = if terminated {
                    cause
                } else {
                    work.truncated[env]
                };
                stats.terminations[cause as usize] += 1;
                if stats.finished.len() < n {
                    stats.finished.push(Finished {
                        env: env as u32,
                        step: (live.clock - live.began).saturating_sub(1) as u32,
                        ret: ret as f32,
                        length: live.episodes.length[env],
                    });
                }
            }
        }
        true
    }

    /// New episodes for the environments in the mask, and their first observations.
    pub(super) fn restart(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) {
        let n = self.spec.num_envs;
        let (live, work) = (&mut self.live, &mut self.work);
        let Some(worker) = work.workers.first_mut() else {
            return;
        };
        for env in (0..n).filter(|&e| work.mask[e] != 0) {
            let stream = self.first_env.wrapping_add(env as u32);
            self.task.reset.draw(
                self.seed,
                stream,
                live.clock,
                &mut worker.qpos,
                &mut worker.qvel,
            );
            scatter(&worker.qpos, &mut work.qpos, n, env);
            scatter(&worker.qvel, &mut work.qvel, n, env);
            let command = &mut live.episodes.command;
            self.task
                .commands
                .draw(self.seed, stream, live.clock, 0, |i, x| {
                    command[i * n + env] = x
                });
            live.episodes.begin(env);
            (0..self.model.nu()).for_each(|u| work.ctrl[u * n + env] = 0.0);
            let word = philox(self.seed, stream, Purpose::EpisodeStart, live.clock, 0)[0];
            let age = (f64::from(unit(word)) * f64::from(self.spec.max_episode_steps)) as u32;
            live.episodes.age[env] = if spread { age } else { 0 };
            live.episodes.counted[env] = u32::from(live.episodes.age[env] == 0);
        }
        self.physics.reset(&work.mask, &work.qpos, &work.qvel);
        self.begin_memory();
        self.write_observations(obs, true);
    }
}

/// Writes one environment's values into its column of `[k][N]`.
fn scatter(values: &[f32], into: &mut [f32], n: usize, env: usize) {
    for (x, to) in values.iter().zip(into.iter_mut().skip(env).step_by(n)) {
        *to = *x;
    }
}
