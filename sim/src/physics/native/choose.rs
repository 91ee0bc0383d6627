//! Which kernel a run gets: the robot's own or the generic one.

use super::ffi::{self, Functions};
use super::generate::generate;
use super::kernel::InstructionSet;
use super::specialize::{
    Background, Kernel, Mode, Outcome, Progress, SpecializeError, Specializer,
};
use super::tables::Plan;
use super::unsupported;
use crate::config::{SimConfig, Specialize};
use crate::physics::PhysicsError;
use std::ops::ControlFlow;

/// `sim.kernel` that leaves the choice to `sim.specialize`.
const AUTO: &str = "auto";
/// What precedes the instruction set in the generic kernel's name.
const GENERIC: &str = "generic-";

/// A chosen kernel.
#[derive(Debug)]
pub(super) struct Choice {
    pub functions: Functions,
    /// `generic-avx2` or `avx2-HASH`: what `sim.kernel` takes to get it again.
    pub name: String,
    /// Why it is this one, where that needs saying.
    pub note: Option<String>,
    /// A compilation for the next run.
    pub background: Option<Background>,
}

/// Chooses as `sim.kernel` and `sim.specialize` say.
///
/// # Errors
/// `sim.kernel` names a kernel that is not there or does not run on this processor.
pub(super) fn choose(plan: &Plan, config: &SimConfig) -> Result<Choice, PhysicsError> {
    if config.kernel != AUTO {
        return named(&config.kernel);
    }
    let set = InstructionSet::detect();
    let generic = |note: Option<String>, background| Choice {
        functions: Functions::from(set.generic()),
        name: format!("{GENERIC}{}", set.name()),
        note,
        background,
    };
    let mode = match config.specialize {
        Specialize::Off => return Ok(generic(None, None)),
        Specialize::Auto => Mode::Auto,
        Specialize::Wait => Mode::Wait,
    };
    if set == InstructionSet::Portable {
        let note = "this processor lacks AVX2, for which kernels are specialised";
        return Ok(generic(Some(note.into()), None));
    }
    let own = |error: &dyn std::fmt::Display| {
        Some(format!(
            "the generic kernel runs, at a half to a third of the speed of one compiled for this robot: {error}"
        ))
    };
    let generated = match generate(plan, set.lanes()) {
        Ok(generated) => generated,
        Err(error) => return Ok(generic(own(&error), None)),
    };
    let specializer = match Specializer::from_environment() {
        Ok(specializer) => specializer,
        Err(error) => return Ok(generic(own(&error), None)),
    };
    let mut told = false;
    let mut progress = |progress: Progress| {
        if !told {
            told = true;
            match progress {
                Progress::Waiting(_) => {
                    tracing::info!(target: "ostler::kernels", "another process compiles this robot's kernel: waiting for it");
                }
                Progress::Compiling(_) => {
                    tracing::info!(target: "ostler::kernels", "compiling a kernel for this robot");
                }
            }
        }
        ControlFlow::Continue(())
    };
    Ok(
        match specializer.prepare(&generated.source, set, mode, &mut progress) {
            Outcome::Ready(kernel) => match ready(&kernel, set) {
                Ok(choice) => choice,
                Err(error) => generic(own(&error), None),
            },
            Outcome::Background(background) => generic(
                Some(
                    "the generic kernel runs; one for this robot is being compiled for the next \
                     run (sim.specialize = \"wait\" waits for it)"
                        .into(),
                ),
                Some(background),
            ),
            Outcome::Generic(SpecializeError::Off) => generic(None, None),
            Outcome::Generic(error) => generic(own(&error), None),
        },
    )
}

fn ready(kernel: &Kernel, set: InstructionSet) -> Result<Choice, SpecializeError> {
    Ok(Choice {
        functions: ffi::loaded(&kernel.library)?,
        name: format!("{}-{}", set.name(), kernel.hash),
        note: None,
        background: None,
    })
}

/// Exactly the kernel that an earlier run had.
fn named(name: &str) -> Result<Choice, PhysicsError> {
    let of = |name: &str| {
        [
            InstructionSet::Portable,
            InstructionSet::Avx2,
            InstructionSet::Avx512,
        ]
        .into_iter()
        .find(|set| set.name() == name)
    };
    let missing = |why: String| {
        unsupported(format!(
            "sim.kernel = \"{name}\": {why}; sim.kernel = \"auto\" takes the best there is, with other bits"
        ))
    };
    let (set, hash) = match name.strip_prefix(GENERIC) {
        Some(set) => (of(set), None),
        None => {
            let (set, hash) = name.split_once('-').unwrap_or((name, ""));
            (of(set), Some(hash))
        }
    };
    let set = set.ok_or_else(|| missing("no kernel is called so".into()))?;
    if !set.is_available() {
        return Err(missing(format!("this processor has no {}", set.name())));
    }
    let Some(hash) = hash else {
        return Ok(Choice {
            functions: Functions::from(set.generic()),
            name: name.into(),
            note: None,
            background: None,
        });
    };
    Specializer::from_environment()
        .and_then(|specializer| specializer.find(hash))
        .and_then(|kernel| ready(&kernel, set))
        .map_err(|error| missing(error.to_string()))
}
