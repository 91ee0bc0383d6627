//! Layout of a transition: a record of 32-bit words.

use super::ReplayError;
use ostler_sim::env::EnvSpec;
use serde::{Deserialize, Serialize};
use tch::Kind;

/// Type of a field's numbers, as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Float32.
    F32,
    /// Signed integer, 32 bits.
    I32,
}

impl FieldKind {
    /// libtorch's name of it in a batch.
    pub fn torch(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::I32 => Kind::Int,
        }
    }
}

/// One named part of a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Unique in its layout.
    pub name: String,
    /// Type of its numbers.
    pub kind: FieldKind,
    /// So many of them, 1 or more. Those of width 1 are `[B]` in a batch, others
    /// `[B,width]`.
    pub width: usize,
}

impl Field {
    /// A field of floats.
    pub fn float(name: &str, width: usize) -> Self {
        Self { name: name.into(), kind: FieldKind::F32, width }
    }

    /// A single integer.
    pub fn integer(name: &str) -> Self {
        Self { name: name.into(), kind: FieldKind::I32, width: 1 }
    }
}

/// The fields of a transition, in the order in which they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    fields: Vec<Field>,
}

/// 32-bit words that a transition has more in a file: the segment, the number of
/// environments, and a checksum.
pub const TRAILER: usize = 3;

/// Names of the fields of [`Layout::of`], and of the fields that a batch adds.
pub mod names {
    /// Observation of the policy `[O]`.
    pub const OBS: &str = "obs";
    /// Observation of the critic, where it has its own.
    pub const CRITIC_OBS: &str = "critic_obs";
    /// Action `[A]`.
    pub const ACTION: &str = "action";
    /// Reward; in a batch, the discounted sum of `n_step` of them.
    pub const REWARD: &str = "reward";
    /// 1 where the task ended.
    pub const TERMINATED: &str = "terminated";
    /// 1 where time ran out.
    pub const TRUNCATED: &str = "truncated";
    /// 0 where the environment broke: a learner gives such a transition no weight.
    pub const VALID: &str = "valid";
    /// Version of the policy that acted; int32.
    pub const VERSION: &str = "version";
    /// Observation after the step, before any reset.
    pub const NEXT_OBS: &str = "next_obs";
    /// The same of the critic.
    pub const NEXT_CRITIC_OBS: &str = "next_critic_obs";
    /// gamma^m, where m rewards were summed. The value of
    /// `next_obs` counts by this unless `terminated`.
    pub const DISCOUNT: &str = "discount";
    /// Importance weights `[B]`; ones unless draws are prioritised.
    pub const WEIGHTS: &str = "weights";
}

impl Layout {
    /// A layout of one's own.
    ///
    /// # Errors
    /// No fields, none with any numbers, or a name twice.
    pub fn new(fields: Vec<Field>) -> Result<Self, ReplayError> {
        let twice = |i: usize| fields[..i].iter().any(|f| f.name == fields[i].name);
        let wrong = (0..fields.len()).find(|&i| fields[i].width == 0 || twice(i));
        let why = match wrong {
            Some(i) => format!("{:?}, which is empty or there already", fields[i].name),
            None if fields.is_empty() => "none".into(),
            None => return Ok(Self { fields }),
        };
        Err(ReplayError::shape(
            "fields of a transition",
            "distinct names and widths of 1 or more",
            why,
        ))
    }

    /// That of the transitions of these environments.
    pub fn of(spec: &EnvSpec) -> Self {
        let float = Field::float;
        let critic = spec.critic;
        let mut fields = vec![float(names::OBS, spec.obs.policy)];
        fields.extend(critic.map(|o| float(names::CRITIC_OBS, o)));
        fields.push(float(names::ACTION, spec.action.width()));
        for name in [names::REWARD, names::TERMINATED, names::TRUNCATED, names::VALID] {
            fields.push(float(name, 1));
        }
        fields.push(Field::integer(names::VERSION));
        fields.push(float(names::NEXT_OBS, spec.obs.policy));
        fields.extend(critic.map(|o| float(names::NEXT_CRITIC_OBS, o)));
        // A task may observe nothing at all.
        fields.retain(|f| f.width > 0);
        Self { fields }
    }

    /// The fields in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// 32-bit words of a transition.
    pub fn words(&self) -> usize {
        self.fields.iter().map(|f| f.width).sum()
    }

    /// Bytes of a transition in memory; in a file there are 12 more.
    pub fn bytes_per_transition(&self) -> usize {
        4 * self.words()
    }

    /// First word of each field.
    pub fn offsets(&self) -> Vec<usize> {
        let starts = self.fields.iter().scan(0, |next, f| {
            let start = *next;
            *next += f.width;
            Some(start)
        });
        starts.collect()
    }

    /// First word of a field, and its place among them.
    pub(super) fn find(&self, name: &str) -> Option<(usize, usize)> {
        let at = self.fields.iter().position(|f| f.name == name)?;
        Some((self.offsets()[at], at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_one_behind_the_other() {
        let fields = vec![Field::float("a", 3), Field::integer("b"), Field::float("c", 2)];
        let layout = Layout::new(fields).unwrap();
        assert_eq!(layout.offsets(), [0, 3, 4]);
        assert_eq!((layout.words(), layout.bytes_per_transition()), (6, 24));
        assert_eq!(layout.find("c"), Some((4, 2)));
        assert_eq!(layout.find("d"), None);
    }

    #[test]
    fn impossible_layouts_are_refused() {
        let a = || Field::float("a", 1);
        for fields in [vec![], vec![a(), a()], vec![Field::float("a", 0)]] {
            assert!(Layout::new(fields).is_err());
        }
    }
}
