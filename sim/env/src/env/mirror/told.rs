//! What the columns of an expression become by what it reads: for those that are the same in all
//! states that were tried, contacts of hands that touch nothing or numbers of events.

use super::Signed;
use super::alike::{Columns, Entry};
use super::events::{Numbers, varied};
use crate::task::Task;
use crate::task::expr::{Code, Seen, Source, Step};
use ostler_base::rng::{Purpose, normal_pair, philox};
use ostler_model::mirror::Mirror;
use ostler_model::{ContactReading, ContactSensor, Model, SensorKind};

/// Random numbers of every input.
const LANES: usize = 256;

/// What a column is in the reflection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// A column, of the same expression, and its sign.
    As(Entry),
    /// None of the expression's.
    Nothing,
    /// It reads what is reflected in an unknown way.
    Unknown,
    /// It reads an event's number, at this place, whose counterpart is not drawn.
    Undrawn(usize),
}

/// Why nothing can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    No,
    Unknown,
    Undrawn(usize),
}

/// Whose expressions are read, and the reflection of what they read.
pub(super) struct Reader<'a> {
    pub model: &'a Model,
    pub task: &'a Task,
    pub mirror: &'a Mirror,
    pub action: &'a Signed,
    pub command: &'a Signed,
    pub events: &'a Numbers<'a>,
}

impl Reader<'_> {
    /// What each column of an expression becomes.
    pub(super) fn columns(&self, code: &Code) -> Vec<Told> {
        let [own, reflected] = [false, true].map(|turned| self.run(code, turned));
        let mut columns = Columns::new(code.outputs);
        for lane in 0..LANES {
            let row = |side: &[(Vec<f32>, Doubt)]| -> Vec<f32> {
                let each = side.iter().map(|(numbers, _)| numbers[lane]);
                each.map(|x| if x.is_finite() { x } else { 0.0 }).collect()
            };
            columns.push(&row(&own), &row(&reflected));
        }
        let told = |(k, (_, doubt)): (usize, &(Vec<f32>, Doubt))| match doubt {
            Doubt::Undrawn(place) => Told::Undrawn(*place),
            Doubt::Unknown => Told::Unknown,
            Doubt::No => columns.same_as(k).map_or(Told::Nothing, Told::As),
        };
        reflected.iter().enumerate().map(told).collect()
    }

    /// The results of an expression with random inputs, or with their reflections.
    fn run(&self, code: &Code, turned: bool) -> Vec<(Vec<f32>, Doubt)> {
        let zero = (vec![0.0; LANES], Doubt::No);
        let mut registers = vec![zero; code.registers.max(code.outputs)];
        for (step, to) in &code.steps {
            registers[*to as usize] = match *step {
                Step::Const(bits) => (vec![f32::from_bits(bits); LANES], Doubt::No),
                Step::Load(source, row) => self.input(source, row as usize, turned),
                Step::Copy(from) => registers[from as usize].clone(),
                Step::Op(op, x) => {
                    let x = x.map(|r| &registers[r as usize]);
                    let doubt = x.iter().take(op.arity()).map(|(_, doubt)| *doubt).max();
                    // The ground is reflected, too, and may be any.
                    let ground = if op.relief().is_some() { Doubt::Unknown } else { Doubt::No };
                    let numbers = (0..LANES).map(|i| op.lane(x.map(|(numbers, _)| numbers[i])));
                    (numbers.collect(), doubt.unwrap_or(Doubt::No).max(ground))
                }
            };
        }
        registers.truncate(code.outputs);
        registers
    }

    /// Random numbers of an input, or of its reflection.
    fn input(&self, source: Source, row: usize, turned: bool) -> (Vec<f32>, Doubt) {
        let found = self.reflected(source, row);
        let doubt = match (found, source) {
            (Some(_), _) => Doubt::No,
            (None, Source::Shown) => Doubt::Undrawn(row),
            (None, _) => Doubt::Unknown,
        };
        let (row, sign) = match turned {
            true => found.unwrap_or((row, 1.0)),
            false => (row, 1.0),
        };
        let stream = format!("{source:?}")
            .bytes()
            .fold(0, |hash: u32, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
        // Forces press, or nothing touches.
        let presses = match source {
            Source::World(Seen::ContactForce) => true,
            Source::World(Seen::ContactData) => {
                self.sensor(row).is_some_and(|(sensor, _)| sensor.reads.len() == 1)
            }
            _ => false,
        };
        let number = |lane: usize| {
            let words = philox(4, stream, Purpose::Custom, lane as u64, row as u32);
            let (size, spread) = normal_pair(words[0], words[1]);
            // Of all sizes: a threshold is passed now and then.
            let x = size * (2.0 * spread).exp();
            sign * if presses { x.max(0.0) } else { x }
        };
        ((0..LANES).map(number).collect(), doubt)
    }

    /// The sensor of contacts that a row belongs to, and which of its numbers it is.
    fn sensor(&self, row: usize) -> Option<(&ContactSensor, usize)> {
        let mut first = 0;
        for sensor in &self.task.contacts {
            let width = sensor.reads.len();
            if row < first + width {
                return Some((sensor, row - first));
            }
            first += width;
        }
        None
    }

    /// The row that a row of an input becomes, and its sign: reflected twice it is itself.
    fn reflected(&self, source: Source, row: usize) -> Option<(usize, f32)> {
        let signed = |all: &Signed| all.0.get(row).map(|&(at, sign)| (at as usize, sign));
        match source {
            Source::World(seen) => self.of_world(seen, row),
            Source::Action | Source::LastAction => signed(self.action),
            Source::Command => signed(self.command),
            Source::Ctrl => self.mirror.actuators.get(row).map(|&(u, sign)| (u, sign as f32)),
            Source::Shown => self.events.shown(row),
            Source::Stand => Some((row, if row == self.mirror.axis { -1.0 } else { 1.0 })),
            Source::Param | Source::Step | Source::StepDt | Source::MaxSteps => Some((row, 1.0)),
            Source::History | Source::Random | Source::Native | Source::Scan | Source::Motion => {
                None
            }
        }
    }

    /// The same of a row of the worlds.
    fn of_world(&self, seen: Seen, row: usize) -> Option<(usize, f32)> {
        let (model, mirror) = (self.model, self.mirror);
        let straight = |k: usize| if k == mirror.axis { -1.0 } else { 1.0 };
        let joint = |scalar: bool, first: &dyn Fn(usize) -> usize| {
            let own = (0..model.joints.len()).find(|j| first(*j) == row)?;
            let other = mirror.joints[own];
            let fits = model.joints[own].is_scalar() && scalar;
            fits.then(|| (first(other), mirror.signs[own] as f32))
        };
        match seen {
            Seen::Qvel | Seen::Qacc => joint(true, &|j| model.joints[j].dof_adr),
            Seen::Qpos => {
                let found = joint(true, &|j| model.joints[j].qpos_adr);
                found.filter(|(to, sign)| model.qpos0[*to] == f64::from(*sign) * model.qpos0[row])
            }
            Seen::BodyPos | Seen::BodyLinVel => {
                Some((3 * mirror.bodies[row / 3] + row % 3, straight(row % 3)))
            }
            Seen::BodyAngVel => Some((3 * mirror.bodies[row / 3] + row % 3, -straight(row % 3))),
            Seen::BodyQuat => None,
            Seen::ContactForce => Some((self.geom(row)?, 1.0)),
            Seen::ActuatorForce => mirror.actuators.get(row).map(|&(u, sign)| (u, sign as f32)),
            Seen::Act => {
                let own = model.actuators.iter().position(|a| a.act_adr == Some(row))?;
                let &(other, sign) = mirror.actuators.get(own)?;
                Some((model.actuators[other].act_adr?, sign as f32))
            }
            Seen::Sensordata => self.touch(row),
            Seen::ContactData => self.contact(row, &straight),
            Seen::Varied => varied(model, mirror, row),
        }
    }

    /// The counterpart of a geom; none where its body's counterpart has none.
    fn geom(&self, geom: usize) -> Option<usize> {
        let other = self.mirror.geoms[geom];
        let [own, there] = [geom, other].map(|g| self.model.geoms[g].body);
        (self.mirror.bodies[own] == there).then_some(other)
    }

    fn touch(&self, row: usize) -> Option<(usize, f32)> {
        let sensors = &self.model.sensors;
        let at = |i: usize| self.model.measured_before(i);
        let site = |i: usize| match sensors[i].kind {
            SensorKind::Touch(site) => Some(site),
            _ => None,
        };
        let own = (0..sensors.len()).find(|i| site(*i).is_some() && at(*i) == row)?;
        let other = site(own).map(|s| self.mirror.sites[s]);
        let found = (0..sensors.len()).find(|i| site(*i) == other)?;
        Some((at(found), 1.0))
    }

    fn contact(&self, row: usize, straight: &dyn Fn(usize) -> f32) -> Option<(usize, f32)> {
        let (own, k) = self.sensor(row)?;
        let set = |geoms: &[usize]| -> Option<Vec<usize>> {
            let mut all: Vec<usize> = geoms.iter().map(|g| self.geom(*g)).collect::<Option<_>>()?;
            all.sort_unstable();
            Some(all)
        };
        let wanted = ContactSensor { of: set(&own.of)?, with: set(&own.with)?, ..own.clone() };
        let mut first = 0;
        for sensor in &self.task.contacts {
            if *sensor == wanted {
                let vector = matches!(
                    own.reads,
                    ContactReading::Net | ContactReading::Place | ContactReading::Normal
                );
                return Some((first + k, if vector { straight(k) } else { 1.0 }));
            }
            first += sensor.reads.len();
        }
        None
    }
}
