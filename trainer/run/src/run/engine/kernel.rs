//! Which kernel a run gets, before anything is built: the resolved configuration names
//! it, and everything that simulates in the run uses exactly that one.

use super::{build_env, explained};
use crate::log::errln;
use crate::log::progress::duration;
use crate::run::error::RunError;
use crate::run::signals::StopFlag;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ostler_learn::config::{Config, Loaded};
use ostler_sim::config::{Backend, SimConfig, SimDevice, Specialize};
use ostler_sim::physics::PhysicsError;
use ostler_sim::physics::native::{self, specialize::Progress};
use ostler_sim::{BatchEnv, Model};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// `sim.kernel` that names none.
const AUTO: &str = "auto";
/// Digits of a kernel's hash on the screen; logs and files have all of them.
const DIGITS: usize = 12;
/// Time between plain lines while a kernel is compiled.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The kernel that was decided on.
#[derive(Debug, Default)]
pub struct Settled(Option<native::Settled>);

impl Settled {
    /// One line for the log; nothing for an engine without kernels.
    pub fn line(&self) -> Option<String> {
        let settled = self.0.as_ref()?;
        let note = settled.note.as_ref().map(|n| format!(" ({n})"));
        let name = short(&settled.kernel);
        Some(format!("physics: native, kernel {name}{}", note.unwrap_or_default()))
    }
}

/// `avx2-0123456789ab` for `avx2-` and 64 digits.
pub(crate) fn short(name: &str) -> String {
    match name.split_once('-') {
        Some((set, hash)) if hash.len() == 64 => {
            format!("{set}-{}", hash.get(..DIGITS).unwrap_or(hash))
        }
        _ => name.to_string(),
    }
}

/// Decides on the kernel and writes its name into the configuration. One that is
/// compiled first shows how long that takes unless `quiet`; `stop` gives it up.
///
/// # Errors
/// The engine cannot do something in the model; a kernel that was named cannot be had;
/// a signal came.
pub fn settle(
    loaded: &mut Loaded,
    model: &Arc<Model>,
    quiet: bool,
    stop: Option<&StopFlag>,
) -> Result<Settled, RunError> {
    if !on_host(loaded) {
        return Ok(Settled::default());
    }
    let sim = &loaded.config.sim;
    if sim.specialize == Specialize::Wait && sim.kernel_is_open() {
        // Nobody waits for a kernel to be told then that the task has a mistake.
        one_env(loaded, model)?;
    }
    // Compilers are waited for and what they left is removed.
    let ask = || ask(model, sim, quiet, stop);
    let settled = match stop {
        Some(stop) => stop.minded(ask),
        None => ask(),
    };
    if stop.is_some_and(StopFlag::raised) {
        return Err(RunError::Stopped);
    }
    let settled = settled.map_err(|e| explained(loaded, e.into()))?;
    loaded.config.sim.kernel.clone_from(&settled.kernel);
    Ok(Settled(Some(settled)))
}

/// Whether kernels for the host simulate. A GPU has its own, which is compiled with the
/// environments.
fn on_host(loaded: &Loaded) -> bool {
    let sim = &loaded.config.sim;
    let robot = loaded.foreign.is_none();
    robot && sim.backend == Backend::Native && sim.device != SimDevice::Cuda
}

fn ask(
    model: &Model,
    sim: &SimConfig,
    quiet: bool,
    stop: Option<&StopFlag>,
) -> Result<native::Settled, PhysicsError> {
    let mut shown = Shown::new(quiet);
    let settled = native::settle(model, sim, &mut |progress| {
        shown.show(progress);
        match stop.is_some_and(StopFlag::raised) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    shown.clear();
    settled
}

/// The same for watching and judging: what the cache has or the generic kernel, and a
/// named one that cannot be had is replaced by those.
///
/// # Errors
/// The engine cannot do something in the model.
pub fn settle_here(loaded: &mut Loaded, model: &Model) -> Result<(), RunError> {
    if loaded.config.sim.backend != Backend::Native || loaded.foreign.is_some() {
        return Ok(());
    }
    let open = loaded.config.sim.kernel_is_open();
    let best = SimConfig {
        kernel: match open {
            true => loaded.config.sim.kernel.clone(),
            false => AUTO.into(),
        },
        specialize: match loaded.config.sim.specialize {
            Specialize::Off => Specialize::Off,
            Specialize::Auto | Specialize::Wait => Specialize::Auto,
        },
        ..loaded.config.sim.clone()
    };
    let named = (!open).then(|| ask(model, &loaded.config.sim, false, None));
    let here = match named {
        None | Some(Err(PhysicsError::Kernel { .. })) => native::foresee(model, &best),
        Some(named) => named,
    };
    let here = here.map_err(|e| explained(loaded, e.into()))?;
    loaded.config.sim.kernel = here.kernel;
    Ok(())
}

/// The decision of [`settle`], for `ostler check`.
///
/// # Errors
/// As [`settle`].
pub fn foresee(loaded: &Loaded, model: &Model) -> Result<Settled, RunError> {
    if !on_host(loaded) {
        return Ok(Settled::default());
    }
    let settled =
        native::foresee(model, &loaded.config.sim).map_err(|e| explained(loaded, e.into()))?;
    Ok(Settled(Some(settled)))
}

/// One environment, which compiles the task as well as thousands do.
///
/// # Errors
/// The task has a mistake; the engine cannot do something in the model.
pub fn one_env(loaded: &Loaded, model: &Arc<Model>) -> Result<BatchEnv, RunError> {
    let config = &loaded.config;
    let config = Config { sim: config.sim.generic(), ..config.clone() };
    build_env(loaded, &config, model, 1, config.seed)
}

/// The remedy if the kernel of a run that is to go on cannot be had.
pub(crate) fn without_its_own(e: RunError) -> RunError {
    match e {
        RunError::Config(e) => RunError::Usage(format!(
            "the run cannot go on with the same bits:\n{e}\n  \
             --init-from starts a new run from its weights, with a kernel of this machine"
        )),
        e => e,
    }
}

/// How long a compilation takes so far, on standard error.
struct Shown {
    quiet: bool,
    bar: Option<ProgressBar>,
    next: Duration,
}

impl Shown {
    fn new(quiet: bool) -> Self {
        Self { quiet, bar: None, next: Duration::ZERO }
    }

    fn show(&mut self, progress: Progress) {
        if self.quiet {
            return;
        }
        let (what, so_far) = match progress {
            Progress::Waiting(t) => ("another process compiles this robot's kernel", t),
            Progress::Compiling(t) => ("compiling a kernel for this robot", t),
        };
        let text = format!("{what}: {}", duration(so_far.as_secs_f64()));
        if crate::log::progress::can_redraw() {
            let bar = self.bar.get_or_insert_with(|| {
                let target = ProgressDrawTarget::stderr_with_hz(4);
                let bar = ProgressBar::with_draw_target(None, target);
                if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                    bar.set_style(style);
                }
                bar
            });
            bar.set_message(text);
            bar.tick();
        } else if so_far >= self.next {
            self.next = so_far + PLAIN_EVERY;
            errln!("{text}");
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_are_shortened_to_what_tells_kernels_apart() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(short(&format!("avx2-{hash}")), "avx2-0123456789ab");
        assert_eq!(short("generic-avx512"), "generic-avx512");
        assert_eq!(short("auto"), "auto");
    }
}
