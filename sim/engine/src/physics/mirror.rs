//! Whether a robot and its reflection move alike: physics says so, not names.

use super::PhysicsError;
use super::evaluate::{Evaluation, Precision};
use super::native::{EvalOptions, evaluate};
use crate::referee::states::StateTable;
use ostler_base::rng::{Purpose, normal_pair, philox, unit};
use ostler_model::edit::lowest_in;
use ostler_model::mirror::Mirror;
use ostler_model::{Actuator, JointKind, Model, Quat};
use std::sync::Arc;

/// States of a robot, their reflections, and how far their accelerations are from being
/// reflections of each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proof {
    /// States.
    pub states: usize,
    /// Of these, states with contacts.
    pub touching: usize,
    /// States whose accelerations differ by at most [`tolerance`](Self::tolerance).
    pub alike: usize,
    /// Largest difference that counts as rounding, relative to the largest acceleration.
    pub tolerance: f64,
    /// The difference in the median state.
    pub typical: f64,
    /// The same of the states with contacts; 0 without such.
    pub typical_touching: f64,
    /// The joint that differs most in most of the states that do.
    pub joint: Option<String>,
}

impl Proof {
    /// All but one of a thousand states are alike.
    pub fn holds(&self) -> bool {
        self.alike as f64 >= 0.999 * self.states as f64
    }
}

/// The robot whose shapes meet nothing.
pub fn without_contacts(model: &Model) -> Model {
    let mut made = model.clone();
    made.geoms.iter_mut().for_each(|g| (g.contype, g.conaffinity) = (0, 0));
    made.pairs.clear();
    made
}

/// The robot whose shapes meet nothing but the world's own.
pub fn ground_alone(model: &Model) -> Model {
    let mut made = model.clone();
    let fixed = |geom: usize| model.geoms[geom].body == 0;
    made.excludes = (1..model.bodies.len()).flat_map(|b| (1..b).map(move |a| (a, b))).collect();
    made.excludes.extend(model.excludes.iter().filter(|(a, _)| *a == 0));
    made.pairs.retain(|pair| fixed(pair.geom1) || fixed(pair.geom2));
    made
}

/// The robot on ground that has a reflection, and on the reflected ground. Without a terrain both
/// are the robot itself. A terrain's tiles get level cells of random heights up to `rise` (m):
/// slopes have no exact reflection, because a cell's diagonal does not turn over.
pub fn grounds(model: &Arc<Model>, axis: usize, rise: f32) -> [Arc<Model>; 2] {
    let Some(terrain) = &model.terrain else {
        return [Arc::clone(model), Arc::clone(model)];
    };
    let counts = [terrain.levels, terrain.columns].map(|tiles| tiles * terrain.cells);
    [false, true].map(|reflected| {
        let height = |x: usize, y: usize| {
            let mut at = [x, y];
            if let (true, Some(k)) = (reflected, at.get_mut(axis)) {
                *k = counts[axis] - 1 - *k;
            }
            let word = philox(0, at[0] as u32, Purpose::Custom, at[1] as u64, 0)[0];
            rise * (unit(word) * 4.0).floor() / 4.0
        };
        let terrain = Arc::new(terrain.of_steps(f64::from(rise), height));
        Arc::new(Model { terrain: Some(terrain), ..Model::clone(model) })
    })
}

/// Random numbers, in order.
pub(super) struct Draws {
    pub(super) stream: u32,
    pub(super) next: u32,
}

impl Draws {
    fn words(&mut self) -> [u32; 4] {
        self.next += 1;
        philox(1, self.stream, Purpose::Custom, 1, self.next)
    }

    /// From -1 to 1.
    pub(super) fn even(&mut self) -> f64 {
        f64::from(2.0 * unit(self.words()[0]) - 1.0)
    }

    pub(super) fn normal(&mut self) -> f64 {
        let [a, b, ..] = self.words();
        f64::from(normal_pair(a, b).0)
    }
}

/// A state of a robot.
#[derive(Debug, Clone, PartialEq)]
pub struct Pose {
    /// Positions `(nq)`.
    pub qpos: Vec<f64>,
    /// Velocities `(nv)`.
    pub qvel: Vec<f64>,
}

/// A random state about `about (nq)`: joints within half of their ranges, free bodies turned and
/// near the ground so that one of two touches it.
pub fn random_state(model: &Model, about: &[f64], number: u32) -> Pose {
    let mut draws = Draws { stream: number, next: 0 };
    let mut qpos = about.to_vec();
    let tilted = |draws: &mut Draws, most: f64| -> Quat {
        let [x, y, z] = [most, most, 2.0].map(|k| k * draws.even());
        let length = (1.0 + x * x + y * y + z * z).sqrt();
        [1.0, x, y, z].map(|k| k / length)
    };
    let mut roots = Vec::new();
    for joint in &model.joints {
        let at = joint.qpos_adr;
        match joint.kind {
            JointKind::Hinge | JointKind::Slide => {
                let reach = if joint.kind == JointKind::Hinge { 1.0 } else { 0.2 };
                let [low, high] = joint.range.unwrap_or([about[at] - reach, about[at] + reach]);
                let towards = draws.even();
                let room = if towards < 0.0 { about[at] - low } else { high - about[at] };
                // Far beyond all that a robot reaches there is nothing to see.
                qpos[at] += 0.5 * towards * room.clamp(0.0, 3.0);
            }
            JointKind::Ball => qpos[at..at + 4].copy_from_slice(&tilted(&mut draws, 0.4)),
            JointKind::Free => {
                for k in 0..2 {
                    qpos[at + k] += draws.even();
                }
                qpos[at + 3..at + 7].copy_from_slice(&tilted(&mut draws, 0.3));
                roots.push((joint.body, at));
            }
        }
    }
    for (body, at) in roots {
        let lift = 0.03 * draws.even();
        let ground = model.terrain.as_ref().map_or(0.0, |t| t.height(qpos[at], qpos[at + 1]));
        if let Some(z) = lowest_in(model, body, &qpos) {
            qpos[at + 2] += ground + lift - z;
        }
    }
    let qvel = (0..model.nv).map(|_| 0.5 * draws.normal()).collect();
    Pose { qpos, qvel }
}

/// Compares accelerations in `count` random states about `about (nq)` with those of the reflected
/// states: in double precision, where the program has it, else in single.
///
/// # Errors
/// The engine cannot have the robot.
pub fn prove(
    model: &Arc<Model>,
    mirror: &Mirror,
    about: &[f64],
    count: u32,
) -> Result<Proof, PhysicsError> {
    let [own, other] = grounds(model, mirror.axis, 0.05);
    let (nv, k) = (model.nv, count as usize);
    let varied = model.varied_numbers();
    let mut sides = [(); 2].map(|()| StateTable { count: k, ..StateTable::default() });
    for i in 0..count {
        let state = random_state(&own, about, i);
        let mut draws = Draws { stream: i, next: 1 << 20 };
        let mut given = |actuators: &mut dyn Iterator<Item = &Actuator>| -> Vec<f64> {
            let even = actuators.map(|a| {
                let [low, high] = a.ctrlrange.unwrap_or([-1.0, 1.0]);
                0.5 * (low + high) + 0.5 * (high - low) * draws.even()
            });
            even.collect()
        };
        let ctrl = given(&mut model.actuators.iter());
        // What a control may be an activation may be, too.
        let act = given(&mut model.actuators.iter().filter(|a| a.act_adr.is_some()));
        let mut other = (state.clone(), ctrl.clone(), act.clone());
        mirror.qpos(model, &state.qpos, &mut other.0.qpos);
        mirror.qvel(model, &state.qvel, &mut other.0.qvel);
        mirror.ctrl(&ctrl, &mut other.1);
        mirror.act(model, &act, &mut other.2);
        for (side, (state, ctrl, act)) in sides.iter_mut().zip([(state, ctrl, act), other]) {
            side.qpos.extend(state.qpos);
            side.qvel.extend(state.qvel);
            side.ctrl.extend(ctrl);
            side.act.extend(act);
            side.varied.extend(&varied);
        }
    }
    let run = |precision| -> Result<[Evaluation; 2], PhysicsError> {
        let options = EvalOptions::default();
        let one =
            |model: &Model, rows: &StateTable| evaluate(model, &options, precision, &rows.view());
        Ok([one(&own, &sides[0])?, one(&other, &sides[1])?])
    };
    let (answers, tolerance) = match run(Precision::F64) {
        Ok(answers) => (answers, 1e-8),
        Err(PhysicsError::NoDouble) => (run(Precision::F32)?, 1e-4),
        Err(e) => return Err(e),
    };
    let mut wanted = vec![0.0; nv];
    let mut worst = vec![0usize; model.joints.len()];
    let mut shares: Vec<f64> = (0..k)
        .map(|i| {
            let [a, b] = [&answers[0], &answers[1]].map(|e| &e.qacc[i * nv..][..nv]);
            mirror.qvel(model, a, &mut wanted);
            let size = wanted.iter().fold(1.0f64, |most, x| most.max(x.abs()));
            let (mut most, mut at) = (0.0, 0);
            for (d, (x, y)) in b.iter().zip(&wanted).enumerate() {
                // What is not a number is no reflection.
                let share = if x == y { 0.0 } else { (x - y).abs() / size };
                if share.is_nan() || share > most {
                    (most, at) = (if share.is_nan() { f64::INFINITY } else { share }, d);
                }
            }
            if most > tolerance {
                let joint = model.joints.iter().rposition(|j| j.dof_adr <= at);
                worst[joint.unwrap_or(0)] += 1;
            }
            most
        })
        .collect();
    let touching = |i: &usize| answers[0].ncon[*i] > 0;
    let mut touched: Vec<f64> = (0..k).filter(touching).map(|i| shares[i]).collect();
    shares.sort_by(f64::total_cmp);
    touched.sort_by(f64::total_cmp);
    let median = |of: &[f64]| of.get(of.len() / 2).copied().unwrap_or(0.0);
    let joint = worst.iter().enumerate().max_by_key(|(_, n)| **n).filter(|(_, n)| **n > 0);
    Ok(Proof {
        states: k,
        touching: touched.len(),
        alike: shares.iter().filter(|s| **s <= tolerance).count(),
        tolerance,
        typical: median(&shares),
        typical_touching: median(&touched),
        joint: joint.map(|(j, _)| model.joints[j].name.clone()),
    })
}
