//! What a robot has to measure for the observations of its policy.
//!
//! The robot is every tree of bodies with an actuator that the policy drives. It measures the
//! positions and velocities of its joints, and the orientation and angular velocity of a base
//! that floats; frames of its bodies follow from them. Accelerometers, force, torque and touch
//! sensors of its file are its own. The rest is missing.

use super::depend::{Dependence, settled};
use super::rows::is_instrument;
use super::{DeployError, Deployment};
use ostler_base::names::nearest;
pub(crate) use ostler_lang::expr::{Cell, Code, Seen, Source, Step};
use ostler_model::{Field, Joint, JointKind, Model, PathPart, TendonKind, Transmission};
use std::collections::{BTreeMap, BTreeSet};

/// A quantity that a robot cannot measure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// Where a floating base is: its body.
    Position(usize),
    /// How fast it moves.
    Velocity(usize),
    /// In words.
    Other(String),
}

/// An observation for which something is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmeasured {
    /// The term's name.
    pub term: String,
    /// Its expression.
    pub expr: String,
    /// What is missing, in words.
    pub what: Vec<String>,
}

/// The message of [`DeployError::Unmeasured`].
pub(super) fn explain(all: &[Unmeasured]) -> String {
    let mut text = String::from("a robot cannot measure what its policy sees:\n");
    for one in all {
        let what = one.what.join(", ");
        text += &format!("  {} = {}: {what}\n", one.term, one.expr);
    }
    let inputs: Vec<String> = all.iter().map(|u| format!("--input {}", u.term)).collect();
    text += &format!(
        "{} makes it an input of the C function, which your own estimator fills; or train \
         without it: group = \"critic\" shows it to the critic alone",
        inputs.join(" ")
    );
    text
}

/// What a robot measures for its policy; the terms' code is made from it.
#[derive(Debug, Clone)]
pub struct Measured<'a> {
    pub(super) of: &'a Deployment<'a>,
    /// Terms that are inputs themselves.
    pub(super) inputs: BTreeSet<usize>,
    /// Roots of the robot's trees.
    roots: BTreeSet<usize>,
    /// Hinge and slide joints whose position or velocity is read, in the model's order.
    pub(super) joints: BTreeSet<usize>,
    /// Whether their velocities are.
    pub(super) velocities: bool,
    /// Ball joints whose orientation is read, and whether their velocity is.
    pub(super) balls: BTreeMap<usize, bool>,
    /// Floating bases whose orientation is read; whether the angular velocity is.
    pub(super) bases: BTreeMap<usize, bool>,
    /// Instruments of the robot's file that are read.
    pub(super) sensors: BTreeSet<usize>,
    /// Commands that are read.
    pub(super) commands: BTreeSet<usize>,
    /// Bodies whose frames are worked out, with those that they hang on; whether they move.
    pub(super) frames: BTreeSet<usize>,
    pub(super) moving: bool,
    /// Remembered values that are read.
    pub(super) cells: BTreeSet<usize>,
    /// Terms that are seen late by a fixed number of control steps and of which nothing is
    /// measured: no robot brings them late by itself.
    pub(super) late: BTreeMap<usize, usize>,
}

impl<'a> Deployment<'a> {
    /// What a robot measures for the terms but for those called `inputs`.
    ///
    /// # Errors
    /// Something cannot be measured; there is no such term.
    pub fn measured(&'a self, inputs: &[String]) -> Result<Measured<'a>, DeployError> {
        let names = || self.terms.iter().map(|t| t.name.as_str());
        let mut given = BTreeSet::new();
        for input in inputs {
            let place = names().position(|n| n == input);
            given.insert(place.ok_or_else(|| DeployError::Term {
                name: input.clone(),
                help: match nearest(input, names()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("it sees: {}", names().collect::<Vec<_>>().join(", ")),
                },
            })?);
        }
        let added = self.controls.iter().find_map(|c| Some((c, c.added_to?.0)));
        if let Some((control, to)) = added {
            return Err(DeployError::Added(control.name.clone(), to));
        }
        let mut measured = Measured {
            of: self,
            inputs: given,
            roots: self.roots(),
            joints: BTreeSet::new(),
            velocities: false,
            balls: BTreeMap::new(),
            bases: BTreeMap::new(),
            sensors: BTreeSet::new(),
            commands: BTreeSet::new(),
            frames: BTreeSet::new(),
            moving: false,
            cells: BTreeSet::new(),
            late: BTreeMap::new(),
        };
        let mut missing = Vec::new();
        for (t, term) in self.terms.iter().enumerate() {
            if measured.inputs.contains(&t) {
                continue;
            }
            let code = self.task.observations.terms[term.index].term.code();
            let what: BTreeSet<Missing> =
                measured.examine(code).iter().flat_map(Dependence::all).collect();
            if !what.is_empty() {
                missing.push(Unmeasured {
                    term: term.name.clone(),
                    expr: term.expr.clone(),
                    what: what.iter().map(|m| self.words(m)).collect(),
                });
            }
            if let Some(steps) = term.fixed_delay()
                && measured.is_remembered(code, &mut BTreeSet::new())
            {
                measured.late.insert(t, steps);
            }
        }
        match missing.is_empty() {
            true => Ok(measured),
            false => Err(DeployError::Unmeasured(missing)),
        }
    }

    /// Roots of the trees in which the agent drives something.
    fn roots(&self) -> BTreeSet<usize> {
        let model = self.model;
        let mut roots = BTreeSet::new();
        for control in &self.controls {
            let bodies: Vec<usize> = match model.actuators[control.actuator].transmission {
                Transmission::Joint(j) | Transmission::JointInParent(j) => {
                    vec![model.joints[j].body]
                }
                Transmission::Site { site, .. } => vec![model.sites[site].body],
                Transmission::SliderCrank { crank, slider, .. } => {
                    vec![model.sites[crank].body, model.sites[slider].body]
                }
                Transmission::Body(body) => vec![body],
                Transmission::Tendon(t) => match &model.tendons[t].kind {
                    TendonKind::Fixed(joints) => {
                        joints.iter().map(|(j, _)| model.joints[*j].body).collect()
                    }
                    TendonKind::Spatial(path) => path
                        .iter()
                        .filter_map(|part| match part {
                            PathPart::Site(s) => Some(model.sites[*s].body),
                            PathPart::Geom { .. } | PathPart::Pulley(_) => None,
                        })
                        .collect(),
                },
            };
            roots.extend(bodies.into_iter().map(|b| root(model, b)));
        }
        roots.remove(&0);
        roots
    }

    fn words(&self, missing: &Missing) -> String {
        let body = |b: &usize| &self.model.bodies[*b].name;
        match missing {
            Missing::Position(b) => format!("the position of \"{}\" in the world", body(b)),
            Missing::Velocity(b) => format!("the linear velocity of \"{}\"", body(b)),
            Missing::Other(words) => words.clone(),
        }
    }
}

/// The body below the world that `body` hangs on; 0 for the world.
fn root(model: &Model, mut body: usize) -> usize {
    while body != 0 && model.bodies[body].parent != 0 {
        body = model.bodies[body].parent;
    }
    body
}

impl<'a> Measured<'a> {
    /// What it is measured for.
    pub fn deployment(&self) -> &'a Deployment<'a> {
        self.of
    }

    /// What `code`'s outputs depend on that is missing; notes what it reads.
    fn examine(&mut self, code: &Code) -> Vec<Dependence> {
        Dependence::of_code(&settled(code), |source, row| self.read(source, row))
    }

    fn read(&mut self, source: Source, row: usize) -> Dependence {
        let words = |what: &str| Dependence::missing(Missing::Other(what.to_string()));
        match source {
            Source::World(column) => self.world(column, row),
            Source::Action | Source::LastAction => {
                match self.of.task.actions.own[self.of.agent].contains(&row) {
                    true => Dependence::none(),
                    false => words("actions of another agent"),
                }
            }
            Source::Ctrl => {
                let actions = &self.of.task.actions;
                let late =
                    |output: usize| actions.late.iter().any(|(own, _)| own.contains(&output));
                let mut drives = actions.drives.iter();
                if drives.any(|d| d.actuator == row && late(d.output)) {
                    return words("controls that actions reach late (delay)");
                }
                let own = self.of.controls.iter().any(|c| c.actuator == row);
                let free = self.of.task.actions.drives.iter().all(|d| d.actuator != row);
                match own || free {
                    true => Dependence::none(),
                    false => words("controls of another agent"),
                }
            }
            Source::History => self.history(row),
            Source::Command => {
                let of = |c: &super::Command| (c.first..c.first + c.len).contains(&row);
                self.commands.extend(self.of.commands.iter().position(of));
                Dependence::none()
            }
            Source::Shown => words("numbers that events draw"),
            Source::Random => words("random numbers of a start"),
            Source::Native => words("outputs of native functions"),
            Source::Scan => words("what is scanned of the ground"),
            Source::Stand => words("where on the terrain it began"),
            Source::Motion => words("the reference motion"),
            Source::Param | Source::Step | Source::StepDt | Source::MaxSteps => Dependence::none(),
        }
    }

    /// Whether `code` reads nothing that is measured or given, nor do the remembered values in
    /// it; `seen`: those that were looked at.
    fn is_remembered(&self, code: &Code, seen: &mut BTreeSet<usize>) -> bool {
        let cells = self.of.task.history.cells();
        settled(code).steps.iter().all(|(step, _)| match *step {
            Step::Load(Source::History, row) => {
                let holds = |c: &Cell| c.rows().contains(&(row as usize));
                let Some(place) = cells.iter().position(holds) else {
                    return true;
                };
                let mut own = [cells[place].begin(), cells[place].next()].into_iter();
                !seen.insert(place) || own.all(|code| self.is_remembered(code, seen))
            }
            Step::Load(source, _) => matches!(
                source,
                Source::Action
                    | Source::LastAction
                    | Source::Ctrl
                    | Source::Param
                    | Source::Step
                    | Source::StepDt
                    | Source::MaxSteps
            ),
            Step::Const(_) | Step::Copy(_) | Step::Op(..) => true,
        })
    }

    /// A remembered value depends on what it was and becomes made of.
    fn history(&mut self, row: usize) -> Dependence {
        let cells = self.of.task.history.cells();
        let Some(place) = cells.iter().position(|c| c.rows().contains(&row)) else {
            return Dependence::none();
        };
        if !self.cells.insert(place) {
            // Looked at already, or just now.
            return Dependence::none();
        }
        let cell: &Cell = &cells[place];
        let codes = [cell.begin(), cell.next()];
        let all = codes.into_iter().flat_map(|code| self.examine(code));
        let missing: BTreeSet<Missing> = all.flat_map(|d| d.all()).collect();
        if !missing.is_empty() {
            // The next term that reads it is to say so, too.
            self.cells.remove(&place);
        }
        Dependence::missing_all(missing)
    }

    fn world(&mut self, column: Seen, row: usize) -> Dependence {
        let model = self.of.model;
        let words = |what: String| Dependence::missing(Missing::Other(what));
        match column {
            Seen::Qpos => match joint_of(model, row, |j| j.qpos_adr, |k| k.nq()) {
                Some((j, k)) => self.joint(j, k, false),
                None => Dependence::none(),
            },
            Seen::Qvel => match joint_of(model, row, |j| j.dof_adr, |k| k.nv()) {
                Some((j, k)) => self.joint(j, k, true),
                None => Dependence::none(),
            },
            Seen::BodyPos => self.frame(row / 3, Some((false, row % 3)), false),
            Seen::BodyQuat => self.frame(row / 4, None, false),
            Seen::BodyLinVel => self.frame(row / 3, Some((true, row % 3)), true),
            Seen::BodyAngVel => self.frame(row / 3, None, true),
            Seen::Sensordata => {
                let sensors = model.sensors.iter().enumerate();
                let mut holding = sensors.filter(|(s, sensor)| {
                    let first = model.measured_before(*s);
                    (first..first + sensor.kind.measured()).contains(&row)
                });
                match holding.next() {
                    Some((s, sensor)) if is_instrument(&sensor.kind) => {
                        self.sensors.insert(s);
                        Dependence::none()
                    }
                    Some((_, sensor)) => words(format!(
                        "the sensor \"{}\", which measures an acceleration of a frame",
                        sensor.name
                    )),
                    None => Dependence::none(),
                }
            }
            Seen::ContactForce => {
                let geom = model.geoms.get(row).map_or("", |g| g.name.as_str());
                words(format!("the contact force of \"{geom}\""))
            }
            Seen::ActuatorForce => {
                let name = model.actuators.get(row).map_or("", |a| a.name.as_str());
                words(format!("the force of actuator \"{name}\""))
            }
            Seen::Act => {
                let of = model.actuators.iter().find(|a| a.act_adr == Some(row));
                let name = of.map_or("", |a| a.name.as_str());
                words(format!("the activation of actuator \"{name}\""))
            }
            Seen::Qacc => words("accelerations of joints".into()),
            Seen::ContactData => words("contacts between geoms".into()),
            Seen::Varied => words("numbers of the robot that events change".into()),
        }
    }

    fn joint(&mut self, j: usize, k: usize, velocity: bool) -> Dependence {
        let model = self.of.model;
        let joint = &model.joints[j];
        if let Some(missing) = self.foreign(joint.body) {
            return missing;
        }
        match joint.kind {
            JointKind::Hinge | JointKind::Slide => {
                self.joints.insert(j);
                self.velocities |= velocity;
            }
            JointKind::Ball => *self.balls.entry(j).or_default() |= velocity,
            JointKind::Free if k < 3 => return Dependence::unknown((joint.body, velocity, k)),
            JointKind::Free => *self.bases.entry(joint.body).or_default() |= velocity,
        }
        Dependence::none()
    }

    /// Of a body that is no part of the robot, unless it stands still.
    fn foreign(&self, body: usize) -> Option<Dependence> {
        let model = self.of.model;
        let root = root(model, body);
        if self.roots.contains(&root) || model.bodies[body].weld == 0 {
            return None;
        }
        let what =
            format!("the state of \"{}\", which is no part of the robot", model.bodies[body].name);
        Some(Dependence::missing(Missing::Other(what)))
    }

    /// A number of a body's frame; `base`: it moves with a floating base's position or
    /// velocity, along an axis.
    fn frame(&mut self, body: usize, base: Option<(bool, usize)>, moving: bool) -> Dependence {
        let model = self.of.model;
        if let Some(missing) = self.foreign(body) {
            return missing;
        }
        self.moving |= moving;
        let mut at = body;
        let mut along = Dependence::none();
        // A chain of bodies is printed as it is modelled.
        let mut shifted = BTreeSet::new();
        while at != 0 {
            self.frames.insert(at);
            for j in model.bodies[at].joints.clone() {
                match model.joints[j].kind {
                    JointKind::Hinge | JointKind::Slide => {
                        self.joints.insert(j);
                        self.velocities |= moving;
                        if model.varied_row(Field::Qpos0, j).is_some() {
                            let name = &model.joints[j].name;
                            let words =
                                format!("the offset of joint \"{name}\" that events change");
                            shifted.insert(Missing::Other(words));
                        }
                    }
                    JointKind::Ball => *self.balls.entry(j).or_default() |= moving,
                    JointKind::Free => {
                        *self.bases.entry(at).or_default() |= moving;
                        if let Some((velocity, axis)) = base {
                            along = Dependence::unknown((at, velocity, axis));
                        }
                    }
                }
            }
            at = model.bodies[at].parent;
        }
        along.and(shifted)
    }
}

/// The joint that has entry `row`, and which of its own that is.
fn joint_of(
    model: &Model,
    row: usize,
    first: impl Fn(&Joint) -> usize,
    len: impl Fn(JointKind) -> usize,
) -> Option<(usize, usize)> {
    let mut joints = model.joints.iter().enumerate();
    joints.find_map(|(j, joint)| {
        let k = row.checked_sub(first(joint))?;
        (k < len(joint.kind)).then_some((j, k))
    })
}
