//! F19: values and losses that explode, and the keys against it.

use super::*;

/// A task whose reward is `scale` times something between about -5 and 5 above 3:
/// best where the action hits a target, and better for some observations.
struct Task {
    ppo: Ppo,
    spec: EnvSpec,
    scale: f64,
    stream: u32,
}

impl Task {
    fn new(config: PpoConfig, scale: f64) -> Self {
        let spec = spec(2, None, ActionSpace::Continuous(1), 64);
        let (actor, critic) = small();
        let config = PpoConfig { gamma: 0.0, entropy_coef: 0.0, ..config };
        let ppo = Ppo::new(&config, &actor, &critic, &spec, 16, 3, Device::Cpu).unwrap();
        Self { ppo, spec, scale, stream: 1000 }
    }

    fn rollout(&mut self) -> (Rollout, f64) {
        self.stream += 1;
        let r = rollout(self.ppo.policy_mut(), &self.spec, 16, self.stream);
        let obs = r.obs.policy.narrow(0, 0, 16);
        let target = obs.select(2, 0) - obs.select(2, 1) * 0.5;
        let reward = -(r.action.select(2, 0) - &target).square() + obs.select(2, 1) * 2.0 + 3.0;
        r.reward.shallow_clone().copy_(&(reward * self.scale));
        let error = (r.dist.select(2, 0) - target).square().mean(Kind::Float);
        (r, error.double_value(&[]))
    }

    /// Runs updates; returns their numbers and the last mean squared distance of the
    /// mean action from its target.
    fn learn(&mut self, updates: usize) -> (Vec<UpdateStats>, f64) {
        let mut last = f64::NAN;
        let stats = (0..updates)
            .map(|_| {
                let (r, error) = self.rollout();
                last = error;
                self.ppo.update(&r).unwrap()
            })
            .collect();
        (stats, last)
    }

    /// Values of the rollout's observations, in units of rewards.
    fn values(&mut self, r: &Rollout) -> Tensor {
        let _no_grad = tch::no_grad_guard();
        self.ppo.values.estimate(&self.ppo.policy, r).unwrap();
        self.ppo.values.value.copy()
    }
}

fn normalized() -> PpoConfig {
    PpoConfig { normalize_returns: true, ..PpoConfig::default() }
}

#[test]
fn f19_returns_of_a_million_are_learnt_and_value_losses_stay_near_one() {
    let (stats, error) = Task::new(normalized(), 1e6).learn(80);
    for s in &stats {
        assert!(s.value_function < 3.0, "{s:?}");
        assert!(s.skipped == 0 && !s.non_finite_params);
    }
    let end = stats.last().unwrap();
    assert!(error < 0.2 && end.explained_variance > 0.7, "{error} {end:?}");

    // It is the key that does it.
    let (stats, _) = Task::new(plain(), 1e6).learn(80);
    let end = stats.last().unwrap();
    assert!(end.value_function > 1e11, "{end:?}");
    assert!(end.explained_variance < 0.1, "{end:?}");
}

#[test]
fn f19_returns_that_grow_a_millionfold_do_not_blow_up_the_loss() {
    let mut task = Task::new(normalized(), 1.0);
    task.learn(30);
    task.scale = 1e6;
    let (stats, _) = task.learn(60);
    let largest = stats.iter().map(|s| s.value_function).fold(0.0, f64::max);
    assert!(largest < 40.0, "{largest}");
    assert!(stats.last().unwrap().value_function < 3.0, "{:?}", stats.last());
}

#[test]
fn values_stay_when_the_statistics_move() {
    let mut task = Task::new(normalized(), 1e3);
    task.learn(3);
    let (r, _) = task.rollout();
    let before = task.values(&r);
    // Statistics move and the output layer is corrected before the first minibatch.
    let _no_grad = tch::no_grad_guard();
    let stats =
        |t: &Task| bits(&t.ppo.policy.norm.returns.as_ref().unwrap().stats().mean().unwrap());
    let was = stats(&task);
    task.ppo.prepare(&r).unwrap();
    assert_ne!(stats(&task), was);
    let after = task.values(&r);
    let scale = before.abs().max().double_value(&[]);
    let moved = (&after - &before).abs().max().double_value(&[]);
    assert!(scale > 100.0 && moved < 1e-5 * scale, "{moved} of {scale}");
}

#[test]
fn the_first_update_learns_shifted_and_scaled_numbers_and_nothing_else_differs() {
    let mut plain = Task::new(plain(), 50.0);
    let mut task = Task::new(normalized(), 50.0);
    let _no_grad = tch::no_grad_guard();
    for t in [&mut plain, &mut task] {
        let (r, _) = t.rollout();
        t.ppo.prepare(&r).unwrap();
    }
    // Columns from the right: log-probability, advantage, return, value, validity, weight.
    let column = |t: &Task, from_right: i64| {
        let packed = &t.ppo.samples.packed;
        packed.select(1, packed.size()[1] - from_right).to_kind(Kind::Double)
    };
    for same in [6, 5, 2, 1] {
        assert_eq!(bits(&column(&plain, same)), bits(&column(&task, same)), "{same}");
    }
    let valid = column(&plain, 2);
    let raw = column(&plain, 4);
    let n = valid.sum(Kind::Double);
    let mean = (&raw * &valid).sum(Kind::Double) / &n;
    let var = ((&raw - &mean).square() * &valid).sum(Kind::Double) / &n;
    assert!(mean.double_value(&[]) > 10.0 && var.double_value(&[]) > 100.0);
    for which in [4, 3] {
        let expected = (column(&plain, which) - &mean) / var.sqrt();
        let error = (column(&task, which) - expected).abs().max();
        assert!(error.double_value(&[]) < 1e-5, "{which}: {error}");
    }
    let explained = |t: &Task| t.ppo.accumulator.explained_variance();
    assert_eq!(explained(&plain), explained(&task));
}

#[test]
fn statistics_of_returns_do_not_move_with_what_is_not_finite() {
    let mut task = Task::new(normalized(), 1.0);
    task.learn(2);
    let before = task.ppo.save().unwrap();
    let (r, _) = task.rollout();
    let _ = r.reward.get(2).get(3).fill_(f64::INFINITY);
    let stats = task.ppo.update(&r).unwrap();
    assert_eq!(stats.skipped, stats.minibatches);
    let after = task.ppo.save().unwrap();
    // The range of the other rewards of the rollout is known now.
    let moved = ["ppo.updates", "critic.reward_range"];
    for ((name, x), (_, y)) in before.iter().zip(&after) {
        assert!(moved.contains(&name.as_str()) || bits(x) == bits(y), "{name}");
    }
}

#[test]
fn weights_go_from_normalised_to_plain_returns_and_back_with_the_same_values() {
    let mut task = Task::new(normalized(), 1e3);
    task.learn(5);
    let (r, _) = task.rollout();
    let values = task.values(&r);
    let mut plain = Task::new(plain(), 1e3);
    let weights = task.ppo.policy().state().unwrap().weights().unwrap();
    plain.ppo.policy_mut().load(&weights).unwrap();
    let close = |a: &Tensor, b: &Tensor| {
        let error = (a - b).abs().max().double_value(&[]);
        assert!(error < 1e-5 * a.abs().max().double_value(&[]), "{error}");
    };
    close(&values, &plain.values(&r));
    let weights = plain.ppo.policy().state().unwrap().weights().unwrap();
    task.ppo.policy_mut().load(&weights).unwrap();
    close(&values, &task.values(&r));
}

#[test]
fn f19_the_huber_loss_bounds_the_pull_of_far_returns() {
    let norm = |value_loss| {
        let config = PpoConfig {
            value_loss,
            use_clipped_value_loss: false,
            num_learning_epochs: 1,
            num_mini_batches: 1,
            ..plain()
        };
        Task::new(config, 1e4).learn(1).0[0].critic_grad_norm
    };
    let (mse, huber) = (norm(ValueLoss::Mse), norm(ValueLoss::Huber));
    assert!(mse > 1e3 * huber && huber < 100.0, "{mse} {huber}");
}

#[test]
fn f19_the_clipped_value_loss_holds_values_near_the_old_ones() {
    let moved = |use_clipped_value_loss| {
        let config = PpoConfig {
            use_clipped_value_loss,
            clip_param: 0.002,
            schedule: Schedule::Fixed,
            learning_rate: 3e-3,
            num_learning_epochs: 20,
            ..plain()
        };
        let mut task = Task::new(config, 100.0);
        let (r, _) = task.rollout();
        let before = task.values(&r);
        task.ppo.update(&r).unwrap();
        let after = task.values(&r);
        (after - before).abs().mean(Kind::Double).double_value(&[])
    };
    let (held, free) = (moved(true), moved(false));
    assert!(free > 2.0 * held, "{held} {free}");
}

#[test]
fn f19_no_step_follows_a_gradient_longer_than_allowed() {
    let config = PpoConfig { max_grad_norm: 0.25, ..plain() };
    let mut task = Task::new(config, 1e4);
    let (stats, _) = task.learn(1);
    // Each network's own: the critic's would leave the actor nothing.
    for part in [0, 1] {
        let gradient = task.ppo.adam.gradient(&task.ppo.policy.params, part);
        let norm = gradient.unwrap().norm().double_value(&[]);
        assert!((norm - 0.25).abs() < 1e-4, "{part}: {norm}");
    }
    let said = &stats[0];
    assert!(said.critic_grad_norm > 100.0 && said.grad_clipped == 1.0);
    assert!(said.grad_norm > 0.25 && said.grad_norm < 10.0, "{said:?}");
}

/// Returns that are all alike count as spread by a tenth of their size: a critic that told
/// them apart would learn noise.
#[test]
fn the_deviation_of_returns_stays_above_a_tenth_of_their_size() {
    let mut normalizer = crate::learner::returns::ReturnNormalizer::new(Device::Cpu).unwrap();
    let mut layout = crate::learner::nn::Layout::default();
    let at = crate::learner::nn::Linear::declare(&mut layout, "head", 1, 1);
    let params = crate::learner::nn::Params::new(layout, Device::Cpu).unwrap();
    let head = crate::learner::nn::Linear::new(&params, at).unwrap();
    let ones = Tensor::ones([8, 1], (Kind::Float, Device::Cpu));
    for _ in 0..300 {
        normalizer.merge(&(&ones * 50.0), &ones, &head).unwrap();
    }
    let deviation = normalizer.standard_deviation().unwrap().double_value(&[]);
    assert!((deviation - 5.0).abs() < 1e-3, "{deviation}");
}

/// A critic that says far more than rewards can add up to is not believed, neither where an
/// episode goes on nor where time ended it.
#[test]
fn values_beyond_what_rewards_allow_are_held() {
    for sign in [1.0, -1.0] {
        let (mut ppo, spec) = build(&plain(), ActionSpace::Continuous(2), false);
        let r = rollout(ppo.policy_mut(), &spec, 8, 1);
        let bias = crate::learner::UpdateTarget::Parameter("critic.head.bias".into());
        let _no_grad = tch::no_grad_guard();
        let _ = ppo.state.target(&bias).unwrap().fill_(sign * 1e6);
        ppo.prepare(&r).unwrap();
        let reward = &r.reward * &r.valid;
        let most = match sign > 0.0 {
            true => reward.max(),
            false => reward.min(),
        };
        let bound = most.double_value(&[]) / (1.0 - ppo.config.gamma);
        for value in [&ppo.values.value, &ppo.values.final_value] {
            let (low, high) = (value.min(), value.max());
            for got in [low, high] {
                let apart = got.double_value(&[]) - bound;
                assert!(apart.abs() < 1e-3 * bound.abs(), "{apart} from {bound}");
            }
        }
    }
}
