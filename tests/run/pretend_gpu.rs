//! Whole runs on the pretend GPU (`tests/pretend`): every learner, storage and guard with
//! `device = "cuda:0"`, compared with the same run on the processor.

use crate::common::carts::{CARTS, TWO};
use crate::common::{Place, REPLAY, TASK, assert_same_bits, metrics, text};
use crate::support::pretended::libraries;
use std::path::{Path, PathBuf};
use std::process::Output;

fn place() -> Place {
    Place::with(&format!("{TASK}{REPLAY}"))
}

/// `ostler train` on the pretend GPU, with variables.
fn on_the_gpu(place: &Place, out: &str, more: &[&str], variables: &[(&str, &str)]) -> Output {
    let args = ["train", "pole.toml", "--quiet", "--out", out, "--device", "cuda:0"];
    let mut command = place.ostler(&[&args[..], more].concat());
    command.envs(libraries().unwrap().variables());
    command.envs(variables.iter().copied()).output().unwrap()
}

fn trained(place: &Place, out: &str, more: &[&str]) -> PathBuf {
    let done = on_the_gpu(place, out, more, &[]);
    assert!(done.status.success(), "{more:?}\n{}", text(&done));
    let said = text(&done);
    assert!(!said.contains("[W"), "libtorch warns: {said}");
    place.path(out)
}

/// Means over a list of finished episodes, which on a GPU holds the last of each environment.
const OF_EPISODES: [&str; 4] =
    ["Train/mean_reward", "Train/mean_episode_length", "Train/early_mean", "Train/success_rate"];

/// Learning's and training's numbers of all iterations are those of the processor, but for
/// rounding.
fn assert_alike(gpu: &Path, cpu: &Path, what: &str) {
    let (gpu, cpu) = (metrics(gpu), metrics(cpu));
    assert_eq!(gpu.len(), cpu.len(), "{what}");
    let mut compared = 0;
    for (there, here) in gpu.iter().zip(&cpu) {
        for (tag, here) in here.as_object().unwrap() {
            let parts = [
                "Loss/",
                "Train/",
                "Policy/",
                "Guard/",
                "Episode_",
                "Replay/",
                "Eval/",
                "SelfPlay/",
            ];
            // Evaluations on a GPU do not log metrics (docs/metrics.md).
            let skipped = OF_EPISODES.contains(&&tag[..]) || tag.starts_with("Eval/Metrics/");
            if skipped || !parts.iter().any(|p| tag.starts_with(p)) {
                continue;
            }
            match (there[tag].as_f64(), here.as_f64()) {
                (Some(a), Some(b)) => {
                    let off = (a - b).abs() / b.abs().max(0.1);
                    assert!(off < 0.02, "{what}: {tag} is {a} on the GPU, {b} on the processor");
                    compared += 1;
                }
                (a, b) => assert_eq!(a, b, "{what}: {tag}"),
            }
        }
    }
    assert!(compared > 20, "{what}: {compared} numbers");
}

/// The same run on both, in float32: a GPU rounds factors further by itself.
fn alike(place: &Place, what: &str, more: &[&str]) {
    let more = &[more, &["learner.precision=float32"]].concat()[..];
    let gpu = trained(place, "gpu", more);
    let cpu = place.train("cpu", 3, more);
    assert_alike(&gpu, &cpu, what);
    for run in [gpu, cpu] {
        std::fs::remove_dir_all(run).unwrap();
    }
}

#[test]
fn policy_gradients_learn_what_they_learn_on_the_processor() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    let physics_on_the_host = "sim.device=cpu";
    for (what, more) in [
        ("PPO", &[][..]),
        ("physics on the host", &[physics_on_the_host]),
        (
            "physics on the host, nothing pinned",
            &[physics_on_the_host, "collector.pin_memory=false"],
        ),
        ("waits by an event", &["collector.cuda_sync=event"]),
        ("waits for the device", &["collector.cuda_sync=device"]),
        ("recurrent", &["actor.rnn_type=gru", "actor.rnn_hidden_dim=6"]),
        ("normalised returns", &["ppo.normalize_returns=true", "actor.layer_norm=true"]),
        ("rapier", &["sim.backend=rapier", physics_on_the_host]),
        (
            "recurrent, physics on the host",
            &[physics_on_the_host, "actor.rnn_type=gru", "actor.rnn_hidden_dim=6"],
        ),
        ("by the size of advantages", &["ppo.priority_alpha=0.8"]),
    ] {
        alike(&place, what, more);
    }
}

#[test]
fn replay_learns_what_it_learns_on_the_processor() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    let (sac, td3) = ("--profile=sac", "--profile=td3");
    for (what, more) in [
        ("SAC", &[sac][..]),
        ("TD3", &[td3]),
        ("on the device", &[sac, "replay.storage=device"]),
        ("in a file", &[sac, "replay.storage=memmap"]),
        ("tiered", &[td3, "replay.storage=tiered", "replay.recent=500"]),
        ("drawn ahead", &[sac, "replay.prefetch=2"]),
        ("drawn ahead, TD3", &[td3, "replay.prefetch=2"]),
        ("by priority", &[sac, "replay.sampler=prioritized", "replay.n_step=3"]),
    ] {
        alike(&place, what, more);
    }
    // Pinned batches are for a GPU alone, and go together with transforms.
    let transforms = "replay.transform=[{kind='noise', noise=0.01}, {kind='reward', scale=0.5}]";
    let pinned = ["--profile=td3", "replay.prefetch=2", transforms];
    let gpu = [&pinned[..], &["replay.pin_memory=true"]].concat();
    let (gpu, cpu) = (trained(&place, "gpu", &gpu), place.train("cpu", 3, &pinned));
    assert_alike(&gpu, &cpu, "pinned");
}

/// Threads that collect, copies of the policy on the processor.
#[test]
fn threads_feed_a_learner_on_the_gpu() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    let threads = [
        "collector.kind=async",
        "collector.workers=2",
        "collector.max_staleness=0",
        "sim.device=cpu",
    ];
    let directions = [
        "runner.algorithm=ars",
        "ars.top_directions=2",
        "runner.num_steps_per_env=40",
        "collector.reset_at_each_iter=true",
    ];
    alike(&place, "ARS", &[&threads[..], &directions].concat());
    // Its numbers depend on time.
    let behind = ["collector.max_staleness=1", "ppo.staleness_correction=vtrace"];
    trained(&place, "behind", &[&threads[..], &behind].concat());
    for device in ["collector.storing_device=auto", "collector.storing_device=cpu"] {
        alike(&place, device, &[&threads[..], &[device]].concat());
    }
}

#[test]
fn a_run_goes_on_after_it_was_killed_or_stopped() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    let save = "runner.save_interval=1";
    for more in [&[save][..], &[save, "--profile=sac"], &[save, "sim.device=cpu"]] {
        let whole = trained(&place, "whole", more);
        let kill = ["--inject", "kill phase=update iteration=3"];
        let killed = trained(&place, "killed", &[more, &kill].concat());
        assert_same_bits(&whole, &killed);
        // Evaluated and watched on a processor, and learnt further there.
        place.ok(&["eval", "whole", "--episodes", "4"]);
        for run in [whole, killed] {
            std::fs::remove_dir_all(run).unwrap();
        }
    }
}

#[test]
fn poisoned_numbers_are_skipped_and_rolled_back() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    for (fault, tag) in [
        ("nan gradient[7] update=2 minibatch=1", "Guard/skipped_minibatches"),
        ("nan loss update=2", "Guard/skipped_minibatches"),
        ("nan parameter[5] update=2", "Guard/roll_backs"),
    ] {
        let inject = ["--inject", fault];
        let gpu = trained(&place, "gpu", &inject);
        let last = metrics(&gpu).pop().unwrap();
        let sum: f64 = metrics(&gpu).iter().map(|l| l[tag].as_f64().unwrap()).sum();
        assert!(sum >= 1.0, "{fault}: {tag}");
        assert!(last["Loss/value_function"].as_f64().unwrap().is_finite());
        let cpu = place.train("cpu", 3, &inject);
        assert_alike(&gpu, &cpu, fault);
        for run in [gpu, cpu] {
            std::fs::remove_dir_all(run).unwrap();
        }
    }
    let broken =
        trained(&place, "broken", &["sim.device=cpu", "--inject", "nan qpos[1] env=3 step=30"]);
    let steps: f64 =
        metrics(&broken).iter().map(|l| l["Guard/broken_envs"].as_f64().unwrap()).sum();
    assert!(steps >= 1.0);
}

/// The memory of the device ends: the run goes on with fewer environments.
#[test]
fn a_full_gpu_makes_the_run_smaller() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    let fault = "fail allocation phase=update iteration=2";
    let gpu = trained(&place, "gpu", &["--inject", fault]);
    let last = metrics(&gpu).pop().unwrap();
    assert_eq!(last["Perf/num_envs"].as_f64(), Some(4.0));
    // The driver has no room for the stacks of a kernel's threads, the learner's too; libtorch
    // finds no memory, nor after it gave back its reserve.
    for fault in [
        "cuLaunchKernel@52=2",
        "cuLaunchKernel@74=2",
        "cuLaunchKernel@86=2",
        "cuLaunchKernel@100=2",
        "cuMemAlloc_v2@128=2;cuMemAlloc_v2@129=2",
    ] {
        let done = on_the_gpu(&place, "fault", &[], &[("FAKE_FAIL", fault)]);
        assert!(done.status.success(), "{fault}\n{}", text(&done));
        let last = metrics(&place.path("fault")).pop().unwrap();
        assert_eq!(last["Perf/num_envs"].as_f64(), Some(4.0), "{fault}");
        std::fs::remove_dir_all(place.path("fault")).unwrap();
    }
    // A state larger than the pieces in which it goes to the device.
    let large = [
        "env.num_envs=8192",
        "runner.num_steps_per_env=2",
        "runner.max_iterations=1",
        "ppo.num_learning_epochs=1",
        "runner.eval_interval=0",
    ];
    trained(&place, "large", &large);
    // No drill: the pretend driver has so little memory.
    let many = ["--set", "env.num_envs=4096", "--set", "back_off.min_num_envs=8"];
    let memory = [("FAKE_MEMORY", "16000000")];
    let done = on_the_gpu(&place, "small", &many, &memory);
    let said = text(&done);
    assert!(done.status.success(), "{said}");
    let last = metrics(&place.path("small")).pop().unwrap();
    let left = last["Perf/num_envs"].as_f64().unwrap();
    assert!((8.0..4096.0).contains(&left), "{left}: {said}");
}

#[test]
fn several_agents_learn_what_they_learn_on_the_processor() {
    if libraries().is_none() {
        return;
    }
    let place = Place::with(TWO);
    std::fs::write(place.path("robots/carts.xml"), CARTS).unwrap();
    for (what, more) in [
        ("one policy", &[][..]),
        ("separate policies", &["agents.policies=separate"]),
        ("a critic that sees all", &["agents.centralized_critic=true"]),
        ("self-play", &["self_play.window=2", "self_play.save_interval=1"]),
    ] {
        alike(&place, what, more);
    }
}

/// Choices in place of numbers; a policy that learns from another.
#[test]
fn other_tasks_learn_what_they_learn_on_the_processor() {
    if libraries().is_none() {
        return;
    }
    let actuators = "actuators = [\"slide\"]";
    let discrete = format!("{actuators}\nkind = \"discrete\"\nchoices = [[-1.0], [1.0]]");
    let choices = Place::with(&TASK.replacen(actuators, &discrete, 1));
    alike(&choices, "choices", &[]);
    let first = "[[task.observation]]";
    let group =
        "[[task.observation]]\nname = \"all\"\nexpr = \"[qpos, qvel]\"\ngroup = \"teacher\"\n";
    let taught = Place::with(&TASK.replacen(first, &format!("{group}{first}"), 1));
    let task = std::fs::read_to_string(taught.path("pole.toml")).unwrap();
    std::fs::write(taught.path("pole.toml"), TASK).unwrap();
    taught.train("teacher", 3, &[]);
    std::fs::write(taught.path("pole.toml"), task).unwrap();
    alike(&taught, "a teacher", &["ppo.imitation.teacher=teacher"]);
}

/// Functions of a C++ header are a part of the task's program.
#[test]
fn native_functions_run_on_the_gpu() {
    if libraries().is_none() {
        return;
    }
    let native = crate::common::natives::place();
    alike(&native, "native functions", &["--allow-native"]);
}

#[test]
fn the_configured_precision_is_computed_with() {
    if libraries().is_none() {
        return;
    }
    let place = place();
    let losses = |precision: &str, libtorch: &str| {
        let key = format!("learner.precision={precision}");
        let run = trained(&place, precision, &[&key]);
        let meta = std::fs::read_to_string(run.join("meta.json")).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
        assert_eq!(meta["libtorch_matmul_precision"], libtorch, "{meta}");
        metrics(&run)[0]["Loss/value_function"].as_f64().unwrap()
    };
    let (exact, rounded) = (losses("float32", "highest"), losses("tf32", "high"));
    let off = (exact - rounded).abs() / exact;
    assert!((1e-7..0.02).contains(&off), "{exact}, {rounded}");
}
