//! `learner.precision = "bf16"`: whether it can be had.

use super::{Config, Precision};
use crate::learner::Half;
use ostler_sim::config::ConfigError;

impl Half {
    /// As the configuration has it: none for another `learner.precision`.
    ///
    /// # Errors
    /// It asks for `"bf16"` on a GPU, or the processor does not have it.
    pub fn of(config: &Config) -> Result<Option<Self>, ConfigError> {
        if config.learner.precision != Precision::Bf16 {
            return Ok(None);
        }
        let refused = |why: String| ConfigError::new("learner.precision", why);
        if config.gpu().is_some() {
            let why = "\"bf16\" is for a processor, and the run computes on a GPU";
            return Err(refused(why.into()).help("\"float32\" or \"tf32\", or device = \"cpu\""));
        }
        match Self::find() {
            Ok(half) => Ok(Some(half)),
            Err(lacking) => {
                let why = format!("this processor has no {lacking}, which \"bf16\" needs");
                Err(refused(why).help("\"float32\""))
            }
        }
    }
}
