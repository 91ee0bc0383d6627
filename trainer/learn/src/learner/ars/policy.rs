//! A linear policy, which every environment has in a version of its own.

use super::ArsConfig;
use crate::learner::network::{Head, Layer, Network};
use crate::learner::nn::{Layout, Params};
use crate::learner::normalizer::Normalizer;
use crate::learner::policy::{Activation, own_memory};
use crate::learner::published::{acting_spec, publish, take};
use crate::learner::tensors::zeros;
use crate::learner::{ActorConfig, State, TrainedPolicy, error::LearnError};
use ostler_collector::memory::with_floats;
use ostler_collector::peers::{Group, Place};
use ostler_collector::policy::Noise;
use ostler_collector::transfer::{brought, host_numbers, read_into};
use ostler_collector::{Act, Hidden, Policy, Replica, Replicate, Rollout};
use ostler_sim::device::Counts;
use ostler_sim::env::{ActionSpace, EnvSpec};
use ostler_sim::rng::{Purpose, fill_normal};
use tch::{Device, Kind, TchError, Tensor};

/// Actions `M x` of normalised observations `x`; of tasks with choices the largest entry.
#[derive(Debug)]
pub struct LinearPolicy {
    config: ArsConfig,
    actor: ActorConfig,
    spec: EnvSpec,
    /// The matrix `M [A,O]`.
    params: Params,
    norm: Option<Normalizer>,
    device: Device,
    seed: u64,
    /// Updates that made it; keys the directions.
    updates: u64,
    /// Rows of a world: its agents.
    agents: usize,
    /// Place of its first world in the whole batch.
    first_world: usize,
    /// Worlds of all processes.
    all_worlds: usize,
    /// Directions `[D,O,A]`: the pairs of worlds from `first_world` on, one more where it is odd.
    directions: Tensor,
    /// `M'` moved along each row's direction `[N,O,A]`.
    perturbed: Tensor,
    /// Normalised observations `[N,O]`, for the number of rows that acted last.
    input: Tensor,
    /// Results of the matrices `[N,A]`.
    output: Tensor,
}

impl LinearPolicy {
    /// A matrix of zeros; `seed` keys the directions.
    ///
    /// # Errors
    /// A key that cannot be used, or memory does not suffice.
    pub fn new(
        config: &ArsConfig,
        actor: &ActorConfig,
        spec: &EnvSpec,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        Self::of_rows(config, actor, spec, seed, device, 0)
    }

    /// The same for a process among others; `place`: its rows among all.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn among(
        config: &ArsConfig,
        actor: &ActorConfig,
        spec: &EnvSpec,
        (seed, device): (u64, Device),
        group: &Group,
        place: Place,
    ) -> Result<Self, LearnError> {
        let first = place.first as usize;
        let mut policy = Self::of_rows(config, actor, spec, seed, device, first)?;
        policy.all_worlds = place.all as usize / policy.agents;
        if let Some(norm) = &mut policy.norm {
            norm.join(group);
        }
        Ok(policy)
    }

    fn of_rows(
        config: &ArsConfig,
        actor: &ActorConfig,
        spec: &EnvSpec,
        seed: u64,
        device: Device,
        first_row: usize,
    ) -> Result<Self, LearnError> {
        let _no_grad = tch::no_grad_guard();
        let outputs = match spec.action {
            ActionSpace::Continuous(n) | ActionSpace::Discrete(n) => n as i64,
        };
        let inputs = spec.obs.policy as i64;
        let mut layout = Layout::default();
        layout.add("actor.head.weight", &[outputs, inputs]);
        let rows = spec.rows() as i64;
        // Agents of a world act by one matrix: what it brings may be common to them.
        let agents = spec.agents_per_env().max(1);
        let worlds = rows / agents as i64;
        let first_world = first_row / agents;
        let pairs = (first_world % 2) as i64 + worlds;
        let float = |what: &str, size: &[i64]| zeros(what, size, Kind::Float, device);
        let norm = match actor.obs_normalization {
            true => Some(Normalizer::new("actor.obs_normalizer", inputs, device)?),
            false => None,
        };
        let mut policy = Self {
            params: Params::new(layout, device)?,
            norm,
            directions: float("directions", &[(pairs + 1) / 2, inputs, outputs])?,
            perturbed: float("matrices", &[rows, inputs, outputs])?,
            input: float("observations", &[rows, inputs])?,
            output: float("actions", &[rows, outputs])?,
            config: config.clone(),
            actor: actor.clone(),
            spec: spec.clone(),
            device,
            seed,
            updates: 0,
            agents,
            first_world,
            all_worlds: worlds as usize,
        };
        policy.perturb(0)?;
        Ok(policy)
    }

    /// Inputs `O` and outputs `A` of the matrix.
    pub fn size(&self) -> (i64, i64) {
        (self.directions.size()[1], self.directions.size()[2])
    }

    /// Directions that two worlds each try, `D`, those of other processes among them.
    pub fn directions(&self) -> i64 {
        self.all_worlds as i64 / 2
    }

    /// Rows of a world: its agents.
    pub fn agents(&self) -> i64 {
        self.agents as i64
    }

    /// Its own worlds.
    fn worlds(&self) -> i64 {
        self.perturbed.size()[0] / self.agents()
    }

    /// Directions `[D,O,A]`.
    #[cfg(test)]
    pub fn directions_of_rows(&self) -> Tensor {
        self.directions.shallow_clone()
    }

    /// Where it decides.
    pub fn device(&self) -> Device {
        self.device
    }

    /// All entries of the matrix in a row.
    pub fn matrix(&self) -> &Tensor {
        &self.params.theta
    }

    /// Whether observations are normalised.
    pub fn normalizes(&self) -> bool {
        self.norm.is_some()
    }

    /// Numbers that follow from the statistics are worked out anew.
    pub fn derive(&mut self) -> Result<(), TchError> {
        match &mut self.norm {
            Some(norm) => norm.derive(),
            None => Ok(()),
        }
    }

    /// Observations of a rollout enter the statistics.
    pub fn merge(&mut self, rollout: &Rollout, crossed: &Counts) -> Result<(), LearnError> {
        let Some(norm) = &mut self.norm else {
            return Ok(());
        };
        let total = rollout.steps * rollout.envs;
        let valid = brought(&rollout.valid, self.device, crossed)?.f_view([total, 1])?;
        let seen = rollout.obs.policy.f_narrow(0, 0, rollout.steps)?;
        let seen = brought(&seen.f_view([total, -1])?, self.device, crossed)?;
        Ok(norm.merge(&seen, &valid)?)
    }

    /// The sum of the directions whose first world it has, with their weights out of all `[D]`, as
    /// a step of `M' [O,A]`.
    pub fn along(&self, weight: &Tensor) -> Result<Tensor, TchError> {
        let (inputs, outputs) = self.size();
        let first = self.first_world as i64;
        let ends = [first, first + self.worlds()];
        let [from, to] = ends.map(|world| ((world + 1) / 2).min(self.directions()));
        let behind = from - first / 2;
        let directions = self.directions.f_narrow(0, behind, to - from)?;
        let flat = directions.f_view([-1, inputs * outputs])?;
        let weight = weight.f_narrow(0, from, to - from)?;
        let weight = weight.f_to_kind(Kind::Float)?.f_view([1, -1])?;
        weight.f_mm(&flat)?.f_view([inputs, outputs])
    }

    /// Moves the matrix by a step of `M' [O,A]` where `ok` (no dimensions) is true.
    pub fn step(&self, step: &Tensor, ok: &Tensor) -> Result<(), TchError> {
        let mut matrix = self.params.view(0)?;
        let moved = matrix.f_add(&step.f_transpose(0, 1)?)?;
        matrix.f_copy_(&moved.f_where_self(ok, &matrix)?)
    }

    /// Draws the directions after so many updates, and moves every row's matrix along its
    /// own.
    pub fn perturb(&mut self, updates: u64) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.updates = updates;
        let (inputs, outputs) = self.size();
        let first = (self.first_world / 2) as u32;
        let count = self.directions.size()[0];
        let width = (inputs * outputs) as usize;
        let mut numbers = vec![0.0; count as usize * width];
        fill_normal(
            self.seed,
            first..first + count as u32,
            Purpose::ActionNoise,
            updates,
            width,
            &mut numbers,
        );
        let drawn = Tensor::f_from_slice(&numbers)?.f_view([count, inputs, outputs])?;
        self.directions.f_copy_(&drawn)?;
        // Worlds one after the other: with the direction, against it.
        let moved = self.directions.f_mul_scalar(self.config.noise)?;
        let both = Tensor::f_stack(&[&moved, &moved.f_neg()?], 1)?;
        let both = both.f_view([2 * count, inputs, outputs])?;
        let own = both.f_narrow(0, (self.first_world % 2) as i64, self.worlds())?;
        let each = own.f_unsqueeze(1)?.f_expand([-1, self.agents(), -1, -1], false)?;
        let own = each.f_reshape([-1, inputs, outputs])?;
        let matrix = self.params.view(0)?.f_transpose(0, 1)?;
        Ok(self.perturbed.f_copy_(&own.f_add(&matrix)?)?)
    }

    /// Normalises observations `[N,O]` into `input`; makes room for their number.
    fn look(&mut self, obs: &Tensor) -> Result<(), TchError> {
        let (rows, width) = obs.size2()?;
        if rows != self.input.size()[0] {
            let outputs = self.size().1;
            let float = |what: &str, size: &[i64]| {
                zeros(what, size, Kind::Float, self.device).map_err(own_memory)
            };
            self.input = float("observations", &[rows, width])?;
            self.output = float("actions", &[rows, outputs])?;
        }
        match &self.norm {
            Some(norm) if obs.device() == self.device => norm.apply(obs, &self.input),
            Some(norm) => norm.apply(&obs.f_to_device(self.device)?, &self.input),
            None => self.input.f_copy_(obs),
        }
    }

    /// Actions of `output`, into `action`.
    fn decide(&self, action: &Tensor) -> Result<(), TchError> {
        let mut action = action.shallow_clone();
        match self.spec.action {
            ActionSpace::Continuous(_) => action.f_copy_(&self.output),
            ActionSpace::Discrete(_) => action.f_copy_(&self.output.f_argmax(1, true)?),
        }
    }

    /// Each row of `input` through its own matrix, into `output`.
    fn forward_each(&self) -> Result<(), TchError> {
        let (inputs, outputs) = self.size();
        let (inputs, outputs) = (inputs as usize, outputs as usize);
        let pass = |[x, m]: [&[f32]; 2], [y]: [&mut [f32]; 1]| {
            let rows = x.chunks_exact(inputs.max(1)).zip(y.chunks_exact_mut(outputs.max(1)));
            for ((x, y), m) in rows.zip(m.chunks_exact((inputs * outputs).max(1))) {
                y.fill(0.0);
                for (x, m) in x.iter().zip(m.chunks_exact(outputs.max(1))) {
                    y.iter_mut().zip(m).for_each(|(y, m)| *y += x * m);
                }
            }
        };
        let (read, written) = ([&self.input, &self.perturbed], [&self.output]);
        // SAFETY: all three were written before; the pass is over plain numbers.
        if unsafe { with_floats(read, written, pass) }.is_some() {
            return Ok(());
        }
        let each = self.output.f_unsqueeze(1)?;
        let _ = self.input.f_unsqueeze(1)?.f_bmm_out(&each, &self.perturbed)?;
        Ok(())
    }
}

impl Policy for LinearPolicy {
    fn dist_width(&self) -> i64 {
        self.size().1
    }

    /// None is used: chance is in the directions.
    fn noise(&self) -> (i64, Noise) {
        (1, Noise::Uniform)
    }

    fn act(&mut self, obs: &Tensor, _: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.look(obs)?;
        if self.input.size()[0] == self.perturbed.size()[0] {
            self.forward_each()?;
        } else {
            // Other environments than it learns from: an evaluation with noise.
            let _ = self.input.f_mm_out(&self.output, &self.params.view(0)?.f_transpose(0, 1)?)?;
        }
        self.decide(out.action)?;
        let _ = out.std.shallow_clone().f_fill_(self.config.noise)?;
        out.dist.shallow_clone().f_copy_(&self.output)
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        _: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.look(obs)?;
        let matrix = self.params.view(0)?.f_transpose(0, 1)?;
        let _ = self.input.f_mm_out(&self.output, &matrix)?;
        self.decide(action)
    }

    fn version(&self) -> i32 {
        i32::try_from(self.updates).unwrap_or(i32::MAX)
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        Some(self)
    }
}

impl TrainedPolicy for LinearPolicy {
    fn declare(&self, state: &mut State) -> Result<(), LearnError> {
        self.params.declare(state)?;
        if let Some(norm) = &self.norm {
            norm.declare(state, false);
        }
        Ok(())
    }

    fn renew(&mut self, _: &[(String, Tensor)]) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        Ok(self.derive()?)
    }

    fn num_parameters(&self) -> i64 {
        self.params.len()
    }

    fn network(&self, _policy: usize) -> Result<Option<Network>, LearnError> {
        let (inputs, outputs) = self.size();
        Ok(Some(Network {
            norm: Network::norm_of(self.norm.as_ref())?,
            gru: None,
            hidden: Vec::new(),
            activation: Activation::Relu,
            last: Layer {
                inputs: inputs as usize,
                outputs: outputs as usize,
                weight: host_numbers(self.matrix())?,
                bias: vec![0.0; outputs as usize],
            },
            head: match self.spec.action {
                ActionSpace::Continuous(_) => Head::Mean,
                ActionSpace::Discrete(_) => Head::Largest,
            },
        }))
    }
}

impl LinearPolicy {
    /// Tensors that acting depends on, in the order in which they are published.
    fn acting(&self) -> Vec<Tensor> {
        let mut all = vec![self.params.theta.shallow_clone()];
        if let Some(norm) = &self.norm {
            all.extend(norm.applied().map(Tensor::shallow_clone));
        }
        all
    }
}

impl Replicate for LinearPolicy {
    fn replica(&self, first: usize, envs: usize) -> Result<Box<dyn Replica>, TchError> {
        let spec = acting_spec(&self.spec, envs);
        let first_row = first * spec.agents_per_env();
        let (config, actor, seed) = (&self.config, &self.actor, self.seed);
        let copy = Self::of_rows(config, actor, &spec, seed, Device::Cpu, first_row);
        Ok(Box::new(copy.map_err(own_memory)?))
    }

    fn weights(&self, out: &mut Vec<f32>, crossed: &Counts) -> Result<(), TchError> {
        let mut all = self.acting();
        // A count, in two parts that a float holds exactly.
        let parts = [self.updates >> 24, self.updates & 0xff_ffff].map(|x| x as f32);
        all.push(Tensor::f_from_slice(&parts)?);
        publish(&all, out, crossed)
    }
}

impl Replica for LinearPolicy {
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError> {
        let count = Tensor::f_zeros([2], (Kind::Float, Device::Cpu))?;
        let mut all = self.acting();
        all.push(count.shallow_clone());
        take(all, weights)?;
        let mut parts = [0.0_f32; 2];
        read_into(&count, &mut parts)?;
        let updates = (parts[0] as u64) << 24 | parts[1] as u64;
        self.perturb(updates).map_err(own_memory)
    }
}
