//! A run that goes on from a checkpoint.

use super::plan::{Options, Plan, plan};
use super::{same_run, unchanged};
use crate::log::sinks::Sinks;
use crate::log::tensorboard::FILE_NAME;
use crate::run::counters::{Counters, Window};
use crate::run::engine::{one_env, reflection, settle};
use crate::run::error::RunError;
use crate::run::load::{find, fits, mark, newest_whole};
use crate::run::parts::{Parts, pin_teacher};
use crate::run::store::checkpoint::{Checkpoint, Meta, TaskMark};
use crate::run::store::dir::{self, RunDir};
use crate::run::store::{keep, meta};
use ostler_collector::replay::{FOLDER, ReplayBuffer, Saved};
use ostler_learn::config::Gpus;
use ostler_learn::learner::LearnError;
use ostler_sim::env::EnvSpec;
use ostler_sim::files;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run that goes on: where, and from which checkpoint.
pub(in crate::run) struct Earlier {
    pub(in crate::run) dir: RunDir,
    pub(in crate::run) file: PathBuf,
    pub(in crate::run) checkpoint: Checkpoint,
}

pub(in crate::run) fn resumed(options: &Options, run: &Path) -> Result<(Plan, Earlier), RunError> {
    if options.out.is_some() || options.init_from.is_some() {
        return Err(RunError::Usage(
            "--resume goes on in the run's own folder with its own weights: --out and --init-from do not go with it".into(),
        ));
    }
    let (folder, _) = find(run)?;
    let dir = RunDir::open(&folder)?;
    // Read under the lock: nobody adds to them meanwhile.
    let (_, file, checkpoint, note) = newest_whole(run)?;
    let changed = unchanged::own_config(&dir, &checkpoint.meta)?;
    let own = folder.join(dir::CONFIG);
    let (before, old_model, _) = plan(&own, &[], None, Gpus::Trust).map_err(|e| match e {
        RunError::Robot(e) => RunError::Usage(format!(
            "{e}\n  the files in {} are the run's own: if one is damaged, put the original in its place",
            folder.display()
        )),
        e => e,
    })?;
    let path = options.config.as_deref().unwrap_or(&own);
    let (mut loaded, model, notes) =
        plan(path, &options.overrides, Some(&before.config), Gpus::HERE)?;
    same_run::same_run(&before.config, &loaded.config, &folder)?;
    if !same_files(&old_model.sources, &model.sources) {
        return Err(RunError::Usage(format!(
            "cannot go on with {}: the robot in {} differs from the run's own copy",
            folder.display(),
            loaded.robot().display()
        )));
    }
    // Before so many are made room for.
    let (theirs, most) = (checkpoint.meta.task.num_envs, before.config.most_envs());
    if theirs > most {
        return Err(RunError::Usage(format!(
            "{} cannot be used: it says that it is of {theirs} environments, but its run had {most} at the most; use another file of checkpoints/",
            file.display()
        )));
    }
    // A process that died after its last checkpoint has only its end before it.
    let owed = checkpoint.meta.evaluation_owed && loaded.config.runner.eval_interval() > 0;
    if !options.restarted
        && !owed
        && checkpoint.meta.iteration >= loaded.config.runner.max_iterations
    {
        return Err(RunError::Usage(format!(
            "{} has done {} of {} iterations; --set runner.max_iterations=N goes on",
            folder.display(),
            checkpoint.meta.iteration,
            loaded.config.runner.max_iterations
        )));
    }
    loaded.config.name.clone_from(&before.config.name);
    let robot = unchanged::own_robot(&folder, &old_model.sources, &checkpoint.meta);
    let plan = Plan {
        loaded,
        // From the run's own copy, so that copying it anew changes nothing.
        model: old_model,
        notes,
        warnings: [note, changed, robot].into_iter().flatten().collect(),
    };
    Ok((plan, Earlier { dir, file, checkpoint }))
}

/// Moves what the run would overwrite out of its way; see [`keep::set_aside`].
pub(in crate::run) fn set_aside(dir: &RunDir, iteration: u64) -> Result<Option<PathBuf>, RunError> {
    let folder = dir.checkpoints();
    let newest = keep::list(&folder).pop().map_or(0, |f| f.0);
    if newest <= iteration {
        return Ok(None);
    }
    // A damaged best checkpoint is no reason to refuse: it stays where it is.
    let best = Checkpoint::read(&folder.join(keep::BEST)).ok();
    let copies = [dir.path().join(dir::METRICS), dir.path().join(FILE_NAME)];
    keep::set_aside(&folder, iteration, best.map(|b| b.meta.iteration), &copies)
        .map_err(RunError::file("set aside the newer checkpoints in", &folder))
}

pub(in crate::run) fn same_files(a: &[PathBuf], b: &[PathBuf]) -> bool {
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(x, y)| same_file(x, y).unwrap_or(false))
}

/// Whether two files hold the same; piece by piece, since meshes are large.
fn same_file(a: &Path, b: &Path) -> std::io::Result<bool> {
    let (a, b) = (files::open(a)?, files::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (x, y) = (a.fill_buf()?, b.fill_buf()?);
        let n = x.len().min(y.len());
        if x[..n] != y[..n] || (n == 0 && x.len() != y.len()) {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
        a.consume(n);
        b.consume(n);
    }
}

pub(in crate::run) fn restore(
    earlier: &Earlier,
    task: &TaskMark,
    spread: bool,
    parts: &mut Parts,
    counters: &mut Counters,
) -> Result<(), RunError> {
    let c = &earlier.checkpoint;
    fits(&c.meta.task, task, &earlier.file)?;
    parts.learner.load(&c.learner)?;
    // Fewer fit than the checkpoint holds: the first of them go on.
    let restored = match task.num_envs == c.meta.task.num_envs {
        true => parts.collector.restore(&c.collector),
        false => parts.collector.restore_range(&c.collector, spread).map(|_| ()),
    };
    restored.map_err(|e| {
        RunError::Usage(format!(
            "{} cannot be resumed: {e}; a new run with --init-from takes over its policy alone",
            earlier.file.display()
        ))
    })?;
    if let Some(buffer) = parts.learner.replay_buffer() {
        restore_replay(buffer, c.meta.replay.as_ref())?;
    }
    if let Some(memory) = parts.learner.memory()
        && c.meta.replay.is_some()
        && !memory.restore_others(&c.meta.replay_of_others)?
    {
        tracing::warn!(
            "the replay buffers of the run's processes or policies are not all as they were: the run goes on, \
             but does not repeat bit for bit what it would have been"
        );
    }
    *counters = Counters {
        iteration: c.meta.iteration,
        env_steps: c.meta.env_steps,
        wall_before_s: c.meta.wall_s,
        best: c.meta.best,
        window: Window::from_slice(&c.episodes),
    };
    Ok(())
}

/// Goes on with a run up to where its first iteration would begin, and draws once from
/// what its learner remembers; only for tests of the readers.
pub fn as_if_resumed(run: &Path) -> Result<(), RunError> {
    let options = Options { quiet: true, ..Options::default() };
    let (Plan { mut loaded, model, .. }, earlier) = resumed(&options, run)?;
    settle(&mut loaded, &model, true, None)?;
    loaded.config.env.num_envs = earlier.checkpoint.meta.task.num_envs;
    pin_teacher(&mut loaded.config, Some(earlier.dir.path()));
    let spec = match &loaded.foreign {
        Some(foreign) => foreign.facts()?.spec.clone(),
        None => one_env(&loaded, &model)?.spec().clone(),
    };
    let reflection = reflection(&loaded, &model)?.map(Arc::new);
    let spec = EnvSpec { reflection, ..spec };
    let mut parts = Parts::build(&loaded, &model, &spec)?;
    parts.open(earlier.dir.path(), true)?;
    let (mut counters, task) =
        (Counters::default(), mark(&model, &parts.spec, &loaded.config.task.action));
    restore(&earlier, &task, true, &mut parts, &mut counters)?;
    set_aside(&earlier.dir, counters.iteration)?;
    let at = |e| RunError::file("write into", earlier.dir.path())(e);
    let tensorboard = loaded.config.log.tensorboard;
    Sinks::open(earlier.dir.path(), counters.iteration, tensorboard).map_err(at)?;
    meta::MetaWriter::create(earlier.dir.path(), serde_json::Map::new()).map_err(at)?;
    if let Some(buffer) = parts.learner.replay_buffer()
        && !buffer.is_empty()
    {
        buffer.begin_update(1);
        buffer.next().map_err(LearnError::from)?;
    }
    Ok(())
}

/// The replay buffer as it was when the checkpoint was written.
fn restore_replay(buffer: &mut ReplayBuffer, saved: Option<&Saved>) -> Result<(), RunError> {
    let Some(saved) = saved else {
        tracing::warn!(
            "the checkpoint is without the replay buffer: {} transitions of before are there; the \
             run goes on, but does not repeat bit for bit what it would have been",
            buffer.len()
        );
        return Ok(());
    };
    let restored = buffer.restore(saved).map_err(LearnError::from)?;
    if !restored.exact() {
        tracing::warn!(
            "the replay buffer lacks {} of its oldest and {} of its newest transitions{}, and has \
             {}: the run goes on, but does not repeat bit for bit what it would have been",
            restored.lost_oldest,
            restored.lost_newest,
            if restored.lost_priorities { ", and all priorities" } else { "" },
            restored.rows
        );
    }
    Ok(())
}

/// A run that starts anew in its folder starts without what it remembered there.
pub(in crate::run) fn forget_replay(dir: &Path) {
    let folder = dir.join(FOLDER);
    if let Err(e) = std::fs::remove_dir_all(&folder)
        && e.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("cannot remove {}: {e}", folder.display());
    }
}

/// Says that a run goes on in `now` processes in place of its own number. Replay buffers are moved
/// out of the way: none of them fits.
pub(in crate::run) fn leave_processes(dir: &Path, meta: &mut Meta, now: usize) {
    let before = meta.processes;
    tracing::warn!(
        "the run had {} and goes on with {now}: states of environments are dealt out anew, and its \
         bits are others than without the stop (with --nproc {before}, or as many by torchrun or \
         srun, they are the same)",
        if before == 1 { "1 process".into() } else { format!("{before} processes") }
    );
    if meta.replay.is_none() && meta.replay_of_others.is_empty() {
        return;
    }
    let (folder, kept) = (dir.join(FOLDER), dir.join(format!("{FOLDER}-of-{before}-processes")));
    let _ = std::fs::remove_dir_all(&kept);
    let place = match std::fs::rename(&folder, &kept) {
        Ok(()) => format!("those are kept in {}", kept.display()),
        Err(e) => format!("{}: {e}", folder.display()),
    };
    tracing::warn!("replay buffers begin empty, for each process has its own; {place}");
    (meta.replay, meta.replay_of_others) = (None, Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_if_all_of_them_is() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let long = vec![7; 100_000];
        let mut other = long.clone();
        other[99_999] = 8;
        let (a, b) = (write("a", &long), write("b", &long));
        let (c, d) = (write("c", &other), write("d", &long[1..]));
        let same = |x: &Path, y: &Path| same_files(&[x.into()], &[y.into()]);
        assert!(same(&a, &b) && same(&a, &a));
        assert!(!same(&a, &c) && !same(&a, &d) && !same(&a, dir.path()));
        assert!(!same_files(std::slice::from_ref(&a), &[a.clone(), b]));
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("f"), rustix::fs::Mode::RWXU)
            .unwrap();
        assert!(!same(&a, &dir.path().join("f")));
    }
}
