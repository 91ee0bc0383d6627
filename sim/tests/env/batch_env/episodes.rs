//! Pins: the times of observations, rewards and counts; the ends of episodes.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::EpisodeStats;
use ostler_sim::env::LISTED;

const PUSH: &str = r#"
[[action]]
actuators = ["push"]
[[observation]]
name = "cart"
expr = "concat(joint_pos(slider), joint_vel(slider))"
[[observation]]
name = "count"
expr = "step_count"
scale = 10
[[reward]]
name = "action"
expr = "action"
[[reward]]
name = "change"
expr = "action - last_action"
weight = 100
"#;

#[test]
fn numbers_land_where_they_belong() {
    let mut env = build(SMALL, &task(PUSH)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    assert_eq!(out.policy, [0.0; 9]);
    out.step(&mut env, &[1.0, 2.0, 3.0]);
    // Two steps of 0.01 s with the gear of 2: v = 0.04 u, x = 0.0006 u.
    for e in 0..3 {
        let u = (e + 1) as f32;
        let row = &out.policy[3 * e..3 * e + 3];
        assert!((row[0] - 0.0006 * u).abs() < 1e-8 && (row[1] - 0.04 * u).abs() < 1e-7, "{row:?}");
        assert_eq!(row[2], 10.0);
        assert_eq!(out.reward[e], u + 100.0 * u);
    }
    assert_eq!(
        (out.terminated, out.truncated, out.valid),
        (vec![0.0; 3], vec![0.0; 3], vec![1.0; 3])
    );
    assert_eq!(out.final_slot, [-1; 3]);
    let mut out = Out::new(env.spec(), 1);
    out.step(&mut env, &[1.0, 1.0, 1.0]);
    assert_eq!(out.reward, [1.0, 1.0 - 100.0, 1.0 - 200.0]);
    assert_eq!(out.policy[2], 20.0);
}

#[test]
fn a_time_out_truncates_keeps_the_last_observation_and_starts_anew_in_the_same_step() {
    let mut env = build(SMALL, &task(PUSH)).unwrap();
    assert_eq!((env.spec().max_episode_steps, env.spec().min_truncation_steps), (5, 5));
    let mut out = Out::new(env.spec(), 2);
    out.reset(&mut env, false);
    env.begin_rollout();
    for step in 1..=10 {
        out.step(&mut env, &[1.0, 2.0, 3.0]);
        let late = step % 5 == 0;
        assert_eq!(out.truncated, [f32::from(u8::from(late)); 3]);
        assert_eq!(out.terminated, [0.0; 3]);
        let slot = if late { step / 5 - 1 } else { -1 };
        assert_eq!(out.final_slot, [slot; 3]);
        if late {
            assert_eq!(out.policy, [0.0; 9]);
            for e in 0..3 {
                let row = &out.final_policy[(slot as usize * 3 + e) * 3..][..3];
                assert!((row[1] - 0.2 * (e + 1) as f32).abs() < 1e-6 && row[2] == 50.0, "{row:?}");
            }
        } else {
            assert_eq!(out.policy[2], (step % 5) as f32 * 10.0);
        }
    }
    // After a reset the last action is zero again: 100 once per episode.
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!((stats.episodes, stats.length_sum, stats.terminations[0]), (6, 30.0, 6));
    assert_eq!(stats.reward_sums, [2.0 * 5.0 * 6.0, 2.0 * 600.0]);
    assert_eq!(stats.return_sum, 60.0 + 1200.0);
    // Steps are counted from the rollout's first.
    let listed: Vec<_> = stats.finished.iter().map(|f| (f.step, f.env, f.ret, f.length)).collect();
    let each = [(0, 105.0), (1, 210.0), (2, 315.0)];
    let both = [4, 9].map(|step| each.map(|(e, ret)| (step, e, ret, 5)));
    assert_eq!(listed, both.concat());
    env.take_stats(&mut stats);
    assert_eq!((stats.episodes, stats.return_sum, stats.finished.len()), (0, 0.0, 0));
    assert_eq!(stats.reward_sums, [0.0; 2]);
}

/// The last hundred, and all of the last step in which episodes ended; never more room.
#[test]
fn the_last_episodes_are_listed_in_order_of_step_and_environment() {
    for (n, most) in [(3, LISTED), (130, 130)] {
        let mut env = build(Batch { n, ..SMALL }, &task(PUSH)).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, true);
        let mut stats = EpisodeStats::with_room(env.spec()).unwrap();
        let room = stats.finished.capacity();
        env.begin_rollout();
        let mut all = Vec::new();
        for step in 0..400 {
            out.step(&mut env, &vec![0.0; n]);
            let late = (0..n).filter(|&e| out.truncated[e] == 1.0);
            all.extend(late.map(|e| (step, e as u32)));
        }
        env.take_stats(&mut stats);
        let listed: Vec<_> = stats.finished.iter().map(|f| (f.step, f.env)).collect();
        assert!(all.len() > 2 * LISTED && listed.len() >= LISTED && listed.len() <= most);
        assert_eq!(listed, all[all.len() - listed.len()..]);
        assert_eq!(stats.finished.capacity(), room);
    }
}

#[test]
fn truncations_without_room_are_counted_until_the_next_rollout() {
    let mut env = build(SMALL, &task(PUSH)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    for _ in 0..10 {
        out.step(&mut env, &[0.0; 3]);
    }
    assert_eq!((out.final_slot.clone(), out.truncated.clone()), (vec![-1; 3], vec![1.0; 3]));
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!(stats.final_overflow, 3);
    env.begin_rollout();
    for _ in 0..5 {
        out.step(&mut env, &[0.0; 3]);
    }
    assert_eq!(out.final_slot, [0; 3]);
}

#[test]
fn the_first_cause_counts_and_termination_wins_over_truncation() {
    let causes = r#"
[[termination]]
name = "early"
expr = "step_count >= 3 and action > 1.5"
truncate = true
[[termination]]
name = "fell"
expr = "step_count >= 3 and action > 2.5"
[[termination]]
name = "fell_too"
expr = "step_count >= 3 and action > 2.5"
"#;
    let mut env = build(SMALL, &task(&format!("{PUSH}{causes}"))).unwrap();
    assert_eq!(env.spec().termination_names, ["time_out", "early", "fell", "fell_too"]);
    assert_eq!(env.spec().min_truncation_steps, 1);
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    for _ in 0..3 {
        out.step(&mut env, &[1.0, 2.0, 3.0]);
    }
    assert_eq!(out.terminated, [0.0, 0.0, 1.0]);
    assert_eq!(out.truncated, [0.0, 1.0, 0.0]);
    assert_eq!(out.final_slot, [-1, 0, -1]);
    for _ in 0..2 {
        out.step(&mut env, &[1.0, 2.0, 3.0]);
    }
    assert_eq!(out.truncated, [1.0, 0.0, 0.0]);
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!(stats.terminations, [1, 1, 1, 0]);
}

#[test]
fn a_broken_environment_is_masked_reset_and_counted_and_its_neighbours_notice_nothing() {
    let mut env = build(SMALL, &task(PUSH)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    for _ in 0..4 {
        out.step(&mut env, &[1.0, 1.0, 1.0]);
    }
    // The time-out of this step is no truncation for the broken one.
    out.step(&mut env, &[1.0, f32::NAN, 1.0]);
    assert_eq!(out.valid, [1.0, 0.0, 1.0]);
    assert_eq!(out.reward[1], 0.0);
    assert_eq!(
        (out.truncated.clone(), out.final_slot.clone()),
        (vec![1.0, 0.0, 1.0], vec![0, -1, 0])
    );
    assert_eq!(out.policy[3..6], [0.0; 3]);
    out.step(&mut env, &[f32::INFINITY, 1.0, 1.0]);
    assert_eq!(out.valid, [0.0, 1.0, 1.0]);
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!((stats.episodes, stats.faults.as_slice()), (2, [0, 0, 0, 2, 0, 0].as_slice()));
    assert_eq!(stats.return_sum, 2.0 * 105.0);
}

#[test]
fn a_reward_or_observation_that_is_not_finite_breaks_only_its_environment() {
    for term in [
        "[[reward]]\nname = \"log\"\nexpr = \"log(2.5 - action)\"",
        "[[observation]]\nname = \"log\"\nexpr = \"log(2.5 - action)\"",
        "[[observation]]\nname = \"log\"\nexpr = \"log(2.5 - action)\"\ngroup = \"critic\"",
    ] {
        let mut env = build(SMALL, &task(&format!("{PUSH}{term}"))).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        out.step(&mut env, &[1.0, 2.0, 3.0]);
        assert_eq!(out.valid, [1.0, 1.0, 0.0], "{term}");
        let all = out.policy.iter().chain(&out.reward).chain(out.critic.iter().flatten());
        assert!(all.copied().all(f32::is_finite));
        let mut stats = EpisodeStats::default();
        env.take_stats(&mut stats);
        assert_eq!(stats.faults, [0, 0, 0, 0, 0, 1]);
    }
}

#[test]
fn a_start_that_cannot_be_observed_repeats_the_last_finite_row_and_is_tried_again() {
    let start = r#"
[[observation]]
name = "root"
expr = "sqrt(pos(ball).x)"
[[reset]]
target = "pos(ball)"
uniform = [-1.0, 1.0]
"#;
    let mut env = build(
        super::point_mass::Batch { n: 64, steps: 1, ..SMALL },
        &task(&format!("{PUSH}{start}")),
    )
    .unwrap();
    let mut out = Out::new(env.spec(), 100);
    out.reset(&mut env, false);
    let mut broken = 0;
    for _ in 0..20 {
        out.step(&mut env, &[0.0; 64]);
        assert!(out.policy.iter().copied().all(f32::is_finite));
        broken += out.valid.iter().filter(|&&v| v == 0.0).count() as u64;
    }
    // Half of all starts.
    assert!((500..780).contains(&broken), "{broken}");
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!((stats.faults[5], stats.episodes), (broken, 20 * 64 - broken));
}

#[test]
fn random_ages_spread_the_first_time_outs_and_stay_out_of_the_statistics() {
    let mut env =
        build(super::point_mass::Batch { n: 256, steps: 100, ..SMALL }, &task(PUSH)).unwrap();
    let mut out = Out::new(env.spec(), 2);
    out.reset(&mut env, true);
    let ages: Vec<f32> = (0..256).map(|e| out.policy[3 * e + 2] / 10.0).collect();
    assert!(ages.iter().all(|a| (0.0..100.0).contains(a)));
    let mean = ages.iter().sum::<f32>() / 256.0;
    assert!((mean - 50.0).abs() < 5.0 * 29.0 / 16.0, "{mean}");
    let mut ends = vec![0.0; 256];
    for _ in 0..100 {
        out.step(&mut env, &[1.0; 256]);
        ends.iter_mut().zip(&out.truncated).for_each(|(e, t)| *e += t);
    }
    assert!(ends.iter().all(|&e| e == 1.0));
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    let full = ages.iter().filter(|&&a| a == 0.0).count() as u64;
    assert_eq!(stats.episodes, full);
}

#[test]
fn commands_stay_in_range_and_change_when_due() {
    let command = r#"
[[command]]
name = "speed"
range = [[1.0, 2.0], [-3.0, -2.5]]
resample_s = 0.06
[[command]]
name = "fixed"
range = [[5.0, 6.0]]
[[observation]]
name = "command"
expr = "concat(command.speed, command.fixed)"
"#;
    let mut env =
        build(super::point_mass::Batch { steps: 50, ..SMALL }, &task(&format!("{PUSH}{command}")))
            .unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let mut last = out.policy.clone();
    for step in 1..50 {
        out.step(&mut env, &[0.0; 3]);
        for e in 0..3 {
            let (now, before) = (&out.policy[6 * e..6 * e + 6], &last[6 * e..6 * e + 6]);
            assert!(
                (1.0..2.0).contains(&now[3])
                    && (-3.0..-2.5).contains(&now[4])
                    && (5.0..6.0).contains(&now[5])
            );
            assert_eq!(now[3] != before[3], step % 3 == 0, "step {step}");
            assert_eq!(now[5], before[5]);
        }
        last.clone_from(&out.policy);
    }
}

#[test]
fn noise_is_bounded_spares_the_critic_and_can_be_switched_off() {
    let noisy = r#"
[[action]]
actuators = ["push"]
[[reward]]
name = "one"
expr = "1"
[[observation]]
name = "height"
expr = "pos(ball).z"
noise = 0.5
scale = 2
[[observation]]
name = "plain"
expr = "pos(ball).z"
[[observation]]
name = "secret"
expr = "step_count"
group = "critic"
"#;
    let mut env = build(super::point_mass::Batch { n: 100, ..SMALL }, &task(noisy)).unwrap();
    assert_eq!((env.spec().obs.policy, env.spec().obs.critic), (2, Some(3)));
    let table = env.spec().obs_table.critic.clone().unwrap();
    assert_eq!(
        table.iter().map(|r| (r.index, r.len, r.name.as_str())).collect::<Vec<_>>(),
        [(0, 1, "height"), (1, 1, "plain"), (2, 1, "secret")]
    );
    assert_eq!(table[0].unit, "m");
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let first = out.policy.clone();
    out.step(&mut env, &[0.0; 100]);
    let (mut low, mut high) = (f32::MAX, f32::MIN);
    for e in 0..100 {
        let x = out.policy[2 * e];
        assert_ne!(x, first[2 * e]);
        (low, high) = (low.min(x), high.max(x));
        assert_eq!(out.policy[2 * e + 1], 1.0);
        assert_eq!(out.critic.as_ref().unwrap()[3 * e..3 * e + 3], [2.0, 1.0, 1.0]);
    }
    assert!((1.0..1.2).contains(&low) && (2.8..=3.0).contains(&high), "{low} {high}");
    env.set_noise(false);
    out.step(&mut env, &[0.0; 100]);
    assert!(out.policy.chunks(2).all(|row| row == [2.0, 1.0]));
}

/// The bits of the single number where all have it; the critic's copy has sizes of its own.
#[test]
fn each_component_has_noise_of_its_own_size() {
    let rows = |keys: &str| {
        let text = format!(
            r#"
[[action]]
actuators = ["push"]
[[reward]]
name = "one"
expr = "1"
[[observation]]
name = "height"
expr = "[pos(ball).z, pos(ball).z, pos(ball).z]"
{keys}
[[observation]]
name = "two"
expr = "[pos(ball).z, pos(ball).z]"
noise = {{ each = [0.0, 0.5] }}
"#
        );
        let mut env = build(super::point_mass::Batch { n: 200, ..SMALL }, &task(&text)).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        out.step(&mut env, &[0.0; 200]);
        (out.policy, out.critic.unwrap_or_default())
    };
    for kind in ["", "noise_kind = \"normal\""] {
        let same = rows(&format!("noise = [0.5, 0.5, 0.5]\n{kind}"));
        assert_eq!(rows(&format!("noise = 0.5\n{kind}")).0, same.0);
        let copy = "critic = { noise = [0.0, 0.0, 0.25] }";
        let (own, critic) = rows(&format!("noise = [0.5, 0.0, 2.0]\n{kind}\n{copy}"));
        for (row, all) in own.chunks(5).zip(same.0.chunks(5)) {
            let times = |x: f32| 4.0 * (x - 1.0);
            assert_eq!([row[0], row[1], row[3]], [all[0], 1.0, 1.0]);
            assert!((row[2] - 1.0 - times(all[2])).abs() < 1e-5, "{row:?} {all:?}");
            assert!(row[4] != 1.0 && (0.5..=1.5).contains(&row[4]));
        }
        let seen = critic.chunks(5).map(|row| [row[0], row[1], (row[2] - 1.0).abs()]);
        let most = seen.inspect(|row| assert_eq!(row[..2], [1.0, 1.0])).map(|row| row[2]);
        assert!((0.2..=0.25).contains(&most.fold(0.0, f32::max)));
    }
}

#[test]
fn noise_is_uniform_or_normal_with_the_size_that_was_asked_for() {
    let noisy = r#"
[[action]]
actuators = ["push"]
[[reward]]
name = "one"
expr = "1"
[[observation]]
name = "even"
expr = "[pos(ball).z, pos(ball).z]"
noise = 0.5
[[observation]]
name = "normal"
expr = "[pos(ball).z, pos(ball).z, pos(ball).z]"
noise = 0.5
noise_kind = "normal"
[[observation]]
name = "named"
expr = "pos(ball).z"
noise = 0.5
noise_kind = "uniform"
"#;
    const N: usize = 4000;
    let mut env = build(super::point_mass::Batch { n: N, ..SMALL }, &task(noisy)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    out.step(&mut env, &vec![0.0; N]);
    let column = |at: usize| -> Vec<f64> {
        let rows = out.policy.chunks(6);
        rows.map(|row| f64::from(row[at]) - 1.0).collect()
    };
    let mean = |x: &[f64]| x.iter().sum::<f64>() / N as f64;
    let of = |x: &[f64], f: fn(f64) -> f64| mean(&x.iter().map(|x| f(*x)).collect::<Vec<_>>());
    for at in 0..6 {
        let x = column(at);
        let normal = (2..5).contains(&at);
        let (variance, fourth) = match normal {
            true => (0.25, 3.0),
            false => (0.25 / 3.0, 1.8),
        };
        let found = of(&x, |x| x * x);
        assert!(mean(&x).abs() < 0.03, "{at}: {}", mean(&x));
        assert!((found / variance - 1.0).abs() < 0.1, "{at}: {found}");
        let kurtosis = of(&x, |x| x.powi(4)) / (found * found);
        assert!((kurtosis / fourth - 1.0).abs() < 0.15, "{at}: {kurtosis}");
        let beyond = x.iter().filter(|x| x.abs() > 0.5).count();
        assert_eq!(beyond > 0, normal, "{at}: {beyond}");
        // Each has numbers of its own, also of the other kind.
        for other in at + 1..6 {
            let y = column(other);
            let product: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
            let scale = (found * of(&y, |y| y * y)).sqrt();
            assert!(mean(&product).abs() < 0.08 * scale, "{at} and {other}");
        }
    }
}

#[test]
fn rewards_are_scaled_by_the_step_and_clipped_when_asked() {
    let options = "[rewards]\nscale_by_dt = true\nclip = [0.0, 0.5]\n";
    let mut env = build(SMALL, &task(&format!("{options}{PUSH}"))).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    out.step(&mut env, &[-1.0, 0.1, 1.0]);
    assert_eq!(out.reward[0], 0.0);
    assert!((out.reward[1] - 0.02 * 10.1).abs() < 1e-6);
    assert_eq!(out.reward[2], 0.5);
}
