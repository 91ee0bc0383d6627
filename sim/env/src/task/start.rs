//! `[task.start]`: conditions that the start of an episode fulfils.

use super::draw::Draw;
pub use super::expr::{Code, Program, Scope, Start as Moment, Type, reads};
use super::program;
use super::team::Team;
use crate::config::{ConfigError, StartConfig};

/// Most draws of a start: the keys of random numbers have room for 65,536.
const MOST_TRIES: u32 = 1000;
/// Most conditions.
const MOST_CONDITIONS: usize = 256;

/// The conditions of a start, and the random numbers of its expressions.
#[derive(Debug, Clone, Default)]
pub struct Start {
    pub(super) conditions: Vec<Condition>,
    /// Draws of a start at most.
    pub(super) tries: u32,
    /// Inputs of the conditions: `READS_*` of `kernels/env/args.cuh`.
    pub(super) reads: u32,
    /// How every random number is drawn that expressions of a start read.
    pub(super) random: Vec<Draw>,
}

/// A condition.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    /// Its key in the configuration.
    pub path: String,
    /// As it is written, for its agent.
    pub text: String,
    pub program: Program,
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
                let of = format!("{path} {agent:?}");
                let start = scope.start.map(|start| Moment { of: &of, ..start });
                let scope = Scope { start, ..scope.clone() };
                let program =
                    checked(program(&scope, team, agent, text, path.clone())?, text, &path)?;
                all.reads |= reads(program.code(), steered);
                all.conditions.push(Condition {
                    path: path.clone(),
                    text: team.fill(agent, text).into_owned(),
                    program,
                });
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

    /// The expression of a condition.
    pub(crate) fn code(&self, condition: usize) -> &Code {
        self.conditions[condition].program.code()
    }

    /// All expressions.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.conditions.iter().map(|c| &c.program)
    }
}

/// Refuses what is not one condition, or what no draw can change.
fn checked(program: Program, text: &str, path: &str) -> Result<Program, ConfigError> {
    let refused = |message: String, help: &str| ConfigError {
        path: path.to_string(),
        span: Some(0..text.len()),
        message,
        help: Some(help.to_string()),
    };
    if *program.ty() == Type::Bool {
        return Ok(program);
    }
    if program.is_truth() {
        let why = format!("this is {} conditions", program.ty().len());
        return Err(refused(why, "all(...) or any(...) makes one"));
    }
    let why = "a start is drawn until a condition holds, this is a number".to_string();
    Err(refused(why, "compare it, such as `> 0.1`"))
}
