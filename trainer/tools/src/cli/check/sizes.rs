//! What `ostler check` says of sizes: of an iteration, of the replay buffer, of the run.

use ostler_learn::config::{Config, Loaded};
use ostler_run::log::outln;
use ostler_run::log::progress::thousands;
use ostler_run::run::RunError;
use ostler_sim::env::EnvSpec;

/// Prints them.
pub(super) fn sizes(loaded: &Loaded, spec: &EnvSpec) -> Result<(), RunError> {
    let config = &loaded.config;
    let envs = config.envs();
    let t = config.runner.num_steps_per_env as f64;
    let m = spec.agents_per_env();
    // From the fewest to the most, where their number follows a schedule.
    let each = |text: &dyn Fn(usize) -> String| {
        let (least, most) = (text(envs.least), text(envs.most));
        if least == most { least } else { format!("{least} to {most}") }
    };
    let learning = each(&|n| {
        let mut config: Config = config.clone();
        config.env.num_envs = n;
        config.runner.algorithm.describe(&config)
    });
    let agents = match spec.agents.is_empty() {
        true => String::new(),
        false => format!(" of {m} agents ({} rows)", each(&|n| (n * m).to_string())),
    };
    outln!(
        "iteration: {} environments{agents} x {t} steps = {} transitions, {learning}",
        each(&|n| n.to_string()),
        each(&|n| thousands((n * m) as f64 * t)),
    );
    if config.runner.algorithm.off_policy() {
        let layout = config.replay.layout(spec);
        let layout = layout.map_err(|e| RunError::from(loaded.places.explain(&e)))?;
        let each = layout.bytes_per_transition() as u64;
        let capacity = config.replay.capacity as u64;
        let policies = match spec.policy_names.len() {
            0 | 1 => "",
            _ => ", for each policy",
        };
        outln!(
            "replay memory: {} transitions of {each} bytes, {} MiB{policies}",
            thousands(capacity as f64),
            thousands(((each * capacity) >> 20) as f64)
        );
    }
    outln!(
        "run: at most {} iterations, {} environment steps",
        config.runner.max_iterations,
        thousands(envs.in_all * t)
    );
    Ok(())
}
