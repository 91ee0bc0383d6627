//! Bounds of actions and observations, for programs that want to know spaces.

use super::Task;
use super::action::Law;
use ostler_model::Model;

const UNBOUNDED: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

impl Task {
    /// Least and greatest value of every entry of a row of actions `[M A]` that still makes a
    /// difference: beyond, the term's clip or the actuator's range holds. Infinite where nothing
    /// does.
    pub fn action_bounds(&self) -> Vec<[f32; 2]> {
        let actions = &self.actions;
        let mut rows = vec![UNBOUNDED; actions.space.width() * actions.own.len()];
        for (output, &clip) in actions.clip.iter().enumerate() {
            let drives = actions.drives.iter().filter(|d| d.output == output);
            // An output may drive several actuators: the widest range counts.
            let felt = drives
                .map(|d| felt(&d.law, d.ctrlrange))
                .reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
            let [low, high] = felt.unwrap_or(UNBOUNDED);
            let [low, high] = [low.max(clip[0]), high.min(clip[1])];
            if let Some(row) = actions.raw.get(output).and_then(|&at| rows.get_mut(at))
                && low <= high
            {
                *row = [low, high];
            }
        }
        rows
    }

    /// Size of each action at which the target of its joint reaches the farther limit `[A]`
    /// ([`EnvSpec::reach`](crate::env::EnvSpec::reach)).
    pub(crate) fn reach(&self, model: &Model) -> Vec<Option<f32>> {
        if self.team.is_several() {
            return Vec::new();
        }
        let of = |output: usize| {
            let drive = self.actions.drives.iter().find(|d| d.output == output)?;
            let Law::Affine { scale, offset, position: true } = drive.law else { return None };
            let actuator = &model.actuators[drive.actuator];
            let limits = model.joints[actuator.joint()?].range?;
            let away = limits.map(|q| ((actuator.gear[0] * q) as f32 - offset).abs());
            let reach = away[0].max(away[1]) / scale.abs();
            (reach.is_finite() && reach > 0.0).then_some(reach)
        };
        (0..self.actions.outputs()).map(of).collect()
    }

    /// Least and greatest value of every entry of the rows of an environment `[M O]` that the
    /// policies see, or the critics: those of the terms' clips, else infinite.
    pub fn observation_bounds(&self, critic: bool) -> Vec<[f32; 2]> {
        let observations = &self.observations;
        let mut rows = vec![UNBOUNDED; observations.world()[usize::from(critic)]];
        for term in &observations.terms {
            let Some(clip) = term.clip else { continue };
            let spots = match critic {
                true => term.critic_at.as_slice(),
                false => term.policy_at.as_slice(),
            };
            for spot in spots {
                for frame in 0..spot.frames {
                    let first = spot.first + frame * spot.stride;
                    if let Some(entries) = rows.get_mut(first..first + term.len()) {
                        entries.fill(clip);
                    }
                }
            }
        }
        rows
    }
}

/// The outputs that reach a control within its range.
fn felt(law: &Law, [low, high]: [f32; 2]) -> [f32; 2] {
    match law {
        Law::Affine { scale, offset, .. } if *scale != 0.0 => {
            let (a, b) = ((low - offset) / scale, (high - offset) / scale);
            [a.min(b), a.max(b)]
        }
        Law::Affine { .. } | Law::Added { .. } | Law::Choice(_) => UNBOUNDED,
        // Only the sign counts.
        Law::Binary(_) => [-1.0, 1.0],
    }
}
