//! Augmented random search, by the real program: it learns, repeats, resumes, and says what
//! it needs.

use crate::common::{Place, TASK, assert_same_bits, metrics, root};

fn place() -> Place {
    let more = "
[ars]
step_size = 0.1
noise = 0.1
[collector]
reset_at_each_iter = true
";
    // Whole episodes: 20 steps.
    let task = TASK
        .replace("num_steps_per_env = 16", "num_steps_per_env = 20\nalgorithm = \"ars\"")
        .replace("num_envs = 8", "num_envs = 16");
    Place::with(&format!("{task}{more}"))
}

#[test]
fn it_learns_without_a_gradient() {
    let place = place();
    let run = place.train("a", 30, &[]);
    let lines = metrics(&run);
    let returns = |i: usize| lines[i]["Search/mean_return"].as_f64().unwrap();
    // 20 is what an episode can bring; a matrix of zeros falls after about 12 steps.
    assert!(returns(0) < 17.0 && returns(29) > 19.0, "{} {}", returns(0), returns(29));
    assert_eq!(lines[29]["Search/directions"], 8.0);
    assert_eq!(lines[29]["Guard/skipped_minibatches"], 0.0);
    // A matrix has no critic, no divergence, no entropy.
    for tag in ["Loss/value_function", "Loss/entropy", "Policy/kl", "Loss/surrogate"] {
        assert!(lines[29].get(tag).is_none(), "{tag}");
    }
    let said = place.ok(&["eval", "a", "--episodes", "16"]);
    assert!(said.contains("return"), "{said}");
}

#[test]
fn no_episode_of_the_first_rollout_is_cut_short() {
    let place = place();
    // Statistics of observations would take a rollout before it.
    let sets = ["task.termination.fallen.expr=\"false\"", "actor.obs_normalization=false"];
    let run = place.train("a", 1, &sets);
    assert_eq!(metrics(&run)[0]["Search/mean_return"], 20.0);
}

/// Agents of one world have its reward in common: a direction is a pair of worlds.
#[test]
fn agents_that_share_a_matrix_try_a_direction_together() {
    let place = Place::new();
    let legs = root().join("configs/half_cheetah_legs.toml");
    let more = [
        "agents.policies=shared",
        "runner.algorithm=ars",
        "collector.reset_at_each_iter=true",
        "env.num_envs=5",
        "env.episode_length_s=1",
        "runner.num_steps_per_env=20",
        "runner.max_iterations=2",
        "runner.eval_interval=0",
        "sim.specialize=off",
    ];
    let train = |out: &str, processes: &str| {
        let to = place.path(out);
        let args = ["train", legs.to_str().unwrap(), "--quiet", "--nproc", processes];
        place.ok(&[&args[..], &["--out", to.to_str().unwrap()], &more].concat());
        metrics(&to)
    };
    let (one, two) = (train("one", "1"), train("two", "2"));
    for (one, two) in one.iter().zip(&two) {
        let norm = |line: &serde_json::Value| line["Loss/grad_norm"].as_f64().unwrap();
        assert!(norm(one) > 0.0, "{one}");
        assert!((norm(one) - norm(two)).abs() < 1e-4 * norm(one), "{one} {two}");
        assert_eq!([&one["Search/directions"], &two["Search/directions"]], [2.0, 2.0]);
    }
    let said = place.ok(&[&["check", legs.to_str().unwrap()], &more[..]].concat());
    assert!(said.contains("2 directions tried"), "{said}");
}

#[test]
fn a_resumed_search_ends_with_the_bits_of_one_never_stopped() {
    let place = place();
    let whole = place.train("whole", 6, &[]);
    let parts = place.train("parts", 3, &[]);
    place.ok(&["train", "--resume", "parts", "--quiet", "runner.max_iterations=6"]);
    assert_same_bits(&whole, &parts);
}

#[test]
fn what_it_cannot_learn_from_is_refused_with_the_key() {
    let place = place();
    for (set, key) in [
        ("collector.reset_at_each_iter=false", "collector.reset_at_each_iter"),
        ("env.num_envs=1", "env.num_envs"),
        ("ars.noise=0", "ars.noise"),
        ("ars.step_size=-1", "ars.step_size"),
        ("collector.init_random_steps=5", "collector.init_random_steps"),
        ("runner.algorithm=arx", "did you mean \"ars\"?"),
    ] {
        let e = place.fails(2, &["train", "pole.toml", "--set", set]);
        assert!(e.contains(key), "{set}: {e}");
    }
}
