//! What a task can do and nobody wants: lines for who starts a run, one of each kind.

use super::Task;
use super::action::Law;
use ostler_base::names::few;
use ostler_engine::physics::{Overlap, Physics};
use ostler_lang::draw::Distribution;
use ostler_lang::expr::ElementKind;
use ostler_model::rotation::Pose;
use ostler_model::{Joint, JointKind, Model};

/// A joint this far (rad, m) beyond its limits is beyond them.
const BEYOND: f64 = 1e-4;
/// Starts this share of a joint's range beyond its limits are far beyond them.
const FAR: f64 = 0.1;
/// Shapes this far (m) inside each other are so.
pub(crate) const INSIDE: f64 = 1e-3;
/// Names of one line.
const MOST: usize = 4;

impl Task {
    /// A default pose outside of limits, outputs of 0 or of an untrained policy that are clipped,
    /// outputs that reach far beyond a joint's range, noise of one sign, observations that are
    /// always the same, agents whose names begin alike, expressions with names that mean several
    /// things.
    pub fn doubts(&self, model: &Model) -> Vec<String> {
        let beyond = out_of_reach(model, self);
        let beyond = beyond.or_else(|| narrow(model, self));
        let said = [
            out_of_limits(model, self),
            beyond,
            wide(model, self),
            one_sided(self),
            constant(self),
            of_two_agents(self.team.names()),
        ];
        said.into_iter().flatten().chain(shared_names(model, self)).collect()
    }
}

/// Shapes that are inside each other in `starts`, poses `[nq]` in which episodes begin, the
/// floor's among them.
pub(crate) fn overlaps(
    model: &Model,
    physics: &dyn Physics,
    starts: &[Vec<f32>],
) -> Option<String> {
    let found = physics.inside(starts, INSIDE);
    let mut pairs: Vec<Overlap> = Vec::new();
    for pair in found.iter().flatten() {
        match pairs.iter_mut().find(|known| known.geoms == pair.geoms) {
            Some(known) => known.depth = known.depth.max(pair.depth),
            None => pairs.push(*pair),
        }
    }
    pairs.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    let name = |g: usize| model.geoms.get(g).map_or("?", |geom| geom.name.as_str());
    let told = pairs.iter().map(|pair| {
        let [a, b] = pair.geoms.map(name);
        format!("{a} and {b} by {:.1} mm", 1e3 * pair.depth)
    });
    let told: Vec<_> = told.collect();
    let of_world = |g: &usize| model.geoms.get(*g).is_some_and(|geom| geom.body == 0);
    let ground = pairs.iter().any(|pair| pair.geoms.iter().any(of_world));
    let lifted = match ground && model.joints.iter().any(|joint| joint.kind == JointKind::Free) {
        true => "a higher task.start_height, or ",
        false => "",
    };
    let which = match (found.iter().filter(|of| !of.is_empty()).count(), starts.len()) {
        (all, drawn) if all == drawn => "episodes begin".to_string(),
        (some, drawn) => format!("of {drawn} episodes {some} begin"),
    };
    (!told.is_empty()).then(|| {
        format!(
            "{which} with shapes inside each other, which push each other apart: {}; {lifted}other \
             starts ([[task.reset]]), <exclude>, or contype and conaffinity in [[task.contact]] \
             keeps them from it",
            few(&told, MOST)
        )
    })
}

/// How far a joint at `at` is beyond the nearer of its limits; below 0 within them.
fn excess(joint: &Joint, at: f64) -> Option<f64> {
    joint.range.map(|[low, high]| (low - at).max(at - high))
}

/// Joints that are far beyond their limits in `starts`, poses `[nq]` in which episodes begin.
pub(crate) fn starts_beyond(model: &Model, starts: &[Vec<f32>]) -> Option<String> {
    let beyond = |joint: &Joint, start: &Vec<f32>| {
        let [low, high] = joint.range?;
        let by = excess(joint, f64::from(*start.get(joint.qpos_adr)?))?;
        (by > FAR * (high - low)).then_some(by)
    };
    let told = model.joints.iter().filter_map(|joint| {
        let unit = joint.kind.scalar_unit()?;
        let by = starts.iter().filter_map(|start| beyond(joint, start)).reduce(f64::max)?;
        Some(format!("{} by {by:.3} {unit}", joint.name))
    });
    let told: Vec<_> = told.collect();
    let far = |start: &&Vec<f32>| model.joints.iter().any(|joint| beyond(joint, start).is_some());
    let some = starts.iter().filter(far).count();
    (some > 0).then(|| {
        format!(
            "of {} episodes {some} begin with joints far beyond their limits, which push them \
             back: {}; angles are in rad; smaller draws in [[task.reset]], or its `within_limits`, \
             keep them inside",
            starts.len(),
            few(&told, MOST)
        )
    })
}

fn out_of_limits(model: &Model, task: &Task) -> Option<String> {
    let beyond = model.joints.iter().filter_map(|joint| {
        let by = excess(joint, *task.pose.qpos.get(joint.qpos_adr)?)?;
        let unit = joint.kind.scalar_unit()?;
        (by > BEYOND).then(|| format!("{} by {by:.4} {unit}", joint.name))
    });
    let beyond: Vec<_> = beyond.collect();
    (!beyond.is_empty()).then(|| {
        format!(
            "the default pose ({}) has joints beyond their limits, which push them back: {}; \
             another task.default_pose, or other values in [[task.reset]], lies within",
            task.pose.name,
            few(&beyond, MOST)
        )
    })
}

/// Noise that is never zero: two numbers are a range, and meant for two components.
fn one_sided(task: &Task) -> Option<String> {
    let told = task.observations.terms.iter().filter_map(|seen| {
        let mut draws = seen.places().filter_map(|(_, _, sight)| sight.noise.as_ref());
        let [low, high] =
            draws.find(|d| d.distribution == Distribution::Uniform && d.range[0] > 0.0)?.range;
        Some(format!("{} from {low} to {high}", seen.term.name))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "noise of observations is always positive: {}; a size for each component is \
             noise = {{ each = [...] }}, an offset that stays is `bias`",
            few(&told, MOST)
        )
    })
}

/// Observations that a scale of 0 or a clip without width makes the same number whatever happens.
fn constant(task: &Task) -> Option<String> {
    let told = task.observations.terms.iter().filter_map(|seen| {
        let clipped = seen.clip.is_some_and(|[low, high]| low == high);
        let why = match seen.scale.contains(&0.0) {
            true => "scale = 0",
            false if clipped => "a clip of no width",
            false => return None,
        };
        Some(format!("{} ({why})", seen.term.name))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "observations that are always the same tell a policy nothing: {}; leave the term or \
             the key out",
            few(&told, MOST)
        )
    })
}

/// Of every expression that names something of which there are several: which one it means, and
/// how another one is written.
fn shared_names(model: &Model, task: &Task) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for term in task.terms() {
        let mut told: Vec<String> = Vec::new();
        for (e, other) in term.program.shared() {
            let name = e.kind.names(model)[e.index];
            if e.kind == ElementKind::Body && is_where_its_body_is(model, e.index, *other, name) {
                continue;
            }
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let written = if plain { name.to_string() } else { format!("\"{name}\"") };
            let (own, other) = (e.kind.noun(), other.noun());
            told.push(format!("\"{name}\" is the {own}, and {other}({written}) the {other}"));
        }
        let text = format!("in {}: {}", term.path, few(&told, MOST));
        // Terms of several agents may stand in one place.
        if !told.is_empty() && !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Whether a body's part of this name is a site in its origin, or its only geom, there, too: both
/// mean the same then.
fn is_where_its_body_is(model: &Model, body: usize, other: ElementKind, name: &str) -> bool {
    let in_origin = |pos, quat| Pose { pos, quat } == Pose::IDENTITY;
    match other {
        ElementKind::Site => {
            model.sites.iter().any(|s| s.name == name && s.body == body && in_origin(s.pos, s.quat))
        }
        ElementKind::Geom => {
            let own = &model.geoms[model.bodies[body].geoms.clone()];
            matches!(own, [g] if g.name == name && in_origin(g.pos, g.quat))
        }
        _ => false,
    }
}

/// Agents of whose parts a pattern of another one's has some: `red_*` fits `red_b_hip`.
fn of_two_agents(names: &[String]) -> Option<String> {
    let longer = |short: &String| {
        let begins = format!("{short}_");
        names.iter().find(|name| name.starts_with(&begins)).map(|long| (short.clone(), long))
    };
    let (short, long) = names.iter().find_map(longer)?;
    Some(format!(
        "the name of agent {long} begins with that of {short}: a pattern {{agent}}_* has parts of \
         both for {short}; another name keeps them apart"
    ))
}

/// Joint targets that an output of 1, or the largest that passes its clip, moves by more than the
/// whole range of their joint.
fn wide(model: &Model, task: &Task) -> Option<String> {
    let told = task.actions.drives.iter().filter_map(|drive| {
        let Law::Affine { scale, position: true, .. } = drive.law else { return None };
        let actuator = &model.actuators[drive.actuator];
        let joint = &model.joints[actuator.joint()?];
        let ([low, high], unit) = (joint.range?, joint.kind.scalar_unit()?);
        let [least, most] = *task.actions.clip.get(drive.output)?;
        let output = most.min(1.0).max(-least.max(-1.0));
        let by = f64::from(scale.abs() * output) / actuator.gear[0].abs();
        let name = &actuator.name;
        (by > high - low)
            .then(|| format!("{name} by {by:.3} {unit} in a range of {:.3}", high - low))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "an output of 1 moves targets by more than their joints can move: {}; angles are in \
             rad, `scale` is theirs for an output of 1",
            few(&told, MOST)
        )
    })
}

fn out_of_reach(model: &Model, task: &Task) -> Option<String> {
    let clipped = task.actions.drives.iter().filter_map(|drive| {
        let Law::Affine { offset, position: true, .. } = drive.law else { return None };
        let actuator = &model.actuators[drive.actuator];
        let ([low, high], gear) = (drive.ctrlrange.map(f64::from), actuator.gear[0].abs());
        let by = (low - f64::from(offset)).max(f64::from(offset) - high);
        let unit = model.joints[actuator.joint()?].kind.scalar_unit()?;
        (by > BEYOND * gear).then(|| format!("{} by {:.4} {unit}", actuator.name, by / gear))
    });
    let clipped: Vec<_> = clipped.collect();
    (!clipped.is_empty()).then(|| {
        format!(
            "targets are clipped to the actuators' control ranges, and that of an output of 0 lies \
             beyond them: {}; another pose or `offset`, or a wider ctrlrange, reaches it",
            few(&clipped, MOST)
        )
    })
}

/// Joint targets whose outputs, without a `clip`, are clipped to a narrower range than that of an
/// untrained policy's standard deviation, -1 .. 1.
fn narrow(model: &Model, task: &Task) -> Option<String> {
    let clipped = task.actions.drives.iter().filter_map(|drive| {
        let Law::Affine { position: true, .. } = drive.law else { return None };
        let [low, high] = *task.actions.clip.get(drive.output)?;
        let told = !task.actions.clipped.contains(&drive.output) && high - low < 2.0;
        let name = &model.actuators[drive.actuator].name;
        told.then(|| format!("{name} to {low:.3} .. {high:.3}"))
    });
    let clipped: Vec<_> = clipped.collect();
    (!clipped.is_empty()).then(|| {
        format!(
            "outputs are clipped to what their actuators take, and so are `action` and \
             `last_action` in observations and rewards: {}; a smaller `scale` or a wider ctrlrange \
             lets more through, `clip = [-inf, inf]` clips the controls alone",
            few(&clipped, MOST)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_whose_names_begin_alike_are_told() {
        let said = |names: &[&str]| {
            of_two_agents(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        for fine in [&["red", "blue"][..], &["red", "redder"], &["re", "red"], &[]] {
            assert_eq!(said(fine), None, "{fine:?}");
        }
        for told in [["red", "red_b"], ["red_b", "red"]] {
            let said = said(&told).unwrap();
            assert!(
                said.starts_with("the name of agent red_b begins with that of red: "),
                "{said}"
            );
        }
    }
}
