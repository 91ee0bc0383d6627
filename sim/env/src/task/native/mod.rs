//! `[[task.native]]`: functions of C++ headers whose outputs expressions read.
//!
//! A function sees its inputs, which are expressions, and a view of the environment
//! (`kernels/env/native.cuh`). It is called before the rewards of a step and again before its
//! observations, and once in the first state of an episode; `docs/native.md` says what that
//! means for what it remembers. One text (`print`) is compiled by the host's compiler
//! (`library`) and, within a task's program, for a device.

mod library;
mod print;

pub use library::Library;

use super::team::Team;
use super::term::{Kind, Term};
use super::{metrics::Metrics, observe::Observations, read::unique, score::Score};
use crate::config::{ConfigError, Header, Leave, NativeCode, NativeTerm, NativeUnit, TaskConfig};
use ostler_lang::expr::{Code, Declared, History, Inputs, Scope, Scratch, Unit, is_name};
use ostler_model::Model;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Most numbers that the functions of a task give, get or remember.
const MOST: usize = 4096;
/// Placeholder of the agent's name.
const AGENT: &str = "{agent}";

/// The native functions of a task.
#[derive(Debug, Clone, Default)]
pub struct Natives {
    /// All of them, in order: of a term with `{agent}` one for every agent.
    pub functions: Vec<Native>,
    /// Their text for hosts and devices.
    pub(super) text: String,
    /// What may be done with it.
    leave: Leave,
    headers: Vec<Arc<Header>>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Native {
    /// As expressions know it.
    pub row: Declared,
    /// The function in the header.
    pub function: String,
    /// What it gets.
    pub inputs: Vec<Input>,
    /// Its numbers among all that functions remember.
    pub memory: Range<usize>,
    /// Whether rewards, ends, metrics or states of the task follow from its outputs: it is
    /// called before them.
    pub judged: bool,
    /// Whether observations or the history follow from its outputs, or it remembers
    /// something: it is called before them.
    pub seen: bool,
}

/// An input of a function.
#[derive(Debug, Clone)]
pub struct Input {
    pub(super) term: Term,
    /// Its first number among the function's inputs.
    pub first: usize,
}

impl Input {
    /// The expression.
    pub fn text(&self) -> &str {
        &self.term.text
    }

    /// Units of its components.
    pub fn units(&self) -> &[Unit] {
        self.term.program.units()
    }

    /// Its values for a block `[components][BLOCK]`.
    pub(crate) fn eval<'s>(&self, inputs: &Inputs<'_>, scratch: &'s mut Scratch) -> &'s [f32] {
        self.term.program.eval(inputs, scratch)
    }
}

impl Native {
    /// Numbers that it gets.
    pub fn width(&self) -> usize {
        self.inputs.iter().map(|i| i.units().len()).sum()
    }

    /// Its outputs among all.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.row.first..self.row.first + self.row.units.len()
    }

    /// How a header has to declare it.
    pub fn declaration(&self) -> String {
        let mut text = format!("OSTLER_NATIVE void {}(const Env& env", self.function);
        if self.width() > 0 {
            text += &format!(", const float (&in)[{}]", self.width());
        }
        text += &format!(", float (&out)[{}]", self.row.units.len());
        if !self.memory.is_empty() {
            text += &format!(", float (&memory)[{}]", self.memory.len());
        }
        text + ")"
    }
}

/// The functions of `cfg` with names, sizes and units.
///
/// # Errors
/// A name or a number that cannot be.
pub(super) fn declare(cfg: &TaskConfig, team: &Team) -> Result<Vec<Declared>, ConfigError> {
    let (mut all, mut seen, mut first) = (Vec::new(), HashSet::new(), 0);
    for (index, term) in cfg.native.iter().enumerate() {
        let path = format!("task.native[{index}]");
        if !term.name.contains(AGENT) && term.inputs.iter().any(|t| t.contains(AGENT)) {
            let why = format!("\"{}\" is the world's, but mentions {AGENT}", term.name);
            return Err(ConfigError::new(format!("{path}.name"), why).help(format!(
                "name = \"{AGENT}_{}\", read as native.{AGENT}_{}",
                term.name, term.name
            )));
        }
        let units = units(term, &path)?;
        if term.memory > MOST {
            let why = format!("{} numbers to remember", term.memory);
            let path = format!("{path}.memory");
            return Err(ConfigError::new(path, why).help(format!("at most {MOST}")));
        }
        if !is_name(term.function()) {
            let why = format!("\"{}\" cannot be a function's name", term.function());
            let (key, help) = match term.function {
                Some(_) => ("function", "letters, digits and _, no digit first"),
                None => ("name", "name the header's function by the key `function`"),
            };
            return Err(ConfigError::new(format!("{path}.{key}"), why).help(help));
        }
        for agent in team.agents_of(&[&term.name]) {
            let name = team.fill(agent, &term.name).into_owned();
            unique(&mut seen, &name, format!("{path}.name"))?;
            if !is_name(&name) {
                let why = format!("\"{name}\" cannot be a native function's name");
                return Err(ConfigError::new(format!("{path}.name"), why)
                    .help("letters, digits and _, no digit first; {agent}"));
            }
            all.push(Declared { index, name, agent, first, units: units.clone() });
            first += units.len();
            if first > MOST {
                let why = format!("more than {MOST} outputs of all functions");
                return Err(ConfigError::new(format!("{path}.outputs"), why));
            }
        }
    }
    Ok(all)
}

/// Units of a term's outputs.
fn units(term: &NativeTerm, path: &str) -> Result<Vec<Unit>, ConfigError> {
    if term.outputs == 0 || term.outputs > MOST {
        let why = format!("{} outputs", term.outputs);
        let path = format!("{path}.outputs");
        return Err(ConfigError::new(path, why).help(format!("1 to {MOST}")));
    }
    let path = format!("{path}.unit");
    let one = |text: &str| Unit::known(text, &path);
    match &term.unit {
        None => Ok(vec![Unit::Any; term.outputs]),
        Some(NativeUnit::All(text)) => Ok(vec![one(text)?; term.outputs]),
        Some(NativeUnit::Each(all)) if all.len() == term.outputs => {
            all.iter().map(|text| one(text)).collect()
        }
        Some(NativeUnit::Each(all)) => {
            let why = format!("{} units for {} outputs", all.len(), term.outputs);
            Err(ConfigError::new(&path, why).help("one for each, or one text for all"))
        }
    }
}

/// What may read the functions' outputs; the third are conditions that draw commands anew.
type Readers<'a> = (&'a Score, &'a Metrics, &'a [Term], &'a Observations, &'a History);

impl Natives {
    /// The functions that `scope` knows, with their inputs.
    ///
    /// # Errors
    /// A mistake in an input; a header without the function.
    pub(super) fn compile(
        scope: &Scope<'_>,
        cfg: &TaskConfig,
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let NativeCode { headers, leave } = &cfg.native_code;
        let mut all = Self {
            functions: Vec::new(),
            text: String::new(),
            leave: *leave,
            headers: headers.clone(),
        };
        let mut kept = 0;
        for row in &scope.defined.natives {
            let term = &cfg.native[row.index];
            let path = format!("task.native[{}]", row.index);
            if let Some(header) = headers.get(row.index) {
                has_function(header, term, &path)?;
            }
            let (mut inputs, mut first) = (Vec::new(), 0);
            for (k, text) in term.inputs.iter().enumerate() {
                let place = format!("{path}.inputs[{k}]");
                let (kind, of) = (Kind::Input(all.functions.len()), (team, row.agent));
                let term = Term::compile(kind, scope, of, text, place.clone())?;
                if let Some(later) = read_by(term.code(), &scope.defined.natives, row.first) {
                    let why = format!("native.{later} has no value here yet");
                    return Err(ConfigError::new(place, why).help(
                        "inputs may read the functions before their own; what a function gave \
                         before it can remember itself (`memory`)",
                    ));
                }
                let width = term.program.units().len();
                inputs.push(Input { term, first });
                first += width;
                if first > MOST {
                    let why = format!("{first} inputs");
                    return Err(ConfigError::new(place, why).help(format!("at most {MOST}")));
                }
            }
            all.functions.push(Native {
                row: row.clone(),
                function: term.function().to_string(),
                inputs,
                memory: kept..kept + term.memory,
                judged: false,
                seen: term.memory > 0,
            });
            kept += term.memory;
            if kept > MOST {
                let why = format!("all functions remember {kept} numbers");
                let path = format!("{path}.memory");
                return Err(ConfigError::new(path, why).help(format!("at most {MOST}")));
            }
        }
        Ok(all)
    }

    /// Finds out when the functions have to be called, and writes their text.
    ///
    /// # Errors
    /// An input follows from outputs of the step before.
    pub(super) fn finish(
        &mut self,
        model: &Model,
        commands: &[(String, usize, String)],
        (score, metrics, resamples, observations, history): Readers<'_>,
    ) -> Result<(), ConfigError> {
        if self.functions.is_empty() {
            return Ok(());
        }
        let cells = || history.cells().iter();
        let states = cells().filter(|c| c.kind().is_state()).map(|c| c.next());
        let others = cells().filter(|c| !c.kind().is_state()).map(|c| c.next());
        let judged = score.terms().chain(metrics.terms()).chain(resamples).map(Term::code);
        let judged: Vec<&Code> = judged.chain(states).collect();
        let seen = observations.terms().map(Term::code);
        let seen: Vec<&Code> = seen.chain(others).collect();
        let of_natives = history.of_natives();
        for k in (0..self.functions.len()).rev() {
            let rows = self.functions[k].rows();
            let reads = |all: &[&Code]| all.iter().any(|code| code.reads_natives(&rows));
            let (mut is_judged, mut is_seen) = (reads(&judged), reads(&seen));
            // Functions behind this one may have it as an input.
            for later in &self.functions[k + 1..] {
                let mut codes = later.inputs.iter().map(|i| i.term.code());
                if codes.any(|code| code.reads_natives(&rows)) {
                    is_judged |= later.judged;
                    is_seen |= later.seen;
                }
            }
            let own = &mut self.functions[k];
            own.judged |= is_judged;
            own.seen |= is_seen;
            for input in &own.inputs {
                let circle = cells().zip(&of_natives).find(|(cell, of_natives)| {
                    **of_natives && input.term.code().reads_history(&cell.rows())
                });
                if let Some((cell, _)) = circle {
                    let why = format!(
                        "{} begins with what a native function gives, and that is called later",
                        cell.text()
                    );
                    let path = &input.term.path;
                    return Err(ConfigError::new(path, why).help(
                        "a function can remember what it gave before (`memory`); or give the \
                         state another `init`",
                    ));
                }
            }
        }
        self.text = print::section(model, commands, self, &self.headers);
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Numbers that all of them give.
    pub fn outputs(&self) -> usize {
        self.functions.last().map_or(0, |f| f.rows().end)
    }

    /// Numbers that all of them remember.
    pub fn kept(&self) -> usize {
        self.functions.last().map_or(0, |f| f.memory.end)
    }

    /// Most numbers that one of them gets.
    pub(crate) fn most_inputs(&self) -> usize {
        self.functions.iter().map(Native::width).max().unwrap_or(0)
    }

    /// The function that gives output `row`.
    pub(crate) fn of_output(&self, row: usize) -> Option<usize> {
        self.functions.iter().position(|f| f.rows().contains(&row))
    }

    /// The function that remembers number `row`.
    pub(crate) fn of_memory(&self, row: usize) -> Option<usize> {
        self.functions.iter().position(|f| f.memory.contains(&row))
    }

    /// All inputs.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.functions.iter().flat_map(|f| &f.inputs).map(|i| &i.term)
    }

    /// The headers' texts, by the names that compilers give them, and the key of each.
    pub(super) fn places(&self) -> impl Iterator<Item = (&str, String)> {
        self.headers.iter().enumerate().flat_map(|(i, header)| {
            let key = format!("task.native[{i}].file");
            (header.files.iter()).map(move |(name, _)| (name.as_str(), key.clone()))
        })
    }

    /// Refuses code without leave, before anything is built.
    ///
    /// # Errors
    /// There is none.
    pub fn allowed(&self) -> Result<(), ConfigError> {
        let Some(first) = self.functions.first() else {
            return Ok(());
        };
        if self.leave != Leave::Refused {
            return Ok(());
        }
        let mut files: Vec<String> =
            (self.headers.iter()).map(|h| h.path.display().to_string()).collect();
        files.dedup();
        let what = match files.is_empty() {
            true => "a C++ header".to_string(),
            false => files.join(", "),
        };
        let why = format!(
            "native.{} would compile and run {what} on this machine, with all your rights",
            first.row.name
        );
        Err(ConfigError::new(format!("task.native[{}].file", first.row.index), why).help(
            "read the file; if you trust it, give --allow-native on the command line, with \
                 every command (docs/security.md)",
        ))
    }

    /// Whether the code may be compiled.
    pub(crate) fn runs(&self) -> bool {
        self.leave == Leave::Run
    }
}

/// The function behind `first` that `code` reads.
fn read_by<'a>(code: &Code, all: &'a [Declared], first: usize) -> Option<&'a str> {
    let mut later = all.iter().filter(|row| row.first >= first);
    let found = later.find(|row| code.reads_natives(&(row.first..row.first + row.units.len())));
    found.map(|row| row.name.as_str())
}

/// Refuses a header in which the function's name does not occur.
fn has_function(header: &Header, term: &NativeTerm, path: &str) -> Result<(), ConfigError> {
    let (name, of_name) = (term.function(), |c: char| c.is_alphanumeric() || c == '_');
    let words = || {
        let texts = header.files.iter();
        texts.flat_map(move |(_, text)| text.split(move |c: char| !of_name(c)))
    };
    if words().any(|word| word == name) {
        return Ok(());
    }
    let key = match term.function {
        Some(_) => "function",
        None => "name",
    };
    let shown = header.path.display();
    let near = ostler_base::names::nearest(name, words().filter(|w| w.len() > 2));
    let error = ConfigError::new(
        format!("{path}.{key}"),
        format!("{shown} has no function called \"{name}\""),
    );
    Err(error.help(match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "name the header's function by the key `function`".to_string(),
    }))
}
