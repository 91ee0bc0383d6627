//! `[[task.observation]]`: what the networks see.

mod rows;

use super::expr::{BLOCK, Inputs, Program, Scope, Scratch};
use super::team::Team;
use super::{number, program, range, spread, unique};
use crate::config::{ConfigError, NoiseKind, ObservationGroup, ObservationTerm};
use crate::env::{Groups, ObsRow};
use crate::rng::{Purpose, normal_pair, philox, unit};
use std::collections::HashSet;
use std::ops::Range;

/// The compiled observation terms.
///
/// The rows of an environment's agents lie one after the other, `[M][O]`: places below
/// are in them, as if they were one row.
#[derive(Debug, Clone)]
pub struct Observations {
    /// Agent by agent: policy terms, then privileged ones.
    pub(super) terms: Vec<Term>,
    /// Widths `O` of a row: the widest agent's.
    pub width: Groups<usize>,
    /// What every agent sees `[M]`.
    pub agents: Vec<Seen>,
    /// Places that no agent sees: zeros.
    pub(super) padding: Groups<Vec<Range<usize>>>,
}

/// What an agent sees.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Its own widths.
    pub width: Groups<usize>,
    /// What `ostler check` prints.
    pub table: Groups<Vec<ObsRow>>,
}

#[derive(Debug, Clone)]
pub(super) struct Term {
    /// Its place in the configuration.
    pub index: usize,
    /// Whose it is.
    pub agent: usize,
    pub name: String,
    pub text: String,
    pub program: Program,
    /// First place in the policies' rows; none where only the critic sees it.
    pub policy_at: Option<usize>,
    /// First places in the critics' rows.
    pub critic_at: Vec<usize>,
    pub scale: Vec<f32>,
    pub clip: Option<[f32; 2]>,
    pub noise: f32,
    pub noise_kind: NoiseKind,
}

/// Normal numbers come from draws of their own, this much further on: terms of both kinds
/// share no words.
pub(super) const NORMAL_DRAWS: u32 = 1 << 31;

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
    /// Four numbers of an environment: those of entries `4 * index..` of its rows.
    fn four(self, env: usize, index: usize, kind: NoiseKind) -> [f32; 4] {
        let stream = self.stream.wrapping_add(env as u32);
        let words = |index: u32| {
            let purpose = Purpose::ObservationNoise;
            philox(self.seed, stream, purpose, self.clock, index)
        };
        match kind {
            NoiseKind::Uniform => words(index as u32).map(|w| 2.0 * unit(w) - 1.0),
            NoiseKind::Normal => {
                let [a, b, c, d] = words(NORMAL_DRAWS | index as u32);
                let ((a, b), (c, d)) = (normal_pair(a, b), normal_pair(c, d));
                [a, b, c, d]
            }
        }
    }
}

impl Term {
    /// Entries.
    pub fn len(&self) -> usize {
        self.scale.len()
    }

    /// Only the critic sees it.
    pub fn is_privileged(&self) -> bool {
        self.policy_at.is_none()
    }

    fn row(&self, index: usize, name: String) -> ObsRow {
        ObsRow {
            index,
            len: self.len(),
            name,
            expr: self.text.clone(),
            unit: match self.program.ty() {
                super::expr::Type::Bool => "-".to_string(),
                super::expr::Type::Num { unit, .. } => unit.clone(),
            },
        }
    }
}

impl Observations {
    /// Checks names, expressions and sizes.
    pub fn compile(
        scope: &Scope<'_>,
        terms: &[ObservationTerm],
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let mut compiled = Vec::new();
        let mut agents = Vec::with_capacity(terms.len());
        for (t, term) in terms.iter().enumerate() {
            agents.push(team.of_term(term.agents.as_deref(), &format!("task.observation[{t}]"))?);
        }
        for agent in 0..team.count() {
            for group in [ObservationGroup::Policy, ObservationGroup::Critic] {
                let mut seen = HashSet::new();
                for (t, term) in terms.iter().enumerate() {
                    if term.group == group && agents[t].contains(&agent) {
                        compiled.push(compile(scope, term, t, team, agent, &mut seen)?);
                    }
                }
            }
            if !compiled
                .iter()
                .any(|t| t.agent == agent && !t.is_privileged())
            {
                return Err(ConfigError::new(
                    "task.observation",
                    format!("{} sees nothing", team.subject(agent)),
                )
                .help("add [[task.observation]] with name = \"state\" and expr = \"qpos\", for example"));
            }
        }
        Ok(Self::lay_out(compiled, team))
    }

    /// Widths of an environment's rows, `M O`; 0 for a critic without its own.
    pub fn world(&self) -> [usize; 2] {
        [self.width.policy, self.width.critic.unwrap_or(0)].map(|w| w * self.agents.len())
    }

    /// Entries of the policies' rows of an environment, without padding.
    pub fn entries(&self) -> usize {
        self.agents.iter().map(|a| a.width.policy).sum()
    }

    /// Where entry `i` of all that the policies see stands in their rows.
    pub fn place(&self, mut i: usize) -> Option<usize> {
        for (agent, seen) in self.agents.iter().enumerate() {
            if i < seen.width.policy {
                return Some(agent * self.width.policy + i);
            }
            i -= seen.width.policy;
        }
        None
    }

    /// All expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.terms.iter().map(|t| &t.program)
    }

    /// Terms in order: whether only the critic sees it, and its name.
    pub fn names(&self, team: &Team) -> Vec<(bool, String)> {
        let name = |t: &Term| (t.is_privileged(), team.prefixed(t.agent, &t.name));
        self.terms.iter().map(name).collect()
    }

    /// The term that entry `at` of the policies' rows, or the critics', belongs to.
    pub fn term_at(&self, at: usize, critic: bool) -> Option<usize> {
        let holds = |t: &Term, first: usize| (first..first + t.len()).contains(&at);
        self.terms.iter().position(|t| match critic {
            true => t.critic_at.iter().any(|&first| holds(t, first)),
            false => t.policy_at.is_some_and(|first| holds(t, first)),
        })
    }

    /// Writes the rows of the block's environments where `want` is set: `policy`
    /// `[len][M][O]`, `critic` `[len][M][Oc]` (empty without one); `noise` off: `None`.
    pub fn write(
        &self,
        inputs: &Inputs<'_>,
        scratch: &mut Scratch,
        noise: Option<NoiseKey>,
        want: &[bool; BLOCK],
        policy: &mut [f32],
        critic: &mut [f32],
    ) {
        let [wide, critic_wide] = self.world();
        let all = want[..inputs.len].iter().all(|w| *w);
        for term in &self.terms {
            let values = term.program.eval(inputs, scratch);
            let [low, high] = term.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
            if all && (noise.is_none() || term.noise == 0.0) {
                // Lane by lane in the inner loop: vectors.
                let components = values.as_chunks::<BLOCK>().0;
                for (i, (values, &scale)) in components.iter().zip(&term.scale).enumerate() {
                    let lanes = values.map(|x| (x * scale).clamp(low, high));
                    let lanes = &lanes[..inputs.len];
                    for at in &term.critic_at {
                        scatter(lanes, critic, at + i, critic_wide);
                    }
                    if let Some(at) = term.policy_at {
                        scatter(lanes, policy, at + i, wide);
                    }
                }
                continue;
            }
            for lane in (0..inputs.len).filter(|&l| want[l]) {
                // Four numbers come at a time: number `at % 4` of draw `at / 4`.
                let (mut four, mut drawn) = ([0.0; 4], usize::MAX);
                for (i, &scale) in term.scale.iter().enumerate() {
                    let mut value = values[i * BLOCK + lane];
                    for at in &term.critic_at {
                        critic[lane * critic_wide + at + i] = (value * scale).clamp(low, high);
                    }
                    let Some(at) = term.policy_at else {
                        continue;
                    };
                    let at = at + i;
                    if let Some(key) = noise.filter(|_| term.noise > 0.0) {
                        if drawn != at / 4 {
                            drawn = at / 4;
                            four = key.four(inputs.first + lane, drawn, term.noise_kind);
                        }
                        value += term.noise * four[at % 4];
                    }
                    policy[lane * wide + at] = (value * scale).clamp(low, high);
                }
            }
        }
        let padding = [
            (&mut *policy, wide, Some(&self.padding.policy)),
            (&mut *critic, critic_wide, self.padding.critic.as_ref()),
        ];
        for (rows, wide, padding) in padding {
            for range in padding.into_iter().flatten() {
                for lane in (0..inputs.len).filter(|&l| want[l]) {
                    rows[lane * wide..][range.clone()].fill(0.0);
                }
            }
        }
    }
}

/// Writes a number into entry `at` of every row.
fn scatter(lanes: &[f32], rows: &mut [f32], at: usize, width: usize) {
    for (row, x) in rows.chunks_exact_mut(width).zip(lanes) {
        row[at] = *x;
    }
}

/// One term for one agent; its places come later.
fn compile(
    scope: &Scope<'_>,
    term: &ObservationTerm,
    index: usize,
    team: &Team,
    agent: usize,
    seen: &mut HashSet<String>,
) -> Result<Term, ConfigError> {
    let path = format!("task.observation[{index}]");
    let name = team.fill(Some(agent), &term.name);
    unique(seen, &name, format!("{path}.name"))?;
    let program = program(scope, team, Some(agent), &term.expr, format!("{path}.expr"))?;
    let len = program.ty().len();
    let privileged = term.group == ObservationGroup::Critic;
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
    Ok(Term {
        index,
        agent,
        name: name.into_owned(),
        text: team.fill(Some(agent), &term.expr).into_owned(),
        scale: spread(&term.scale, len, "components", &format!("{path}.scale"))?,
        clip: term
            .clip
            .map(|c| range(c, &format!("{path}.clip")))
            .transpose()?,
        program,
        policy_at: (!privileged).then_some(0),
        critic_at: Vec::new(),
        noise,
        noise_kind: term.noise_kind,
    })
}
