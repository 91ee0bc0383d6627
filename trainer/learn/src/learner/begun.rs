//! What a run that begins with another's weights (`--init-from`) would lose of its network.

use super::error::LearnError;
use super::state::State;
use crate::config::Config;
use ostler_sim::config::ConfigError;
use serde::Serialize;
use tch::Tensor;

/// Whether a learner with `state` and the configuration `ours` is, with weights from `tensors`, the
/// network that learnt them by `theirs`.
///
/// # Errors
/// It has no place for some of them, or makes something else of them: with the key to set.
pub fn check_same_network(
    state: &State,
    tensors: &[(String, Tensor)],
    [ours, theirs]: [&Config; 2],
) -> Result<(), LearnError> {
    let own: Vec<&str> = state.names().collect();
    let algorithms = [ours, theirs].map(|c| c.runner.algorithm);
    if let Some((name, key)) = tensors.iter().find_map(|(name, _)| left_out(name, &own)) {
        let key = match algorithms[0] == algorithms[1] {
            true => key,
            false => format!("runner.algorithm = \"{}\"", algorithms[1].name()),
        };
        let why = format!("it has {name}, for which there is a place only with {key}");
        return Err(LearnError::Checkpoint(why));
    }
    if algorithms[0] == algorithms[1] {
        let [a, b] = [ours, theirs].map(|config| algorithms[0].meaning(config));
        for (key, value) in a {
            // What one of both lacks makes another shape, which is told otherwise.
            if let Some((_, other)) = b.iter().find(|(k, _)| *k == key) {
                same(key, [&value, other])?;
            }
        }
    }
    let layers = algorithms[0].hidden(ours);
    // A learner without a critic has none of its tensors, whatever the table says.
    let critic = own.iter().any(|name| name.starts_with("critic.") || name.contains("/critic."));
    let critic = critic && !ours.critic.shared;
    let ([a, b], [c, d]) = ([&ours.actor, &theirs.actor], [&ours.critic, &theirs.critic]);
    if critic {
        // It may see what the actor's statistics make of observations, and have none of its own.
        same("critic.obs_normalization", [c.obs_normalization, d.obs_normalization])?;
    }
    for (table, widths, activation, residual, read) in [
        ("actor", layers[0], [a.activation, b.activation], [a.residual, b.residual], true),
        ("critic", layers[1], [c.activation, d.activation], [c.residual, d.residual], critic),
    ] {
        if !read || widths.is_empty() {
            continue;
        }
        same(&format!("{table}.activation"), activation)?;
        if widths.windows(2).any(|w| w[0] == w[1]) {
            same(&format!("{table}.residual"), residual)?;
        }
    }
    Ok(())
}

fn same<T: PartialEq + Serialize>(key: &str, [ours, theirs]: [T; 2]) -> Result<(), ConfigError> {
    if ours == theirs {
        return Ok(());
    }
    let say = |x: &T| serde_json::to_string(x).unwrap_or_default();
    let why = format!(
        "{}, but the run that the weights are from has {}: they would be another network",
        say(&ours),
        say(&theirs)
    );
    Err(ConfigError::new(key, why).help(format!("{key} = {}", say(&theirs))))
}

/// The name, and the key that makes a place for it, of a tensor that belongs to a network and is
/// none of the `own`.
fn left_out<'a>(name: &'a str, own: &[&str]) -> Option<(&'a str, String)> {
    if own.contains(&name) {
        return None;
    }
    // Of several policies each has its own name in front.
    let (prefix, tensor) = match name.rsplit_once('/') {
        Some((prefix, tensor)) => (Some(prefix), tensor),
        None => (None, name),
    };
    let (table, part) = tensor.split_once('.').filter(|(t, _)| ["actor", "critic"].contains(t))?;
    // A policy that is not here, or a critic where there is none, is no part of this network.
    let beside = |own: &&str| {
        let rest = match prefix {
            Some(prefix) => own.strip_prefix(prefix).and_then(|own| own.strip_prefix('/')),
            None => Some(*own),
        };
        rest.is_some_and(|rest| rest.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')))
    };
    // The optimiser, bounds, and what is folded into the output layer.
    let apart = ["adam.", "reward_range", "return_normalizer."];
    if apart.iter().any(|apart| part.starts_with(apart)) || !own.iter().any(beside) {
        return None;
    }
    let key = match part {
        part if part.starts_with("obs_normalizer.") => format!("{table}.obs_normalization = true"),
        part if part.starts_with("gru.") => "actor.rnn_type = \"gru\"".into(),
        part if part.contains(".norm.") => format!("{table}.layer_norm = true"),
        part if part.starts_with("log_std") => "the run's own actor.std_type".into(),
        _ => format!("the run's own {table}.hidden_dims"),
    };
    Some((name, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_network_has_no_place_for_is_told_from_what_it_does_not_need() {
        let own = ["actor.0.weight", "critic.0.weight", "left/actor.0.weight"];
        let key = |name| left_out(name, &own).map(|(_, key)| key);
        for (name, wanted) in [
            ("actor.obs_normalizer.mean", "actor.obs_normalization = true"),
            ("critic.obs_normalizer.var", "critic.obs_normalization = true"),
            ("actor.0.norm.bias", "actor.layer_norm = true"),
            ("actor.1.weight", "the run's own actor.hidden_dims"),
            ("actor.gru.input.weight", "actor.rnn_type = \"gru\""),
            ("left/actor.obs_normalizer.mean", "actor.obs_normalization = true"),
        ] {
            assert_eq!(key(name).as_deref(), Some(wanted), "{name}");
        }
        for name in [
            "actor.0.weight",
            "actor.adam.m",
            "adam.m",
            "critic.reward_range",
            "critic.return_normalizer.mean",
            "rnd/predictor.0.weight",
            "self_play/0/actor.obs_normalizer.mean",
            "right/actor.0.weight",
            "left/critic.0.weight",
        ] {
            assert_eq!(key(name), None, "{name}");
        }
    }
}
