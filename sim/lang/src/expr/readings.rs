//! What kernels read for a task's expressions, found while these are compiled: contact sensors,
//! and scans of the ground.

use ostler_model::{ContactReading, ContactSensor};
use std::cell::RefCell;
use std::ops::Range;

/// Most sensors: the kernels have a number for each with every pair of geoms.
const MOST: usize = 512;

/// Most places and rays of all scans.
const MOST_RAYS: usize = 1 << 14;

/// What a scan reads at each of its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanKind {
    /// The body's height over the ground (m), at places in its heading frame.
    Heights,
    /// The distance along a ray to the first shape that it meets (m), -1 where there is none.
    Rays,
}

/// A look at the ground from a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    pub kind: ScanKind,
    /// The body that carries it.
    pub body: usize,
    /// Where rays begin in the body's frame (m), or the places of heights in its heading frame,
    /// and their unit directions.
    pub rays: Vec<[[f64; 3]; 2]>,
    /// The geoms that rays may meet.
    pub meets: Vec<usize>,
}

/// Contact sensors and scans, each once, in the order in which expressions first read them.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    contacts: RefCell<Vec<ContactSensor>>,
    scans: RefCell<Vec<Scan>>,
}

impl Readings {
    /// The sensors and the scans.
    pub fn finish(self) -> (Vec<ContactSensor>, Vec<Scan>) {
        (self.contacts.into_inner(), self.scans.into_inner())
    }

    /// The first row of a scan; none where there are too many.
    pub(super) fn scan(&self, wanted: Scan) -> Option<usize> {
        let mut all = self.scans.borrow_mut();
        let mut first = 0;
        for scan in all.iter() {
            if *scan == wanted {
                return Some(first);
            }
            first += scan.rays.len();
        }
        if first + wanted.rays.len() > MOST_RAYS {
            return None;
        }
        all.push(wanted);
        Some(first)
    }

    /// The rows of a sensor; none where there are too many.
    pub(super) fn read(&self, wanted: ContactSensor) -> Option<Range<usize>> {
        let mut all = self.contacts.borrow_mut();
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
            let all = self.contacts.borrow();
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
