//! The contact sensors that a task's expressions read, found while these are compiled.

use ostler_model::{ContactReading, ContactSensor};
use std::cell::RefCell;
use std::ops::Range;

/// Most sensors: the kernels have a number for each with every pair of geoms.
const MOST: usize = 512;

/// Contact sensors, each once, in the order in which expressions first read them.
#[derive(Debug, Clone, Default)]
pub struct Contacts(RefCell<Vec<ContactSensor>>);

impl Contacts {
    /// The sensors.
    pub fn finish(self) -> Vec<ContactSensor> {
        self.0.into_inner()
    }

    /// The rows of a sensor; none where there are too many.
    pub(super) fn read(&self, wanted: ContactSensor) -> Option<Range<usize>> {
        let mut all = self.0.borrow_mut();
        let reads = wanted.reads;
        let mut first = 0;
        for sensor in all.iter() {
            if *sensor == wanted {
                return Some(first..first + reads.len());
            }
            first += sensor.reads.len();
        }
        if all.len() >= MOST {
            return None;
        }
        all.push(wanted);
        Some(first..first + reads.len())
    }

    /// The row of a sensor that counts the physics steps in which the force in `row` is above
    /// a limit (N).
    pub(super) fn count(&self, row: usize, above: f64) -> Option<usize> {
        let found = {
            let all = self.0.borrow();
            let mut first = 0;
            let at = all.iter().find(|sensor| {
                let here = first == row;
                first += sensor.reads.len();
                here
            });
            let summed = |s: &&ContactSensor| s.reads == ContactReading::Force && !s.last;
            at.filter(summed).cloned()
        };
        let rows = self.read(ContactSensor { reads: ContactReading::Count(above), ..found? })?;
        Some(rows.start)
    }
}
