//! `[symmetry]`: what a policy learns on one side of a robot it learns on the other, too.
//!
//! The reflection itself is found by physics (`ostler_sim::env::mirror`). Samples and their
//! reflections are learnt from alike: Mittal et al., "Symmetry considerations for learning task
//! symmetric robot policies", 2024; the mirror loss is that of Yu, Turk and Liu, "Learning
//! symmetric and low-energy locomotion", 2018.

use super::error::LearnError;
use super::turn::Turn;
use ostler_collector::replay::{Batch, ReplayError, Transform, names};
use ostler_sim::env::mirror::{Reflection, Signed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tch::{Device, Tensor};

/// `[symmetry]`: what the policy learns on one side of the robot it learns on the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SymmetryConfig {
    /// The plane that the robot is reflected in, by two of the world's axes: `"xz"` exchanges left
    /// and right of a robot that looks along x, `"yz"` forwards and backwards.
    pub plane: Plane,
    /// Names of the two sides, as pairs of patterns whose first `*` stand for the same text, and so on:
    /// `[["left_*", "right_*"]]`; of bodies, joints and actuators. Empty: left and right in names,
    /// and places.
    pub pairs: Vec<[String; 2]>,
    /// Observation terms of which the nearest reflection will do: those of sensors beside the
    /// plane, or of a robot whose sides differ.
    pub approximate: Vec<String>,
    /// The reflection of every sample is learnt from, too. SAC and TD3 reflect half of each batch.
    pub augmentation: bool,
    /// Weight of the squared distance between the mean action in a reflected observation and the
    /// reflected mean action; 0 or more.
    pub mirror_loss: f64,
}

impl Default for SymmetryConfig {
    fn default() -> Self {
        Self {
            plane: Plane::Xz,
            pairs: Vec::new(),
            approximate: Vec::new(),
            augmentation: true,
            mirror_loss: 0.0,
        }
    }
}

/// Planes of the world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Plane {
    /// y turns over.
    #[default]
    Xz,
    /// x turns over.
    Yz,
}

impl Plane {
    /// Its normal: 0 is x, 1 is y.
    pub fn axis(self) -> usize {
        match self {
            Self::Yz => 0,
            Self::Xz => 1,
        }
    }
}

/// Reflects the second half of every batch that a learner draws from its replay buffer.
#[derive(Debug)]
pub(crate) struct Reflect {
    fields: Vec<(&'static str, Turn)>,
}

impl Reflect {
    /// Of a task's transitions, of which the critic sees so many columns of its own.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn new(
        of: &Reflection,
        critic: Option<usize>,
        device: Device,
    ) -> Result<Self, LearnError> {
        let mut fields = Vec::new();
        let mut add = |names: &[&'static str], turn: &Signed| -> Result<(), LearnError> {
            for name in names {
                fields.push((*name, Turn::new(turn, device)?));
            }
            Ok(())
        };
        add(&[names::OBS, names::NEXT_OBS], &of.policy)?;
        if let Some(rows) = of.seen(critic) {
            add(&[names::CRITIC_OBS, names::NEXT_CRITIC_OBS], &rows)?;
        }
        add(&[names::ACTION], &of.action)?;
        Ok(Self { fields })
    }
}

impl Transform for Reflect {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        for (name, turn) in &self.fields {
            // A field of one number has no columns.
            let size = batch.get(name)?.size();
            let rows = size.first().copied().unwrap_or(0);
            let x = batch.get(name)?.f_view([rows, -1])?;
            let own = x.f_narrow(0, 0, rows / 2)?;
            let other = turn.apply(&x.f_narrow(0, rows / 2, rows - rows / 2)?)?;
            batch.insert(name, Tensor::f_cat(&[own, other], 0)?.f_view(&size[..])?)?;
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    #[test]
    fn half_of_a_batch_is_reflected() {
        let of = Reflection {
            policy: Signed(vec![(1, -1.0), (0, -1.0)]),
            action: Signed(vec![(0, -1.0)]),
            ..Reflection::nothing()
        };
        let reflect = Reflect::new(&of, None, Device::Cpu).unwrap();
        let mut batch = Batch::new(Device::Cpu, 5);
        let numbers = Tensor::arange(10, (Kind::Float, Device::Cpu)).view([5, 2]);
        for name in [names::OBS, names::NEXT_OBS] {
            batch.insert(name, numbers.copy()).unwrap();
        }
        batch.insert(names::ACTION, Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0])).unwrap();
        let out = reflect.apply(batch).unwrap();
        let action: Vec<f32> = out.get(names::ACTION).unwrap().try_into().unwrap();
        assert_eq!(action, [1.0, 2.0, -3.0, -4.0, -5.0]);
        let obs: Vec<f32> = out.get(names::NEXT_OBS).unwrap().view([-1]).try_into().unwrap();
        assert_eq!(obs, [0.0, 1.0, 2.0, 3.0, -5.0, -4.0, -7.0, -6.0, -9.0, -8.0]);
    }
}
