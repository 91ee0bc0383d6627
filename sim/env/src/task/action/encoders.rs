//! Encoders that are off: position targets are meant in what they say.

use super::super::observe::{Observations, Observed};
use super::super::team::Team;
use super::{Actions, Encoder, Law};
use crate::config::{ActionTerm, ConfigError, ObservationGroup};
use ostler_lang::expr::ElementKind;
use ostler_model::Model;

impl Actions {
    /// Finds the biases of terms with `encoders`: the components of an observation of joints'
    /// positions.
    pub(in crate::task) fn use_encoders(
        &mut self,
        model: &Model,
        terms: &[ActionTerm],
        observations: &Observations,
        team: &Team,
    ) -> Result<(), ConfigError> {
        for (t, term) in terms.iter().enumerate() {
            let Some(name) = &term.encoders else { continue };
            let path = format!("task.action[{t}].encoders");
            for drive in self.drives.iter_mut().filter(|d| d.term == t) {
                let Some(joint) = position_of(model, drive.actuator, &drive.law) else {
                    let message = "is for kind = \"position\": other controls are no positions";
                    return Err(ConfigError::new(path, message).help("leave it out"));
                };
                let agent = self.own.iter().position(|own| own.contains(&drive.output));
                let name = &*team.fill(agent.filter(|_| team.is_several()), name);
                let named = |o: &(usize, &Observed)| {
                    o.1.term.name == name
                        && Some(o.1.agent) == agent
                        && o.1.group == ObservationGroup::Policy
                };
                let mut all = observations.terms.iter().enumerate();
                let Some((number, seen)) = all.find(named) else {
                    let known: Vec<&str> = (observations.terms.iter())
                        .filter(|o| joints(o).is_some() && Some(o.agent) == agent)
                        .map(|o| o.term.name.as_str())
                        .collect();
                    let message = format!("no observation of the policy is called \"{name}\"");
                    return Err(ConfigError::new(path, message).help(match known[..] {
                        [] => {
                            "it names an observation such as joint_pos_rel(), with a `bias`".into()
                        }
                        _ => format!("positions of joints are: {}", known.join(", ")),
                    }));
                };
                let Some(of) = joints(seen) else {
                    let message = format!("\"{name}\" is not one number of each of some joints");
                    return Err(ConfigError::new(path, message)
                        .help("expr = \"joint_pos_rel()\" or \"joint_pos()\" there"));
                };
                let Some(component) = of.iter().position(|j| *j == joint) else {
                    let message =
                        format!("\"{name}\" does not have joint \"{}\"", model.joints[joint].name);
                    return Err(ConfigError::new(path, message)
                        .help("it has to observe every joint that the term moves"));
                };
                if seen.policy.as_ref().is_none_or(|sight| sight.bias.is_none()) {
                    let message = format!("\"{name}\" has no bias");
                    return Err(ConfigError::new(path, message).help(
                        "give the observation one: bias = { uniform = 0.015, when = \"startup\" }",
                    ));
                }
                drive.encoder = Some(Encoder {
                    observation: number,
                    component,
                    gear: model.actuators[drive.actuator].gear[0] as f32,
                });
            }
        }
        Ok(())
    }
}

/// The joint of which a control is a position.
fn position_of(model: &Model, actuator: usize, law: &Law) -> Option<usize> {
    match law {
        Law::Affine { position: true, .. } => model.actuators[actuator].joint(),
        _ => None,
    }
}

/// The joints of which a term observes one number each, in order.
fn joints(term: &Observed) -> Option<Vec<usize>> {
    let text = term.term.text.trim_start();
    let positions = ["joint_pos(", "joint_pos_rel("];
    if !positions.iter().any(|p| text.starts_with(p)) {
        return None;
    }
    let elements = term.term.program.elements().iter();
    let joints: Vec<usize> =
        elements.filter(|e| e.kind == ElementKind::Joint).map(|e| e.index).collect();
    (joints.len() == term.len() && joints.len() == term.term.program.elements().len())
        .then_some(joints)
}
