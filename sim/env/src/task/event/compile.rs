//! One event from its term: its numbers, when they are drawn, what they act on.

use super::chance::usual;
use super::target::{Parsed, Target};
use super::{Drawn, Event, Form};
use crate::config::{ConfigError, Distribution, EventRange, EventTerm, EventTime, Operation, Span};
use ostler_lang::draw::Draw;
use ostler_lang::expr::{Unit, field_unit};
use ostler_lang::range;
use ostler_model::{Field, Joint, JointKind, Model, Varied};

/// Parameters of `pseudo_inertia`, in the order in which they are drawn.
const PSEUDO: [&str; 10] = ["alpha", "d1", "d2", "d3", "s12", "s13", "s23", "t1", "t2", "t3"];

/// Most of an exponent of `pseudo_inertia`, either way.
const MOST_EXPONENT: f32 = 10.0;

fn metres() -> Unit {
    Unit::parse("m").unwrap_or(Unit::Any)
}

/// One event while it is compiled.
pub(super) struct Compiler<'a> {
    pub model: &'a Model,
    pub term: &'a EventTerm,
    pub parsed: &'a Parsed,
    /// Path of the term.
    pub path: &'a str,
    /// Control step (s).
    pub step_dt: f64,
    /// Pairs of random words that are taken.
    pub words: &'a mut u32,
    pub warnings: Vec<String>,
}

impl Compiler<'_> {
    pub(super) fn error(&self, key: &str, why: impl Into<String>) -> ConfigError {
        ConfigError::new(format!("{}.{key}", self.path), why)
    }

    /// The event.
    pub(super) fn event(mut self) -> Result<Event, ConfigError> {
        let interval = self.interval()?;
        let hold = self.hold()?;
        let (mut quat, mut dof) = (None, None);
        let (form, drawn) = match &self.parsed.target {
            Target::Push(body, components) => {
                let free = self.free_joint(*body)?;
                (quat, dof) = (Some(free.qpos_adr + 3), Some(free.dof_adr));
                (Form::Push, self.push(free.dof_adr, components)?)
            }
            Target::Pseudo(bodies) => (Form::Pseudo, self.pseudo(bodies)?),
            Target::Fields { varied, components } => {
                (Form::Fields, self.fields(varied, components)?)
            }
            Target::Scaled(elements) => (Form::Fields, self.scaled(elements)?),
        };
        Ok(Event {
            name: self.term.name.clone(),
            set: self.term.set.clone(),
            when: self.term.when,
            interval,
            hold,
            form,
            quat,
            dof,
            drawn,
            shown: None,
            warnings: self.warnings,
        })
    }

    /// A span of time in control steps.
    fn steps(&self, key: &str, span: Span) -> Result<[f32; 2], ConfigError> {
        range(span.ends(), &format!("{}.{key}", self.path))?;
        let [low, high] = span.ends();
        let steps = [low, high].map(|s| s / self.step_dt);
        let least = 1.0 - 1e-6;
        if steps[0] < least || steps[1] > 1e9 {
            let (end, what) = match steps[0] < least {
                true => (low, "less than"),
                false => (high, "too many times"),
            };
            let why = format!("{end} s is {what} the control step of {} s", self.step_dt);
            return Err(self
                .error(key, why)
                .help("seconds, at least one control step: a number or [low, high]"));
        }
        Ok(steps.map(|s| s as f32))
    }

    fn interval(&self) -> Result<[f32; 2], ConfigError> {
        match (self.term.when, self.term.interval_s) {
            (EventTime::Interval, Some(span)) => self.steps("interval_s", span),
            (EventTime::Interval, None) => Err(self
                .error("interval_s", "is needed for when = \"interval\"")
                .help("interval_s = [5.0, 10.0], for example")),
            (_, None) => Ok([0.0; 2]),
            (_, Some(_)) => Err(self
                .error("interval_s", "is for when = \"interval\"")
                .help("leave it out, or write when = \"interval\"")),
        }
    }

    fn hold(&self) -> Result<[f32; 2], ConfigError> {
        let Some(span) = self.term.duration_s else {
            return Ok([0.0; 2]);
        };
        let outside = matches!(&self.parsed.target, Target::Fields { varied, .. }
            if varied.iter().all(|v| v.field == Field::Wrench));
        if !outside {
            return Err(self
                .error("duration_s", format!("has no meaning for {}", self.parsed.quantity))
                .help("force(BODY), torque(BODY) and wrench(BODY) act for a time"));
        }
        if self.term.when == EventTime::Startup {
            return Err(self.error("duration_s", "has no meaning for when = \"startup\"").help(
                "when = \"reset\" or \"interval\", or leave it out: the force acts for ever",
            ));
        }
        match span {
            // Until the next draw.
            Span::One(f64::INFINITY) => Ok([0.0; 2]),
            span => self.steps("duration_s", span),
        }
    }

    /// The next pair of random words.
    fn word(&mut self) -> u32 {
        *self.words += 1;
        *self.words - 1
    }

    fn fields(
        &mut self,
        varied: &[Varied],
        components: &[usize],
    ) -> Result<Vec<Drawn>, ConfigError> {
        let n = components.len();
        let mut drawn = Vec::new();
        let mut words = Vec::new();
        let mut numbers = Vec::new();
        let wrench = varied.iter().any(|v| v.field == Field::Wrench);
        if wrench && self.term.operation == Operation::Scale {
            return Err(self
                .error("operation", "a force from outside has nothing to be scaled")
                .help("leave it out: the drawn number is the force (N) or torque (N m)"));
        }
        for (at, &of) in varied.iter().enumerate() {
            let row = self.row(of)?;
            let own = self.model.field(of);
            let mut chances = Vec::new();
            for (i, &k) in components.iter().enumerate() {
                let first = at == 0 || !self.term.shared;
                if first {
                    let word = self.word();
                    words.resize(words.len().max(i + 1), 0);
                    words[i] = word;
                }
                let chance = self.chance(i, n)?;
                let named = self.named(of);
                self.possible(&chance, own[k], &named)?;
                numbers.push((chance.clone(), own[k], named));
                chances.push((k, chance.clone()));
                let neutral = match self.term.operation {
                    Operation::Abs if own[k].is_finite() => own[k] as f32,
                    // Without a limit no number changes nothing.
                    Operation::Abs => usual(&chance),
                    Operation::Add => 0.0,
                    Operation::Scale => 1.0,
                };
                drawn.push(Drawn {
                    row: row + k,
                    operation: self.term.operation,
                    draw: chance,
                    possible: [self.parsed.least as f32, f32::MAX],
                    word: words[i],
                    shows: first,
                    unit: self.unit(field_unit(self.model, of, k)),
                    neutral,
                });
            }
            self.physical(of, &own, &chances)?;
        }
        self.notes(&numbers);
        let normal = self.term.distribution == Distribution::Normal;
        if normal && varied.iter().any(|v| v.field == Field::Moments) {
            self.warn(
                "normal draws of inertia(...) may be those of no body; pseudo_inertia(...) never \
                 draws such"
                    .into(),
            );
        }
        Ok(drawn)
    }

    /// The unit of drawn numbers that act on numbers of this unit.
    fn unit(&self, of: Unit) -> Unit {
        match self.term.operation {
            Operation::Scale => Unit::NONE,
            Operation::Abs | Operation::Add => of,
        }
    }

    /// One factor for all numbers of an element's fields.
    fn scaled(&mut self, elements: &[Vec<Varied>]) -> Result<Vec<Drawn>, ConfigError> {
        if self.term.operation != Operation::Scale {
            return Err(self
                .error("operation", format!("{} is scaled", self.parsed.quantity))
                .help("operation = \"scale\", range = [0.9, 1.1], for example"));
        }
        let mut drawn = Vec::new();
        let mut numbers = Vec::new();
        let mut word = 0;
        for (at, fields) in elements.iter().enumerate() {
            let mut shows = at == 0 || !self.term.shared;
            if shows {
                word = self.word();
            }
            let chance = self.chance(0, 1)?;
            for (i, &of) in fields.iter().enumerate() {
                let own = self.model.field(of);
                if i == 0 {
                    self.possible(&chance, own[0].abs(), &self.named(of))?;
                    numbers.push((chance.clone(), own[0].abs(), self.named(of)));
                }
                let least = self.parsed.least as f32;
                let first = self.row(of)?;
                for (k, own) in own.into_iter().enumerate() {
                    drawn.push(Drawn {
                        row: first + k,
                        operation: Operation::Scale,
                        draw: chance.clone(),
                        // A motor's gain may be negative, and stays so.
                        possible: match own < 0.0 {
                            true => [f32::MIN, -least],
                            false => [least, f32::MAX],
                        },
                        word,
                        shows: std::mem::take(&mut shows),
                        unit: Unit::NONE,
                        neutral: 1.0,
                    });
                }
            }
        }
        self.notes(&numbers);
        Ok(drawn)
    }

    /// Ten parameters for each body; the rows of mass, centre and inertia are those of the
    /// first three of them.
    fn pseudo(&mut self, bodies: &[usize]) -> Result<Vec<Drawn>, ConfigError> {
        let Some(EventRange::Pseudo(ranges)) = self.term.range.clone() else {
            return Err(self
                .error("range", "pseudo_inertia takes a table of ranges")
                .help("range = { alpha = [-0.1, 0.1], t = [-0.02, 0.02] }: alpha, d, s, t"));
        };
        let term = self.term;
        let other = [
            ("operation", term.operation != Operation::Abs),
            ("distribution", term.distribution != Distribution::Uniform),
            ("mean", term.mean.is_some()),
            ("std", term.std.is_some()),
            ("probability", term.probability.is_some()),
            ("choices", !term.choices.is_empty()),
            ("weights", !term.weights.is_empty()),
        ];
        if let Some((key, _)) = other.into_iter().find(|(_, given)| *given) {
            return Err(self
                .error(key, "pseudo_inertia is perturbed by uniform draws alone")
                .help("leave it out"));
        }
        let mut drawn = Vec::new();
        let mut words = [0; PSEUDO.len()];
        for (at, &element) in bodies.iter().enumerate() {
            let rows = [Field::Mass, Field::Com, Field::Tensor]
                .map(|field| self.row(Varied { field, element }));
            let [mass, com, tensor] = rows;
            let (mass, com, tensor) = (mass?, com?, tensor?);
            // All ten that change; kernels ask the first three.
            let rows = [0, 1, 2, 3, 4].map(|k| tensor + 1 + k);
            let rows = [&[mass, com, tensor, com + 1, com + 2], &rows[..]].concat();
            if self.model.bodies[element].mass <= 0.0 {
                let name = &self.model.bodies[element].name;
                return Err(self.error("set", format!("body \"{name}\" has no mass")));
            }
            for (i, name) in PSEUDO.iter().enumerate() {
                let first = at == 0 || !self.term.shared;
                if first {
                    words[i] = self.word();
                }
                let given = match &name[..1] {
                    "a" => ranges.alpha,
                    "d" => ranges.d,
                    "s" => ranges.s,
                    _ => ranges.t,
                };
                let key =
                    format!("{}.range.{}", self.path, name.trim_end_matches(char::is_numeric));
                let ends = range(given.unwrap_or([0.0; 2]), &key)?;
                // Exponents: of mass and stretches.
                if i < 4 && ends.iter().any(|x| x.abs() > MOST_EXPONENT) {
                    let why = format!("a factor of e^{} is no body's", ends[1].max(-ends[0]));
                    return Err(ConfigError::new(key, why).help(format!(
                        "logarithms, such as [-0.1, 0.1]; at most {MOST_EXPONENT} either way"
                    )));
                }
                drawn.push(Drawn {
                    row: rows[i],
                    operation: Operation::Abs,
                    draw: Draw::uniform(ends),
                    possible: [f32::MIN, f32::MAX],
                    word: words[i],
                    shows: first && given.is_some(),
                    unit: if i < 7 { Unit::NONE } else { metres() },
                    neutral: 0.0,
                });
            }
        }
        Ok(drawn)
    }

    /// The joint that a body is pushed at.
    fn free_joint(&self, body: usize) -> Result<&Joint, ConfigError> {
        let joints = &self.model.joints[self.model.bodies[body].joints.clone()];
        let free = joints.iter().find(|j| j.kind == JointKind::Free);
        free.ok_or_else(|| self.error("set", "the body has no free joint"))
    }

    fn push(&mut self, first: usize, components: &[usize]) -> Result<Vec<Drawn>, ConfigError> {
        if self.term.when == EventTime::Startup {
            return Err(self
                .error("when", "a velocity is no part of the robot")
                .help("when = \"interval\" or \"reset\""));
        }
        let mut drawn = Vec::new();
        for (i, &k) in components.iter().enumerate() {
            let unit = if k < 3 { "m/s" } else { "rad/s" };
            drawn.push(Drawn {
                row: first + k,
                operation: self.term.operation,
                draw: self.chance(i, components.len())?,
                possible: [f32::MIN, f32::MAX],
                word: self.word(),
                shows: true,
                unit: self.unit(Unit::parse(unit).unwrap_or(Unit::Any)),
                neutral: match self.term.operation {
                    Operation::Scale => 1.0,
                    Operation::Abs | Operation::Add => 0.0,
                },
            });
        }
        Ok(drawn)
    }

    fn row(&self, of: Varied) -> Result<usize, ConfigError> {
        self.model
            .varied_row(of.field, of.element)
            .ok_or_else(|| self.error("set", "the robot was not prepared for this event"))
    }

    /// For messages: `mass of "trunk"`.
    pub(super) fn named(&self, of: Varied) -> String {
        let i = of.element;
        let element = match of.field {
            Field::Gravity => return "gravity".into(),
            Field::Friction => &self.model.geoms[i].name,
            Field::Kp | Field::Kd | Field::Gain | Field::Effort => &self.model.actuators[i].name,
            Field::Mass | Field::Com | Field::Moments | Field::Tensor | Field::Wrench => {
                &self.model.bodies[i].name
            }
            _ => &self.model.joints[i].name,
        };
        format!("{} of \"{element}\"", self.parsed.quantity)
    }
}
