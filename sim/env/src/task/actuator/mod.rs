//! The robot as its task drives it: `[[task.actuator]]`, and servos from motors where
//! `kind = "position"` gives them gains.
//!
//! [`robot`] writes both into the model, so that engines, expressions and events see one robot.

mod network;

use super::action::{has_gains, servos};
use super::contact;
use super::elements::{Chosen, Elements};
use super::late;
use super::read::{Names, Parts};
use super::team::Team;
use crate::config::{ActuatorModel, ActuatorTerm, ConfigError, OneOrMany, OptionTable, TaskConfig};
use ostler_lang::expr::Definitions;
use ostler_model::{
    Actuator, Delay, Dynamics, EffortLimit, Given, Model, Motor, MotorLaw, Network, Transmission,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// `model` with the actuators of `cfg`. Applied to its own result it changes nothing.
///
/// # Errors
/// A mistake in a term; a network that cannot be read.
pub(super) fn robot(model: &Arc<Model>, cfg: &TaskConfig) -> Result<Arc<Model>, ConfigError> {
    if !changes(cfg) {
        return Ok(Arc::clone(model));
    }
    let team = Team::new(cfg)?;
    let mut made = Model::clone(model);
    made.networks.clear();
    contact::apply(&mut made, cfg, &team)?;
    let (mut drives, mut driven) = (BTreeMap::new(), BTreeSet::new());
    if !cfg.actuator.is_empty() {
        let defined = Definitions::new(model, cfg, team.names())?;
        let names = Names { defined: &defined, team: &team, agent: None };
        for (t, term) in cfg.actuator.iter().enumerate() {
            of_term(&mut made, &mut drives, (t, term), names)?;
        }
        driven.extend(drives.keys());
        install(&mut made, drives)?;
    }
    servos(&mut made, cfg, &team, &driven)?;
    Ok(match made == **model {
        true => Arc::clone(model),
        false => Arc::new(made),
    })
}

/// Whether a task changes its robot: most do not.
fn changes(cfg: &TaskConfig) -> bool {
    let files = cfg.actuator.is_empty() && cfg.contact.is_empty();
    !files || cfg.option != OptionTable::default() || cfg.action.iter().any(has_gains)
}

/// What drives a joint.
struct JointDrive {
    term: usize,
    law: Law,
    delay: Option<Delay>,
}

/// The laws of a term's joints, and the network that they share, with its files.
struct Laws {
    each: Vec<Law>,
    network: Option<(Network, Vec<PathBuf>)>,
}

enum Law {
    /// Stiffness, damping and most effort of MuJoCo's servo.
    Servo([f64; 2], Option<f64>),
    Motor(MotorLaw),
}

/// The joints of a term and what drives each.
fn of_term(
    model: &mut Model,
    drives: &mut BTreeMap<usize, JointDrive>,
    (t, term): (usize, &ActuatorTerm),
    read: Names<'_>,
) -> Result<(), ConfigError> {
    let path = format!("task.actuator[{t}]");
    let Chosen { all: joints, mixed } = joints(model, term, read, &path)?;
    for &j in &joints {
        let name = &model.joints[j].name;
        if !model.joints[j].is_scalar() {
            let message = format!("\"{name}\" is a ball or free joint");
            return Err(ConfigError::new(format!("{path}.joints"), message)
                .help("hinge and slide joints have a position to be driven to"));
        }
        if let Some(other) = drives.get(&j) {
            let message = format!("\"{name}\" is already driven by task.actuator[{}]", other.term);
            return Err(ConfigError::new(format!("{path}.joints"), message)
                .help("every joint fits the patterns of one term"));
        }
    }
    let names: Vec<Vec<&str>> =
        (joints.iter()).map(|&j| vec![model.joints[j].name.as_str()]).collect();
    let elements = Elements { what: "joints", names: &names, mixed, read };
    let numbers = Numbers { elements, path: &path, term };
    let laws = numbers.laws(model)?;
    let delay = late::compile(term.delay.as_ref(), "physics", &format!("{path}.delay"))?;
    let armature = numbers.some("armature", &term.armature)?;
    let friction = numbers.some("friction", &term.friction)?;
    if let Some((network, files)) = laws.network {
        model.networks.push(network);
        for file in files {
            if !model.sources.contains(&file) {
                model.sources.push(file);
            }
        }
    }
    if armature.is_some() && model.actuators.iter().any(|a| a.muscle.is_some()) {
        let message = "the robot's file has muscles, whose forces follow from it";
        return Err(ConfigError::new(format!("{path}.armature"), message)
            .help("write armature into the file"));
    }
    for (i, (&j, law)) in joints.iter().zip(laws.each).enumerate() {
        if let Some(armature) = &armature {
            model.joints[j].armature = armature[i];
        }
        if let Some(friction) = &friction {
            model.joints[j].frictionloss = friction[i];
        }
        let drive = JointDrive { term: t, law, delay };
        drives.insert(j, drive);
    }
    Ok(())
}

/// The joints that a term names; a pattern means hinges and slides alone.
fn joints(
    model: &Model,
    term: &ActuatorTerm,
    read: Names<'_>,
    path: &str,
) -> Result<Chosen, ConfigError> {
    let key = format!("{path}.joints");
    let chosen = read.parts(&term.joints, &Parts::driven(model), &key)?;
    match chosen.all.is_empty() {
        true => Err(ConfigError::new(key, "names no hinge or slide joint")
            .help("joints = [\"*\"] means all of them")),
        false => Ok(chosen),
    }
}

/// The numbers of a term, joint by joint.
struct Numbers<'a> {
    elements: Elements<'a>,
    path: &'a str,
    term: &'a ActuatorTerm,
}

impl Numbers<'_> {
    /// Of a key that may be left out; none is negative.
    fn some(&self, key: &str, values: &Option<OneOrMany>) -> Result<Option<Vec<f64>>, ConfigError> {
        let path = format!("{}.{key}", self.path);
        let Some(values) = values else {
            return Ok(None);
        };
        let all = match key {
            "effort_limit" | "velocity_limit" => self.elements.open(values, &path)?,
            _ => self.elements.exact(values, &path)?,
        };
        match all.iter().find(|x| **x < 0.0) {
            Some(x) => Err(ConfigError::new(path, format!("{x} is negative"))),
            None => Ok(Some(all)),
        }
    }

    /// Of one that the law needs.
    fn needed(
        &self,
        key: &str,
        values: &Option<OneOrMany>,
        example: &str,
    ) -> Result<Vec<f64>, ConfigError> {
        let all = self.some(key, values)?;
        all.ok_or_else(|| {
            let law = self.term.model.name();
            let path = format!("{}.{key}", self.path);
            ConfigError::new(path, format!("is needed by model = \"{law}\""))
                .help(format!("{key} = {example}, for example"))
        })
    }

    /// Refuses keys that this law does not have.
    fn unused(&self, keys: &[(&str, bool)], help: &str) -> Result<(), ConfigError> {
        match keys.iter().find(|(_, given)| *given) {
            Some((key, _)) => {
                let message = format!("has no meaning for model = \"{}\"", self.term.model.name());
                Err(ConfigError::new(format!("{}.{key}", self.path), message).help(help))
            }
            None => Ok(()),
        }
    }

    /// The law of every joint, and the network that they share.
    fn laws(&self, model: &Model) -> Result<Laws, ConfigError> {
        let (term, path) = (self.term, self.path);
        let count = self.elements.names.len();
        let network = ("network", term.network.is_some());
        let curve = [
            ("saturation_effort", term.saturation_effort.is_some()),
            ("velocity_limit", term.velocity_limit.is_some()),
        ];
        let gains = [("stiffness", term.stiffness.is_some()), ("damping", term.damping.is_some())];
        let effort = self.some("effort_limit", &term.effort_limit)?;
        match term.model {
            ActuatorModel::Pd => {
                let [a, b] = curve;
                self.unused(&[a, b, network], "model = \"dc_motor\" has a curve over the speed, \"mlp\" and \"lstm\" have networks")?;
                let [kp, kd] = self.gains(count)?;
                let most = |i: usize| effort.as_ref().map(|e| e[i]).filter(|e| e.is_finite());
                let law = |i: usize| Law::Servo([kp[i], kd[i]], most(i));
                Ok(Laws { each: (0..count).map(law).collect(), network: None })
            }
            ActuatorModel::DcMotor => {
                self.unused(&[network], "model = \"mlp\" or \"lstm\" has one")?;
                let [kp, kd] = self.gains(count)?;
                self.needed("saturation_effort", &term.saturation_effort, "23.7")?;
                let limits = self.limits(effort.as_deref(), count)?;
                let law = |i: usize| {
                    Law::Motor(MotorLaw::Pd { stiffness: kp[i], damping: kd[i], limit: limits[i] })
                };
                Ok(Laws { each: (0..count).map(law).collect(), network: None })
            }
            ActuatorModel::Mlp | ActuatorModel::Lstm => {
                self.unused(&gains, "the network knows the motor's gains")?;
                let Some(config) = &term.network else {
                    let message = format!("is needed by model = \"{}\"", term.model.name());
                    return Err(ConfigError::new(format!("{path}.network"), message)
                        .help("network = { file = \"motor.safetensors\" }, or \"motor.onnx\", for example"));
                };
                let key = format!("{path}.network");
                let network = network::load(model, term.model, config, &key)?;
                let limits = self.limits(effort.as_deref(), count)?;
                let number = model.networks.len();
                let law =
                    |i: usize| Law::Motor(MotorLaw::Network { network: number, limit: limits[i] });
                Ok(Laws { each: (0..count).map(law).collect(), network: Some(network) })
            }
        }
    }

    fn gains(&self, count: usize) -> Result<[Vec<f64>; 2], ConfigError> {
        let kp = self.needed("stiffness", &self.term.stiffness, "20.0")?;
        if kp.contains(&0.0) {
            let path = format!("{}.stiffness", self.path);
            return Err(ConfigError::new(path, "is above 0: the control is a position"));
        }
        let kd = self.some("damping", &self.term.damping)?;
        Ok([kp, kd.unwrap_or_else(|| vec![0.0; count])])
    }

    /// Most effort of every joint; with `saturation_effort` it falls with the speed.
    fn limits(
        &self,
        effort: Option<&[f64]>,
        count: usize,
    ) -> Result<Vec<EffortLimit>, ConfigError> {
        let term = self.term;
        let stall = self.some("saturation_effort", &term.saturation_effort)?;
        let speed = self.some("velocity_limit", &term.velocity_limit)?;
        let above = |key: &str, all: &[f64]| match all.iter().all(|x| *x > 0.0) {
            true => Ok(()),
            false => Err(ConfigError::new(format!("{}.{key}", self.path), "is above 0")),
        };
        let fall = match (&stall, &speed) {
            (None, None) => None,
            (Some(stall), Some(speed)) => {
                above("saturation_effort", stall)?;
                above("velocity_limit", speed)?;
                Some((stall, speed))
            }
            (stall, _) => {
                let (missing, other) = match stall {
                    Some(_) => ("velocity_limit", "saturation_effort"),
                    None => ("saturation_effort", "velocity_limit"),
                };
                return Err(ConfigError::new(
                    format!("{}.{missing}", self.path),
                    format!("is needed beside {other}"),
                )
                .help("the effort at rest and the speed at which there is none"));
            }
        };
        Ok((0..count)
            .map(|i| {
                let fall = fall.map(|(stall, speed)| [stall[i], speed[i]]);
                let most = effort.map(|e| e[i]).or(fall.map(|f| f[0])).unwrap_or(f64::INFINITY);
                match fall {
                    // It does not fall.
                    Some([stall, f64::INFINITY]) => {
                        EffortLimit { effort: most.min(stall), fall: None }
                    }
                    fall => EffortLimit { effort: most, fall },
                }
            })
            .collect())
    }
}

/// Puts the drives into the model: in the places of the file's actuators of these joints, the
/// others behind them.
fn install(model: &mut Model, drives: BTreeMap<usize, JointDrive>) -> Result<(), ConfigError> {
    for (j, drive) in drives {
        let path = format!("task.actuator[{}].joints", drive.term);
        let of_joint = |a: &(usize, &Actuator)| a.1.joint() == Some(j);
        let mut own = model.actuators.iter().enumerate().filter(of_joint);
        let (first, second) = (own.next().map(|a| a.0), own.next().map(|a| a.0));
        let joint = model.joints[j].name.clone();
        if let (Some(a), Some(b)) = (first, second) {
            let [a, b] = [a, b].map(|u| &model.actuators[u].name);
            let message = format!("\"{a}\" and \"{b}\" of the robot's file both drive \"{joint}\"");
            return Err(ConfigError::new(path, message).help("leave one of them in the file"));
        }
        let (name, given) = match first {
            Some(u) if model.actuators[u].given == Given::Task => (joint, Given::Task),
            Some(u) => (model.actuators[u].name.clone(), Given::Law),
            None if model.actuators.iter().any(|a| a.name == joint) => {
                let message = format!(
                    "the robot's file has another actuator that is called as joint \"{joint}\" is"
                );
                return Err(ConfigError::new(path, message).help("rename one of them in the file"));
            }
            None => (joint, Given::Task),
        };
        let made = actuator(name, given, j, &drive);
        match first {
            Some(u) => model.actuators[u] = made,
            None => model.actuators.push(made),
        }
        let u = first.unwrap_or(model.actuators.len() - 1);
        let q = model.joints[j].qpos_adr;
        for key in &mut model.keyframes {
            // A control in the file meant something else: the target holds the pose.
            let hold = key.qpos.get(q).copied().unwrap_or_default();
            match key.ctrl.get_mut(u) {
                Some(ctrl) => *ctrl = hold,
                None => key.ctrl.push(hold),
            }
        }
    }
    number_activations(model);
    Ok(())
}

fn actuator(name: String, given: Given, joint: usize, drive: &JointDrive) -> Actuator {
    let servo = |[kp, kd]: [f64; 2], effort: Option<f64>| {
        ("position", [kp, 0.0, 0.0], [0.0, -kp, -kd], effort.map(|e| [-e, e]))
    };
    let (element, gain, bias, forcerange) = match &drive.law {
        Law::Servo(gains, effort) => servo(*gains, *effort),
        Law::Motor(_) => ("motor", [1.0, 0.0, 0.0], [0.0; 3], None),
    };
    let delay = drive.delay.unwrap_or_default();
    // Of one number there is nothing to draw.
    let delay = match delay.most > delay.least {
        true => delay,
        false => Delay { redraw: 0, hold: 0.0, ..delay },
    };
    let law = match &drive.law {
        Law::Motor(law) => Some(law.clone()),
        Law::Servo(..) if delay.most > 0 => Some(MotorLaw::MuJoCo),
        Law::Servo(..) => None,
    };
    Actuator {
        name,
        element,
        transmission: Transmission::Joint(joint),
        gear: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ctrlrange: None,
        forcerange,
        gain,
        bias,
        dynamics: Dynamics::None,
        dynprm: [0.0; 3],
        actrange: None,
        actearly: false,
        muscle: None,
        enabled: true,
        motor: law.map(|law| Motor { law, delay, group: drive.term }),
        given,
        act_adr: None,
    }
}

/// Activations of the actuators that still have one, in their order.
fn number_activations(model: &mut Model) {
    let (mut na, mut kept) = (0, Vec::new());
    for actuator in &mut model.actuators {
        if let Some(old) = actuator.act_adr {
            kept.push(old);
            actuator.act_adr = Some(na);
            na += 1;
        }
    }
    for key in &mut model.keyframes {
        let each = kept.iter().map(|old| key.act.get(*old).copied().unwrap_or_default());
        key.act = each.collect();
    }
    model.na = na;
}
