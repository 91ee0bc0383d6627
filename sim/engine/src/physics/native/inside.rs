//! Shapes that are inside each other in a pose.
//!
//! A kernel tells which pairs have contacts within their margins. So a margin below 0 asks whether
//! they are as deep, and halving the interval of each pair finds the depths.

use super::diagnose::State;
use super::engine::NativePhysics;
use super::ffi::Robot;
use super::kernel::InstructionSet;
use super::solver::SOLVER;
use crate::kernels::{Ground, Solver};
use crate::physics::Overlap;
use bytemuck::Zeroable;

/// Nothing is found to be deeper (m).
const MOST: f64 = 1.0;
/// Halvings of the logarithm: to 0.03 % where the least is 1 mm.
const HALVINGS: usize = 14;

impl NativePhysics {
    /// See [`crate::physics::Physics::inside`].
    pub(super) fn inside_each_other(
        &self,
        poses: &[Vec<f32>],
        least: f64,
    ) -> Option<Vec<Vec<Overlap>>> {
        let plan = self.plan().clone();
        if plan.npair == 0 || poses.iter().any(|qpos| qpos.len() != plan.nq) {
            return None;
        }
        let column = |buffer: &[f32]| buffer.iter().step_by(self.state.num_envs).copied().collect();
        let mut now = State {
            qpos: Vec::new(),
            qvel: vec![0.0; plan.nv],
            act: vec![0.0; plan.na],
            varied: column(&self.state.varied),
        };
        let (pairs, ctrl) = (plan.npair, vec![0.0; plan.nu]);
        let mut robot = Robot::<f32>::new(InstructionSet::detect().generic().ok()?, plan)?;
        let mut work = robot.work().ok()?;
        // No terrain, and nothing is solved.
        let how = (Solver { iterations: 0, ..SOLVER }, Ground::zeroed());
        let mut of = |qpos: &Vec<f32>| {
            now.qpos.clone_from(qpos);
            let found = depths(pairs, least, |depths| {
                for (margin, depth) in robot.margins().zip(depths) {
                    *margin = -*depth as f32;
                }
                let mut met = vec![0; pairs];
                robot.evaluate_one(&mut work, how, &now, &ctrl, Some(&mut met));
                met
            });
            let plan = robot.plan();
            let geom = |at: i32| plan.cg_geom[at as usize] as usize;
            let named = |(c, depth): (usize, f64)| Overlap {
                geoms: [geom(plan.pair_g1[c]), geom(plan.pair_g2[c])],
                depth,
            };
            found.into_iter().map(named).collect()
        };
        Some(poses.iter().map(&mut of).collect())
    }
}

/// Pairs that are deeper than `least` and how deep they are, the deepest first. `deeper` tells the
/// pairs that are as deep as it is given for each.
fn depths(
    pairs: usize,
    least: f64,
    mut deeper: impl FnMut(&[f64]) -> Vec<u32>,
) -> Vec<(usize, f64)> {
    let found = deeper(&vec![least; pairs]);
    let found: Vec<usize> = (0..pairs).filter(|c| found[*c] != 0).collect();
    if found.is_empty() {
        return Vec::new();
    }
    // The others are never so deep.
    let mut trial = vec![1e9; pairs];
    let mut within = vec![[least, MOST]; pairs];
    for _ in 0..HALVINGS {
        for c in &found {
            trial[*c] = (within[*c][0] * within[*c][1]).sqrt();
        }
        let met = deeper(&trial);
        for c in &found {
            within[*c][usize::from(met[*c] == 0)] = trial[*c];
        }
    }
    let mut all: Vec<_> = found.into_iter().map(|c| (c, within[c][0])).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}
