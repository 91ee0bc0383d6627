//! One network's part in a gradient step: is it good, how large is the step, the step;
//! and the sums that are read once per update.

use crate::learner::error::LearnError;
use crate::learner::nn::device::{Entry, address, not_loaded};
use crate::learner::nn::host::Vectors;
use crate::learner::nn::host::kernels::TallyShape;
use crate::learner::nn::shared::FinishArgs;
use crate::learner::nn::{Adam, Params};
use ostler_collector::memory::HostRows;
use ostler_collector::peers::Group;
use tch::{Device, Kind, TchError, Tensor};

/// Places in a row. The first three have to be finite for a step; the reason why one was
/// not taken is the first that is not.
const VALID: usize = 0;
const LOSS: usize = 1;
const NORM: usize = 2;
const DECISIVE: usize = 3;
const CLIPPED: usize = 3;
const COUNT: usize = 4;
/// Numbers of the network's own.
const OWN: usize = 5;

/// Losses, the gradient's judge and the sums of one network.
#[derive(Debug)]
pub(crate) struct Section {
    /// One gradient step, float32 `[OWN + own]`.
    row: Tensor,
    /// Its entries, without dimensions.
    entries: Vec<Tensor>,
    /// Sums over steps that were taken, float64.
    sum: Tensor,
    /// Steps in which this and everything before it was finite, float64 `[DECISIVE]`.
    passed: Tensor,
    host: Option<Host>,
    /// Longest gradient.
    limit: f64,
    /// Steps that were to be taken.
    tried: u64,
    /// Those that learn together.
    group: Group,
}

#[derive(Debug)]
struct Host {
    row: HostRows<f32>,
    sum: HostRows<f64>,
    passed: HostRows<f64>,
}

/// Statistics of a section after an update.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    /// Steps that were to be taken.
    pub tried: u64,
    /// Steps taken.
    pub taken: u64,
    /// Not taken: no sample was valid.
    pub no_valid: u64,
    /// Not taken: the loss was not finite.
    pub bad_loss: u64,
    /// Not taken: the gradient was not finite.
    pub bad_gradient: u64,
    /// Mean loss; NaN without a step.
    pub loss: f64,
    /// Mean norm of the gradient before clipping.
    pub norm: f64,
    /// Share of gradients that were clipped.
    pub clipped: f64,
    /// Means of the network's own numbers.
    pub own: [f64; 3],
}

impl Section {
    /// With `own` further numbers per step, at most 3. `limit` 0: gradients are as long as
    /// they are.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(own: usize, limit: f64, device: Device) -> Result<Self, LearnError> {
        let width = (OWN + own) as i64;
        let row = Tensor::f_ones([width], (Kind::Float, device))?;
        let double = (Kind::Double, device);
        let sum = Tensor::f_zeros([width], double)?;
        let passed = Tensor::f_zeros([DECISIVE as i64], double)?;
        let host = match device {
            // SAFETY: ones and zeros, each in memory of its own. `step` borrows slices, and calls
            // nothing of libtorch's on these tensors meanwhile.
            Device::Cpu => unsafe {
                Some(Host {
                    row: HostRows::new(&row)?,
                    sum: HostRows::new(&sum)?,
                    passed: HostRows::new(&passed)?,
                })
            },
            _ => None,
        };
        Ok(Self {
            entries: (0..width).map(|i| row.f_get(i)).collect::<Result<_, _>>()?,
            row,
            sum,
            passed,
            host,
            limit: if limit > 0.0 { limit } else { f64::MAX },
            tried: 0,
            group: Group::default(),
        })
    }

    /// From now on a step is along the mean of all processes' gradients.
    pub(crate) fn join(&mut self, group: &Group) {
        self.group = group.clone();
    }

    /// Gradient and row become the means of all processes', which have as many samples each.
    fn pool(&self, grad: &Tensor) -> Result<(), TchError> {
        if self.group.is_alone() {
            return Ok(());
        }
        let share = 1.0 / self.group.size() as f64;
        for mut sum in self.group.totals([grad, &self.row].map(Tensor::shallow_clone))? {
            let _ = sum.f_mul_scalar_(share)?;
        }
        Ok(())
    }

    /// Numbers of the network's own.
    pub(crate) fn owns(&self) -> usize {
        self.entries.len() - OWN
    }

    /// Before an update.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn begin(&mut self) -> Result<(), TchError> {
        self.tried = 0;
        let _ = self.sum.f_zero_()?;
        let _ = self.passed.f_zero_()?;
        Ok(())
    }

    /// The step's loss, and the sum of the samples' weights, which is not finite where no
    /// sample is valid.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn losses(&mut self, weights: &Tensor, loss: &Tensor) -> Result<(), TchError> {
        self.entries[VALID].f_copy_(weights)?;
        self.entries[LOSS].f_copy_(loss)
    }

    /// A number of the network's own.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn own(&mut self, which: usize, value: &Tensor) -> Result<(), TchError> {
        self.entries[OWN + which].f_copy_(value)
    }

    /// The loss as it is judged and logged.
    pub(crate) fn loss(&self) -> &Tensor {
        &self.entries[LOSS]
    }

    /// Steps along the gradient if losses and gradient are finite. On a device nothing is
    /// read back.
    ///
    /// # Errors
    /// libtorch or the device refuses.
    pub(crate) fn step(&mut self, adam: &mut Adam, params: &mut Params) -> Result<(), LearnError> {
        self.tried += 1;
        self.pool(&params.grad)?;
        if let Some(device) = adam.on_device(self.limit) {
            self.entries[NORM].f_copy_(&params.grad.f_norm()?)?;
            let (row, sum, passed) = (&self.row, &self.sum, &self.passed);
            let args = FinishArgs {
                tally: self.shape().at(address(row), address(sum), address(passed)),
                adam: device.config,
                lr: device.lr,
                powers: device.powers,
                step: device.steps,
                norm: NORM as i64,
            };
            // SAFETY: the entry's struct; one thread reads and writes these tensors, which have
            // the sizes that it counts on, and the one part of the parameters.
            unsafe { device.kernels.launch(Entry::Finish, 1, &args)? };
            return adam.step(params);
        }
        let shape = self.shape();
        let host = self.host.as_mut().ok_or_else(not_loaded)?;
        let mut adam = adam.on_host(params, self.limit)?;
        let norm = adam.gradient_norm(0)?;
        let row = host.row.all_mut()?;
        row[NORM] = norm as f32;
        row[CLIPPED] = f32::from(u8::from(norm > self.limit));
        let (sum, passed) = (host.sum.all_mut()?, host.passed.all_mut()?);
        match Vectors::widest().tally(&shape, row, sum, passed) {
            true => adam.step(0, norm),
            false => Ok(()),
        }
    }

    fn shape(&self) -> TallyShape {
        TallyShape { width: self.entries.len(), first: VALID, decisive: DECISIVE, clipped: CLIPPED }
    }

    /// Numbers to be read back, float64; the reverse is [`tally`](Self::tally).
    pub(crate) fn sums(&self) -> [&Tensor; 2] {
        [&self.sum, &self.passed]
    }

    /// The mean of a reward that the network gives, over all processes, and behind it these numbers, to be read back;
    /// the reverse is [`said`](Self::said).
    pub(crate) fn sums_behind(&self, reward: &Tensor) -> Result<Tensor, TchError> {
        let mean = reward.f_mean(Kind::Double)?.f_view([1])?;
        let share = reward.numel() as f64 / self.group.add([reward.numel() as f64])?[0];
        let mean = self.group.total(mean.f_mul_scalar(share)?)?;
        Tensor::f_cat(&[&mean, &self.sum, &self.passed], 0)
    }

    /// The mean reward and the steps from numbers of [`sums_behind`](Self::sums_behind).
    pub(crate) fn said(&self, numbers: &[f64]) -> (f64, Tally) {
        let (mean, mut rest) = numbers.split_at(1.min(numbers.len()));
        (mean.first().copied().unwrap_or(f64::NAN), self.tally(&mut rest))
    }

    /// Takes the numbers of [`sums`](Self::sums) from the front of `rest`.
    pub(crate) fn tally(&self, rest: &mut &[f64]) -> Tally {
        let width = self.entries.len();
        let (x, others) = rest.split_at(width.min(rest.len()));
        let (passed, others) = others.split_at(DECISIVE.min(others.len()));
        *rest = others;
        let at = |x: &[f64], i: usize| x.get(i).copied().unwrap_or(f64::NAN);
        let taken = at(x, COUNT);
        let mean = |i: usize| at(x, i) / taken;
        let passed = |i: usize| at(passed, i) as u64;
        Tally {
            tried: self.tried,
            taken: taken as u64,
            no_valid: self.tried.saturating_sub(passed(VALID)),
            bad_loss: passed(VALID).saturating_sub(passed(LOSS)),
            bad_gradient: passed(LOSS).saturating_sub(passed(NORM)),
            loss: mean(LOSS),
            norm: mean(NORM),
            clipped: mean(CLIPPED),
            own: [mean(OWN), mean(OWN + 1), mean(OWN + 2)],
        }
    }
}
