//! `[[task.event]]`: numbers of the robot that differ between environments, and pushes.
//!
//! [`super::robot`] lists in the model which numbers vary, for the engine; [`Events::compile`] says
//! how they are drawn, for `kernels/env/event.cuh`.

mod chance;
mod compile;
mod cost;
mod possible;
mod target;

use super::read::{Names, unique};
use super::team::Team;
use crate::config::{ConfigError, EventTerm, EventTime, Operation, TaskConfig};
use crate::spaces::EventSpec;
use compile::Compiler;
pub use cost::EventCost;
use ostler_engine::kernels;
use ostler_engine::physics::native;
use ostler_lang::draw::Draw;
use ostler_lang::expr::{Definitions, EventNumbers, EventValue, Unit};
use ostler_model::{Delay, Field, Model, Motor, Varied};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use target::Target;

/// The compiled events.
#[derive(Debug, Clone, Default)]
pub struct Events {
    pub(crate) events: Vec<Event>,
    /// The model's own number of every row that varies.
    pub(super) base: Vec<f32>,
}

/// What the numbers of an event are.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Fields = kernels::FORM_FIELDS,
    Pseudo = kernels::FORM_PSEUDO,
    Push = kernels::FORM_PUSH,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
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
    /// Where its numbers begin among those that expressions read, if they do.
    pub shown: Option<usize>,
    /// What of its numbers is not as it seems.
    pub warnings: Vec<String>,
}

/// One number.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    /// Row of what varies; degree of freedom of a push.
    pub row: usize,
    pub operation: Operation,
    pub draw: Draw,
    /// Least and greatest number that is possible.
    pub possible: [f32; 2],
    /// Pair of random words.
    pub word: u32,
    /// Whether it is one of the event's numbers: of several that share a draw the first is.
    pub shows: bool,
    pub unit: Unit,
    /// The number that changes nothing.
    pub neutral: f32,
}

/// `model` with what the events of `cfg` make different between environments.
///
/// # Errors
/// A mistake in an event, or something that the engine cannot vary.
pub(super) fn robot(model: &Arc<Model>, cfg: &TaskConfig) -> Result<Arc<Model>, ConfigError> {
    let (mut varied, mut ends) = (Vec::new(), Vec::new());
    let team = Team::new(cfg)?;
    let defined = Definitions::new(model, cfg, team.names())?;
    let names = Names { defined: &defined, team: &team, agent: None };
    for (e, term) in cfg.event.iter().enumerate() {
        let parsed = target::parse(model, names, &term.set, &format!("task.event[{e}].set"))?;
        for new in fields(&parsed.target) {
            if !varied.contains(&new) {
                varied.push(new);
            }
        }
        ends.push(varied.len());
    }
    for (u, _) in own_delays(model) {
        varied.push(Varied { field: Field::Delay, element: u });
    }
    if varied == model.varied {
        return Ok(Arc::clone(model));
    }
    let made = native::vary(model, varied.clone());
    made.map(Arc::new).map_err(|e| {
        // The first event that is too much, with those before it.
        let fails = |end: &usize| native::vary(model, varied[..*end].to_vec()).is_err();
        let path = match ends.iter().position(fails) {
            Some(e) => format!("task.event[{e}].set"),
            None => "task.event".to_owned(),
        };
        ConfigError::new(path, format!("cannot vary {}", e.what)).help(e.remedy)
    })
}

/// Motors whose delay is drawn where an episode begins and then stays.
fn own_delays(model: &Model) -> impl Iterator<Item = (usize, &Motor)> {
    let motors = model.actuators.iter().enumerate();
    let motors = motors.filter_map(|(u, a)| Some((u, a.motor.as_ref()?)));
    motors.filter(|(_, motor)| motor.delay.most > motor.delay.least && motor.delay.redraw == 0)
}

/// Fields whose numbers an event needs.
fn fields(target: &Target) -> Vec<Varied> {
    let all = |element: usize, fields: &[Field]| -> Vec<Varied> {
        let each = fields.iter();
        each.map(|&field| Varied { field, element }).collect()
    };
    match target {
        Target::Fields { varied, .. } => varied.clone(),
        Target::Scaled(elements) => elements.concat(),
        Target::Pseudo(bodies) => (bodies.iter())
            .flat_map(|b| all(*b, &[Field::Mass, Field::Com, Field::Tensor]))
            .collect(),
        Target::Push(..) => Vec::new(),
    }
}

impl Events {
    /// Checks names and numbers. `model` is that of [`super::robot`]; `step_dt` the control step (s).
    pub fn compile(
        model: &Model,
        terms: &[EventTerm],
        names: Names<'_>,
        step_dt: f64,
    ) -> Result<Self, ConfigError> {
        let mut all = Self {
            events: Vec::new(),
            base: model.varied_numbers().iter().map(|x| *x as f32).collect(),
        };
        let mut seen = HashSet::new();
        let mut owner: BTreeMap<usize, String> = BTreeMap::new();
        let mut words = 0;
        for (e, term) in terms.iter().enumerate() {
            let path = format!("task.event[{e}]");
            unique(&mut seen, &term.name, format!("{path}.name"))?;
            let parsed = target::parse(model, names, &term.set, &format!("{path}.set"))?;
            let event = Compiler {
                model,
                term,
                parsed: &parsed,
                path: &path,
                step_dt,
                words: &mut words,
                warnings: Vec::new(),
            }
            .event()?;
            for row in rows(model, &event) {
                let own = owner.entry(row).or_insert_with(|| term.name.clone());
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

    /// What expressions may read of them.
    pub(super) fn values(&self) -> EventNumbers {
        let value = |e: &Event| {
            let shown = e.drawn.iter().filter(|d| d.shows);
            EventValue::new(&e.name, shown.map(|d| d.unit).collect())
        };
        EventNumbers::new(self.events.iter().map(value).collect())
    }

    /// Gives events the places that expressions read them at.
    pub(super) fn show(&mut self, values: &EventNumbers) {
        for (event, first) in self.events.iter_mut().zip(values.places()) {
            event.shown = first;
        }
    }

    /// For every number the place at which expressions read it, if they do.
    pub(crate) fn places(&self) -> impl Iterator<Item = Option<usize>> {
        self.events.iter().flat_map(|event| {
            let mut next = event.shown;
            event.drawn.iter().map(move |drawn| match drawn.shows {
                true => {
                    let place = next;
                    next = next.map(|n| n + 1);
                    place
                }
                false => None,
            })
        })
    }

    /// Such numbers as long as their events have not happened.
    pub(super) fn shown_base(&self) -> Vec<f32> {
        let drawn = self.events.iter().flat_map(|e| &e.drawn);
        let placed = self.places().zip(drawn);
        let mut all: Vec<(usize, f32)> =
            placed.filter_map(|(place, drawn)| Some((place?, drawn.neutral))).collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, neutral)| neutral).collect()
    }

    /// The events, as breaks are counted by them.
    pub fn specs(&self) -> Vec<EventSpec> {
        let mean = |ends: [f32; 2]| 0.5 * (f64::from(ends[0]) + f64::from(ends[1]));
        let each = self.events.iter().map(|e| EventSpec {
            name: e.name.clone(),
            when: e.when,
            soon: f64::from(EventSpec::SOON) + mean(e.hold),
            every: mean(e.interval),
            warnings: e.warnings.clone(),
        });
        each.collect()
    }

    /// Names, in order.
    pub fn names(&self) -> Vec<String> {
        self.events.iter().map(|e| e.name.clone()).collect()
    }

    /// Lines for `ostler check`: name, when, what, how many numbers are drawn, their unit.
    pub fn lines(&self) -> Vec<String> {
        let when = |e: &Event| match e.when {
            EventTime::Startup => "at startup".to_string(),
            EventTime::Reset => "at every reset".to_string(),
            EventTime::Interval => {
                format!("every {} to {} control steps", e.interval[0], e.interval[1])
            }
        };
        let line = |e: &Event| {
            let shown: Vec<Unit> = (e.drawn.iter().filter(|d| d.shows)).map(|d| d.unit).collect();
            let numbers = match &shown[..] {
                [_] => "1 number".to_string(),
                all => format!("{} numbers", all.len()),
            };
            let unit = match &shown[..] {
                [first, rest @ ..] if rest.iter().all(|u| u == first) => format!(" [{first}]"),
                _ => String::new(),
            };
            format!("{}: {} {}, {numbers}{unit}", e.name, e.set, when(e))
        };
        self.events.iter().map(line).collect()
    }
}

/// Rows of what varies that are the event's own: none that another may have, too.
fn rows(model: &Model, event: &Event) -> Vec<usize> {
    let drawn = event.drawn.iter().filter(|_| event.form != Form::Push);
    let mut all: Vec<usize> = drawn.map(|d| d.row).collect();
    // Principal moments and the tensor are two forms of one inertia.
    let twice = all.iter().filter_map(|&row| {
        let (of, _) = model.varied_at(row)?;
        let other = match of.field {
            Field::Moments => Field::Tensor,
            Field::Tensor => Field::Moments,
            _ => return None,
        };
        model.varied_row(other, of.element)
    });
    let twice: Vec<usize> = twice.collect();
    all.extend(twice);
    all.sort_unstable();
    all.dedup();
    all
}

/// Delays of motors, drawn where an episode begins: one for all of a term's.
fn delays(model: &Model, events: &mut Vec<Event>, mut word: u32) {
    let mut groups: BTreeMap<usize, Event> = BTreeMap::new();
    for (u, motor) in own_delays(model) {
        let Some(row) = model.varied_row(Field::Delay, u) else {
            continue;
        };
        let Delay { least, most, .. } = motor.delay;
        let event = groups.entry(motor.group).or_insert_with(|| Event {
            name: format!("actuator[{}].delay", motor.group),
            set: format!("{least} to {most} physics steps"),
            when: EventTime::Reset,
            interval: [0.0; 2],
            hold: [0.0; 2],
            form: Form::Fields,
            quat: None,
            dof: None,
            drawn: Vec::new(),
            shown: None,
            warnings: Vec::new(),
        });
        let event_is_new = event.drawn.is_empty();
        event.drawn.push(Drawn {
            row,
            operation: Operation::Abs,
            draw: Draw::one_of((least..=most).map(|s| s as f32).collect()),
            possible: [least as f32, most as f32],
            word: 0,
            shows: event_is_new,
            unit: Unit::NONE,
            neutral: least as f32,
        });
    }
    for (_, mut event) in groups {
        event.drawn.iter_mut().for_each(|drawn| drawn.word = word);
        word += 1;
        events.push(event);
    }
}
