//! What expressions read of the reference motion, found while these are compiled.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is read of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LookOf {
    /// Position of a joint, by its place among the robot's positions.
    JointPos(usize),
    /// Its velocity, by its place among the robot's velocities.
    JointVel(usize),
    /// Of a body, in the world: where its frame's origin is.
    Pos(usize),
    /// Its orientation (w, x, y, z).
    Quat(usize),
    /// Its origin's velocity.
    LinVel(usize),
    /// Its angular velocity.
    AngVel(usize),
}

impl LookOf {
    /// Its numbers.
    pub fn size(self) -> usize {
        match self {
            Self::JointPos(_) | Self::JointVel(_) => 1,
            Self::Pos(_) | Self::LinVel(_) | Self::AngVel(_) => 3,
            Self::Quat(_) => 4,
        }
    }
}

/// A reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub of: LookOf,
    /// How much later than the present frame, in control steps.
    pub ahead: f32,
}

/// The readings of a task, each once, in the order in which expressions first read them.
#[derive(Debug, Default)]
pub struct Looks {
    /// Control step (s); none of a task without a reference.
    step: Option<f64>,
    all: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    looks: Vec<Look>,
    /// Whether some had to be refused; rows then mean nothing.
    full: bool,
}

/// Most numbers of all readings.
const MOST: usize = 1 << 14;

impl Looks {
    /// None.
    pub const fn none() -> Self {
        Self { step: None, all: Mutex::new(Known { looks: Vec::new(), full: false }) }
    }

    /// Of a task with a reference, whose control step is this (s).
    pub fn with_step(step: f64) -> Self {
        Self { step: Some(step), all: Mutex::default() }
    }

    /// Control step (s), if there is a reference.
    pub(super) fn step(&self) -> Option<f64> {
        self.step
    }

    /// Whether there is a reference.
    pub fn is_some(&self) -> bool {
        self.step.is_some()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing that can panic happens while it is locked.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The readings so far.
    pub fn all(&self) -> Vec<Look> {
        self.known().looks.clone()
    }

    /// Whether there were too many.
    pub(super) fn is_full(&self) -> bool {
        self.known().full
    }

    /// The first row of a reading.
    pub(super) fn row(&self, wanted: Look) -> usize {
        let mut known = self.known();
        let mut first = 0;
        for look in &known.looks {
            if *look == wanted {
                return first;
            }
            first += look.of.size();
        }
        if first + wanted.of.size() > MOST {
            known.full = true;
            return 0;
        }
        known.looks.push(wanted);
        first
    }
}
