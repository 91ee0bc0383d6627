//! `[[task.reward]]` and `[[task.termination]]`: how a step is judged.

use super::expr::{BLOCK, Inputs, Program, Scope, Scratch, Type};
use super::team::{Team, Whom};
use super::{number, program, range, unique};
use crate::config::{ConfigError, RewardTerm, TaskConfig};
use std::collections::HashSet;

/// The compiled reward and termination terms.
#[derive(Debug, Clone)]
pub struct Score {
    pub(super) rewards: Vec<Reward>,
    pub(super) terminations: Vec<Termination>,
    pub(super) clip: Option<[f32; 2]>,
    /// A sum beyond it, before clipping, breaks the environment.
    pub(super) max_abs: f32,
}

#[derive(Debug, Clone)]
pub(super) struct Reward {
    /// Its place in the configuration.
    pub index: usize,
    /// Who gets it.
    pub agents: Vec<usize>,
    pub name: String,
    pub text: String,
    pub program: Program,
    /// Weight, times the control step where the task says so.
    pub weight: f32,
}

#[derive(Debug, Clone)]
pub(super) struct Termination {
    /// Its place in the configuration.
    pub index: usize,
    pub name: String,
    pub text: String,
    pub program: Program,
    pub truncate: bool,
}

/// Judgement of one block.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Summed, scaled, clipped rewards of every agent `[M]`.
    pub reward: Vec<[f32; BLOCK]>,
    /// Index of the cause in `Score::termination_names` that ended the task, else 0.
    pub terminated: [u32; BLOCK],
    /// The same for extra truncations.
    pub truncated: [u32; BLOCK],
    /// An agent's summed reward was beyond the task's limit.
    pub absurd: [bool; BLOCK],
}

impl Judged {
    /// Of so many agents.
    pub fn new(agents: usize) -> Self {
        Self {
            reward: vec![[0.0; BLOCK]; agents],
            terminated: [0; BLOCK],
            truncated: [0; BLOCK],
            absurd: [false; BLOCK],
        }
    }
}

impl Score {
    /// Checks names, expressions and types.
    pub fn compile(
        scope: &Scope<'_>,
        cfg: &TaskConfig,
        step_dt: f64,
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let per_step = if cfg.rewards.scale_by_dt {
            step_dt
        } else {
            1.0
        };
        let mut all = Self {
            rewards: Vec::new(),
            terminations: Vec::new(),
            clip: None,
            max_abs: f32::INFINITY,
        };
        if let Some(limit) = cfg.rewards.max_abs {
            all.max_abs = number(limit, "task.rewards.max_abs")?;
            if all.max_abs <= 0.0 {
                return Err(ConfigError::new(
                    "task.rewards.max_abs",
                    format!("{limit} is not positive"),
                )
                .help("leave it out for no limit"));
            }
        }
        all.clip = cfg
            .rewards
            .clip
            .map(|c| range(c, "task.rewards.clip"))
            .transpose()?;
        if cfg.reward.is_empty() {
            return Err(ConfigError::new("task.reward", "nothing is rewarded")
                .help("add [[task.reward]] with name = \"alive\" and expr = \"1\", for example"));
        }
        let mut seen: HashSet<String> = HashSet::new();
        for (t, term) in cfg.reward.iter().enumerate() {
            let path = format!("task.reward[{t}]");
            let weight = number(term.weight * per_step, &format!("{path}.weight"))?;
            let agents = team.of_term(term.agents.as_deref(), &path)?;
            if term.name.is_empty() {
                return Err(ConfigError::new(
                    format!("{path}.name"),
                    "the name is empty",
                ));
            }
            let one = |agent: usize| {
                let of = format!("{path}.expr");
                reward(
                    program(scope, team, Some(agent), &term.expr, of)?,
                    term,
                    &path,
                )
            };
            let mut push = |whom: Whom, agents: Vec<usize>, program: Program| {
                let own = team.fill(whom, &term.name);
                let name = match whom {
                    Some(agent) => team.prefixed(agent, &own),
                    None => own.into_owned(),
                };
                unique(&mut seen, &name, format!("{path}.name"))?;
                all.rewards.push(Reward {
                    index: t,
                    agents,
                    name,
                    text: team.fill(whom, &term.expr).into_owned(),
                    program,
                    weight,
                });
                Ok::<(), ConfigError>(())
            };
            let first = one(agents[0])?;
            let named = team.whom(&[&term.name]) != [None];
            if !team.is_several() || !(named || first.of_agent()) {
                push(None, agents, first)?;
                continue;
            }
            for agent in agents {
                push(Some(agent), vec![agent], one(agent)?)?;
            }
        }
        let mut seen = HashSet::from(["time_out".to_string()]);
        for (t, term) in cfg.termination.iter().enumerate() {
            let path = format!("task.termination[{t}]");
            for whom in team.whom(&[&term.name, &term.expr]) {
                let own = team.fill(whom, &term.name);
                let name = match whom.and_then(|agent| team.names().get(agent)) {
                    Some(agent) if !own.is_empty() => format!("{own}/{agent}"),
                    _ => own.into_owned(),
                };
                unique(&mut seen, &name, format!("{path}.name"))?;
                let program = program(scope, team, whom, &term.expr, format!("{path}.expr"))?;
                if *program.ty() != Type::Bool {
                    return Err(ConfigError {
                        path: format!("{path}.expr"),
                        span: Some(0..term.expr.len()),
                        message: "a termination is true or false; this is a number".to_string(),
                        help: Some("compare it: ... > 0.2".to_string()),
                    });
                }
                all.terminations.push(Termination {
                    index: t,
                    name,
                    text: team.fill(whom, &term.expr).into_owned(),
                    program,
                    truncate: term.truncate,
                });
            }
        }
        Ok(all)
    }

    /// The reward terms that an agent gets, by their places.
    pub fn terms_of(&self, agent: usize) -> impl Iterator<Item = usize> {
        let terms = self.rewards.iter().enumerate();
        terms
            .filter(move |(_, r)| r.agents.contains(&agent))
            .map(|(i, _)| i)
    }

    /// Whether an agent's sum of these weighted terms is beyond the limit.
    pub fn is_absurd(&self, agent: usize, terms: &[f32]) -> bool {
        let sum = self.terms_of(agent).fold(0.0, |sum, k| sum + terms[k]);
        sum.abs() > self.max_abs
    }

    /// All expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let ends = self.terminations.iter().map(|t| &t.program);
        self.rewards.iter().map(|r| &r.program).chain(ends)
    }

    /// Reward terms in order.
    pub fn reward_names(&self) -> Vec<String> {
        self.rewards.iter().map(|r| r.name.clone()).collect()
    }

    /// Causes in order, `time_out` first.
    pub fn termination_names(&self) -> Vec<String> {
        let own = self.terminations.iter().map(|t| t.name.clone());
        std::iter::once("time_out".to_string()).chain(own).collect()
    }

    /// Whether a term truncates.
    pub fn truncates(&self) -> bool {
        self.terminations.iter().any(|t| t.truncate)
    }

    /// Judges one block; hands each weighted term to `log(term, lanes)`.
    pub fn judge(
        &self,
        inputs: &Inputs<'_>,
        scratch: &mut Scratch,
        out: &mut Judged,
        mut log: impl FnMut(usize, &[f32; BLOCK]),
    ) {
        out.reward.fill([0.0; BLOCK]);
        for (i, term) in self.rewards.iter().enumerate() {
            let values = term.program.eval(inputs, scratch);
            let mut weighted = [0.0; BLOCK];
            for (w, v) in weighted.iter_mut().zip(values) {
                *w = term.weight * v;
            }
            for &agent in &term.agents {
                for (sum, w) in out.reward[agent].iter_mut().zip(&weighted) {
                    *sum += *w;
                }
            }
            log(i, &weighted);
        }
        out.absurd = [false; BLOCK];
        for sums in &mut out.reward {
            for (absurd, r) in out.absurd.iter_mut().zip(&*sums) {
                *absurd |= r.abs() > self.max_abs;
            }
            if let Some([low, high]) = self.clip {
                for r in sums {
                    // A NaN stays one: it must be seen.
                    *r = r.clamp(low, high);
                }
            }
        }
        (out.terminated, out.truncated) = ([0; BLOCK], [0; BLOCK]);
        for (i, term) in self.terminations.iter().enumerate() {
            let fired = term.program.eval(inputs, scratch);
            let causes = if term.truncate {
                &mut out.truncated
            } else {
                &mut out.terminated
            };
            for (cause, &f) in causes.iter_mut().zip(fired) {
                // The first that fires is the cause.
                if *cause == 0 && f != 0.0 {
                    *cause = i as u32 + 1;
                }
            }
        }
    }
}

/// Refuses what is not one number.
fn reward(program: Program, term: &RewardTerm, path: &str) -> Result<Program, ConfigError> {
    if program.ty().len() == 1 {
        return Ok(program);
    }
    Err(ConfigError {
        path: format!("{path}.expr"),
        span: Some(0..term.expr.len()),
        message: format!("a reward is one number; this has {}", program.ty().len()),
        help: Some("sum(...), norm(...) or a component such as .x makes one".to_string()),
    })
}
