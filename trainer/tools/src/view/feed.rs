//! A moment as a row of numbers, and what they mean.

use super::contacts::{Contacts, WIDTH};
use ostler_draw::scene::Poses;
use ostler_run::run::stage::Stage;
use ostler_sim::Model;
use ostler_sim::config::SimConfig;
use ostler_sim::model::JointKind;
use ostler_sim::physics::PhysicsError;
use ostler_sim::task::limits;
use serde::Serialize;

/// Numbers in front of the poses: time (s), return, reward of the last step, control steps.
pub const HEAD: usize = 4;

/// Numbers that belong together and have names: a table and lines on the page.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// What they are.
    pub name: String,
    /// Where they begin in a row.
    pub first: usize,
    /// Names.
    pub names: Vec<String>,
    /// Units, as many; empty where there is none.
    pub units: Vec<String>,
}

/// A command, for arrows and sliders.
#[derive(Debug, Clone, Serialize)]
pub struct Command {
    /// Name and unit.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Where its components begin in a row.
    pub first: usize,
    /// Least and greatest value of each.
    pub ranges: Vec<[f32; 2]>,
}

/// Places of the numbers in a row.
#[derive(Debug, Clone, Serialize)]
pub struct Layout {
    /// Numbers of a row.
    pub width: usize,
    /// Where the bodies' poses begin: place (m) and quaternion (w, x, y, z) of each; behind them
    /// those of the reference motion, where there is one.
    pub poses: usize,
    /// Where contacts begin: place (m) and force (N) of each shape that is sensed.
    pub contacts: usize,
    /// Bodies of the shapes that are sensed.
    pub contact_bodies: Vec<usize>,
    /// Names of these shapes.
    pub contact_names: Vec<String>,
    /// Where straight parts of tendons begin: from and to (m) of each.
    pub strings: usize,
    /// How many there are.
    pub string_count: usize,
    /// Everything that has names.
    pub groups: Vec<Group>,
    /// Commands.
    pub commands: Vec<Command>,
    /// Joints: name, limits, and the entries of positions and velocities in a row.
    pub joints: Vec<Joint>,
}

/// A joint with one position.
#[derive(Debug, Clone, Serialize)]
pub struct Joint {
    /// Its name.
    pub name: String,
    /// m or rad.
    pub unit: &'static str,
    /// Its limits, if it has some.
    pub range: Option<[f64; 2]>,
    /// Where its position is in a row.
    pub position: usize,
    /// Where its velocity is in a row.
    pub velocity: usize,
}

/// Makes rows of one environment, step by step.
#[derive(Debug)]
pub struct Feed {
    layout: Layout,
    contacts: Option<Contacts>,
    /// Why there are no contacts.
    pub note: Option<String>,
    env: usize,
    bodies: usize,
    /// Control steps of the episode, and its return so far.
    pub steps: u32,
    ret: f32,
    reward: f32,
    sensed: Vec<f32>,
    /// Reward terms of the episode when the last row was made, and the steps since.
    sums: Vec<f32>,
    /// Their means over the steps before the last row that had some.
    terms: Vec<f32>,
    since: u32,
}

impl Feed {
    /// Rows of environment `env` of `stage`.
    pub fn new(stage: &Stage, config: &SimConfig, env: usize) -> Self {
        let world = stage.env();
        let model = world.model();
        let named = limits(model, config, world.task()).map_err(PhysicsError::from);
        let (contacts, note) = match named.and_then(|sim| Contacts::new(model, &sim)) {
            Ok(contacts) => (Some(contacts), None),
            Err(e) => (None, Some(format!("contacts are not shown: {e}"))),
        };
        let geoms = contacts.as_ref().map_or(&[][..], Contacts::geoms);
        let layout = layout(stage, env, geoms);
        let sums: Vec<f32> = world.reward_sums(env).map(|_| 0.0).collect();
        Self {
            sensed: vec![0.0; geoms.len() * WIDTH],
            bodies: model.bodies.len(),
            contacts,
            layout,
            note,
            env,
            steps: 0,
            ret: 0.0,
            reward: 0.0,
            terms: sums.clone(),
            sums,
            since: 0,
        }
    }

    /// What the numbers of a row are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Call before a step.
    pub fn before(&mut self, stage: &Stage) {
        if let Some(contacts) = &mut self.contacts {
            contacts.before(stage.env(), self.env);
        }
    }

    /// Call after it. `ended`: the state is that of a new episode already.
    pub fn after(&mut self, stage: &Stage, ended: bool) {
        if ended {
            self.begin();
            return;
        }
        self.steps += 1;
        self.since += 1;
        self.reward = stage.reward(self.env);
        self.ret += self.reward;
        if let Some(contacts) = &mut self.contacts {
            contacts.after(stage.env(), self.env, &mut self.sensed);
        }
    }

    /// A new episode has begun.
    pub fn begin(&mut self) {
        (self.steps, self.ret, self.reward, self.since) = (0, 0.0, 0.0, 0);
        self.sums.fill(0.0);
        self.terms.fill(0.0);
        self.sensed.fill(0.0);
    }

    /// Appends the row of this moment; reward terms are means over the steps since the last one.
    pub fn row(&mut self, stage: &Stage, out: &mut Vec<f32>) {
        let (env, start) = (stage.env(), out.len());
        let n = env.spec().num_envs.max(1);
        let state = env.physics().state();
        let column = |rows: &'_ [f32], i: usize| rows.get(i * n + self.env).copied().unwrap_or(0.0);
        let time = f64::from(self.steps) * env.spec().step_dt;
        out.extend([time as f32, self.ret, self.reward, self.steps as f32]);
        for b in 0..self.bodies {
            out.extend((0..3).map(|i| column(&state.body_pos, 3 * b + i)));
            out.extend((0..4).map(|i| column(&state.body_quat, 4 * b + i)));
        }
        env.reference_poses(self.env).for_each(|pose| out.extend(pose));
        out.extend(&self.sensed);
        let strings = Poses::of(state, self.env).strings(env.model());
        out.extend(strings.iter().flatten().flat_map(|p| [p.x, p.y, p.z]));
        if self.since > 0 {
            let terms = self.terms.iter_mut().zip(&mut self.sums);
            for ((term, old), now) in terms.zip(env.reward_sums(self.env)) {
                *term = (now - *old) / self.since as f32;
                *old = now;
            }
        }
        self.since = 0;
        out.extend(&self.terms);
        out.extend(env.commands(self.env));
        let rows = [&state.qpos, &state.qvel, &state.actuator_force];
        for rows in rows {
            out.extend(rows.iter().skip(self.env).step_by(n));
        }
        out.extend(env.actions(self.env));
        out.extend(stage.observation(self.env));
        debug_assert_eq!(out.len() - start, self.layout.width, "a row has its width");
    }
}

/// Entries of a vector with their axes.
fn axes(name: &str, n: usize) -> Vec<String> {
    const AXES: [&str; 4] = ["x", "y", "z", "w"];
    match n {
        1 => vec![name.into()],
        2..=4 => AXES[..n].iter().map(|a| format!("{name}.{a}")).collect(),
        _ => (0..n).map(|i| format!("{name}[{i}]")).collect(),
    }
}

fn layout(stage: &Stage, e: usize, geoms: &[usize]) -> Layout {
    let env = stage.env();
    let (model, spec) = (env.model(), env.spec());
    let poses = HEAD;
    let ghosts = env.reference_poses(e).count();
    let contacts = poses + 7 * (model.bodies.len() + ghosts);
    let strings = contacts + WIDTH * geoms.len();
    let string_count = Poses::of(env.physics().state(), e).strings(model).len();
    let mut next = strings + 6 * string_count;
    let mut groups = Vec::new();
    let mut group = |name: &str, names: Vec<String>, units: Vec<String>| {
        let first = next;
        next += names.len();
        if !names.is_empty() {
            groups.push(Group { name: name.into(), first, names, units });
        }
        first
    };
    let none = |names: &[String]| vec![String::new(); names.len()];
    let rewards = spec.reward_names.clone();
    group("Reward terms", rewards.clone(), none(&rewards));
    let specs = env.command_specs();
    let (mut names, mut units) = (Vec::new(), Vec::new());
    for c in &specs {
        names.extend(axes(&c.name, c.ranges.len()));
        units.resize(names.len(), c.unit.clone());
    }
    let commands = group("Commands", names, units);
    let (q, v) = coordinates(model);
    let first_q = group("Positions", q.0, q.1);
    let first_v = group("Velocities", v.0, v.1);
    let actuators: Vec<String> = model.actuators.iter().map(|a| a.name.clone()).collect();
    let units = vec![String::new(); actuators.len()];
    group("Actuator forces", actuators, units);
    let actions: Vec<String> =
        (0..env.actions(e).count()).map(|i| format!("action[{i}]")).collect();
    let units = none(&actions);
    group("Actions", actions, units);
    let (names, units) = observed(stage, e);
    group("Observations", names, units);
    let single = model.joints.iter().filter_map(|j| {
        let unit = j.kind.scalar_unit()?;
        Some(Joint {
            name: j.name.clone(),
            unit,
            range: j.range,
            position: first_q + j.qpos_adr,
            velocity: first_v + j.dof_adr,
        })
    });
    Layout {
        width: next,
        poses,
        contacts,
        contact_bodies: geoms.iter().map(|&g| model.geoms[g].body).collect(),
        contact_names: geoms.iter().map(|&g| model.geoms[g].name.clone()).collect(),
        strings,
        string_count,
        joints: single.collect(),
        commands: specs
            .into_iter()
            .map(|c| Command {
                first: commands + c.first,
                name: c.name,
                unit: c.unit,
                ranges: c.ranges,
            })
            .collect(),
        groups,
    }
}

type Named = (Vec<String>, Vec<String>);

/// Names and units of positions and of velocities.
fn coordinates(model: &Model) -> (Named, Named) {
    let (mut q, mut v): (Named, Named) = Default::default();
    let put = |to: &mut Named, name: String, unit: &str| {
        to.0.push(name);
        to.1.push(unit.into());
    };
    for j in &model.joints {
        let name = &j.name;
        let quat = |to: &mut Named| {
            for c in ["w", "x", "y", "z"] {
                put(to, format!("{name}.quat.{c}"), "");
            }
        };
        match j.kind {
            JointKind::Slide | JointKind::Hinge => {
                let unit = if j.kind == JointKind::Slide { "m" } else { "rad" };
                put(&mut q, name.clone(), unit);
                put(&mut v, name.clone(), &format!("{unit}/s"));
            }
            JointKind::Ball => {
                quat(&mut q);
                for c in ["x", "y", "z"] {
                    put(&mut v, format!("{name}.{c}"), "rad/s");
                }
            }
            JointKind::Free => {
                for c in ["x", "y", "z"] {
                    put(&mut q, format!("{name}.{c}"), "m");
                    put(&mut v, format!("{name}.{c}"), "m/s");
                }
                quat(&mut q);
                for c in ["x", "y", "z"] {
                    put(&mut v, format!("{name}.turn.{c}"), "rad/s");
                }
            }
        }
    }
    (q, v)
}

/// Names and units of observations, of all agents.
fn observed(stage: &Stage, e: usize) -> Named {
    let spec = stage.env().spec();
    let count = stage.observation(e).len();
    let mut names: Vec<String> = (0..count).map(|i| format!("observation[{i}]")).collect();
    let mut units = vec![String::new(); count];
    let mut fill = |first: usize, prefix: &str, table: &[ostler_sim::env::ObsRow]| {
        for row in table {
            for frame in 0..row.frames.max(1) {
                let late = match row.frames {
                    0 | 1 => String::new(),
                    n => format!(" -{}", n - 1 - frame),
                };
                for (i, name) in axes(&row.name, row.len).into_iter().enumerate() {
                    let at = first + row.index + frame * row.stride + i;
                    if let (Some(to), Some(unit)) = (names.get_mut(at), units.get_mut(at)) {
                        *to = format!("{prefix}{name}{late}");
                        *unit = row.unit.trim_matches('-').to_string();
                    }
                }
            }
        }
    };
    match spec.agents.as_slice() {
        [] => fill(0, "", &spec.obs_table.policy),
        agents => {
            for (m, agent) in agents.iter().enumerate() {
                let prefix = format!("{} ", agent.name);
                fill(m * spec.obs.policy, &prefix, &agent.obs_table.policy);
            }
        }
    }
    (names, units)
}
