//! Names that other libraries give to our keys.

/// `(their name, our key, the difference)`.
pub type Foreign = (&'static str, &'static str, &'static str);

/// Those of the simulation's keys.
pub const NAMES: &[Foreign] = &[
    ("num_actors", "env.num_envs", ""),
    ("n_envs", "env.num_envs", ""),
    ("num_environments", "env.num_envs", ""),
    ("n_frames", "env.decimation", ""),
    ("frame_skip", "env.decimation", ""),
    ("action_repeat", "env.decimation", ""),
    ("substeps", "env.decimation", ""),
    ("timestep", "sim.dt", "in seconds"),
    ("max_episode_steps", "env.episode_length_s", "in seconds: steps x sim.dt x env.decimation"),
    ("episode_length", "env.episode_length_s", "in seconds: steps x sim.dt x env.decimation"),
];

/// Our key for `name`: `num_actors is called env.num_envs here`.
pub fn recognise(names: &[Foreign], name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    names.iter().find(|(theirs, _, _)| *theirs == lower).map(|(_, ours, note)| {
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        format!("{name} is called {ours} here{note}")
    })
}

/// [`recognise`] among [`NAMES`].
pub(super) fn recognise_own(_table: &str, name: &str) -> Option<String> {
    recognise(NAMES, name)
}
