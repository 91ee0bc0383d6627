//! `ostler check`: is the configuration sound, and what does it come to?

mod foreign;
mod reference;
mod robot;
mod sizes;
mod terrain;

use super::config::ConfigArgs;
use super::natives;
use clap::Args;
use ostler_learn::config::curriculum::NUM_ENVS;
use ostler_learn::config::{Config, Gpus};
use ostler_run::export::ExportError;
use ostler_run::forecast::fit::foreseen;
use ostler_run::log::outln;
pub(crate) use ostler_run::run::{
    RunError, check_teacher, demonstrations, foresee_kernel, one_env, plan, reflection,
};
use ostler_sim::Groups;
use ostler_sim::Model;
use ostler_sim::config::{Backend, CommandKind, Resample};
use ostler_sim::env::{BatchEnv, EnvSpec, ObsRow};
use ostler_sim::model::Geom;
use ostler_sim::model::summary::short;
use ostler_sim::names::few;
use ostler_sim::physics::native;
use ostler_sim::task::expr::Type;
use sizes::sizes;
use std::path::PathBuf;

/// Flags of `ostler check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Leave out the resolved configuration
    #[arg(long, short)]
    quiet: bool,
    /// Draw the terrain from above into this PNG, the higher the brighter
    #[arg(long, value_name = "FILE")]
    terrain: Option<PathBuf>,
}

/// Validates and prints.
pub(crate) fn run(args: &CheckArgs) -> Result<i32, RunError> {
    let (file, overrides) = args.config.required()?;
    let (loaded, model, notes) = plan(&file, &overrides, None, Gpus::HERE)?;
    let config = &loaded.config;
    if let Some(foreign) = &loaded.foreign {
        if args.terrain.is_some() {
            return Err(terrain::none());
        }
        return foreign::check(&loaded, foreign, args.quiet);
    }
    let mut env = one_env(&loaded, &model)?;
    let kernel = foresee_kernel(&loaded, &model)?;
    if !args.quiet {
        let text = toml::to_string(config)
            .map_err(|e| RunError::Usage(format!("the configuration cannot be written: {e}")))?;
        outln!("{text}");
    }
    parts(&model);
    terrain::print(&loaded, &model, &env)?;
    reference::print(&env);
    demonstrations(&loaded, &model, env.spec())?;
    let spec = env.spec();
    check_teacher(&loaded, spec)?;
    observations(spec);
    robot::actions(config, &model, &env).map_err(ExportError::from)?;
    robot::pose(&model, env.pose());
    robot::limits(&config.sim, &model).map_err(|e| loaded.places.explain(&e))?;
    if let Some(found) = reflection(&loaded, &model)? {
        outln!("\nsymmetry");
        for line in found.lines(&model) {
            outln!("  {line}");
        }
    }
    commands(config);
    resets(config);
    outln!("\nreward");
    let terms = &config.task.reward;
    let wide = terms.iter().map(|term| term.name.chars().count()).max().unwrap_or_default();
    for term in terms {
        outln!("  {:wide$}  {:>8}  {}", term.name, term.weight, one_line(&term.expr));
    }
    if !spec.agents.is_empty() {
        outln!("  logged as: {}", spec.reward_names.join(", "));
    }
    outln!("\ntermination: {}", spec.termination_names.join(", "));
    defined(&env);
    natives::print(&env);
    for (i, (text, numbers)) in env.remembered().enumerate() {
        if i == 0 {
            outln!("\nremembered from step to step");
        }
        outln!("  {numbers:>8}  {}", one_line(&text));
    }
    robot::geoms(&model);
    robot::contacts(&env);
    robot::events(&env);
    curriculum(config);
    outln!(
        "\ncontrol step {:.4} s, time-out after {} steps ({} s)",
        spec.step_dt,
        spec.max_episode_steps,
        config.env.episode_length_s
    );
    sizes(&loaded, spec)?;
    outln!("{}", foreseen(&loaded, &model)?);
    match kernel.line() {
        Some(line) => outln!("\n{line}"),
        None => outln!("\nphysics: {}", config.sim.backend.name()),
    }
    for note in env.physics().notes() {
        outln!("  {note}");
    }
    if config.sim.backend == Backend::Rapier {
        match native::foresee(&model, &config.sim.generic()) {
            Ok(_) => outln!("  sim.backend = \"native\" supports all of this robot"),
            Err(e) => outln!("  sim.backend = \"native\" does not do: {e}"),
        }
    }
    let met = env.rehearse();
    let curriculum = ostler_run::run::in_vain(config, env.spec());
    for note in notes.iter().chain(&env.spec().doubts).chain(&met.notes).chain(&curriculum) {
        outln!("note: {note}");
    }
    for file in &loaded.files {
        outln!("includes {}", file.display());
    }
    if let Some(path) = &args.terrain {
        terrain::picture(&model, path)?;
    }
    if met.hopeless {
        let why = format!("{}: every episode breaks in its first step", file.display());
        return Err(RunError::Usage(why));
    }
    outln!("{} is sound", file.display());
    Ok(0)
}

/// Numbers that change while a run trains.
fn curriculum(config: &Config) {
    for (i, schedule) in config.curriculum.iter().enumerate() {
        if i == 0 {
            outln!("\ncurriculum");
        }
        let points = schedule.points.iter().map(|[x, value]| format!("{value} at {x}"));
        let points: Vec<_> = points.collect();
        let stepwise = schedule.steps || schedule.key == NUM_ENVS;
        let lines = if stepwise { "in steps" } else { "in straight lines" };
        outln!("  {}: {} of {}, {lines}", schedule.key, points.join(", "), schedule.over);
    }
}

/// What the task defines for its expressions, and what it logs besides rewards.
fn defined(env: &BatchEnv) {
    let task = env.compiled();
    for (i, list) in task.lists.iter().enumerate() {
        if i == 0 {
            outln!("\nnames");
        }
        outln!("  {:20} {}", list.name, list.entries.join(", "));
    }
    let of = |len: usize, unit: String| match len {
        1 => unit,
        n => format!("{n} x {unit}"),
    };
    for (i, row) in task.lets.iter().enumerate() {
        if i == 0 {
            outln!("\nlet");
        }
        let ty = match &row.ty {
            None => "function".to_string(),
            Some(Type::Bool) => "condition".to_string(),
            Some(Type::Num { len, unit }) => of(*len, unit.clone()),
        };
        let inside = match row.inside.is_empty() {
            true => String::new(),
            false => format!(", for each {}", row.inside.join(", ")),
        };
        let (key, expr) = (&row.key, one_line(&row.expr));
        outln!("  {key:20} {:16} {expr}", ty + &inside);
    }
    for (i, state) in task.history.states().iter().enumerate() {
        if i == 0 {
            outln!("\nstate");
        }
        let unit = match state.truth {
            true => "condition".to_string(),
            false => state.unit().to_string(),
        };
        let (ty, term) = (of(state.units.len(), unit), &env.task().state[state.index]);
        let (init, update) = (one_line(&term.init), one_line(&term.update));
        outln!("  {:20} {ty:16} {init}; then {update}", state.name);
    }
    for (i, metric) in env.spec().metrics.iter().enumerate() {
        if i == 0 {
            outln!("\nmetric");
        }
        let over = format!("{:?}", metric.over).to_lowercase();
        let (name, unit, expr) = (&metric.name, &metric.unit, one_line(&metric.expr));
        outln!("  {name:20} {unit:10} {over:5} {expr}");
    }
}

fn one_line(expr: &str) -> String {
    expr.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The robot, and what the task or its file lacks.
fn parts(m: &Model) {
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
    for line in &m.added {
        outln!("  added {line}");
    }
    if let Some(line) = priorities(m) {
        outln!("  {line}");
    }
    for line in m.lacks() {
        outln!("  {line}");
    }
    for line in m.ignored_lines() {
        outln!("  ignored {line}");
    }
}

/// Geoms whose friction counts in contacts with others, whatever these have.
fn priorities(m: &Model) -> Option<String> {
    let highest = m.geoms.iter().map(|g| g.priority).max()?;
    let first: Vec<_> = m.geoms.iter().filter(|g| g.priority == highest).collect();
    let shown = |g: &&Geom| format!("{} (sliding friction {})", g.name, short(g.friction[0]));
    (first.len() < m.geoms.len()).then(|| {
        format!(
            "contacts have the friction of the geom of higher priority, whatever the other's is: {}",
            few(&first.iter().map(shown).collect::<Vec<_>>(), 4)
        )
    })
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
        // Where a term's steps lie side by side, all of them; else those of the oldest step.
        let together = r.stride == r.len;
        let index = match r.len * if together { r.frames } else { 1 } {
            1 => r.index.to_string(),
            n => format!("{}..{}", r.index, r.index + n - 1),
        };
        let mut seen = r.seen.clone();
        if r.frames > 1 && !together {
            seen = format!("{seen}, steps {} places apart", r.stride);
        }
        outln!("  {index:>9}  {:20} {:10} {}", r.name, r.unit, one_line(&r.expr));
        if !seen.is_empty() {
            outln!("  {:>9}    {seen}", "");
        }
    }
}

/// Commands, with what they are and when they are drawn.
fn commands(config: &Config) {
    for (i, term) in config.task.command.iter().enumerate() {
        if i == 0 {
            outln!("\ncommand");
        }
        let what = match term.kind {
            CommandKind::Velocity => {
                let heading = term.heading.as_ref();
                let heading = heading.map(|h| format!(", {} to a heading", h.share));
                let shares = [
                    (term.standing, "standing"),
                    (term.forward, "forward"),
                    (term.world, "in the world"),
                ];
                let shares = shares.iter().filter(|(share, _)| *share > 0.0);
                let shares: String = shares.map(|(s, what)| format!(", {s} {what}")).collect();
                format!("velocity{}{shares}", heading.unwrap_or_default())
            }
            CommandKind::Values => {
                let name = format!("{:?}", term.distribution).to_lowercase();
                match term.range[..] {
                    [] => name,
                    _ => format!("{name} in {:?}", term.range),
                }
            }
        };
        let when = match term.resample_s {
            Resample::Every(0.0 | f64::INFINITY) => "for the episode".to_string(),
            Resample::Every(s) => format!("every {s} s"),
            Resample::Between([low, high]) => format!("every {low} to {high} s"),
        };
        let until = term.resample_when.as_ref().map(|text| format!(", or when {text}"));
        outln!("  {:20} {what}; {when}{}", term.name, until.unwrap_or_default());
    }
}

/// Terms of episodes' starts.
fn resets(config: &Config) {
    for (i, term) in config.task.reset.iter().enumerate() {
        if i == 0 {
            outln!("\nreset");
        }
        let keys = toml::Value::try_from(term).ok();
        let keys = keys.as_ref().and_then(toml::Value::as_table);
        let keys = keys.into_iter().flatten().filter(|(key, _)| *key != "target");
        let keys: Vec<String> = keys.map(|(key, value)| format!("{key} = {value}")).collect();
        let what = match keys[..] {
            [] if term.target.starts_with("quat") => "any orientation, all alike".to_owned(),
            _ => keys.join(", "),
        };
        outln!("  {:20} {what}", term.target);
    }
    let Some(start) = &config.task.start else {
        return;
    };
    let draws = match start.tries {
        1 => "1 draw".to_string(),
        n => format!("at most {n} draws"),
    };
    outln!("\nstart: {draws} of commands, positions and velocities, until");
    for condition in start.until.all() {
        outln!("  {}", one_line(condition));
    }
}
