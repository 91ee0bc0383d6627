//! What drives and changes the robot: actions, actuators, the pose, contacts, events.

use super::one_line;
use ostler_learn::config::Config;
use ostler_run::log::outln;
use ostler_sim::Model;
use ostler_sim::config::{ActionKind, ConfigError, DelayConfig, Ranges, SimConfig};
use ostler_sim::env::{ActionSpace, BatchEnv};
use ostler_sim::model::summary::short;
use ostler_sim::model::{Delay, Geom, GeomKind};
use ostler_sim::names::{few, select};
use ostler_sim::physics::native;
use ostler_sim::task::deploy::{DeployError, Deployment, Row, aligned};
use ostler_sim::task::pose::Pose;
use std::collections::HashSet;

/// Columns before a line of the table.
const INDENT: usize = 2;

/// # Errors
/// There is no such agent, which cannot be.
pub(super) fn actions(config: &Config, model: &Model, env: &BatchEnv) -> Result<(), DeployError> {
    let spec = env.spec();
    let decision = |space: ActionSpace| match space {
        ActionSpace::Continuous(n) => format!("{n} numbers"),
        ActionSpace::Discrete(n) => format!("one of {n} choices"),
    };
    outln!("\naction: {}", decision(spec.action));
    for agent in &spec.agents {
        outln!("  {}: {}", agent.name, decision(agent.action));
    }
    for (t, term) in config.task.action.iter().enumerate() {
        let about = match term.kind {
            ActionKind::Position => ", about the default pose",
            ActionKind::Relative => ", added to the joints' positions",
            ActionKind::Increment => ", added to the controls before",
            _ => "",
        };
        let late = match &term.delay {
            Some(delay) => {
                let DelayConfig { steps, redraw, hold } = delay.full();
                let [least, most] = steps.range();
                let steps = match least == most {
                    true => format!(", {least} control steps late"),
                    false => format!(", {least} to {most} control steps late"),
                };
                steps + &Delay { least, most, redraw, hold: hold as f32 }.drawn()
            }
            None => String::new(),
        };
        let clipped = match &term.clip {
            Some(Ranges::One([low, high])) => {
                format!(", outputs clipped to {}..{}", short(*low), short(*high))
            }
            Some(_) => ", outputs clipped, each to its range".into(),
            None => reach(env.compiled().actions.clips(t)),
        };
        outln!(
            "  {} on {}{about}{clipped}{late}",
            format!("{:?}", term.kind).to_lowercase(),
            term.actuators.join(", ")
        );
    }
    drives(env)?;
    laws(model);
    Ok(())
}

/// What outputs without a `clip` are clipped to: the hull of what their actuators take.
fn reach(clips: impl Iterator<Item = [f32; 2]>) -> String {
    let clips: Vec<_> = clips.collect();
    let [mut low, mut high] = [f32::INFINITY, f32::NEG_INFINITY];
    for [least, most] in clips.iter().copied() {
        (low, high) = (low.min(least), high.max(most));
    }
    if clips.iter().all(|[low, high]| *low == f32::NEG_INFINITY && *high == f32::INFINITY) {
        return String::new();
    }
    let [low, high] = [low, high].map(|x| short(f64::from(x)));
    let each = match clips.iter().all(|clip| *clip == clips[0]) {
        true => "",
        false => ", each to its own,",
    };
    format!(", outputs clipped to what the actuators take{each} within {low}..{high} (no `clip`)")
}

/// What every output drives: the same rows that exported files have.
fn drives(env: &BatchEnv) -> Result<(), DeployError> {
    let (spec, model, task) = (env.spec(), env.model(), env.compiled());
    let wide = rustix::termios::tcgetwinsize(std::io::stdout());
    let wide = wide.ok().map(|size| usize::from(size.ws_col)).filter(|w| *w > INDENT);
    let print = |title: &str, rows: &[Row]| {
        if !rows.is_empty() {
            outln!("\n{title}");
        }
        let lines = aligned(rows, wide.map(|w| w - INDENT));
        for line in lines.iter().filter(|_| !rows.is_empty()) {
            outln!("{}", format!("{:INDENT$}{line}", "").trim_end());
        }
    };
    let of = |agent: Option<&str>| {
        let (step_dt, max_steps) = (spec.step_dt, spec.max_episode_steps);
        Deployment::new(task, model, agent, step_dt, max_steps).map(|d| d.rows())
    };
    let title = "what outputs drive: control = offset + scale * output";
    let idle = Deployment::idle(task, model);
    if spec.agents.is_empty() {
        print(title, &[of(None)?, idle].concat());
        return Ok(());
    }
    for agent in &spec.agents {
        print(&format!("{title}, of {}", agent.name), &of(Some(&agent.name))?);
    }
    print("what no output drives", &idle);
    Ok(())
}

/// The laws of the actuators, each once.
fn laws(model: &Model) {
    let mut laws: Vec<(String, Vec<&str>)> = Vec::new();
    for a in &model.actuators {
        let unit = a.joint().map_or("", |j| model.joints[j].kind.force_unit());
        let law = a.law(unit);
        // Ranges of controls stand with the names.
        let mut law = law.split("; control ").next().unwrap_or_default().to_string();
        let range = a.joint().and_then(|j| model.joints[j].actfrcrange);
        if let Some([low, high]) = range.filter(|_| a.forcerange != range) {
            let [low, high] = [low, high].map(short);
            law += &format!("; all actuators of the joint together within {low} .. {high}");
        }
        match laws.iter_mut().find(|(known, _)| *known == law) {
            Some((_, names)) => names.push(&a.name),
            None => laws.push((law, vec![&a.name])),
        }
    }
    for (i, (law, names)) in laws.iter().enumerate() {
        if i == 0 {
            outln!("\nlaws of actuators, in every physics step");
        }
        outln!("  {}\n      {law}", few(names, 4));
    }
}

/// The most geoms of the world that a table lists.
const MOST_FIXED: usize = 20;

/// Geoms that can touch others: the names that `contact(...)` and `[[task.contact]]` take.
pub(super) fn geoms(model: &Model) {
    let off = |flag: &str| model.options.flags.iter().any(|(name, on)| name == flag && !on);
    if let Some(flag) = ["constraint", "contact"].into_iter().find(|flag| off(flag)) {
        outln!("\nno geoms can touch: the robot's file has <flag {flag}=\"disable\"/>");
        return;
    }
    let numbers = |x: &[f64]| x.iter().map(|x| short(*x)).collect::<Vec<_>>().join(" ");
    let shape = |g: &Geom| match g.kind {
        GeomKind::Mesh(mesh) => format!("mesh {}", model.meshes[mesh].name),
        GeomKind::Sphere => format!("sphere {}", numbers(&g.size[..1])),
        GeomKind::Capsule | GeomKind::Cylinder => {
            format!("{} {}", g.kind.word(), numbers(&g.size[..2]))
        }
        GeomKind::Box | GeomKind::Ellipsoid => format!("{} {}", g.kind.word(), numbers(&g.size)),
        GeomKind::Plane | GeomKind::Hfield(_) | GeomKind::Terrain => g.kind.word().into(),
    };
    let heads =
        ["name", "body", "shape [m]", "friction", "condim", "priority", "contype", "conaffinity"];
    let mut rows = vec![heads.map(String::from)];
    let paired: HashSet<usize> = model.pairs.iter().flat_map(|p| [p.geom1, p.geom2]).collect();
    // Geoms of the world, thousands in an arena.
    let (mut fixed, mut unshown) = (0, 0);
    for (i, g) in model.geoms.iter().enumerate() {
        let paired = paired.contains(&i);
        if g.contype == 0 && g.conaffinity == 0 && !paired {
            continue;
        }
        fixed += usize::from(g.body == 0);
        if g.body == 0 && fixed > MOST_FIXED {
            unshown += 1;
            continue;
        }
        rows.push([
            g.name.clone(),
            model.bodies[g.body].name.clone(),
            shape(g),
            numbers(&g.friction),
            g.condim.to_string(),
            g.priority.to_string(),
            g.contype.to_string(),
            format!("{}{}", g.conaffinity, if paired { ", in <pair>" } else { "" }),
        ]);
    }
    if rows.len() == 1 {
        return;
    }
    let wide = |k: usize| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or_default();
    let wide: [usize; 8] = std::array::from_fn(wide);
    outln!("\ngeoms that can touch");
    for row in &rows {
        let cells = row.iter().zip(wide).map(|(cell, wide)| format!("{cell:wide$}"));
        outln!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    if unshown > 0 {
        outln!("  and {unshown} more of the world");
    }
}

/// Contacts that expressions read, and of how many pairs of geoms.
pub(super) fn contacts(env: &BatchEnv) {
    let model = env.model();
    if model.contact_sensors.is_empty() {
        return;
    }
    outln!("\ncontacts, read in every physics step");
    // An engine that lacks them has refused the task; one that has them may be another.
    let pairs = native::lower::contact_pairs(model).unwrap_or_default();
    for (i, sensor) in model.contact_sensors.iter().enumerate() {
        let [of, with] = model.contact_sets(sensor);
        let pairs = match pairs.get(i) {
            None => String::new(),
            Some(0) => "no pair of these geoms can touch: always 0 (contype, conaffinity, \
                        <exclude>, parent and child)"
                .into(),
            Some(1) => "1 pair of geoms".into(),
            Some(n) => format!("{n} pairs of geoms"),
        };
        let sets = format!("{of} with {with}");
        outln!("  {sets:32} {:28} {pairs}", sensor.reads.words());
    }
}

/// Events, what each draws, keeps and works out, and what is said about their draws.
pub(super) fn events(env: &BatchEnv) {
    let (events, warnings) = env.events();
    let (costs, total) = env.event_costs();
    for (i, (line, cost)) in events.iter().zip(costs).enumerate() {
        if i == 0 {
            outln!("\nevents");
        }
        outln!("  {}", one_line(line));
        outln!("      draws {}", cost.draws);
        outln!("      {}", cost.keeps);
    }
    if let Some(total) = total {
        outln!("  {total}");
    }
    for line in &warnings {
        outln!("  {}", one_line(line));
    }
}

/// Joints with limits of their own, an entry a line.
pub(super) fn limits(sim: &SimConfig, model: &Model) -> Result<(), ConfigError> {
    for (i, limit) in sim.limit.iter().enumerate() {
        if i == 0 {
            outln!("\nlimits beyond which joints have broken their world");
        }
        let mut names: Vec<&str> = Vec::new();
        for (p, pattern) in limit.joints.iter().enumerate() {
            let all = model.joints.iter().map(|j| j.name.as_str()).enumerate();
            let found = select(pattern, "joint", all, &format!("sim.limit[{i}].joints[{p}]"))?;
            names.extend(found.iter().map(|&j| model.joints[j].name.as_str()));
        }
        let said = [("speed", limit.max_speed), ("position", limit.max_position)];
        let said = said.iter().filter_map(|(of, most)| Some(format!("{of} {}", (*most)?)));
        outln!("  {}: {}", said.collect::<Vec<_>>().join(", "), few(&names, 8));
    }
    Ok(())
}

/// The pose that position targets and `joint_pos_rel` are relative to.
pub(super) fn pose(model: &Model, pose: &Pose) {
    outln!("\ndefault pose: {}", pose.name);
    let joints = model.joints.iter();
    let scalar =
        joints.filter_map(|j| Some((&j.name, pose.qpos[j.qpos_adr], j.kind.scalar_unit()?)));
    let (away, zero): (Vec<_>, Vec<_>) = scalar.partition(|(_, q, _)| *q != 0.0);
    for (name, q, unit) in &away {
        outln!("  {name:20} {q:>8.4} {unit}");
    }
    match (away.len(), zero.len()) {
        (_, 0) => {}
        (0, _) => outln!("  every joint at 0"),
        (_, 1) => outln!("  1 other joint at 0"),
        (_, n) => outln!("  {n} other joints at 0"),
    }
}
