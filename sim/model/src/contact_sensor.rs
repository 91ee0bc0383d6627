//! Contact sensors: what a task reads of the contacts between two sets of geoms.

use super::Model;
use ostler_base::names::few;

/// A reading of the contacts between two sets of geoms, over a control step.
///
/// A contact between two geoms that are both in both sets counts once, as one of the geom with
/// the higher number with the other.
#[derive(Debug, Clone, PartialEq)]
pub struct ContactSensor {
    /// The first set, ascending.
    pub of: Vec<usize>,
    /// Geoms that it may touch, ascending.
    pub with: Vec<usize>,
    /// What is read.
    pub reads: ContactReading,
    /// Of the last physics step alone; else over all of them.
    pub last: bool,
}

/// What a [`ContactSensor`] reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ContactReading {
    /// The mean sum of normal forces (N). Here and below: the mean over the physics steps of a
    /// control step, or the last one's.
    Force,
    /// The mean force on the first set, friction included, in the world's axes (N).
    Net,
    /// The mean sum of places in the world times normal forces (N m).
    Place,
    /// The mean sum of directions, from the second set to the first, times normal forces (N).
    Normal,
    /// Physics steps in which the sum of normal forces was above this (N).
    Count(f64),
    /// Time up to the last physics step in which there was a contact in every one; over the
    /// episode (s).
    TimeIn,
    /// The same without one (s).
    TimeOut,
}

impl ContactReading {
    /// Name and unit, for `ostler check`.
    pub fn words(self) -> String {
        match self {
            Self::Force => "normal force [N]".into(),
            Self::Net => "force, three axes [N]".into(),
            Self::Place => "places by normal force [N m]".into(),
            Self::Normal => "directions by normal force [N]".into(),
            Self::Count(0.0) => "physics steps with a force".into(),
            Self::Count(above) => format!("physics steps above {} N", above as f32),
            Self::TimeIn => "time in contact [s]".into(),
            Self::TimeOut => "time without contact [s]".into(),
        }
    }

    /// Numbers of a reading.
    pub fn len(self) -> usize {
        match self {
            Self::Force | Self::Count(_) | Self::TimeIn | Self::TimeOut => 1,
            Self::Net | Self::Place | Self::Normal => 3,
        }
    }

    /// Never.
    pub fn is_empty(self) -> bool {
        false
    }
}

impl Model {
    /// Both sets of a contact sensor, by the names of their bodies or geoms.
    pub fn contact_sets(&self, sensor: &ContactSensor) -> [String; 2] {
        let whole = sensor.with.len() == self.geoms.len();
        let with = match whole {
            true => "anything".to_string(),
            false if sensor.with == sensor.of => "itself".to_string(),
            false => self.named(&sensor.with),
        };
        [self.named(&sensor.of), with]
    }

    /// Some geoms: a body's, if it is all of one or more bodies' geoms.
    fn named(&self, geoms: &[usize]) -> String {
        const SHOWN: usize = 3;
        let mut names: Vec<&str> = Vec::new();
        for body in self.bodies.iter().filter(|b| !b.geoms.is_empty()) {
            let own = body.geoms.clone();
            let inside = own.clone().filter(|g| geoms.binary_search(g).is_ok());
            match inside.count() {
                0 => {}
                n if n == own.len() && n > 1 => names.push(&body.name),
                _ => {
                    let inside = own.filter(|g| geoms.binary_search(g).is_ok());
                    names.extend(inside.map(|g| self.geoms[g].name.as_str()));
                }
            }
        }
        if names.is_empty() { "no geom".into() } else { few(&names, SHOWN) }
    }

    /// Numbers that contact sensors read.
    pub fn nreading(&self) -> usize {
        self.contact_sensors.iter().map(|s| s.reads.len()).sum()
    }
}
