//! `[[task.command]]`: random targets.

mod draws;
mod held;
mod velocity;

use super::read::{Names, unique};
use super::team::Team;
use super::term::{Kind, Term};
use crate::config::{CommandKind, CommandTerm, ConfigError, Resample};
pub use held::CommandSpec;
use ostler_lang::draw::{Draw, share};
use ostler_lang::expr::{Scope, Unit};
use ostler_model::Model;
use std::collections::HashSet;
pub(crate) use velocity::Course;

/// Control steps of a timer that only a condition ends: more than two years of 50 a second. A
/// `unsigned` of the kernels holds it, and a float says it exactly.
const NEVER: f32 = 4e9;

/// The compiled command terms.
#[derive(Debug, Clone)]
pub struct Commands {
    /// Name, components, unit, for expressions.
    pub scope: Vec<(String, usize, String)>,
    pub(super) components: Vec<Component>,
    /// Velocities of robots.
    pub(crate) courses: Vec<Course>,
    /// Control steps between draws that are drawn themselves, or that a condition may end: least
    /// and most, not whole.
    pub(super) timers: Vec<[f32; 2]>,
    /// Conditions that draw commands anew.
    pub(super) conditions: Vec<Term>,
    /// The timer that each of them ends.
    pub(super) ended: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Component {
    /// How it is drawn; none of a [`Course`]'s.
    pub draw: Option<Draw>,
    /// First component of its term, which decides a choice.
    pub first: usize,
    pub when: When,
}

/// When a component is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Every so many control steps; 0: only where an episode begins.
    Every(u32),
    /// When this timer has run out.
    Timer(usize),
}

impl Commands {
    /// Every component in the middle of its range: the mean of those that have one, the first
    /// choice, the likelier of two.
    pub(super) fn middles(&self) -> Vec<f32> {
        let half = |[low, high]: [f32; 2]| low + (high - low) / 2.0;
        let middle = |c: &Component| c.draw.as_ref().map_or(0.0, Draw::middle);
        let mut all: Vec<f32> = self.components.iter().map(middle).collect();
        for course in &self.courses {
            let own = all.iter_mut().skip(course.first);
            own.zip(&course.ranges[..3]).for_each(|(x, range)| *x = half(*range));
        }
        all
    }

    /// Least and greatest number of every component; infinite where nothing limits it.
    pub(super) fn ranges(&self) -> Vec<[f32; 2]> {
        let ends = |draw: &Draw| draw.ends().map(|x| x as f32);
        let range = |c: &Component| c.draw.as_ref().map_or([0.0; 2], ends);
        let mut all: Vec<[f32; 2]> = self.components.iter().map(range).collect();
        for course in &self.courses {
            let own = all.iter_mut().skip(course.first);
            own.zip(&course.ranges[..3]).for_each(|(x, r)| *x = *r);
        }
        all
    }

    /// `step_dt`: control step (s).
    pub fn compile(
        model: &Model,
        terms: &[CommandTerm],
        read: Names<'_>,
        step_dt: f64,
    ) -> Result<Self, ConfigError> {
        let team = read.team;
        let mut all = Self {
            scope: Vec::new(),
            components: Vec::new(),
            courses: Vec::new(),
            timers: Vec::new(),
            conditions: Vec::new(),
            ended: Vec::new(),
        };
        let mut seen = HashSet::new();
        for (t, term) in terms.iter().enumerate() {
            let path = format!("task.command[{t}]");
            let timing = Timing::compile(term.resample_s, step_dt, &path)?;
            for agent in team.agents_of(&texts(term)) {
                let name = team.fill(agent, &term.name);
                if agent.is_some_and(|agent| agent > 0) && name == term.name {
                    let why = format!(
                        "\"{name}\" would be every agent's: `frame`, `unit` or `resample_when` names \
                         {{agent}}, the name does not"
                    );
                    return Err(ConfigError::new(format!("{path}.name"), why)
                        .help(format!("name = \"{{agent}}_{name}\"")));
                }
                unique(&mut seen, &name, format!("{path}.name"))?;
                let until = term.resample_when.is_some();
                let when = match timing {
                    Timing::Every(steps) if !until => When::Every(steps),
                    Timing::Every(0) => all.timer([NEVER; 2]),
                    Timing::Every(steps) => all.timer([steps as f32; 2]),
                    Timing::Between(steps) => all.timer(steps),
                };
                if until {
                    all.ended.push(all.timers.len() - 1);
                }
                let first = all.components.len();
                let unit = team.fill(agent, &term.unit).into_owned();
                Unit::known(&unit, &format!("{path}.unit"))?;
                let draws: Vec<Option<Draw>> = match term.kind {
                    CommandKind::Values => {
                        draws::compile(term, &path)?.into_iter().map(Some).collect()
                    }
                    CommandKind::Velocity => {
                        let parts = (model, Names { agent, ..read });
                        let course = Course::compile(parts, term, first, &path)?;
                        all.courses.push(course);
                        vec![None; 3]
                    }
                };
                all.scope.push((name.into_owned(), draws.len(), unit));
                let components = draws.into_iter().map(|draw| Component { draw, first, when });
                all.components.extend(components);
            }
        }
        Ok(all)
    }

    /// A timer of its own.
    fn timer(&mut self, steps: [f32; 2]) -> When {
        self.timers.push(steps);
        When::Timer(self.timers.len() - 1)
    }

    /// Components of all commands.
    pub fn width(&self) -> usize {
        self.components.len()
    }
}

/// Texts of a command that may name an agent.
fn texts(term: &CommandTerm) -> [&str; 4] {
    let given = [&term.frame, &term.resample_when].map(|text| text.as_deref().unwrap_or_default());
    [&term.name, &term.unit, given[0], given[1]]
}

/// `resample_when` of the terms: a condition for each timer in [`Commands::ended`].
pub(super) fn conditions(
    scope: &Scope<'_>,
    terms: &[CommandTerm],
    team: &Team,
) -> Result<Vec<Term>, ConfigError> {
    let mut all = Vec::new();
    for (t, term) in terms.iter().enumerate() {
        let Some(text) = &term.resample_when else {
            continue;
        };
        for agent in team.agents_of(&texts(term)) {
            let path = format!("task.command[{t}].resample_when");
            let made = Term::compile(Kind::Resample, scope, (team, agent), text, path)?;
            made.is_condition(text, "a command is drawn anew where a condition holds")?;
            all.push(made);
        }
    }
    Ok(all)
}

/// Time between draws in control steps.
#[derive(Clone, Copy)]
enum Timing {
    Every(u32),
    Between([f32; 2]),
}

impl Timing {
    fn compile(resample: Resample, step_dt: f64, path: &str) -> Result<Self, ConfigError> {
        let path = format!("{path}.resample_s");
        let wrong = |seconds: f64| {
            let message = format!("{seconds} s is not a number of control steps of {step_dt} s");
            Err(ConfigError::new(path.clone(), message)
                .help("0 or inf: drawn where an episode begins, and then never"))
        };
        match resample {
            Resample::Every(f64::INFINITY) => Ok(Self::Every(0)),
            Resample::Every(seconds) => {
                let steps = (seconds / step_dt).round();
                if !(0.0..=f64::from(u32::MAX)).contains(&steps) || (seconds > 0.0 && steps < 1.0) {
                    return wrong(seconds);
                }
                Ok(Self::Every(steps as u32))
            }
            Resample::Between([low, high]) => {
                // Whole numbers of steps below this are exact.
                let most = f64::from(1 << 24) * step_dt;
                for seconds in [low, high] {
                    if !(seconds > 0.0 && seconds < most) {
                        return wrong(seconds);
                    }
                }
                let [low, high] = ostler_lang::range([low, high], &path)?.map(f64::from);
                Ok(Self::Between([low, high].map(|s| (s / step_dt) as f32)))
            }
        }
    }
}
