//! A compiled task and its robot as the tables that kernels read: `OSTLER_TABLES` of
//! `kernels/state.h`.

use super::Task;
use super::action::{Actions, Law};
use super::command::Commands;
use super::expr::{History, Remembered};
use super::observe::Observations;
use super::reset::{Chance, Reset, ResetPlace};
use super::score::Score;
use crate::config::NoiseKind;
use crate::env::ActionSpace;
use crate::math::normalized;
use crate::model::Model;
use crate::state::{Sizes, Tables};

/// `NOWHERE` of `kernels/env/args.cuh`.
const NOWHERE: u32 = u32::MAX;

/// `DRIVE_*` there.
enum Drives {
    Held,
    Affine,
    Pd,
    Choice,
}

/// `PLACE_*` there.
enum Target {
    Position,
    Velocity,
    Yaw,
}

/// `CHANCE_*` there.
enum Draws {
    Nothing,
    Uniform,
    Normal,
}

impl Task {
    /// Sizes of the task's tables and of environments with this robot.
    pub(crate) fn sizes(&self, model: &Model) -> Sizes {
        let [nobs, ncritic] = self.observations.world();
        let (actions, score, seen) = (&self.actions, &self.score, &self.observations);
        let padding = &seen.padding;
        Sizes {
            nagent: self.team.count(),
            naction: self.actions.outputs(),
            nraw: self.actions.raw_width(),
            ncommand: self.commands.width(),
            nhistory: self.history.width(),
            nobs,
            ncritic,
            nreward: score.rewards.len(),
            nend: score.termination_names().len(),
            ndrive: actions.held.len() + actions.drives.len(),
            nchoice: actions.drives.iter().map(|d| d.law.choices()).sum(),
            nplace: self.reset.operations.len(),
            nquat: self.reset.quaternions.len(),
            nshare: score.rewards.iter().map(|r| r.agents.len()).sum(),
            nterm: score.terminations.len(),
            nseen: seen.terms.len(),
            nentry: seen.terms.iter().map(|t| t.scale.len()).sum(),
            nprivileged: seen.terms.iter().map(|t| t.critic_at.len()).sum(),
            npad: padding.policy.len() + padding.critic.as_ref().map_or(0, Vec::len),
            ncell: self.history.cells().len(),
            ..Sizes::of(model)
        }
    }

    /// Its numbers and the robot's, with a control step of `step_dt` (s) and `max_steps` of
    /// them until the time-out.
    pub(crate) fn tables(&self, model: &Model, step_dt: f64, max_steps: u32) -> Tables {
        let mut t = Tables {
            max_steps: vec![max_steps],
            step_dt: vec![step_dt as f32],
            ..Tables::of(model)
        };
        actions(&mut t, &self.actions);
        commands(&mut t, &self.commands);
        starts(&mut t, &self.reset);
        score(&mut t, &self.score);
        observations(&mut t, &self.observations);
        fill_history(&mut t, &self.history);
        t
    }
}

fn actions(t: &mut Tables, actions: &Actions) {
    let discrete = matches!(actions.space, ActionSpace::Discrete(_));
    t.discrete = vec![u32::from(discrete)];
    t.raw = actions.raw.iter().map(|&at| at as u32).collect();
    t.clip_low = actions.clip.iter().map(|c| c[0]).collect();
    t.clip_high = actions.clip.iter().map(|c| c[1]).collect();
    for &(actuator, control) in &actions.held {
        t.drive(Drives::Held, actuator, 0, [control; 2], [0.0, control]);
    }
    for drive in &actions.drives {
        let (u, output, limits) = (drive.actuator, drive.output, drive.ctrlrange);
        match &drive.law {
            Law::Affine { scale, offset } => {
                t.drive(Drives::Affine, u, output, limits, [*scale, *offset]);
            }
            Law::Pd {
                scale,
                offset,
                kp,
                kd,
                gear,
                q,
                v,
            } => {
                let d = t.drive(Drives::Pd, u, output, limits, [*scale, *offset]);
                (t.drive_kp[d], t.drive_kd[d], t.drive_gear[d]) = (*kp, *kd, *gear);
                (t.drive_q[d], t.drive_v[d]) = (*q as u32, *v as u32);
            }
            Law::Choice(controls) => {
                let d = t.drive(Drives::Choice, u, output, limits, [0.0; 2]);
                t.drive_choice[d] = t.choice.len() as u32;
                t.choice.extend(controls);
            }
        }
    }
}

impl Law {
    /// Entries in the table of choices.
    fn choices(&self) -> usize {
        match self {
            Self::Choice(controls) => controls.len(),
            Self::Affine { .. } | Self::Pd { .. } => 0,
        }
    }
}

impl Tables {
    /// The robot's kinematics alone.
    pub(crate) fn of(model: &Model) -> Self {
        let mut t = Self::default();
        for body in &model.bodies {
            t.body_parent.push(body.parent as u32);
            t.body_at.extend(body.pos.map(|x| x as f32));
            t.body_turn.extend(normalized(body.quat.map(|x| x as f32)));
            for joint in &model.joints[body.joints.clone()] {
                // The kinds are in the order of `JOINT_*` of args.cuh.
                t.joint_kind.push(joint.kind as u32);
                t.joint_pos.extend(joint.pos.map(|x| x as f32));
                t.joint_axis.extend(joint.axis.map(|x| x as f32));
                t.joint_reference.push(joint.reference as f32);
                t.joint_q.push(joint.qpos_adr as u32);
                t.joint_v.push(joint.dof_adr as u32);
            }
            t.body_joints.push(t.joint_kind.len() as u32);
        }
        t
    }

    /// A control more; returns its place.
    fn drive(
        &mut self,
        law: Drives,
        actuator: usize,
        output: usize,
        [low, high]: [f32; 2],
        [scale, offset]: [f32; 2],
    ) -> usize {
        for (column, number) in [
            (&mut self.drive_law, law as u32),
            (&mut self.drive_actuator, actuator as u32),
            (&mut self.drive_output, output as u32),
            (&mut self.drive_q, 0),
            (&mut self.drive_v, 0),
            (&mut self.drive_choice, 0),
        ] {
            column.push(number);
        }
        for (column, number) in [
            (&mut self.drive_low, low),
            (&mut self.drive_high, high),
            (&mut self.drive_scale, scale),
            (&mut self.drive_offset, offset),
            (&mut self.drive_kp, 0.0),
            (&mut self.drive_kd, 0.0),
            (&mut self.drive_gear, 1.0),
        ] {
            column.push(number);
        }
        self.drive_law.len() - 1
    }
}

fn commands(t: &mut Tables, commands: &Commands) {
    for c in &commands.components {
        t.command_low.push(c.range[0]);
        t.command_high.push(c.range[1]);
        t.command_interval.push(c.interval);
    }
}

/// How episodes start.
pub(super) fn starts(t: &mut Tables, reset: &Reset) {
    (t.begin_qpos, t.begin_qvel) = reset.start.clone();
    t.quaternion = reset.quaternions.iter().map(|&i| i as u32).collect();
    for op in &reset.operations {
        let (target, index) = match op.place {
            ResetPlace::Position(i) => (Target::Position, i),
            ResetPlace::Velocity(i) => (Target::Velocity, i),
            ResetPlace::Yaw(i) => (Target::Yaw, i),
        };
        let (chance, [low, high]) = match op.chance {
            Chance::None => (Draws::Nothing, [0.0; 2]),
            Chance::Uniform(range) => (Draws::Uniform, range),
            Chance::Normal(sigma) => (Draws::Normal, [0.0, sigma]),
        };
        t.place_target.push(target as u32);
        t.place_index.push(index as u32);
        t.place_chance.push(chance as u32);
        t.place_draw.push(op.draw);
        t.place_sets.push(u32::from(op.set.is_some()));
        t.place_value.push(op.set.unwrap_or(0.0));
        t.place_low.push(low);
        t.place_high.push(high);
    }
}

fn score(t: &mut Tables, score: &Score) {
    for term in &score.rewards {
        t.weight.push(term.weight);
        t.share_agent.extend(term.agents.iter().map(|&m| m as u32));
        t.share_end.push(t.share_agent.len() as u32);
    }
    t.reward_limit = vec![score.max_abs];
    let [low, high] = score.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
    (t.reward_low, t.reward_high) = (vec![low], vec![high]);
    let truncates = score.terminations.iter().map(|e| u32::from(e.truncate));
    t.truncates = truncates.collect();
}

fn observations(t: &mut Tables, observations: &Observations) {
    for term in &observations.terms {
        let [low, high] = term.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
        t.entry_scale.extend(&term.scale);
        t.seen_end.push(t.entry_scale.len() as u32);
        t.seen_low.push(low);
        t.seen_high.push(high);
        t.seen_noise.push(term.noise);
        let normal = term.noise_kind == NoiseKind::Normal;
        t.seen_normal.push(u32::from(normal));
        t.seen_at
            .push(term.policy_at.map_or(NOWHERE, |at| at as u32));
        t.privileged_at
            .extend(term.critic_at.iter().map(|&at| at as u32));
        t.privileged_end.push(t.privileged_at.len() as u32);
    }
    let padding = &observations.padding;
    let policy = padding.policy.iter().map(|gap| (0, gap));
    let critic = padding.critic.iter().flatten().map(|gap| (1, gap));
    for (critic, gap) in policy.chain(critic) {
        t.pad_critic.push(critic);
        t.pad_from.push(gap.start as u32);
        t.pad_to.push(gap.end as u32);
    }
}

fn fill_history(t: &mut Tables, history: &History) {
    for cell in history.cells() {
        t.cell_end.push(cell.rows().end as u32);
        let since = cell.kind() == Remembered::Since;
        t.cell_since.push(u32::from(since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AgentsConfig, TaskConfig};
    use crate::model::mjcf;
    use crate::state::TABLES;
    use std::path::Path;

    /// A kernel reads as many entries as the sizes say.
    #[test]
    fn tables_are_as_long_as_their_sizes_say() {
        #[derive(serde::Deserialize)]
        struct Run {
            task: TaskConfig,
            #[serde(default)]
            agents: Option<AgentsConfig>,
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        for name in [
            "cartpole",
            "quadruped",
            "half_cheetah_legs",
            "ant_sumo",
            "spread",
        ] {
            let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
            let run = toml::from_str::<Run>(&text).unwrap();
            let mut task = run.task;
            task.agents = run.agents;
            let model = mjcf::load(&folder.join(&task.robot)).unwrap();
            let task = Task::compile(&model, &task, 0.02).unwrap();
            let sizes = task.sizes(&model);
            let tables = task.tables(&model, 0.02, 500);
            for (len, (table, factor, size, ..)) in tables.lengths().into_iter().zip(TABLES) {
                let mut named = sizes.named().chain([("one", 1)]);
                let wants = factor * named.find(|(name, _)| *name == size).unwrap().1;
                assert_eq!(len, wants, "{name}: {table} [{size}]");
            }
            let bytes: usize = tables.lengths().iter().sum::<usize>() * 4;
            assert_eq!(tables.bytes().len(), bytes);
        }
    }
}
