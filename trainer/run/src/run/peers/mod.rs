//! One run by several processes.
//!
//! Process 0 has the run: its loop, its guards, its folder, every decision. The others have
//! environments and a learner, and do what process 0 tells them to (`Order`): `lead` is a
//! collector and a learner that pass on what is asked of them, `follow` is the loop of the
//! others. Nothing can be decided differently, because nobody else decides. Within an update all
//! add up their sums (`ostler_collector::peers`), so that all have the same weights.

mod follow;
mod launch;
mod lead;

pub use follow::follow;
pub use launch::{Launch, fork, of_environment};
pub(in crate::run) use lead::{LeadCollector, LeadLearner, built, tell_to_build, tell_to_drop};

use super::error::{LOST, RunError};
use ostler_collector::CollectError;
use ostler_collector::peers::Group;
use ostler_collector::replay::Saved;
use ostler_machine::torch::peers::{Gloo, Meeting, Patience};
use ostler_sim::memory::MemoryError;
use ostler_sim::snapshot;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What process 0 has the others do.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Build environments and learner of this configuration, all environments' number in it.
    Build {
        /// As TOML.
        config: String,
        /// Of the robot's files.
        robot: String,
        /// Of the program.
        version: String,
    },
    /// Give them up.
    Drop,
    Collect,
    WarmUp,
    Update,
    /// Remember environments, and with `learner` the learner, as they are.
    Capture {
        learner: bool,
    },
    /// Go back to what was remembered.
    Restore {
        learner: bool,
    },
    /// Give process 0 the state of environments: what was remembered, or as it is.
    State {
        remembered: bool,
    },
    /// Go on from this state of all environments; with `spread` new ones begin at random ages.
    Place {
        whole: Vec<u8>,
        spread: bool,
    },
    /// Other numbers in the task, as TOML.
    Task {
        task: String,
    },
    ForgetAhead,
    /// Open replay buffers of its own below the run's folder.
    Open {
        folder: PathBuf,
        again: bool,
    },
    /// Give process 0 a checkpoint's part of them: one for each policy.
    SaveReplay,
    /// Go back to what was saved, in the order of processes, of each that of policies.
    RestoreReplay {
        saved: Vec<Vec<Saved>>,
    },
    Progress {
        done: f64,
    },
    /// Take process 0's weights, statistics and counts.
    Share,
    /// Forget gradients; learning rates change by the factor.
    Restart {
        factor: f64,
    },
    End,
}

/// The answer to an order.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Done(Done),
    /// There is no memory for it.
    Memory {
        what: String,
        bytes: usize,
    },
    Failed(String),
    /// Another process failed in the midst of sums.
    CutShort,
}

/// What there is to say of an order that was done.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Done {
    /// Of an update: of the learner's state, the same bits in all processes. Of a place: how many
    /// environments go on.
    number: u64,
    /// Whether a signal asks this process to end.
    stop: bool,
    /// Of collecting: sum of rewards, and of how many valid steps.
    rewards: [f64; 2],
    /// Time that it took, without waiting for sums (s).
    seconds: f64,
    /// What was asked for: statistics of episodes, the environments' state.
    bytes: Vec<u8>,
}

impl Answer {
    /// What was done, or what went wrong, in process `rank`.
    fn of(self, rank: usize) -> Result<Done, CollectError> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Memory { what, bytes } => {
                let what = format!("{what} (in process {rank})");
                Err(MemoryError { what, bytes }.into())
            }
            Self::Failed(why) => Err(CollectError::Peer { rank, why }),
            Self::CutShort => Err(CollectError::CutShort),
        }
    }
}

/// As a message.
fn written(of: &str, message: &impl Serialize) -> Result<Vec<u8>, CollectError> {
    let mut bytes = Vec::new();
    snapshot::write(of, message, 0, &mut bytes)?;
    Ok(bytes)
}

const ORDERS: &str = "orders";
const ANSWERS: &str = "answers";

/// Meets the other processes; from now on this thread trains with them.
///
/// # Errors
/// One does not come.
pub fn meet(meeting: &Meeting, patience: Patience) -> Result<Group, RunError> {
    let group = Group::of(Box::new(Gloo::meet(meeting, patience, LOST)?));
    group.enter();
    Ok(group)
}

/// The run is over: the others end.
pub fn part() {
    let group = Group::current();
    if !group.is_alone() && group.rank() == 0 {
        // Whoever is gone already needs no word.
        let _ = lead::order(&group, &Order::End);
    }
    Group::default().enter();
}
