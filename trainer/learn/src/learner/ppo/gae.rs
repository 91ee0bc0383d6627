//! Generalised advantage estimation (Schulman et al. 2016, equation 16), with
//! terminations, time-outs and broken transitions kept apart.

use tch::{Kind, TchError, Tensor};

/// Inputs of the estimate, each `[T,N]` unless noted.
#[derive(Debug)]
pub(crate) struct Trace<'a> {
    /// Rewards.
    pub reward: &'a Tensor,
    /// 1 where the task ended: the value beyond is 0.
    pub terminated: &'a Tensor,
    /// 1 where time ran out: the value beyond is that of the last observation.
    pub truncated: &'a Tensor,
    /// 0 where a transition must not be learnt from.
    pub valid: &'a Tensor,
    /// Values of all observations `[T+1,N]`.
    pub value: &'a Tensor,
    /// Values of the last observations of truncated episodes `[K,N]`.
    pub final_value: &'a Tensor,
    /// Row of `final_value`, -1 for none; int32.
    pub final_slot: &'a Tensor,
}

/// Writes advantages into `out [T,N]`.
///
/// `A[t] = d[t] + gamma lambda A[t+1]`, `d[t] = r[t] + gamma V' - V[t]`, where `V'` is
/// 0 after a termination, the value of the true last observation after a time-out
/// (that of the state before it, where that observation found no room), else
/// `V[t+1]`. The trace is cut where an episode ends. A broken transition has
/// advantage 0 and cuts the trace too: the step before it bootstraps `V[t+1]`.
pub(crate) fn advantages(
    trace: &Trace<'_>,
    gamma: f64,
    lambda: f64,
    out: &Tensor,
) -> Result<(), TchError> {
    let (delta, carry) = pieces(trace, gamma, lambda)?;
    accumulate(&delta, &carry, out)
}

/// V-trace (Espeholt et al., "IMPALA", 2018, equation 1, with the `lambda` of its remark
/// 2), for samples of another policy than the one that learns.
///
/// `weight [T,N]` is the probability of each action under the policy that learns over that under
/// the one that acted, clipped from above to 1: both the paper's rho and its c. Writes into
/// `correction [T,N]` the corrections of the values `V`: `w[t] = rho[t] d[t] + gamma lambda c[t]
/// w[t+1]`, and into `out [T,N]` advantages of the actions, `A[t] = d[t] + gamma lambda w[t+1]`,
/// which are yet to be weighed by rho. With all weights 1 both are those of [`advantages`].
pub(crate) fn vtrace(
    trace: &Trace<'_>,
    weight: &Tensor,
    gamma: f64,
    lambda: f64,
    correction: &Tensor,
    out: &Tensor,
) -> Result<(), TchError> {
    let (delta, carry) = pieces(trace, gamma, lambda)?;
    accumulate(&delta.f_mul(weight)?, &carry.f_mul(weight)?, correction)?;
    let (steps, _) = trace.reward.size2()?;
    out.shallow_clone().f_copy_(&delta)?;
    if steps > 1 {
        let after = correction.f_narrow(0, 1, steps - 1)?;
        let passed = carry.f_narrow(0, 0, steps - 1)?.f_mul(&after)?;
        let _ = out.f_narrow(0, 0, steps - 1)?.f_add_(&passed)?;
    }
    Ok(())
}

/// `x[t] = delta[t] + carry[t] x[t+1]`, from the back.
fn accumulate(delta: &Tensor, carry: &Tensor, out: &Tensor) -> Result<(), TchError> {
    let (steps, _) = delta.size2()?;
    out.f_get(steps - 1)?.f_copy_(&delta.f_get(steps - 1)?)?;
    for t in (0..steps - 1).rev() {
        let after = out.f_get(t + 1)?;
        let _ = delta.f_get(t)?.f_addcmul_out(&out.f_get(t)?, &carry.f_get(t)?, &after)?;
    }
    Ok(())
}

/// The `d[t]` of [`advantages`], and the share of later steps that is passed on.
fn pieces(trace: &Trace<'_>, gamma: f64, lambda: f64) -> Result<(Tensor, Tensor), TchError> {
    let (steps, _) = trace.reward.size2()?;
    let now = trace.value.f_narrow(0, 0, steps)?;
    let next = trace.value.f_narrow(0, 1, steps)?;
    let slot = trace.final_slot.f_to_kind(Kind::Int64)?;
    let last = trace.final_value.f_gather(0, &slot.f_clamp_min(0)?, false)?;
    let timed_out = now.f_where_self(&trace.truncated.f_gt(0.0)?, &next)?;
    let beyond = last.f_where_self(&slot.f_ge(0)?, &timed_out)?;

    let goes_on = trace.terminated.f_neg()?.f_add_scalar(1.0)?;
    let delta = beyond.f_mul(&goes_on)?.f_mul_scalar(gamma)?;
    let delta = delta.f_add(trace.reward)?.f_sub(&now)?.f_mul(trace.valid)?;
    let carry = trace.truncated.f_neg()?.f_add_scalar(1.0)?;
    let carry = carry.f_mul(&goes_on)?.f_mul(trace.valid)?.f_mul_scalar(gamma * lambda)?;
    Ok((delta, carry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Device;

    fn t(values: &[f32]) -> Tensor {
        Tensor::from_slice(values).view([-1, 1])
    }

    fn run(truncated: &[f32], terminated: &[f32], valid: &[f32], slots: &[i32]) -> Vec<f32> {
        let out = Tensor::zeros([3, 1], (Kind::Float, Device::Cpu));
        let trace = Trace {
            reward: &t(&[1.0, 2.0, 4.0]),
            terminated: &t(terminated),
            truncated: &t(truncated),
            valid: &t(valid),
            value: &t(&[10.0, 20.0, 30.0, 40.0]),
            final_value: &t(&[100.0]),
            final_slot: &Tensor::from_slice(slots).view([-1, 1]),
        };
        advantages(&trace, 0.5, 0.5, &out).unwrap();
        Vec::<f32>::try_from(out.view([-1])).unwrap()
    }

    const NO: [f32; 3] = [0.0; 3];
    const YES: [f32; 3] = [1.0; 3];

    #[test]
    fn an_unbroken_trace_discounts_what_follows() {
        // Deltas: 1 + 10 - 10 = 1, 2 + 15 - 20 = -3, 4 + 20 - 30 = -6.
        assert_eq!(run(&NO, &NO, &YES, &[-1; 3]), [-0.125, -4.5, -6.0]);
    }

    #[test]
    fn an_ended_episode_has_no_value_beyond_and_passes_nothing_back() {
        // The middle delta becomes 2 - 20 = -18.
        assert_eq!(run(&NO, &[0.0, 1.0, 0.0], &YES, &[-1; 3]), [-3.5, -18.0, -6.0]);
    }

    #[test]
    fn a_time_out_bootstraps_the_true_last_observation() {
        let middle = [0.0, 1.0, 0.0];
        // The middle delta becomes 2 + 50 - 20 = 32.
        assert_eq!(run(&middle, &NO, &YES, &[-1, 0, -1]), [9.0, 32.0, -6.0]);
        // Without room for it, V of the state before: 2 + 10 - 20 = -8.
        assert_eq!(run(&middle, &NO, &YES, &[-1; 3]), [-1.0, -8.0, -6.0]);
        // Ended and timed out at once: ended.
        assert_eq!(run(&middle, &middle, &YES, &[-1, 0, -1]), [-3.5, -18.0, -6.0]);
    }

    #[test]
    fn a_broken_transition_cuts_the_trace_and_the_one_before_bootstraps() {
        assert_eq!(run(&NO, &NO, &[1.0, 0.0, 1.0], &[-1; 3]), [1.0, 0.0, -6.0]);
    }
}
