//! The phases of one control step, of which the kernels' text has one form for hosts and
//! devices: `sim/kernels/env/phases.cuh`. Here they go over blocks of environments, spread
//! over the pool; a block's numbers depend on nothing outside it.
//!
//! Where the engine steps its worlds in blocks, each block goes through the whole step while
//! its state is in the cache, and threads meet once. Else the engine steps all worlds between
//! the phases.

use super::lanes::{self, Block, Outcome};
use super::{BatchEnv, Finished, Groups, StepOut};
use bytemuck::Zeroable;
use ostler_engine::device::Address;
use ostler_engine::kernels::EnvArgs;
use ostler_engine::physics::ground;
use ostler_lang::expr::{BLOCK, Column, Columns, Inputs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn address<T>(rows: &mut [T]) -> Address {
    rows.as_mut_ptr() as Address
}

/// Which blocks a loop goes over.
#[derive(Debug, Clone, Copy)]
enum Which {
    All,
    /// Those where new episodes are still to begin.
    Begins,
    One(usize),
}

impl BatchEnv {
    /// Arguments of all phases.
    fn args(&mut self) -> EnvArgs {
        let mut args = EnvArgs {
            n: self.spec.num_envs as i32,
            first_env: self.first_env,
            seed: self.seed,
            clock: self.live.clock,
            noisy: u32::from(self.noise),
            events: u32::from(self.events),
            episode: self.live.episodes.addresses_mut(),
            buffers: self.work.columns.addresses_mut(),
            tables: self.tables.addresses(),
            size: self.sizes.words(),
            stats: self.live.stats.addresses(),
            since: self.live.clock.saturating_sub(self.live.began + 1) as u32,
            ..EnvArgs::zeroed()
        };
        match self.physics.step_args() {
            Some(physics) => args.physics = physics,
            None => match self.physics.columns_mut() {
                Some(state) => args.physics.world = state.addresses_mut(),
                None => args.physics.world = self.physics.state().addresses(),
            },
        }
        args.physics.ground = ground(self.model.terrain.as_deref());
        args.physics.ctrl = args.buffers.ctrl;
        args.physics.delays = args.buffers.step_lag;
        args.physics.substeps = i32::try_from(self.decimation).unwrap_or(i32::MAX);
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

    /// Where all of a step's results go.
    fn aim_all(&self, args: &mut EnvArgs, out: &mut StepOut<'_>) {
        let lengths = [
            out.reward.len(),
            out.terminated.len(),
            out.truncated.len(),
            out.valid.len(),
            out.final_slot.len(),
        ];
        assert_eq!(lengths, [self.spec.rows(); 5], "results are [R]");
        self.aim(args, &mut out.obs);
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
    }

    /// Inputs of expressions.
    fn columns(&self) -> Columns<'_> {
        let (state, episodes) = (self.physics.state(), &self.live.episodes);
        Columns {
            stride: self.spec.num_envs,
            world: state.floats().map(|x| Column::of(x)),
            ctrl: Column::of(&self.work.columns.ctrl),
            action: Column::of(&episodes.action),
            last_action: Column::of(&episodes.last_action),
            history: Column::of(&episodes.history),
            shown: Column::of(&episodes.shown),
            command: Column::of(&episodes.command),
            random: Column::of(&self.work.columns.start_random),
            native: Column::of(&episodes.native),
            scan: Column::of(&self.work.columns.scan),
            stand: Column::of(&episodes.stand),
            motion: Column::of(&self.work.columns.motion_now),
            ground: ground(self.model.terrain.as_deref()),
            step: Column::of(&episodes.age),
            params: &self.task.params,
            step_dt: self.spec.step_dt as f32,
            max_steps: self.spec.max_episode_steps,
        }
    }

    /// Calls `f` with blocks of environments, on all threads. A block that panics is marked
    /// and its environments break; the others are not affected.
    fn blocks(&self, args: &EnvArgs, which: Which, f: impl Fn(&mut Block<'_>) + Sync) {
        let (columns, n) = (self.columns(), self.spec.num_envs);
        let (task, work) = (&self.task, &self.work);
        let faults = (!self.faults.is_empty()).then_some(&self.faults);
        let natives = self.natives.as_ref();
        let one = |scratch: &mut _, number: usize| {
            let wanted = match which {
                Which::All => true,
                Which::Begins => work.begins.is_marked(number),
                Which::One(own) => own == number,
            };
            if !wanted {
                return;
            }
            let first = number * BLOCK;
            let len = BLOCK.min(n - first);
            let mut block = Block {
                args,
                task,
                // SAFETY: the columns live as long as this call, and threads write their
                // own blocks' entries only.
                inputs: unsafe { Inputs::new(columns, first, len) },
                scratch,
                faults,
                natives,
                first,
                len,
                failed: work.panicked.is_marked(number),
            };
            let done = catch_unwind(AssertUnwindSafe(|| f(&mut block)));
            if block.failed || done.is_err() {
                work.panicked.mark(number);
            }
        };
        let blocks = n.div_ceil(BLOCK);
        // Several parts per thread, so that a slow one does not hold up the rest.
        let size = blocks.div_ceil(self.pool.threads() * 8).max(1);
        self.pool.run(blocks.div_ceil(size), &|part| {
            work.scratch.with(|scratch| {
                for number in part * size..blocks.min((part + 1) * size) {
                    one(scratch, number);
                }
            });
        });
    }

    /// One control step: `actions` is `[R][A]`.
    pub fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) {
        self.live.clock += 1;
        let width = self.task.actions.raw_width();
        let rows = self.spec.num_envs * width;
        assert_eq!(actions.len(), rows, "actions are [R][A]");
        let mut faulty = None;
        if !self.faults.is_empty() {
            self.draw_faults();
            faulty = self.faults.take_actions(actions, width);
        }
        let actions = faulty.as_deref().unwrap_or(actions);
        let mut args = self.args();
        self.aim_all(&mut args, out);
        args.actions = actions.as_ptr() as Address;
        let ended = if self.physics.stepper().is_some() && !self.faults.pokes() {
            self.step_blocks(&args)
        } else {
            self.step_phases(&args)
        };
        self.report_panics();
        if ended {
            self.count(args);
            self.examine(actions);
            self.restart(false, false, &mut out.obs);
            self.count_starts();
        }
        if let Some(faulty) = faulty {
            self.faults.give_back(faulty);
        }
    }

    /// The whole step, block by block. Where an environment broke, its block is left as it
    /// is, to be examined before new episodes begin. Returns whether episodes ended.
    fn step_blocks(&mut self, args: &EnvArgs) -> bool {
        let (any, ended) = (AtomicBool::new(false), self.work.ended.at());
        let Some(stepper) = self.physics.stepper() else {
            return false;
        };
        let begins = &self.work.begins;
        self.blocks(args, Which::All, |block| {
            // SAFETY: the addresses are those of `args` and of rows of these sizes; `args`
            // has what the stepper takes.
            unsafe {
                block.act();
                block.step(stepper);
                let outcome = block.finish();
                if outcome == Outcome::GoesOn {
                    return;
                }
                any.store(true, Relaxed);
                ended.keep(args, block.first, block.len);
                match outcome {
                    Outcome::Broke => begins.mark(block.first / BLOCK),
                    _ => block.restart(),
                }
            }
        });
        any.into_inner()
    }

    /// The step, phase by phase, of engines that step all worlds at once. New episodes are
    /// still to begin then. Returns whether episodes ended.
    fn step_phases(&mut self, args: &EnvArgs) -> bool {
        let ended = self.work.ended.at();
        // SAFETY: the addresses are those of `args` and of rows of these sizes.
        self.blocks(args, Which::All, |block| unsafe { block.act() });
        self.poke();
        if self.sizes.nredrawn > 0 {
            self.physics.delay(&self.work.columns.step_lag);
        }
        self.physics.step(&self.work.columns.ctrl, self.decimation);
        let begins = &self.work.begins;
        self.blocks(args, Which::All, |block| {
            // SAFETY: as above.
            unsafe {
                if block.finish() != Outcome::GoesOn {
                    ended.keep(args, block.first, block.len);
                    begins.mark(block.first / BLOCK);
                }
            }
        });
        begins.any()
    }

    /// Counts episodes that ended and lists environments that broke, in the order of their
    /// places.
    fn count(&mut self, mut args: EnvArgs) {
        self.work.ended.enter(&mut args);
        // SAFETY: the addresses are those of a step's `args` and of `ended`.
        unsafe { lanes::tally(&args, false) };
        let (n, work, stats) = (self.spec.num_envs, &mut self.work, &mut self.live.stats);
        let (columns, ended) = (&work.columns, &work.ended);
        work.broken.clear();
        for env in (0..n).filter(|&e| columns.mask[e] != 0) {
            if columns.bits[env] != 0 {
                work.broken.push(env as u32);
            } else if ended.counted(env) {
                if stats.has_metrics() {
                    let metrics = 0..stats.metric_sums.len();
                    stats.finished_metrics.extend(metrics.map(|k| ended.metric(k, env)));
                }
                let (ret, length) = (ended.mean_ret(env), ended.length(env));
                stats.finished.push(Finished { env: env as u32, step: args.since, ret, length });
            }
        }
        stats.forget_old();
    }

    /// New episodes for all environments in the mask, and their first observations.
    /// `only_new`: the others in their blocks remember this step already.
    pub(super) fn begin(&mut self, spread: bool, only_new: bool, obs: &mut Groups<&mut [f32]>) {
        for (block, mask) in self.work.columns.mask.chunks(BLOCK).enumerate() {
            if mask.contains(&1) {
                self.work.begins.mark(block);
            }
        }
        self.restart(spread, only_new, obs);
        self.count_starts();
    }

    /// New episodes for all environments, which begin in the states `qpos [nq][N]`, `qvel [nv][N]`
    /// and at the places `stand [4][N]` of the terrain, not in those that are drawn.
    pub(super) fn begin_at(
        &mut self,
        qpos: &[f32],
        qvel: &[f32],
        stand: &[f32],
        obs: &mut Groups<&mut [f32]>,
    ) {
        self.live.clock += 1;
        self.work.columns.mask.fill(1);
        self.begin_rollout();
        let mut args = self.args();
        self.aim(&mut args, obs);
        self.blocks(&args, Which::All, |block| {
            // SAFETY: the addresses are those of `args` and of rows of these sizes.
            unsafe { block.start() }
        });
        self.live.episodes.stand.copy_from_slice(stand);
        self.physics.activate(&self.work.columns.new_act);
        self.physics.reset(&self.work.columns.mask, qpos, qvel);
        self.blocks(&args, Which::All, |block| {
            // SAFETY: as above.
            unsafe { block.begin() }
        });
        self.report_panics();
    }

    /// Counts the draws of the starts of all environments in the mask.
    fn count_starts(&mut self) {
        if self.task.start.has_conditions() {
            let args = self.args();
            // SAFETY: the addresses are those of `args`.
            unsafe { lanes::tally(&args, true) };
        }
    }

    /// The same in the blocks where new episodes are still to begin.
    fn restart(&mut self, spread: bool, only_new: bool, obs: &mut Groups<&mut [f32]>) {
        if !self.work.begins.any() {
            return;
        }
        let mut args = self.args();
        self.aim(&mut args, obs);
        args.spread = u32::from(spread);
        args.only_new = u32::from(only_new);
        if self.physics.stepper().is_some() {
            self.blocks(&args, Which::Begins, |block| {
                // SAFETY: the addresses are those of `args` and of rows of these sizes.
                unsafe { block.restart() }
            });
        } else {
            self.blocks(&args, Which::Begins, |block| {
                // SAFETY: as above.
                unsafe { block.start() }
            });
            let columns = &self.work.columns;
            self.physics.activate(&columns.new_act);
            self.physics.reset(&columns.mask, &columns.new_qpos, &columns.new_qvel);
            self.blocks(&args, Which::Begins, |block| {
                // SAFETY: as above.
                unsafe { block.begin() }
            });
        }
        self.work.begins.take(|_| ());
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
        self.blocks(&args, Which::One(env / BLOCK), |block| {
            (block.first, block.len) = (env, 1);
            block.inputs = block.inputs.narrowed(env);
            // SAFETY: the addresses are those of `args`; the rows are this environment's.
            unsafe { block.observe() };
        });
        // It is broken already: nothing of this is the next phase's.
        self.report_panics();
    }

    /// Inputs of expressions from one environment.
    pub(super) fn inputs(&self, env: usize) -> Inputs<'_> {
        // SAFETY: the columns are borrowed with `self`.
        unsafe { Inputs::new(self.columns(), env, 1) }
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
