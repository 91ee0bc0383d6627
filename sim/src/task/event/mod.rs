//! `[[task.event]]`: numbers of the robot that differ between environments, and pushes.
//!
//! [`super::robot`] lists in the model which numbers vary, for the engine; [`Events::compile`] says
//! how they are drawn, for `kernels/env/event.cuh`.

mod target;

use super::{number, unique};
use crate::config::{
    ConfigError, EventDistribution, EventRange, EventTerm, EventTime, OneOrMany, Operation, Span,
    TaskConfig,
};
use crate::model::{Field, Joint, JointKind, Model, Motor, Varied};
use crate::physics::native;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use target::{Parsed, Target};

/// Parameters of `pseudo_inertia`, in the order in which they are drawn.
const PSEUDO: [&str; 10] = [
    "alpha", "d1", "d2", "d3", "s12", "s13", "s23", "t1", "t2", "t3",
];

/// The compiled events.
#[derive(Debug, Clone, Default)]
pub struct Events {
    pub(super) events: Vec<Event>,
    /// The model's own number of every row that varies.
    pub(super) base: Vec<f32>,
}

/// What the numbers of an event are: `FORM_*` of `event.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Fields,
    Pseudo,
    Push,
}

/// One event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub name: String,
    /// As it is written.
    pub set: String,
    pub when: EventTime,
    /// Control steps between two, least and greatest.
    pub interval: [f32; 2],
    /// Control steps that a force acts; 0: until the next draw.
    pub hold: [f32; 2],
    pub form: Form,
    /// Of a pushed body: the first of its quaternion, its first degree of freedom.
    pub quat: Option<usize>,
    pub dof: Option<usize>,
    pub drawn: Vec<Drawn>,
}

/// One number.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    /// Row of what varies; degree of freedom of a push.
    pub row: usize,
    pub operation: Operation,
    pub chance: Chance,
    /// Least and greatest number that is possible.
    pub possible: [f32; 2],
    /// Pair of random words.
    pub word: u32,
}

/// A distribution.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Chance {
    Uniform([f32; 2]),
    /// Logarithms of the ends.
    LogUniform([f32; 2]),
    Normal {
        mean: f32,
        std: f32,
    },
    Choice(Vec<f32>),
}

/// `model` with what the events of `cfg` make different between environments.
///
/// # Errors
/// A mistake in an event, or something that the engine cannot vary.
pub(super) fn robot(model: &Arc<Model>, cfg: &TaskConfig) -> Result<Arc<Model>, ConfigError> {
    let mut varied = Vec::new();
    for (e, term) in cfg.event.iter().enumerate() {
        let parsed = target::parse(model, &term.set, &format!("task.event[{e}].set"))?;
        for new in fields(&parsed.target) {
            if !varied.contains(&new) {
                varied.push(new);
            }
        }
    }
    for (u, _) in own_delays(model) {
        varied.push(Varied {
            field: Field::Delay,
            element: u,
        });
    }
    if varied == model.varied {
        return Ok(Arc::clone(model));
    }
    let made = native::vary(model, varied);
    made.map(Arc::new).map_err(|e| {
        ConfigError::new("task.event", format!("cannot vary {}", e.what)).help(e.remedy)
    })
}

/// Motors whose delay is drawn, with it.
fn own_delays(model: &Model) -> impl Iterator<Item = (usize, &Motor)> {
    let motors = model.actuators.iter().enumerate();
    let motors = motors.filter_map(|(u, a)| Some((u, a.motor.as_ref()?)));
    motors.filter(|(_, motor)| motor.most_delay > motor.delay)
}

/// Fields whose numbers an event needs.
fn fields(target: &Target) -> Vec<Varied> {
    let all = |element: usize, fields: &[Field]| -> Vec<Varied> {
        let each = fields.iter();
        each.map(|&field| Varied { field, element }).collect()
    };
    match target {
        Target::Fields { varied, .. } => varied.clone(),
        Target::Density(bodies) => (bodies.iter())
            .flat_map(|b| all(*b, &[Field::Mass, Field::Moments]))
            .collect(),
        Target::Pseudo(bodies) => (bodies.iter())
            .flat_map(|b| all(*b, &[Field::Mass, Field::Com, Field::Tensor]))
            .collect(),
        Target::Push(..) => Vec::new(),
    }
}

impl Events {
    /// Checks names and numbers. `model` is that of [`super::robot`]; `step_dt` the control step (s).
    pub fn compile(model: &Model, terms: &[EventTerm], step_dt: f64) -> Result<Self, ConfigError> {
        let base: Vec<f32> = model.varied_numbers().iter().map(|x| *x as f32).collect();
        let mut all = Self {
            events: Vec::new(),
            base,
        };
        let mut seen = HashSet::new();
        let mut owner: BTreeMap<usize, String> = BTreeMap::new();
        let mut words = 0;
        for (e, term) in terms.iter().enumerate() {
            let path = format!("task.event[{e}]");
            unique(&mut seen, &term.name, format!("{path}.name"))?;
            let parsed = target::parse(model, &term.set, &format!("{path}.set"))?;
            let event = Compiler {
                model,
                term,
                parsed: &parsed,
                path: &path,
                step_dt,
                words: &mut words,
            }
            .event()?;
            for drawn in event.drawn.iter().filter(|_| event.form != Form::Push) {
                let own = owner.entry(drawn.row).or_insert_with(|| term.name.clone());
                if *own != term.name {
                    return Err(ConfigError::new(
                        format!("{path}.set"),
                        format!(
                            "\"{}\" sets a number that the event \"{own}\" sets already",
                            term.name
                        ),
                    )
                    .help("one event for each number: join their ranges"));
                }
            }
            all.events.push(event);
        }
        delays(model, &mut all.events, words);
        Ok(all)
    }

    /// Choices of all numbers.
    pub(super) fn choices(&self) -> usize {
        let drawn = self.events.iter().flat_map(|e| &e.drawn);
        let count = |d: &Drawn| match &d.chance {
            Chance::Choice(all) => all.len(),
            _ => 0,
        };
        drawn.map(count).sum()
    }

    /// Names, in order.
    pub fn names(&self) -> Vec<String> {
        self.events.iter().map(|e| e.name.clone()).collect()
    }

    /// Lines for `ostler check`: name, when, what, how many numbers of an environment.
    pub fn lines(&self) -> Vec<String> {
        let when = |e: &Event| match e.when {
            EventTime::Startup => "at startup".to_string(),
            EventTime::Reset => "at every reset".to_string(),
            EventTime::Interval => {
                format!("every {} to {} control steps", e.interval[0], e.interval[1])
            }
        };
        let line = |e: &Event| {
            let numbers = match e.drawn.len() {
                1 => "1 number".to_string(),
                n => format!("{n} numbers"),
            };
            format!("{}: {} {}, {numbers}", e.name, e.set, when(e))
        };
        self.events.iter().map(line).collect()
    }
}

/// Delays of motors, drawn where an episode begins: one for all of a term's.
fn delays(model: &Model, events: &mut Vec<Event>, mut word: u32) {
    let mut groups: BTreeMap<usize, Event> = BTreeMap::new();
    for (u, motor) in own_delays(model) {
        let Some(row) = model.varied_row(Field::Delay, u) else {
            continue;
        };
        let event = groups.entry(motor.group).or_insert_with(|| Event {
            name: format!("actuator[{}].delay", motor.group),
            set: format!("{} to {} physics steps", motor.delay, motor.most_delay),
            when: EventTime::Reset,
            interval: [0.0; 2],
            hold: [0.0; 2],
            form: Form::Fields,
            quat: None,
            dof: None,
            drawn: Vec::new(),
        });
        event.drawn.push(Drawn {
            row,
            operation: Operation::Abs,
            chance: Chance::Choice((motor.delay..=motor.most_delay).map(|s| s as f32).collect()),
            possible: [motor.delay as f32, motor.most_delay as f32],
            word: 0,
        });
    }
    for (_, mut event) in groups {
        event.drawn.iter_mut().for_each(|drawn| drawn.word = word);
        word += 1;
        events.push(event);
    }
}

/// One event while it is compiled.
struct Compiler<'a> {
    model: &'a Model,
    term: &'a EventTerm,
    parsed: &'a Parsed,
    path: &'a str,
    step_dt: f64,
    words: &'a mut u32,
}

impl Compiler<'_> {
    fn error(&self, key: &str, why: impl Into<String>) -> ConfigError {
        ConfigError::new(format!("{}.{key}", self.path), why)
    }

    fn event(&mut self) -> Result<Event, ConfigError> {
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
            Target::Density(bodies) => (Form::Fields, self.density(bodies)?),
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
        })
    }

    /// A span of time in control steps.
    fn steps(&self, key: &str, span: Span) -> Result<[f32; 2], ConfigError> {
        let [low, high] = span.ends();
        let steps = [low, high].map(|s| s / self.step_dt);
        let least = 1.0 - 1e-6;
        if !(low.is_finite() && high.is_finite())
            || low > high
            || steps[0] < least
            || steps[1] > 1e9
        {
            return Err(self
                .error(
                    key,
                    format!(
                        "{low} to {high} s are not control steps of {} s",
                        self.step_dt
                    ),
                )
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
                .error(
                    "duration_s",
                    format!("has no meaning for {}", self.parsed.quantity),
                )
                .help("force(BODY), torque(BODY) and wrench(BODY) act for a time"));
        }
        self.steps("duration_s", span)
    }

    /// The distribution of component `i` of `n`; `name` is the component's.
    fn chance(&self, i: usize, n: usize) -> Result<Chance, ConfigError> {
        let term = self.term;
        let unused = |key: &str, given: bool, of: &str| match given {
            true => Err(self
                .error(key, format!("has no meaning for distribution = \"{of}\""))
                .help("leave it out, or choose another distribution")),
            false => Ok(()),
        };
        let pick = |given: &Option<OneOrMany>, key: &str| -> Result<f32, ConfigError> {
            let path = format!("{}.{key}", self.path);
            match given {
                None => Err(
                    ConfigError::new(path, "is needed for distribution = \"normal\"")
                        .help("mean = 0.0 and std = 0.1, for example"),
                ),
                Some(OneOrMany::One(x)) => number(*x, &path),
                Some(OneOrMany::Many(list)) if list.len() == n => number(list[i], &path),
                Some(OneOrMany::Named(_)) => {
                    Err(ConfigError::new(path, "takes no patterns of names")
                        .help("write an event for each"))
                }
                Some(OneOrMany::Many(list)) => Err(ConfigError::new(
                    path,
                    format!("{} numbers for {n} components", list.len()),
                )),
            }
        };
        match term.distribution {
            EventDistribution::Uniform | EventDistribution::LogUniform => {
                let log = term.distribution == EventDistribution::LogUniform;
                let of = if log { "log_uniform" } else { "uniform" };
                unused("mean", term.mean.is_some(), of)?;
                unused("std", term.std.is_some(), of)?;
                unused("choices", !term.choices.is_empty(), of)?;
                let ends = self.range(i, n)?;
                if !log {
                    return Ok(Chance::Uniform(ends));
                }
                if ends[0] <= 0.0 {
                    return Err(self
                        .error("range", format!("{} has no logarithm", ends[0]))
                        .help("log_uniform ranges begin above 0"));
                }
                Ok(Chance::LogUniform(ends.map(f32::ln)))
            }
            EventDistribution::Normal => {
                unused("choices", !term.choices.is_empty(), "normal")?;
                let (mean, std) = (pick(&term.mean, "mean")?, pick(&term.std, "std")?);
                if std < 0.0 {
                    return Err(self.error("std", format!("{std} is negative")));
                }
                Ok(Chance::Normal { mean, std })
            }
            EventDistribution::Choice => {
                unused("range", term.range.is_some(), "choice")?;
                unused("mean", term.mean.is_some(), "choice")?;
                unused("std", term.std.is_some(), "choice")?;
                if term.choices.is_empty() {
                    return Err(self
                        .error("choices", "there is nothing to choose from")
                        .help("choices = [0.5, 1.0], for example"));
                }
                let path = format!("{}.choices", self.path);
                let numbers = term.choices.iter().map(|x| number(*x, &path));
                Ok(Chance::Choice(numbers.collect::<Result<_, _>>()?))
            }
        }
    }

    /// The range of component `i` of `n`.
    fn range(&self, i: usize, n: usize) -> Result<[f32; 2], ConfigError> {
        let path = format!("{}.range", self.path);
        match &self.term.range {
            None => {
                Err(ConfigError::new(path, "is missing").help("range = [0.8, 1.2], for example"))
            }
            Some(EventRange::One(ends)) => super::range(*ends, &path),
            Some(EventRange::Each(all)) if all.len() == n => {
                super::range(all[i], &format!("{path}[{i}]"))
            }
            Some(EventRange::Each(all)) => Err(ConfigError::new(
                path,
                format!("{} ranges for {n} components", all.len()),
            )
            .help(format!("give one for all, or {n}"))),
            Some(EventRange::Pseudo(_)) => Err(ConfigError::new(
                path,
                "a table of ranges is for pseudo_inertia",
            )
            .help("range = [0.8, 1.2], for example")),
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
        for (at, &of) in varied.iter().enumerate() {
            let row = self.row(of)?;
            let own = self.model.field(of);
            for (i, &k) in components.iter().enumerate() {
                if at == 0 || !self.term.shared {
                    let word = self.word();
                    words.resize(words.len().max(i + 1), 0);
                    words[i] = word;
                }
                let chance = self.chance(i, n)?;
                self.possible(&chance, own[k], &self.named(of))?;
                drawn.push(Drawn {
                    row: row + k,
                    operation: self.term.operation,
                    chance,
                    possible: [self.parsed.least as f32, f32::MAX],
                    word: words[i],
                });
            }
        }
        Ok(drawn)
    }

    fn density(&mut self, bodies: &[usize]) -> Result<Vec<Drawn>, ConfigError> {
        if self.term.operation != Operation::Scale {
            return Err(self
                .error("operation", "density is scaled")
                .help("operation = \"scale\", range = [0.9, 1.1], for example"));
        }
        let mut drawn = Vec::new();
        let mut word = 0;
        for (at, &body) in bodies.iter().enumerate() {
            if at == 0 || !self.term.shared {
                word = self.word();
            }
            let chance = self.chance(0, 1)?;
            let mass = Varied {
                field: Field::Mass,
                element: body,
            };
            self.possible(&chance, self.model.bodies[body].mass, &self.named(mass))?;
            let moments = Varied {
                field: Field::Moments,
                element: body,
            };
            let first = self.row(moments)?;
            for row in [self.row(mass)?, first, first + 1, first + 2] {
                drawn.push(Drawn {
                    row,
                    operation: Operation::Scale,
                    chance: chance.clone(),
                    possible: [self.parsed.least as f32, f32::MAX],
                    word,
                });
            }
        }
        Ok(drawn)
    }

    /// Ten parameters for each body; the rows of mass, centre and inertia are those of the
    /// first three of them.
    fn pseudo(&mut self, bodies: &[usize]) -> Result<Vec<Drawn>, ConfigError> {
        let Some(EventRange::Pseudo(given)) = self.term.range.clone() else {
            return Err(self
                .error("range", "pseudo_inertia takes a table of ranges")
                .help("range = { alpha = [-0.1, 0.1], t = [-0.02, 0.02] }: alpha, d, s, t"));
        };
        if self.term.operation != Operation::Abs
            || self.term.distribution == EventDistribution::Choice
            || self.term.distribution == EventDistribution::Normal
        {
            return Err(self
                .error(
                    "operation",
                    "pseudo_inertia is perturbed by uniform draws alone",
                )
                .help("leave out operation and distribution"));
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
                if at == 0 || !self.term.shared {
                    words[i] = self.word();
                }
                let ends = match &name[..1] {
                    "a" => given.alpha,
                    "d" => given.d,
                    "s" => given.s,
                    _ => given.t,
                };
                let key = format!(
                    "{}.range.{}",
                    self.path,
                    name.trim_end_matches(char::is_numeric)
                );
                let ends = super::range(ends.unwrap_or([0.0; 2]), &key)?;
                drawn.push(Drawn {
                    row: rows[i],
                    operation: Operation::Abs,
                    chance: Chance::Uniform(ends),
                    possible: [f32::MIN, f32::MAX],
                    word: words[i],
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
            drawn.push(Drawn {
                row: first + k,
                operation: self.term.operation,
                chance: self.chance(i, components.len())?,
                possible: [f32::MIN, f32::MAX],
                word: self.word(),
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
    fn named(&self, of: Varied) -> String {
        let i = of.element;
        let element = match of.field {
            Field::Gravity => return "gravity".into(),
            Field::Friction => &self.model.geoms[i].name,
            Field::Kp | Field::Kd | Field::Effort => &self.model.actuators[i].name,
            Field::Mass | Field::Com | Field::Moments | Field::Tensor | Field::Wrench => {
                &self.model.bodies[i].name
            }
            _ => &self.model.joints[i].name,
        };
        format!("{} of \"{element}\"", self.parsed.quantity)
    }

    /// Refuses ranges that leave what is possible; normal draws are cut off there.
    fn possible(&self, chance: &Chance, own: f64, of: &str) -> Result<(), ConfigError> {
        let least = self.parsed.least;
        let apply = |x: f64| match self.term.operation {
            Operation::Abs => x,
            Operation::Add => own + x,
            Operation::Scale => own * x,
        };
        if !own.is_finite() && self.term.operation != Operation::Abs {
            return Err(self
                .error("operation", format!("{of} has no number to start from"))
                .help("operation = \"abs\""));
        }
        let (key, ends): (&str, Vec<f64>) = match chance {
            Chance::Uniform(ends) => ("range", ends.map(f64::from).to_vec()),
            Chance::LogUniform(ends) => ("range", ends.map(|x| f64::from(x).exp()).to_vec()),
            Chance::Choice(all) => ("choices", all.iter().map(|x| f64::from(*x)).collect()),
            Chance::Normal { .. } => return Ok(()),
        };
        let worst = ends.into_iter().map(apply).fold(f64::INFINITY, f64::min);
        if worst >= least * (1.0 - 1e-6) || worst >= least {
            return Ok(());
        }
        let limit = if least == 0.0 {
            "below 0"
        } else {
            "not above 0"
        };
        Err(self
            .error(
                key,
                format!("the {of} could become {worst:.3}, which is {limit}"),
            )
            .help(match self.term.operation {
                Operation::Abs => "the numbers of the range are possible ones".to_string(),
                _ => format!("its own is {own}"),
            }))
    }
}

/// Warnings about draws that may leave what is possible, for `check` and logs.
impl Events {
    /// One line for each event whose normal draws are cut off with a chance of 1 in 10,000
    /// or more.
    pub fn warnings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for event in &self.events {
            let cut = event
                .drawn
                .iter()
                .map(|d| self.cut(event, d))
                .fold(0.0, f64::max);
            if cut >= 1e-4 {
                lines.push(format!(
                    "event \"{}\": {:.2} % of the draws for {} leave what is possible and are set to the least possible number",
                    event.name,
                    100.0 * cut,
                    event.set
                ));
            }
        }
        lines
    }

    /// Share of normal draws below the least possible number.
    fn cut(&self, event: &Event, drawn: &Drawn) -> f64 {
        let (Chance::Normal { mean, std }, Form::Fields) = (&drawn.chance, event.form) else {
            return 0.0;
        };
        let (mean, std) = (f64::from(*mean), f64::from(*std));
        let own = self.base.get(drawn.row).map_or(0.0, |x| f64::from(*x));
        let (mean, std) = match drawn.operation {
            Operation::Abs => (mean, std),
            Operation::Add => (own + mean, std),
            Operation::Scale => (own * mean, (own * std).abs()),
        };
        let least = f64::from(drawn.possible[0]);
        match std > 0.0 {
            true => normal_below((least - mean) / std),
            false => f64::from(u8::from(mean < least)),
        }
    }
}

/// The normal distribution's share below z. Source: Abramowitz and Stegun, 26.2.17, to 7.5e-8.
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = series.iter().rev().fold(0.0, |s, c| (s + c) * t);
    let above = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z > 0.0 { 1.0 - above } else { above }
}

#[cfg(test)]
mod tests {
    use super::normal_below;

    #[test]
    fn shares_of_the_normal_distribution() {
        for (z, share) in [
            (0.0, 0.5),
            (-1.959_964, 0.025),
            (1.281_552, 0.9),
            (-3.0, 0.001_349_898),
        ] {
            assert!((normal_below(z) - share).abs() < 1e-6, "{z}");
        }
    }
}
