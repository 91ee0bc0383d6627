//! What a task can do and nobody wants: lines for who starts a run, one of each kind.

use super::Task;
use super::action::Law;
use ostler_base::names::few;
use ostler_engine::physics::{Overlap, Physics};
use ostler_model::{JointKind, Model};

/// A joint this far (rad, m) beyond its limits is beyond them.
const BEYOND: f64 = 1e-4;
/// Shapes this far (m) inside each other are so.
pub(crate) const INSIDE: f64 = 1e-3;
/// Names of one line.
const MOST: usize = 4;

impl Task {
    /// A default pose outside of limits, outputs of 0 that are clipped, and terminations that hold
    /// in every state.
    pub fn doubts(&self, model: &Model) -> Vec<String> {
        let found = [out_of_limits(model, self), out_of_reach(model, self), always_over(self)];
        found.into_iter().flatten().collect()
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

fn out_of_limits(model: &Model, task: &Task) -> Option<String> {
    let beyond = model.joints.iter().filter_map(|joint| {
        let ([low, high], at) = (joint.range?, *task.pose.qpos.get(joint.qpos_adr)?);
        let (by, unit) = ((low - at).max(at - high), joint.kind.scalar_unit()?);
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

fn always_over(task: &Task) -> Option<String> {
    let ends = task.score.terminations.iter().map(|end| &end.term);
    let always = ends.filter(|term| term.program.constant().is_some_and(|x| x != 0.0));
    let names: Vec<_> = always.map(|term| format!("{} ({})", term.name, term.text)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "every episode ends after its first step, for a termination holds in every state: {}",
            few(&names, MOST)
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
