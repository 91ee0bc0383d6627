//! `[actor]` and `[critic]`.

use crate::learner::nn::activation::Activation;
use crate::learner::nn::layer::TrunkConfig;
use ostler_sim::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[actor]`: the network that decides, and the distribution it decides with.
///
/// Continuous actions are drawn from a Gaussian with a diagonal covariance,
/// discrete ones from a categorical distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActorConfig {
    /// Widths of the hidden layers, each 1 or more; `[]` is a linear policy.
    pub hidden_dims: Vec<i64>,
    /// Function between layers: `"elu"`, `"relu"`, `"tanh"` or `"silu"` (not with
    /// PPO).
    pub activation: Activation,
    /// Normalise each hidden layer's numbers before the function (Ba et al. 2016).
    pub layer_norm: bool,
    /// Add to a hidden layer's numbers those of the one before, where there are as many (He et
    /// al. 2016).
    pub residual: bool,
    /// `"mlp"`; for `"sac"` and `"td3"` also `"flash_sac"`: the first of `hidden_dims` is the
    /// width of an embedding and each further one, of the same width, a residual block with
    /// batch normalisation, and weights keep their lengths.
    pub architecture: Architecture,
    /// Standard deviation of the actions at the start, within `min_std`..`max_std`.
    pub init_std: f64,
    /// `"scalar"`: one learnt standard deviation per action, the same in every state;
    /// `"state_dependent"`: a second head of the network.
    pub std_type: StdType,
    /// Smallest standard deviation, above 0. The logarithm is learnt, and it is kept
    /// within the bounds, so the standard deviation can be neither negative nor NaN.
    pub min_std: f64,
    /// Largest standard deviation.
    pub max_std: f64,
    /// Shift and scale observations by their running mean and standard deviation.
    pub obs_normalization: bool,
    /// `"gru"`: a gated recurrent unit in front of the hidden layers, so that the policy
    /// remembers what it saw in an episode. The critic sees its state beside the
    /// observations, unless it shares the layers.
    pub rnn_type: RnnType,
    /// Numbers of the recurrent state, 1 or more.
    pub rnn_hidden_dim: i64,
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self {
            hidden_dims: vec![256, 256, 256],
            activation: Activation::Elu,
            layer_norm: false,
            residual: false,
            architecture: Architecture::Mlp,
            init_std: 1.0,
            std_type: StdType::Scalar,
            min_std: 1e-3,
            max_std: 10.0,
            obs_normalization: false,
            rnn_type: RnnType::None,
            rnn_hidden_dim: 128,
        }
    }
}

/// `[critic]`: the network that estimates the value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CriticConfig {
    /// Widths of the hidden layers, each 1 or more. Unused when `shared`.
    pub hidden_dims: Vec<i64>,
    /// Function between layers: `"elu"`, `"relu"`, `"tanh"` or `"silu"` (not with
    /// PPO). Unused when `shared`.
    pub activation: Activation,
    /// Normalise each hidden layer's numbers before the function (Ba et al. 2016). Unused
    /// when `shared`.
    pub layer_norm: bool,
    /// Add to a hidden layer's numbers those of the one before, where there are as many (He et
    /// al. 2016). Unused when `shared`.
    pub residual: bool,
    /// As of `[actor]`.
    pub architecture: Architecture,
    /// Shift and scale observations by their running mean and standard deviation. Unused when
    /// `shared`.
    pub obs_normalization: bool,
    /// The value is a head on the actor's hidden layers. Needs a task without
    /// observations of the critic's own.
    pub shared: bool,
}

impl Default for CriticConfig {
    fn default() -> Self {
        Self {
            hidden_dims: vec![256, 256, 256],
            activation: Activation::Elu,
            layer_norm: false,
            residual: false,
            architecture: Architecture::Mlp,
            obs_normalization: false,
            shared: false,
        }
    }
}

/// Layout of hidden layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// Fully connected layers one behind the other.
    Mlp,
    /// FlashSAC's embedding and blocks.
    FlashSac,
}

/// Kind of a policy's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RnnType {
    /// It sees the present observation alone.
    None,
    /// A gated recurrent unit (Cho et al. 2014).
    Gru,
}

/// Where a Gaussian's standard deviation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StdType {
    /// One learnt number per action.
    Scalar,
    /// A head of the network.
    StateDependent,
}

impl ActorConfig {
    /// The hidden layers.
    pub(crate) fn trunk(&self) -> TrunkConfig<'_> {
        TrunkConfig {
            widths: &self.hidden_dims,
            activation: self.activation,
            layer_norm: self.layer_norm,
            residual: self.residual,
        }
    }

    /// The hidden layers, and whether they are FlashSAC's.
    pub(crate) fn body(&self) -> (TrunkConfig<'_>, bool) {
        (self.trunk(), self.architecture == Architecture::FlashSac)
    }

    /// Whether it has a hidden state.
    pub fn is_recurrent(&self) -> bool {
        self.rnn_type != RnnType::None
    }

    /// Width of the hidden state; 0 of a policy that is not recurrent.
    pub fn hidden_width(&self) -> i64 {
        match self.rnn_type {
            RnnType::None => 0,
            RnnType::Gru => self.rnn_hidden_dim,
        }
    }

    /// Values that cannot be used, with paths such as `actor.init_std`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        check_widths("actor.hidden_dims", &self.hidden_dims, &mut errors);
        check_body("actor", self.body(), &mut errors);
        check_width("actor.rnn_hidden_dim", self.rnn_hidden_dim, &mut errors);
        for (path, std) in [("actor.min_std", self.min_std), ("actor.max_std", self.max_std)] {
            if !(1e-9..=1e9).contains(&std) {
                errors.push(
                    ConfigError::new(path, format!("{std} is not a usable standard deviation"))
                        .help("a number from 1e-9 to 1e9"),
                );
            }
        }
        if self.min_std > self.max_std {
            errors.push(ConfigError::new(
                "actor.min_std",
                format!("{} is above actor.max_std = {}", self.min_std, self.max_std),
            ));
        } else if !(self.min_std..=self.max_std).contains(&self.init_std) {
            errors.push(
                ConfigError::new("actor.init_std", format!("{} is out of bounds", self.init_std))
                    .help(format!(
                        "from actor.min_std = {} to actor.max_std = {}",
                        self.min_std, self.max_std
                    )),
            );
        }
        errors
    }
}

impl CriticConfig {
    /// The hidden layers.
    pub(crate) fn trunk(&self) -> TrunkConfig<'_> {
        TrunkConfig {
            widths: &self.hidden_dims,
            activation: self.activation,
            layer_norm: self.layer_norm,
            residual: self.residual,
        }
    }

    /// The hidden layers, and whether they are FlashSAC's.
    pub(crate) fn body(&self) -> (TrunkConfig<'_>, bool) {
        (self.trunk(), self.architecture == Architecture::FlashSac)
    }

    /// Values that cannot be used, with paths such as `critic.hidden_dims`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        check_widths("critic.hidden_dims", &self.hidden_dims, &mut errors);
        check_body("critic", self.body(), &mut errors);
        errors
    }
}

/// What [`Architecture::FlashSac`] cannot have.
fn check_body(table: &str, (body, flash): (TrunkConfig<'_>, bool), errors: &mut Vec<ConfigError>) {
    if !flash {
        return;
    }
    let mut refuse = |key: &str, why: &str, help: &str| {
        let why = format!("architecture = \"flash_sac\" {why}");
        errors.push(ConfigError::new(format!("{table}.{key}"), why).help(help));
    };
    let even = body.widths.first().is_some_and(|w| body.widths.iter().all(|other| other == w));
    if !even {
        refuse("hidden_dims", "has one width for all layers", "[128, 128, 128]: two blocks");
    }
    if body.activation != Activation::Relu {
        refuse("activation", "has rectifiers", "activation = \"relu\"");
    }
    for (key, on) in [("layer_norm", body.layer_norm), ("residual", body.residual)] {
        if on {
            refuse(key, "has its own", "leave it out");
        }
    }
}

/// Far beyond any network that trains, and small enough that sizes cannot overflow.
const MAX_WIDTH: i64 = 1 << 16;

fn check_widths(path: &str, widths: &[i64], errors: &mut Vec<ConfigError>) {
    for (i, width) in widths.iter().enumerate() {
        check_width(&format!("{path}[{i}]"), *width, errors);
    }
}

fn check_width(path: &str, width: i64, errors: &mut Vec<ConfigError>) {
    if !(1..=MAX_WIDTH).contains(&width) {
        let why = format!("{width} is not a usable layer width");
        let help = format!("a whole number from 1 to {MAX_WIDTH}");
        errors.push(ConfigError::new(path, why).help(help));
    }
}
