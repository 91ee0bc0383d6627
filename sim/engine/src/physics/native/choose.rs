//! Which kernel a run gets: the specialised kernel or the generic one.

use super::engine::plan;
use super::ffi::{self, Functions};
use super::generate::generate;
use super::kernel::{InstructionSet, Unusable};
use super::specialize::{
    Background, Kernel, Mode, OnProgress, Outcome, Progress, Source, SpecializeError, Specializer,
};
use super::tables::RobotTables;
use crate::config::{SimConfig, Specialize};
use crate::physics::PhysicsError;
use ostler_model::Model;
use std::ops::ControlFlow;

/// `sim.kernel` that leaves the choice to `sim.specialize`; with a dash and an
/// instruction set behind it, among that set's kernels.
const AUTO: &str = "auto";
/// Prefix of the instruction set in the generic kernel's name.
const GENERIC: &str = "generic-";

/// A chosen kernel.
#[derive(Debug)]
pub(super) struct Choice {
    pub functions: Functions,
    /// `generic-avx2` or `avx2-HASH`: the value of `sim.kernel` that gives it again.
    pub name: String,
    /// Why it is this one, where that needs saying.
    pub note: Option<String>,
    /// A compilation for the next run.
    pub background: Option<Background>,
}

/// A kernel that was decided on before any worlds are built.
#[derive(Debug)]
pub struct Settled {
    /// Its name: the value of `sim.kernel` that gives exactly this one.
    pub kernel: String,
    /// Why it is this one, where that needs saying.
    pub note: Option<String>,
    /// A compilation for the next run; dropping it stops it.
    pub background: Option<Background>,
}

/// Decides on the kernel for `model` as `sim.kernel` and `sim.specialize` say.
/// Compiles it where they ask for that; `progress` may give that up.
///
/// # Errors
/// The native engine cannot do something in the model; `sim.kernel` names a kernel
/// that cannot be had.
pub fn settle(
    model: &Model,
    config: &SimConfig,
    progress: OnProgress<'_>,
) -> Result<Settled, PhysicsError> {
    let Choice { name, note, background, .. } = choose(&plan(model, config)?, config, progress)?;
    Ok(Settled { kernel: name, note, background })
}

/// The decision of [`settle`], without compiling anything.
///
/// # Errors
/// As [`settle`].
pub fn foresee(model: &Model, config: &SimConfig) -> Result<Settled, PhysicsError> {
    let plan = plan(model, config)?;
    let looks_only =
        |name: String, note: Option<String>| Settled { kernel: name, note, background: None };
    let mut never = |_: Progress| ControlFlow::Break(());
    let open = open(&config.kernel)?.filter(|_| config.specialize != Specialize::Off);
    let Some(set) = open else {
        return match choose(&plan, config, &mut never) {
            Ok(choice) => Ok(looks_only(choice.name, choice.note)),
            Err(_) if can_come_back(&plan, &config.kernel) => {
                let note = "it has left the cache and is compiled again before the run starts";
                Ok(looks_only(config.kernel.clone(), Some(note.into())))
            }
            Err(error) => Err(error),
        };
    };
    let own = match Specialized::of(&plan, set) {
        Ok(own) => own,
        Err(why) => return Ok(looks_only(generic_name(set), Some(slower(&why)))),
    };
    let hash = match own.specializer.hash(&own.source, set) {
        Ok(hash) => hash,
        Err(why) => return Ok(looks_only(generic_name(set), Some(slower(&why)))),
    };
    let (name, waits) = (own_name(set, &hash), config.specialize == Specialize::Wait);
    Ok(match (own.specializer.find(&hash), waits) {
        (Ok(_), _) => looks_only(name, None),
        (Err(_), true) => {
            let note = "it is compiled before the run starts";
            looks_only(name, Some(note.into()))
        }
        (Err(_), false) => {
            let note = "a run also compiles one for this robot, for the next run";
            looks_only(generic_name(set), Some(note.into()))
        }
    })
}

/// Logs that the compilation takes long.
pub(super) fn tell() -> impl FnMut(Progress) -> ControlFlow<()> {
    let mut told = false;
    move |progress| {
        if !std::mem::replace(&mut told, true) {
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
    }
}

/// Chooses as `sim.kernel` and `sim.specialize` say.
///
/// # Errors
/// `sim.kernel` names a kernel that is not there or does not run on this processor.
pub(super) fn choose(
    plan: &RobotTables,
    config: &SimConfig,
    progress: OnProgress<'_>,
) -> Result<Choice, PhysicsError> {
    let Some(set) = open(&config.kernel)? else {
        return named(plan, &config.kernel, progress);
    };
    let functions = set.generic()?;
    let generic = |note: Option<String>, background| Choice {
        functions: Functions::from(functions),
        name: generic_name(set),
        note,
        background,
    };
    let mode = match config.specialize {
        Specialize::Off => return Ok(generic(None, None)),
        Specialize::Auto => Mode::Auto,
        Specialize::Wait => Mode::Wait,
    };
    let own = match Specialized::of(plan, set) {
        Ok(own) => own,
        Err(why) => return Ok(generic(Some(slower(&why)), None)),
    };
    Ok(match own.specializer.prepare(&own.source, set, mode, progress) {
        Outcome::Ready(kernel) => match ready(plan, &kernel, set) {
            Ok(choice) => choice,
            Err(error) => generic(Some(slower(&error)), None),
        },
        Outcome::Background(background) => generic(
            Some(
                "the generic kernel; one for this robot is being compiled for the next run, if \
                     this one lasts so long (sim.specialize = \"wait\" waits for it)"
                    .into(),
            ),
            Some(background),
        ),
        Outcome::Generic(SpecializeError::Off) => generic(None, None),
        Outcome::Generic(error) => generic(Some(slower(&error)), None),
    })
}

/// The instruction set among whose kernels `sim.kernel` leaves the choice: the widest,
/// or the one in `auto-avx2`; none where it names one kernel.
///
/// # Errors
/// No instruction set is called so; this processor has not got it, or this program no kernels
/// for it.
fn open(kernel: &str) -> Result<Option<InstructionSet>, PhysicsError> {
    if kernel == AUTO {
        return Ok(Some(InstructionSet::widest()?));
    }
    let Some(name) = kernel.strip_prefix(AUTO).and_then(|k| k.strip_prefix('-')) else {
        return Ok(None);
    };
    let missing = |why: String| PhysicsError::Kernel { name: kernel.into(), why };
    let set = InstructionSet::named(name)
        .ok_or_else(|| missing(format!("no instruction set is called \"{name}\"")))?;
    set.generic().map_err(|why| missing(why.to_string()))?;
    Ok(Some(set))
}

/// The source of the robot's specialised kernel, and its compiler.
struct Specialized {
    source: Source,
    specializer: Specializer,
}

impl Specialized {
    /// Or why there is none.
    fn of(plan: &RobotTables, set: InstructionSet) -> Result<Self, String> {
        if set == InstructionSet::Portable {
            return Err("kernels are specialised for AVX2 and AVX-512 only".into());
        }
        let generated = generate(plan, set.lanes()).map_err(|error| error.to_string())?;
        let specializer = Specializer::from_environment().map_err(|error| error.to_string())?;
        Ok(Self { source: generated.source, specializer })
    }
}

fn slower(why: &dyn std::fmt::Display) -> String {
    format!(
        "the generic kernel, at a half to a third of the speed of one compiled for this robot: {why}"
    )
}

fn generic_name(set: InstructionSet) -> String {
    format!("{GENERIC}{}", set.name())
}

fn own_name(set: InstructionSet, hash: &str) -> String {
    format!("{}-{hash}", set.name())
}

fn ready(
    plan: &RobotTables,
    kernel: &Kernel,
    set: InstructionSet,
) -> Result<Choice, SpecializeError> {
    Ok(Choice {
        functions: ffi::loaded(&kernel.library, plan)?,
        name: own_name(set, &kernel.hash),
        note: None,
        background: None,
    })
}

/// Exactly the kernel that an earlier run had. One that has left the cache is compiled
/// again if that gives the same one.
fn named(plan: &RobotTables, name: &str, progress: OnProgress<'_>) -> Result<Choice, PhysicsError> {
    let missing = |why: String| PhysicsError::Kernel { name: name.into(), why };
    let (set, hash) = parse(name).ok_or_else(|| missing("no kernel is called so".into()))?;
    if !set.is_available() {
        return Err(missing(Unusable::Processor(set.name()).to_string()));
    }
    let Some(hash) = hash else {
        let generic = set.generic().map_err(|why| missing(why.to_string()))?;
        return Ok(Choice {
            functions: Functions::from(generic),
            name: name.into(),
            note: None,
            background: None,
        });
    };
    let specializer = Specializer::from_environment().map_err(|e| missing(e.to_string()))?;
    let kernel = match specializer.find(hash) {
        Ok(kernel) => kernel,
        Err(gone) => {
            again(plan, set, hash, progress).map_err(|why| missing(format!("{gone}, and {why}")))?
        }
    };
    ready(plan, &kernel, set).map_err(|e| missing(e.to_string()))
}

/// The instruction set and, but for the generic kernel, the hash in a name.
fn parse(name: &str) -> Option<(InstructionSet, Option<&str>)> {
    let (set, hash) = match name.strip_prefix(GENERIC) {
        Some(set) => (set, None),
        None => name.split_once('-').map(|(set, hash)| (set, Some(hash)))?,
    };
    InstructionSet::named(set).map(|set| (set, hash))
}

/// Whether compiling gives the kernel of this name.
fn can_come_back(plan: &RobotTables, name: &str) -> bool {
    let same = || {
        let (set, hash) = parse(name)?;
        let own = Specialized::of(plan, set).ok().filter(|_| set.is_available())?;
        Some(own.specializer.hash(&own.source, set).ok()? == hash?)
    };
    same().unwrap_or(false)
}

/// Compiles the kernel of this hash, if this compiler gives it.
fn again(
    plan: &RobotTables,
    set: InstructionSet,
    hash: &str,
    progress: OnProgress<'_>,
) -> Result<Kernel, String> {
    let own = Specialized::of(plan, set)?;
    let same = own
        .specializer
        .hash(&own.source, set)
        .map_err(|error| format!("it cannot be compiled again: {error}"))?;
    if same != hash {
        return Err(
            "the robot, the time step, the compiler, OSTLER_OPTIMISE or this program is another than \
             when it was compiled"
                .into(),
        );
    }
    match own.specializer.prepare(&own.source, set, Mode::Wait, progress) {
        Outcome::Ready(kernel) => Ok(kernel),
        Outcome::Generic(error) => Err(error.to_string()),
        Outcome::Background(_) => Err(SpecializeError::Stopped.to_string()),
    }
}
