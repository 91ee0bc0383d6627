//! `[amp]`.

use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use ostler_sim::names::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most observations that are judged together.
const MOST_STEPS: usize = 16;

/// `[amp]`: an adversarial motion prior (Peng et al. 2021). A network, the discriminator, learns
/// to tell how the robot moves from how a reference motion does; what it takes for the reference
/// is rewarded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AmpConfig {
    /// Names of the observation terms that are compared: of the critic's group where the task has
    /// one, else of the policy's. Empty: there is no such reward.
    pub observations: Vec<String>,
    /// What the style reward of a control step, `softplus` of the discriminator's output, is
    /// multiplied by before it is added to the task's; above 0.
    pub weight: f64,
    /// Learning rate of the discriminator's Adam, above 0.
    pub learning_rate: f64,
    /// Weight of the squared gradient of the discriminator's output with respect to the
    /// reference's observations, 0 or more: with more it changes less from one motion to another.
    pub gradient_penalty: f64,
    /// Hidden layers of the discriminator, 1 to 4096 wide, at least one.
    pub hidden_dims: Vec<i64>,
    /// Consecutive observations that are judged together, 2 to 16.
    pub steps: usize,
    /// Whose decay of weights and bound of the reward.
    pub recipe: AmpRecipe,
}

/// What tames a discriminator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AmpRecipe {
    /// amp-rsl-rl's: a decay of 1e-3, of the last layer 0.1.
    #[default]
    AmpRslRl,
    /// skrl's: a decay of 2e-4 of weights, of the last layer's 0.1 more, five times the loss, and a
    /// reward of at most 9.21.
    Skrl,
}

impl Default for AmpConfig {
    fn default() -> Self {
        Self {
            observations: Vec::new(),
            weight: 1.0,
            learning_rate: 1e-4,
            gradient_penalty: 10.0,
            hidden_dims: vec![512, 256],
            steps: 2,
            recipe: AmpRecipe::AmpRslRl,
        }
    }
}

impl AmpConfig {
    /// Whether there is such a reward.
    pub fn is_on(&self) -> bool {
        !self.observations.is_empty()
    }

    /// Values that cannot be used, with paths such as `amp.weight`.
    pub(crate) fn errors(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |ok: bool, key: &str, value: String, allowed: &str| {
            if !ok {
                let error =
                    ConfigError::new(format!("amp.{key}"), format!("{value} cannot be used"));
                errors.push(error.help(format!("allowed: {allowed}")));
            }
        };
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let (weight, rate, penalty) = (self.weight, self.learning_rate, self.gradient_penalty);
        check(positive(weight), "weight", weight.to_string(), "a number above 0");
        check(positive(rate), "learning_rate", rate.to_string(), "a number above 0");
        let at_least_0 = penalty.is_finite() && penalty >= 0.0;
        check(at_least_0, "gradient_penalty", penalty.to_string(), "a number of 0 or more");
        let widths = &self.hidden_dims;
        let possible = !widths.is_empty() && widths.iter().all(|w| (1..=4096).contains(w));
        let whole = "one or more whole numbers from 1 to 4096";
        check(possible, "hidden_dims", format!("{widths:?}"), whole);
        let steps = (2..=MOST_STEPS).contains(&self.steps);
        check(steps, "steps", self.steps.to_string(), "a whole number from 2 to 16");
        for (i, name) in self.observations.iter().enumerate() {
            if self.observations[..i].contains(name) {
                let path = format!("amp.observations[{i}]");
                let error = ConfigError::new(path, format!("\"{name}\" is there already"));
                errors.push(error.help("each term once"));
            }
        }
        errors
    }

    /// Columns of the compared terms in the rows that the critic sees, or where it sees what the
    /// policy sees, in the policy's: of a term with a history those of its newest values.
    ///
    /// # Errors
    /// The task has no term of that name there.
    pub fn columns(&self, spec: &EnvSpec) -> Result<Vec<i64>, ConfigError> {
        let (rows, whose) = match &spec.obs_table.critic {
            Some(rows) => (rows, "critic"),
            None => (&spec.obs_table.policy, "policy"),
        };
        let mut columns = Vec::new();
        for (i, name) in self.observations.iter().enumerate() {
            let Some(row) = rows.iter().find(|row| row.name == *name) else {
                let why = format!("the {whose} has no observation term \"{name}\"");
                let help = match nearest(name, rows.iter().map(|row| row.name.as_str())) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("the name of a term with group = \"{whose}\""),
                };
                return Err(ConfigError::new(format!("amp.observations[{i}]"), why).help(help));
            };
            let newest = row.index + row.frames.saturating_sub(1) * row.stride;
            columns.extend((newest..newest + row.len).map(|column| column as i64));
        }
        Ok(columns)
    }
}
