//! Numbers about an update.

use super::off_policy::section::Tally;
use ostler_sim::device::Traffic;
use std::ops::Add;

/// What an update is of: which of its numbers are logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Family {
    #[default]
    OnPolicy,
    OffPolicy,
    Search,
}

use Family::{OffPolicy, OnPolicy, Search};
const ALL: &[Family] = &[OnPolicy, OffPolicy, Search];
/// A matrix has neither a critic nor an entropy.
const CRITICS: &[Family] = &[OnPolicy, OffPolicy];
const ON_POLICY: &[Family] = &[OnPolicy];
const OFF_POLICY: &[Family] = &[OffPolicy];
const SEARCH: &[Family] = &[Search];

/// From a line for each number follow its field, how it is logged, how those of several
/// learners become one, and what it is where no update was made:
/// `field: type = rule (tag, families that log it) what it is;`. Lines are in the order of logs.
macro_rules! update_stats {
    ($($field:ident: $kind:ty = $rule:ident $(($tag:literal, $who:ident))? $says:literal;)*) => {
        /// Statistics of an update. Means are over all minibatches that were not skipped,
        /// weighted by valid samples within each; a mean over nothing is NaN.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct UpdateStats {
            /// Kind of the learner.
            pub of: Family,
            $(#[doc = concat!($says, $(" (`", $tag, "`)",)? ".")] pub $field: $kind,)*
        }

        impl UpdateStats {
            /// Of several learners; of none: means of nothing.
            pub fn of_all<'a>(each: impl Iterator<Item = &'a Self> + Clone) -> Self {
                let of = each.clone().next().map_or(OnPolicy, |s| s.of);
                Self { of, $($field: $rule(each.clone().map(|s| s.$field)),)* }
            }

            /// Tag and value of everything worth a curve.
            pub fn scalars(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
                let (of, all) = (self.of, [$($(($tag, $who, self.$field.logged()),)?)*]);
                let all = all.into_iter().filter(move |(_, who, _)| who.contains(&of));
                all.filter_map(|(tag, _, value)| Some((tag, value?)))
            }

            #[cfg(test)]
            const TAGS: &[&str] = &[$($($tag,)?)*];
        }
    };
}

update_stats! {
    value_function: f64 = mean ("Loss/value_function", CRITICS) "Value loss before its coefficient";
    entropy: f64 = mean ("Loss/entropy", CRITICS) "Entropy of the policy (nat)";
    learning_rate: f64 = mean ("Loss/learning_rate", ALL) "Learning rate after the update";
    grad_norm: f64 = mean ("Loss/grad_norm", ALL) "Mean norm of the gradient before clipping: of PPO the actor's, or of networks that share a trunk; of the others the critics'";
    grad_clipped: f64 = mean ("Loss/grad_clipped", ALL) "Share of minibatches with a clipped gradient";
    mean_std: f64 = mean ("Policy/mean_std", ALL) "Mean standard deviation of the actions collected; 0 for a categorical policy";
    skipped: u64 = sum ("Guard/skipped_minibatches", ALL) "Minibatches skipped for one of the three reasons below";
    skipped_no_valid: u64 = sum ("Guard/skipped_no_valid", ALL) "Of them: no sample was valid";
    skipped_loss: u64 = sum ("Guard/skipped_loss", ALL) "Of them: a loss was not finite";
    skipped_gradient: u64 = sum ("Guard/skipped_gradient", ALL) "Of them: all losses were finite, the gradient was not";
    non_finite_params: bool = any ("Guard/non_finite_params", ALL) "After the update something of what a checkpoint holds is not finite: a weight, a standard deviation, a moment of the optimiser, a statistic, the learning rate";
    invalid: u64 = sum ("Guard/invalid_samples", ALL) "Samples that were not learnt from";

    surrogate: f64 = mean ("Loss/surrogate", ON_POLICY) "Clipped surrogate loss";
    explained_variance: f64 = mean ("Loss/explained_variance", ON_POLICY) "1 - Var(return - value) / Var(return) before the update; 1 is perfect, 0 is no better than a constant";
    kl: f64 = mean ("Policy/kl", ON_POLICY) "Kullback-Leibler divergence from the policy that collected to the present one at the end of the update (nat)";
    clip_fraction: f64 = mean ("Policy/clip_fraction", ON_POLICY) "Share of samples whose probability ratio left the clipping range";
    policy_share: f64 = mean ("Policy/update_share", ON_POLICY) "Share of the minibatches in which the policy learnt: it stops at `ppo.kl_stop`";
    critic_grad_norm: f64 = mean ("Loss/critic_grad_norm", ON_POLICY) "Mean norm of the gradient of PPO's critic, where it is apart, before clipping";

    actor_loss: f64 = mean ("Loss/actor", OFF_POLICY) "Loss of the actor";
    q_mean: f64 = mean ("Loss/q_mean", OFF_POLICY) "Mean of the critics' targets";
    actor_grad_norm: f64 = mean ("Loss/actor_grad_norm", OFF_POLICY) "Mean norm of the actor's gradient before clipping";
    alpha: f64 = mean ("Policy/alpha", OFF_POLICY) "Temperature: the reward that a nat of entropy is worth";
    remembered: u64 = sum ("Replay/size", OFF_POLICY) "Transitions that can be drawn";
    gradient_steps: u64 = sum ("Replay/gradient_steps", OFF_POLICY) "Gradient steps since the run began";

    search_return: f64 = mean ("Search/mean_return", SEARCH) "Mean return of the perturbed policies that counted, without the alive bonus";
    directions: u64 = sum ("Search/directions", SEARCH) "Directions that counted";

    past_reward: Option<f64> = known ("SelfPlay/past_reward", ALL) "Mean reward per step of earlier versions of the policy";
    present_reward: Option<f64> = known ("SelfPlay/reward", ALL) "The same of its present version beside them, where it has an agent there";
    imitation: Option<f64> = known ("Loss/imitation", ALL) "Distance from the teacher before its coefficient, where there is one";
    mirror: Option<f64> = known ("Loss/mirror", ALL) "Squared distance between mean actions in reflected observations and reflected mean actions, with `symmetry.mirror_loss`";
    rnd: Option<f64> = known ("Loss/rnd", ON_POLICY) "Mean square error of the predictor of `ppo.rnd`";
    rnd_reward: Option<f64> = known ("Policy/rnd_reward", ON_POLICY) "Mean reward per step for states that were rarely seen, with its weight";
    amp: Option<f64> = known ("Loss/amp", ON_POLICY) "Cross-entropy of the discriminator of `[amp]`, the mean of both sides'";
    amp_penalty: Option<f64> = known ("Loss/amp_grad_pen", ON_POLICY) "Penalty on its gradient at the reference's transitions, with its weight";
    amp_policy: Option<f64> = known ("Loss/amp_policy", ON_POLICY) "Mean probability of being the reference's that it gives the policy's transitions";
    amp_reference: Option<f64> = known ("Loss/amp_reference", ON_POLICY) "The same of the reference's own";
    amp_reward: Option<f64> = known ("Policy/amp_reward", ON_POLICY) "Mean reward per step for moving as the reference does, with its weight";
    waited_s: Option<f64> = known ("Perf/wait_for_processes", ALL) "Time of the update in which this process waited for the others and their sums (s)";

    minibatches: u64 = sum "Minibatches in all";
    gae_s: f64 = sum "Time for values, advantages and other work before the first minibatch (s)";
    update_s: f64 = sum "Time for all of the update (s)";
    traffic: Traffic = sum "Traffic between host and device, and how often the host waited: nothing on a host. libtorch's own launches are not counted";
}

impl UpdateStats {
    /// Counts the steps of another network that were not taken.
    pub(super) fn skip(&mut self, steps: &Tally) {
        self.skipped_no_valid += steps.no_valid;
        self.skipped_loss += steps.bad_loss;
        self.skipped_gradient += steps.bad_gradient;
        self.skipped += steps.tried - steps.taken;
    }

    /// Of an iteration whose update was not made: no means.
    pub fn none() -> Self {
        Self::of_all([].iter())
    }
}

fn mean(each: impl Iterator<Item = f64> + Clone) -> f64 {
    each.clone().sum::<f64>() / each.count() as f64
}

fn sum<T: Default + Add<Output = T>>(each: impl Iterator<Item = T>) -> T {
    each.fold(T::default(), Add::add)
}

fn any(mut each: impl Iterator<Item = bool>) -> bool {
    each.any(|x| x)
}

/// The mean of those that have a number.
fn known(each: impl Iterator<Item = Option<f64>> + Clone) -> Option<f64> {
    let each = each.flatten();
    each.clone().next().map(|_| mean(each))
}

/// A number as logs have it; `None` is left out.
trait Logged {
    fn logged(self) -> Option<f64>;
}

impl Logged for f64 {
    fn logged(self) -> Option<f64> {
        Some(self)
    }
}

impl Logged for u64 {
    fn logged(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Logged for bool {
    fn logged(self) -> Option<f64> {
        Some(f64::from(self))
    }
}

impl Logged for Option<f64> {
    fn logged(self) -> Option<f64> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_list_of_metrics() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(page).unwrap();
        let missing = UpdateStats::TAGS.iter().filter(|tag| !page.contains(&format!("`{tag}`")));
        assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
    }

    #[test]
    fn numbers_of_several_learners_become_one_by_their_rules() {
        let a = UpdateStats { kl: 1.0, skipped: 2, past_reward: Some(3.0), ..Default::default() };
        let b = UpdateStats { kl: 2.0, skipped: 5, non_finite_params: true, ..Default::default() };
        let both = UpdateStats::of_all([a, b].iter());
        assert_eq!((both.kl, both.skipped, both.non_finite_params), (1.5, 7, true));
        assert_eq!((both.past_reward, both.present_reward), (Some(3.0), None));
        let none = UpdateStats::none();
        assert!(none.kl.is_nan() && none.update_s.to_bits() == 0);
        let tags = |of| UpdateStats { of, ..none }.scalars().map(|s| s.0).collect::<Vec<_>>();
        assert_eq!(tags(OnPolicy), UpdateStats::TAGS[..18]);
        assert_eq!(tags(OffPolicy).len(), 18);
        assert_eq!(tags(Search)[10..], UpdateStats::TAGS[24..26]);
    }
}
