//! `[[task.state]]`: values of a task that may refer to themselves.

use super::read::unique;
use super::team::{AgentIndex, Team};
use crate::config::{ConfigError, StateTerm};
use ostler_lang::expr::{Draws, HistoryBuilder, Program, Scope, Start, StateRow, Unit};
use std::collections::HashSet;

/// Placeholder of the agent's name.
const AGENT: &str = "{agent}";
/// Most states: a list in the name of each makes many.
const MOST: usize = 4096;

/// How often sizes are looked for: as many states in a row may take theirs from the next.
const ROUNDS: usize = 32;

/// One state: a term of the configuration, for an agent and entries of lists.
struct One<'a> {
    index: usize,
    term: &'a StateTerm,
    agent: AgentIndex,
    /// Entries that stand for lists in braces.
    entries: Vec<(usize, usize)>,
    name: String,
    /// The unit that is written; none where it is to be found.
    unit: Option<Unit>,
    /// Width and units so far.
    found: Option<(usize, Vec<Unit>)>,
}

/// Compiles all states; `scope` has no history yet, the result is the one it needs.
///
/// # Errors
/// A mistake in a term.
pub(super) fn compile(
    scope: &Scope<'_>,
    draws: &Draws,
    terms: &[StateTerm],
    team: &Team,
) -> Result<HistoryBuilder, ConfigError> {
    let mut all = instances(scope, terms, team)?;
    // A state's width and unit may come from its update, which may read every state. Each
    // round finds one at least that was not known before.
    for _ in 0..ROUNDS {
        let history = HistoryBuilder::default();
        let scope = Scope { history: &history, ..scope.clone() };
        if !round(&scope, draws, &mut all, team)? {
            return Ok(history);
        }
    }
    Err(ConfigError::new("task.state", "the sizes of the states depend on one another")
        .help("give each its size in `init`, such as [0, 0]"))
}

/// One state for each agent and each entry that its name mentions.
fn instances<'a>(
    scope: &Scope<'_>,
    terms: &'a [StateTerm],
    team: &Team,
) -> Result<Vec<One<'a>>, ConfigError> {
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    for (index, term) in terms.iter().enumerate() {
        let path = format!("task.state[{index}]");
        let texts = [&term.init, &term.update];
        if !term.name.contains(AGENT) && texts.iter().any(|t| t.contains(AGENT)) {
            let why = format!("\"{}\" is the world's, but mentions {AGENT}", term.name);
            return Err(ConfigError::new(format!("{path}.name"), why).help(format!(
                "name = \"{AGENT}_{}\", read as state.{AGENT}_{}",
                term.name, term.name
            )));
        }
        for agent in team.agents_of(&[&term.name]) {
            let name = team.fill(agent, &term.name);
            for (entries, name) in scope.defined.spelled(&name) {
                if !name.is_empty() && !name_fits(&name) {
                    let why = format!("\"{name}\" cannot be a state's name");
                    return Err(ConfigError::new(format!("{path}.name"), why).help(
                        "letters, digits and _, no digit first; {agent} or a list in braces",
                    ));
                }
                unique(&mut seen, &name, format!("{path}.name"))?;
                let unit = term.unit.as_deref();
                let unit = unit.map(|text| Unit::known(text, &format!("{path}.unit")));
                all.push(One {
                    index,
                    term,
                    agent,
                    entries,
                    name,
                    unit: unit.transpose()?,
                    found: None,
                });
                if all.len() > MOST {
                    let why = format!("more than {MOST} states");
                    return Err(ConfigError::new(path, why).help("a vector is one state"));
                }
            }
        }
    }
    Ok(all)
}

/// Names that `state.NAME` can say: pieces from lists may have any characters of parts.
fn name_fits(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !name.contains(['{', '}', '(', ')', '[', ']', ' ', '"', '\''])
}

/// Compiles all of them into the history of `scope` with what is known of their sizes.
/// Returns whether more of that was found.
fn round(
    scope: &Scope<'_>,
    draws: &Draws,
    all: &mut [One<'_>],
    team: &Team,
) -> Result<bool, ConfigError> {
    let mut inits = Vec::with_capacity(all.len());
    for one in all.iter_mut() {
        let path = format!("task.state[{}].init", one.index);
        let of = format!("{path} {}", one.name);
        let beginning =
            Scope { start: Some(Start { draws, of: &of, drawing: false }), ..scope.clone() };
        let init = one.program(&beginning, team, &one.term.init, path.clone())?;
        let (len, units) = one.found.clone().unwrap_or_else(|| {
            let units = match one.unit {
                Some(unit) => vec![unit; init.units().len()],
                None => init.units().to_vec(),
            };
            (units.len(), units)
        });
        one.fits(init.units(), &units, path.clone())?;
        let mut row = StateRow::new(one.index, one.name.clone(), units, init.is_truth());
        row.quat = init.is_quat() && len == 4;
        let added = scope.history.add_state(row, &init);
        added.map_err(|e| ConfigError { span: None, ..e.at(path) })?;
        inits.push(init);
    }
    let mut more = false;
    for (state, one) in all.iter_mut().enumerate() {
        let (init, path) = (&inits[state], format!("task.state[{}].update", one.index));
        let next = one.program(scope, team, &one.term.update, path.clone())?;
        if next.is_truth() != init.is_truth() {
            let of = |p: &Program| {
                if p.is_truth() { "a condition" } else { "a number" }
            };
            let why = format!("`update` is {}, `init` is {}", of(&next), of(init));
            let help = match next.is_truth() {
                true => "init = \"false\", or a number by if(condition, 1, 0)",
                false => "init = \"0\", or a condition by a comparison",
            };
            return Err(ConfigError::new(path, why).help(help));
        }
        let (wide, known) =
            (next.units().len(), one.found.as_ref().map_or(init.units().len(), |f| f.0));
        if wide != known && wide != 1 && known != 1 {
            let (why, help) = match init.units().len() {
                1 => (
                    format!("`update` of {known} components has {wide}"),
                    "its size must not depend on the state's own",
                ),
                _ => (
                    format!("`update` has {wide} components, `init` has {known}"),
                    "both need one size, or one of them a single number",
                ),
            };
            return Err(ConfigError::new(path, why).help(help));
        }
        let width = known.max(wide);
        let had = one.found.clone().map_or_else(
            || match one.unit {
                Some(unit) => vec![unit; init.units().len()],
                None => init.units().to_vec(),
            },
            |f| f.1,
        );
        one.fits(next.units(), &had, path)?;
        let at = |units: &[Unit], i: usize| units[if units.len() == 1 { 0 } else { i }];
        let join = |i: usize| match one.unit {
            Some(unit) => unit,
            None => at(&had, i).join(at(next.units(), i)),
        };
        let units: Vec<Unit> = (0..width).map(join).collect();
        more |= units != had;
        one.found = Some((width, units));
        scope.history.define_state(state, &next);
    }
    Ok(more)
}

impl One<'_> {
    fn program(
        &self,
        scope: &Scope<'_>,
        team: &Team,
        text: &str,
        path: String,
    ) -> Result<Program, ConfigError> {
        let scope = team.scope(scope, self.agent);
        Program::compile_for(text, &scope, &self.entries).map_err(|e| e.at(path))
    }

    /// Refuses units that are not the state's.
    fn fits(&self, given: &[Unit], own: &[Unit], path: String) -> Result<(), ConfigError> {
        let at = |units: &[Unit], i: usize| units[if units.len() == 1 { 0 } else { i }];
        let both = given.len().max(own.len());
        for i in 0..both.min(4096) {
            if given.len() != 1 && own.len() != 1 && i >= given.len().min(own.len()) {
                break;
            }
            let (a, b) = (at(given, i), at(own, i));
            if !a.fits(b) {
                let why = format!("this is in [{a}], the state \"{}\" in [{b}]", self.name);
                return Err(ConfigError::new(path, why)
                    .help("multiply by a constant to say how they compare, or correct `unit`"));
            }
        }
        Ok(())
    }
}
