//! The phases of one control step, of which the kernels' text has one form for hosts and
//! devices: `sim/kernels/env/phases.cuh`. Here they go over blocks of environments, spread
//! over the pool; a block's numbers depend on nothing outside it. Between them stand the
//! physics, what is counted, and injected faults.

use super::args::EnvArgs;
use super::buffers::{Panicked, Worker};
use super::lanes::Block;
use super::share::Shared;
use super::{BatchEnv, Finished, Groups, StepOut};
use crate::device::Address;
use crate::physics::pool::Pool;
use crate::task::expr::{BLOCK, Column, Columns, Inputs};
use bytemuck::Zeroable;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Calls `f(worker, first, len)` for every block of `n` environments. A block that
/// panics is marked; the others are not affected.
fn for_blocks(
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
                panicked.mark(block);
            }
        }
    });
}

fn address<T>(rows: &mut [T]) -> Address {
    rows.as_mut_ptr() as Address
}

impl BatchEnv {
    /// What all phases take.
    fn args(&mut self) -> EnvArgs {
        let mut args = EnvArgs {
            n: self.spec.num_envs as i32,
            first_env: self.first_env,
            seed: self.seed,
            clock: self.live.clock,
            noisy: u32::from(self.noise),
            episode: self.live.episodes.addresses(),
            buffers: self.work.columns.addresses(),
            tables: self.tables.addresses(),
            size: self.sizes.words(),
            ..EnvArgs::zeroed()
        };
        args.physics.world = self.physics.state().addresses();
        args
    }

    /// Where observations go `[R][O]`.
    fn aim(&self, args: &mut EnvArgs, obs: &mut Groups<&mut [f32]>) {
        let n = self.spec.num_envs;
        let critic = obs.critic.as_mut().map_or(0, |rows| rows.len());
        let has = [obs.policy.len(), critic];
        let wants = self.task.observations.world().map(|width| n * width);
        assert_eq!(has, wants, "observations are [R][O]");
        args.obs = address(obs.policy);
        args.critic_obs = obs.critic.as_deref_mut().map_or(0, address);
    }

    /// What expressions read.
    fn columns(&self) -> Columns {
        let (state, episodes) = (self.physics.state(), &self.live.episodes);
        Columns {
            stride: self.spec.num_envs,
            world: state.floats().map(|x| Column::of(x)),
            ctrl: Column::of(&self.work.columns.ctrl),
            action: Column::of(&episodes.action),
            last_action: Column::of(&episodes.last_action),
            history: Column::of(&episodes.history),
            command: Column::of(&episodes.command),
            step: Column::of(&episodes.age),
        }
    }

    /// Calls `f` with every block of which `wanted` holds, given its number and its
    /// environments' places. A block of which a part panicked in this step has `failed`.
    fn blocks(
        &mut self,
        args: &EnvArgs,
        wanted: impl Fn(usize, usize, usize) -> bool + Sync,
        f: impl Fn(&mut Block<'_>) + Sync,
    ) {
        let (columns, n) = (self.columns(), self.spec.num_envs);
        let (step_dt, max_steps) = (self.spec.step_dt as f32, self.spec.max_episode_steps);
        let (task, work) = (&self.task, &mut self.work);
        let drill = (!self.drill.is_empty()).then_some(&self.drill);
        let panicked = &work.panicked;
        // SAFETY: the columns live as long as this call, and threads write their own
        // blocks' entries only.
        let inputs = |first, len| unsafe {
            Inputs::new(columns, &task.params, step_dt, max_steps, first, len)
        };
        for_blocks(
            &self.pool,
            n,
            &mut work.workers,
            panicked,
            |worker, first, len| {
                let number = first / BLOCK;
                if !wanted(number, first, len) {
                    return;
                }
                let mut block = Block {
                    args,
                    task,
                    inputs: inputs(first, len),
                    scratch: &mut worker.scratch,
                    drill,
                    first,
                    len,
                    failed: panicked.is_marked(number),
                };
                f(&mut block);
                if block.failed {
                    panicked.mark(number);
                }
            },
        );
    }

    /// Actions `[R][A]` to controls; episodes grow older by a step.
    pub(super) fn act(&mut self, actions: &[f32]) {
        let width = self.task.actions.raw_width();
        assert_eq!(
            actions.len(),
            self.spec.num_envs * width,
            "actions are [R][A]"
        );
        let mut args = self.args();
        args.actions = actions.as_ptr() as Address;
        self.blocks(
            &args,
            |_, _, _| true,
            |block| {
                // SAFETY: the addresses are those of `args` and of rows of this size.
                unsafe { Block::act(block.args, block.first, block.len) };
                if let Some(drill) = block.drill {
                    drill.panic(block.first, block.len);
                }
            },
        );
    }

    /// Everything after the physics, for environments whose episodes go on; whether there
    /// are others.
    pub(super) fn finish(&mut self, out: &mut StepOut<'_>) -> bool {
        let rows = self.spec.rows();
        let lengths = [
            out.reward.len(),
            out.terminated.len(),
            out.truncated.len(),
            out.valid.len(),
            out.final_slot.len(),
        ];
        assert_eq!(lengths, [rows; 5], "results are [R]");
        let mut args = self.args();
        self.aim(&mut args, &mut out.obs);
        let slots = out.final_obs.policy.len() / self.work.row.policy.len().max(1);
        args.slots = (slots / self.spec.num_envs) as i32;
        args.final_obs = address(out.final_obs.policy);
        if let Some(critic) = &mut out.final_obs.critic {
            let room = args.slots as usize * self.spec.num_envs * self.work.row.critic.len();
            assert!(critic.len() >= room, "final observations are [K][R][O]");
            args.final_critic = address(critic);
        }
        args.reward = address(out.reward);
        args.terminated = address(out.terminated);
        args.truncated = address(out.truncated);
        args.valid = address(out.valid);
        args.final_slot = address(out.final_slot);
        let any = AtomicBool::new(false);
        self.blocks(
            &args,
            |_, _, _| true,
            |block| {
                // SAFETY: the addresses are those of `args` and of rows of these sizes.
                if unsafe { block.finish() } {
                    any.store(true, Relaxed);
                }
            },
        );
        self.report_panics();
        any.into_inner()
    }

    /// Counts episodes that ended and lists environments that broke, in the order of their
    /// places.
    pub(super) fn count(&mut self, out: &StepOut<'_>) {
        let (n, agents) = (self.spec.num_envs, self.spec.agents_per_env());
        let (live, work) = (&mut self.live, &mut self.work);
        let (episodes, columns, stats) = (&live.episodes, &work.columns, &mut live.stats);
        work.broken.clear();
        for env in (0..n).filter(|&e| columns.mask[e] != 0) {
            let (bits, row) = (columns.bits[env], env * agents);
            if bits != 0 {
                work.broken.push(env as u32);
                for (bit, count) in stats.faults.iter_mut().enumerate() {
                    *count += u64::from(bits >> bit & 1);
                }
                continue;
            }
            let truncated = out.truncated[row] != 0.0;
            stats.final_overflow += u64::from(truncated && out.final_slot[row] < 0);
            if episodes.counted[env] == 0 {
                continue;
            }
            stats.episodes += 1;
            let mut sum = 0.0;
            for (m, ret) in episodes.ret.iter().skip(env).step_by(n).enumerate() {
                sum += f64::from(*ret);
                if let Some(own) = stats.agent_return_sums.get_mut(m) {
                    *own += f64::from(*ret);
                }
            }
            let ret = sum / agents as f64;
            stats.return_sum += ret;
            stats.length_sum += f64::from(episodes.length[env]);
            for (k, sum) in stats.reward_sums.iter_mut().enumerate() {
                *sum += f64::from(episodes.sums[k * n + env]);
            }
            let cause = if truncated {
                columns.cut[env]
            } else {
                columns.ended[env]
            };
            stats.terminations[cause as usize] += 1;
            if stats.finished.len() < n {
                stats.finished.push(Finished {
                    env: env as u32,
                    step: (live.clock - live.began).saturating_sub(1) as u32,
                    ret: ret as f32,
                    length: episodes.length[env],
                });
            }
        }
    }

    /// New episodes for the environments in the mask, and their first observations.
    /// `only_new`: the others in their blocks remember this step already.
    pub(super) fn restart(&mut self, spread: bool, only_new: bool, obs: &mut Groups<&mut [f32]>) {
        let mut args = self.args();
        self.aim(&mut args, obs);
        args.spread = u32::from(spread);
        args.only_new = u32::from(only_new);
        for (new, mask) in self.work.begins.iter_mut().zip(&self.work.columns.mask) {
            *new = u8::from(*mask != 0);
        }
        let begins = std::mem::take(&mut self.work.begins);
        let wanted = |_, first, len| begins[first..first + len].contains(&1);
        self.blocks(&args, wanted, |block| {
            // SAFETY: the addresses are those of `args`.
            unsafe { Block::start(block.args, block.first, block.len) }
        });
        let columns = &self.work.columns;
        self.physics
            .reset(&begins, &columns.new_qpos, &columns.new_qvel);
        self.blocks(&args, wanted, |block| {
            // SAFETY: the addresses are those of `args` and of rows of these sizes.
            unsafe { block.begin() }
        });
        self.work.begins = begins;
        self.report_panics();
    }

    /// One environment's observations into `work.row`, as they come.
    pub(super) fn look(&mut self, env: usize) {
        let mut args = self.args();
        let at = |row: &mut [f32]| {
            let skipped = (4 * row.len() * env) as Address;
            address(row).wrapping_sub(skipped)
        };
        args.obs = at(&mut self.work.row.policy);
        args.critic_obs = at(&mut self.work.row.critic);
        let number = env / BLOCK;
        self.blocks(
            &args,
            |block, _, _| block == number,
            |block| {
                (block.first, block.len) = (env, 1);
                block.inputs = block.inputs.narrowed(env);
                // SAFETY: the addresses are those of `args`; the rows are this
                // environment's.
                unsafe { block.observe() };
            },
        );
        // It is broken already: nothing of this is the next phase's.
        self.report_panics();
    }

    /// What expressions read of one environment.
    pub(super) fn inputs(&self, env: usize) -> Inputs<'_> {
        let (step_dt, most) = (self.spec.step_dt as f32, self.spec.max_episode_steps);
        // SAFETY: the columns are borrowed with `self`.
        unsafe { Inputs::new(self.columns(), &self.task.params, step_dt, most, env, 1) }
    }

    /// Says which environments a panic has broken.
    fn report_panics(&mut self) {
        let n = self.spec.num_envs;
        self.work.panicked.take(|block| {
            tracing::error!(
                "environments {}..{} are reset: a panic in their step was caught",
                block * BLOCK,
                ((block + 1) * BLOCK).min(n)
            );
        });
    }
}
