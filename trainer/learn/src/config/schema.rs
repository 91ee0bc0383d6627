//! The keys of a run's file beside what the types say of them.

use super::{Config, foreign};
use ostler_sim::config::file::{Keys, Rules};
use serde_json::Value;
use std::sync::LazyLock;

/// What a run's file may hold.
pub fn rules() -> &'static Rules {
    static RULES: LazyLock<Rules> =
        LazyLock::new(|| Rules::of::<Config>().recognise(foreign::recognise).gone(GONE));
    &RULES
}

/// The keys of a run's file.
pub fn keys() -> &'static Keys {
    rules().keys()
}

/// JSON Schema (draft 7) of a run's file, as editors take it.
pub fn for_editors() -> Value {
    keys().for_editors()
}

/// Keys of earlier builds, and what replaces them.
const GONE: &[(&str, &str)] = &[
    (
        "learner.path",
        "PPO takes gradients in one way, which tests hold against libtorch's automatic differentiation; leave the key out",
    ),
    ("replay.reward_scale", "[[replay.transform]] with kind = \"reward\" and scale does it"),
    ("replay.reward_clip", "[[replay.transform]] with kind = \"reward\" and clip does it"),
];
