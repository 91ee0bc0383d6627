//! Against amp-rsl-rl's own steps, libtorch's automatic differentiation, and its own promises.

use super::*;
use crate::learner::ppo::tests::{plain, small};
use crate::learner::testing::{Named, bits, normals, rollout, same, spec, stand_in};
use crate::learner::{Learner, PpoConfig};
use ostler_sim::env::{ActionSpace, ObsRow};
use std::sync::Arc;

const STEPS: i64 = 8;
const ENVS: usize = 6;

/// Written by `tests/referee/amp_peers.py`.
const PEERS: &str = include_str!("../../../../../../tests/fixtures/amp_peers.json");

#[derive(serde::Deserialize)]
struct Peers {
    hidden_dims: Vec<i64>,
    learning_rate: f64,
    params: Named,
    batches: Vec<Named>,
    stats: Vec<Named>,
    expected: Named,
}

fn config() -> AmpConfig {
    AmpConfig {
        observations: vec!["joint_pos".into(), "lin_vel".into()],
        hidden_dims: vec![16, 8],
        learning_rate: 1e-3,
        ..AmpConfig::default()
    }
}

/// Of rows of six columns: the first of no interest, joint positions with a history of two.
fn task(envs: usize, critic: bool) -> EnvSpec {
    let row = |name: &str, index: usize, len: usize, frames: usize| ObsRow {
        index,
        len,
        frames,
        stride: len,
        seen: String::new(),
        name: name.into(),
        expr: String::new(),
        unit: "-".into(),
    };
    let rows = vec![row("height", 0, 1, 1), row("joint_pos", 1, 2, 2), row("lin_vel", 5, 1, 1)];
    let mut spec = spec(6, critic.then_some(7), ActionSpace::Continuous(2), envs);
    spec.obs_table.critic = critic.then(|| {
        let mut rows = rows.clone();
        rows.iter_mut().for_each(|row| row.index += 1);
        rows
    });
    spec.obs_table.policy = rows;
    spec
}

/// A motion in two clips that no rollout of random observations resembles.
fn motion(width: usize) -> Demonstrations {
    let rows = (0..40 * width).map(|i| 2.0 + (i as f32 * 0.37).sin() * 0.3).collect();
    Demonstrations { rows, width, clips: vec![15, 40] }
}

fn learner_of(config: &AmpConfig, spec: &EnvSpec, ppo: &PpoConfig) -> Result<Ppo, LearnError> {
    let (actor, critic) = small();
    let ppo = Ppo::new(ppo, &actor, &critic, spec, STEPS as usize, 3, Device::Cpu)?;
    ppo.with_demonstrations(config, spec, &motion(spec.obs.critic.unwrap_or(spec.obs.policy)))
}

fn learner(config: &AmpConfig, envs: usize) -> (Ppo, Rollout) {
    let spec = task(envs, false);
    let mut ppo = learner_of(config, &spec, &plain()).unwrap();
    let r = rollout(ppo.policy_mut(), &spec, STEPS, 1);
    (ppo, r)
}

fn amp(ppo: &mut Ppo) -> &mut Amp {
    ppo.amp.as_mut().unwrap()
}

fn close(what: &str, got: &Tensor, expected: &Tensor) {
    let error = (got - expected).abs().max().double_value(&[]);
    let scale = expected.abs().max().double_value(&[]).max(1.0);
    assert!(error / scale < 1e-5, "{what}: off by {error:e}\n{got}\n{expected}");
}

fn state(amp: &mut Amp) -> State {
    let mut state = State::default();
    amp.declare(&mut state).unwrap();
    state
}

#[test]
fn steps_are_amp_rsl_rls() {
    let peers: Peers = serde_json::from_str(PEERS).unwrap();
    let config = AmpConfig {
        hidden_dims: peers.hidden_dims,
        learning_rate: peers.learning_rate,
        ..config()
    };
    let (mut ppo, _) = learner(&config, ENVS);
    let amp = amp(&mut ppo);
    let own = |name: &str| format!("amp/{name}");
    let mut saved = state(amp).save().unwrap();
    for (name, numbers) in &peers.params {
        let (_, tensor) = saved.iter_mut().find(|(other, _)| *other == own(name)).unwrap();
        tensor.copy_(&numbers.tensor());
    }
    state(amp).load(&saved).unwrap();
    amp.derive().unwrap();
    for (batch, stats) in peers.batches.iter().zip(&peers.stats) {
        let [x, other] = ["policy", "reference"].map(|side| batch[side].tensor());
        let weight = x.narrow(1, 0, 1).ones_like();
        amp.section.begin().unwrap();
        amp.step(&x, &weight, &other).unwrap();
        let said = amp.said(&Vec::try_from(amp.sums().unwrap()).unwrap()).1;
        assert_eq!(said.taken, 1);
        for (got, name, at) in [
            (said.loss, "loss", 0),
            (said.own[0], "penalty", 0),
            (said.own[1], "scores", 0),
            (said.own[2], "scores", 1),
        ] {
            let expected = stats[name].data[at];
            assert!((got - expected).abs() < 1e-5 * expected.max(1.0), "{name}: {got} {expected}");
        }
        let reward = amp.discriminator.judge(&amp.normalized(&x).unwrap()).unwrap().softplus();
        close("reward", &reward.view([-1]), &stats["reward"].tensor());
    }
    let now = state(amp).save().unwrap();
    for (name, numbers) in &peers.expected {
        let (_, got) = now.iter().find(|(other, _)| *other == own(name)).unwrap();
        close(name, got, &numbers.tensor());
    }
}

#[test]
fn gradients_are_those_of_automatic_differentiation() {
    use AmpRecipe::{AmpRslRl, Skrl};
    let recipes = [(vec![7], AmpRslRl), (vec![16, 8], AmpRslRl), (vec![9, 5, 4], AmpRslRl)];
    let skrls = [(vec![7], Skrl), (vec![16, 8], Skrl)];
    for (widths, recipe) in recipes.into_iter().chain(skrls) {
        tch::set_num_threads(1);
        let net = Discriminator::new(6, &widths, 5, Device::Cpu).unwrap();
        let (x, weight) =
            (normals(70, &[22, 6]), Tensor::ones([11, 1], (Kind::Float, Device::Cpu)));
        let _ = weight.get(4).fill_(0.0);
        let said = net.gradient(&x, &weight, (10.0, recipe)).unwrap();
        let theta = net.params.theta.to_kind(Kind::Double).set_requires_grad(true);
        let judge = |x: &Tensor| {
            let (mut x, mut at, mut before) = (x.shallow_clone(), 0, 6);
            for (i, &width) in widths.iter().chain(&[1]).enumerate() {
                let count = width * before;
                let weight = theta.narrow(0, at, count).view([width, before]);
                x = x.matmul(&weight.tr()) + theta.narrow(0, at + count, width);
                if i < widths.len() {
                    x = x.relu();
                }
                (at, before) = (at + count + width, width);
            }
            x.view([-1])
        };
        let x = x.to_kind(Kind::Double);
        let other = x.narrow(0, 11, 11).detach().set_requires_grad(true);
        let (own, real) = (judge(&x.narrow(0, 0, 11)), judge(&other));
        let kept = Tensor::cat(&[own.narrow(0, 0, 4), own.narrow(0, 5, 6)], 0);
        let loss: Tensor =
            0.5 * (kept.softplus().mean(Kind::Double) + (-&real).softplus().mean(Kind::Double));
        let slope = &Tensor::run_backward(&[real.sum(Kind::Double)], &[&other], true, true)[0];
        let penalty: Tensor = 5.0 * slope.square().sum(Kind::Double) / 11.0;
        let mut both = &loss + &penalty;
        if recipe == Skrl {
            // Squares of weights alone, as skrl adds them up; all of it five times.
            let (mut at, mut before) = (0, 6);
            for (i, &width) in widths.iter().chain(&[1]).enumerate() {
                let square = theta.narrow(0, at, width * before).square().sum(Kind::Double);
                let last = if i == widths.len() { 0.05 } else { 0.0 };
                both += square * (1e-4 + last);
                (at, before) = (at + width * before + width, width);
            }
            both *= 5.0;
        }
        let mut wanted = Tensor::run_backward(&[both], &[&theta], false, false).remove(0);
        let head = widths.last().unwrap() + 1;
        let front = theta.size()[0] - head;
        let decays = if recipe == Skrl { [0.0; 2] } else { [1e-3, 0.1] };
        tch::no_grad(|| {
            for (from, len, decay) in [(0, front, decays[0]), (front, head, decays[1])] {
                let _ = wanted.narrow(0, from, len).g_add_(&(theta.narrow(0, from, len) * decay));
            }
        });
        wanted = wanted.detach();
        for (got, wanted) in [(&said.loss, &loss), (&said.penalty, &penalty)] {
            let (got, wanted) = (got.double_value(&[]), wanted.double_value(&[]));
            assert!((got - wanted).abs() < 1e-6 * wanted.abs().max(1.0), "{got} {wanted}");
        }
        let off = (&wanted - net.params.grad.to_kind(Kind::Double)).abs().max().double_value(&[]);
        let size = wanted.abs().max().double_value(&[]);
        assert!(off < 1e-5 * size, "{widths:?}: {off:e} of {size:e}");
    }
}

#[test]
fn rewards_are_the_recipes() {
    let net = Discriminator::new(3, &[8], 5, Device::Cpu).unwrap();
    let _ = net.params.theta.shallow_clone().g_mul_scalar_(30.0);
    let x = normals(3, &[200, 3]) * 5.0;
    let z = net.judge(&x).unwrap();
    let [own, skrls] =
        [AmpRecipe::AmpRslRl, AmpRecipe::Skrl].map(|recipe| net.reward(&x, recipe).unwrap());
    close("softplus", &own, &z.softplus());
    let least = (-z.to_kind(Kind::Double).sigmoid() + 1.0).clamp_min(1e-4);
    close("skrl's", &skrls.to_kind(Kind::Double), &-least.log());
    assert!(own.max().double_value(&[]) > 9.3, "none is that sure");
}

/// Stretches and weights of a rollout, written out.
#[test]
fn transitions_end_with_their_episodes() {
    for (k, critic) in [(2, false), (2, true), (3, false), (4, true)] {
        let spec = task(ENVS, critic);
        let config = AmpConfig { steps: k as usize, ..config() };
        let mut ppo = learner_of(&config, &spec, &plain()).unwrap();
        let shift = i64::from(critic);
        let columns: Vec<i64> = [3, 4, 5].map(|column| column + shift).to_vec();
        assert_eq!(config.columns(&spec).unwrap(), columns);
        let [first, second] = [1, 2].map(|i| rollout(ppo.policy_mut(), &spec, STEPS, i));
        let group = |r: &Rollout| match critic {
            true => [&r.obs, &r.final_obs].map(|g| g.critic.as_ref().unwrap().shallow_clone()),
            false => [&r.obs, &r.final_obs].map(|g| g.policy.shallow_clone()),
        };
        // The second goes on where the first ended, in all environments but one.
        let start = group(&second)[0].narrow(0, 0, 1).narrow(1, 1, ENVS as i64 - 1);
        let end = group(&first)[0].narrow(0, STEPS, 1).narrow(1, 1, ENVS as i64 - 1);
        start.shallow_clone().copy_(&end);
        let all = [&first, &second].map(|r| group(r)[0].copy());
        let number = |t: &Tensor, at: &[i64]| t.double_value(at);
        for (i, r) in [&first, &second].into_iter().enumerate() {
            let [windows, weight] = amp(&mut ppo).windows.of(r).unwrap();
            let ended = |i: usize, t: i64, n: i64| {
                let r = [&first, &second][i];
                number(&r.ended().unwrap().to_kind(Kind::Float), &[t, n]) > 0.0
            };
            for (t, n) in (0..STEPS).flat_map(|t| (0..ENVS as i64).map(move |n| (t, n))) {
                let at = t * ENVS as i64 + n;
                let truncated = number(&r.truncated, &[t, n]) > 0.0;
                let mut whole = truncated || !ended(i, t, n);
                for back in 1..k - 1 {
                    let t = t - back;
                    whole &= match t < 0 {
                        true => i == 1 && n > 0 && !ended(0, STEPS + t, n),
                        false => !ended(i, t, n),
                    };
                }
                assert_eq!(
                    number(&weight, &[at, 0]),
                    f64::from(u8::from(whole)),
                    "{k} {i} {t} {n}"
                );
                for frame in 0..k {
                    for (c, &column) in columns.iter().enumerate() {
                        let from = t + 2 - k + frame;
                        let wanted = match (whole, frame == k - 1 && truncated, from < 0) {
                            (false, ..) => 0.0,
                            (_, true, _) => number(&group(r)[1], &[0, n, column]),
                            (_, _, true) => number(&all[0], &[STEPS + from, n, column]),
                            _ => number(&all[i], &[from, n, column]),
                        };
                        let got = number(&windows, &[at, frame * 3 + c as i64]);
                        assert_eq!(got, wanted, "{k} {i} {t} {n} {frame} {column}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_resembles_the_reference_is_worth_more() {
    let (mut ppo, r) = learner(&config(), ENVS);
    let amp = amp(&mut ppo);
    let mean = |amp: &mut Amp, r: &Rollout| {
        let reward = amp.reward(r).unwrap();
        (reward.sum(Kind::Double) / amp.seen[1].sum(Kind::Double)).double_value(&[])
    };
    for update in 0..60 {
        mean(amp, &r);
        amp.learn(update).unwrap();
    }
    let said = amp.said(&Vec::try_from(amp.sums().unwrap()).unwrap()).1;
    assert!(said.own[1] < 0.3 && said.own[2] > 0.7, "{said:?}");
    let strange = mean(amp, &r);
    // The same rollout with observations of the motion's.
    let rows = Tensor::from_slice(&motion(6).rows).view([40, 1, 6]);
    let seen = rows.narrow(0, 20, STEPS + 1).expand([STEPS + 1, ENVS as i64, 6], false);
    r.obs.policy.shallow_clone().copy_(&seen);
    let _ = r.truncated.shallow_clone().zero_();
    let _ = r.final_slot.shallow_clone().fill_(-1);
    let alike = mean(amp, &r);
    assert!(alike > 2.0 * strange && strange > 0.0, "{alike} {strange}");
    // A step that ended an episode is worth nothing.
    assert_eq!(amp.reward.double_value(&[1, 0]), 0.0);
}

#[test]
fn updates_have_the_same_bits_on_any_number_of_threads_and_after_a_checkpoint() {
    let config = AmpConfig { steps: 3, ..config() };
    let after = |threads: usize, stop: bool| {
        let (ppo, r) = learner(&config, 130);
        let mut ppo = ppo.on_processor(threads, None).unwrap();
        for i in 0..3 {
            if stop && i == 2 {
                let saved = ppo.save().unwrap();
                ppo = learner(&config, 130).0;
                ppo.load(&saved).unwrap();
            }
            let stats = ppo.update(&r).unwrap();
            assert_eq!(stats.skipped, 0);
            assert!(stats.amp.unwrap() > 0.0 && stats.amp_reward.unwrap() > 0.0);
            let tags: Vec<_> = stats.scalars().map(|s| s.0).collect();
            assert!(tags.contains(&"Loss/amp_grad_pen") && tags.contains(&"Policy/amp_reward"));
        }
        ppo.save().unwrap()
    };
    let once = after(1, false);
    same(&after(3, false), &once);
    same(&after(1, true), &once);
    // What was captured comes back whole.
    let (mut ppo, r) = learner(&config, 130);
    ppo.update(&r).unwrap();
    ppo.capture().unwrap();
    let before = ppo.save().unwrap();
    ppo.update(&r).unwrap();
    ppo.restore().unwrap();
    same(&ppo.save().unwrap(), &before);
    // Another number of environments goes on, too.
    let (mut fewer, r) = learner(&config, 100);
    fewer.load(&before).unwrap();
    assert_eq!(fewer.update(&r).unwrap().skipped, 0);
}

#[test]
fn a_device_learns_what_the_host_learns() {
    let (mut host, r) = learner(&config(), ENVS);
    let mut device = learner(&config(), ENVS).0.with_kernels(&stand_in()).unwrap();
    for _ in 0..3 {
        let [a, b] = [&mut host, &mut device].map(|ppo| ppo.update(&r).unwrap());
        let off = (a.amp.unwrap() - b.amp.unwrap()).abs() / a.amp.unwrap();
        assert!(off < 1e-5, "{off:e}");
    }
    let (a, b) = (host.save().unwrap(), device.save().unwrap());
    for ((name, a), (_, b)) in a.iter().zip(&b).filter(|(a, _)| a.0.starts_with("amp/")) {
        close(name, a, b);
    }
}

#[test]
fn the_task_reward_is_added_to_and_recurrent_policies_learn_from_it_too() {
    use crate::learner::policy::RnnType;
    let spec = task(ENVS, false);
    let (actor, critic) = small();
    let actor = crate::learner::ActorConfig { rnn_type: RnnType::Gru, ..actor };
    let ppo = Ppo::new(&plain(), &actor, &critic, &spec, STEPS as usize, 3, Device::Cpu).unwrap();
    let mut ppo = ppo.with_demonstrations(&config(), &spec, &motion(6)).unwrap();
    let r = rollout(ppo.policy_mut(), &spec, STEPS, 1);
    let stats = ppo.update(&r).unwrap();
    assert!(stats.amp_reward.unwrap() > 0.0 && stats.skipped == 0);
    assert!(stats.surrogate.is_finite());
}

#[test]
fn more_transitions_than_there_is_room_for_are_some_of_them() {
    let (mut ppo, r) = learner(&config(), ENVS);
    let amp = amp(&mut ppo);
    let room = |amp: &mut Amp, room: i64| {
        amp.remembered = Tensor::zeros([room, 7], (Kind::Float, Device::Cpu));
    };
    let _ = amp.reward(&r).unwrap();
    let rows = |t: &Tensor| -> Vec<Vec<u8>> {
        (0..t.size()[0]).map(|i| bits(&t.get(i).contiguous())).collect()
    };
    let seen = rows(&Tensor::cat(&amp.seen, 1));
    room(amp, 20);
    amp.remember(0).unwrap();
    assert!(rows(&amp.remembered).iter().all(|row| seen.contains(row)));
    assert_eq!(amp.inserted.get(), 20);
    // A ring whose end is in the middle of a rollout.
    room(amp, 70);
    amp.remember(1).unwrap();
    let kept = rows(&amp.remembered);
    assert_eq!(kept[20..68], seen[..]);
    amp.remember(2).unwrap();
    let kept = rows(&amp.remembered);
    assert_eq!((&kept[68..], &kept[..46]), (&seen[..2], &seen[2..]));
}

#[test]
fn memory_is_foreseen() {
    let (mut ppo, r) = learner(&config(), 130);
    let _ = amp(&mut ppo).reward(&r).unwrap();
    let amp = amp(&mut ppo);
    let bytes = |all: &[&Tensor]| all.iter().map(|t| 4 * t.numel() as u64).sum::<u64>();
    let params = &amp.discriminator.params;
    let held = bytes(&[&amp.remembered, &params.theta, &params.grad, &params.theta, &params.theta]);
    let [passing, kept] = config().bytes(&task(130, false), 130 * STEPS as u64);
    assert!((held..held * 11 / 10).contains(&kept), "{kept} for {held}");
    assert!(passing > bytes(&[&amp.seen[0], &amp.seen[1]]));
    let unknown = AmpConfig { observations: vec!["nothing".into()], ..config() };
    assert_eq!(unknown.bytes(&task(130, false), 1000), [0, 0]);
}

#[test]
fn what_does_not_fit_is_named() {
    let refused = |config: &AmpConfig, spec: &EnvSpec, motion: Demonstrations| {
        let (actor, critic) = small();
        let ppo =
            Ppo::new(&plain(), &actor, &critic, spec, STEPS as usize, 3, Device::Cpu).unwrap();
        ppo.with_demonstrations(config, spec, &motion).unwrap_err().to_string()
    };
    let spec = task(ENVS, false);
    let misspelt = AmpConfig { observations: vec!["joint_poss".into()], ..config() };
    let message = refused(&misspelt, &spec, motion(6));
    assert!(
        message.contains("amp.observations[0]") && message.contains("joint_pos\""),
        "{message}"
    );
    let message = refused(&config(), &spec, motion(5));
    assert!(message.contains("have 5 columns, not 6"), "{message}");
    let short = Demonstrations { clips: (1..=40).collect(), ..motion(6) };
    let message = refused(&config(), &spec, short);
    assert!(message.contains("no reference motion has 2 control steps"), "{message}");
    let mut broken = motion(6);
    broken.rows[6 + 4] = f32::NAN;
    let message = refused(&config(), &spec, broken);
    assert!(message.contains("column 1 of step 1"), "{message}");
    // Columns that are not compared may hold anything.
    let mut fine = motion(6);
    fine.rows[6] = f32::NAN;
    let spec = EnvSpec { demonstrations: Some(Arc::new(fine)), ..spec };
    let config = AmpConfig {
        weight: 0.0,
        learning_rate: 0.0,
        gradient_penalty: -1.0,
        hidden_dims: vec![],
        steps: 1,
        ..config()
    };
    let paths: Vec<_> = config.errors().into_iter().map(|e| e.path).collect();
    let keys = ["weight", "learning_rate", "gradient_penalty", "hidden_dims", "steps"];
    assert_eq!(paths, keys.map(|key| format!("amp.{key}")));
    assert!(
        reference(&self::config(), (&spec, spec.demonstrations.as_ref().unwrap()), &[3, 4, 5])
            .is_ok()
    );
}
