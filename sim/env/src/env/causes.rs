//! The table of causes: every way in which an environment of this robot and task can
//! break, by name.
//!
//! | name | what was wrong |
//! |---|---|
//! | `nan/joint/J`, `inf/joint/J` | a position, velocity or acceleration of joint J |
//! | `speed/joint/J`, `position/joint/J` | beyond `sim.max_speed`, `sim.max_position`, or what `[[sim.limit]]` has for J |
//! | `speed/body/B`, `position/body/B` | the same, in engines that look at bodies |
//! | `nan/action/U`, `inf/action/U` | the policy's output for actuator U; `AGENT/choice` for a choice of one of several agents |
//! | `nan/control/U`, `nan/activation/U` and `inf/...` | actuator U's control, state |
//! | `nan/native/F`, `inf/native/F` | an output of the native function F, or what it remembers |
//! | `nan/reward/R`, `inf/reward/R` | reward term R; `sum_of_terms` where none is it alone |
//! | `bound/reward/R` | the sum is beyond `task.rewards.max_abs`, R is its largest term |
//! | `nan/observation/O`, `inf/observation/O` | observation term O; `critic_observation` for privileged ones |
//! | `.../AGENT/O` | the same of one of several agents |
//! | `engine/failed` | the engine gave up (a panic was caught, a body was quarantined) |
//! | `start/unusable` | the episode's start could not be simulated or observed, and nothing is wrong any more |
//! | `unknown/unknown` | it broke, and nothing was found |
//! | `unexamined/others` | there were too many to look at each |

use crate::task::Task;
use ostler_engine::physics::Part;
use ostler_model::Model;

/// Fault of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nan,
    /// Infinite, or so large that it might as well be.
    Inf,
    /// Beyond a limit.
    Beyond,
}

impl Kind {
    pub(crate) fn of(value: f32) -> Self {
        if value.is_nan() {
            Self::Nan
        } else if ostler_engine::physics::evidence::is_bad(value) {
            Self::Inf
        } else {
            Self::Beyond
        }
    }
}

/// Where a number belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CausePlace {
    Physics(Part),
    Action(usize),
    /// A native function.
    Native(usize),
    /// One past the last term: their sum.
    Reward(usize),
    /// A term, in the task's order.
    Observation(usize),
    Engine,
    Start,
    Unknown,
    Unexamined,
}

/// Names, and where each group of them begins.
#[derive(Debug, Clone)]
pub(super) struct Causes {
    pub names: Vec<String>,
    joints: usize,
    bodies: usize,
    controls: usize,
    activations: usize,
    actions: usize,
    natives: usize,
    rewards: usize,
    observations: usize,
    rest: usize,
    /// Joint of every entry of `qpos`, of `qvel`; actuator of every activation.
    joint_of_qpos: Vec<usize>,
    joint_of_qvel: Vec<usize>,
    actuator_of: Vec<usize>,
}

impl Causes {
    pub(crate) fn new(model: &Model, task: &Task) -> Self {
        let mut names = Vec::new();
        let mut group = |kinds: &[&str], what: &str, of: &[String]| {
            let start = names.len();
            for name in of {
                names.extend(kinds.iter().map(|k| format!("{k}/{what}/{name}")));
            }
            start
        };
        let numbers = ["nan", "inf"];
        let limits = ["speed", "position"];
        let joints: Vec<String> = model.joints.iter().map(|j| j.name.clone()).collect();
        let bodies: Vec<String> = model.bodies.iter().map(|b| b.name.clone()).collect();
        let actuators: Vec<String> = model.actuators.iter().map(|a| a.name.clone()).collect();
        let mut terms = task.score.reward_names();
        terms.push("sum_of_terms".to_string());
        let observed = task.observations.names(&task.team);
        let joints = group(&[numbers, limits].concat(), "joint", &joints);
        let bodies = group(&limits, "body", &bodies);
        let controls = group(&numbers, "control", &actuators);
        let activations = group(&numbers, "activation", &actuators);
        let actions = group(&numbers, "action", &task.actions.names(model, &task.team));
        let functions = task.natives.functions.iter();
        let functions: Vec<String> = functions.map(|f| f.row.name.clone()).collect();
        let natives = group(&numbers, "native", &functions);
        let rewards = group(&["nan", "inf", "bound"], "reward", &terms);
        let start = names.len();
        for (privileged, name) in observed {
            let what = if privileged { "critic_observation" } else { "observation" };
            names.extend(numbers.map(|k| format!("{k}/{what}/{name}")));
        }
        let rest = names.len();
        for name in ["engine/failed", "start/unusable", "unknown/unknown", "unexamined/others"] {
            names.push(name.to_string());
        }
        let mut all = Self {
            names,
            joints,
            bodies,
            controls,
            activations,
            actions,
            natives,
            rewards,
            observations: start,
            rest,
            joint_of_qpos: vec![0; model.nq],
            joint_of_qvel: vec![0; model.nv],
            actuator_of: vec![0; model.na],
        };
        for (j, joint) in model.joints.iter().enumerate() {
            all.joint_of_qpos[joint.qpos_adr..][..joint.kind.nq()].fill(j);
            all.joint_of_qvel[joint.dof_adr..][..joint.kind.nv()].fill(j);
        }
        for (u, actuator) in model.actuators.iter().enumerate() {
            if let Some(a) = actuator.act_adr {
                all.actuator_of[a] = u;
            }
        }
        all
    }

    /// Index of the cause that a number is.
    pub(crate) fn index(&self, place: CausePlace, kind: Kind) -> usize {
        // NaN, infinite; a limit counts as infinite where there is none.
        let number = usize::from(kind != Kind::Nan);
        let known = |map: &[usize], i: usize| map.get(i).copied();
        let joint = |j: Option<usize>, limit: usize| {
            let kind = if kind == Kind::Beyond { limit } else { number };
            j.map(|j| self.joints + 4 * j + kind)
        };
        let found = match place {
            CausePlace::Physics(Part::Qvel(i)) => joint(known(&self.joint_of_qvel, i), 2),
            CausePlace::Physics(Part::Qpos(i)) => joint(known(&self.joint_of_qpos, i), 3),
            CausePlace::Physics(Part::BodySpeed(b)) => Some(self.bodies + 2 * b),
            CausePlace::Physics(Part::BodyPosition(b)) => Some(self.bodies + 2 * b + 1),
            CausePlace::Physics(Part::Control(u)) => Some(self.controls + 2 * u + number),
            CausePlace::Physics(Part::Activation(a)) => {
                known(&self.actuator_of, a).map(|u| self.activations + 2 * u + number)
            }
            CausePlace::Action(k) => Some(self.actions + 2 * k + number),
            CausePlace::Native(f) => Some(self.natives + 2 * f + number),
            CausePlace::Reward(r) => {
                let kind = if kind == Kind::Beyond { 2 } else { number };
                Some(self.rewards + 3 * r + kind)
            }
            CausePlace::Observation(o) => Some(self.observations + 2 * o + number),
            CausePlace::Physics(Part::Engine) | CausePlace::Engine => Some(self.rest),
            CausePlace::Start => Some(self.rest + 1),
            CausePlace::Unknown => Some(self.rest + 2),
            CausePlace::Unexamined => Some(self.rest + 3),
        };
        found.filter(|i| *i < self.names.len()).unwrap_or(self.rest + 2)
    }
}
