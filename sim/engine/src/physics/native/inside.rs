//! Shapes that are inside each other in a pose.
//!
//! A kernel tells which pairs have contacts within their margins. So a margin below 0 asks whether
//! they are as deep, and halving the interval of each pair finds the depths.

use super::diagnose::State;
use super::engine::{NativePhysics, SOLVER};
use super::ffi::Robot;
use super::kernel::InstructionSet;
use crate::kernels::{Ground, Solver};
use bytemuck::Zeroable;

/// Nothing is found to be deeper (m).
const MOST: f64 = 1.0;
/// Halvings of the logarithm: to 0.03 % where the least is 1 mm.
const HALVINGS: usize = 14;

impl NativePhysics {
    /// See [`crate::physics::Physics::inside`].
    pub(super) fn inside_each_other(
        &self,
        qpos: &[f64],
        least: f64,
    ) -> Option<Vec<([usize; 2], f64)>> {
        let plan = self.plan().clone();
        let pairs = plan.npair;
        if pairs == 0 || qpos.len() != plan.nq {
            return None;
        }
        let column = |buffer: &[f32]| buffer.iter().step_by(self.state.num_envs).copied().collect();
        let now = State {
            qpos: qpos.iter().map(|x| *x as f32).collect(),
            qvel: vec![0.0; plan.nv],
            act: vec![0.0; plan.na],
            varied: column(&self.state.varied),
        };
        let ctrl = vec![0.0; plan.nu];
        let mut robot = Robot::<f32>::new(InstructionSet::detect().generic().ok()?, plan)?;
        let mut work = robot.work().ok()?;
        // No terrain, and nothing is solved.
        let how = (Solver { iterations: 0, ..SOLVER }, Ground::zeroed());
        let mut deeper = |depths: &[f64]| {
            for (margin, depth) in robot.margins().zip(depths) {
                *margin = -*depth as f32;
            }
            let mut met = vec![0; pairs];
            robot.evaluate_one(&mut work, how, &now, &ctrl, Some(&mut met));
            met
        };
        let found = deeper(&vec![least; pairs]);
        let found: Vec<usize> = (0..pairs).filter(|c| found[*c] != 0).collect();
        if found.is_empty() {
            return Some(Vec::new());
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
        let plan = robot.plan();
        let geom = |at: i32| plan.cg_geom[at as usize] as usize;
        let named = |c: &usize| ([geom(plan.pair_g1[*c]), geom(plan.pair_g2[*c])], within[*c][0]);
        let mut all: Vec<_> = found.iter().map(named).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        Some(all)
    }
}
