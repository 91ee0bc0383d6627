//! What a robot's reflection makes of what a policy sees and does. [`crate::env::mirror`] finds it.

use ostler_engine::physics::mirror::Proof;
use ostler_model::Model;
use ostler_model::mirror::{Difference, Mirror};

/// Where the entries of a reflected vector come from: entry `k` is `sign` times entry `index`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Signed(pub Vec<(u32, f32)>);

impl Signed {
    /// Writes the reflection of a row.
    pub fn reflect(&self, from: &[f32], to: &mut [f32]) {
        for (to, &(index, sign)) in to.iter_mut().zip(&self.0) {
            *to = sign * from[index as usize];
        }
    }

    /// That of the first `width` entries, which are exchanged among themselves.
    #[must_use]
    pub fn narrowed(&self, width: usize) -> Self {
        Self(self.0.iter().take(width).copied().collect())
    }
}

/// The reflection of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Reflection {
    /// Of the policy's observations.
    pub policy: Signed,
    /// Of the critic's rows, where it has its own.
    pub critic: Option<Signed>,
    /// Of actions.
    pub action: Signed,
    /// Of all commands.
    pub command: Signed,
    /// The robot's.
    pub mirror: Mirror,
    /// How well physics agrees where shapes meet only what is fixed to the world.
    pub proof: Proof,
    /// The same of the robot with its sides made alike, with all contacts.
    pub touching: Proof,
    /// The same without contacts, where they disagree: whether the reflection is the right one.
    pub free: Proof,
    /// What of the robot differs, the largest first.
    pub differences: Vec<Difference>,
    /// Observation terms of which one step's reflection differs most, and how much of their
    /// spread: where the robot differs, they do.
    pub terms: Vec<(String, f64)>,
    /// Observation terms with components that stay the same in all states that were tried and read
    /// what has no known reflection: they are their own.
    pub untold: Vec<(String, Vec<usize>)>,
    /// Commands that are drawn from other ranges than their reflections, in words.
    pub commands: Vec<String>,
    /// Events that do not draw the same for both sides, and what they set.
    pub events: Vec<(String, String)>,
    /// Rewards and conditions of ends, and how much of their spread they differ in reflected
    /// states, the most first.
    pub rewards: Vec<(String, f64)>,
}

impl Reflection {
    /// Of the `critic` columns that the critic sees, where it has its own: groups that it does not
    /// see stand behind them.
    pub fn seen(&self, critic: Option<usize>) -> Option<Signed> {
        self.critic.as_ref().zip(critic).map(|(rows, width)| rows.narrowed(width))
    }

    /// One that reflects nothing: for tests of what takes one.
    pub fn nothing() -> Self {
        let proof = Proof::default();
        Self {
            policy: Signed::default(),
            critic: None,
            action: Signed::default(),
            command: Signed::default(),
            mirror: Mirror::default(),
            touching: proof.clone(),
            free: proof.clone(),
            proof,
            differences: Vec::new(),
            terms: Vec::new(),
            untold: Vec::new(),
            commands: Vec::new(),
            events: Vec::new(),
            rewards: Vec::new(),
        }
    }

    /// The reflection in words, a line each.
    pub fn lines(&self, model: &Model) -> Vec<String> {
        let across = ["yz", "xz", "xy"][self.mirror.axis];
        let mut lines = vec![format!("reflected in the {across} plane")];
        let mut joints = Vec::new();
        for (j, joint) in model.joints.iter().enumerate().filter(|(_, j)| j.is_scalar()) {
            let other = self.mirror.joints[j];
            let sign = if self.mirror.signs[j] < 0.0 { ", sign turned over" } else { "" };
            if other == j && !sign.is_empty() {
                joints.push(format!("{}: sign turned over", joint.name));
            } else if other > j {
                joints.push(format!("{} and {}{sign}", joint.name, model.joints[other].name));
            }
        }
        lines.extend(joints);
        lines.extend(self.proved());
        let shown = 5;
        lines.extend(self.differences.iter().take(shown).map(|d| format!("note: {d}")));
        if let Some(more) = self.differences.len().checked_sub(shown).filter(|n| *n > 0) {
            lines.push(format!("note: {more} smaller differences"));
        }
        for (name, share) in self.terms.iter().take(shown).filter(|t| t.1 > 0.01) {
            lines.push(format!(
                "note: observation \"{name}\" differs from its reflection by {:.0} % of its spread",
                100.0 * share
            ));
        }
        for (name, components) in self.untold.iter().take(shown) {
            let which: Vec<String> = components.iter().take(8).map(ToString::to_string).collect();
            let more = if components.len() > 8 { ", ..." } else { "" };
            lines.push(format!(
                "note: observation \"{name}\": component {}{more} stayed the same in all states that \
                 were tried, and what it reads tells no side: it is taken for its own reflection",
                which.join(", ")
            ));
        }
        for command in self.commands.iter().take(shown) {
            lines.push(format!(
                "note: command {command}: reflected samples show commands that are never drawn"
            ));
        }
        for (name, set) in self.events.iter().take(shown) {
            lines.push(format!(
                "note: event \"{name}\" ({set}) does not draw the same for both sides: reflected \
                 samples show what it never draws"
            ));
        }
        for (name, share) in self.rewards.iter().take(shown).filter(|r| r.1 > 0.01) {
            lines.push(format!(
                "note: {name} differs in reflected states by {:.0} % of its spread",
                100.0 * share
            ));
        }
        lines
    }

    /// What physics says of the reflection, a line each.
    fn proved(&self) -> Vec<String> {
        let (own, all, free) = (&self.proof, &self.touching, &self.free);
        let alike = match self.differences.is_empty() {
            true => "",
            false => ", with both sides made alike",
        };
        let with = match all.holds() {
            true => format!("{} with contacts, ", all.touching),
            false => "without contacts, ".to_owned(),
        };
        let mut lines = vec![format!(
            "physics: {} of {} random states and their reflections, {with}have the same \
             accelerations to {:.0e}{alike}",
            free.alike, free.states, free.tolerance
        )];
        if !free.holds() {
            lines.push(format!(
                "note: this does not prove the reflection: accelerations differ by {:.1e} of the \
                 largest in the median state, most at \"{}\"; an equality, a tendon, a gear or an \
                 actuator's dynamics may differ between the sides",
                free.typical,
                free.joint.as_deref().unwrap_or("none")
            ));
        }
        if free.holds() && !all.holds() {
            lines.push(format!(
                "note: contacts have no exact reflection: with them {} of the {} states are alike; \
                 those with contacts differ by {:.2} % in the median. Meshes that are not each \
                 other's reflections do so, and flat contacts, of which some corners are kept",
                all.alike,
                all.states,
                100.0 * all.typical_touching
            ));
        }
        if let (Some(joint), false) = (&own.joint, own.holds() || self.differences.is_empty()) {
            lines.push(format!(
                "the robot's own sides differ: accelerations by {:.2} % in the median state, most at \
                 \"{joint}\"",
                100.0 * own.typical
            ));
        }
        lines
    }
}
