//! Sizes, names and statistics, as dictionaries.

use ostler_sim::config::file::LoadedSimulation;
use ostler_sim::env::{ActionSpace, AgentSpec, EnvSpec, EpisodeStats, ObsRow};
use ostler_sim::task::Task;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// What facts are about.
pub struct About<'a> {
    /// Sizes and names.
    pub spec: &'a EnvSpec,
    /// The task.
    pub task: &'a Task,
    /// The configuration.
    pub loaded: &'a LoadedSimulation,
    /// The robot's name.
    pub robot: &'a str,
    /// The kernel in use.
    pub kernel: Option<&'a str>,
    /// Why it is this one, where that needs saying.
    pub kernel_note: Option<&'a str>,
    /// Notes of the physics.
    pub notes: &'a [String],
}

/// Sizes, names and units of environments.
pub fn facts<'py>(py: Python<'py>, about: &About<'_>) -> PyResult<Bound<'py, PyDict>> {
    let About { spec, task, loaded, .. } = about;
    let facts = PyDict::new(py);
    facts.set_item("num_envs", spec.num_envs)?;
    facts.set_item("rows", spec.rows())?;
    let agents: PyResult<Vec<_>> = spec.agents.iter().map(|a| agent(py, spec, a)).collect();
    facts.set_item("agents", agents?)?;
    let team = loaded.config.task.agents.as_ref();
    let centralized = team.is_some_and(|team| team.centralized_critic);
    facts.set_item("centralized_critic", centralized)?;
    facts.set_item("observations", spec.obs.policy)?;
    facts.set_item("rows_of_critics", spec.obs.critic)?;
    facts.set_item("critic", spec.critic)?;
    let groups = spec.groups.iter().map(|g| (&g.name, g.first, g.width));
    facts.set_item("groups", groups.collect::<Vec<_>>())?;
    facts.set_item("observation_bounds", task.observation_bounds(false))?;
    facts.set_item("critic_bounds", task.observation_bounds(true))?;
    facts.set_item("action_bounds", task.action_bounds())?;
    facts.set_item("action", action(spec.action))?;
    facts.set_item("observation_table", table(py, &spec.obs_table.policy)?)?;
    let critic = spec.obs_table.critic.as_ref();
    let critic = critic.map(|rows| table(py, rows)).transpose()?;
    facts.set_item("critic_table", critic)?;
    facts.set_item("step_dt", spec.step_dt)?;
    facts.set_item("max_episode_steps", spec.max_episode_steps)?;
    facts.set_item("rewards", &spec.reward_names)?;
    facts.set_item("terminations", &spec.termination_names)?;
    let metrics = spec.metrics.iter().map(|m| m.name.as_str());
    facts.set_item("metrics", metrics.collect::<Vec<_>>())?;
    facts.set_item("file", loaded.path.display().to_string())?;
    facts.set_item("robot", about.robot)?;
    facts.set_item("seed", loaded.config.seed)?;
    facts.set_item("kernel", about.kernel)?;
    facts.set_item("kernel_note", about.kernel_note)?;
    facts.set_item("notes", about.notes)?;
    Ok(facts)
}

/// Statistics of episodes.
pub fn statistics<'py>(
    py: Python<'py>,
    spec: &EnvSpec,
    stats: &EpisodeStats,
) -> PyResult<Bound<'py, PyDict>> {
    let mean = |sum: f64| match stats.episodes {
        0 => f64::NAN,
        n => sum / n as f64,
    };
    let named = |names: Vec<&str>, values: Vec<f64>| -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, value) in names.into_iter().zip(values) {
            all.set_item(name, value)?;
        }
        Ok(all)
    };
    let all = PyDict::new(py);
    all.set_item("episodes", stats.episodes)?;
    all.set_item("return", mean(stats.return_sum))?;
    if !spec.agents.is_empty() {
        let returns = stats.agent_return_sums.iter().map(|sum| mean(*sum));
        let names = spec.agents.iter().map(|own| own.name.as_str());
        all.set_item("agents", named(names.collect(), returns.collect())?)?;
    }
    all.set_item("length", mean(stats.length_sum))?;
    let rewards = stats.reward_sums.iter().map(|sum| mean(*sum)).collect();
    let names = spec.reward_names.iter().map(String::as_str).collect();
    all.set_item("rewards", named(names, rewards)?)?;
    let metrics = stats.metric_sums.iter().map(|sum| mean(*sum)).collect();
    let names = spec.metrics.iter().map(|m| m.name.as_str()).collect();
    all.set_item("metrics", named(names, metrics)?)?;
    let ends = stats.terminations.iter().map(|n| *n as f64).collect();
    let names = spec.termination_names.iter().map(String::as_str).collect();
    all.set_item("terminations", named(names, ends)?)?;
    all.set_item("broken", stats.broken())?;
    let causes = PyDict::new(py);
    for (name, count) in spec.cause_names.iter().zip(&stats.causes) {
        if *count > 0 {
            causes.set_item(name, count)?;
        }
    }
    all.set_item("causes", causes)?;
    Ok(all)
}

/// Kind and size of an action.
fn action(space: ActionSpace) -> (&'static str, usize) {
    match space {
        ActionSpace::Continuous(n) => ("continuous", n),
        ActionSpace::Discrete(n) => ("discrete", n),
    }
}

/// One of several agents.
fn agent<'py>(py: Python<'py>, spec: &EnvSpec, own: &AgentSpec) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("name", &own.name)?;
    facts.set_item("policy", spec.policy_names.get(own.policy))?;
    facts.set_item("observations", own.obs.policy)?;
    facts.set_item("critic", own.critic)?;
    facts.set_item("action", action(own.action))?;
    facts.set_item("observation_table", table(py, &own.obs_table.policy)?)?;
    let critic = own.obs_table.critic.as_ref();
    let critic = critic.map(|rows| table(py, rows)).transpose()?;
    facts.set_item("critic_table", critic)?;
    Ok(facts)
}

/// Rows of the observation table.
fn table<'py>(py: Python<'py>, rows: &[ObsRow]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for row in rows {
        let entry = PyDict::new(py);
        entry.set_item("index", row.index)?;
        entry.set_item("len", row.len)?;
        entry.set_item("frames", row.frames)?;
        entry.set_item("stride", row.stride)?;
        entry.set_item("name", &row.name)?;
        entry.set_item("expr", &row.expr)?;
        entry.set_item("unit", &row.unit)?;
        entry.set_item("seen", &row.seen)?;
        list.append(entry)?;
    }
    Ok(list)
}
