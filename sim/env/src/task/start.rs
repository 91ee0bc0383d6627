//! `[task.start]`: conditions that the start of an episode fulfils.

use super::team::Team;
use super::term::{Kind, Term};
use crate::config::{ConfigError, StartConfig};
use ostler_lang::draw::Draw;
use ostler_lang::expr::{Scope, Start as Moment, reads};

/// Most draws of a start: the keys of random numbers have room for 65,536.
const MOST_TRIES: u32 = 1000;
/// Most conditions.
const MOST_CONDITIONS: usize = 256;

/// The conditions of a start, and the random numbers of its expressions.
#[derive(Debug, Clone, Default)]
pub struct Start {
    pub(super) conditions: Vec<Term>,
    /// Draws of a start at most.
    pub(super) tries: u32,
    /// Inputs of the conditions: `READS_*` of `kernels/env/args.cuh`.
    pub(super) reads: u32,
    /// How every random number is drawn that expressions of a start read.
    pub(super) random: Vec<Draw>,
}

impl Start {
    /// Checks the conditions; `steered`: commands may follow the robot. The random numbers are
    /// still to be entered.
    pub fn compile(
        scope: &Scope<'_>,
        config: Option<&StartConfig>,
        steered: bool,
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let mut all = Self { tries: 1, ..Self::default() };
        let Some(config) = config else {
            return Ok(all);
        };
        const PATH: &str = "task.start.until";
        if !(1..=MOST_TRIES).contains(&config.tries) {
            let message = format!("{} is not from 1 to {MOST_TRIES}", config.tries);
            return Err(ConfigError::new("task.start.tries", message)
                .help("the last draw counts where a condition fails in all"));
        }
        all.tries = config.tries;
        let texts = config.until.all();
        if texts.is_empty() {
            return Err(ConfigError::new(PATH, "there is no condition")
                .help("until = \"norm(pos(cube).xy) > 0.1\", for example, or a list of such"));
        }
        let single = matches!(config.until, crate::config::Conditions::One(_));
        for (i, text) in texts.iter().enumerate() {
            let path = if single { PATH.to_string() } else { format!("{PATH}[{i}]") };
            for agent in team.agents_of(&[text]) {
                let site = format!("{path} {agent:?}");
                let start = scope.start.map(|start| Moment { of: &site, ..start });
                let scope = Scope { start, ..scope.clone() };
                let of = (team, agent);
                let made = Term::compile(Kind::Until, &scope, of, text, path.clone())?;
                made.is_condition(text, "a start is drawn until a condition holds")?;
                all.reads |= reads(made.code(), steered);
                all.conditions.push(made);
            }
        }
        if all.conditions.len() > MOST_CONDITIONS {
            let message =
                format!("{} conditions are more than {MOST_CONDITIONS}", all.conditions.len());
            return Err(ConfigError::new(PATH, message).help("join some by `and`"));
        }
        Ok(all)
    }

    /// Whether starts are drawn again.
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }
}
