//! Pins: an environment that breaks is counted by what was wrong first, by name; faults
//! can be injected where they would arise.

use super::point_mass::{Batch, Out, SMALL, build, model, task};
use ostler_sim::EpisodeStats;
use ostler_sim::config::{Backend, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, Injection, Value, What, When, Which};

const TASK: &str = r#"
[[action]]
actuators = ["push", "servo"]
[[observation]]
name = "state"
expr = "concat(qpos, qvel)"
[[observation]]
name = "log"
expr = "log(2.5 - action.x)"
[[observation]]
name = "secret"
expr = "log(3.5 - action.x)"
group = "critic"
[[reward]]
name = "alive"
expr = "1"
[[reward]]
name = "root"
expr = "sqrt(1.5 - action.x)"
weight = 3
"#;

fn counts(env: &BatchEnv, stats: &EpisodeStats) -> Vec<(String, u64)> {
    let names = env.spec().cause_names.iter().cloned();
    let all = names.zip(stats.causes.iter().copied());
    all.filter(|(_, n)| *n > 0).collect()
}

fn taken(env: &mut BatchEnv) -> EpisodeStats {
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    stats
}

fn named(env: &BatchEnv, stats: &EpisodeStats) -> Vec<String> {
    let names = &env.spec().cause_names;
    let name = |b: &ostler_sim::env::Break| names[b.cause as usize].clone();
    stats.breaks.iter().map(name).collect()
}

fn start(b: Batch, task: &TaskConfig) -> (BatchEnv, Out) {
    let mut env = build(b, task).unwrap();
    let mut out = Out::new(env.spec(), 4);
    out.reset(&mut env, false);
    (env, out)
}

/// Steps with these first actions of environments 0, 1 and 2; the second is 0.
fn push(env: &mut BatchEnv, out: &mut Out, first: [f32; 3]) {
    let [a, b, c] = first;
    out.step(env, &[a, 0.0, b, 0.0, c, 0.0]);
}

#[test]
fn a_break_is_counted_by_what_was_wrong_first() {
    let (mut env, mut out) = start(Batch { steps: 99, ..SMALL }, &task(TASK));
    env.begin_rollout();
    push(&mut env, &mut out, [1.0; 3]);
    // Beyond 1.5 the reward's root, beyond 2.5 the logarithm too: the reward is first.
    push(&mut env, &mut out, [2.0, 1.0, 3.0]);
    assert_eq!(out.valid, [0.0, 1.0, 0.0]);
    let stats = taken(&mut env);
    assert_eq!(counts(&env, &stats), [("nan/reward/root".to_string(), 2)]);
    assert_eq!(stats.broken(), 2);
    let b = stats.breaks[1];
    assert_eq!((b.env, b.step, b.age), (2, 1, 2));
    assert!(b.value.is_nan());
    assert_eq!(taken(&mut env).broken(), 0, "taken once");

    let mut lenient = task(TASK);
    lenient.reward.pop();
    let (mut env, mut out) = start(Batch { first: 50, ..SMALL }, &lenient);
    push(&mut env, &mut out, [1.0, 3.0, 3.6]);
    out.step(&mut env, &[1.0, f32::NAN, 1.0, 0.0, f32::INFINITY, 0.0]);
    let stats = taken(&mut env);
    assert_eq!(
        named(&env, &stats),
        ["nan/observation/log", "nan/observation/log", "nan/action/servo", "inf/action/push"]
    );
    assert_eq!(stats.breaks.iter().map(|b| b.env).collect::<Vec<_>>(), [51, 52, 50, 52]);
    assert!(stats.breaks[3].value == f32::INFINITY);

    lenient.observation.remove(1);
    let (mut env, mut out) = start(SMALL, &lenient);
    push(&mut env, &mut out, [1.0, 3.0, 3.6]);
    assert_eq!(out.valid, [1.0, 1.0, 0.0]);
    let stats = taken(&mut env);
    assert_eq!(named(&env, &stats), ["nan/critic_observation/secret"]);
}

#[test]
fn a_reward_beyond_the_limit_is_a_break_of_its_largest_term() {
    let mut limited = task(TASK);
    limited.observation.truncate(1);
    limited.rewards.max_abs = Some(10.0);
    limited.rewards.clip = Some([-1.0, 1.0]);
    let (mut env, mut out) = start(SMALL, &limited);
    // 1 + 3 sqrt(1.5 - a): 10 at a = -7.5, and the motor's range ends at -3.
    push(&mut env, &mut out, [-3.0, 0.0, 1.0]);
    assert_eq!(out.valid, [1.0; 3]);
    limited.reward[1].weight = -8.0;
    let (mut env, mut out) = start(SMALL, &limited);
    push(&mut env, &mut out, [-3.0, 0.0, 1.0]);
    assert_eq!(out.valid, [0.0, 1.0, 1.0]);
    let stats = taken(&mut env);
    assert_eq!(named(&env, &stats), ["bound/reward/root"]);
    assert!((stats.breaks[0].value + 8.0 * 4.5f32.sqrt()).abs() < 1e-5);
    limited.rewards.max_abs = Some(0.0);
    let error = build(SMALL, &limited).unwrap_err().to_string();
    assert!(error.contains("task.rewards.max_abs"), "{error}");
}

#[test]
fn many_breaks_at_once_are_all_counted_and_few_are_looked_at() {
    let b = Batch { n: 300, ..SMALL };
    let (mut env, mut out) = start(b, &task(TASK));
    out.step(&mut env, &[f32::NAN; 600]);
    let stats = taken(&mut env);
    assert_eq!(
        counts(&env, &stats),
        [("nan/action/push".to_string(), 256), ("unexamined/others".to_string(), 44)]
    );
    assert_eq!(stats.breaks.len(), 16);
    assert_eq!(stats.faults[3], 300);
}

fn injection(when: When, env: Which, what: What, value: Value) -> Injection {
    Injection { when, env, what, value }
}

#[test]
fn injected_faults_break_the_environment_that_is_meant_at_the_place_that_is_meant() {
    let mut plain = task(TASK);
    plain.observation.truncate(1);
    plain.reward.truncate(1);
    let b = Batch { n: 150, threads: 2, steps: 99, first: 1000, ..SMALL };
    let actions = vec![0.5; 300];
    let run = |list: Vec<Injection>| {
        let (mut env, mut out) = start(b, &plain);
        env.inject(list).unwrap();
        let mut bad = Vec::new();
        for step in 1..=7 {
            out.step(&mut env, &actions);
            assert!(out.policy.iter().all(|x| x.is_finite()));
            let broken = (0..b.n).filter(|e| out.valid[*e] == 0.0);
            bad.extend(broken.map(|e| (step, e)));
        }
        let stats = taken(&mut env);
        (bad, counts(&env, &stats), out)
    };
    let (_, _, clean) = run(Vec::new());
    for (what, value, cause) in [
        (What::Qvel(0), Value::Nan, "nan/joint/slider"),
        (What::Qpos(1), Value::Inf, "inf/joint/turn"),
        (What::Qpos(0), Value::Number(5e3), "position/joint/slider"),
        (What::Action(1), Value::Inf, "inf/action/servo"),
        (What::Observation(2), Value::Nan, "nan/observation/state"),
        (What::Reward, Value::Nan, "nan/reward/sum_of_terms"),
    ] {
        let (bad, causes, out) = run(vec![injection(When::At(3), Which::One(1070), what, value)]);
        if what == What::Qpos(1) {
            // This engine's servo forgets where it was: no harm, no break.
            assert_eq!((bad, causes), (vec![], vec![]));
            continue;
        }
        assert_eq!(bad, [(3, 70)], "{what:?}");
        assert_eq!(causes, [(cause.to_string(), 1)], "{what:?}");
        for e in (0..b.n).filter(|e| *e != 70) {
            assert_eq!(out.policy[17 * e..][..17], clean.policy[17 * e..][..17]);
        }
    }
    let every = injection(When::Every(3), Which::One(1002), What::Reward, Value::Inf);
    assert_eq!(run(vec![every]).0, [(3, 2), (6, 2)]);
    let nobody = injection(When::Every(1), Which::One(1150), What::Reward, Value::Nan);
    assert_eq!(run(vec![nobody]).0, []);
    let share = injection(When::Every(1), Which::Share(0.1), What::Action(0), Value::Nan);
    let (bad, _, _) = run(vec![share.clone()]);
    assert!((60..150).contains(&bad.len()), "a tenth of 1050, got {}", bad.len());
    assert_eq!(run(vec![share]).0, bad, "drawn from the seed");
}

#[test]
fn a_panic_in_a_worker_breaks_its_block_and_nobody_else() {
    let mut plain = task(TASK);
    plain.observation.truncate(1);
    plain.reward.truncate(1);
    for threads in [1, 3] {
        let b = Batch { n: 200, threads, steps: 99, ..SMALL };
        let (mut env, mut out) = start(b, &plain);
        let panic = injection(When::At(2), Which::One(130), What::Panic, Value::Nan);
        env.inject(vec![panic]).unwrap();
        let actions = vec![0.5; 400];
        for _ in 0..2 {
            out.step(&mut env, &actions);
        }
        let broken: Vec<usize> = (0..200).filter(|e| out.valid[*e] == 0.0).collect();
        assert!(broken.contains(&130) && broken.len() < 200, "{broken:?}");
        assert!(broken.windows(2).all(|w| w[1] == w[0] + 1));
        let stats = taken(&mut env);
        assert_eq!(counts(&env, &stats), [("engine/failed".to_string(), broken.len() as u64)]);
        for _ in 0..5 {
            out.step(&mut env, &actions);
            assert_eq!(out.valid, vec![1.0; 200]);
        }
        // Those of other blocks are seven steps on, those of this one five.
        let cart = |e: usize| out.policy[17 * e];
        assert!(cart(0) > cart(130) && cart(130) > 0.0);
    }
}

#[test]
fn injections_that_cannot_be_are_refused_by_name() {
    let (mut env, _) = start(SMALL, &task(TASK));
    let of = |when, env, what| injection(when, env, what, Value::Nan);
    let (at, one) = (When::At(1), Which::One(0));
    for (bad, part) in [
        (of(When::At(0), one, What::Reward), "fault[1].when"),
        (of(When::Every(0), one, What::Reward), "fault[1].when"),
        (of(at, Which::Share(1.5), What::Reward), "fault[1].env"),
        (of(at, one, What::Qpos(9)), "among 9 positions"),
        (of(at, one, What::Action(2)), "among 2 actions"),
        (of(at, one, What::Observation(18)), "among 18 observations"),
    ] {
        let good = of(at, one, What::Reward);
        let error = env.inject(vec![good, bad]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let text = "when = { every = 50 }\nenv = { share = 0.1 }\nwhat = { qvel = 3 }\nvalue = \"inf\"";
    let read: Injection = toml::from_str(text).unwrap();
    let want = injection(When::Every(50), Which::Share(0.1), What::Qvel(3), Value::Inf);
    assert_eq!(read, want);
    let read: Injection =
        toml::from_str("when = { at = 7 }\nenv = { one = 3 }\nwhat = \"reward\"\nvalue = 1e9")
            .unwrap();
    assert_eq!(read.value, Value::Number(1e9));
}

#[test]
fn both_engines_name_the_joint_that_an_injection_broke() {
    for backend in [Backend::Native, Backend::Rapier] {
        let sim = SimConfig { backend, specialize: Specialize::Off, ..SimConfig::default() };
        let config = EnvConfig { num_envs: 20, ..EnvConfig::default() };
        let mut plain = task(TASK);
        plain.observation.truncate(1);
        plain.reward.truncate(1);
        let mut env = BatchEnv::new(model(), &sim, &config, &plain, 3).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        let at = |step, what, value| injection(When::At(step), Which::One(7), what, value);
        env.inject(vec![
            at(2, What::Qvel(1), Value::Nan),
            at(4, What::Qpos(0), Value::Nan),
            at(6, What::Qvel(4), Value::Inf),
            at(8, What::Qvel(0), Value::Number(5e3)),
        ])
        .unwrap();
        for step in 1..=10 {
            out.step(&mut env, &[0.5; 40]);
            let broken: Vec<usize> = (0..20).filter(|e| out.valid[*e] == 0.0).collect();
            let want: &[usize] = if step % 2 == 0 && step < 10 { &[7] } else { &[] };
            assert_eq!(broken, want, "{backend:?} step {step}");
            assert!(out.policy.iter().all(|x| x.is_finite()));
        }
        let stats = taken(&mut env);
        let names = named(&env, &stats);
        assert_eq!(names[..2], ["nan/joint/turn", "nan/joint/slider"], "{backend:?}");
        assert!(names[2].ends_with("/joint/root"), "{backend:?}: {}", names[2]);
        let speed = match backend {
            Backend::Native => "speed/joint/slider",
            Backend::Rapier => "speed/body/cart",
        };
        assert_eq!(names[3], speed);
    }
}
