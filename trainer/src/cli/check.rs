//! `ostler check`: is the configuration sound, and what does it come to?

use super::ConfigArgs;
use crate::config::{Config, Gpus};
use crate::log::outln;
use crate::log::progress::thousands;
use crate::memory::fit::foreseen;
use crate::run::{RunError, check_teacher, foresee_kernel, generic, one_env, plan};
use clap::Args;
use ostler_collector::replay::Layout;
use ostler_sim::Groups;
use ostler_sim::Model;
use ostler_sim::config::{ActionKind, Backend};
use ostler_sim::env::{ActionSpace, BatchEnv, EnvSpec, ObsRow};
use ostler_sim::model::JointKind;
use ostler_sim::physics::native;
use ostler_sim::task::pose::Pose;

/// Flags of `ostler check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Leave out the resolved configuration
    #[arg(long, short)]
    quiet: bool,
}

/// Validates and prints.
pub fn run(args: &CheckArgs) -> Result<i32, RunError> {
    let (file, overrides) = args.config.required()?;
    let (loaded, model, notes) = plan(&file, &overrides, None, Gpus::HERE)?;
    let config = &loaded.config;
    let env = one_env(&loaded, &model)?;
    let kernel = foresee_kernel(&loaded, &model)?;
    if !args.quiet {
        let text = toml::to_string(config)
            .map_err(|e| RunError::Usage(format!("the configuration cannot be written: {e}")))?;
        outln!("{text}");
    }
    robot(&model);
    let spec = env.spec();
    check_teacher(&loaded, spec)?;
    observations(spec);
    actions(config, &model, &env);
    pose(&model, env.pose());
    outln!("\nreward");
    for term in &config.task.reward {
        outln!(
            "  {:20} {:>8}  {}",
            term.name,
            term.weight,
            one_line(&term.expr)
        );
    }
    if !spec.agents.is_empty() {
        outln!("  logged as: {}", spec.reward_names.join(", "));
    }
    outln!("\ntermination: {}", spec.termination_names.join(", "));
    for (i, (text, numbers)) in env.remembered().enumerate() {
        if i == 0 {
            outln!("\nremembered from step to step");
        }
        outln!("  {numbers:>8}  {}", one_line(&text));
    }
    let layout = config.replay.layout(spec);
    let layout = layout.map_err(|e| RunError::from(loaded.places.explain(&e)))?;
    sizes(config, spec, &layout);
    outln!("{}", foreseen(&loaded, &model)?);
    match kernel.line() {
        Some(line) => outln!("\n{line}"),
        None => outln!("\nphysics: {}", config.sim.backend.name()),
    }
    for note in env.physics().notes() {
        outln!("  {note}");
    }
    if config.sim.backend == Backend::Rapier {
        match native::foresee(&model, &generic(&config.sim)) {
            Ok(_) => outln!("  sim.backend = \"native\" supports all of this robot"),
            Err(e) => outln!("  sim.backend = \"native\" does not do: {e}"),
        }
    }
    for note in notes {
        outln!("note: {note}");
    }
    outln!("{} is sound", file.display());
    Ok(0)
}

fn one_line(expr: &str) -> String {
    expr.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn robot(m: &Model) {
    let mass: f64 = m.bodies.iter().skip(1).map(|b| b.mass).sum();
    outln!(
        "robot {}: {} bodies, {} joints, {} actuators, nq {}, nv {}, {mass:.3} kg, time step {} s",
        m.name,
        m.bodies.len().saturating_sub(1),
        m.joints.len(),
        m.nu(),
        m.nq,
        m.nv,
        m.options.timestep
    );
    for i in &m.ignored {
        outln!("  ignored {} at {}: {}", i.what, i.place, i.why);
    }
}

/// The table of observations: of several agents, of the first of each policy.
fn observations(spec: &EnvSpec) {
    let tables = |of: &str, t: &Groups<Vec<ObsRow>>| {
        table(&format!("observation (policy){of}"), &t.policy);
        if let Some(rows) = &t.critic {
            table(&format!("observation (critic){of}"), rows);
        }
    };
    let groups = || {
        for group in &spec.groups {
            table(&format!("observation (group {})", group.name), &group.table);
        }
    };
    if spec.agents.is_empty() {
        tables("", &spec.obs_table);
        return groups();
    }
    let names: Vec<&str> = spec.agents.iter().map(|a| a.name.as_str()).collect();
    outln!("\nagents: {}", names.join(", "));
    for (p, policy) in spec.policy_names.iter().enumerate() {
        let mut own = spec.agents.iter().filter(|a| a.policy == p);
        let names: Vec<&str> = own.clone().map(|a| a.name.as_str()).collect();
        outln!("  policy {policy} decides for {}", names.join(", "));
        if let Some(agent) = own.next() {
            tables(&format!(" of {}", agent.name), &agent.obs_table);
        }
    }
    groups();
}

fn table(title: &str, rows: &[ObsRow]) {
    outln!("\n{title}");
    outln!("  {:>9}  {:20} {:10} expression", "index", "name", "unit");
    for r in rows {
        let index = match r.len {
            1 => r.index.to_string(),
            n => format!("{}..{}", r.index, r.index + n - 1),
        };
        outln!(
            "  {index:>9}  {:20} {:10} {}",
            r.name,
            r.unit,
            one_line(&r.expr)
        );
    }
}

fn actions(config: &Config, model: &Model, env: &BatchEnv) {
    let spec = env.spec();
    let decision = |space: ActionSpace| match space {
        ActionSpace::Continuous(n) => format!("{n} numbers"),
        ActionSpace::Discrete(n) => format!("one of {n} choices"),
    };
    outln!("\naction: {}", decision(spec.action));
    for agent in &spec.agents {
        outln!("  {}: {}", agent.name, decision(agent.action));
    }
    for term in &config.task.action {
        let about = match term.kind {
            ActionKind::Position => ", about the default pose",
            _ => "",
        };
        outln!("  {:?} on {}{about}", term.kind, term.actuators.join(", "));
    }
    for (i, a) in model.actuators.iter().enumerate() {
        let target = model.target(a);
        let range = match a.ctrlrange {
            Some([low, high]) => format!("{low}..{high}"),
            None => "unlimited".into(),
        };
        let held = env.held().iter().find(|(u, _)| *u == i);
        let held = held.map_or(String::new(), |(_, c)| format!(", held at {c}"));
        outln!(
            "  {:20} {:10} {target:26} control {range}{held}",
            a.name,
            a.element
        );
    }
}

/// The pose that position targets and `joint_pos_rel` are relative to.
fn pose(model: &Model, pose: &Pose) {
    outln!("\ndefault pose: {}", pose.name);
    let unit = |kind: JointKind| match kind {
        JointKind::Hinge => Some("rad"),
        JointKind::Slide => Some("m"),
        JointKind::Ball | JointKind::Free => None,
    };
    let joints = model.joints.iter();
    let scalar = joints.filter_map(|j| Some((&j.name, pose.qpos[j.qpos_adr], unit(j.kind)?)));
    let (away, zero): (Vec<_>, Vec<_>) = scalar.partition(|(_, q, _)| *q != 0.0);
    for (name, q, unit) in &away {
        outln!("  {name:20} {q:>8.4} {unit}");
    }
    match (away.len(), zero.len()) {
        (_, 0) => {}
        (0, _) => outln!("  every joint at 0"),
        (_, n) => outln!("  {n} other joints at 0"),
    }
}

fn sizes(config: &Config, spec: &EnvSpec, layout: &Layout) {
    let (n, t) = (
        config.env.num_envs as u64,
        config.runner.num_steps_per_env as u64,
    );
    outln!(
        "\ncontrol step {:.4} s, time-out after {} steps ({} s)",
        spec.step_dt,
        spec.max_episode_steps,
        config.env.episode_length_s
    );
    let learning = config.runner.algorithm.describe(config);
    let m = spec.agents_per_env() as u64;
    let agents = match spec.agents.is_empty() {
        true => String::new(),
        false => format!(" of {m} agents ({} rows)", n * m),
    };
    outln!(
        "iteration: {n} environments{agents} x {t} steps = {} transitions, {learning}",
        thousands((n * m * t) as f64),
    );
    if config.runner.algorithm.off_policy() {
        let each = layout.bytes_per_transition() as u64;
        let capacity = config.replay.capacity as u64;
        outln!(
            "replay memory: {} transitions of {each} bytes, {} MiB",
            thousands(capacity as f64),
            thousands(((each * capacity) >> 20) as f64)
        );
    }
    outln!(
        "run: at most {} iterations, {} environment steps",
        config.runner.max_iterations,
        thousands((config.runner.max_iterations as f64) * (n * t) as f64)
    );
}
