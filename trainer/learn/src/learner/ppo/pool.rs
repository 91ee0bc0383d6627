//! One message for a minibatch that several processes learn from.

use super::loss::STATS;
use ostler_collector::peers::Group;
use ostler_collector::transfer::host_number;
use tch::{TchError, Tensor};

/// This process's samples among those of all.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// Those that learn together.
    pub group: Group,
    /// Gradient, means of losses, and samples that count: float32 `[P + STATS + 1]`.
    pub message: Option<Tensor>,
}

impl Share {
    /// Gradient and means, which were divided by `divisor` samples, become those of all
    /// processes' samples, of which `counted` are this one's and count.
    pub(super) fn pool(
        &self,
        (grad, losses): (&Tensor, &Tensor),
        (counted, divisor): (f32, f32),
    ) -> Result<(), TchError> {
        let Some(message) = &self.message else {
            return Ok(());
        };
        let (numbers, stats) = (grad.numel() as i64, STATS as i64);
        let place = |at, len| message.f_narrow(0, at, len);
        place(0, numbers)?.f_copy_(grad)?;
        place(numbers, stats)?.f_copy_(losses)?;
        let _ = message.f_get(numbers + stats)?.f_fill_(f64::from(counted))?;
        let message = self.group.total(message.shallow_clone())?;
        let all = host_number(&message.f_get(numbers + stats)?)?;
        let factor = f64::from(divisor) / all;
        if factor != 1.0 {
            // Without a valid sample anywhere the means are no numbers, as they would be alone.
            let _ = message.shallow_clone().f_mul_scalar_(factor)?;
        }
        grad.shallow_clone().f_copy_(&message.f_narrow(0, 0, numbers)?)?;
        losses.shallow_clone().f_copy_(&message.f_narrow(0, numbers, stats)?)
    }
}
