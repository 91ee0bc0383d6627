//! `[[task.observation]]`: what the networks see.

use super::expr::{BLOCK, Inputs, Program, Scope, Scratch};
use super::{number, program, range, spread, unique};
use crate::config::{ConfigError, ObservationGroup, ObservationTerm};
use crate::env::{Groups, ObsRow};
use crate::rng::{Purpose, philox, unit};
use std::collections::HashSet;

/// The compiled observation terms.
#[derive(Debug, Clone)]
pub struct Observations {
    /// Policy terms, then privileged ones.
    pub(super) terms: Vec<Term>,
    /// Widths `O`.
    pub width: Groups<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Term {
    /// Its place in the configuration.
    pub index: usize,
    pub name: String,
    pub text: String,
    pub program: Program,
    /// First index in the rows that hold it.
    pub at: usize,
    pub privileged: bool,
    pub scale: Vec<f32>,
    pub clip: Option<[f32; 2]>,
    pub noise: f32,
}

/// Key of the noise of one step.
#[derive(Debug, Clone, Copy)]
pub struct NoiseKey {
    /// The run's seed.
    pub seed: u64,
    /// Global id of environment 0.
    pub stream: u32,
    /// Steps of the whole batch.
    pub clock: u64,
}

impl NoiseKey {
    fn words(self, env: usize, index: usize) -> [u32; 4] {
        let stream = self.stream.wrapping_add(env as u32);
        philox(
            self.seed,
            stream,
            Purpose::ObservationNoise,
            self.clock,
            index as u32,
        )
    }
}

impl Observations {
    /// Checks names, expressions and sizes.
    pub fn compile(scope: &Scope<'_>, terms: &[ObservationTerm]) -> Result<Self, ConfigError> {
        let mut all = Self {
            terms: Vec::new(),
            width: Groups {
                policy: 0,
                critic: None,
            },
        };
        for group in [ObservationGroup::Policy, ObservationGroup::Critic] {
            let mut seen = HashSet::new();
            for (t, term) in terms.iter().enumerate().filter(|(_, t)| t.group == group) {
                let path = format!("task.observation[{t}]");
                unique(&mut seen, &term.name, format!("{path}.name"))?;
                let program = program(scope, &term.expr, format!("{path}.expr"))?;
                let len = program.ty().len();
                let privileged = group == ObservationGroup::Critic;
                let noise = number(term.noise, &format!("{path}.noise"))?;
                if noise < 0.0 || (privileged && noise > 0.0) {
                    return Err(ConfigError::new(
                        format!("{path}.noise"),
                        if privileged {
                            "privileged observations have no noise".to_string()
                        } else {
                            format!("{noise} is negative")
                        },
                    ));
                }
                let at = if privileged {
                    *all.width.critic.get_or_insert(all.width.policy)
                } else {
                    all.width.policy
                };
                *(if privileged {
                    all.width.critic.get_or_insert(at)
                } else {
                    &mut all.width.policy
                }) += len;
                all.terms.push(Term {
                    index: t,
                    name: term.name.clone(),
                    text: term.expr.clone(),
                    scale: spread(&term.scale, len, "components", &format!("{path}.scale"))?,
                    clip: term
                        .clip
                        .map(|c| range(c, &format!("{path}.clip")))
                        .transpose()?,
                    program,
                    at,
                    privileged,
                    noise,
                });
            }
        }
        if all.width.policy == 0 {
            return Err(ConfigError::new("task.observation", "the policy sees nothing")
                .help("add [[task.observation]] with name = \"state\" and expr = \"qpos\", for example"));
        }
        Ok(all)
    }

    /// All expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.terms.iter().map(|t| &t.program)
    }

    /// Terms in order: whether only the critic sees it, and its name.
    pub fn names(&self) -> Vec<(bool, String)> {
        let name = |t: &Term| (t.privileged, t.name.clone());
        self.terms.iter().map(name).collect()
    }

    /// The term that entry `at` of the policy's row, or the critic's, belongs to.
    pub fn term_at(&self, at: usize, critic: bool) -> Option<usize> {
        self.terms
            .iter()
            .position(|t| (critic || !t.privileged) && (t.at..t.at + t.scale.len()).contains(&at))
    }

    /// What `ostler check` prints.
    pub fn table(&self) -> Groups<Vec<ObsRow>> {
        let row = |t: &Term| ObsRow {
            index: t.at,
            len: t.scale.len(),
            name: t.name.clone(),
            expr: t.text.clone(),
            unit: match t.program.ty() {
                super::expr::Type::Bool => "-".to_string(),
                super::expr::Type::Num { unit, .. } => unit.clone(),
            },
        };
        Groups {
            policy: self
                .terms
                .iter()
                .filter(|t| !t.privileged)
                .map(row)
                .collect(),
            critic: self
                .width
                .critic
                .map(|_| self.terms.iter().map(row).collect()),
        }
    }

    /// Writes the rows of the block's environments where `want` is set: `policy`
    /// `[len][O]`, `critic` `[len][Oc]` (empty without one); `noise` off: `None`.
    pub fn write(
        &self,
        inputs: &Inputs<'_>,
        scratch: &mut Scratch,
        noise: Option<NoiseKey>,
        want: &[bool; BLOCK],
        policy: &mut [f32],
        critic: &mut [f32],
    ) {
        let (wide, critic_wide) = (self.width.policy, self.width.critic.unwrap_or(0));
        for term in &self.terms {
            let values = term.program.eval(inputs, scratch);
            let [low, high] = term.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
            for lane in (0..inputs.len).filter(|&l| want[l]) {
                // Four numbers come at a time: word `at % 4` of draw `at / 4`.
                let (mut words, mut drawn) = ([0; 4], usize::MAX);
                for (i, &scale) in term.scale.iter().enumerate() {
                    let at = term.at + i;
                    let mut value = values[i * BLOCK + lane];
                    if critic_wide > 0 {
                        critic[lane * critic_wide + at] = (value * scale).clamp(low, high);
                    }
                    if term.privileged {
                        continue;
                    }
                    if let Some(key) = noise.filter(|_| term.noise > 0.0) {
                        if drawn != at / 4 {
                            drawn = at / 4;
                            words = key.words(inputs.first + lane, drawn);
                        }
                        value += term.noise * (2.0 * unit(words[at % 4]) - 1.0);
                    }
                    policy[lane * wide + at] = (value * scale).clamp(low, high);
                }
            }
        }
    }
}
