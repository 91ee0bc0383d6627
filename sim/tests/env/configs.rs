//! Pins: every configuration in `configs/` builds and runs with random actions, all
//! finite, and its sizes are the published ones.

use ostler_sim::EpisodeStats;
use ostler_sim::config::{Backend, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{ActionSpace, BatchEnv, Groups, StepOut};
use ostler_sim::model::mjcf;
use ostler_sim::rng::{Purpose, fill_normal};
use std::path::Path;
use std::sync::Arc;

/// The tables of a run that concern simulation; the others are the trainer's.
#[derive(serde::Deserialize)]
struct Run {
    name: String,
    description: String,
    #[serde(default)]
    sim: SimConfig,
    env: EnvConfig,
    task: TaskConfig,
}

/// Both engines.
const BACKENDS: [Backend; 2] = [Backend::Native, Backend::Rapier];

fn load(name: &str, num_envs: usize, backend: Backend) -> (Run, BatchEnv) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    let mut run: Run = toml::from_str(&text).unwrap();
    assert_eq!(run.sim.backend, Backend::Native, "as it is shipped");
    run.env.num_envs = num_envs;
    run.sim.backend = backend;
    run.sim.specialize = Specialize::Off;
    let model = mjcf::load(&folder.join(&run.task.robot)).unwrap();
    let env = BatchEnv::new(Arc::new(model), &run.sim, &run.env, &run.task, 1).unwrap();
    (run, env)
}

/// [`wander_on`] both engines.
fn wander(name: &str, sizes: (usize, Option<usize>, usize), step_dt: f64) -> [EpisodeStats; 2] {
    BACKENDS.map(|backend| wander_on(backend, name, sizes, step_dt))
}

/// 200 steps of random actions with 16 environments; statistics of the episodes.
fn wander_on(
    backend: Backend,
    name: &str,
    sizes: (usize, Option<usize>, usize),
    step_dt: f64,
) -> EpisodeStats {
    let n = 16;
    let (run, mut env) = load(name, n, backend);
    assert_eq!(run.name, name);
    assert!(!run.description.is_empty());
    let spec = env.spec().clone();
    assert_eq!((spec.obs.policy, spec.obs.critic), (sizes.0, sizes.1));
    assert_eq!(spec.action, ActionSpace::Continuous(sizes.2));
    assert!(
        (spec.step_dt - step_dt).abs() < 1e-12 && spec.max_episode_steps == 1000,
        "{}",
        spec.step_dt
    );
    let mut policy = vec![0.0; n * spec.obs.policy];
    let mut critic = spec.obs.critic.map(|c| vec![0.0; n * c]);
    let (mut final_policy, mut final_critic) = (policy.clone(), critic.clone());
    let mut columns = vec![vec![0.0; n]; 4];
    let mut slot = vec![0; n];
    let mut actions = vec![0.0; n * sizes.2];
    env.reset(true, &mut Groups { policy: &mut policy, critic: critic.as_deref_mut() });
    let mut moved = 0.0;
    for step in 0..200 {
        fill_normal(3, 0..n as u32, Purpose::ActionNoise, step, sizes.2, &mut actions);
        let [reward, terminated, truncated, valid] =
            columns.get_disjoint_mut([0, 1, 2, 3]).unwrap();
        env.step(
            &actions,
            &mut StepOut {
                obs: Groups { policy: &mut policy, critic: critic.as_deref_mut() },
                reward,
                terminated,
                truncated,
                valid,
                final_obs: Groups {
                    policy: &mut final_policy,
                    critic: final_critic.as_deref_mut(),
                },
                final_slot: &mut slot,
            },
        );
        let all = policy.iter().chain(critic.iter().flatten()).chain(&columns[0]);
        assert!(all.copied().all(f32::is_finite), "{name} step {step}");
        assert!(
            columns[3].iter().all(|&v| v == 1.0),
            "{name} step {step}: {:?}",
            env.physics().state().fault
        );
        moved += policy.iter().map(|x| x.abs()).sum::<f32>();
    }
    assert!(moved > 1.0);
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    stats
}

#[test]
fn cartpole_has_the_sizes_of_inverted_pendulum_v5_and_falls_at_random() {
    for stats in wander("cartpole", (4, None, 1), 0.04) {
        assert!(stats.episodes > 16 && stats.terminations[1] == stats.episodes);
        let mean = stats.return_sum / stats.episodes as f64;
        // A random policy holds the pole for some steps; the last step gives nothing.
        assert!((3.0..60.0).contains(&mean), "{mean}");
        assert!((stats.length_sum - stats.return_sum - stats.episodes as f64).abs() < 1e-6);
    }
}

#[test]
fn double_pendulum_runs() {
    for stats in wander("double_pendulum", (8, None, 1), 0.05) {
        assert!(stats.episodes > 16);
    }
}

#[test]
fn double_pendulum_positions_hides_velocities() {
    // Eight numbers for a teacher; the critic sees what the policy sees.
    let (_, env) = load("double_pendulum_positions", 1, Backend::Native);
    assert_eq!(env.spec().critic, None);
    assert_eq!(env.spec().group("teacher").map(|g| g.width), Some(8));
    for stats in wander("double_pendulum_positions", (5, Some(8), 1), 0.05) {
        assert!(stats.episodes > 16);
    }
}

#[test]
fn hopper_has_the_sizes_of_hopper_v5() {
    wander("hopper", (11, None, 3), 0.008);
}

#[test]
fn half_cheetah_has_the_sizes_of_half_cheetah_v5() {
    wander("half_cheetah", (17, None, 6), 0.05);
}

#[test]
fn ant_has_the_sizes_of_ant_v5_without_contact_forces() {
    wander("ant", (27, None, 8), 0.05);
}

/// Who names a task of Gymnasium's has its observation, or says what it lacks; and the
/// page of shipped configurations lists what `ostler envs` prints.
#[test]
fn descriptions_say_what_differs_from_gymnasiums_tasks() {
    let published = [
        ("InvertedPendulum-v5", 4),
        ("InvertedDoublePendulum-v5", 9),
        ("Hopper-v5", 11),
        ("HalfCheetah-v5", 17),
        ("Ant-v5", 105),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let page = std::fs::read_to_string(folder.join("../docs/shipped.md")).unwrap();
    let mut checked = 0;
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        let file = entry.file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".toml") else {
            continue;
        };
        let table: toml::Table =
            toml::from_str(&std::fs::read_to_string(entry.path()).unwrap()).unwrap();
        let text = table["description"].as_str().unwrap();
        let listed = (page.lines()).find(|l| l.starts_with(&format!("configs/{file} ")));
        let said = listed.and_then(|l| l.split_once(' ')).map(|l| l.1.trim());
        assert_eq!(said, Some(text), "{file} in docs/shipped.md");
        let Some((_, width)) = (published.iter()).find(|(id, _)| text.contains(&format!("({id}")))
        else {
            assert!(!text.contains("-v5"), "{name}: how wide is it? {text}");
            continue;
        };
        // Split among agents, each sees a part.
        if table.contains_key("agents") {
            continue;
        }
        let own = load(name, 1, Backend::Native).1.spec().obs.policy;
        if own != *width {
            let words = format!("{own} of {width} numbers");
            assert!(text.contains("without") && text.contains(&words), "{text}");
        }
        checked += 1;
    }
    assert_eq!(checked, 5);
}

#[test]
fn quadruped_follows_the_usual_layout() {
    wander("quadruped", (48, Some(53), 12), 0.02);
}

#[test]
fn a_snapshot_goes_on_with_the_same_bits_on_either_engine() {
    let robots = ["cartpole", "quadruped"];
    for (name, backend) in robots.iter().flat_map(|name| BACKENDS.map(|b| (*name, b))) {
        let n = 8;
        let play = |env: &mut BatchEnv, steps: std::ops::Range<u64>| {
            let spec = env.spec().clone();
            let mut policy = vec![0.0; n * spec.obs.policy];
            let mut critic = spec.obs.critic.map(|c| vec![0.0; n * c]);
            let (mut final_policy, mut final_critic) = (policy.clone(), critic.clone());
            let mut columns = vec![vec![0.0; n]; 4];
            let mut slot = vec![0; n];
            let width = spec.action.width();
            let mut actions = vec![0.0; n * width];
            let mut seen = Vec::new();
            if steps.start == 0 {
                env.reset(true, &mut Groups { policy: &mut policy, critic: critic.as_deref_mut() });
            }
            for step in steps {
                fill_normal(3, 0..n as u32, Purpose::ActionNoise, step, width, &mut actions);
                let [reward, terminated, truncated, valid] =
                    columns.get_disjoint_mut([0, 1, 2, 3]).unwrap();
                env.begin_rollout();
                env.step(
                    &actions,
                    &mut StepOut {
                        obs: Groups { policy: &mut policy, critic: critic.as_deref_mut() },
                        reward,
                        terminated,
                        truncated,
                        valid,
                        final_obs: Groups {
                            policy: &mut final_policy,
                            critic: final_critic.as_deref_mut(),
                        },
                        final_slot: &mut slot,
                    },
                );
                let all =
                    policy.iter().chain(critic.iter().flatten()).chain(columns.iter().flatten());
                seen.extend(all.map(|x| x.to_bits()));
            }
            seen
        };
        let (_, mut env) = load(name, n, backend);
        play(&mut env, 0..40);
        let mut blob = Vec::new();
        env.capture(&mut blob).unwrap();
        let straight = play(&mut env, 40..120);
        let (_, mut other) = load(name, n, backend);
        other.restore(&blob).unwrap();
        assert!(play(&mut other, 40..120) == straight, "{name} {backend:?}");
        let (mut ours, mut theirs) = (EpisodeStats::default(), EpisodeStats::default());
        env.take_stats(&mut ours);
        other.take_stats(&mut theirs);
        assert_eq!(ours, theirs, "{name} {backend:?}");
    }
}
