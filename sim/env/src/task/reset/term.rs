//! One `[[task.reset]]` term as operations on coordinates.

use super::super::elements::{Chosen, Elements};
use super::super::pose;
use super::super::read::Names;
use super::super::team::{AgentIndex, Team};
use super::super::term::Term;
use super::targets::{Target, target};
use super::value::{self, StartExpr};
use super::{Change, Operation, Reset, ResetPlace};
use crate::config::{ConfigError, Ranges, ResetTerm};
use ostler_lang::draw::{Draw, UNLIMITED};
use ostler_lang::expr::{Scope, reads};
use ostler_lang::number;
use ostler_model::{JointKind, Keyframe, Model};
use std::f64::consts::PI;

/// Most rows of a choice.
const MOST_CHOICES: usize = 4096;

/// Adds the operations of a term. `draws`: pairs of random words that are taken.
pub(super) fn add(
    reset: &mut Reset,
    scope: &Scope<'_>,
    (index, term): (usize, &ResetTerm),
    (team, agent): (&Team, AgentIndex),
    steered: bool,
    draws: &mut u32,
) -> Result<(), ConfigError> {
    let (model, path) = (scope.model, &format!("task.reset[{index}]"));
    let text = team.fill(agent, &term.target);
    let blame = |e| team.blame(agent, &term.target, e);
    let read = Names { defined: scope.defined, team, agent };
    let meant = target(model, read, &text, &format!("{path}.target")).map_err(blame)?;
    let mut builder = Builder { model, term, read, path, value: None };
    if let (Some(expr), Some(units)) = (&term.expr, meant.units(model)) {
        builder.alone_with("expr")?;
        let path = format!("{path}.expr");
        builder.value = Some(value::compile(scope, (team, agent), expr, &units, &path)?);
    }
    if let Target::Keyframes = meant {
        let done = builder.keyframes(&text, *draws).map_err(blame)?;
        let chosen = |op: &Operation| op.draw.is_some();
        *draws += u32::from(done.iter().any(chosen));
        reset.operations.extend(done);
        return Ok(());
    }
    let operations = builder.operations(meant)?;
    if let Some(value) = builder.value {
        // Commands may follow the robot, where they are steered.
        let (reads, place) = (reads(value.code(), steered), reset.operations.len());
        reset.exprs.push(StartExpr { term: value, place, reads });
    }
    for mut operation in operations {
        // The two pairs of a rotation are of one block of words, and a choice has one draw.
        if matches!(operation.place, ResetPlace::Rotation(_)) {
            *draws += *draws % 2;
            operation.word = *draws;
            *draws += 2;
        } else if !term.choice.is_empty() {
            operation.word = *draws;
        } else {
            operation.word = *draws;
            *draws += 1;
        }
        reset.operations.push(operation);
    }
    if !term.choice.is_empty() {
        *draws += 1;
    }
    Ok(())
}

struct Builder<'a> {
    model: &'a Model,
    term: &'a ResetTerm,
    read: Names<'a>,
    path: &'a str,
    /// The values.
    value: Option<Term>,
}

fn operation(place: ResetPlace, change: Change, draw: Option<Draw>) -> Operation {
    Operation { place, change, draw, word: 0, clip: UNLIMITED }
}

impl Builder<'_> {
    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    fn refuse<T>(&self, key: &str, message: &str, help: &str) -> Result<T, ConfigError> {
        Err(ConfigError::new(self.at(key), message).help(help))
    }

    /// Whether anything but a choice or limits is given.
    fn has_numbers(&self) -> bool {
        let t = self.term;
        let ranges = [&t.uniform, &t.log_uniform, &t.scale];
        let others =
            t.normal.is_some() || t.draw.is_some() || t.value.is_some() || t.expr.is_some();
        ranges.iter().any(|r| r.is_some()) || others
    }

    /// Refuses other keys that say what the value is, beside `key`.
    fn alone_with(&self, key: &str) -> Result<(), ConfigError> {
        let t = self.term;
        if t.value.is_some() || !t.choice.is_empty() || t.scale.is_some() {
            let message = format!("`{key}` says what the value is, and so does another key");
            return Err(ConfigError::new(self.path, message)
                .help("leave out `value`, `choice` and `scale`, or use two terms"));
        }
        Ok(())
    }

    /// What component `i` is set to, by the expression.
    fn part(&self, i: usize) -> Option<Change> {
        let value = self.value.as_ref()?;
        Some(Change::Part(if value.program.units().len() == 1 { 0 } else { i }))
    }

    fn operations(&self, meant: Target) -> Result<Vec<Operation>, ConfigError> {
        let (joints, places) = match meant {
            Target::Joints(joints) => {
                let place = |&j: &usize| ResetPlace::Position(self.model.joints[j].qpos_adr);
                let places = joints.all.iter().map(place).collect();
                (Some(joints), places)
            }
            Target::JointVelocities(joints) => {
                if self.term.within_limits.is_some() {
                    return self.refuse(
                        "within_limits",
                        "is for positions of joints",
                        "target = \"joint_pos(*)\"",
                    );
                }
                let place = |&j: &usize| ResetPlace::Velocity(self.model.joints[j].dof_adr);
                let places = joints.all.iter().map(place).collect();
                (Some(joints), places)
            }
            Target::Quaternion(at) => return self.quaternion(at),
            Target::Rpy(at) => return self.rpy(at),
            Target::Places(places) => (None, places),
            Target::Keyframes => (None, Vec::new()),
        };
        if joints.is_none() && self.term.within_limits.is_some() {
            return self.refuse(
                "within_limits",
                "is for positions of joints",
                "target = \"joint_pos(*)\"",
            );
        }
        let (what, Chosen { all: joints, mixed }) = match joints {
            Some(joints) => ("joints", joints),
            None => ("coordinates", Chosen::default()),
        };
        let name = |i: usize| joints.get(i).map(|&j| self.model.joints[j].name.as_str());
        let names = (0..places.len()).map(|i| name(i).into_iter().collect());
        let names: Vec<Vec<&str>> = names.collect();
        if let Some(values) =
            self.value.as_ref().map(|v| v.program.units().len()).filter(|n| *n > 1)
        {
            Chosen::listed(mixed, values, "values", &self.at("expr"))?;
        }
        let elements = Elements { what, names: &names, mixed, read: self.read };
        if let Some(share) = self.term.within_limits {
            return self.limited(&places, &joints, share, &elements);
        }
        if !self.term.choice.is_empty() {
            Chosen::listed(mixed, places.len(), "numbers", &self.at("choice"))?;
            return self.chosen(&places);
        }
        let parts = self.parts(&elements)?;
        for (place, (change, chance)) in places.iter().zip(&parts) {
            self.turns(*place, *change, chance.is_some())?;
        }
        for ((&joint, place), (change, _)) in joints.iter().zip(&places).zip(&parts) {
            self.in_radians(joint, *place, *change)?;
        }
        let all = places.into_iter().zip(parts);
        Ok(all.map(|(p, (change, chance))| operation(p, change, chance)).collect())
    }

    /// Refuses an angle in degrees: one that the joint cannot have, but for the unit.
    fn in_radians(
        &self,
        joint: usize,
        place: ResetPlace,
        change: Change,
    ) -> Result<(), ConfigError> {
        let joint = &self.model.joints[joint];
        let (Change::Set(value), ResetPlace::Position(_), JointKind::Hinge, Some([low, high])) =
            (change, place, joint.kind, joint.range)
        else {
            return Ok(());
        };
        let value = f64::from(value);
        let within = |x: f64| (low..=high).contains(&x);
        if within(value) || value.abs() < 2.0 * PI || !within(value.to_radians()) {
            return Ok(());
        }
        let message = format!(
            "{value} rad is beyond the range of \"{}\", {low:.4} to {high:.4} rad",
            joint.name
        );
        let help = format!("in degrees it would lie within: {:.4}", value.to_radians());
        self.refuse("value", &message, &help)
    }

    /// What angles take.
    fn turns(&self, place: ResetPlace, change: Change, drawn: bool) -> Result<(), ConfigError> {
        let sets = matches!(change, Change::Set(_) | Change::Part(_));
        match place {
            ResetPlace::Yaw(_) if sets && drawn => Err(ConfigError::new(
                self.path,
                "yaw takes either a value or a random angle, not both",
            )),
            ResetPlace::Turn(..) if sets && self.term.value.is_some() => self.refuse(
                "value",
                "a single turn adds to the pose so far",
                "target = \"rpy(BODY)\" with value = [roll, pitch, yaw]",
            ),
            ResetPlace::Turn(..) if sets && self.value.is_some() => self.refuse(
                "expr",
                "a single turn adds to the pose so far",
                "target = \"rpy(BODY)\" with expr = \"[roll, pitch, yaw]\"",
            ),
            ResetPlace::Yaw(_) | ResetPlace::Turn(..) if change == Change::Scale => {
                self.refuse("scale", "angles of a body have no factor", "use `uniform`")
            }
            _ => Ok(()),
        }
    }

    /// Of every element, what its draw does and how it is drawn.
    fn parts(&self, elements: &Elements<'_>) -> Result<Vec<(Change, Option<Draw>)>, ConfigError> {
        let t = self.term;
        let given: Vec<&str> = [
            ("uniform", t.uniform.is_some()),
            ("log_uniform", t.log_uniform.is_some()),
            ("normal", t.normal.is_some()),
            ("draw", t.draw.is_some()),
            ("scale", t.scale.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
        .collect();
        if let [one, other, ..] = given[..] {
            let message = format!("both `{one}` and `{other}` are given");
            return Err(
                ConfigError::new(self.path, message).help("use two terms, one after the other")
            );
        }
        if given.is_empty() && t.value.is_none() && t.expr.is_none() {
            return Err(ConfigError::new(self.path, "does nothing").help(
                "give `uniform`, `log_uniform`, `normal`, `draw`, `scale`, `value`, `expr`, `choice` or `within_limits`",
            ));
        }
        if t.scale.is_some() && t.value.is_some() {
            return self.refuse("scale", "is a factor of what `value` replaces", "use two terms");
        }
        let ranges = |key: &str, ranges: &Ranges| elements.ranges(ranges, &self.at(key));
        let uniform = |of: Vec<[f32; 2]>| of.into_iter().map(Draw::uniform).map(Some).collect();
        let chances: Vec<Option<Draw>> = match (&t.uniform, &t.log_uniform, &t.normal, &t.scale) {
            (Some(of), ..) => uniform(ranges("uniform", of)?),
            (_, Some(of), ..) => {
                let of = ranges("log_uniform", of)?;
                let path = self.at("log_uniform");
                of.into_iter()
                    .map(|pair| Draw::log_uniform(pair, &path).map(Some))
                    .collect::<Result<_, _>>()?
            }
            (_, _, Some(sigma), _) => {
                let sigmas = elements.numbers(sigma, &self.at("normal"))?;
                if let Some(sigma) = sigmas.iter().find(|s| **s < 0.0) {
                    let message = format!("{sigma} is negative");
                    return Err(ConfigError::new(self.at("normal"), message));
                }
                sigmas.into_iter().map(|std| Some(Draw::about_zero(std))).collect()
            }
            (.., Some(of)) => uniform(ranges("scale", of)?),
            _ => {
                let path = self.at("draw");
                let of = t.draw.as_ref().map(|d| d.compile(|key| format!("{path}.{key}")));
                vec![of.transpose()?; elements.names.len()]
            }
        };
        let changes: Vec<Change> = match &t.value {
            Some(value) => {
                let values = elements.numbers(value, &self.at("value"))?;
                values.into_iter().map(Change::Set).collect()
            }
            None if self.value.is_some() => {
                let parts = 0..chances.len();
                parts.filter_map(|i| self.part(i)).collect()
            }
            None if t.scale.is_some() => vec![Change::Scale; chances.len()],
            None => vec![Change::Add; chances.len()],
        };
        Ok(changes.into_iter().zip(chances).collect())
    }

    /// Positions within a share of the joints' ranges.
    fn limited(
        &self,
        places: &[ResetPlace],
        joints: &[usize],
        share: f64,
        elements: &Elements<'_>,
    ) -> Result<Vec<Operation>, ConfigError> {
        if !(share > 0.0 && share <= 1.0) {
            let message = format!("{share} is not a share");
            return self.refuse("within_limits", &message, "above 0, up to 1");
        }
        if !self.term.choice.is_empty() {
            return self.refuse("choice", "is not clipped", "leave out `within_limits`");
        }
        let soft = |&j: &usize| {
            let joint = &self.model.joints[j];
            joint.range.map(|[low, high]| {
                let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0 * share);
                [middle, half]
            })
        };
        if self.has_numbers() {
            let parts = self.parts(elements)?.into_iter();
            let all = places.iter().zip(joints).zip(parts);
            let clipped = all.map(|((&place, joint), (change, chance))| Operation {
                clip: soft(joint).map_or(UNLIMITED, |[middle, half]| {
                    [(middle - half) as f32, (middle + half) as f32]
                }),
                ..operation(place, change, chance)
            });
            return Ok(clipped.collect());
        }
        let all = places.iter().zip(joints);
        all.map(|(&place, joint)| {
            let Some([middle, half]) = soft(joint) else {
                let name = &self.model.joints[*joint].name;
                let message = format!("\"{name}\" has no limits to lie between");
                return self.refuse("within_limits", &message, "name the joints that have some");
            };
            let at = self.at("within_limits");
            let (middle, half) = (number(middle, &at)?, number(half, &at)?);
            let chance = Some(Draw::uniform([-half, half]));
            Ok(operation(place, Change::Set(middle), chance))
        })
        .collect()
    }

    /// One of some rows.
    fn chosen(&self, places: &[ResetPlace]) -> Result<Vec<Operation>, ConfigError> {
        let (rows, path) = (&self.term.choice, self.at("choice"));
        if self.has_numbers() {
            return self.refuse("choice", "replaces all values", "use two terms");
        }
        let plain = |p: &ResetPlace| matches!(p, ResetPlace::Position(_) | ResetPlace::Velocity(_));
        if !places.iter().all(plain) {
            return self.refuse("choice", "is for coordinates", "quat(BODY) takes rows of 4");
        }
        if rows.len() > MOST_CHOICES {
            let message = format!("{} choices are more than {MOST_CHOICES}", rows.len());
            return Err(ConfigError::new(path, message));
        }
        let mut columns = vec![Vec::with_capacity(rows.len()); places.len()];
        for (r, row) in rows.iter().enumerate() {
            if row.len() != places.len() {
                let message = format!("{} numbers for {} coordinates", row.len(), places.len());
                return Err(ConfigError::new(format!("{path}[{r}]"), message));
            }
            for (c, &x) in row.iter().enumerate() {
                columns[c].push(number(x, &format!("{path}[{r}][{c}]"))?);
            }
        }
        let all = places.iter().zip(columns);
        Ok(all.map(|(&place, column)| chosen(place, column)).collect())
    }

    /// All rotations alike, or given ones.
    fn quaternion(&self, at: usize) -> Result<Vec<Operation>, ConfigError> {
        let places: Vec<ResetPlace> = (at..at + 4).map(ResetPlace::Position).collect();
        let t = self.term;
        let ranges = [&t.uniform, &t.log_uniform, &t.scale];
        if ranges.iter().any(|r| r.is_some()) || t.normal.is_some() || t.draw.is_some() {
            return Err(ConfigError::new(self.path, "a rotation has no range")
                .help("nothing more draws from all rotations; rpy(BODY) takes ranges of angles"));
        }
        if t.within_limits.is_some() {
            return self.refuse("within_limits", "is for positions of joints", "leave it out");
        }
        if !t.choice.is_empty() {
            return self.chosen(&places);
        }
        if self.value.is_some() {
            let parts = (0..4).filter_map(|i| self.part(i));
            let all = places.into_iter().zip(parts);
            return Ok(all.map(|(p, part)| operation(p, part, None)).collect());
        }
        let Some(value) = &t.value else {
            let place = ResetPlace::Rotation(at);
            return Ok(vec![operation(place, Change::Add, Some(Draw::uniform([0.0; 2])))]);
        };
        let values = self.angles(4).numbers(value, &self.at("value"))?;
        let all = places.into_iter().zip(values);
        Ok(all.map(|(p, v)| operation(p, Change::Set(v), None)).collect())
    }

    fn angles(&self, count: usize) -> Elements<'_> {
        const NAMELESS: [Vec<&str>; 4] = [const { Vec::new() }; 4];
        Elements {
            what: "angles",
            names: const { &NAMELESS }.get(..count).unwrap_or_default(),
            mixed: false,
            read: self.read,
        }
    }

    /// Turns about x, then y, then z of the pose so far, as mjlab and Isaac Lab have them; or
    /// of the world, with `value`.
    fn rpy(&self, at: usize) -> Result<Vec<Operation>, ConfigError> {
        let t = self.term;
        if t.within_limits.is_some() || t.scale.is_some() || !t.choice.is_empty() {
            let message = "rpy takes `uniform`, `normal`, `draw`, `value` and `expr`";
            return Err(ConfigError::new(self.path, message));
        }
        let parts = self.parts(&self.angles(3))?;
        let mut all = Vec::new();
        if t.value.is_some() || self.value.is_some() {
            for (i, x) in [1.0, 0.0, 0.0, 0.0].into_iter().enumerate() {
                let place = ResetPlace::Position(at + i);
                all.push(operation(place, Change::Set(x), None));
            }
        }
        // q qz qy qx
        for (axis, (change, chance)) in parts.into_iter().enumerate().rev() {
            all.push(operation(ResetPlace::Turn(at, axis), change, chance));
        }
        Ok(all)
    }

    /// The coordinates of `keyframe(NAME)`, or of one of `keyframe([A, B])`. Where every agent
    /// has a keyframe of its own, each sets its own joints.
    fn keyframes(&self, text: &str, word: u32) -> Result<Vec<Operation>, ConfigError> {
        let path = self.at("target");
        let t = self.term;
        if self.has_numbers() || t.within_limits.is_some() || !t.choice.is_empty() {
            return Err(ConfigError::new(
                self.path,
                "a keyframe takes no numbers and no expression",
            )
            .help("add another reset term, such as target = \"qpos\", after it"));
        }
        let keys = pose::keyframes(self.model, self.read, text, &path)?;
        // A pattern may mean more than its author knows: those of which one is drawn are a list.
        let name = pose::argument(text).unwrap_or_default();
        if keys.len() > 1 && name.contains('*') && !name.contains(['[', ',']) {
            let help = format!("name one, or draw one of them: keyframe([{name}])");
            return Err(pose::ambiguous(text, &keys, &path).help(help));
        }
        let mut positions = Vec::new();
        let mut velocities = Vec::new();
        let mut activations = Vec::new();
        for key in &keys {
            let Names { team, agent, .. } = self.read;
            positions.extend(pose::positions(self.model, key, team, agent));
            velocities.extend(pose::velocities(self.model, key, team, agent));
            activations.extend(pose::activations(self.model, key, team, agent));
        }
        let places = |mut of: Vec<usize>| {
            of.sort_unstable();
            of.dedup();
            of.into_iter()
        };
        let positions = places(positions).map(|i| (ResetPlace::Position(i), i));
        let velocities = places(velocities).map(|i| (ResetPlace::Velocity(i), i));
        let activations = places(activations).map(|i| (ResetPlace::Activation(i), i));
        let mut all = Vec::new();
        for (place, i) in positions.chain(velocities).chain(activations) {
            let of = |key: &Keyframe| match place {
                ResetPlace::Velocity(_) => key.qvel[i],
                ResetPlace::Activation(_) => key.act[i],
                _ => key.qpos[i],
            };
            let values = keys.iter().map(|key| number(of(key), &path));
            let values: Vec<f32> = values.collect::<Result<_, _>>()?;
            let done = match values[..] {
                [value] => operation(place, Change::Set(value), None),
                _ => chosen(place, values),
            };
            all.push(Operation { word, ..done });
        }
        Ok(all)
    }
}

/// One of these values; without chance the first.
fn chosen(place: ResetPlace, values: Vec<f32>) -> Operation {
    let first = values.first().copied().unwrap_or(0.0);
    operation(place, Change::Drawn(first), Some(Draw::one_of(values)))
}
