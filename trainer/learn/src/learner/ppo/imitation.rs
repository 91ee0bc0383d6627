//! A teacher's decisions in the states of a rollout: `ppo.imitation`.

use super::Ppo;
use crate::learner::TrainedPolicy;
use ostler_collector::policy::Noise;
use ostler_collector::{Act, Rollout};
use ostler_sim::env::ActionSpace;
use tch::{Kind, TchError, Tensor};

/// A trained policy, and where its decisions go.
#[derive(Debug)]
pub(crate) struct Teacher {
    policy: Box<dyn TrainedPolicy>,
    /// For the samples of a rollout, once there was one.
    desk: Option<TeacherDecisions>,
}

/// Decisions `[M,..]`.
#[derive(Debug)]
struct TeacherDecisions {
    noise: Tensor,
    action: Tensor,
    dist: Tensor,
    std: Tensor,
}

impl Teacher {
    pub(crate) fn new(policy: Box<dyn TrainedPolicy>) -> Self {
        Self { policy, desk: None }
    }

    /// Its action in each of the states `obs [M,W]`, or its logits: `[M,D]`.
    fn decide(&mut self, obs: &Tensor, space: ActionSpace) -> Result<Tensor, TchError> {
        let rows = obs.size2()?.0;
        let desk = match self.desk.take() {
            Some(desk) if desk.action.size()[0] == rows => desk,
            _ => {
                let float = |w: i64| Tensor::f_zeros([rows, w], (Kind::Float, obs.device()));
                let action = space.width() as i64;
                let (width, kind) = self.policy.noise();
                let noise = float(width)?;
                TeacherDecisions {
                    // Any draw will do: its distribution is what is asked for.
                    noise: match kind {
                        Noise::Normal => noise,
                        Noise::Uniform => noise.f_add_scalar(0.5)?,
                    },
                    action: float(action)?,
                    dist: float(self.policy.dist_width())?,
                    std: float(action)?,
                }
            }
        };
        let desk = self.desk.insert(desk);
        match space {
            ActionSpace::Continuous(_) => {
                self.policy.act_mean(obs, None, &desk.action)?;
                Ok(desk.action.shallow_clone())
            }
            ActionSpace::Discrete(_) => {
                let out =
                    Act { action: &desk.action, dist: &desk.dist, std: &desk.std, hidden: None };
                self.policy.act(obs, &desk.noise, &out)?;
                Ok(desk.dist.shallow_clone())
            }
        }
    }
}

impl Ppo {
    /// The teacher's means or logits in all samples `[M,D]`, if there is to be one.
    pub(super) fn taught(&mut self, rollout: &Rollout) -> Result<Option<Tensor>, TchError> {
        if !self.config.imitation.is_on() {
            return Ok(None);
        }
        let group = &self.config.imitation.group;
        let (Some(teacher), Some(obs)) = (&mut self.teacher, rollout.group(group)?) else {
            let why = format!("nobody teaches by the group \"{group}\"; this is a defect");
            return Err(TchError::Torch(why));
        };
        let obs = obs.f_narrow(0, 0, self.steps)?.f_flatten(0, 1)?;
        let space = match self.columns.std {
            0 => ActionSpace::Discrete(self.columns.dist as usize),
            _ => ActionSpace::Continuous(self.columns.action as usize),
        };
        teacher.decide(&obs.f_contiguous()?, space).map(Some)
    }
}
