//! `task.default_pose`: the pose that targets and relative positions are about.
//!
//! `"reset"` (the default) is the pose in which episodes start, without chance; `"initial"`
//! the robot file's own; `"keyframe(NAME)"` one of its keyframes. In a pose that is named
//! episodes also start, before the terms of `[[task.reset]]`.

use super::read::{self, Names, Parts};
use super::reset::Reset;
use super::team::{AgentIndex, Team};
use crate::config::ConfigError;
use ostler_base::names::nearest;
use ostler_lang::number;
use ostler_model::arms::tendon_length;
use ostler_model::{Actuator, Joint, JointKind, Keyframe, Model, Transmission};
use std::ops::Range;

/// Where the pose is named.
const PATH: &str = "task.default_pose";
/// Names besides keyframes.
const RESET: &str = "reset";
const INITIAL: &str = "initial";
const KEYFRAME: &str = "keyframe";

/// The pose of a task.
#[derive(Debug, Clone)]
pub struct Pose {
    /// As the task names it: `reset`, `initial` or `keyframe(home)`.
    pub name: String,
    /// Generalised positions `(nq)`.
    pub qpos: Vec<f64>,
    /// Activations that go with it `(na)`: those of the keyframe, else zero.
    pub act: Vec<f64>,
    /// Controls that hold it `(nu)`, for actuators that no action drives: those of the
    /// keyframe where it gives some, else the lengths that position actuators have in the
    /// pose. `None` where neither says anything: such a control is zero.
    pub ctrl: Vec<Option<f64>>,
}

impl Pose {
    /// The pose that the task names; `None` if it is that of the resets.
    ///
    /// # Errors
    /// There is no such pose.
    pub(super) fn named(
        model: &Model,
        text: Option<&str>,
        read: Names<'_>,
    ) -> Result<Option<Self>, ConfigError> {
        let team = read.team;
        let Some(text) = text.filter(|t| t.trim() != RESET) else {
            return Ok(None);
        };
        if text.trim() == INITIAL {
            return Ok(Some(Self::new(INITIAL, model, model.qpos0.clone(), None)));
        }
        let (mut qpos, mut ctrl) = (model.qpos0.clone(), vec![0.0; model.nu()]);
        let mut act = vec![0.0; model.na];
        for agent in team.agents_of(&[text]) {
            let own = team.fill(agent, text);
            let names = Names { agent, ..read };
            let key = named_keyframe(model, names, &own).map_err(|e| team.blame(agent, text, e))?;
            for at in positions(model, key, team, agent) {
                qpos[at] = f64::from(number(key.qpos[at], PATH)?);
            }
            for at in activations(model, key, team, agent) {
                act[at] = f64::from(number(key.act[at], PATH)?);
            }
            for (u, from) in key.ctrl.iter().enumerate().filter(|c| *c.1 != 0.0) {
                let own = owner(team, &[&model.actuators[u].name]);
                if agent.is_none() || own.is_none() || own == agent {
                    ctrl[u] = f64::from(number(*from, PATH)?);
                }
            }
        }
        let given = ctrl.iter().any(|c| *c != 0.0).then_some(&ctrl[..]);
        Ok(Some(Self { act, ..Self::new(text.trim(), model, qpos, given) }))
    }

    /// The pose in which episodes start, without chance.
    pub(super) fn of_resets(model: &Model, reset: &Reset) -> Self {
        // Coordinates that no reset sets keep all their digits.
        let exact = model.qpos0.iter().zip(&reset.fixed);
        let qpos = exact.map(|(&q, &now)| match q as f32 == now {
            true => q,
            false => f64::from(now),
        });
        Self::new(RESET, model, qpos.collect(), None)
    }

    /// `given`: the controls of a keyframe.
    fn new(name: &str, model: &Model, qpos: Vec<f64>, given: Option<&[f64]>) -> Self {
        let control = |(u, actuator): (usize, &Actuator)| match given {
            Some(ctrl) => Some(ctrl[u]),
            None => actuator.is_servo().then(|| length(model, actuator, &qpos))?,
        };
        Self {
            name: name.into(),
            act: vec![0.0; model.na],
            ctrl: model.actuators.iter().enumerate().map(control).collect(),
            qpos,
        }
    }
}

/// The length of an actuator in a pose, if it is one of a joint or tendon.
fn length(model: &Model, actuator: &Actuator, qpos: &[f64]) -> Option<f64> {
    let length = match actuator.transmission {
        Transmission::Joint(j) | Transmission::JointInParent(j) => {
            let joint = &model.joints[j];
            match joint.kind {
                JointKind::Hinge | JointKind::Slide => qpos[joint.qpos_adr],
                JointKind::Ball | JointKind::Free => return None,
            }
        }
        Transmission::Tendon(t) => tendon_length(model, t, qpos),
        Transmission::Site { .. } | Transmission::SliderCrank { .. } | Transmission::Body(_) => {
            return None;
        }
    };
    Some(actuator.gear[0] * length)
}

/// The keyframe of `keyframe(NAME)`.
fn named_keyframe<'m>(
    model: &'m Model,
    names: Names<'_>,
    text: &str,
) -> Result<&'m Keyframe, ConfigError> {
    let word = text.split('(').next().unwrap_or_default().trim();
    if word == KEYFRAME {
        let all = keyframes(model, names, text, PATH)?;
        return match all[..] {
            [one] => Ok(one),
            _ => Err(ambiguous(text, &all, PATH).help("name one keyframe")),
        };
    }
    let keys = || model.keyframes.iter().map(|k| k.name.as_str());
    let help = if let Some(key) = nearest(word, keys()) {
        format!("did you mean \"{KEYFRAME}({key})\"?")
    } else if let Some(known) = nearest(word, [RESET, INITIAL, KEYFRAME]) {
        format!("did you mean \"{known}\"?")
    } else {
        format!("\"{RESET}\", \"{INITIAL}\" or \"{KEYFRAME}(NAME)\"")
    };
    Err(ConfigError {
        span: text.find(word).map(|at| at..at + word.len()),
        ..ConfigError::new(PATH, format!("no pose \"{word}\"")).help(help)
    })
}

/// `text` at `path` means several keyframes, and one is wanted.
pub(super) fn ambiguous(text: &str, keys: &[&Keyframe], path: &str) -> ConfigError {
    let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
    read::ambiguous(text, &names, path)
}

/// The keyframes of `text` at `path`: `keyframe(NAME)`, `keyframe([A, B])`.
///
/// # Errors
/// It names none of the model's, or one that is of another model's size.
pub(super) fn keyframes<'m>(
    model: &'m Model,
    names: Names<'_>,
    text: &str,
    path: &str,
) -> Result<Vec<&'m Keyframe>, ConfigError> {
    let parts = Parts::keyframes(model);
    let Some(name) = argument(text).filter(|n| !n.is_empty()) else {
        return Err(ConfigError::new(path, "keyframe needs a name")
            .help(format!("write \"keyframe(NAME)\"; {}", parts.exist())));
    };
    let here =
        |e: ConfigError| ConfigError { span: text.rfind(name).map(|at| at..at + name.len()), ..e };
    let found = names.several(name, &parts, path).map_err(here)?.all;
    found.into_iter().map(|key| usable(model, &model.keyframes[key], path)).collect()
}

/// Refuses a keyframe that poses cannot be taken from.
fn usable<'m>(model: &Model, key: &'m Keyframe, path: &str) -> Result<&'m Keyframe, ConfigError> {
    let name = &key.name;
    if key.moves_mocap {
        let message =
            format!("keyframe \"{name}\" moves a mocap body, which stays where its <body> is");
        let help = "move the body in the file, and leave mpos and mquat out of the keyframe";
        return Err(ConfigError::new(path, message).help(help));
    }
    for (what, found, needed) in [
        ("qpos", key.qpos.len(), model.nq),
        ("qvel", key.qvel.len(), model.nv),
        ("act", key.act.len(), model.na),
        ("ctrl", key.ctrl.len(), model.nu()),
    ] {
        if found != needed {
            let message =
                format!("{what} of keyframe \"{name}\" has {found} numbers, the robot {needed}");
            return Err(ConfigError::new(path, message));
        }
    }
    Ok(key)
}

/// `name` between the parentheses of `target(name)`, without quotes.
pub(super) fn argument(target: &str) -> Option<&str> {
    let (_, rest) = target.split_once('(')?;
    let inner = rest.trim_end().strip_suffix(')')?.trim();
    Some(inner.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(inner))
}

/// The positions that a keyframe sets: all of them; of one agent's, those of joints that are
/// called after it, and of the others' none. Joints that are called after nobody are the first
/// agent's, or of later ones what their keyframes take out of the initial pose, since the keyframe
/// of an attached robot leaves the others' joints there.
pub(super) fn positions(
    model: &Model,
    key: &Keyframe,
    team: &Team,
    agent: AgentIndex,
) -> Vec<usize> {
    let moved = |at: Range<usize>| key.qpos[at.clone()] != model.qpos0[at];
    let joints = model.joints.iter().filter(|joint| {
        let own = sets(model, joint, team, agent);
        own.unwrap_or_else(|| moved(joint.qpos_adr..joint.qpos_adr + joint.kind.nq()))
    });
    joints.flat_map(|j| j.qpos_adr..j.qpos_adr + j.kind.nq()).collect()
}

/// The velocities that a keyframe sets; as for [`positions`].
pub(super) fn velocities(
    model: &Model,
    key: &Keyframe,
    team: &Team,
    agent: AgentIndex,
) -> Vec<usize> {
    let joints = model.joints.iter();
    let each = joints.flat_map(|j| (j.dof_adr..j.dof_adr + j.kind.nv()).map(move |v| (j, v)));
    let set = |&(joint, v): &(&Joint, usize)| {
        let moved = |v: &f64| sets(model, joint, team, agent).unwrap_or(*v != 0.0);
        key.qvel.get(v).is_some_and(moved)
    };
    each.filter(set).map(|(_, v)| v).collect()
}

/// The activations that a keyframe sets; as for [`positions`], of actuators.
pub(super) fn activations(
    model: &Model,
    key: &Keyframe,
    team: &Team,
    agent: AgentIndex,
) -> Vec<usize> {
    let states = model.actuators.iter().filter_map(|actuator| Some((actuator, actuator.act_adr?)));
    let set = |&(actuator, at): &(&Actuator, usize)| match owner(team, &[&actuator.name]) {
        Some(own) => agent.is_none_or(|agent| agent == own),
        None => agent.is_none_or(|agent| agent == 0) || key.act[at] != 0.0,
    };
    states.filter(set).map(|(_, at)| at).collect()
}

/// Whether a keyframe of this agent, or of the world, sets a joint; nothing where that depends on
/// whether it moves it.
fn sets(model: &Model, joint: &Joint, team: &Team, agent: AgentIndex) -> Option<bool> {
    let Some(agent) = agent else { return Some(true) };
    match owner(team, &[&joint.name, &model.bodies[joint.body].name]) {
        Some(own) => Some(own == agent),
        None => (agent == 0).then_some(true),
    }
}

/// The agent that something with these names is called after: `red` in `red_knee`, `red/knee`.
fn owner(team: &Team, names: &[&str]) -> Option<usize> {
    let called = |text: &&str, own: &str| {
        text.strip_prefix(own).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let all = team.names().iter().enumerate();
    // Of `red` and `red_2` the longer name counts.
    let fits = all.filter(|(_, own)| names.iter().any(|text| called(text, own)));
    fits.max_by_key(|(_, own)| own.len()).map(|(agent, _)| agent)
}

#[cfg(test)]
mod keyframe_tests {
    use super::usable;
    use ostler_model::mjcf;

    #[test]
    fn keyframes_that_move_mocap_bodies_are_refused_where_they_are_used() {
        let text = r#"<mujoco><worldbody><body name="goal" mocap="true" pos="0 0 1"/>
            <body><joint/><geom size="1"/></body></worldbody><keyframe>
            <key name="home" qpos="1" mpos="0 0 1" mquat="-1 0 0 0"/>
            <key name="far" qpos="1" mpos="0 0 2"/><key name="turned" mquat="0 1 0 0"/>
            </keyframe></mujoco>"#;
        let model = mjcf::parse("goal.xml".as_ref(), text.into()).unwrap();
        let find = |name: &str| {
            let key = model.keyframes.iter().find(|key| key.name == name).unwrap();
            usable(&model, key, "task.start.pose")
        };
        assert_eq!(find("home").unwrap().qpos, [1.0]);
        for name in ["far", "turned"] {
            let error = find(name).unwrap_err();
            assert!(error.to_string().contains("moves a mocap body"), "{error}");
        }
    }
}
